"""What commands that start from a table have in common: the options that declare table, kept totals and noise."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from typing import Annotated, Any, get_type_hints

import numpy as np
import typer

import keepsum as ks
from keepsum.declaring import read_domain, read_keep
from keepsum.errors import InputError
from keepsum.mechanisms import Mechanism
from keepsum.memory import BYTES_A_CELL, check_room

FILES = """Files:

    categories.toml:  sex = ["f", "m"]  and for a nested axis a table:  [county]  IL = ["Cook", "Lake"]

    totals.toml, for --keep-file:  [[total]]  name = "coast"  cells = [{county = ["A", "B"]}, {county = "C", sex = "f"}]

    matrix.csv, for --keep-file: whole numbers, no header, a line for each total, a number for each row of the table

    published.csv, for --totals: the axes and the count column, an empty axis standing for all of it; or total and count
"""
TABLE, NOISE = "The table and its kept totals", "The noise"


def option(*names: str, help: str, panel: str = TABLE, metavar: str | None = None) -> Any:  # noqa: A002
    """An option of the shell, under a heading of the help."""
    return typer.Option(*names, help=help, rich_help_panel=panel, metavar=metavar, show_default=False)


@dataclass(frozen=True)
class Declaration:
    """A table, the totals to keep and the noise, as they are declared on a command line."""

    table: Annotated[
        str | None, typer.Argument(help="CSV, Parquet or Arrow file of counts, one row a cell; - for standard input.")
    ] = None
    count: Annotated[str, option("--count", help="The column of counts.", metavar="COLUMN")] = "count"
    axes: Annotated[
        list[str] | None,
        option("--axes", help="Columns that divide the table; by default all but the count.", metavar="A,B"),
    ] = None
    within: Annotated[
        list[str] | None, option("--within", help="A nested axis: county:state.", metavar="CHILD:PARENT")
    ] = None
    domain: Annotated[str | None, option("--domain", help="TOML file with the categories of axes.", metavar="FILE")] = (
        None
    )
    drop: Annotated[list[str] | None, option("--drop", help="Columns to leave out.", metavar="A,B")] = None
    keep: Annotated[
        list[str] | None,
        option("--keep", help="Keep the totals of an axis exactly; A,B for a two-way margin.", metavar="AXIS"),
    ] = None
    keep_total: Annotated[bool, option("--keep-total", help="Keep the grand total.")] = False
    keep_file: Annotated[
        list[str] | None,
        option("--keep-file", help="Keep totals of subsets (TOML) or of a matrix (CSV).", metavar="FILE"),
    ] = None
    epsilon: Annotated[
        str | None, option("--epsilon", help="Privacy loss per unit of distance.", panel=NOISE, metavar="E")
    ] = None
    norm: Annotated[
        str | None, option("--norm", help="How distance is measured: l1 (default) or l2.", panel=NOISE, metavar="NORM")
    ] = None
    per_person: Annotated[bool, option("--per-person", help="Let epsilon be the loss of one person.", panel=NOISE)] = (
        False
    )
    attributes: Annotated[
        list[str] | None,
        option("--attributes", help="With --per-person: for these attributes only.", panel=NOISE, metavar="A,B"),
    ] = None
    to: Annotated[
        str | None,
        option("--to", help="With --per-person: 'any value' or 'some other value'.", panel=NOISE, metavar="VALUE"),
    ] = None
    mechanism: Annotated[
        str, option("--mechanism", help="laplace (default) or gaussian.", panel=NOISE, metavar="NAME")
    ] = "laplace"
    delta: Annotated[str | None, option("--delta", help="Delta, for gaussian.", panel=NOISE, metavar="D")] = None
    rho: Annotated[str | None, option("--rho", help="zCDP at distance 1, for gaussian.", panel=NOISE, metavar="R")] = (
        None
    )
    calibration: Annotated[
        str | None,
        option("--calibration", help="How sigma follows: zcdp (default), tight, paper.", panel=NOISE, metavar="NAME"),
    ] = None
    sigma: Annotated[str | None, option("--sigma", help="Sigma itself, for gaussian.", panel=NOISE, metavar="S")] = None

    def noise(self) -> Mechanism:
        """The mechanism."""
        given = {name: getattr(self, name) for name in ("epsilon", "delta", "rho", "sigma")}
        person = self._person()
        if self.mechanism == "laplace":
            for name in ("delta", "rho", "sigma", "calibration"):
                if getattr(self, name) is not None:
                    raise InputError(f"Option --{name} must go with --mechanism gaussian. Leave it out for Laplace.")
            if self.epsilon is None:
                raise InputError("Option --epsilon must be given for Laplace noise, such as --epsilon 0.25.")
            norm = "l1" if self.norm is None else self.norm
            if person is None:
                return ks.Laplace(self.epsilon, norm)
            return ks.Laplace.per_person(self.epsilon, norm, **person)
        if self.mechanism != "gaussian":
            raise InputError(f"Option --mechanism must be laplace or gaussian, got {self.mechanism!r}.")
        if self.norm == "l1":
            raise InputError("Option --norm must be l2 for Gaussian noise. Leave it out.")
        calibration = self.calibration or "zcdp"
        if person is None:
            return ks.Gaussian(**given, calibration=calibration)
        if given.pop("sigma") is not None:
            raise InputError("Option --sigma must not go with --per-person: it is a width, not a loss. Give --rho.")
        return ks.Gaussian.per_person(**given, calibration=calibration, **person)

    def _person(self) -> dict[str, Any] | None:
        """What is asked for one person, if it is."""
        asked = {"attributes": _names(self.attributes) or None, "to": self.to or "any value"}
        if self.per_person:
            return asked
        for name in ("attributes", "to"):
            if getattr(self, name):
                raise InputError(f"Option --{name} must go with --per-person. Add it, or leave --{name} out.")
        return None

    def read(self) -> ks.Table:
        """The table; without a file, the cells that ``--domain`` declares, with nothing in them."""
        categories = None if self.domain is None else read_domain(self.domain)
        within = self._within()
        if self.table is not None:
            if self.table == "-" and sys.stdin is None:
                raise InputError("Standard input must be open to read a table from it.")
            return ks.read_table(
                sys.stdin.buffer if self.table == "-" else self.table,
                count=self.count,
                axes=_names(self.axes) or None,
                within=within,
                domain=categories,
                drop=_names(self.drop),
            )
        if categories is None:
            raise InputError("A table must be given, or its categories with --domain.")
        cells = ks.Domain(categories, within)
        check_room(cells.size, f"A table of {cells.size:,} cells", BYTES_A_CELL)
        return ks.Table(cells, np.zeros(cells.size, dtype=np.int64), self.count)

    def kept(self, table: ks.Table) -> ks.Invariants:
        """The totals to keep."""
        margins = [_margin(text, table.domain.axes) for text in self.keep or []]
        invariants = table.keep(*margins, total=self.keep_total)
        for path in self.keep_file or []:
            invariants = invariants + read_keep(path, table)
        if len(set(invariants.names)) < invariants.height:
            raise InputError("Kept totals must have different names. Rename those of --keep-file.")
        if not invariants.height:
            raise InputError("At least one total must be kept. Name them with --keep, --keep-total or --keep-file.")
        return invariants

    def _within(self) -> dict[str, str] | None:
        if not self.within:
            return None
        nesting: dict[str, str] = {}
        for text in self.within:
            child, colon, parent = text.partition(":")
            if not (child and colon and parent):
                raise InputError(f"Option --within must be CHILD:PARENT such as county:state, got {text!r}.")
            if nesting.setdefault(child, parent) != parent:
                raise InputError(f"Option --within must give {child!r} one parent, got two.")
        return nesting


def _names(given: Sequence[str] | None) -> list[str]:
    return [name for text in given or [] for name in text.split(",")]


def _margin(text: str, axes: Sequence[str]) -> list[str]:
    """An axis, or several with commas between them; an axis may have a comma in its name."""
    return [text] if text in axes else text.split(",")


def declares(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes a Declaration its fields as options."""
    own = dict(inspect.signature(command).parameters)
    hints = get_type_hints(command, include_extras=True)
    declared = next(name for name in own if hints[name] is Declaration)
    del own[declared]
    shared = get_type_hints(Declaration, include_extras=True)
    defaults = {f.name: inspect.Parameter.empty if f.default is MISSING else f.default for f in fields(Declaration)}
    parameters = [(name, shared[name], defaults[name]) for name in shared]
    parameters += [(name, hints[name], parameter.default) for name, parameter in own.items()]

    @wraps(command)
    def call(**given: Any) -> None:
        declaration = Declaration(**{name: given.pop(name) for name in shared})
        command(**{declared: declaration}, **given)

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            for name, hint, default in parameters
        ]
    )
    call.__annotations__ = {name: hint for name, hint, _ in parameters}
    del call.__wrapped__
    return call

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
from keepsum._memory import BYTES_A_CELL, check_room
from keepsum.cli.categories import parse_categories
from keepsum.errors import InputError
from keepsum.privacy.mechanisms import Mechanism
from keepsum.sources.declarations import read_domain, read_keep
from keepsum.sources.reading import open_columns, resolve_axes

FILES = """Categories:

    --categories 'education=Low,Medium,High,Very High' --categories 'town="Rome, NY",Utica'

    --within county:state --categories 'county:IL=Cook,Lake' --categories 'county:WI=Lake'

A release has its rows in the order of the declared categories, else in the natural order of the labels (5-9 before
10-14), whatever the order of the file, unless --keep-order says that this is public.

Files:

    categories.toml, for --domain:  sex = ["f", "m"]  and for a nested axis a table:  [county]  IL = ["Cook", "Lake"]

    totals.toml, for --keep-file:  [[total]]  name = "coast"  cells = [{county = ["A", "B"]}, {county = "C", sex = "f"}]

    matrix.csv, for --keep-file with --keep-order: whole numbers, no header, a line a total, a number a row of the table

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
        option(
            "--axes", help="Columns that divide the table; by default all, but name those of numbers.", metavar="A,B"
        ),
    ] = None
    within: Annotated[
        list[str] | None, option("--within", help="A nested axis: county:state.", metavar="CHILD:PARENT")
    ] = None
    domain: Annotated[str | None, option("--domain", help="TOML file with the categories of axes.", metavar="FILE")] = (
        None
    )
    categories: Annotated[
        list[str] | None,
        option("--categories", help="The categories of an axis, in their order: sex=f,m.", metavar="AXIS=A,B"),
    ] = None
    keep_order: Annotated[bool, option("--keep-order", help="Keep the order of the rows, because it is public.")] = (
        False
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
        """The table; without a file, the cells whose categories are declared, with nothing in them."""
        within = self._within()
        categories = self._categories(within or {})
        if self.table is not None:
            return self._from_file(self.table, categories, within)
        if categories is None:
            raise InputError("A table must be given, or its categories with --categories or --domain.")
        if self.keep_order:
            raise InputError("Option --keep-order must go with a table. Leave it out: categories stand as declared.")
        cells = ks.Domain(categories, within)
        check_room(cells.size, f"A table of {cells.size:,} cells", BYTES_A_CELL)
        return ks.Table(cells, np.zeros(cells.size, dtype=np.int64), self.count)

    def _from_file(self, name: str, categories: dict[str, Any] | None, within: dict[str, str] | None) -> ks.Table:
        """The table of a file; whatever an option names is an axis, also if it holds numbers."""
        if name == "-" and sys.stdin is None:
            raise InputError("Standard input must be open to read a table from it.")
        file = open_columns(sys.stdin.buffer if name == "-" else name, self.count)
        named = {*(categories or ()), *(axis for text in self.keep or [] for axis in _margin(text, file.source.names))}
        drop = _names(self.drop)
        axes = resolve_axes(file.source, self.count, _names(self.axes) or None, within or {}, drop, named)
        return ks.Table.from_source(file.source, axes, self.count, within, categories, file.origin, self.keep_order)

    def _categories(self, within: dict[str, str]) -> dict[str, Any] | None:
        """The categories of the command and of the file of ``--domain``."""
        if not self.categories and self.domain is None:
            return None
        here = parse_categories(self.categories or [], within)
        there = {} if self.domain is None else read_domain(self.domain)
        for axis in here:
            if axis in there:
                raise InputError(f"Categories of axis {axis!r} must be declared once, with --categories or --domain.")
        return here | there

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

"""The options that commands share: they declare the table, the kept totals and the noise."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

import keepsum as ks
from keepsum._memory import BYTES_A_CELL, check_room
from keepsum.cli import completion
from keepsum.cli.categories import parse_categories
from keepsum.cli.records import (
    RecordOptions,
    count_records,
    empty_table,
    parse_bins,
    parse_missing,
    refuse_with_by,
    refuse_without_by,
)
from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.privacy.mechanism import Request

FILES = """Categories:

    --categories 'education=Low,Medium,High,Very High' --categories 'town="Rome, NY",Utica'

    --within county:state --categories 'county:IL=Cook,Lake' --categories 'county:WI=Lake'

The rows of a release are in the order of the declared categories, or in the natural order of the labels (5-9 before
10-14) where none are declared, whatever the order of the file, unless --keep-order declares that order public.

Files:

    categories.toml, for --domain (a nested axis is a table, with a line per parent):

        sex = ["f", "m"]

        [county]

        IL = ["Cook", "Lake"]

    totals.toml, for --keep-file:

        [[total]]

        name = "coast"

        cells = [{county = ["A", "B"]}, {county = "C", sex = "f"}]

    matrix.csv, for --keep-file with --keep-order: whole numbers, no header, one line per total, one number per row
"""
PUBLISHED = """
    published.csv, for --totals: columns for axes and the count (an empty axis means all categories); or total and count
"""
TABLE_AND_TOTALS, RECORDS, NOISE = "The table and its kept totals", "Records instead of counts", "The noise"


def option(
    *names: str,
    help: str,  # noqa: A002
    panel: str = TABLE_AND_TOTALS,
    metavar: str | None = None,
    completion: Callable[[typer.Context, str], list[str]] | None = None,
) -> Any:
    """A command-line option, under a heading of the help."""
    return typer.Option(
        *names, help=help, rich_help_panel=panel, metavar=metavar, autocompletion=completion, show_default=False
    )


@dataclass(frozen=True)
class Declaration:
    """A table, the totals to keep and the noise, as declared on the command line."""

    table: Annotated[
        str | None,
        typer.Argument(
            help="CSV, Excel, Parquet or Arrow file of counts, one row per cell; - for standard input. With --by: "
            "records, also in a folder or a database (postgres://user@host/database).",
            metavar="TABLE",
            show_default=False,
        ),
    ] = None
    count: Annotated[
        str | None, option("--count", help="The column of counts.", metavar="COLUMN", completion=completion.column)
    ] = None
    axes: Annotated[
        list[str] | None,
        option(
            "--axes",
            help="Columns that are axes; by default all but the count. Columns of numbers must be declared.",
            metavar="A,B",
            completion=completion.columns,
        ),
    ] = None
    within: Annotated[
        list[str] | None,
        option(
            "--within",
            help="A nested axis and its parent: county:state.",
            metavar="CHILD:PARENT",
            completion=completion.nesting,
        ),
    ] = None
    domain: Annotated[str | None, option("--domain", help="TOML file with the categories of axes.", metavar="FILE")] = (
        None
    )
    categories: Annotated[
        list[str] | None,
        option("--categories", help="The categories of an axis, in order: sex=f,m.", metavar="AXIS=A,B"),
    ] = None
    keep_order: Annotated[bool, option("--keep-order", help="Keep the order of the rows, which makes it public.")] = (
        False
    )
    drop: Annotated[
        list[str] | None, option("--drop", help="Columns to leave out.", metavar="A,B", completion=completion.columns)
    ] = None
    drop_rows: Annotated[
        list[str] | None,
        option("--drop-rows", help="Rows to leave out, such as totals: county=Total.", metavar="COLUMN=LABEL"),
    ] = None
    carry: Annotated[
        list[str] | None,
        option(
            "--carry",
            help="Columns that follow from an axis, published as they are: fips, or fips:county.",
            metavar="A,B",
            completion=completion.columns,
        ),
    ] = None
    wide: Annotated[
        str | None,
        option(
            "--wide",
            help="An axis whose categories are columns: race=white,black; race alone, with --axes, for all others.",
            metavar="AXIS=A,B",
        ),
    ] = None
    sheet: Annotated[str | None, option("--sheet", help="The sheet of an .xlsx file.", metavar="NAME")] = None
    encoding: Annotated[
        str | None,
        option("--encoding", help="The encoding of a CSV file: windows-1252. Releases are UTF-8.", metavar="NAME"),
    ] = None
    structure: Annotated[
        str | None,
        option("--structure", help="SDMX structure file with the code lists of an SDMX-CSV file.", metavar="FILE"),
    ] = None
    flag: Annotated[
        list[str] | None,
        option("--flag", help="An attribute of an SDMX-CSV file in the release: OBS_STATUS=A.", metavar="NAME=VALUE"),
    ] = None
    dense: Annotated[
        bool, option("--dense", help="Every combination of categories is a cell, although most have no row.")
    ] = False
    keep: Annotated[
        list[str] | None,
        option(
            "--keep",
            help="Keep the margin of an axis exactly; A,B for a two-way margin.",
            metavar="AXIS",
            completion=completion.columns,
        ),
    ] = None
    keep_total: Annotated[bool, option("--keep-total", help="Keep the grand total.")] = False
    keep_file: Annotated[
        list[str] | None,
        option("--keep-file", help="Keep totals of subsets (TOML) or weighted totals (CSV).", metavar="FILE"),
    ] = None
    by: Annotated[
        list[str] | None,
        option("--by", help="Count records by these columns.", panel=RECORDS, metavar="A,B"),
    ] = None
    bins: Annotated[
        list[str] | None,
        option(
            "--bins",
            help="Cut a column at these edges: age=0,18,65, (nothing for an open end).",
            panel=RECORDS,
            metavar="COLUMN=A,B",
        ),
    ] = None
    missing: Annotated[
        list[str] | None,
        option(
            "--missing",
            help="The category of missing values: race=unknown.",
            panel=RECORDS,
            metavar="COLUMN=LABEL",
        ),
    ] = None
    unit: Annotated[
        str | None,
        option("--unit", help="The column that identifies a person.", panel=RECORDS, metavar="COLUMN"),
    ] = None
    max_rows_per_unit: Annotated[
        int | None,
        option("--max-rows-per-unit", help="Count at most K records per person.", panel=RECORDS, metavar="K"),
    ] = None
    database_table: Annotated[
        str | None, option("--table", help="The table of a database.", panel=RECORDS, metavar="NAME")
    ] = None
    epsilon: Annotated[
        str | None, option("--epsilon", help="Privacy loss per unit of distance.", panel=NOISE, metavar="E")
    ] = None
    norm: Annotated[
        str | None,
        option("--norm", help="How distance is measured: l1 (default) or l2.", panel=NOISE, metavar="NORM"),
    ] = None
    per_person: Annotated[bool, option("--per-person", help="Make epsilon the per-person loss.", panel=NOISE)] = False
    attributes: Annotated[
        list[str] | None,
        option(
            "--attributes",
            help="With --per-person: changes of these attributes only.",
            panel=NOISE,
            metavar="A,B",
        ),
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
        option(
            "--calibration",
            help="How sigma is computed: zcdp (default), tight, paper.",
            panel=NOISE,
            metavar="NAME",
        ),
    ] = None
    sigma: Annotated[str | None, option("--sigma", help="Sigma, for gaussian.", panel=NOISE, metavar="S")] = None

    def noise(self) -> Request:
        """The mechanism."""
        parameters = {name: getattr(self, name) for name in ("epsilon", "delta", "rho", "sigma")}
        person = self._person()
        if self.mechanism == "laplace":
            for name in ("delta", "rho", "sigma", "calibration"):
                if getattr(self, name) is not None:
                    raise InputError(f"Option --{name} requires --mechanism gaussian. Leave it out for Laplace noise.")
            if self.epsilon is None:
                raise InputError("Option --epsilon must be given for Laplace noise. Pass --epsilon 0.25, for example.")
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
            return ks.Gaussian(**parameters, calibration=calibration)
        if parameters.pop("sigma") is not None:
            raise InputError(
                "Option --sigma must not be combined with --per-person, because it is not a privacy loss. Pass --rho."
            )
        return ks.Gaussian.per_person(**parameters, calibration=calibration, **person)

    def _person(self) -> dict[str, Any] | None:
        """The arguments of ``per_person``; None without it."""
        if self.per_person:
            return {"attributes": _names(self.attributes) or None, "to": self.to or "any value"}
        for name in ("attributes", "to"):
            if getattr(self, name):
                raise InputError(f"Option --{name} requires --per-person. Add it, or leave --{name} out.")
        return None

    def cells(self) -> ks.Table:
        """The cells for a plan: those of the table, or of records, which are not read for it."""
        return empty_table(self.record_options()) if self.by else self.read()

    def record_options(self) -> RecordOptions:
        """What is declared about records."""
        refuse_with_by(self)
        within = self._within()
        return RecordOptions(
            by=_names(self.by),
            within=within,
            categories=self._categories(within or {}),
            bins=parse_bins(self.bins or []),
            missing=parse_missing(self.missing or []),
            unit=self.unit,
            max_rows_per_unit=self.max_rows_per_unit,
            table=self.database_table,
            count=self._count,
        )

    def read(self) -> ks.Table:
        """The table; without a file, an empty table over the declared categories."""
        if self.by:
            return count_records(self.record_options(), self.table)
        refuse_without_by(self)
        within = self._within()
        categories = self._categories(within or {})
        if self.table is not None:
            return self._from_file(self.table, categories, within)
        if categories is None:
            raise InputError("A table must be given, or its categories with --categories or --domain.")
        for name in ("sheet", "encoding", "structure", "flag"):
            if getattr(self, name):
                raise InputError(f"Option --{name} requires a table. Leave it out.")
        if self.keep_order:
            raise InputError(
                "Option --keep-order requires a table. Leave it out: cells are in the order of the categories."
            )
        cells = ks.Domain(categories, within)
        check_room(cells.size, f"A table of {cells.size:,} cells", BYTES_A_CELL)
        import numpy as np

        return ks.Table(cells, np.zeros(cells.size, dtype=np.int64), self._count)

    @property
    def _count(self) -> str:
        """The column of counts, by default one of that name."""
        return "count" if self.count is None else self.count

    def _from_file(self, name: str, categories: dict[str, Any] | None, within: dict[str, str] | None) -> ks.Table:
        """The table in a file; a column named in an option is an axis even if it contains numbers."""
        from keepsum.sources.reading import FileForm, table_in
        from keepsum.tables.declared import Declared

        if name == "-" and sys.stdin is None:
            raise InputError("Standard input must be open to read a table from it, but it is closed.")
        margins = self.keep or []
        declared = Declared.checked(
            self._count,
            _names(self.axes) or None,
            within=within,
            domain=categories,
            drop=_names(self.drop),
            drop_rows=parse_categories(self.drop_rows or [], {}, "--drop-rows"),
            carry=self._carry(),
            wide=self._wide(),
            keep_order=self.keep_order,
            dense=self.dense,
            named=[*margins, *(axis for text in margins for axis in text.split(","))],
        )
        form = FileForm.checked(self.sheet, self.encoding, self.structure, self._flags())
        return table_in(sys.stdin.buffer if name == "-" else name, declared, form)

    def _carry(self) -> list[str] | dict[str, str]:
        """Columns to carry, each with its axis if one of them has one."""
        pairs = [name.partition(":") for name in _names(self.carry)]
        if not any(colon for _, colon, _ in pairs):
            return [name for name, _, _ in pairs]
        for name, _, axis in pairs:
            if not name or not axis:
                raise InputError(f"Option --carry must be COLUMN:AXIS such as fips:county, got {name!r}.")
        return {name: axis for name, _, axis in pairs}

    def _wide(self) -> str | dict[str, Any] | None:
        if self.wide is None or "=" not in self.wide:
            return self.wide
        return parse_categories([self.wide], {}, "--wide")

    def _flags(self) -> dict[str, str]:
        """The attributes of ``--flag``."""
        flags: dict[str, str] = {}
        for text in self.flag or []:
            name, equals, value = text.partition("=")
            if not name or not equals or flags.setdefault(name, value) != value:
                raise InputError(f"Option --flag must give an attribute one value, such as OBS_STATUS=A, got {text!r}.")
        return flags

    def _categories(self, within: dict[str, str]) -> dict[str, Any] | None:
        """The categories of ``--categories`` and ``--domain``."""
        if not self.categories and self.domain is None:
            return None
        from keepsum.sources.declarations import read_domain

        from_options = parse_categories(self.categories or [], within)
        from_file = {} if self.domain is None else read_domain(self.domain)
        for axis in from_options:
            if axis in from_file:
                raise InputError(f"Categories of axis {axis!r} must be declared once, with --categories or --domain.")
        return from_options | from_file

    def kept(self, table: ks.Table) -> ks.Invariants:
        """The totals to keep."""
        from keepsum.sources.declarations import read_keep

        margins = [_margin(text, table.domain.axes) for text in self.keep or []]
        invariants = table.keep(*margins, total=self.keep_total)
        for path in self.keep_file or []:
            invariants = invariants + read_keep(path, table)
        if len(set(invariants.names)) < invariants.height:
            raise InputError("Kept totals must have different names. Rename the totals in the files of --keep-file.")
        if not invariants.height:
            raise InputError("At least one total must be kept. Pass --keep, --keep-total or --keep-file.")
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


def _names(texts: Sequence[str] | None) -> list[str]:
    return [name for text in texts or [] for name in text.split(",")]


def axis_names(texts: Sequence[str] | None, axes: Sequence[str]) -> list[str]:
    """Axes that were given with commas between them, or one by one; the name of an axis may contain a comma."""
    return [name for text in texts or [] for name in _margin(text, axes)]


def _margin(text: str, axes: Sequence[str]) -> list[str]:
    """The axes of a margin, separated by commas; the name of an axis may contain a comma."""
    return [text] if text in axes else text.split(",")


def declares(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the Declaration parameter of a command by options, one per field."""
    command_parameters = dict(inspect.signature(command).parameters)
    hints = get_type_hints(command, include_extras=True)
    replaced = next(name for name in command_parameters if hints[name] is Declaration)
    del command_parameters[replaced]
    shared = get_type_hints(Declaration, include_extras=True)
    defaults = {f.name: inspect.Parameter.empty if f.default is MISSING else f.default for f in fields(Declaration)}
    parameters = [(name, shared[name], defaults[name]) for name in shared]
    parameters += [(name, hints[name], parameter.default) for name, parameter in command_parameters.items()]

    @wraps(command)
    def call(**arguments: Any) -> None:
        declaration = Declaration(**{name: arguments.pop(name) for name in shared})
        command(**{replaced: declaration}, **arguments)

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            for name, hint, default in parameters
        ]
    )
    call.__annotations__ = {name: hint for name, hint, _ in parameters}
    del call.__wrapped__
    return call

"""The options that commands share: they declare the table, the kept totals and the noise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from keepsum.cli import completion
from keepsum.cli.categories import (
    parse_carried,
    parse_categories,
    parse_focus,
    parse_margin,
    parse_name,
    parse_names,
    parse_nesting,
)
from keepsum.cli.columns import parse_flags, parse_wide
from keepsum.cli.records import parse_bins, parse_missing
from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.specs.job import Job
    from keepsum.specs.spec import Marginal, Spec

TABLE_AND_TOTALS, RECORDS, NOISE = "The table and its kept totals", "Records instead of counts", "The noise"
SPEC = "A spec (keepsum.toml)"


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
    quote_formulas: Annotated[
        bool, option("--quote-formulas", help="Put an apostrophe before labels that a spreadsheet would run: =cmd().")
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
    keep_nothing: Annotated[
        bool, option("--keep-nothing", help="Keep no total: every count has noise, and every total has it too.")
    ] = False
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
        str | None,
        option(
            "--epsilon",
            help="The privacy loss of one person, for a change of any one attribute.",
            panel=NOISE,
            metavar="E",
        ),
    ] = None
    norm: Annotated[
        str | None,
        option("--norm", help="How distance is measured: l1 (default) or l2.", panel=NOISE, metavar="NORM"),
    ] = None
    attributes: Annotated[
        list[str] | None,
        option(
            "--attributes",
            help="Changes of these attributes only.",
            panel=NOISE,
            metavar="A,B",
        ),
    ] = None
    to: Annotated[
        str | None,
        option("--to", help="Changes to 'any value' (default) or 'some other value'.", panel=NOISE, metavar="VALUE"),
    ] = None
    mechanism: Annotated[
        str | None, option("--mechanism", help="laplace (default) or gaussian.", panel=NOISE, metavar="NAME")
    ] = None
    delta: Annotated[str | None, option("--delta", help="Delta, for gaussian.", panel=NOISE, metavar="D")] = None
    rho: Annotated[
        str | None,
        option("--rho", help="The zCDP loss of one person, for gaussian.", panel=NOISE, metavar="R"),
    ] = None
    calibration: Annotated[
        str | None,
        option(
            "--calibration",
            help="How sigma is computed: lines (default), zcdp, tight, paper.",
            panel=NOISE,
            metavar="NAME",
        ),
    ] = None
    sigma: Annotated[str | None, option("--sigma", help="Sigma, for gaussian.", panel=NOISE, metavar="S")] = None
    per_unit: Annotated[
        bool,
        option(
            "--per-unit",
            help="Make it the loss per unit of distance, of which one person is several units away.",
            panel=NOISE,
        ),
    ] = False

    focus: Annotated[
        list[str] | None,
        option(
            "--focus",
            help="Less noise in the totals of an axis, by a share of the loss beside that of cells: county=2; A,B=1 "
            "for two axes. With --per-unit, an epsilon of their own, or a rho.",
            panel=NOISE,
            metavar="AXIS=SHARE",
        ),
    ] = None
    focus_file: Annotated[
        list[str] | None,
        option(
            "--focus-file",
            help="Named subsets of cells for --focus (TOML, as for --keep-file): coast=1.",
            panel=NOISE,
            metavar="FILE",
        ),
    ] = None
    cell_share: Annotated[
        str | None,
        option(
            "--cell-share",
            help="The share of cells beside those of --focus, by default 1.",
            panel=NOISE,
            metavar="S",
        ),
    ] = None

    spec: Annotated[
        str | None,
        option("--spec", help="A spec of what to release, overridden by options.", panel=SPEC, metavar="FILE"),
    ] = None
    only: Annotated[str | None, option("--only", help="One of the tables of a spec.", panel=SPEC, metavar="NAME")] = (
        None
    )

    def jobs(
        self, data_needed: bool = False, loss_needed: bool = True, **more: Any
    ) -> tuple[list[Job], list[Marginal]]:
        """What is to be released, as options or a spec declare it, with the sums over it that a spec asks for.

        Parameters
        ----------
        data_needed
            Whether there must be data, and not only categories.
        loss_needed
            Whether there must be an epsilon, rho or sigma; without one, the spec of this folder may be meant.
        more
            Sections of a spec that other options fill.
        """
        import msgspec

        from keepsum.specs.job import job_of, jobs_of, nesting_of
        from keepsum.specs.reading import NAME, read_spec

        path = self._spec_path(NAME)
        if path is not None:
            file, lines = read_spec(path)
            options = msgspec.structs.replace(self.options(nesting_of(file)), **more)
            return jobs_of(file, lines, options, self.only, found=not loss_needed)
        if self.only is not None:
            raise InputError(f"Option --only requires --spec, or a file {NAME} in this folder.")
        options = msgspec.structs.replace(self.options(), **more)
        if self.table is None and (data_needed or not (self.categories or self.domain)):
            raise InputError(
                f"A table must be given, such as counts.csv --count n ..., because there is no {NAME} in this folder."
            )
        noise = options.mechanism
        if loss_needed and Path(NAME).is_file() and (noise.epsilon, noise.rho, noise.sigma) == (None, None, None):
            raise InputError(f"Option --epsilon must be given, or --spec {NAME} to use that spec with this table.")
        return [job_of(options)], []

    def job(self) -> Job:
        """The one release that is declared."""
        jobs, _ = self.jobs()
        if len(jobs) > 1:
            raise InputError(f"Option --only must name one table: {', '.join(str(job.name) for job in jobs)}.")
        return jobs[0]

    def _spec_path(self, name: str) -> Path | None:
        """The spec to use: the given one, or that of this folder if no table is given."""
        if self.spec == "":
            raise InputError("Option --spec must be the name of a file, got an empty name.")
        if self.spec is not None:
            return Path(self.spec)
        return Path(name) if self.table is None and Path(name).is_file() else None

    def options(self, nesting: Mapping[str, str] | None = None) -> Spec:
        """What the options say, in addition to the ``nesting`` of a spec; what they do not say is None."""
        from keepsum.specs.spec import Axes, Keep, Noise, Records, Source, Spec

        within = parse_nesting(self.within)
        kind: Any = self.mechanism
        if kind not in (None, "laplace", "gaussian"):
            raise InputError(f"Option --mechanism must be laplace or gaussian, got {kind!r}.")
        return Spec(
            source=Source(
                data=self.table,
                table=self.database_table,
                count=parse_name(self.count),
                drop=parse_names(self.drop, "Option --drop") or None,
                drop_rows=parse_categories(self.drop_rows or [], {}, "--drop-rows") or None,
                carry=parse_carried(self.carry) or None,
                wide=parse_wide(self.wide),
                keep_order=self.keep_order or None,
                sheet=self.sheet,
                encoding=self.encoding,
                structure=self.structure,
                flags=parse_flags(self.flag or []) or None,
            ),
            records=Records(
                by=parse_names(self.by, "Option --by") or None,
                bins={column: [*edges] for column, edges in parse_bins(self.bins or []).items()} or None,
                missing=parse_missing(self.missing or []) or None,
                unit=parse_name(self.unit),
                max_rows_per_unit=self.max_rows_per_unit,
            ),
            axes=Axes(
                names=parse_names(self.axes, "Option --axes") or None,
                within=within or None,
                domain=self.domain,
                dense=self.dense or None,
                quote_formulas=self.quote_formulas or None,
                categories=parse_categories(self.categories or [], {**(nesting or {}), **within}) or None,
            ),
            keep=Keep(
                margins=[parse_margin(text) for text in self.keep or []] or None,
                total=self.keep_total or None,
                nothing=self.keep_nothing or None,
                files=self.keep_file or None,
            ),
            mechanism=Noise(
                kind=kind,
                epsilon=self.epsilon,
                delta=self.delta,
                rho=self.rho,
                sigma=self.sigma,
                norm=self.norm,
                per_unit=self.per_unit or None,
                attributes=parse_names(self.attributes, "Option --attributes") or None,
                to=self.to,
                calibration=self.calibration,
                focus=parse_focus(self.focus or []) or None,
                cell_share=self.cell_share,
                focus_files=self.focus_file or None,
            ),
        )


def declares(command: Callable[..., None], **changed: Any) -> Callable[..., None]:
    """Replace the Declaration parameter of a command by options, one per field; ``changed`` are shown otherwise."""
    command_parameters = dict(inspect.signature(command).parameters)
    hints = get_type_hints(command, include_extras=True)
    replaced = next(name for name in command_parameters if hints[name] is Declaration)
    del command_parameters[replaced]
    shared = get_type_hints(Declaration, include_extras=True) | changed
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

"""What a release is made of, as data: the form that ``keepsum.toml`` and the options of the shell share.

Each key has its record beside it (``Option``), from which the shell, the spec, Python and the page have what they need
to know of it: a new option is a key here, its use, and its tests. None means that nothing was said: TOML has no null,
and "false" or an empty list says something.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from keepsum.specs.option import (
    AXES,
    BINS,
    CARRIED,
    CATEGORIES,
    DATA,
    FILE,
    FILES,
    FLAGS,
    FOCUS,
    MARGINS,
    MECHANISM,
    MISSING,
    NAME,
    NAMES,
    NESTING,
    NOISE,
    RECORDS,
    RELEASE,
    REPORT,
    ROWS,
    SWITCH,
    TEXT,
    TEXTS,
    TOTALS,
    WHOLE,
    WIDE,
    Option,
)

Label: TypeAlias = str | int
Number: TypeAlias = int | float | str


class SpecPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a spec, in which every key is known."""


# A table of records, set as a table.
# fmt: off
class SourceSpec(SpecPart, frozen=True):
    """Where the table or the records are, and how they are read."""

    data: Annotated[str | list[str] | None, Option(
        ("CSV, Excel, Parquet or Arrow file of counts, one row per cell; - for standard input. With --by: "
        "records, also in a folder or a database (postgres://user@host/database)."), DATA, "TABLE", label="the file",
        flag=None, argument="path",
    )] = None
    table: Annotated[str | None, Option(
        "The table of a database.", metavar="NAME", group=RECORDS, label="a database, in the shell", rows="records",
    )] = None
    count: Annotated[str | None, Option(
        "The column of counts.", NAME, "COLUMN", label="the column of counts", hint="The counts are in", rows="counts",
        completes="column",
    )] = None
    drop: Annotated[list[str] | None, Option(
        "Columns to leave out.", NAMES, "A,B", label="the columns that are left out", hint="left out", rows="counts",
        completes="columns",
    )] = None
    drop_rows: Annotated[dict[str, Label | list[Label]] | None, Option(
        "Rows to leave out, such as totals: county=Total.", ROWS, "COLUMN=LABEL", label="the rows that are left out",
        rows="counts",
    )] = None
    carry: Annotated[list[str] | dict[str, str] | None, Option(
        "Columns that follow from an axis, published as they are: fips, or fips:county.", CARRIED, "A,B",
        label="the columns published along with others", hint="published as it is", rows="counts", completes="columns",
    )] = None
    wide: Annotated[str | dict[str, list[str]] | None, Option(
        "An axis whose categories are columns: race=white,black; race alone, with --axes, for all others.", WIDE,
        "AXIS=A,B", label="several columns of counts, in the shell", rows="counts",
    )] = None
    keep_order: Annotated[bool | None, Option(
        "Keep the order of the rows, which makes it public.", SWITCH, label="the order of the rows", rows="counts",
    )] = None
    sheet: Annotated[str | None, Option(
        "The sheet of an .xlsx file.", metavar="NAME", label="the sheet", rows="counts", of_file=True,
    )] = None
    encoding: Annotated[str | None, Option(
        "The encoding of a CSV file: windows-1252. Releases are UTF-8.", metavar="NAME", label="the encoding",
        rows="counts", of_file=True,
    )] = None
    structure: Annotated[str | None, Option(
        "SDMX structure file with the code lists of an SDMX-CSV file.", FILE, "FILE",
        label="an SDMX structure, in the shell", rows="counts", of_file=True,
    )] = None
    flags: Annotated[dict[str, str] | None, Option(
        "An attribute of an SDMX-CSV file in the release: OBS_STATUS=A.", FLAGS, "NAME=VALUE",
        label="flags of an SDMX file, in the shell", rows="counts", of_file=True, flag="--flag",
    )] = None


class RecordsSpec(SpecPart, frozen=True):
    """How records are counted; see ``ks.tabulate``. An edge "" is an open end."""

    by: Annotated[list[str] | None, Option(
        "Count records by these columns.", NAMES, "A,B", RECORDS, label="the columns that records are counted by",
        hint="counted by", rows="records",
    )] = None
    bins: Annotated[dict[str, list[Number]] | None, Option(
        "Cut a column at these edges: age=0,18,65, (nothing for an open end).", BINS, "COLUMN=A,B", RECORDS,
        label="the edges", hint="Or cut numbers or dates at", rows="records", by_column=True,
    )] = None
    missing: Annotated[dict[str, str] | None, Option(
        "The category of missing values: race=unknown.", MISSING, "COLUMN=LABEL", RECORDS,
        label="the category of missing values", hint="Missing values count as", rows="records", by_column=True,
    )] = None
    unit: Annotated[str | None, Option(
        "The column that identifies a person.", NAME, "COLUMN", RECORDS, label="who a person is",
        hint="who a person is", rows="records",
    )] = None
    max_rows_per_unit: Annotated[int | None, Option(
        "Count at most K records per person.", WHOLE, "K", RECORDS, label="the most records of one person",
        hint="Count at most", rows="records",
    )] = None


class Axes(SpecPart, frozen=True):
    """The axes, their nesting and their categories.

    ``domain`` is a file of categories; those of a nested axis are a list per parent, or a list of [parent, label].
    ``quote_formulas`` puts an apostrophe before labels that a spreadsheet would run.
    """

    names: Annotated[list[str] | None, Option(
        "Columns that are axes; by default all but the count. Columns of numbers must be declared.", NAMES, "A,B", AXES,
        label="the columns that the table is counted by", hint="an axis of the table", rows="counts",
        completes="columns", flag="--axes", argument="axes",
    )] = None
    within: Annotated[dict[str, str] | None, Option(
        "A nested axis and its parent: county:state.", NESTING, "CHILD:PARENT", AXES, label="the columns within others",
        hint="within", by_column=True, completes="nesting",
    )] = None
    domain: Annotated[str | None, Option(
        "TOML file with the categories of axes.", FILE, "FILE", AXES, label="the categories",
    )] = None
    dense: Annotated[bool | None, Option(
        "Every combination of categories is a cell, although most have no row.", SWITCH, group=AXES,
        label="that every combination of categories can occur",
        hint="All combinations of the categories can occur, although few do in this file", rows="counts",
    )] = None
    quote_formulas: Annotated[bool | None, Option(
        "Put an apostrophe before labels that a spreadsheet would run: =cmd().", SWITCH, group=AXES,
        label="quoted formulas, in the shell",
    )] = None
    categories: Annotated[dict[str, list[Label | list[Label]] | dict[str, list[Label]]] | None, Option(
        "The categories of an axis, in order: sex=f,m.", CATEGORIES, "AXIS=A,B", AXES, label="the categories",
        hint="One category in each line", by_column=True, argument="domain",
    )] = None


class Subset(SpecPart, frozen=True):
    """A total over the cells that match one of the mappings from axes to labels."""

    cells: list[dict[str, Label | list[Label]]]
    name: str | None = None
    weight: int = 1


class Keep(SpecPart, frozen=True):
    """The totals to keep: margins of an axis or of several, the grand total, files of totals, and subsets of cells.

    ``nothing`` says that none is kept.
    """

    margins: Annotated[list[str | list[str]] | None, Option(
        "Keep the margin of an axis exactly; A,B for a two-way margin.", MARGINS, "AXIS", TOTALS,
        label="the kept totals", hint="Keep the totals of", completes="columns", flag="--keep", argument="keep",
    )] = None
    total: Annotated[bool | None, Option(
        "Keep the grand total.", SWITCH, group=TOTALS, label="the kept totals", hint="the whole table",
        flag="--keep-total",
    )] = None
    nothing: Annotated[bool | None, Option(
        "Keep no total: every count has noise, and every total has it too.", SWITCH, group=TOTALS,
        label="that no total is kept", hint="no total", flag="--keep-nothing", argument="keep",
    )] = None
    files: Annotated[list[str] | None, Option(
        "Keep totals of subsets (TOML) or weighted totals (CSV).", FILES, "FILE", TOTALS, label="the kept totals",
        flag="--keep-file", argument="keep",
    )] = None
    subset: Annotated[list[Subset] | None, Option(
        "Totals over sets of cells.", TEXTS, label="sets of cells", flag=None, argument="keep",
    )] = None


class FocusSubset(SpecPart, frozen=True):
    """A total to focus on by its name, over the cells that match one of the mappings from axes to labels."""

    name: str
    cells: list[dict[str, Label | list[Label]]]


class NoiseSpec(SpecPart, frozen=True):
    """The mechanism and its parameters; see ``ks.Laplace`` and ``ks.Gaussian``.

    ``epsilon`` and ``rho`` are the loss of one person, with ``per_unit`` that per unit of distance. A key of ``focus``
    is an axis, several with commas between them, or the name of a subset in ``subset`` or in one of ``focus_files``;
    its values are shares of the loss, with ``per_unit`` epsilons or rhos.
    """

    kind: Annotated[Literal["laplace", "gaussian"] | None, Option(
        "laplace (default) or gaussian.", MECHANISM, "NAME", NOISE, label="the noise", hint="Noise", default="laplace",
        flag="--mechanism", argument="mechanism",
    )] = None
    epsilon: Annotated[Number | None, Option(
        "The privacy loss of one person, for a change of any one attribute.", TEXT, "E", NOISE, label="epsilon",
        hint="Epsilon, the privacy loss",
    )] = None
    delta: Annotated[Number | None, Option(
        "Delta, for gaussian.", TEXT, "D", NOISE, label="delta",
        hint="Delta, a small probability that comes on top of the limit", noise="gaussian",
    )] = None
    rho: Annotated[Number | None, Option(
        "The zCDP loss of one person, for gaussian.", TEXT, "R", NOISE, label="rho, in the shell", noise="gaussian",
    )] = None
    sigma: Annotated[Number | None, Option(
        "Sigma, for gaussian.", TEXT, "S", NOISE, label="sigma, in the shell", noise="gaussian",
    )] = None
    norm: Annotated[str | None, Option(
        "How distance is measured: l1 (default) or l2.", TEXT, "NORM", NOISE, label="the noise",
    )] = None
    per_unit: Annotated[bool | None, Option(
        "Make it the loss per unit of distance, of which one person is several units away.", SWITCH, group=NOISE,
        label="whose loss epsilon is", hint="Epsilon is the loss", not_with=("mechanism.sigma",),
    )] = None
    attributes: Annotated[list[str] | None, Option(
        "Changes of these attributes only.", NAMES, "A,B", NOISE, label="the attributes that may change, in the shell",
        not_with=("mechanism.per_unit", "mechanism.sigma"),
    )] = None
    to: Annotated[str | None, Option(
        "Changes to 'any value' (default) or 'some other value'.", TEXT, "VALUE", NOISE,
        label="what attributes may change to, in the shell", not_with=("mechanism.per_unit", "mechanism.sigma"),
    )] = None
    calibration: Annotated[str | None, Option(
        "How sigma is computed: lines (default), zcdp, tight, paper.", TEXT, "NAME", NOISE,
        label="the calibration, in the shell", noise="gaussian",
    )] = None
    focus: Annotated[dict[str, Number] | None, Option(
        ("Less noise in the totals of an axis, by a share of the loss beside that of cells: county=2; A,B=1 "
        "for two axes. With --per-unit, an epsilon of their own, or a rho."), FOCUS, "AXIS=SHARE", NOISE,
        label="the focus", hint="totals of",
    )] = None
    cell_share: Annotated[Number | None, Option(
        "The share of cells beside those of --focus, by default 1.", TEXT, "S", NOISE, label="the weight of cells",
        hint="cells", not_with=("mechanism.per_unit",),
    )] = None
    focus_files: Annotated[list[str] | None, Option(
        "Named subsets of cells for --focus (TOML, as for --keep-file): coast=1.", FILES, "FILE", NOISE,
        label="the focus", flag="--focus-file", argument="focus",
    )] = None
    subset: Annotated[list[FocusSubset] | None, Option(
        "Named subsets of cells for the focus.", TEXTS, label="the focus", flag=None, argument="focus",
    )] = None


class Postprocess(SpecPart, frozen=True):
    """What is made of the release: the nearest table without negative counts, in a norm."""

    nonnegative: Annotated[bool | None, Option(
        "Publish the nearest table without negative counts, with the unbiased one beside it.", SWITCH, group=RELEASE,
        label="that counts are not negative",
        hint="Publish the nearest table without negative counts, with the unbiased one beside it",
    )] = None
    norm: Annotated[Literal["l1", "l2"] | None, Option(
        "In which it is nearest: l1 (default) or l2.", TEXT, "NORM", RELEASE,
        label="the norm of the nearest table, in the shell", flag="--nonnegative-norm",
    )] = None


class Output(SpecPart, frozen=True):
    """Where the release goes, and what is accepted and checked before it is made."""

    path: Annotated[str | None, Option(
        "released.csv, out/ for a folder, or - for standard output.", FILE, "OUTPUT", RELEASE, label="the folder",
        flag="--output", short="-o",
    )] = None
    certificate: Annotated[str | None, Option(
        "With --output -, the file of the certificate (.json).", FILE, "FILE", RELEASE,
        label="the certificate, in the shell",
    )] = None
    sign: Annotated[str | None, Option(
        "Sign the certificate with this key.", FILE, "KEY", RELEASE, label="the signature, in the shell",
        argument="sign_with",
    )] = None
    totals: Annotated[str | None, Option(
        "Check kept totals against these published figures first.", FILE, "FILE", RELEASE,
        label="the published totals, in the shell",
    )] = None
    accept_pinned: Annotated[list[str] | None, Option(
        "Publish this pinned cell without noise; 'all' for all.", TEXTS, "CELL", RELEASE, label="the button",
    )] = None
    accept_delta: Annotated[Number | None, Option(
        "The largest delta that estimated sampling may add for one person.", TEXT, "D", RELEASE, label="the button",
    )] = None
    title: Annotated[str | None, Option(
        "The title of the report.", TEXT, "TEXT", REPORT, label="the title of the report, in the shell",
    )] = None
    publisher: Annotated[str | None, Option(
        "Who publishes the release, for the report.", TEXT, "NAME", REPORT, label="the publisher, in the shell",
    )] = None


class Charged(SpecPart, frozen=True):
    """The ledger that the release is charged to, and the dataset in it."""

    path: Annotated[str | None, Option(
        "Charge the release to this ledger (keepsum ledger init), before its noise is drawn.", FILE, "FILE", RELEASE,
        label="the ledger, when the page is started", flag="--ledger", argument="ledger",
    )] = None
    dataset: Annotated[str | None, Option(
        "The dataset of the ledger.", TEXT, "NAME", RELEASE, label="the dataset, when the page is started",
    )] = None


# fmt: on
class Spec(SpecPart, frozen=True):
    """One release."""

    source: SourceSpec = SourceSpec()
    records: RecordsSpec = RecordsSpec()
    axes: Axes = Axes()
    keep: Keep = Keep()
    mechanism: NoiseSpec = NoiseSpec()
    postprocess: Postprocess = Postprocess()
    output: Output = Output()
    ledger: Charged = Charged()


class TableSpec(Spec, frozen=True, kw_only=True):
    """One of several releases: its keys come before those of the whole spec."""

    name: str


class MarginalSpec(SpecPart, frozen=True):
    """Sums over a release of this spec, at no further privacy loss; ``of`` is its name if there are several."""

    output: str
    axes: list[str] = []
    of: str | None = None


class SpecFile(Spec, frozen=True, kw_only=True):
    """``keepsum.toml``: one release, or several with what they have in common, and tables of sums over them.

    ``version`` says what the keys mean: in a file without one, epsilon was the loss per unit of distance.
    """

    version: Literal[1]
    table: list[TableSpec] = []
    marginal: list[MarginalSpec] = []


SECTIONS = Spec.__struct_fields__
VERSION = 1


def asks(value: Any) -> bool:
    """Whether a key asks for something: "false" and what is empty do not, 0 does."""
    return value is not None and value is not False and value != [] and value != {}

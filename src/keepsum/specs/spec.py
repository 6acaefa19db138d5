"""What a release is made of, as data: the form that ``keepsum.toml`` and the options of the shell share.

None means that nothing was said: TOML has no null, and "false" or an empty list says something.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

Label: TypeAlias = str | int
Number: TypeAlias = int | float | str


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a spec, in which every key is known."""


class Source(Part, frozen=True):
    """Where the table or the records are, and how they are read.

    Attributes
    ----------
    data
        A file of counts; with ``records.by`` also a folder, a pattern, a list of files or the address of a database.
    table
        The table of a database.
    count, drop, drop_rows, carry, wide, keep_order, sheet, encoding, structure, flags
        As in ``ks.read_table``.
    """

    data: str | list[str] | None = None
    table: str | None = None
    count: str | None = None
    drop: list[str] | None = None
    drop_rows: dict[str, Label | list[Label]] | None = None
    carry: list[str] | dict[str, str] | None = None
    wide: str | dict[str, list[str]] | None = None
    keep_order: bool | None = None
    sheet: str | None = None
    encoding: str | None = None
    structure: str | None = None
    flags: dict[str, str] | None = None


class Records(Part, frozen=True):
    """How records are counted; see ``ks.tabulate``. An edge "" is an open end."""

    by: list[str] | None = None
    bins: dict[str, list[Number]] | None = None
    missing: dict[str, str] | None = None
    unit: str | None = None
    max_rows_per_unit: int | None = None


class Axes(Part, frozen=True):
    """The axes, their nesting and their categories.

    ``domain`` is a file of categories; those of a nested axis are a list per parent, or a list of [parent, label].
    ``quote_formulas`` puts an apostrophe before labels that a spreadsheet would run.
    """

    names: list[str] | None = None
    within: dict[str, str] | None = None
    domain: str | None = None
    dense: bool | None = None
    quote_formulas: bool | None = None
    categories: dict[str, list[Label | list[Label]] | dict[str, list[Label]]] | None = None


class Subset(Part, frozen=True):
    """A total over the cells that match one of the mappings from axes to labels."""

    cells: list[dict[str, Label | list[Label]]]
    name: str | None = None
    weight: int = 1


class Keep(Part, frozen=True):
    """The totals to keep: margins of an axis or of several, the grand total, files of totals, and subsets of cells.

    ``nothing`` says that none is kept.
    """

    margins: list[str | list[str]] | None = None
    total: bool | None = None
    nothing: bool | None = None
    files: list[str] | None = None
    subset: list[Subset] | None = None


class FocusSubset(Part, frozen=True):
    """A total to focus on by its name, over the cells that match one of the mappings from axes to labels."""

    name: str
    cells: list[dict[str, Label | list[Label]]]


class Noise(Part, frozen=True):
    """The mechanism and its parameters; see ``ks.Laplace`` and ``ks.Gaussian``.

    ``epsilon`` and ``rho`` are the loss of one person, with ``per_unit`` that per unit of distance. A key of ``focus``
    is an axis, several with commas between them, or the name of a subset in ``subset`` or in one of ``focus_files``;
    its values are shares of the loss, with ``per_unit`` epsilons or rhos.
    """

    kind: Literal["laplace", "gaussian"] | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None
    sigma: Number | None = None
    norm: str | None = None
    per_unit: bool | None = None
    attributes: list[str] | None = None
    to: str | None = None
    calibration: str | None = None
    focus: dict[str, Number] | None = None
    cell_share: Number | None = None
    focus_files: list[str] | None = None
    subset: list[FocusSubset] | None = None


class Postprocess(Part, frozen=True):
    """What is made of the release: the nearest table without negative counts, in a norm."""

    nonnegative: bool | None = None
    norm: Literal["l1", "l2"] | None = None


class Output(Part, frozen=True):
    """Where the release goes, and what is accepted and checked before it is made."""

    path: str | None = None
    certificate: str | None = None
    sign: str | None = None
    totals: str | None = None
    accept_pinned: list[str] | None = None
    accept_delta: Number | None = None


class Charged(Part, frozen=True):
    """The ledger that the release is charged to, and the dataset in it."""

    path: str | None = None
    dataset: str | None = None


class Spec(Part, frozen=True):
    """One release."""

    source: Source = Source()
    records: Records = Records()
    axes: Axes = Axes()
    keep: Keep = Keep()
    mechanism: Noise = Noise()
    postprocess: Postprocess = Postprocess()
    output: Output = Output()
    ledger: Charged = Charged()


class Table(Spec, frozen=True, kw_only=True):
    """One of several releases: its keys come before those of the whole spec."""

    name: str


class Marginal(Part, frozen=True):
    """Sums over a release of this spec, at no further privacy loss; ``of`` is its name if there are several."""

    output: str
    axes: list[str] = []
    of: str | None = None


class SpecFile(Spec, frozen=True, kw_only=True):
    """``keepsum.toml``: one release, or several with what they have in common, and tables of sums over them.

    ``version`` says what the keys mean: in a file without one, epsilon was the loss per unit of distance.
    """

    version: Literal[1]
    table: list[Table] = []
    marginal: list[Marginal] = []


SECTIONS = Spec.__struct_fields__
VERSION = 1
# Files in a spec, which are looked for in its folder; the data may also be an address.
PATHS = {
    "source": ("data", "structure"),
    "axes": ("domain",),
    "keep": ("files",),
    "mechanism": ("focus_files",),
    "output": ("path", "certificate", "sign", "totals"),
    "ledger": ("path",),
}


def asks(value: Any) -> bool:
    """Whether a key asks for something: "false" and what is empty do not, 0 does."""
    return value is not None and value is not False and value != [] and value != {}


def json_schema() -> bytes:
    """The JSON Schema of ``keepsum.toml``, for editors that complete and check it."""
    schema = msgspec.json.schema(SpecFile)
    document: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "keepsum.toml",
        **schema,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"

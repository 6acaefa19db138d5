"""The contents of a certificate: facts only (numbers, names, kinds). ``statements.py`` makes sentences from them.

None of them is confidential. Kept totals have their values, because they are published exactly; the hash is that of the
*released* table, never of the confidential one, which could then be found by trying out small tables.

A field that a later version adds to this schema has a default and is omitted where it has that default, so that older
files stay readable and their signatures valid.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, field

from keepsum.releasing.guarantee_facts import GuaranteeRecord, MechanismRecord
from keepsum.releasing.record_types import END, Hash, Label, Record, WholeNumber

# -- what was released ------------------------------------------------------------------------------

EARLIER: Final = "keepsum.certificate/2"
SCHEMA: Final = "keepsum.certificate/3"


class TableRecord(Record, frozen=True):
    """The released table."""

    cells: int
    count: str
    sha256: Annotated[
        Hash,
        Meta(
            description="SHA-256 of the released table as plain CSV: UTF-8, axes in order, then the count; every cell "
            "in order; commas, line feeds, quotes only where needed."
        ),
    ]
    attributes: Annotated[
        dict[str, str],
        Meta(description="The attributes of an SDMX-CSV file, each with the one value that it has in all rows."),
    ] = field(default_factory=dict)


class AxisRecord(Record, frozen=True):
    """An axis and its categories; ``parents`` are positions in the parent's list."""

    name: str
    labels: list[Label]
    parent: str | None
    parents: list[int] | None


class DomainRecord(Record, frozen=True):
    """The cells: the product of the families of axes, in row-major order, less structural zeros (positions)."""

    axes: list[AxisRecord]
    structural_zeros: list[int]
    taken_from_data: Annotated[list[str], Meta(description="Axes whose list of categories is itself published.")]
    keeps_file_order: Annotated[
        bool,
        Meta(
            description="Whether the curator declared the order of the confidential file's rows public. If not, "
            "categories that were not declared are in the natural order of their labels."
        ),
    ]


class CarriedRecord(Record, frozen=True):
    """A column that follows from an axis, published as it is: its value for each category of the axis."""

    name: str
    axis: str
    values: list[Label]


# -- what is kept -----------------------------------------------------------------------------------


class MarginTotal(Record, frozen=True):
    """A total of a margin, by its label on each axis of the margin."""

    labels: list[Label]
    value: WholeNumber


class NamedTotal(Record, frozen=True):
    """A total that the curator named."""

    name: str
    value: WholeNumber


class MarginRecord(Record, frozen=True, tag="margin", tag_field="kind"):
    """The totals over all combinations of these axes; for no axes, the grand total."""

    axes: list[str]
    totals: list[MarginTotal]


class SubsetsRecord(Record, frozen=True, tag="subsets", tag_field="kind"):
    """Totals of subsets of cells: part number ``part`` of the file of invariants with this hash."""

    part: int
    sha256: Hash
    totals: list[NamedTotal]


class WeightedRecord(Record, frozen=True, tag="weighted", tag_field="kind"):
    """Weighted totals: part number ``part`` of the file of invariants with this hash."""

    part: int
    sha256: Hash
    totals: list[NamedTotal]


PartRecord: TypeAlias = MarginRecord | SubsetsRecord | WeightedRecord


class KeptRecord(Record, frozen=True):
    """The kept totals with their values: published exactly, so not protected."""

    parts: list[PartRecord]


class RowsPart(Record, frozen=True):
    """Some totals, each over some cells, with weights unless all are 1."""

    kind: Literal["subsets", "weighted"]
    names: list[str]
    cells: list[list[int]]
    weights: list[list[int]] | None


class InvariantsFile(Record, frozen=True):
    """The file beside a certificate for totals that are not margins; cells are numbered in the domain's order."""

    schema: Literal["keepsum.invariants/2"]
    size: int
    parts: list[RowsPart]


# -- what is not protected, and the rest ------------------------------------------------------------


class ExposureRecord(Record, frozen=True):
    """Cells that the kept totals disclose, exactly or within bounds."""

    pinned: Annotated[
        list[list[Label]],
        Meta(description="Published without noise, as accepted: each cell by its label on every axis."),
    ]
    bounded: Annotated[int, Meta(description="Cells that kept totals bound more tightly than their margin of error.")]
    not_checked: Annotated[int, Meta(description="Cells in blocks too large to check.")]


class AccuracyRecord(Record, frozen=True):
    """The median margin of error over cells."""

    level: float
    typical_margin: int
    simulated_draws: Annotated[int, Meta(description="The draws behind the margins; 0 if all were computed.")]
    simulated_error: Annotated[
        float,
        Meta(
            description="The standard error of the share of noise beyond a margin, the largest of all cells. Margins "
            "allow for three of them. 0 if all were computed, or by a version that did not state it."
        ),
    ] = 0.0
    conservative: Annotated[
        bool, Meta(description="Whether some margins are proved bounds, too long rather than too short.")
    ] = False
    focused_margins: Annotated[
        list[int], Meta(description="The median margin of error over the totals of each focus.")
    ] = field(default_factory=list)


class NonNegativeRecord(Record, frozen=True, tag="nonnegative", tag_field="kind"):
    """The published table is the nearest one without negative counts that keeps every total of the released one.

    The released table, which everything else in a certificate is about, is published beside it.
    """

    norm: Annotated[Literal["l1", "l2"], Meta(description="In which it is nearest.")]
    unique: Annotated[
        bool,
        Meta(
            description="Whether it follows from the released table. If not, other tables with the same totals are as "
            "near, and only the distance follows."
        ),
    ]
    sha256: Annotated[Hash, Meta(description="SHA-256 of the published table, in the form of table.sha256.")]
    cells_changed: Annotated[int, Meta(ge=0)]
    l1_distance: Annotated[WholeNumber, Meta(description="The sum of all changes, without their signs.")]
    largest_change: Annotated[WholeNumber, Meta(description="Of one cell, without its sign.")]


class SignatureRecord(Record, frozen=True):
    """An Ed25519 signature of the certificate less ``signature``, in its canonical form (RFC 8785)."""

    algorithm: Literal["Ed25519"]
    public_key: Annotated[str, Meta(pattern=f"^[0-9a-f]{{64}}{END}")]
    value: Annotated[str, Meta(pattern=f"^[0-9a-f]{{128}}{END}")]


class RecordsRecord(Record, frozen=True):
    """The records that were counted into the table; a table that was given as counts has none."""

    unit: Annotated[str | None, Meta(description="The column that identifies a person; null: none does.")]
    max_rows_per_unit: Annotated[
        Annotated[int, Meta(ge=1, le=10**6)] | None,
        Meta(
            description="How many records of one person were counted at most; 1 without a unit: each is declared to be "
            "of another person; null: losses are per record. Distances are multiplied by it."
        ),
    ]


class LedgerRecord(Record, frozen=True):
    """Where the release is charged: before its noise was drawn, the ledger ended with this entry."""

    dataset: Annotated[str, Meta(min_length=1, max_length=200)]
    entry: Annotated[int, Meta(ge=1)]
    head: Annotated[Hash, Meta(description="The hash of that entry, which covers all entries before it.")]


class ReleaseFacts(Record, frozen=True):
    """All facts of a release."""

    schema: Annotated[
        Literal["keepsum.certificate/2", "keepsum.certificate/3"],
        Meta(
            description="The later one states distances of one person in real tables, the earlier one on the lattice."
        ),
    ]
    released: Annotated[str, Meta(pattern=f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}Z{END}")]
    table: TableRecord
    domain: DomainRecord
    kept: KeptRecord
    mechanism: MechanismRecord
    guarantee: GuaranteeRecord
    exposure: ExposureRecord
    accuracy: AccuracyRecord
    randomness: Annotated[
        Literal["system", "seed"], Meta(description="From the operating system, or from a seed (not for publication).")
    ]
    postprocessing: Annotated[
        list[NonNegativeRecord],
        Meta(description="What was made of the released table before it was published; all else is about the former."),
    ]
    ledger: Annotated[LedgerRecord | None, Meta(description="Where it is charged; null: its loss is not tracked.")]
    software: dict[str, str]
    signature: SignatureRecord | None
    carried: Annotated[list[CarriedRecord], Meta(description="Columns that follow from an axis.")] = field(
        default_factory=list
    )
    records: RecordsRecord | None = None

"""The contents of a certificate: facts only (numbers, names, kinds), from which ``wording.py`` makes sentences."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field

from keepsum.privacy.distance import Rule
from keepsum.privacy.own import LONGEST_LAW, NAME

# What the records of a certificate are made of: their base, and types with the patterns of their texts.

# In Python, $ also matches before a final line feed; in JSON Schema it does not.
END = r"(?!\n)$"
Hash: TypeAlias = Annotated[str, Meta(pattern=f"^[0-9a-f]{{64}}{END}")]
Parameter: TypeAlias = Annotated[
    str,
    Meta(
        pattern=f"^((0|[1-9][0-9]*)(/[1-9][0-9]*)?|[a-z]+){END}",
        max_length=2100,
        description="An exact quotient, or a name in letters.",
    ),
]
RoundedUp: TypeAlias = Annotated[
    str,
    Meta(
        pattern=f"^(0|[1-9][0-9]*)(\\.[0-9]+)?(e-?[1-9][0-9]{{0,2}})?{END}",
        description="A decimal number, rounded up where it is not exact.",
    ),
]
WholeNumber: TypeAlias = (
    int
    | Annotated[str, Meta(pattern=f"^-?[1-9][0-9]{{15,18}}{END}", description="An integer beyond 2^53 - 1, as text.")]
)
Label: TypeAlias = str | int
Exactness: TypeAlias = Literal["exact", "rounded", "estimated", "claimed"]


class Record(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A part of a certificate: no unknown field, and no field without a default is missing."""


# The guarantee in a certificate: the noise, what it means for one person, and how each block was drawn.


class FocusedSubsets(Record, frozen=True):
    """Named sets of cells, which are numbered in the domain's order, of a table of so many cells."""

    size: Annotated[int, Meta(ge=1)]
    names: list[str]
    cells: list[list[Annotated[int, Meta(ge=0)]]]


class FocusRecord(Record, frozen=True):
    """Totals with an epsilon of their own, or a rho in Gaussian noise, which makes their noise smaller."""

    axes: Annotated[list[str], Meta(description="The axes of the margin; none for the grand total.")]
    epsilon: Parameter | None = None
    rho: Parameter | None = None
    subsets: Annotated[
        FocusedSubsets | None, Meta(description="Of subsets instead of a margin: their names and their cells.")
    ] = None


class CalibratedRecord(Record, frozen=True):
    """The epsilon and delta of one person that Gaussian noise was calibrated to, and the farthest change of them."""

    epsilon: Parameter
    delta: Parameter
    length: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The square of the l2 distance; null with a focus.")
    ]
    rho: Annotated[
        Parameter | None, Meta(description="With a focus, the zCDP loss of the dearest change; null without one.")
    ]
    exact: Annotated[bool, Meta(description="Whether some tables are so far apart; if not, an upper bound.")]
    rule: Annotated[
        Literal["lines"],
        Meta(description="How the width follows: delta is at most that of the worst line of any lattice."),
    ]
    version: Annotated[Literal[1], Meta(description="Of the rule. Version 1 includes the conversion of zCDP.")]


class ClaimRecord(Record, frozen=True):
    """Noise of the publisher's own: that it is as stated, and its loss no larger, is a claim, which nobody checks."""

    loss: Annotated[
        Literal["laplace", "gaussian"],
        Meta(description="The mechanism whose loss is claimed, at every distance, with these parameters."),
    ]
    name: Annotated[str, Meta(pattern=f"^{NAME}{END}")]
    version: Annotated[str, Meta(pattern=f"^{NAME}{END}")]
    law: Annotated[
        Annotated[str, Meta(min_length=1, max_length=LONGEST_LAW)] | None,
        Meta(
            description="The distribution of the noise, in the publisher's words; null if only the sampler is the "
            "publisher's own, and that of the mechanism whose loss is claimed is its target."
        ),
    ]
    parameters: Annotated[dict[str, str], Meta(description="What else the publisher says of it.")]
    source: Annotated[
        Hash | None, Meta(description="SHA-256 of the file with the function that drew it; null if it was in none.")
    ]


class MechanismRecord(Record, frozen=True):
    """The noise, with its parameters per unit of distance, or those of one person."""

    name: Annotated[str, Meta(pattern=f"^[a-z]{{1,40}}{END}", description="laplace, gaussian or own.")]
    norm: Literal["l1", "l2"]
    parameters: Annotated[
        dict[str, Parameter],
        Meta(
            description="Exact quotients: epsilon of Laplace noise; sigma of Gaussian noise with epsilon, delta and "
            "calibration (and its version), or with the rho that it was calibrated to, or alone. Of own noise, "
            "those of the loss that is claimed."
        ),
    ]
    focus: Annotated[
        list[FocusRecord],
        Meta(
            description="Noise z has probability proportional to exp(-epsilon |z|), times exp(-epsilon_g |z(g)|) for "
            "each of these totals g, z(g) the sum of z over its cells; Gaussian noise to exp(-|z|^2 / 2 sigma^2), "
            "times exp(-rho_g z(g)^2)."
        ),
    ] = field(default_factory=list)
    calibrated: Annotated[
        CalibratedRecord | None, Meta(description="Gaussian noise for an epsilon and a delta of one person.")
    ] = None
    claim: Annotated[
        ClaimRecord | None,
        Meta(description="Noise of the publisher's own: all losses in this certificate are claimed."),
    ] = None


class DistanceRecord(Record, frozen=True):
    """A distance between tables with the same kept totals."""

    length: Annotated[int, Meta(ge=1, description="The l1 distance, or the square of the l2 distance.")]
    exact: Annotated[bool, Meta(description="Whether some tables need as much; if not, an upper bound.")]
    focused: Annotated[
        list[Annotated[int, Meta(ge=0)]],
        Meta(description="Of the same change, the distance in the totals of each focus, alike; empty without one."),
    ] = field(default_factory=list)
    rule: Annotated[
        Rule | None,
        Meta(
            description="Why one person in real tables needs no more. This person moves, or exchanges the attribute "
            "with another (others keep all else: the strong reading). Or others may differ in any way (the weak "
            "reading): people exchange attributes along a junction tree; each of two sums changes; or the longest "
            "change of a table under all its margins of one way less, along cycles of a two-way table with structural "
            "zeros, under unimodular totals, or of the Graver basis. Null in keepsum.certificate/2, where distances "
            "are of vectors that keep the totals, whether or not they lead to negative counts."
        ),
    ] = None


class AttributeRecord(Record, frozen=True):
    """The distances of a change of one attribute."""

    axis: str
    any_value: Annotated[DistanceRecord | None, Meta(description="To any other value; null if no change is protected.")]
    other_value: Annotated[
        DistanceRecord | None,
        Meta(description="To some other value, given by the categories, where the kept totals allow that one."),
    ]
    fixed_values: Annotated[int, Meta(description="Values whose cells the kept totals fix: not protected.")]
    unprotected_cells: Annotated[int, Meta(description="Cells that cannot change to every value that is not fixed.")]
    stuck_cells: Annotated[int, Meta(description="Cells that cannot change to any other value.")]
    unknown_cells: Annotated[int, Meta(description="Cells with a value at a distance that is not known.")]


class AskedRecord(Record, frozen=True):
    """The changes of one person that the requested loss covers; null for every attribute."""

    attributes: list[str] | None
    to: Literal["any value", "some other value"]


class PersonRecord(Record, frozen=True):
    """One person: the distance of a change of any attribute to any value, and the mechanism's loss at it."""

    distance: Annotated[
        DistanceRecord | None,
        Meta(description="Null, and no loss, if it is not known for these totals, or no attribute can change."),
    ]
    epsilon: RoundedUp | None
    delta: RoundedUp | None
    rho: RoundedUp | None
    attributes: list[AttributeRecord]
    asked: AskedRecord | None
    within: Annotated[
        list[DistanceRecord | None],
        Meta(
            description="For each focus, the largest change of one person between two cells of one of its totals; null "
            "if it is not known, or there is none."
        ),
    ] = field(default_factory=list)

    @property
    def stated(self) -> DistanceRecord | None:
        """The distance of one person; an earlier certificate has another, of nobody, where no attribute can change."""
        return self.distance if any(attribute.any_value is not None for attribute in self.attributes) else None


class SamplingRecord(Record, frozen=True):
    """The total variation between the noise and its target over all blocks, and what it adds to delta."""

    exactness: Annotated[
        Exactness, Meta(description="That of the least exact block; claimed where the noise is the publisher's own.")
    ]
    total_variation: Annotated[float, Meta(description="The sum over all blocks, at most 1; of no meaning if claimed.")]
    extrapolated: Annotated[
        float | None,
        Meta(description="The total variation if the tail of the meeting times stays geometric: an extrapolation."),
    ]
    confidence: Annotated[float | None, Meta(description="At which all limits from coupled chains hold jointly.")]
    delta: Annotated[
        RoundedUp,
        Meta(
            description="Added per unit of distance: (1 + e^epsilon) times the total variation, at most 1; the total "
            "variation itself where the mechanism has no epsilon."
        ),
    ]


class FormRecord(Record, frozen=True):
    """The form of a block."""

    kind: Literal["free", "sums", "nested", "crossed", "focused", "table", "regions"]
    regions: Annotated[int, Meta(description="Sets of cells that are in the same totals.")]
    totals: int
    smallest: Annotated[int, Meta(description="The cells of the smallest region.")]
    largest: Annotated[int, Meta(description="The cells of the largest region.")]
    shape: Annotated[list[int], Meta(description="The lengths of the axes of a table; empty for other forms.")]


class SamplerRecord(Record, frozen=True):
    """The method that draws a block, and what a pilot measured."""

    method: Annotated[str, Meta(pattern=f"^[a-z][a-z0-9_]*{END}")]
    acceptance: Annotated[float | None, Meta(description="The acceptance rate in a pilot.")]
    steps: Annotated[int | None, Meta(description="How long a chain runs per draw.")]
    proposals_per_step: float | None
    moves: Annotated[int | None, Meta(description="The number of short vectors that a chain moves along.")]


class ConvergenceRecord(Record, frozen=True):
    """The meeting times of coupled chains, and the limits that they give for one block."""

    steps: int
    lag: Annotated[int, Meta(description="How many steps one chain of a pair is ahead.")]
    give_up: Annotated[int, Meta(description="The step at which a pair is given up.")]
    pairs: int
    unmet: Annotated[int, Meta(description="Pairs that were given up.")]
    meetings: Annotated[
        list[tuple[int, int]], Meta(description="Steps from the lag to the meeting, and the number of pairs.")
    ]
    confidence: float
    predicted: Annotated[float, Meta(description="The total variation that the weights of many proposals predict.")]
    rounding: Annotated[float, Meta(description="The total variation that floating-point arithmetic adds per block.")]
    upper: Annotated[
        float,
        Meta(
            description="The confidence limit on the total variation of one block. It assumes that pairs which have "
            "not met do not become slower to meet, is never below what is predicted, and includes rounding."
        ),
    ]
    extrapolated: Annotated[
        float, Meta(description="The total variation if the tail stays geometric, rounding included: an extrapolation.")
    ]


class BlockRecord(Record, frozen=True):
    """Blocks of one form, and how they were drawn."""

    form: FormRecord
    blocks: int
    cells: Annotated[int, Meta(description="Of all of them together.")]
    sampler: SamplerRecord
    exactness: Exactness
    total_variation: Annotated[float, Meta(description="An upper bound, between a draw of all of them and its target.")]
    convergence: ConvergenceRecord | None


class GuaranteeRecord(Record, frozen=True):
    """The guarantee between any two tables with the same kept totals: that of the weakest block."""

    person: PersonRecord
    sampling: SamplingRecord
    blocks: list[BlockRecord]


# None of them is confidential. Kept totals have their values, because they are published exactly; the hash is that of
# the *released* table, never of the confidential one, which could then be found by trying out small tables.
#
# A field that a later version adds to this schema has a default and is omitted where it has that default, so that
# older files stay readable and their signatures valid.

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

"""The guarantee in a certificate: the noise, what it means for one person, and how each block was drawn."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from keepsum.privacy.distance import Rule
from keepsum.releasing.record_types import END, Exactness, Parameter, Record, RoundedUp


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


class MechanismRecord(Record, frozen=True):
    """The noise, with its parameters per unit of distance, or those of one person."""

    name: Annotated[str, Meta(pattern=f"^[a-z]{{1,40}}{END}", description="laplace or gaussian.")]
    norm: Literal["l1", "l2"]
    parameters: Annotated[
        dict[str, Parameter],
        Meta(
            description="Exact quotients: epsilon of Laplace noise; sigma of Gaussian noise with epsilon, delta and "
            "calibration (and its version), or with the rho that it was calibrated to, or alone."
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

    exactness: Annotated[Exactness, Meta(description="That of the least exact block.")]
    total_variation: Annotated[float, Meta(description="The sum over all blocks, at most 1.")]
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

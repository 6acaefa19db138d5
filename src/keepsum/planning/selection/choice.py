"""How a group of blocks is sampled, as facts: the method, its exactness, and why no better one applies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from keepsum._arrays import IntArray
from keepsum.sampling.core.rng import Rng

if TYPE_CHECKING:
    from keepsum.sampling.general.chains import Chain

# Cells that may be drawn per accepted draw of a block before another sampler is tried: a few tenths of a second.
BUDGET = 2 * 10**7

Exactness: TypeAlias = Literal["exact", "rounded", "estimated"]
Method: TypeAlias = Literal[
    "independent_cells",  # cells under no total
    "part_by_part",  # l1 Laplace: cells given their sum
    "nested_totals",  # l1 Laplace: nested totals, focused or kept, each given the one around it
    "column_splitting",  # l1 Laplace: rejection, the columns of a table split along a tree
    "axis_elimination",  # l1 Laplace: rejection, the same for one family of totals after another
    "layer_splitting",  # l1 Laplace: rejection, the layers of a three-way table split along a tree
    "solved_regions",  # l1 Laplace: rejection, the widest regions solved for
    "conditional_cells",  # Gaussian and l2 Laplace: each cell given the ones before
    "mixture_rejection",  # l1 Laplace: rejection from a mixture of Gaussians
    "mixture_chain",  # l1 Laplace: a chain of mixture proposals
    "heat_bath_chain",  # sweeps of heat-bath moves along short vectors
    "gaussian_chain",  # Gaussian: a chain of lattice Gaussians
]
ReasonKind: TypeAlias = Literal[
    "epsilon_out_of_range",  # lowest, highest
    "sigma_out_of_range",  # lowest, highest
    "too_many_equations",  # limit: coefficients of the equations that an exact sampler solves
    "too_many_totals",  # limit: overlapping totals, where there is a fixed one
    "too_many_dimensions",  # limit: of a block with focused totals
    "table_too_large",  # for an exact sampler at this epsilon
    "totals_cross",  # focused ones, but not as rows and columns
    "sums_too_wide",  # focused totals, for the tables of an exact sampler
    "large_coefficients",  # of the equations that an exact sampler solves
    "rarely_accepted",  # limit: cells per accepted draw; acceptance, where it was measured
    "block_too_large",  # for a chain
    "regions_too_large",  # for a chain at this epsilon
    "chain_too_slow",
    "no_room",  # in 64 bits
    "another_block",  # that is drawn together with this one has no sampler
]


@dataclass(frozen=True)
class Reason:
    """Why a sampler does not apply.

    Attributes
    ----------
    kind
        The obstacle.
    lowest, highest
        The range of the parameter that the samplers support, as exact numbers: ``"1/10000"``.
    limit
        The largest number allowed.
    acceptance
        The acceptance rate, or an upper bound on it.
    """

    kind: ReasonKind
    lowest: str | None = None
    highest: str | None = None
    limit: int | None = None
    acceptance: float | None = None


class Sampler(Protocol):
    """What fills rows of cells with noise."""

    width: int

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw."""


class Rejection(Sampler, Protocol):
    """A sampler that proposes until it accepts."""

    @property
    def cells_per_try(self) -> int:
        """What a proposal costs."""

    def pilot(self, rng: Rng, most: int) -> tuple[int, int]:
        """The numbers of accepted draws and of proposals, from at most ``most`` proposals."""


@dataclass(frozen=True)
class Choice:
    """How a group of blocks is sampled.

    Attributes
    ----------
    method
        The method; None if there is no sampler.
    sampler
        The sampler, or None.
    cells
        The cell of the plan that each cell of the sampler is.
    cost
        About how many cells are drawn per draw of all of them, rejected proposals included.
    first
        Where these cells start among those of the sampler, which may draw other groups too.
    exactness
        ``"exact"``, ``"rounded"`` (float64, within total variation ``rounding`` of the target) or ``"estimated"``
        (a chain, whose total variation from its target is measured).
    rounding
        An upper bound on the total variation between a draw of the group and its target, where it is rounded.
    chain
        The chain, where it is estimated.
    acceptance
        The acceptance rate in a pilot; None where every draw is accepted, or it was not measured.
    steps
        How long a chain runs per draw: steps, or sweeps of heat-bath moves.
    proposals_per_step
        About how many proposals are drawn per step of a chain of proposals.
    moves
        The number of short vectors that heat-bath moves follow.
    reasons
        Why no exact sampler applies, and then why no other one does.
    """

    method: Method | None
    sampler: Sampler | None
    cells: IntArray
    cost: int = 0
    first: int = 0
    exactness: Exactness = "exact"
    rounding: float = 0.0
    chain: Chain | None = None
    acceptance: float | None = None
    steps: int | None = None
    proposals_per_step: float | None = None
    moves: int | None = None
    reasons: tuple[Reason, ...] = ()

    @classmethod
    def none(cls, cells: IntArray, *reasons: Reason) -> Choice:
        """No sampler, with the reasons."""
        return cls(None, None, cells, reasons=reasons)

    @property
    def simulation_cost(self) -> int:
        """About how many cells are drawn per row of ``simulate_into``."""
        return self.cost if self.chain is None else self.chain.simulation_cost


def simulate_into(sampler: Sampler, out: IntArray, rng: Rng) -> None:
    """Fill ``out`` with rows for estimates, not for release: independent draws, or successive states of one chain."""
    getattr(sampler, "simulate_into", sampler.draw_into)(out, rng)

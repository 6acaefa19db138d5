"""How a group of blocks is sampled, as facts: the method, its exactness, its time, and why no better one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.grids import Grid
from keepsum.lattice.structure import FORCED, FREE, Block, Structure
from keepsum.privacy.mechanism import Kind
from keepsum.sampling.core.rng import Rng

if TYPE_CHECKING:
    from keepsum.sampling.general.chains import Chain


# The cells of each part of a table, in the order in which its samplers draw them.
#
# Where cells are taken together in groups, these are the groups; in blocks each as often as it has cells.


def free_cells(structure: Structure) -> IntArray:
    """The cells under no total."""
    return np.flatnonzero((structure.part == FREE)[structure.region])


def sums_cells(structure: Structure) -> tuple[IntArray, IntArray]:
    """The cells of regions whose sum the totals force to be 0, region by region, and the sizes of these regions."""
    regions = np.flatnonzero((structure.part == FORCED) & (structure.sizes > 1))
    chosen = np.zeros(len(structure.sizes), dtype=bool)
    chosen[regions] = True
    order, _ = structure.cells_by_region
    return order[chosen[structure.region[order]]], structure.sizes[regions]


def block_cells(structure: Structure, blocks: Sequence[Block]) -> tuple[list[IntArray], IntArray]:
    """The cells of each block, region by region, and the sizes of the regions of a block; all have one form."""
    cells = [
        structure.repeated(np.concatenate([structure.cells(r) for r in block.regions.tolist()])) for block in blocks
    ]
    return cells, structure.sizes[blocks[0].regions]


# How a group of blocks is sampled, as facts: the method, its exactness, and why no better one applies.


# Cells that may be drawn per accepted draw of a block before another sampler is tried: a few tenths of a second.
BUDGET = 2 * 10**7

Exactness: TypeAlias = Literal["exact", "rounded", "estimated", "claimed"]
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
    "own_sampler",  # noise of a user's own
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
    "sampler_not_given",  # that of noise of a user's own, of which a certificate alone is known
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


# The parameters that samplers of ours support: epsilons per unit of distance, and sigma; other noise needs no limit.
LOWEST_EPSILON, HIGHEST_EPSILON = Fraction(1, 10**4), Fraction(50)
NARROWEST, WIDEST = Fraction(1, 50), Fraction(10**8)


def out_of_range(kind: Kind, *parameters: Fraction) -> Reason | None:
    """Why no sampler supports these parameters of that kind of noise; None if they are in range.

    >>> out_of_range("gaussian", Fraction(1)), out_of_range("gaussian", Fraction(1, 100)).lowest
    (None, '1/50')
    """
    if kind == "laplace-l1" and not all(LOWEST_EPSILON <= epsilon <= HIGHEST_EPSILON for epsilon in parameters):
        return Reason("epsilon_out_of_range", lowest=str(LOWEST_EPSILON), highest=str(HIGHEST_EPSILON))
    if kind == "gaussian" and not all(NARROWEST <= sigma <= WIDEST for sigma in parameters):
        return Reason("sigma_out_of_range", lowest=str(NARROWEST), highest=str(WIDEST))
    return None


class Sampler(Protocol):
    """What fills rows of cells with noise."""

    width: int

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw."""


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
        (a chain, whose total variation from its target is measured); ``"claimed"`` if it is the user's own.
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


# Axes of two categories: the noise of a table only changes sign along them, so the table is drawn folded.


class Folded:
    """A table with axes of two categories, along which the noise only changes sign.

    Halves of a table that differ only in sign count twice in the l1 norm, so each such axis doubles the epsilon with
    which the rest of the table is drawn.
    """

    def __init__(self, core: Sampler, tables: int, signs: IntArray) -> None:
        self._core, self._tables, self._signs = core, tables, signs
        self.width = core.width * len(signs)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw."""
        core = np.empty((len(out), self._core.width), dtype=np.int64)
        self._core.draw_into(core, rng, threads)
        self._unfold(core, out)

    def simulate_into(self, out: IntArray, rng: Rng) -> None:
        """Fill ``out`` with rows for estimates, where the core is a chain."""
        core = np.empty((len(out), self._core.width), dtype=np.int64)
        simulate_into(self._core, core, rng)
        self._unfold(core, out)

    def _unfold(self, core: IntArray, out: IntArray) -> None:
        shaped = core.reshape(len(out), self._tables, 1, -1) * self._signs[:, None]
        out[:] = shaped.reshape(len(out), self.width)


def core_shape(grid: Grid) -> tuple[int, ...]:
    """The lengths of the axes of more than two categories, the longest first.

    >>> core_shape(Grid(np.arange(24).reshape(3, 2, 4)))
    (4, 3)
    """
    return tuple(sorted((n for n in grid.shape if n > 2), reverse=True))


def folded_order(grid: Grid) -> IntArray:
    """The columns of a grid with its axes of two categories first, then the longer of the others."""
    axes = sorted(range(len(grid.shape)), key=lambda axis: (grid.shape[axis] > 2, -grid.shape[axis], axis))
    return np.transpose(grid.column, axes).reshape(-1)


def fold_signs(pairs: int) -> IntArray:
    """The signs of the halves of a table with that many axes of two categories.

    >>> fold_signs(2).tolist()
    [1, -1, -1, 1]
    """
    return np.array([(-1) ** bin(k).count("1") for k in range(2**pairs)], dtype=np.int64)


# About how long a draw takes: from what its samplers state that it costs, so that nothing is drawn to find out.
#
# What a plan says was measured on one core of an aarch64 server (Neoverse-N1, as in docs/speed.md), split columns on
# one of x86-64 (Xeon at 2.50 GHz); another machine may be twice as fast or half as fast. It does not depend on the
# machine that says it, so that a plan reads the same everywhere. `make bench` compares it with what draws take
# (``benchmarks/cases/stated.py``).
#
# How many draws margins of error are simulated from follows from other figures, which are never measured again: a
# certificate states that number, and it must not change because a sampler has become faster.


# Measured for each method over tables of many shapes: the middle of figures that differ by at most about 2 either way.
NANOSECONDS_PER_CELL: dict[Method, float] = {
    "independent_cells": 7,
    "part_by_part": 12,
    "nested_totals": 50,
    "column_splitting": 4,
    "axis_elimination": 4,
    "layer_splitting": 18,
    "solved_regions": 20,
    "conditional_cells": 85,
    "mixture_rejection": 40,
    "mixture_chain": 22,
    "heat_bath_chain": 26,
    "gaussian_chain": 50,
}
# Splitting columns also computes, for each row of each bundle, what decides whether the bundle is accepted.
NANOSECONDS_PER_ENTRY = 300
# What margins of error are simulated by: the measurements of an earlier version, kept as they were.
SIMULATION_NANOSECONDS: dict[Method, float] = {
    "independent_cells": 20,
    "part_by_part": 25,
    "nested_totals": 50,
    "column_splitting": 20,
    "axis_elimination": 20,
    "layer_splitting": 12,
    "solved_regions": 20,
    "conditional_cells": 110,
    "mixture_rejection": 50,
    "mixture_chain": 30,
    "heat_bath_chain": 35,
    "gaussian_chain": 50,
}
UNITS = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (60.0, "min"), (3600.0, "h"))


def seconds_per_draw(choices: Sequence[Choice]) -> float | None:
    """About how many seconds a draw of all blocks takes on one core; None if one has no sampler of ours."""
    nanoseconds: dict[int, float] = {}  # by sampler: groups that are drawn together share one, and its cost
    for choice in choices:
        if choice.method is None:
            return None
        if choice.method == "own_sampler":
            return None
        nanoseconds[id(choice.sampler)] = _nanoseconds(choice.method, choice)
    return sum(nanoseconds.values()) / 1e9


def _nanoseconds(method: Method, choice: Choice) -> float:
    """About how many nanoseconds a draw takes; of proposals that are rejected about the first half is computed."""
    drawing = NANOSECONDS_PER_CELL[method] * max(1, choice.cost)
    if method not in ("column_splitting", "axis_elimination"):
        return drawing
    return drawing + NANOSECONDS_PER_ENTRY * len(choice.cells) / math.sqrt(choice.acceptance or 1)


def simulation_nanoseconds(choice: Choice) -> float:
    """The nanoseconds that a row of ``simulate_into`` counts for, where the number of rows is decided."""
    if choice.method is None:
        raise AssertionError("there is a sampler")
    return SIMULATION_NANOSECONDS[choice.method] * max(1, choice.simulation_cost)


def describe_duration(seconds: float) -> str:
    """A duration with one digit.

    >>> describe_duration(0.0031), describe_duration(46), describe_duration(4000)
    ('about 3 ms', 'about 50 s', 'about 1 h')
    >>> describe_duration(2e-7)
    'less than 1 µs'
    """
    if seconds < UNITS[0][0]:
        return f"less than 1 {UNITS[0][1]}"
    size, unit = next((size, unit) for size, unit in reversed(UNITS) if float(f"{seconds / size:.0e}") >= 1)
    return f"about {float(f'{seconds / size:.0e}'):,.0f} {unit}"

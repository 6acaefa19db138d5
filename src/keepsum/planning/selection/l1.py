"""A sampler for each group of blocks: the cheapest exact one that fits, else the general one, else the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from keepsum.lattice.structure import FORCED, FREE, Block, Structure, System
from keepsum.lattice.tables import Grid
from keepsum.privacy.mechanisms import Laplace, Mechanism
from keepsum.sampling.core.rng import Rng, rng
from keepsum.tables.axes import IntArray

if TYPE_CHECKING:
    from keepsum.sampling.general.chains import Chain

# Cells that may be drawn for one accepted draw of a block before it is left to another sampler: a few tenths of a
# second. A pilot spends a part of it, and all of it only if nothing was accepted by then.
BUDGET = 2 * 10**7
PILOT = 10**6
SMALLEST, LARGEST = Fraction(1, 10**4), Fraction(50)  # epsilons that the l1 samplers are made for
# Memory: entries of all convolutions of a table (8 MB), and of the dense matrix that is solved.
CONVOLUTIONS, EQUATIONS = 10**6, 5 * 10**5


class Sampler(Protocol):
    """Whatever fills rows of cells with noise."""

    width: int

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row a draw."""


class Rejection(Sampler, Protocol):
    """A sampler that tries until it accepts."""

    @property
    def cells_per_try(self) -> int:
        """What a try costs."""

    def pilot(self, rng: Rng, most: int) -> tuple[int, int]:
        """Accepted draws and tries, of at most so many tries."""


@dataclass(frozen=True)
class Choice:
    """How a group of blocks is sampled.

    Attributes
    ----------
    words
        What ``explain`` says.
    sampler
        The sampler, or None.
    cells
        The cell of the plan that each cell of the sampler stands for.
    cost
        About how many cells are drawn for one draw of all of them, tries included.
    first
        Where these cells start among those of the sampler, which may draw other groups with them.
    guarantee
        How exactly it draws: ``"exact"``, ``"rounded"`` (float64, at most ``rounding`` away from the law) or
        ``"estimated"`` (a chain, whose distance from the law is measured).
    rounding
        The total variation of a draw of the whole group from its law, at most, where it is rounded.
    chain
        The chain, where it is estimated.
    """

    words: str
    sampler: Sampler | None
    cells: IntArray
    cost: int = 0
    first: int = 0
    guarantee: Literal["exact", "rounded", "estimated"] = "exact"
    rounding: float = 0.0
    chain: Chain | None = None

    @property
    def simulation_cost(self) -> int:
        """About how many cells are drawn for a row of ``simulate_into``."""
        return self.cost if self.chain is None else self.chain.simulation_cost


class Folded:
    """A table with axes of two categories: along these the noise just changes sign.

    Halves of a table that only differ in sign weigh twice in the l1 norm, so the rest of the table is drawn with twice
    the epsilon for each such axis.
    """

    def __init__(self, core: Sampler, tables: int, signs: IntArray) -> None:
        self._core, self._tables, self._signs = core, tables, signs
        self.width = core.width * len(signs)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row a draw."""
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


def simulate_into(sampler: Sampler, out: IntArray, rng: Rng) -> None:
    """Fill ``out`` with rows for estimates, not for release: by draws, or along one chain where draws take chains."""
    getattr(sampler, "simulate_into", sampler.draw_into)(out, rng)


def choose_free(structure: Structure, mechanism: Mechanism) -> Choice:
    """Cells under no total."""
    from keepsum.planning.selection.gaussian import choose_gaussian
    from keepsum.sampling.gaussian.sums import FreeGaussian
    from keepsum.sampling.l1.compositions import FreeCells

    cells = np.flatnonzero((structure.part == FREE)[structure.region])
    epsilon = _l1_epsilon(mechanism)
    if epsilon is None:
        return choose_gaussian(mechanism, FreeGaussian(len(cells)), cells)
    if not SMALLEST <= epsilon <= LARGEST:
        return _out_of_range(cells)
    return Choice("drawn exactly, cell by cell", FreeCells(epsilon, len(cells)), cells, len(cells))


def choose_sums(structure: Structure, mechanism: Mechanism) -> Choice:
    """Regions whose sum the totals force to be 0."""
    from keepsum.planning.selection.gaussian import choose_gaussian
    from keepsum.sampling.gaussian.sums import SumsGaussian
    from keepsum.sampling.l1.compositions import ForcedSums

    regions = np.flatnonzero((structure.part == FORCED) & (structure.sizes > 1))
    chosen = np.zeros(len(structure.sizes), dtype=bool)
    chosen[regions] = True
    order, _ = structure.cells_by_region
    cells = order[chosen[structure.region[order]]]
    epsilon = _l1_epsilon(mechanism)
    if epsilon is None:
        sizes = structure.sizes[regions]
        return choose_gaussian(mechanism, SumsGaussian(sizes), cells, SumsGaussian([sizes.max()]))
    if not SMALLEST <= epsilon <= LARGEST:
        return _out_of_range(cells)
    sampler = ForcedSums(epsilon, structure.sizes[regions])
    return Choice("drawn exactly, by uniform compositions", sampler, cells, len(cells))


def choose_overlap(structure: Structure, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form whose totals overlap."""
    from keepsum.planning.selection.gaussian import choose_overlap_gaussian

    system = blocks[0].system
    cells = [np.concatenate([structure.cells(r) for r in block.regions.tolist()]) for block in blocks]
    epsilon = _l1_epsilon(mechanism)
    sizes = structure.sizes[blocks[0].regions]
    if epsilon is None:
        return choose_overlap_gaussian(system, sizes, cells, mechanism)
    if not SMALLEST <= epsilon <= LARGEST:
        return _out_of_range(np.concatenate(cells))
    exact = _choose_exact(system, sizes, cells, epsilon)
    if exact.sampler is not None:
        return exact
    from keepsum.planning.selection.general import choose_general

    return choose_general(system, sizes, cells, epsilon, exact.words)


def _choose_exact(system: System, sizes: IntArray, cells: list[IntArray], epsilon: Fraction) -> Choice:
    """Two rows for tables, solving for the widest regions elsewhere; each where it is quick enough."""
    if system.grid is not None and sizes.max() == 1 and core_ways(system.grid) <= 2:
        places = folded_order(system.grid)
        ordered = np.concatenate([own[places] for own in cells])
        return _table_choice(system.grid, len(cells), epsilon, ordered)
    if system.rank * system.width > EQUATIONS:
        return Choice("too many totals overlap for an exact sampler", None, np.concatenate(cells))
    from keepsum.sampling.l1.rejection import SolvedRegions

    sampler = SolvedRegions(epsilon, system.matrix, sizes, len(cells))
    if not sampler.usable:
        return Choice("its equations have large coefficients for an exact sampler", None, np.concatenate(cells))
    words = "drawn exactly, by solving for the widest regions"
    return _by_rejection(sampler, words, np.concatenate(cells), len(cells))


def _l1_epsilon(mechanism: Mechanism) -> Fraction | None:
    """The epsilon of l1 Laplace noise; other noise has samplers of its own."""
    return mechanism.epsilon if isinstance(mechanism, Laplace) and mechanism.norm == "l1" else None


def _out_of_range(cells: IntArray) -> Choice:
    return Choice(f"no sampler: l1 Laplace noise is drawn for epsilons from {SMALLEST} to {LARGEST}", None, cells)


def core_ways(grid: Grid) -> int:
    """The axes of more than two categories."""
    return sum(n > 2 for n in grid.shape)


def folded_order(grid: Grid) -> IntArray:
    """The columns of a grid with its axes of two categories first, then the longer of the others."""
    axes = sorted(range(len(grid.shape)), key=lambda axis: (grid.shape[axis] > 2, -grid.shape[axis], axis))
    return np.transpose(grid.column, axes).reshape(-1)


def _table_choice(grid: Grid, tables: int, epsilon: Fraction, cells: IntArray) -> Choice:
    """A table under all margins of one way less, with at most two axes of more than two categories."""
    from keepsum.sampling.l1.compositions import ForcedSums, FreeCells
    from keepsum.sampling.l1.two_rows import TwoRows, room_for

    core = sorted((n for n in grid.shape if n > 2), reverse=True)
    pairs = len(grid.shape) - len(core)
    signs = fold_signs(pairs)
    rate = epsilon * 2**pairs
    if len(core) == 2:
        if core[1] * room_for(rate, core[0], core[1]) > CONVOLUTIONS:
            return Choice("the table is too large for an exact sampler at this epsilon", None, cells)
        rows = TwoRows(rate, core[0], core[1], tables)
        return _by_rejection(rows, "drawn exactly, by its last two rows", cells, tables, Folded(rows, tables, signs))
    inner: Sampler = ForcedSums(rate, [core[0]] * tables) if core else FreeCells(rate, tables)
    return Choice("drawn exactly, by uniform compositions", Folded(inner, tables, signs), cells, len(cells))


def fold_signs(pairs: int) -> IntArray:
    """The signs of the halves of a table with so many axes of two categories."""
    return np.array([(-1) ** bin(k).count("1") for k in range(2**pairs)], dtype=np.int64)


def _by_rejection(sampler: Rejection, words: str, cells: IntArray, blocks: int, whole: Sampler | None = None) -> Choice:
    """Take a rejection sampler if a pilot shows that a draw stays within the budget.

    The pilot draws noise with a fixed seed that is used for nothing else, so that a plan always says the same.
    """
    source = rng(seed="keepsum pilot")
    accepted, tries = sampler.pilot(source, -(-PILOT // sampler.cells_per_try))
    if not accepted:
        accepted, tries = sampler.pilot(source, -(-BUDGET // sampler.cells_per_try))
    if not accepted or tries * sampler.cells_per_try > BUDGET * accepted:
        return Choice(f"exact rejection would draw more than {BUDGET:,} cells for one accepted", None, cells)
    cost = blocks * tries * sampler.cells_per_try // accepted
    return Choice(f"{words}; {share(accepted / tries)} of tries accepted", whole or sampler, cells, cost)


def share(rate: float) -> str:
    """A share of tries in words."""
    return f"about {100 * rate:.2g}%" if rate < 0.995 else "nearly all"

"""Samplers for Gaussian noise: the lattice Gaussian of each block, or a chain where the noise is too narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum.lattice.grids import Grid
from keepsum.lattice.matrix import Row
from keepsum.lattice.structure import Block, Structure, System
from keepsum.planning.focus import FocusedBlocks
from keepsum.planning.geometry import block_factor
from keepsum.planning.selection import general
from keepsum.planning.selection.choice import (
    BUDGET,
    NARROWEST,
    Choice,
    Reason,
    block_cells,
    free_cells,
    out_of_range,
    sums_cells,
)
from keepsum.planning.selection.general import Outcome, OutcomeStore, limits_of
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.core.rng import rng
from keepsum.sampling.gaussian.blocks import BlockGaussian
from keepsum.sampling.gaussian.factors import LARGEST_DIMENSION, make_factor, tree_factor
from keepsum.sampling.gaussian.parts import SamplerPart, Variances
from keepsum.sampling.gaussian.sums import FreeGaussian, LatticeGaussian, SumsGaussian, TableGaussian, sum_acceptance
from keepsum.sampling.general.chains import Chain, HeatBathChain, MixtureChain
from keepsum.sampling.general.heat_bath import HeatBath, gaussian_logs
from keepsum.sampling.general.kernel_arguments import FLOOR
from keepsum.sampling.general.mixture import OneWidth
from keepsum.sampling.general.scales import lattice_slab, table_slabs

# Chains for Gaussian noise that is too narrow for its exact sampler: proposals of one width, or heat-bath moves.


FEWEST_SEEN, MOST_SEEN = 200, 20_000  # proposals of a pilot
# How near to the budget a chain may come before its pilot is made again, and with how many times as many proposals.
SIMILAR, MORE = 30, 8


@dataclass(frozen=True, eq=False)
class NarrowProblem:
    """Blocks of one form under Gaussian noise, cell by cell."""

    system: System
    sizes: IntArray
    count: int
    variance: float

    @property
    def _ones(self) -> IntArray:
        return np.ones(int(self.sizes.sum()), dtype=np.int64)

    @cached_property
    def proposals(self) -> OneWidth | None:
        """Proposals, if they are not too large or the noise too narrow for them."""
        if self.system.grid is not None and self.sizes.max() == 1:
            slabs = table_slabs(self.system.grid.column)
        else:
            slabs = lattice_slab(list(cell_moves(tuple(self.system.basis), self.sizes)), len(self._ones))
        large = slabs.size > general.COORDINATES or slabs.multiplications > general.MULTIPLICATIONS
        return None if large or self.variance < FLOOR else OneWidth(slabs, self.variance)

    @cached_property
    def bath(self) -> HeatBath | None:
        """Heat-bath moves, if there are not too many."""
        moves = general.short_moves_of(self.system)
        if moves is None:
            return None
        law = np.zeros(len(self._ones), dtype=np.int64)
        bath = HeatBath((gaussian_logs(self.variance),), law, cell_moves(moves, self.sizes))
        return bath if bath.has_room else None

    def settle(self) -> Outcome:
        """The chain that needs the least work per draw, by pilots."""
        outcome, cost = Outcome(None), float(general.CHAIN_BUDGET)
        if self.proposals is not None:
            seen = max(FEWEST_SEEN, min(MOST_SEEN, general.MIXTURE_PILOT // self.proposals.cost))
            chain = self._thinned(self.proposals, seen)
            if cost < SIMILAR * chain.steps * chain.cost < SIMILAR**2 * cost:
                chain = self._thinned(self.proposals, MORE * seen)
            if chain.steps * chain.cost <= cost:
                outcome = Outcome("gaussian_chain", log_cap=chain.log_cap, steps=chain.steps, lag=chain.lag)
                cost = chain.steps * chain.cost
        sweeps = None if self.bath is None else general.sweeps_of(self.bath, cost)
        return sweeps or outcome

    def _thinned(self, proposals: OneWidth, seen: int) -> MixtureChain:
        """The chain that so many proposals suggest."""
        _, log_weights = proposals.propose(seen, rng(seed="keepsum pilot").stream())
        return general.thinned_chain(None, proposals, self._ones, self.count, log_weights)

    def chain(self, outcome: Outcome) -> Chain | None:
        """The chain of an outcome, if a draw does not take minutes."""
        chain: Chain | None = None
        if outcome.method == "gaussian_chain" and self.proposals is not None:
            chain = general.counted(MixtureChain(None, self.proposals, self._ones, self.count, 1), outcome)
        elif outcome.method == "heat_bath_chain" and self.bath is not None:
            chain = HeatBathChain(None, self.bath, self._ones, self.count, outcome.steps, outcome.lag)
        return chain if chain is not None and chain.steps * chain.cost <= general.CHAIN_BUDGET else None


def choose_narrow(
    system: System, sizes: IntArray, cells: list[IntArray], variance: float, reasons: tuple[Reason, ...]
) -> Choice | None:
    """Blocks under Gaussian noise too narrow for the exact sampler: a chain of proposals, or heat-bath moves."""
    problem = NarrowProblem(system, sizes, len(cells), variance)
    limits = [*limits_of("general", vars(general)), *limits_of("narrow", globals())]
    store = OutcomeStore(f"gaussian {variance!r}", system.matrix, sizes, len(cells))
    outcome = store.read(limits)
    chain = None if outcome is None else problem.chain(outcome)
    if chain is None and (outcome is None or outcome.method is not None):
        outcome = problem.settle()
        store.write(outcome, limits)
        chain = problem.chain(outcome)
    if chain is None:
        return None
    if chain.width != int(sizes.sum()) * len(cells):
        raise AssertionError("a chain draws every cell")
    return general.by_chain(chain, chain, np.concatenate(cells), len(cells), reasons)


def cell_moves(moves: tuple[Row, ...], sizes: npt.NDArray[np.int64]) -> tuple[Row, ...]:
    """Moves of region sums as moves of cells: each through the first cells, and between the cells of a region.

    >>> cell_moves(({0: 1, 1: -1},), np.array([2, 1]))
    ({0: 1, 2: -1}, {0: 1, 1: -1})
    """
    starts = (np.cumsum(sizes) - sizes).tolist()
    through = [{starts[region]: value for region, value in move.items()} for move in moves]
    between = [
        {start: 1, start + k: -1} for start, size in zip(starts, sizes.tolist(), strict=True) for k in range(1, size)
    ]
    return (*through, *between)


# Samplers for Gaussian noise: the lattice Gaussian of each block, or a chain where the noise is too narrow for it.


# Cells that may be drawn per accepted draw of a region with its sum kept, which is fast: some seconds.
SUM_BUDGET = 2 * 10**8
NUMERATOR_ROOM = 2.0**55  # width times cells: numerators of centres stay a hundred times below 2^63
NARROW_SIGMA = 2  # up to this sigma, chains are tried where the acceptance rate of the exact sampler is too low
FREE_COST = 10  # the time that a cell under no total takes, in cells of l1 Laplace noise
RAREST = 1e-15  # the smallest acceptance rate that counts as more than none
# Cells that a pilot draws, and how near its rate may come to the one that decides before a longer pilot spends a
# quarter of the budget: a few weights of rare proposals make up most of such a mean.
PILOT, CLOSE = 2 * 10**6, 1000


def choose_free(structure: Structure, mechanism: Mechanism) -> Choice:
    """Cells under no total: every draw is accepted."""
    cells, sigma = free_cells(structure), mechanism.scale
    part = FreeGaussian(structure.number_of(cells))
    missing = _unsupported(sigma, part)
    if missing is not None:
        return Choice.none(cells, missing)
    return Choice("independent_cells", LatticeGaussian(part, sigma**2), cells, FREE_COST * part.width)


def choose_sums(structure: Structure, mechanism: Mechanism) -> Choice:
    """Regions whose sum the totals force to be 0."""
    cells, sizes = sums_cells(structure)
    return choose_exact(mechanism.scale, SumsGaussian(sizes), cells, SumsGaussian([sizes.max()]), SUM_BUDGET)


def choose_overlap(structure: Structure, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form whose totals overlap; where the noise is too narrow for the exact sampler, a chain."""
    sigma, system = mechanism.scale, blocks[0].system
    cells, sizes = block_cells(structure, blocks)
    ordered = in_part_order(system, sizes, cells)
    part, one = overlap_part(system, sizes, len(cells)), overlap_part(system, sizes, 1)
    if part is None or one is None:
        exact = Choice.none(ordered, Reason("too_many_totals"))
    else:
        exact = choose_exact(sigma, part, ordered, one, BUDGET)
    if exact.sampler is not None or not NARROWEST <= sigma <= NARROW_SIGMA:
        return exact

    return choose_narrow(system, sizes, cells, float(sigma) ** 2, exact.reasons) or exact


def overlap_part(system: System, sizes: IntArray, count: int) -> SamplerPart | None:
    """``count`` blocks of one form: a table in closed form, others by their triangular factor, if there is one."""
    grid = _table(system, sizes)
    if grid is not None:
        return TableGaussian(grid.shape, count)
    factor = block_factor(system, sizes.tobytes())
    return None if factor is None else BlockGaussian(factor, sizes, count)


def in_part_order(system: System, sizes: IntArray, cells: list[IntArray]) -> IntArray:
    """The cells of blocks in the order in which ``overlap_part`` draws them."""
    grid = _table(system, sizes)
    return np.concatenate(cells if grid is None else [block[grid.column.reshape(-1)] for block in cells])


def _table(system: System, sizes: IntArray) -> Grid | None:
    """The grid of a block that is a table of single cells."""
    return system.grid if sizes.max() == 1 else None


def _unsupported(sigma: Fraction, part: SamplerPart) -> Reason | None:
    no_room = float(sigma) * part.width > NUMERATOR_ROOM
    return out_of_range("gaussian", sigma) or (Reason("no_room") if no_room else None)


def choose_exact(sigma: Fraction, part: SamplerPart, cells: IntArray, one: SamplerPart, budget: int) -> Choice:
    """The exact sampler, if a draw of one block stays within the budget.

    Where many totals overlap, narrow noise has a low acceptance rate; it is estimated here, from some draws of one
    block.
    """
    missing = _unsupported(sigma, part)
    if missing is not None:
        return Choice.none(cells, missing)
    rate = max(acceptance(one, sigma**2, budget), RAREST)
    if one.width / rate > budget:
        return Choice.none(cells, Reason("rarely_accepted", limit=budget, acceptance=rate))
    sampler, cost = LatticeGaussian(part, sigma**2), math.ceil(part.width / rate)
    return Choice("conditional_cells", sampler, cells, cost, acceptance=rate)


def acceptance(part: SamplerPart, variance: Fraction, budget: int) -> float:
    """The acceptance rate of a block: known for sums, else measured by a pilot with its own seed."""
    if isinstance(part, SumsGaussian):
        return sum_acceptance(part.width, float(variance))
    if part.log_theta_bound(float(variance)) < 1e-9:
        return 1.0
    rate = _measured(part, variance, max(4, min(400, PILOT // part.width)))
    if part.width / CLOSE < budget * rate < CLOSE * part.width:
        rate = _measured(part, variance, max(4, budget // (4 * part.width)))
    return rate


def _measured(part: SamplerPart, variance: Fraction, proposals: int) -> float:
    """The mean weight of so many proposals, some at a time."""
    source, centred, weights = rng(seed="keepsum pilot"), part.log_theta_centred(float(variance)), []
    step = max(1, PILOT // part.width)
    for first in range(0, proposals, step):
        out = np.empty((min(step, proposals - first), part.width), dtype=np.int64)
        weights.append(part.fill(out, Variances.constant(variance, len(out)), False, source, 1))
    return float(np.exp(np.concatenate(weights) - centred).mean())


# Samplers for Gaussian noise with a focus: the lattice Gaussian of each block, exact, or none.
#
# Nested totals have a triangular factor in closed form, others that of their Gram matrix.


def choose_focused(focused: FocusedBlocks, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form with focused totals, whose weights are those of cells times 2 rho sigma^2."""
    system, sigma = blocks[0].system, mechanism.scale
    ordered = [Block(np.sort(block.regions), block.system) for block in blocks]
    cells, sizes = block_cells(focused.structure, ordered)
    sizes = sizes[sizes > 0]
    levels = focused.levels_of(blocks[0]).tolist()
    weights = [2 * mechanism.focus[level].weight * sigma**2 for level in levels]
    tree = _tree(focused, blocks[0], len(sizes))
    if tree is None:
        place = np.argsort(np.argsort(blocks[0].regions)).tolist()
        basis = [{place[column]: entry for column, entry in vector.items()} for vector in system.basis]
        factor = make_factor(basis, sizes, weights)
    else:
        order, parents, kept = tree
        weights = [weights[total] for total in order]
        factor = tree_factor(parents, sizes, [None, *weights] if kept else weights)
    if factor is None:
        return Choice.none(np.concatenate(cells), Reason("too_many_dimensions", limit=LARGEST_DIMENSION))
    part, one = (BlockGaussian(factor, sizes, count, weights=weights) for count in (len(blocks), 1))
    return choose_exact(sigma, part, np.concatenate(cells), one, BUDGET)


def _tree(focused: FocusedBlocks, block: Block, regions: int) -> tuple[list[int], list[int], bool] | None:
    """The order of the focused totals of a block, the parents of its regions and totals, and whether the root is kept.

    None if they are not nested, or what is kept in the block is anything but the sum of all its cells.
    """
    totals = len(block.regions) - regions
    kept = block.system.rank - totals
    members = focused.members(block)
    order = sorted(range(totals), key=lambda total: -len(members[total]))
    if kept > 1 or (not kept and len(members[order[0]]) < regions):
        return None
    of_cells = set(np.flatnonzero(block.regions < focused.first_total).tolist())
    if kept and any(sum(entry for at, entry in vector.items() if at in of_cells) for vector in block.system.basis):
        return None
    home = np.full(regions, 0 if kept else -1, dtype=np.int64)
    parents = [-1] if kept else []
    for total in order:
        around = home[members[total]]
        if (around != around[0]).any():
            return None
        home[members[total]] = len(parents)
        parents.append(int(around[0]))
    return order, [*home.tolist(), *parents], bool(kept)

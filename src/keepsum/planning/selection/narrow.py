"""Chains for Gaussian noise that is too narrow for its exact sampler: proposals of one width, or heat-bath moves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum.lattice.matrix import Row
from keepsum.lattice.structure import System
from keepsum.planning.selection import general
from keepsum.planning.selection.choice import Choice, Reason
from keepsum.planning.selection.outcomes import Outcome, OutcomeStore, limits_of
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.chains import Chain, HeatBathChain, MixtureChain
from keepsum.sampling.general.heat_bath import HeatBath, gaussian_logs
from keepsum.sampling.general.kernel_arguments import FLOOR
from keepsum.sampling.general.mixture import OneWidth
from keepsum.sampling.general.slabs import lattice_slab, table_slabs

FEWEST_SEEN, MOST_SEEN = 200, 20_000  # proposals of a pilot
# How near to the budget a chain may come before its pilot is made again, and with how many times as many proposals.
CLOSE, MORE = 30, 8


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
            if cost < CLOSE * chain.steps * chain.cost < CLOSE**2 * cost:
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

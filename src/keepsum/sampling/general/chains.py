"""The general samplers: draws of whole blocks by rejection from a mixture, or by chains.

Each draws the sums of the regions; the cells of a region are then drawn given their sum, exactly (``forced_sums``).
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sampling.core.driving import TASKS, equal_ranges, in_parallel, run
from keepsum.sampling.core.kernel import Kernel, text_of_kernels
from keepsum.sampling.core.kernel_arguments import RowsTask, Task, Words, new_state
from keepsum.sampling.core.rng import Rng, Stream, rng
from keepsum.sampling.general.heat_bath import HeatBath
from keepsum.sampling.general.kernel_arguments import (
    CHAIN_STATE,
    MOST_SHIFT,
    ChainTables,
    MixtureTask,
    PairTables,
    RejectionTables,
    SweepPairRoom,
    SweepPairTables,
    SweepPairTask,
    SweepTables,
    SweepTask,
    TimesTask,
)
from keepsum.sampling.general.mixture import Mixture, Proposals
from keepsum.sampling.general.mixture_bounds import stated
from keepsum.sampling.general.weights import Renewal
from keepsum.sampling.l1.forced_sums import ForcedSums

reject = Kernel("reject", Words, CHAIN_STATE, RejectionTables, MixtureTask)
chains = Kernel("chains", Words, CHAIN_STATE, ChainTables, MixtureTask)
couple_chains = Kernel("couple_chains", Words, CHAIN_STATE, PairTables, TimesTask)
sweeps = Kernel("sweeps", Words, CHAIN_STATE, SweepTables, SweepTask)
couple_sweeps = Kernel("couple_sweeps", Words, CHAIN_STATE, SweepPairTables, SweepPairTask)

WARM = 8  # rows left out at the start of a simulation
PREDICTION_COST = 10**9  # what proposals may cost whose weights predict a distance
PREDICTION_PIECE = 10_000  # how many of them are in memory at a time


class Regions(ABC):
    """From sums of regions to cells: what all general samplers share.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of l1 distance; None if every region is one cell.
    order
        The column of the block that each region of the sampler stands for.
    sizes
        The number of cells of each column; focused totals have none.
    count
        How many such blocks a draw has.
    """

    def __init__(self, epsilon: Fraction | None, order: IntArray, sizes: IntArray, count: int) -> None:
        self._epsilon, self._order, self._sizes, self.count = epsilon, order, sizes, count
        self._block = int(sizes.sum())
        self._starts = np.cumsum(sizes) - sizes
        self.width = self._block * count

    @property
    def cell_by_cell(self) -> bool:
        """Whether every region is one cell."""
        return bool((self._sizes == 1).all())

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the blocks of a draw one after the other, region by region."""
        jobs = len(out) * self.count
        drawn = np.empty((jobs, len(self._order)), dtype=np.int64)

        def work(first: int, last: int, stream: Stream) -> None:
            self._sums(drawn[first:last], stream)

        in_parallel(work, equal_ranges(jobs, max(1, jobs // TASKS)), rng, threads)
        self._fill(out.reshape(jobs, self._block), self._in_order(drawn), rng, threads)

    def _in_order(self, drawn: IntArray) -> IntArray:
        """Sums in the order of the block's columns."""
        sums = np.empty_like(drawn)
        sums[:, self._order] = drawn
        return sums

    @abstractmethod
    def _sums(self, out: IntArray, stream: Stream) -> None:
        """Draw sums of regions in the sampler's order."""

    def _fill(self, out: IntArray, sums: IntArray, rng: Rng, threads: int) -> None:
        single = self._sizes == 1
        out[:, self._starts[single]] = sums[:, single]
        several = self._sizes > 1
        if not several.any():
            return
        if self._epsilon is None:
            raise AssertionError("regions of several cells are drawn under l1 Laplace noise only")
        large = np.flatnonzero(several)
        sizes = np.tile(self._sizes[large], len(out))
        cells = np.empty((1, int(sizes.sum())), dtype=np.int64)
        ForcedSums(self._epsilon, sizes, sums[:, large].reshape(-1)).draw_into(cells, rng, threads)
        inside = np.repeat(several, self._sizes)
        out[:, inside] = cells.reshape(len(out), -1)


class MixtureRejection(Regions):
    """l1 Laplace noise on any lattice by rejection from the scale mixture.

    Guarantee
    ---------
    Rounded: P(z) is proportional to exp(-eps |z|_1) on the lattice, up to a total variation of ``rounding`` from
    float64. ``tests/statistical/test_mixture.py``.
    """

    def __init__(
        self, epsilon: Fraction, mixture: Mixture, sizes: IntArray, count: int = 1, acceptance: float = 1.0
    ) -> None:
        super().__init__(epsilon, mixture.slabs.order, sizes, count)
        self.mixture, self.acceptance = mixture, acceptance

    @property
    def cells_per_try(self) -> int:
        """What a try costs."""
        return self.mixture.cost

    @property
    def rounding(self) -> float:
        """The total variation of a draw of all blocks from the law, at most: proved, the acceptance included."""
        return stated(self.count * self.mixture.rounding.by_rejection(self.mixture.bounds.acceptance))

    def _sums(self, out: IntArray, stream: Stream) -> None:
        tables = RejectionTables(self.mixture.tables, self.mixture.log_bound)
        task = RowsTask(0, len(out), out, self.mixture.chain_room(0))
        if run(reject, stream, tables, task, states=new_state(CHAIN_STATE)).exceeded:
            raise AssertionError("a weight exceeds its bound")


class Chain(Regions):
    """A sampler by fresh chains, whose convergence is shown by the meeting times of coupled pairs.

    Attributes
    ----------
    steps
        How long a chain runs for a draw.
    lag
        By how many steps the one chain of a pair leads: enough for nearly all pairs to meet within.
    """

    def __init__(
        self, epsilon: Fraction | None, order: IntArray, sizes: IntArray, count: int, steps: int, lag: int
    ) -> None:
        super().__init__(epsilon, order, sizes, count)
        self.steps, self.lag = steps, lag

    @property
    @abstractmethod
    def cost(self) -> int:
        """What a step costs, in cells drawn freely."""

    @property
    @abstractmethod
    def rounding(self) -> float:
        """The total variation that float64 adds to a draw of one block, beside how far a chain is from its own law."""

    @property
    def simulation_cost(self) -> int:
        """What a row of ``simulate_into`` costs."""
        return self.count * self.lag * self.cost

    def simulate_into(self, out: IntArray, rng: Rng) -> None:
        """Fill ``out`` with rows for estimates, not for release: of one chain, every ``lag`` + 1 steps."""
        jobs = len(out) * self.count
        drawn = np.empty((jobs + WARM, len(self._order)), dtype=np.int64)
        self._advance(drawn, rng.stream(), self.lag, fresh=False)
        self._fill(out.reshape(jobs, self._block), self._in_order(drawn[WARM:]), rng, 1)

    def _sums(self, out: IntArray, stream: Stream) -> None:
        self._advance(out, stream, self.steps, fresh=True)

    @abstractmethod
    def _advance(self, out: IntArray, stream: Stream, steps: int, fresh: bool) -> None:
        """Rows by chains of so many steps, each new or going on from the row before."""

    def meeting_times(self, pairs: int, lag: int, most: int, rng: Rng, threads: int = 1) -> IntArray:
        """The step of the leading chain at which each coupled pair met, -1 if it had not at step ``most``."""
        times = np.full(pairs, -1, dtype=np.int64)

        def work(first: int, last: int, stream: Stream) -> None:
            self._meet(times[first:last], lag, most, stream)

        in_parallel(work, equal_ranges(pairs, max(1, pairs // TASKS)), rng, threads)
        return times

    @abstractmethod
    def _meet(self, times: IntArray, lag: int, last: int, stream: Stream) -> None:
        """Couple a pair of chains for each of the times, the leading one to step ``last`` at most."""

    def predicted_distance(self, candidates: int) -> float:
        """The distance after the steps of a draw that the weights of so many candidates give, 0 if there are none."""
        return 0.0

    def fingerprint(self) -> str:
        """A hash of everything that the kernels read: what the seeds of its pairs follow from."""
        digest = hashlib.sha256()
        for array in leaves(self._tables()):
            digest.update(repr(array).encode() if np.ndim(array) == 0 else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def cache_key(self) -> str:
        """The name under which meeting times are kept: other kernels may run other pairs from the same seeds."""
        return f"{self.fingerprint()[:32]}-{text_of_kernels()[:16]}"

    @abstractmethod
    def _tables(self) -> tuple[Any, ...]:
        """What the kernels read."""


class MixtureChain(Chain):
    """l1 Laplace noise on any lattice by a Metropolis chain with proposals from the scale mixture.

    With one width in the place of the mixture it draws Gaussian noise. Proposals are thinned first
    (``native/general_chains.c``): those below a cap pass with a chance in proportion to their weight, so that already
    the first candidate is near the target. A cap of M, the proved bound, would make it exact (``MixtureRejection``).

    Guarantee
    ---------
    Estimated: the law after ``steps`` steps from a candidate; how near it is to exp(-eps |z|_1) on the lattice is shown
    by the meeting times of coupled pairs (``convergence/observe.py``). ``tests/statistical/test_mixture.py``.

    Parameters
    ----------
    proposals
        What makes proposals.
    log_cap
        Ln of the weight from which on every proposal passes; without it all do.
    tries
        How many proposals there are for one that passes, on average.
    """

    def __init__(
        self,
        epsilon: Fraction | None,
        proposals: Proposals,
        sizes: IntArray,
        count: int,
        steps: int,
        lag: int = 8,
        log_cap: float = -math.inf,
        tries: float = 1.0,
    ) -> None:
        super().__init__(epsilon, proposals.slabs.order, sizes, count, steps, lag)
        self.proposals, self.log_cap, self.tries = proposals, log_cap, tries

    @property
    def cost(self) -> int:
        """What a step costs, in cells drawn freely."""
        return round(self.proposals.cost * self.tries)

    @property
    def rounding(self) -> float:
        """The total variation that float64 adds to a draw of one block, beside how far the chain is from its own law.

        Coupled pairs show how near a chain comes to the law that its weights have, rounded as they are; that law is
        near the target, and each proposal of a draw may be missed (docs/general.md). All of it is proved but the
        number of proposals: twice as many are counted as a pilot saw, of at least 50 that passed.
        """
        return stated(self.proposals.rounding.by_chain(2 * self.tries * (self.steps + 1)))

    def _tables(self) -> tuple[Any, ...]:
        tables = self.proposals.tables
        halves = np.unique(tables.scales.half).tolist()
        if len(halves) == 1:  # one epsilon for all regions: pairs have the seeds that they had when there was no other
            tables = tables._replace(scales=tables.scales._replace(half=halves[0]))
        return tables, self.log_cap

    def predicted_distance(self, candidates: int) -> float:
        """The distance that the weights of so many candidates predict for a draw; of fewer if they cost a lot."""
        count = int(max(1000, min(candidates * self.tries, PREDICTION_COST // self.proposals.cost)))
        stream = rng(seed="keepsum weights").stream()
        pieces = [self.proposals.propose(b - a, stream)[1] for a, b in equal_ranges(count, PREDICTION_PIECE)]
        return Renewal.with_tail(np.concatenate(pieces), self.log_cap).distance(self.steps)

    def _advance(self, out: IntArray, stream: Stream, steps: int, fresh: bool) -> None:
        tables = ChainTables(self.proposals.tables, self.log_cap, steps, fresh)
        task = RowsTask(0, len(out), out, self.proposals.chain_room(len(out)))
        run(chains, stream, tables, task, states=new_state(CHAIN_STATE))

    def _meet(self, times: IntArray, lag: int, last: int, stream: Stream) -> None:
        tables = PairTables(self.proposals.tables, self.log_cap, lag, last)
        task = Task(0, len(times), times, self.proposals.chain_room(2))
        run(couple_chains, stream, tables, task, states=new_state(CHAIN_STATE))


class HeatBathChain(Chain):
    """Narrow noise on any lattice by a chain of heat-bath moves along short vectors.

    Guarantee
    ---------
    Estimated: the law after ``steps`` sweeps from 0; how near it is to the target is shown by the meeting times of
    coupled pairs (``convergence/observe.py``). ``tests/statistical/test_mixture_pairs.py``.
    """

    def __init__(
        self, epsilon: Fraction | None, bath: HeatBath, sizes: IntArray, count: int, steps: int, lag: int = 4
    ) -> None:
        super().__init__(epsilon, np.arange(bath.regions), sizes, count, steps, lag)
        self.bath = bath

    @property
    def cost(self) -> int:
        """What a step costs, in cells drawn freely."""
        return self.bath.cost

    @property
    def rounding(self) -> float:
        """The total variation that float64 adds to a draw of one block, beside how near the chain is to its own law."""
        return stated(self.bath.rounding(self.steps))

    def _tables(self) -> tuple[Any, ...]:
        return self.bath.tables

    def _advance(self, out: IntArray, stream: Stream, steps: int, fresh: bool) -> None:
        tables = SweepTables(self.bath.tables, steps, fresh)
        self._run(sweeps, stream, tables, RowsTask(0, len(out), out, np.zeros(2 * MOST_SHIFT + 1)))

    def _meet(self, times: IntArray, lag: int, last: int, stream: Stream) -> None:
        tables = SweepPairTables(self.bath.tables, lag, last)
        room = SweepPairRoom(np.zeros((2, self.bath.regions), dtype=np.int64), np.zeros(2 * MOST_SHIFT + 1))
        self._run(couple_sweeps, stream, tables, Task(0, len(times), times, room))

    @staticmethod
    def _run(kernel: Kernel, stream: Stream, tables: Any, task: Task | RowsTask) -> None:
        if run(kernel, stream, tables, task, states=new_state(CHAIN_STATE)).exceeded:
            raise AssertionError("a move of the heat bath has no room")


def leaves(nested: Any) -> Iterator[Any]:
    """The arrays and numbers in tuples of tuples.

    >>> list(leaves((1, (2, (3,)), ())))
    [1, 2, 3]
    """
    if isinstance(nested, tuple):
        for part in nested:
            yield from leaves(part)
    else:
        yield nested

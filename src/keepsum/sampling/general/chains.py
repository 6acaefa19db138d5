"""The general samplers: draws of whole blocks by rejection from a mixture, or by chains.

Each draws the sums of the regions; the cells of a region are then drawn given their sum, exactly (``compositions``).
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum.sampling.core.compiling import text_of_kernels
from keepsum.sampling.core.driving import PILOT_DRAWS, UNLIMITED, announce, in_parallel
from keepsum.sampling.core.rng import Rng, Stream, rng
from keepsum.sampling.general.chains_kernels import BEYOND, DRAW, STEP, TRIES, chains, couple, reject
from keepsum.sampling.general.heat_bath import HeatBath
from keepsum.sampling.general.heat_bath_kernels import MOST, couple_sweeps, sweeps
from keepsum.sampling.general.mixture import CHUNK, Mixture, Proposals
from keepsum.sampling.general.mixture_bounds import stated
from keepsum.sampling.general.weights import Renewal, allowing
from keepsum.sampling.l1.compositions import ForcedSums

IntArray = npt.NDArray[np.int64]

WARM = 8  # rows left out at the start of a simulation
FORETOLD = 10**9  # what proposals may cost whose weights are looked at
TASKS = 64  # tasks that many draws or pairs are cut into: enough for any number of threads


class Regions(ABC):
    """From sums of regions to cells: what all general samplers share.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of l1 distance; None if every region is one cell.
    order
        The column of the block that each region of the sampler stands for.
    sizes
        The number of cells of each column.
    count
        How many such blocks a draw has.
    """

    def __init__(self, epsilon: Fraction | None, order: IntArray, sizes: IntArray, count: int) -> None:
        self._epsilon, self._order, self._sizes, self.count = epsilon, order, sizes, count
        self._block = int(sizes.sum())
        self._starts = np.cumsum(sizes) - sizes
        self.width = self._block * count

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row a draw, the blocks of a draw one after the other, region by region."""
        jobs = len(out) * self.count
        sums = np.empty((jobs, len(self._order)), dtype=np.int64)
        own = np.empty_like(sums)
        parts = cut(jobs, max(1, jobs // TASKS))
        in_parallel([lambda stream, p=part: self._sums(own[p], stream) for part in parts], rng, threads)  # type: ignore[misc]
        sums[:, self._order] = own
        self._fill(out.reshape(jobs, self._block), sums, rng, threads)

    @abstractmethod
    def _sums(self, out: IntArray, stream: Stream) -> None:
        """Draw sums of regions in the sampler's order."""

    def _fill(self, out: IntArray, sums: IntArray, rng: Rng, threads: int) -> None:
        single = self._sizes == 1
        out[:, self._starts[single]] = sums[:, single]
        if single.all():
            return
        if self._epsilon is None:
            raise AssertionError("regions of several cells are drawn under l1 Laplace noise only")
        large = np.flatnonzero(~single)
        sizes = np.tile(self._sizes[large], len(out))
        cells = np.empty((1, int(sizes.sum())), dtype=np.int64)
        ForcedSums(self._epsilon, sizes, sums[:, large].reshape(-1)).draw_into(cells, rng, threads)
        inside = np.repeat(~single, self._sizes)
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

    def pilot(self, rng: Rng, most: int) -> tuple[int, int]:
        """Draw until a hundred blocks are accepted or ``most`` tries are made; how many of each there were."""
        out = np.empty((PILOT_DRAWS, len(self._order)), dtype=np.int64)
        state = self._run(out, rng.stream(), most)
        return int(state[DRAW]), int(state[TRIES])

    def _sums(self, out: IntArray, stream: Stream) -> None:
        self._run(out, stream, UNLIMITED)

    def _run(self, out: IntArray, stream: Stream, most: int) -> IntArray:
        scales, slabs = self.mixture.tables
        per, room = self.mixture.words, self.mixture.room()
        candidate = np.empty(len(self._order), dtype=np.int64)
        announce(reject)
        state = np.zeros(4, dtype=np.int64)
        while state[DRAW] < len(out) and state[TRIES] < most:
            words = stream.take(whole(per, UNLIMITED))
            reject(words, per, scales, slabs, room, state, self.mixture.log_bound, out, candidate, most)
            if state[BEYOND]:
                raise AssertionError("a weight exceeds its bound")
        return state


class Chain(Regions):
    """A sampler by fresh chains, whose convergence is shown by pairs of chains that meet.

    Attributes
    ----------
    steps
        How long a chain runs for a draw.
    lag
        By how many steps the one chain of a pair leads: enough for nearly all pairs to meet within.
    mean_square
        The mean square of a cell's noise as a pilot found it, where every region is one cell; else None.
    """

    mean_square: float | None = None

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
        own = np.empty((jobs + WARM, len(self._order)), dtype=np.int64)
        self._advance(own, rng.stream(), self.lag, fresh=False)
        sums = np.empty((jobs, len(self._order)), dtype=np.int64)
        sums[:, self._order] = own[WARM:]
        self._fill(out.reshape(jobs, self._block), sums, rng, 1)

    def _sums(self, out: IntArray, stream: Stream) -> None:
        self._advance(out, stream, self.steps, fresh=True)

    @abstractmethod
    def _advance(self, out: IntArray, stream: Stream, steps: int, fresh: bool) -> None:
        """Rows by chains of so many steps, each new or going on from the row before."""

    @abstractmethod
    def meeting_times(self, pairs: int, lag: int, most: int, rng: Rng, threads: int = 1) -> IntArray:
        """The step of the leading chain at which each pair met, -1 if it had not at step ``most``."""

    def foretold(self, candidates: int) -> float:
        """The distance after the steps of a draw that the weights of so many candidates give, 0 if there are none."""
        return 0.0

    def fingerprint(self) -> str:
        """A hash of everything that decides how chains and pairs run."""
        digest = hashlib.sha256(text_of_kernels().encode())
        for array in self._tables():
            digest.update(repr(array).encode() if np.ndim(array) == 0 else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @abstractmethod
    def _tables(self) -> Iterable[Any]:
        """What the kernels read."""


class MixtureChain(Chain):
    """l1 Laplace noise on any lattice by a Metropolis chain with proposals from the scale mixture.

    With one width in the place of the mixture it draws Gaussian noise. Proposals are winnowed first
    (``chains_kernels.py``): those below a cap pass with a chance in proportion to their weight, so that already the
    first candidate is near the law. A cap of M, the proved bound, would make it exact (``MixtureRejection``).

    Guarantee
    ---------
    Estimated: the law after ``steps`` steps from a candidate; how near it is to exp(-eps |z|_1) on the lattice is shown
    by pairs of chains that meet (``convergence/observe.py``). ``tests/statistical/test_mixture.py``.

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

        Pairs of chains show how near a chain comes to the law that its weights have, rounded as they are; that law is
        near the one wanted, and each proposal of a draw may be missed (docs/general.md). All of it is proved but the
        number of proposals: twice as many are counted as a pilot saw, of at least 50 that passed.
        """
        return stated(self.proposals.rounding.by_chain(2 * self.tries * (self.steps + 1)))

    def _tables(self) -> Iterable[Any]:
        scales, slabs = self.proposals.tables
        return (*scales, *slabs, self.log_cap)

    def foretold(self, candidates: int) -> float:
        """What the weights of so many candidates foretell of a draw; fewer if they cost a lot."""
        count = int(max(1000, min(candidates * self.tries, FORETOLD // self.proposals.cost)))
        _, log_weights = self.proposals.propose(count, rng(seed="keepsum weights").stream())
        return Renewal.of(allowing(log_weights), self.log_cap).distance(self.steps)

    def _advance(self, out: IntArray, stream: Stream, steps: int, fresh: bool) -> None:
        scales, slabs = self.proposals.tables
        per, room = self.proposals.words, self.proposals.room()
        log_weights = np.empty(len(out))
        candidate = np.empty(len(self._order), dtype=np.int64)
        state = np.zeros(4, dtype=np.int64)
        announce(chains)
        while state[DRAW] < len(out):
            left = (len(out) - state[DRAW]) * (steps + 1) - state[STEP]
            words = stream.take(whole(per, int(left * self.tries) + 1))
            chains(words, per, scales, slabs, room, state, self.log_cap, steps, fresh, out, log_weights, candidate)

    def meeting_times(self, pairs: int, lag: int, most: int, rng: Rng, threads: int = 1) -> IntArray:
        """The step of the leading chain at which each pair met, -1 if it had not at step ``most``."""
        scales, slabs = self.proposals.tables
        per = self.proposals.words

        def task(times: IntArray, stream: Stream) -> None:
            room, log_weights = self.proposals.room(), np.empty(2)
            candidate = np.empty(len(self._order), dtype=np.int64)
            state = np.zeros(4, dtype=np.int64)
            while state[DRAW] < len(times):
                words = stream.take(whole(per, int((lag + 2) * self.tries) + 1))
                couple(words, per, scales, slabs, room, state, self.log_cap, lag, most, times, log_weights, candidate)

        announce(couple)
        return in_pairs(task, pairs, rng, threads)


class HeatBathChain(Chain):
    """Narrow noise on any lattice by a chain of heat-bath moves along short vectors.

    Guarantee
    ---------
    Estimated: the law after ``steps`` sweeps from 0; how near it is to the wanted one is shown by pairs of chains that
    meet (``convergence/observe.py``). ``tests/statistical/test_mixture.py``.
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

    def _tables(self) -> Iterable[Any]:
        return self.bath.tables

    def _advance(self, out: IntArray, stream: Stream, steps: int, fresh: bool) -> None:
        per, state, weights = self.bath.words, np.zeros(4, dtype=np.int64), np.zeros(2 * MOST + 1)
        announce(sweeps)
        left = len(out) * steps
        while left:
            words = stream.take(whole(per, left))
            left -= len(words) // per
            if not sweeps(words, per, *self.bath.tables, weights, state, steps, fresh, out):
                raise AssertionError("a move of the heat bath has no room")

    def meeting_times(self, pairs: int, lag: int, most: int, rng: Rng, threads: int = 1) -> IntArray:
        """The step of the leading chain at which each pair met, -1 if it had not at step ``most``."""
        per = self.bath.words

        def task(times: IntArray, stream: Stream) -> None:
            state, weights = np.zeros(4, dtype=np.int64), np.zeros(2 * MOST + 1)
            pair = np.zeros((2, self.bath.regions), dtype=np.int64)
            while state[DRAW] < len(times):
                words = stream.take(whole(per, lag + 16))
                if not couple_sweeps(words, per, *self.bath.tables, weights, state, lag, most, times, pair):
                    raise AssertionError("a move of the heat bath has no room")

        announce(couple_sweeps)
        return in_pairs(task, pairs, rng, threads)


def whole(per: int, wanted: int) -> int:
    """Words for as many whole steps as are wanted and fit a chunk, at least one."""
    return per * max(1, min(wanted, CHUNK // per))


def cut(count: int, step: int) -> Sequence[slice]:
    """Runs of ``step`` places.

    >>> cut(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(first, min(first + step, count)) for first in range(0, count, step)]


def in_pairs(task: Callable[[IntArray, Stream], Any], pairs: int, rng: Rng, threads: int) -> IntArray:
    """Cut pairs into tasks, each with a stream of its own."""
    times = np.full(pairs, -1, dtype=np.int64)
    parts = cut(pairs, max(1, pairs // TASKS))
    in_parallel([lambda stream, p=part: task(times[p], stream) for part in parts], rng, threads)  # type: ignore[misc]
    return times

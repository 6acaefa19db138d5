"""Gaussian noise on the lattice of kept totals, exactly: what all of its parts share.

A lattice Gaussian is drawn coordinate by coordinate, each a discrete Gaussian whose centre depends on those before, and
a block of coordinates is accepted with the product of rho_s(Z - c)/rho_s(Z) (``native/gaussian_integers.c``). What
differs is how centres are found:

- cells under no total have centre 0;
- cells of a region with sum 0 have rational centres in closed form, and so have tables whose margins are all kept, the
  tensor products of such sums: O(d) per draw, every decision about exact rationals;
- other blocks have a triangular factor of their Gram matrix in floats. Centres are what the floats come to, exactly
  that; the small difference between the factor's quadratic form and the lattice's is never negative (it is made so, and
  checked rigorously), and is a part of the acceptance.

So each draw is exact: comparisons that floats leave open are decided in ball arithmetic. Narrow noise in many
overlapping dimensions is hardly ever accepted; ``planning/selection/gaussian.py`` then uses other samplers, or none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from flint import arb

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.balls import ball, digits
from keepsum.sampling.core.driving import PILOT_DRAWS, TASK_CELLS, Referee, equal_ranges, in_parallel
from keepsum.sampling.core.kernel_arguments import State, Task
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.gaussian.integers import accept_integer, family, gaussian_tables, log_theta, log_theta_floats
from keepsum.sampling.gaussian.kernel_arguments import DECIDE

Steps = Iterable[tuple[Any, Fraction]]  # a centre and the share of the variance, for each coordinate


@dataclass(frozen=True)
class Variances:
    """sigma^2 of each row: as floats, and exactly as a ball at the working precision."""

    floats: Floats
    exact: Callable[[int], arb]

    @classmethod
    def constant(cls, variance: Fraction, rows: int) -> Variances:
        """One variance for all rows."""
        return cls(np.full(rows, float(variance)), lambda _: ball(variance))


class Part(Protocol):
    """Some blocks of one form: what a sampler needs of them."""

    width: int
    dimension: int

    def fill(self, out: IntArray, variances: Variances, deciding: bool, rng: Rng, threads: int) -> Floats:
        """Fill ``out``; if not deciding, every try counts, and the logarithm of its weight is returned for each row."""

    def log_weight(self, row: IntArray, variance: arb) -> arb:
        """The sum over all coordinates of log(rho_s(Z - c) / (sqrt(2 pi) s)), less the mismatch, of a row."""

    def log_theta_bound(self, variance: float) -> float:
        """An upper bound of the logarithm of a row's weight, quickly."""

    def log_theta_centred(self, variance: float) -> float:
        """The logarithm of a row's weight if all centres were 0, the largest that there can be."""


class Blocks:
    """What the parts share: referees, and a bound of all factors."""

    def __init__(self, word_bits: int, shares: Floats, counts: npt.ArrayLike) -> None:
        self._bits = word_bits
        self._tables = gaussian_tables(word_bits)
        self._laws = family(word_bits)
        self._every = shares, np.broadcast_to(np.asarray(counts, dtype=np.float64), shares.shape)
        # Factors grow as shares fall, so a bound may round shares down; a thousand different ones are enough.
        rounded = np.maximum(np.floor(shares * 1024) / 1024, shares / 2)
        self._shares, place = np.unique(rounded, return_inverse=True)
        self._counts = np.bincount(place, weights=np.broadcast_to(counts, shares.shape))

    def log_theta_centred(self, variance: float) -> float:
        """The logarithm of a row's weight if all centres were 0, the largest that there can be."""
        shares, counts = self._every
        return float((counts * log_theta_floats(variance * shares)).sum())

    def log_theta_bound(self, variance: float) -> float:
        """An upper bound of the logarithm of a row's weight, quickly."""
        conditional = variance * self._shares
        if not len(conditional) or conditional[0] > 3:
            return float(self._counts.sum()) * 1e-24
        return 1e-12 + float((self._counts * log_theta_floats(conditional)).sum()) * (1 + 1e-9)

    def referee(
        self,
        variance: Callable[[State], arb],
        chance: Callable[[State], arb],
        centre: Callable[[State], Any] | None = None,
    ) -> Referee:
        """Settles tables, one-dimensional acceptances, and acceptances of whole blocks."""

        def answer(state: State, uniform: LazyUniform) -> int:
            if state.phase == DECIDE:
                return int(uniform.below(digits(lambda: chance(state).exp())))
            by_factor = None if centre is None else centre(state)
            if by_factor is None:
                where = Fraction(int(state.centre_numerator), int(state.centre_denominator))
                share = Fraction(int(state.share_numerator), int(state.share_denominator))
            else:
                where, share = by_factor
            return accept_integer(state, where, lambda: variance(state) * ball(share), uniform)

        return Referee(self._bits, lambda state: self._laws[state.table], answer)


def log_thetas(steps: Steps, variance: arb) -> tuple[arb, arb]:
    """The sums of the logarithms of the factors, at their centres and at 0."""
    there, centred = arb(0), arb(0)
    for centre, share in steps:
        conditional = variance * ball(share)
        there += log_theta(conditional, ball(centre))
        centred += log_theta(conditional, arb(0))
    return there, centred


class CountedBlocks(Blocks, ABC):
    """Blocks of one form, each of ``cells`` cells and accepted on its own, ``count`` of them in a draw."""

    def __init__(self, word_bits: int, shares: Floats, counts: npt.ArrayLike, cells: int, count: int) -> None:
        super().__init__(word_bits, shares, counts)
        self._cells, self._count = cells, count
        self.width = cells * count

    @property
    def cells_per_try(self) -> int:
        """What a try costs."""
        return self._cells

    @property
    def _pilot_draws(self) -> int:
        return PILOT_DRAWS

    def fill(self, out: IntArray, variances: Variances, deciding: bool, rng: Rng, threads: int) -> Floats:
        """Fill ``out``, one row per draw, the blocks of a draw one after the other."""
        jobs = len(out) * self._count
        log_weights = np.zeros(0 if deciding else jobs)

        def work(first: int, last: int, stream: Stream) -> None:
            self._run(Task(first, last, out.reshape(-1), log_weights), variances, deciding, stream)

        in_parallel(work, equal_ranges(jobs, max(1, TASK_CELLS // (8 * self.cells_per_try))), rng, threads)
        return log_weights if deciding else log_weights.reshape(-1, self._count).sum(axis=1)

    def pilot(self, variance: Fraction, rng: Rng, most: int) -> tuple[int, int]:
        """Draw until enough blocks are accepted or ``most`` tries are made; how many of each there were."""
        draws = self._pilot_draws
        task = Task(0, draws, np.empty(draws * self._cells, dtype=np.int64), np.zeros(0), most)
        state = self._run(task, Variances.constant(variance, draws), True, rng.stream())
        return int(state.job), int(state.tries)

    @abstractmethod
    def _run(self, task: Task, variances: Variances, deciding: bool, stream: Stream) -> State:
        """Do a task, whose room is for the log weights of blocks."""

    def _row(self, task: Task, state: State) -> int:
        """The draw that a kernel is at."""
        return (task.first + int(state.job)) // self._count

    def _block(self, task: Task, state: State) -> IntArray:
        """The cells of the block that a kernel is at."""
        job = task.first + int(state.job)
        cells: IntArray = task.out[job * self._cells : (job + 1) * self._cells]
        return cells

"""Gaussian noise on the lattice of any kept totals, exactly.

A lattice Gaussian is drawn coordinate by coordinate, each a discrete Gaussian whose centre depends on those before, and
a block of coordinates is accepted with the product of rho_s(Z - c)/rho_s(Z) (``gaussian_kernels``). What differs is how
centres are found:

- cells under no total have centre 0;
- cells of a region with sum 0 have rational centres in closed form, and so have tables whose margins are all kept, the
  tensor products of such sums: O(d) a draw, every decision about exact rationals;
- other blocks have a triangular factor of their Gram matrix in floats. Centres are what the floats come to, exactly
  that; the small difference between the factor's quadratic form and the lattice's is never negative (it is made so, and
  checked rigorously), and is a part of the acceptance.

So the law is exact in every case: whatever floats leave open is settled in ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from flint import arb

from keepsum.sampling.core.balls import ball, digits
from keepsum.sampling.core.driving import TASK_CELLS, Referee, State, in_parallel, ranges, run
from keepsum.sampling.core.geometric import WORD_BITS
from keepsum.sampling.core.kernels import (
    CELL,
    CENTRE_BOTTOM,
    CENTRE_TOP,
    JOB,
    PHASE,
    SHARE_BOTTOM,
    SHARE_TOP,
    WHICH,
)
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.gaussian.integers import (
    accept_near,
    family,
    gaussian_tables,
    log_return_chance,
    log_theta,
    log_theta_floats,
)
from keepsum.sampling.gaussian.integers_kernels import (
    DECIDE,
    WIDE,
    fill_free,
    fill_sums,
)

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
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
        own = variance * self._shares
        if not len(own) or own[0] > 3:
            return float(self._counts.sum()) * 1e-24
        return 1e-12 + float((self._counts * log_theta_floats(own)).sum()) * (1 + 1e-9)

    def referee(
        self,
        variance: Callable[[State], arb],
        chance: Callable[[State], arb],
        centre: Callable[[State], Any] | None = None,
    ) -> Referee:
        """Settles tables, one-dimensional acceptances, and acceptances of whole blocks."""

        def answer(state: State, uniform: LazyUniform) -> int:
            if state[PHASE] == DECIDE:
                return int(uniform.below(digits(lambda: chance(state).exp())))
            own = None if centre is None else centre(state)
            if own is None:
                where = Fraction(int(state[CENTRE_TOP]), int(state[CENTRE_BOTTOM]))
                share = Fraction(int(state[SHARE_TOP]), int(state[SHARE_BOTTOM]))
            else:
                where, share = own
            which, low_bits = int(state[WHICH]) & 255, int(state[WHICH]) >> 8
            return accept_near(state, which, low_bits, where, lambda: variance(state) * ball(share), uniform)

        return Referee(self._bits, lambda state: self._laws[int(state[WHICH]) & 255], answer)


def log_thetas(steps: Steps, variance: arb) -> tuple[arb, arb]:
    """The sums of the logarithms of the factors, at their centres and at 0."""
    there, centred = arb(0), arb(0)
    for centre, share in steps:
        own = variance * ball(share)
        there += log_theta(own, ball(centre))
        centred += log_theta(own, arb(0))
    return there, centred


class FreeGaussian(Blocks):
    """Independent discrete Gaussian noise in each cell.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-z^2 / 2 sigma^2) in each cell. ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, width: int, word_bits: int = WORD_BITS) -> None:
        super().__init__(word_bits, np.ones(1), width)
        self.width = self.dimension = width

    def fill(self, out: IntArray, variances: Variances, deciding: bool, rng: Rng, threads: int) -> Floats:
        """Fill ``out``, one row a draw."""
        flat = out.reshape(-1)

        def task(first: int, stream: Stream) -> None:
            def row(state: State) -> int:
                return (first + int(state[CELL])) // self.width

            referee = self.referee(lambda state: variances.exact(row(state)), lambda _: arb(0))
            arguments = (self._tables, variances.floats, self.width, first, min(first + TASK_CELLS, len(flat)), flat)
            run(fill_free, stream, referee, arguments)

        starts = range(0, len(flat), TASK_CELLS)
        in_parallel([lambda stream, f=first: task(f, stream) for first in starts], rng, threads)  # type: ignore[misc]
        if deciding:
            return np.zeros(0)
        narrow = variances.floats < WIDE
        thetas = np.zeros(len(out))
        thetas[narrow] = self.width * log_theta_floats(variances.floats[narrow])
        return thetas

    def log_weight(self, row: IntArray, variance: arb) -> arb:
        """The same factor for each cell."""
        return self.width * log_theta(variance, arb(0))


class SumsGaussian(Blocks):
    """Gaussian noise in regions whose sums are 0.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-|z|^2 / 2 sigma^2) on the vectors with these sums.
    ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, sizes: npt.ArrayLike, word_bits: int = WORD_BITS) -> None:
        self._sizes = np.asarray(sizes, dtype=np.int64)
        super().__init__(word_bits, *sum_shares(self._sizes))
        self._starts = np.cumsum(self._sizes) - self._sizes
        self.width = int(self._sizes.sum())
        self.dimension = self.width - len(self._sizes)

    def fill(self, out: IntArray, variances: Variances, deciding: bool, rng: Rng, threads: int) -> Floats:
        """Fill ``out``, one row a draw, the cells of the regions one after the other."""
        flat, count = out.reshape(-1), len(self._sizes)
        thetas = np.zeros(0 if deciding else len(out) * count)

        def task(first: int, last: int, stream: Stream) -> None:
            def job(state: State) -> tuple[int, int]:
                return divmod(first + int(state[JOB]), count)

            def variance(state: State) -> arb:
                return variances.exact(job(state)[0])

            def chance(state: State) -> arb:
                row, region = job(state)
                cells = out[row, self._starts[region] : self._starts[region] + self._sizes[region]]
                there, centred = log_thetas(sum_steps(cells, 0), variance(state))
                return there - centred

            arguments = (self._tables, variances.floats, self._sizes, self._starts, self.width, first, last, flat)
            run(fill_sums, stream, self.referee(variance, chance), (*arguments, deciding, thetas, np.zeros(3)))

        cuts = ranges(self._sizes, len(out))
        in_parallel([lambda stream, a=a, b=b: task(a, b, stream) for a, b in cuts], rng, threads)  # type: ignore[misc]
        return thetas.reshape(-1, count).sum(axis=1) if not deciding else thetas

    def log_weight(self, row: IntArray, variance: arb) -> arb:
        """Region by region."""
        total = arb(0)
        for start, size in zip(self._starts.tolist(), self._sizes.tolist(), strict=True):
            total += log_thetas(sum_steps(row[start : start + size], 0), variance)[0]
        return total


def sum_shares(sizes: IntArray) -> tuple[Floats, Floats]:
    """The shares (r - 1)/r of the cells of regions, and how many have each."""
    largest = int(sizes.max(initial=1))
    at_least = len(sizes) - np.cumsum(np.bincount(sizes, minlength=largest + 1))  # regions larger than r
    left = np.arange(2, largest + 1)
    return (left - 1) / left, at_least[left - 1].astype(np.float64)


def sum_steps(cells: IntArray, goal: int) -> Iterable[tuple[Fraction, Fraction]]:
    """Centre and share of each cell but the last, given those before and that all add up to ``goal``."""
    rest = goal
    for place, value in enumerate(cells[:-1].tolist()):
        left = len(cells) - place
        yield Fraction(rest, left), Fraction(left - 1, left)
        rest -= value


def sum_acceptance(size: int, variance: float) -> float:
    """The share of tries of a region that are accepted: its lattice's weight against the product of its coordinates'.

    The vectors with sum 0 weigh rho(Z)^n times the chance that n free cells add up to 0.
    """
    if variance >= WIDE:
        return 1.0
    left = np.arange(2, size + 1)
    own = variance * (left - 1) / left
    one = float(log_theta_floats(np.array([variance]))[0]) + math.log(2 * math.pi * variance) / 2
    each = log_theta_floats(own) + np.log(2 * math.pi * own) / 2
    # The differences are summed, not the terms: both sums are of the size of the region.
    return math.exp(min(0.0, log_return_chance(size, math.sqrt(variance)) + one + float((one - each).sum())))


class LatticeGaussian:
    """Gaussian noise of one width on some blocks, each accepted on its own.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-|z|^2 / 2 sigma^2) on the lattice. ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, part: Part, variance: Fraction) -> None:
        self._part, self._variance = part, variance
        self.width = part.width

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row a draw."""
        self._part.fill(out, Variances.constant(self._variance, len(out)), True, rng, threads)

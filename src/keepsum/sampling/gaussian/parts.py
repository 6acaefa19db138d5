"""Gaussian noise on the lattice of kept totals, exactly: the integers, and what all of its parts share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.balls import ball, digits, precision
from keepsum.sampling.core.driving import TASK_CELLS, Referee, equal_ranges, in_parallel
from keepsum.sampling.core.kernel_arguments import WORD_BITS, State, Task
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.core.tabulated import TabulatedLaw, pack
from keepsum.sampling.gaussian.kernel_arguments import DECIDE, GaussianTables

# The discrete Gaussian on the integers: one family of tables for every width and every centre.
#
# For a centre c and a width s, P(x) is proportional to exp(-(x - c)^2 / 2 s^2). With c within 1/2 of 0, propose x
# from a centred discrete Gaussian that is a little wider, sigma > s, and accept it with
#
#     exp(-(x - c)^2 / 2 s^2 + x^2 / 2 sigma^2 - c^2 / (2 (sigma^2 - s^2))),
#
# which is at most 1, because the exponent has its largest value at x = c sigma^2 / (sigma^2 - s^2), where it is 0.
# The proposals have tables of exact thresholds for a fixed family of widths, 2^(1/8) apart, made once for all uses.
# For s above 48 a proposal is 2^b h + l, h from a table and l a uniform number of b bits; l then counts as a part of
# the centre, and c in the last term is the largest that it can be.
#
# The acceptance is decided by a word and floats with an error bound, or else with ball arithmetic by
# ``accept_integer``.


# Widths of the family: from 1/2 in steps of 2^(1/8), in 1/256ths, to beyond 48 + 3/10.
GAP = 0.3  # how much wider a proposal is at least
WIDTHS = tuple(Fraction(round(128 * 2 ** (i / 8)), 256) for i in range(55))


class CentredGaussian(TabulatedLaw):
    """The law of k, where the k-th of 0, -1, 1, -2, 2, ... is drawn from a centred discrete Gaussian.

    Guarantee
    ---------
    Exact: thresholds by ball arithmetic, ties settled by ``resolve``. ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, sigma: Fraction, word_bits: int = WORD_BITS) -> None:
        self.sigma = sigma
        super().__init__(word_bits)

    def partial_weights(self, bits: int) -> tuple[list[arb], arb]:
        """The weights of k <= 0, k <= 1, ... as balls."""
        with precision(bits + 64):
            exponent = ball(-1 / (2 * self.sigma**2))
            total = arb(1)
            sums = [total]
            x = 0
            while True:
                x += 1
                weight = (exponent * x * x).exp()
                # Later weights fall at least by the ratio of the next two.
                rest = 2 * weight / (1 - (exponent * (2 * x + 1)).exp())
                if rest < total * arb(2) ** -bits:
                    return sums, total + rest * (arb(1) / 2 + arb(0, 0.5))  # between total and total + rest
                for _ in range(2):
                    total += weight
                    sums.append(total)


@lru_cache(maxsize=4)
def family(word_bits: int = WORD_BITS) -> tuple[CentredGaussian, ...]:
    """The laws of all widths."""
    return tuple(CentredGaussian(sigma, word_bits) for sigma in WIDTHS)


@lru_cache(maxsize=4)
def gaussian_tables(word_bits: int = WORD_BITS) -> GaussianTables:
    """The tables of all widths, as the kernels read them."""
    packed, table_starts, guide_starts = pack(family(word_bits), word_bits)
    return GaussianTables(
        square=np.array([float(sigma) ** 2 for sigma in WIDTHS]),
        largest=np.array([max(0.0, float(sigma) - GAP) ** 2 for sigma in WIDTHS]),
        packed=packed,
        table_start=np.array(table_starts, dtype=np.int64),
        guide_start=np.array(guide_starts, dtype=np.int64),
    )


def accept_integer(state: State, centre: Fraction, variance: Callable[[], arb], uniform: LazyUniform) -> int:
    """Whether a proposal is accepted, decided exactly.

    Parameters
    ----------
    state
        The kernel's state: the parts of the proposal, the table and the number of uniform bits that it came from.
    centre
        The centre less the whole number nearest to it.
    variance
        s^2 as a ball, at the working precision.
    uniform
        The number to compare with.
    """
    high, low, low_bits = int(state.high), int(state.low), int(state.low_bits)
    shifted = centre - low
    reach = abs(centre) if low_bits == 0 else Fraction(3, 4) + 2 ** (low_bits - 1)
    wide = (WIDTHS[state.table] * 2**low_bits) ** 2

    def chance() -> arb:
        narrow = variance()
        loss = ball((high - shifted) ** 2) / (2 * narrow) - ball(Fraction(high * high) / (2 * wide))
        return (-(loss + ball(reach**2) / (2 * (ball(wide) - narrow)))).exp()

    return int(uniform.below(digits(chance)))


def log_theta(variance: arb, centre: arb) -> arb:
    """log(sum over the integers x of exp(-(x - c)^2 / 2 s^2) / (sqrt(2 pi) s)), as a ball at the working precision.

    By Poisson summation it is log(1 + 2 sum over k > 0 of exp(-2 pi^2 s^2 k^2) cos(2 pi k c)).
    """
    pi = arb.pi()
    if variance > 0.1:
        decay = (-2 * pi * pi * variance).exp()
        total = arb(1)
        k = 0
        while True:
            k += 1
            term = decay ** (k * k)
            if term < arb(2) ** (-_working_bits()) or k > 10_000:
                # The rest is below the next term and a geometric series behind it.
                return (total + 4 * term * arb(0, 1)).log()
            total += 2 * term * (2 * pi * k * centre).cos()
    nearest = round(float(centre))
    total = arb(0)
    reach = 3 + math.ceil(math.sqrt(2 * float(variance) * _working_bits()))
    for x in range(nearest - reach, nearest + reach + 1):
        total += (-((x - centre) ** 2) / (2 * variance)).exp()
    beyond = (-(arb(reach - 1) ** 2) / (2 * variance)).exp() * 4
    return ((total + beyond * arb(0, 1)) / (2 * pi * variance).sqrt()).log()


def log_theta_floats(variances: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The same at centre 0, in floats."""
    logs = np.empty(len(variances))
    wide = variances >= 0.16
    q = np.exp(-2 * math.pi**2 * variances[wide])
    logs[wide] = np.log1p(2 * (q + q**4 + q**9 + q**16))
    narrow = variances[~wide]
    total = 1 + 2 * sum(np.exp(-x * x / (2 * narrow)) for x in range(1, 6))
    logs[~wide] = np.log(total / np.sqrt(2 * math.pi * narrow))
    return logs


def log_return_chance(count: int, sigma: float) -> float:
    """Ln of the chance that so many centred discrete Gaussians add up to 0, in floats, for estimates.

    The integral of the characteristic function's power, over the part where it is not negligible.
    """
    xs = np.arange(1, math.ceil(10 * sigma) + 6, dtype=np.float64)[:, None]
    weights = np.exp(-(xs**2) / (2 * sigma**2))
    whole = 1 + 2 * float(weights.sum())
    deviation = math.sqrt(2 * count * float((weights * xs**2).sum()) / whole)
    end = min(math.pi, 12 / max(deviation, 1e-9))
    nodes, shares = np.polynomial.legendre.leggauss(400)
    angles = end * (nodes + 1) / 2
    waves = (1 + 2 * (weights * np.cos(xs * angles)).sum(axis=0)) / whole
    return math.log(float((shares * np.abs(waves) ** count).sum()) * end / 2 / math.pi)


def _working_bits() -> int:
    return int(ctx.prec)


# Gaussian noise on the lattice of kept totals, exactly: what all of its parts share.
#
# A lattice Gaussian is drawn coordinate by coordinate, each a discrete Gaussian whose centre depends on those before,
# and a block of coordinates is accepted with the product of rho_s(Z - c)/rho_s(Z) (``native/gaussian_integers.c``).
# What differs is how centres are found:
#
# - cells under no total have centre 0;
# - cells of a region with sum 0 have rational centres in closed form, and so have tables whose margins are all kept,
#   the tensor products of such sums: O(d) per draw, every decision about exact rationals;
# - other blocks have a triangular factor of their Gram matrix in floats. Centres are what the floats come to, exactly
#   that; the small difference between the factor's quadratic form and the lattice's is never negative (it is made so,
#   and checked rigorously), and is a part of the acceptance.
#
# So each draw is exact: comparisons that floats leave open are decided in ball arithmetic. Narrow noise in many
# overlapping dimensions is hardly ever accepted; ``planning/selection/gaussian.py`` then uses other samplers, or
# none.


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


class SamplerPart(Protocol):
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

    def fill(self, out: IntArray, variances: Variances, deciding: bool, rng: Rng, threads: int) -> Floats:
        """Fill ``out``, one row per draw, the blocks of a draw one after the other."""
        jobs = len(out) * self._count
        log_weights = np.zeros(0 if deciding else jobs)

        def work(first: int, last: int, stream: Stream) -> None:
            self._run(Task(first, last, out.reshape(-1), log_weights), variances, deciding, stream)

        in_parallel(work, equal_ranges(jobs, max(1, TASK_CELLS // (8 * self.cells_per_try))), rng, threads)
        return log_weights if deciding else log_weights.reshape(-1, self._count).sum(axis=1)

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

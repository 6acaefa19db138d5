"""The law of the noise of a query: computed, bounded, or estimated from simulated draws; each says which it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from keepsum._arguments import check_number
from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.free_cells import NEGLIGIBLE
from keepsum.accuracy.piece_laws import PieceLaw, relevant
from keepsum.accuracy.simulation import estimated_margin, needed_draws, standard_error
from keepsum.accuracy.words import STANDARD_ERRORS, Basis
from keepsum.errors import InputError

SPARE = 1e-9  # floating-point sums err by far less; intervals cover their level with this much to spare
LEVEL_TOO_HIGH = f"Level must be at most {1 - 4 * SPARE} for a computed law. Choose a smaller one."
LARGEST_GRID, MOST_WORK = 2**23, 2 * 10**8  # numbers that a law may take: some seconds


class QueryLaw(Protocol):
    """The law of the noise of a query, which is symmetric around 0."""

    basis: Basis

    @property
    def variance(self) -> float:
        """The variance, or an upper bound; the mean is 0."""

    def reach(self, level: float) -> int:
        """A margin that holds the noise with at least this probability."""

    def quantile(self, p: float) -> int:
        """The smallest value that the noise does not exceed with at least this probability."""


@dataclass(frozen=True)
class ExactLaw:
    """A law that was computed: the probabilities of multiples of ``unit``, in floating point.

    Attributes
    ----------
    unit
        The noise is a multiple of it.
    masses
        The probabilities of 0, unit, 2 unit, ...; those of negative values are the same.
    variance
        The variance.
    """

    unit: int
    masses: Floats
    variance: float
    basis: Basis = "exact"

    @cached_property
    def _beyond(self) -> Floats:
        """The probability of more than k units, for k = 0, 1, ..."""
        tails = np.cumsum(self.masses[::-1])[::-1]
        return np.append(tails[1:], 0.0)

    def pmf(self, value: int) -> float:
        """The probability of a value."""
        steps, rest = divmod(abs(value), self.unit)
        return 0.0 if rest or steps >= len(self.masses) else float(self.masses[steps])

    def cdf(self, value: int) -> float:
        """The probability of at most this value."""
        if value < 0:
            return self._more(-value - 1)
        return 1.0 - self._more(value)

    def cdfs(self, values: IntArray) -> Floats:
        """The probabilities of at most each of these values."""
        magnitude = np.where(values < 0, -values - 1, values) // self.unit
        more = self._beyond[np.minimum(magnitude, len(self._beyond) - 1)]
        return np.asarray(np.where(values < 0, more, 1.0 - more))

    def _more(self, value: int) -> float:
        """The probability of more than a value of 0 or more."""
        return float(self._beyond[min(value // self.unit, len(self._beyond) - 1)])

    def reach(self, level: float) -> int:
        """The smallest margin that holds the noise with at least this probability."""
        return self._first(2 * self._beyond, 1 - level)

    def quantile(self, p: float) -> int:
        """The smallest value that the noise does not exceed with at least this probability."""
        if p > 0.5:
            return self._first(self._beyond, 1 - p)
        if p <= 2 * SPARE:
            raise InputError(f"Level must be at least {4 * SPARE} for a computed law. Choose a larger one.")
        # P(X <= -k) >= p, as P(X <= -k) = P(X > k - unit).
        enough = np.flatnonzero(self._beyond >= p + SPARE)
        return -self.unit * int(enough[-1] + 1) if len(enough) else 0

    def _first(self, tails: Floats, allowed: float) -> int:
        reached = np.flatnonzero(tails <= allowed - SPARE)
        if not len(reached) or allowed <= 2 * SPARE:
            raise InputError(LEVEL_TOO_HIGH)
        return self.unit * int(reached[0])


@dataclass(frozen=True, eq=False)
class BoundLaw:
    """A law of which only bounds are known: P(X >= x) <= E[exp(h X)] exp(-h x) for every h (Chernoff).

    Attributes
    ----------
    unit
        The noise is a multiple of it.
    pieces
        Its independent parts, each with how many there are.
    variance, variance_known
        The variance, or an upper bound if it is not known.
    """

    unit: int
    pieces: Sequence[tuple[PieceLaw, int]]
    variance: float
    variance_known: bool = True
    basis: Basis = "conservative"

    def reach(self, level: float) -> int:
        """A margin that holds the noise with at least this probability."""
        return self.reach_but_for(1 - level)

    def reach_but_for(self, allowed: float) -> int:
        """A margin that the noise is beyond with at most this probability, which may be far below rounding errors."""
        return self._beyond(allowed / 2)

    def quantile(self, p: float) -> int:
        """A value that is exceeded with at most 1 - p; for p up to 1/2, one that is fallen short of with at most p."""
        return self._beyond(1 - p) if p > 0.5 else -self._beyond(p)

    def _beyond(self, chance: float) -> int:
        """A value that is exceeded with at most this probability."""
        end = self.end(-math.log(chance))
        return max(0, math.ceil(end * (1 + 1e-9) / self.unit) - 1) * self.unit

    def end(self, fall: float) -> float:
        """A value that is reached with probability at most exp(-fall).

        If ln E[exp(h X)] is at most v h^2/2, as for Gaussian noise, the best h is (2 fall / v)^(1/2); where tails are
        exponential some around that of the variance are tried.
        """
        top = min(piece.largest_tilt for piece, _ in self.pieces)
        if math.isinf(top):
            return math.sqrt(4 * fall * float(self._moments(np.ones(1))[0]))
        tilts = math.sqrt(2 * fall / self.variance) * np.array([0.4, 0.6, 0.8, 1.0])
        tilts = np.concatenate([tilts, top * np.array([0.25, 0.4, 0.48, 0.9])])
        tilts = np.unique(np.minimum(tilts, 0.98 * top))
        return float(((self._moments(tilts) + fall) / tilts).min())

    def _moments(self, tilts: Floats) -> Floats:
        """The logarithm of E[exp(h X)]: as the noise has mean 0 it is never below 0, but may be rounded to that."""
        return np.maximum(sum(times * piece.log_moments(tilts) for piece, times in self.pieces), 0.0)


@dataclass(frozen=True, eq=False)
class EstimatedLaw:
    """A law of which a part was simulated: the noise is that part plus an independent one that was computed.

    Attributes
    ----------
    drawn
        The simulated part: a row for each draw, and a column for each of the queries that have this law.
    rest
        The law of the computed part; None if there is none.
    bound
        Makes a bound on the law, for levels for which these draws are too few; None if there is none.
    chain
        Whether draws are states of a chain, which may be correlated.
    """

    drawn: IntArray
    rest: ExactLaw | None = None
    bound: Callable[[], BoundLaw] | None = None
    chain: bool = False
    basis: Basis = "estimated"

    @property
    def draws(self) -> int:
        """The number of simulated draws."""
        return len(self.drawn)

    @cached_property
    def _squares(self) -> Floats:
        """The mean square of each draw."""
        return np.asarray((self.drawn.astype(np.float64) ** 2).mean(axis=1))

    @property
    def variance(self) -> float:
        """The mean square of the draws, with the variance of the computed part."""
        return float(self._squares.mean()) + (0.0 if self.rest is None else self.rest.variance)

    @property
    def variance_error(self) -> float:
        """The standard error of the variance."""
        return standard_error(self._squares, self.chain)

    def reach(self, level: float) -> int:
        """A margin that holds the noise with at least this probability, three standard errors allowed for."""
        return self.estimated(level)[0]

    def estimated(self, level: float) -> tuple[int, float]:
        """The margin, and the standard error of the probability to be beyond it; 0 where it is that of the bound."""
        found = None
        if self.rest is None:
            found = estimated_margin(np.abs(self.drawn), level, self.chain)
        elif not self._too_few(1 - level):
            margin = self._smallest(self.beyond, 1 - level)
            found = margin, self._error(self.beyond(margin), 1 - level)
        return (self._bounded(level).reach(level), 0.0) if found is None else found

    def beyond(self, margin: int) -> Floats:
        """For each draw, the probability to be beyond a margin."""
        if self.rest is None:
            return np.asarray((np.abs(self.drawn) > margin).mean(axis=1))
        return self._chances(margin) + self._chances(-margin - 1, below=True)

    def quantile(self, p: float) -> int:
        """As that of a bound, with three standard errors allowed for."""
        if self._too_few(min(p, 1 - p)):
            return self._bounded(max(p, 1 - p)).quantile(p)
        return self._smallest(self._chances, 1 - p) if p > 0.5 else -self._smallest(self._chances, p)

    def _bounded(self, level: float) -> BoundLaw:
        if self.bound is None:
            raise InputError(
                f"Level must be smaller for a law from {self.draws:,} simulated draws: {level:g} takes at least "
                f"{needed_draws(level, self.drawn.shape[1]):,}."
            )
        return self.bound()

    def _too_few(self, allowed: float) -> bool:
        return STANDARD_ERRORS * self._least(allowed) > allowed

    def _least(self, allowed: float) -> float:
        return math.sqrt(allowed * (1 - allowed) / self.drawn.size)

    def _chances(self, value: int, below: bool = False) -> Floats:
        """For each draw, the probability of more than a value; or of at most it."""
        rest = ExactLaw(1, np.ones(1), 0.0) if self.rest is None else self.rest
        at_most: Floats = rest.cdfs(value - self.drawn).mean(axis=1)
        return at_most if below else 1.0 - at_most

    def _smallest(self, chances: Callable[[int], Floats], allowed: float) -> int:
        low, high = -1, 1
        while not self._within(chances(high), allowed):
            low, high = high, 2 * high + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._within(chances(middle), allowed) else (middle, high)
        return high

    def _within(self, chances: Floats, allowed: float) -> bool:
        return float(chances.mean()) + STANDARD_ERRORS * self._error(chances, allowed) <= allowed

    def _error(self, chances: Floats, allowed: float) -> float:
        return max(self._least(allowed), standard_error(chances, self.chain))


def sum_law(pieces: list[tuple[PieceLaw, int]], unit: int) -> ExactLaw | BoundLaw:
    """The law of a sum of independent pieces: computed if it is not too wide for that, else bounded."""
    if not pieces:
        return ExactLaw(1, np.ones(1), 0.0)
    variance = sum(times * piece.variance for piece, times in pieces)
    bound = BoundLaw(unit, pieces, variance)
    reach = bound.end(NEGLIGIBLE) / unit
    if not 2 * reach + 4 <= LARGEST_GRID:
        return bound
    points = 2 ** math.ceil(math.log2(2 * reach + 4))
    where = relevant(pieces, points, unit)
    if where is None or sum(piece.work(len(where)) for piece, _ in pieces) > MOST_WORK:
        return bound
    product = np.zeros(points // 2 + 1)
    product[where] = 1.0
    for piece, times in pieces:
        product[where] *= piece.transform(where, points, unit) ** times
    masses = np.maximum(np.fft.irfft(product, points)[: points // 2], 0.0)
    return ExactLaw(unit, masses / (2 * masses.sum() - masses[0]), variance)


def check_level(level: float) -> float:
    """A level of an interval."""
    return check_number(level, "Level", 0, 1)

"""The law of the noise of a query: computed, bounded, or estimated from simulated draws; each says which it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from keepsum._arguments import check_number
from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.cell_noise import NEGLIGIBLE, CellLaw, turn_of
from keepsum.accuracy.queries import Piece, QueryWeights
from keepsum.accuracy.simulation import (
    STANDARD_ERRORS,
    Basis,
    estimated_margin,
    margin_before_rounding,
    needed_draws,
    smallest_margin,
    standard_error,
)
from keepsum.errors import InputError
from keepsum.lattice.structure import FORCED, Structure

# The law of the noise of one piece of a query: its variance, its transform, and a bound on its moments.
#
# Let phi be the characteristic function of the noise of a free cell, and M(h) = E[exp(h z)] its moments. Cells under
# no total are independent. The cells of a region are so given that their noise adds up to 0: with a weight w for each
# of its n cells (0 for most) and X the weighted sum,
#
#     E[cos(t X)] = mean over u of  prod of phi(w t + u)  /  mean over u of  phi(u)^n,
#
# where u runs over a turn. Means over L equally spaced u add what folds over, the probability of sums that are
# multiples of L, which is negligible. Few u matter, as phi(u)^m falls off fast for the m cells of weight 0, and few t:
# with s = sin(x/2)^2,
#
#     l1 Laplace  -ln phi(x) = ln(1 + c s),  c = 4 a/(1 - a)^2,
#     Gaussian    -ln phi(x) >= k s,  k = 2 variance  (Jacobi's product: each factor of phi is 1 - 4 r s/(1 + r)^2),
#
# and sin(x/2)^2 + sin(y/2)^2 >= 1 - |cos((x - y)/2)|. So m cells of one weight and m of another that differs by d
# have together at most exp(-m f(1 - |cos(d t/2)|)), f(s) = ln(1 + c s) or k s, whatever u is; the mean over u of what
# is left of the cells of weight 0 is at most that of phi(u)^(n/2).


FEW_BOUNDS = 4  # weights from which a bound on a transform is taken
LARGEST_TABLE = 2**24  # numbers that are looked up


class PieceLaw(Protocol):
    """The law of a piece, which is symmetric around 0."""

    @property
    def variance(self) -> float:
        """Its variance, or an upper bound."""

    @property
    def largest_tilt(self) -> float:
        """E[exp(h X)] is finite below this."""

    def log_moments(self, tilts: Floats) -> Floats:
        """Upper bounds on ln E[exp(h X)], infinite where there is none."""

    def least_fall(self, angles: Floats) -> Floats | None:
        """A lower bound on -ln |E[cos(t X)]|; None where only moments are known."""

    def work(self, angles: int) -> float:
        """How many numbers the transform at so many angles takes."""

    def transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """E[cos(t X)] at t = 2 pi k / (points unit) for these k; every value of X is a multiple of the unit."""


def turns(where: IntArray, points: int, unit: int) -> Floats:
    """The angles of a transform."""
    return np.asarray(where * (2 * math.pi / points / unit), dtype=np.float64)


def squares(piece: Piece) -> float:
    """The squared length of a piece, less that of its mean over the region, which has no noise."""
    total = sum(n * w * w for w, n in piece.classes)
    mean = sum(n * w for w, n in piece.classes)
    return float(total) if piece.size == 0 else float(total * piece.size - mean * mean) / piece.size


@dataclass(frozen=True)
class FreePiece:
    """A cell under no total, with a weight."""

    piece: Piece
    cell: CellLaw

    @property
    def _weight(self) -> int:
        return self.piece.classes[0][0]

    @property
    def variance(self) -> float:
        """Its variance."""
        return self._weight**2 * self.cell.variance

    @property
    def largest_tilt(self) -> float:
        """E[exp(h X)] is finite below this."""
        return self.cell.largest_tilt / abs(self._weight)

    def log_moments(self, tilts: Floats) -> Floats:
        """Upper bounds on ln E[exp(h X)]."""
        return self.cell.log_moment(self._weight * tilts)

    def least_fall(self, angles: Floats) -> Floats | None:
        """-ln |E[cos(t X)]|, at least."""
        return self.cell.least_fall(np.sin(self._weight * angles / 2) ** 2)

    def work(self, angles: int) -> int:
        """How many numbers the transform takes."""
        return angles

    def transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """E[cos(t X)]."""
        return np.asarray(np.exp(-self.cell.fall(self._weight * turns(where, points, unit))))


@dataclass(frozen=True)
class RegionPiece:
    """Cells of a region whose noise adds up to 0, with weights."""

    piece: Piece
    cell: CellLaw

    @cached_property
    def _weights(self) -> Floats:
        """The weights of all cells, that of most cells, 0, first."""
        return np.array([0, *(w for w, _ in self.piece.classes)], dtype=np.float64)

    @cached_property
    def _counts(self) -> Floats:
        counts = [n for _, n in self.piece.classes]
        return np.array([self.piece.size - sum(counts), *counts], dtype=np.float64)

    @cached_property
    def variance(self) -> float:
        """Exchangeable cells whose sum is 0 have covariance -v/(n - 1)."""
        n = self.piece.size
        return self.cell.variance_in(n) * squares(self.piece) * n / (n - 1)

    @property
    def largest_tilt(self) -> float:
        """All weights may be shifted alike: what counts is half their range."""
        return 2 * self.cell.largest_tilt / float(self._weights.max() - self._weights.min())

    def log_moments(self, tilts: Floats) -> Floats:
        """Upper bounds on ln E[exp(h X)]: the mean over u of the product of M(w h + k + i u), at a good shift k.

        A shift is lost in a sum that is 0. For real h what folds over is positive, so that means bound from above.
        """
        limit = self.cell.largest_tilt
        if math.isinf(limit):
            return self.cell.log_moment(tilts) * squares(self.piece)
        at = self._weights[:, None, None] * tilts[:, None]  # by weight, tilt, and shift or angle
        low, high = -limit - at.min(axis=0), limit - at.max(axis=0)
        shifts = low + (high - low) * np.arange(1, 32) / 32
        with np.errstate(invalid="ignore"):
            real = (self._counts[:, None, None] * self.cell.log_moment(at + shifts)).sum(axis=0)
        best = np.argmin(real, axis=1)
        rows = np.arange(len(tilts))
        turned = self.cell.turned_moment(at + shifts[rows, best][:, None], self._turn[0])
        means = np.exp((self._counts[:, None, None] * turned).sum(axis=0)).real.sum(axis=1) / self._turn[1]
        return np.asarray(real[rows, best] + np.log(np.maximum(means, 0) + math.exp(-NEGLIGIBLE)) - self._log_zero)

    @cached_property
    def _turn(self) -> tuple[Floats, float]:
        return turn_of(self.cell, self.piece.size, int(self._counts[0]))

    @cached_property
    def _log_zero(self) -> float:
        """The logarithm of the probability that the noise of all cells adds up to 0."""
        angles, points = self._turn
        return math.log(float(np.exp(-self.piece.size * self.cell.fall(angles)).sum()) / points)

    def least_fall(self, angles: Floats) -> Floats | None:
        """-ln |E[cos(t X)]|, at least: half of the cells of weight 0 are paired, the others bound the mean over u."""
        half = int(self._counts[0]) // 2
        bounds = [
            min(m, half) * self.cell.least_fall(1 - np.abs(np.cos(w * angles / 2)))
            for w, m in sorted(self.piece.classes, key=lambda item: -item[1])[:FEW_BOUNDS]
        ]
        left = int(self._counts[0]) - half
        turn, whole = turn_of(self.cell, left, left)
        others = math.log(float(np.exp(-left * self.cell.fall(turn)).sum()) / whole + math.exp(-NEGLIGIBLE))
        return np.asarray(np.max(bounds, axis=0) + self._log_zero - others)

    def work(self, angles: int) -> float:
        """How many numbers the transform takes, by whichever way is shorter."""
        return min(self._listed, angles * len(self._turn[0]) * len(self.piece.classes))

    def transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """E[cos(t X)]."""
        if self._listed <= len(where) * len(self._turn[0]) * len(self.piece.classes):
            return self._listed_transform(points, unit)[where]
        return self._turned_transform(where, points, unit)

    @cached_property
    def _listed(self) -> float:
        """How many values the sums over cells of one weight have together, if there are one or two weights."""
        if len(self.piece.classes) > 2:
            return math.inf
        return math.prod(2 * math.ceil(self.cell.span(n)) + 1 for _, n in self.piece.classes)

    def _listed_transform(self, points: int, unit: int) -> Floats:
        """From the laws of all sums over the cells of each weight, and of minus their sum over those of weight 0."""
        sums = [np.arange(-s, s + 1) for s in (math.ceil(self.cell.span(n)) for _, n in self.piece.classes)]
        grids = np.meshgrid(*sums, indexing="ij")
        probabilities = self._sum_probabilities(int(self._counts[0]), np.abs(np.sum(grids, axis=0)))
        values = np.zeros(probabilities.shape, dtype=np.int64)
        for grid, (weight, n) in zip(grids, self.piece.classes, strict=True):
            probabilities = probabilities * self._sum_probabilities(n, np.abs(grid))
            values += weight * grid
        folded = np.bincount((values // unit % points).ravel(), weights=probabilities.ravel(), minlength=points)
        return np.asarray(np.fft.rfft(folded / folded.sum()).real)

    def _sum_probabilities(self, cells: int, sizes: IntArray) -> Floats:
        """The probabilities that the noise of so many free cells adds up to these numbers of 0 or more."""
        turn, whole = turn_of(self.cell, cells, cells)
        points, longest = int(whole), int(sizes.max())
        if longest * len(turn) < points:  # many cells, of whose sum only the middle is asked for
            law = _cosine_sums(np.exp(-cells * self.cell.fall(turn)) / whole, turn, longest)
        else:
            angles = np.arange(points // 2 + 1, dtype=np.float64) * (2 * math.pi / points)
            law = np.fft.irfft(np.exp(-cells * self.cell.fall(angles)), points)[: points // 2]
        return np.where(sizes < len(law), np.maximum(law, 0.0)[np.minimum(sizes, len(law) - 1)], 0.0)

    def _turned_transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """From the u that matter; -ln phi is looked up, as all angles are multiples of the smallest."""
        turn, whole = self._turn
        size = points * unit
        if size % int(whole) or size > min(LARGEST_TABLE, len(where) * len(turn)):
            angles = turns(where, points, unit)
            return self._mean_over_turn(angles, lambda some, weight: self.cell.fall(weight * some + turn))
        falls = self.cell.fall(turns(np.arange(size), size, 1))
        steps = np.rint(turn * (size / (2 * math.pi))).astype(np.int64)
        return self._mean_over_turn(where, lambda some, weight: falls[(weight * some + steps) % size])

    def _mean_over_turn(self, places: IntArray | Floats, fall: Callable[[Any, int], Floats]) -> Floats:
        """The mean over u for each place, some places at a time; ``fall(some, w)`` is -ln phi(w t + u) at them."""
        turn, whole = self._turn
        at_zero = self._counts[0] * self.cell.fall(turn)
        result = np.empty(len(places))
        batch = max(1, 2**18 // len(turn))
        for start in range(0, len(places), batch):
            some = places[start : start + batch, None]
            total = at_zero + sum(n * fall(some, w) for w, n in self.piece.classes)
            result[start : start + batch] = np.exp(-total).sum(axis=1)
        return np.asarray(result / whole * math.exp(-self._log_zero))


def _cosine_sums(heights: Floats, angles: Floats, longest: int) -> Floats:
    """The sums of heights times cos(k angle), for k up to ``longest``, a few k at a time."""
    batches = np.array_split(np.arange(longest + 1), 1 + longest * len(angles) // 2**18)
    return np.concatenate([np.cos(np.outer(batch, angles)) @ heights for batch in batches])


def piece_law(piece: Piece, cell: CellLaw) -> PieceLaw:
    """The law of a piece."""
    return FreePiece(piece, cell) if piece.size == 0 else RegionPiece(piece, cell)


def relevant(pieces: list[tuple[PieceLaw, int]], points: int, unit: int) -> IntArray | None:
    """The k for which E[cos(2 pi k X / (points unit))] is not negligible; None where only moments are known."""
    angles: Floats = np.arange(points // 2 + 1, dtype=np.float64) * (2 * math.pi / points / unit)
    fall = np.zeros(len(angles))
    for piece, times in pieces:
        least = piece.least_fall(angles)
        if least is None:
            return None
        fall += times * np.maximum(least, 0.0)
    return np.flatnonzero(fall <= NEGLIGIBLE + math.log(points))


SPARE = 1e-9  # floating-point sums err by far less; intervals cover their level with this much to spare
LEVEL_TOO_HIGH = f"Level must be at most {1 - 4 * SPARE} for a computed law. Choose a smaller one."
LARGEST_GRID, MOST_WORK = 2**23, 2 * 10**8  # numbers that a law may take: some seconds


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

    def _beyond(self, probability: float) -> int:
        """A value that is exceeded with at most this probability."""
        end = self.end(-math.log(probability))
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

    def before_rounding(self, level: float) -> float | None:
        """The margin as if noise were not whole numbers; None where it is that of the bound, or partly computed."""
        margin, error = self.estimated(level)
        if self.rest is not None or not error:
            return None
        return margin_before_rounding(np.abs(self.drawn), level, margin, self.chain)

    def beyond(self, margin: int) -> Floats:
        """For each draw, the probability to be beyond a margin."""
        if self.rest is None:
            return np.asarray((np.abs(self.drawn) > margin).mean(axis=1))
        return self._probabilities(margin) + self._probabilities(-margin - 1, below=True)

    def quantile(self, p: float) -> int:
        """As that of a bound, with three standard errors allowed for."""
        if self._too_few(min(p, 1 - p)):
            return self._bounded(max(p, 1 - p)).quantile(p)
        return self._smallest(self._probabilities, 1 - p) if p > 0.5 else -self._smallest(self._probabilities, p)

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

    def _probabilities(self, value: int, below: bool = False) -> Floats:
        """For each draw, the probability of more than a value; or of at most it."""
        rest = ExactLaw(1, np.ones(1), 0.0) if self.rest is None else self.rest
        at_most: Floats = rest.cdfs(value - self.drawn).mean(axis=1)
        return at_most if below else 1.0 - at_most

    def _smallest(self, probabilities: Callable[[int], Floats], allowed: float) -> int:
        return smallest_margin(lambda margin: self._within(probabilities(margin), allowed))

    def _within(self, probabilities: Floats, allowed: float) -> bool:
        return float(probabilities.mean()) + STANDARD_ERRORS * self._error(probabilities, allowed) <= allowed

    def _error(self, probabilities: Floats, allowed: float) -> float:
        return max(self._least(allowed), standard_error(probabilities, self.chain))


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


# Bounds on the noise of queries under overlapping totals, without drawing any: free noise has larger moments.
#
# Write f(x) = rho(M + x) / rho(M) for a lattice M, rho the sum of exp(-|v|^2/2) over all v. Then (Regev and
# Stephens-Davidowitz, An inequality for Gaussians on lattices, 2017)
#
#     f(x)^2 f(y)^2 <= f(x + y) f(x - y):
#
# with (u, v) -> (u + v, u - v), rho(M + x) rho(M + y) is the sum of g_c(x + y) g_c(x - y) over the cosets c of 2M in
# M, where g_c(w) sums exp(-|v|^2/4) over 2M + c + w; Cauchy and Schwarz bound its square by the sums of g_c(x + y)^2
# and of g_c(x - y)^2, which are rho(M + x + y) rho(M) and rho(M + x - y) rho(M).
#
# If M lies in a lattice L, rho(L + x) is the sum of rho(M + x + c) over cosets c and -c; with f(x + c) + f(x - c) >=
# 2 f(x) f(c) it follows that rho(M + x)/rho(M) <= rho(L + x)/rho(L). As rho(L + x)/rho(L) is exp(-|x|^2/2) E[exp(<x,
# z>)] for Gaussian noise z on L, **the moments E[exp(<h, z>)] of Gaussian noise are at most those on any larger
# lattice**, for any scale of each coordinate: at most those of independent cells, and so are variances.
#
# l1 Laplace noise is Gaussian noise with independent scales s_i, their law weighted by rho_s(L). Relative to
# independent cells that weight is g(s) = rho_s(L)/rho_s(Z^n), which falls with every s_i, as d ln rho_s / d(-1/2
# s_i^2) is the second moment of z_i. The moments of independent cells rise with every s_i, so their mean under g is
# at most that without it (Harris). So **E[exp(<h, z>)] <= product of M(h_i)**, M the moments of a free cell, also for
# l1 Laplace noise.
#
# Noise with a focus is such noise on a longer lattice: with a cell y_g = z(g) for each focused total g, which has
# weights of its own. So the moments of queries over its other cells are at most those of free cells as well.
#
# Any combination of kept totals may be taken from a query, whose noise stays the same; least squares find a good one.


ROOM = 1 + 1e-9  # for rounding
NEGLIGIBLE_WEIGHT = 1e-9  # relative to the largest: a solver's rounding


@dataclass(frozen=True, eq=False)
class DominatedPiece:
    """The noise of a query under overlapping totals: its moments are at most those of free cells with these weights."""

    cell: CellLaw
    weights: Floats
    counts: Floats

    @classmethod
    def of_free_cells(cls, cell: CellLaw, number: int) -> DominatedPiece:
        """The sum of so many cells, as if they were free."""
        return cls(cell, np.ones(1), np.array([float(number)]))

    @property
    def largest_tilt(self) -> float:
        """Moments are finite below this."""
        limit = self.cell.largest_tilt
        return limit if math.isinf(limit) else limit / float(np.abs(self.weights).max())

    @property
    def variance(self) -> float:
        """An upper bound on the variance."""
        return self.cell.variance * float((self.counts * self.weights**2).sum()) * ROOM

    def log_moments(self, tilts: Floats) -> Floats:
        """Upper bounds on ln E[exp(h X)]."""
        each = [float((self.counts * self.cell.log_moment(tilt * self.weights)).sum()) for tilt in tilts.tolist()]
        return np.array(each) * ROOM

    def least_fall(self, angles: Floats) -> Floats | None:
        """None: only moments are known."""
        return None

    def work(self, angles: int) -> int:
        """Nothing is computed."""
        return 0

    def transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """Not known."""
        raise AssertionError("only moments are known")


def dominated_piece(query: QueryWeights, structure: Structure, cell: CellLaw) -> DominatedPiece:
    """The bound for a query, less the combination of kept totals in each block that leaves the shortest query.

    ``structure`` is that of the kept totals: cells under a focus are in regions with a kept sum, or under no total.
    """
    from scipy.sparse.linalg import lsqr  # which no release needs

    vector = np.zeros(query.size)
    vector[query.cells] = query.weights
    parts = []
    touched = np.unique(structure.part[structure.region[query.cells]])
    for number in touched.tolist():
        if number < 0:
            continue
        block = structure.blocks[number]
        place = np.full(len(structure.sizes), -1, dtype=np.int64)
        place[block.regions] = np.arange(len(block.regions))
        cells = np.flatnonzero(structure.part[structure.region] == number)
        rows = block.system.matrix.tocsc()[:, place[structure.region[cells]]].astype(np.float64)
        found = lsqr(rows.T, vector[cells], atol=1e-12, btol=1e-12, iter_lim=20 * sum(rows.shape))[0]
        parts.append(vector[cells] - rows.T @ found)
    for cells in _regions(query.cells, structure):
        forced = structure.part[structure.region[cells[0]]] == FORCED
        parts.append(vector[cells] - (vector[cells].mean() if forced else 0.0))
    left = np.concatenate(parts)
    # Rounded away from 0, so that bounds still hold, to weights of which there are few.
    grid = float(np.abs(left).max()) * NEGLIGIBLE_WEIGHT
    sizes, counts = np.unique(np.ceil(np.abs(left) / grid), return_counts=True)
    return DominatedPiece(cell, sizes * grid, counts.astype(np.float64))


def _regions(cells: IntArray, structure: Structure) -> Iterator[IntArray]:
    """All cells of each region outside of blocks that a query touches."""
    touched = np.unique(structure.region[cells])
    for region in touched[structure.part[touched] < 0].tolist():
        yield structure.cells(region)

"""At which frequencies the characteristic functions of a node are kept, and these functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.l1.splitting.weights import Weights, beyond_tables, mirrored

NEGLIGIBLE = 1e-10  # of B: what frequencies that are not kept, and tails, come to for ordinary sums: as many ties
GROWTHS = np.array([1.0, 0.7, 0.5, 0.35])  # rates of moments that are tried
RARE = 1e-9  # of sums, relative to the most common: they are left out of means
FEW = 32  # frequencies that are all kept, if there are no more
SHARE_ROOM = 1e-13  # what shares may add up to less than 1
SMALLEST_SHARE = 1e-3  # of a row, relative to the mean
SPAN = 3.2  # blocks of frequencies are equal parts of so many standard deviations; the last one goes on to the end


@dataclass(frozen=True, eq=False)
class Branch:
    """The laws of a kind of row at a node.

    Attributes
    ----------
    left, right
        The weights of its children.
    whole
        F, their convolution.
    reach
        How far parts u are followed, at most as far as the left child's weights.
    """

    left: Weights
    right: Weights
    whole: Weights
    reach: int

    @property
    def scale(self) -> float:
        """What products of the children's weights are to be multiplied with to add up to F."""
        return 2.0 ** (self.left.exponent + self.right.exponent - self.whole.exponent)

    @property
    def sums(self) -> Floats:
        """The u that the tables cover."""
        return np.arange(-self.reach, self.reach + 1, dtype=np.float64)

    def joint(self, first: int, last: int) -> Floats:
        """W_L(u) W_R(y - u) for y = first, ..., last - 1 and u = -reach, ..., reach."""
        reach, highest = self.reach, last - 1
        v = np.arange(-reach - highest, reach + 1)  # u - y
        shifted = np.zeros(len(v))
        inside = np.abs(v) <= self.right.reach
        shifted[inside] = self.right.values[np.abs(v[inside])]
        parts = mirrored(self.left.values[: reach + 1])
        return parts * sliding_window_view(shifted, len(parts))[: last - first][::-1]

    def laws(self, first: int, last: int) -> Floats:
        """The chances of u given y, for the same y and u."""
        return self.joint(first, last) * (self.scale / self.whole.values[first:last, None])

    def raised(self) -> Branch:
        """The same with upper bounds on the children's weights, and F as it is."""
        return replace(self, left=self.left.raised(), right=self.right.raised())


@dataclass(frozen=True, eq=False)
class Typical:
    """Some sums y, their shares, their laws, and upper bounds on these."""

    sums: IntArray
    shares: Floats
    laws: Floats
    raised: Floats


@dataclass(frozen=True, eq=False)
class Frequencies:
    """At which frequencies 2 pi k/G a node's characteristic functions are kept, k = 0, 1, ...

    Attributes
    ----------
    points
        G.
    measure
        The weight of each k in the mean over all G frequencies, -k included.
    few
        How many of them the sum over all rows needs; more are kept for the sums over a part of the rows.
    growth
        s: tails are bounded by moments of e^(s|u - centre * y|).
    centre
        About the part of y that u is.
    block
        The block of each k up to G/2, those that are not kept included.
    shares
        For each law of rows the inverse 1/p of the exponent of its norms; over all rows these add up to at most 1.
    """

    points: int
    measure: Floats
    few: int
    growth: float
    centre: float
    block: IntArray
    shares: Floats

    @property
    def raised_shares(self) -> Floats:
        """Shares that add up to at least 1 over all rows, and hardly more."""
        return self.shares * (1 + 4 * SHARE_ROOM)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return int(self.block.max()) + 1


def frequencies_of(
    bases: Sequence[tuple[Branch, ...]],
    counts: Sequence[int],
    rests: Sequence[Weights],
    epsilon: float,
    blocks: int,
    parts: int = 1,
) -> Frequencies:
    """G large enough that a sum beyond G is negligible, and as many frequencies as matter, for ordinary sums.

    What is ordinary is a guess, from some bases and the weights of the rest of each row: all of a row adds up to 0.
    Bounds for the sums at hand are computed when a table is drawn. ``parts`` is how many times as many rows there are
    as in the part of them that is solved for.
    """
    rows = sum(counts)
    chances = [[_ordinary(branch.whole, rest) for branch, rest in zip(base, rests, strict=True)] for base in bases]
    moments = [
        [_moments(branch, masses) for branch, masses in zip(*pair, strict=True)]
        for pair in zip(bases, chances, strict=True)
    ]
    typical = [
        [_typical(branch, masses) for branch, masses in zip(*pair, strict=True)]
        for pair in zip(bases, chances, strict=True)
    ]
    centre = (
        float(np.mean([sum(count * slope for (slope, _), count in zip(base, counts, strict=True)) for base in moments]))
        / rows
    )
    spreads = [
        math.sqrt(sum(count * variance for (_, variance), count in zip(base, counts, strict=True))) for base in moments
    ]
    variances = np.mean([[variance for _, variance in base] for base in moments], axis=0)
    spread = max(spreads)
    points = 7 * spread + 12 / epsilon + 8
    most = 600 / max(branch.left.reach for branches in bases for branch in branches)  # so that exponentials are floats
    kept = 0
    while not kept:
        g = quick_length(math.ceil(points))
        points *= 1.25
        measure = full_measure(g)
        products = [_ordinary_product(base, ys, counts, g) for base, ys in zip(bases, typical, strict=True)]
        behind = [np.cumsum((measure * product)[::-1])[::-1] for product in products]
        limits = [math.log(NEGLIGIBLE * part[0]) for part in behind]
        for growth in min(g / max(spread, 1e-9) ** 2, 1.25 * epsilon, most) * GROWTHS:
            tails = [
                _ordinary_tail(base, ys, counts, g, growth, centre) for base, ys in zip(bases, typical, strict=True)
            ]
            if all(tail < limit for tail, limit in zip(tails, limits, strict=True)):
                kept = max(_mattering(measure, product, 1) for product in products)
                more = max(_mattering(measure, product, parts) for product in products)
                break
    width = min(np.pi, SPAN / max(min(spreads), 1e-9)) / blocks
    block = np.minimum((2 * np.pi / g * np.arange(g // 2 + 1) / width).astype(np.int64), blocks - 1)
    block = np.unique(block, return_inverse=True)[1]
    return Frequencies(g, measure[:more], kept, growth, centre, block, _shares(variances, counts))


def _mattering(measure: Floats, product: Floats, parts: int) -> int:
    """How many frequencies are not negligible for a part of the rows, whose product is that of all to the power 1/n."""
    if len(measure) <= FEW:
        return len(measure)
    behind = np.cumsum((measure * product ** (1 / parts))[::-1])[::-1]
    return int(np.flatnonzero(behind > NEGLIGIBLE * behind[0]).max()) + 1


def _shares(variances: Floats, counts: Sequence[int]) -> Floats:
    """In proportion to the variances of parts: then Hölder's inequality is an equality for Gaussian laws.

    Rows whose parts hardly vary have no share, and number t = 1.
    """
    multiplicity = np.array(counts)
    if not variances.any():
        variances = np.ones(len(variances))
    total = float(variances @ multiplicity)
    variances = np.where(variances * multiplicity.sum() < SMALLEST_SHARE * total, 0.0, variances)
    return variances / float(variances @ multiplicity) * (1 - SHARE_ROOM)


def _ordinary_product(branches: tuple[Branch, ...], typical: list[Typical], counts: Sequence[int], g: int) -> Floats:
    """The product of all |phi|, for ordinary sums."""
    log_product = np.zeros(g // 2 + 1)
    for some, count in zip(typical, counts, strict=True):
        log_product += count * np.log(some.shares @ np.abs(transforms(some.laws, g)) + 1e-300)
    return np.exp(log_product)


def _ordinary_tail(
    branches: tuple[Branch, ...], typical: list[Typical], counts: Sequence[int], g: int, growth: float, centre: float
) -> float:
    """The logarithm of the bound on the chance of a sum beyond G, for ordinary sums."""
    log_tail = math.log(2) - growth * g
    for branch, some, count in zip(branches, typical, counts, strict=True):
        logs = np.log(some.shares) + log_growth(branch, some.sums, some.raised, growth, centre)
        log_tail += count * float(np.logaddexp.reduce(logs))
    return log_tail


def log_growth(branch: Branch, y: IntArray, laws: Floats, growth: float, centre: float) -> Floats:
    """The logarithm of a bound on the moments of e^(s(u - centre y)) and of e^(-s(u - centre y)), for some y.

    ``laws`` are upper bounds on their laws: errors of far weights count e^(s|u|) times.
    """
    shift = growth * centre * y
    inverse = branch.scale / branch.whole.values[y]
    beyond = beyond_tables(branch.left, branch.right, y, growth, branch.reach) * inverse
    higher = 1 + 2 * branch.whole.errors[y] / branch.whole.values[y]
    moments = [laws @ np.exp(sign * growth * branch.sums) * np.exp(-sign * shift) for sign in (1, -1)]
    with np.errstate(over="ignore"):
        bound: Floats = (np.maximum(*moments) + beyond * np.exp(np.abs(shift))) * higher * (1 + 1e-9)
    return np.log(bound)


def _ordinary(whole: Weights, rest: Weights) -> Floats:
    """The chances of |y| = 0, 1, ... below a node, for one row alone: F times the weights of the rest of the row."""
    masses: Floats = np.zeros(len(whole.values))
    count = min(len(masses), len(rest.values))
    masses[:count] = whole.values[:count] * rest.values[:count]
    masses[1:] *= 2
    masses /= masses.sum()
    return masses


def _moments(branch: Branch, masses: Floats) -> tuple[float, float]:
    """The slope of the mean of u in y, and the mean of its variance, for these chances of |y|."""
    left, right, whole = branch.left, branch.right, branch.whole
    u, y = np.arange(-left.reach, left.reach + 1), np.arange(whole.reach + 1)
    first, second = (_quickly_convolved(left.two_sided() * u**k, right, whole.reach) * branch.scale for k in (1, 2))
    matters = masses > RARE * masses.max()
    wholes = np.where(matters, whole.values, 1.0)
    means, squares = (np.where(matters, part / wholes, 0.0) for part in (first, second))
    spread = (masses * y**2).sum()
    slope = float((masses * means * y).sum() / spread) if spread > 0 else 0.5
    return slope, max(float((masses * (squares - means**2)).sum() / masses.sum()), 0.0)


def _quickly_convolved(left: Floats, right: Weights, reach: int) -> Floats:
    """A convolution for y = 0 to ``reach``, by Fourier transforms: good for means, not for single values."""
    start = len(left) // 2 + right.reach
    length = quick_length(max(start + reach + 1, len(left) + 2 * right.reach))
    whole: Floats = np.fft.irfft(np.fft.rfft(left, length) * np.fft.rfft(right.two_sided(), length), length)
    return whole[start : start + reach + 1]


def _typical(branch: Branch, masses: Floats) -> Typical:
    """Some y, for guesses."""
    upto = np.cumsum(masses)
    quantiles = np.concatenate([np.arange(0.5, 16) / 16, 1 - 0.5 ** np.arange(6, 14)])  # also rare ones: rows are many
    ys = np.unique(np.searchsorted(upto, quantiles).clip(0, len(masses) - 1))
    edges = np.concatenate([[0.0], (upto[ys[:-1]] + upto[ys[1:] - 1]) / 2, [1.0]])
    laws, raised = (np.concatenate([one.laws(y, y + 1) for y in ys.tolist()]) for one in (branch, branch.raised()))
    return Typical(ys, np.diff(edges), laws, raised)


def transforms(laws: Floats, points: int) -> npt.NDArray[np.complex128]:
    """The discrete Fourier transform of each row, wrapped around modulo ``points``."""
    width = laws.shape[1]
    if width > points:
        padded = np.zeros((len(laws), -(-width // points) * points))
        padded[:, :width] = laws
        laws = padded.reshape(len(laws), -1, points).sum(axis=1)
    transformed: npt.NDArray[np.complex128] = np.fft.rfft(laws, n=points, axis=1)
    return transformed


def quick_length(least: int) -> int:
    """The smallest length from ``least`` on with no prime factor above 5, for which transforms are quick.

    It is ``scipy.fft.next_fast_len(least, real=True)``, without the tenth of a second that importing it takes.

    >>> quick_length(7), quick_length(121), quick_length(1)
    (8, 125, 1)
    """
    length = least
    while _without_small_factors(length) > 1:
        length += 1
    return length


def _without_small_factors(number: int) -> int:
    for prime in (2, 3, 5):
        while number % prime == 0:
            number //= prime
    return number


def full_measure(points: int) -> Floats:
    """The weights of k = 0, ..., points // 2 in the mean over all frequencies."""
    measure = np.full(points // 2 + 1, 2.0 / points)
    measure[0] = 1.0 / points
    if points % 2 == 0:
        measure[-1] = 1.0 / points
    return measure

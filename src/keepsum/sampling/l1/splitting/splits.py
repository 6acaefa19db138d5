"""How the sum below a node splits between its children: chances, peaks, the numbers t, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.l1.splitting.weights import ULP, RowWeights, beyond_tables, mirrored

# At which frequencies the characteristic functions of a node are kept, and these functions.


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

    left: RowWeights
    right: RowWeights
    whole: RowWeights
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
    rests: Sequence[RowWeights],
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


def _ordinary(whole: RowWeights, rest: RowWeights) -> Floats:
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


def _quickly_convolved(left: Floats, right: RowWeights, reach: int) -> Floats:
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


# How the sum below a node splits between its children: chances, peaks, and the numbers t.
#
# Given y, the sum u below the left child has chance W_L(u) W_R(y - u) / F(y). Let phi be the characteristic function
# of this law, and give each row an exponent p such that the 1/p of all rows add up to 1. Then t(y) is at least
#
#     ((1/G) sum over k of |phi(2 pi k/G)|^p)^(1/p),
#
# so that the chance B of a sum 0 over all rows is at most the product of their t: B is at most the chance of a sum
# that is 0 modulo G, which is the mean of the product of all phi over the G frequencies, and Hölder's inequality
# bounds it by the product of norms. This holds for every G. The t are floats, rounded up, which define the proposal
# exactly. With blocks of frequencies there is one number for each, and B is at most the sum of their products.


CHUNK = 2**21  # entries of a table that are worked on at a time
PEAK_ROOM = 1.001  # peaks are this much higher than they need be; their errors are at most half of that
FFT_ERROR = 1e-11  # thousands of times what a transform of a law loses
ABOVE = 1 + 1e-12  # for the rounding of powers, roots and exponentials in upper bounds
SMALLEST = 1e-250  # of F: below, and where a row has no cell, parts are left to the referee
POWERLESS = 1e-30  # what frequencies where every |phi|^p is below this come to at most, all together


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """How a sum y = 0, 1, ... splits; the arrays are those of ``LawTables``, one place for each y."""

    slack: Floats
    inverse: Floats
    peak: Floats
    peak_chance: Floats
    numbers: Floats
    transform: Floats
    transform_imaginary: Floats
    transform_error: Floats
    log_dropped: Floats
    log_largest: Floats
    log_growth: Floats

    @property
    def reach(self) -> int:
        """The last y."""
        return len(self.slack) - 1


def split_of(branch: Branch, reach: int, kept: Frequencies | None, share: float = 0.0) -> NodeSplit:
    """The tables for y = 0 to ``reach``, or as far as errors are small; without frequencies, t is 1 in one block."""
    values, errors = branch.whole.values[: reach + 1], branch.whole.errors[: reach + 1]
    reach = max(0, int(np.cumprod((values > SMALLEST) & (errors < values / 1e3)).sum()) - 1)
    waves = None if kept is None else _waves(branch.reach, kept)
    parts = [_part(branch, first, last, kept, share, waves) for first, last in chunks(branch, reach)]
    whole = NodeSplit(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(NodeSplit)))
    good = np.cumprod(2e3 * whole.slack <= whole.peak_chance).astype(bool)  # as PEAK_ROOM says
    return NodeSplit(*(getattr(whole, field.name)[good] for field in fields(NodeSplit)))


def chunks(branch: Branch, reach: int) -> Iterator[tuple[int, int]]:
    """Ranges of y whose joint tables are not too large."""
    step = max(1, CHUNK // (2 * branch.reach + 1))
    return ((first, min(first + step, reach + 1)) for first in range(0, reach + 1, step))


def _part(
    branch: Branch, first: int, last: int, kept: Frequencies | None, share: float, waves: Waves | None
) -> NodeSplit:
    whole, scale = branch.whole, branch.scale
    table = branch.joint(first, last)
    inverse = scale / whole.values[first:last]
    peak = PEAK_ROOM * table.max(axis=1)
    laws = table * inverse[:, None]
    # The errors of all chances of a law together: those of the weights below, and of F, and what is not followed.
    missing = beyond_tables(branch.left, branch.right, np.arange(first, last), left_reach=branch.reach) * inverse
    error = 2 * whole.errors[first:last] / whole.values[first:last] + missing
    slack = error + (laws.shape[1] + 8) * ULP + 4e-19
    if kept is None or waves is None:
        nothing = np.zeros(last - first)
        empty = np.zeros((last - first, 0))
        return NodeSplit(slack, inverse, peak, peak * inverse, np.ones((last - first, 1)), empty, empty, *[nothing] * 4)
    y = np.arange(first, last)
    real, imaginary = _kept_transforms(laws, branch.reach, y, kept, waves)
    numbers, log_dropped, log_largest = _norms(laws, error, share, kept)
    return NodeSplit(
        slack,
        inverse,
        peak,
        peak * inverse,
        numbers,
        real,
        imaginary,
        error + (laws.shape[1] + 40) * ULP,
        log_dropped,
        log_largest,
        log_growth(branch, y, branch.raised().laws(first, last), kept.growth, kept.centre),
    )


class Waves(NamedTuple):
    """The cosines and sines of 2 pi n k/G for n = 0, 1, ... and the frequencies k that are kept."""

    cosines: Floats
    sines: Floats


def _waves(reach: int, kept: Frequencies) -> Waves:
    """As many n as ``_folded`` leaves. They are the same for all y, and take longer than what is done with them."""
    n, k = np.arange(min(reach, kept.points // 2) + 1), np.arange(len(kept.measure))
    angles = 2 * np.pi / kept.points * (n[:, None] * k % kept.points)
    return Waves(np.cos(angles), np.sin(angles))


def _folded(laws: Floats, reach: int, points: int) -> tuple[Floats, Floats]:
    """What u = n and u = -n have together modulo G, and the first less the second, for n = 0, 1, ..., at most G/2.

    No chance goes through more than one addition for each G entries, and one more.

    >>> [part.tolist() for part in _folded(np.array([[1.0, 2.0, 4.0, 8.0, 16.0]]), 2, 3)]
    [[[4.0, 27.0]], [[0.0, -9.0]]]
    """
    width = 2 * reach + 1
    if width <= points:
        right, left = laws[:, reach:], laws[:, reach::-1]
        together = right + left
    else:
        before = -reach % points  # so that the first entry is a multiple of G
        padded = np.zeros((len(laws), -(-(before + width) // points) * points))
        padded[:, before : before + width] = laws
        wrapped = padded.reshape(len(laws), -1, points).sum(axis=1)
        half = points // 2
        right, left = wrapped[:, : half + 1], wrapped[:, -np.arange(half + 1)]
        together = right + left
        if points % 2 == 0:
            together[:, half] = right[:, half]
    together[:, 0] = right[:, 0]
    return together, right - left


def _kept_transforms(laws: Floats, reach: int, y: IntArray, kept: Frequencies, waves: Waves) -> tuple[Floats, Floats]:
    """The characteristic functions of u - y/2, by matrix products: the error of a sum is its length times 2^-53."""
    g, k = kept.points, np.arange(len(kept.measure))
    halves = np.pi / g * (y[:, None] * k % (2 * g))
    together, difference = _folded(laws, reach, g)
    cosines, sines = together @ waves.cosines, difference @ waves.sines
    return cosines * np.cos(halves) + sines * np.sin(halves), sines * np.cos(halves) - cosines * np.sin(halves)


def _norms(laws: Floats, error: Floats, share: float, kept: Frequencies) -> tuple[Floats, Floats, Floats]:
    """t_m(y) for each block, and logarithms for the frequencies beyond: of the norm for those that B is not a sum over.

    And of the largest |phi| at those that are not kept at all, which serves any part of the rows.
    """
    if share == 0.0:
        beyond = 0.0 if len(kept.measure) < len(full_measure(kept.points)) else np.log(SMALLEST)
        return np.ones((len(laws), kept.blocks)), np.zeros(len(laws)), np.full(len(laws), beyond)
    magnitudes = np.minimum(np.abs(transforms(laws, kept.points)) + (error + FFT_ERROR)[:, None], 1.0)
    measure, count = full_measure(kept.points), kept.few
    largest = magnitudes[:, len(kept.measure) :].max(axis=1, initial=SMALLEST)
    large = magnitudes.max(axis=0) > POWERLESS**share
    large[:count] = True
    powers = magnitudes[:, large] ** (1 / share) * measure[large]
    block = kept.block[large]
    dropped = powers[:, count:].sum(axis=1) + POWERLESS
    sums = np.stack([powers[:, block == m].sum(axis=1) for m in range(kept.blocks)], axis=1) + POWERLESS
    return np.minimum(sums**share * ABOVE, 1.0), np.log(dropped * ABOVE) * share, np.log(largest) + 1e-12

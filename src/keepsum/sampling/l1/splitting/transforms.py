"""At which frequencies the characteristic functions of a node are kept, and these functions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import next_fast_len, rfft

from keepsum._arrays import Floats
from keepsum.sampling.l1.splitting.weights import Weights, mirrored

NEGLIGIBLE = 1e-17  # of B: what frequencies that are not kept, or tails, may come to for ordinary sums


@dataclass(frozen=True, eq=False)
class Branch:
    """The laws of a kind of row at a node: the weights of its children, and F."""

    left: Weights
    right: Weights
    whole: Weights

    @property
    def scale(self) -> float:
        """What products of the children's weights are to be multiplied with to add up to F."""
        return 2.0 ** (self.left.exponent + self.right.exponent - self.whole.exponent)

    @property
    def sums(self) -> Floats:
        """The u that the tables cover."""
        return np.arange(-self.left.reach, self.left.reach + 1, dtype=np.float64)

    def joint(self, first: int, last: int) -> Floats:
        """W_L(u) W_R(y - u) for y = first, ..., last - 1 and u = -reach_L, ..., reach_L."""
        reach, width, highest = self.left.reach, 2 * self.left.reach + 1, last - 1
        v = np.arange(-reach - highest, reach + 1)  # u - y
        shifted = np.zeros(len(v))
        inside = np.abs(v) <= self.right.reach
        shifted[inside] = self.right.values[np.abs(v[inside])]
        return self.left.two_sided() * sliding_window_view(shifted, width)[: last - first][::-1]

    def laws(self, first: int, last: int) -> Floats:
        """The chances of u given y, for the same y and u."""
        return self.joint(first, last) * (self.scale / self.whole.values[first:last, None])


@dataclass(frozen=True, eq=False)
class Frequencies:
    """At which frequencies 2 pi k/G a node's characteristic functions are kept, k = 0, 1, ...

    Attributes
    ----------
    points
        G.
    measure
        The weight of each k in the mean over all G frequencies, -k included.
    growth
        s: tails are bounded by moments of e^(s|u - centre * y|).
    centre
        About the part of y that u is.
    """

    points: int
    measure: Floats
    growth: float
    centre: float


def frequencies_of(branches: list[tuple[Branch, int]], epsilon: float) -> Frequencies:
    """G large enough that a sum beyond G is negligible, and as many frequencies as matter, for ordinary sums.

    What is ordinary is a guess; bounds for the sums at hand are computed when a table is drawn.
    """
    spread, centre = 0.0, 0.0
    rows = sum(count for _, count in branches)
    for branch, count in branches:
        mean, variance = _moments(branch)
        spread += count * variance
        centre += count * mean / rows
    spread = math.sqrt(spread)
    points = 10 * spread + 24 / epsilon + 8
    most = 600 / max(branch.left.reach for branch, _ in branches)  # so that exponentials are floats
    while True:
        g = next_fast_len(math.ceil(points), real=True)
        growth = min(g / max(spread, 1e-9) ** 2, 1.25 * epsilon, most)
        log_product = np.zeros(g // 2 + 1)
        log_tail = math.log(2) - growth * g
        for branch, count in branches:
            height = np.zeros(g // 2 + 1)  # the mean over y: near a zero of one y others matter
            for y, share in _typical(branch.whole):
                law = branch.laws(y, y + 1)[0]
                height += share * np.abs(transforms(law[None, :], g)[0])
                u = branch.sums - centre * y
                log_tail += share * count * math.log(max(law @ np.exp(growth * u), law @ np.exp(-growth * u)))
            log_product += count * np.log(height + 1e-300)
        measure = full_measure(g)
        behind = np.cumsum((measure * np.exp(log_product))[::-1])[::-1]
        if log_tail < math.log(NEGLIGIBLE * behind[0]):
            break
        points *= 1.25
    kept = int(np.flatnonzero(behind > NEGLIGIBLE * behind[0]).max()) + 1
    return Frequencies(g, measure[:kept], growth, centre)


def _moments(branch: Branch) -> tuple[float, float]:
    """The slope of the mean of u in y, and the mean of its variance, over the law F."""
    left, right, whole = branch.left, branch.right, branch.whole
    u, scale, base = branch.sums, branch.scale, left.two_sided()
    y = np.arange(-whole.reach, whole.reach + 1)
    start = left.reach + right.reach - whole.reach
    total = mirrored(whole.values)
    first, second = (scale * _cut(np.convolve(base * u**k, right.two_sided()), start, len(y)) for k in (1, 2))
    mass = total.sum()
    slope = float((first * y).sum() / (total * y * y).sum()) if whole.values[1:].any() else 0.5
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(total > 0, second - first**2 / total, 0.0).sum() / mass
    return slope, max(float(variance), 0.0)


def _cut(values: Floats, start: int, count: int) -> Floats:
    """``count`` values from ``start`` on, zeros where there are none."""
    if start >= 0:
        return values[start : start + count]
    return np.concatenate([np.zeros(-start), values, np.zeros(-start)])[:count]


def _typical(whole: Weights) -> list[tuple[int, float]]:
    """Some y and their shares of the law F, for guesses."""
    masses = whole.values * np.where(np.arange(len(whole.values)) == 0, 1.0, 2.0)
    masses /= masses.sum()
    upto = np.cumsum(masses)
    cuts = np.linspace(0, 1, 17)
    ys = np.unique(np.searchsorted(upto, (cuts[:-1] + cuts[1:]) / 2))
    edges = np.concatenate([[0.0], (upto[ys[:-1]] + upto[ys[1:] - 1]) / 2, [1.0]])
    return [(int(y), float(share)) for y, share in zip(ys, np.diff(edges), strict=True)]


def transforms(laws: Floats, points: int) -> npt.NDArray[np.complex128]:
    """The discrete Fourier transform of each row, wrapped around modulo ``points``."""
    width = laws.shape[1]
    if width > points:
        padded = np.zeros((len(laws), -(-width // points) * points))
        padded[:, :width] = laws
        laws = padded.reshape(len(laws), -1, points).sum(axis=1)
    transformed: npt.NDArray[np.complex128] = rfft(laws, n=points, axis=1)
    return transformed


def full_measure(points: int) -> Floats:
    """The weights of k = 0, ..., points // 2 in the mean over all frequencies."""
    measure = np.full(points // 2 + 1, 2.0 / points)
    measure[0] = 1.0 / points
    if points % 2 == 0:
        measure[-1] = 1.0 / points
    return measure

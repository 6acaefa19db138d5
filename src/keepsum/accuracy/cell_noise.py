"""The noise of single cells in closed form: variances, margins and the law of a cell under no total."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Protocol

import numpy as np
import numpy.typing as npt

from keepsum._arrays import Floats
from keepsum._saying import the
from keepsum._text import given
from keepsum.errors import InputError
from keepsum.planning.describe import describe_range
from keepsum.planning.selection.choice import out_of_range
from keepsum.privacy.mechanism import Mechanism

# Floating-point sums err by far less than this; intervals cover their level with this much to spare.
MARGIN = 1e-9
WIDE_SIGMA = 10_000  # from this sigma on, a discrete Gaussian is indistinguishable from the continuous one
WIDE_TOTALS = 10**5  # where totals deviate by more, a cell's law takes fewer numbers than that of totals
TAIL = 32  # weights are followed down to e^-32, far below the margin


def cell_law(mechanism: Mechanism) -> CellLaw | None:
    """The law of a cell's noise under a mechanism, where it is known in closed form."""
    check_known(mechanism)
    if mechanism.kind == "laplace-l1":
        return LaplaceCells(float(1 / mechanism.scale))
    return GaussianCells(float(mechanism.scale)) if mechanism.kind == "gaussian" else None


def check_known(mechanism: Mechanism) -> None:
    """Refuse noise of a user's own: only draws of it tell anything (``margins.py``)."""
    if mechanism.kind == "own":
        raise InputError(
            f"The law of the noise must be known, and that of noise of your own is not. "
            f"{the.call('plan.accuracy')} has margins of error from its draws."
        )


def check_range(mechanism: Mechanism) -> None:
    """Refuse noise so narrow or wide that nothing draws it: its law would be computed for nothing, or for ever."""
    check_known(mechanism)
    parameter = 1 / mechanism.scale if mechanism.kind == "laplace-l1" else mechanism.scale
    reason = out_of_range(mechanism.kind, parameter)
    if reason is not None:
        raise InputError(describe_range([reason], mechanism) or "")


def margin(law: CellLaw, size: int, level: float) -> int:
    """The smallest margin that holds a cell's noise with at least this probability; 0 for a region of one cell."""
    if size == 1:
        return 0
    wide = law.wide_sd(size)
    if wide is not None:
        return math.ceil(-wide * NormalDist().inv_cdf((1 - level) / 2)) + 1
    weights = law.weights(size)
    covered = (2 * np.cumsum(weights) - weights[0]) / (2 * weights.sum() - weights[0])
    reached = np.flatnonzero(covered >= level + MARGIN)
    if not len(reached) or level > 1 - 2 * MARGIN:  # beyond, rounding decides where the sum of all weights is reached
        raise InputError(f"Level must be at most {1 - 2 * MARGIN} for this law, got {given(level)}.")
    return int(reached[0])


def free_variance(epsilon: float) -> float:
    """The variance of double geometric noise, 2 a / (1 - a)^2."""
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


@lru_cache(maxsize=4096)
def sum_variance(size: int, epsilon: float) -> float:
    """The variance of a cell of a region of n cells with sum 0.

    Given the total N of the positive parts, both parts of a cell are entries of uniform compositions, with variance
    N (N + n) (n - 1) / (n^2 (n + 1)) each; N has weight C(N + n - 1, n - 1)^2 a^(2 N). Where N takes very many values
    the cell's own law is used.
    """
    if math.sqrt(size) / epsilon > WIDE_TOTALS:
        law = sum_weights(size, epsilon)
        return float(2 * (np.arange(len(law)) ** 2.0 * law).sum() / (2 * law.sum() - law[0]))
    totals, weights = _total_weights(size, epsilon)
    moment = float((weights * totals * (totals + size)).sum() / weights.sum())
    return 2 * moment * (size - 1) / (float(size) ** 2 * (size + 1))


def _total_weights(size: int, epsilon: float) -> tuple[Floats, Floats]:
    """The totals N within twelve standard deviations of their mode, and their weights relative to it."""
    a = math.exp(-epsilon)
    centre = math.floor(size * a / -math.expm1(-epsilon))
    sd = math.sqrt(size * a) / -math.expm1(-epsilon)
    span = math.ceil(12 * sd + 60 / epsilon)
    totals = np.arange(max(0, centre - span), centre + span + 1, dtype=np.float64)
    # Logarithms of successive ratios, summed up: no large number is ever subtracted from another.
    steps = 2 * (np.log1p((size - 1) / (totals[:-1] + 1)) - epsilon)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    return totals, np.exp(logs - logs.max())


def free_weights(epsilon: float) -> Floats:
    """a^k for k = 0, 1, ..., down to the smallest that matters."""
    return np.asarray(np.exp(-epsilon * np.arange(math.ceil(TAIL / epsilon) + 1)))


def sum_weights(size: int, epsilon: float) -> Floats:
    """The weights of k = 0, 1, ... for a cell of a region with sum 0: a^k times the probability of -k elsewhere."""
    ks = np.arange(math.ceil(TAIL / epsilon) + 1)
    return np.asarray(np.exp(-epsilon * ks) * others_weights(size - 1, epsilon, len(ks)))


def others_weights(count: int, epsilon: float, reach: int) -> Floats:
    """The law of a sum of double geometrics at k = 0, ..., reach - 1, up to a factor.

    Its characteristic function is ((1 - a)^2 / (1 - 2 a cos t + a^2))^count. It is integrated by the trapezium rule,
    exact for a periodic function up to what folds over, with Gauss-Legendre nodes where that would take too many.
    """
    if count == 1:
        return np.asarray(np.exp(-epsilon * np.arange(reach)))
    sd = math.sqrt(2 * count * math.exp(-epsilon)) / -math.expm1(-epsilon)
    points = 2 ** math.ceil(math.log2(2 * (reach + 40 * sd + 60 / epsilon)))
    if points <= 2**24:
        angles = np.arange(points // 2 + 1) * (2 * math.pi / points)
        return np.fft.irfft(_characteristic(angles, count, epsilon), points)[:reach]
    # Many cells and a small epsilon: a narrow bell, followed down to e^-40, over which cosines turn slowly.
    height = math.expm1(40 / count) * math.expm1(-epsilon) ** 2 / (4 * math.exp(-epsilon))
    top = 2 * math.asin(math.sqrt(min(1.0, height)))
    nodes, weights = np.polynomial.legendre.leggauss(100 + 4 * math.ceil(reach * top))
    angles = top * (nodes + 1) / 2
    density = weights * _characteristic(angles, count, epsilon)
    parts = np.array_split(np.arange(reach), -(-reach // 1000))
    return np.concatenate([np.cos(np.outer(part, angles)) @ density for part in parts])


def _characteristic(angles: Floats, count: int, epsilon: float) -> Floats:
    a = math.exp(-epsilon)
    return np.asarray(np.exp(-count * np.log1p(4 * a * np.sin(angles / 2) ** 2 / math.expm1(-epsilon) ** 2)))


def gaussian_weights(size: int, sigma: float) -> Floats:
    """The weights of k = 0, 1, ... for a cell of a region with sum 0: exp(-k^2 / 2 sigma^2) times that of -k elsewhere.

    Examples
    --------
    >>> weights = gaussian_weights(2, 3.0)  # two cells k and -k: exp(-k^2 / sigma^2)
    >>> bool(abs(weights[3] / weights[0] - math.exp(-1)) < 1e-12)
    True
    """
    ks = np.arange(math.ceil(math.sqrt(2 * TAIL) * sigma) + 2)
    of_cell = np.exp(-ks * ks / (2 * sigma * sigma))
    if size == 0:
        return np.asarray(of_cell)
    sd = sigma * math.sqrt(size - 1)
    if sd > 2000:  # so wide that the law of the others is its density, to a part in e^(-2 pi^2 sd^2)
        return np.asarray(of_cell * np.exp(-ks * ks / (2 * sd * sd)))
    points = 2 ** math.ceil(math.log2(2 * (len(ks) + 12 * sd + 20)))
    angles = np.arange(points // 2 + 1) * (2 * math.pi / points)
    with np.errstate(divide="ignore"):
        logs = (size - 1) * np.log(gaussian_characteristic(angles, sigma))
    return np.asarray(of_cell * np.maximum(np.fft.irfft(np.exp(logs), points)[: len(ks)], 0.0))


def gaussian_characteristic(angles: Floats, sigma: float) -> Floats:
    """That of the discrete Gaussian, by whichever of two series is short."""
    if sigma >= 0.5:
        turns = 2 * math.pi * np.arange(-3, 4)[:, None]
        waves = np.exp(-(sigma**2) * (angles + turns) ** 2 / 2).sum(axis=0)
        return np.asarray(waves / np.exp(-(sigma**2) * turns[:, 0] ** 2 / 2).sum())
    xs = np.arange(1, 6)[:, None]
    weights = np.exp(-(xs**2) / (2 * sigma * sigma))
    return np.asarray((1 + 2 * (weights * np.cos(xs * angles)).sum(axis=0)) / (1 + 2 * weights.sum()))


# The noise of cells under a mechanism; the laws of all queries are made from that of a cell under no total.


NEGLIGIBLE = 36.0  # what has probability below e^-36 is left out of a law


class CellLaw(Protocol):
    """The noise of one cell: under no total, or in a region of some size, whose noise adds up to 0 (0: no total)."""

    @property
    def variance(self) -> float:
        """The variance of a free cell."""

    def variance_in(self, size: int) -> float:
        """The variance in a region."""

    def weights(self, size: int) -> Floats:
        """The weights of 0, 1, 2, ... in a region, down to the smallest that matter."""

    def wide_sd(self, size: int) -> float | None:
        """The standard deviation in a region, if the noise is so wide that the continuous law applies; else None."""

    def fall(self, angles: Floats) -> Floats:
        """-ln phi."""

    def least_fall(self, sines: Floats) -> Floats:
        """The f of ``query_laws.py``, at values of s."""

    def farthest(self, fall: float) -> float:
        """An s beyond which -ln phi is larger than this; at most 1."""

    def span(self, cells: int) -> float:
        """How far a sum of so many cells reaches, up to a negligible probability."""

    def log_moment(self, h: Floats) -> Floats:
        """Ln M(h), infinite where there is none, or an upper bound."""

    def turned_moment(self, at: Floats, angles: Floats) -> npt.NDArray[np.complex128]:
        """Ln M(x + i u)/M(x), which in size falls off with u at least as fast as phi."""

    def transform_within(self, angles: Floats, reach: int) -> Floats:
        """E[cos(u z)] over the noise z that is at most so large, of either sign."""

    @property
    def largest_tilt(self) -> float:
        """M is finite below this."""


@dataclass(frozen=True)
class LaplaceCells:
    """l1 Laplace noise."""

    epsilon: float

    @property
    def _c(self) -> float:
        return 4 * math.exp(-self.epsilon) / math.expm1(-self.epsilon) ** 2

    @cached_property
    def variance(self) -> float:
        """The variance of a free cell."""
        return free_variance(self.epsilon)

    def variance_in(self, size: int) -> float:
        """The variance in a region."""
        return free_variance(self.epsilon) if size == 0 else sum_variance(size, self.epsilon)

    def weights(self, size: int) -> Floats:
        """The weights of 0, 1, 2, ... in a region."""
        return free_weights(self.epsilon) if size == 0 else sum_weights(size, self.epsilon)

    def wide_sd(self, size: int) -> float | None:
        """None: the discrete law is used at every width."""
        return None

    def fall(self, angles: Floats) -> Floats:
        """-ln phi."""
        return np.asarray(np.log1p(self._c * np.sin(angles / 2) ** 2))

    def least_fall(self, sines: Floats) -> Floats:
        """ln(1 + c s)."""
        return np.asarray(np.log1p(self._c * sines))

    def farthest(self, fall: float) -> float:
        """Where ln(1 + c s) is as large as this."""
        return min(1.0, math.expm1(min(fall, 700.0)) / self._c)

    def span(self, cells: int) -> float:
        """How far a sum reaches: P(S >= x) <= M(h)^n exp(-h x)."""
        h = np.geomspace(1e-4, 0.95, 40) * self.epsilon
        return float(((cells * self.log_moment(h) + NEGLIGIBLE) / h).min())

    def log_moment(self, h: Floats) -> Floats:
        """-ln(1 - c sinh(h/2)^2)."""
        inside = 1 - self._c * np.sinh(np.clip(h, -self.epsilon, self.epsilon) / 2) ** 2
        finite = (np.abs(h) < self.epsilon) & (inside > 0)
        return np.asarray(np.where(finite, -np.log(np.where(finite, inside, 1.0)), np.inf))

    def turned_moment(self, at: Floats, angles: Floats) -> npt.NDArray[np.complex128]:
        """With D(x) = 1 - c sinh(x/2)^2 and M = 1/D: |D(x + i u)| >= D(x) + c cosh(x) sin(u/2)^2."""
        flat = 1 - self._c * np.sinh(at / 2) ** 2
        return np.asarray(np.log(flat) - np.log(1 - self._c * np.sinh((at + 1j * angles) / 2) ** 2))

    def transform_within(self, angles: Floats, reach: int) -> Floats:
        """Phi less what lies beyond: (1 - a)/(1 + a) times 2 Re w^(reach + 1)/(1 - w), w = a e^(iu)."""
        a = math.exp(-self.epsilon)
        beyond = 2 * (np.exp((reach + 1) * (-self.epsilon + 1j * angles)) / (1 - a * np.exp(1j * angles))).real
        return np.asarray(np.exp(-self.fall(angles)) + math.expm1(-self.epsilon) / (1 + a) * beyond)

    @property
    def largest_tilt(self) -> float:
        """M is finite below this."""
        return self.epsilon


@dataclass(frozen=True)
class GaussianCells:
    """Gaussian noise; M(h) is at most that of the continuous one (Micciancio and Peikert 2012)."""

    sigma: float

    @cached_property
    def variance(self) -> float:
        """The variance of a free cell."""
        return self.variance_in(0)

    def variance_in(self, size: int) -> float:
        """The variance in a region."""
        wide = self.wide_sd(size)
        if wide is not None:
            return wide * wide
        weights = self.weights(size)
        squares = np.arange(len(weights), dtype=np.float64) ** 2
        return float(2 * (squares * weights).sum() / (2 * weights.sum() - weights[0]))

    def weights(self, size: int) -> Floats:
        """The weights of 0, 1, 2, ... in a region."""
        return gaussian_weights(size, self.sigma)

    def wide_sd(self, size: int) -> float | None:
        """The standard deviation of a Gaussian so wide that the continuous law applies; else None."""
        return None if self.sigma < WIDE_SIGMA else self.sigma * math.sqrt(1 - 1 / size if size else 1)

    def fall(self, angles: Floats) -> Floats:
        """-ln phi."""
        turned = np.abs((angles + math.pi) % (2 * math.pi) - math.pi)
        if self.sigma > 6:  # other turns add less than e^-170
            return np.asarray(self.sigma**2 * turned**2 / 2)
        values = gaussian_characteristic(turned.ravel(), self.sigma).reshape(turned.shape)
        return np.asarray(-np.log(np.maximum(values, 1e-300)))

    def least_fall(self, sines: Floats) -> Floats:
        """K s."""
        return np.asarray(2 * self.variance * sines)

    def farthest(self, fall: float) -> float:
        """Where k s is as large as this."""
        return 1.0 if fall >= 2 * self.variance else fall / (2 * self.variance)

    def span(self, cells: int) -> float:
        """How far a sum reaches."""
        return math.sqrt(2 * NEGLIGIBLE * cells) * self.sigma + 1

    def log_moment(self, h: Floats) -> Floats:
        """An upper bound on ln M(h)."""
        return np.asarray((h * self.sigma) ** 2 / 2)

    def turned_moment(self, at: Floats, angles: Floats) -> npt.NDArray[np.complex128]:
        """Not needed: the bound of a Gaussian holds for regions too."""
        raise AssertionError("moments of regions follow from their squares")

    def transform_within(self, angles: Floats, reach: int) -> Floats:
        """The sum over the noise itself."""
        ks = np.arange(1, min(reach, math.ceil(9 * self.sigma) + 3) + 1)
        everything = np.arange(1, math.ceil(9 * self.sigma) + 4)
        whole = 1 + 2 * float(np.exp(-(everything**2) / (2 * self.sigma**2)).sum())
        inside = np.exp(-(ks**2) / (2 * self.sigma**2))
        cosines = np.concatenate([np.cos(part[:, None] * ks) @ inside for part in np.array_split(angles, 64)])
        return np.asarray((1 + 2 * cosines) / whole)

    @property
    def largest_tilt(self) -> float:
        """M is finite everywhere."""
        return math.inf


def turn_of(cell: CellLaw, cells: int, idle: int) -> tuple[Floats, float]:
    """The u that matter for a region of so many cells, ``idle`` of them of weight 0, and how many a whole turn has."""
    points = 2 ** math.ceil(math.log2(2 * cell.span(cells) + 8))
    end = 2 * math.asin(math.sqrt(cell.farthest((NEGLIGIBLE + math.log(points)) / idle)))
    most = min(points // 2, math.ceil(end * points / (2 * math.pi)) + 1)
    steps = np.arange(-most, most + (0 if 2 * most == points else 1))
    return steps * (2 * math.pi / points), float(points)

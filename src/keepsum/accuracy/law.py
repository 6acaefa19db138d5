"""The law of the noise of single cells in closed form: variances and margins, without drawing any."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Protocol

import numpy as np

from keepsum._arrays import Floats
from keepsum._text import given
from keepsum.errors import InputError
from keepsum.planning.describe import describe_range
from keepsum.planning.selection.choice import Reason
from keepsum.privacy.mechanism import Kind, Mechanism

# Floating-point sums err by far less than this; intervals cover their level with this much to spare.
MARGIN = 1e-9
WIDE_SIGMA = 10_000  # from this sigma on, a discrete Gaussian is indistinguishable from the continuous one
WIDE_TOTALS = 10**5  # where totals deviate by more, a cell's law takes fewer numbers than that of totals
# What the samplers support; others need no limit.
RANGES: dict[Kind, Reason] = {
    "laplace-l1": Reason("epsilon_out_of_range", lowest="1/10000", highest="50"),
    "gaussian": Reason("sigma_out_of_range", lowest="1/50", highest="100000000"),
}
TAIL = 32  # weights are followed down to e^-32, far below the margin


class CellLaw(Protocol):
    """The law of one cell's noise, in a region of some size; 0 stands for a cell under no total."""

    def variance(self, size: int) -> float:
        """The variance; the mean is 0."""

    def weights(self, size: int) -> Floats:
        """The weights of 0, 1, 2, ..., down to the smallest that matter."""

    def wide_deviation(self, size: int) -> float | None:
        """The standard deviation, if the noise is so wide that the continuous law applies; else None."""


@dataclass(frozen=True)
class LaplaceCells:
    """l1 Laplace noise."""

    epsilon: float

    def variance(self, size: int) -> float:
        """The variance; the mean is 0."""
        return free_variance(self.epsilon) if size == 0 else sum_variance(size, self.epsilon)

    def weights(self, size: int) -> Floats:
        """The weights of 0, 1, 2, ..., down to the smallest that matter."""
        return free_weights(self.epsilon) if size == 0 else sum_weights(size, self.epsilon)

    def wide_deviation(self, size: int) -> float | None:
        """None: the discrete law is used at every width."""
        return None


@dataclass(frozen=True)
class GaussianCells:
    """Gaussian noise."""

    sigma: float

    def variance(self, size: int) -> float:
        """The variance; the mean is 0."""
        wide = self.wide_deviation(size)
        if wide is not None:
            return wide * wide
        weights = self.weights(size)
        squares = np.arange(len(weights), dtype=np.float64) ** 2
        return float(2 * (squares * weights).sum() / (2 * weights.sum() - weights[0]))

    def weights(self, size: int) -> Floats:
        """The weights of 0, 1, 2, ..., down to the smallest that matter."""
        return gaussian_weights(size, self.sigma)

    def wide_deviation(self, size: int) -> float | None:
        """The standard deviation of a Gaussian so wide that the continuous law applies; else None."""
        return None if self.sigma < WIDE_SIGMA else self.sigma * math.sqrt(1 - 1 / size if size else 1)


def cell_law(mechanism: Mechanism) -> CellLaw | None:
    """The law of a cell's noise under a mechanism, where it is known in closed form."""
    laws: dict[Kind, CellLaw] = {
        "laplace-l1": LaplaceCells(float(1 / mechanism.scale)),
        "gaussian": GaussianCells(float(mechanism.scale)),
    }
    return laws.get(mechanism.kind)


def check_range(mechanism: Mechanism) -> None:
    """Refuse noise so narrow or wide that nothing draws it: its law would be computed for nothing, or for ever."""
    parameter = 1 / mechanism.scale if mechanism.kind == "laplace-l1" else mechanism.scale
    reason = RANGES.get(mechanism.kind)
    if reason is None or Fraction(reason.lowest or 0) <= parameter <= Fraction(reason.highest or 0):
        return
    raise InputError(describe_range([reason], mechanism) or "")


def margin(law: CellLaw, size: int, level: float) -> int:
    """The smallest margin that holds a cell's noise with at least this probability; 0 for a region of one cell."""
    if size == 1:
        return 0
    wide = law.wide_deviation(size)
    if wide is not None:
        return math.ceil(-wide * NormalDist().inv_cdf((1 - level) / 2)) + 1
    weights = law.weights(size)
    covered = (2 * np.cumsum(weights) - weights[0]) / (2 * weights.sum() - weights[0])
    reached = np.flatnonzero(covered >= level + MARGIN)
    if not len(reached):
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
    """The totals N within twelve deviations of their mode, and their weights relative to it."""
    a = math.exp(-epsilon)
    centre = math.floor(size * a / -math.expm1(-epsilon))
    deviation = math.sqrt(size * a) / -math.expm1(-epsilon)
    span = math.ceil(12 * deviation + 60 / epsilon)
    totals = np.arange(max(0, centre - span), centre + span + 1, dtype=np.float64)
    # Logarithms of successive ratios, summed up: no large number is ever subtracted from another.
    steps = 2 * (np.log1p((size - 1) / (totals[:-1] + 1)) - epsilon)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    return totals, np.exp(logs - logs.max())


def free_weights(epsilon: float) -> Floats:
    """a^k for k = 0, 1, ..., down to the smallest that matters."""
    return np.asarray(np.exp(-epsilon * np.arange(math.ceil(TAIL / epsilon) + 1)))


def sum_weights(size: int, epsilon: float) -> Floats:
    """The weights of k = 0, 1, ... for a cell of a region with sum 0: a^k times the chance of -k for the others."""
    ks = np.arange(math.ceil(TAIL / epsilon) + 1)
    return np.asarray(np.exp(-epsilon * ks) * others_weights(size - 1, epsilon, len(ks)))


def others_weights(count: int, epsilon: float, reach: int) -> Floats:
    """The law of a sum of double geometrics at k = 0, ..., reach - 1, up to a factor.

    Its characteristic function is ((1 - a)^2 / (1 - 2 a cos t + a^2))^count. It is integrated by the trapezium rule,
    exact for a periodic function up to what folds over, with Gauss-Legendre nodes where that would take too many.
    """
    if count == 1:
        return np.asarray(np.exp(-epsilon * np.arange(reach)))
    deviation = math.sqrt(2 * count * math.exp(-epsilon)) / -math.expm1(-epsilon)
    points = 2 ** math.ceil(math.log2(2 * (reach + 40 * deviation + 60 / epsilon)))
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
    deviation = sigma * math.sqrt(size - 1)
    if deviation > 2000:  # so wide that the law of the others is its density, to a part in e^(-2 pi^2 deviation^2)
        return np.asarray(of_cell * np.exp(-ks * ks / (2 * deviation * deviation)))
    points = 2 ** math.ceil(math.log2(2 * (len(ks) + 12 * deviation + 20)))
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

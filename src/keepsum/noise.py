"""The published law of the noise: how far a cell's noise strays, without drawing any."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keepsum.axes import Label
from keepsum.errors import InputError
from keepsum.lattice.structure import FORCED, FREE
from keepsum.mechanisms import Laplace, Mechanism

if TYPE_CHECKING:
    from keepsum.planning import Plan

# Sums of floats err by far less than this; intervals are chosen to cover their level with it to spare.
MARGIN = 1e-9
TAIL = 32  # weights are followed down to e^-32, far below the margin


class Noise:
    """What is known of the noise of a plan, cell by cell.

    Made by ``plan.noise``. In this version it covers l1 Laplace noise in cells under no total and in cells whose
    regions have forced sums, which is every hierarchy of totals.

    Examples
    --------
    >>> import keepsum as ks
    >>> plan = ks.plan(ks.Invariants.subsets(102, [range(102)]), ks.Laplace(epsilon=0.25))
    >>> round(plan.noise.variance(0), 3), plan.noise.interval(0, level=0.95)
    (31.058, (-12, 12))
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @staticmethod
    def covers(mechanism: Mechanism) -> bool:
        """Whether the law of a cell's noise is known for this mechanism."""
        return isinstance(mechanism, Laplace) and mechanism.norm == "l1"

    def variance(self, cell: int | Mapping[str, Label]) -> float:
        """The variance of one cell's noise; its mean is 0."""
        size, epsilon = self._kind_of(cell)
        if size == 1:
            return 0.0
        return free_variance(epsilon) if size == 0 else sum_variance(size, epsilon)

    def interval(self, cell: int | Mapping[str, Label], level: float = 0.95) -> tuple[int, int]:
        """An interval around 0 that holds one cell's noise with at least that probability, as short as can be told."""
        if not isinstance(level, (int, float)) or not 0 < level < 1:
            raise InputError(f"Level must lie between 0 and 1, got {level!r}.")
        size, epsilon = self._kind_of(cell)
        if size == 1:
            return 0, 0
        weights = free_weights(epsilon) if size == 0 else sum_weights(size, epsilon)
        covered = (2 * np.cumsum(weights) - weights[0]) / (2 * weights.sum() - weights[0])
        reached = np.flatnonzero(covered >= level + MARGIN)
        if not len(reached):
            raise InputError(f"Level must be at most {1 - 2 * MARGIN} for this law, got {level!r}.")
        return -int(reached[0]), int(reached[0])

    def _kind_of(self, cell: int | Mapping[str, Label]) -> tuple[int, float]:
        """The size of the cell's region, 0 for a cell under no total; and epsilon."""
        plan = self._plan
        if not isinstance(plan.mechanism, Laplace) or not self.covers(plan.mechanism):
            raise InputError(f"Noise laws are known for l1 Laplace noise in this version, got {plan.mechanism!r}.")
        index = self._index_of(cell)
        region = plan.structure.region[index]
        part = plan.structure.part[region]
        if part not in (FREE, FORCED):
            raise InputError(
                f"The noise law of {plan.invariants.cell_name(index)} is not known in this version, "
                f"because totals overlap there."
            )
        return (0 if part == FREE else int(plan.structure.sizes[region])), float(plan.mechanism.epsilon)

    def _index_of(self, cell: Any) -> int:
        domain = self._plan.invariants.domain
        if isinstance(cell, Mapping):
            if domain is None:
                raise InputError("These cells have no names. Give a cell by its number.")
            return domain.index(cell)
        if isinstance(cell, bool) or not isinstance(cell, (int, np.integer)) or not 0 <= cell < self._plan.size:
            raise InputError(f"A cell must be a number from 0 to {self._plan.size - 1:,}, or a mapping, got {cell!r}.")
        return int(cell)


def free_variance(epsilon: float) -> float:
    """The variance of double geometric noise, 2 a / (1 - a)^2."""
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


def sum_variance(size: int, epsilon: float) -> float:
    """The variance of a cell of a region of n cells with sum 0.

    Given the total N of the positive parts, both parts of a cell are entries of uniform compositions, with variance
    N (N + n) (n - 1) / (n^2 (n + 1)) each; N has weight C(N + n - 1, n - 1)^2 a^(2 N).
    """
    totals, weights = _total_weights(size, epsilon)
    moment = float((weights * totals * (totals + size)).sum() / weights.sum())
    return 2 * moment * (size - 1) / (float(size) ** 2 * (size + 1))


def _total_weights(size: int, epsilon: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
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


def free_weights(epsilon: float) -> npt.NDArray[np.float64]:
    """a^k for k = 0, 1, ... as far as floats tell it from 0."""
    return np.asarray(np.exp(-epsilon * np.arange(math.ceil(TAIL / epsilon) + 1)))


def sum_weights(size: int, epsilon: float) -> npt.NDArray[np.float64]:
    """The weights of k = 0, 1, ... for a cell of a region with sum 0: a^k times the chance of -k for the others."""
    ks = np.arange(math.ceil(TAIL / epsilon) + 1)
    return np.asarray(np.exp(-epsilon * ks) * others_weights(size - 1, epsilon, len(ks)))


def others_weights(count: int, epsilon: float, reach: int) -> npt.NDArray[np.float64]:
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


def _characteristic(angles: npt.NDArray[np.float64], count: int, epsilon: float) -> npt.NDArray[np.float64]:
    a = math.exp(-epsilon)
    return np.asarray(np.exp(-count * np.log1p(4 * a * np.sin(angles / 2) ** 2 / math.expm1(-epsilon) ** 2)))

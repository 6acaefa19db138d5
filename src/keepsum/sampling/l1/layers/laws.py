"""How the vector y of a row splits at a node: the law of the part u below the left child, and what is decided by it.

Given y, u has chance W_L(u) W_R(y - u) / F(y). Parts are drawn by inversion in a fixed order: the vectors of the box
in the order of their places, then all others, box by box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.fft import rfftn

from keepsum._arrays import BoolArray, Floats, IntArray
from keepsum.sampling.l1.layers.boxes import Box, folded, height
from keepsum.sampling.l1.layers.weights import FFT_LOSS, VectorWeights, beyond_boxes
from keepsum.sampling.l1.splitting.weights import ULP

PEAK_ROOM = 1.001  # peaks are this much higher than they need be; their errors are far below that
ABOVE = 1 + 1e-9  # for the rounding of sums of positive numbers, powers and roots in upper bounds
SMALLEST = 1e-250  # of F: below, everything is left to the referee
TINY = 1e-290  # no chance is taken to be smaller than this without the referee: floats may call it 0


@dataclass(frozen=True, eq=False)
class Split:
    """How rows split at the nodes of a class.

    Attributes
    ----------
    left, right
        The weights of the children.
    points
        G: characteristic functions are computed on the group of vectors modulo G.
    growth
        s: tails are bounded by moments of e^(s u_j).
    """

    left: VectorWeights
    right: VectorWeights
    points: int = 0
    growth: float = 0.0

    @property
    def box(self) -> Box:
        """The box of the weights."""
        return self.left.box


@dataclass(frozen=True, eq=False)
class RowLaw:
    """The law of the part u given y.

    Attributes
    ----------
    y
        The stored coordinates of y.
    joint
        W_L(u) W_R(y - u), block by block.
    upto
        The chance of all blocks up to each.
    inverse
        One over the sum of the joint weights.
    error
        At least the sum of the errors of all chances, of what lies outside the box too.
    slack
        At least the error of any cumulative chance.
    missing
        At least the weight of all u outside the box.
    peak, peak_chance
        At least the largest joint weight, and that over the sum of them.
    reliable
        Whether errors are so small that floats decide anything.
    """

    y: IntArray
    joint: Floats
    upto: Floats
    inverse: float
    error: float
    slack: float
    missing: float
    peak: float
    peak_chance: float
    reliable: bool

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.joint.nbytes + self.upto.nbytes


def row_law(split: Split, y: IntArray) -> RowLaw:
    """The law of the part of a row with the vector y."""
    box, left, right = split.box, split.left, split.right
    joint = box.product(left.values, right.values, y).reshape(-1, box.block)
    upto = np.cumsum(joint.sum(axis=1))
    total = float(upto[-1])
    raised = box.total(box.product(left.raised, right.raised, y))
    missing = beyond_boxes(left, right, height(y))
    if total <= SMALLEST:
        return RowLaw(y, joint, upto, 0.0, 2.0, 2.0, missing, PEAK_ROOM * left.top * right.top, math.inf, False)
    rounding = (joint.shape[0] + joint.shape[1] + 16) * ULP
    # Errors of the weights and what is missing count twice: in the chances themselves, and in F.
    error = 2.01 * (max(raised - total, 0.0) + missing) / total + 8 * rounding
    peak = PEAK_ROOM * float(joint.max())
    chance = peak / total
    reliable = 1e3 * error <= chance
    if not reliable:
        peak, chance = PEAK_ROOM * left.top * right.top, math.inf
    upto /= total
    return RowLaw(y, joint, upto, 1 / total, error, error + 4 * rounding, missing, peak, chance, reliable)


def draw_parts(law: RowLaw, box: Box, lows: Floats, unit: float) -> tuple[IntArray, BoolArray]:
    """The parts that numbers in [low, low + unit) lead to, their stored coordinates, and whether that is certain."""
    length = law.joint.shape[1]
    blocks = np.minimum(np.searchsorted(law.upto, lows, side="right"), len(law.upto) - 1)
    before = np.where(blocks > 0, law.upto[blocks - 1], 0.0)
    within = np.cumsum(law.joint[blocks], axis=1) * law.inverse + before[:, None]
    place = np.minimum((within <= lows[:, None]).sum(axis=1), length - 1)
    rows = np.arange(len(lows))
    below = np.where(place > 0, within[rows, place - 1], before)
    certain = (below + law.slack <= lows) & (within[rows, place] - law.slack >= lows + unit)
    certain &= law.reliable
    parts = np.stack(np.unravel_index(blocks * length + place, box.shape), axis=1) - box.reach
    return parts, certain


def solved_chances(law: RowLaw, split: Split, parts: IntArray) -> tuple[Floats, Floats]:
    """Bounds on the weights of parts relative to the peak: their chances of being accepted where they are solved for."""
    count = len(parts)
    if not law.reliable:
        return np.zeros(count), np.ones(count)
    box = split.box
    rest = law.y - parts
    inside = box.holds(parts) & box.holds(rest)
    u, v = (tuple(np.where(inside[:, None], vectors + box.reach, 0).T) for vectors in (parts, rest))
    lower = np.maximum(split.left.values[u] - split.left.errors[u], 0.0)
    lower = lower * np.maximum(split.right.values[v] - split.right.errors[v], 0.0) / law.peak * (1 - 8 * ULP)
    upper = split.left.raised[u] * split.right.raised[v] / law.peak * (1 + 8 * ULP) + TINY
    beyond = law.missing / law.peak * ABOVE + TINY
    return np.where(inside, lower, 0.0), np.minimum(np.where(inside, upper, beyond), 1.0)


@dataclass(frozen=True, eq=False)
class Transform:
    """The characteristic function of a row's part on the group of vectors modulo G.

    Attributes
    ----------
    values
        Its values; of each pair of a frequency and its opposite, one.
    peak
        At least the largest chance of a part modulo G.
    error
        The error of the law, as in ``RowLaw``.
    log_growth
        Logarithms of bounds on the means of e^(s u_j), for every stored coordinate, and then of e^(-s u_j).
    """

    values: npt.NDArray[np.complex128]
    peak: float
    error: float
    log_growth: Floats

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.values.nbytes


def transform(law: RowLaw, split: Split) -> Transform:
    """The characteristic function, for a law that is reliable."""
    box = split.box
    chances = folded(law.joint.reshape(box.shape), box.reach, split.points) * law.inverse
    peak = float(chances.max()) * ABOVE + law.error
    moments = np.exp(log_growth(law, split, np.array([split.growth]))[:, 0])
    return Transform(rfftn(chances), peak, law.error, np.log(moments))


def log_growth(law: RowLaw, split: Split, growths: Floats) -> Floats:
    """Logarithms of bounds on the means of e^(s u_j) and e^(-s u_j): one row for each, a column for each s."""
    box = split.box
    raised = box.product(split.left.raised, split.right.raised, law.y)
    marginals = np.stack([box.marginal(raised, axis) for axis in range(box.dimensions)])
    u = np.arange(-box.reach, box.reach + 1)
    factors = np.exp(np.minimum(np.multiply.outer(u, growths), 700.0))
    outside = np.array([beyond_boxes(split.left, split.right, height(law.y), s) for s in growths.tolist()])
    moments = np.concatenate([marginals @ factors, marginals[:, ::-1] @ factors]) + outside
    bounds: Floats = np.log(moments * (law.inverse * (1 + 2 * law.error) * ABOVE))
    return bounds


def frequencies(points: int) -> Floats:
    """The weight of each k = 0, ..., G // 2 along the last axis in the sum over all frequencies, -k included."""
    measure = np.full(points // 2 + 1, 2.0)
    measure[0] = 1.0
    if points % 2 == 0:
        measure[-1] = 1.0
    return measure


def norm(law: RowLaw, box: Box, points: int, rows: int) -> float:
    """t(y): an upper bound on the norm of the characteristic function, at most 1.

    It is the mean of |phi|^r over all frequencies, to the power 1/r. By the triangle inequality the norm of the error
    may be added to that of the computed function, and it is at most the error's largest value.
    """
    if not law.reliable:
        return 1.0
    chances = folded(law.joint.reshape(box.shape), box.reach, points) * law.inverse
    size = points**box.dimensions
    powers = np.abs(rfftn(chances)) ** rows @ frequencies(points)
    loss = fft_loss(size) * math.sqrt(size * (float(chances.max()) + law.error))
    return float(min(1.0, (float(powers.sum()) / size * ABOVE) ** (1 / rows) * ABOVE + 1.01 * law.error + loss))


def fft_loss(size: int) -> float:
    """The relative error of a transform of so many numbers, in the l2 norm."""
    return FFT_LOSS * math.log2(size) * ULP


def bridge_bounds(transforms: Sequence[Transform], split: Split) -> tuple[float, float]:
    """Bounds on B, the chance that the parts of all rows add up to 0.

    Three errors: of the laws, whose effect is at most their sum times the largest chance of another row's part; of
    transforms, products and sums, by Cauchy and Schwarz with the l2 norm of another row's law; and of parts that add up
    to 0 modulo G but not to 0, by Chernoff's bound, which can only make B smaller.
    """
    box, points = split.box, split.points
    product = transforms[0].values.copy()
    for row in transforms[1:]:
        product *= row.values
    size = points**box.dimensions
    chance = box.total(product.real @ frequencies(points)) / size
    peaks = sorted(row.peak for row in transforms)
    laws = 1.01 * peaks[1] * sum(row.error for row in transforms)
    roots = sum(math.sqrt(peak) for peak in peaks)
    rounding = (8 * len(transforms) + 2 * box.dimensions * points + 16) * ULP
    floats = 1.01 * math.sqrt(peaks[1]) * (fft_loss(size) * roots + rounding)
    exponents = sum(row.log_growth for row in transforms) - split.growth * points
    aliased = ABOVE * float(np.exp(np.minimum(exponents, 0.0)).sum())
    return chance - laws - floats - aliased, chance + laws + floats

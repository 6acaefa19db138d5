"""How the vectors of all rows split at a node, given that they add up to 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.fft import rfftn

from keepsum._arrays import BoolArray, Floats, IntArray
from keepsum.sampling.core.kernel_arguments import ACCEPT_BITS, WORD_BITS
from keepsum.sampling.core.rng import LazyUniform, Stream, Words
from keepsum.sampling.l1.layers.weights import FFT_LOSS, Box, VectorWeights, beyond_boxes, folded, height
from keepsum.sampling.l1.splitting.weights import ULP

# How the vector y of a row splits at a node: the law of the part u below the left child, and what is decided by it.
#
# Given y, u has chance W_L(u) W_R(y - u) / F(y). There may be a million different parts, so they are not drawn by
# inversion, where any number would lie near the threshold of one of them. Each part of the box has an *envelope*, a
# whole number that is at least its weight times a scale, and all others together have one, a power of two. Together
# with what is left up to 2^62 they share the whole numbers below 2^62. A random one falls to a part, which is
# accepted with its weight over its envelope: nearly 1; otherwise the row is drawn again.


PEAK_ROOM = 1.001  # peaks are this much higher than they need be; their errors are far below that
ABOVE = 1 + 1e-9  # for the rounding of sums of positive numbers, powers and roots in upper bounds
SMALLEST = 1e-250  # of F: below, everything is left to the referee
NUMBER_BITS = 62  # of the whole numbers that parts share
SHARE = 0.999  # of them that falls to parts
LARGEST_NORM_ERROR = 0.01  # of laws that numbers t are computed from
TINY = 1e-290  # no chance is taken to be smaller than this without the referee: floats may call it 0


@dataclass(frozen=True, eq=False)
class RowSplit:
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
class Joint:
    """The weights of all parts u of a vector y.

    Attributes
    ----------
    y
        The stored coordinates of y.
    split
        How vectors split at the node.
    values, raised
        W_L(u) W_R(y - u) over the box, and upper bounds on them.
    total, upper
        Their sums.
    missing
        At least the weight of all u that are not in the box.
    """

    y: IntArray
    split: RowSplit
    values: Floats
    raised: Floats
    total: float
    upper: float
    missing: float

    @property
    def error(self) -> float:
        """At least the sum of the errors of all chances, of what lies outside the box too.

        Errors of the weights and what is missing, together e, count twice: in the chances themselves, and in F, which
        is at least the sum of the weights minus e.
        """
        wrong = max(self.upper - self.total, 0.0) + self.missing
        if self.total <= SMALLEST or wrong > self.total / 2:
            return math.inf
        box = self.split.box
        rounding = (2 * box.dimensions * box.side + 64) * ULP
        return 2.01 * wrong / (self.total - wrong) + 2 * rounding

    def log_growth(self, growths: Floats) -> Floats:
        """Logarithms of bounds on the means of e^(s u_j) and e^(-s u_j): one row for each, a column for each s."""
        box, left, right = self.split.box, self.split.left, self.split.right
        marginals = np.stack([box.marginal(self.raised, axis) for axis in range(box.dimensions)])
        u = np.arange(-box.reach, box.reach + 1)
        factors = np.exp(np.multiply.outer(u, growths))
        outside = np.array([beyond_boxes(left, right, height(self.y), s) for s in growths.tolist()])
        moments = np.concatenate([marginals @ factors, marginals[:, ::-1] @ factors]) + outside
        bounds: Floats = np.log(moments * ((1 + 2 * self.error) * ABOVE / self.total))
        return bounds

    def modulo(self, points: int) -> Floats:
        """The chances of parts modulo G."""
        return folded(self.values, self.split.box.reach, points) / self.total


def joint_of(split: RowSplit, y: IntArray) -> Joint:
    """The weights of all parts of a vector."""
    box, left, right = split.box, split.left, split.right
    values, raised = box.product(left.values, right.values, y), box.product(left.raised, right.raised, y)
    missing = max(beyond_boxes(left, right, height(y)), SMALLEST)
    return Joint(y, split, values, raised, box.total(values), box.total(raised), missing)


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
        At least the sum of the errors of all chances.
    log_growth
        Logarithms of bounds on the means of e^(s u_j), for every stored coordinate, and then of e^(-s u_j).
    """

    values: npt.NDArray[np.complex128]
    peak: float
    error: float
    log_growth: Floats


@dataclass(frozen=True, eq=False)
class RowLaw:
    """The law of the part u given y.

    Attributes
    ----------
    y
        The stored coordinates of y.
    envelopes
        The envelope of each u, block by block.
    upto
        The envelopes of all blocks up to each, added up.
    scale
        What weights are multiplied with.
    outside_bits
        The envelope of all other u together is 2 to this power.
    missing
        At least the weight of all u that are not in the box.
    error
        At least the sum of the errors of all chances.
    peak, peak_chance
        At least the largest weight, and that over the sum of them.
    transform
        Its characteristic function; None at the root, and where errors are too large for floats to decide by it.
    """

    y: IntArray
    envelopes: IntArray
    upto: IntArray
    scale: float
    outside_bits: int
    missing: float
    error: float
    peak: float
    peak_chance: float
    transform: Transform | None

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        transformed = 0 if self.transform is None else self.transform.values.nbytes
        return self.envelopes.nbytes + self.upto.nbytes + transformed


def row_law(split: RowSplit, y: IntArray) -> RowLaw:
    """The law of the part of a row with the vector y."""
    joint, box = joint_of(split, y), split.box
    error = joint.error
    peak, chance = PEAK_ROOM * split.left.top * split.right.top, math.inf
    transformed = None
    highest = PEAK_ROOM * float(joint.values.max())
    if error < 1 and 1e3 * error * joint.total <= highest:  # nothing outside the box can be higher
        peak, chance = highest, highest / joint.total
        transformed = _transform(joint) if split.points else None
    scale = SHARE * 2.0**NUMBER_BITS / (joint.upper + 2 * joint.missing)
    envelopes = _envelopes(joint, scale).reshape(-1, box.block)
    upto = np.cumsum(envelopes.sum(axis=1))
    outside_bits = math.ceil(joint.missing * scale * ABOVE).bit_length()
    if int(upto[-1]) + 2**outside_bits > 2**NUMBER_BITS:
        raise AssertionError("the envelopes of a row are too large")
    return RowLaw(y, envelopes, upto, scale, outside_bits, joint.missing, error, peak, chance, transformed)


def _envelopes(joint: Joint, scale: float) -> IntArray:
    """Whole numbers above the weights times the scale, those of weights that floats call 0 too; 0 for no part."""
    box = joint.split.box
    inside = box.inside.astype(np.float64)
    parts = box.product(inside, inside, joint.y).astype(np.int64)
    return (joint.raised * (scale * (1 + 16 * ULP))).astype(np.int64) + 2 * parts


def _transform(joint: Joint) -> Transform:
    split = joint.split
    chances = joint.modulo(split.points)
    peak = float(chances.max()) * ABOVE + joint.error
    return Transform(rfftn(chances), peak, joint.error, joint.log_growth(np.array([split.growth]))[:, 0])


def pick_parts(law: RowLaw, box: Box, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """The places of the parts that whole numbers fall to, and their envelopes; 0 for a number that none has."""
    length = law.envelopes.shape[1]
    blocks = np.searchsorted(law.upto, numbers, side="right")
    inside = blocks < len(law.upto)
    blocks = np.where(inside, blocks, 0)
    before = np.where(blocks > 0, law.upto[blocks - 1], 0)
    within = np.cumsum(law.envelopes[blocks], axis=1)
    place = np.minimum((within <= (numbers - before)[:, None]).sum(axis=1), length - 1)
    return blocks * length + place, np.where(inside, law.envelopes[blocks, place], 0)


def part_weights(split: RowSplit, law: RowLaw, parts: IntArray) -> tuple[Floats, Floats]:
    """Bounds on the weights W_L(u) W_R(y - u) of parts, given by their stored coordinates."""
    box, rest = split.box, law.y - parts
    inside = box.holds(parts) & box.holds(rest)
    u, v = (tuple(np.where(inside[:, None], vectors + box.reach, 0).T) for vectors in (parts, rest))
    lower = np.maximum(split.left.values[u] - split.left.errors[u], 0.0)
    lower = lower * np.maximum(split.right.values[v] - split.right.errors[v], 0.0) * (1 - 8 * ULP)
    upper = split.left.raised[u] * split.right.raised[v] * (1 + 8 * ULP) + TINY
    return np.where(inside, lower, 0.0), np.where(inside, upper, law.missing * ABOVE + TINY)


def frequencies(points: int) -> Floats:
    """The weight of each k = 0, ..., G // 2 along the last axis in the sum over all frequencies, -k included."""
    measure = np.full(points // 2 + 1, 2.0)
    measure[0] = 1.0
    if points % 2 == 0:
        measure[-1] = 1.0
    return measure


def norm(joint: Joint, points: int, rows: int) -> float:
    """t(y): an upper bound on the norm of the characteristic function, at most 1.

    It is the mean of |phi|^r over all frequencies, to the power 1/r. By the triangle inequality the norm of the error
    may be added to that of the computed function, and it is at most the error's largest value.
    """
    error = joint.error
    if error > LARGEST_NORM_ERROR:
        return 1.0
    chances = joint.modulo(points)
    size = chances.size
    powers = np.abs(rfftn(chances)) ** rows @ frequencies(points)
    loss = fft_loss(size) * math.sqrt(size * (float(chances.max()) + error))
    return float(min(1.0, (float(powers.sum()) / size * ABOVE) ** (1 / rows) * ABOVE + 1.01 * error + loss))


def fft_loss(size: int) -> float:
    """The relative error of a transform of so many numbers, in the l2 norm."""
    return FFT_LOSS * math.log2(size) * ULP


def bridge_bounds(transforms: Sequence[Transform], split: RowSplit) -> tuple[float, float]:
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


# A bridge: the parts of all rows at a node, given that they add up to 0.
#
# All rows but one are drawn freely, that one is solved for and accepted with its weight over its peak; otherwise all
# rows are drawn again. Many tries are made at a time, and the first that succeeds counts.


TRIES = 1.5  # tries made at a time, for each that is expected to be needed
MOST_PARTS = 10**5  # parts that are drawn at a time


@dataclass(frozen=True)
class Digits:
    """Uniform numbers of which so many digits are known at first, and where all digits come from."""

    stream: Stream
    count: int

    @classmethod
    def of(cls, stream: Stream, word_bits: int) -> Digits:
        """The digits of words of so many bits."""
        return cls(stream, min(ACCEPT_BITS, word_bits))

    def below(self, low: Floats, high: Floats, referee: Callable[[int, LazyUniform], bool]) -> BoolArray:
        """For each pair of bounds, whether a new number lies below a real between them, which the referee knows."""
        words: Words = self.stream.take(len(low)) >> np.uint64(WORD_BITS - self.count)
        numbers, unit = words.astype(np.float64) * 2.0**-self.count, 2.0**-self.count
        answers: BoolArray = numbers + unit <= low
        for k in np.flatnonzero(~answers & (numbers < high)).tolist():
            answers[k] = referee(k, LazyUniform(self.stream.extra, int(words[k]), self.count))
        return answers


@dataclass(frozen=True)
class PartsReferee:
    """Who settles what floats leave open about a row.

    ``accept(y, u, top, uniform)`` is whether the part u is accepted by its weight over ``top``;
    ``draw_outside(law, uniform)`` is a part outside the box, or None where none is accepted.
    """

    accept: Callable[[IntArray, IntArray, Fraction, LazyUniform], bool]
    draw_outside: Callable[[RowLaw, LazyUniform], IntArray | None]


def tries_at_once(rows: int, dimensions: int) -> int:
    """How many tries are made at a time: about as many as are needed, r^(d/2)."""
    return int(max(2, min(np.ceil(TRIES * rows ** (dimensions / 2)), MOST_PARTS // rows)))


def draw_bridge(
    split: RowSplit, laws: Sequence[RowLaw], digits: Digits, tries: int, referee: PartsReferee
) -> tuple[IntArray, int]:
    """The parts of all rows, their stored coordinates; and the number of tries that were made, those behind it too."""
    # Rounded, so that the last digits of floats, which differ between processors, do not decide between equal rows.
    solved = int(np.argmin(np.round(np.log2([law.peak_chance for law in laws]), 6)))
    alike: dict[bytes, list[int]] = {}  # by their vectors, so that the same seed gives the same draws
    for i, law in enumerate(laws):
        if i != solved:
            alike.setdefault(law.y.tobytes(), []).append(i)
    failed = 0
    while True:
        parts = np.zeros((tries, len(laws), split.box.dimensions), dtype=np.int64)
        for rows in alike.values():
            drawn = draw_parts(split, laws[rows[0]], digits, tries * len(rows), referee)
            parts[:, rows] = drawn.reshape(tries, len(rows), -1)
        parts[:, solved] = -parts.sum(axis=1)
        accepted = accept_solved(split, laws[solved], digits, parts[:, solved], referee)
        if accepted.any():
            first = int(accepted.argmax())
            return parts[first], failed + tries
        failed += tries


def draw_parts(split: RowSplit, law: RowLaw, digits: Digits, count: int, referee: PartsReferee) -> IntArray:
    """So many parts of a row, independent of each other."""
    box = split.box
    parts = np.empty((count, box.dimensions), dtype=np.int64)
    waiting = np.arange(count)
    while len(waiting):
        numbers = (digits.stream.take(len(waiting)) >> np.uint64(WORD_BITS - NUMBER_BITS)).astype(np.int64)
        places, envelopes = pick_parts(law, box, numbers)
        picked = np.stack(np.unravel_index(places, box.shape), axis=1) - box.reach
        accepted = _accept_picked(split, law, digits, picked, envelopes, referee)
        outside = (numbers >= law.upto[-1]) & (numbers - law.upto[-1] < 2**law.outside_bits)
        for k in np.flatnonzero(outside).tolist():
            known = LazyUniform(digits.stream.extra, int(numbers[k] - law.upto[-1]), law.outside_bits)
            part = referee.draw_outside(law, known)
            if part is not None:
                picked[k], accepted[k] = part, True
        parts[waiting[accepted]] = picked[accepted]
        waiting = waiting[~accepted]
    return parts


def _accept_picked(
    split: RowSplit, law: RowLaw, digits: Digits, picked: IntArray, envelopes: IntArray, referee: PartsReferee
) -> BoolArray:
    """Whether parts are accepted by their weights over their envelopes; those without one are not."""
    inside = envelopes > 0
    lower, upper = part_weights(split, law, picked)
    factors = np.where(inside, law.scale / np.maximum(envelopes, 1), 0.0)
    scale = Fraction(law.scale)

    def settle(k: int, uniform: LazyUniform) -> bool:
        return bool(inside[k]) and referee.accept(law.y, picked[k], int(envelopes[k]) / scale, uniform)

    return digits.below(lower * factors * (1 - 8 * ULP), upper * factors * (1 + 8 * ULP), settle)


def accept_solved(split: RowSplit, law: RowLaw, digits: Digits, parts: IntArray, referee: PartsReferee) -> BoolArray:
    """Whether the parts that were solved for are accepted, by their weights over the peak."""
    lower, upper = part_weights(split, law, parts)

    def settle(k: int, uniform: LazyUniform) -> bool:
        return referee.accept(law.y, parts[k], Fraction(law.peak), uniform)

    return digits.below(lower / law.peak * (1 - 8 * ULP), upper / law.peak * (1 + 8 * ULP), settle)

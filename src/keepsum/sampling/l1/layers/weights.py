"""The weights W(y) of the vector y that a row has below a node, on boxes: floats with a proved bound on errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.fft import irfftn, next_fast_len, rfftn

from keepsum._arrays import BoolArray, Floats, IntArray
from keepsum.sampling.l1.splitting.weights import ABOVE, ULP, leaf

# Vectors of c integers with sum 0, none larger than a reach: a box, stored by all coordinates but the last.
#
# Weights are arrays over the box, one axis for each stored coordinate, with index 0 at -reach. Places where the last
# coordinate would be beyond the reach are in the array but not in the box; weights are 0 there.


@dataclass(frozen=True)
class Box:
    """The vectors of ``columns`` integers with sum 0 and entries from -``reach`` to ``reach``."""

    columns: int
    reach: int

    @property
    def dimensions(self) -> int:
        """The number of coordinates that are stored."""
        return self.columns - 1

    @property
    def side(self) -> int:
        """The values of a coordinate."""
        return 2 * self.reach + 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array over the box."""
        return (self.side,) * self.dimensions

    @property
    def size(self) -> int:
        """The number of entries of an array over the box."""
        return int(self.side**self.dimensions)

    @property
    def block(self) -> int:
        """The entries of a block: sums over the box are sums of blocks, so that rounding errors stay small."""
        return int(self.side ** (self.dimensions // 2))

    @cached_property
    def lengths(self) -> IntArray:
        """The sum of the absolute values of all coordinates, for each place."""
        axes = np.meshgrid(*self._axes, indexing="ij", sparse=True)
        total: IntArray = sum((np.abs(axis) for axis in axes), np.abs(sum(axes)))
        return total

    @cached_property
    def heights(self) -> IntArray:
        """The largest absolute value of all coordinates, for each place: beyond the reach outside the box."""
        axes = np.meshgrid(*self._axes, indexing="ij", sparse=True)
        height: IntArray = np.abs(sum(axes))
        for axis in axes:
            height = np.maximum(height, np.abs(axis))
        return height

    @cached_property
    def inside(self) -> BoolArray:
        """Which places of the array are in the box."""
        return self.heights <= self.reach

    @cached_property
    def orbits(self) -> tuple[IntArray, IntArray]:
        """Vectors that differ by the order of coordinates and by sign, of those in the box.

        Returns
        -------
        tuple
            A vector of each orbit, all its coordinates; and the orbit of each place, -1 outside the box.
        """
        places = np.flatnonzero(self.inside)
        stored = np.stack(np.unravel_index(places, self.shape), axis=1).astype(np.int32) - self.reach
        vectors = np.sort(np.column_stack([stored, -stored.sum(axis=1)]).astype(np.int32), axis=1)
        powers = self.side ** np.arange(self.columns, dtype=np.int64)
        codes = np.minimum((vectors + self.reach) @ powers, (self.reach - vectors[:, ::-1]) @ powers)
        _, first, orbit = np.unique(codes, return_index=True, return_inverse=True)
        orbit_of = np.full(self.size, -1, dtype=np.int64)
        orbit_of[places] = orbit.reshape(-1)
        return vectors[first].astype(np.int64), orbit_of.reshape(self.shape)

    @property
    def _axes(self) -> list[IntArray]:
        return [np.arange(-self.reach, self.reach + 1, dtype=np.int64)] * self.dimensions

    def place(self, vector: IntArray) -> tuple[int, ...]:
        """The index of a vector, given by its stored coordinates; it must be in the array."""
        return tuple((vector + self.reach).tolist())

    def holds(self, vectors: IntArray) -> BoolArray:
        """Whether vectors, given by their stored coordinates along the last axis, are in the box."""
        largest: IntArray = np.maximum(np.abs(vectors).max(axis=-1), np.abs(vectors.sum(axis=-1)))
        return largest <= self.reach

    def product(self, left: Floats, right: Floats, y: IntArray) -> Floats:
        """left(u) right(y - u) over the box, for weights with right(-v) = right(v)."""
        joint = np.zeros(self.shape)
        lows, highs = np.maximum(0, y), self.side + np.minimum(0, y)
        if (lows < highs).all():
            here = tuple(slice(a, b) for a, b in zip(lows.tolist(), highs.tolist(), strict=True))
            there = tuple(slice(a, b) for a, b in zip((lows - y).tolist(), (highs - y).tolist(), strict=True))
            np.multiply(left[here], right[there], out=joint[here])
        return joint

    def total(self, weights: Floats) -> float:
        """The sum over the box, axis by axis."""
        while weights.ndim:
            weights = weights.sum(axis=-1)
        return float(weights)

    def marginal(self, weights: Floats, axis: int) -> Floats:
        """The sums over all coordinates but one."""
        behind = weights.reshape(*self.shape[: axis + 1], -1).sum(axis=-1)
        marginal: Floats = behind.reshape(-1, self.side).sum(axis=0)
        return marginal


def height(vector: IntArray) -> int:
    """The largest absolute value of all coordinates of a vector, the last one included."""
    return max(int(np.abs(vector).max()), abs(int(vector.sum())))


def folded(weights: Floats, reach: int, points: int) -> Floats:
    """Weights over a box added up modulo ``points`` in each coordinate, with the vector 0 at index 0.

    >>> folded(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 2, 3).tolist()
    [3.0, 5.0, 7.0]
    """
    front = -reach % points
    for axis in range(weights.ndim):
        width = front + weights.shape[axis]
        turns = -(-width // points)
        shape = list(weights.shape)
        shape[axis] = turns * points
        padded = np.zeros(shape)
        padded[(slice(None),) * axis + (slice(front, width),)] = weights
        shape[axis : axis + 1] = [turns, points]
        weights = padded.reshape(shape).sum(axis=axis)
    return weights


# The weights W(y) of the vector y that a row has below a node: floats with a proved bound on their errors.
#
# As for two-way tables, with vectors of c integers that add up to 0 in place of integers. One layer has the weight
# e^(-eps |v|_1), an inner node the convolution F of its children's weights times the numbers t. Tables end at the
# reach b of a box, the weights do not. Let D(q) be the sum of W(y) e^(q y_1) over all y, which is the same for every
# coordinate and for -q. A coordinate of m needs others that add up to -m, so that D is finite for q < 2 eps, and
# there are bounds W(y) <= U(q) e^(-q |y|_inf). With t <= 1, D_L D_R bounds D along the tree, and D_L U_R bounds U.


# q, in units of epsilon
TILTS = np.array([0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7,
                  0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9])  # fmt: skip
# The error of a fast Fourier transform of N numbers in the l2 norm, relative to their norm, is at most this times
# log2(N) 2^-53. A stage of radix p is a product with the matrix of p-th roots of unity, whose absolute values have
# sqrt(p) times its norm, and one with roots of unity: at most ((p + 2) sqrt(p) + 4) 2^-53, below 11 log2(p) 2^-53 for
# p = 2, 3, 4, 5 and 8 (compare Higham 2002, theorem 24.2). Lengths have no prime factors but 2, 3 and 5.
FFT_LOSS = 16.0
FLOOR = 1e-290  # added to errors: floats may call such weights 0
LARGEST_EXPONENT = 700.0  # of e: beyond, bounds are infinite


@dataclass(frozen=True, eq=False)
class VectorWeights:
    """Weights over a box.

    Attributes
    ----------
    box
        The box; weights of places outside it are 0.
    values, errors
        The weights, and bounds on their absolute errors.
    rates
        Some q.
    log_moments
        For each q, the logarithm of an upper bound on D(q).
    log_tops
        For each q, the logarithm of U(q).
    """

    box: Box
    values: Floats
    errors: Floats
    rates: Floats
    log_moments: Floats
    log_tops: Floats

    @cached_property
    def raised(self) -> Floats:
        """Upper bounds on the weights of the box."""
        upper: Floats = self.values + self.errors
        return upper

    @property
    def top(self) -> float:
        """An upper bound on all weights."""
        beyond = math.exp((self.log_tops - self.rates * (self.box.reach + 1)).min())
        return ABOVE * max(float(self.raised.max()), beyond)

    def within(self, reach: int) -> VectorWeights:
        """The weights of a smaller box, with the same bounds on D and U."""
        window = (slice(self.box.reach - reach, self.box.reach + reach + 1),) * self.box.dimensions
        box = Box(self.box.columns, reach)
        values, errors = (np.where(box.inside, array[window], 0.0) for array in (self.values, self.errors))
        return replace(self, box=box, values=values, errors=errors)

    def times(self, numbers: Floats) -> VectorWeights:
        """The weights times some numbers of at most 1, and times 1 beyond the box."""
        values = self.values * numbers
        errors = (self.errors * numbers + 2 * ULP * values) * (1 + 8 * ULP)
        return measured(VectorWeights(self.box, values, errors, self.rates, self.log_moments, self.log_tops))


def measured(weights: VectorWeights) -> VectorWeights:
    """Weights with the smaller of the given bounds on D and U and those measured in the box.

    Outside the box some coordinate exceeds b, and the sum of W(y) e^(q |y|_inf) there is at most
    2 c e^(-(q' - q)(b + 1)) D(q') for every larger q'. Where e^(qb) is no float, the given bounds stay.
    """
    box, rates, reach = weights.box, weights.rates, weights.box.reach
    fits = rates * reach <= LARGEST_EXPONENT
    tilts = np.where(fits, rates, 0.0)
    inside = np.exp(np.multiply.outer(tilts, np.arange(-reach, reach + 1))) @ box.marginal(weights.raised, 0)
    highest = np.zeros(reach + 1)
    np.maximum.at(highest, box.heights[box.inside], weights.raised[box.inside])
    tops = (highest * np.exp(np.multiply.outer(tilts, np.arange(reach + 1)))).max(axis=1)
    outside = np.exp(_beyond(weights.log_moments, rates, reach))
    log_moments = np.log((inside + 2 * box.columns * outside) * ABOVE)
    log_tops = np.maximum(np.log(tops), _beyond(weights.log_tops, rates, reach)) + math.log(ABOVE)
    return replace(
        weights,
        log_moments=np.where(fits, np.minimum(weights.log_moments, log_moments), weights.log_moments),
        log_tops=np.where(fits, np.minimum(weights.log_tops, log_tops), weights.log_tops),
    )


def _beyond(logs: Floats, rates: Floats, reach: int) -> Floats:
    """For each q, the smallest bound at a larger q' times e^(-(q' - q)(b + 1)), in logarithms."""
    gaps = rates[None, :] - rates[:, None]
    bounds: Floats = np.where(gaps > 0, logs[None, :] - gaps * (reach + 1), np.inf).min(axis=1)
    return np.where(bounds > LARGEST_EXPONENT, np.inf, bounds)


def layer_log_moments(epsilon: Fraction, columns: int, rates: Floats) -> Floats:
    """The logarithm of an upper bound on D(q) for one layer: the sum of e^(-eps |m| + qm) g(m) over all integers m.

    g is the weight of all other coordinates, which add up to -m: that of a sum of c - 1 cells. From m to m + 1 it falls
    by at least the factor e^(-eps) (m + c - 1)/(m + 1), as its terms do: g(m) is the sum over N of
    C(N+m+c-2, c-2) C(N+c-2, c-2) e^(-eps (2N + m)). So beyond the last m that is added up the terms are at most
    geometric.
    """
    rate = float(epsilon)
    others = leaf(epsilon, columns - 1, math.ceil(100 / rate))
    m = np.arange(others.reach + 1)
    weights = np.ldexp(others.values + others.errors, others.exponent)
    terms = weights * np.exp(np.multiply.outer(rates - rate, m))
    below = weights * np.exp(np.multiply.outer(-rates - rate, m))
    falls = np.exp(rates - 2 * rate) * (others.reach + columns) / (others.reach + 1)
    with np.errstate(divide="ignore"):
        tails = np.where(falls < 1, terms[:, -1] / np.maximum(1 - falls, 0.0), np.inf)
    bounds: Floats = np.log((terms.sum(axis=1) + below[:, 1:].sum(axis=1) + 2 * tails) * ABOVE)
    return bounds


def layer_weights(epsilon: Fraction, box: Box) -> VectorWeights:
    """e^(-eps |v|_1) of one layer: errors of epsilon as a float, of the product, and of the exponential."""
    rate = float(epsilon)
    rates = rate * TILTS
    exponents = rate * np.arange(int(box.lengths.max()) + 1)
    by_length = np.exp(-exponents)
    values = np.where(box.inside, by_length[box.lengths], 0.0)
    errors = np.where(box.inside, (by_length * (3 * exponents + 8) * ULP + FLOOR)[box.lengths], 0.0)
    # |v|_1 >= 2 |v|_inf, so U(q) = 1.
    return VectorWeights(
        box, values, errors, rates, layer_log_moments(epsilon, box.columns, rates), np.zeros(len(rates))
    )


def beyond_boxes(left: VectorWeights, right: VectorWeights, m: int, growth: float = 0.0, reach: int = -1) -> float:
    """A bound on the sum of W_L(u) W_R(y - u) e^(s |u|_inf) over the u with u or y - u outside the box, |y|_inf = m."""
    log = log_beyond_boxes(left, right, m, growth, reach)
    return math.exp(log) if log < LARGEST_EXPONENT else math.inf


def log_beyond_boxes(left: VectorWeights, right: VectorWeights, m: int, growth: float = 0.0, reach: int = -1) -> float:
    """The logarithm of that bound.

    For |u|_inf > b, W_R(y - u) <= U_R e^(-q(|u|_inf - m)), and the sum of W_L(u) e^(-(q - s) |u|_inf) there is at most
    2 c D_L e^(-(2q - s)(b + 1)); with the roles changed |u|_inf <= |y - u|_inf + m. ``growth`` is s. With ``reach``,
    the box ends there. Without growth the bound U e^(-qm) on the sum over all u may be smaller.
    """
    b, q = (left.box.reach if reach < 0 else reach), left.rates
    logs = np.logaddexp(left.log_moments + right.log_tops, right.log_moments + left.log_tops)
    exponents = (logs + (q + growth) * m - (2 * q - growth) * (b + 1))[2 * q >= growth]
    log = float(exponents.min()) + math.log(2 * left.box.columns)
    if growth == 0:
        log = min(log, float((_log_tops(left, right) - q * m).min()))
    return log + math.log(ABOVE)


def _log_tops(left: VectorWeights, right: VectorWeights) -> Floats:
    """The logarithm of U(q) for F: the smaller of D_L U_R and D_R U_L."""
    return np.minimum(left.log_moments + right.log_tops, right.log_moments + left.log_tops)


def _joined(left: VectorWeights, right: VectorWeights, values: Floats, errors: Floats) -> VectorWeights:
    """F with its bounds: D_L D_R on D, and those on U."""
    moments = left.log_moments + right.log_moments
    return measured(VectorWeights(left.box, values, errors, left.rates, moments, _log_tops(left, right)))


def convolve(left: VectorWeights, right: VectorWeights) -> VectorWeights:
    """F, the convolution of two weights, by the fast Fourier transform: absolute errors, the same for all y."""
    box = left.box
    points = next_fast_len(3 * box.reach + 1, real=True)  # places that wrap around end up outside the box
    sizes = (points,) * box.dimensions

    def convolution(a: Floats, b: Floats) -> Floats:
        window = (slice(box.reach, box.reach + box.side),) * box.dimensions
        product: Floats = irfftn(rfftn(a, sizes) * rfftn(b, sizes), sizes)[window]
        return np.where(box.inside, np.maximum(product, 0.0), 0.0)

    values = convolution(left.values, right.values)
    norms = [math.sqrt(box.total(weights.raised**2)) for weights in (left, right)]
    sums = [box.total(weights.raised) for weights in (left, right)]
    loss = FFT_LOSS * box.dimensions * math.log2(points) * ULP
    flat = 1.05 * loss * (2 * norms[0] * norms[1] + min(sums[0] * norms[1], sums[1] * norms[0]))
    # Of the factors: three positive convolutions, together one with the errors and the raised weights.
    factors = convolution(left.errors, right.raised) + convolution(left.values, right.errors) + 3 * flat
    missing = np.array([beyond_boxes(left, right, m) for m in range(box.reach + 1)])
    errors = np.where(box.inside, factors + missing[np.minimum(box.heights, box.reach)], 0.0)
    return _joined(left, right, values, errors)


def pair(epsilon: float, layer: VectorWeights) -> VectorWeights:
    """F of two layers: sums of positive terms, so that errors are relative.

    F(y) is the sum, over the u with sum 0, of the product over coordinates of e^(-eps (|u_j| + |y_j - u_j|)): one
    coordinate after the other is added, for all vectors that begin alike at once. Terms with |u|_inf > T are left out.
    """
    box = layer.box
    vectors, orbit_of = box.orbits
    reach = 2 * box.reach + math.ceil(12 / epsilon)
    u = np.arange(-reach, reach + 1)
    cells = {y: np.exp(-epsilon * (np.abs(u) + np.abs(y - u))) for y in range(-box.reach, box.reach + 1)}
    begun, beginnings = _beginnings(cells, vectors, reach)
    last = np.stack([cells[y][::-1] for y in range(-box.reach, box.reach + 1)])
    by_orbit = np.einsum("ij,ij->i", begun[beginnings], last[vectors[:, -1] + box.reach])
    values = np.where(orbit_of >= 0, by_orbit[orbit_of], 0.0)
    missing = np.array([beyond_boxes(layer, layer, m, reach=reach) for m in range(box.reach + 1)])
    relative = (3 * epsilon * 4 * box.columns * reach + (box.columns + 1) * (2 * box.columns * reach + 16)) * ULP
    errors = values * relative + np.where(box.inside, missing[np.minimum(box.heights, box.reach)] + FLOOR, 0.0)
    return _joined(layer, layer, values, errors)


def _beginnings(cells: dict[int, Floats], vectors: IntArray, reach: int) -> tuple[Floats, IntArray]:
    """The weights of the sum of all coordinates of u but the last, and the row that has those of each vector."""
    sums, begins = np.ones((1, 1)), np.zeros(len(vectors), dtype=np.int64)
    columns = vectors.shape[1]
    for j in range(columns - 1):
        codes, begins = np.unique(begins * (2 * reach + 1) + vectors[:, j] + reach, return_inverse=True)
        begins = begins.reshape(-1)
        before, value = codes // (2 * reach + 1), codes % (2 * reach + 1) - reach
        end = min(j + 1, columns - 1 - j) * reach  # the others cannot make up for more
        longer = np.zeros((len(codes), 2 * end + 1))
        for y in np.unique(value).tolist():
            rows = value == y
            longer[rows] = sums[before[rows]] @ _toeplitz(cells[y], sums.shape[1] // 2, end)
        sums = longer
    return sums, begins


def _toeplitz(cell: Floats, start: int, end: int) -> Floats:
    """The matrix whose product with weights of -start, ..., start is their convolution at -end, ..., end."""
    shifts = np.arange(-end, end + 1)[None, :] - np.arange(-start, start + 1)[:, None]
    half = len(cell) // 2
    inside = np.abs(shifts) <= half
    return np.where(inside, cell[np.clip(shifts, -half, half) + half], 0.0)

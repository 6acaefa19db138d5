"""What floats leave open about layers, settled in ball arithmetic with as many digits as it takes.

The weights are those that the float tables approximate: the same tree and the same numbers t (floats, taken as the
exact numbers that they are), but as balls, and in boxes as large as the digits require. Every function here works
with the precision that is set when it is called, and its result shrinks to a point as that grows.

Convolutions of weights over a box are products of polynomials in one variable: the vector u becomes the exponent
u_1 g^(d-1) + ... + u_d, for a base g.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np
from flint import arb, arb_poly, ctx

from keepsum._arrays import IntArray
from keepsum.sampling.core.balls import ball, digits, precision
from keepsum.sampling.core.rng import LazyUniform
from keepsum.sampling.l1.layers.laws import LARGEST_NORM_ERROR, RowSplit, joint_of
from keepsum.sampling.l1.layers.nodes import NodeTables
from keepsum.sampling.l1.layers.weights import LARGEST_EXPONENT, Box, height, log_beyond_boxes

KEPT = 200  # factors that are kept for the next question
ENTRIES_KEPT = 3 * 10**6  # weights, and weights of parts, that are kept
LOG_ROOM = 1e-6  # for the rounding of logarithms that are computed by floats
WIDER_TILTS = np.array([2.2, 2.6, 3.0, 3.4])  # more s that are tried, in units of epsilon
STEP = 4  # reaches are multiples of this, so that questions share boxes

Vector = tuple[int, ...]  # its stored coordinates


@dataclass(frozen=True, eq=False)
class PartBalls:
    """The weights of the parts of a vector, as balls, in the order of their largest coordinates.

    All parts that are not in the box together weigh at most ``missing``.
    """

    box: Box
    vectors: IntArray
    weights: list[arb]
    missing: arb

    @cached_property
    def whole(self) -> arb:
        """The weight of all parts, F(y)."""
        return sum(self.weights, arb(0)) + self.missing * arb(0.5, 0.5)


class LayersReferee:
    """Settles the comparisons of one table's sampler."""

    def __init__(self, epsilon: Fraction, tables: Sequence[NodeTables]) -> None:
        self._epsilon, self._tables = epsilon, tables
        self._box = tables[0].weights.box
        self._weights: dict[tuple[int, int, int], list[arb]] = {}
        self._parts: dict[tuple[int, Vector, int], PartBalls] = {}
        self._factors: dict[tuple[int, tuple[Vector, ...], int], arb] = {}
        self._upto: dict[tuple[int, Vector, int], list[arb]] = {}

    def draw_outside(self, node_class: int, y: Vector, top: Fraction, uniform: LazyUniform) -> IntArray | None:
        """A part outside the float tables' box, each with its weight over ``top``, by inversion; or None.

        Parts u count as outside if u or y - u is.
        """

        def upto(k: int) -> Callable[[int], tuple[int, int]]:
            return digits(lambda: self.outside_upto(node_class, y, k) / ball(top))

        if not uniform.below(upto(-1)):
            return None
        with precision(96):
            parts = self.parts(node_class, y)
            outside = zip(parts.weights, self._outside(parts, y), strict=True)
            weights = np.array([float(weight.mid()) for weight, out in outside if out])
        k = max(0, min(int(np.searchsorted(np.cumsum(weights) / float(top), uniform.known)), len(weights) - 1))
        while k > 0 and uniform.below(upto(k - 1)):
            k -= 1
        while not uniform.below(upto(k)):
            k += 1
        return self._nth_outside(y, k, parts.box)

    def accept_part(self, node_class: int, y: Vector, u: Vector, top: Fraction, uniform: LazyUniform) -> bool:
        """Whether a part is accepted, by its weight over ``top``."""
        children = self._children(node_class)
        rest = tuple(a - b for a, b in zip(y, u, strict=True))

        def chance() -> arb:
            return self.weight(children[0], u) * self.weight(children[1], rest) / ball(top)

        return uniform.below(digits(chance))

    def accept_vectors(self, node_class: int, vectors: Sequence[Vector], uniform: LazyUniform) -> bool:
        """Whether the vectors below a node are accepted: B over the product of t."""
        return uniform.below(digits(lambda: self.factor(node_class, vectors)))

    def factor(self, node_class: int, vectors: Sequence[Vector]) -> arb:
        """B over the product of t, for the vectors of all rows."""
        key = (node_class, tuple(sorted(vectors)), ctx.prec)
        if key not in self._factors:
            if len(self._factors) >= KEPT:
                self._factors.clear()
            rows, numbers = Counter(vectors), arb(1)
            for y, count in rows.items():
                numbers *= self.number(node_class, y) ** count
            self._factors[key] = self.bridge_chance(node_class, rows) / numbers
        return self._factors[key]

    def number(self, node_class: int, y: Vector) -> arb:
        """The number t(y), which is 1 outside the float tables' box."""
        place = np.array(y)
        inside = bool(self._box.holds(place))
        return arb(float(self._tables[node_class].numbers[self._box.place(place)])) if inside else arb(1)

    def weight(self, node_class: int, y: Vector) -> arb:
        """W(y)."""
        box = Box(self._box.columns, self._reach(node_class, y))
        return self.weights(node_class, box)[int(np.ravel_multi_index(box.place(np.array(y)), box.shape))]

    def weights(self, node_class: int, box: Box) -> list[arb]:
        """W over a box, place by place; 0 outside it."""
        key = (node_class, box.reach, ctx.prec)
        if key not in self._weights:
            if sum(map(len, self._weights.values())) > ENTRIES_KEPT:
                self._weights.clear()
            children = self._tables[node_class].children
            self._weights[key] = self._layer(box) if children is None else self._inner(node_class, children, box)
        return self._weights[key]

    def parts(self, node_class: int, y: Vector) -> PartBalls:
        """The weights of the parts of y."""
        key = (node_class, y, ctx.prec)
        if key not in self._parts:
            if sum(len(parts.weights) for parts in self._parts.values()) > ENTRIES_KEPT:
                self._parts.clear()
            self._parts[key] = self._new_parts(node_class, y)
        return self._parts[key]

    def outside_upto(self, node_class: int, y: Vector, k: int) -> arb:
        """The weight of parts outside the float tables' box, from the first to number k; of all of them for -1."""
        key = (node_class, y, ctx.prec)
        parts = self.parts(node_class, y)
        if key not in self._upto:
            if sum(map(len, self._upto.values())) > ENTRIES_KEPT:
                self._upto.clear()
            outside = [weight for weight, out in zip(parts.weights, self._outside(parts, y), strict=True) if out]
            self._upto[key] = list(accumulate(outside, initial=arb(0)))
        upto = self._upto[key]
        return upto[k + 1 if 0 <= k < len(upto) - 1 else -1] + parts.missing * arb(0.5, 0.5)

    def _outside(self, parts: PartBalls, y: Vector) -> list[bool]:
        inside = self._box.holds(parts.vectors) & self._box.holds(np.array(y) - parts.vectors)
        return [not held for held in inside.tolist()]

    def _nth_outside(self, y: Vector, k: int, box: Box) -> IntArray:
        """The part at a place of the order, however far that is."""
        while True:
            vectors = _ordered(box)
            outside: IntArray = vectors[~(self._box.holds(vectors) & self._box.holds(np.array(y) - vectors))]
            if k < len(outside):
                part: IntArray = outside[k]
                return part
            box = Box(box.columns, box.reach + STEP)

    def bridge_chance(self, node_class: int, rows: Counter[Vector]) -> arb:
        """B, the chance that the parts of all rows add up to 0; so many rows have that vector.

        The constant term of a product of polynomials modulo x^n - 1, where n = g^d. It includes sums that are not 0 but
        whose exponent is 0 modulo n; then some coordinate is g or more, or -g or less, which Chernoff's bound makes
        small for a large g.
        """
        log_alias, q, base = self._alias(node_class, rows)
        size, lost = base**self._box.dimensions, arb(0)
        product, last = arb_poly([1]), arb_poly([1])
        for y, count in rows.items():
            parts = self.parts(node_class, y)
            for factor in _powers(_polynomial(parts, base), count, size):
                product, last = _folded(product * last, size), factor
            lost += count * parts.missing / parts.whole
        first, second = (factor.coeffs() + [arb(0)] * (size - len(factor)) for factor in (product, last))
        chance = sum((a * b for a, b in zip(first, [second[0], *second[:0:-1]], strict=True)), arb(0))
        aliased = (log_alias - arb(q) * base).exp()
        # Sums may be smaller by what is aliased, and larger by what lies outside the boxes.
        return chance - aliased * arb(0.5, 0.5) + lost * arb(0.5, 0.5)

    def _new_parts(self, node_class: int, y: Vector) -> PartBalls:
        """W_L(u) W_R(y - u), and a bound on all that are left out."""
        children = self._children(node_class)
        box = Box(self._box.columns, self._reach(node_class, y))
        below, behind = (self.weights(child, box) for child in children)
        vectors = _ordered(box)
        rest = np.array(y) - vectors
        held = box.holds(rest)
        first = np.ravel_multi_index(tuple((vectors + box.reach).T), box.shape).tolist()
        second = np.ravel_multi_index(tuple(np.where(held[:, None], rest + box.reach, 0).T), box.shape).tolist()
        zero = arb(0)
        weights = [
            below[i] * behind[j] if inside else zero for i, j, inside in zip(first, second, held.tolist(), strict=True)
        ]
        missing = self._beyond(node_class, height(np.array(y)), box.reach)
        return PartBalls(box, vectors, weights, missing)

    def _children(self, node_class: int) -> tuple[int, int]:
        children = self._tables[node_class].children
        if children is None:
            raise AssertionError("a layer has no parts")
        return children

    def _layer(self, box: Box) -> list[arb]:
        a = ball(-self._epsilon).exp()
        powers = list(accumulate([a] * int(box.lengths.max()), lambda x, y: x * y, initial=arb(1)))
        zero = arb(0)
        places = zip(box.lengths.reshape(-1).tolist(), box.inside.reshape(-1).tolist(), strict=True)
        return [powers[length] if inside else zero for length, inside in places]

    def _inner(self, node_class: int, children: tuple[int, int], box: Box) -> list[arb]:
        """F t, F the convolution of the children's weights."""
        base = 3 * box.reach + 1  # sums of two coordinates that wrap around end up outside the box
        exponents = _exponents(box, base)
        product = arb_poly([1])
        for child in children:
            product *= _spread(self.weights(child, box), exponents)
        middle = int(exponents[-1]) // 2
        numbers, zero = self._numbers(node_class, box), arb(0)
        missing = [self._beyond(node_class, m, box.reach) * arb(0.5, 0.5) for m in range(box.reach + 1)]
        heights, inside = box.heights.reshape(-1).tolist(), box.inside.reshape(-1).tolist()
        return [
            (product[exponent + middle] + missing[m]) * arb(t) if held else zero
            for exponent, m, held, t in zip(exponents.tolist(), heights, inside, numbers, strict=True)
        ]

    def _numbers(self, node_class: int, box: Box) -> list[float]:
        """The numbers t over a box that is at least as large as that of the float tables, place by place."""
        numbers = np.ones(box.shape)
        small = self._box.reach
        window = slice(box.reach - small, box.reach + small + 1)
        numbers[(window,) * box.dimensions] = self._tables[node_class].numbers
        return [float(t) for t in numbers.reshape(-1)]

    def _reach(self, node_class: int, y: Vector) -> int:
        """How large a box must be for what lies outside to be below the precision, for the vector y."""
        vector = np.array(y)
        m, reach = height(vector), self._box.reach
        if self._tables[node_class].split is not None:
            length = float(np.abs(vector).sum() + abs(vector.sum()))
            wanted = -(ctx.prec + 8) * math.log(2) - float(self._epsilon) * length
            while self._log_beyond(node_class, m, reach) > wanted:
                reach += STEP
        return max(-(-reach // STEP) * STEP, m)

    def _log_beyond(self, node_class: int, m: int, reach: int) -> float:
        """The logarithm of a bound on the sum of W_L(u) W_R(y - u) over the u with u or y - u outside a box."""
        left, right = (self._tables[child].weights for child in self._children(node_class))
        return log_beyond_boxes(left, right, m, reach=reach)

    def _beyond(self, node_class: int, m: int, reach: int) -> arb:
        return arb(self._log_beyond(node_class, m, reach)).exp()

    def _alias(self, node_class: int, rows: Counter[Vector]) -> tuple[arb, float, int]:
        """A base for exponents, and s and the logarithm of a bound: aliasing weighs at most that times e^(-s base).

        That of the product, over all rows, of the means of e^(s u_j) or e^(-s u_j), for the coordinate where it is
        largest times their number. Means are bounded by floats; for a vector that is too far out for them, by
        D_L(s) times the largest W_R, over F.
        """
        left, right = (self._tables[child].weights for child in self._children(node_class))
        split = RowSplit(left, right)
        fits = LARGEST_EXPONENT / self._box.reach
        rates = np.concatenate([left.rates, float(self._epsilon) * WIDER_TILTS])
        rates = rates[rates <= fits] if (rates <= fits).any() else rates[:1]
        logs = np.zeros((2 * self._box.dimensions, len(rates)))
        for y, count in rows.items():
            joint = joint_of(split, np.array(y))
            if joint.error <= LARGEST_NORM_ERROR:
                logs += count * joint.log_growth(rates)
            else:
                far = np.full(len(rates), np.inf)
                known = min(len(rates), len(left.rates))
                whole = float(self.parts(node_class, y).whole.log().lower())
                far[:known] = left.log_moments[:known] + math.log(right.top) - whole
                logs += count * far
        highest = logs.max(axis=0) + math.log(2 * self._box.dimensions)
        bases = (highest + ctx.prec * math.log(2)) / rates
        k = int(bases.argmin())
        return arb(float(highest[k])) + arb(LOG_ROOM), float(rates[k]), math.ceil(float(bases[k])) + 1


def _ordered(box: Box) -> IntArray:
    """The vectors of a box, those with smaller coordinates first."""
    places = np.flatnonzero(box.inside)
    ordered = places[np.argsort(box.heights.reshape(-1)[places], kind="stable")]
    return np.stack(np.unravel_index(ordered, box.shape), axis=1) - box.reach


def _exponents(box: Box, base: int) -> IntArray:
    """The exponent of each place of a box, 0 for the first one."""
    axes = np.meshgrid(*[np.arange(box.side, dtype=np.int64)] * box.dimensions, indexing="ij", sparse=True)
    total: IntArray = sum(
        (axis * base ** (box.dimensions - 1 - k) for k, axis in enumerate(axes)), np.zeros(box.shape, dtype=np.int64)
    )
    return total.reshape(-1)


def _spread(weights: Sequence[arb], exponents: IntArray) -> arb_poly:
    """The polynomial with these coefficients; exponents that occur twice add up."""
    zero = arb(0)
    coefficients = [zero] * (int(exponents.max()) + 1)
    for exponent, weight in zip(exponents.tolist(), weights, strict=True):
        coefficients[exponent] = coefficients[exponent] + weight
    return arb_poly(coefficients)


def _polynomial(parts: PartBalls, base: int) -> arb_poly:
    """The law of a part as a polynomial modulo x^n - 1, n = g^d."""
    dimensions = parts.box.dimensions
    powers = base ** np.arange(dimensions - 1, -1, -1, dtype=np.int64)
    chances = [weight / parts.whole for weight in parts.weights]
    return _spread(chances, parts.vectors @ powers % base**dimensions)


def _powers(polynomial: arb_poly, count: int, size: int) -> list[arb_poly]:
    """Polynomials whose product is that power modulo x^n - 1, at least two of them for more than one factor."""
    if count < 4:
        return [polynomial] * count
    half = _powers(polynomial, count // 2, size)
    while len(half) > 1:
        half = [*half[2:], _folded(half[0] * half[1], size)]
    return half * 2 + [polynomial] * (count % 2)


def _folded(polynomial: arb_poly, size: int) -> arb_poly:
    """A polynomial of degree below 2n modulo x^n - 1."""
    coefficients = polynomial.coeffs()
    low, high = coefficients[:size], coefficients[size:]
    return arb_poly([a + b for a, b in zip(low, high, strict=False)] + low[len(high) :])

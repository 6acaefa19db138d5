"""What floats leave open, settled in ball arithmetic with as many digits as it takes.

The weights W are those that the float tables approximate: the same tree, the same numbers t (floats, taken as the
exact numbers that they are), the same powers of two; but as balls, and as far out as the digits require. Every
function here works with the precision that is set when it is called, and its result shrinks to a point as that grows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from flint import arb, arb_poly, ctx

from keepsum.sampling.core.balls import ball, digits, precision
from keepsum.sampling.core.rng import LazyUniform
from keepsum.sampling.l1.splitting.laws import Law, Laws
from keepsum.sampling.l1.splitting.tree import Tree

TILT = Fraction(4, 5)  # q, in units of epsilon, of the moments that bound what lies beyond a table
KEPT = 1000  # laws of parts that are kept for the next question


@dataclass(frozen=True, eq=False)
class Parts:
    """The chances of u = lowest, lowest + 1, ... given y, as balls; all others together have at most ``rest``."""

    lowest: int
    chances: list[arb]
    rest: arb


class SplittingReferee:
    """Settles the comparisons of one table's sampler."""

    def __init__(self, epsilon: Fraction, tree: Tree, laws: Laws) -> None:
        self._epsilon, self._tree, self._laws = epsilon, tree, laws
        self._cells = [0] * len(laws.laws)
        for c, node_class in enumerate(tree.classes):
            for law, cells in zip(laws.law_of[c].tolist(), node_class.cells, strict=True):
                self._cells[law] = cells
        self._weights: dict[tuple[int, int], list[arb]] = {}
        self._parts: dict[tuple[int, int, int], Parts] = {}
        self._cumulative: dict[tuple[int, int, int], list[arb]] = {}

    def draw_sum(self, node: int, row: int, y: int, uniform: LazyUniform) -> int:
        """The sum u below the left child given y: the smallest u whose cumulative chance lies above the number."""
        law = self._law_of(node, row)
        with precision(96):
            parts = self.parts(law, y)
            upto = np.cumsum([float(chance.mid()) for chance in parts.chances])
        u = parts.lowest + int(np.searchsorted(upto, uniform.known))
        while uniform.below(digits(lambda u=u: self.upto(law, y, u - 1))):  # type: ignore[misc]
            u -= 1
        while not uniform.below(digits(lambda u=u: self.upto(law, y, u))):  # type: ignore[misc]
            u += 1
        return u

    def accept_row(self, node: int, row: int, y: int, u: int, uniform: LazyUniform) -> int:
        """Whether the part that was solved for is accepted."""
        law = self._laws.laws[self._law_of(node, row)]
        left, right = law.parts

        def chance() -> arb:
            weights = self.weights(left, abs(u))[abs(u)] * self.weights(right, abs(y - u))[abs(y - u)]
            return weights / arb(self._peak(law, abs(y)))

        return int(uniform.below(digits(chance)))

    def accept_node(self, node: int, sums: Sequence[int], uniform: LazyUniform) -> int:
        """Whether the sums below a node are accepted: B over the product of t."""
        rows = Counter((self._law_of(node, row), y) for row, y in enumerate(sums))

        def chance() -> arb:
            numbers = arb(1)
            for (law, y), count in rows.items():
                numbers *= self._number(self._laws.laws[law], abs(y)) ** count
            return self.bridge_chance(rows) / numbers

        return int(uniform.below(digits(chance)))

    def weights(self, law: int, reach: int) -> list[arb]:
        """W(0), W(1), ..., at least up to the reach."""
        known = self._weights.get((law, ctx.prec), [])
        if len(known) <= reach:
            reach = max(reach, 64, 3 * len(known) // 2)
            known = self._leaf(law, reach) if self._laws.laws[law].branch is None else self._inner(law, reach)
            self._weights[law, ctx.prec] = known
        return known

    def parts(self, law: int, y: int) -> Parts:
        """The law of u given y >= 0."""
        key = (law, y, ctx.prec)
        if key not in self._parts:
            if len(self._parts) >= KEPT:
                self._parts.clear()
                self._cumulative.clear()
            left, right = self._laws.laws[law].parts
            reach = self._reach(law, y)
            below, behind = self.weights(left, reach), self.weights(right, reach)
            joint = [below[abs(u)] * behind[abs(y - u)] for u in range(y - reach, reach + 1)]
            missing = self._beyond(law, y, reach)
            whole = sum(joint, arb(0)) + missing * arb(0.5, 0.5)
            self._parts[key] = Parts(y - reach, [weight / whole for weight in joint], missing / whole)
        return self._parts[key]

    def upto(self, law: int, y: int, u: int) -> arb:
        """The chance of a part of at most u."""
        parts = self.parts(law, y)
        key = (law, y, ctx.prec)
        if key not in self._cumulative:
            self._cumulative[key] = list(accumulate(parts.chances))
        doubt = parts.rest * arb(0.5, 0.5)
        if u < parts.lowest:
            return doubt
        upto = self._cumulative[key]
        return upto[min(u - parts.lowest, len(upto) - 1)] + doubt

    def bridge_chance(self, rows: Counter[tuple[int, int]]) -> arb:
        """B, the chance that the parts of all rows add up to 0; so many rows have that law and that sum.

        A product of polynomials, cut where sums have a negligible chance: all that was cut off is what the chances
        that are left lack of 1.
        """
        variance = 0.0
        for (law, y), count in rows.items():
            variance += count * self._mean_and_variance(law, y)[1]
        window = math.ceil(1.6 * math.sqrt(ctx.prec * variance) + ctx.prec / float(self._epsilon)) + 1
        product = Product(0, arb_poly([1]), 0.0)
        for (law, y), count in rows.items():
            product = product.times(self._polynomial(law, y).power(count, window), window)
        lost = 1 - product.polynomial.evaluate([arb(1)])[0]
        chance = product.polynomial[-product.lowest] if product.lowest <= 0 else arb(0)
        return chance + abs(lost) * arb(0.5, 0.5)

    def _polynomial(self, law: int, y: int) -> Product:
        parts = self.parts(law, abs(y))
        mean = self._mean_and_variance(law, y)[0]
        if y >= 0:
            return Product(parts.lowest, arb_poly(parts.chances), mean)
        return Product(-parts.lowest - len(parts.chances) + 1, arb_poly(parts.chances[::-1]), mean)

    def _mean_and_variance(self, law: int, y: int) -> tuple[float, float]:
        """About the mean and the variance of a part: they say where to cut, and decide nothing."""
        parts = self.parts(law, abs(y))
        chances = np.array([float(chance.mid()) for chance in parts.chances])
        values = parts.lowest + np.arange(len(chances))
        mean = float(chances @ values)
        return (mean if y >= 0 else -mean), float(chances @ (values - mean) ** 2)

    def _leaf(self, law: int, reach: int) -> list[arb]:
        """The law of a sum of n cells: (1 - a^2)^n times the sum over N of C(N+S+n-1, N+S) C(N+n-1, N) a^(2N+S)."""
        cells = self._cells[law]
        if cells == 0:
            return [arb(1)] + [arb(0)] * reach
        a = ball(-self._epsilon).exp()
        powers = list(accumulate([a] * reach, lambda x, y: x * y, initial=arb(1)))
        if cells == 1:
            return powers
        scale = (1 - a**2) ** cells * arb(2) ** -self._laws.laws[law].weights.exponent
        binomial, weights = arb(1), []
        for s in range(reach + 1):
            weights.append(scale * binomial * powers[s] * (a**2).hypgeom_2f1(cells, cells + s, s + 1))
            binomial *= arb(s + cells) / (s + 1)
        return weights

    def _inner(self, law: int, reach: int) -> list[arb]:
        """F t, F the convolution of the children's weights."""
        this = self._laws.laws[law]
        (left, right), farther = this.parts, self._reach(law, reach)
        below, behind = self.weights(left, farther)[: farther + 1], self.weights(right, farther)[: farther + 1]
        product = arb_poly(below[:0:-1] + below) * arb_poly(behind[:0:-1] + behind)
        exponents = [self._laws.laws[part].weights.exponent for part in this.parts]
        scale = arb(2) ** (sum(exponents) - this.weights.exponent)
        return [
            (product[2 * farther + y] + self._beyond(law, y, farther) * arb(0.5, 0.5)) * scale * self._number(this, y)
            for y in range(reach + 1)
        ]

    def _reach(self, law: int, y: int) -> int:
        """How far the children's weights must go for what lies beyond to be below the precision, for sums up to y."""
        rate, q = float(self._epsilon), float(TILT)
        cells = self._cells[law]
        growth = 2 * math.log(-math.expm1(-rate)) - math.log(math.expm1((q - 1) * rate) * math.expm1(-(q + 1) * rate))
        digits_needed = (ctx.prec + 8) * math.log(2) + cells * growth
        return math.ceil(((1 + q) * y + digits_needed / rate) / (2 * q)) + 2

    def _beyond(self, law: int, y: int, reach: int) -> arb:
        """A bound on the sum of W_L(u) W_R(y - u) over the u with |u| or |y - u| beyond the reach (``weights.py``)."""
        epsilon, q = self._epsilon, TILT * self._epsilon
        moment = -ball(-2 * epsilon).expm1() / (ball(q - epsilon).expm1() * ball(-q - epsilon).expm1())
        exponents = sum(self._laws.laws[part].weights.exponent for part in self._laws.laws[law].parts)
        return 4 * moment ** self._cells[law] * ball(q * (y - 2 * reach)).exp() * arb(2) ** -exponents

    def _law_of(self, node: int, row: int) -> int:
        return int(self._laws.law_of[self._tree.class_of[node], self._tree.kind_of_row[row]])

    @staticmethod
    def _number(law: Law, y: int) -> arb:
        """t(y), which is 1 beyond the tables."""
        return arb(float(law.split.numbers[y])) if law.split is not None and y <= law.split.reach else arb(1)

    def _peak(self, law: Law, y: int) -> float:
        """What the weights of parts are measured by: the table's peak, or a bound on all weights."""
        if law.split is not None and y <= law.split.reach:
            return float(law.split.peak[y])
        left, right = (self._laws.laws[part].weights for part in law.parts)
        return 1.001 * left.top * right.top


@dataclass(frozen=True, eq=False)
class Product:
    """The law of a sum, as a polynomial whose first coefficient is the chance of ``lowest``, and about its mean."""

    lowest: int
    polynomial: arb_poly
    mean: float

    def times(self, other: Product, window: int) -> Product:
        """The law of the sum of both, cut to a window around the mean."""
        lowest, mean = self.lowest + other.lowest, self.mean + other.mean
        product = self.polynomial * other.polynomial
        cut = max(0, round(mean) - window - lowest)
        kept = arb_poly(product.coeffs()[cut : round(mean) + window - lowest + 1])
        return Product(lowest + cut, kept, mean)

    def power(self, count: int, window: int) -> Product:
        """The law of the sum of so many."""
        result, square = Product(0, arb_poly([1]), 0.0), self
        while count:
            if count & 1:
                result = result.times(square, window)
            count >>= 1
            if count:
                square = square.times(square, window)
        return result

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
from typing import TypeAlias

import numpy as np
from flint import arb, arb_poly, ctx

from keepsum.sampling.core.balls import ball, digits, precision
from keepsum.sampling.core.rng import LazyUniform
from keepsum.sampling.l1.splitting.laws import Laws
from keepsum.sampling.l1.splitting.packing import candidates_of
from keepsum.sampling.l1.splitting.tree import Tree
from keepsum.sampling.l1.splitting.weights import lowest_of

TILT = Fraction(4, 5)  # q, in units of the smallest epsilon, of the moments that bound what lies beyond a table
KEPT = 1000  # laws of parts that are kept for the next question
LABELS_GROWTH = 1.0  # about the logarithm, per cell, of how much the moments of all labels exceed the weights
Name: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Parts:
    """The chances of u = lowest, lowest + 1, ... given y, as balls; all others together have at most ``rest``.

    ``whole`` is F(y), in true units.
    """

    lowest: int
    chances: list[arb]
    rest: arb
    whole: arb


class SplittingReferee:
    """Settles the comparisons of one table's sampler.

    Weights are named by the class of a node, a group, and a law of rows; splits by a class, a base and a law.
    """

    def __init__(self, epsilon: Fraction, tree: Tree, laws: Laws) -> None:
        self._epsilon, self._tree, self._laws = epsilon, tree, laws
        self._rates = (epsilon, *tree.further)
        self._lowest = lowest_of(self._rates)
        self._weights: dict[tuple[Name, int], list[arb]] = {}
        self._parts: dict[tuple[Name, int, int], Parts] = {}
        self._cumulative: dict[tuple[Name, int, int], list[arb]] = {}
        self._moments: dict[tuple[Name, Fraction, int], arb | None] = {}
        self._masses: dict[int, list[arb]] = {}

    def pick_root(self, uniform: LazyUniform) -> int:
        """The base of the root: each has the weight of all proposals from it."""
        root = self._tree.root_class
        bases = range(len(self._laws.nodes[root].bases))

        def upto(base: int) -> arb:
            if ctx.prec not in self._masses:
                self._masses[ctx.prec] = [self._root_mass(root, k) for k in bases]
            masses = self._masses[ctx.prec]
            return sum(masses[: base + 1], arb(0)) / sum(masses, arb(0))

        return next((k for k in bases[:-1] if uniform.below(digits(lambda k=k: upto(k)))), bases[-1])  # type: ignore[misc]

    def draw_sum(self, node: int, base: int, row: int, y: int, uniform: LazyUniform) -> int:
        """The sum u below the left child given y: the smallest u whose cumulative chance lies above the number."""
        split = self._split_of(node, base, row)
        with precision(96):
            parts = self.parts(split, y)
            upto = np.cumsum([float(chance.mid()) for chance in parts.chances])
        u = parts.lowest + int(np.searchsorted(upto, uniform.known))
        while uniform.below(digits(lambda u=u: self.upto(split, y, u - 1))):  # type: ignore[misc]
            u -= 1
        while not uniform.below(digits(lambda u=u: self.upto(split, y, u))):  # type: ignore[misc]
            u += 1
        return u

    def accept_row(self, node: int, base: int, row: int, y: int, u: int, uniform: LazyUniform) -> int:
        """Whether the part that was solved for is accepted."""
        split = self._split_of(node, base, row)
        left, right = self._children(split)

        def chance() -> arb:
            weights = self.weights(left, abs(u))[abs(u)] * self.weights(right, abs(y - u))[abs(y - u)]
            return weights / arb(self._peak(split, abs(y)))

        return int(uniform.below(digits(chance)))

    def pick_label(self, node: int, group: int, sums: Sequence[int], uniform: LazyUniform) -> int:
        """Which label of a group is chosen, as the kernel counts: 1 + 2 label + copy, or 0 if none."""
        c = int(self._tree.class_of[node])
        candidates = candidates_of(self._laws.nodes[c], group)
        ordered = [(k, copy) for k, (*_, copies) in enumerate(candidates) for copy in range(copies)]

        def upto(count: int) -> arb:
            chances = [self._label_chance(c, group, label, sums) for label in candidates]
            return sum((chances[k] for k, _ in ordered[:count]), arb(0))

        for count, (k, copy) in enumerate(ordered, 1):
            if uniform.below(digits(lambda count=count: upto(count))):  # type: ignore[misc]
                return 1 + 2 * k + copy
        return 0

    def accept_node(self, node: int, group: int, base: int, sums: Sequence[int], uniform: LazyUniform) -> int:
        """Whether the sums below a node are accepted: B over the sum, over blocks, of products of t."""
        c = int(self._tree.class_of[node])
        candidates = candidates_of(self._laws.nodes[c], group)
        rows = Counter((self._split_of(node, base, row), y) for row, y in enumerate(sums))
        blocks = self._laws.nodes[c].bases[base].splits[0].numbers.shape[1]

        def chance() -> arb:
            numbers = [self._product(rows, block) for block in range(blocks)]
            factor = arb(1)
            if len(candidates) == 1 and candidates[0][2] == 1:
                factor = self._label_chance(c, group, candidates[0], sums)
            return self.bridge_chance(rows) * factor / sum(numbers, arb(0))

        return int(uniform.below(digits(chance)))

    def weights(self, name: Name, reach: int) -> list[arb]:
        """W(0), W(1), ..., at least up to the reach: floats as they are, and beyond these the sum over all labels."""
        known = self._weights.get((name, ctx.prec), [])
        if len(known) <= reach:
            c, group, law = name
            node = self._laws.nodes[c]
            reach = max(reach, 64, 3 * len(known) // 2)
            if not node.bases:
                known = self._leaf(name, reach)
            else:
                table = node.groups[group][law]
                known = [arb(float(value)) for value in table.values[: reach + 1]]
                if reach > table.reach:
                    known += self._beyond_table(name, table.reach + 1, reach)
            self._weights[name, ctx.prec] = known
        return known

    def whole(self, split: Name, y: int) -> arb:
        """F(y), in true units."""
        return self.parts(split, y).whole

    def parts(self, split: Name, y: int) -> Parts:
        """The law of u given y >= 0."""
        key = (split, y, ctx.prec)
        if key not in self._parts:
            if len(self._parts) >= KEPT:
                self._parts.clear()
                self._cumulative.clear()
            left, right = self._children(split)
            reach = self._reach(split, y)
            below, behind = self.weights(left, reach), self.weights(right, reach)
            joint = [below[abs(u)] * behind[abs(y - u)] for u in range(y - reach, reach + 1)]
            missing = self._missing(split, y, reach)
            total = sum(joint, arb(0)) + missing * arb(0.5, 0.5)
            unit = arb(2) ** (self._exponent(left) + self._exponent(right))
            self._parts[key] = Parts(y - reach, [weight / total for weight in joint], missing / total, total * unit)
        return self._parts[key]

    def upto(self, split: Name, y: int, u: int) -> arb:
        """The chance of a part of at most u."""
        parts = self.parts(split, y)
        key = (split, y, ctx.prec)
        if key not in self._cumulative:
            self._cumulative[key] = list(accumulate(parts.chances))
        doubt = parts.rest * arb(0.5, 0.5)
        if u < parts.lowest:
            return doubt
        upto = self._cumulative[key]
        return upto[min(u - parts.lowest, len(upto) - 1)] + doubt

    def bridge_chance(self, rows: Counter[tuple[Name, int]]) -> arb:
        """B, the chance that the parts of all rows add up to 0; so many rows have that split and that sum.

        A product of polynomials, cut where sums have a negligible chance: all that was cut off is what the chances
        that are left lack of 1.
        """
        variance = 0.0
        for (split, y), count in rows.items():
            variance += count * self._mean_and_variance(split, y)[1]
        window = math.ceil(1.6 * math.sqrt(ctx.prec * variance) + ctx.prec / float(self._lowest)) + 1
        product = Product(0, arb_poly([1]), 0.0)
        for (split, y), count in rows.items():
            product = product.times(self._polynomial(split, y).power(count, window), window)
        lost = 1 - product.polynomial.evaluate([arb(1)])[0]
        chance = product.polynomial[-product.lowest] if product.lowest <= 0 else arb(0)
        return chance + abs(lost) * arb(0.5, 0.5)

    def _root_mass(self, root: int, base: int) -> arb:
        """What all proposals from a base of the root weigh together."""
        rows = Counter((self._split_of(0, base, row), 0) for row in range(self._tree.rows))
        mass = self.bridge_chance(rows)
        for (split, _), count in rows.items():
            mass *= self.whole(split, 0) ** count
        return mass

    def _label_chance(self, c: int, group: int, label: tuple[int, int, int], sums: Sequence[int]) -> arb:
        """The product over rows of the weights of a label relative to those of its group."""
        base, block, _ = label
        chance = arb(1)
        laws = self._laws.law_of[c]
        rows = Counter((int(laws[self._tree.kind_of_row[row]]), abs(y)) for row, y in enumerate(sums))
        for (law, y), count in rows.items():
            unit = arb(2) ** self._exponent((c, group, law))
            weight = self.whole((c, base, law), y) * self._number((c, base, law), y, block)
            chance *= (weight / (self.weights((c, group, law), y)[y] * unit)) ** count
        return chance

    def _product(self, rows: Counter[tuple[Name, int]], block: int) -> arb:
        """The product of the numbers t of a block."""
        product = arb(1)
        for (split, y), count in rows.items():
            product *= self._number(split, abs(y), block) ** count
        return product

    def _polynomial(self, split: Name, y: int) -> Product:
        parts = self.parts(split, abs(y))
        mean = self._mean_and_variance(split, y)[0]
        if y >= 0:
            return Product(parts.lowest, arb_poly(parts.chances), mean)
        return Product(-parts.lowest - len(parts.chances) + 1, arb_poly(parts.chances[::-1]), mean)

    def _mean_and_variance(self, split: Name, y: int) -> tuple[float, float]:
        """About the mean and the variance of a part: they say where to cut, and decide nothing."""
        parts = self.parts(split, abs(y))
        chances = np.array([float(chance.mid()) for chance in parts.chances])
        values = parts.lowest + np.arange(len(chances))
        mean = float(chances @ values)
        return (mean if y >= 0 else -mean), float(chances @ (values - mean) ** 2)

    def _leaf(self, name: Name, reach: int) -> list[arb]:
        """The law of a sum of n cells: (1 - a^2)^n times the sum over N of C(N+S+n-1, N+S) C(N+n-1, N) a^(2N+S)."""
        rate, cells = self._entry(name)
        if cells == 0:
            return [arb(1)] + [arb(0)] * reach
        a = ball(-rate).exp()  # 1 where there is no weight
        powers = list(accumulate([a] * reach, lambda x, y: x * y, initial=arb(1)))
        if cells == 1:
            return powers
        scale = (1 - a**2) ** cells * arb(2) ** -self._exponent(name)
        binomial, weights = arb(1), []
        for s in range(reach + 1):
            weights.append(scale * binomial * powers[s] * (a**2).hypgeom_2f1(cells, cells + s, s + 1))
            binomial *= arb(s + cells) / (s + 1)
        return weights

    def _beyond_table(self, name: Name, first: int, last: int) -> list[arb]:
        """The weights of a group beyond its table: the sums of F over its labels."""
        c, group, law = name
        total = [arb(0)] * (last - first + 1)
        for base, _, copies in candidates_of(self._laws.nodes[c], group):
            split = (c, base, law)
            (left, right), farther = self._children(split), self._reach(split, last)
            below, behind = self.weights(left, farther)[: farther + 1], self.weights(right, farther)[: farther + 1]
            product = arb_poly(below[:0:-1] + below) * arb_poly(behind[:0:-1] + behind)
            scale = copies * arb(2) ** (self._exponent(left) + self._exponent(right) - self._exponent(name))
            for k in range(len(total)):
                missing = self._missing(split, first + k, farther) * arb(0.5, 0.5)
                total[k] += (product[2 * farther + first + k] + missing) * scale
        return total

    def _reach(self, split: Name, y: int) -> int:
        """How far the children's weights must go for what lies beyond to be below the precision, for sums up to y."""
        tilt = self._tilt(split)
        q, needed = float(tilt), (ctx.prec + 8) * math.log(2)
        for rate, count in ((float(rate), count) for rate, count in self._load(split)):
            growth = 2 * math.log(-math.expm1(-rate)) - math.log(math.expm1(q - rate) * math.expm1(-q - rate))
            needed += count * (growth + LABELS_GROWTH)
        if any(self._moment(child, tilt) is None for child in self._children(split)):
            return math.ceil(y + needed / q) + 2
        return math.ceil(((1 / float(TILT) + 1) * y + needed / q) / 2) + 2

    def _missing(self, split: Name, y: int, reach: int) -> arb:
        """A bound on the sum of W_L(u) W_R(y - u) over the u with |u| or |y - u| beyond the reach (``weights.py``)."""
        q = self._tilt(split)
        left, right = self._children(split)
        unit = arb(2) ** -(self._exponent(left) + self._exponent(right))
        moments, ends = self._joint_moments(split, q)
        return 4 * moments * ball(q * (y - ends * reach)).exp() * unit

    def _joint_moments(self, split: Name, q: Fraction) -> tuple[arb, int]:
        """The product of the moments of both children, and of how many: an entry without a weight has none.

        It leaves the sum of the other's weights beyond the reach, which falls half as fast as that of both.
        """
        known = [moment for moment in (self._moment(child, q) for child in self._children(split)) if moment is not None]
        product = arb(1)
        for moment in known:
            product *= moment
        return product, len(known)

    def _tilt(self, split: Name) -> Fraction:
        """The q of the moments that bound what lies beyond the tables of a split."""
        return TILT * min((rate for rate, _ in self._load(split)), default=self._epsilon)

    def _moment(self, name: Name, q: Fraction) -> arb | None:
        """A bound on the sum of W(y) e^(qy) over all y, in true units; None for an entry without a weight."""
        if (name, q, ctx.prec) not in self._moments:
            self._moments[name, q, ctx.prec] = self._new_moment(name, q)
        return self._moments[name, q, ctx.prec]

    def _new_moment(self, name: Name, q: Fraction) -> arb | None:
        """That of a leaf; or that of the table, and of all labels together for what lies beyond it."""
        c, group, law = name
        node = self._laws.nodes[c]
        if not node.bases:
            epsilon, cells = self._entry(name)
            if not epsilon:
                return None
            cell = -ball(-2 * epsilon).expm1() / (ball(q - epsilon).expm1() * ball(-q - epsilon).expm1())
            return cell**cells
        total = arb(0)
        for base, _, copies in candidates_of(node, group):
            total += copies * self._joint_moments((c, base, law), q)[0]
        table, up = node.groups[group][law], ball(q).exp()
        powers = list(accumulate([up] * table.reach, lambda x, y: x * y, initial=arb(1)))
        inside = sum((arb(w) * (p + 1 / p) for w, p in zip(table.values[1:].tolist(), powers[1:], strict=True)), arb(0))
        return total + (arb(float(table.values[0])) + inside) * arb(2) ** table.exponent

    def _entry(self, name: Name) -> tuple[Fraction, int]:
        """The epsilon of a leaf, 0 for an entry without a weight, and how many cells it has."""
        c, _, law = name
        load = self._laws.nodes[c].parts[law]
        return next(((rate, n) for rate, n in zip(self._rates, load, strict=True) if n), (self._epsilon, 0))

    def _load(self, split: Name) -> list[tuple[Fraction, int]]:
        """The epsilons of what is below a node, and how many cells or added entries have each."""
        c, _, law = split
        kind = int(np.flatnonzero(self._laws.law_of[c] == law)[0])
        load = self._tree.classes[c].loads[kind]
        return [(rate, n) for rate, n in zip(self._rates, load, strict=True) if rate and n]

    def _split_of(self, node: int, base: int, row: int) -> Name:
        c = int(self._tree.class_of[node])
        return c, base, int(self._laws.law_of[c, self._tree.kind_of_row[row]])

    def _children(self, split: Name) -> tuple[Name, Name]:
        c, base, law = split
        node, children = self._laws.nodes[c], self._tree.classes[c].children
        if children is None:
            raise AssertionError("a leaf does not split")
        (i, j), groups = node.parts[law], node.bases[base]
        return (children[0], groups.left, i), (children[1], groups.right, j)

    def _exponent(self, name: Name) -> int:
        c, group, law = name
        return self._laws.nodes[c].groups[group][law].exponent

    def _number(self, split: Name, y: int, block: int) -> arb:
        """t(y), which is 1 beyond the tables."""
        c, base, law = split
        numbers = self._laws.nodes[c].bases[base].splits[law].numbers
        return arb(float(numbers[y, block])) if y < len(numbers) else arb(1)

    def _peak(self, split: Name, y: int) -> float:
        """What the weights of parts are measured by: the table's peak, or a bound on all weights."""
        c, base, law = split
        peaks = self._laws.nodes[c].bases[base].splits[law].peak
        if y < len(peaks):
            return float(peaks[y])
        (a, g, i), (b, h, j) = self._children(split)
        return 1.001 * self._laws.nodes[a].groups[g][i].top * self._laws.nodes[b].groups[h][j].top


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

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
from keepsum.sampling.l1.splitting.bundles import BundleForm, Bundles, Load
from keepsum.sampling.l1.splitting.laws import Label, Laws
from keepsum.sampling.l1.splitting.splits import NodeSplit
from keepsum.sampling.l1.splitting.weights import RowWeights, lowest_of

TILT = Fraction(4, 5)  # q, in units of the smallest epsilon, of the moments that bound what lies beyond a table
KEPT = 1000  # laws of parts that are kept for the next question
Name: TypeAlias = tuple[int, int]  # of weights: a law and a group; of a split: a law and a base
Sums: TypeAlias = Sequence[tuple[int, int]]  # the law of each place of a bundle, counted from its form's first, and y


@dataclass(frozen=True, eq=False)
class SplitBalls:
    """The chances of u = lowest, lowest + 1, ... given y, as balls; all others together have at most ``rest``.

    ``whole`` is F(y), in true units.
    """

    lowest: int
    chances: list[arb]
    rest: arb
    whole: arb


class SplittingReferee:
    """Settles the comparisons of one table's sampler.

    Weights are named by a law and a group, splits by a law and a base.
    """

    def __init__(self, epsilon: Fraction, bundles: Bundles, laws: Laws) -> None:
        self._epsilon, self._bundles, self._laws = epsilon, bundles, laws
        self._rates = (epsilon, *bundles.further)
        self._lowest = lowest_of(self._rates)
        self._weights: dict[tuple[Name, int], list[arb]] = {}
        self._parts: dict[tuple[Name, int, int], SplitBalls] = {}
        self._cumulative: dict[tuple[Name, int, int], list[arb]] = {}
        self._sums: dict[tuple[Load, int], list[arb]] = {}
        self._moments: dict[tuple[Name, Fraction, int], arb | None] = {}
        self._masses: dict[tuple[int, int], list[arb]] = {}

    def pick_root(self, form: int, uniform: LazyUniform) -> int:
        """The base of a bundle whose sums are all 0: each has the weight of all proposals from it."""
        bases = range(len(self._laws.forms[form].bases))

        def upto(base: int) -> arb:
            if (form, ctx.prec) not in self._masses:
                self._masses[form, ctx.prec] = [self._root_mass(form, k) for k in bases]
            masses = self._masses[form, ctx.prec]
            return sum(masses[: base + 1], arb(0)) / sum(masses, arb(0))

        return next((k for k in bases[:-1] if uniform.below(digits(lambda k=k: upto(k)))), bases[-1])  # type: ignore[misc]

    def draw_sum(self, form: int, base: int, law: int, y: int, uniform: LazyUniform) -> int:
        """The sum u below the left child given y: the smallest u whose cumulative chance lies above the number."""
        split = self._split_of(form, base, law)
        with precision(96):
            parts = self.parts(split, y)
            upto = np.cumsum([float(chance.mid()) for chance in parts.chances])
        u = parts.lowest + int(np.searchsorted(upto, uniform.known))
        while uniform.below(digits(lambda u=u: self.upto(split, y, u - 1))):  # type: ignore[misc]
            u -= 1
        while not uniform.below(digits(lambda u=u: self.upto(split, y, u))):  # type: ignore[misc]
            u += 1
        return u

    def accept_row(self, form: int, base: int, law: int, y: int, u: int, uniform: LazyUniform) -> int:
        """Whether the part that was solved for is accepted."""
        split = self._split_of(form, base, law)
        left, right = self._children(split)

        def chance() -> arb:
            weights = self.weights(left, abs(u))[abs(u)] * self.weights(right, abs(y - u))[abs(y - u)]
            return weights / arb(self._peak(split, abs(y)))

        return int(uniform.below(digits(chance)))

    def pick_label(self, form: int, group: int, sums: Sums, uniform: LazyUniform) -> int:
        """Which label of a group is chosen, counted from 1, or 0 if none."""
        labels = self._laws.forms[form].labels[group]

        def upto(count: int) -> arb:
            return sum((self._label_chance(form, group, label, sums) for label in labels[:count]), arb(0))

        for count in range(1, len(labels) + 1):
            if uniform.below(digits(lambda count=count: upto(count))):  # type: ignore[misc]
                return count
        return 0

    def accept_bundle(self, form: int, group: int, base: int, sums: Sums, uniform: LazyUniform) -> int:
        """Whether the sums of a bundle are accepted: B over the sum, over blocks, of products of t."""
        own = self._laws.forms[form]
        rows = Counter((self._split_of(form, base, law), y) for law, y in sums)
        blocks = own.bases[base].splits[0].numbers.shape[1]

        def chance() -> arb:
            numbers = [self._product(rows, block) for block in range(blocks)]
            factor = arb(1)
            if len(own.labels[group]) == 1:
                factor = self._label_chance(form, group, own.labels[group][0], sums)
            return self.bridge_chance(rows) * factor / sum(numbers, arb(0))

        return int(uniform.below(digits(chance)))

    def accept_sum(self, form: int, base: int, sums: Sums, needed: int, bound: float, uniform: LazyUniform) -> int:
        """Whether the rows that are not solved for are accepted: by the chance that the parts of the others add up."""
        rows = Counter((self._split_of(form, base, law), y) for law, y in sums)
        return int(uniform.below(digits(lambda: self.bridge_chance(rows, needed) / arb(bound))))

    def weights(self, name: Name, reach: int) -> list[arb]:
        """W(0), W(1), ..., at least up to the reach: floats as they are, and beyond these c p (``weights.py``)."""
        known = self._weights.get((name, ctx.prec), [])
        if len(known) <= reach:
            law, group = name
            reach = max(reach, 64, 3 * len(known) // 2)
            if self._is_entry(law):
                scale = arb(2) ** -self._exponent(name)
                known = [scale * weight for weight in self._cells(self._load_of(law), reach)]
            else:
                table = self._laws.weights[law][group]
                known = [arb(value) for value in table.values[: reach + 1].tolist()]
                if reach > table.reach and table.ends:
                    known += [arb(0)] * (reach - table.reach)
                elif reach > table.reach:
                    scale = arb(table.ratio) * arb(2) ** -table.exponent
                    cells = self._cells(self._load_of(law), reach)
                    known += [scale * weight for weight in cells[table.reach + 1 :]]
            self._weights[name, ctx.prec] = known
        return known

    def whole(self, split: Name, y: int) -> arb:
        """F(y), in true units."""
        return self.parts(split, y).whole

    def parts(self, split: Name, y: int) -> SplitBalls:
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
            self._parts[key] = SplitBalls(
                y - reach, [weight / total for weight in joint], missing / total, total * unit
            )
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

    def bridge_chance(self, rows: Counter[tuple[Name, int]], needed: int = 0) -> arb:
        """B, the chance that the parts of all rows add up to what is needed; so many have that split and that sum.

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
        place = needed - product.lowest
        chance = product.polynomial[place] if place >= 0 else arb(0)
        return chance + abs(lost) * arb(0.5, 0.5)

    def _root_mass(self, form: int, base: int) -> arb:
        """What all proposals from a base weigh together, where all sums are 0."""
        counts = self._bundles.forms[form].counts
        rows = Counter({(self._split_of(form, base, law), 0): count for law, count in enumerate(counts)})
        mass = self.bridge_chance(rows)
        for (split, _), count in rows.items():
            mass *= self.whole(split, 0) ** count
        return mass

    def _label_chance(self, form: int, group: int, label: Label, sums: Sums) -> arb:
        """The product over places of the weights of a label relative to those of its group."""
        chance, first = arb(1), self._bundles.forms[form].first
        for (law, y), count in Counter((first + law, abs(y)) for law, y in sums).items():
            unit = arb(2) ** self._exponent((law, group))
            weight = self.whole((law, label.base), y) * self._number((law, label.base), y, label.block)
            chance *= (weight / (self.weights((law, group), y)[y] * unit)) ** count
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

    def _cells(self, load: Load, reach: int) -> list[arb]:
        """The law of a sum of entries, each of weight e^(-rate |z|), for s = 0, ..., ``reach``; of none, that of 0."""
        laws = [(rate, _sums(rate, count, reach)) for rate, count in zip(self._rates, load, strict=True) if count]
        if not laws:
            return [arb(1)] + [arb(0)] * reach
        if len(laws) == 1:
            return laws[0][1]
        if (load, ctx.prec) not in self._sums or len(self._sums[load, ctx.prec]) <= reach:
            self._sums[load, ctx.prec] = self._mixed(load, reach)
        return self._sums[load, ctx.prec][: reach + 1]

    def _mixed(self, load: Load, reach: int) -> list[arb]:
        """The law of a sum of entries of several rates: a convolution, and a bound on what it leaves out."""
        lowest = min(rate for rate, count in zip(self._rates, load, strict=True) if count)
        farther = 2 * reach + math.ceil((ctx.prec + 8 + 4 * sum(load)) / float(lowest))
        q, product, moments = TILT * lowest, arb_poly([1]), arb(1)
        for rate, count in zip(self._rates, load, strict=True):
            if not count:
                continue
            law, moment = _sums(rate, count, farther), _cell_moment(rate, q) ** count
            whole = (product * arb_poly(law[:0:-1] + law)).coeffs()
            middle = len(whole) // 2
            # As in ``_missing``: either factor beyond the table.
            missing = 4 * moments * moment * ball(-q * farther).exp() * arb(0.5, 0.5)
            known = [value + missing for value in whole[middle : middle + farther + 1]]
            product, moments = arb_poly(known[:0:-1] + known), moments * moment
        return known[: reach + 1]

    def _reach(self, split: Name, y: int) -> int:
        """How far the children's weights must go for what lies beyond to be below the precision, for sums up to y."""
        tilt = self._tilt(split)
        q, needed = float(tilt), (ctx.prec + 8) * math.log(2)
        for rate, count in ((float(rate), count) for rate, count in self._load(split)):
            growth = 2 * math.log(-math.expm1(-rate)) - math.log(math.expm1(q - rate) * math.expm1(-q - rate))
            needed += count * growth
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
        """That of an entry; or that of the table, and of all cells together for what lies beyond it."""
        law, group = name
        load = self._load_of(law)
        if any(count and not rate for rate, count in zip(self._rates, load, strict=True)):
            return None
        cells = arb(1)
        for rate, count in zip(self._rates, load, strict=True):
            cells *= _cell_moment(rate, q) ** count if count else arb(1)
        if self._is_entry(law):
            return cells
        table, up = self._laws.weights[law][group], ball(q).exp()
        powers = list(accumulate([up] * table.reach, lambda x, y: x * y, initial=arb(1)))
        inside = sum((arb(w) * (p + 1 / p) for w, p in zip(table.values[1:].tolist(), powers[1:], strict=True)), arb(0))
        return arb(table.ratio) * cells + (arb(float(table.values[0])) + inside) * arb(2) ** table.exponent

    def _is_entry(self, law: int) -> bool:
        return law < len(self._bundles.entry_laws)

    def _load_of(self, law: int) -> Load:
        """What is below a sum: how many cells, and added entries of each further rate."""
        if self._is_entry(law):
            return self._bundles.entry_laws[law]
        form = self._form(law)
        return form.loads[law - form.first]

    def _load(self, split: Name) -> list[tuple[Fraction, int]]:
        """The rates of what is below a split, and how many cells or added entries have each."""
        return [(rate, n) for rate, n in zip(self._rates, self._load_of(split[0]), strict=True) if rate and n]

    def _form(self, law: int) -> BundleForm:
        return self._bundles.forms[self._bundles.form_of_law[law]]

    def _split_of(self, form: int, base: int, law: int) -> Name:
        return self._bundles.forms[form].first + law, base

    def _children(self, split: Name) -> tuple[Name, Name]:
        law, base = split
        left, right = self._bundles.children(law)
        tag = self._laws.forms[self._bundles.form_of_law[law]].bases[base].tag
        return self._name(left, tag), self._name(right, base)

    def _name(self, law: int, group: int) -> Name:
        """The weights of a group; a sum of no entry has one, whatever the group of the others."""
        return law, group if len(self._laws.weights[law]) > 1 else 0

    def _weights_of(self, name: Name) -> RowWeights:
        return self._laws.weights[name[0]][name[1]]

    def _exponent(self, name: Name) -> int:
        return self._weights_of(name).exponent

    def _split_tables(self, split: Name) -> NodeSplit:
        law, base = split
        return self._laws.forms[self._bundles.form_of_law[law]].bases[base].splits[law - self._form(law).first]

    def _number(self, split: Name, y: int, block: int) -> arb:
        """t(y), which is 1 beyond the tables."""
        numbers = self._split_tables(split).numbers
        return arb(float(numbers[y, block])) if y < len(numbers) else arb(1)

    def _peak(self, split: Name, y: int) -> float:
        """What the weights of parts are measured by: the table's peak, or a bound on all weights."""
        peaks = self._split_tables(split).peak
        if y < len(peaks):
            return float(peaks[y])
        left, right = self._children(split)
        return 1.001 * self._weights_of(left).top * self._weights_of(right).top


def _cell_moment(rate: Fraction, q: Fraction) -> arb:
    """The sum of e^(-rate |z|) e^(qz) over all z, for q below the rate."""
    return -ball(-2 * rate).expm1() / (ball(q - rate).expm1() * ball(-q - rate).expm1())


def _sums(rate: Fraction, cells: int, reach: int) -> list[arb]:
    """The law of a sum of n cells: (1 - a^2)^n times the sum over N of C(N+S+n-1, N+S) C(N+n-1, N) a^(2N+S)."""
    a = ball(-rate).exp()  # 1 where there is no weight
    powers = list(accumulate([a] * reach, lambda x, y: x * y, initial=arb(1)))
    if cells == 1:
        return powers
    scale = (1 - a**2) ** cells
    binomial, weights = arb(1), []
    for s in range(reach + 1):
        weights.append(scale * binomial * powers[s] * (a**2).hypgeom_2f1(cells, cells + s, s + 1))
        binomial *= arb(s + cells) / (s + 1)
    return weights


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

"""The weights of column splitting in integers of many digits, by plain sums: an oracle that shares no formula.

Numbers are integers times 2^-DIGITS. Tables go so far that what lies beyond is below the last of 100 digits or so.
Weights are named by a law and a group, splits by a law and a base.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from mpmath import mp

DIGITS = 420
Name = tuple[int, int]


def names_of(sampler) -> list[Name]:
    """Of all weights."""
    return [(law, group) for law, groups in enumerate(sampler._laws.weights) for group in range(len(groups))]


def splits_of(sampler) -> list[Name]:
    """Of all splits, in the order of the packed tables."""
    return [
        (form.first + law, base)
        for form, own in zip(sampler._bundles.forms, sampler._laws.forms, strict=True)
        for base in range(len(own.bases))
        for law in range(len(form.parts))
    ]


def weights_of(sampler, name):
    """The tables of some weights."""
    law, group = name
    return sampler._laws.weights[law][group]


def split_of(sampler, name):
    """The weights that a split is made of, and its tables."""
    law, base = name
    form = sampler._bundles.form_of_law[law]
    own, k = sampler._laws.forms[form].bases[base], law - sampler._bundles.forms[form].first
    return own.branches[k], own.splits[k]


class ExactWeights:
    """W, F and the laws of parts for one sampler's bundles and the floats that define its proposal."""

    def __init__(self, sampler):
        self._sampler, self._bundles = sampler, sampler._bundles
        self._rates = (sampler._epsilon, *self._bundles.further)
        longest = max(weights.reach for groups in sampler._laws.weights for weights in groups)
        self.reach = 2 * longest + 24 + int(80 / min(rate for rate in self._rates if rate))
        self._weights: dict[Name, np.ndarray] = {}
        self._sums: dict[tuple[int, ...], np.ndarray] = {}
        self._one = {rate: self._entry(rate) for rate in self._rates}

    def names(self) -> list[Name]:
        """Of all weights."""
        return names_of(self._sampler)

    def splits(self) -> list[Name]:
        """The names of all splits."""
        return splits_of(self._sampler)

    def load_of(self, law: int) -> tuple[int, ...]:
        """What is below a sum."""
        form = self._bundles.form_of_law[law]
        if form < 0:
            return self._bundles.entry_laws[law]
        return self._bundles.forms[form].loads[law - self._bundles.forms[form].first]

    def weights(self, name: Name) -> np.ndarray:
        """W(0), W(1), ..., W(reach) as integers: an entry's law; or floats, and beyond them c times that of cells."""
        if name not in self._weights:
            table = weights_of(self._sampler, name)
            values = self._scaled(self.cells(self.load_of(name[0])), table.exponent)
            if self._bundles.form_of_law[name[0]] >= 0:
                values = _times(values, table.ratio)
                for y, value in enumerate(table.values.tolist()):
                    number = Fraction(value)
                    values[y] = (number.numerator << DIGITS) // number.denominator
            self._weights[name] = values
        return self._weights[name]

    def whole(self, split: Name, exponent: int) -> np.ndarray:
        """F times 2^-exponent."""
        left, right = self.children(split)
        units = sum(weights_of(self._sampler, name).exponent for name in (left, right))
        return self._scaled(self._sum(self.weights(left), self.weights(right)), exponent - units)

    def children(self, split: Name) -> tuple[Name, Name]:
        """The names of the weights that a split is made of: that of the tag, and that of the base."""
        law, base = split
        laws = self._sampler._laws
        tag = laws.forms[self._bundles.form_of_law[law]].bases[base].tag
        left, right = self._bundles.children(law)
        return (left, tag if len(laws.weights[left]) > 1 else 0), (right, base if len(laws.weights[right]) > 1 else 0)

    def joint(self, split: Name, y: int) -> dict[int, int]:
        """W_L(u) W_R(y - u) for all u."""
        left, right = (self.weights(name) for name in self.children(split))
        reach = self.reach
        return {u: left[abs(u)] * right[abs(y - u)] >> DIGITS for u in range(y - reach, reach + 1)}

    def chances(self, split: Name, y: int) -> tuple[int, list[Fraction]]:
        """The lowest u, and the chances of this and the next ones."""
        joint = self.joint(split, y)
        whole = sum(joint.values())
        return min(joint), [Fraction(joint[u], whole) for u in sorted(joint)]

    def cells(self, load: tuple[int, ...]) -> np.ndarray:
        """The law of the sum of so many entries of each weight."""
        if load not in self._sums:
            self._sums[load] = self._cells(load)
        return self._sums[load]

    def _entry(self, rate: Fraction) -> np.ndarray:
        """The weights of a cell, or of an added entry."""
        with mp.workprec(DIGITS + 40):
            exponent = mp.mpf(rate.numerator) / rate.denominator
            return np.array([int(mp.exp(-exponent * y) * mp.mpf(2) ** DIGITS) for y in range(self.reach + 1)], object)

    def _cells(self, load: tuple[int, ...]) -> np.ndarray:
        values = np.array([1 << DIGITS] + [0] * self.reach, object)
        for rate, count in zip(self._rates, load, strict=True):
            for _ in range(count):
                values = self._sum(values, self._one[rate])
        return values

    def _sum(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        both = [np.concatenate([side[:0:-1], side]) for side in (left, right)]
        width = int((left != 0).sum()), int((right != 0).sum())
        if 1 in width:
            return (left * right[0] if width[1] == 1 else right * left[0]) >> DIGITS
        return np.convolve(*both)[2 * self.reach : 3 * self.reach + 1] >> DIGITS

    @staticmethod
    def _scaled(values: np.ndarray, exponent: int) -> np.ndarray:
        return values >> exponent if exponent >= 0 else values << -exponent


def _times(values: np.ndarray, factor: float) -> np.ndarray:
    number = Fraction(factor)
    return values * number.numerator // number.denominator


def real(value: int) -> Fraction:
    """The number that an integer stands for."""
    return Fraction(value, 1 << DIGITS)

"""The weights of column splitting in integers of many digits, by plain sums: an oracle that shares no formula.

Numbers are integers times 2^-DIGITS. Tables go so far that what lies beyond is below the last of 100 digits or so.
Weights are named by the class of a node, a group and a law of rows, splits by a class, a base and a law.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from mpmath import mp

DIGITS = 420


class ExactWeights:
    """W, F and the laws of parts for one sampler's tree and the floats that define its proposal."""

    def __init__(self, sampler):
        self._nodes, self._classes = sampler._laws.nodes, sampler._tree.classes
        self._rates = (sampler._epsilon, *sampler._tree.further)
        longest = max(weights.reach for node in self._nodes for group in node.groups for weights in group)
        self.reach = 2 * longest + int(80 / min(rate for rate in self._rates if rate))
        self._weights: dict[tuple[int, int, int], np.ndarray] = {}
        self._one = {rate: self._entry(rate) for rate in self._rates}

    def names(self) -> list[tuple[int, int, int]]:
        """Of all weights."""
        return [
            (c, group, law)
            for c, node in enumerate(self._nodes)
            for group in range(len(node.groups))
            for law in range(len(node.parts))
        ]

    def splits(self) -> list[tuple[int, int, int]]:
        """The names of all splits."""
        return [
            (c, base, law)
            for c, node in enumerate(self._nodes)
            for base in range(len(node.bases))
            for law in range(len(node.parts))
        ]

    def weights(self, name: tuple[int, int, int]) -> np.ndarray:
        """W(0), W(1), ..., W(reach) as integers: a leaf's law; a node's floats, and beyond them F of all labels."""
        if name not in self._weights:
            c, group, law = name
            node = self._nodes[c]
            table = node.groups[group][law]
            if not node.bases:
                values = self._scaled(self._cells(node.parts[law]), table.exponent)
            else:
                values = sum(self.whole((c, label.base, law), table.exponent) for label in node.labels[group])
                for y, value in enumerate(table.values.tolist()):
                    number = Fraction(value)
                    values[y] = (number.numerator << DIGITS) // number.denominator
            self._weights[name] = values
        return self._weights[name]

    def whole(self, split: tuple[int, int, int], exponent: int) -> np.ndarray:
        """F times 2^-exponent."""
        left, right = self.children(split)
        units = sum(self._nodes[c].groups[group][law].exponent for c, group, law in (left, right))
        return self._scaled(self._sum(self.weights(left), self.weights(right)), exponent - units)

    def children(self, split: tuple[int, int, int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The names of the weights that a split is made of."""
        c, base, law = split
        (left, right), (i, j) = self._classes[c].children, self._nodes[c].parts[law]
        groups = self._nodes[c].bases[base]
        return (left, groups.left, i), (right, groups.right, j)

    def joint(self, split: tuple[int, int, int], y: int) -> dict[int, int]:
        """W_L(u) W_R(y - u) for all u."""
        left, right = (self.weights(name) for name in self.children(split))
        reach = self.reach
        return {u: left[abs(u)] * right[abs(y - u)] >> DIGITS for u in range(y - reach, reach + 1)}

    def chances(self, split: tuple[int, int, int], y: int) -> tuple[int, list[Fraction]]:
        """The lowest u, and the chances of this and the next ones."""
        joint = self.joint(split, y)
        whole = sum(joint.values())
        return min(joint), [Fraction(joint[u], whole) for u in sorted(joint)]

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


def real(value: int) -> Fraction:
    """The number that an integer stands for."""
    return Fraction(value, 1 << DIGITS)

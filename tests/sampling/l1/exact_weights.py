"""The weights of column splitting in integers of many digits, by plain sums: an oracle that shares no formula.

Numbers are integers times 2^-DIGITS. Tables go so far that what lies beyond is below the last of 100 digits or so.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from mpmath import mp

DIGITS = 420


class ExactWeights:
    """W, F and the laws of parts for one sampler's tree and numbers t."""

    def __init__(self, sampler):
        self._laws = sampler._laws.laws
        self._epsilon = sampler._epsilon
        longest = max(law.weights.reach for law in self._laws)
        self.reach = 2 * longest + int(80 / sampler._epsilon)
        self._weights: dict[int, np.ndarray] = {}
        with mp.workprec(DIGITS + 40):
            rate = mp.mpf(self._epsilon.numerator) / self._epsilon.denominator
            self._one = np.array([int(mp.exp(-rate * y) * mp.mpf(2) ** DIGITS) for y in range(self.reach + 1)], object)

    def weights(self, law: int) -> np.ndarray:
        """W(0), W(1), ..., W(reach) as integers."""
        if law not in self._weights:
            this = self._laws[law]
            values = self._cells(this.cells) if this.branch is None else self.convolved(law)
            if this.split is not None:
                for y, number in enumerate(this.split.numbers.tolist()):
                    t = Fraction(number)
                    values[y] = values[y] * t.numerator // t.denominator
            self._weights[law] = values
        return self._weights[law]

    def convolved(self, law: int) -> np.ndarray:
        """F, times the power of two of the law; a leaf's scale is part of its own weights."""
        this = self._laws[law]
        left, right = (self.weights(part) for part in this.parts)
        return self._scaled(self._sum(left, right), this.weights.exponent - self._exponents(this))

    def joint(self, law: int, y: int) -> dict[int, int]:
        """W_L(u) W_R(y - u) for all u."""
        left, right = (self.weights(part) for part in self._laws[law].parts)
        reach = self.reach
        return {u: left[abs(u)] * right[abs(y - u)] >> DIGITS for u in range(y - reach, reach + 1)}

    def chances(self, law: int, y: int) -> tuple[int, list[Fraction]]:
        """The lowest u, and the chances of this and the next ones."""
        joint = self.joint(law, y)
        whole = sum(joint.values())
        return min(joint), [Fraction(joint[u], whole) for u in sorted(joint)]

    def _exponents(self, this) -> int:
        return sum(self._laws[part].weights.exponent for part in this.parts)

    def _cells(self, cells: int) -> np.ndarray:
        values = np.array([1 << DIGITS] + [0] * self.reach, object)
        for _ in range(cells):
            values = self._sum(values, self._one)
        law = next(law for law in self._laws if law.branch is None and law.cells == cells)
        return self._scaled(values, law.weights.exponent)

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

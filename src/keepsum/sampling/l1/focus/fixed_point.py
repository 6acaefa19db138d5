"""The laws of sums in integers, with a bound on their errors: as many digits as a question needs.

Every kind has weights W(s), s any whole number: e^(-rate |s|) for a cell, the convolution of those of its parts times
e^(-weight |s|) for a sum. A table holds integers T(s) near W(s) times some scale, about 2^bits at s = 0, and 0 where
that is below 1. One error bounds |scale W(s) - T(s)| for all s, those beyond the table included. Products of
polynomials are exact, so that the error of a convolution is that of its factors,

    |sum of L(u) R(y - u) - T_L(u) T_R(y - u)|  <=  (sum of L) error_R + (sum of T_R) error_L,

and where digits are dropped 1 more. All W are log-concave and even: e^(-rate |s|) is, and convolutions and products of
such sequences are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpz_poly

from keepsum.sampling.core.balls import ball, floor_exact
from keepsum.sampling.l1.focus.tree import ABSENT, Kind

GUARD = 64  # bits, for the errors of powers that are computed one from the other


@dataclass(frozen=True, eq=False)
class FixedLaw:
    """The weights of a sum, times some scale.

    Attributes
    ----------
    table
        T(s) is the coefficient ``reach + s``.
    reach
        How far the table goes.
    error
        A bound on the error of each weight.
    mass
        At least the sum of all weights.
    """

    table: fmpz_poly
    reach: int
    error: int
    mass: int

    def __getitem__(self, total: int) -> int:
        """T(s)."""
        return int(self.table[self.reach + total]) if abs(total) <= self.reach else 0

    @property
    def half(self) -> list[int]:
        """T(0), T(1), ..."""
        return [int(value) for value in self.table.right_shift(self.reach).coeffs()]


class FixedLaws:
    """The laws of some kinds, each made once for every number of bits."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = kinds
        self._made: dict[tuple[int, int], FixedLaw] = {}

    def law(self, kind: int, bits: int) -> FixedLaw:
        """The law of a kind; its parts first, without recursion, for totals may be nested deeply."""
        waiting = [kind]
        while waiting:
            number = waiting[-1]
            left, right, weight, *_ = self._kinds[number]
            missing = [part for part in (left, right) if part != ABSENT and (part, bits) not in self._made]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if (number, bits) in self._made:
                continue
            if left == ABSENT:
                made = cell_law(weight, bits)
            else:
                made = convolved(self._made[left, bits], self._made[right, bits], bits)
                made = weighted(made, weight, bits) if weight else made
            self._made[number, bits] = made
        return self._made[kind, bits]


def cell_law(rate: Fraction, bits: int) -> FixedLaw:
    """The law of one cell."""
    powers = exponentials(rate, bits)
    mass = floor_exact(lambda: (1 + ball(-rate).exp()) / (1 - ball(-rate).exp()), bits) + 1
    return FixedLaw(_two_sided(powers), len(powers) - 1, 2, mass)


def convolved(left: FixedLaw, right: FixedLaw, bits: int) -> FixedLaw:
    """The law of the sum of two parts."""
    product, centre = left.table * right.table, left.reach + right.reach
    shift = int(product[centre]).bit_length() - bits
    error = left.mass * right.error + int(right.table(1)) * left.error
    table = product // (1 << shift)
    reach = table.degree() - centre
    return FixedLaw(
        table.right_shift(centre - reach), reach, (error >> shift) + 2, (left.mass * right.mass >> shift) + 1
    )


def weighted(law: FixedLaw, weight: Fraction, bits: int) -> FixedLaw:
    """The weights times e^(-weight |s|): at most 4 for the errors of the powers and for the digits that are dropped."""
    powers = exponentials(weight, bits)
    values = [value * power >> bits for value, power in zip(law.half, powers, strict=False)]
    while not values[-1]:
        values.pop()
    table, reach, error = _two_sided(values), len(values) - 1, law.error + 4
    beyond = law.mass * (powers[reach + 1] + 2 if reach + 1 < len(powers) else 3) >> bits
    mass = int(table(1)) + (2 * reach + 1) * error + beyond + 1
    return FixedLaw(table, reach, error, min(mass, law.mass))


def exponentials(rate: Fraction, bits: int) -> list[int]:
    """2^bits e^(-rate s) for s = 0, 1, ... until that is below 1: at most 2 less than they are, and not more."""
    digits = bits + GUARD
    factor = floor_exact(lambda: ball(-rate).exp(), digits)
    power, powers = 1 << digits, []
    while power >> GUARD:
        powers.append(power >> GUARD)
        power = power * factor >> digits
    return powers


def _two_sided(values: list[int]) -> fmpz_poly:
    return fmpz_poly(values[:0:-1] + values)

"""The laws of nested sums: in integers with a bound on their errors, as floats, their mass and their size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import fmpz_poly

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.balls import ball, floor_exact
from keepsum.sampling.l1.focus.kernel_arguments import ROUNDING
from keepsum.sampling.l1.focus.tree import ABSENT, SumKind, SumKinds

# The laws of sums in integers, with a bound on their errors: as many digits as a question needs.
#
# Every kind has weights W(s), s any whole number: e^(-rate |s|) for a cell, the convolution of those of its parts
# times e^(-weight |s|) for a sum. A table holds integers T(s) near W(s) times some scale, about 2^bits at s = 0, and
# 0 where that is below 1. One error bounds |scale W(s) - T(s)| for all s, those beyond the table included. Products
# of polynomials are exact, so that the error of a convolution is that of its factors,
#
#     |sum of L(u) R(y - u) - T_L(u) T_R(y - u)|  <=  (sum of L) error_R + (sum of T_R) error_L,
#
# and where digits are dropped 1 more. All W are log-concave and even: e^(-rate |s|) is, and convolutions and products
# of such sequences are.


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

    def __init__(self, kinds: Sequence[SumKind]) -> None:
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


# The laws of sums as floats.


BITS = 128  # of the laws that floats are made from
TAIL_BITS = 64  # tables end where weights are 2^-64 of that of 0


@dataclass(frozen=True, eq=False)
class FloatLaw:
    """W(s) / W(0) for s = 0 to ``reach``: right to a share of ``ROUNDING``, and up to ``error``.

    Beyond, weights are at most ``beyond``.
    """

    values: Floats
    error: float
    beyond: float

    @property
    def reach(self) -> int:
        """How far the table goes."""
        return len(self.values) - 1

    @cached_property
    def lower(self) -> Floats:
        """Lower bounds; the last one is for all sums beyond the table."""
        return np.append(np.maximum(self.values * (1 - ROUNDING) - self.error, 0.0), 0.0)

    @cached_property
    def upper(self) -> Floats:
        """Upper bounds; the last one is for all sums beyond the table."""
        return np.append(self.values * (1 + ROUNDING) + self.error, self.beyond)

    def place(self, totals: IntArray) -> IntArray:
        """Where the bounds for these sums stand."""
        places: IntArray = np.minimum(np.abs(totals), len(self.values))
        return places


ALWAYS = FloatLaw(np.ones(1), 0.0, 1.0)  # the other part of a free root: whatever it is, it weighs the same


def float_law(law: FixedLaw, tail_bits: int) -> FloatLaw:
    """The law as floats, as far as weights are at least about 2^-tail_bits.

    Both a weight and W(0) may be off by the error of the fixed point.
    """
    values = law.half
    top, error = values[0], law.error
    end = next((s for s, value in enumerate(values) if value << tail_bits < top), len(values))
    after = values[end] if end < len(values) else 0
    share = 1 + ROUNDING
    return FloatLaw(
        np.array([value / top for value in values[:end]]),
        2 * error / (top - error) * share,
        (after + error) / (top - error) * share,
    )


def float_laws(kinds: SumKinds, tail_bits: int = TAIL_BITS) -> list[FloatLaw]:
    """The law of each kind that is a part of another. The sum of a root is 0 whatever its law."""
    fixed = FixedLaws(kinds.all)
    parts = {part for kind in kinds.all for part in (kind.left, kind.right) if part != ABSENT}
    return [
        float_law(fixed.law(number, BITS), tail_bits) if number in parts else ALWAYS for number in range(len(kinds.all))
    ]


# The weight of all noise under nested totals together, that of no noise being 1.


def log_mass(kinds: SumKinds, laws: Sequence[FloatLaw]) -> float:
    """Ln of the sum of all weights: trees are independent, so that it is the sum of theirs.

    A law has W(s) / W(0). For a cell W(0) is 1, and for a sum of two parts it is the sum of W_left(u) W_right(-u) over
    all u: the weight of all noise below a kept root. Below a free one, all sums add up. Guarantee: in floating point,
    from tables that end at a share of 2^-64; ``tests/statistical/test_focus_mass.py``.
    """
    at_zero: list[float] = []
    for left, right, *_ in kinds.all:
        if left == ABSENT:
            at_zero.append(0.0)
        elif right == ABSENT:
            at_zero.append(at_zero[left] + math.log(_both_sides(laws[left].values)))
        else:
            one, other = laws[left].values, laws[right].values
            length = min(len(one), len(other))
            at_zero.append(at_zero[left] + at_zero[right] + math.log(_both_sides(one[:length] * other[:length])))
    return math.fsum(at_zero[root.kind] for root in kinds.roots)


def _both_sides(half: Floats) -> float:
    """The sum over ..., -1, 0, 1, ... of an even function that is known from 0 on."""
    return float(2 * half.sum() - half[0])


# How large the tables of nested totals become, before they are made.


def entries_of(kinds: SumKinds) -> int:
    """About how many entries the tables of all laws have: they take 32 bytes each, and some microseconds to make.

    The logarithm of W(s) / W(0) is taken to be -s^2 / 2v with the variance v, up to where that is as steep as the tail,
    -r s. A sum has the variance of its parts together and the slower of their tails; a weight w adds to r, and w^2 / 2
    to 1 / v.
    """
    shapes: list[tuple[float, float]] = []
    total = 0.0
    for left, right, weight, *_ in kinds.all:
        w = float(weight)
        if left == ABSENT:
            v, r = 0.5 / math.sinh(min(w, 700.0) / 2) ** 2, w
        elif right == ABSENT:
            v, r = shapes[left]
        else:
            v, r = shapes[left][0] + shapes[right][0], min(shapes[left][1], shapes[right][1])
            v, r = 1 / (1 / v + w**2 / 2), r + w
        shapes.append((v, r))
        total += reach_of(v, r)
    return math.ceil(total)


def reach_of(variance: float, rate: float, bits: int = TAIL_BITS) -> float:
    """About where weights with this variance and this tail have fallen to 2^-bits."""
    needed, steepest = bits * math.log(2), variance * rate**2 / 2
    if needed < steepest:
        return math.sqrt(2 * variance * needed) + 1
    return (needed + steepest) / rate + 1

"""The laws of sums as floats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.l1.focus.fixed_point import FixedLaw, FixedLaws
from keepsum.sampling.l1.focus.kernel_arguments import ROUNDING
from keepsum.sampling.l1.focus.tree import ABSENT, Kinds

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


def float_laws(kinds: Kinds, tail_bits: int = TAIL_BITS) -> list[FloatLaw]:
    """The law of each kind that is a part of another. The sum of a root is 0 whatever its law."""
    fixed = FixedLaws(kinds.all)
    parts = {part for kind in kinds.all for part in (kind.left, kind.right) if part != ABSENT}
    return [
        float_law(fixed.law(number, BITS), tail_bits) if number in parts else ALWAYS for number in range(len(kinds.all))
    ]

"""The weight of all noise under nested totals together, that of no noise being 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from keepsum._arrays import Floats
from keepsum.sampling.l1.focus.laws import FloatLaw
from keepsum.sampling.l1.focus.tree import ABSENT, Kinds


def log_mass(kinds: Kinds, laws: Sequence[FloatLaw]) -> float:
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

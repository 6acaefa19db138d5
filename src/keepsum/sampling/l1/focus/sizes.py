"""How large the tables of nested totals become, before they are made."""

from __future__ import annotations

import math

from keepsum.sampling.l1.focus.laws import TAIL_BITS
from keepsum.sampling.l1.focus.tree import ABSENT, Kinds


def entries_of(kinds: Kinds) -> int:
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

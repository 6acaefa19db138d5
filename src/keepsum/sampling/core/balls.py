"""Rigorous reals: enclosures by ball arithmetic, as exact as a question needs them.

flint's working precision is one for the whole process, so every use of it goes through ``precision`` here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq

from keepsum.sampling.core.forking import ProcessLock

_LOCK = ProcessLock()
_INSIDE: list[tuple[int, int]] = []  # the thread that works with other bits than usual, and how many there were before


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with that many bits, alone."""
    with _LOCK.here():
        before = ctx.prec
        _INSIDE.append((threading.get_ident(), before))
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before
            _INSIDE.pop()


def _after_in_child() -> None:
    """Set the precision back if it was another thread that had changed it: the child does not have that one."""
    if _INSIDE and _INSIDE[0][0] != threading.get_ident():
        ctx.prec = _INSIDE[0][1]
        _INSIDE.clear()


os.register_at_fork(after_in_child=_after_in_child)


def ball(number: Fraction) -> arb:
    """A rational as a ball."""
    return arb(fmpq(number.numerator, number.denominator))


def enclosure(value: Callable[[], arb], bits: int) -> tuple[int, int]:
    """Integers below and above x * 2^bits, at most one or two apart, x the real that ``value`` computes."""
    work = bits + 64
    while True:
        with precision(work):
            scaled = value() * arb(2) ** bits
            low, high = scaled.floor().unique_fmpz(), scaled.ceil().unique_fmpz()
            if low is not None and high is not None:
                return int(low), int(high)
            # x * 2^bits may itself be an integer, which no precision separates from its neighbours.
            nearest = (scaled + arb(0.5)).floor().unique_fmpz()
            if nearest is not None and work > bits + 256:
                return int(nearest) - 1, int(nearest) + 1
        work *= 2


def floor_exact(value: Callable[[], arb], bits: int) -> int:
    """floor(x * 2^bits) for a real x that is no dyadic rational."""
    work = bits + 64
    while True:
        with precision(work):
            floor = (value() * arb(2) ** bits).floor().unique_fmpz()
        if floor is not None:
            return int(floor)
        work *= 2


def digits(value: Callable[[], arb]) -> Callable[[int], tuple[int, int]]:
    """The binary digits of a real, as ``LazyUniform.below`` asks for them."""
    return lambda bits: enclosure(value, bits)

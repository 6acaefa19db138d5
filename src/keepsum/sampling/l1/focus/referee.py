"""What floats leave open about the parts of a sum, settled in integers of as many digits as it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from keepsum.sampling.core.rng import LazyUniform, Stream
from keepsum.sampling.l1.focus.envelopes import PEAK_ROOM, RISE
from keepsum.sampling.l1.focus.fixed_point import FixedLaws
from keepsum.sampling.l1.focus.tree import ABSENT, Kind

LEAST_BITS = 192  # of the tables that are asked first
KEPT = 1000  # envelopes that are kept for the next question


class FocusReferee:
    """Settles the comparisons of one sampler."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = kinds
        self._laws = FixedLaws(kinds)
        self._envelopes: dict[tuple[int, int], tuple[int, int, Fraction]] = {}

    def accept(self, kind: int, y: int, u: int, factor: Fraction, uniform: LazyUniform) -> bool:
        """Whether the left part u of y is accepted, with its weights relative to those of 0, times a factor."""
        return uniform.below(self._digits(kind, y, u, factor))

    def draw(self, kind: int, y: int, extra: Stream) -> int:
        """The left part of a sum y >= 0 that the tables do not reach, drawn as the kernels do it (``envelopes``)."""
        middle, block, peak = self._envelope(kind, y)
        while True:
            upward, step = extra.bits(1), 0
            while not extra.bits(1):
                step += 1
            distance = step * block + extra.below(block)
            u = middle + distance if upward else middle - 1 - distance
            if self.accept(kind, y, u, 2**step / peak, LazyUniform(extra)):
                return u

    def _envelope(self, kind: int, y: int) -> tuple[int, int, Fraction]:
        """m, b and the peak, with as many digits as it takes to prove them."""
        known = self._envelopes.get((kind, y))
        bits = LEAST_BITS
        while known is None:
            known = self._proved(kind, y, bits)
            bits *= 2
        if len(self._envelopes) >= KEPT:
            self._envelopes.clear()
        self._envelopes[kind, y] = known
        return known

    def _proved(self, kind: int, y: int, bits: int) -> tuple[int, int, Fraction] | None:
        """The same with so many bits, None if these are too few. p rises up to its mode and falls from there on."""
        low, high = 0, y
        while low < high:
            middle = (low + high) // 2
            rises = self._weights(kind, y, middle + 1, bits)[0] > self._weights(kind, y, middle, bits)[0]
            low, high = (middle + 1, high) if rises else (low, middle)
        least, most = self._weights(kind, y, low, bits)
        highest = max(most, *(self._weights(kind, y, low + step, bits)[1] for step in (1, -1)))
        if not least or highest > least * (1 + Fraction(RISE)):
            return None
        block = 1
        while any(2 * self._weights(kind, y, low + step, bits)[1] > least for step in (block, -block)):
            block *= 2
        return low, block, Fraction(most, self._weights(kind, 0, 0, bits)[0]) * Fraction(PEAK_ROOM)

    def _digits(self, kind: int, y: int, u: int, factor: Fraction) -> Callable[[int], tuple[int, int]]:
        """The binary digits of the weight of a part, as ``LazyUniform.below`` asks for them."""

        def digits(count: int) -> tuple[int, int]:
            bits = LEAST_BITS
            while True:
                (low, high), (least, most) = self._weights(kind, y, u, bits), self._weights(kind, 0, 0, bits)
                low = (low * factor.numerator << count) // (most * factor.denominator)
                high = -(-(high * factor.numerator << count) // (least * factor.denominator))
                if high - low <= 2:
                    return low, high
                bits *= 2

        return digits

    def _weights(self, kind: int, y: int, u: int, bits: int) -> tuple[int, int]:
        """Bounds on p(u), times the scales of both parts."""
        left, right, *_ = self._kinds[kind]
        low = high = 1
        for part, total in ((left, u), (right, y - u)):
            if part != ABSENT:
                law = self._laws.law(part, bits)
                value = law[total]
                low, high = low * max(0, value - law.error), high * (value + law.error)
        return low, high

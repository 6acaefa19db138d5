"""Intervals for ratios of two queries, from the laws of linear queries (Fieller's method).

Let N and D be the confidential values, N + n and D + d the released ones, and t = N/D. As n - t d is the noise of a
linear query, |(N + n) - t (D + d)| = |n - t d| is within a margin r(t) with at least the probability wanted. So the t
that are not within theirs can be excluded, for any r that does not depend on the counts. Here r(t) is the smallest of

- a + |t| b, where n is within a and d within b, each with half of what may go wrong: outside of the ratios of what is
  within a of N + n to what is within b of D + d, all t are excluded by it;
- r(p/q) + |t - p/q| s for all fractions p/q: the margin of q n - p d over q, with room for a step, d being within s but
  for a small part of what may go wrong, which is set aside. From an excluded t a step inwards is excluded too; steps
  are taken until they no longer matter.

Where N and D are counts, t is not negative, and t (D + d + b) < N + n - a excludes t although D may be
0, as N + n - t (D + d) > a + t b then: what a denominator near 0 leaves open is how large the ratio is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

SET_ASIDE = 0.02  # of what may go wrong, for steps between fractions
FINE = Fraction(1, 100)  # a step shorter than this part of the interval ends the search
ROUGH = Fraction(1, 20)  # of the interval: how far from an excluded end a fraction of few digits is looked for
MOST_STEPS = 40

LARGEST_FACTOR = 2**30  # so that weights of up to 2^32 times p or q fit 64 bits

Reach = Callable[[int, int, float], int]  # the margin of q n - p d at a level


@dataclass(frozen=True)
class Ratio:
    """A released ratio, and the margins that its interval follows from.

    Attributes
    ----------
    numerator, denominator
        The released values.
    reach
        ``reach(q, p, level)`` is the margin of q times the numerator's noise less p times the denominator's.
    level
        The probability.
    certain
        Whether one of both has no noise at all, so that what may go wrong need not be divided between them.
    positive
        Whether neither of both can be negative, being sums of counts.
    """

    numerator: int
    denominator: int
    reach: Reach
    level: float
    certain: bool = False
    positive: bool = False

    def interval(self) -> tuple[float, float]:
        """An interval that holds the confidential ratio with at least this probability; without end if D may be 0."""
        top, bottom = self._reaches()
        if abs(self.denominator) <= bottom:
            return self._least(top, bottom), math.inf
        start, end = self._box(top, bottom)
        middle = Fraction(self.numerator, self.denominator)
        low, high = self._closer(start, middle, end - start), self._closer(end, middle, end - start)
        return (max(0.0, _down(low)), max(0.0, _up(high))) if self.positive else (_down(low), _up(high))

    def _reaches(self) -> tuple[int, int]:
        """Both margins, each at half of what may go wrong."""
        each = self.level if self.certain else 1 - (1 - self.level) / 2
        return self.reach(1, 0, each), self.reach(0, -1, each)

    def _box(self, top: int, bottom: int) -> tuple[Fraction, Fraction]:
        """From both margins, where they leave the sign of the denominator no doubt."""
        ends = [Fraction(self.numerator + a * top, self.denominator + b * bottom) for a in (-1, 1) for b in (-1, 1)]
        return min(ends), max(ends)

    def _least(self, top: int, bottom: int) -> float:
        """The smallest ratio, where the denominator may be 0."""
        if not self.positive:
            return -math.inf
        if self.numerator <= top or self.denominator + bottom <= 0:
            return 0.0
        start = Fraction(self.numerator - top, self.denominator + bottom)
        if self.denominator <= 0:
            return _down(start)
        middle = Fraction(self.numerator, self.denominator)
        return _down(self._closer(start, middle, middle - start))

    def _closer(self, start: Fraction, middle: Fraction, width: Fraction) -> Fraction:
        """From an excluded end towards the released ratio, as far as it can be proved."""
        allowed = 1 - self.level
        spread = self.reach(0, -1, 1 - SET_ASIDE * allowed)
        if not spread or not width:
            return start
        slope = abs(self.denominator) + spread  # how fast |N - t D| - r(t) can fall
        sign = 1 if middle > start else -1
        at = start
        for _ in range(MOST_STEPS):
            # A fraction of few digits between the excluded end and a little further out.
            tried = _simple(at - sign * width * ROUGH, at)
            q, p = tried.denominator, tried.numerator
            if max(q, abs(p)) > LARGEST_FACTOR:
                return at
            margin = self.reach(q, p, 1 - (1 - SET_ASIDE) * allowed)
            beyond = abs(q * self.numerator - p * self.denominator) - margin
            step = tried + sign * Fraction(beyond, q * slope)
            if beyond <= 0 or sign * (step - at) <= width * FINE:
                return at
            at = min(step, middle) if sign > 0 else max(step, middle)
        return at


def _simple(one: Fraction, other: Fraction) -> Fraction:
    """The fraction with the smallest denominator between two numbers."""
    low, high = min(one, other), max(one, other)
    if low <= 0 <= high:
        return Fraction(0)
    if high < 0:
        return -_simple(-low, -high)
    whole = math.ceil(low)
    if whole <= high:
        return Fraction(whole)
    floor = math.floor(low)
    return floor + 1 / _simple(1 / (high - floor), 1 / (low - floor))


def _down(value: Fraction) -> float:
    found = float(value)
    return found if Fraction(found) <= value else math.nextafter(found, -math.inf)


def _up(value: Fraction) -> float:
    return -_down(-value)

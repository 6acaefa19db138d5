"""The least privacy loss whose margin of error is small enough, among parameters of three digits.

A margin is a whole number, and a step function of the parameter that does not rise with the loss, up to the error of
simulated margins. So the answer is where it falls to the target: it is small enough there and too large one step
before, and both are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from keepsum.errors import InputError, PlanError
from keepsum.privacy.numbers import shown

STEPS = 900  # numbers of three digits from one power of ten to the next
SHORTEST_STRIDE, LONGEST_STRIDE = 0.005, 0.2  # beyond where the answer is expected; then it is not where expected
ELSEWHERE = (Fraction(1), Fraction(1, 10), Fraction(10), Fraction(1, 100), Fraction(100))


def number_at(place: int) -> Fraction:
    """The number of three digits at a place of their order: 1.00 at 0, 1.01 at 1, 10.0 at 900.

    >>> number_at(0), number_at(1), number_at(900), number_at(-1)
    (Fraction(1, 1), Fraction(101, 100), Fraction(10, 1), Fraction(999, 1000))
    """
    power, digits = divmod(place, STEPS)
    return (100 + digits) * Fraction(10) ** (power - 2)


def place_of(number: Fraction) -> int:
    """The place of the largest number of three digits that is not larger than this one.

    >>> place_of(Fraction(1)), place_of(Fraction(999, 1000)), place_of(Fraction(9999, 1000))
    (0, -1, 899)
    """
    power = math.floor(math.log10(number))
    while Fraction(10) ** power > number:
        power -= 1
    while Fraction(10) ** (power + 1) <= number:
        power += 1
    return STEPS * power + math.floor(number / Fraction(10) ** (power - 2)) - 100


@dataclass(frozen=True)
class Answer:
    """The parameter of least loss that reaches a target.

    Attributes
    ----------
    value
        The parameter.
    before
        The parameter one step before it, and the margin there; no margin if there is no such noise.
    """

    value: Fraction
    before: tuple[Fraction, int | None]


@dataclass
class Search:
    """Find the least loss; ``margin_at`` may raise an error of ours where there is no such noise.

    Attributes
    ----------
    margin_at
        The margin of error for a value of the parameter.
    target
        The largest margin that will do.
    start
        Where to begin.
    power
        The margin grows about as this power of the parameter; if it is positive, so does privacy.
    name
        What the parameter is called.
    """

    margin_at: Callable[[Fraction], int]
    target: int
    start: Fraction
    power: float
    name: str
    _margins: dict[int, int | None] = field(default_factory=dict)
    _problems: dict[int, InputError | PlanError] = field(default_factory=dict)

    def answer(self) -> Answer:
        """The answer.

        Raises
        ------
        PlanError
            If no value reaches the target.
        """
        known = self._first_known()

        def reaches(place: int) -> bool:
            """Where there is no such noise, it is too wide on one side of the known place, too narrow on the other."""
            margin = self._margin(place)
            return place > known if margin is None else margin <= self.target

        low: int | None = None
        high: int | None = None
        place, strides = known, self._strides()
        while low is None or high is None or high - low > 1:
            low, high = (low, place) if reaches(place) else (place, high)
            place = self._next(low, high, next(strides))
        if self._margin(high) is None:
            smallest = min(margin for margin in self._margins.values() if margin is not None)
            raise PlanError(
                f"No {self.name} gives a margin of error of at most {self.target:,}: the smallest is {smallest:,}, at "
                f"{self.name} {shown(self._value(low))}. {self._problems[high]}"
            )
        return Answer(self._value(high), (self._value(low), self._margin(low)))

    def _value(self, place: int) -> Fraction:
        """Places are in the order of the loss."""
        return number_at(place if self.power < 0 else -place)

    def _place(self, value: Fraction) -> int:
        return place_of(value) if self.power < 0 else -place_of(value)

    def _margin(self, place: int) -> int | None:
        """The margin at a place; None if there is no such noise."""
        if place not in self._margins:
            self._margins[place] = None
            try:
                self._margins[place] = self.margin_at(self._value(place))
            except (InputError, PlanError) as error:
                self._problems[place] = error
        return self._margins[place]

    def _first_known(self) -> int:
        """A place where there is such noise."""
        places = [self._place(value) for value in (self.start, *ELSEWHERE)]
        for place in places:
            if self._margin(place) is not None:
                return place
        raise self._problems[places[0]]

    def _strides(self) -> Iterator[float]:
        """How far beyond the expected answer to look: margins near a small target are less nearly a power."""
        stride = max(SHORTEST_STRIDE, 0.1 / self.target)
        while True:
            yield stride
            stride *= 2

    def _next(self, low: int | None, high: int | None, stride: float) -> int:
        """Where to look next: on one side of where the answer is expected, on the other, then halfway between."""
        least, most = self._expected()
        below, above = self._place_of_loss(least / (1 + stride)), self._place_of_loss(most * (1 + stride))
        if low is None or high is None:
            return max(above, low + 1) if low is not None else min(below, (high or 0) - 1)
        if stride < LONGEST_STRIDE and low < above < high:
            return above
        return below if stride < LONGEST_STRIDE and low < below < high else (low + high) // 2

    def _expected(self) -> tuple[float, float]:
        """Between which losses the target is expected, if margins are a power of the parameter.

        A margin m is a whole number: without rounding it is from m - 1/2 to m + 1/2, and the one sought target + 1/2.
        Of the margins that are known, the one that says most is taken: a large one, or one close to the target.
        """
        half, power = self.target + 0.5, 1 / abs(self.power)
        ranges = [
            (loss * (max(margin - 0.5, 0.1) / half) ** power, loss * ((margin + 0.5) / half) ** power)
            for loss, margin in ((self._loss_of(place), margin) for place, margin in self._margins.items())
            if margin is not None
        ]
        return min(ranges, key=lambda ends: ends[1] / ends[0])

    def _loss_of(self, place: int) -> float:
        """The parameter, or its inverse if privacy grows with it."""
        value = float(self._value(place))
        return value if self.power < 0 else 1 / value

    def _place_of_loss(self, loss: float) -> int:
        return self._place(Fraction(loss if self.power < 0 else 1 / loss))

"""The mean squared error of cells and of the totals of each level, quickly, for any epsilons of theirs.

Totals that contain alike ones are of one *shape*, whatever the epsilons. The weights of all sums below a shape are
those of its cells and of the shapes in it, convolved, times e^(-epsilon |s|). What everything else adds to the law of a
sum (``sampling/l1/focus/marginals.py``) is found from the roots down. Convolutions are products of Fourier transforms,
on a circle that is wider than any sum that matters; what is smaller than their noise is dropped. Variances are right to
a share of about 1e-9.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.fft import next_fast_len

from keepsum._arrays import Floats
from keepsum.accuracy.law import sum_variance
from keepsum.errors import PlanError
from keepsum.lattice.structure import FORCED
from keepsum.planning.nested import KEPT, Nested
from keepsum.sampling.l1.focus.sizes import reach_of
from keepsum.sampling.l1.focus.tree import ABSENT

NOISE = 1e-14  # of a Fourier transform, relative to the largest number
BITS = 50  # weights matter down to 2^-50
MOST_POINTS = 2**22  # of the circle
SMALLEST = 200.0  # exponents end here: arithmetic with smaller numbers is slow


class Shape(NamedTuple):
    """The level of a total, its cells that are in no smaller one, and its parts: shapes, and how many of each."""

    level: int
    cells: int
    parts: tuple[tuple[int, int], ...]


class LevelErrors:
    """Mean squared errors under nested totals.

    Parameters
    ----------
    nested
        The focused totals, which must not cross, and the regions of the kept ones, which must not overlap.
    """

    def __init__(self, nested: Nested) -> None:
        if nested.structure.blocks:
            raise PlanError(
                "Shares must be computed under kept totals that do not overlap, and some of these do. Keep fewer "
                "totals, or give shares of your own."
            )
        self._counts = [len(nested.part), *(margin.height for margin in nested.margins)]
        self.shapes, self.roots = _shapes(nested)
        forced = nested.structure.sizes[nested.structure.part == FORCED]
        self._regions = Counter(size for size in forced.tolist() if size > 1)

    def __call__(self, epsilons: Sequence[float]) -> Floats | None:
        """The mean squared error of cells, and of the totals of each level, with these epsilons; None if too wide.

        Totals that are kept have the error 0. The epsilon of a level may be 0.
        """
        circle = Circle.of(self.shapes, epsilons)
        if circle is None:
            return None
        sums = np.zeros(len(epsilons))
        sums[0] = sum(count * size * sum_variance(size, epsilons[0]) for size, count in self._regions.items())
        for root, count in self.roots.items():
            kept = self.shapes[root].level == KEPT
            circle.add(root, circle.nothing if kept else circle.anything, count, sums)
        return sums / self._counts


class Circle:
    """Laws of all shapes with some epsilons, as functions on a circle of so many points; 0 is the first one."""

    def __init__(self, shapes: Sequence[Shape], epsilons: Sequence[float], points: int) -> None:
        self._shapes, self._epsilons = shapes, epsilons
        place = np.arange(points)
        self._length = np.minimum(place, points - place).astype(np.float64)
        self._squares = self._length**2
        self.anything = np.ones(points)
        self.nothing = (place == 0).astype(np.float64)
        self._cell = self._fallen(epsilons[0])
        self._cell_transform = _transform(self._cell)
        self._laws: list[Floats] = []
        self._transforms: list[Floats] = []
        for shape in shapes:
            whole = math.prod((power for _, power in self._powers(shape)), start=np.ones(points // 2 + 1))
            law = self._back(whole) * (self.nothing if shape.level == KEPT else self._fallen(epsilons[1 + shape.level]))
            self._laws.append(law / law.sum())
            self._transforms.append(_transform(self._laws[-1]))

    @classmethod
    def of(cls, shapes: Sequence[Shape], epsilons: Sequence[float]) -> Circle | None:
        """A circle that is wide enough; None if that is too wide."""
        widths: list[tuple[float, float]] = []
        reach = 0.0
        for shape in shapes:
            parts = [(widths[part], count) for part, count in shape.parts]
            parts += [((0.5 / math.sinh(epsilons[0] / 2) ** 2, epsilons[0]), shape.cells)] * bool(shape.cells)
            variance, rate = sum(v * count for (v, _), count in parts), min(rate for (_, rate), _ in parts)
            reach = max(reach, reach_of(variance, rate, BITS))
            epsilon = 0.0 if shape.level == KEPT else epsilons[1 + shape.level]
            widths.append((1 / (1 / variance + epsilon**2 / 2), rate + epsilon))
        points = 2 * next_fast_len(math.ceil(1.5 * reach))
        return None if points > MOST_POINTS else cls(shapes, epsilons, points)

    def add(self, shape: int, outside: Floats, count: int, sums: Floats) -> None:
        """Add the variances of so many totals of a shape, and of all in them, given the weights of all else."""
        level, cells, parts = self._shapes[shape]
        if level != KEPT:
            sums[1 + level] += count * self._variance(outside * self._laws[shape])
            outside = outside * self._fallen(self._epsilons[1 + level])
        transform = _transform(outside)
        others = _but_one([power for _, power in self._powers(self._shapes[shape])])
        pieces = [*parts, *([(ABSENT, cells)] if cells else [])]
        for (part, copies), other in zip(pieces, others, strict=True):
            own = self._cell_transform if part == ABSENT else self._transforms[part]
            below = self._back(transform * other * _power(own, copies - 1))
            if part == ABSENT:
                sums[0] += count * copies * self._variance(below * self._cell)
            else:
                self.add(part, below, count * copies, sums)

    def _powers(self, shape: Shape) -> Iterable[tuple[int, Floats]]:
        """The transforms of all copies of each part together."""
        for part, count in shape.parts:
            yield part, _power(self._transforms[part], count)
        if shape.cells:
            yield ABSENT, _power(self._cell_transform, shape.cells)

    def _fallen(self, epsilon: float) -> Floats:
        return np.exp(-np.minimum(epsilon * self._length, SMALLEST))

    def _back(self, transform: Floats) -> Floats:
        """The function with a transform, as far as it is more than noise, with the largest value 1."""
        values = np.fft.irfft(transform, len(self._length))
        values /= values[0]
        return np.where(values > NOISE, values, 0.0)

    def _variance(self, weights: Floats) -> float:
        return float((weights * self._squares).sum() / weights.sum())


def _transform(values: Floats) -> Floats:
    """The Fourier transform of an even function, which is real; that of all values together is 1."""
    transform: Floats = np.fft.rfft(values).real
    normed: Floats = transform / transform[0]
    return normed


def _power(transform: Floats, count: int) -> Floats:
    """A power by squaring, without numbers so small that arithmetic with them is slow."""
    power, square = np.ones(1), transform
    while count:
        power = power * square if count % 2 else power
        count //= 2
        square = _large(square * square) if count else square
    return _large(power)


def _large(values: Floats) -> Floats:
    return np.where(np.abs(values) > 1e-60, values, 0.0)


def _but_one(factors: list[Floats]) -> list[Floats]:
    """For each factor, the product of all others."""
    before, after = [np.ones(1)], [np.ones(1)]
    for factor in factors[:-1]:
        before.append(_large(before[-1] * factor))
    for factor in factors[:0:-1]:
        after.append(_large(after[-1] * factor))
    return [_large(one * other) for one, other in zip(before, reversed(after), strict=True)]


def _shapes(nested: Nested) -> tuple[list[Shape], Counter[int]]:
    """All shapes, those of parts first, and how many roots are of each."""
    shapes: list[Shape] = []
    numbers: dict[Shape, int] = {}
    roots: Counter[int] = Counter()
    parts: list[Counter[int]] = [Counter() for _ in nested.parents]
    levels, sizes, parents = nested.levels.tolist(), nested.sizes.tolist(), nested.parents.tolist()
    for node in reversed(range(len(parents))):  # parents come before their children
        shape = Shape(levels[node], sizes[node], tuple(sorted(parts[node].items())))
        if shape not in numbers:
            numbers[shape] = len(shapes)
            shapes.append(shape)
        (roots if parents[node] == ABSENT else parts[parents[node]])[numbers[shape]] += 1
    return shapes, roots

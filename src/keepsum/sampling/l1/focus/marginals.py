"""The law of the noise in any of the nested totals and in any cell: what accuracy is computed from.

A sum s below a kind has a chance proportional to W(s) O(s): W are the weights of what is below (``fixed_point``), and O
those of all else. O is 1 for the root if that is free, and 0 but at 0 if it is kept. If a sum y with the weight w has
two parts, then for the left one

    O_left(u) = sum over y of O(y) e^(-w |y|) W_right(y - u).

Convolutions are taken by fast Fourier transforms, and what is smaller than their noise is dropped: chances are right to
about 1e-12, and variances to a share of about 1e-9.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from keepsum._arrays import Floats
from keepsum.sampling.l1.focus.laws import FloatLaw, float_laws
from keepsum.sampling.l1.focus.tree import ABSENT, NestedTotals, SumKinds
from keepsum.sampling.l1.splitting.weights import mirrored

NOISE = 1e-14  # of a Fourier transform, relative to the largest number
TAIL = 44  # weights of cells are followed down to e^-44, below 2^-63


class FocusLaws:
    """The laws of sums and cells under nested totals.

    Parameters
    ----------
    totals
        The totals.
    kinds, laws
        Those of a sampler, if there is one already.
    """

    def __init__(self, totals: NestedTotals, kinds: SumKinds | None = None, laws: list[FloatLaw] | None = None) -> None:
        self._totals = totals
        self._kinds = kinds or SumKinds(totals)
        self._laws = laws or float_laws(self._kinds)
        self._outside: list[Floats] = []  # O of different sums, for s = 0, 1, ...
        self._of_total: list[int] = []  # which of them each total has
        self._known: dict[tuple[int, int, Fraction, int], int] = {}
        for node in range(len(totals.parents)):
            self._of_total.append(self._outside_of_total(node))

    def law_of_total(self, node: int) -> Floats:
        """The chances of the sums 0, 1, 2, ... of a total's noise; those of -1, -2, ... are the same."""
        parents, kinds = self._totals.parents, self._kinds
        while parents[node] != ABSENT and kinds.of_total[node] == kinds.without_weight[parents[node]]:
            node = parents[node]  # it has no other part, so that both have the same sum
        if self._totals.weights[node] is None or kinds.of_total[node] == ABSENT:
            return np.ones(1)
        return _normed(self._outside[self._of_total[node]], self._laws[kinds.of_total[node]].values)

    def law_of_cell(self, node: int) -> Floats:
        """The chances of 0, 1, 2, ... of the noise of any cell that stands in a total, and in no smaller one."""
        if not self._totals.cells[node]:
            raise AssertionError(f"total {node} has no cells but those of smaller ones")
        outside = self._outside[self._below(node, self._kinds.cell)]
        return _normed(outside, np.exp(-float(self._totals.epsilon) * np.arange(len(outside))))

    def like_cell(self, node: int) -> int:
        """A number that is the same for totals whose own cells have the same law."""
        return self._below(node, self._kinds.cell)

    def like_total(self, node: int) -> tuple[int, int]:
        """What is the same for totals with the same law."""
        return self._of_total[node], self._kinds.of_total[node]

    def law_of_some_cells(self, node: int, cells: int) -> Floats:
        """The chances of 0, 1, 2, ... of the noise of some cells together, of those that stand in no smaller total.

        The total must contain no smaller one.
        """
        count, epsilon = self._totals.cells[node], float(self._totals.epsilon)
        outer, weight = self._outside[self._of_total[node]], self._totals.weights[node]
        outer = outer * np.exp(-float(weight or 0) * np.arange(len(outer)))
        parts = [_powers(epsilon, number) for number in (cells, count - cells)]
        return _normed(_convolved(outer, parts[1], len(parts[0]) - 1), parts[0])

    def _outside_of_total(self, node: int) -> int:
        """Which O a total has."""
        kind, parent = self._kinds.of_total[node], self._totals.parents[node]
        if kind == ABSENT:
            return ABSENT
        if self._totals.weights[node] is None:
            return self._numbered((ABSENT, ABSENT, Fraction(0), ABSENT), np.ones(1))
        if parent == ABSENT:
            return self._numbered((ABSENT, kind, Fraction(0), ABSENT), np.ones(self._laws[kind].reach + 1))
        return self._below(parent, kind)

    def _below(self, node: int, part: int) -> int:
        """Which O a part of a total has: the total's, with its weight, and convolved with all other parts.

        The binary tree of a total's parts has no weights. Wherever a part of this kind stands in it, O is the same.
        """
        outer, kind, weight = self._of_total[node], self._kinds.without_weight[node], self._totals.weights[node]
        key = (outer, kind, weight or Fraction(0), part)
        if key not in self._known:
            table = self._outside[outer] * np.exp(-float(weight or 0) * np.arange(len(self._outside[outer])))
            for other, reach in self._path(kind, part):
                table = _convolved(table, self._laws[other].values, reach)
            self._numbered(key, table)
        return self._known[key]

    def _path(self, kind: int, part: int) -> list[tuple[int, int]]:
        """On the way from a sum without a weight to a part: the other part of each sum, and how far this one goes."""
        ways: list[tuple[int, list[tuple[int, int]]]] = [(kind, [])]
        seen = {kind}
        while ways:
            number, path = ways.pop()
            if number == part:
                return path
            left, right, weight, *_ = self._kinds.all[number]
            for one, other in ((left, right), (right, left)):
                if ABSENT not in (one, other) and not weight and one not in seen:
                    seen.add(one)
                    ways.append((one, [*path, (other, self._laws[one].reach)]))
        raise AssertionError(f"kind {part} is no part of kind {kind}")

    def _numbered(self, key: tuple[int, int, Fraction, int], table: Floats) -> int:
        if key not in self._known:
            self._known[key] = len(self._outside)
            self._outside.append(table / table.max())
        return self._known[key]


def _powers(epsilon: float, count: int) -> Floats:
    """The weights of the sums 0, 1, 2, ... of so many cells, down to the smallest that matter, that of 0 being 1."""
    cell = np.exp(-epsilon * np.arange(math.ceil(TAIL / epsilon) + 1))
    total, power = np.ones(1), cell
    while count:
        if count % 2:
            total = _trimmed(_convolved(total, power, len(total) + len(power)))
        count //= 2
        if count:
            power = _trimmed(_convolved(power, power, 2 * len(power)))
    return total


def _trimmed(half: Floats) -> Floats:
    """Weights relative to the first, without those that do not matter."""
    kept: Floats = half[: int(np.flatnonzero(half)[-1]) + 1] / half[0]
    return kept


def _convolved(outer: Floats, other: Floats, reach: int) -> Floats:
    """The convolution of two even functions, from 0 to a reach."""
    from scipy.signal import fftconvolve  # which no draw needs

    whole = fftconvolve(mirrored(outer), mirrored(other))
    half: Floats = whole[len(whole) // 2 :][: reach + 1]
    cleaned: Floats = np.where(half > NOISE * half[0], half, 0.0)
    return cleaned


def _normed(outer: Floats, weights: Floats) -> Floats:
    """The law with these weights."""
    length = min(len(outer), len(weights))
    chances = outer[:length] * weights[:length]
    normed: Floats = chances / (2 * chances.sum() - chances[0])
    return normed

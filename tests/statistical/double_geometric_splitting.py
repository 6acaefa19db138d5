"""Another way to split the columns of a table, in plain NumPy floats: an outside referee for ``ColumnSplitting``.

Lemma: with f(b) = a^|b| a^|t - b|, f is the double geometric law of a^2 convolved with a positive measure on 0, ..., t:
weight 1 - a^2 at both ends, (1 - a^2)^2 between, 1 - a^4 if t = 0. So a cell on the left of a split and one on the
right, given their sum t, are a draw of that measure plus a double geometric draw. At a node, split each row's sum
freely, replace that cell's double geometric part by nothing, and accept with the chance that as many double geometric
draws as there are rows bring the sum back to 0, relative to their mode; then draw them given that they do. Nothing is
bounded by norms and nothing is integrated, so it shares no formula with the sampler but the tree.
"""

from __future__ import annotations

import numpy as np


class DoubleGeometricSplitting:
    """Tables of unit cells or regions without structural zeros; sums are cut at ``reach``."""

    def __init__(self, epsilon: float, sizes, reach: int, seed: int = 1) -> None:
        self._sizes, self._reach = np.asarray(sizes), reach
        self._random = np.random.default_rng(seed)
        self._places = np.arange(-reach, reach + 1)
        self._a = np.exp(-epsilon)
        self._laws = {0: (self._places == 0).astype(float)}
        self._cumulative: dict[tuple, np.ndarray] = {}

    def draw(self, count: int, batch: int = 20_000) -> np.ndarray:
        """At least so many tables of entries, cut to that many."""
        done: list[np.ndarray] = []
        while sum(map(len, done)) < count:
            done.append(self._propose(batch))
        return np.concatenate(done)[:count]

    def _propose(self, batch: int) -> np.ndarray:
        rows, columns = self._sizes.shape
        sums = {(0, columns): np.zeros((batch, rows), dtype=np.int64)}
        waiting = [(0, columns)]
        while waiting:
            first, last = waiting.pop()
            if last - first == 1:
                continue
            middle = (first + last) // 2
            whole = sums[first, last]
            part, kept = self._split(whole, self._sizes[:, first:middle].sum(1), self._sizes[:, middle:last].sum(1))
            sums = {key: values[kept] for key, values in sums.items()}
            sums[first, middle], sums[middle, last] = part, whole[kept] - part
            waiting += [(first, middle), (middle, last)]
        return np.stack([sums[j, j + 1] for j in range(columns)], axis=2)

    def _split(self, whole, below, behind):
        """The sums on the left given those of both sides, and which tables are accepted."""
        a, rows = self._a, whole.shape[1]
        part = np.empty_like(whole)
        for i in range(rows):
            m, n = int(below[i]), int(behind[i])
            u = self._draw(("sums", m, n), self._law(m, a), self._law(n, a), whole[:, i])
            x = self._draw(("cell", m), self._law(1, a), self._law(m - 1, a), u)
            other = self._draw(("cell", n), self._law(1, a), self._law(n - 1, a), whole[:, i] - u)
            part[:, i] = u - x + self._between(x + other)
        total, law = part.sum(axis=1), self._law(rows, a * a)
        inside = np.abs(total) <= self._reach
        chance = np.where(inside, law[np.clip(total, -self._reach, self._reach) + self._reach], 0) / law[self._reach]
        kept = self._random.random(len(part)) < chance
        part, missing = part[kept], -total[kept]
        for i in range(rows):  # double geometric draws with a given sum, one after the other
            laws = self._law(1, a * a), self._law(rows - 1 - i, a * a)
            step = self._draw(("steps", rows - i), *laws, missing)
            part[:, i] += step
            missing -= step
        return part, kept

    def _between(self, t):
        """A draw from 0 to t with weights 1 at the ends and 1 - a^2 between."""
        length, weight = np.abs(t), 1 - self._a**2
        place = self._random.random(len(t)) * (2 + (length - 1) * weight)
        steps = np.where(place < 1, 0, np.where(place < 2, length, 1 + ((place - 2) / weight).astype(np.int64)))
        return np.sign(t) * np.minimum(steps, length)

    def _law(self, cells, a):
        """The weights of a sum of so many double geometric numbers."""
        if cells == 0:
            return self._laws[0]
        if (cells, a) not in self._laws:
            one = a ** np.abs(self._places)
            self._laws[cells, a] = np.convolve(self._law(cells - 1, a), one)[self._reach : 3 * self._reach + 1]
        return self._laws[cells, a]

    def _draw(self, key, left, right, y):
        """u with weight left(u) right(y - u), for each y."""
        width = 2 * self._reach + 1
        if key not in self._cumulative:
            other = self._places[:, None] - self._places[None, :]
            inside = np.abs(other) <= self._reach
            joint = left[None, :] * np.where(inside, right[np.clip(other, -self._reach, self._reach) + self._reach], 0)
            chances = np.cumsum(joint, axis=1)
            self._cumulative[key] = (chances / chances[:, -1:] + np.arange(width)[:, None]).reshape(-1)
        row = y + self._reach
        place = np.searchsorted(self._cumulative[key], row + self._random.random(len(y)), side="right")
        return place - row * width - self._reach

"""Exact joint probabilities of sums of entries of l1 noise on the lattice of any totals, from Fourier sums.

The weight of all z with A z = 0, A of full rank, is the mean over the dual group of the product of the transforms of
all entries, ``sum of w(z_j) exp(i theta.A_j z_j)``. With every angle a multiple of 2 pi / P this is the weight of all z
whose totals are multiples of P, and what is too much is bounded by the same sums: for z with ``|f.z| >= P`` we have
``1 <= exp(-s P) (exp(s f.z) + exp(-s f.z))``, and a factor exp(s f.z) only changes the transforms (``tail``). A sum of
entries whose probabilities are asked for is one more total, whose angle is kept.

The product is summed one angle at a time, the one that needs the smallest array next. Nothing here knows of margins,
axes or trees.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpz_mat
from laws import ALPHA, as_tuples, binned, boxed
from scipy import stats

TILTS = (0.8, 0.9)  # parts of epsilon, the better of which bounds a tail


@dataclass(frozen=True)
class Law:
    """Noise exp(-epsilon |z|_1) on the cells of entries, given that all totals are 0.

    Attributes
    ----------
    totals
        Integers, a row for each total and a column for each entry.
    sizes
        The number of cells of each entry; 0 for a structural zero.
    """

    totals: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    epsilon: Fraction

    @functools.cached_property
    def rows(self) -> list[tuple[int, ...]]:
        """Totals that imply the others, divided by their common factors; structural zeros count for nothing."""
        chosen: list[tuple[int, ...]] = []
        for total in sorted(self.totals, key=lambda row: sum(map(bool, row))):
            row = [number if size else 0 for number, size in zip(total, self.sizes, strict=True)]
            divisor = math.gcd(*row)
            if divisor and fmpz_mat([*chosen, row]).rank() > len(chosen):
                chosen.append(tuple(number // divisor for number in row))
        return chosen

    @property
    def points(self) -> int:
        """How many angles there are: enough for a tail of about 1e-6."""
        largest = max((abs(number) for row in self.rows for number in row), default=1)
        return math.ceil((18 + 1.5 * math.sqrt(sum(self.sizes))) / self.epsilon * largest)

    def joint(self, *forms: Sequence[int], reach: int | None = None) -> tuple[list[tuple[int, ...]], np.ndarray]:
        """The probabilities of the values of some sums of entries, each up to the reach.

        ``forms`` are integers, one for each entry.
        """
        return _joint(self, tuple(map(tuple, forms)), math.ceil(4 / self.epsilon) if reach is None else reach)

    def _joint(self, forms: tuple[tuple[int, ...], ...], reach: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
        weights = np.fft.fftn(self._summed(forms)).real / self.points ** len(forms) / self.whole
        values = boxed(reach, len(forms))
        return as_tuples(values), np.maximum(weights[tuple(values.T % self.points)], 0.0)

    def lengths(self, points: int) -> tuple[list[tuple[int]], np.ndarray]:
        """The probabilities of |z|_1, modulo so many points: one sum for each root of unity."""
        sums = [self._summed((), phase=k / points) for k in range(points // 2 + 1)]
        whole = np.array([*sums, *np.conj(sums[(points - 1) // 2 : 0 : -1])])
        weights = np.fft.fft(whole).real / points / self.whole
        return [(k,) for k in range(points)], np.maximum(weights, 0.0)

    @functools.cached_property
    def whole(self) -> float:
        """The weight of everything; that of z = 0 is 1."""
        return float(self._summed(()).real)

    def tail(self, form: Sequence[int], least: int) -> float:
        """At least the chance that a sum of entries is ``least`` or more away from 0."""
        largest = max(map(abs, form))
        bounds = []
        for part in TILTS:
            tilt = part * float(self.epsilon) / largest
            bounds.append(2 * math.exp(-tilt * least) * self._summed((), tilts=[tilt * n for n in form]).real)
        return float(min(bounds)) / self.whole

    def alias(self, *forms: Sequence[int], reach: int | None = None) -> float:
        """At least the total error of the probabilities of ``joint``."""
        reach = math.ceil(4 / self.epsilon) if reach is None else reach
        wrapped = sum(self.tail(row, self.points) for row in self.rows)
        return wrapped + sum(self.tail(form, self.points - reach) for form in forms)

    def tail_of_lengths(self, least: int) -> float:
        """At least the chance that |z|_1 is so large."""
        wider = [Law(self.totals, self.sizes, self.epsilon * Fraction(n, 10)) for n in (2, 3, 4, 5)]
        bounds = [math.exp(-float(self.epsilon - law.epsilon) * least) * law.whole for law in wider]
        return min(bounds) / self.whole

    def _summed(self, forms: Sequence[Sequence[int]], tilts: Sequence[float] = (), phase: float = 0.0) -> np.ndarray:
        """The mean of the product of all transforms over the angles of totals, as a function of those of forms."""
        rows = [*self.rows, *forms]
        factors = []
        for j, size in enumerate(self.sizes):
            if size:
                angles = {k: row[j] % self.points for k, row in enumerate(rows) if row[j] % self.points}
                table = self._transform(tilts[j] if tilts else 0.0, phase) ** size
                factors.append((tuple(angles), _spread(table, list(angles.values()))))
        kept = range(len(self.rows), len(rows))
        return _contracted(factors, kept, self.points) / float(self.points) ** len(self.rows)

    def _transform(self, tilt: float, phase: float) -> np.ndarray:
        """The sum of q^|z| x^z, q = exp(2 pi i phase - epsilon), for x = exp(tilt + i theta)."""
        q = math.exp(-self.epsilon) * np.exp(2j * np.pi * phase)
        x = np.exp(tilt + 2j * np.pi * np.arange(self.points) / self.points)
        values = 1 / (1 - q * x) + 1 / (1 - q / x) - 1
        return values if tilt or phase else values.real


@functools.cache
def _joint(law: Law, forms: tuple[tuple[int, ...], ...], reach: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
    return law._joint(forms, reach)


def _spread(table: np.ndarray, steps: list[int]) -> np.ndarray:
    """The table at the sum of so many angles, each times its step."""
    points = len(table)
    grid = np.meshgrid(*[step * np.arange(points) for step in steps], indexing="ij", sparse=True)
    return table[sum(grid) % points] if steps else table[0]


def _contracted(factors: list[tuple[tuple[int, ...], np.ndarray]], kept: Sequence[int], points: int) -> np.ndarray:
    """The product of factors, each over some angles, summed over all angles but those that are kept."""
    factors = _multiplied(factors)
    left = {k for angles, _ in factors for k in angles} - set(kept)
    while left:
        scopes = {k: set().union(*(angles for angles, _ in factors if k in angles)) for k in left}
        next_one = min(left, key=lambda k: (len(scopes[k]), k))
        touched = [factor for factor in factors if next_one in factor[0]]
        angles = (*sorted(scopes[next_one] - {next_one}), next_one)
        product = functools.reduce(np.multiply, (_aligned(factor, angles) for factor in touched))
        factors = [factor for factor in factors if next_one not in factor[0]]
        factors = _multiplied([*factors, (angles[:-1], product.sum(axis=-1))])
        left.remove(next_one)
    product = functools.reduce(np.multiply, (_aligned(factor, tuple(kept)) for factor in factors))
    return np.broadcast_to(product, (points,) * len(kept))


def _multiplied(factors: list[tuple[tuple[int, ...], np.ndarray]]) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Factors over the same angles as one."""
    by_angles: dict[tuple[int, ...], np.ndarray] = {}
    for angles, values in factors:
        by_angles[angles] = by_angles[angles] * values if angles in by_angles else values
    return list(by_angles.items())


def _aligned(factor: tuple[tuple[int, ...], np.ndarray], angles: tuple[int, ...]) -> np.ndarray:
    own, values = factor
    order = sorted(range(len(own)), key=lambda k: angles.index(own[k]))
    shape = [values.shape[own.index(k)] if k in own else 1 for k in angles]
    return np.transpose(values, order).reshape(shape)


def enumerated(law: Law, box: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Every lattice point whose free cells are at most ``box``, cell by cell.

    Returns
    -------
    tuple
        The points, their weights, and at least the share of the weight that is left out.
    """
    cells = [j for j, size in enumerate(law.sizes) for _ in range(size)]
    rows = [[row[j] for j in cells] for row in law.rows]
    reduced, divisor, rank = fmpz_mat(rows).rref()
    table = np.array([[int(number) for number in row] for row in reduced.tolist()], dtype=np.int64)[:rank]
    solved = [int(np.flatnonzero(row)[0]) for row in table]
    free = [j for j in range(len(cells)) if j not in solved]
    values = boxed(box, len(free))
    needed = -(values @ table[:, free].T)
    whole = (needed % int(divisor) == 0).all(axis=1)
    points = np.zeros((int(whole.sum()), len(cells)), dtype=np.int64)
    points[:, free], points[:, solved] = values[whole], needed[whole] // int(divisor)
    alone = Law(tuple(map(tuple, rows)), (1,) * len(cells), law.epsilon)
    missing = sum(alone.tail([int(j == k) for j in range(len(cells))], box + 1) for k in free)
    return points, np.exp(-float(law.epsilon) * np.abs(points).sum(axis=1)), missing


def sums_of_entries(noise: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """The sums of entries from their cells, one after the other."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    upto = np.concatenate([np.zeros((len(noise), 1), dtype=np.int64), np.cumsum(noise, axis=1)], axis=1)
    return upto[:, ends[1:]] - upto[:, ends[:-1]]


def p_value(values: np.ndarray, law: tuple[list[tuple[int, ...]], np.ndarray]) -> float:
    """That of a chi-square test in bins of at least 100 expected."""
    observed, wanted = binned(values, *law)
    return float(stats.chi2.sf(len(values) * ((observed - wanted) ** 2 / wanted).sum(), len(observed) - 1))


def assert_no_total(noise: np.ndarray, totals: Sequence[Sequence[int]]) -> None:
    """Every total of entries is 0."""
    assert not (noise @ np.asarray(totals).T).any(), "a total is not 0"


def least_p(tests: int) -> float:
    """What the p-value of one of so many tests must exceed."""
    return ALPHA / tests


def unit(j: int, width: int) -> tuple[int, ...]:
    """The entry alone."""
    return tuple(int(k == j) for k in range(width))

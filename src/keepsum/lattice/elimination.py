"""Exact elimination: sparse rows, the integer kernel, and the Smith normal form with both transforms."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import gcd

from flint import fmpz_mat

from keepsum._work import spend
from keepsum.lattice.matrix import Row, from_flint, to_flint

# Exact elimination on sparse rows, unit pivots first.
#
# Rows of kept totals are mostly 0 and 1, so nearly every pivot is +-1 and the rows stay small. Rows without a unit
# pivot go to python-flint (``kernel``, ``smith``) or, where only the row space matters, are eliminated with any pivot
# and divided by their common factor (``structure``).


@dataclass(frozen=True)
class Reduced:
    """The result of an elimination.

    Attributes
    ----------
    pivots
        For each pivot row its pivot column.
    rows
        All rows after elimination. A pivot column is zero outside its pivot row. With unit pivots its entry is 1.
    """

    pivots: dict[int, int]
    rows: list[Row]

    @property
    def leftover(self) -> list[int]:
        """The nonzero rows without a pivot."""
        return [i for i, row in enumerate(self.rows) if row and i not in self.pivots]

    def substitutions(self, width: int) -> dict[int, Row]:
        """For each column without a pivot, the vector that is 1 there and solves for the (unit) pivot columns."""
        pivots = set(self.pivots.values())
        solved = {j: {j: 1} for j in range(width) if j not in pivots}
        for i, pivot in self.pivots.items():
            for j, entry in self.rows[i].items():
                if j != pivot and j < width:
                    solved[j][pivot] = -entry
        return solved


def eliminate(rows: list[Row], width: int, units_only: bool) -> Reduced:
    """Gauss-Jordan elimination, sparsest rows and columns first.

    Columns from ``width`` on take part in row operations but are never pivots: append the identity there to record
    the operations.

    Parameters
    ----------
    units_only
        Pivot on +-1 only, which keeps every row operation unimodular. Otherwise any pivot is allowed, and each row is
        divided by the common factor of its entries.

    Examples
    --------
    >>> eliminate([{0: 1, 1: 1}, {1: 1, 2: 2}], width=3, units_only=True).rows
    [{0: 1, 2: -2}, {1: 1, 2: 2}]
    >>> eliminate([{0: 2, 1: 3, 2: 5}], width=3, units_only=True).leftover
    [0]
    """
    work = [dict(row) for row in rows]
    holders: dict[int, set[int]] = {}
    for i, row in enumerate(work):
        for column in row:
            holders.setdefault(column, set()).add(i)
    queue = [(len(row), i) for i, row in enumerate(work)]
    heapq.heapify(queue)
    pivots: dict[int, int] = {}
    while queue:
        weight, i = heapq.heappop(queue)
        if i in pivots or weight != len(work[i]):
            continue  # stale: the row has changed since and is in the queue again
        chosen = _pivot(work[i], holders, width, units_only)
        if chosen is None:
            continue
        j = pivots[i] = chosen
        if units_only and work[i][j] == -1:
            work[i] = {column: -entry for column, entry in work[i].items()}
        for k in sorted(holders[j] - {i}):
            _subtract(work, holders, k, i, j, units_only)
            heapq.heappush(queue, (len(work[k]), k))
    return Reduced(pivots, work)


def _pivot(row: Row, holders: dict[int, set[int]], width: int, units_only: bool) -> int | None:
    """The column of the smallest entry; ties go to the sparsest column, then to the first."""
    allowed = [
        (abs(entry), len(holders[j]), j)
        for j, entry in row.items()
        if j < width and (not units_only or entry in (1, -1))
    ]
    return min(allowed)[2] if allowed else None


def _subtract(work: list[Row], holders: dict[int, set[int]], k: int, i: int, j: int, units_only: bool) -> None:
    """Clear column j of row k with pivot row i."""
    target, source = work[k], work[i]
    spend(len(target) + len(source))
    common = gcd(source[j], target[j])
    scale, factor = source[j] // common, target[j] // common
    if scale != 1:
        for column in target:
            target[column] *= scale
    for column, entry in source.items():
        value = target.get(column, 0) - factor * entry
        if value:
            if column not in target:
                holders[column].add(k)
            target[column] = value
        elif column in target:
            del target[column]
            holders[column].discard(k)
    divisor = 1 if units_only else gcd(*target.values())
    if divisor > 1:
        for column in target:
            target[column] //= divisor


# The integer kernel of a matrix: a saturated basis, made short by LLL.


# LLL takes time at least cubic in the dimension: 1 s at 400 and 2 s at 500, measured on random 0/1 systems of 20 rows.
LLL_LIMIT = 500
STEPS_OF_LLL = 100  # in a microsecond, measured on 160 vectors of 200 entries with 400 bits and on 200 of 300 with 30


def kernel(rows: list[Row], width: int) -> list[Row]:
    """A basis of all integer vectors z with ``rows z = 0``, saturated, not yet reduced.

    Unit pivots solve for most columns. The remaining rows have no unit entry; their kernel is read off the unimodular
    transform of the Hermite normal form, which is why the basis is saturated.

    Examples
    --------
    >>> kernel([{0: 1, 1: 1, 2: 1}], width=3)
    [{1: 1, 0: -1}, {2: 1, 0: -1}]
    >>> reduce(kernel([{0: 2, 1: 3, 2: 5}], width=3), width=3)
    [{0: 1, 1: 1, 2: -1}, {0: 3, 1: -2}]
    """
    reduced = eliminate(rows, width, units_only=True)
    solved = reduced.substitutions(width)
    leftover = [reduced.rows[i] for i in reduced.leftover]
    if not leftover:
        return list(solved.values())
    free = list(solved)
    place = {j: n for n, j in enumerate(free)}
    small = _dense_kernel([{place[j]: entry for j, entry in row.items()} for row in leftover], len(free))
    return [combine({free[n]: entry for n, entry in vector.items()}, solved) for vector in small]


def combine(coefficients: Row, vectors: dict[int, Row]) -> Row:
    """The integer combination of vectors."""
    total: Row = {}
    for j, coefficient in coefficients.items():
        for column, entry in vectors[j].items():
            total[column] = total.get(column, 0) + coefficient * entry
    return {column: entry for column, entry in total.items() if entry}


def _dense_kernel(rows: list[Row], width: int) -> list[Row]:
    """The rows of the transform that the Hermite normal form of the transpose sends to zero."""
    bits = max(abs(entry).bit_length() for row in rows for entry in row.values())
    spend(len(rows) ** 2 * width * bits // STEPS_OF_LLL)
    columns_first = to_flint(rows, width).transpose()
    normal, transform = columns_first.hnf(True)
    zero = [i for i, row in enumerate(normal.tolist()) if not any(row)]
    vectors = transform.tolist()
    return from_flint(fmpz_mat([vectors[i] for i in zero])) if zero else []


def reduce(basis: list[Row], width: int) -> list[Row]:
    """An LLL-reduced basis of the same lattice (flint's delta 0.99, eta 0.51).

    The reduction multiplies by unimodular integer matrices only, so the lattice cannot change. Each vector is negated
    where necessary so that its first entry is positive.
    """
    if not basis:
        return []
    used = sorted({j for vector in basis for j in vector})
    place = {j: n for n, j in enumerate(used)}
    bits = max(abs(entry).bit_length() for vector in basis for entry in vector.values())
    spend(len(basis) ** 2 * len(used) * bits // STEPS_OF_LLL)
    short = to_flint([{place[j]: entry for j, entry in vector.items()} for vector in basis], len(used)).lll()
    return [first_positive({used[n]: entry for n, entry in vector.items()}) for vector in from_flint(short)]


def first_positive(vector: Row) -> Row:
    """The vector or its opposite, so that its first entry is positive."""
    return {column: -entry for column, entry in vector.items()} if vector and vector[min(vector)] < 0 else vector


# The Smith normal form with both transforms: U A V = D.


def smith(rows: list[Row], width: int, kernel_basis: list[Row]) -> tuple[list[Row], list[int], list[Row]]:
    """Bring a matrix to Smith normal form.

    Unit pivots give the ones of the diagonal; the remaining rows are reduced by alternating Hermite forms. The last
    columns of V may be any basis of the kernel lattice, so the caller's short basis is used.

    Returns
    -------
    tuple
        The rows of U, the nonzero diagonal of D, and the *columns* of V.
    """
    height = len(rows)
    recorded = [row | {width + i: 1} for i, row in enumerate(rows)]
    reduced = eliminate(recorded, width, units_only=True)
    order = [*reduced.pivots, *(i for i in range(height) if i not in reduced.pivots)]
    operations = [{j - width: entry for j, entry in reduced.rows[i].items() if j >= width} for i in order]
    units = len(reduced.pivots)

    solved = reduced.substitutions(width)
    free = list(solved)
    place = {j: n for n, j in enumerate(free)}
    rest = [{place[j]: e for j, e in reduced.rows[i].items() if j < width} for i in order[units:]]
    rest_u, diagonal, rest_v = _dense_smith(rest, len(free))

    u = operations[:units] + [combine(row, dict(enumerate(operations[units:]))) for row in rest_u]
    lifted = [combine({free[n]: e for n, e in column.items()}, solved) for column in rest_v[: len(diagonal)]]
    v = [{j: 1} for j in reduced.pivots.values()] + lifted + kernel_basis
    return u, [1] * units + diagonal, v


def _dense_smith(rows: list[Row], width: int) -> tuple[list[Row], list[int], list[Row]]:
    """Rows of U, the diagonal and columns of V of a small system, by flint."""
    height = len(rows)
    if not any(rows):
        return [{i: 1} for i in range(height)], [], []
    work = to_flint(rows, width)
    u, v = _identity(height), _identity(width)
    while True:
        work, step = work.hnf(True)
        u = step * u
        if _is_diagonal(work):
            break
        transposed, step = work.transpose().hnf(True)
        work, v = transposed.transpose(), v * step.transpose()
        if _is_diagonal(work):
            break
    return _divisibility_chain(work, u, v)


def _divisibility_chain(work: fmpz_mat, U: fmpz_mat, V: fmpz_mat) -> tuple[list[Row], list[int], list[Row]]:
    """Make each entry of the diagonal divide the next: (a, b) becomes (gcd, lcm) by a two-by-two step."""
    diagonal = [int(work[i, i]) for i in range(min(work.nrows(), work.ncols())) if work[i, i] != 0]
    u, v = from_flint(U), from_flint(V.transpose())
    for i in range(len(diagonal)):
        for j in range(i + 1, len(diagonal)):
            a, b = diagonal[i], diagonal[j]
            if b % a == 0:
                continue
            g = gcd(a, b)
            x = pow(a // g, -1, b // g) if b // g > 1 else 0
            y = (g - x * a) // b
            # [[x, y], [-b/g, a/g]] diag(a, b) [[1, -y b/g], [1, x a/g]] = diag(g, ab/g)
            two_rows, two_columns = {0: u[i], 1: u[j]}, {0: v[i], 1: v[j]}
            u[i], u[j] = combine({0: x, 1: y}, two_rows), combine({0: -b // g, 1: a // g}, two_rows)
            v[i], v[j] = (
                combine({0: 1, 1: 1}, two_columns),
                combine({0: -y * b // g, 1: x * a // g}, two_columns),
            )
            diagonal[i], diagonal[j] = g, a * b // g
    return u, diagonal, v


def _identity(size: int) -> fmpz_mat:
    return fmpz_mat([[int(i == j) for j in range(size)] for i in range(size)])


def _is_diagonal(matrix: fmpz_mat) -> bool:
    """Whether only leading diagonal entries are nonzero, and all of them positive."""
    entries = {(i, j): e for i, row in enumerate(matrix.tolist()) for j, e in enumerate(row) if e != 0}
    return set(entries) == {(i, i) for i in range(len(entries))} and all(e > 0 for e in entries.values())

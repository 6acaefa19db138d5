"""The Smith normal form with both transforms: U A V = D."""

from __future__ import annotations

from math import gcd

from flint import fmpz_mat

from keepsum.lattice.elimination import eliminate
from keepsum.lattice.kernel import combine
from keepsum.lattice.matrix import Row, from_flint, to_flint


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

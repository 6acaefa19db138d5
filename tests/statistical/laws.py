"""Enumerated laws of l1 Laplace noise on small lattices, and the one test that everything goes through.

The error rate of a test is 1e-6: the chi-square statistic against its own quantile, bins of at least 100 expected.
Bins that expect fewer are pooled, and so is everything beyond the enumerated points.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy import stats

ALPHA = 1e-6
LEAST = 100


def chi_square(draws, points, probabilities):
    """The statistic and its limit for draws (rows) against points with probabilities that may fall short of 1."""
    place = {tuple(point): k for k, point in enumerate(points)}
    counts = np.zeros(len(points) + 1)
    distinct, times = np.unique(draws, axis=0, return_counts=True)
    for row, n in zip(distinct.tolist(), times.tolist(), strict=True):
        counts[place.get(tuple(row), len(points))] += n
    expected = len(draws) * np.append(probabilities, max(0.0, 1 - sum(probabilities)))
    large = expected >= LEAST
    observed, wanted = list(counts[large]), list(expected[large])
    rest = expected[~large].sum()
    if rest >= LEAST:
        observed.append(counts[~large].sum())
        wanted.append(rest)
    else:  # too few for a bin of their own: they go with the last one
        observed[-1] += counts[~large].sum()
        wanted[-1] += rest
    assert len(observed) > 1, "one bin cannot tell anything: draw more"
    statistic = sum((o - w) ** 2 / w for o, w in zip(observed, wanted, strict=True))
    return statistic, stats.chi2.isf(ALPHA, len(observed) - 1)


def assert_drawn_from(draws, law):
    statistic, limit = chi_square(draws, *law)
    assert statistic < limit, f"chi-square {statistic:.1f}, limit {limit:.1f}"


def assert_not_drawn_from(draws, law):
    statistic, limit = chi_square(draws, *law)
    assert statistic > limit, f"a wrong sampler passed: chi-square {statistic:.1f}, limit {limit:.1f}"


def sum_law(n, epsilon, total=0, reach=4):
    """n cells with a given sum."""
    box = int(32 / epsilon) + abs(total) if n <= 3 else int(20 / epsilon) + abs(total)
    axes = [np.arange(-box, box + 1)] * (n - 1)
    grid = np.meshgrid(*axes, indexing="ij", sparse=True)
    last = total - sum(grid)
    whole = np.exp(-epsilon * (sum(np.abs(g) for g in grid) + np.abs(last))).sum()
    points, weights = [], []
    for z in product(range(-reach, reach + 1), repeat=n - 1):
        point = (*z, total - sum(z))
        points.append(point)
        weights.append(np.exp(-epsilon * sum(map(abs, point))))
    return points, np.array(weights) / whole


def table_law(rows, columns, epsilon, reach=3):
    """A table with zero margins. The whole weight is a power of a Fourier transform: rows are independent but for T."""
    size = 256 if epsilon >= 0.5 else 1024
    place = np.fft.fftfreq(size, 1 / size)
    grid = np.meshgrid(*[place] * (columns - 1), indexing="ij", sparse=True)
    row = np.exp(-epsilon * (sum(np.abs(g) for g in grid) + np.abs(sum(grid))))
    whole = (np.fft.fftn(row).real ** rows).mean()
    points, weights = [], []
    inner = (rows - 1) * (columns - 1)
    for z in product(range(-reach, reach + 1), repeat=inner):
        block = np.array(z).reshape(rows - 1, columns - 1)
        full = np.zeros((rows, columns), dtype=int)
        full[:-1, :-1] = block
        full[:-1, -1] = -block.sum(axis=1)
        full[-1] = -full[:-1].sum(axis=0)
        points.append(tuple(full.ravel().tolist()))
        weights.append(np.exp(-epsilon * np.abs(full).sum()))
    return points, np.array(weights) / whole


def solved_law(A, free, epsilon, reach, box):
    """Any small lattice: the free cells in a box, the others solved for in fractions and kept if they are whole."""
    A = np.asarray(A)
    tail = [j for j in range(A.shape[1]) if j not in free]
    inverse = np.linalg.inv(A[:, tail])
    points, weights, whole = [], [], 0.0
    values = np.array(list(product(range(-box, box + 1), repeat=len(free))))
    solved = -(values @ A[:, free].T) @ inverse.T
    rounded = np.rint(solved).astype(int)
    good = (A[:, tail] @ rounded.T == -(A[:, free] @ values.T)).all(axis=0)
    for z, s in zip(values[good].tolist(), rounded[good].tolist(), strict=True):
        point = [0] * A.shape[1]
        for j, value in zip([*free, *tail], [*z, *s], strict=True):
            point[j] = value
        weight = np.exp(-epsilon * sum(map(abs, point)))
        whole += weight
        if sum(map(abs, point)) <= reach:
            points.append(tuple(point))
            weights.append(weight)
    return points, np.array(weights) / whole


def lattice_law(A, weight, box, reach):
    """Any small lattice by its basis: ``weight`` of the squared length, points up to the squared length ``reach``.

    ``box`` bounds the coordinates that are summed over; what lies beyond must weigh nothing in floats.
    """
    import keepsum as ks

    A = np.atleast_2d(np.asarray(A))
    basis = np.eye(A.shape[1], dtype=np.int64) if not A.any() else ks.Lattice(A).basis
    coordinates = np.array(list(product(range(-box, box + 1), repeat=basis.shape[1])))
    points = coordinates @ basis.T
    squares = (points**2).sum(axis=1)
    weights = weight(squares)
    edge = np.abs(coordinates).max(axis=1) == box
    assert weights[edge].sum() < 1e-9 * weights.sum(), "the box is too small"
    near = squares <= reach
    return [tuple(point) for point in points[near].tolist()], weights[near] / weights.sum()

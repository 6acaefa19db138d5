"""Enumerated laws of l1 Laplace noise on small lattices, and the one test that everything goes through.

The error rate of a test is 1e-6: the chi-square statistic against its own quantile, bins of at least 100 expected.
Bins that expect fewer are pooled, and so is everything beyond the enumerated points.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

ALPHA = 1e-6
LEAST = 100


def tally(draws):
    """The different rows of draws, and how often each occurs; numbered rather than sorted where the numbers fit."""
    low, high = draws.min(axis=0), draws.max(axis=0)
    spans = (high - low + 1).tolist()
    if math.prod(spans) >= 2**62:
        distinct, times = np.unique(draws, axis=0, return_counts=True)
        return distinct.tolist(), times.tolist()
    numbers, times = np.unique(np.ravel_multi_index((draws - low).T, spans), return_counts=True)
    return (np.stack(np.unravel_index(numbers, spans), axis=1) + low).tolist(), times.tolist()


def binned(draws, points, probabilities, count=None):
    """The shares of draws (rows) in each bin and the chances of the bins; probabilities may fall short of 1.

    Bins are those of a test of ``count`` draws, as many as these if not given: each expects at least LEAST of them.
    """
    place = {tuple(point): k for k, point in enumerate(points)}
    shares = np.zeros(len(points) + 1)
    for row, n in zip(*tally(draws), strict=True):
        shares[place.get(tuple(row), len(points))] += n / len(draws)
    chances = np.append(probabilities, max(0.0, 1 - sum(probabilities)))
    least = LEAST / (count or len(draws))
    large = chances >= least
    observed, wanted = list(shares[large]), list(chances[large])
    rest = chances[~large].sum()
    if rest >= least:
        observed.append(shares[~large].sum())
        wanted.append(rest)
    else:  # too few for a bin of their own: they go with the last one
        observed[-1] += shares[~large].sum()
        wanted[-1] += rest
    assert len(observed) > 1, "one bin cannot tell anything: draw more"
    return np.array(observed), np.array(wanted)


def chi_square(draws, points, probabilities):
    """The statistic and its limit."""
    observed, wanted = binned(draws, points, probabilities)
    statistic = len(draws) * ((observed - wanted) ** 2 / wanted).sum()
    return statistic, stats.chi2.isf(ALPHA, len(observed) - 1)


def power(wrong, law, count):
    """The chance that so many draws of a wrong sampler are rejected, estimated from ``wrong``, some draws of it.

    The statistic of a wrong sampler is noncentral chi-square, and its noncentrality grows with the number of draws.
    """
    observed, wanted = binned(wrong, *law, count)
    freedom = len(observed) - 1
    per_draw = max(0.0, ((observed - wanted) ** 2 / wanted).sum() - freedom / len(wrong))
    return float(stats.ncx2.sf(stats.chi2.isf(ALPHA, freedom), freedom, count * per_draw))


def assert_drawn_from(draws, law):
    statistic, limit = chi_square(draws, *law)
    assert statistic < limit, f"chi-square {statistic:.1f}, limit {limit:.1f}"


def assert_not_drawn_from(draws, law):
    statistic, limit = chi_square(draws, *law)
    assert statistic > limit, f"a wrong sampler passed: chi-square {statistic:.1f}, limit {limit:.1f}"


def sum_law(n, epsilon, total=0, reach=4):
    """n cells with a given sum; the whole weight is that of the sum, a convolution."""
    box = int(40 / epsilon) + abs(total)
    cell = np.exp(-epsilon * np.abs(np.arange(-box, box + 1)))
    sums = cell
    for _ in range(n - 1):
        sums = np.convolve(sums, cell)
    whole = sums[n * box + total]
    free = boxed(reach, n - 1)
    points = np.column_stack([free, total - free.sum(axis=1)])
    return as_tuples(points), np.exp(-epsilon * np.abs(points).sum(axis=1)) / whole


def table_law(rows, columns, epsilon, reach=3):
    """A table with zero margins. The whole weight is a power of a Fourier transform: rows are independent but for T."""
    size = 256 if epsilon >= 0.5 else 1024
    place = np.fft.fftfreq(size, 1 / size)
    grid = np.meshgrid(*[place] * (columns - 1), indexing="ij", sparse=True)
    row = np.exp(-epsilon * (sum(np.abs(g) for g in grid) + np.abs(sum(grid))))
    whole = (np.fft.fftn(row).real ** rows).mean()
    blocks = boxed(reach, (rows - 1) * (columns - 1)).reshape(-1, rows - 1, columns - 1)
    full = np.zeros((len(blocks), rows, columns), dtype=int)
    full[:, :-1, :-1] = blocks
    full[:, :-1, -1] = -blocks.sum(axis=2)
    full[:, -1] = -full[:, :-1].sum(axis=1)
    points = full.reshape(len(blocks), -1)
    return as_tuples(points), np.exp(-epsilon * np.abs(points).sum(axis=1)) / whole


def solved_law(A, free, epsilon, reach, box):
    """Any small lattice: the free cells in a box, the others solved for in fractions and kept if they are whole."""
    A = np.asarray(A)
    tail = [j for j in range(A.shape[1]) if j not in free]
    inverse = np.linalg.inv(A[:, tail])
    values = boxed(box, len(free))
    solved = -(values @ A[:, free].T) @ inverse.T
    rounded = np.rint(solved).astype(int)
    good = (A[:, tail] @ rounded.T == -(A[:, free] @ values.T)).all(axis=0)
    points = np.zeros((int(good.sum()), A.shape[1]), dtype=int)
    points[:, free], points[:, tail] = values[good], rounded[good]
    lengths = np.abs(points).sum(axis=1)
    weights = np.exp(-epsilon * lengths)
    near = lengths <= reach
    return as_tuples(points[near]), weights[near] / weights.sum()


def boxed(reach, count):
    """Every vector of so many whole numbers from -reach to reach, a row each."""
    return np.indices((2 * reach + 1,) * count).reshape(count, -1).T - reach


def as_tuples(points):
    return [tuple(point) for point in points.tolist()]


def lattice_law(A, weight, box, reach):
    """Any small lattice by its basis: ``weight`` of the squared length, points up to the squared length ``reach``.

    ``box`` bounds the coordinates that are summed over; what lies beyond must weigh nothing in floats.
    """
    import keepsum as ks

    A = np.atleast_2d(np.asarray(A))
    basis = np.eye(A.shape[1], dtype=np.int64) if not A.any() else ks.Lattice(A).basis
    coordinates = boxed(box, basis.shape[1])
    points = coordinates @ basis.T
    squares = (points**2).sum(axis=1)
    weights = weight(squares)
    edge = np.abs(coordinates).max(axis=1) == box
    assert weights[edge].sum() < 1e-9 * weights.sum(), "the box is too small"
    near = squares <= reach
    return as_tuples(points[near]), weights[near] / weights.sum()

"""The acceptance rate of column splitting, computed: the weight of all tables over that of all proposals.

By the lemma of ``docs/exact-tables.md`` a proposal is accepted with probability

    Z / (sum of F(0)^r B),

Z the sum of exp(-eps |z|_1) over all r x c tables with zero margins, F(0) and B those of the root, for each of its
bases (one if there are no labels). Nothing is drawn: F(0) and B come from the sampler's tables, and Z from the chance
that r independent rows, each with sum 0, have the column sums 0: by Fourier sums for three and four columns, elsewhere
by the Gaussian approximation with the first term of its Edgeworth expansion, whose relative error is of the order 1/r^2
for a fixed number of columns.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from keepsum.sampling.l1.splitting.bundles import bundled
from keepsum.sampling.l1.splitting.laws import Labelling, laws_of
from keepsum.sampling.l1.splitting.slices import two_way
from keepsum.sampling.l1.splitting.splits import Branch, full_measure, transforms

PLAIN = Labelling()
LARGEST_GRID = 2**24  # frequencies of a Fourier sum
LARGEST_TERM = 0.6  # of the Edgeworth expansion: beyond, computed and measured rates differ by more than a tenth


def acceptance(epsilon: str, rows: int, columns: int, labelling: Labelling = PLAIN) -> float:
    """The acceptance rate of a table of single cells; exact up to 1e-6 or so where :func:`summable`.

    >>> round(acceptance("1", 100, 3), 3), round(acceptance("0.25", 16, 16), 3)
    (0.963, 0.864)
    """
    exact = summable(epsilon, rows, columns)
    log_tables = (summed_log_tables if exact else approximate_log_tables)(epsilon, rows, columns)
    return math.exp(log_tables - log_proposals(epsilon, rows, columns, labelling))


def is_computed(epsilon: str, rows: int, columns: int) -> bool:
    """Whether the rate is exact, or its approximation good."""
    return summable(epsilon, rows, columns) or kurtosis_term(epsilon, rows, columns) <= LARGEST_TERM


def summable(epsilon: str, rows: int, columns: int) -> bool:
    """Whether Z can be summed over all frequencies of the columns."""
    return columns <= 4 and _points(epsilon, rows, columns) ** (columns - 1) <= LARGEST_GRID


def log_proposals(epsilon: str, rows: int, columns: int, labelling: Labelling = PLAIN) -> float:
    """The logarithm of the sum of F(0)^r B over the bases of the root."""
    bundles = bundled(two_way(np.ones((rows, columns), dtype=np.int64)))
    laws = laws_of(Fraction(epsilon), bundles, labelling)
    (bases,) = (own.bases for form, own in zip(bundles.forms, laws.forms, strict=True) if form.is_root)
    return float(np.logaddexp.reduce([_log_mass(float(Fraction(epsilon)), rows, base.branches[0]) for base in bases]))


def _log_mass(epsilon: float, rows: int, branch: Branch) -> float:
    """The logarithm of F(0)^r B, for rows of one kind."""
    law = branch.laws(0, 1)
    points = math.ceil(12 * math.sqrt(rows * float(law[0] @ branch.sums**2)) + 36 / epsilon)
    bridge = float(full_measure(points) @ np.abs(transforms(law, points)[0]) ** rows)
    return rows * (math.log(branch.whole.values[0]) + branch.whole.exponent * math.log(2)) + math.log(bridge)


def summed_log_tables(epsilon: str, rows: int, columns: int) -> float:
    """The logarithm of Z, by a Fourier sum over all columns but one and over the sum of a row."""
    rate, points = float(Fraction(epsilon)), _points(epsilon, rows, columns)
    a, beta = math.exp(-rate), 2 * np.pi * np.arange(points) / points
    shifts = 2 * np.pi * np.arange(math.ceil(36 / rate)) / math.ceil(36 / rate)
    row = np.zeros([points] * (columns - 1))
    for shift in shifts:
        last, cell = ((1 - a**2) / (1 - 2 * a * np.cos(angle) + a**2) for angle in (shift, shift + beta))
        product = last / len(shifts) * cell
        for _ in range(columns - 2):
            product = product[..., None] * cell
        row += product
    top = row.flat[0]
    return rows * math.log(top) + math.log(float(((row / top) ** rows).mean()))


def approximate_log_tables(epsilon: str, rows: int, columns: int) -> float:
    """The logarithm of Z by the Gaussian approximation, with its kurtosis term."""
    log_weight, variance, _ = _row_moments(epsilon, columns)
    scale = variance * columns / (columns - 1)  # the variance of a row in each direction with sum 0
    gaussian = -0.5 * (columns - 1) * math.log(2 * math.pi * rows * scale) + 0.5 * math.log(columns)
    return rows * log_weight + gaussian + kurtosis_term(epsilon, rows, columns)


def kurtosis_term(epsilon: str, rows: int, columns: int) -> float:
    """The first term of the Edgeworth expansion, at 0: an eighth of Mardia's excess kurtosis of a row, over r."""
    _, variance, fourth = _row_moments(epsilon, columns)
    dimension = columns - 1
    scale = variance * columns / dimension
    return (fourth / scale**2 - dimension * (dimension + 2)) / (8 * rows)


def _row_moments(epsilon: str, columns: int) -> tuple[float, float, float]:
    """The logarithm of the weight of all rows with sum 0; the variance of a cell of one, and the mean of |row|^4."""
    rate = float(Fraction(epsilon))
    reach = math.ceil((40 + columns) / rate)
    z = np.arange(-reach, reach + 1.0)
    weights = np.exp(-rate * np.abs(z))
    cell = weights / weights.sum()
    points = 4 * reach + 1
    transform = np.fft.rfft(np.fft.ifftshift(np.pad(cell, reach)))

    def sums(cells: int) -> np.ndarray:
        whole: np.ndarray = np.fft.fftshift(np.fft.irfft(transform**cells, points))[reach : 3 * reach + 1]
        return whole

    others = cell * sums(columns - 1)
    chance = others.sum()
    pair = np.convolve(cell * z**2, cell * z**2)[reach : 3 * reach + 1] @ sums(columns - 2)
    fourth = columns * (others @ z**4) + columns * (columns - 1) * pair
    log_weight = math.log(chance) + columns * math.log(weights.sum())
    return log_weight, float(others @ z**2 / chance), float(fourth / chance)


def _points(epsilon: str, rows: int, columns: int) -> int:
    """Enough frequencies for column sums to go no farther."""
    return math.ceil(7 * math.sqrt(rows * _row_moments(epsilon, columns)[1]) + 16 / float(Fraction(epsilon)))

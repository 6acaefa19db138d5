"""Long tables by splitting columns: one row, and the sum of two, against laws by convolution."""

from fractions import Fraction

import numpy as np
import pytest
from laws import assert_drawn_from, assert_not_drawn_from, power
from splitting_laws import drawn, row_sums, rows_law

from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting

pytestmark = pytest.mark.audit  # test_splitting.py has a case of each kind in every run

audit = pytest.mark.audit
LONG = [  # shape, epsilon, points of the grid, draws
    ((30, 3), "1/4", 512, 20_000),
    ((30, 4), "1", 96, 20_000),
    ((300, 3), "1", 512, 3_000),
    ((300, 4), "3/2", 128, 2_000),
    pytest.param((30, 3), "3", 128, 120_000, marks=audit),
    pytest.param((30, 4), "1/2", 192, 80_000, marks=audit),
    pytest.param((300, 3), "1/4", 1536, 20_000, marks=audit),
    pytest.param((300, 3), "3", 256, 20_000, marks=audit),
    pytest.param((300, 4), "1", 256, 20_000, marks=audit),
]


@pytest.mark.parametrize(("shape", "epsilon", "points", "count"), LONG)
def test_rows_of_long_tables(shape, epsilon, points, count):
    """The first row, the last, and the sum of two rows between."""
    sizes, number = np.ones(shape, dtype=int), float(Fraction(epsilon))
    reach = 3 if shape[1] == 4 else 6
    noise = drawn(ColumnSplitting(Fraction(epsilon), sizes), count)
    assert not noise.reshape(-1, *shape).sum(axis=1).any()
    assert not noise.reshape(-1, *shape).sum(axis=2).any()
    one, two = (rows_law(sizes, number, rows, reach, points) for rows in ([0], [0, 1]))
    assert_drawn_from(row_sums(noise, sizes, [0]), one)
    assert_drawn_from(row_sums(noise, sizes, [shape[0] - 1]), one)
    assert_drawn_from(row_sums(noise, sizes, [shape[0] // 2, shape[0] // 3]), two)


@pytest.mark.parametrize(
    ("shape", "epsilon", "points", "count"),
    [((30, 3), "2", 128, 30_000), ((30, 4), "1", 96, 20_000), pytest.param((300, 4), "2", 128, 20_000, marks=audit)],
)
def test_rows_of_long_tables_with_labels(shape, epsilon, points, count):
    sizes, number = np.ones(shape, dtype=int), float(Fraction(epsilon))
    noise = drawn(ColumnSplitting(Fraction(epsilon), sizes, labelling=Labelling(6, 3)), count)
    for rows in ([0], [1, 2]):
        law = rows_law(sizes, number, rows, 3 if shape[1] == 4 else 6, points)
        assert_drawn_from(row_sums(noise, sizes, rows), law)


@pytest.mark.parametrize(
    ("kinds", "epsilon"), [([[1, 1, 1], [2, 1, 3], [0, 1, 1]], "1/2"), ([[1, 1, 1, 1], [3, 3, 3, 3]], "1")]
)
def test_rows_of_several_kinds(kinds, epsilon):
    """Forty rows of regions and structural zeros: one row of each kind."""
    sizes = np.array(kinds * (40 // len(kinds)))
    noise = drawn(ColumnSplitting(Fraction(epsilon), sizes), 10_000)
    for row in range(len(kinds)):
        law = rows_law(sizes, float(Fraction(epsilon)), [row], 4, 256 if sizes.shape[1] == 3 else 96)
        assert_drawn_from(row_sums(noise, sizes, [row]), law)


def test_a_bridge_that_is_not_conditioned_fails():
    """The row that is solved for is always accepted: the flattest row then has all that the others lack."""
    sizes = np.ones((30, 3), dtype=int)
    sampler = ColumnSplitting(Fraction(1, 4), sizes)
    splits = sampler._tables.splits
    sampler._tables = sampler._tables._replace(splits=splits._replace(peak=splits.peak * 1e-9))
    noise, law = row_sums(drawn(sampler, 30_000), sizes, [0]), rows_law(sizes, 0.25, [0], 6, 512)
    assert_not_drawn_from(noise, law)
    assert power(noise, law, 30_000) > 1 - 1e-6

"""The sums of parts of a region, and of regions in nested totals: what Spark's driver draws for its workers to fill."""

from fractions import Fraction

import numpy as np
import pytest
from focus_laws import TREES, drawn, enumerated
from laws import assert_drawn_from, assert_not_drawn_from, lattice_law, power, sum_law

from keepsum.sampling.core.rng import rng
from keepsum.sampling.gaussian.sums import LatticeGaussian, SumsGaussian
from keepsum.sampling.l1.focus.sampler import NestedFocus
from keepsum.sampling.l1.forced_sums import PEAK_ROOM, ForcedSums, SumSplit, split_sums
from support import mostly_audit

COUNT = 8_000
EPSILON = Fraction(7, 10)


def split_law(left, right, total, epsilon, reach=400):
    """The sum u of the first part has weight p_a(u) p_b(y - u), by convolutions."""
    cell = np.exp(-float(epsilon) * np.abs(np.arange(-reach, reach + 1)))

    def sums(n):
        law = cell
        for _ in range(n - 1):
            law = np.convolve(law, cell, mode="same")
        return law

    u = np.arange(-reach // 2, reach // 2 + 1)
    weights = sums(left)[u + reach] * sums(right)[total - u + reach]
    return [(int(value),) for value in u], weights / weights.sum()


def splits(left, right, total, epsilon=EPSILON, seed=1):
    law, stream = SumSplit(epsilon, left, right, total), rng(seed=seed).stream()
    return np.array([[law.draw(stream)] for _ in range(COUNT)])


@pytest.mark.parametrize(("left", "right", "total"), [(1, 1, 0), (2, 3, 1), (12, 5, -9), (40, 40, 0), (1, 30, 6)])
def test_a_sum_of_two_parts(left, right, total):
    assert_drawn_from(splits(left, right, total), split_law(left, right, total, EPSILON))


@pytest.mark.parametrize(
    ("wrong", "right"), [((3, 2, 1), (2, 3, 1)), ((2, 3, 0), (2, 3, 1)), ((12, 4, -9), (12, 6, -9))]
)
def test_other_parts_or_sums_are_seen(wrong, right):
    draws, law = splits(*wrong), split_law(*right, EPSILON)
    assert_not_drawn_from(draws, law)
    assert power(draws, law, COUNT) > 1 - 1e-6


def test_an_envelope_that_does_not_cover_is_seen(monkeypatch):
    """With a quarter of its height the middle is accepted too rarely."""
    monkeypatch.setattr("keepsum.sampling.l1.forced_sums.PEAK_ROOM", PEAK_ROOM / 4)
    assert_not_drawn_from(splits(2, 3, 1), split_law(2, 3, 1, EPSILON))


@pytest.mark.audit
def test_parts_that_are_filled_given_their_sums():
    """Four cells with sum 1, as parts of one, two and one."""
    source, sizes = rng(seed=5), np.array([1, 2, 1])
    sums = np.array([split_sums(EPSILON, sizes, 1, source) for _ in range(COUNT)])
    assert (sums.sum(axis=1) == 1).all()
    law = sum_law(4, float(EPSILON), 1, reach=6)
    cells = filled(EPSILON, sizes, sums, seed=6)
    assert_drawn_from(cells, law)
    forgotten = filled(EPSILON, sizes, np.tile([0, 1, 0], (COUNT, 1)), seed=6)
    assert_not_drawn_from(forgotten, law)


def filled(epsilon, sizes, sums, seed):
    """Cells given the sum of each part, a row for each row of sums."""
    out = np.empty((1, int(sizes.sum()) * len(sums)), dtype=np.int64)
    ForcedSums(epsilon, np.tile(sizes, len(sums)), sums.ravel()).draw_into(out, rng(seed=seed))
    return out.reshape(len(sums), -1)


REACH = {1: 60, 2: 20, 3: 10, 4: 5, 5: 3}


@mostly_audit("name", TREES)
def test_sums_of_regions_in_nested_totals(name):
    """Drawn as sums and filled, the cells have the law of nested totals."""
    tree = TREES[name]
    sizes = np.array([count for count in tree.cells if count])
    sums = drawn(NestedFocus(tree, as_sums=True), 100_000)
    assert_drawn_from(filled(tree.epsilon, sizes, sums, seed=3), enumerated(tree, REACH[sum(tree.cells)]))


def test_regions_alike_in_size_are_told_apart():
    """Two regions of two cells have a sum that is divided, and one of four cells has not."""
    from focus_laws import totals

    tree = totals("1/2", (-1, 0, "1/3"), (0, 4, "0"), (0, 2, "0"), (0, 2, "0"))
    assert drawn(NestedFocus(tree, as_sums=True), 10).shape == (10, 3)
    assert NestedFocus(tree).width == 8


@pytest.mark.parametrize(("total", "sigma"), [(0, "4/5"), (2, "4/5"), (-5, "2")])
def test_gaussian_cells_given_their_sum(total, sigma):
    """On the shifted lattice, whose vectors are those of sum 0 and one of the sum."""
    variance, out = Fraction(sigma) ** 2, np.empty((100_000, 3), dtype=np.int64)
    LatticeGaussian(SumsGaussian([3], sums=[total]), variance).draw_into(out, rng(seed=2))
    assert (out.sum(axis=1) == total).all()
    law = shifted_law(total, float(variance))
    assert_drawn_from(out, law)
    LatticeGaussian(SumsGaussian([3]), variance).draw_into(out, rng(seed=2))
    if total:
        assert_not_drawn_from(out + np.array([total, 0, 0]), law)


def shifted_law(total, variance):
    points = np.array(lattice_law([[1, 1, 1]], lambda squares: np.exp(-squares / 200), 100, 1500)[0])
    points = points + np.array([total, 0, 0])
    weights = np.exp(-(points**2).sum(axis=1) / (2 * variance))
    return [tuple(point) for point in points.tolist()], weights / weights.sum()

"""Tables by splitting columns against their enumerated laws: shapes, regions, structural zeros, several at once."""

from fractions import Fraction

import numpy as np
import pytest
from laws import assert_drawn_from, table_law
from splitting_laws import cells_law, drawn, entries_law, entry_sums, margins_of, rows_law, whole_weight

from keepsum.sampling.l1.splitting import packing
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from support import mostly_audit

CYCLE = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
NO_DIAGONAL = (1 - np.eye(4, dtype=int)).tolist()

REGIONS = {  # sizes, and how far entries are enumerated
    "equal": ([[2, 2, 2]] * 3, 3),
    "by row": ([[1, 1, 1], [2, 2, 2], [5, 5, 5]], 3),
    "by column": ([[1, 2, 4]] * 3, 3),
    "all different": ([[1, 2, 3], [4, 5, 6], [7, 8, 9]], 3),
    "one large": ([[1, 1, 1], [1, 1, 1], [1, 1, 60]], 3),
    "2 x 2": ([[2, 3], [1, 5]], 30),
    "3 x 2": ([[1, 2], [3, 4], [5, 6]], 8),
    "2 x 3": ([[1, 3, 5], [2, 4, 6]], 8),
    "3 x 4 by row": ([[1] * 4, [2] * 4, [1] * 4], 1),
    "4 x 3 in two kinds": ([[1, 2, 1], [3, 1, 1]] * 2, 1),
}
ZEROS = {
    "cycle": (CYCLE, 8),
    "no diagonal": (NO_DIAGONAL, 1),
    "cycle of regions": ([[0, 3, 1], [2, 0, 1], [1, 4, 0]], 12),
    "no diagonal, regions": ([[0, 1, 2, 1], [1, 0, 1, 1], [3, 1, 0, 1], [1, 1, 1, 0]], 1),
    "one zero": ([[1, 1, 1], [1, 0, 1], [1, 1, 1]], 3),
    "a path": ([[1, 1, 0], [1, 1, 1], [0, 1, 1]], 8),
    "two blocks": ([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]], 1),
    "an empty row": ([[1, 1, 1], [0, 0, 0], [1, 1, 1]], 8),
    "an empty column": ([[1, 1, 0], [1, 1, 0], [1, 1, 0]], 8),
}


def check_entries(sizes, epsilon, reach, count, **options):
    sampler = ColumnSplitting(Fraction(epsilon), sizes, **options)
    noise = drawn(sampler, count)
    assert not (noise @ margins_of(sizes).T).any()
    assert_drawn_from(entry_sums(noise, sizes), entries_law(sizes, float(Fraction(epsilon)), reach))


@mostly_audit("epsilon", ["0.5", "1"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4), (5, 3), (4, 4)])
def test_single_cells(shape, epsilon):
    check_entries(np.ones(shape, dtype=int), epsilon, reach=2 if shape == (3, 3) else 1, count=50_000)


@pytest.mark.parametrize("shape", [(5, 3), (4, 4)])
def test_single_cells_at_epsilon_3(shape):
    """All but one draw in a thousand are zero: the share of zeros is what is tested."""
    check_entries(np.ones(shape, dtype=int), "3", reach=1, count=300_000)


@mostly_audit(("shape", "epsilon"), [((3, 3), "0.5"), ((4, 3), "1"), ((3, 4), "0.5"), ((4, 4), "1")])
@pytest.mark.parametrize("labelling", [Labelling(4, 1), Labelling(3, 3), Labelling(5, 2)], ids=str)
def test_labels(shape, epsilon, labelling):
    """Whatever the numbers of blocks and groups, the law is the same."""
    check_entries(np.ones(shape, dtype=int), epsilon, 2 if shape == (3, 3) else 1, 50_000, labelling=labelling)


@mostly_audit("name", ["all different", "by column", "3 x 4 by row", "4 x 3 in two kinds"])
def test_labels_of_regions(name):
    sizes, reach = REGIONS[name]
    check_entries(sizes, "1/2", reach, 40_000, labelling=Labelling(4, 2))


@pytest.mark.parametrize("name", ["no diagonal", "one zero", "a path"])
def test_labels_with_structural_zeros(name):
    sizes, reach = ZEROS[name]
    check_entries(sizes, "1/2", reach, 40_000, labelling=Labelling(4, 2))


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["0.5", "2", "3"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (5, 3), (4, 4)])
@pytest.mark.parametrize("labelling", [Labelling(4, 4), Labelling(12, 16)], ids=str)
def test_labels_with_many_draws(shape, epsilon, labelling):
    reach, count = 3 if shape == (3, 3) else 1, 1_000_000 if epsilon == "3" else 400_000  # or all are in one bin
    check_entries(np.ones(shape, dtype=int), epsilon, reach, count, labelling=labelling)


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["0.1", "2", "3"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (5, 3), (4, 4)])
def test_single_cells_with_many_draws(shape, epsilon):
    """At epsilon 0.1 only 3 x 3 has tables that are likely enough for bins; the others have their rows tested."""
    if epsilon != "0.1" or shape == (3, 3):
        check_entries(np.ones(shape, dtype=int), epsilon, reach=3 if shape == (3, 3) else 1, count=1_000_000)


@mostly_audit(
    ("shape", "epsilon"), [((3, 3), "0.1"), ((4, 3), "0.1"), ((5, 3), "0.1"), ((12, 3), "0.5"), ((4, 4), "0.25")]
)
def test_entries_one_at_a_time(shape, epsilon):
    """At small epsilon: the first and the last entry against the marginal of a row's law."""
    sizes, number = np.ones(shape, dtype=int), float(epsilon)
    reach = int(6 / number)
    chances = rows_law(sizes, number, [0], reach, points=512 if shape[1] == 3 else 128)[1]
    marginal = chances.reshape((2 * reach + 1,) * (shape[1] - 1)).sum(axis=tuple(range(1, shape[1] - 1)))
    law = [(z,) for z in range(-reach, reach + 1)], marginal
    noise = drawn(ColumnSplitting(Fraction(epsilon), sizes), 50_000)
    assert_drawn_from(noise[:, :1], law)
    assert_drawn_from(noise[:, -1:], law)


@mostly_audit("name", REGIONS)
def test_regions(name):
    sizes, reach = REGIONS[name]
    check_entries(sizes, "1/2", reach, count=40_000)


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
@pytest.mark.parametrize("name", ["equal", "by row", "by column", "all different", "2 x 2", "3 x 2", "2 x 3"])
def test_regions_at_other_epsilons(name, epsilon):
    sizes, reach = REGIONS[name]
    check_entries(sizes, epsilon, reach, count=500_000 if epsilon == "3" else 200_000)


@mostly_audit("name", ZEROS)
def test_structural_zeros(name):
    sizes, reach = ZEROS[name]
    check_entries(sizes, "1/2", reach, count=40_000)


@pytest.mark.parametrize(
    "sizes", [[[2, 1], [1, 1], [1, 2]], [[0, 2, 1], [1, 0, 1], [1, 1, 0]], [[1, 3], [2, 1]], [[1, 1, 1], [1, 2, 1]]]
)
def test_cells_of_regions(sizes):
    """Cell by cell, so that what a region is filled with is tested as well."""
    noise = drawn(ColumnSplitting(Fraction(1), sizes), 80_000)
    assert_drawn_from(noise, cells_law(sizes, 1.0, longest=10))


@mostly_audit("stored", [100, 500])
@pytest.mark.parametrize("labelling", [Labelling(), Labelling(4, 2)], ids=str)
@pytest.mark.parametrize("sizes", [np.ones((3, 3), dtype=int), np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])])
def test_tables_of_every_so_many_chances(monkeypatch, stored, labelling, sizes):
    """Large tables keep only some of the cumulative chances, and add up the others."""
    monkeypatch.setattr(packing, "STORED", stored)
    sampler = ColumnSplitting(Fraction(1, 2), sizes, labelling=labelling)
    assert sampler._tables.splits.stride > 1
    assert_drawn_from(entry_sums(drawn(sampler, 40_000), sizes), entries_law(sizes, 0.5, 2))


def test_transposed():
    """The same law whichever side is split: with regions and zeros, both against the same enumeration."""
    sizes = np.array([[1, 2, 0], [3, 1, 1], [1, 1, 2], [0, 1, 1]])
    points, chances = entries_law(sizes, 0.5, 2)
    over = entry_sums(drawn(ColumnSplitting(Fraction(1, 2), sizes), 60_000), sizes)
    across = entry_sums(drawn(ColumnSplitting(Fraction(1, 2), sizes.T), 60_000), sizes.T)
    assert_drawn_from(over, (points, chances))
    assert_drawn_from(across.reshape(-1, 3, 4).transpose(0, 2, 1).reshape(-1, 12), (points, chances))


def test_several_tables_per_draw():
    """Each has the law, and pairs of them are independent."""
    noise = drawn(ColumnSplitting(Fraction(1), np.ones((3, 3), dtype=int), count=3), 60_000)
    points, chances = table_law(3, 3, 1.0, reach=1)
    for k in range(3):
        assert_drawn_from(noise[:, 9 * k : 9 * k + 9], (points, chances))
    short = [k for k in range(len(points)) if chances[k] > 0.01]
    pairs = [points[j] + points[k] for j in short for k in short]
    assert_drawn_from(noise[:, 9:], (pairs, [chances[j] * chances[k] for j in short for k in short]))


def test_threads_change_nothing():
    from keepsum.sampling.core.rng import rng

    sampler = ColumnSplitting(Fraction(1), [[1, 2, 1], [1, 1, 3], [1, 1, 1]])
    one, two = np.empty((2_000, sampler.width), dtype=np.int64), np.empty((2_000, sampler.width), dtype=np.int64)
    sampler.draw_into(one, rng(seed=3))
    sampler.draw_into(two, rng(seed=3), threads=2)
    assert np.array_equal(one, two)


def test_the_laws_of_these_tests_agree_with_the_older_ones():
    """And weights of regions with sums over their fillings."""
    points, chances = table_law(3, 3, 0.5, reach=2)
    assert (points, pytest.approx(chances, rel=1e-12)) == entries_law(np.ones((3, 3), dtype=int), 0.5, 2)
    sizes = [[2, 1], [1, 1], [1, 2]]
    assert whole_weight(sizes, 1.0) == pytest.approx(whole_weight(np.transpose(sizes), 1.0), rel=1e-12)
    assert cells_law(sizes, 2.0, longest=16)[1].sum() == pytest.approx(1.0, abs=1e-5)
    points, chances = entries_law([[1, 2], [3, 4], [5, 6]], 1.0, 12)
    assert sum(chances) == pytest.approx(1.0, abs=1e-5)

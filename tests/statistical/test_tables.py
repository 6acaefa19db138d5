"""Tables under both margins and other overlapping totals, by solving for regions; tables by splitting columns too."""

from fractions import Fraction

import numpy as np
import pytest
from laws import ALPHA, assert_drawn_from, assert_not_drawn_from, solved_law, table_law
from scipy import sparse, stats

import keepsum as ks
from keepsum.sampling.core.rng import Rng, rng
from keepsum.sampling.l1 import rejection
from keepsum.sampling.l1.rejection import SolvedRegions, split
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from support import mostly_audit

MARGINS_3 = np.vstack([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))]).astype(int)
CIRCLES = np.array([[1, 0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 0, 1, 1], [0, 0, 1, 0, 1, 1, 1]])


def draws(made, count, seed=1):
    out = np.empty((count, made.width), dtype=np.int64)
    made.draw_into(out, rng(seed=seed))
    return out


def table_sampler(way, epsilon, word_bits=64):
    if way == "split":
        return ColumnSplitting(Fraction(epsilon), np.ones((3, 3), dtype=int), word_bits=word_bits)
    return SolvedRegions(Fraction(epsilon), sparse.csr_array(MARGINS_3), [1] * 9, word_bits=word_bits)


@mostly_audit("way", ["split", "solved"])
@pytest.mark.parametrize("epsilon", ["0.5", "0.1", "1", "3"])
def test_3_x_3(epsilon, way):
    # At epsilon 3 all but one draw in ten thousand are zero, so more are needed.
    count = 1_000_000 if epsilon == "3" else 200_000 if way == "split" else 60_000
    found = draws(table_sampler(way, epsilon), count)
    assert_drawn_from(found, table_law(3, 3, float(epsilon), reach=2 if float(epsilon) < 1 else 3))


@mostly_audit("epsilon", ["0.1", "0.5", "1", "3"])
def test_2_x_2(epsilon):
    domain = ks.Domain({"a": [1, 2], "b": [1, 2]})
    plan = ks.plan(domain, keep=[["a"], ["b"]], mechanism=ks.Laplace.per_unit(epsilon=epsilon))
    found = plan.sample(9_000_000 if epsilon == "3" else 200_000, rng=ks.rng(seed=2))
    assert not (found + found[:, [1, 0, 3, 2]]).any()
    points, chances = table_law(2, 2, float(epsilon), reach=30)
    assert_drawn_from(found[:, :1], ([point[:1] for point in points], chances))


@pytest.mark.parametrize("shape", [(2, 3), (3, 2, 2), (2, 2, 2)])
def test_axes_of_two_categories_are_folded(shape):
    """Against draws of the solved sampler, which knows nothing of tables: the same share of every short vector."""
    domain = ks.Domain({f"x{k}": list(range(n)) for k, n in enumerate(shape)})
    axes = list(domain.axes)
    keep = ks.Invariants.margins(domain, [[a for a in axes if a != left] for left in axes])
    found = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=0.5)).sample(100_000, rng=ks.rng(seed=3))
    lattice = ks.Lattice(keep.coefficients)
    assert lattice.contains(found).all()
    coordinates = lattice.basis.shape[1]
    reach = 25 if coordinates == 1 else 8
    grid = np.indices([2 * reach + 1] * coordinates).reshape(coordinates, -1).T - reach
    points = grid @ lattice.basis.T
    weights = np.exp(-0.5 * np.abs(points).sum(axis=1))
    assert_drawn_from(found, (points.tolist(), weights / weights.sum()))


@pytest.mark.parametrize(
    ("way", "word_bits"),
    [
        ("split", 8),
        pytest.param("solved", 8, marks=pytest.mark.audit),
        pytest.param("split", 4, marks=pytest.mark.audit),
        pytest.param("solved", 4, marks=pytest.mark.audit),
    ],
)
def test_short_words(way, word_bits):
    """With 4 bits nearly all is left to ball arithmetic. Fewer draws leave the shortest vectors without bins."""
    found = draws(table_sampler(way, "1", word_bits), 8_000)
    assert_drawn_from(found, table_law(3, 3, 1.0))


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "3"])
def test_235(epsilon):
    made = SolvedRegions(Fraction(epsilon), sparse.csr_array([[2, 3, 5]]), [1, 1, 1])
    found = draws(made, 600_000 if epsilon == "3" else 200_000)
    assert not (found @ [2, 3, 5]).any()
    assert_drawn_from(found, solved_law([[2, 3, 5]], [1, 2], float(epsilon), reach=12, box=int(30 / float(epsilon))))


def test_235_without_the_whole_number_test_leaves_the_lattice():
    """The solution rounded down instead of rejected: most draws then break the total."""
    made = SolvedRegions(Fraction(1, 2), sparse.csr_array([[2, 3, 5]]), [1, 1, 1])
    made._numerators, made._denominator = np.array([[1, 2]]), 1
    found = draws(made, 20_000)
    assert (found @ [2, 3, 5] != 0).mean() > 0.5
    assert_not_drawn_from(found, solved_law([[2, 3, 5]], [1, 2], 0.5, reach=12, box=60))


@pytest.mark.parametrize("sizes", [[1] * 7, [1, 2, 1, 1, 1, 1, 1]])
def test_circles(sizes):
    """At epsilon 3 few vectors matter; the free cells in a box of 2 hold all but 1e-5 of the weight."""
    A = np.repeat(CIRCLES, sizes, axis=1)
    third = next(j for j in range(A.shape[1]) if abs(np.linalg.det(A[:, [0, 1, j]])) > 0.5)
    free = [j for j in range(A.shape[1]) if j not in (0, 1, third)]
    made = SolvedRegions(Fraction(3), sparse.csr_array(CIRCLES), sizes)
    found = draws(made, 200_000)
    assert not (A @ found.T).any()
    assert_drawn_from(found, solved_law(A, free, 3.0, reach=6, box=2))


def test_14_records_in_three_circles(circles):
    """Two cells a region: the sums of regions against their own law."""
    plan = ks.plan(keep=circles, mechanism=ks.Laplace.per_unit(epsilon=1))
    found = plan.sample(60_000, rng=ks.rng(seed=4))
    assert ks.Lattice(circles.coefficients).contains(found).all()
    # Given a region's sum its two cells are exchangeable, and differences within regions are independent.
    pairs = found.reshape(-1, 7, 2)
    difference = pairs[:, :, 0] - pairs[:, :, 1]
    assert np.abs(difference.mean(axis=0)).max() < 5.5 * np.sqrt((difference**2).mean() / len(found))
    assert np.abs(np.corrcoef(difference.T) - np.eye(7)).max() < 0.03


def test_sums_as_solved_blocks():
    """A sum over 4 cells, and over regions of 1 and 3, as solved blocks: the law that compositions have."""
    from laws import sum_law

    solved = SolvedRegions(Fraction(1, 2), sparse.csr_array([[1, 1, 1, 1]]), [1] * 4)
    assert_drawn_from(draws(solved, 100_000), sum_law(4, 0.5))
    wide = SolvedRegions(Fraction(1, 2), sparse.csr_array([[1, 1]]), [1, 3])
    assert_drawn_from(draws(wide, 100_000), sum_law(4, 0.5))


@pytest.mark.audit
def test_samplers_agree_where_they_overlap():
    """A 4 x 4 table by splitting columns and as a solved block."""
    margins = np.vstack([np.kron(np.eye(4), np.ones(4)), np.kron(np.ones(4), np.eye(4))]).astype(int)
    one = draws(ColumnSplitting(Fraction(1), np.ones((4, 4), dtype=int)), 40_000)
    two = draws(SolvedRegions(Fraction(1), sparse.csr_array(margins), [1] * 16), 40_000)
    lengths = [np.abs(found).sum(axis=1) for found in (one, two)]
    top = int(np.quantile(np.concatenate(lengths), 0.98))  # the longest share one bin
    counts = np.array([np.bincount(np.minimum(length, top), minlength=top + 1) for length in lengths])
    counts = counts[:, counts.sum(axis=0) >= 200]  # lengths are even: odd ones do not occur
    assert counts.sum() == 80_000
    assert stats.chi2_contingency(counts).pvalue > ALPHA


def test_split_solves_for_the_widest_regions():
    tail, free, numerators, denominator = split([{0: 1, 1: 1, 2: 1}, {2: 1, 3: 1}], [1, 9, 5, 2])
    assert tail.tolist() == [1, 2]
    assert free.tolist() == [0, 3]
    assert (np.array(numerators) / denominator).tolist() == [[1.0, -1.0], [0.0, 1.0]]


@pytest.mark.parametrize("way", ["split", "solved"])
@pytest.mark.parametrize("word_bits", [64, 8])
def test_the_end_of_a_buffer_changes_nothing(monkeypatch, way, word_bits):
    made = table_sampler(way, "1", word_bits)
    long = draws(made, 60)
    plain = Rng.stream
    for words in (1, 2, 7, 64):
        monkeypatch.setattr(Rng, "stream", lambda self, _=0, words=words: plain(self, words))
        assert np.array_equal(draws(made, 60), long)


def test_large_coefficients_are_left_alone():
    made = rejection.SolvedRegions(Fraction(1), sparse.csr_array([[1, 2**30, 3]]), [1, 1, 1])
    assert not made.usable

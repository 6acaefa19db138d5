"""Three-way tables by splitting layers against their exact laws, and wrong ways that the same tests reject.

At epsilon 1/2 a third of all 3 x 3 x 3 tables are 0, and a third have eight entries of 1 and -1. Counting a factor at
the root is not among the wrong ways: its vectors are 0, so its factor is the same for every table.
"""

import functools
from fractions import Fraction

import numpy as np
import pytest
from laws import ALPHA, LEAST, assert_drawn_from, assert_not_drawn_from, power
from layers_laws import slice_law, tables_law, whole_weight
from scipy import stats

from keepsum.lattice.grids import table_matrix
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.layers import laws, nodes
from keepsum.sampling.l1.layers.sampler import LayerSplitting
from keepsum.sampling.l1.layers.weights import VectorWeights
from keepsum.sampling.l1.rejection import SolvedRegions

CUBE = (3, 3, 3)
COUNT, FEW = 4_000, 1_200


def drawn(sampler, count, seed=1, threads=1):
    out = np.empty((count, sampler.width), dtype=np.int64)
    sampler.draw_into(out, rng(seed=seed), threads)
    return out


@functools.cache
def cubes(epsilon, count=COUNT):
    return drawn(LayerSplitting(Fraction(epsilon), CUBE), count)


def slices(draws, shape, axis):
    """The first slice of each table along an axis."""
    return np.take(draws.reshape(-1, *shape), 0, axis=axis + 1).reshape(len(draws), -1)


def lengths_law(shape, epsilon, longest=12):
    """The law of the number of entries, with their sizes, of the shortest tables."""
    points, chances = tables_law(shape, epsilon, longest)
    lengths = np.abs(np.array(points)).sum(axis=1)
    values = np.unique(lengths)
    return [(int(v),) for v in values], [float(chances[lengths == v].sum()) for v in values]


def lengths(draws):
    return np.abs(draws).sum(axis=1, keepdims=True)


@pytest.mark.audit
def test_all_margins_are_kept():
    tables = cubes("1/2").reshape(-1, *CUBE)
    assert tables.any()
    assert not any(tables.sum(axis=axis).any() for axis in (1, 2, 3))


@pytest.mark.parametrize(
    "axis", [pytest.param(0, marks=pytest.mark.audit), pytest.param(1, marks=pytest.mark.audit), 2]
)
def test_slices_of_a_cube(axis):
    """Rows, layers and columns are treated differently; their slices have the same law."""
    assert_drawn_from(slices(cubes("1/2"), CUBE, axis), slice_law(CUBE, 0.5, 3))


def test_lengths_of_a_cube():
    assert_drawn_from(lengths(cubes("1/2")), lengths_law(CUBE, 0.5))


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["1/4", "1/2", "3/4"])
def test_whole_cubes(epsilon):
    """At epsilon 1/4 tables are too many for bins of their own, and only their slices are tested."""
    draws = cubes(epsilon, 8_000)
    if epsilon != "1/4":
        assert_drawn_from(draws, tables_law(CUBE, float(Fraction(epsilon)), 12))
    for axis in range(3):
        assert_drawn_from(slices(draws, CUBE, axis), slice_law(CUBE, float(Fraction(epsilon)), 3))


@pytest.mark.parametrize(
    ("shape", "epsilon", "count"),
    [
        pytest.param((10, 3, 3), "1", 1_500, marks=pytest.mark.audit),
        pytest.param((5, 4, 3), "1", 2_000, marks=pytest.mark.audit),
    ],
)
def test_slices_of_longer_tables(shape, epsilon, count):
    points = 32 if shape[1] == 3 else 12
    law = slice_law(shape, float(epsilon), reach=2 if shape[1] == 3 else 1, points=points)
    assert_drawn_from(slices(drawn(LayerSplitting(Fraction(epsilon), shape), count), shape, 0), law)


def assert_alike(one, two):
    """Two samples of numbers: the same shares, with at least LEAST of each value or of all others together."""
    values, times = np.unique(np.concatenate([one, two]), return_counts=True)
    common = values[times >= 4 * LEAST]
    table = np.array([[(sample == v).sum() for v in common] for sample in (one, two)])
    table = np.column_stack([table, [len(one), len(two)] - table.sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    assert stats.chi2_contingency(table, correction=False).pvalue > ALPHA


@pytest.mark.audit
def test_five_layers_have_nodes_of_three_kinds():
    """Five layers are four and one, and the four are two pairs. Slices along rows and along layers are 5 x 3."""
    draws = [drawn(LayerSplitting(Fraction(1), (5, 5, 3)), 3_000, seed) for seed in (1, 2)]
    assert_alike(*(lengths(slices(d, (5, 5, 3), axis))[:, 0] for axis, d in enumerate(draws)))


@pytest.mark.audit
@pytest.mark.parametrize(("shape", "epsilon"), [((4, 3, 3), "3/2"), ((4, 4, 3), "2"), ((4, 4, 4), "2")])
def test_agrees_with_solving_for_regions(shape, epsilon):
    """Against a sampler that knows nothing of tables: the lengths of its tables."""
    cells = int(np.prod(shape))
    other = drawn(SolvedRegions(Fraction(epsilon), table_matrix(shape), [1] * cells), 2_500)
    assert_alike(lengths(drawn(LayerSplitting(Fraction(epsilon), shape), 2_500))[:, 0], lengths(other)[:, 0])


@pytest.mark.audit
def test_several_tables_per_draw_are_independent():
    draws = drawn(LayerSplitting(Fraction(1, 2), CUBE, count=2), 800)
    points, chances = lengths_law(CUBE, 0.5)
    pairs = [p + q for p in points for q in points]
    both = np.column_stack([lengths(draws[:, :27]), lengths(draws[:, 27:])])
    assert_drawn_from(both, (pairs, [a * b for a in chances for b in chances]))


def test_threads_change_nothing():
    sampler = LayerSplitting(Fraction(1), (4, 4, 3))
    assert np.array_equal(drawn(sampler, 200, seed=3), drawn(sampler, 200, seed=3, threads=2))


class Counting(LayerSplitting):
    """The sampler, and how often its referee was asked what."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.asked = {}
        for name in ("accept_part", "draw_outside", "accept_vectors"):
            setattr(self._referee, name, self._counted(name, getattr(self._referee, name)))

    def _counted(self, name, ask):
        def counted(*args):
            self.asked[name] = self.asked.get(name, 0) + 1
            return ask(*args)

        return counted


@pytest.mark.parametrize(
    ("word_bits", "tail_bits", "count"), [(8, 40, 600), pytest.param(64, 8, 600, marks=pytest.mark.audit)]
)
def test_short_words_and_small_boxes_give_the_same_law(word_bits, tail_bits, count):
    sampler = Counting(Fraction(1, 2), CUBE, word_bits=word_bits, tail_bits=tail_bits)
    draws = drawn(sampler, count)
    assert sum(sampler.asked.values()) > count / 300, "the referee is hardly asked"
    assert_drawn_from(lengths(draws), lengths_law(CUBE, 0.5))


@pytest.mark.audit
@pytest.mark.parametrize(("word_bits", "tail_bits"), [(3, 40), (64, 4), (4, 8)])
def test_the_referee_asked_for_nearly_everything(word_bits, tail_bits):
    sampler = Counting(Fraction(1, 2), CUBE, word_bits=word_bits, tail_bits=tail_bits)
    draws = drawn(sampler, 1_500)
    assert sum(sampler.asked.values()) > len(draws)
    assert_drawn_from(lengths(draws), lengths_law(CUBE, 0.5))
    assert_drawn_from(slices(draws, CUBE, 2), slice_law(CUBE, 0.5, 3))


def test_words_of_64_bits_leave_nothing_to_the_referee():
    sampler = Counting(Fraction(1, 2), CUBE)
    drawn(sampler, 500)
    assert not sampler.asked


def larger_numbers(patch):
    """Numbers t that are larger than they need be for all vectors but 0, so that factors vary."""
    plain = nodes._numbers

    def larger(split, *args):
        numbers = plain(split, *args)
        exponents = np.full(numbers.shape, 0.25)
        exponents[split.box.place(np.zeros(split.box.dimensions, dtype=np.int64))] = 1.0
        return numbers**exponents

    patch.setattr(nodes, "_numbers", larger)


def a_factor_forgotten(patch):
    """Every vector below a node is accepted."""
    patch.setattr(LayerSplitting, "_accept", lambda self, *args: True)


def numbers_not_in_the_weights(patch):
    """W = F, while factors are still divided by the numbers t."""
    patch.setattr(VectorWeights, "times", lambda self, numbers: self)


def a_bridge_that_is_not_conditioned(patch):
    """The row that is solved for is always accepted."""
    patch.setattr(laws, "accept_solved", lambda split, law, digits, parts, referee: np.ones(len(parts), dtype=bool))


def numbers_squared_in_the_weights(patch):
    """Weights with t^2, factors with t."""
    plain = VectorWeights.times
    patch.setattr(VectorWeights, "times", lambda self, numbers: plain(self, numbers**2))


WRONG = [
    pytest.param(a_bridge_that_is_not_conditioned, marks=pytest.mark.audit),
    a_factor_forgotten,
    pytest.param(numbers_not_in_the_weights, marks=pytest.mark.audit),
    pytest.param(numbers_squared_in_the_weights, marks=pytest.mark.audit),
]


@pytest.mark.audit
def test_any_larger_numbers_give_the_same_law(monkeypatch):
    larger_numbers(monkeypatch)
    draws = drawn(LayerSplitting(Fraction(1, 2), CUBE), FEW)
    assert_drawn_from(lengths(draws), lengths_law(CUBE, 0.5))


@pytest.mark.parametrize("way", WRONG, ids=lambda way: way.__name__)
def test_a_wrong_sampler_fails(monkeypatch, way):
    larger_numbers(monkeypatch)
    way(monkeypatch)
    draws = drawn(LayerSplitting(Fraction(1, 2), CUBE), FEW, seed=7)
    assert_not_drawn_from(lengths(draws), lengths_law(CUBE, 0.5))
    assert power(lengths(draws), lengths_law(CUBE, 0.5), FEW) > 1 - 1e-6


def test_the_laws_of_these_tests():
    """Slices and whole tables have the same normalising constant, whichever axis is taken as rows."""
    assert whole_weight((4, 3, 3), 1.0) == pytest.approx(whole_weight((3, 4, 3), 1.0, points=10), rel=1e-6)
    assert sum(tables_law(CUBE, 1.0, 12)[1]) == pytest.approx(1.0, abs=1e-3)
    assert slice_law(CUBE, 1.0, 3)[1].sum() == pytest.approx(1.0, abs=1e-6)

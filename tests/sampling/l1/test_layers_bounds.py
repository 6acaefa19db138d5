"""What layer splitting computes by floats, against balls and plain sums: boxes, weights, factors, envelopes."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from keepsum.sampling.core.balls import precision
from keepsum.sampling.l1.layers.laws import NUMBER_BITS, bridge_bounds, part_weights, pick_parts, row_law
from keepsum.sampling.l1.layers.nodes import entries_of
from keepsum.sampling.l1.layers.sampler import Effort, LayerSplitting
from keepsum.sampling.l1.layers.weights import Box, beyond_boxes, folded, height, layer_log_moments

CUBE = LayerSplitting(Fraction(1), (3, 3, 3))
SMALL = LayerSplitting(Fraction(1), (3, 3, 3), tail_bits=8)
FIVE = LayerSplitting(Fraction(2), (5, 5, 3), tail_bits=20)
FOUR = LayerSplitting(Fraction(4), (4, 4, 4), tail_bits=16)
SAMPLERS = {"cube": CUBE, "small boxes": SMALL, "five layers": FIVE, "four columns": FOUR}


def vectors(columns, reach):
    """Vectors with entries up to the reach and sum 0, by their stored coordinates."""
    every = product(range(-reach, reach + 1), repeat=columns - 1)
    return [v for v in every if abs(sum(v)) <= reach]


def inner_classes(sampler):
    return [c for c in sampler._splits if c != sampler._tree.root_class]


def test_a_box_has_the_vectors_with_sum_0():
    box = Box(4, 2)
    assert int(box.inside.sum()) == len(vectors(4, 2))
    for v in vectors(4, 2):
        place = box.place(np.array(v))
        assert box.inside[place]
        assert box.lengths[place] == sum(map(abs, v)) + abs(sum(v))
        assert box.heights[place] == height(np.array(v))


def test_orbits_are_orders_and_signs():
    box = Box(3, 3)
    representatives, orbit_of = box.orbits
    for v in vectors(3, 3):
        full = sorted([*v, -sum(v)])
        chosen = sorted(representatives[orbit_of[box.place(np.array(v))]].tolist())
        assert chosen in (full, sorted(-x for x in full))
    assert len(representatives) == len(
        {min(tuple(sorted(f)), tuple(sorted(-x for x in f))) for f in ([*v, -sum(v)] for v in vectors(3, 3))}
    )


def test_products_and_folding_are_plain_sums():
    rng = np.random.default_rng(1)
    box = Box(3, 2)
    left, right = rng.random(box.shape), rng.random(box.shape)
    right = right + right[::-1, ::-1]
    y = np.array([1, -2])
    joint = box.product(left, right, y)
    sums = np.zeros((3, 3))
    for u in product(range(-2, 3), repeat=2):
        rest = y - u
        held = np.abs(rest).max() <= 2
        expected = left[u[0] + 2, u[1] + 2] * right[tuple(rest + 2)] if held else 0.0
        assert joint[u[0] + 2, u[1] + 2] == pytest.approx(expected)
        sums[u[0] % 3, u[1] % 3] += expected
    assert folded(joint, 2, 3) == pytest.approx(sums)
    assert box.marginal(joint, 1) == pytest.approx(joint.sum(axis=0))


@pytest.mark.parametrize("columns", [3, 4, 5])
def test_moments_of_a_layer(columns):
    """Not below a sum over a large box, and not far above."""
    epsilon, rates = 1.0, np.array([0.0, 0.5, 1.0])
    box = Box(columns, {3: 40, 4: 20, 5: 9}[columns])
    first = np.arange(-box.reach, box.reach + 1).reshape(-1, *[1] * (columns - 2))
    weights = np.where(box.inside, np.exp(-epsilon * box.lengths), 0.0)
    bounds = np.exp(layer_log_moments(Fraction(1), columns, rates))
    for q, bound in zip(rates.tolist(), bounds.tolist(), strict=True):
        total = (weights * np.exp(q * first)).sum()
        assert total <= bound <= 1.01 * total + 1e-3


@pytest.mark.parametrize("name", SAMPLERS)
def test_weights_lie_within_their_errors(name):
    """Against the referee's balls, which share nothing but the numbers t."""
    sampler = SAMPLERS[name]
    referee, box = sampler._referee, sampler._tables[0].weights.box
    with precision(90):
        for c in inner_classes(sampler):
            weights = sampler._tables[c].weights
            for v in vectors(box.columns, min(box.reach, 2)):
                place = box.place(np.array(v))
                true = float(referee.weight(c, v).mid())
                assert abs(weights.values[place] - true) <= weights.errors[place]
                assert true <= np.exp(weights.log_tops - weights.rates * height(np.array(v))).min() * (1 + 1e-9)


@pytest.mark.parametrize("name", SAMPLERS)
def test_what_lies_outside_a_box_is_bounded(name):
    """The weight of all parts as balls, less that of the box."""
    sampler = SAMPLERS[name]
    with precision(90):
        for c, split in sampler._splits.items():
            y = (0,) * split.box.dimensions
            whole = float(sampler._referee.parts(c, y).whole.mid())
            inside = split.box.total(split.box.product(split.left.values, split.right.values, np.array(y)))
            assert whole - inside <= beyond_boxes(split.left, split.right, 0) + 1e-9 * whole


@pytest.mark.parametrize("name", SAMPLERS)
def test_factors_lie_in_their_bounds_and_are_at_most_1(name):
    sampler = SAMPLERS[name]
    rows, columns = sampler._shape[0], sampler._shape[2]
    rng = np.random.default_rng(3)
    for c in inner_classes(sampler):
        for _ in range(3):
            drawn = rng.integers(-1, 2, size=(rows, columns - 1)) * (rng.random((rows, 1)) < 0.6)
            drawn[-1] -= drawn.sum(axis=0)
            low, high = sampler._factor(c, drawn, Effort())
            with precision(90):
                true = float(sampler._referee.factor(c, [tuple(y) for y in drawn.tolist()]).mid())
            assert low <= true <= high
            assert true <= 1


def test_numbers_are_at_least_the_norms():
    """The mean of |phi|^r over a group, by plain sums, for the group that t was made for and any other."""
    c = inner_classes(CUBE)[0]
    split, numbers = CUBE._splits[c], CUBE._tables[c].numbers
    for y in [(0, 0), (1, 0), (1, -1), (2, -1)]:
        law = split.box.product(split.left.values, split.right.values, np.array(y))
        chances = folded(law / law.sum(), split.box.reach, 64)
        exact = (np.abs(np.fft.fftn(chances)) ** 3).mean() ** (1 / 3)
        assert exact <= numbers[split.box.place(np.array(y))] * (1 + 1e-12)


def test_envelopes_are_above_the_weights():
    for c, split in CUBE._splits.items():
        for y in [(0, 0), (1, -1), (3, 0)]:
            law = row_law(split, np.array(y))
            parts = np.array(vectors(3, 4))
            _, upper = part_weights(split, law, parts)
            places = np.ravel_multi_index(tuple((parts + split.box.reach).T), split.box.shape)
            assert (law.envelopes.reshape(-1)[places] >= upper * law.scale * (1 - 1e-12)).all(), c
            assert int(law.upto[-1]) + 2**law.outside_bits <= 2**NUMBER_BITS


def test_numbers_fall_to_parts_by_their_envelopes():
    """The first and the last number of every part, and the first that belongs to none."""
    law, box = CUBE._root, CUBE._tables[0].weights.box
    flat = law.envelopes.reshape(-1)
    ends = np.cumsum(flat)
    held = np.flatnonzero(flat)
    for numbers in (ends[held] - flat[held], ends[held] - 1):
        places, envelopes = pick_parts(law, box, numbers)
        assert np.array_equal(places, held)
        assert np.array_equal(envelopes, flat[held])
    assert pick_parts(law, box, ends[-1:])[1].tolist() == [0]


def test_the_transform_of_a_bridge_is_a_convolution():
    """B of three rows, by plain sums over two of them."""
    c = inner_classes(CUBE)[0]
    split = CUBE._splits[c]
    rows = [np.array(y) for y in [(1, 0), (-1, 1), (0, -1)]]
    laws = [row_law(split, y) for y in rows]
    low, high = bridge_bounds([law.transform for law in laws], split)
    chances = [split.box.product(split.left.values, split.right.values, y) for y in rows]
    chances = [p / p.sum() for p in chances]
    near = vectors(3, 5)
    total = 0.0
    for u in near:
        for v in near:
            w = -np.array(u) - np.array(v)
            if np.abs(w).max() <= split.box.reach:
                total += np.prod([p[split.box.place(np.array(x))] for p, x in zip(chances, (u, v, w), strict=True)])
    assert low - 1e-9 <= total <= high
    assert high - low < 1e-5  # aliasing is bounded for ordinary vectors, which are mostly 0


def test_entries_grow_with_the_table():
    smaller, larger = entries_of(Fraction(1), (4, 4, 4)), entries_of(Fraction(1, 4), (4, 4, 4))
    assert all(a < b for a, b in zip(smaller, larger, strict=True))
    assert entries_of(Fraction(1), (6, 6, 6))[0] > 10**8


def test_a_box_of_the_referee_holds_what_an_ordinary_question_needs():
    """The guess by which plans are made is not far below the box that the referee takes."""
    with precision(128):
        reach = FOUR._referee._reach(FOUR._tree.root_class, (0, 0, 0))
    assert Box(4, reach - 4).size <= 2 * entries_of(Fraction(4), (4, 4, 4))[2]


@pytest.mark.parametrize("rows", [10, 40])
def test_what_the_referee_computes_for_many_rows_is_foreseen(rows):
    """Also for many rows: what wraps around is bounded by the moments of the rows' own parts."""
    sampler = LayerSplitting(Fraction(1), (rows, 3, 3))
    c = inner_classes(sampler)[0]
    vectors = [(1, 0), (-1, 0)] + [(0, 0)] * (rows - 2)
    with precision(128):
        _, _, base = sampler._referee._alias(c, Counter(vectors))
        true = float(sampler._referee.factor(c, vectors).mid())
    low, high = sampler._factor(c, np.array(vectors), Effort())
    assert low <= true <= high
    assert 0.5 * sampler.settled <= rows * base**2 <= 2 * sampler.settled


def test_a_part_that_floats_call_0_has_an_envelope():
    """At epsilon 50 weights of a box are below the smallest float; none is left out."""
    sampler = LayerSplitting(Fraction(50), (3, 3, 3), tail_bits=2000)
    law, box = sampler._root, sampler._tables[0].weights.box
    _, upper = part_weights(sampler._splits[sampler._tree.root_class], law, np.array([[box.reach, 0]]))
    assert sampler._tables[0].weights.values[box.place(np.array([box.reach, 0]))] == 0
    assert (law.envelopes.reshape(box.shape)[box.inside] >= 2).all()
    assert (upper > 0).all()


def test_vectors_far_outside_a_box_have_parts():
    """The bound on what lies outside does not grow with the vector, so that a try succeeds now and then."""
    split = SMALL._splits[inner_classes(SMALL)[0]]
    b = split.box.reach
    for m in (b + 1, 2 * b, 4 * b):
        with precision(90):
            whole = float(SMALL._referee.parts(inner_classes(SMALL)[0], (m, -m)).whole.mid())
        assert whole <= beyond_boxes(split.left, split.right, m) <= 1e6 * whole

"""What column splitting decides by floats: chances of parts, of rows solved for, and of nodes, against oracles."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb

from keepsum.sampling.core.balls import precision
from keepsum.sampling.core.kernel_arguments import new_state
from keepsum.sampling.core.kernels import ACCEPT_BITS, TIE_ACCEPT
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.splitting.kernels import OFFSET, accept_node, draw_sum
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from sampling.l1.exact_weights import ExactWeights

KINDS = [[1, 2, 3, 1], [4, 1, 1, 2], [0, 1, 2, 1], [1, 1, 1, 1]]
SAMPLERS = {
    "4 x 4": (np.ones((4, 4), int), "1"),
    "kinds": (np.array(KINDS), "1/2"),
    "100 x 4": (np.ones((100, 4), int), "1"),
    "1000 x 4, narrow": (np.ones((1000, 4), int), "3"),
    "40 x 7": (np.ones((40, 7), int), "1"),
    "3 x 3, very narrow": (np.ones((3, 3), int), "50"),
    "12 x 3 of kinds": (np.array([row[:3] for row in KINDS] * 3), "2"),
}
_MADE: dict[str, ColumnSplitting] = {}


def sampler_of(name):
    if name not in _MADE:
        sizes, epsilon = SAMPLERS[name]
        _MADE[name] = ColumnSplitting(Fraction(epsilon), sizes)
    return _MADE[name]


def inner_nodes(sampler):
    """Nodes whose sums are accepted: all inner ones but the root."""
    return range(1, sampler._tree.inner)


def some_sums(sampler, node, random):
    """Sums with total 0 that the tables cover: all 0, few, ordinary, and large ones."""
    rows, tree = sampler._tree.rows, sampler._tree
    cells = np.array(tree.classes[tree.class_of[node]].cells)[tree.kind_of_row]
    able = np.flatnonzero(cells)
    reach = [sampler._laws.laws[sampler._referee._law_of(node, i)].split.reach for i in range(rows)]
    yield np.zeros(rows, dtype=np.int64)
    for high in (1, 2, 4, 1000):
        sums = np.zeros(rows, dtype=np.int64)
        one, two = random.choice(able, 2, replace=False)
        high = min(high, reach[one], reach[two])
        sums[one], sums[two] = high, -high
        yield sums
    for share in (0.1, 0.5, 1.0):
        sums = np.zeros(rows, dtype=np.int64)
        for i in able[random.random(len(able)) < share]:
            high = min(reach[i], math.ceil(2 / float(sampler._epsilon)))
            sums[i] = random.integers(-high, high + 1)
        while sums.sum():
            i = random.choice(able)
            if abs(sums[i] - np.sign(sums.sum())) <= reach[i]:
                sums[i] -= np.sign(sums.sum())
        yield sums


def chance_of(sampler, node, sums):
    """B over the product of t, as a ball."""
    referee = sampler._referee
    rows = Counter((referee._law_of(node, i), int(y)) for i, y in enumerate(sums))
    numbers = arb(1)
    for (law, y), count in rows.items():
        numbers *= arb(float(sampler._laws.laws[law].split.numbers[abs(y)])) ** count
    return referee.bridge_chance(rows), numbers


def answer(sampler, node, sums, number):
    """What the kernel says to sums and a uniform number: 1, 0, or that it cannot tell."""
    room = sampler._new_room()
    room.sums[node] = sums
    bits = min(max(int(number * 2**ACCEPT_BITS), 0), 2**ACCEPT_BITS - 1)
    words = np.array([bits << (64 - ACCEPT_BITS)], dtype=np.uint64)
    return accept_node(words, new_state()[0], sampler._tables, room, node)


@pytest.mark.parametrize("name", SAMPLERS)
def test_nodes_are_accepted_with_their_chance(name):
    """At the chance itself the kernel cannot tell, above it refuses, below it accepts; and no chance exceeds 1."""
    sampler, random = sampler_of(name), np.random.default_rng(1)
    for node in inner_nodes(sampler):
        for sums in some_sums(sampler, node, random):
            with precision(128):
                bridge, numbers = chance_of(sampler, node, sums)
                chance = bridge / numbers
                assert chance.lower() <= 1
                assert chance.rad() < 1e-20
            true = float(chance.mid())
            assert answer(sampler, node, sums, true) == TIE_ACCEPT
            for doubt in (1e-3, 1e-6, 1e-9):
                assert answer(sampler, node, sums, true + doubt) in (0, TIE_ACCEPT)
                assert answer(sampler, node, sums, true - doubt) in (1, TIE_ACCEPT)


@pytest.mark.parametrize("name", ["4 x 4", "kinds", "100 x 4", "40 x 7", "12 x 3 of kinds"])
def test_ordinary_sums_are_decided_by_floats(name):
    """A millionth from the chance the kernel can tell, for sums as they are drawn."""
    sampler, random = sampler_of(name), np.random.default_rng(2)
    sizes = SAMPLERS[name][0]
    noise = np.empty((20, sampler.width), dtype=np.int64)
    sampler.draw_into(noise, rng(seed=1))
    entries = np.zeros((20, *sizes.shape), dtype=np.int64)
    bounds = np.concatenate([[0], np.cumsum(sizes.reshape(-1))])
    for k, (i, j) in enumerate(np.ndindex(*sizes.shape)):
        entries[:, i, j] = noise[:, bounds[k] : bounds[k + 1]].sum(axis=1)
    for node in inner_nodes(sampler):
        columns = sampler._tree.order[columns_below(sampler._tree, node)]
        for sums in entries[:, :, columns].sum(axis=2)[random.integers(0, 20, 3)]:
            with precision(128):
                bridge, numbers = chance_of(sampler, node, sums)
            true = float((bridge / numbers).mid())
            assert answer(sampler, node, sums, true - 1e-6) == 1
            assert true + 1e-6 >= 1 or answer(sampler, node, sums, true + 1e-6) == 0


def columns_below(tree, node):
    if node >= tree.inner:
        return [node - tree.inner]
    return columns_below(tree, tree.left[node]) + columns_below(tree, tree.right[node])


@pytest.mark.parametrize("name", ["4 x 4", "kinds", "3 x 3, very narrow"])
def test_bridges_against_sums_over_all_parts(name):
    """B by adding up the chances of all parts of the rows, in integers of many digits."""
    sampler, random = sampler_of(name), np.random.default_rng(3)
    exact = ExactWeights(sampler)
    node = 1
    for sums in list(some_sums(sampler, node, random))[:6]:
        total = {0: 1.0}
        for i, y in enumerate(sums.tolist()):
            lowest, chances = exact.chances(sampler._referee._law_of(node, i), abs(y))
            law = {(lowest + k) * (1 if y >= 0 else -1): float(p) for k, p in enumerate(chances) if p > 1e-20}
            added: dict[int, float] = {}
            for u, p in total.items():
                for v, q in law.items():
                    added[u + v] = added.get(u + v, 0.0) + p * q
            total = {u: p for u, p in added.items() if p > 1e-25}
        with precision(128):
            bridge, _ = chance_of(sampler, node, sums)
        assert float(bridge.mid()) == pytest.approx(total[0], rel=1e-10)


@pytest.mark.parametrize("name", ["4 x 4", "kinds", "3 x 3, very narrow"])
def test_parts_are_drawn_with_their_chances(name):
    """At every cumulative chance the kernel cannot tell or is right on both sides."""
    sampler = sampler_of(name)
    exact, tables = ExactWeights(sampler), sampler._tables
    for k, law in enumerate(sampler._laws.laws):
        if law.split is None:
            continue
        for y in {0, min(1, law.split.reach), law.split.reach // 2, law.split.reach}:
            lowest, chances = exact.chances(k, y)
            upto = Fraction(0)
            for u, chance in enumerate(chances, start=lowest):
                if upto > Fraction(1, 2**40) and upto + chance < 1 - Fraction(1, 2**40):
                    check_part(tables, k, y, u, upto, upto + chance)
                upto += chance


def check_part(tables, law, y, u, low, high):
    """Words that begin inside the range of u give u or nothing; those well inside give u."""
    first, last = math.ceil(low * 2**ACCEPT_BITS), math.floor(high * 2**ACCEPT_BITS) - 1
    for bits in {first, (first + last) // 2, last}:
        if first <= bits <= last:
            words = np.array([bits << (64 - ACCEPT_BITS)], dtype=np.uint64)
            value = draw_sum(words, new_state()[0], tables.laws, tables.geometric.shift, law, y)
            assert value in (u + OFFSET, TIE_ACCEPT)
            if bits not in (first, last) and high - low > 1e-4:
                assert value == u + OFFSET


@pytest.mark.parametrize("name", ["4 x 4", "kinds"])
def test_transforms_are_right_up_to_their_error(name):
    """The characteristic functions of u - y/2 at the frequencies of a node, in ball arithmetic."""
    sampler = sampler_of(name)
    exact = ExactWeights(sampler)
    for k, law in enumerate(sampler._laws.laws):
        kept = next(
            (f for f, row in zip(sampler._laws.frequencies, sampler._laws.law_of, strict=True) if k in row), None
        )
        if law.split is None or kept is None:
            continue
        for y in {0, law.split.reach // 2, law.split.reach}:
            lowest, chances = exact.chances(k, y)
            with precision(128):
                for j in {0, 1, len(kept.measure) // 2, len(kept.measure) - 1}:
                    true = acb(0)
                    for u, chance in enumerate(chances, start=lowest):
                        if chance > Fraction(1, 10**30):
                            angle = arb(2 * j) / kept.points * (arb(u) - arb(y) / 2)
                            true += acb(angle.cos_pi(), angle.sin_pi()) * arb(float(chance))
                    value = acb(float(law.split.transform[y, j]), float(law.split.transform_imaginary[y, j]))
                    assert abs(true - value) < law.split.transform_error[y] + 1e-15


def test_a_large_region_beside_single_cells_has_tables():
    """Bounds on what lies beyond tables must not be those of as many cells on both sides."""
    sampler = ColumnSplitting(Fraction(1), [[1, 2, 3], [4, 5, 6], [7, 8, 900]])
    assert all(law.split.reach >= 0 for law in sampler._laws.laws if law.split is not None)


@pytest.mark.parametrize(
    ("sizes", "epsilon"),
    [
        ([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]], "1"),
        ([[1, 1, 1], [1, 1, 1], [300, 300, 300]], "2"),
        (np.ones((4, 4), int), "800"),
        (np.ones((30, 4), int), "1/20"),
    ],
)
def test_extreme_tables_are_made_without_a_warning(sizes, epsilon):
    """Rows without cells below a node, sums whose weights fall below all floats, very large and small epsilon."""
    sampler = ColumnSplitting(Fraction(epsilon), sizes)
    noise = np.empty((3, sampler.width), dtype=np.int64)
    sampler.draw_into(noise, rng(seed=1))

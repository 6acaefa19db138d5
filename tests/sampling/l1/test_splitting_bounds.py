"""What column splitting decides by floats: chances of parts, of rows solved for, and of nodes, against oracles."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb

from keepsum.sampling.core.balls import precision
from keepsum.sampling.core.kernel_arguments import ACCEPT_BITS, DONE, EXACT_STATE, TIE_ACCEPT, Words, new_state
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.splitting.kernel_arguments import OFFSET, SplitTables, SplittingRoom, SplittingTables
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.packing import candidates_of
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from sampling.l1.exact_weights import ExactWeights
from sampling.probes import Probe

SPLITTING = ("probe_splitting", "splitting_factors.c", "forced_sums.c", "double_geometric.c")
pick_root = Probe(SPLITTING, "try_root", Words, EXACT_STATE, SplittingTables, SplittingRoom)
pick_label = Probe(SPLITTING, "try_label", Words, EXACT_STATE, SplittingTables, SplittingRoom, int)
accept_node = Probe(SPLITTING, "try_node", Words, EXACT_STATE, SplittingTables, SplittingRoom, int)
draw_sum = Probe(SPLITTING, "try_sum", Words, EXACT_STATE, SplitTables, int, int, int)

KINDS = [[1, 2, 3, 1], [4, 1, 1, 2], [0, 1, 2, 1], [1, 1, 1, 1]]
PLAIN, SOME = Labelling(), Labelling(4, 2)
SAMPLERS = {
    "4 x 4": (np.ones((4, 4), int), "1", PLAIN),
    "kinds": (np.array(KINDS), "1/2", PLAIN),
    "100 x 4": (np.ones((100, 4), int), "1", PLAIN),
    "1000 x 4, narrow": (np.ones((1000, 4), int), "3", PLAIN),
    "40 x 7": (np.ones((40, 7), int), "1", PLAIN),
    "3 x 3, very narrow": (np.ones((3, 3), int), "50", PLAIN),
    "12 x 3 of kinds": (np.array([row[:3] for row in KINDS] * 3), "2", PLAIN),
    "4 x 4, labels": (np.ones((4, 4), int), "1", SOME),
    "12 x 3 of kinds, labels": (np.array([row[:3] for row in KINDS] * 3), "2", SOME),
    "12 x 7, labels": (np.ones((12, 7), int), "2", SOME),
}
LABELLED = [name for name in SAMPLERS if "labels" in name]
_MADE: dict[str, ColumnSplitting] = {}


def sampler_of(name):
    if name not in _MADE:
        sizes, epsilon, labelling = SAMPLERS[name]
        _MADE[name] = ColumnSplitting(Fraction(epsilon), sizes, labelling=labelling)
    return _MADE[name]


def inner_nodes(sampler):
    """One node of each class whose sums are accepted: all inner ones but the root."""
    return {int(sampler._tree.class_of[node]): node for node in range(1, sampler._tree.inner)}.values()


def labels_of(sampler, node):
    """Some pairs of a group and the base of one of its labels."""
    laws = sampler._laws.nodes[sampler._tree.class_of[node]]
    pairs = [(group, base) for group in range(len(laws.groups)) for base, *_ in candidates_of(laws, group)]
    return sorted(set(pairs[:1] + pairs[-1:] + pairs[len(pairs) // 2 :][:1]))


def some_sums(sampler, node, random):
    """Sums with total 0 that the tables cover: all 0, few, ordinary, and large ones."""
    rows, tree = sampler._tree.rows, sampler._tree
    cells = np.array(tree.classes[tree.class_of[node]].cells)[tree.kind_of_row]
    able = np.flatnonzero(cells)
    bases, laws = sampler._laws.nodes[tree.class_of[node]].bases, sampler._laws.law_of[tree.class_of[node]]
    shortest = [min(base.splits[k].reach for base in bases) for k in range(laws.max() + 1)]
    reach = [shortest[laws[tree.kind_of_row[i]]] for i in range(rows)]
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


def bridge_of(sampler, node, base, sums):
    """B as a ball."""
    referee = sampler._referee
    return referee.bridge_chance(Counter((referee._split_of(node, base, i), int(y)) for i, y in enumerate(sums)))


def label_chance(sampler, node, group, base, block, sums):
    """The product over rows of F t over W, as a ball, with F and W as the referee has them."""
    c, referee, chance = sampler._tree.class_of[node], sampler._referee, arb(1)
    for i, y in enumerate(sums):
        _, _, law = split = referee._split_of(node, base, i)
        weights = sampler._laws.nodes[c].groups[group][law]
        t = float(sampler._laws.nodes[c].bases[base].splits[law].numbers[abs(y), block])
        weight = arb(float(weights.values[abs(y)])) * arb(2) ** weights.exponent
        chance *= referee.whole(split, abs(int(y))) * t / weight
    return chance


def chance_of(sampler, node, group, base, sums):
    """B over the sum of products of t, as a ball; times the chance of the label where a group has one."""
    c, referee = sampler._tree.class_of[node], sampler._referee
    node_laws = sampler._laws.nodes[c]
    total = arb(0)
    for m in range(node_laws.frequencies.blocks):
        product = arb(1)
        for i, y in enumerate(sums):
            _, _, law = referee._split_of(node, base, i)
            product *= arb(float(node_laws.bases[base].splits[law].numbers[abs(y), m]))
        total += product
    chance = bridge_of(sampler, node, base, sums) / total
    labels = node_laws.labels[group]
    return chance * label_chance(sampler, node, group, base, labels[0].block, sums) if len(labels) == 1 else chance


def word(number):
    """The word whose digits are those of a uniform number."""
    bits = min(max(int(number * 2**ACCEPT_BITS), 0), 2**ACCEPT_BITS - 1)
    return np.array([bits << (64 - ACCEPT_BITS)], dtype=np.uint64)


def room_for(sampler, node, group, base, sums):
    room = sampler._new_room()
    room.sums[node], room.group[node], room.base[node] = sums, group, base
    return room


def answer(sampler, node, group, base, sums, number):
    """What the kernel says to sums and a uniform number: 1, 0, or that it cannot tell."""
    room = room_for(sampler, node, group, base, sums)
    return accept_node(word(number), new_state(), sampler._tables, room, node)


@pytest.mark.audit
@pytest.mark.parametrize("name", SAMPLERS)
def test_nodes_are_accepted_with_their_chance(name):
    """At the chance itself the kernel cannot tell, above it refuses, below it accepts; and no chance exceeds 1."""
    sampler, random = sampler_of(name), np.random.default_rng(1)
    for node in inner_nodes(sampler):
        for group, base in labels_of(sampler, node):
            for sums in some_sums(sampler, node, random):
                with precision(128):
                    chance = chance_of(sampler, node, group, base, sums)
                    assert chance.lower() <= 1
                    assert chance.rad() < 1e-20
                true = float(chance.mid())
                assert answer(sampler, node, group, base, sums, true) == TIE_ACCEPT
                for doubt in (1e-3, 1e-6, 1e-9):
                    assert answer(sampler, node, group, base, sums, true + doubt) in (0, TIE_ACCEPT)
                    assert answer(sampler, node, group, base, sums, true - doubt) in (1, TIE_ACCEPT)


def choice(sampler, node, group, sums, number):
    """The label that the kernel chooses: its base and whether it is swapped; or what it says instead."""
    room = room_for(sampler, node, group, 0, sums)
    code = pick_label(word(number), new_state(), sampler._tables, room, node)
    return (int(room.base[node]), int(room.swapped[node])) if code == 1 else int(code)


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_chosen_with_their_chances(name):
    """In the middle of its range each label is chosen or nothing is; at the ends the kernel cannot tell."""
    sampler, random = sampler_of(name), np.random.default_rng(4)
    decided = 0
    for node in inner_nodes(sampler):
        laws = sampler._laws.nodes[sampler._tree.class_of[node]]
        for group in range(len(laws.groups)):
            candidates = candidates_of(laws, group)
            if sum(copies for *_, copies in candidates) == 1:
                continue
            for sums in some_sums(sampler, node, random):
                upto = 0.0
                for base, block, copies in candidates:
                    with precision(128):
                        chance = float(label_chance(sampler, node, group, base, block, sums).mid())
                    for copy in range(copies):
                        middle = choice(sampler, node, group, sums, upto + chance / 2)
                        assert middle in ((base, copy), TIE_ACCEPT)
                        decided += middle != TIE_ACCEPT
                        upto += chance
                        if chance > 1e-9 and upto < 1:
                            assert choice(sampler, node, group, sums, upto) == TIE_ACCEPT
                assert upto < 1 + 1e-12
                assert choice(sampler, node, group, sums, (1 + upto) / 2) in (0, TIE_ACCEPT)
    assert decided > 20


@pytest.mark.parametrize("name", LABELLED)
def test_the_root_has_the_weight_of_all_its_proposals(name):
    """The chance of a base is its F(0)^r B, over the sum of these."""
    sampler = sampler_of(name)
    nothing = np.zeros(sampler._tree.rows, dtype=int)
    masses = []
    for base in range(len(sampler._laws.nodes[sampler._tree.root_class].bases)):
        with precision(128):
            mass = bridge_of(sampler, 0, base, nothing)
            for i in range(sampler._tree.rows):
                mass *= sampler._referee.whole(sampler._referee._split_of(0, base, i), 0)
            masses.append(mass)
    total, upto = sum(masses), 0.0
    for base, mass in enumerate(masses):
        chance = float((mass / total).mid())
        room = sampler._new_room()
        assert pick_root(word(upto + chance / 2), new_state(), sampler._tables, room) == DONE
        assert room.base[0] == base
        upto += chance
        if base < len(masses) - 1:
            assert pick_root(word(upto), new_state(), sampler._tables, room) == TIE_ACCEPT


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["4 x 4", "kinds", "100 x 4", "40 x 7", "12 x 3 of kinds", *LABELLED])
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
        group, base = labels_of(sampler, node)[0]
        for sums in entries[:, :, columns].sum(axis=2)[random.integers(0, 20, 3)]:
            with precision(128):
                true = float(chance_of(sampler, node, group, base, sums).mid())
            assert answer(sampler, node, group, base, sums, true - 1e-6) == 1
            assert true + 1e-6 >= 1 or answer(sampler, node, group, base, sums, true + 1e-6) == 0


def columns_below(tree, node):
    if node >= tree.inner:
        return [node - tree.inner]
    return columns_below(tree, tree.left[node]) + columns_below(tree, tree.right[node])


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["4 x 4", "kinds", "3 x 3, very narrow"])
def test_bridges_against_sums_over_all_parts(name):
    """B by adding up the chances of all parts of the rows, in integers of many digits."""
    sampler, random = sampler_of(name), np.random.default_rng(3)
    exact = ExactWeights(sampler)
    node = 1
    for sums in list(some_sums(sampler, node, random))[:6]:
        total = {0: 1.0}
        for i, y in enumerate(sums.tolist()):
            lowest, chances = exact.chances(sampler._referee._split_of(node, 0, i), abs(y))
            law = {(lowest + k) * (1 if y >= 0 else -1): float(p) for k, p in enumerate(chances) if p > 1e-20}
            added: dict[int, float] = {}
            for u, p in total.items():
                for v, q in law.items():
                    added[u + v] = added.get(u + v, 0.0) + p * q
            total = {u: p for u, p in added.items() if p > 1e-25}
        with precision(128):
            bridge = bridge_of(sampler, node, 0, sums)
        assert float(bridge.mid()) == pytest.approx(total[0], rel=1e-10)


@pytest.mark.parametrize(
    "name", ["4 x 4", pytest.param("kinds", marks=pytest.mark.audit), "3 x 3, very narrow", "4 x 4, labels"]
)
def test_parts_are_drawn_with_their_chances(name):
    """At every cumulative chance the kernel cannot tell or is right on both sides."""
    sampler = sampler_of(name)
    exact, tables = ExactWeights(sampler), sampler._tables
    for k, split in enumerate(exact.splits()):
        reach = int(tables.splits.reach[k])
        for y in {0, min(1, reach), reach // 2, reach}:
            lowest, chances = exact.chances(split, y)
            upto = Fraction(0)
            for u, chance in enumerate(chances, start=lowest):
                if upto > Fraction(1, 2**40) and upto + chance < 1 - Fraction(1, 2**40):
                    check_part(tables, k, y, u, upto, upto + chance)
                upto += chance


def check_part(tables, split, y, u, low, high):
    """Words that begin inside the range of u give u or nothing; those well inside give u."""
    first, last = math.ceil(low * 2**ACCEPT_BITS), math.floor(high * 2**ACCEPT_BITS) - 1
    for bits in {first, (first + last) // 2, last}:
        if first <= bits <= last:
            words = np.array([bits << (64 - ACCEPT_BITS)], dtype=np.uint64)
            value = draw_sum(words, new_state(), tables.splits, tables.sums.shift, split, y)
            assert value in (u + OFFSET, TIE_ACCEPT)
            if bits not in (first, last) and high - low > 1e-4:
                assert value == u + OFFSET


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["4 x 4", "kinds", "4 x 4, labels"])
def test_transforms_are_right_up_to_their_error(name):
    """The characteristic functions of u - y/2 at the frequencies of a node, in ball arithmetic."""
    sampler = sampler_of(name)
    exact = ExactWeights(sampler)
    for c, base, law in exact.splits():
        node = sampler._laws.nodes[c]
        kept, split = node.frequencies, node.bases[base].splits[law]
        if kept is None:
            continue
        for y in {0, split.reach // 2, split.reach}:
            lowest, chances = exact.chances((c, base, law), y)
            with precision(128):
                for j in {0, 1, len(kept.measure) // 2, len(kept.measure) - 1}:
                    true = acb(0)
                    for u, chance in enumerate(chances, start=lowest):
                        if chance > Fraction(1, 10**30):
                            angle = arb(2 * j) / kept.points * (arb(u) - arb(y) / 2)
                            true += acb(angle.cos_pi(), angle.sin_pi()) * arb(float(chance))
                    value = acb(float(split.transform[y, j]), float(split.transform_imaginary[y, j]))
                    assert abs(true - value) < split.transform_error[y] + 1e-15


def test_a_large_region_beside_single_cells_has_tables():
    """Bounds on what lies beyond tables must not be those of as many cells on both sides."""
    sampler = ColumnSplitting(Fraction(1), [[1, 2, 3], [4, 5, 6], [7, 8, 900]])
    assert sampler.usable
    assert (sampler._tables.splits.reach >= 0).all()


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

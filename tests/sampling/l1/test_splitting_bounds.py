"""What column splitting decides by floats: chances of parts, of rows solved for, and of bundles, against oracles."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb

from keepsum.sampling.core.balls import precision
from keepsum.sampling.core.kernel_arguments import ACCEPT_BITS, EXACT_STATE, TIE_ACCEPT, Words, new_state
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.splitting.bundles import ELSEWHERE, NOTHING
from keepsum.sampling.l1.splitting.kernel_arguments import OFFSET, SplitTables, SplittingRoom, SplittingTables
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from sampling.l1.decomposable import splitting, sums_of
from sampling.l1.exact_weights import ExactWeights, split_of, splits_of
from sampling.probes import Probe
from support import mostly_audit

SPLITTING = ("probe_splitting", "splitting_factors.c", "forced_sums.c", "double_geometric.c")
pick_label = Probe(SPLITTING, "try_label", Words, EXACT_STATE, SplittingTables, SplittingRoom, int)
accept_bundle = Probe(SPLITTING, "try_bundle", Words, EXACT_STATE, SplittingTables, SplittingRoom, int)
draw_sum = Probe(SPLITTING, "try_sum", Words, EXACT_STATE, SplitTables, int, int, int)

KINDS = [[1, 2, 3, 1], [4, 1, 1, 2], [0, 1, 2, 1], [1, 1, 1, 1]]
PLAIN, SOME = Labelling(), Labelling(4, 2)
ONE_WAY, CHAIN = ("A", "B", "C"), ("AB", "BC", "CD")
SAMPLERS = {
    "4 x 4": (np.ones((4, 4), int), "1", PLAIN),
    "kinds": (np.array(KINDS), "1/2", PLAIN),
    "100 x 4": (np.ones((100, 4), int), "1", PLAIN),
    "1000 x 4, narrow": (np.ones((1000, 4), int), "3", PLAIN),
    "40 x 7": (np.ones((40, 7), int), "1", PLAIN),
    "3 x 3, very narrow": (np.ones((3, 3), int), "50", PLAIN),
    "12 x 3 of kinds": (np.array([row[:3] for row in KINDS] * 3), "2", PLAIN),
    "one-way": ((4, 3, 2), "1", PLAIN, ONE_WAY),
    "chain": ((3, 3, 3, 3), "1/2", PLAIN, CHAIN),
    "one-way with zeros": ((4, 3, 2), "1", PLAIN, ONE_WAY, (0, 1, 7, 14)),
    "4 x 4, labels": (np.ones((4, 4), int), "1", SOME),
    "12 x 3 of kinds, labels": (np.array([row[:3] for row in KINDS] * 3), "2", SOME),
    "12 x 7, labels": (np.ones((12, 7), int), "2", SOME),
    "one-way, labels": ((5, 4, 3), "2", SOME, ONE_WAY),
    "chain, labels": ((3, 3, 3, 3), "2", SOME, CHAIN),
}
LABELLED = [name for name in SAMPLERS if "labels" in name]
_MADE: dict[str, object] = {}


def sampler_of(name):
    if name not in _MADE:
        sizes, epsilon, labelling, *how = SAMPLERS[name]
        _MADE[name] = (
            splitting(epsilon, sizes, *how, labelling=labelling)
            if how
            else ColumnSplitting(Fraction(epsilon), sizes, labelling=labelling)
        )
    return _MADE[name]


def bundles_of(sampler):
    """One bundle of each form whose sums are accepted: all but those whose sums are 0."""
    forms, bundles = sampler._bundles.forms, sampler._bundles
    first = {int(form): b for b, form in reversed(list(enumerate(bundles.form))) if not forms[form].is_root}
    assert len(first) == sum(not form.is_root for form in forms)
    return first.values()


def form_of(sampler, bundle):
    """The number of its form, the form, and its laws."""
    number = int(sampler._bundles.form[bundle])
    return number, sampler._bundles.forms[number], sampler._laws.forms[number]


def places_of(sampler, bundle):
    return slice(*sampler._bundles.start[bundle : bundle + 2].tolist())


def laws_of(sampler, bundle):
    """The law of each place, counted from the first one of its form."""
    return sampler._bundles.law[places_of(sampler, bundle)].tolist()


def labels_of(sampler, bundle):
    """Some pairs of a group and the base of one of its labels."""
    _, _, own = form_of(sampler, bundle)
    pairs = [(group, label.base) for group, labels in enumerate(own.labels) for label in labels]
    return sorted(set(pairs[:1] + pairs[-1:] + pairs[len(pairs) // 2 :][:1]))


def some_sums(sampler, bundle, random):
    """Sums with total 0 that the tables cover: all 0, few, ordinary, and large ones."""
    _, form, own = form_of(sampler, bundle)
    laws = laws_of(sampler, bundle)
    rows, free = len(laws), np.flatnonzero(sampler._bundles.at[places_of(sampler, bundle)] != NOTHING)
    shortest = [min(base.splits[k].reach for base in own.bases) for k in range(len(form.parts))]
    reach = [shortest[law] for law in laws]
    yield np.zeros(rows, dtype=np.int64)
    for high in (1, 2, 4, 1000):
        sums = np.zeros(rows, dtype=np.int64)
        one, two = random.choice(free, 2, replace=False)
        high = min(high, reach[one], reach[two])
        sums[one], sums[two] = high, -high
        yield sums
    for share in (0.1, 0.5, 1.0):
        sums = np.zeros(rows, dtype=np.int64)
        for i in free[random.random(len(free)) < share]:
            high = min(reach[i], math.ceil(2 / float(sampler._epsilon)))
            sums[i] = random.integers(-high, high + 1)
        while sums.sum():
            i = random.choice(free)
            if abs(sums[i] - np.sign(sums.sum())) <= reach[i]:
                sums[i] -= np.sign(sums.sum())
        yield sums


def bridge_of(sampler, bundle, base, sums):
    """B as a ball."""
    number = form_of(sampler, bundle)[0]
    referee, laws = sampler._referee, laws_of(sampler, bundle)
    return referee.bridge_chance(
        Counter((referee._split_of(number, base, law), int(y)) for law, y in zip(laws, sums, strict=True))
    )


def label_chance(sampler, bundle, group, label, sums):
    """The product over places of F t over W, as a ball, with F as the referee has it."""
    _, form, own = form_of(sampler, bundle)
    chance = arb(1)
    for law, y in zip(laws_of(sampler, bundle), np.abs(sums).tolist(), strict=True):
        weights = sampler._laws.weights[form.first + law][group]
        t = float(own.bases[label.base].splits[law].numbers[y, label.block])
        weight = arb(float(weights.values[y])) * arb(2) ** weights.exponent
        chance *= sampler._referee.whole((form.first + law, label.base), y) * t / weight
    return chance


def chance_of(sampler, bundle, group, base, sums):
    """B over the sum of products of t, as a ball; times the chance of the label where a group has one."""
    own, total = form_of(sampler, bundle)[2], arb(0)
    for m in range(own.frequencies.blocks):
        product = arb(1)
        for law, y in zip(laws_of(sampler, bundle), np.abs(sums).tolist(), strict=True):
            product *= arb(float(own.bases[base].splits[law].numbers[y, m]))
        total += product
    chance, labels = bridge_of(sampler, bundle, base, sums) / total, own.labels[group]
    return chance * label_chance(sampler, bundle, group, labels[0], sums) if len(labels) == 1 else chance


def word(number):
    """The word whose digits are those of a uniform number."""
    bits = min(max(int(number * 2**ACCEPT_BITS), 0), 2**ACCEPT_BITS - 1)
    return np.array([bits << (64 - ACCEPT_BITS)], dtype=np.uint64)


def room_for(sampler, bundle, group, base, sums):
    room = sampler._new_room()
    room.sums[sampler._bundles.at[places_of(sampler, bundle)]] = sums
    room.group[bundle], room.base[bundle] = group, base
    assert not room.sums[[NOTHING, ELSEWHERE]].any()
    return room


def answer(sampler, bundle, group, base, sums, number):
    """What the kernel says to sums and a uniform number: 1, 0, or that it cannot tell."""
    room = room_for(sampler, bundle, group, base, sums)
    return accept_bundle(word(number), new_state(), sampler._tables, room, bundle)


@pytest.mark.audit
@pytest.mark.parametrize("name", SAMPLERS)
def test_bundles_are_accepted_with_their_chance(name):
    """At the chance itself the kernel cannot tell, above it refuses, below it accepts; and no chance exceeds 1."""
    sampler, random = sampler_of(name), np.random.default_rng(1)
    for bundle in bundles_of(sampler):
        for group, base in labels_of(sampler, bundle):
            for sums in some_sums(sampler, bundle, random):
                with precision(128):
                    chance = chance_of(sampler, bundle, group, base, sums)
                    assert chance.lower() <= 1
                    assert chance.rad() < 1e-20
                true = float(chance.mid())
                assert answer(sampler, bundle, group, base, sums, true) == TIE_ACCEPT
                for doubt in (1e-3, 1e-6, 1e-9):
                    assert answer(sampler, bundle, group, base, sums, true + doubt) in (0, TIE_ACCEPT)
                    assert answer(sampler, bundle, group, base, sums, true - doubt) in (1, TIE_ACCEPT)


def choice(sampler, bundle, group, sums, number):
    """The base of the label that the kernel chooses, or what it says instead."""
    room = room_for(sampler, bundle, group, -1, sums)
    code = pick_label(word(number), new_state(), sampler._tables, room, bundle)
    return ("base", int(room.base[bundle])) if code == 1 else int(code)


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_chosen_with_their_chances(name):
    """In the middle of its range each label is chosen or nothing is; at the ends the kernel cannot tell."""
    sampler, random = sampler_of(name), np.random.default_rng(4)
    decided = 0
    for bundle in bundles_of(sampler):
        for group, labels in enumerate(form_of(sampler, bundle)[2].labels):
            for sums in some_sums(sampler, bundle, random):
                if len(labels) == 1:
                    assert choice(sampler, bundle, group, sums, 0.5) == ("base", labels[0].base)
                    continue
                upto = 0.0
                for label in labels:
                    with precision(128):
                        chance = float(label_chance(sampler, bundle, group, label, sums).mid())
                    middle = choice(sampler, bundle, group, sums, upto + chance / 2)
                    assert middle in (("base", label.base), TIE_ACCEPT)
                    decided += middle != TIE_ACCEPT
                    upto += chance
                    if chance > 1e-9 and upto < 1:
                        assert choice(sampler, bundle, group, sums, upto) == TIE_ACCEPT
                assert upto < 1 + 1e-12
                assert choice(sampler, bundle, group, sums, (1 + upto) / 2) in (0, TIE_ACCEPT)
    assert decided > 20


def roots_of(sampler):
    """The bundles whose sums are all 0."""
    return [b for b, form in enumerate(sampler._bundles.form.tolist()) if sampler._bundles.forms[form].is_root]


@pytest.mark.parametrize("name", LABELLED)
def test_a_root_has_the_weight_of_all_its_proposals(name):
    """The chance of a base is the product of F(0) over all places times B, over the sum of these."""
    sampler = sampler_of(name)
    for root in roots_of(sampler):
        _, form, own = form_of(sampler, root)
        laws, masses = laws_of(sampler, root), []
        for base in range(len(own.bases)):
            with precision(128):
                mass = bridge_of(sampler, root, base, [0] * len(laws))
                for law in laws:
                    mass *= sampler._referee.whole((form.first + law, base), 0)
                masses.append(mass)
        total, upto = sum(masses), 0.0
        for base, mass in enumerate(masses):
            chance = float((mass / total).mid())
            room = sampler._new_room()
            assert pick_label(word(upto + chance / 2), new_state(), sampler._tables, room, root) == 1
            assert room.base[root] == base
            upto += chance
            if base < len(masses) - 1:
                assert pick_label(word(upto), new_state(), sampler._tables, room, root) == TIE_ACCEPT
        assert accept_bundle(word(0.999), new_state(), sampler._tables, sampler._new_room(), root) == 1
    assert any(len(form_of(sampler, root)[2].bases) > 1 for root in roots_of(sampler))


@mostly_audit(
    "name",
    ["4 x 4", "kinds", "100 x 4", "40 x 7", "12 x 3 of kinds", "one-way", "chain", "one-way with zeros", *LABELLED],
)
def test_ordinary_sums_are_decided_by_floats(name):
    """A millionth from the chance the kernel can tell, for sums as they are drawn."""
    sampler, random = sampler_of(name), np.random.default_rng(2)
    noise = np.empty((20, sampler.width), dtype=np.int64)
    sampler.draw_into(noise, rng(seed=1))
    sums = np.stack([sums_of(sampler, row) for row in noise[random.integers(0, 20, 3)]])
    for bundle in bundles_of(sampler):
        group, base = labels_of(sampler, bundle)[0]
        for own in sums[:, sampler._bundles.at[places_of(sampler, bundle)]]:
            with precision(128):
                true = float(chance_of(sampler, bundle, group, base, own).mid())
            assert answer(sampler, bundle, group, base, own, true - 1e-6) == 1
            assert true + 1e-6 >= 1 or answer(sampler, bundle, group, base, own, true + 1e-6) == 0


@mostly_audit("name", ["4 x 4", "kinds", "3 x 3, very narrow", "one-way", "chain"])
def test_bridges_against_sums_over_all_parts(name):
    """B by adding up the chances of all parts of the rows, in integers of many digits."""
    sampler, random = sampler_of(name), np.random.default_rng(3)
    exact = ExactWeights(sampler)
    for bundle in bundles_of(sampler):
        first, laws = form_of(sampler, bundle)[1].first, laws_of(sampler, bundle)
        for sums in list(some_sums(sampler, bundle, random))[:6]:
            total = {0: 1.0}
            for law, y in zip(laws, sums.tolist(), strict=True):
                lowest, chances = exact.chances((first + law, 0), abs(y))
                part = {(lowest + k) * (1 if y >= 0 else -1): float(p) for k, p in enumerate(chances) if p > 1e-20}
                added: dict[int, float] = {}
                for u, p in total.items():
                    for v, q in part.items():
                        added[u + v] = added.get(u + v, 0.0) + p * q
                total = {u: p for u, p in added.items() if p > 1e-25}
            with precision(128):
                bridge = bridge_of(sampler, bundle, 0, sums)
            assert float(bridge.mid()) == pytest.approx(total[0], rel=1e-10)


@pytest.mark.parametrize(
    "name",
    ["4 x 4", pytest.param("kinds", marks=pytest.mark.audit), "3 x 3, very narrow", "4 x 4, labels", "one-way"],
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


@mostly_audit("name", ["4 x 4", "kinds", "4 x 4, labels", "chain"])
def test_transforms_are_right_up_to_their_error(name):
    """The characteristic functions of u - y/2 at the frequencies of a form, in ball arithmetic."""
    sampler = sampler_of(name)
    exact = ExactWeights(sampler)
    for name_ in splits_of(sampler):
        kept = sampler._laws.forms[sampler._bundles.form_of_law[name_[0]]].frequencies
        split = split_of(sampler, name_)[1]
        if kept is None:
            continue
        for y in {0, split.reach // 2, split.reach}:
            lowest, chances = exact.chances(name_, y)
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

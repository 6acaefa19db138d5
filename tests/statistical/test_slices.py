"""Noise with a focus on totals of several axes, drawn with slices and corners, against its law from its definition.

Each test is a chi-square of the joint law of an entry and two totals with the error rate of ``laws.py``, 1e-6. The same
tests reject samplers whose weights are wrong.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from decomposable_laws import sums_of_entries
from flint import arb
from laws import assert_drawn_from, assert_not_drawn_from, power
from slices_laws import A222, A2222, SYSTEMS, Focused, axes_of

import keepsum as ks
from keepsum.planning.selection import l1_focus
from keepsum.sampling.core.balls import precision
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.splitting import slices
from keepsum.sampling.l1.splitting.bundles import SplitTable, bundled
from keepsum.sampling.l1.splitting.kernel_arguments import ACCEPT_ROW, DRAW_SOLVED
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import Splitting
from keepsum.sampling.l1.splitting.slices import KEPT, FocusedFamily, with_slices
from support import mostly_audit

COUNT = 30_000
LAWS = {}


class Counting(Splitting):
    """The sampler, and in which phases its referee was asked."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.asked = []

    def _answer(self, state, room, uniform):
        self.asked.append(int(state.phase))
        return super()._answer(state, room, uniform)


def table_of(system, focused=None):
    table = with_slices(system.sizes, system.kept, system.focused if focused is None else focused)
    assert table is not None, "it cannot be summed out"
    return table


def drawn(system, table, count=COUNT, seed=1, kind=Splitting, **options):
    """The sums of entries, and the sampler."""
    sampler = kind(Fraction(system.epsilon), table, **options)
    assert sampler.usable
    out = np.empty((count, sampler.width), dtype=np.int64)
    sampler.draw_into(out, rng(seed=seed))
    entries = sums_of_entries(out, system.sizes)
    assert not any(entries[:, kept == k].any(axis=1).any() and entries[:, kept == k].sum(axis=1).any()
                   for kept in system.kept for k in range(kept.max() + 1))  # fmt: skip
    return entries, sampler


def forms_of(system):
    """A total of the first family, and one of the last or, where that is one of all entries, of another."""
    focused = [family.classes for family in system.focused]
    forms = [focused[0] == 0, focused[-1] == focused[-1].max()]
    return [form.astype(np.int64) for form in forms[: len(focused)]]


def law_of(name):
    """The law of the first entry and these totals, which takes seconds."""
    if name not in LAWS:
        LAWS[name] = SYSTEMS[name].chances(0, forms_of(SYSTEMS[name]), reach=2)
    return LAWS[name]


def seen(system, entries):
    return np.column_stack([entries[:, 0], *(entries @ form for form in forms_of(system))])


@mostly_audit("name", SYSTEMS)
def test_law(name):
    system = SYSTEMS[name]
    entries, _ = drawn(system, table_of(system))
    assert_drawn_from(seen(system, entries), law_of(name))


@mostly_audit("name", ["2 x 2 x 2", "four axes", "kept states, counties"])
def test_law_with_labels(name):
    system = SYSTEMS[name]
    entries, _ = drawn(system, table_of(system), labelling=Labelling(4, 2))
    assert_drawn_from(seen(system, entries), law_of(name))


SHORT = ["2 x 2 x 2", "2 x 2 x 2 and their sum", "3 x 2 x 2, one kept", "four axes"]


@mostly_audit(
    ("name", "word_bits", "count"),
    [(name, 8, 2_000) for name in SHORT] + [(name, 4, 600) for name in ("2 x 2 x 2", "3 x 2 x 2, one kept")],
)
def test_law_where_floats_decide_little(name, word_bits, count):
    """Short words: the referee draws and accepts, corners of weight 1 among them."""
    system = SYSTEMS[name]
    entries, sampler = drawn(system, table_of(system), count, kind=Counting, word_bits=word_bits)
    assert {DRAW_SOLVED, ACCEPT_ROW} <= set(sampler.asked)
    assert len(sampler.asked) > 200, "the referee is hardly asked"
    assert_drawn_from(seen(system, entries), law_of(name))


@pytest.mark.parametrize("name", ["2 x 2 x 2", "2 x 2 x 2, sum kept"])
def test_the_law_that_tests_compare_with(name):
    """By transforms, and point by point."""
    families = {key: (classes, weight and f"{weight}") for key, (classes, weight) in SYSTEMS[name].families.items()}
    system = Focused.of(families, "3", 12)
    points, weights = system.enumerated(2)
    forms = [np.eye(8, dtype=np.int64)[0], A222[0] == 0, A222[2] == 1]
    law = dict(zip(*system.chances(0, [np.asarray(form, dtype=np.int64) for form in forms[1:]], reach=1), strict=True))
    values = np.column_stack([points @ np.asarray(form, dtype=np.int64) for form in forms])
    for point, chance in law.items():
        enumerated = weights[(values == point).all(axis=1)].sum() / weights.sum()
        assert chance == pytest.approx(enumerated, rel=2e-3, abs=1e-6)


@pytest.mark.parametrize("labelling", [Labelling(), Labelling(4, 4, 4)], ids=["one label", "labels"])
@pytest.mark.parametrize("weight", ["1/4", "4"])
def test_no_label_weighs_more_than_its_group(labelling, weight):
    """In balls, where a corner of weight 1 is below as elsewhere: else the chances of labels add up to more than 1."""
    families = [FocusedFamily(axis, (Fraction(weight),) * (int(axis.max()) + 1)) for axis in axes_of(5, 4, 3)]
    table = with_slices(np.ones(60, dtype=np.int64), [], families)
    sampler = Splitting(Fraction("1/4"), table, labelling=labelling)
    bundles, laws, referee, below_a_corner = sampler._bundles, sampler._laws, sampler._referee, 0
    with precision(128):
        for form, own in zip(bundles.forms, laws.forms, strict=True):
            for (k, load), (group, labels) in product(enumerate(form.loads), enumerate(own.labels)):
                share, has_corner = arb(own.frequencies.raised_shares[k]), load[-1] > 0
                below_a_corner += has_corner
                for y in (0,) if has_corner else (0, 1, 5, laws.weights[form.first + k][group].reach + 1):
                    whole = referee.weights((form.first + k, group), y)[y]
                    whole *= arb(2) ** laws.weights[form.first + k][group].exponent
                    each = [
                        referee.whole((form.first + k, label.base), y)
                        * referee._number((form.first + k, label.base), y, label.block)
                        for label in labels
                    ]
                    norm = sum((one ** (1 / share) for one in each), arb(0)) ** share if share > 0 else None
                    assert whole >= norm if share > 0 else all(whole >= one for one in each)
    assert below_a_corner > 0


def test_narrow_slices_where_floats_decide_little():
    """The referee asks for the weights of sums that are always 0, though nothing but the one of 0 is known."""
    system = Focused.of({str(k): (axis, "4") for k, axis in enumerate(A222)}, "1", 20)
    entries, sampler = drawn(system, table_of(system), 2_000, kind=Counting, word_bits=8)
    assert len(sampler.asked) > 200
    assert_drawn_from(seen(system, entries), system.chances(0, forms_of(system), reach=2))


# -- wrong samplers -----------------------------------------------------------------------------------


def with_weight(system, number, weights):
    """The focused families of a system, one of them with other weights."""
    focused = system.focused
    focused[number] = FocusedFamily(focused[number].classes, weights)
    return focused


def with_other_corners(table, weight):
    """All corners of weight 1 with another one."""
    return SplitTable(table.loads, table.collapses, tuple(own or weight for own in table.further))


def wrong(system, kind):
    """A table whose weights are wrong in one way."""
    last = len(system.focused) - 1
    own = system.focused[last].weights
    match kind:
        case "weight applied twice":
            return table_of(system, with_weight(system, last, tuple(2 * weight for weight in own)))
        case "slice without a weight":
            return table_of(system, with_weight(system, last, (*own[:-1], Fraction(1, 20))))
        case "slice left out":
            return table_of(system, with_weight(system, last, (*own[:-1], KEPT)))
        case "family left out":
            return table_of(system, system.focused[:last])
        case "corner with a law":
            return with_other_corners(table_of(system), Fraction(system.epsilon))
        case "grand total d - 1 times":
            return table_of(system, with_weight(system, last, tuple((last - 1) * weight for weight in own)))
    raise AssertionError(kind)


WRONG = [
    ("2 x 2 x 2", "weight applied twice"),
    ("2 x 2 x 2", "slice without a weight"),
    ("2 x 2 x 2", "slice left out"),
    ("2 x 2 x 2", "family left out"),
    ("2 x 2 x 2", "corner with a law"),
    ("2 x 2 x 2 and their sum", "grand total d - 1 times"),
    ("2 x 2 x 2 and their sum", "family left out"),
    ("3 x 2 x 2, one kept", "weight applied twice"),
    ("3 x 2 x 2, one kept", "slice left out"),
    ("four axes", "weight applied twice"),
    ("four axes", "corner with a law"),
    ("states and counties", "corner with a law"),
    ("kept states, counties", "slice without a weight"),
]


@mostly_audit(("name", "kind"), WRONG)
def test_a_wrong_sampler_fails(name, kind):
    system = SYSTEMS[name]
    entries, _ = drawn(system, wrong(system, kind), 4 * COUNT, seed=7)
    values = seen(system, entries)
    assert_not_drawn_from(values, law_of(name))
    assert power(values, law_of(name), 4 * COUNT) > 1 - 1e-6


# -- what is added --------------------------------------------------------------------------------------


def ones(*families):
    """Families of weight 1."""
    return [FocusedFamily(classes, (Fraction(1),) * (int(classes.max()) + 1)) for classes in families]


def test_sums_with_a_corner_of_weight_1_are_always_0(monkeypatch):
    """Otherwise what is below has no law: then there is no table."""
    table = with_slices(np.ones(16, dtype=np.int64), [], ones(*A2222))
    assert slices._corners_have_laws(bundled(table))
    reordered = bundled(SplitTable(np.flip(table.loads, axis=1).copy(), table.collapses, table.further))
    assert not slices._corners_have_laws(reordered)  # cells have the weight of corners
    monkeypatch.setattr(slices, "_corners_have_laws", lambda bundles: False)
    assert with_slices(np.ones(16, dtype=np.int64), [], ones(*A2222)) is None


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1), (1, 0, 2)])
def test_any_order_of_axes_has_slices(order):
    table = with_slices(np.ones(8, dtype=np.int64), [], ones(*(A222[k] for k in order)))
    assert table.loads[:, 1:].sum() == 6 + 2


CUBE = axes_of(3, 3, 3)
PAIRS = [3 * CUBE[0] + CUBE[1], 3 * CUBE[1] + CUBE[2], 3 * CUBE[0] + CUBE[2]]


def test_what_cannot_be_summed_out_has_no_table():
    """The kept margins alone are not decomposable."""
    kept = [np.repeat(pair, 2) for pair in PAIRS]
    assert with_slices(np.ones(54, dtype=np.int64), kept, ones(np.tile([0, 1], 27))) is None


@pytest.mark.parametrize("keep", [[], [("a", "b")], [("a", "b"), ("b", "c")]])
def test_margins_that_are_not_decomposable_are_left_to_the_general_sampler(keep):
    domain = ks.Domain({axis: range(3) for axis in "abc"})
    focus = {pair: 1 for pair in [("a", "b"), ("b", "c"), ("a", "c")] if pair not in keep}
    plan = ks.plan(domain, keep=keep, mechanism=ks.Laplace.per_unit(1, focus=focus))
    focused, (group,) = plan._record.blocks.focused, plan._record.groups
    assert group.form.kind == "focused"
    assert l1_focus.table_of(focused, group.members[0], l1_focus.epsilons_of(plan.mechanism)) is None


# -- plans ------------------------------------------------------------------------------------------------

GRID = {"a": ["a0", "a1", "a2"], "b": ["b0", "b1"], "c": ["c0", "c1"]}
COUNTIES = {"county": {"A": ["1", "2"], "B": ["1", "2"]}, "b": ["b0", "b1"], "c": ["c0", "c1"]}
FOUR = {axis: [f"{axis}0", f"{axis}1"] for axis in "abcd"}
PLACES = ks.Domain({"state": ["A", "B"]} | COUNTIES, within={"county": "state"})
PLANS = {
    "3 x 2 x 2": (ks.Domain(GRID), []),
    "3 x 2 x 2, one kept": (ks.Domain(GRID), [["b"]]),
    "3 x 2 x 2, two kept": (ks.Domain(GRID), [["b"], ["c"]]),
    "2 x 2 x 2, sum kept": (ks.Domain({axis: ["0", "1"] for axis in "abc"}), [[]]),
    "four axes": (ks.Domain(FOUR), []),
    "four axes, two kept": (ks.Domain(FOUR), [["b"], ["d"]]),
    "states and counties": (PLACES, []),
    "kept states, counties": (PLACES, [["state"]]),
}


@mostly_audit("name", PLANS)
def test_plans_are_exact_and_have_this_law(name):
    system, (domain, keep) = SYSTEMS[name], PLANS[name]
    focus = {key: Fraction(weight) for key, (_, weight) in system.families.items() if weight is not None}
    plan = ks.plan(domain, keep=keep, mechanism=ks.Laplace.per_unit(Fraction(system.epsilon), focus=focus))
    assert plan.guarantee.sampling == "exact"
    assert {choice.method for choice in plan._record.samplers} == {"axis_elimination"}
    noise = plan.sample(COUNT, ks.rng(seed=3))
    assert_drawn_from(seen(system, noise), law_of(name))

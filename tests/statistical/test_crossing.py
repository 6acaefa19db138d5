"""Tables whose margins have weights of their own, against their law by enumeration; the test rejects wrong samplers."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from crossing_laws import KEPT, NOTHING, TABLES, entries_law, log_margins, margins, whole_weight
from laws import assert_drawn_from, assert_not_drawn_from, boxed, power
from splitting_laws import drawn, entry_sums

from keepsum.sampling.l1.splitting import weights
from keepsum.sampling.l1.splitting.kernel_arguments import ACCEPT_ROW, DRAW_SOLVED
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from support import mostly_audit

COUNT = 100_000


def sampler_of(name, instead=None, **options):
    sizes, epsilon, given, _ = TABLES[name]
    return ColumnSplitting(Fraction(epsilon), sizes, margins=instead or given, **options)


def sums_of(name, sampler, count=COUNT, seed=1):
    return entry_sums(drawn(sampler, count, seed), TABLES[name][0])


@mostly_audit("name", TABLES)
def test_law(name):
    sizes, _, given, _ = TABLES[name]
    sampler = sampler_of(name)
    assert sampler.usable
    entries = sums_of(name, sampler)
    assert log_margins(entries.reshape(-1, *np.shape(sizes)), given)[1].all()
    assert_drawn_from(entries, entries_law(name))


@mostly_audit("name", ["2 x 3", "3 x 3", "3 x 3, rows kept"])
def test_law_with_labels(name):
    assert_drawn_from(sums_of(name, sampler_of(name, labelling=Labelling(4, 2))), entries_law(name))


@mostly_audit("name", ["both focused", "whole focused", "rows kept"])
def test_law_where_floats_decide_little(name):
    """Short words: the referee draws and accepts."""
    asked = []

    class Counting(ColumnSplitting):
        def _answer(self, state, room, uniform):
            asked.append(int(state.phase))
            return super()._answer(state, room, uniform)

    sizes, epsilon, given, _ = TABLES[name]
    sampler = Counting(Fraction(epsilon), sizes, margins=given, word_bits=8)
    assert_drawn_from(sums_of(name, sampler, 10_000), entries_law(name))
    assert len(asked) > 500, "the referee is hardly asked"
    assert {DRAW_SOLVED, ACCEPT_ROW} <= set(asked)


@pytest.mark.parametrize("name", ["both focused", "3 x 2, rows kept"])
def test_the_weight_of_all_tables(name):
    """By transforms, and table by table."""
    sizes, epsilon, given, _ = TABLES[name]
    points = boxed(7, np.size(sizes)) if np.size(sizes) < 5 else boxed(5, np.size(sizes))
    logs, kept = log_margins(points.reshape(-1, *np.shape(sizes)), given)
    logs -= float(Fraction(epsilon)) * np.abs(points).sum(axis=1)
    assert np.exp(logs[kept]).sum() == pytest.approx(whole_weight(name), rel=2e-3)


def other(given, side, times):
    """The weights of one side, or of the grand total, forgotten or counted twice."""
    if side == "whole":
        return replace(given, whole=given.whole * times)
    # Entries of the added row have a law each, so that a weight that is forgotten there is a small one.
    least = Fraction(1, 20) if side == "columns" else NOTHING
    changed = tuple(weight if weight is KEPT else max(weight * times, least) for weight in getattr(given, side))
    return replace(given, **{side: changed})


WRONG = [
    ("both focused", "rows"),
    ("both focused", "columns"),
    ("whole focused", "whole"),
    ("rows kept", "columns"),
    ("2 x 3", "rows"),
    ("3 x 3", "columns"),
    ("3 x 3, rows kept", "columns"),
    ("regions", "rows"),
]


@mostly_audit(("name", "side"), WRONG)
@pytest.mark.parametrize("times", [0, 2])
def test_a_weight_that_is_forgotten_or_counted_twice_fails(name, side, times):
    entries = sums_of(name, sampler_of(name, other(TABLES[name][2], side, times)), seed=7)
    law = entries_law(name)
    assert_not_drawn_from(entries, law)
    assert power(entries, law, COUNT) > 1 - 1e-6


CORNERS = [
    ("both focused", Fraction(1)),  # the law of a cell where there is none
    ("both focused", Fraction(1, 3)),  # that of another entry of its row
    ("both focused", KEPT),
    ("whole focused", NOTHING),
    ("whole kept", NOTHING),
]


@mostly_audit(("name", "whole"), CORNERS)
def test_a_wrong_law_of_the_grand_total_fails(name, whole):
    entries = sums_of(name, sampler_of(name, replace(TABLES[name][2], whole=whole)), seed=7)
    law = entries_law(name)
    assert_not_drawn_from(entries, law)
    assert power(entries, law, COUNT) > 1 - 1e-6


@pytest.mark.parametrize("name", ["both focused", "3 x 3"])
def test_a_corner_that_is_flat_only_up_to_a_point_fails(monkeypatch, name):
    """The table of the entry without a weight must go as far as the other weights of its row do."""
    flat = weights.flat

    def short(epsilons, reach):
        return replace(flat(epsilons, reach), values=np.where(np.arange(reach + 1) > 1, 0.0, 1.0))

    monkeypatch.setattr(weights, "flat", short)
    entries, law = sums_of(name, sampler_of(name), seed=7), entries_law(name)
    assert_not_drawn_from(entries, law)
    assert power(entries, law, COUNT) > 1 - 1e-6


def test_sides_may_be_exchanged():
    """Weights and all: both ways round against the same enumeration."""
    name = "regions"
    sizes, epsilon, given, _ = TABLES[name]
    turned = ColumnSplitting(Fraction(epsilon), np.transpose(sizes), margins=given.transposed)
    entries = entry_sums(drawn(turned, COUNT), np.transpose(sizes))
    assert_drawn_from(entries.reshape(-1, 2, 2).transpose(0, 2, 1).reshape(-1, 4), entries_law(name))


def test_cells_of_regions_are_drawn_given_their_sum():
    sizes, given = np.array([[2, 1], [1, 1]]), margins(["1/2"] * 2, ["1"] * 2)
    noise = drawn(ColumnSplitting(Fraction(3, 2), sizes, margins=given), COUNT)
    place = np.repeat(np.arange(4), sizes.reshape(-1))

    def chances(points):
        entries = np.stack([points[:, place == k].sum(axis=1) for k in range(4)], axis=1)
        return np.exp(log_margins(entries.reshape(-1, 2, 2), given)[0] - 1.5 * np.abs(points).sum(axis=1))

    near = boxed(2, 5)
    assert_drawn_from(noise, (list(map(tuple, near.tolist())), chances(near) / chances(boxed(8, 5)).sum()))


def test_several_tables_per_draw():
    sizes, epsilon, given, _ = TABLES["both focused"]
    noise = drawn(ColumnSplitting(Fraction(epsilon), sizes, count=2, margins=given), COUNT)
    for k in range(2):
        assert_drawn_from(noise[:, 4 * k : 4 * k + 4], entries_law("both focused"))

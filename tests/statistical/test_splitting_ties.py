"""Tables by splitting columns where floats decide little: short words, short tables, short buffers."""

from fractions import Fraction

import numpy as np
import pytest
from laws import assert_drawn_from, assert_not_drawn_from, power
from splitting_laws import drawn, entries_law, entry_sums

from keepsum.sampling.core.rng import Rng, rng
from keepsum.sampling.l1.splitting.kernel_arguments import ACCEPT_BUNDLE, ACCEPT_ROW, DRAW_SOLVED, PICK_LABEL
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.referee import SplittingReferee
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from support import mostly_audit

ONES = np.ones((3, 3), dtype=int)
REGIONS = [[1, 2, 0], [3, 1, 1], [1, 1, 2]]
TABLES = {"3 x 3": (ONES, "1", 3), "regions": (REGIONS, "1/2", 3), "4 x 4": (np.ones((4, 4), dtype=int), "1", 1)}
TABLES["narrow regions"] = (REGIONS, "1", 3)  # an eighth of the time; fewer, likelier outcomes give more power
SOME = Labelling(3, 2)


class Counting(ColumnSplitting):
    """The sampler, and how often its referee was asked in each phase."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.asked, self.labelled = {}, set()

    def _answer(self, state, room, uniform):
        phase = int(state.phase)
        if phase == PICK_LABEL:
            self.labelled.add(int(state.bundle))
        self.asked[phase] = self.asked.get(phase, 0) + 1
        return super()._answer(state, room, uniform)


def check(name, count, **options):
    sizes, epsilon, reach = TABLES[name]
    sampler = Counting(Fraction(epsilon), sizes, **options)
    noise = drawn(sampler, count)
    assert sum(sampler.asked.values()) > count / 100, "the referee is hardly asked"
    assert_drawn_from(entry_sums(noise, sizes), entries_law(sizes, float(Fraction(epsilon)), reach))
    return sampler


@pytest.mark.parametrize(
    ("shape", "epsilon", "labelling"),
    [((40, 40), "1/4", (1, 1)), ((49, 49), "4", (8, 8)), ((300, 12), "4", (4, 4)), ((300, 3), "5", (1, 1))],
)
def test_hardly_anything_is_left_to_the_referee(shape, epsilon, labelling):
    """Also where noise is so narrow that most rows have none, and no frequency is negligible."""
    sampler = Counting(Fraction(epsilon), np.ones(shape), labelling=Labelling(*labelling))
    sampler.pilot(rng(seed=4), 3 * 10**5)
    assert not sampler.asked


def test_words_of_64_bits_leave_nothing_to_the_referee():
    """What makes the other tests tell something: with all digits, ties do not happen."""
    sampler = Counting(Fraction(1), ONES)
    drawn(sampler, 20_000)
    assert not sampler.asked


@pytest.mark.parametrize("name", ["3 x 3", "regions", pytest.param("4 x 4", marks=pytest.mark.audit)])
@pytest.mark.parametrize("word_bits", [8, pytest.param(4, marks=pytest.mark.audit)])
def test_short_words(name, word_bits):
    sampler = check(name, 6_000, word_bits=word_bits)
    assert {DRAW_SOLVED, ACCEPT_ROW, ACCEPT_BUNDLE} <= set(sampler.asked)


@mostly_audit(
    ("name", "count", "options"),
    [
        ("3 x 3", 6_000, {"word_bits": 8}),
        ("4 x 4", 3_000, {"word_bits": 10}),
        ("3 x 3", 2_000, {"word_bits": 6, "tail_bits": 10}),
        *(
            pytest.param("4 x 4", 3_000, options, marks=pytest.mark.audit)
            for options in ({"word_bits": 4}, {"word_bits": 10, "tail_bits": 8})
        ),
    ],
)
def test_short_words_with_labels(name, count, options):
    """The base of the root and the labels of other bundles are left to the referee as well."""
    sampler = check(name, count, labelling=SOME, **options)
    roots = sampler._bundles.restart == np.arange(sampler._bundles.count)
    assert {bool(roots[bundle]) for bundle in sampler.labelled} == {True, False}
    assert len(sampler.labelled) == sampler._bundles.count


@pytest.mark.audit
@pytest.mark.parametrize(
    ("name", "tail_bits"),
    [
        ("3 x 3", 6),
        ("4 x 4", 8),
        ("3 x 3", 4),
        ("regions", 10),
    ],
)
def test_short_tables(name, tail_bits):
    """Sums beyond the tables are common, and have the law that they have; with short words, below, in every run."""
    check(name, 1_500, tail_bits=tail_bits)


@pytest.mark.parametrize("name", ["3 x 3", "narrow regions"])
@pytest.mark.audit
def test_short_words_and_short_tables(name):
    check(name, 2_000, word_bits=4, tail_bits=6)


@pytest.mark.audit
def test_short_words_without_the_referee_fail(monkeypatch):
    """Parts decided by the digits at hand, as if no more came."""

    def rounded(self, form, base, law, y, uniform):
        parts = self.parts(self._split_of(form, base, law), y)
        upto = np.cumsum([float(chance.mid()) for chance in parts.chances])
        return parts.lowest + int(np.searchsorted(upto, uniform._bits / 2**uniform._count, side="right"))

    monkeypatch.setattr(SplittingReferee, "draw_sum", rounded)
    law = entries_law(ONES, 1.0, 3)
    noise = drawn(ColumnSplitting(Fraction(1), ONES, word_bits=4), 10_000)
    assert_not_drawn_from(noise, law)
    assert power(noise, law, 10_000) > 1 - 1e-6


def shortened(sampler):
    """The sampler with tables of splits that end at 1: all larger sums are left to the referee."""
    splits = sampler._tables.splits
    sampler._tables = sampler._tables._replace(splits=splits._replace(reach=np.minimum(splits.reach, 1)))
    return sampler


FOUR = np.ones((4, 4), dtype=int)


@pytest.mark.parametrize(
    ("sizes", "epsilon"), [(ONES, "1"), pytest.param(FOUR, "1", marks=pytest.mark.audit), (REGIONS, "1")]
)
def test_sums_beyond_the_tables(sizes, epsilon):
    """Every sum but -1, 0 and 1 is left to the referee."""
    sampler = shortened(Counting(Fraction(epsilon), sizes))
    noise = drawn(sampler, 10_000)
    assert sum(sampler.asked.values()) > 100
    assert_drawn_from(entry_sums(noise, sizes), entries_law(sizes, float(Fraction(epsilon)), 1))


def test_tables_that_truncate_fail():
    """Sums that the tables do not reach are refused instead of left to the referee."""

    class Truncating(ColumnSplitting):
        def _answer(self, state, room, uniform):
            return 0 if state.phase == ACCEPT_BUNDLE else super()._answer(state, room, uniform)

    noise, law = drawn(shortened(Truncating(Fraction(1), FOUR)), 20_000), entries_law(FOUR, 1.0, 1)
    assert_not_drawn_from(noise, law)
    assert power(noise, law, 20_000) > 1 - 1e-6


@pytest.mark.audit
@pytest.mark.parametrize(
    "options",
    [{}, {"word_bits": 8}, {"word_bits": 8, "tail_bits": 3}, {"labelling": SOME}, {"labelling": SOME, "word_bits": 8}],
)
@pytest.mark.parametrize("sizes", [ONES, REGIONS])
def test_the_end_of_a_buffer_changes_nothing(monkeypatch, options, sizes):
    sampler = ColumnSplitting(Fraction(1), sizes, **options)
    expected = drawn(sampler, 60)
    plain = Rng.stream
    for length in (1, 2, 7, 64):
        monkeypatch.setattr(Rng, "stream", lambda self, _=0, length=length: plain(self, length))
        assert np.array_equal(drawn(sampler, 60), expected)

"""Nested totals where floats decide little: short words, short tables, few bits for blocks, short buffers, threads."""

from fractions import Fraction

import numpy as np
import pytest
from focus_laws import TREES, drawn, enumerated, totals
from laws import assert_drawn_from, assert_not_drawn_from, power

from keepsum.sampling.core.rng import Rng, rng
from keepsum.sampling.l1.focus.sampler import FocusReferee, NestedFocus
from support import mostly_audit

SHORT = [{"word_bits": 3}, {"tail_bits": 3}, {"word_bits": 4, "tail_bits": 2, "halving_bits": 1}]
NAMES = ["one cell", "kept", "free root", "unequal children", "kept in the middle"]


@pytest.fixture
def asked(monkeypatch):
    """How often the referee is asked to accept a part, and to draw one."""
    counts = {"accept": 0, "draw": 0}
    for question in counts:
        plain = getattr(FocusReferee, question)

        def counting(self, *arguments, plain=plain, question=question):
            counts[question] += 1
            return plain(self, *arguments)

        monkeypatch.setattr(FocusReferee, question, counting)
    return counts


@mostly_audit("options", [*(pytest.param(one, marks=pytest.mark.audit) for one in SHORT[:2]), SHORT[2]])
@pytest.mark.parametrize("name", NAMES[::-1])
def test_ties_are_settled_by_the_law(asked, name, options):
    count = 10_000
    noise = drawn(NestedFocus(TREES[name], **options), count)
    assert asked["accept"] > count / 20
    assert "tail_bits" not in options or name == "one cell" or asked["draw"] > 10
    assert_drawn_from(noise, enumerated(TREES[name], 8 if noise.shape[1] < 4 else 3))


@pytest.mark.parametrize("name", NAMES)
def test_blocks_beyond_a_word(name):
    """With one bit each, half of all words only say that the block is farther out."""
    noise = drawn(NestedFocus(TREES[name], halving_bits=1), 100_000)
    assert_drawn_from(noise, enumerated(TREES[name], 8 if noise.shape[1] < 4 else 3))


@pytest.mark.parametrize("answer", [True, False])
def test_ties_that_are_not_settled_fail(monkeypatch, answer):
    monkeypatch.setattr(FocusReferee, "accept", lambda *_: answer)
    noise, law = drawn(NestedFocus(TREES["kept"], word_bits=3), 20_000), enumerated(TREES["kept"], 8)
    assert_not_drawn_from(noise, law)
    assert power(noise, law, 20_000) > 1 - 1e-6


@pytest.mark.audit
def test_tables_that_truncate_fail(monkeypatch):
    """Sums beyond the tables are split in the middle, instead of by the referee."""
    monkeypatch.setattr(FocusReferee, "draw", lambda self, kind, y, extra: y // 2)
    noise = drawn(NestedFocus(TREES["unequal children"], tail_bits=1), 20_000)
    law = enumerated(TREES["unequal children"], 3)
    assert_not_drawn_from(noise, law)
    assert power(noise, law, 20_000) > 1 - 1e-6


COUNTIES = totals("1/4", (-1, 0, "1/10"), *[(0, 0, "1/5")] * 4, *[(1 + k % 4, 5, "1/3") for k in range(30)])
LARGE = totals("1/4", *[(-1, 30_000, "1/10")] * 5)


def test_hardly_anything_is_left_to_the_referee(asked):
    drawn(NestedFocus(COUNTIES), 2_000)
    assert asked == {"accept": 0, "draw": 0}


@pytest.mark.parametrize("tree", [COUNTIES, LARGE], ids=["counties", "large"])
def test_threads_change_nothing(tree):
    sampler, count = NestedFocus(tree), 3 if tree is LARGE else 1_000
    expected = drawn(sampler, count)
    assert (expected[0] != expected[1]).any()
    for threads in (2, 5):
        assert np.array_equal(drawn(sampler, count, threads=threads), expected)


@mostly_audit("options", [{}, *SHORT], ids=str)
@pytest.mark.parametrize("name", ["three levels", "kept in the middle"])
def test_the_end_of_a_buffer_changes_nothing(monkeypatch, name, options):
    sampler = NestedFocus(TREES[name], **options)
    expected = drawn(sampler, 200)
    plain = Rng.stream
    for length in (1, 2, 7, 64):
        monkeypatch.setattr(Rng, "stream", lambda self, _=0, length=length: plain(self, length))
        assert np.array_equal(drawn(sampler, 200), expected)


def test_a_sum_far_beyond_the_tables():
    """The referee splits it as its law says: 400 in two parts of two cells each, against the enumerated law."""
    tree = totals("1/2", (-1, 4, None))
    sampler, stream = NestedFocus(tree), rng(seed=3).stream()
    kind, y = sampler.kinds.of_total[0], 400
    parts = np.array([[sampler._referee.draw(kind, y, stream)] for _ in range(4_000)])
    u, a = np.arange(-60, y + 61), np.exp(-0.5)
    weights = [(np.abs(s) + (1 + a**2) / (1 - a**2)) * np.exp(-0.5 * (np.abs(s) - y / 2)) for s in (u, y - u)]
    chances = weights[0] * weights[1]
    bins = u // 20
    law = [(int(k),) for k in np.unique(bins)], np.bincount(bins - bins.min(), chances / chances.sum())
    assert_drawn_from(parts // 20, law)


def test_a_part_with_hardly_any_chance_takes_as_many_digits_as_it_needs():
    """Accepted with 1e-200 or so: never, and at once."""
    sampler = NestedFocus(TREES["kept"])
    uniform = rng(seed=1).uniform()
    assert not sampler._referee.accept(sampler.kinds.of_total[0], 0, 500, Fraction(1), uniform)

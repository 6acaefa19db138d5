from fractions import Fraction

import numpy as np
import pytest
from laws import ALPHA, assert_drawn_from, assert_not_drawn_from, power, sum_law
from scipy import stats

from keepsum.accuracy.law import free_variance, sum_variance, sum_weights
from keepsum.sampling.core import driving
from keepsum.sampling.core.alias import AliasTable
from keepsum.sampling.core.kernel_arguments import new_state
from keepsum.sampling.core.rng import Rng, rng
from keepsum.sampling.core.totals import TotalLaw
from keepsum.sampling.l1 import compositions
from keepsum.sampling.l1.compositions import ForcedSums
from keepsum.sampling.l1.compositions_kernels import BY_BARS, BY_REPAIR, BY_TABLE

WAYS = {"table": BY_TABLE, "bars": BY_BARS, "repair": BY_REPAIR}


def sampler(epsilon, n, total=0, way=None, word_bits=64):
    made = ForcedSums(Fraction(epsilon), [n], [total], word_bits=word_bits)
    if way is not None and way != BY_TABLE:
        made._methods = np.full(1, way)
        made._laws = {}
    return made


def draws(made, count, seed=1):
    out = np.empty((count, made.width), dtype=np.int64)
    made.draw_into(out, rng(seed=seed))
    return out


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "3"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_forced_sums(n, epsilon, way):
    made = sampler(epsilon, n, way=WAYS[way])
    found = draws(made, 200_000)
    assert not found.sum(axis=1).any()
    assert_drawn_from(found, sum_law(n, float(epsilon)))


@pytest.mark.parametrize("way", ["bars", "repair"])
@pytest.mark.parametrize("total", [1, -3, 7])
def test_other_sums(total, way):
    found = draws(sampler("0.5", 3, total, WAYS[way]), 200_000)
    assert (found.sum(axis=1) == total).all()
    assert_drawn_from(found, sum_law(3, 0.5, total, reach=8))


@pytest.mark.parametrize("total", [40, -40])
def test_a_sum_far_out_is_reached_by_a_tilt(total):
    made = ForcedSums.one(Fraction(1, 2), 3, total)
    assert made._plus.epsilon != made._minus.epsilon
    found = draws(made, 100_000)
    points, chances = sum_law(3, 0.5, total, reach=50)
    assert (found.sum(axis=1) == total).all()
    assert_drawn_from(found, (points, chances))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("epsilon", "word_bits"), [("0.5", 8), ("1", 8), ("3", 8), ("1", 4)])
def test_short_words(epsilon, word_bits, way):
    """Ties everywhere, and still the law; against ties that are rounded the power is 1 to six digits (below)."""
    found = draws(sampler(epsilon, 3, way=WAYS[way], word_bits=word_bits), 20_000)
    assert_drawn_from(found, sum_law(3, float(epsilon)))


@pytest.mark.parametrize("way", WAYS)
def test_short_words_without_the_fallback_fail(monkeypatch, way):
    """The same test with ties decided by the rounded threshold."""
    monkeypatch.setattr(AliasTable, "settle", lambda self, number, extra: number >> (self.digits - self.column_bits))
    monkeypatch.setattr(TotalLaw, "resolve", lambda self, word, extra: int(np.searchsorted(self.table, word >> 60)))
    monkeypatch.setattr(compositions, "accept_sum", lambda *_: 1)
    found = draws(sampler("1", 3, way=WAYS[way], word_bits=4), 20_000)
    assert_not_drawn_from(found, sum_law(3, 1.0))
    assert power(found, sum_law(3, 1.0), 20_000) > 1 - 1e-6


def test_a_biased_coin_fails():
    """The chance of acceptance computed with a rate that is off by one part in forty."""
    made = sampler("0.5", 3, way=BY_REPAIR)
    made._rate *= 1.025
    assert_not_drawn_from(draws(made, 400_000), sum_law(3, 0.5))


def test_a_restarted_buffer_fails(monkeypatch):
    """A draw that runs out of words starts over with fresh ones: short draws come too often."""
    honest = driving.Stream.more

    def wrong_run(kernel, stream, tables, task, referee=None):
        states = new_state()
        while True:
            states["position"] = stream.position
            code = kernel(stream.words, states, tables, task)
            stream.position = int(states[0].position)
            if code == driving.DONE:
                return states[0]
            if code == driving.MORE:
                stream.position = len(stream.words)
                honest(stream)
                states = new_state(job=states[0].job)
            states["answer"] = -1

    monkeypatch.setattr(compositions, "run", wrong_run)
    monkeypatch.setattr(Rng, "stream", lambda self, words=8: driving.Stream(self._key, self._bump(), 24))
    monkeypatch.setattr(Rng, "_bump", _counter(), raising=False)
    assert_not_drawn_from(draws(sampler("0.5", 3, way=BY_REPAIR), 100_000), sum_law(3, 0.5))


def _counter():
    numbers = iter(range(10**9))
    return lambda self: next(numbers)


@pytest.mark.parametrize("n", [2, 10, 1_000, 1_000_000])
def test_variance_of_a_cell(n):
    """Against the closed form, at an error rate of 1e-6: Student's t over independent draws.

    The cells of one draw share its total, so their mean square counts as one observation.
    """
    made = ForcedSums(Fraction(1, 4), [n])
    count = max(30, 1_000_000 // n)
    found = draws(made, count)
    limit = stats.t.isf(ALPHA / 4, count - 1)  # two sides, two means
    squares = (found.astype(float) ** 2).mean(axis=1)
    assert abs(squares.mean() - sum_variance(n, 0.25)) < limit * squares.std(ddof=1) / np.sqrt(count)
    first = found[:, 0].astype(float)
    assert abs(first.mean()) < limit * first.std(ddof=1) / np.sqrt(count)


def test_a_variance_off_by_two_parts_in_a_hundred_is_seen():
    made = ForcedSums(Fraction(101, 400), [10])
    squares = (draws(made, 100_000).astype(float) ** 2).mean(axis=1)
    limit = stats.t.isf(ALPHA / 4, len(squares) - 1) * squares.std(ddof=1) / np.sqrt(len(squares))
    assert abs(squares.mean() - sum_variance(10, 0.25)) > limit


def test_variance_closed_forms():
    """n = 2 is double geometric with twice the rate; a cell among very many is nearly free."""
    assert sum_variance(2, 0.25) == pytest.approx(free_variance(0.5), rel=1e-12)
    assert sum_variance(10**6, 0.25) == pytest.approx(free_variance(0.25), rel=1e-5)
    points, chances = sum_law(3, 0.5, reach=60)
    assert sum_variance(3, 0.5) == pytest.approx(
        sum(c * p[0] ** 2 for p, c in zip(points, chances, strict=True)), rel=1e-9
    )


@pytest.mark.parametrize("n", [2, 3, 4])
def test_weights_of_a_cell(n):
    reach = 60 if n < 4 else 30
    points, chances = sum_law(n, 1.0, reach=reach)
    weights = sum_weights(n, 1.0)
    whole = 2 * weights.sum() - weights[0]
    for k in range(6):
        exact = sum(c for p, c in zip(points, chances, strict=True) if p[0] == k)
        assert weights[k] / whole == pytest.approx(exact, rel=1e-9)


def test_cells_of_a_region_are_exchangeable_and_regions_independent():
    made = ForcedSums(Fraction(1, 2), [3, 5])
    found = draws(made, 200_000)
    assert not found[:, :3].sum(axis=1).any()
    assert not found[:, 3:].sum(axis=1).any()
    errors = np.sqrt((found**4).mean(axis=0) / len(found))
    for cells in (slice(0, 3), slice(3, 8)):
        second = (found[:, cells] ** 2).mean(axis=0)
        assert (np.abs(second - second.mean()) < 6 * errors[cells]).all()
    between = np.corrcoef(found.T)[:3, 3:]
    assert np.abs(between).max() < 5.5 / np.sqrt(len(found))
    within = np.corrcoef(found[:, :3].T)[0, 1]
    assert within == pytest.approx(-1 / 2, abs=0.01)


def test_ties_go_to_the_law_of_their_own_region():
    """Two regions of one size, one with sum 0 (a table) and one without (repaired): short words for both."""
    found = draws(ForcedSums(Fraction(1), [3, 3], [0, 2], word_bits=4), 20_000)
    assert_drawn_from(found[:, :3], sum_law(3, 1.0))
    assert_drawn_from(found[:, 3:], sum_law(3, 1.0, total=2, reach=6))


@pytest.mark.parametrize("epsilon", ["0.02", "1", "20"])
def test_bars_and_stars(epsilon):
    """Few stars among many bars, and the other way round: 30 cells by table against 30 cells by repair."""
    lengths = [
        np.abs(draws(sampler(epsilon, 30, way=way), 20_000, seed)).sum(axis=1)
        for seed, way in enumerate((BY_TABLE, BY_REPAIR))
    ]
    errors = [length.std() / np.sqrt(len(length)) for length in lengths]
    assert abs(lengths[0].mean() - lengths[1].mean()) <= 5 * np.hypot(*errors)


def test_a_region_of_one_cell_is_its_sum():
    assert draws(ForcedSums(Fraction(1, 2), [1, 1], [0, 4]), 5).tolist() == [[0, 4]] * 5


@pytest.mark.parametrize("epsilon", ["1/4", "1/500"])
def test_large_regions_are_filled_in_parts(monkeypatch, epsilon):
    """The path of regions above half a million cells, on small ones: the law, and the same noise for any threads."""
    monkeypatch.setattr(compositions, "LARGE", 2)
    monkeypatch.setattr(compositions, "PART_CELLS", 2)
    made = sampler("0.5", 3, way=BY_REPAIR)
    assert_drawn_from(draws(made, 4_000), sum_law(3, 0.5))
    many = ForcedSums(Fraction(epsilon), [50, 1, 9])
    one, two = (np.empty((4, 60), dtype=np.int64) for _ in range(2))
    many.draw_into(one, rng(seed=3), threads=1)
    many.draw_into(two, rng(seed=3), threads=4)
    assert np.array_equal(one, two)
    assert not one[:, :50].sum(axis=1).any()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("word_bits", [64, 8])
def test_the_end_of_a_buffer_changes_nothing(monkeypatch, way, word_bits):
    made = sampler("0.5", 5, way=WAYS[way], word_bits=word_bits)
    long = draws(made, 200)
    plain = Rng.stream
    for words in (1, 2, 5, 64):
        monkeypatch.setattr(Rng, "stream", lambda self, _=0, words=words: plain(self, words))
        assert np.array_equal(draws(made, 200), long)

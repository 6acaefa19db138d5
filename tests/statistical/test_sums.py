from fractions import Fraction

import numpy as np
import pytest
from laws import ALPHA, assert_drawn_from, assert_not_drawn_from, power, sum_law
from scipy import stats

from keepsum.accuracy.cell_noise import free_variance, sum_variance, sum_weights
from keepsum.sampling.core import driving
from keepsum.sampling.core.kernel_arguments import new_state
from keepsum.sampling.core.rng import Rng, rng
from keepsum.sampling.core.tabulated import AliasTable
from keepsum.sampling.l1 import forced_sums
from keepsum.sampling.l1.forced_sums import ForcedSums
from keepsum.sampling.l1.sum_laws import SumLaw, powers_below, sum_tables
from support import mostly_audit


def sampler(epsilon, n, total=0, word_bits=64):
    return ForcedSums(Fraction(epsilon), [n], [total], word_bits)


def draws(made, count, seed=1):
    out = np.empty((count, made.width), dtype=np.int64)
    made.draw_into(out, rng(seed=seed))
    return out


@mostly_audit("epsilon", ["0.1", "0.5", "1", "3"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_forced_sums(n, epsilon):
    found = draws(sampler(epsilon, n), 200_000)
    assert not found.sum(axis=1).any()
    assert_drawn_from(found, sum_law(n, float(epsilon)))


@pytest.mark.parametrize("epsilon", ["1/40", "1/400"])
def test_wide_noise(epsilon):
    """Tables of many columns, and two tables: noise in 3 cells, by steps of about its width."""
    epsilon = Fraction(epsilon)
    step = int(1 / epsilon)
    found = draws(sampler(epsilon, 3), 100_000)
    assert not found.sum(axis=1).any()
    first = np.arange(-30 * step, 30 * step)
    # Given the sum 0, cell 1 has weight a^|z| times that of the sum -z of two cells.
    a = np.exp(-float(epsilon))
    weights = a ** (2.0 * np.abs(first)) * (1 + np.abs(first) * (1 - a**2) / (1 + a**2))
    bins = first // step
    law = [(int(k),) for k in np.unique(bins)], np.bincount(bins - bins.min(), weights / weights.sum())
    for cell in range(3):
        assert_drawn_from(found[:, [cell]] // step, law)


@pytest.mark.parametrize("total", [1, -3, 7])
def test_other_sums(total):
    found = draws(sampler("0.5", 3, total), 200_000)
    assert (found.sum(axis=1) == total).all()
    assert_drawn_from(found, sum_law(3, 0.5, total, reach=8))


def draws_of_short_words(epsilon, word_bits):
    """So many that a wrong sampler is told with a power of 1 to six digits; half of them do for the shortest at 1."""
    return 20_000 if (epsilon, word_bits) == ("1", 4) else 40_000


@pytest.mark.parametrize(
    ("epsilon", "word_bits"),
    [
        ("1", 4),
        *(pytest.param(*case, marks=pytest.mark.audit) for case in (("0.1", 4), ("0.5", 8), ("1", 8), ("3", 8))),
    ],
)
def test_short_words(epsilon, word_bits):
    """Ties everywhere, and still the law; against ties that are rounded the power is 1 to six digits (below)."""
    found = draws(sampler(epsilon, 3, word_bits=word_bits), draws_of_short_words(epsilon, word_bits))
    assert_drawn_from(found, sum_law(3, float(epsilon), reach=12))


def to_the_other(self, number, extra):
    """A tie decided for the outcome that a column is shared with."""
    return int(self.others[number >> (self.digits - self.column_bits)])


@pytest.mark.audit
@pytest.mark.parametrize(("wrong", "epsilon"), [("draws", "0.1"), ("acceptances", "1")])
def test_short_words_without_the_fallback_fail(monkeypatch, wrong, epsilon):
    """The same test with ties of either kind decided by the rounded threshold."""
    if wrong == "draws":
        monkeypatch.setattr(AliasTable, "settle", to_the_other)
    else:
        monkeypatch.setattr(SumLaw, "accept", lambda *_: 1)
    count = draws_of_short_words(epsilon, 4)
    found = draws(sampler(epsilon, 3, word_bits=4), count)
    law = sum_law(3, float(epsilon), reach=12)
    assert_not_drawn_from(found, law)
    assert power(found, law, count) > 1 - 1e-6


def test_a_biased_coin_fails():
    """The chance of acceptance computed with a rate that is off by one part in fifty."""
    made = sampler("0.5", 3)
    made._small = made._small._replace(sums=sum_tables(powers_below(3), Fraction("0.51")))
    assert_not_drawn_from(draws(made, 400_000), sum_law(3, 0.5))


def test_parts_accepted_without_a_look_at_the_rest_fail():
    """All parts are accepted, and the last cell is what remains."""
    made = sampler("0.5", 3)
    sums = made._small.sums
    made._small = made._small._replace(sums=sums._replace(values=np.ones_like(sums.values)))
    assert_not_drawn_from(draws(made, 20_000), sum_law(3, 0.5))


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

    monkeypatch.setattr(forced_sums, "run", wrong_run)
    monkeypatch.setattr(Rng, "stream", lambda self, words=8: driving.Stream(self._key, self._bump(), 12))
    monkeypatch.setattr(Rng, "_bump", _counter(), raising=False)
    found, law = draws(sampler("0.5", 3), 20_000), sum_law(3, 0.5)
    assert_not_drawn_from(found, law)
    assert power(found, law, 20_000) > 1 - 1e-6


def _counter():
    numbers = iter(range(10**9))
    return lambda self: next(numbers)


@mostly_audit("n", [2, 10, 1_000, 1_000_000])
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


@pytest.mark.audit
def test_ties_go_to_the_law_of_their_own_region():
    """Two regions with different sums and sizes: short words for both."""
    found = draws(ForcedSums(Fraction(1), [3, 4], [0, 2], word_bits=4), 10_000)
    assert_drawn_from(found[:, :3], sum_law(3, 1.0))
    assert_drawn_from(found[:, 3:], sum_law(4, 1.0, total=2, reach=6))


@pytest.mark.parametrize("n", [17, 64, 65, 500])
def test_the_length_of_the_noise(n):
    """The mean of |z|_1 given the sum 0 against its closed form, at an error rate of 1e-6: parts of all sizes.

    -d/d eps of the logarithm of the normalizer p_n(0) ((1 + a) / (1 - a))^n.
    """
    epsilon, step = 0.5, 1e-4
    lengths = np.abs(draws(sampler("0.5", n), 20_000)).sum(axis=1)
    expected = -(log_weight(n, epsilon + step) - log_weight(n, epsilon - step)) / (2 * step)
    limit = stats.t.isf(ALPHA / 2, len(lengths) - 1) * lengths.std(ddof=1) / np.sqrt(len(lengths))
    assert abs(lengths.mean() - expected) < limit + 1e-4
    assert limit < 0.01 * expected


def log_weight(n, epsilon):
    """The logarithm of the sum of e^(-eps |z|_1) over z with sum 0: the mean of a transform over the circle."""
    turns = 2 * np.pi * np.arange(4096) / 4096
    a = np.exp(-epsilon)
    logs = n * np.log((1 - a**2) / (1 - 2 * a * np.cos(turns) + a**2))
    return np.logaddexp.reduce(logs)


def test_a_region_of_one_cell_is_its_sum():
    assert draws(ForcedSums(Fraction(1, 2), [1, 1], [0, 4]), 5).tolist() == [[0, 4]] * 5


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["1/4", "1/500"])
def test_large_regions_are_filled_in_parts(monkeypatch, epsilon):
    """The path of large regions, on small ones: the law, and the same noise for any threads."""
    monkeypatch.setattr(forced_sums, "LARGE", 1)
    monkeypatch.setattr(forced_sums, "PIECE", 2)
    assert_drawn_from(draws(sampler("1", 4), 2_000), sum_law(4, 1.0))
    assert_drawn_from(draws(sampler("1", 3, 2), 2_000), sum_law(3, 1.0, total=2, reach=6))
    many = ForcedSums(Fraction(epsilon), [50, 1, 9])
    one, two = (np.empty((4, 60), dtype=np.int64) for _ in range(2))
    many.draw_into(one, rng(seed=3), threads=1)
    many.draw_into(two, rng(seed=3), threads=4)
    assert np.array_equal(one, two)
    assert not one[:, :50].sum(axis=1).any()


def test_large_regions_that_accept_all_parts_fail(monkeypatch):
    monkeypatch.setattr(forced_sums, "LARGE", 1)
    monkeypatch.setattr(ForcedSums, "_accepts", lambda *_: True)
    assert_not_drawn_from(draws(sampler("1", 4), 2_000), sum_law(4, 1.0))


@mostly_audit("epsilon", ["1/2", "1/500"])
@pytest.mark.parametrize(("n", "word_bits"), [(5, 64), (5, 8), (300, 64), (300, 8)])
def test_the_end_of_a_buffer_changes_nothing(monkeypatch, n, word_bits, epsilon):
    made = sampler(epsilon, n, word_bits=word_bits)
    count = 200 if n == 5 else 4
    long = draws(made, count)
    plain = Rng.stream
    for words in (1, 2, 5, 64):
        monkeypatch.setattr(Rng, "stream", lambda self, _=0, words=words: plain(self, words))
        assert np.array_equal(draws(made, count), long)

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from laws import ALPHA, assert_drawn_from, assert_not_drawn_from
from scipy import stats

from keepsum.sampling.core import tabulated
from keepsum.sampling.core.driving import Referee, run
from keepsum.sampling.core.kernel_arguments import OUTCOME_BITS, Cells
from keepsum.sampling.core.rng import rng
from keepsum.sampling.core.tabulated import AliasTable
from keepsum.sampling.l1.double_geometric import DoubleGeometric, double_geometric
from keepsum.sampling.l1.forced_sums import FreeCells, fill_cells, no_acceptance
from keepsum.sampling.l1.kernel_arguments import OR_MORE
from support import mostly_audit


def draw(law, count, seed=1, buffer_words=8192):
    out = np.empty(count, dtype=np.int64)
    referee = Referee(law.word_bits, lambda _: law, no_acceptance)
    state = run(fill_cells, rng(seed=seed).stream(buffer_words), law.table, Cells(out, 0, count), referee)
    assert state.total == out.sum()
    return out


def law_of(epsilon, step=1):
    """P(Z // step = k)."""
    a = np.exp(-float(epsilon))
    ks = np.arange(-int(30 / (float(epsilon) * step)) - 2, int(30 / (float(epsilon) * step)) + 2)
    nearest = np.where(ks >= 0, ks * step, -(ks + 1) * step + 1)
    return [(int(k),) for k in ks], (1 - a**step) / (1 + a) * a ** nearest.astype(float)


@mostly_audit("word_bits", [64, 8])
@pytest.mark.parametrize("epsilon", ["1/10", "1", "1/100", "1/2", "3", "1/3", "1/20", "1/400"])
def test_double_geometric(epsilon, word_bits):
    """One table of either size and two, full words, and words so short that a quarter of the draws tie."""
    epsilon = Fraction(epsilon)
    step = max(1, int(Fraction(1, 20) / epsilon))
    count = 400_001 if word_bits == 64 else 40_001
    found = draw(DoubleGeometric(epsilon, word_bits), count)
    assert_drawn_from((found // step)[:, None], law_of(epsilon, step))


@pytest.mark.parametrize("epsilon", ["1e-4", "50"])
def test_extreme_rates(epsilon):
    epsilon = Fraction(epsilon)
    found = draw(DoubleGeometric(epsilon), 200_000)
    if epsilon > 1:
        assert not found.any()  # e^-50 a draw
        return
    assert_drawn_from((found // 1000)[:, None], law_of(epsilon, 1000))
    low = np.bincount(found % 64, minlength=64)  # the digits of the second table, near to uniform
    statistic = ((low - 200_000 / 64) ** 2 / (200_000 / 64)).sum()
    assert statistic < stats.chi2.isf(ALPHA, 63)


def rounded(self, number, extra):
    """A tie decided by the rounded threshold alone."""
    width = self.digits - self.column_bits
    column = number >> width
    return column if number & (2**width - 1) < self.thresholds[column] else int(self.others[column])


def to_the_column(self, number, extra):
    """A tie decided for the column's own outcome."""
    return number >> (self.digits - self.column_bits)


@pytest.mark.parametrize(("epsilon", "wrong"), [("1/2", rounded), ("1/20", to_the_column), ("1/400", to_the_column)])
def test_without_the_fallback_the_same_test_fails(monkeypatch, epsilon, wrong):
    monkeypatch.setattr(AliasTable, "settle", wrong)
    epsilon = Fraction(epsilon)
    step = max(1, int(Fraction(1, 20) / epsilon))
    found = draw(DoubleGeometric(epsilon, 8), 40_000)
    assert_not_drawn_from((found // step)[:, None], law_of(epsilon, step))


@pytest.mark.parametrize("wrong", ["itself only", "no sign"])
def test_outcomes_that_mean_more_and_stop_there_fail(monkeypatch, wrong):
    """Tables whose last outcomes are drawn often: they stand for themselves only, or lose their sign."""
    monkeypatch.setattr("keepsum.sampling.l1.double_geometric._FAR", Fraction(2))
    monkeypatch.setattr("keepsum.sampling.l1.double_geometric._SHORT", Fraction(1, 1000))
    epsilon = Fraction(1, 60)
    law = DoubleGeometric(epsilon)
    assert_drawn_from((draw(law, 40_000) // 10)[:, None], law_of(epsilon, 10))
    if wrong == "itself only":
        monkeypatch.setattr(DoubleGeometric, "_geometric", lambda self, extra: 0)
    else:
        honest = DoubleGeometric._draw
        monkeypatch.setattr(DoubleGeometric, "_draw", lambda self, number, extra: honest(self, number, extra) & ~1)
    assert_not_drawn_from((draw(law, 40_000) // 10)[:, None], law_of(epsilon, 10))


def test_a_slightly_wrong_rate_fails():
    found = draw(DoubleGeometric(Fraction(51, 100)), 400_000)
    assert_not_drawn_from(found[:, None], law_of(Fraction(1, 2)))


@pytest.mark.parametrize("word_bits", [64, 8])
@pytest.mark.parametrize("epsilon", ["1/4", "1/20", "1/1000"])
def test_the_end_of_a_buffer_changes_nothing(epsilon, word_bits):
    law = DoubleGeometric(Fraction(epsilon), word_bits)
    long = draw(law, 501, buffer_words=8192)
    for words in (1, 2, 3, 7):
        assert np.array_equal(draw(law, 501, buffer_words=words), long)


@pytest.mark.parametrize("word_bits", [64, 8, 4])
@pytest.mark.parametrize("epsilon", ["1/4", "7/3", "1/30", "1/1000", "20"])
def test_the_digits_of_all_outcomes_enclose_their_chances(epsilon, word_bits):
    """Against decimals: how many numbers give an outcome for certain, and how many may."""
    epsilon = Fraction(epsilon)
    law = DoubleGeometric(epsilon, word_bits)
    count, step = len(law.table.high) // 2, 2**law.low_bits
    with localcontext(prec=80):
        rate = (-Decimal(epsilon.numerator) / epsilon.denominator).exp()
        stays = rate**step
        upward = [(1 - stays) * stays**h for h in range(count - 1)] + [stays ** (count - 1)]
        chances = [p / (1 + rate) for p in upward] + [p * rate / (1 + rate) for p in reversed(upward)]
        check_enclosures(law._high, chances)
        if law.low_bits:
            check_enclosures(law._low, [(1 - rate) * rate**r / (1 - stays) for r in range(step)])


def check_enclosures(table, chances):
    width = table.digits - table.column_bits
    certain, open_ = [0] * len(chances), [0] * len(chances)
    for column, (threshold, other) in enumerate(zip(table.thresholds.tolist(), table.others.tolist(), strict=True)):
        certain[column] += threshold
        if threshold < 2**width:
            certain[other] += 2**width - threshold - 1
            open_[column] += 1
            open_[other] += 1
    for k, chance in enumerate(chances):
        scaled = chance * 2**table.digits
        assert certain[k] <= scaled <= certain[k] + open_[k]
    assert sum(certain) >= 2**table.digits - len(chances)


@pytest.mark.parametrize("epsilon", ["1/4", "1/30"])
def test_columns_hold_thresholds_and_outcomes(epsilon):
    law = DoubleGeometric(Fraction(epsilon))
    last = len(law.table.high) // 2 - 1
    values = [*range(last), OR_MORE, OR_MORE, *range(-last, 0)]
    mask = 2**OUTCOME_BITS - 1
    for column, entry in enumerate(law.table.high.tolist()):
        other = int(law._high.others[column])
        assert entry & mask == values[other] & mask
        assert entry >> OUTCOME_BITS & mask == values[column] & mask
        threshold = entry >> 2 * OUTCOME_BITS
        assert threshold == law._high.thresholds[column] or (column == other and threshold == 0)


def test_outcomes_that_no_ball_tells_from_1_are_asked_again(monkeypatch):
    """Balls that are too wide at first: with more digits the same table as ever."""
    table = DoubleGeometric(Fraction(1, 4)).table.high
    monkeypatch.setattr(tabulated, "START_BITS", 2)
    assert np.array_equal(DoubleGeometric(Fraction(1, 4)).table.high, table)


def test_free_cells_are_independent():
    cells = FreeCells(Fraction(1, 2), 3)
    out = np.empty((60_000, 3), dtype=np.int64)
    cells.draw_into(out, rng(seed=5))
    assert_drawn_from(out.reshape(-1, 1), law_of(Fraction(1, 2)))
    assert abs(np.corrcoef(out.T) - np.eye(3)).max() < 0.03


def test_a_law_is_made_once():
    assert double_geometric(Fraction(1, 4)) is double_geometric(Fraction(1, 4))

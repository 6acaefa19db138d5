from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from laws import ALPHA, assert_drawn_from, assert_not_drawn_from
from scipy import stats

from keepsum.sampling.core import alias
from keepsum.sampling.core import geometric as geometric_module
from keepsum.sampling.core.alias import AliasTable
from keepsum.sampling.core.driving import Referee, run
from keepsum.sampling.core.geometric import Geometric
from keepsum.sampling.core.kernel_arguments import Cells
from keepsum.sampling.core.kernels import fill_cells
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.compositions import FreeCells, no_acceptance


def draw(law, count, seed=1, buffer_words=8192):
    out = np.empty(count, dtype=np.int64)
    referee = Referee(law.word_bits, lambda _: law, no_acceptance)
    run(fill_cells, rng(seed=seed).stream(buffer_words), law.table, Cells(out, 0, count), referee)
    return out


def law_of(epsilon, step=1):
    """P(G // step = k)."""
    a = np.exp(-float(epsilon) * step)
    ks = np.arange(int(30 / (float(epsilon) * step)) + 2)
    return [(int(k),) for k in ks], (1 - a) * a**ks


@pytest.mark.parametrize("word_bits", [64, 8])
@pytest.mark.parametrize("epsilon", ["1/10", "1/2", "1", "3", "1/3", "1/100"])
def test_geometric(epsilon, word_bits):
    """Full words, and words of 8 bits, where a quarter of the draws tie and are settled by more digits."""
    epsilon = Fraction(epsilon)
    step = max(1, int(Fraction(1, 20) / epsilon))
    count = 400_000 if word_bits == 64 else 40_000
    found = draw(Geometric(epsilon, word_bits), count)
    assert_drawn_from((found // step)[:, None], law_of(epsilon, step))


@pytest.mark.parametrize("epsilon", ["1e-4", "50"])
def test_extreme_rates(epsilon):
    epsilon = Fraction(epsilon)
    found = draw(Geometric(epsilon), 200_000)
    if epsilon > 1:
        assert not found.any()  # e^-50 a draw
        return
    assert_drawn_from((found // 1000)[:, None], law_of(epsilon, 1000))
    low = np.bincount(found % 512, minlength=512)  # the digits of the second table, near to uniform
    statistic = ((low - 200_000 / 512) ** 2 / (200_000 / 512)).sum()
    assert statistic < stats.chi2.isf(ALPHA, 511)


def rounded(self, number, extra):
    """A tie decided by the rounded threshold alone."""
    width = self.digits - self.column_bits
    column = number >> width
    return column if number & (2**width - 1) < self.thresholds[column] else int(self.others[column])


def test_without_the_fallback_the_same_test_fails(monkeypatch):
    monkeypatch.setattr(AliasTable, "settle", rounded)
    found = draw(Geometric(Fraction(1, 2), 8), 40_000)
    assert_not_drawn_from(found[:, None], law_of(Fraction(1, 2)))


def test_a_last_outcome_that_stands_for_itself_only_fails(monkeypatch):
    """Without another draw behind the table's last outcome; tables of 8-bit words have 64."""
    monkeypatch.setattr(Geometric, "_geometric", lambda self, number, extra: self._high.settle(number, extra))
    found = draw(Geometric(Fraction(1, 20), 8), 40_000)
    assert_not_drawn_from((found // 8)[:, None], law_of(Fraction(1, 20), 8))


def test_a_slightly_wrong_rate_fails():
    found = draw(Geometric(Fraction(52, 100)), 400_000)
    assert_not_drawn_from(found[:, None], law_of(Fraction(1, 2)))


@pytest.mark.parametrize("word_bits", [64, 8])
@pytest.mark.parametrize("epsilon", ["1/4", "1/1000"])
def test_the_end_of_a_buffer_changes_nothing(epsilon, word_bits):
    law = Geometric(Fraction(epsilon), word_bits)
    long = draw(law, 500, buffer_words=8192)
    for words in (1, 2, 3, 7):
        assert np.array_equal(draw(law, 500, buffer_words=words), long)


@pytest.mark.parametrize("word_bits", [64, 8, 4])
@pytest.mark.parametrize("epsilon", ["1/4", "7/3", "1/1000", "20"])
def test_the_digits_of_all_outcomes_enclose_their_chances(epsilon, word_bits):
    """Against decimals: how many numbers give an outcome for certain, and how many may."""
    epsilon = Fraction(epsilon)
    law = Geometric(epsilon, word_bits)
    with localcontext(prec=80):
        rate = (-Decimal(epsilon.numerator) / epsilon.denominator).exp()
        count = len(law.table.high)
        high = [(1 - rate ** law_step(law)) * rate ** (law_step(law) * k) for k in range(count - 1)]
        check_enclosures(law._high, [*high, rate ** (law_step(law) * (count - 1))])
        if law.low_bits:
            low = [(1 - rate) * rate**k / (1 - rate ** law_step(law)) for k in range(law_step(law))]
            check_enclosures(law._low, low)


def law_step(law):
    return 2**law.low_bits


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


def test_outcomes_that_no_ball_tells_from_1_are_asked_again(monkeypatch):
    """Balls that are too wide at first: with more digits the same table as ever."""
    others = Geometric(Fraction(1, 4)).table.high_others
    monkeypatch.setattr(alias, "START_BITS", 2)
    assert np.array_equal(Geometric(Fraction(1, 4)).table.high_others, others)


def test_free_cells_are_double_geometric():
    cells = FreeCells(Fraction(1, 2), 3)
    out = np.empty((60_000, 3), dtype=np.int64)
    cells.draw_into(out, rng(seed=5))
    a = np.exp(-0.5)
    ks = np.arange(-30, 31)
    law = [(int(k),) for k in ks], (1 - a) / (1 + a) * a ** np.abs(ks)
    assert_drawn_from(out.reshape(-1, 1), law)
    assert abs(np.corrcoef(out.T) - np.eye(3)).max() < 0.03


def test_module_caches_laws():
    assert geometric_module.geometric(Fraction(1, 4)) is geometric_module.geometric(Fraction(1, 4))

from fractions import Fraction

import numpy as np
import pytest
from laws import ALPHA, assert_drawn_from, assert_not_drawn_from
from scipy import stats

from keepsum.sampling.core import geometric as geometric_module
from keepsum.sampling.core.driving import Referee, run
from keepsum.sampling.core.geometric import Geometric, geometric
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
    """Full words, and words of 8 bits, where most draws of a wide law tie and are settled by more digits."""
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


def test_without_the_fallback_the_same_test_fails(monkeypatch):
    """A tie decided by the rounded threshold alone."""
    monkeypatch.setattr(
        Geometric, "resolve", lambda self, words, extra: int(np.searchsorted(self.table.high, words[0] >> 56))
    )
    found = draw(Geometric(Fraction(1, 2), 8), 40_000)
    assert_not_drawn_from(found[:, None], law_of(Fraction(1, 2)))


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


def test_thresholds_are_floors():
    """Against fractions: 2^w F(k) by a long decimal expansion."""
    from decimal import Decimal, localcontext

    with localcontext(prec=80):
        for epsilon in (Fraction(1, 4), Fraction(7, 3)):
            table = geometric(epsilon).table.high
            rate = (-Decimal(epsilon.numerator) / epsilon.denominator).exp()
            for k in range(0, len(table), 7):
                assert int(table[k]) == int((1 - rate ** (k + 1)) * 2**64)


def test_every_word_of_eight_bits_is_decided_rightly():
    """Each of the 256 words: either all numbers that start with it give the same k, or it is a tie."""
    epsilon = Fraction(1, 2)
    law = Geometric(epsilon, 8)
    cdf = 1 - np.exp(-0.5 * np.arange(1, 60))
    for word in range(256):
        first, last = np.searchsorted(cdf, [word / 256, (word + 1) / 256 - 1e-12], side="right")
        tie = bool((law.table.high == word).any())
        assert tie == (first != last) or word == 255
        if not tie:
            assert np.searchsorted(law.table.high, word) == first


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

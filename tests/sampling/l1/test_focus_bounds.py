"""The bounds that exact draws under nested totals rest on: errors of weights, envelopes, and what the referee says.

The oracle is plain sums in mpmath with many digits, total by total, over tables that go far beyond those at hand.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from mpmath import mp

from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.focus.laws import (
    ALWAYS,
    FixedLaws,
    cell_law,
    convolved,
    exponentials,
    float_law,
    float_laws,
    weighted,
)
from keepsum.sampling.l1.focus.sampler import PEAK_ROOM, NestedFocus, envelope
from keepsum.sampling.l1.focus.tree import ABSENT, NestedTotals, SumKinds
from support import mostly_audit

DIGITS = 260
TREES = {
    "narrow": NestedTotals([-1, 0, 0], [1, 3, 4], [None, Fraction(1), Fraction(1, 2)], Fraction(3, 2)),
    "wide": NestedTotals([-1, 0, 0], [0, 3, 2], [Fraction(1, 7), Fraction(1, 3), Fraction(1, 5)], Fraction(3, 5)),
    "heavy": NestedTotals([-1, 0, 1], [2, 0, 3], [Fraction(1, 2), Fraction(9), Fraction(4)], Fraction(3, 5)),
}


@cache
def exact_weights(name):
    """W(0), W(1), ... over W(0) for each kind, as integers times 2^-DIGITS; the last ones are 0 in all digits."""
    far = int(240 / TREES[name].epsilon)
    tables = []
    for left, right, weight, *_ in SumKinds(TREES[name]).all:
        with mp.workprec(DIGITS + 40):
            rate = mp.mpf(weight.numerator) / weight.denominator
            powers = np.array([int(mp.exp(-rate * abs(s)) * 2**DIGITS) for s in range(-far, far + 1)], dtype=object)
        if ABSENT not in (left, right):
            below = np.convolve(tables[left], tables[right], mode="same")
            powers = below * 2**DIGITS // below[far] * powers // 2**DIGITS
        tables.append(powers)
    return [table[far:] for table in tables]


@mostly_audit("name", TREES)
@pytest.mark.parametrize("bits", [64, 128, 200])
def test_errors_of_fixed_point_weights_are_bounded(name, bits):
    """For all sums, also those beyond the table; and the mass is not exceeded."""
    kinds = SumKinds(TREES[name])
    laws = FixedLaws(kinds.all)
    for number, kind in enumerate(kinds.all):
        if kind.left != ABSENT and kind.right == ABSENT:
            continue
        law = laws.law(number, bits)
        assert law.error < 2 ** (bits // 4)
        assert list(law.half) == [law[-s] for s in range(law.reach + 1)]
        assert all(a >= b for a, b in zip(law.half, law.half[1:], strict=False))
        exact = exact_weights(name)[number][: law.reach + 21]
        # The scale is unknown: that at 0 lies between these two.
        for s, weight in enumerate(exact.tolist()):
            low, high = ((law[0] + e) * weight >> DIGITS for e in (-law.error, law.error))
            assert low - 1 <= law[s] + law.error
            assert high + 1 >= law[s] - law.error
        assert (law[0] - law.error) * (2 * exact.sum() - exact[0]) >> DIGITS <= law.mass


def test_an_error_that_is_too_small_is_seen():
    """With few bits the errors are there: some weight is off by more than half of its bound."""
    law = cell_law(Fraction(1, 3), 64)
    for _ in range(4):
        law = convolved(law, law, 64)
    fine = cell_law(Fraction(1, 3), 256)
    for _ in range(4):
        fine = convolved(fine, fine, 256)
    off = [abs(Fraction(law[s], law[0]) - Fraction(fine[s], fine[0])) for s in range(law.reach)]
    assert max(off) * law[0] > 1
    assert max(off) * law[0] < 2 * law.error


def test_exponentials():
    with mp.workprec(400):
        for rate in (Fraction(1, 50), Fraction(7, 3)):
            powers = exponentials(rate, 100)
            for s, power in enumerate([*powers, 0, 0]):
                exact = mp.exp(-mp.mpf(rate.numerator) / rate.denominator * s) * 2**100
                assert power <= exact < power + 2


def test_a_weight_of_a_sum_is_that_of_its_definition():
    law = weighted(cell_law(Fraction(1), 128), Fraction(1, 2), 128)
    direct = cell_law(Fraction(3, 2), 128)
    for s in range(100):
        assert abs(law[s] - direct[s]) <= law.error + direct.error
    assert direct.mass <= law.mass + 200 * (law.error + direct.error) <= direct.mass * 1.001


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("tail_bits", [8, 64])
def test_floats_lie_within_their_bounds(name, tail_bits):
    kinds = SumKinds(TREES[name])
    for number, law in enumerate(float_laws(kinds, tail_bits)):
        if law is ALWAYS:
            continue
        exact = exact_weights(name)[number][: law.reach + 21] / 2.0**DIGITS
        place = law.place(np.arange(law.reach + 21))
        low, high = law.lower[place], law.upper[place]
        assert (low * (1 - 1e-15) <= exact).all()
        assert (exact <= high * (1 + 1e-15)).all()
        assert (high - low)[: law.reach + 1].max() < 1e-14
        assert law.beyond < 2.0**-tail_bits * 1.01


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("tail_bits", [8, 64])
def test_no_part_weighs_more_than_its_envelope(name, tail_bits):
    """For every y of the tables, and every u up to where both parts have hardly any weight."""
    kinds = SumKinds(TREES[name])
    laws = float_laws(kinds, tail_bits)
    checked = 0
    for number, (left, right, *_) in enumerate(kinds.all):
        if ABSENT in (left, right):
            continue
        table = envelope(laws[left], laws[right], laws[number].reach)
        reach = 2 * max(laws[left].reach, laws[right].reach)
        first, second = (exact_weights(name)[part] / 2.0**DIGITS for part in (left, right))
        u = np.arange(-reach, reach + 1)
        for y in range(len(table.peak)):
            p = first[np.abs(u)] * second[np.abs(y - u)]
            distance = np.where(u >= table.middle[y], u - table.middle[y], table.middle[y] - 1 - u)
            ratio = p * 2.0 ** (distance // table.block[y]) / table.peak[y]
            assert ratio.max() <= 1
            # Not much room is given away: neither with the peak nor, where tables go on, with the length of a block.
            assert ratio.max() > 1 / PEAK_ROOM - 1e-6
            shorter = table.block[y] - 1
            halved = [2 * first[abs(m)] * second[abs(y - m)] for m in table.middle[y] + np.array([shorter, -shorter])]
            assert 2 * y > len(table.peak) or max(halved) > p.max() * (1 - 1e-6)
            checked += 1
    assert checked > (20 if tail_bits < 64 else 100)


@pytest.mark.parametrize("name", TREES)
def test_tables_split_sums_as_far_as_their_laws_reach(name):
    """So that the referee draws a part about as seldom as a sum lies beyond its table."""
    sampler = NestedFocus(TREES[name])
    for number, (left, right, *_) in enumerate(sampler.kinds.all):
        if left != ABSENT:
            reach, parts = sampler.laws[number].reach, [sampler.laws[k].reach for k in (left, right) if k != ABSENT]
            assert sampler._tables.split_reach[number] >= min(reach, 0.8 * min(parts)), (left, right)


@pytest.mark.parametrize(("y", "u"), [(0, 0), (3, -2), (11, 4), (200, 150)])
def test_the_referee_knows_the_weights_of_parts(y, u):
    """To as many digits as it is asked for."""
    sampler = NestedFocus(TREES["wide"])
    kinds, kind = sampler.kinds, sampler.kinds.without_weight[1]  # of three cells
    left, right, *_ = kinds.all[kind]
    exact = int(exact_weights("wide")[left][abs(u)]) * int(exact_weights("wide")[right][abs(y - u)]) >> DIGITS
    for count in (0, 10, 60, 200, 230):
        low, high = sampler._referee._digits(kind, y, u, Fraction(1, 3))(count)
        assert high - low <= 2
        assert low <= (exact >> DIGITS - count) // 3 + 1
        assert high >= (exact >> DIGITS - count) // 3


def test_the_referee_splits_sums_of_unequal_parts():
    """Its envelope is that of the tables, but for a length that is a power of two."""
    sampler = NestedFocus(TREES["wide"])
    kind = sampler.kinds.of_total[1]  # of two cells and one
    table = sampler._envelopes[kind]
    for y in (0, 1, 7, 30):
        middle, block, peak = sampler._referee._envelope(kind, y)
        assert abs(middle - table.middle[y]) <= 1
        assert table.block[y] <= block < 2 * table.block[y] + 4
        assert float(peak) == pytest.approx(table.peak[y], rel=1e-6)
    assert isinstance(sampler._referee.draw(kind, 30, rng(seed=1).stream()), int)


def test_a_law_that_ends_at_once():
    """Noise so narrow that a table has an entry or two."""
    law = float_law(cell_law(Fraction(60), 128), 64)
    assert law.reach == 0
    table = envelope(law, law, 0)
    assert (table.middle, table.block) == (0, 1)
    sampler = NestedFocus(NestedTotals([-1], [3], [Fraction(1)], Fraction(60)))
    out = np.ones((1_000, 3), dtype=np.int64)
    sampler.draw_into(out, rng(seed=1))
    assert not out.any()

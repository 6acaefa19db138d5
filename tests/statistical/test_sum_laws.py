"""The law of a sum of noise, against convolution, and its tables and bounds against the law."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from keepsum.sampling.core.balls import precision
from keepsum.sampling.core.kernel_arguments import OutFloats
from keepsum.sampling.core.rng import LazyUniform, rng
from keepsum.sampling.l1 import sum_laws
from keepsum.sampling.l1.kernel_arguments import SumTables
from keepsum.sampling.l1.sum_laws import SumLaw, _by_series, _Transform, chernoff, powers_below, sum_tables
from sampling.probes import Probe
from support import mostly_audit

try_chances = Probe(("probe_sums", "double_geometric.c"), "try_chances", SumTables, int, int, OutFloats)


def chances(sums, total):
    """The kernel's bounds on the chance of a sum by the first law."""
    bounds = np.empty(2)
    try_chances(sums, 0, int(total), bounds)
    return bounds.tolist()


def by_convolution(size, epsilon, reach):
    """p_n(t) / p_n(0) for t = 0, 1, ... to 40 digits: noise cut off where it is below 10^-60."""
    with localcontext(prec=60):
        rate = (-Decimal(epsilon.numerator) / epsilon.denominator).exp()
        far = int(140 / float(epsilon))
        cell = [rate ** abs(z) for z in range(-far, far + 1)]
        law = cell
        for _ in range(size - 1):
            law = [
                sum((law[i] * cell[t - i] for i in range(max(0, t - 2 * far), min(t + 1, len(law)))), Decimal(0))
                for t in range(len(law) + 2 * far)
            ]
        middle = len(law) // 2
        return [law[middle + t] / law[middle] for t in range(reach)]


@pytest.mark.parametrize(("size", "epsilon"), [(1, "1/2"), (2, "1"), (3, "2"), (4, "3"), (6, "5")])
def test_both_formulas_against_convolution(size, epsilon):
    expected = by_convolution(size, Fraction(epsilon), 20)
    with precision(200):
        series = _by_series(size, Fraction(epsilon), range(20))
        transform = _Transform(size, Fraction(epsilon), 20, 200)
        for t, exact in enumerate(expected):
            for found in (series[t], transform.ratio(t)):
                assert abs(found - arb(str(exact))) < 1e-35


@mostly_audit("size", [2, 9, 33, 100])
@pytest.mark.parametrize("epsilon", ["1/30", "1/4", "1", "4"])
def test_the_formulas_agree(size, epsilon):
    """Two derivations to 30 digits, sums near and far."""
    epsilon = Fraction(epsilon)
    farthest = int(10 * np.sqrt(size) / float(epsilon)) + 20
    totals = [0, 1, 2, size - 1, size, size + 1, farthest // 3, farthest]
    with precision(4_000):
        series = _by_series(size, epsilon, totals)
    with precision(160):
        for t, exact in zip(totals, series, strict=True):
            found = _Transform(size, epsilon, t, 160).ratio(t)
            assert found.overlaps(exact)
            assert found.rad() < 1e-30


def all_chances(law, totals):
    sums = sum_tables([law.size], law.epsilon)
    return [chances(sums, t) for t in totals]


def enclosed(law, bounds, totals):
    with precision(200):
        ratios = [law.ratio(t) for t in totals]
        return [low <= ratio <= high for (low, high), ratio in zip(bounds, ratios, strict=True)]


LAWS = [(1, "1/4"), (1, "1/300"), (2, "1/300"), (4, "1/1000"), (8, "1"), (9, "1/4"), (32, "1/100"), (64, "1/20")]


@mostly_audit(("size", "epsilon"), [*LAWS, (2**12, "1/4"), (2**16, "1"), (2**19, "1/2"), (1000, "20")])
def test_tables_enclose_the_law(size, epsilon):
    """Sums at, beside and between the points of a table, on both sides, and behind its end."""
    law = SumLaw(size, Fraction(epsilon))
    stride, end = 2**law.stride_bits, (len(law.values) - 1) * 2**law.stride_bits
    places = np.unique(np.linspace(0, len(law.values) - 2, 12).astype(int))
    totals = sorted({int(p) * stride + q for p in places for q in (0, 1, stride // 2, stride - 1)})
    totals += [-totals[-1], end - 1, end, end + 1, 2 * end]
    assert all(enclosed(law, all_chances(law, totals), totals))
    assert law.error < 1e-4
    assert law.values[-1] < 2.0**-24


@pytest.mark.parametrize(("size", "epsilon"), [(2**14, "1/4"), (64, "1/80")])
def test_a_bound_on_interpolation_a_fifth_as_large_is_seen(size, epsilon):
    law = SumLaw(size, Fraction(epsilon))
    assert law.stride_bits
    middle = [2**law.stride_bits * k + 2 ** (law.stride_bits - 1) for k in range(40)]
    values = [(low + high) / 2 for low, high in all_chances(law, middle)]
    bounds = [(value - law.error / 5, value + law.error / 5) for value in values]
    assert not all(enclosed(law, bounds, middle))


def test_a_table_of_another_size_is_seen():
    law = SumLaw(16, Fraction(1, 4))
    bounds = all_chances(SumLaw(17, Fraction(1, 4)), range(20))
    assert not any(enclosed(law, bounds[1:], range(1, 20)))


@pytest.mark.parametrize("size", [1, 3, 20])
@pytest.mark.parametrize("epsilon", ["1/4", "2"])
def test_chernoff_is_a_bound(size, epsilon):
    """Of the tail, whose terms the closed form gives, and no worse than a thousand times what it bounds."""
    epsilon = Fraction(epsilon)
    far = int(400 / float(epsilon))
    with precision(2_000):
        masses = _by_series(size, epsilon, range(far))
        whole = 2 * sum(masses, arb(0)) - masses[0]
        for total in (1, 5, 30):
            tail = sum(masses[total:], arb(0)) / whole
            bound = chernoff(size, epsilon, total)
            assert tail < bound < 1_000 * tail


def test_cancelling_digits_are_made_up_for():
    """At small epsilon the terms of the closed form cancel: the table of 8 cells at 1e-4 has all its digits."""
    law = SumLaw(8, Fraction(1, 10**4))
    totals = [2**law.stride_bits * k for k in (0, 1, 100, len(law.values) - 1)]
    with precision(2_000):
        exact = [float(law.ratio(t).mid()) for t in totals]
    assert np.allclose(law.values[[0, 1, 100, -1]], exact, rtol=1e-14, atol=0)


def test_powers_below():
    assert [powers_below(n) for n in (1, 2, 3, 4, 5, 9)] == [[], [1], [1, 2], [1, 2], [1, 2, 4], [1, 2, 4, 8]]


def test_the_tables_of_a_plan_stay_small():
    """Every law has some thousands of values at most, whatever epsilon and the size are."""
    for size, epsilon in [(1, "1/10000"), (2, "1/10000"), (2**20, "1/10000"), (2**20, "1"), (2**8, "1/1000")]:
        assert len(sum_laws.sum_law(size, Fraction(epsilon)).values) < 10_000


@pytest.mark.parametrize("size", [1, 8, 16, 1000])
@pytest.mark.parametrize("epsilon", ["1/10000", "1", "20"])
def test_sums_at_0_and_far_out_are_settled_without_being_computed(size, epsilon, monkeypatch):
    """The ratio at 0 is 1, and beyond any table it is 0 to all digits that are asked for: no transform, no series."""
    law = SumLaw(size, Fraction(epsilon))
    monkeypatch.setattr(sum_laws, "_Transform", None)
    monkeypatch.setattr(sum_laws, "_by_series", None)
    assert law.accept(0, LazyUniform(rng(seed=1).stream(8), 2**52 - 1, 52)) == 1
    for total in (10**9, -(10**12)):
        assert law.accept(total, LazyUniform(rng(seed=1).stream(8), 1, 52)) == 0
        assert law.accept(total, LazyUniform(rng(seed=1).stream(8), 0, 52)) == 0


@pytest.mark.parametrize(
    ("size", "epsilon"),
    [(1, "1/4"), (3, "2"), pytest.param(16, "1/20", marks=pytest.mark.audit), (1000, "1"), (5, "50")],
)
def test_what_is_not_computed_is_enclosed(size, epsilon):
    """Around where the bound sets in, at several precisions: the ball holds the ratio, computed with more digits."""
    law = SumLaw(size, Fraction(epsilon))
    for bits in (64, 116, 232):
        total = 1
        with precision(bits):
            while (rough := law.ratio(total)).rad() < rough.mid() / 2:  # until it comes from a bound
                total += 1 + total // 4
        with precision(6_000):
            assert rough.contains(_by_series(size, law.epsilon, [total])[0])

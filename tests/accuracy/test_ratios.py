"""Intervals of differences, ratios and shares: by coverage, and at their limits."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

import keepsum as ks
from keepsum.accuracy.noise import Ratio, _simple
from keepsum.accuracy.queries import as_weights
from support import mostly_audit

AXES = {"county": list("ABCDE"), "sex": ["f", "m"]}
COUNTS = [[150, 90], [40, 80], [300, 210], [25, 20], [60, 75]]
PART, WHOLE = {"county": ["A", "B"], "sex": "f"}, {"county": ["A", "B", "C"]}


def intervals(kept, mechanism, runs, ask):
    """The intervals of many releases of one table."""
    table = ks.Table.from_array(COUNTS, axes=AXES)
    return [ask(ks.release(table, keep=kept, mechanism=mechanism, rng=ks.rng(seed=seed))) for seed in range(runs)]


CASES = {
    "nothing kept": ([], ks.Laplace.per_unit(epsilon="0.2")),
    "total kept": ([[]], ks.Laplace.per_unit(epsilon="0.2")),
    "nothing kept, Gaussian": ([], ks.Gaussian(sigma=6)),
    "counties kept": (["county"], ks.Laplace.per_unit(epsilon="0.2")),
    "both kept": (["county", "sex"], ks.Laplace.per_unit(epsilon="0.2")),
}


QUICK = ["nothing kept, Gaussian", "counties kept", "both kept"]


@mostly_audit(
    ("kept", "mechanism", "runs"),
    [
        *(pytest.param(*CASES[name], 50, id=f"{name}-50") for name in QUICK),
        *(pytest.param(*CASES[name], 120, id=f"{name}-120", marks=pytest.mark.audit) for name in CASES),
    ],
)
def test_shares_and_differences_cover_their_level(kept, mechanism, runs):
    """90% of the releases at an error rate of 1e-6; and they are not absurdly long."""
    found = intervals(
        kept,
        mechanism,
        runs,
        lambda release: (
            release.share(PART, WHOLE, 0.9),
            release.difference({"county": "A"}, {"county": "C", "sex": "m"}, 0.9),
            release.ratio({"sex": "f"}, {"sex": "m"}, 0.9),
        ),
    )
    for k, true in enumerate((190 / 870, 30, 575 / 475)):
        inside = sum(low <= true <= high for low, high in (each[k] for each in found))
        assert stats.binom.cdf(inside, runs, 0.9) > 1e-6
        widths = [high - low for low, high in (each[k] for each in found)]
        if max(widths) > 1e-9:  # kept exactly otherwise
            middles = np.array([(low + high) / 2 for low, high in (each[k] for each in found)])
            assert np.mean(widths) < 2.7 * 2 * middles.std()  # 1.64 if it were a normal law


@pytest.mark.audit
def test_an_interval_that_ignores_the_denominator_covers_less():
    found = intervals(
        [],
        ks.Laplace.per_unit(epsilon="0.1"),
        100,
        lambda release: (
            release.ratio({"county": "D"}, {"county": "E"}, 0.9),
            tuple(x / sum(release.unbiased.counts[8:10].tolist()) for x in release.interval({"county": "D"}, 0.9)),
        ),
    )
    ours, naive = (sum(low <= 45 / 135 <= high for low, high in (each[k] for each in found)) for k in (0, 1))
    assert stats.binom.cdf(ours, 100, 0.9) > 1e-6
    assert naive < ours


def test_steps_are_shorter_than_the_box_and_hold_for_a_known_law():
    """Two independent Gaussians: the exact interval of Fieller is known."""
    sigma = 20.0

    def reach(q: int, p: int, level: float) -> int:
        return math.ceil(stats.norm.ppf((1 + level) / 2) * sigma * math.hypot(q, p))

    low, high = Ratio(4_000, 2_000, reach, 0.95).interval()
    z = stats.norm.ppf(0.975) * sigma
    a, b, c = 2_000**2 - z**2, -2 * 2_000 * 4_000, 4_000**2 - z**2
    exact = [(-b + s * math.sqrt(b * b - 4 * a * c)) / (2 * a) for s in (-1, 1)]
    assert low <= exact[0]
    assert high >= exact[1]
    assert high - low < 1.06 * (exact[1] - exact[0])
    ratio = Ratio(4_000, 2_000, reach, 0.95)
    box = ratio._box(*ratio._reaches())
    assert box[1] - box[0] > 1.2 * (exact[1] - exact[0])


@mostly_audit("true", [(12, 2), (3, 4), (0, 2)], ids=str)
def test_ratios_of_small_counts_cover_in_the_enumerated_law(true):
    """Two independent cells, all noise that is likely at all: also where the denominator may be 0."""
    plan = ks.plan(keep=ks.Invariants.subsets(2, []), mechanism=ks.Laplace.per_unit(epsilon="0.7"))
    exact = plan.noise.combined_reach(*(as_weights(cell, plan.invariants) for cell in (0, 1)))
    reach = cache(exact)
    sides = range(-13, 14)
    inside = naive = useful = 0.0
    for n in sides:
        for d in sides:
            chance = plan.noise.pmf(0, n) * plan.noise.pmf(1, d)
            ratio = Ratio(true[0] + n, true[1] + d, reach, 0.8, positive=True)
            low, high = ratio.interval()
            inside += chance * (low <= true[0] / true[1] <= high)
            top, bottom = ratio._reaches()
            if abs(ratio.denominator) <= bottom:
                assert high == math.inf
                useful += chance * (low > 0)
                low = max(0, ratio.numerator - top) / max(1, ratio.denominator)  # as if the denominator had no noise
            naive += chance * (low <= true[0] / true[1] <= high)
    assert inside >= 0.8
    if true == (12, 2):
        assert naive < 0.8
        assert useful > 0.3


def test_limits():
    table = ks.Table.from_array(COUNTS, axes=AXES)
    release = ks.release(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon="0.01"), rng=ks.rng(seed=1))
    low, high = release.share({"county": "D", "sex": "f"}, {"county": "D"})
    assert (low, high) == (0.0, 1.0)  # noise far larger than the counts
    assert release.ratio({"county": "A"}, {"county": "B"}) == (2.0, 2.0)  # both kept
    assert release.difference({"county": "A"}, {"county": "B"}) == (120, 120)
    assert release.share({"county": "A"}, {}) == pytest.approx((240 / 1050, 240 / 1050))
    low, high = release.ratio({"county": "A"}, {"county": "D", "sex": "f"})  # its noise is far larger than the 25 in it
    assert 0.1 < low < 240 / 25
    assert high == math.inf
    assert release.ratio({"county": "D", "sex": "f"}, {"county": "D", "sex": "m"}) == (0.0, math.inf)
    minus = [1, -1, *[0] * 8]
    assert release.ratio({"county": "A"}, minus) == (-math.inf, math.inf)
    with pytest.raises(ks.InputError, match="cells of the whole"):
        release.share({"county": "A"}, {"sex": "f"})
    for level in (0, 1, "x"):
        with pytest.raises(ks.InputError, match="Level"):
            release.ratio({"county": "A"}, {"county": "B"}, level)


def test_simple_fractions():
    assert _simple(Fraction(314, 100), Fraction(315, 100)) == Fraction(22, 7)
    assert _simple(Fraction(-1, 3), Fraction(1, 5)) == 0
    assert _simple(Fraction(-7, 2), Fraction(-10, 3)) == Fraction(-7, 2)
    assert _simple(Fraction(1, 3), Fraction(1, 3)) == Fraction(1, 3)
    assert _simple(Fraction(5, 2), Fraction(4)) == 3

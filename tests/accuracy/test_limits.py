"""Margins of error at the limits: of levels, of widths, of memory and of what is known at all."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy import simulation
from keepsum.accuracy.cell_noise import GaussianCells, LaplaceCells, free_variance, sum_variance
from keepsum.accuracy.noise import LARGEST_FACTOR, Ratio
from keepsum.accuracy.queries import Piece
from keepsum.accuracy.query_laws import BoundLaw, RegionPiece, sum_law
from keepsum.planning.selection import choice
from test_arguments import check_message

TABLE = [range(3), range(3, 6), range(6, 9), range(0, 9, 3), range(1, 9, 3), range(2, 9, 3)]


def two_way(size: int = 9) -> ks.Invariants:
    return ks.Invariants.subsets(size, TABLE)


def test_ratios_of_noise_that_is_mostly_0_cover_their_level():
    """Each margin is 0 at the level, but both together are not: exactly, over all noise that matters."""
    noise = ks.plan(keep=ks.Invariants.subsets(3, [[0]]), mechanism=ks.Laplace.per_unit(epsilon="3.7")).noise
    reach, covered, chances = noise.combined_reach(1, 2), 0.0, [noise.pmf(1, k) for k in range(-6, 7)]
    for a, first in enumerate(chances, -6):
        for b, second in enumerate(chances, -6):
            low, high = Ratio(50 + a, 70 + b, reach, 0.95).interval()
            covered += first * second * (low <= 50 / 70 <= high)
    assert noise.interval(1) == (0, 0)
    assert covered >= 0.95


def test_what_is_kept_needs_no_share_of_what_may_go_wrong():
    noise = ks.plan(keep=two_way(10), mechanism=ks.Laplace.per_unit(epsilon=1)).noise
    assert noise.keeps([1, 1, 1] + [0] * 7)
    assert not noise.keeps(0)
    assert not noise.keeps(9)  # a free cell


@pytest.mark.parametrize("keep", [[[]], ["a"], ["a", "b"]])
def test_ratios_and_high_levels_of_noise_that_can_only_be_simulated(keep):
    table = ks.Table.from_array(
        [[150, 90, 70], [40, 80, 60], [300, 210, 90]], axes={"a": list("xyz"), "b": list("pqr")}
    )
    release = ks.release(table, keep=keep, mechanism=ks.Laplace.per_unit(1, norm="l2"), rng=ks.rng(seed=2))
    low, high = release.ratio({"a": "x", "b": "p"}, {"a": "z", "b": "q"})
    assert 0.5 < low <= 150 / 210 <= high < 1
    assert release.noise.interval(0, 0.9999)[1] > release.noise.interval(0, 0.99)[1]


def test_samplers_read_streams_of_their_own():
    """Two tables that differ by a column: from one stream, their first cells would get the same noise."""
    rows, first = [], 0
    for n, m in ((40, 40), (40, 41)):
        rows += [[first + i * m + j for j in range(m)] for i in range(n)]
        rows += [[first + i * m + j for i in range(n)] for j in range(m)]
        first += n * m
    blocks = ks.plan(keep=ks.Invariants.subsets(first, rows), mechanism=ks.Gaussian(sigma=10))._record.blocks
    one, other = (simulation.simulated(blocks, choice) for choice in blocks.choices)
    assert one is not None
    assert other is not None
    assert not np.array_equal(one[0, :8], other[0, :8])
    same = simulation.simulated(blocks, blocks.choices[0])
    assert same is one  # once for a plan


def test_margins_do_not_depend_on_what_was_asked_before():
    alone, later = (ks.plan(keep=two_way(), mechanism=ks.Laplace.per_unit(epsilon="0.1", norm="l2")) for _ in range(2))
    later.accuracy(0.9999)
    assert later.accuracy(0.99).draws == alone.accuracy(0.99).draws
    assert later.accuracy(0.99).margins.tolist() == alone.accuracy(0.99).margins.tolist()


@pytest.mark.parametrize("sigma", ["0.02", *(pytest.param(sigma, marks=pytest.mark.audit) for sigma in ("0.1", "0.2"))])
def test_gaussian_noise_that_is_all_but_0(sigma):
    plan = ks.plan(keep=ks.Invariants.subsets(1002, [range(1000)]), mechanism=ks.Gaussian(sigma=sigma))
    query = [1, 1, 2, 2, 2] + [0] * 995 + [3, 0]
    assert plan.noise.law(query).basis == "exact"
    assert plan.noise.interval(query) == (0, 0)
    assert plan.accuracy(0.9, simultaneous=True).margins.max() == 0
    block = ks.plan(keep=two_way(), mechanism=ks.Gaussian(sigma=sigma)).noise
    assert block.interval(0, 1 - 1e-9)[1] <= 2  # by a bound


def test_the_bound_of_gaussian_noise_is_the_best_of_its_kind():
    bound = BoundLaw(1, [(RegionPiece(Piece(4, ((1, 1),)), GaussianCells(100.0)), 1)], 7500.0)
    assert bound.end(8.0) == pytest.approx((2 * 8.0 * 7500) ** 0.5)


@pytest.mark.parametrize("cell", [GaussianCells(9999.0), pytest.param(LaplaceCells(1e-4), marks=pytest.mark.audit)])
def test_few_cells_of_a_large_region_take_little_memory(cell):
    tracemalloc.start()
    law = sum_law([(RegionPiece(Piece(10**6, ((1, 2),)), cell), 1)], 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3e8
    assert law.basis == "exact"
    free = sum_law([(RegionPiece(Piece(10**4, ((1, 2),)), cell), 1)], 1)
    assert law.reach(0.95) == pytest.approx(free.reach(0.95), rel=1e-3)


@pytest.mark.audit
def test_the_variance_of_wide_noise_is_that_of_the_totals():
    assert sum_variance(10**6, 1e-4) == pytest.approx(free_variance(1e-4) * (1 - 1e-6), rel=1e-5)
    assert sum_variance(101, 1.001e-4) == pytest.approx(sum_variance(101, 1e-4) * (1 / 1.001) ** 2, rel=1e-7)


@pytest.mark.parametrize("level", [0.9999, 0.999999])
@pytest.mark.parametrize("size", [9, 11])
def test_simultaneous_margins_at_high_levels(size, level):
    found = ks.plan(keep=two_way(size), mechanism=ks.Laplace.per_unit(epsilon=1)).accuracy(level, simultaneous=True)
    assert 3 <= found.margins.max() < 25
    assert (found.basis == "estimated") == (level < 0.99999)


def test_levels_that_are_too_high():
    computed = ks.plan(keep=ks.Invariants.subsets(4, [range(3)]), mechanism=ks.Laplace.per_unit(epsilon=1))
    simulated = ks.plan(keep=two_way(), mechanism=ks.Laplace.per_unit(epsilon=1, norm="l2"))
    pair = ks.plan(keep=ks.Invariants.subsets(2, [range(2)]), mechanism=ks.Laplace.per_unit(epsilon=3))
    assert pair.accuracy(1 - 2e-9).typical == 3  # 2 exp(-6 * 4) / (1 + exp(-6)) is beyond
    for ask in (
        lambda: pair.accuracy(1 - 1e-9),
        lambda: computed.accuracy(1 - 1e-9, simultaneous=True),
        lambda: computed.noise.quantile(0, 1e-9),
        lambda: simulated.accuracy(1 - 1e-9),
        lambda: simulated.noise.interval(0, 1 - 1e-9),
    ):
        with pytest.raises(ks.InputError, match="Level must be") as caught:
            ask()
        check_message(caught.value)
    wide = ks.plan(keep=ks.Invariants.subsets(4, [range(3)]), mechanism=ks.Gaussian(sigma=20000))
    assert wide.accuracy(1 - 2e-16).typical < 9 * 20000
    assert "99.99999%" in str(wide.accuracy(1 - 1e-7))


def test_shares_of_what_may_go_wrong_may_be_smaller_than_a_computed_law_is_precise(monkeypatch):
    monkeypatch.setattr(simulation, "MOST_EFFORT", 0)
    found = ks.plan(keep=two_way(100), mechanism=ks.Laplace.per_unit(epsilon=1)).accuracy(1 - 1e-8, simultaneous=True)
    assert found.basis == "conservative"
    assert 20 < found.margins[50] < 40


def test_covariances_are_not_taken_from_bounds(monkeypatch):
    noise = ks.plan(keep=two_way(11), mechanism=ks.Laplace.per_unit(epsilon=1)).noise
    assert noise.covariance(0, 1) < 0
    monkeypatch.setattr(simulation, "MOST_EFFORT", 0)
    with pytest.raises(ks.InputError, match="conservative") as caught:
        noise.covariance(0, 1)
    check_message(caught.value)
    assert noise.covariance(9, 10) == pytest.approx(0, abs=1e-9)
    assert noise.law(0).variance > 0


def test_weights_with_which_noise_does_not_fit_64_bits():
    plan = ks.plan(keep=two_way(), mechanism=ks.Laplace.per_unit(epsilon="1e-11", norm="l2"))
    with pytest.raises(ks.InputError, match="Scale it down") as caught:
        plan.noise.interval([2**31] * 2 + [0] * 7)
    check_message(caught.value)


def test_ratios_take_no_steps_that_do_not_fit_64_bits():
    asked = []

    def reach(q: int, p: int, level: float) -> int:
        asked.append(max(abs(q), abs(p)))
        return 5 * abs(q) + 5 * abs(p)

    low, high = Ratio(10**18, 1000, reach, 0.95).interval()
    assert low < 10**15 < high
    assert max(asked) <= LARGEST_FACTOR


@pytest.mark.parametrize("value", [1.5, float("nan"), "x", None, True])
def test_values_that_are_not_whole(value):
    noise = ks.plan(keep=ks.Invariants.subsets(4, [range(3)]), mechanism=ks.Laplace.per_unit(epsilon=1)).noise
    for ask in (noise.pmf, noise.cdf):
        with pytest.raises(ks.InputError, match="whole number") as caught:
            ask(0, value)
        check_message(caught.value)


def test_noise_that_nothing_draws():
    """Its law would take more memory than there is, or divide by 0."""
    for mechanism in (ks.Laplace.per_unit(epsilon="1e-9"), ks.Laplace.per_unit(epsilon=800), ks.Gaussian(sigma=10**9)):
        plan = ks.plan(keep=ks.Invariants.subsets(4, [range(3)]), mechanism=mechanism)
        for ask in (plan.accuracy, lambda plan=plan: plan.noise.interval(0), lambda plan=plan: plan.noise.variance(0)):
            with pytest.raises(ks.InputError, match="must be from") as caught:
                ask()
            check_message(caught.value)
    for kind, low, high in (("laplace-l1", "1/10000", "50"), ("gaussian", "1/50", "100000000")):
        assert choice.out_of_range(kind, Fraction(low), Fraction(high)) is None
        for outside in (Fraction(low) * Fraction("0.999"), Fraction(high) * Fraction("1.001")):
            reason = choice.out_of_range(kind, Fraction(1), outside)
            assert (reason.lowest, reason.highest) == (low, high)
    assert choice.out_of_range("laplace-l2", Fraction(1, 10**9)) is None

"""Laws of cells and totals under a focus, against enumeration, and margins of error that follow from them."""

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy import simulation
from keepsum.accuracy.block_laws import FocusedNoise
from keepsum.accuracy.margins import accuracy as cell_accuracy
from keepsum.accuracy.query_laws import BoundLaw, ExactLaw
from keepsum.accuracy.sums import SumPieces, sum_accuracy

PLACES = ks.Domain({"state": ["A", "B"], "county": {"A": ["a", "b"], "B": ["c", "d"]}}, within={"county": "state"})
PAIRS = ks.Domain({"county": ["a", "b"], "sex": ["f", "m"]})
BOX = np.indices((31,) * 4).reshape(4, -1).T - 15
CASES = [
    (PLACES, [], {"state": "1/2", (): "1/3"}),
    (PLACES, [[]], {"state": "1/2"}),
    (PAIRS, [], {("county", "sex"): 1, "county": "1/3"}),
]
COUNTIES = ks.Domain(
    {"state": ["s"], "county": {"s": [f"c{k}" for k in range(62)]}, "cell": list(range(20))}, within={"county": "state"}
)


def plan_of(domain, keep, focus, epsilon=1):
    return ks.plan(domain, keep=keep, mechanism=ks.Laplace.per_unit(epsilon, focus=focus))


@pytest.mark.parametrize(("domain", "keep", "focus"), CASES)
def test_laws_of_queries_are_those_of_enumeration(domain, keep, focus):
    plan = plan_of(domain, keep, focus)
    chances = np.exp(plan.noise.log_pmf(BOX, constant=False))
    chances /= chances.sum()
    for query in ([1, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1], [1, 0, 0, 0], [0, -3, 0, 0]):
        law = plan.noise.law(query)
        assert isinstance(law, ExactLaw)
        values = BOX @ np.array(query)
        assert law.variance == pytest.approx(float(chances @ values**2), rel=1e-4, abs=1e-12)
        for value in range(-6, 7):
            assert law.pmf(value) == pytest.approx(float(chances[values == value].sum()), abs=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "focus", "state", "county", "cell"),
    [
        ("0.5", None, 98.6, 12.5, 2.8),
        ("0.3", {"state": "0.1", "county": "0.1"}, 13.6, 10.0, 4.5),
        ("1/6", {"state": "1/6", "county": "1/6"}, 8.3, 7.8, 8.0),
        ("1/4", {"county": "1/4"}, 41.8, 5.3, 5.3),
    ],
)
def test_figures_of_a_state_with_62_counties_of_20_cells(epsilon, focus, state, county, cell):
    noise = plan_of(COUNTIES, [], focus, epsilon).noise
    found = [noise.variance(query) ** 0.5 for query in ({"state": "s"}, {"county": "c3"}, 0)]
    assert [round(deviation, 1) for deviation in found] == [state, county, cell]


@pytest.mark.audit
def test_some_cells_of_a_total_have_a_known_law():
    plan = plan_of(COUNTIES, [], {"state": "0.1", "county": "0.1"}, "0.3")
    query = {"county": "c3", "cell": [0, 1, 2]}
    drawn = plan.sample(20_000, ks.rng(seed=4)).reshape(-1, 62, 20)[:, 3, :3].sum(axis=1)
    law = plan.noise.law(query)
    assert law.basis == "exact"
    assert law.variance == pytest.approx(float((drawn**2).mean()), rel=0.05)
    for one, other in (((0,), (1,)), ((0,), tuple(range(1, 20)))):  # all cells of the total are its sum
        parts = [{"county": "c3", "cell": list(cells)} for cells in (one, other)]
        both = {"county": "c3", "cell": [*one, *other]}
        total = sum(plan.noise.variance(part) for part in parts) + 2 * plan.noise.covariance(*parts)
        assert total == pytest.approx(plan.noise.variance(both), rel=0.05)


def test_independent_totals_are_added_up():
    plan = plan_of(COUNTIES, [], {"county": "0.1"}, "0.3")
    one, both = plan.noise.law({"county": "c1"}), plan.noise.law({"county": ["c1", "c2"]})
    assert both.basis == "exact"
    assert both.variance == pytest.approx(2 * one.variance)
    masses = np.concatenate([one.masses[:0:-1], one.masses])
    wanted = np.convolve(masses, masses)[2 * len(one.masses) - 2 :]
    np.testing.assert_allclose(both.masses[:50], wanted[:50], atol=1e-12)


def test_other_sums_are_estimated_or_bounded_and_say_so():
    plan = plan_of(COUNTIES, [[]], {"county": "0.1"}, "0.3")
    law = plan.noise.law({"cell": 3})
    assert law.basis == "estimated"
    bound = law.bound()
    assert isinstance(bound, BoundLaw)
    assert bound.reach(0.95) >= law.reach(0.95)
    assert bound.variance >= law.variance


def test_moments_of_pieces_are_bounded():
    plan = plan_of(PLACES, [], {"state": "1/2"})
    (piece,) = FocusedNoise.of(plan._record.blocks).pieces(plan.noise._weights({"state": "A"}))
    places = np.arange(-400, 401)
    chances = np.exp(-np.abs(places) / 2) * np.convolve(np.exp(-np.abs(places)), np.exp(-np.abs(places)), mode="same")
    tilts = np.array([0.1, 0.5, 1.0, 0.97 * piece.largest_tilt])
    exact = [np.log((chances * np.exp(tilt * places)).sum() / chances.sum()) for tilt in tilts]
    bounds = piece.log_moments(tilts)
    assert (bounds >= np.array(exact) - 1e-9).all()
    np.testing.assert_allclose(bounds[:2], exact[:2], rtol=1e-4)
    assert np.isinf(piece.log_moments(np.array([piece.largest_tilt])))


def test_margins_of_cells_totals_and_all_at_once():
    plan = plan_of(COUNTIES, [], {"state": "0.1", "county": "0.1"}, "0.3")
    accuracy = plan.accuracy()
    assert accuracy.basis == "exact"
    assert set(accuracy.margins.tolist()) == {plan.noise.interval(0)[1]}
    assert [level.axes for level in accuracy.levels] == [("state",), ("county",)]
    for level, query in zip(accuracy.levels, ({"state": "s"}, {"county": "c0"}), strict=True):
        assert level.accuracy.basis == "exact"
        assert set(level.accuracy.margins.tolist()) == {plan.noise.interval(query)[1]}
    assert str(accuracy) == "typical 95% margin of error ±9 per cell; ±29 per total of state; ±21 per total of county"
    together = plan.accuracy(simultaneous=True)
    drawn = np.abs(plan.sample(2000, ks.rng(seed=5))).max(axis=1)
    assert together.basis == "estimated"
    assert (drawn <= together.margins[0]).mean() > 0.93


def test_sums_of_a_margin_are_those_asked_alone():
    table = ks.Table(COUNTIES, np.zeros(COUNTIES.size, dtype=np.int64))
    release = ks.release(
        table, keep=[], mechanism=ks.Laplace.per_unit("0.3", focus={"county": "0.1"}), rng=ks.rng(seed=1)
    )
    counties, cells = release.marginal(["county"]), release.marginal(["cell"])
    assert counties.accuracy().margins[5] == release.noise.interval({"county": "c5"})[1]
    assert counties.deviations[5] ** 2 == pytest.approx(release.noise.variance({"county": "c5"}))
    assert cells.accuracy().basis == "exact"
    kept = ks.release(
        table, keep=[[]], mechanism=ks.Laplace.per_unit("0.3", focus={"county": "0.1"}), rng=ks.rng(seed=1)
    ).marginal(["cell"])
    assert kept.accuracy().basis == "estimated"
    assert kept.deviations[3] ** 2 == pytest.approx(cells.deviations[3] ** 2, rel=0.2)


def test_sums_alike_under_a_focus_are_one_kind():
    counties = {"A": ["a", "b"], "B": ["c", "d"], "C": ["e", "f", "g"]}
    domain = ks.Domain({"state": list(counties), "county": counties}, within={"county": "state"})
    plan = plan_of(domain, [], {"state": "1/2"})
    sums, focused = domain.marginal_index(("state",)), FocusedNoise.of(plan._record.blocks)
    outside = SumPieces.find(plan._record.blocks.noise_structure, sums, 3)
    pieces = outside.with_focused(focused.pieces_of_sums(sums, 3))
    assert pieces.focus_known
    assert pieces.of_sum.tolist() == [0, 0, 1]  # the third state has more cells
    assert [len(kind) for kind in pieces.kinds] == [1, 1]
    assert not outside.with_focused([{}, None, {}]).focus_known


def test_margins_of_totals_at_once_divide_what_may_go_wrong_where_nothing_is_simulated(monkeypatch):
    plan = plan_of(COUNTIES, [[]], {"county": "0.1"}, "0.3")
    sums = COUNTIES.marginal_index(("cell",))
    drawn = sum_accuracy(plan._record.blocks, sums, 20, 0.95, simultaneous=True)
    assert drawn.basis == "estimated"
    monkeypatch.setattr(simulation, "MOST_EFFORT", 0)
    other = plan_of(COUNTIES, [[]], {"county": "0.1"}, "0.3")
    bounded = sum_accuracy(other._record.blocks, sums, 20, 0.95, simultaneous=True)
    assert bounded.basis == "conservative"
    assert (bounded.margins >= drawn.margins).all()


def test_shares_of_what_may_go_wrong_may_be_smaller_than_a_computed_law_under_a_focus_is_precise(monkeypatch):
    monkeypatch.setattr(simulation, "MOST_EFFORT", 0)
    blocks = plan_of(COUNTIES, [], {"county": "0.1"}, "0.3")._record.blocks
    margins = [cell_accuracy(blocks, level, simultaneous=True) for level in (0.95, 1 - 1e-8)]
    assert [found.basis for found in margins] == ["conservative", "conservative"]
    assert 20 < margins[0].margins[0] < margins[1].margins[0] < 120


def test_the_logarithm_of_a_chance_contains_the_focus():
    plan = plan_of(PLACES, [[]], {"state": "1/2"})
    assert plan.noise.log_pmf([1, 0, -1, 0], constant=False) == pytest.approx(-3)
    assert plan.noise.log_pmf([1, -1, 0, 0], constant=False) == pytest.approx(-2)
    assert plan.noise.log_pmf([1, 0, 0, 0], constant=False) == -np.inf


@pytest.mark.parametrize(("domain", "keep", "focus"), CASES)
def test_chances_of_all_noise_add_up_to_one(domain, keep, focus):
    plan = plan_of(domain, keep, focus)
    logs = plan.noise.log_pmf(BOX)
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-5)
    assert np.exp(logs[BOX[:, 0] == 1]).sum() == pytest.approx(plan.noise.pmf(0, 1), abs=1e-6)


def test_chances_of_all_noise_where_a_focus_concerns_some_regions_only():
    """The total of county c is kept: its cells have noise, to which the focus adds nothing."""
    domain = ks.Domain({"county": ["a", "b", "c"], "sex": ["f", "m"]})
    kept = ks.Invariants.subsets(6, [[0, 1, 2, 3], [4, 5]]).over(domain)
    noise = ks.plan(keep=kept, mechanism=ks.Laplace.per_unit(1, focus={"county": "1/2"})).noise
    a, b, c, d = (np.indices((31,) * 4) - 15).reshape(4, -1)
    vectors = np.stack([a, b, c, -a - b - c, d, -d], axis=1)
    assert np.exp(noise.log_pmf(vectors)).sum() == pytest.approx(1, abs=1e-5)
    assert noise.log_pmf([0, 0, 0, 0, 1, 0]) == -np.inf


def test_a_constant_is_not_known_where_there_is_no_sampler():
    plan = plan_of(PLACES, [], {"state": "1/100000"})
    with pytest.raises(ks.InputError, match="constant=False"):
        plan.noise.log_pmf([0, 0, 0, 0])


@pytest.mark.parametrize("keep", [[], [["a"]]])
def test_totals_that_cross_are_simulated_and_kept_ones_have_no_noise(keep):
    """Variances of cells and totals against an enumeration of the law, within what so many draws allow."""
    domain = ks.Domain({"a": [0, 1], "b": [0, 1]})
    focus = {"b": "1/2"} if keep else {"a": "1/3", "b": "1/2"}
    plan = ks.plan(domain, keep=keep, mechanism=ks.Laplace.per_unit(1, focus=focus))
    weights = np.exp(plan.noise.log_pmf(BOX, constant=False))
    for query, vector in ((0, [1, 0, 0, 0]), ({"b": 1}, [0, 1, 0, 1]), ({"a": 0}, [1, 1, 0, 0])):
        law, true = plan.noise.law(query), float(weights @ (BOX @ vector) ** 2 / weights.sum())
        if keep and query == {"a": 0}:
            assert (law.variance, law.basis) == (0.0, "exact")
            continue
        assert law.basis == "estimated"
        assert law.variance == pytest.approx(true, rel=6 * (5 / law.draws) ** 0.5)
    found = plan.accuracy()
    assert [row.axes for row in found.levels] == [level.axes for level in plan.mechanism.focus]
    assert min(row.accuracy.margins.min() for row in found.levels) > 0
    assert plan.accuracy(simultaneous=True).margins.max() >= found.margins.max()
    totals = domain.marginal_index(("a",))
    assert (sum_accuracy(plan._record.blocks, totals, 2, 0.9, False).margins > 0).all() == (not keep)


@pytest.mark.parametrize(
    ("domain", "keep", "focus"), [*CASES, (PAIRS, [], {"county": 1, "sex": 1}), (PAIRS, [["sex"]], {"county": 1})]
)
def test_gaussian_queries_have_the_law_with_the_focus(domain, keep, focus):
    plan = ks.plan(domain, keep=keep, mechanism=ks.Gaussian.per_unit(rho="1/10", focus=focus))
    box = BOX[~(BOX @ plan.invariants.coefficients.toarray().T).any(axis=1)]
    exponent = 0.1 * (box**2).sum(axis=1)
    for level in plan.mechanism.focus:
        total = domain.marginal_index(level.axes)
        sums = np.stack([box[:, total == number].sum(axis=1) for number in set(total.tolist())], axis=1)
        exponent = exponent + float(level.weight) * (sums**2).sum(axis=1)
    chances = np.exp(-exponent) / np.exp(-exponent).sum()
    for query in ([1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0], [2, -1, 0, 1]):
        values = box @ np.array(query)
        variance, law = float(chances @ values**2), plan.noise.law(query)
        error = np.sqrt((chances @ values**4 - variance**2) / law.draws) if law.basis == "estimated" else 0.0
        assert law.variance == pytest.approx(variance, rel=1e-6, abs=6 * error)
        low, high = plan.noise.interval(query)
        true = next(m for m in range(100) if chances[np.abs(values) <= m].sum() >= 0.95)
        assert true <= high == -low <= true + 1

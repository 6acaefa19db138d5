"""The least loss for a margin of error: against every three-digit parameter, and against enumerated laws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy.choose import Candidates, Search, number_at, place_of
from keepsum.privacy.families import MechanismFamily
from support import margins, mostly_audit

STEP = 300  # places on each side that brute force looks at


def test_places_are_those_of_the_numbers_of_three_digits():
    listed = [Fraction(digits, 100) * Fraction(10) ** power for power in range(-3, 3) for digits in range(100, 1000)]
    assert [number_at(place) for place in range(-2700, 2700)] == listed
    assert [place_of(number) for number in listed] == list(range(-2700, 2700))
    assert place_of(Fraction(99999, 10**5)) == -1
    assert place_of(Fraction(10**12)) == 12 * 900
    assert place_of(Fraction(1, 10**12)) == -12 * 900


def steps(power: float, scale: float):
    """Margins that fall, or rise, with the parameter as those of noise do."""
    return lambda value: int(scale * float(value) ** power)


@pytest.mark.parametrize("power", [-1.0, -0.5, 1.0])
@pytest.mark.parametrize("scale", [0.003, 1.0, 47.3])
@pytest.mark.parametrize("target", [1, 7, 950])
@pytest.mark.parametrize("start", [Fraction(1, 4), Fraction(1, 10**6), Fraction(123456)])
def test_the_search_finds_what_brute_force_finds(power, scale, target, start):
    margin_at = steps(power, scale)
    found = Search(margin_at, target, start, power, "epsilon").answer()
    at = place_of(found.value)
    near = [number_at(place) for place in range(at - STEP, at + STEP)]
    good = [value for value in near if margin_at(value) <= target]
    assert 0 < len(good) < len(near)
    assert found.value == (min(good) if power < 0 else max(good))
    assert found.before == (number_at(at - 1 if power < 0 else at + 1), margin_at(found.before[0]))
    assert found.before[1] > target


def only_between(low: str, high: str, calls: list[Fraction] | None = None):
    """Margins 3/epsilon where there is noise; elsewhere there is none, as under totals that overlap."""

    def margin_at(value: Fraction) -> int:
        if calls is not None:
            calls.append(value)
        if not Fraction(low) <= value <= Fraction(high):
            raise ks.NoSamplerError("There is none here.")
        return int(3 / value)

    return margin_at


def test_the_search_stays_where_there_is_noise():
    """Too wide a noise has no sampler, then the first that has one is the answer; or too narrow a one has none."""
    calls: list[Fraction] = []
    found = Search(only_between("0.1", "2", calls), 10**9, Fraction(1), -1.0, "epsilon").answer()
    assert (found.value, found.before) == (Fraction("0.1"), (Fraction("0.0999"), None))
    assert len(calls) == len(set(calls)) < 25
    assert Search(only_between("0.1", "2"), 2, Fraction(1, 100), -1.0, "epsilon").answer().value == Fraction("1.01")
    with pytest.raises(
        ks.PlanError, match=r"No epsilon gives a margin of error of at most 1: the smallest is 4, at "
    ) as e:
        Search(only_between("0.1", "0.7"), 1, Fraction(1, 4), -1.0, "epsilon").answer()
    assert str(e.value).endswith("at epsilon 0.7. There is none here.")
    with pytest.raises(ks.NoSamplerError, match="There is none here"):
        Search(only_between("0.3", "0.7"), 1, Fraction(5), -1.0, "epsilon").answer()


def test_a_search_takes_few_looks():
    for target in (1, 10, 100, 10_000):
        calls: list[Fraction] = []
        Search(only_between("1e-9", "1e9", calls), target, Fraction(1, 4), -1.0, "epsilon").answer()
        assert len(calls) <= 14


# -- enumerated laws ---------------------------------------------------------------------------------

GRID = np.arange(-150, 151)
X, Y = np.meshgrid(GRID, GRID, indexing="ij")  # three cells x, y, -x-y whose sum is kept
LENGTHS = {
    "l1": np.abs(X) + np.abs(Y) + np.abs(X + Y),
    "l2": np.sqrt(X**2 + Y**2 + (X + Y) ** 2),
    "gaussian": X**2 + Y**2 + (X + Y) ** 2,
}


def enumerated_margin(kind: str, mechanism: ks.Laplace | ks.Gaussian, level: float) -> int:
    """The margin of one of three cells with a kept sum, from every table of noise within reach."""
    rate = 1 / (2 * float(mechanism.sigma) ** 2) if kind == "gaussian" else float(mechanism.epsilon)
    masses = np.exp(-rate * LENGTHS[kind]).sum(axis=1)
    masses /= masses.sum()
    assert masses[0] < 1e-9  # nothing that matters is cut off
    inside = [masses[150 - m : 151 + m].sum() for m in range(151)]
    return int(np.flatnonzero(np.array(inside) >= level)[0])


THREE = ks.Invariants.subsets(3, [range(3)])
FAMILIES = {
    "l1": ("l1", ks.Laplace.per_unit(epsilon=1), lambda value: ks.Laplace.per_unit(value)),
    "epsilon and delta": (
        "gaussian",
        ks.Gaussian.per_unit(1, "1e-5"),
        lambda value: ks.Gaussian.per_unit(value, "1e-5"),
    ),
    "rho": ("gaussian", ks.Gaussian.per_unit(rho=1), lambda value: ks.Gaussian.per_unit(rho=value)),
    "sigma": ("gaussian", ks.Gaussian(sigma=1), lambda value: ks.Gaussian(sigma=value)),
}


@mostly_audit("name", FAMILIES)
@pytest.mark.parametrize(
    ("margin", "level"),
    [
        pytest.param(1, 0.95, marks=pytest.mark.audit),
        (4, 0.95),
        pytest.param(7, 0.8, marks=pytest.mark.audit),
        (12, 0.99),
    ],
)
def test_the_answer_is_that_of_enumerated_laws(name, margin, level):
    """Every parameter of three digits around the answer, by enumeration: the least loss, and not a step more."""
    kind, mechanism, at = FAMILIES[name]
    chosen = ks.mechanism_for(keep=THREE, mechanism=mechanism, margin=margin, level=level)
    family = MechanismFamily.of(chosen)
    place = place_of(family.value)
    near = [number_at(p) for p in range(place - 12, place + 13)]
    good = [value for value in near if enumerated_margin(kind, at(value), level) <= margin]
    assert 0 < len(good) < len(near)
    assert family.value == (max(good) if name == "sigma" else min(good))
    assert chosen == at(family.value)


@pytest.mark.parametrize("margin", [3, 10])
def test_simulated_margins_hold_in_the_enumerated_law(margin):
    """l2 Laplace margins are simulated with room for error: the answer holds, and costs little more than the least."""
    chosen = ks.mechanism_for(keep=THREE, mechanism=ks.Laplace.per_unit(1, "l2"), margin=margin)
    assert enumerated_margin("l2", chosen, 0.95) <= margin
    assert ks.plan(keep=THREE, mechanism=chosen).accuracy().draws > 0
    assert enumerated_margin("l2", ks.Laplace.per_unit(chosen.epsilon * Fraction(8, 10), "l2"), 0.95) > margin


CASES = {
    "sums": (ks.Invariants.subsets(40, [range(10), range(10, 40)]), ks.Laplace.per_unit(epsilon=1)),
    "hierarchy per person": (margins(6, 5), ks.Gaussian(1, "1e-6")),
    "two-way": (margins(6, 5), ks.Laplace.per_unit(epsilon=1)),
    "two-way per person": (margins(6, 5), ks.Laplace(epsilon=1)),
    "two-way l2": (margins(6, 5), ks.Laplace.per_unit(epsilon=1, norm="l2")),
    "tight": (margins(6, 5), ks.Gaussian.per_unit(1, "1e-6", calibration="tight")),
    "paper": (THREE, ks.Gaussian.per_unit(Fraction(1, 4), "1e-6", calibration="paper")),
}


@mostly_audit(
    ("name", "of"),
    [
        pytest.param(name, of, marks=[pytest.mark.audit] if of == "largest" and name.startswith("two-way") else [])
        for name in CASES
        for of in ("typical", "largest")
    ],
)
def test_one_step_less_misses(name, of):
    """Whatever the totals and the noise: the margin holds for the answer, and not for one step less."""
    keep, mechanism = CASES[name]
    margin = 900 if name == "paper" else 25

    def margin_of(request):
        found = ks.plan(keep=keep, mechanism=request).accuracy()
        return found.typical if of == "typical" else int(found.margins.max())

    chosen = ks.mechanism_for(keep=keep, mechanism=mechanism, margin=margin, of=of)
    family = MechanismFamily.of(chosen)
    assert family.at(family.value) == chosen
    assert margin_of(chosen) <= margin
    assert margin_of(family.at(number_at(place_of(family.value) - 1))) > margin


@pytest.mark.parametrize(
    "mechanism",
    [
        ks.Laplace.per_unit(1),
        ks.Gaussian(1, "1e-6"),
        pytest.param(ks.Gaussian.per_unit(1, "1e-6"), marks=pytest.mark.audit),
        pytest.param(ks.Gaussian.per_unit(rho=1), marks=pytest.mark.audit),
    ],
)
def test_computed_margins_never_rise_with_the_loss(mechanism):
    """What bisection rests on."""
    domain = ks.Domain({"a": range(3), "b": range(7)})
    candidates = Candidates.of(ks.Invariants.margins(domain, [["a"]]), mechanism, None, 0.95)
    found = [candidates.point(number_at(place)).typical for place in range(-1700, 700, 61)]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) > 5  # so that there is something to rise


def test_candidates_share_what_does_not_depend_on_the_noise():
    candidates = Candidates.of(margins(4, 3), ks.Laplace.per_unit(1), None, 0.95)
    other = candidates.plan(Fraction(1, 2))
    assert other.structure is candidates.first.structure
    assert other.distances is candidates.first.distances
    assert candidates.plan(Fraction(1)) is candidates.first
    assert other.mechanism.epsilon == Fraction(1, 2)


def test_requests_keep_everything_but_the_parameter():
    request = ks.Gaussian(1, "1e-6", calibration="tight", attributes=["a"], to="some other value")
    assert repr(MechanismFamily.of(request).at(Fraction(1, 3))) == repr(request).replace("epsilon=1", "epsilon=1/3")
    request = ks.Laplace(1, "l2", attributes=["a"], to="some other value")
    assert repr(MechanismFamily.of(request).at(Fraction(1, 3))) == repr(request).replace("epsilon=1", "epsilon=1/3")
    plan = ks.plan(keep=THREE, mechanism=ks.Gaussian.per_unit(rho=2))
    assert MechanismFamily.of(plan.mechanism).at(Fraction(1)) == ks.Gaussian.per_unit(rho=1)


def test_mostly_pinned_tables_have_no_typical_margin():
    keep = ks.Invariants.subsets(5, [[0], [1], [2], [3, 4]])
    with pytest.raises(ks.PlanError, match="typical margin of error is 0 at any epsilon, because the kept totals"):
        ks.mechanism_for(keep=keep, mechanism=ks.Laplace.per_unit(1), margin=10)
    chosen = ks.mechanism_for(keep=keep, mechanism=ks.Laplace.per_unit(1), margin=10, of="largest")
    assert ks.plan(keep=keep, mechanism=chosen).accuracy().margins.tolist() == [0, 0, 0, 10, 10]


def test_out_of_reach():
    with pytest.raises(ks.PlanError, match=r"^No epsilon gives a margin of error of at most 1: .* needs delta < eps"):
        ks.mechanism_for(
            keep=THREE, mechanism=ks.Gaussian.per_unit(Fraction(1, 4), "1e-6", calibration="paper"), margin=1
        )
    with pytest.raises(ks.PlanError, match="determine every cell"):
        ks.mechanism_for(keep=[[1, 0], [0, 1]], mechanism=ks.Laplace.per_unit(1), margin=1)


@pytest.mark.parametrize("margin", [0, -1, "10", 2.5, True, None, 10**10])
def test_bad_margins(margin):
    with pytest.raises(ks.InputError, match="The margin must be a whole number from 1 to 1,000,000,000, got"):
        ks.mechanism_for(keep=THREE, mechanism=ks.Laplace.per_unit(1), margin=margin)


@pytest.mark.parametrize("level", [0, 1, 2, -1, "95%", True, float("nan")])
def test_bad_levels(level):
    with pytest.raises(ks.InputError, match="Level must lie between 0 and 1, got"):
        ks.mechanism_for(keep=THREE, mechanism=ks.Laplace.per_unit(1), margin=3, level=level)


def test_bad_choices():
    with pytest.raises(ks.InputError, match="of= must be 'typical' or 'largest', got 'smallest'"):
        ks.mechanism_for(keep=THREE, mechanism=ks.Laplace.per_unit(1), margin=3, of="smallest")
    with pytest.raises(ks.InputError, match="The mechanism must be Laplace or Gaussian"):
        ks.mechanism_for(keep=THREE, mechanism=ks.Laplace, margin=3)


# -- simulated margins -------------------------------------------------------------------------------

CROSSED = ks.Domain({"county": range(10), "age": range(5), "sex": range(2)})
ONE_WAY = [["county"], ["age"], ["sex"]]


def simulated_candidates(epsilon: str) -> Candidates:
    """One-way margins of three axes, whose margins of error are simulated."""
    kept = ks.Invariants.margins(CROSSED, ONE_WAY)
    return Candidates.of(kept, ks.Laplace.per_unit(epsilon=epsilon), None, 0.95)


@pytest.mark.parametrize("target", [2, 10])
def test_few_plans_lead_to_a_simulated_target_and_the_answer_reaches_it(target, monkeypatch):
    """Margins before they are rounded tell where the answer is; it and the step before it have plans of their own."""
    planned: list[Fraction] = []
    point = Candidates.point

    def watched(self: Candidates, value: Fraction):
        if value not in self._points:
            planned.append(value)
        return point(self, value)

    monkeypatch.setattr(Candidates, "point", watched)
    found = simulated_candidates("1/4").least_loss(target, "typical")
    assert len(planned) <= 5
    assert found.before[0] == number_at(place_of(found.value) - 1)
    assert {found.value, found.before[0]} <= set(planned)
    again = ks.plan(CROSSED, keep=ONE_WAY, mechanism=ks.Laplace.per_unit(found.value)).accuracy()
    assert again.draws > 0
    assert again.typical <= target < found.before[1]
    draws = np.abs(ks.plan(CROSSED, keep=ONE_WAY, mechanism=ks.Laplace.per_unit(found.value)).sample(4_000, ks.rng(7)))
    assert (draws > target).mean() < 0.05


def test_margins_at_smaller_losses_are_scaled():
    """Those of the curve are within one count of what is simulated there, and say that they are about that."""
    candidates = simulated_candidates("1/4")
    assert candidates.point(Fraction(1, 4)).typical >= 8
    for value in (Fraction(1, 5), Fraction(1, 10), Fraction(1, 20)):
        sketched, own = candidates.sketch(value), simulated_candidates(str(value)).point(value)
        assert sketched.scaled
        assert not own.scaled
        assert sketched.person == own.person
        for of in ("typical", "largest"):
            assert abs(sketched.margin(of) - own.margin(of)) <= 1 + 0.02 * own.margin(of)
    assert not candidates.sketch(Fraction(1)).scaled  # narrow noise is no scaled copy of wide noise
    curve = ks.accuracy_curve(CROSSED, keep=ONE_WAY, mechanism=ks.Laplace.per_unit(epsilon="1/4"))
    shown = {point.value: point.scaled for point in curve.points}
    assert [value for value, scaled in shown.items() if scaled] == [v for v in shown if v < Fraction(1, 4)]
    assert sum("about ±" in line for line in curve.lines()) == sum(shown.values()) > 0
    two_axes = ks.Invariants.margins(ks.Domain({"age": range(5), "sex": range(2)}), [["age"], ["sex"]])
    small = Candidates.of(two_axes, curve.family.member, None, 0.95)
    assert small.point(Fraction(1, 4)).draws > 0
    assert not any(small.sketch(value).scaled for value in shown)
    given = ks.accuracy_curve(CROSSED, keep=ONE_WAY, mechanism=ks.Laplace.per_unit(epsilon="1/4"), values=[0.1, 0.25])
    assert not any(point.scaled for point in given.points)  # a value that was asked for is worked out

"""Totals of each axis: exact where they are kept, else with the margin of the law of a typical one."""

import pytest

import keepsum as ks
from keepsum.accuracy.levels import axis_totals
from support import margins

DOMAIN = ks.Domain(
    {"state": ["A", "B"], "county": {"A": ["p", "q"], "B": ["r", "s", "t"]}, "sex": ["f", "m"]}, {"county": "state"}
)


def plan(kept, mechanism=None):
    return ks.plan(DOMAIN, keep=kept, mechanism=mechanism or ks.Laplace.per_unit(epsilon="0.5"))


def test_exact_and_computed_totals():
    made = plan([["state", "county"]])
    by_state, by_county, by_sex, everything = axis_totals(made._record, 0.9)
    assert (by_state.axes, str(by_state)) == (("state",), "by state: exact")
    assert str(by_county) == "by state and county: exact"
    assert str(everything) == "grand total: exact"
    margin = made.noise.interval({"sex": "m"}, 0.9)[1]
    assert (by_sex.margin, by_sex.basis, by_sex.counts, by_sex.exact) == (margin, "exact", 5, 0)
    assert str(by_sex) == f"by sex: typical ±{margin}, the sum of 5 counts"


def test_the_grand_total_has_noise_if_nothing_keeps_it():
    made = ks.plan(keep=ks.Invariants.subsets(10, [range(3)]).over(DOMAIN), mechanism=ks.Laplace.per_unit(1))
    *_, everything = axis_totals(made._record, 0.95)
    assert str(everything) == f"grand total: ±{made.noise.interval({})[1]}, the sum of 10 counts"


def test_some_totals_of_an_axis_are_exact():
    cells = [index for index in range(10) if DOMAIN.cell(index)["state"] == "A"]
    made = ks.plan(keep=ks.Invariants.subsets(10, [cells]).over(DOMAIN), mechanism=ks.Laplace.per_unit(1))
    by_state = axis_totals(made._record, 0.95)[0]
    assert (by_state.totals, by_state.exact, by_state.counts) == (2, 1, 6)
    assert by_state.margin == made.noise.interval({"state": "B"})[1]
    assert str(by_state).endswith("the sum of 6 counts; 1 of 2 are exact")


def test_a_typical_total_is_one_of_as_many_counts_as_most():
    """The median by their number of counts: of 2, 6 and 8 counts, that of 6."""
    counties = {"A": ["p"], "B": ["q", "r", "s"], "C": ["t", "u", "v", "w"]}
    domain = ks.Domain({"state": list("ABC"), "county": counties, "sex": ["f", "m"]}, {"county": "state"})
    made = ks.plan(domain, keep=[["sex"]], mechanism=ks.Laplace.per_unit("0.5"))
    by_state = axis_totals(made._record, 0.95)[0]
    assert (by_state.totals, by_state.exact, by_state.counts) == (3, 0, 6)
    assert by_state.margin == made.noise.interval({"state": "B"})[1] > made.noise.interval({"state": "A"})[1]


def test_simulated_totals_say_so():
    made = plan([["county"], ["sex"]], ks.Laplace.per_unit(1, "l2"))
    assert all(totals.exact == totals.totals for totals in axis_totals(made._record, 0.95))
    made = plan([["state"]], ks.Laplace.per_unit(1, "l2"))
    by_sex = next(totals for totals in axis_totals(made._record, 0.95) if totals.axes == ("sex",))
    assert by_sex.basis == "estimated"
    assert f"from {by_sex.draws:,} simulated draws" in str(by_sex)


def test_single_counts_are_no_totals():
    one = ks.Domain({"a": range(4)})
    assert [
        totals.axes for totals in axis_totals(ks.plan(one, keep=[[]], mechanism=ks.Laplace.per_unit(1))._record, 0.95)
    ] == [()]
    assert axis_totals(ks.plan(keep=[[1, 1, 1]], mechanism=ks.Laplace.per_unit(1))._record, 0.95) == []


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_two_way_tables(level):
    made = ks.plan(keep=margins(4, 3), mechanism=ks.Laplace.per_unit(1))
    assert [str(totals) for totals in axis_totals(made._record, level)] == [
        "by x0: exact",
        "by x1: exact",
        "grand total: exact",
    ]


def test_kept_pairs_of_axes_are_listed_too():
    """Next to the axes themselves; a grand total that is kept is listed once, and last."""
    domain = ks.Domain({"region": ["N", "S"], "race": ["a", "b", "c"], "sex": ["f", "m"]})
    kept = ks.Invariants.margins(domain, [["region", "race"], []])
    made = ks.plan(keep=kept, mechanism=ks.Laplace.per_unit(1))
    assert [str(totals) for totals in axis_totals(made._record, 0.95)] == [
        "by region: exact",
        "by race: exact",
        f"by sex: typical ±{made.noise.interval({'sex': 'm'})[1]}, the sum of 6 counts",
        "by region and race: exact",
        "grand total: exact",
    ]

"""The plan in words: golden files for the four examples, and the notebook's view in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import keepsum as ks
from keepsum.planning.selection import splitting
from support import HANG

# How many counties each state had in 2010, alphabetically from Alabama, the District of Columbia among them.
COUNTIES_2010 = [
    67, 29, 15, 75, 58, 64, 8, 3, 1, 67, 159, 5, 44, 102, 92, 99, 105, 120, 64, 16, 24, 14, 83, 87, 82, 115, 56, 93,
    17, 10, 21, 33, 62, 100, 53, 88, 77, 36, 67, 5, 46, 66, 95, 254, 29, 14, 134, 39, 55, 72, 23,
]  # fmt: skip
DC = 8


def counties_2010() -> ks.Domain:
    """A domain of the size and shape of the 2010 counties under their states, with made-up names but one."""
    states = [f"state {s}" for s in range(51)]
    states[DC] = "District of Columbia"
    names = {states[s]: [f"county {c}" for c in range(n)] for s, n in enumerate(COUNTIES_2010)}
    names[states[DC]] = ["District of Columbia"]
    return ks.Domain({"state": states, "county": names}, within={"county": "state"})


def test_children(children, golden):
    plan = ks.plan(children, keep=["county", "education", []], mechanism=ks.Laplace.per_unit(epsilon=0.25))
    golden("children.txt", plan.explain(details=True))


def test_circles(circles, golden):
    golden(
        "circles.txt",
        ks.plan(keep=circles, mechanism=ks.Laplace.per_unit(epsilon=0.25, norm="l2")).explain(details=True),
    )


def test_counties(golden):
    keep = ks.Invariants.margins(counties_2010(), [["state"], []])
    golden("counties.txt", ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1)).explain(details=True))


def test_real_counties_read_the_same(golden):
    """With the Census file at hand (KEEPSUM_COUNTIES=path), the same text comes out."""
    path = os.environ.get("KEEPSUM_COUNTIES")
    if not path or not Path(path).exists():
        pytest.skip("KEEPSUM_COUNTIES does not name the 2010 county file.")
    with pytest.warns(ks.CategoriesFromDataWarning):
        table = ks.read_table(path, count="population_2010", axes=["county"], within={"county": "state"})
    golden("counties.txt", ks.plan(table, keep=["state", []], mechanism=ks.Laplace(epsilon=1)).explain(details=True))


def test_cube(golden):
    lengths = {"age": 6, "sex": 2, "place": 6}
    domain = ks.Domain({axis: [f"{axis} {i}" for i in range(length)] for axis, length in lengths.items()})
    keep = ks.Invariants.margins(domain, [["age", "sex"], ["age", "place"], ["sex", "place"]])
    text, other = (
        ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(epsilon=0.5, delta="1e-6"))
        .explain(details=True)
        .split("\nOther noise")
    )
    golden("cube.txt", text)
    # One of these is estimated from draws, and shown to one unit of its last digit: 4.55 in 40,000 others.
    words = (
        r"standard deviation per cell at per-person epsilon 2\.449: l1 Laplace about (\d(?:\.\d)?), l2 Laplace 6\.01, "
        r"Gaussian 4\.75 \(delta 1\.6e-5\); smallest with l1 Laplace "
        r"Gaussian noise \(delta 1\.6e-5\) is smaller than l1 Laplace noise below a per-person epsilon of about [\d.]+"
        r"(?:, or if 2 tables or more like this share that epsilon(?: \(3 in a ledger\))?)?\."
    )
    (estimate,) = re.fullmatch(words, " ".join(other.split())).groups()
    assert float(estimate) == pytest.approx(4.55, abs=1 if "." not in estimate else 0.1)


def test_many_pinned_cells_are_counted(children):
    keep = children.keep("county") + ks.Invariants.subsets(16, [[cell] for cell in range(12)])
    text = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1)).explain(details=True)
    assert "12 cells are determined by the kept totals" in text
    assert "and 4 more" in text


@pytest.mark.parametrize("zero", [False, True])
def test_an_upper_bound_is_called_one(zero):
    """Without structural zeros some tables need as much as is stated; with one the figure is an upper bound."""
    domain = ks.Domain({"a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2]})
    domain = domain.without({"a": 1, "b": 1}) if zero else domain
    plan = ks.plan(domain, keep=[["a"], ["b"]], mechanism=ks.Laplace.per_unit(epsilon=1))
    assert plan.person.exact == (not zero) == ("upper bound" not in plan.explain(details=True))


def test_nothing_kept():
    text = ks.plan(keep=ks.Invariants.subsets(3, []), mechanism=ks.Laplace.per_unit(epsilon=1)).explain(details=True)
    assert "nothing: every cell has independent noise" in text
    assert "One person more or fewer in a cell under no total: epsilon 1 (l1 distance 1)" in text


def test_html_escapes_names():
    domain = ks.Domain({"<b>": ["<i>", "y"], "c": ["p", "q"]})
    keep = ks.Invariants.margins(domain, [["<b>"]]) + ks.Invariants.subsets(4, [[0]])
    view = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1))._repr_html_()
    assert "<i>" not in view
    assert "&lt;i&gt;" in view


def test_a_browser_shows_the_notebook_view(children, need, tmp_path):
    need("chromium")
    plan = ks.plan(children, keep=["county", "education", []], mechanism=ks.Laplace.per_unit(epsilon=0.25))
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8>{plan._repr_html_()}{children._repr_html_()}", "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    done = subprocess.run(
        ["chromium", *flags, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    for words in ("4 totals of county", "epsilon 1 (l1 distance 4", "confidential and not shown"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("length", "epsilon", "method"),
    [(4, "1/4", "mixture_rejection"), (5, 1, "mixture_chain")],
    ids=["rounded", "chain"],
)
def test_where_sampling_is_not_exact_the_exact_mechanisms_are_named(monkeypatch, length, epsilon, method):
    """l2 Laplace and Gaussian noise at the same per-person loss, and they are exact."""
    monkeypatch.setattr(splitting, "choose_families", lambda *_: None)  # as if axes could not be eliminated
    domain = ks.Domain({axis: list(range(length)) for axis in "abc"})
    keep = ks.Invariants.margins(domain, [["a"], ["b"], ["c"]])
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=epsilon))
    assert [choice.method for choice in plan.samplers] == [method]
    text = " ".join(plan.explain(details=True).split())
    epsilon = f"{float(plan.mechanism.loss(plan.person).epsilon):g}"
    assert f"Exact at the same per-person epsilon: l2 Laplace with ks.Laplace({epsilon}, norm='l2') " in text
    assert f", or Gaussian with ks.Gaussian({epsilon}, delta=1e-6) " in text
    assert "--" not in text
    for other in (ks.Laplace(epsilon, norm="l2"), ks.Gaussian(epsilon, "1e-6")):
        assert ks.plan(keep=keep, mechanism=other).guarantee.sampling == "exact"


def test_where_one_person_is_not_known_nothing_is_stated_or_compared():
    """All two-way margins of 4 x 4 x 4: no bound on real tables is known."""
    domain = ks.Domain({axis: list(range(4)) for axis in "abc"})
    keep = ks.Invariants.margins(domain, [["a", "b"], ["b", "c"], ["a", "c"]])
    plan = ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(epsilon=0.5, delta="1e-6"))
    text = " ".join(plan.explain(details=True).split())
    assert "No limit is guaranteed to what the released counts say about one person." in text
    assert "no per-person loss is stated: how far a change of a or b or c reaches is not known for these totals" in text
    assert "Other noise not compared, as no per-person loss is stated" in text
    assert str(plan.guarantee) == "per-person loss not stated; epsilon 0.5, delta 1e-6 per unit of l2 distance; exact"
    with pytest.raises(ks.PlanError, match=r"a change of a is not known for these totals\. Ask for a loss per unit"):
        ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1))


def test_a_plan_that_is_exact_names_no_other(children):
    plan = ks.plan(children, keep=["county", "education"], mechanism=ks.Laplace.per_unit(epsilon=0.25))
    assert "Exact at the same" not in plan.explain(details=True)


def test_formulas_and_what_is_per_unit_of_distance_are_details(children):
    """First what is kept, and what it means for one person; the rest where it is asked for."""
    plan = ks.plan(children, keep=["county", "education"], mechanism=ks.Laplace(epsilon=1))
    brief, full = plan.explain(), plan.explain(details=True)
    titles = [line.split("  ")[0] for line in brief.splitlines() if line[0] != " "]
    assert titles == ["Table", "Kept exactly", "One person", "In plain words", "Pinned cells"]
    for words in ("per unit", "exp(", "codimension", "per_unit(", "standard deviation"):
        assert (words in brief, words in full) == (False, True), words
    with pytest.raises(ks.InputError, match="details="):
        plan.explain(details="yes")


@pytest.mark.audit
def test_at_a_loss_that_protects_little_no_exact_mechanism_is_named(monkeypatch):
    """Heat-bath moves at a per-person epsilon of 12: another mechanism would not make it a good release."""
    monkeypatch.setattr("keepsum.planning.selection.splitting.choose_families", lambda *_: None)
    domain = ks.Domain({axis: list(range(4)) for axis in "abcd"})
    plan = ks.plan(domain, keep=[["a"], ["b"], ["c"], ["d"]], mechanism=ks.Laplace.per_unit(epsilon=3))
    assert [choice.method for choice in plan.samplers] == ["heat_bath_chain"]
    assert plan.mechanism.loss(plan.person).epsilon == 12
    assert "Exact at the same" not in plan.explain(details=True)

"""The plan in words: golden files for the four examples, and the notebook's view in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import keepsum as ks
from support import BY_HEAT_BATH, BY_MIXTURE, HANG, ROUNDED

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
    plan = ks.plan(children.keep("county", "education", total=True), ks.Laplace(epsilon=0.25))
    golden("children.txt", plan.explain())


def test_circles(circles, golden):
    golden("circles.txt", ks.plan(circles, ks.Laplace(epsilon=0.25, norm="l2")).explain())


def test_counties(golden):
    keep = ks.Invariants.margins(counties_2010(), [["state"], []])
    golden("counties.txt", ks.plan(keep, ks.Laplace.per_person(epsilon=1)).explain())


def test_real_counties_read_the_same(golden):
    """With the Census file at hand (KEEPSUM_COUNTIES=path), the same text comes out."""
    path = os.environ.get("KEEPSUM_COUNTIES")
    if not path or not Path(path).exists():
        pytest.skip("KEEPSUM_COUNTIES does not name the 2010 county file.")
    with pytest.warns(ks.CategoriesFromDataWarning):
        table = ks.read_table(path, count="population_2010", axes=["county"], within={"county": "state"})
    golden("counties.txt", ks.plan(table.keep("state", total=True), ks.Laplace.per_person(epsilon=1)).explain())


def test_cube(golden):
    domain = ks.Domain({axis: [f"{axis} {i}" for i in range(6)] for axis in ("age", "sex", "place")})
    keep = ks.Invariants.margins(domain, [["age", "sex"], ["age", "place"], ["sex", "place"]])
    text, other = ks.plan(keep, ks.Gaussian(epsilon=0.5, delta="1e-6")).explain().split("\nOther noise")
    golden("cube.txt", text)
    # One of these is estimated from proposals of a chain, which differ between processors: it is 4.315, with a standard
    # error of 0.004 (80,000 proposals), and shown to one unit of its last digit.
    words = (
        r"standard deviation per cell at per-person epsilon 1\.414: l1 Laplace about (4(?:\.\d)?), l2 Laplace 17\.1, "
        r"Gaussian 8\.07 \(delta 4\.8e-6\); smallest with l1 Laplace"
    )
    (estimate,) = re.fullmatch(words, " ".join(other.split())).groups()
    assert float(estimate) == pytest.approx(4.315, abs=1 if "." not in estimate else 0.1)


def test_many_pinned_cells_are_counted(children):
    keep = children.keep("county") + ks.Invariants.subsets(16, [[cell] for cell in range(12)])
    text = ks.plan(keep, ks.Laplace(epsilon=1)).explain()
    assert "12 cells are determined by the kept totals" in text
    assert "and 4 more" in text


@pytest.mark.audit
def test_an_upper_bound_is_called_one():
    keep = ks.Invariants.matrix([[1, 7, 49, 343, 2401, 16807, 3, 1000]])
    plan = ks.plan(keep, ks.Laplace(epsilon=1))
    assert plan.person.exact == ("upper bound" not in plan.explain())


def test_nothing_kept():
    text = ks.plan(ks.Invariants.subsets(3, []), ks.Laplace(epsilon=1)).explain()
    assert "nothing: every cell has independent noise" in text
    assert "One person more or fewer in a cell under no total: epsilon 1 (l1 distance 1)" in text


def test_html_escapes_names():
    domain = ks.Domain({"<b>": ["<i>", "y"], "c": ["p", "q"]})
    keep = ks.Invariants.margins(domain, [["<b>"]]) + ks.Invariants.subsets(4, [[0]])
    view = ks.plan(keep, ks.Laplace(epsilon=1))._repr_html_()
    assert "<i>" not in view
    assert "&lt;i&gt;" in view


def test_a_browser_shows_the_notebook_view(children, need, tmp_path):
    need("chromium")
    plan = ks.plan(children.keep("county", "education", total=True), ks.Laplace(epsilon=0.25))
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
    for words in ("4 totals of county", "exp(-0.25 |z|₁)", "epsilon 1 (l1 distance 4", "confidential and not shown"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("totals", "method"), [(ROUNDED, "mixture_rejection"), (BY_MIXTURE, "mixture_chain")], ids=["rounded", "chain"]
)
def test_where_sampling_is_not_exact_the_exact_mechanisms_are_named(totals, method):
    """l2 Laplace and Gaussian noise at the same per-person loss, and they are exact."""
    keep, mechanism = totals
    plan = ks.plan(keep, mechanism)
    assert [choice.method for choice in plan.samplers] == [method]
    text = " ".join(plan.explain().split())
    epsilon = f"{float(plan.mechanism.loss(plan.person).epsilon):g}"
    assert f"Exact at the same per-person epsilon: l2 Laplace with ks.Laplace.per_person({epsilon}, norm='l2') " in text
    assert f", or Gaussian with ks.Gaussian.per_person({epsilon}, delta=1e-6) " in text
    assert "--" not in text
    for other in (ks.Laplace.per_person(epsilon, norm="l2"), ks.Gaussian.per_person(epsilon, "1e-6")):
        assert ks.plan(keep, other).guarantee.sampling == "exact"


def test_a_plan_that_is_exact_names_no_other(children):
    assert "Exact at the same" not in ks.plan(children.keep("county", "education"), ks.Laplace(epsilon=0.25)).explain()


@pytest.mark.audit
def test_at_a_loss_that_protects_little_no_exact_mechanism_is_named():
    """Heat-bath moves at a per-person epsilon of 16: another mechanism would not make it a good release."""
    plan = ks.plan(*BY_HEAT_BATH)
    assert [choice.method for choice in plan.samplers] == ["heat_bath_chain"]
    assert plan.mechanism.loss(plan.person).epsilon == 16
    assert "Exact at the same" not in plan.explain()

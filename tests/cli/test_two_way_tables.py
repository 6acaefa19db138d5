"""Two-way tables in disguise, through ``ks.plan`` and through the command: all are drawn by splitting the columns."""

from __future__ import annotations

import json

import numpy as np
import pytest

import keepsum as ks
from support import mostly_audit

SURVEY = {
    "county": [f"county {k}" for k in range(6)],
    "age": [f"age {k}" for k in range(4)],
    "sex": ["f", "m"],
}
DOMAIN = ks.Domain(SURVEY)
TABLE = "6 × 4 table with both margins kept"
REGIONS = f"{TABLE}, each entry the sum of 2 cells"
# Kept margins; the form of a block; how many there are.
MARGINS = {
    "one table for each sex": ([["county", "sex"], ["age", "sex"]], TABLE, 2),
    "regions: sex is summed out": ([["county"], ["age"]], REGIONS, 1),
    "a redundant total": ([["county"], ["age"], []], REGIONS, 1),
    "redundant margins": ([["county", "sex"], ["age", "sex"], ["sex"], ["county"]], TABLE, 2),
    "transposed": ([["age"], ["county"]], REGIONS, 1),
    "rows are pairs of categories": ([["county", "sex"], ["age"]], "4 × 12 table with both margins kept", 1),
}


def scaled() -> np.ndarray:
    """County and age totals, each multiplied by a number of its own, one of them negative."""
    A = ks.Invariants.margins(DOMAIN, [["county"], ["age"]]).coefficients.toarray()
    return A * np.array([1, 2, 3, 4, 5, -6, 7, 8, 9, 10])[:, None]


@pytest.fixture
def planned(run, tmp_path):
    """The plan of the command, which reads no counts."""
    (tmp_path / "domain.toml").write_text("\n".join(f"{axis} = {json.dumps(own)}" for axis, own in SURVEY.items()))

    def plan(*kept):
        done = run("plan", "--domain", "domain.toml", *kept, "--epsilon", "0.25", "--json")
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout)

    return plan


def assert_split(keep: ks.Invariants, form: str, blocks: int, shown: dict) -> None:
    plan = ks.plan(keep=keep, mechanism=ks.Laplace(epsilon="0.25"))
    assert [choice.method for choice in plan.samplers] == ["column_splitting"]
    assert plan.guarantee.sampling == shown["sampling"] == "exact"
    assert plan.guarantee.words == shown["per_unit"]
    assert [(block["form"], block["blocks"]) for block in shown["blocks"]] == [(form, blocks)]
    assert shown["blocks"][0]["sampler"].startswith("exact, by splitting the columns")
    noise = plan.sample(100, rng=ks.rng(seed=1))
    assert noise.any()
    assert not np.asarray(keep.coefficients @ noise.T).any()


@mostly_audit("name", MARGINS)
def test_margins_that_are_a_two_way_table(name, planned):
    margins, form, blocks = MARGINS[name]
    options = [word for margin in margins if margin for word in ("--keep", ",".join(margin))]
    shown = planned(*options, *["--keep-total"] * ([] in margins))
    assert_split(ks.Invariants.margins(DOMAIN, margins), form, blocks, shown)


def test_rows_that_are_scaled(planned, tmp_path):
    np.savetxt(tmp_path / "totals.csv", scaled(), fmt="%d", delimiter=",")
    assert_split(ks.Invariants.matrix(scaled()).over(DOMAIN), REGIONS, 1, planned("--keep-file", "totals.csv"))


def test_three_margins_kept_separately_are_exact_too(planned):
    """County, age and sex totals are three partitions, no two-way table: one axis is eliminated after the other."""
    keep = ks.Invariants.margins(DOMAIN, [["county"], ["age"], ["sex"]])
    plan = ks.plan(keep=keep, mechanism=ks.Laplace(epsilon="0.25"))
    assert [choice.method for choice in plan.samplers] == ["axis_elimination"]
    shown = planned("--keep", "county", "--keep", "age", "--keep", "sex")
    assert plan.guarantee.sampling == shown["sampling"] == "exact"
    assert [block["form"] for block in shown["blocks"]] == ["48 regions under 12 overlapping totals"]
    assert "exact, by eliminating one axis after another" in " ".join(plan.explain(details=True).split())

"""Verdicts come from numbers: a wrong one is seen to disagree."""

from __future__ import annotations

import math

import pytest

from experiments.claims import (
    NOT_IN_PAPER,
    Claim,
    as_table,
    at_least,
    at_most,
    below,
    equal,
    explanations,
    formatted,
    not_rejected,
    rejected,
    summary,
    within_factor,
)


@pytest.mark.parametrize(
    ("tolerance", "paper", "good", "wrong"),
    [
        (within_factor(10), 1e5, 2e4, 2e6),
        (within_factor(10), 1e5, 1e6, 9e3),
        (equal(), 0, 0, 1),
        (at_most(), 0.1, 0.1, 0.11),
        (below(), 1.01, 1.009, 1.01),
        (at_least(), 3, 3, 2.9),
        (not_rejected(1e-3), 0, 0.4, 1e-4),
        (rejected(0.01), 0, 1e-4, 0.4),
    ],
)
def test_a_wrong_number_disagrees(tolerance, paper, good, wrong):
    def claim(ours):
        return Claim("steps", "Figure 1", paper, ours, tolerance)

    assert claim(good).verdict == "agrees"
    assert claim(wrong).verdict == "disagrees"
    assert claim(math.nan).verdict == "disagrees"
    assert claim(math.inf).verdict == "disagrees"
    assert claim(None).verdict == "not run"


def test_the_table_says_so():
    claims = [
        Claim("steps to 0.1", "Figure 1", 1e5, 4e4, within_factor(10), unit="steps"),
        Claim("R-hat", "appendix", 1.01, 1.2, below(), because="too few steps."),
        Claim("bias", "Figure 2", 0, 1, equal()),
        Claim("DAS", "Figure 3", 0, None, equal(), because="no file was given."),
    ]
    table = as_table(claims)
    assert "| steps to 0.1 | Figure 1 | 100,000 steps | 40,000 steps | within a factor of 10 | agrees |" in table
    assert "| R-hat | appendix | 1.01 | 1.2 | below the paper's | **disagrees** |" in table
    why = explanations(claims)
    assert "steps to 0.1" not in why
    assert "too few steps." in why
    assert "UNEXPLAINED" in why
    assert "**DAS** (not run; paper 0, ours -): no file was given." in why


def test_claims_of_ours_are_none_of_the_papers():
    paper = [Claim("x", "Figure 1", 1, ours, equal()) for ours in (1, 1, 2, None)]
    own = [Claim("y", NOT_IN_PAPER, 1, ours, equal()) for ours in (1, 1)]
    counted = "Of the paper's 4 claims 2 agree, 1 disagrees and 1 was not run."
    assert summary(paper) == counted
    assert summary(paper + own) == f"{counted} Of 2 claims of our own all agree."
    assert summary([*paper, *own, Claim("z", NOT_IN_PAPER, 1, 2, equal())]).endswith("Of 3 claims of our own 2 agree.")


def test_one_reason_is_told_once():
    claims = [Claim(name, "Definition 1", 5, 1, equal(), because="It is not needed.") for name in ("a", "b")]
    assert explanations(claims).count("It is not needed.") == 1
    assert "**a** (disagrees; paper 5, ours 1); **b** (disagrees; paper 5, ours 1)" in explanations(claims)


def test_all_good_needs_no_reason():
    assert explanations([Claim("x", "y", 1, 1, equal())]) == "None: every claim agrees."


def test_shown():
    assert [formatted(x) for x in (0.0, 12345.6, 1234.4, 3e-7)] == ["0", "12,346", "1234", "3e-07"]

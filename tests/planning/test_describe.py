"""Sentences made of facts: every kind has one, and they read as a person expects."""

from typing import get_args

import pytest

from keepsum.planning.describe import METHODS, describe_form, describe_reason, describe_refusal, describe_sampler
from keepsum.planning.groups import BlockForm
from keepsum.planning.selection.choice import Method, Reason, ReasonKind

RARE = Reason("rarely_accepted", limit=20_000_000)


def test_every_method_and_every_reason_has_a_sentence():
    assert set(METHODS) == set(get_args(Method))
    for kind in get_args(ReasonKind):
        sentence = describe_reason(Reason(kind, "1/50", "100", 10, 0.01))
        assert sentence
        assert "None" not in sentence


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        (BlockForm("free"), "cells under no total"),
        (BlockForm("sums", totals=1, smallest=3, largest=1254), "3 to 1,254 cells with their sum kept"),
        (BlockForm("table", 64, 48, shape=(4, 4, 4)), "4 × 4 × 4 table with all 2-way margins kept"),
        (BlockForm("table", 4, 4, 2, 2, (2, 2)), "2 × 2 table with both margins kept, each entry the sum of 2 cells"),
        (
            BlockForm("table", 160, 44, 3, 3, (4, 40)),
            "4 × 40 table with both margins kept, each entry the sum of 3 cells",
        ),
        (BlockForm("table", 8, 6, shape=(3, 3)), "3 × 3 table with both margins kept, 1 structural zero"),
        (
            BlockForm("table", 23_932, 3151, 1, 4, (8, 3143)),
            "8 × 3143 table with both margins kept, each entry the sum of 1 to 4 cells, 1,212 structural zeros",
        ),
        (BlockForm("regions", 2, 1), "2 regions under 1 overlapping total"),
    ],
)
def test_forms(form, sentence):
    assert describe_form(form) == sentence


@pytest.mark.parametrize(
    ("method", "facts", "sentence"),
    [
        ("independent_cells", {}, "exact, cell by cell"),
        ("conditional_cells", {"acceptance": 0.98}, "exact; each cell drawn given the ones before"),
        (
            "mixture_rejection",
            {"acceptance": 0.0123, "reasons": [Reason("table_too_large")]},
            "rounded: rejection from a mixture of Gaussians; 1.2% of proposals accepted "
            "(an exact sampler would need too much time or memory at this epsilon)",
        ),
        (
            "mixture_chain",
            {"steps": 1200, "proposals_per_step": 3.0, "reasons": [RARE]},
            "estimated: 1,200 steps of a chain of mixture proposals, about 3 proposals per step "
            "(exact rejection would draw more than 20,000,000 cells per accepted draw)",
        ),
        (
            "heat_bath_chain",
            {"steps": 40, "moves": 1000, "reasons": [Reason("rarely_accepted", acceptance=1e-12)]},
            "estimated: 40 sweeps of heat-bath moves along 1,000 short vectors "
            "(exact rejection would accept at most about one in 1e+12 proposals)",
        ),
        (None, {"reasons": [RARE, Reason("too_many_totals", limit=3000)]},
         "no sampler: exact rejection would draw more than 20,000,000 cells per accepted draw, and more than 3,000 "
         "totals overlap"),
    ],
)  # fmt: skip
def test_samplers(method, facts, sentence):
    assert describe_sampler(method, **facts) == sentence


def test_a_refusal_says_what_would_help():
    sentence = describe_refusal([Reason("rarely_accepted", acceptance=1 / 400)])
    assert sentence == (
        "exact rejection would accept at most about one in 400 proposals; use wider noise or keep fewer totals"
    )

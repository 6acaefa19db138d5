"""The comparison of levels: what its figures and its words rest on."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import levels
from experiments.levels import OURS, THEIRS, Errors, generated, midwest, shared
from experiments.run import setting_from
from experiments.small import RATE, unbiased


@pytest.fixture(scope="module")
def found():
    return levels.errors(generated(), 300)


def test_the_hierarchies():
    counties = midwest()
    assert len(counties.counts) == 437 * 5
    assert [place.max() + 1 for place in counties.levels.values()] == [5, 437, 2185]
    made = generated()
    assert [place.max() + 1 for place in made.levels.values()] == [12, 300, 2400]
    assert made.counts.min() == 0


def test_exact_noise_has_the_errors_that_were_expected_and_no_bias(found):
    expected = {level.name: level.rmse for level in shared(generated()).levels}
    names = {"states": "totals of state", "counties": "totals of county", "cells": "cells"}
    for level, of in found.items():
        assert of[OURS].rmse == pytest.approx(expected[names[level]], rel=0.05)
        assert unbiased(of[OURS].error) >= RATE
        assert not of[OURS].error.sum(axis=1).any()  # the grand total is kept


def test_the_other_is_never_negative_and_biased_in_small_cells(found):
    assert all(of[THEIRS].negative == 0 for of in found.values())
    assert all((of[THEIRS].error.sum(axis=1) == 0).all() for of in found.values())
    assert found["cells"][OURS].negative > 0.05
    small, _ = found["cells"][THEIRS].by_size
    mean, error = found["cells"][THEIRS].mean(small)
    assert mean > 10 * error


def test_standard_errors_are_those_of_draws():
    """Totals that always err together are worth one."""
    error = np.random.default_rng(1).integers(-5, 6, size=(400, 1)) * np.ones((1, 50), dtype=int)
    one = Errors(error, np.arange(50))
    assert one.mean(np.arange(50))[1] == pytest.approx(one.mean(np.arange(1))[1])
    assert [len(group) for group in one.by_size] == [12, 12]


@pytest.mark.audit
def test_a_quick_run(tmp_path):
    section = levels.run(setting_from({"QUICK": "1", "OUT": str(tmp_path)}))
    assert len(section.tables["levels"]) == 1 + 2 * 3 * 2
    assert (tmp_path / "levels.png").stat().st_size > 0
    assert "no mean error of any total is seen" in " ".join(section.text)
    assert not section.claims

"""Axis elimination as DESIGN has it, in NumPy, and the ways to do it wrong, each rejected by the test it passes."""

from dataclasses import dataclass

import numpy as np
import pytest
from decomposable_laws import assert_no_total, least_p, p_value
from decomposable_systems import SYSTEMS, System
from elimination_model import FLAWS, Model, has_twins
from laws import ALPHA, power

COUNT = 40_000
MODELLED = [name for name, system in SYSTEMS.items() if not has_twins(system)]


@dataclass(frozen=True)
class Case:
    """A system, and the categories of the sums whose joint probabilities tell right from wrong."""

    system: System
    sums: list[dict[str, int]]

    @property
    def forms(self):
        return [self.system.sum_of(**categories) for categories in self.sums]


ONE_WAY = {"A": 4, "B": 3, "C": 2}
SHARP = Case(System(ONE_WAY, "A B C", "2"), [{"A": 0, "B": 0}, {"A": 1, "B": 1}, {"A": 0, "B": 1}])
WIDE = Case(System(ONE_WAY, "A B C", "1"), [{"A": 0, "B": 0}, {"A": 1, "B": 1}])
STAR = Case(
    System({"A": 2, "B": 3, "C": 3, "D": 2}, "AB AC AD", "2"),
    [{"A": 0, "B": 0, "C": 0}, {"A": 0, "B": 1, "C": 1}, {"A": 1, "B": 0, "C": 0}],
)
WRONG = {"root": SHARP, "kept": SHARP, "exponent": WIDE, "order": STAR, "mixed": STAR}


def drawn_sums(case, flaw=None, seed=1):
    """The sums of a case, which all have totals 0, and their probabilities."""
    entries = Model(case.system, flaw).draw(COUNT, seed)
    assert_no_total(entries, case.system.totals)
    return entries @ np.array(case.forms).T, case.system.law.joint(*case.forms, reach=3)


def test_every_flaw_is_tried():
    assert set(WRONG) == set(FLAWS)


@pytest.mark.parametrize("case", [SHARP, WIDE, STAR], ids=["sharp", "wide", "star"])
def test_the_model_passes(case):
    assert p_value(*drawn_sums(case)) > least_p(3)


@pytest.mark.parametrize("flaw", WRONG)
def test_a_wrong_model_fails(flaw):
    values, law = drawn_sums(WRONG[flaw], flaw, seed=7)
    assert p_value(values, law) < ALPHA
    assert power(values, law, COUNT) > 1 - 1e-3


@pytest.mark.audit
@pytest.mark.parametrize("name", MODELLED)
def test_the_model_passes_everywhere(name):
    system = SYSTEMS[name]
    entries = Model(system).draw(20_000)
    assert_no_total(entries, system.totals)
    for forms in system.statistics:
        assert p_value(entries @ np.array(forms).T, system.law.joint(*forms)) > least_p(2 * len(MODELLED))


@pytest.mark.audit
@pytest.mark.parametrize("name", MODELLED)
def test_no_factor_exceeds_1(name):
    _, log = Model(SYSTEMS[name]).propose(2_000, np.random.default_rng(5))
    assert log.max() < 1e-9


def test_entries_in_the_same_totals_have_no_model():
    with pytest.raises(ValueError, match="same totals"):
        Model(System({"A": 3, "B": 2, "C": 2, "D": 3}, "A B C", "1"))


def test_margins_that_are_not_decomposable_have_no_model():
    with pytest.raises(ValueError, match="not decomposable"):
        Model(System({"A": 2, "B": 2, "C": 2}, "AB BC CA", "1", sizes=[1] * 8))

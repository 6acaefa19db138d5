"""Noise with a focus in a ledger: what is typed is charged, and what all releases lose together is not more than that.

The oracle is brute force: all tables of a few people, all of their changes, and the nearest real table in the sum of
all norms (or quadratic forms), by the definition in docs/one-person.md.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import msgspec
import numpy as np
import pytest

import keepsum as ks
from keepsum.errors import LedgerError
from keepsum.ledger.entries import CostRecord, encoded
from keepsum.ledger.person import counted
from keepsum.ledger.showing import dataset_topics
from keepsum.ledger.state import State
from keepsum.ledger.store import Link
from tests.ledger.making import charge

DOMAIN = ks.Domain(
    {"state": ["A", "B"], "county": {"A": ["a1", "a2"], "B": ["b1"]}, "sex": ["f", "m"]}, within={"county": "state"}
)
COAST = ks.Invariants.subsets(DOMAIN.size, [[0, 1, 4]], names=["coast"])
BAY = ks.Invariants.subsets(DOMAIN.size, [[0, 1]], names=["bay"])


def planned(keep, mechanism):
    return ks.plan(keep=ks.Invariants.margins(DOMAIN, keep), mechanism=mechanism)


def spent(ledger):
    now = ledger.standing()
    return now.budget.amount(now.spent)


def shown(ledger):
    return " ".join(line for _, lines in dataset_topics(ledger.dataset()) for line in lines)


LAPLACE = [
    ([[]], {"county": 1}, 1),
    ([["state"]], {"county": 2}, 3),
    ([["state"]], {("state", "sex"): 2}, 1),
    ([[]], {"state": 1, "county": 1}, 2),
    ([], {COAST: 2}, 1),
    ([["state"]], {BAY: 1}, 1),
    ([[]], None, 1),
]


def laplace(focus, cells, epsilon=1):
    return ks.Laplace(epsilon, focus=focus, cell_share=cells) if focus else ks.Laplace(epsilon)


@pytest.mark.parametrize(("keep", "focus", "cells"), LAPLACE)
def test_a_release_is_charged_what_was_typed_and_again_as_often_as_it_is_made(tmp_path, keep, focus, cells):
    plan = planned(keep, laplace(focus, cells, "0.3"))
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=1)
    for times in (1, 2, 3):
        (found,) = ledger.assess(plan)
        assert found.difference == []
        charge(ledger, plan)
        assert spent(ledger) == Fraction(3, 10) * times == plan.guarantee.person_epsilon * times
    assert "epsilon 0.9 of 1 per person" in shown(ledger)
    assert "epsilon 0.9, so" in shown(ledger)  # of the attribute that loses most
    with pytest.raises(ks.BudgetError, match=r"this release needs 0\.3 per person\. Epsilon 0\.1 per person would fit"):
        charge(ledger, plan)
    charge(ledger, planned(keep, laplace(focus, cells, "0.1")))
    assert spent(ledger) == 1
    assert ledger.check().passed


@pytest.mark.parametrize("focus", [{"county": 1}, {"sex": 2}, {"state": 1, "county": 1}])
def test_the_rho_of_a_gaussian_focus_is_that_which_was_typed(tmp_path, focus):
    plan = planned([[]], ks.Gaussian(rho="0.1", focus=focus, cell_share=2))
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget(rho="0.25"))
    charge(ledger, plan)
    charge(ledger, plan)
    assert spent(ledger) == Fraction(1, 5)
    assert "rho 0.2 (zCDP)" in shown(ledger)
    with pytest.raises(ks.BudgetError, match=r"needs 0\.1 per person\. Rho 0\.05 per person would fit"):
        charge(ledger, plan)


def test_laplace_noise_in_a_budget_in_rho_is_half_the_square_of_what_was_typed(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget(rho=10))
    for epsilon in (1, "1/2"):
        charge(ledger, planned([[]], ks.Laplace(epsilon, focus={"county": 2})))
    assert spent(ledger) == Fraction(1, 2) + Fraction(1, 8)
    whole = ledger.dataset().total()
    charge(ledger, planned([[]], ks.Laplace(1, focus={"sex": 2})))
    assert Fraction(5, 8) < spent(ledger) < (whole.zcdp + Fraction(1, 2)) * 4


# -- several releases, against brute force ----------------------------------------------------------------


def tables(people):
    for cells in combinations_with_replacement(range(DOMAIN.size), people):
        yield np.bincount(cells, minlength=DOMAIN.size)


def changes(axis):
    """All cells, and all values of an attribute that are not theirs, each as the cells that have it and all else."""
    names = [DOMAIN.cell(cell) for cell in range(DOMAIN.size)]
    family = {"state": ("state", "county"), "county": ("state", "county"), "sex": ("sex",)}[axis]
    for cell, value in product(range(DOMAIN.size), DOMAIN.categories(axis)):
        here = DOMAIN.codes(axis)[cell]
        there = [
            other
            for other, name in enumerate(names)
            if DOMAIN.categories(axis)[DOMAIN.codes(axis)[other]] == value
            and all(name[k] == names[cell][k] for k in name if k not in family)
        ]
        if DOMAIN.categories(axis)[here] != value and there:
            yield cell, there


def loss_of(plans):
    """What all lose at a difference: the sum of all norms, or of all quadratic forms."""
    rows = []
    for plan in plans:
        mechanism = plan.mechanism
        gaussian = mechanism.kind == "gaussian"
        cells = mechanism.rho if gaussian else mechanism.cell_epsilon
        rows.append((gaussian, float(cells), np.eye(DOMAIN.size)))
        for level in mechanism.focus:
            kept = level.key if level.subsets is not None else ks.Invariants.margins(DOMAIN, [level.axes])
            rows.append((gaussian, float(level.weight), kept.coefficients.toarray()))

    def loss(difference):
        return sum(
            weight * ((matrix @ difference) ** 2 if gaussian else np.abs(matrix @ difference)).sum()
            for gaussian, weight, matrix in rows
        )

    return loss


def worst(plans, people):
    """The most that one person loses by all releases, over all tables of so many people."""
    loss = loss_of(plans)
    totals = np.vstack([plan.invariants.coefficients.toarray() for plan in plans] + [np.ones((1, DOMAIN.size))])
    alike = {}
    for table in tables(people):
        alike.setdefault(tuple((totals @ table).tolist()), []).append(table)
    most = 0.0
    for axis in DOMAIN.axes:
        for cell, there in changes(axis):
            for fibre in alike.values():
                ends = [y for y in fibre if y[there].any()]
                for x in fibre:
                    if x[cell] and ends:
                        most = max(most, min(loss(y - x) for y in ends))
    return most


TOGETHER = [
    [([[]], {"county": 1}, 1), ([[]], {"state": 2}, 1)],
    [([["state"]], {"county": 2}, 1), ([["sex"]], {"county": 1}, 1)],
    [([["state"]], {"county": 2}, 1), ([[]], None, 1)],
    [([[]], {"county": 2}, 1), ([["county"]], None, 1)],  # whose totals are kept by the second
    [([[]], {"state": 1, "county": 1}, 2), ([["state"]], {("state", "sex"): 2}, 1)],
    [([[]], {COAST: 2}, 1), ([["state"]], {"county": 1}, 1)],
]


@pytest.mark.parametrize("releases", TOGETHER)
@pytest.mark.parametrize("kind", ["epsilon", "rho"])
def test_what_several_releases_are_charged_is_what_the_worst_change_loses(tmp_path, releases, kind):
    budget = ks.Budget(100) if kind == "epsilon" else ks.Budget(rho=100)
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=budget)
    plans = []
    for keep, focus, cells in releases:
        if kind == "epsilon":
            mechanism = laplace(focus, cells)
        else:
            mechanism = ks.Gaussian(rho=1, focus=focus, cell_share=cells) if focus else ks.Gaussian(rho=1)
        plans.append(planned(keep, mechanism))
        (found,) = ledger.assess(plans[-1])
        charge(ledger, plans[-1])
        needs, typed = float(found.needs), 1.0
        assert bool(found.difference) == (abs(needs - typed) > 1e-8), found.difference
    together = float(spent(ledger))
    lower = max(worst(plans, people) for people in (1, 2, 3))
    assert lower <= together * (1 + 1e-9)
    crude = ledger.dataset().total()
    assert together <= (crude.epsilon * 4 if kind == "epsilon" else crude.zcdp * 16)
    for line in ledger.assess(plans[0])[0].difference:
        assert line.startswith("For one person its certificate states ")
        assert line.count(". ") == 0  # both numbers and the reason in one sentence


def test_weights_that_do_not_add_up_would_be_found():
    """The oracle: half of a charge is too little for some table."""
    plans = [planned(keep, laplace(focus, cells)) for keep, focus, cells in TOGETHER[0]]
    assert worst(plans, 1) > 1


# -- where only the old bound is known ----------------------------------------------------------------------


def test_laplace_and_gaussian_noise_are_charged_at_the_largest_distance_and_both_numbers_are_said(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget(rho=100))
    charge(ledger, planned([["state"]], ks.Laplace(1, focus={"county": 2})))
    assert spent(ledger) == Fraction(1, 2)
    plan = planned([["state"]], ks.Gaussian(rho="0.1", focus={"county": 2}))
    (found,) = ledger.assess(plan)
    (line,) = found.difference
    assert line.startswith("For one person its certificate states rho 0.1, and the ledger charges ")
    assert line.endswith("Laplace and Gaussian noise, which measure changes in different norms.")
    charge(ledger, plan)
    total = ledger.dataset().total()
    assert spent(ledger) == total.zcdp * 4**2
    assert "all of epsilon or rho counts at the largest distance here, as the releases have" in shown(ledger)


def test_earlier_entries_keep_their_numbers_and_say_so(tmp_path, monkeypatch):
    """They have no shares: all of epsilon counts at the l1 distance."""
    plan = planned([["state"]], ks.Laplace(1, focus={"county": 2}))
    new = CostRecord.of
    monkeypatch.setattr(CostRecord, "of", lambda cost: msgspec.structs.replace(new(cost), levels=()))
    path = tmp_path / "ledger.db"
    charge(ks.Ledger.create(path, budget=10), plan)
    monkeypatch.undo()
    ledger = ks.Ledger.open(path)
    assert '"levels"' not in "".join(entry["content"] for entry in ledger.export())
    old = plan.guarantee.unit_epsilon * 4
    assert spent(ledger) == old > 1
    assert ledger.check().passed
    (number,) = [spend.number for spend in ledger.spends()]
    assert f"Charged more than the certificate states for one person: entries {number}, which do not" in shown(ledger)
    charge(ledger, plan)  # of the same noise, with shares
    assert spent(ledger) == old + 1
    assert ledger.check().passed


def test_an_entry_whose_shares_are_not_those_of_its_mechanism_is_refused(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=10)
    charge(ledger, planned([["state"]], ks.Laplace(1, focus={"county": 2})))
    (spend,) = ledger.spends()
    wrong = msgspec.structs.replace(spend.entry.cost, levels=("1/20", "1/20"))
    links = [Link(**entry) for entry in ledger.export()]
    last = links[spend.number - 1]
    state = State()
    state.add(links[: spend.number - 1])
    with pytest.raises(LedgerError, match=f"Entry {spend.number} of the ledger does not follow"):
        state.add([replace(last, content=encoded(msgspec.structs.replace(spend.entry, cost=wrong)))])
    state.add(links[spend.number - 1 :])


def test_imported_releases_are_charged_alike(tmp_path):
    table = ks.Table(DOMAIN, np.arange(10, 10 + DOMAIN.size))
    release = ks.release(table, keep=[["state"]], mechanism=ks.Laplace(1, focus={"county": 2}))
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=1)
    ledger.import_release(release.save(tmp_path / "out.csv"))
    assert spent(ledger) == 1
    assert counted(ledger.dataset()).coarse is None


def test_per_unit_of_distance_the_sum_of_all_weights_counts(tmp_path):
    plan = planned([["state"]], ks.Laplace(1, focus={"county": 2}))
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(10))
    charge(ledger, plan)
    assert spent(ledger) == plan.guarantee.unit_epsilon

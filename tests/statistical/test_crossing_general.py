"""Tables with focused margins that are too large for the exact sampler, by the general ones on a longer lattice.

Small tables, against their law by enumeration; the planner is told that they are too large.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from crossing_laws import KEPT, TABLES, entries_law, log_margins
from laws import assert_drawn_from, assert_not_drawn_from, power
from splitting_laws import drawn, entry_sums

import keepsum as ks
from keepsum.planning.selection import splitting
from keepsum.planning.selection.general import Outcome, draw_by, settle
from keepsum.planning.selection.l1_focus import arranged_tables, longer_matrix
from support import mostly_audit

COUNT = 30_000
WEAK = ks.Domain({"county": ["a", "b", "c"], "age": ["0", "18", "65"]})


def choice_of(name, instead=None, tables=1, outcome=None):
    sizes, epsilon, given, _ = TABLES[name]
    sizes = np.array(sizes)
    matrix, weights = longer_matrix(sizes, instead or given)
    cells = np.arange(tables * int(sizes.sum()))
    arranged = arranged_tables(matrix, sizes[sizes > 0], Fraction(epsilon), weights, cells)
    return draw_by(outcome or settle(arranged.problem, ()), arranged)


def sums_of(name, choice, count=COUNT, seed=1):
    return entry_sums(drawn(choice.sampler, count, seed), TABLES[name][0])


@mostly_audit("name", TABLES)
def test_law(name):
    sizes, _, given, _ = TABLES[name]
    choice = choice_of(name)
    assert choice.exactness == "rounded"
    entries = sums_of(name, choice)
    assert log_margins(entries.reshape(-1, *np.shape(sizes)), given)[1].all()
    assert_drawn_from(entries, entries_law(name))


@pytest.mark.audit
@pytest.mark.parametrize("method", ["mixture_chain", "heat_bath_chain"])
@pytest.mark.parametrize("name", ["both focused", "whole kept", "an entry that is kept"])
def test_law_of_chains(name, method):
    choice = choice_of(name, outcome=Outcome(method, tau=0.14, log_cap=-1e5, steps=60))
    assert choice.method == method
    assert_drawn_from(sums_of(name, choice, 10_000), entries_law(name))


@mostly_audit("side", ["rows", "columns"])
@pytest.mark.parametrize("times", [Fraction(1, 20), 2])
def test_a_weight_that_is_forgotten_or_counted_twice_fails(side, times):
    given = TABLES["both focused"][2]
    wrong = replace(given, **{side: tuple(weight * times for weight in getattr(given, side))})
    entries, law = sums_of("both focused", choice_of("both focused", wrong), seed=7), entries_law("both focused")
    assert_not_drawn_from(entries, law)
    assert power(entries, law, COUNT) > 1 - 1e-6


def test_several_tables_per_draw_with_an_entry_that_is_kept():
    name = "an entry that is kept"
    noise = drawn(choice_of(name, tables=2).sampler, COUNT)
    for k in range(2):
        assert_drawn_from(entry_sums(noise[:, 4 * k : 4 * k + 4], TABLES[name][0]), entries_law(name))
    pairs = noise[:, [0, 4]]  # of the entry of two cells in each table: |z| is geometric with e^-2, its sign even
    chances = {(a, b): np.tanh(1) ** 2 * np.exp(-2.0 * (abs(a) + abs(b))) for a in range(-3, 4) for b in range(-3, 4)}
    assert_drawn_from(pairs, (list(chances), np.array(list(chances.values()))))


@pytest.fixture
def too_large(monkeypatch):
    """No table is small enough for the exact sampler."""
    for limit in ("ENTRIES", "LABELLED_ENTRIES"):
        monkeypatch.setattr(splitting, limit, 0)


@pytest.mark.usefixtures("too_large")
def test_a_plan_has_its_law():
    weights = {"county": Fraction(1), "age": Fraction(1, 2)}
    plan = ks.plan(WEAK, keep=[], mechanism=ks.Laplace.per_unit(2, focus=weights))
    (choice,) = plan._record.blocks.choices
    assert (choice.method, choice.exactness, [reason.kind for reason in choice.reasons]) == (
        "mixture_rejection",
        "rounded",
        ["table_too_large"],
    )
    assert plan.guarantee.sampling == "rounded"
    assert_drawn_from(plan.sample(COUNT, ks.rng(seed=3)), entries_law("3 x 3"))
    wrong = ks.plan(WEAK, keep=[], mechanism=ks.Laplace.per_unit(2, focus={"county": Fraction(1)}))
    assert_not_drawn_from(wrong.sample(COUNT, ks.rng(seed=3)), entries_law("3 x 3"))


@pytest.mark.usefixtures("too_large")
def test_kept_rows():
    plan = ks.plan(
        WEAK, keep=[["county"]], mechanism=ks.Laplace.per_unit(Fraction(3, 2), focus={"age": Fraction(1, 2)})
    )
    assert TABLES["3 x 3, rows kept"][2].rows == (KEPT,) * 3
    assert plan.guarantee.sampling == "rounded"
    assert_drawn_from(plan.sample(COUNT, ks.rng(seed=3)), entries_law("3 x 3, rows kept"))


@pytest.mark.usefixtures("too_large")
def test_release_and_verify(tmp_path):
    table = ks.Table.from_array(np.arange(9).reshape(3, 3) * 10, WEAK)
    weights = {"county": Fraction(1), "age": Fraction(1, 2)}
    released = ks.release(table, keep=[], mechanism=ks.Laplace.per_unit(2, focus=weights))
    released.save(f"{tmp_path}/out/")
    assert ks.verify(f"{tmp_path}/out/")
    (block,) = released.certificate.guarantee.blocks
    assert (block.form.kind, block.sampler.method, block.exactness) == ("crossed", "mixture_rejection", "rounded")

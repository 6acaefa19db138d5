"""What plans state of one person holds in random fibres, and a statement that is too small is rejected there."""

import secrets
from itertools import islice, repeat

import numpy as np
import pytest

from experiments.fibres.comparison import Found, Stated, compare_all, stated_by_plan
from experiments.fibres.kinds import KINDS, fibres, known, random_change, witnesses
from experiments.fibres.nearest import Measure, counts_of
from experiments.fibres.run import page, run
from experiments.fibres.systems import System
from fibres.theory import stated_by_theory


@pytest.mark.parametrize("name", KINDS)
def test_no_change_is_farther_than_stated(name):
    results = run(8, 38, names=[name])
    assert not [line for found in results.values() for line in found.beyond]


@pytest.mark.audit
def test_no_change_is_farther_than_stated_in_other_fibres():
    seed, number = secrets.randbits(32), 600
    results = run(number, seed)
    beyond = [line for found in results.values() for line in found.beyond]
    assert not beyond, f"make fibres SEED={seed} FIBRES={number}"
    # 10,000 fibres compare 8.0 changes each: with far fewer, the kinds would have become empty.
    assert sum(found.compared for found in results.values()) > 6 * number


NESTED = {"state": 2, "county": ("state", (0, 0, 1, 1)), "sex": 2, "age": 2}
SAME = {"state": 3, "county": ("state", (0, 1, 2)), "industry": 2, "sex": 2}
EXACT = {
    "a chain": System.of(dict.fromkeys("ABCD", 2), ["AB", "BC", "CD"]),
    "a star": System.of(dict.fromkeys("ABCDE", 2), ["AB", "BC", "BD", "E"]),
    "one-way margins": System.of({"A": 3, "B": 2, "C": 2}, "ABC"),
    "of the counties of a state the nearest counts": System.of(NESTED, [["county"], ["state", "sex"], ["age"]]),
    "one county in each state": System.of(SAME, [["county"], ["state", "industry"], ["sex"]]),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_figure_that_is_stated_as_exact_is_attained(name):
    """By somebody and one witness for each margin that meets a change of the attribute, in one of some tables."""
    system, rng = EXACT[name], np.random.default_rng(6)
    statement = stated_by_plan(system)
    for axis in [axis for axis, stated in statement.items() if stated.exact]:
        found = Found()
        for _ in range(60):
            change = random_change(rng, system)
            if change.axis == axis and not found.attained:
                found.compare(system, witnesses(rng, system, change), {axis: statement[axis]})
        assert found.attained, axis


def lattice(lengths):
    """A deliberately wrong statement: the shortest vectors of the lattice, which are not between real tables."""
    return lambda system, measure: {name: Stated(length, length, exact=True) for name, length in lengths.items()}


WRONG = {
    "r x c x 2": lattice({"row": 8, "column": 8, "layer": 8}),
    "chains": lattice(dict(zip("ABCDE", repeat(4), strict=False))),
    "3 x 3 x 3": lattice({"row": 8, "column": 8, "layer": 8}),
    "two-way with zeros": lattice({"row": 4, "column": 4}),
    "stars": lattice({"A": 4}),
    "one-way margins with zeros": lattice({"A": 4, "B": 4, "C": 4}),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_lattice_is_rejected(name):
    """Also without the tables that are known: random ones find it."""
    drawn = fibres(np.random.default_rng([5, *name.encode()]), name, 40)
    assert compare_all(islice(drawn, len(list(known(name))), None), WRONG[name]).beyond


@pytest.mark.parametrize("name", ["r x c x 2", "chains"])
def test_the_known_tables_reject_the_lattice_and_have_the_right_figure(name):
    few = list(fibres(np.random.default_rng(1), name, 3 if name == "r x c x 2" else 1))
    assert compare_all(few, WRONG[name]).ratio == (20 / 8 if name == "r x c x 2" else 6 / 4)
    right = compare_all(few, stated_by_theory)
    assert not right.beyond
    assert right.ratio == 1


def test_a_weak_figure_is_not_taken_for_a_strong_one():
    """{AB, BC, CD}: six holds for B where others may change in any way, and not where they keep the rest."""
    few = list(fibres(np.random.default_rng(1), "chains", 1))
    for strong in (False, True):
        found = compare_all(few, lambda system, measure, strong=strong: {"B": Stated(6, 6, strong=strong)})
        assert bool(found.beyond) == strong


def test_nothing_is_stated_where_a_change_is_possible():
    few = list(fibres(np.random.default_rng(1), "chains", 1))
    assert compare_all(few, lambda system, measure: {"B": Stated(None)}).beyond
    assert compare_all(few, lambda system, measure: {"B": Stated(None, known=False)}).without_figure == 3
    assert not compare_all(few, lambda system, measure: {}).compared


def test_the_nearest_value_that_is_left_may_be_farther_than_some_other_value():
    """Four within a state; but nobody is in this person's other county, and another state is at six."""
    axes = {"state": 2, "county": ("state", (0, 0, 1, 1)), "sex": 2, "age": 2, "home": 2}
    system = System.of(axes, [["county", "sex"], ["state", "age"], ["home"]])
    x = counts_of(system, [(0, 0, 0, 0, 0), (1, 2, 0, 1, 1), (1, 3, 1, 0, 1)])
    found = compare_all([(system, x)], lambda system, measure: {"county": Stated(6, 4)})
    assert (len(found.elsewhere), found.beyond) == (1, [])


def test_another_state_is_at_four_though_another_county_in_it_is_at_six():
    """{county, state x sex, age}: of the counties of a state the nearest counts, and it is that of somebody there."""
    [(system, x)] = known("nested with crossing")
    found = compare_all([(system, x)], lambda system, measure: {"state": Stated(4, strong=True)})
    assert (found.beyond, found.ratio) == ([], 1.0)
    assert compare_all([(system, x)], lambda system, measure: {"county": Stated(4)}).ratio == 6 / 4


def test_lengths_of_a_focus():
    system = System.of({"county": 3, "sex": 2}, [[]])
    measure = Measure("l1", 1, ((2, system.margin_rows(["county"])),))
    stated = stated_by_plan(system, measure, ("county",))
    assert (stated["county"].any_value, stated["sex"].any_value) == (2 + 2 * 2, 2)
    found = compare_all([(system, np.array([1, 0, 0, 0, 0, 2]))], lambda *_: stated, measure)
    assert (found.beyond, found.ratio) == ([], 1.0)


def test_the_page():
    results = run(4, 1, stating=WRONG["chains"], names=["chains"])
    text = page(results, 1, "today")
    assert "| chains | 4 | " in text
    assert "| chains, l2 squared | 1 | " in text
    assert "## Farther than stated\n\n- (0, 0, 0, 0) B -> 1 in" in text

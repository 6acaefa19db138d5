"""The nearest real table, by integer programming: against listing every table, and against the tables of the issue."""

import numpy as np
import pytest

from experiments.fibres.kinds import KINDS, draw_system, draw_table
from experiments.fibres.nearest import L1, L2, Measure, Nearest, UnsolvedError, _checked, counts_of, nearest, tables
from experiments.fibres.systems import System

CHAIN = System.of(dict.fromkeys("ABCD", 2), ["AB", "BC", "CD"])


def focused(system, rng):
    axis = system.axes[int(rng.integers(len(system.axes)))].name
    return Measure("l1", 2, ((3, system.margin_rows(system.ancestors(axis))),))


def changes(system, x):
    """Every change of somebody to a cell where nobody is."""
    every = (change for i in np.flatnonzero(x) for change in system.changes(int(i)))
    return [change for change in every if change.targets and not any(x[j] for j in change.targets)]


@pytest.mark.parametrize("name", KINDS)
def test_integer_programming_finds_what_listing_finds(name):
    rng = np.random.default_rng([38, *name.encode()])
    compared = 0
    while compared < 8:
        system = draw_system(rng, name)
        x = draw_table(rng, system, name)
        for measure in (L1, L2, focused(system, rng)):
            fibre = Nearest(system, x, measure)
            for change in changes(system, x)[:3]:
                for changed, distance in ((None, fibre.weak(change)), (change.changed, fibre.strong(change))):
                    listed = [fibre.listed(fibre.rows(changed), j) for j in change.targets]
                    assert distance == min((d for d in listed if d is not None), default=None)
                    compared += 1


def test_the_chain_of_the_issue():
    fibre = Nearest(CHAIN, counts_of(CHAIN, [(0, 0, 0, 0), (0, 1, 1, 0), (1, 1, 0, 1)]))
    found = {c.axis: (fibre.weak(c), fibre.strong(c)) for c in CHAIN.changes(CHAIN.number[0, 0, 0, 0])}
    assert found == {"A": (None, None), "B": (6, None), "C": (None, None), "D": (4, 4)}


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_cycle_of_the_issue(n):
    """x[k, k, 0] = x[k, k + 1, 1] = 1: the only other table of the fibre changes everybody, at 4 n."""
    system = System.of({"row": n, "column": n, "layer": 2}, [["row", "column"], ["row", "layer"], ["column", "layer"]])
    people = [(k, (k + layer) % n, layer) for k in range(n) for layer in range(2)]
    fibre = Nearest(system, counts_of(system, people))
    assert {fibre.weak(change) for change in changes(system, fibre.x)} <= {None, 4 * n}
    assert {fibre.weak(c) for c in system.changes(system.number[0, 0, 0]) if c.axis == "layer"} == {4 * n}


def test_the_number_of_people_stays():
    """(1, -2, 1) keeps 1 2 3 and the number of people; (2, -1, 0) would be shorter, and is one person more."""
    system = System.of({"group": 3}, weighted=[[1, 2, 3]])
    fibre = Nearest(system, np.array([0, 2, 0]))
    assert [fibre.weak(change) for change in system.changes(1)] == [4, 4]
    assert [len(list(tables(system.kept, np.array(x)))) for x in ([0, 2, 0], [1, 0, 1], [1, 0, 0])] == [2, 2, 1]


def test_increases_pile_up_from_three_margins_on():
    """k = 3: eight in the l1 norm, and a table that puts two people into one cell at (k - 1)^2 + k + 3 = 10."""
    star = System.of(dict.fromkeys("ABCDE", 2), ["AB", "BC", "BD", "E"])
    people = [(0, 0, 0, 0, 0), (0, 1, 1, 1, 1), (1, 1, 0, 1, 1), (1, 1, 1, 0, 1)]
    change = next(c for c in star.changes(star.number[people[0]]) if c.axis == "B")
    x = counts_of(star, people)
    assert (Nearest(star, x).weak(change), Nearest(star, x, L2).weak(change)) == (8, 10)


def test_a_nested_value_follows_and_the_nearest_counts():
    axes = {"state": 2, "county": ("state", (0, 0, 1, 1)), "sex": 2}
    system = System.of(axes, [["county"]])
    x = counts_of(system, [(0, 0, 0), (1, 3, 1)])
    fibre = Nearest(system, x)
    found = {(c.axis, c.value): (fibre.weak(c), fibre.strong(c)) for c in system.changes(system.number[0, 0, 0])}
    assert found[("state", 1)] == (2, 4)  # to county 3, where somebody of the other sex is
    assert found[("county", 2)] == (None, None)
    assert found[("county", 3)] == (2, 4)
    assert found[("sex", 1)] == (2, 2)


def test_structural_zeros_stay():
    axes = {"row": 3, "column": 3}
    zeros = [(0, 2), (1, 0), (2, 1)]
    system = System.of(axes, [["row"], ["column"]], zeros=zeros)
    fibre = Nearest(system, counts_of(system, [(0, 0), (1, 1), (2, 2)]))
    assert [fibre.weak(c) for c in system.changes(0) if c.targets] == [6, 6]


def test_what_a_solver_says_is_checked():
    x, y = np.array([1, 0, 0]), np.array([0, 1, 0])
    rows = np.ones((1, 3), dtype=np.int64)
    assert _checked(rows, x, 1, y, L1, 2.0) == 2 == nearest(rows, x, 1)
    for wrong, bound in ((np.array([1, 1, 0]), 2.0), (np.array([2, -1, 0]), 2.0), (x, 0.0), (y, 0.0)):
        with pytest.raises(UnsolvedError):
            _checked(rows, x, 1, wrong, L1, bound)


@pytest.mark.parametrize("name", KINDS)
def test_keepsum_has_the_same_cells_and_totals(name):
    rng = np.random.default_rng([4, *name.encode()])
    for _ in range(6):
        system = draw_system(rng, name)
        order = [system._cell(index) for index in range(system.domain.size)]
        assert sorted(order) == list(range(len(system.cells)))
        ours = np.vstack([system.margin_rows([]), system.invariants.coefficients.toarray()[:, np.argsort(order)]])
        assert np.array_equal(np.unique(ours, axis=0), system.kept)

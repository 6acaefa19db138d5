"""Per-person losses of several releases: distances of tables with the totals of all, not sums."""

from fractions import Fraction
from functools import reduce
from operator import add

import pytest

import keepsum as ks
from accounting.divergences import COLUMNS_KEPT, ROWS_KEPT, SWAP, l1_laplace, largest_log_ratio, outputs, together
from keepsum.accounting.composition import compose
from keepsum.accounting.joint import joint_distances
from keepsum.accounting.total import Cost
from keepsum.errors import InputError, PlanError
from keepsum.privacy.distance import Neighbours
from keepsum.tables.origins import Records
from planning import brute_force

DOMAIN = ks.Domain({"row": ["a", "b"], "column": ["p", "q"]})
ROWS, COLUMNS = ks.Invariants.margins(DOMAIN, [["row"]]), ks.Invariants.margins(DOMAIN, [["column"]])


def person(invariants, attribute: str):
    return joint_distances(invariants, DOMAIN, "l1").person(Neighbours((attribute,)))


def test_rows_then_columns_is_no_sum_of_per_person_losses():
    """A change of column alone is at distance 2 in the first release and at 4 in the second; both see 4."""
    first, second = Fraction(1), Fraction(3, 4)
    apart = [person([kept], "column").length for kept in (ROWS, COLUMNS)]
    assert apart == [2, 4]
    distance = person([ROWS, COLUMNS], "column")
    loss = compose([Cost("l1", first), Cost("l1", second)]).at(distance).epsilon
    assert loss == 4 * (first + second)
    real = largest_log_ratio(
        together(outputs(ROWS_KEPT, l1_laplace(1), SWAP, 24), outputs(COLUMNS_KEPT, l1_laplace(0.75), SWAP, 28))
    )
    assert real == pytest.approx(float(loss))
    assert real > 2 * first + 4 * second + 1  # per-person losses, summed
    smallest = [ks.plan(keep=kept, mechanism=ks.Laplace.per_unit(1)).smallest_change.length for kept in (ROWS, COLUMNS)]
    assert smallest == [2, 2]
    assert real > 2 * first + 2 * second + 1
    assert ks.plan(keep=ROWS + COLUMNS, mechanism=ks.Laplace.per_unit(1)).smallest_change.length == 4


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_distances_are_those_of_tables_with_all_totals(norm):
    """By enumeration of real tables with the totals of all releases, and not of each."""
    domain = ks.Domain({"row": ["a", "b"], "column": ["p", "q", "r"]})
    kept = [
        ks.Invariants.margins(domain, [["row"]]),
        ks.Invariants.subsets(6, [[0, 3]]),
        ks.Invariants.subsets(6, [[1, 2, 4, 5]]),
    ]
    cost = brute_force.l1 if norm == "l1" else brute_force.squared
    together = reduce(add, (each.over(domain) for each in kept))
    row, column = joint_distances(kept, domain, norm).by_attribute
    for attribute in (row, column):
        brute_force.check(together, attribute, 4, cost, lambda distance: distance.length)
    # Both rows and the columns p, and q or r, are margins of a 2 x 2 table; q and r are one column of it.
    assert [(d.length, d.rule) for d in (row.any_value, column.any_value)] == [(4, "table")] * 2
    assert (column.other_value.length, row.other_value.length) == (4, 4)
    margins = [ks.Invariants.margins(domain, [[axis]]) for axis in domain.axes]
    for attribute in joint_distances(margins, domain, norm).by_attribute:
        assert brute_force.check(margins[0] + margins[1], attribute, 3, cost, lambda distance: distance.length) == 2


def test_margins_of_several_releases_need_not_have_a_junction_tree():
    """{AB}, {BC} and {AC}, each at 4 alone: together real tables of 3 x 3 x 2 may be at 12."""
    domain = ks.Domain({"a": [0, 1, 2], "b": [0, 1, 2], "c": [0, 1]})
    kept = [ks.Invariants.margins(domain, [pair]) for pair in (["a", "b"], ["b", "c"], ["a", "c"])]
    assert [joint_distances([each], domain, "l1").person().length for each in kept] == [4, 4, 4]
    assert joint_distances(kept[:2], domain, "l1").person().length == 6
    assert joint_distances(kept, domain, "l1").person().length == 12


def test_several_records_of_a_person_count():
    joint = joint_distances([ROWS, COLUMNS], DOMAIN, "l1", Records("person", 3))
    assert (joint.person().length, joint.person().exact) == (12, False)


def test_cells_may_be_pinned_jointly():
    domain = ks.Domain({"cell": ["a", "b", "c", "d"]})
    pairs = [ks.Invariants.subsets(4, [pair]) for pair in ([0, 1], [1, 2], [0, 2])]
    for kept in pairs:
        assert len(joint_distances([kept], domain, "l1").pinned) == 0
    assert joint_distances(pairs, domain, "l1").pinned.tolist() == [0, 1, 2]
    with pytest.raises(PlanError, match="together determine every cell"):
        joint_distances([*pairs, ks.Invariants.subsets(4, [[0, 1, 2, 3]])], domain, "l1")
    assert joint_distances([], domain, "l1").person().length == 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((ROWS, DOMAIN, "l1"), "Kept totals must be a list of Invariants"),
        (([ROWS, 3], DOMAIN, "l1"), "Kept totals must be Invariants"),
        (([ROWS], None, "l1"), "Cells must be named by a Domain"),
        (([ROWS], DOMAIN, "l3"), "Norm must be 'l1' or 'l2'"),
        (([ROWS], ks.Domain({"row": ["a", "b"]}), "l1"), "another domain"),
        (([ks.Invariants.subsets(3, [[0]])], DOMAIN, "l1"), "must have 3 cells like the invariants, got 4"),
    ],
)
def test_releases_must_be_of_one_table(arguments, problem):
    with pytest.raises(InputError, match=problem):
        joint_distances(*arguments)

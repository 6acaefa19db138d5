"""Per-person losses of several releases: distances on the joint lattice, not sums."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import keepsum as ks
from accounting.divergences import COLUMNS_KEPT, ROWS_KEPT, SWAP, l1_laplace, largest_log_ratio, outputs, together
from keepsum.accounting.composition import compose
from keepsum.accounting.cost import Cost
from keepsum.accounting.joint import joint_distances
from keepsum.errors import InputError, PlanError
from keepsum.privacy.neighbours import Neighbours
from keepsum.tables.records import Records

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
    smallest = [joint_distances([kept], DOMAIN, "l1").smallest_change.length for kept in (ROWS, COLUMNS)]
    assert smallest == [2, 2]
    assert real > 2 * first + 2 * second + 1
    assert joint_distances([ROWS, COLUMNS], DOMAIN, "l1").smallest_change.length == 4


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_distances_are_those_of_the_joint_lattice(norm):
    """By enumeration: the shortest change that takes from a cell and gives to one with another value, the largest."""
    domain = ks.Domain({"row": ["a", "b"], "column": ["p", "q", "r"]})
    kept = [
        ks.Invariants.margins(domain, [["row"]]),
        ks.Invariants.subsets(6, [[0, 3]]),
        ks.Invariants.subsets(6, [[1, 2, 4, 5]]),
    ]
    joint = joint_distances(kept, domain, norm)
    rows = np.vstack([each.coefficients.toarray() for each in kept])
    z = np.array(list(product(range(-2, 3), repeat=6)))
    z = z[(z @ rows.T == 0).all(axis=1)]
    for attribute in joint.by_attribute:
        codes, worst = domain.codes(attribute.axis), 0
        for cell, value in product(range(6), range(max(codes) + 1)):
            if codes[cell] != value:
                moves = z[(z[:, cell] < 0) & (z[:, codes == value] > 0).any(axis=1)]
                lengths = np.abs(moves).sum(axis=1)
                shortest = moves[lengths == lengths.min()]
                worst = max(worst, int((shortest**2 if norm == "l2" else np.abs(shortest)).sum(axis=1).max()))
        assert attribute.any_value.length == worst
        assert attribute.any_value.exact


def test_several_records_of_a_person_count():
    joint = joint_distances([ROWS, COLUMNS], DOMAIN, "l1", Records("person", 3))
    assert (joint.person().length, joint.smallest_change.length) == (12, 12)


def test_cells_may_be_pinned_jointly():
    domain = ks.Domain({"cell": ["a", "b", "c", "d"]})
    pairs = [ks.Invariants.subsets(4, [pair]) for pair in ([0, 1], [1, 2], [0, 2])]
    for kept in pairs:
        assert len(joint_distances([kept], domain, "l1").pinned) == 0
    assert joint_distances(pairs, domain, "l1").pinned.tolist() == [0, 1, 2]
    with pytest.raises(PlanError, match="together determine every cell"):
        joint_distances([*pairs, ks.Invariants.subsets(4, [[0, 1, 2, 3]])], domain, "l1")
    assert joint_distances([], domain, "l1").smallest_change.length == 1


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

"""Tables of records that were truncated: sums of one table where they count the same records, and refused elsewhere."""

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations, combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest

import keepsum as ks
from keepsum.accounting.joint import JointDistances
from keepsum.ledger.assessment import APART
from keepsum.ledger.person import PERSON_APART, PERSON_NOT_KNOWN
from keepsum.ledger.showing import dataset_facts, dataset_topics
from ledger.making import charge, laplace
from test_arguments import check_message

TENTH = Fraction(1, 10)
PER_PERSON = ks.Budget(100)
CATEGORIES = {"a": ["0", "1", "2"], "b": ["0", "1"], "c": ["0", "1"]}
# Three people, of whom at most one record each is counted: by a, b the third has (1, 1), by b, a the other one.
PEOPLE = [[(0, 0)], [(1, 1)], [(1, 1), (2, 0)]]
CELLS = list(product(range(3), range(2)))


def frame(people, columns: str = "ab") -> pd.DataFrame:
    rows = [(person, *map(str, record)) for person, records in enumerate(people) for record in records]
    return pd.DataFrame(rows, columns=["person", *columns])


def counted(records: pd.DataFrame, by: Sequence[str], most: int = 1, **changed) -> ks.Table:
    domain = {axis: changed.get(axis, CATEGORIES[axis]) for axis in by}
    return ks.tabulate(records, by=list(by), domain=domain, unit="person", max_rows_per_unit=most)


def in_order(table: ks.Table, axes: Sequence[str] = "ab") -> np.ndarray:
    """The counts with these axes first, the others summed."""
    array = np.asarray(table.counts).reshape([len(CATEGORIES[axis]) for axis in table.domain.axes])
    left = [axis for axis in table.domain.axes if axis in axes]
    summed = array.sum(axis=tuple(k for k, axis in enumerate(table.domain.axes) if axis not in axes))
    return summed.transpose([left.index(axis) for axis in axes]).ravel()


def declared(*axes: str) -> ks.Domain:
    return ks.Domain({axis: CATEGORIES[axis] for axis in axes})


def ledger_of(path, budget=PER_PERSON, domain: ks.Domain | None = None) -> ks.Ledger:
    return ks.Ledger.create(path / "ledger.db", budget=budget, domain=domain)


def refused(ledger: ks.Ledger, table: ks.Table, keep) -> None:
    before = ledger.head
    with pytest.raises(ks.BudgetError) as caught:
        ks.release(table, keep=keep, mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
    assert str(caught.value) == str(ks.BudgetError(PERSON_APART))
    check_message(caught.value)
    assert ledger.head == before


# -- which tables are sums of one ------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [int, "p{}".format], ids=["arrays", "database"])
def test_tables_by_leading_columns_are_margins_and_others_are_not(names):
    """Proposition 1 of docs/accounting.md, for units counted in arrays and for units counted by a database."""
    choice = random.Random(7)
    people = [
        [tuple(choice.randrange(len(CATEGORIES[axis])) for axis in "abc") for _ in range(choice.randrange(1, 7))]
        for _ in range(40)
    ]
    records = frame(people, "abc").sample(frac=1, random_state=1)
    records["person"] = records["person"].map(names)
    wholes = [counted(records, order, 2) for order in ("abc", "cab")]
    for whole in wholes:
        for few in (whole.domain.axes[:1], whole.domain.axes[:2]):
            assert in_order(whole, few).tolist() == in_order(counted(records, few, 2), few).tolist()
    assert in_order(wholes[0], "abc").tolist() != in_order(wholes[1], "abc").tolist()


def test_tables_by_leading_columns_are_charged_at_their_joint_distance(tmp_path):
    ledger = ledger_of(tmp_path, domain=declared("a", "b", "c"))
    records = frame([[(0, 0, 0), (1, 1, 1)], [(1, 1, 0)], [(2, 0, 1)]], "abc")
    shorter = counted(records, "ab", 2, a=["2", "0", "1"])  # whatever the order of categories
    ks.release(shorter, keep=[["a"]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
    ks.release(counted(records, "abc", 2), keep=[["b"]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
    assert ledger.standing().spent.epsilon == 2 * 4 * 2 * TENTH
    assert (ledger.standing().apart, ledger.standing().warnings) == (False, [])


@pytest.mark.parametrize(
    ("by", "most", "changed"),
    [
        ("ba", 2, {}),  # the same cells in another order
        ("ab", 1, {}),  # another bound
        ("abc", 1, {}),
        ("b", 2, {}),  # columns that are not the first
        ("cab", 2, {}),
        ("ab", 2, {"a": ["0", "1"]}),  # records were left out before the others were counted
    ],
)
def test_tables_of_other_records_have_no_distance_of_one_person(tmp_path, by, most, changed):
    ledger = ledger_of(tmp_path, domain=declared("a", "b", "c"))
    records = frame([[(0, 0, 0)], [(1, 1, 0)], [(1, 1, 1), (1, 0, 0)]], "abc")
    ks.release(counted(records, "ab", 2), keep=[["a"]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
    refused(ledger, counted(records, by, most, **changed), [[]])
    assert ledger.standing().spent.epsilon == 2 * 4 * TENTH


def test_counts_of_people_are_not_sums_of_truncated_records(tmp_path):
    ledger = ledger_of(tmp_path, domain=declared("a", "b"))
    table = ks.Table.from_array([[5, 6], [7, 8], [9, 10]], axes=declared("a", "b"))
    ks.release(table, keep=[["a"]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
    refused(ledger, counted(frame(PEOPLE), "ab"), [["a"]])
    one_each = ks.tabulate(frame(PEOPLE), by=["a", "b"], domain=declared("a", "b"), max_rows_per_unit=1)
    ks.release(
        one_each, keep=[["a"]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger
    )  # nobody's records were left out
    assert ledger.standing().spent.epsilon == 4 * 2 * TENTH


# -- what would be wrong ---------------------------------------------------------------------------------------------


def kinds() -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """What can be counted of a person by a, b and by b, a: of any records, the first in each order."""
    lists = chain.from_iterable(combinations(CELLS, size) for size in range(1, len(CELLS) + 1))
    return {(min(records), min(records, key=lambda cell: cell[::-1])) for records in lists}


def test_the_joint_distance_would_be_too_small(tmp_path):
    """By a, b with b kept; by b, a with both kept. Of all lists of three people only one has the first in (2, 0)."""
    first, second = counted(frame(PEOPLE), "ab"), counted(frame(PEOPLE), "ba")
    real = in_order(first), in_order(second)

    def tables(people) -> tuple[np.ndarray, np.ndarray]:
        return tuple(np.array([sum(each[k] == cell for each in people) for cell in CELLS]) for k in (0, 1))

    def kept(people) -> list[list[int]]:
        grids = [table.reshape(3, 2) for table in tables(people)]
        return [grids[0].sum(0).tolist(), grids[1].sum(0).tolist(), grids[1].sum(1).tolist()]

    this = [(min(records), min(records, key=lambda cell: cell[::-1])) for records in PEOPLE]
    assert all((mine == theirs).all() for mine, theirs in zip(tables(this), real, strict=True))
    others = [people for people in combinations_with_replacement(sorted(kinds()), 3) if kept(people) == kept(this)]
    moved = [people for people in others if tables(people)[0][CELLS.index((2, 0))]]
    assert moved == [(((0, 1), (0, 1)), ((0, 1), (1, 0)), ((2, 0), (2, 0)))]
    distances = [int(np.abs(mine - theirs).sum()) for mine, theirs in zip(tables(moved[0]), real, strict=True)]
    assert distances == [6, 4]
    loss = sum(TENTH * distance for distance in distances)

    ledger = ledger_of(tmp_path)
    plans = [
        ks.plan(first, keep=["b"], mechanism=ks.Laplace.per_unit(TENTH)),
        ks.plan(second, keep=["a", "b"], mechanism=ks.Laplace.per_unit(TENTH)),
    ]
    own = [next(each for each in plan.attributes if each.axis == "a").any_value.length for plan in plans]
    assert own == [2, 4]
    assert loss > sum(TENTH * length for length in own)  # each table by itself
    assert loss > 4 * 2 * TENTH  # the distance under all kept totals, of one table
    ks.release(first, keep=[["b"]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
    refused(ledger, second, [["a"], ["b"]])


def test_grand_totals_alone_bound_every_change_of_one_person(tmp_path):
    """Proposition 2 there, over every change of the records of one person that leaves their number."""
    ledger = ledger_of(tmp_path, domain=declared("a", "b"))
    records = frame([[(0, 0), (1, 1), (2, 0)]])
    for by, most in (("ab", 2), ("ba", 1), ("b", 3)):
        ks.release(counted(records, by, most), keep=[[]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
    standing = ledger.standing()
    assert (standing.spent.epsilon, standing.apart) == (2 * 3 * 3 * TENTH, False)
    lists = list(combinations_with_replacement(CELLS, 3))
    orders = {"ab": lambda cell: cell, "ba": lambda cell: cell[::-1], "b": lambda cell: cell[1:]}
    worst = 0
    for mine, theirs in product(lists, lists):
        loss = 0
        for by, most in (("ab", 2), ("ba", 1), ("b", 3)):
            x, y = (sorted(map(orders[by], each))[:most] for each in (mine, theirs))
            loss += sum(abs(x.count(cell) - y.count(cell)) for cell in {*x, *y})
        worst = max(worst, loss)
    assert worst == 2 * (2 + 1 + 3)
    assert worst * TENTH <= standing.spent.epsilon


# -- what is said ----------------------------------------------------------------------------------------------------


def test_a_budget_per_unit_says_what_its_distance_is(tmp_path):
    ledger = ledger_of(tmp_path, ks.Budget.per_unit(100))
    first, second = counted(frame(PEOPLE), "ab"), counted(frame(PEOPLE), "ba")
    ks.release(first, keep=[["b"]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
    plan = ks.plan(second, keep=["a"], mechanism=ks.Laplace.per_unit(TENTH))
    ks.release(second, keep=[["a"]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
    assert (ledger.standing().spent.epsilon, ledger.standing().apart) == (2 * TENTH, True)
    assert APART in ledger.assess(plan)[0].lines
    topics = dataset_topics(ledger.dataset())
    assert ("Warning", [APART]) in topics
    assert dict(topics)["One person"] == [f"not stated: a{str(ks.BudgetError(PERSON_APART))[1:]}"]
    assert dataset_facts(ledger.dataset())["warnings"] == [APART]


def test_units_that_differ_count_different_records(tmp_path):
    ledger = ledger_of(tmp_path, ks.Budget.per_unit(100))
    records = frame(PEOPLE).assign(flat=1)
    for unit, apart in (("person", False), ("person", False), ("flat", True)):
        table = ks.tabulate(records, by="a", domain=declared("a"), unit=unit, max_rows_per_unit=2)
        ks.release(table, keep=ks.Invariants.subsets(3, [[0, 1]]), mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
        assert ledger.standing().apart is apart


def test_an_imported_table_of_other_records_leaves_nothing(tmp_path):
    ledger = ledger_of(tmp_path)
    ks.release(counted(frame(PEOPLE), "ab"), keep=[["b"]], mechanism=ks.Laplace.per_unit(TENTH), ledger=ledger)
    elsewhere = ks.release(counted(frame(PEOPLE), "ba"), keep=[["b"]], mechanism=ks.Laplace.per_unit(TENTH))
    standing = ledger.import_release(elsewhere.certificate)
    assert (standing.spent, standing.left, standing.problem) == (None, 0, str(ks.BudgetError(PERSON_APART)))


def test_a_distance_that_is_not_known_is_not_charged_per_person(tmp_path, monkeypatch):
    monkeypatch.setattr(JointDistances, "person", lambda *_: None)
    ledger = ledger_of(tmp_path)
    before = ledger.head
    with pytest.raises(ks.BudgetError) as caught:
        charge(ledger, laplace(TENTH))
    assert str(caught.value) == str(ks.BudgetError(PERSON_NOT_KNOWN))
    check_message(caught.value)
    assert ledger.head == before
    charge(ks.Ledger.create(tmp_path / "unit.db", budget=ks.Budget.per_unit(1)), laplace(TENTH))

"""At most so many records of each unit, chosen from its own; and what that does to a guarantee."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keepsum as ks
from keepsum.planning.plan import compile_plan
from keepsum.releasing.explain import explain
from keepsum.tables.origins import Records

from .conftest import connect

DOMAIN = {"x": ["b", "a", "10", "9"]}
rows = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(DOMAIN["x"]), st.integers(0, 30)), min_size=1, max_size=40)
BINS = {"age": [0, 10, 20, None]}


def bounded(records: list, most: int) -> Counter:
    """By brute force: the first records of each unit, in the order of their labels and bins."""
    units = defaultdict(list)
    for unit, label, age in records:
        units[unit].append((label, min(age // 10, 2)))
    return Counter(cell for cells in units.values() for cell in sorted(cells)[:most])


def tabulated(records: list, most: int, name: Callable[[int], object] = int) -> Counter:
    frame = pd.DataFrame([(name(who), x, age) for who, x, age in records], columns=["who", "x", "age"])
    table = ks.tabulate(frame, by=["x", "age"], domain=DOMAIN, bins=BINS, unit="who", max_rows_per_unit=most)
    cells = [(label, k) for label in DOMAIN["x"] for k in range(3)]
    return Counter({cell: n for cell, n in zip(cells, table.counts.tolist(), strict=True) if n})


@pytest.mark.audit
@settings(max_examples=20)  # a query takes long; each has up to 40 records of 4 units
@given(rows, st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_first_records_of_each_unit_in_any_order_of_rows(records, most, random):
    assert tabulated(records, most) == bounded(records, most)
    random.shuffle(records)
    assert tabulated(records, most) == bounded(records, most)


ALL_BUT_ONE = ["p{}".format, lambda who: who * 2**60, lambda who: np.uint64(2**63 + who)]


@pytest.mark.parametrize("name", [str, *(pytest.param(name, marks=pytest.mark.audit) for name in ALL_BUT_ONE)])
@settings(max_examples=20)
@given(records=rows, most=st.integers(1, 4))
def test_units_named_otherwise_are_bounded_alike(name, records, most):
    """In arrays, or by the database where they are no whole numbers, or too large ones."""
    assert tabulated(records, most, name) == bounded(records, most)


def test_units_are_not_what_they_look_like():
    frame = pd.DataFrame({"who": ["7", "07", "+7", " 7", "7.0", "7"], "x": ["a"] * 6})
    assert ks.tabulate(frame, "x", DOMAIN, unit="who", max_rows_per_unit=1).counts.sum() == 5
    assert ks.tabulate(frame[::5], "x", DOMAIN, unit="who", max_rows_per_unit=1).counts.sum() == 1


def test_bounds_with_missing_labels_and_nested_axes():
    """The same in arrays and by the database."""
    domain = {"state": ["IL", "WI", "?"], "county": {"IL": ["Lake", "Cook"], "WI": ["Dane", "Lake"], "?": ["Lake"]}}
    frame = pd.DataFrame(
        {
            "who": [1, 1, 1, 2, 2, 3],
            "state": ["WI", "IL", "IL", "WI", None, "IL"],
            "county": ["Dane", "Lake", "Cook", "Lake", "Lake", "Lake"],
            "age": [5, 15, None, 5, 25, None],
        }
    )
    declared = {"within": {"county": "state"}, "bins": BINS, "missing": {"age": "unknown", "state": "?"}}
    for by in (["state", "county", "age"], ["age", "county", "state"]):
        tables = [
            ks.tabulate(source, by, domain, **declared, unit="who", max_rows_per_unit=2)
            for source in (frame, frame.assign(who="p" + frame["who"].astype(str)))
        ]
        assert tables[0].counts.sum() == 5
        assert tables[0].counts.tolist() == tables[1].counts.tolist()


@pytest.mark.audit
@settings(max_examples=20)
@given(rows, rows, st.integers(1, 3))
def test_another_unit_changes_only_what_it_contributes(records, others, most):
    """So one unit changes at most so many records, whatever the others are."""
    added = [(99, label, age) for _, label, age in others]
    before, after = tabulated(records, most), tabulated(records + added, most)
    assert after - before == bounded(added, most)
    assert not before - after
    assert sum((after - before).values()) <= most


def test_units_of_every_type():
    for who in ([1, 1, 2], ["a", "a", "b"], [Decimal("1.5"), Decimal("1.50"), Decimal(10) ** 20]):
        frame = pd.DataFrame({"who": who, "x": ["a", "a", "a"]})
        assert ks.tabulate(frame, "x", DOMAIN, unit="who", max_rows_per_unit=1).counts.sum() == 2


@pytest.mark.parametrize(
    "who", [[1.0, 2.0], [True, False], [date(2020, 1, 1)] * 2, [datetime(2020, 1, 1)] * 2, [b"a", b"b"], [[1], [2]]]
)
def test_units_that_are_not_exact_are_refused(who):
    """Floats may have been rounded: two persons would look like one."""
    frame = pa.table({"who": who, "x": ["a", "a"]})
    with pytest.raises(ks.DataError, match="'who' must hold text or whole numbers"):
        ks.tabulate(frame, "x", DOMAIN, unit="who", max_rows_per_unit=1)


def test_decimal_units_of_postgres(postgres):
    with connect(postgres) as server:
        server.execute(
            "DROP TABLE IF EXISTS exact; CREATE TABLE exact (who NUMERIC, f DOUBLE PRECISION, x TEXT);"
            "INSERT INTO exact VALUES (1.0, 1, 'a'), (1.00, 1, 'a'), (1e400, 1, 'a'), (1e400 + 1, 1, 'a')"
        )
        call = {"source": postgres, "table": "exact", "by": "x", "domain": DOMAIN, "max_rows_per_unit": 1}
        assert ks.tabulate(**call, unit="who").counts.sum() == 3
        with pytest.raises(ks.DataError, match="'f' must hold text or whole numbers"):
            ks.tabulate(**call, unit="f")
        server.execute("INSERT INTO exact VALUES ('NaN', 1, 'a')")
    with pytest.raises(ks.DataError, match="'who' must identify"):
        ks.tabulate(**call, unit="who")


@pytest.mark.parametrize("who", [pd.array([1, None], dtype="Int64"), ["a", ""], ["a", None], [None, None]])
def test_a_missing_unit_is_an_error(who):
    frame = pd.DataFrame({"who": who, "x": ["a", "a"]})
    with pytest.raises(ks.DataError, match="'who' must identify"):
        ks.tabulate(frame, "x", DOMAIN, unit="who", max_rows_per_unit=1)


@pytest.mark.parametrize(
    "wrong",
    [{"unit": "who"}, {"max_rows_per_unit": 2}, {"unit": "x", "max_rows_per_unit": 1}]
    + [{"unit": "who", "max_rows_per_unit": most} for most in (0, -1, 1.5, True, 10**7)],
)
def test_a_unit_needs_a_bound_and_must_not_be_published(wrong):
    with pytest.raises(ks.InputError):
        ks.tabulate(pd.DataFrame({"who": [1], "x": ["a"]}), "x", DOMAIN, **wrong)


# -- the guarantee ----------------------------------------------------------------------------------


def people(**unit) -> ks.Table:
    frame = pd.DataFrame({"who": [1, 1, 2, 3] * 5, "x": ["a", "b", "9", "10"] * 5, "y": ["p", "q"] * 10})
    return ks.tabulate(frame, ["x", "y"], {**DOMAIN, "y": ["p", "q"]}, **unit)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_distances_are_multiplied(norm):
    table = people()
    keep = table.keep("x")
    one, three = (ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(1, norm), max_rows_per_unit=k) for k in (1, 3))
    assert three.person_distance == pytest.approx(3 * one.person_distance)
    assert three.smallest_change.value == pytest.approx(3 * one.smallest_change.value)
    for a, b in zip(one.attributes, three.attributes, strict=True):
        assert b.any_value.value == pytest.approx(3 * a.any_value.value)
        assert b.other_value.value == pytest.approx(3 * a.other_value.value)
        assert (a.any_value.exact, b.any_value.exact) == (True, False)
    asked = ks.plan(keep=keep, mechanism=ks.Laplace(1, norm), max_rows_per_unit=3)
    assert float(asked.guarantee.person_epsilon) == pytest.approx(1)
    assert float(asked.mechanism.epsilon) == pytest.approx(1 / three.person_distance)


def test_rho_grows_with_the_square():
    keep = people().keep("x")
    one, three = (
        ks.plan(keep=keep, mechanism=ks.Gaussian.per_unit(rho=1), max_rows_per_unit=k).guarantee.person_rho
        for k in (1, 3)
    )
    assert three == 9 * one
    asked = ks.plan(keep=keep, mechanism=ks.Gaussian(rho=1), max_rows_per_unit=3)
    assert float(asked.guarantee.person_rho) == pytest.approx(1, rel=1e-6)


def test_the_bound_holds_for_every_change_of_several_records():
    """By brute force: k records change one after the other, and each keeps the totals."""
    plan = ks.plan(keep=people().keep("x", "y"), mechanism=ks.Laplace.per_unit(1), max_rows_per_unit=2)
    shape = (4, 2)
    swaps = []
    for i in range(4):
        for j in range(4):
            if i != j:
                z = np.zeros(shape, dtype=int)
                z[i, 0] += 1
                z[i, 1] -= 1
                z[j, 0] -= 1
                z[j, 1] += 1
                swaps.append(z)
    longest = max(int(np.abs(a + b).sum()) for a in swaps for b in swaps)
    assert longest == plan.person_distance == 8


def test_a_plan_for_another_bound_is_refused():
    table = people(unit="who", max_rows_per_unit=2)
    with pytest.raises(ks.InputError, match="max_rows_per_unit=2"):
        ks.plan(keep=table.keep("x"), mechanism=ks.Laplace.per_unit(1)).release(table)
    with pytest.raises(ks.InputError, match="max_rows_per_unit=1"):
        ks.plan(keep=table.keep("x"), mechanism=ks.Laplace.per_unit(1), max_rows_per_unit=2).release(people())
    ks.plan(keep=table.keep("x"), mechanism=ks.Laplace.per_unit(1), max_rows_per_unit=2).release(table)


def test_what_the_certificate_says(tmp_path):
    by_record = ks.release(people(), keep=["x"], mechanism=ks.Laplace.per_unit(1))
    assert by_record.certificate.records.unit is None
    assert any("per record" in sentence for sentence in by_record.certificate.warnings)
    assert "per-record" in by_record.plan.explain(details=True)
    assert "per-person" not in by_record.plan.explain(details=True) + str(by_record.plan.guarantee)
    assert str(by_record.plan.guarantee).startswith("per-record epsilon")
    by_person = ks.release(people(unit="who", max_rows_per_unit=2), keep=["x"], mechanism=ks.Laplace.per_unit(1))
    record = by_person.certificate.records
    assert (record.unit, record.max_rows_per_unit) == ("who", 2)
    assert any("kept totals are those of the counted records" in s for s in by_person.certificate.warnings)
    assert any("a change of one attribute of each counted record" in s for s in by_person.certificate.warnings)
    assert "per person of at most 2 records" in by_person.plan.explain(details=True)
    assert str(by_person.plan.guarantee).startswith("per-person epsilon")
    for release in (by_record, by_person):
        assert ks.verify(release.save(tmp_path / "out.csv", force=True)).passed
    assert "records" not in msgspec.json.decode(
        ks.release(counts(), keep=["x"], mechanism=ks.Laplace.per_unit(1)).certificate.to_json()
    )


def test_totals_of_late_labels_lose_most_and_the_certificate_says_so():
    release = ks.release(people(unit="who", max_rows_per_unit=1), keep=["x"], mechanism=ks.Laplace.per_unit(1))
    words = "the first in the order of their labels, so totals of late labels lose most"
    assert any(words in sentence for sentence in release.certificate.warnings)


@pytest.mark.parametrize("mechanism", [ks.Laplace(1), ks.Gaussian(rho=1)])
def test_without_a_bound_per_person_the_loss_is_that_of_one_record(mechanism, tmp_path):
    """It is what was typed, and nothing calls it that of a person; the same with a plan made by the release."""
    alone = people()
    release = ks.release(alone, keep=["x"], mechanism=mechanism)
    guarantee = release.plan.guarantee
    assert guarantee.subject == "record"
    assert 1 in (guarantee.person_epsilon, guarantee.person_rho)
    first = release.plan.explain(details=True).splitlines()[0]
    assert "one record, not one person" in first
    shown = f"{release.plan.explain(details=True)} {guarantee} {release!r} {release.plan!r}"
    assert "per-person" not in shown
    assert all("per-record" in text for text in (release.plan.explain(details=True), str(guarantee), repr(release)))
    assert ks.verify(release.save(tmp_path / "out.csv")).passed
    release.plan.release(alone)


@pytest.mark.parametrize("mechanism", [ks.Laplace(1), ks.Gaussian(rho=1)])
def test_a_plan_for_one_person_does_not_release_records_without_a_bound(mechanism):
    """It would state the loss of a record where that of a person was promised."""
    alone = people()
    words = "unit= and max_rows_per_unit=, with max_rows_per_unit=1 alone if every record is of another person"
    with pytest.raises(ks.InputError, match=words):
        ks.plan(keep=alone.keep("x"), mechanism=mechanism).release(alone)


def test_every_record_may_be_declared_to_be_of_another_person(tmp_path):
    """The same counts and noise as per record; what is said of them is per person, and that nobody checked it."""
    one_each = people(max_rows_per_unit=1)
    assert one_each.records == Records(None, 1)
    assert one_each.counts.tolist() == people().counts.tolist()
    release = ks.release(one_each, keep=["x"], mechanism=ks.Laplace(1))
    assert any("declared to be of another person, and nobody checked" in s for s in release.certificate.warnings)
    assert str(release.plan.guarantee).startswith("per-person epsilon 1;")
    assert "per person of at most" not in release.plan.explain(details=True)
    assert ks.verify(release.save(tmp_path / "out.csv")).passed


@pytest.mark.audit
def test_a_call_recommended_for_a_loss_per_record_requests_it(monkeypatch):
    monkeypatch.setattr("keepsum.planning.selection.splitting.choose_families", lambda *_: None)
    frame = pd.DataFrame({"x": ["a"], "y": ["a"], "z": ["a"]})
    labels = list("abcdefgh")
    table = ks.tabulate(frame, ["x", "y", "z"], dict.fromkeys("xyz", labels))
    text = " ".join(
        ks.plan(table, keep=["x", "y", "z"], mechanism=ks.Laplace.per_unit("0.5")).explain(details=True).split()
    )
    assert "l2 Laplace with ks.Laplace(" in text
    ready = compile_plan(table.keep("x", "y", "z"), ks.Laplace.per_unit("0.5"), records=table.records)
    text = " ".join(explain(ready, details=True).split())
    assert "Exact at the same per-record epsilon: l2 Laplace with ks.Laplace(" in text
    assert "per-person" not in text


def counts() -> ks.Table:
    return ks.Table.from_array([[1, 2], [3, 4]], axes={"x": ["a", "b"], "y": ["p", "q"]})


@pytest.mark.parametrize(
    ("forged", "passed"),
    [
        ({"unit": "who", "max_rows_per_unit": 3}, False),
        ({"unit": "who", "max_rows_per_unit": None}, False),
        ({"unit": None, "max_rows_per_unit": 2}, False),
        ({"unit": None, "max_rows_per_unit": 1}, True),  # as if declared; the stated loss covers more
        ({"unit": "", "max_rows_per_unit": 2}, False),
        ({"unit": "x", "max_rows_per_unit": 2}, False),
        ({"unit": "who", "max_rows_per_unit": 0}, False),
        ({"unit": "who", "max_rows_per_unit": 2}, True),
        ({"unit": "who", "max_rows_per_unit": 1}, True),  # then the stated loss is larger than it need be
    ],
)
def test_a_larger_bound_than_the_stated_loss_covers_does_not_verify(forged, passed, tmp_path):
    release = ks.release(people(unit="who", max_rows_per_unit=2), keep=["x"], mechanism=ks.Laplace.per_unit(1))
    table = release.save(tmp_path / "out.csv")
    path = tmp_path / "out.certificate.json"
    document = msgspec.json.decode(path.read_bytes())
    document["records"] = forged
    path.write_bytes(msgspec.json.encode(document))
    assert ks.verify(table).passed == passed


def test_what_records_are():
    assert Records().changes == 1
    assert people().records == Records()
    assert counts().records is None


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table])
def test_columns_that_differ_only_in_case_are_refused(make):
    """A database that ignores case took the axis for the unit, and bounded nothing."""
    people = make({"Sex": ["f", "m", "f"], "sex": ["p", "p", "p"]})
    with pytest.raises(ks.DataError, match="names differ only in case"):
        ks.tabulate(people, ["Sex"], {"Sex": ["f", "m"]}, unit="sex", max_rows_per_unit=1)

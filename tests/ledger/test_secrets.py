"""No count and no value of a kept total is in a ledger, in what it shows, or in what it says."""

import pytest

import keepsum as ks
from ledger.making import charge, laplace
from test_arguments import check_message

# Counts with digits that occur nowhere else, and so do their sums.
COUNTS = [[918273645, 827364519], [736451928, 645182739]]
DOMAIN = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
TABLE = ks.Table.from_array(COUNTS, axes=DOMAIN, count="people")


def secrets() -> list[int]:
    flat = [count for row in COUNTS for count in row]
    rows, columns = [sum(row) for row in COUNTS], [sum(column) for column in zip(*COUNTS, strict=True)]
    return [*flat, *rows, *columns, sum(flat), flat[0] + 3 * flat[3], flat[0] + flat[3]]


def spellings(number: int) -> list[bytes]:
    """As text, and as SQLite or a struct would store it."""
    sizes = [number.to_bytes(8, order) for order in ("big", "little")]
    return [str(number).encode(), f"{number:,}".encode(), *(size.strip(b"\0") for size in sizes)]


@pytest.fixture
def ledger(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(rho=5), domain=DOMAIN)
    weighted = ks.Invariants.matrix([[1, 0, 0, 3]], names=["weighted"]).over(DOMAIN)
    for kept in (TABLE.keep("county"), weighted):
        ks.plan(keep=kept, mechanism=ks.Laplace.per_unit("1/10")).release(TABLE, ledger=ledger)
    ks.plan(TABLE, keep=["county"], mechanism=ks.Gaussian.per_unit(rho="1/100")).release(TABLE, ledger=ledger)
    imported = laplace("1/9", TABLE.keep("county")).release(TABLE)
    ledger.import_release(imported.certificate)
    assert str(sum(COUNTS[0])) in imported.certificate.to_json().decode()  # where kept totals are
    return ledger


def told(text: str | bytes) -> list[int]:
    data = text.encode() if isinstance(text, str) else text
    return [number for number in secrets() if any(spelling in data for spelling in spellings(number))]


def test_the_file_holds_no_count(ledger):
    data = ledger.path.read_bytes()
    assert told(data) == []
    assert told(repr(ledger.export())) == []
    assert told(f"x{COUNTS[1][1]}x") == [COUNTS[1][1]]
    assert told(b"x" + sum(COUNTS[0]).to_bytes(8, "big")) == [sum(COUNTS[0])]
    assert b"Alpha" in data  # the names of the cells are there


def test_what_is_shown_holds_no_count(ledger):
    plan = laplace("1/10", TABLE.keep("county"))
    (assessment,) = ledger.assess(plan)
    shown = [ledger, ledger.standing(), str(ledger.standing()), ledger.spends(), ledger.dataset(), ledger.check()]
    shown += [assessment, assessment.lines, ledger.head, ledger.datasets]
    assert told(repr(shown)) == []


def test_what_is_refused_tells_no_count(ledger):
    both = ks.Invariants.subsets(4, [[0, 2]]).over(DOMAIN)
    for plan in (laplace(100, TABLE.keep("county")), laplace("1/10", both)):
        for way in (lambda plan=plan: charge(ledger, plan), lambda plan=plan: plan.release(TABLE, ledger=ledger)):
            with pytest.raises(ks.KeepsumError) as caught:
                way()
            check_message(caught.value)
            assert told(repr(caught.value)) == []

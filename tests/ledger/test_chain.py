"""Whoever changes an entry of a ledger is found out."""

import hashlib
import shutil

import pytest

import keepsum as ks
from keepsum.ledger.store import Link, broken_at
from ledger.making import TABLE, TENTH, charge, links_of, made, rewritten, tampered

BROKEN = "is damaged: entry {} was changed, removed or inserted"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("chain") / "ledger.db"
    made(path)
    return path


@pytest.fixture
def path(original, tmp_path):
    return shutil.copy(original, tmp_path / "ledger.db")


def refused(path, problem: str) -> None:
    """No way to open, check or charge the file works, and the file stays as it is."""
    before = path.read_bytes()
    for way in (lambda: ks.Ledger.open(path), lambda: TENTH.release(TABLE, ledger=path)):
        with pytest.raises(ks.LedgerError, match=problem) as caught:
            way()
        assert caught.value.__context__ is None
    assert path.read_bytes() == before


def after(link: Link, **changes) -> Link:
    """An entry with other fields, and its own hash computed anew."""
    fields = {"number": link.number, "time": link.time, "content": link.content, "previous": link.previous} | changes
    text = "keepsum.ledger/1\n{number}\n{time}\n{previous}\n{content}".format(**fields)
    return Link(**fields, hash=hashlib.sha256(text.encode()).hexdigest())


FIELDS = {
    "time": "2020-01-01T00:00:00Z",
    "content": '{"entry":"outcome","spend":4,"outcome":"failed"}',
    "previous": "1" * 64,
    "hash": "2" * 64,
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", [1, 2, 4, 9])
def test_a_changed_entry(path, field, number):
    with tampered(path) as connection:
        connection.execute(f"UPDATE entries SET {field} = ? WHERE number = ?", (FIELDS[field], number))  # noqa: S608
    refused(path, BROKEN.format(number))


@pytest.mark.parametrize("number", [1, 2, 5, 8])
def test_an_entry_whose_own_hash_was_computed_anew(path, number):
    """The next one names the hash that was."""
    forged = after(links_of(path)[number - 1], content='{"entry":"outcome","spend":4,"outcome":"failed"}')
    with tampered(path) as connection:
        connection.execute(
            "UPDATE entries SET content = ?, hash = ? WHERE number = ?", (forged.content, forged.hash, number)
        )
    refused(path, BROKEN.format(number + 1))


@pytest.mark.parametrize("number", [1, 2, 5, 8])
def test_a_removed_entry(path, number):
    with tampered(path) as connection:
        connection.execute("DELETE FROM entries WHERE number = ?", (number,))
    refused(path, BROKEN.format(number))


@pytest.mark.parametrize("number", [2, 5, 8])
def test_a_removed_entry_whose_place_the_next_ones_took(path, number):
    with tampered(path) as connection:
        connection.execute("DELETE FROM entries WHERE number = ?", (number,))
        for later in range(number + 1, 10):
            connection.execute("UPDATE entries SET number = ? WHERE number = ?", (later - 1, later))
    refused(path, BROKEN.format(number))


@pytest.mark.parametrize("number", [1, 2, 5, 10])
def test_an_inserted_entry(path, number):
    links = links_of(path)
    new = after(links[min(number, 9) - 1], number=number, previous=links[number - 2].hash if number > 1 else "0" * 64)
    with tampered(path) as connection:
        for later in range(9, number - 1, -1):
            connection.execute("UPDATE entries SET number = ? WHERE number = ?", (later + 1, later))
        connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (new.number, new.time, new.content, new.previous, new.hash)
        )
    if number == 10:  # the chain is sound, but what it says is not: the second outcome of a release
        refused(path, "Entry 10 of the ledger does not follow from those before it")
    elif number == 1:  # the first entry twice
        refused(path, BROKEN.format(2))
    else:
        refused(path, BROKEN.format(number + 1))


@pytest.mark.parametrize("pair", [(1, 2), (4, 6), (5, 7), (8, 9)])
def test_swapped_entries(path, pair):
    first, second = pair
    with tampered(path) as connection:
        for old, new in ((first, 100), (second, first), (100, second)):
            connection.execute("UPDATE entries SET number = ? WHERE number = ?", (new, old))
    refused(path, BROKEN.format(first))


def test_a_cut_end_is_sound_in_itself(path):
    """Only certificates show it: ``test_against_certificates.py``."""
    with tampered(path) as connection:
        connection.execute("DELETE FROM entries WHERE number > 7")
    ledger = ks.Ledger.open(path)
    assert ledger.check().passed
    assert len(ledger.spends()) == 2


def test_a_ledger_without_an_entry_is_damaged(path):
    with tampered(path) as connection:
        connection.execute("DELETE FROM entries")
    refused(path, "is damaged: it has no entry")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[" * 5000,
        '{"entry":"later kind"}',
        '{"entry":"dataset","dataset":"data","budget":{"epsilon":"1"}}',
        '{"entry":"dataset","dataset":"more","budget":{"epsilon":"1/0"}}',
        '{"entry":"dataset","dataset":"more","budget":{"epsilon":"0"}}',
        '{"entry":"dataset","dataset":"more","budget":{}}',
        '{"entry":"dataset","dataset":"","budget":{"epsilon":"1"}}',
        '{"entry":"budget","dataset":"none","budget":{"epsilon":"1"}}',
        '{"entry":"ledger","schema":"keepsum.ledger/1","software":"x","id":"00000000000000000000000000000000"}',
        '{"entry":"outcome","spend":2,"outcome":"released"}',
        '{"entry":"outcome","spend":99,"outcome":"released"}',
        '{"entry":"spend","dataset":"data","table":2,"mechanism":{"name":"laplace","norm":"l1","parameters":{}},'
        '"cost":{"norm":"l1","epsilon":"1"}}',
        '{"entry":"spend","dataset":"data","table":3,"mechanism":{"name":"laplace","norm":"l1","parameters":{}},'
        '"cost":{"norm":"l1","epsilon":"1/0"}}',
        '{"entry":"spend","dataset":"data","table":3,"mechanism":{"name":"laplace","norm":"l1","parameters":{}},'
        '"cost":{"norm":"l1"}}',
        '{"entry":"table","dataset":"none","domain":{"axes":[],"structural_zeros":[],"taken_from_data":[],'
        '"keeps_file_order":false},"kept":[]}',
    ],
)
def test_an_entry_that_makes_no_sense(path, content):
    """Chained properly, by somebody who knows how."""
    contents = [link.content for link in links_of(path)[1:]]
    rewritten(path, [*contents, content])
    refused(path, r"^Entry 10 of the ledger (does not follow from those before it|must be one that this version knows)")
    contents[1] = content
    rewritten(path, contents)
    refused(path, r"^Entry [34] of the ledger (does not follow|must be one that this version knows)")


def test_nothing_but_entries_is_ever_added(path):
    import sqlite3

    connection = sqlite3.connect(path)
    for statement in ("UPDATE entries SET time = 'x'", "DELETE FROM entries", "UPDATE entries SET number = 20"):
        with pytest.raises(sqlite3.IntegrityError, match="only added"):
            connection.execute(statement)
    connection.close()


# -- while it is open ------------------------------------------------------------------------------------------------


def copied(source, target) -> None:
    """Written into the same file, as a restored backup would be."""
    target.write_bytes(source.read_bytes())


def test_a_file_replaced_by_an_older_copy_while_it_is_open(original, path, tmp_path):
    ledger = ks.Ledger.open(path)
    charge(ledger)
    copied(original, path)
    for way in (
        ledger.standing,
        lambda: ledger.head,
        lambda: charge(ledger),
        lambda: TENTH.release(TABLE, ledger=ledger),
        lambda: ledger.set_budget("data", ks.Budget.per_unit(2)),
        lambda: ledger.add_dataset("more", ks.Budget.per_unit(2)),
    ):
        with pytest.raises(ks.LedgerError, match=r"replaced or changed while it was in use: entry 11 is no longer"):
            way()
    assert ledger.check().problems == (
        "Entry 11 is no longer what it was when the ledger was opened: it was replaced.",
    )
    assert path.read_bytes() == original.read_bytes()
    assert ks.Ledger.open(path).check().passed


def test_a_file_replaced_by_another_ledger_while_it_is_open(path, tmp_path):
    ledger = ks.Ledger.open(path)
    other = tmp_path / "other.db"
    made(other, releases=5)
    other.replace(path)
    with pytest.raises(ks.LedgerError, match="replaced or changed while it was in use"):
        charge(ledger)
    assert not ledger.check().passed
    path.unlink()
    with pytest.raises(ks.LedgerError, match="does not exist"):
        charge(ledger)
    assert not path.exists()


def test_an_earlier_entry_changed_while_it_is_open(path):
    """What is known stays as it was read; a check reads all of it."""
    ledger = ks.Ledger.open(path)
    with tampered(path) as connection:
        connection.execute("UPDATE entries SET time = 'x' WHERE number = 4")
    assert ledger.standing().spent.epsilon * 10 == 3
    assert "entry 4 was changed" in ledger.check().problems[0]
    assert (ledger.check().entries, ledger.check().head) == (0, None)


def test_what_others_add_is_seen(path):
    first, second = ks.Ledger.open(path), ks.Ledger.open(path)
    for turn in range(4):
        charge(first if turn % 2 else second)
        assert first.head == second.head
        assert first.standing() == second.standing()
    first.set_budget("data", ks.Budget.per_unit(5))
    first.add_dataset("more", ks.Budget.per_unit(2))
    assert second.datasets == ("data", "more")
    assert second.standing("data").budget == ks.Budget.per_unit(5)


def test_every_hash_covers_every_field_and_all_before():
    first = Link.after(None, "2026-01-31T12:00:00Z", "{}")
    chain = [first]
    for k in range(5):
        chain.append(Link.after(chain[-1], "2026-01-31T12:00:00Z", str(k)))
    assert broken_at(chain) is None
    assert broken_at(chain[3:], chain[2]) is None
    assert len({link.hash for link in chain}) == 6
    assert broken_at(chain[1:]) == 1
    assert broken_at([*chain[:2], *chain[3:]]) == 3
    assert broken_at([*chain, chain[-1]]) == 7

"""Processes killed at any moment: no charge that they knew of is lost, and no release is on disk without one.

A moment is so many charges that the parent was told of, and then so much work of the parent's own: how busy the machine
is changes which moments are met, and not what must hold at each.
"""

import contextlib
import hashlib
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import keepsum as ks
from keepsum.ledger.entries import SpendEntry, encoded
from keepsum.ledger.ledger import Receipt, charge_of
from keepsum.ledger.store import Link
from keepsum.releasing.codec import domain_of
from keepsum.releasing.facts import LedgerRecord
from keepsum.sources.declarations import read_released
from keepsum.sources.writing import table_hash
from ledger.making import TABLE, TENTH, charge, links_of

Acknowledged = set[tuple[int, str]]


class Told(ks.Ledger):
    """A ledger that tells the parent of each charge as soon as it may be relied on."""

    pipe = -1

    def tell(self, record: LedgerRecord) -> None:
        os.write(self.pipe, f"{record.entry} {record.head}\n".encode())

    @contextlib.contextmanager
    def charged(self, plan, dataset=None, seeded=False) -> Iterator[Receipt]:
        with super().charged(plan, dataset, seeded) as receipt:
            self.tell(receipt.record)
            yield receipt


def releasing(path: Path, folder: Path, pipe: int, name: str) -> None:
    """Charge, draw and save, over and over."""
    ledger = Told.open(path)
    ledger.pipe = pipe
    for number in range(10**6):
        TENTH.release(TABLE, ledger=ledger).save(f"{folder}/{name}-{number}/")


class Worker:
    """A process that works until it is killed."""

    def __init__(self, work: Callable[[int], None]) -> None:
        read, write = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            with contextlib.suppress(BaseException):
                os.close(read)
                work(write)
            os.write(write, b"ended\n")
            os._exit(1)
        os.close(write)
        self.answers = os.fdopen(read, "rb")

    def told(self, charges: int) -> Acknowledged:
        """Wait until it has told of so many charges."""
        return {self.parsed(self.answers.readline()) for _ in range(charges)}

    def killed(self) -> Acknowledged:
        """Kill it; what it had told of by then, to the last whole line."""
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        with self.answers:
            return {self.parsed(line) for line in self.answers.read().splitlines()}

    @staticmethod
    def parsed(line: bytes) -> tuple[int, str]:
        entry, head = line.decode().split()
        return int(entry), head


def busy(rounds: int) -> None:
    data = b"x" * 1000
    for _ in range(rounds):
        data = hashlib.sha256(data).digest() * 30


def sound(path: Path, folder: Path, acknowledged: Acknowledged) -> tuple[int, int]:
    """Check all that must hold; how many charges and releases there are."""
    ledger = ks.Ledger.open(path)
    assert ledger.check().passed
    spends = {(spend.number, spend.hash): spend for spend in ledger.spends()}
    assert acknowledged <= spends.keys(), "a charge is lost"
    certificates = []
    for place in sorted(folder.iterdir()):
        if place.name.startswith(".keepsum-"):  # what was never given its name
            continue
        assert sorted(file.name for file in place.iterdir()) == ["certificate.json", "table.csv"]
        certificate = ks.Certificate.from_json((place / "certificate.json").read_bytes())
        table = read_released(place / "table.csv", domain_of(certificate.domain), certificate.table.count)
        assert table_hash(table) == certificate.table.sha256
        certificates.append(certificate)
        charged = certificate.ledger
        assert (charged.entry, charged.head) in spends, "a release is not charged"
        assert spends[charged.entry, charged.head].sha256 == certificate.table.sha256
    assert len({certificate.ledger.entry for certificate in certificates}) == len(certificates)
    assert ledger.check(against=certificates).passed
    return len(spends), len(certificates)


def rounds_of(count: int, path: Path, folder: Path, seed: int) -> None:
    """Two processes at a time, killed one after the other, so many rounds of them."""
    moments, acknowledged = random.Random(seed), set()
    spends = released = 0
    for number in range(count):
        workers = [Worker(lambda pipe, name=f"{number}{which}": releasing(path, folder, pipe, name)) for which in "ab"]
        for worker in workers:
            acknowledged |= worker.told(moments.choice([0, 1, 1, 2]))
            busy(moments.randrange(3000))
            acknowledged |= worker.killed()
        if number % 10 == 0 or number == count - 1:
            spends, released = sound(path, folder, acknowledged)
            charge(ks.Ledger.open(path))  # and it goes on
    assert spends > count
    assert released > count // 4


@pytest.fixture
def place(tmp_path):
    path, folder = tmp_path / "ledger.db", tmp_path / "releases"
    folder.mkdir()
    ks.Ledger.create(path, budget=ks.Budget.per_unit(10**6))
    TENTH.release(TABLE, ledger=path).save(f"{folder}/first/")  # everything is imported and compiled
    assert sound(path, folder, set()) == (1, 1)
    return path, folder


def test_killed_at_a_few_moments(place):
    rounds_of(6, *place, seed=1)


@pytest.mark.audit
@pytest.mark.parametrize("seed", [2, 3])
def test_killed_at_many_moments(place, seed):
    """Two hundred kills in all."""
    rounds_of(50, *place, seed=seed)


class Early(Told):
    """A ledger that charges last: it foretells its entry, and writes it when all is done."""

    @contextlib.contextmanager
    def charged(self, plan, dataset=None) -> Iterator[Receipt]:
        last, spend = links_of(self.path)[-1], charge_of(plan._record, "data")
        content = encoded(SpendEntry(dataset="data", table=3, mechanism=spend.mechanism, cost=spend.cost))
        link = Link.after(last, "2026-01-31T12:00:00Z", content)
        (assessment,) = self.assess(plan)
        receipt = Receipt(LedgerRecord(dataset="data", entry=link.number, head=link.hash), assessment)
        self.tell(receipt.record)
        yield receipt
        os.read(self.never, 1)  # it is killed before it comes to this

    never = -1


@pytest.mark.parametrize(("knows", "problem"), [(True, "a charge is lost"), (False, "a release is not charged")])
def test_a_wrong_order_would_be_caught(place, knows, problem):
    """Drawn and saved before it is charged: the same check fails, by what was told or by what is on disk."""
    path, folder = place
    here, there = os.pipe()

    def work(pipe: int) -> None:
        ledger = Early.open(path)
        ledger.pipe, ledger.never = pipe, here
        with ledger.charged(TENTH) as receipt:
            ready = ks.plan(TABLE, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon="1/10"))
            drawn = prepared(ready).draw(None, 1, receipt.record)
            released(drawn, ready).save(f"{folder}/early/")
            ledger.tell(receipt.record)

    worker = Worker(work)
    told = worker.told(2)
    told |= worker.killed()
    os.close(here)
    os.close(there)
    with pytest.raises(AssertionError, match=problem):
        sound(path, folder, told if knows else set())


def prepared(plan: ks.Plan):
    from keepsum.releasing.release import prepare

    return prepare(plan._record, TABLE)


def released(drawn, plan: ks.Plan) -> ks.Release:
    return ks.Release(drawn, plan)

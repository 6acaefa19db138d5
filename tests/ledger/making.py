"""Small ledgers, and how somebody would tamper with their files."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import keepsum as ks
from keepsum.ledger.store import INSERT, ONLY_ADDED, SELECT, Link
from keepsum.sampling.core.rng import Stream

DOMAIN = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
TABLE = ks.Table.from_array([[15, 1], [20, 10]], axes=DOMAIN)
ROWS, COLUMNS = ks.Invariants.margins(DOMAIN, [["county"]]), ks.Invariants.margins(DOMAIN, [["sex"]])
TENTH = ks.plan(keep=ROWS, mechanism=ks.Laplace.per_unit(epsilon="1/10"))


def laplace(epsilon: str | float | Fraction, kept: ks.Invariants = ROWS, norm: str = "l1") -> ks.Plan:
    return ks.plan(keep=kept, mechanism=ks.Laplace.per_unit(epsilon=epsilon, norm=norm))


def charge(ledger: ks.Ledger, plan: ks.Plan = TENTH, dataset: str | None = None) -> int:
    """Charge a release that is then made, without drawing its noise; the number of its entry."""
    with ledger.charged(plan, dataset) as receipt:
        receipt.released("0" * 64)
    return receipt.record.entry


def made(path: Path, releases: int = 3, budget: int = 1) -> ks.Ledger:
    """A ledger of so many releases: entries 1 and 2 declare, 3 is a table, and each release has two more."""
    ledger = ks.Ledger.create(path, budget=ks.Budget.per_unit(budget))
    for _ in range(releases):
        TENTH.release(TABLE, ledger=ledger)
    return ledger


class Watched(ks.Rng):
    """Randomness that does something before it is used."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.__dict__.update(ks.rng(seed=1).__dict__)
        self.act = act

    def stream(self, *arguments: int) -> Stream:
        self.act()
        return super().stream(*arguments)


class Undrawn(Watched):
    """Randomness that must not be used."""

    def __init__(self) -> None:
        super().__init__(self.refuse)

    def refuse(self) -> None:
        raise AssertionError("noise was drawn")


@contextlib.contextmanager
def tampered(path: Path) -> Iterator[sqlite3.Connection]:
    """The file without the triggers that forbid changes, which are put back afterwards."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for change in ("update", "delete"):
            connection.execute(f"DROP TRIGGER no_{change}")
        yield connection
        for trigger in ONLY_ADDED:
            connection.execute(trigger)


def links_of(path: Path) -> list[Link]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [Link(*row) for row in connection.execute(SELECT, (0,))]


def rewritten(path: Path, contents: list[str]) -> None:
    """The entries from the second on replaced, with every hash computed anew: a chain that is sound in itself."""
    first = links_of(path)[0]
    with tampered(path) as connection:
        connection.execute("DELETE FROM entries WHERE number > 1")
        last = first
        for content in contents:
            last = Link.after(last, first.time, content)
            connection.execute(INSERT, (last.number, last.time, last.content, last.previous, last.hash))

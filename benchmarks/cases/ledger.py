"""Ledgers: an entry against a plain insert that is as durable, and a long ledger opened and checked."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import keepsum as ks
from benchmarks.measuring import Work, by_turns, ratio
from benchmarks.peers import CALIBRATION
from benchmarks.registry import Bench, at_most, case
from keepsum.ledger.entries import CostRecord, OutcomeEntry, SpendEntry, encoded
from keepsum.ledger.ledger import charge_of
from keepsum.ledger.store import ENTRIES, INSERT, Link, Store

ENTRIES_MANY, QUICK_ENTRIES = 100_000, 10_000
MOST_INSERTS = 4  # times as long as plain inserts: two of them, with the state of the ledger read in between
ENTRY_LOOPS, CHECK_LOOPS = 0.02, 3  # calibration loops, of about a second each


def plan_of(epsilon: str) -> ks.Plan:
    domain = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    return ks.plan(domain, keep=[["county"]], mechanism=ks.Laplace.per_unit(epsilon=epsilon))


def charged(ledger: ks.Ledger, plan: ks.Plan) -> None:
    """Charge a release and say that it was made: two entries, each forced to disk."""
    with ledger.charged(plan) as receipt:
        receipt.released("0" * 64)


def inserted(path: Path, content: str) -> None:
    """The same two rows, each by a connection of its own, without reading anything."""
    for _ in range(2):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("INSERT INTO entries (time, content, previous, hash) VALUES ('', ?, '', '')", (content,))


def filled(path: Path, entries: int) -> None:
    """A ledger of so many entries, made at once: releases at a hundred different epsilons, and what became of them."""
    ledger = ks.Ledger.create(path, budget=ks.Budget.per_unit(10**9))
    charged(ledger, plan_of("1/10"))
    charge = charge_of(plan_of("1/10")._record, "data")
    last = Store(path).read()[-1]
    with Store(path).writing(last) as transaction:
        rows = []
        for number in range(last.number, entries, 2):
            cost = CostRecord(norm="l1", epsilon=f"1/{10 + number % 100}")
            spend = SpendEntry(dataset="data", table=3, mechanism=charge.mechanism, cost=cost)
            for content in (spend, OutcomeEntry(spend=last.number + 1, outcome="released", sha256="0" * 64)):
                last = Link.after(last, "2026-01-31T12:00:00Z", encoded(content))
                rows.append((last.number, last.time, last.content, last.previous, last.hash))
        transaction.connection.executemany(INSERT, rows)


@case("a ledger")
def ledger(bench: Bench) -> None:
    """Entries are forced to disk by both, so that wall time is compared too."""
    with tempfile.TemporaryDirectory() as folder:
        path, plain = Path(folder, "ledger.db"), Path(folder, "plain.db")
        kept, plan = ks.Ledger.create(path, budget=ks.Budget.per_unit(10**9)), plan_of("1/10")
        charged(kept, plan)
        with closing(sqlite3.connect(plain)) as connection:
            connection.execute(ENTRIES)
        content = kept.export()[3]["content"]
        works = {
            "keepsum": Work(lambda: charged(kept, plan)),
            "plain inserts": Work(lambda: inserted(plain, content)),
            "loop": CALIBRATION,
        }
        times = by_turns(works, bench.pick(15, 7))
        assert kept.check().passed
        pair = {name: times[name] for name in ("keepsum", "plain inserts")}
        what = "a release charged and concluded"
        for clock in ("cpu", "wall"):
            most = ratio(*pair.values(), clock)
            bench.figure(f"{what} / two plain inserts ({clock})", most, "×", at_most(MOST_INSERTS), pair, clock)
        pair = {name: times[name] for name in ("keepsum", "loop")}
        bench.figure(f"{what} / calibration loop", ratio(*pair.values()), "×", at_most(ENTRY_LOOPS), pair)
        long_ledger(bench, Path(folder, "long.db"))


def long_ledger(bench: Bench, path: Path) -> None:
    """Opened, which checks the chain and adds everything up, and checked again from the start."""
    entries = bench.pick(ENTRIES_MANY, QUICK_ENTRIES)
    filled(path, entries)
    opened = ks.Ledger.open(path)
    assert opened.head[0] >= entries
    assert opened.check().passed
    plan = plan_of("1/10")
    works = {
        "opened": Work(lambda: ks.Ledger.open(path).standing()),
        "checked": Work(lambda: opened.check()),
        "charged": Work(lambda: charged(opened, plan)),
        "loop": CALIBRATION,
    }
    times = by_turns(works, bench.pick(7, 5))
    limits = {"opened": CHECK_LOOPS, "checked": CHECK_LOOPS, "charged": ENTRY_LOOPS}
    for name, most in limits.items():
        pair = {name: times[name], "loop": times["loop"]}
        share = ratio(*pair.values())
        bench.figure(f"{entries:,} entries, {name} / calibration loop", share, "×", at_most(most), pair)

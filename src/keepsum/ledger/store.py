"""One SQLite file with the entries of a ledger, each with the hash of the one before; entries are only added."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from keepsum._saying import arg, the
from keepsum.errors import LedgerError, LedgerUnreachableError
from keepsum.sources.atomic import PRIVATE, check_new, write_file

# Entries in a chain of hashes: whoever changes, removes or inserts one must change every hash after it.
#
# A chain that was rewritten to its end, or cut, is consistent in itself: the hashes in published certificates show
# that (``importing.py``).

ORIGIN = "0" * 64  # what the first entry has as the hash before it


@dataclass(frozen=True)
class Link:
    """An entry of a ledger, with the hash of the entry before it and its own."""

    number: int  # 1 for the first
    time: str  # when it was written, by the clock of the machine: ``2026-01-31T12:00:00Z``
    content: str  # what it says, as JSON
    # The hash of the entry before it, and its own, which covers all of these.
    previous: str
    hash: str

    @classmethod
    def after(cls, last: Link | None, time: str, content: str) -> Link:
        """The next entry of a chain.

        >>> first = Link.after(None, "2026-01-31T12:00:00Z", "{}")
        >>> first.number, first.previous == ORIGIN, first.is_sound
        (1, True, True)
        >>> Link.after(first, "2026-01-31T12:00:01Z", "{}").previous == first.hash
        True
        """
        number, previous = (1, ORIGIN) if last is None else (last.number + 1, last.hash)
        return cls(number, time, content, previous, _hash(number, time, content, previous))

    @property
    def is_sound(self) -> bool:
        """Whether the hash is that of the entry."""
        return self.hash == _hash(self.number, self.time, self.content, self.previous)


def broken_at(links: Iterable[Link], last: Link | None = None) -> int | None:
    """The number of the first entry that is missing, or that does not follow from the one before it; None if all do.

    >>> first = Link.after(None, "2026-01-31T12:00:00Z", "{}")
    >>> third = Link.after(Link.after(first, "2026-01-31T12:00:01Z", "{}"), "2026-01-31T12:00:02Z", "{}")
    >>> broken_at([first]), broken_at([first, third])
    (None, 2)
    """
    number, previous = (0, ORIGIN) if last is None else (last.number, last.hash)
    for link in links:
        number += 1
        if link.number != number or link.previous != previous or not link.is_sound:
            return number
        previous = link.hash
    return None


def _hash(number: int, time: str, content: str, previous: str) -> str:
    # No part but the last can contain a line feed, so that no two entries have the same text.
    text = f"keepsum.ledger/1\n{number}\n{time}\n{previous}\n{content}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# One SQLite file with the entries of a ledger, to which nothing but entries is ever added.
#
# Every use opens the file anew. A writer holds the file's lock from reading the entries until its own are on disk, so
# that two processes never decide on the same state: ``begin immediate``, a rollback journal, and every sync that
# SQLite knows.

T = TypeVar("T")

APPLICATION = 0x4B53554D  # "KSUM", where SQLite keeps whose file it is
VERSION = 1
PATIENCE = 60.0  # seconds to wait for another process

ENTRIES = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, time TEXT NOT NULL, content TEXT NOT NULL, "
    "previous TEXT NOT NULL, hash TEXT NOT NULL) STRICT"
)
ONLY_ADDED = [
    f"CREATE TRIGGER no_{change} BEFORE {change.upper()} ON entries "
    f"BEGIN SELECT RAISE(ABORT, 'entries of a ledger are only added'); END"
    for change in ("update", "delete")
]
SELECT = "SELECT number, time, content, previous, hash FROM entries WHERE number > ? ORDER BY number"
INSERT = "INSERT INTO entries (number, time, content, previous, hash) VALUES (?, ?, ?, ?, ?)"
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_MISMATCH", "SQLITE_CONSTRAINT", "SQLITE_ERROR")
READ_ONLY = "must be writable, with its folder, but it is read-only"
PROBLEMS = {  # what SQLite says
    "SQLITE_CANTOPEN": "must be readable and writable, with its folder, but it is not",
    "SQLITE_BUSY": "is in use by another process. Try again",
    "SQLITE_READONLY": READ_ONLY,
    "SQLITE_PERM": READ_ONLY,
    "SQLITE_AUTH": READ_ONLY,
    "SQLITE_FULL": "cannot be written: the disk is full. Nothing was charged",
    "SQLITE_IOERR": "cannot be read or written: the disk reports an error",
    "SQLITE_NOTADB": "must be a ledger of Keepsum, but it is something else",
}


@dataclass
class Transaction:
    """What a writer sees and adds while it holds the lock."""

    store: Store
    connection: sqlite3.Connection
    last: Link | None
    new: list[Link] = field(default_factory=list)  # what others have added
    added: list[Link] = field(default_factory=list)

    def append(self, content: str) -> Link:
        """Add an entry; it is on disk once the transaction has ended."""
        link = Link.after(self.last, now(), content)
        row = (link.number, link.time, link.content, link.previous, link.hash)
        self.store.asked(lambda: self.connection.execute(INSERT, row))
        self.added.append(link)
        self.last = link
        return link


@dataclass(frozen=True)
class Store:
    """The file of a ledger."""

    path: Path

    @property
    def name(self) -> str:
        """The file, as messages show it."""
        return repr(str(self.path))

    def create(self, contents: Sequence[str]) -> list[Link]:
        """Make the file with its first entries; it appears complete, and never replaces anything."""
        check_new(self.path)
        for ending in ("-journal", "-wal"):  # SQLite would write what they hold into the new file
            if os.path.lexists(f"{self.path}{ending}"):
                raise LedgerError(
                    f"Ledger {self.name} must be new, but {self.path.name + ending!r} is left of another that was "
                    f"there. Put that one back, or move the file away."
                )
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
            for statement in (
                f"PRAGMA application_id = {APPLICATION}",
                f"PRAGMA user_version = {VERSION}",
                ENTRIES,
                *ONLY_ADDED,
            ):
                memory.execute(statement)
            transaction = Transaction(self, memory, None)
            for content in contents:
                transaction.append(content)
            write_file(self.path, memory.serialize(), mode=PRIVATE, patience=PATIENCE)
        return transaction.added

    @property
    def is_ledger(self) -> bool:
        """Whether the file begins as a ledger does, damaged or not."""
        if not self.path.is_file():
            return False
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            head = file.read(72)  # the number of the application is the last of these bytes
            return head.startswith(b"SQLite format 3\0") and head[68:] == APPLICATION.to_bytes(4, "big")
        return True

    def rows(self) -> list[Link]:
        """All entries as they are, whether or not they are a chain."""
        mode = "rw" if os.access(self.path, os.W_OK) else "ro"
        with contextlib.closing(self._opened(mode)) as connection:
            return self.asked(lambda: [Link(*row) for row in connection.execute(SELECT, (0,)).fetchall()])

    def read(self, known: Link | None = None) -> list[Link]:
        """The entries after the last known one, by default all, checked to be a chain."""
        mode = "rw" if os.access(self.path, os.W_OK) else "ro"
        with contextlib.closing(self._opened(mode)) as connection:
            return self.asked(lambda: self._after(connection, known))

    @contextlib.contextmanager
    def writing(self, known: Link | None) -> Iterator[Transaction]:
        """Hold the lock, from reading the entries after the last known one until one's own are added.

        They are on disk when this ends without an error, and none of them is when it ends with one.
        """
        with contextlib.closing(self._opened("rw")) as connection:  # whatever is not committed by then is undone
            self.asked(lambda: connection.execute("BEGIN IMMEDIATE"))
            new = self.asked(lambda: self._after(connection, known))
            yield Transaction(self, connection, new[-1] if new else known, new)
            self.asked(lambda: connection.execute("COMMIT"))

    def asked(self, work: Callable[[], T]) -> T:
        """What SQLite answers; an error of ours, by itself, if it fails."""
        try:
            return work()
        except (sqlite3.Error, UnicodeError) as error:  # of a damaged file even the message may be no text
            problem = self._in_words(error)
        raise problem

    def _opened(self, mode: str) -> sqlite3.Connection:
        name = f"{self.path.absolute().as_uri()}?mode={mode}"
        connection = self.asked(lambda: sqlite3.connect(name, uri=True, isolation_level=None, timeout=PATIENCE))
        try:
            self.asked(lambda: connection.execute("PRAGMA synchronous = EXTRA"))
            self.asked(lambda: connection.execute("PRAGMA trusted_schema = OFF"))
        except BaseException:
            connection.close()
            raise
        return connection

    def _after(self, connection: sqlite3.Connection, known: Link | None) -> list[Link]:
        """The entries after the last known one, which must still be there, checked to be a chain."""
        self._check_kind(connection)
        rows = connection.execute(SELECT, (0 if known is None else known.number - 1,)).fetchall()
        links = [Link(*row) for row in rows]
        if known is not None:
            if links[:1] != [known]:
                raise LedgerError(
                    f"Ledger {self.name} was replaced or changed while it was in use: entry {known.number:,} is no "
                    f"longer the same. Check it: {the.call('ledger.check()')}."
                )
            del links[0]
        elif not links:
            raise self._damaged("it has no entry")
        broken = broken_at(links, known)
        if broken is not None:
            raise self._damaged(f"entry {broken:,} was changed, removed or inserted")
        return links

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        application, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if application != APPLICATION:
            raise LedgerError(
                f"{arg.ledger.called(f'Ledger {self.name}')} must be a ledger of Keepsum, but it is something else."
            )
        if version > VERSION:
            raise LedgerError(f"Ledger {self.name} was written by a later version of Keepsum. Update Keepsum.")
        found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")}
        if version != VERSION or found != {ENTRIES, *ONLY_ADDED}:
            raise self._damaged("its table is not as Keepsum makes it")

    def _damaged(self, how: str) -> LedgerError:
        return LedgerError(
            f"Ledger {self.name} is damaged: {how}. Nothing can be charged to it. Find out who changed it, and "
            f"restore a backup that has every entry, as {the.call('ledger.check(against=certificates)')} can tell."
        )

    def _in_words(self, error: Exception) -> LedgerError:
        """What SQLite says, and what to do about it."""
        code = getattr(error, "sqlite_errorname", "")
        kind = "_".join(code.split("_")[:2])
        if not code or kind in DAMAGED:  # no code: text that is none
            return self._damaged("SQLite cannot read it")
        if kind == "SQLITE_CANTOPEN" and not os.path.lexists(self.path):
            return LedgerUnreachableError(
                f"{arg.ledger.called(f'Ledger {self.name}')} does not exist. Create it: "
                f"{the.call('ks.Ledger.create(path, budget=...)')}."
            )
        if kind == "SQLITE_CANTOPEN" and self.path.is_dir():
            return LedgerError(f"{arg.ledger.called(f'Ledger {self.name}')} must be a file, but it is a folder.")
        problem = LedgerError if kind == "SQLITE_NOTADB" else LedgerUnreachableError
        return problem(f"Ledger {self.name} {PROBLEMS.get(kind, f'cannot be used: {code}')}.")


def now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

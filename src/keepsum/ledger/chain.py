"""Entries in a chain of hashes: whoever changes, removes or inserts one must change every hash after it.

A chain that was rewritten to its end, or cut, is consistent in itself: the hashes in published certificates show that
(``checking.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

ORIGIN = "0" * 64  # what the first entry has as the hash before it


@dataclass(frozen=True)
class Link:
    """An entry of a ledger, with the hash of the entry before it and its own.

    Attributes
    ----------
    number
        1 for the first.
    time
        When it was written, by the clock of the machine: ``2026-01-31T12:00:00Z``.
    content
        What it says, as JSON.
    previous, hash
        The hash of the entry before it, and its own, which covers all of these.
    """

    number: int
    time: str
    content: str
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

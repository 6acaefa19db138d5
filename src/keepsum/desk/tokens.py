"""Words that nobody can guess, for links, sessions and forms of the page. No noise comes from here."""

from __future__ import annotations

from secrets import token_hex

ROOM, WORD = 12, 32  # bytes


def unguessable(size: int = WORD) -> str:
    """A new word of so many random bytes, for an address or a form: letters and figures, so that a terminal links all of it."""
    return token_hex(size)

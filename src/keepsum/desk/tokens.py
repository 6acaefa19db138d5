"""Words that nobody can guess, for links, sessions and forms of the page. No noise comes from here."""

from __future__ import annotations

from secrets import token_hex

ROOM, WORD = 12, 32  # bytes


def unguessable(size: int = WORD) -> str:
    """A new word of so many random bytes, in letters and figures: terminals take all of it for a part of a link."""
    return token_hex(size)

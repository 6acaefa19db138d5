"""Names and labels as options of the shell take them: one that contains what separates it from others is quoted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def listed(labels: Iterable[Any]) -> str:
    """Labels with commas between them, as options take them.

    >>> listed(["Cook", "Rome, NY", '5" pipe', " x"])
    'Cook,"Rome, NY","5"" pipe"," x"'
    """
    return ",".join(quoted(str(label), ',"') for label in labels)


def pair(axis: str, labels: Sequence[Any], *path: str) -> str:
    """A column and labels, as ``--drop-rows`` and ``--categories`` take them; ``path`` are the parents of the labels.

    >>> pair("town", ["Total"]), pair("a=b", ["Total"]), pair("county", ["Cook", "Lake"], "IL")
    ('town=Total', '"a=b"=Total', 'county:IL=Cook,Lake')
    """
    return f"{':'.join(quoted(part, ':=' + chr(34)) for part in (axis, *path))}={listed(labels)}"


def joined(first: str, second: str) -> str:
    """Two names as ``--within`` and ``--carry`` take them.

    >>> joined("county", "state"), joined("Age: years", "Age, group")
    ('county:state', '"Age: years":"Age, group"')
    """
    return ":".join(quoted(name, ',:"') for name in (first, second))


def quoted(text: str, special: str) -> str:
    """A name or a label, in double quotes if it has blanks around it or one of the special marks in it."""
    if text == text.strip() and not any(mark in text for mark in special):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'

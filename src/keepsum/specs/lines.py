"""Where the keys of a TOML document are: a parser gives values, and a message needs lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

Key = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_NAME = re.compile(r"""[ \t]*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([A-Za-z0-9_-]+))[ \t]*""")
# What a value consists of: strings, comments, brackets, and anything else.
_PIECE = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'|"
    r"\#[^\n]*|"
    r"[\[{]|[\]}]|\n|[^\"'\#\[\]{}\n]+",
    re.DOTALL,
)


def lines_of(text: str) -> dict[Key, int]:
    r"""The line of every key and table header of a valid TOML document; keys in inline tables are not looked for.

    The tables of an array are numbered from 0.

    >>> lines_of("[a]\nb = 1\n[[c]]\n[[c]]\nd.e = '''\n[x]'''\n")
    {('a',): 1, ('a', 'b'): 2, ('c', 0): 3, ('c', 1): 4, ('c', 1, 'd', 'e'): 5}
    """
    found: dict[Key, int] = {}
    arrays: dict[Key, int] = {}
    table: Key = ()
    line, counted = 1, 0
    for position, is_array, is_header, names in _statements(text):
        line, counted = line + text.count("\n", counted, position), position
        if is_header:
            table = _numbered(names, arrays, is_array)
            found.setdefault(table, line)
        else:
            found.setdefault((*table, *names), line)
    return found


def _numbered(names: list[str], arrays: dict[Key, int], is_array: bool) -> Key:
    """The path of a header, with the number of the table of each array that it is in."""
    path: Key = ()
    for place, name in enumerate(names):
        path = (*path, name)
        if is_array and place == len(names) - 1:
            arrays[path] = arrays.get(path, -1) + 1
        if path in arrays:
            path = (*path, arrays[path])
    return path


def _statements(text: str) -> Iterator[tuple[int, bool, bool, list[str]]]:
    """Headers and keys: where each begins, whether it is an array's header or a header, and its names."""
    position = 0
    while True:
        space = _SPACE.match(text, position)
        position = space.end() if space else position
        if position >= len(text):
            return
        start = position
        is_array, is_header = text.startswith("[[", position), text.startswith("[", position)
        names, position = _names(text, position + is_array + is_header)
        yield start, is_array, is_header, names
        position = text.find("\n", position) if is_header else _after_value(text, position)
        if position < 0:
            return


def _names(text: str, position: int) -> tuple[list[str], int]:
    """A dotted key, and the position after it."""
    names: list[str] = []
    while match := _NAME.match(text, position):
        names.append(next(name for name in match.groups() if name is not None))
        position = match.end()
        if not text.startswith(".", position):
            break
        position += 1
    return names, position


def _after_value(text: str, position: int) -> int:
    """The end of the line on which a value ends."""
    depth = 0
    while match := _PIECE.match(text, position):
        piece = match.group()
        depth += (piece in "[{") - (piece in "]}")
        if piece == "\n" and depth <= 0:
            break
        position = match.end()
    return position

"""The lines of keys, against a parser's values and by hand."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from keepsum.specs.reading import lines_of

DOCUMENT = '''# a comment with = and [brackets]
title = "one" # [no.header]

[source]
data = """
[not.a.header]
count = 3
"""
"quoted key" = 'x = 1'
list = [
    "a", # ]
    ["b", 'c]'],
    { d = "}" },
]

[a . "b.c".d]
x.y = 1

[[table]]
name = "one"
[table.keep]
total = true
[[table.keep.subset]]
cells = []
[[table.keep.subset]]
cells = []

[[table]]
name = "two"
  [table.keep]
  total = false'''

EXPECTED = {
    ("title",): 2,
    ("source",): 4,
    ("source", "data"): 5,
    ("source", "quoted key"): 9,
    ("source", "list"): 10,
    ("a", "b.c", "d"): 16,
    ("a", "b.c", "d", "x", "y"): 17,
    ("table", 0): 19,
    ("table", 0, "name"): 20,
    ("table", 0, "keep"): 21,
    ("table", 0, "keep", "total"): 22,
    ("table", 0, "keep", "subset", 0): 23,
    ("table", 0, "keep", "subset", 0, "cells"): 24,
    ("table", 0, "keep", "subset", 1): 25,
    ("table", 0, "keep", "subset", 1, "cells"): 26,
    ("table", 1): 28,
    ("table", 1, "name"): 29,
    ("table", 1, "keep"): 30,
    ("table", 1, "keep", "total"): 31,
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_key_has_its_line(newline: str) -> None:
    assert lines_of(DOCUMENT.replace("\n", newline)) == EXPECTED


def test_every_key_that_the_parser_finds_has_a_line() -> None:
    """The oracle is tomllib: whatever it puts under a header must be found, inline tables apart."""
    found = lines_of(DOCUMENT)

    def paths(value: Any, path: tuple[Any, ...]) -> Any:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from paths(item, (*path, key))
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            for place, item in enumerate(value):
                yield from paths(item, (*path, place))
        else:
            yield path

    for path in paths(tomllib.loads(DOCUMENT), ()):
        assert path in found, path


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "x = 1", "x = ''''a''''\ny = \"\"\"\"b\"\"\"\"\n"])
def test_odd_documents(text: str) -> None:
    assert set(lines_of(text)) == {(key,) for key in tomllib.loads(text)}

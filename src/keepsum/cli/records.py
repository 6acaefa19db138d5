"""Records on the command line: ``--by county,age --bins age=0,18,65, --missing race=unknown``."""

from __future__ import annotations

from collections.abc import Iterable

from keepsum.errors import InputError


def parse_bins(texts: Iterable[str]) -> dict[str, list[str]]:
    """The edges of columns, as text; nothing between commas is an open end.

    >>> parse_bins(["age=0,18,65,", "born=,2000-01-01,"])
    {'age': ['0', '18', '65', ''], 'born': ['', '2000-01-01', '']}
    """
    return {column: edges.split(",") for column, edges in _pairs(texts, "bins", "age=0,18,65,").items()}


def parse_missing(texts: Iterable[str]) -> dict[str, str]:
    """The category of missing values of columns.

    >>> parse_missing(["race=unknown"])
    {'race': 'unknown'}
    """
    return _pairs(texts, "missing", "race=unknown")


def _pairs(texts: Iterable[str], option: str, example: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        column, equals, value = text.rpartition("=")
        if not (column and equals and value):
            raise InputError(f"Option --{option} must be such as {example}, got {text!r}.")
        if pairs.setdefault(column, value) != value:
            raise InputError(f"Option --{option} must be given once for {column!r}, got it twice.")
    return pairs

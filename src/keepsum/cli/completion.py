"""What the shell completes: the columns of the file that is already on the line, from its header alone."""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from keepsum._text import has_number
from keepsum.specs.option import quoted

LONGEST_HEADER = 10**5  # bytes of a file that are looked at
DELIMITERS = ",;\t|"
PARQUET, ARROW = b"PAR1", b"ARROW1"


def column(ctx: typer.Context, incomplete: str) -> list[str]:
    """A column."""
    return [name for name in _columns(ctx) if name.startswith(incomplete)]


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Columns with commas between them: the last one is completed."""
    return _after(",", ctx, incomplete)


def nesting(ctx: typer.Context, incomplete: str) -> list[str]:
    """A column and its parent with a colon between them."""
    return _after(":", ctx, incomplete)


def _after(separator: str, ctx: typer.Context, incomplete: str) -> list[str]:
    before, found, last = incomplete.rpartition(separator)
    names = [name for name in _columns(ctx) if name.startswith(last.removeprefix('"'))]
    return [f"{before}{found}{quoted(name, ',:' + chr(34))}" for name in names]


def _columns(ctx: typer.Context) -> list[str]:
    """The columns of the file on the line, if there is one."""
    # While an option on the line has no value yet, arguments are not assigned to their names.
    for file in (ctx.params.get("source_data"), *ctx.args):
        with suppress(OSError, ValueError, csv.Error):
            if isinstance(file, str) and Path(file).is_file():
                return header(Path(file))
    return []


def header(path: Path) -> list[str]:
    """The names of the columns of a file; none if they may be a row of data, which nobody must see on a screen."""
    with path.open("rb") as file:
        data = file.read(LONGEST_HEADER)
    names = _columnar(path, data.startswith(PARQUET)) if data.startswith((PARQUET, ARROW)) else _delimited(data)
    return names if names and not any(has_number(name) or not name.isprintable() for name in names) else []


def _delimited(data: bytes) -> list[str]:
    line = data.partition(b"\n")[0].decode("utf-8-sig").removesuffix("\r")
    return max((next(csv.reader([line], delimiter=mark), []) for mark in DELIMITERS), key=len)


def _columnar(path: Path, is_parquet: bool) -> list[str]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        return []
    schema: Any
    with pa.memory_map(str(path)) as file:
        schema = parquet.read_schema(file) if is_parquet else pa.ipc.open_file(file).schema
    return list(schema.names)

"""Options that are added to a declaration as they would be typed in a shell."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import typer

from keepsum.cli.declaration import Declaration, declares
from keepsum.errors import InputError

# Options with one value per column: given again for the same column, the new value counts.
KEYED = {"within": ":", "carry": ":", "categories": "=", "drop_rows": "=", "bins": "=", "missing": "=", "flag": "="}


def split(answer: str) -> list[str]:
    """Options as they are typed in a shell."""
    try:
        return shlex.split(answer)
    except ValueError:
        pass
    raise InputError("Options must be as in a shell, with every quotation mark closed.")


def with_options(declared: Declaration, arguments: Sequence[str]) -> Declaration:
    """The declaration with more options, given as on the command line; a later value for a column counts."""
    added = _parsed(arguments)
    for name, typed in (("table", added.table), ("spec", "--spec"), ("only", "--only")):
        if getattr(added, name) is not None:
            raise InputError(f"Options must be like --within county:state, got {typed!r} as well. Leave out {typed!r}.")
    values: dict[str, Any] = {}
    for field in fields(Declaration):
        before, more = getattr(declared, field.name), getattr(added, field.name)
        if isinstance(before, list) and isinstance(more, list):
            values[field.name] = _joined(before, more, KEYED.get(field.name))
        else:
            values[field.name] = more or before
    return Declaration(**values)


def _joined(before: Sequence[str], more: Sequence[str], separator: str | None) -> list[str]:
    """The earlier values without those that later ones replace, and the later ones."""

    def key(text: str) -> str:
        return text if separator is None else text.partition(separator)[0]

    replaced = set(map(key, more))
    return [*(text for text in before if key(text) not in replaced), *more]


def _parsed(arguments: Sequence[str]) -> Declaration:
    """Options of a declaration, parsed as those of a command."""
    parsed: list[Declaration] = []

    @declares
    def command(declared: Declaration) -> None:
        parsed.append(declared)

    app = typer.Typer(add_completion=False)
    app.command(add_help_option=False)(command)
    problem = ""
    try:
        typer.main.get_command(app).main(list(arguments), standalone_mode=False)
    except Exception as error:  # typer's own, which says what is wrong with the call
        if not hasattr(error, "format_message"):
            raise
        problem = str(error.format_message())
    if problem or not parsed:
        raise InputError(f"Options must be like --within county:state, but: {problem or 'nothing was given'}")
    return parsed[0]

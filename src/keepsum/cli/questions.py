"""What ``keepsum init`` asks, where options leave something open; every question has an answer that Enter gives."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import typer

from keepsum.cli.screen import note
from keepsum.cli.terms import in_shell_terms
from keepsum.errors import InputError, KeepsumError
from keepsum.sources.records.databases import is_address
from keepsum.tables.source import DEFAULT_COUNT

T = TypeVar("T")
COUNT_NAMES = (DEFAULT_COUNT, "n", "counts", "population", "pop", "total", "value")
_ADVICE = re.compile(r"(--[a-z-]+)(?: ('[^']*'|[^\s,.']\S*[^\s,.']))?")
_WITH_VALUE = ("--within", "--drop-rows", "--carry")


def ask(question: str, default: str | None = None) -> str:
    """Ask for a text."""
    answer: str = typer.prompt(question, default=default, err=True)
    return answer.strip()


def ask_until(question: str, default: str | None, read: Callable[[str], T]) -> T:
    """Ask until the answer can be read; what is wrong with it is said before it is asked again."""
    while True:
        try:
            return read(ask(question, default))
        except KeepsumError as error:
            problem = str(error)
        note(in_shell_terms(problem))


def confirm(question: str, default: bool = False) -> bool:
    """Ask a question that is answered by yes or no."""
    return bool(typer.confirm(question, default=default, err=True))


def existing_file(answer: str) -> str:
    """The name of something that is there; an address of a database is not looked at."""
    if not is_address(answer) and not Path(answer).exists():
        raise InputError(f"File {answer!r} must exist, but does not. Check the spelling.")
    return answer


def chosen_column(columns: Sequence[str]) -> Callable[[str], str]:
    """Reads one of the columns; any name if they are not known."""

    def read(answer: str) -> str:
        if columns and answer not in columns:
            raise InputError(f"The column must be one of {', '.join(columns)}, got {answer!r}.")
        return answer

    return read


def likely_count(columns: Sequence[str]) -> str | None:
    """The column that by its name is the count, or the last one."""
    by_name = {name.lower(): name for name in columns}
    return next((by_name[name] for name in COUNT_NAMES if name in by_name), columns[-1] if columns else None)


def options(answer: str) -> list[str]:
    """Options as they are typed in a shell."""
    try:
        return shlex.split(answer)
    except ValueError:
        pass
    raise InputError("Options must be as in a shell, with every quotation mark closed.")


def margins(answer: str) -> list[str]:
    """The totals to keep, as options: ``county sex,age total``."""
    wanted = options(answer)
    if not wanted:
        raise InputError("At least one total must be kept. Name an axis, several with commas between them, or total.")
    chosen = []
    for name in wanted:
        chosen += ["--keep-total"] if name == "total" else ["--keep", name]
    return chosen


def advised(problem: str) -> str | None:
    """The first option that a message recommends, complete with its value; None if there is none.

    >>> advised("Pass --within 'county:state' to nest it, or --dense if every combination is meant to be a cell.")
    '--within county:state'
    >>> advised("Leave them out with --drop-rows 'county=All counties', or declare the categories.")
    "--drop-rows 'county=All counties'"
    """
    for match in _ADVICE.finditer(problem):
        name, value = match.groups()
        if name == "--dense":
            return name
        if name in _WITH_VALUE and value:
            return shlex.join([name, *shlex.split(value)])
    return None

"""What the shell shows: rich on a terminal, plain text when piped, JSON when asked for."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from keepsum._text import printable
from keepsum.releasing.explain import as_text

NOT_SHOWN = 3  # the status of a command that has done its work, but not said so where it should


class FailedError(Exception):
    """A check failed: the sentence says which, and the status is 1."""


class Done:
    """What a command has done for good, in words and as a status, should it come to nothing after that."""

    words: str | None = None
    status: int = NOT_SHOWN


def done(words: str | None, status: int = NOT_SHOWN) -> None:
    """Say that from here on ``words`` are true, whatever happens to the report or to the command; None: nothing yet."""
    Done.words, Done.status = words, status


def error(words: str) -> None:
    """One sentence on what is wrong and what to do."""
    _line("keepsum: ", words, "bold red")


def warning(words: str) -> None:
    """Something that the user should know."""
    _line("warning: ", words, "yellow")


def note(words: str) -> None:
    """Something that is no failure, said where standard output cannot take it."""
    _line("keepsum: ", words, "bold")


def _line(head: str, words: str, style: str) -> None:
    text = " ".join(printable(words).split())
    console = Console(stderr=True, soft_wrap=True, highlight=False, emoji=False)
    with contextlib.suppress(OSError, ValueError):  # nobody can be told, so the status has to do
        if console.is_terminal:
            console.print(f"[{style}]{head}[/]{escape(text)}")
        else:
            print(f"{head}{text}", file=sys.stderr, flush=True)


def abandon_streams() -> None:
    """Let what nobody can read go nowhere, so that the interpreter does not try again when it ends."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def show(sections: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Titles and lines in two columns."""
    console = Console(highlight=False, emoji=False)
    if not console.is_terminal:
        typer.echo(as_text(sections))
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column()
    for title, lines in sections:
        style = "bold yellow" if title.startswith("Warning") else ""
        grid.add_row(escape(printable(title)), escape("\n".join(map(printable, lines))), style=style)
    console.print(grid)


def show_checks(checks: Iterable[tuple[str, bool, str]]) -> None:
    """What was checked, and how it came out."""
    console = Console(highlight=False, emoji=False)
    if not console.is_terminal:
        for name, passed, words in checks:
            typer.echo(f"{'ok' if passed else 'FAILED':<8}{name:<20}{printable(words)}")
        return
    grid = Table.grid(padding=(0, 2))
    for name, passed, words in checks:
        grid.add_row("[bold green]ok[/]" if passed else "[bold red]FAILED[/]", escape(name), escape(printable(words)))
    console.print(grid)


def show_json(result: Any) -> None:
    """A result for other programs, without a character that would do something to a terminal."""
    text = msgspec.json.format(msgspec.json.encode(result), indent=2).decode()
    typer.echo("\n".join(line if line.isprintable() else "".join(map(_in_json, line)) for line in text.split("\n")))


def _in_json(character: str) -> str:
    r"""A character of a JSON text, as \u where it cannot be printed; such ones stand in strings only."""
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k] << 8 | units[k + 1]:04x}" for k in range(0, len(units), 2))


def shown(path: object) -> str:
    """A path as text that can be written, whatever bytes it has."""
    return printable(str(path))


@contextlib.contextmanager
def progress() -> Iterator[Any]:
    """Say what is being done, on a terminal only: ``with progress() as step: step("reading")``."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda words: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda words: bar.update(task, description=words)


def pairs_shown(step: Callable[[str], None]) -> Callable[[int, int], None]:
    """Say how many pairs of chains have been run."""
    return lambda done, total: step(f"certifying the chains: {done:,} of {total:,} pairs")

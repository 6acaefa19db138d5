"""Output of the commands: rich on a terminal, plain text when piped, JSON on request."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from keepsum._progress import watched_by
from keepsum._text import printable

TAKEN_FOR_TERMINAL = ("FORCE_COLOR", "TTY_COMPATIBLE")  # variables of rich's that may make any stream a terminal
SENTENCE_WIDTH = 96
NOT_SHOWN = 3  # the exit status of a command that has done its work but could not report it
REPORT_CUT_OFF = "{done} Only the report was cut off: {reason}."


class FailedError(Exception):
    """A check failed: the message says which, and the exit status is 1."""


class Done:
    """What a command has done irrevocably, as a sentence and an exit status, in case it fails after that.

    ``cut_off`` is what is said then, with that sentence and the reason.
    """

    words: str | None = None
    status: int = NOT_SHOWN
    cut_off: str = REPORT_CUT_OFF


def done(sentence: str | None, status: int = NOT_SHOWN, cut_off: str = REPORT_CUT_OFF) -> None:
    """Record that the sentence is true from now on, even if the report or the command fails; None: nothing is done."""
    Done.words, Done.status, Done.cut_off = sentence, status, cut_off


def error(message: str) -> None:
    """Show what is wrong and what to do."""
    _line("keepsum: ", message, "bold red")


def warning(message: str) -> None:
    """Show something that the user should know."""
    _line("warning: ", message, "yellow")


def note(message: str) -> None:
    """Show something that is not a failure where standard output cannot show it."""
    _line("keepsum: ", message, "bold")


def _line(head: str, message: str, style: str) -> None:
    text = " ".join(printable(message).split())
    with contextlib.suppress(OSError, ValueError):  # it cannot be shown, so the exit status has to do
        console = terminal(sys.stderr, soft_wrap=True, highlight=False, emoji=False)
        if console is None:
            print(f"{head}{text}", file=sys.stderr, flush=True)
            return
        from rich.markup import escape

        console.print(f"[{style}]{head}[/]{escape(text)}")


def terminal(stream: Any, **options: Any) -> Any:
    """A console of rich's if a stream is a terminal, or is to be taken for one; else None, and rich is not loaded."""
    if not (stream.isatty() or any(os.environ.get(name) for name in TAKEN_FOR_TERMINAL)):
        return None
    from rich.console import Console

    console = Console(file=stream, **options)
    return console if console.is_terminal else None


def abandon_streams() -> None:
    """Discard output that cannot be written, so that the interpreter does not try again at exit."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)


def show(sections: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Show titles and lines in two columns."""
    console = terminal(sys.stdout, highlight=False, emoji=False)
    if console is None:
        from keepsum.releasing.sections import as_text

        typer.echo(as_text(sections))
        return
    from rich.console import Group
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    def indented(line: str) -> Padding:
        """A line whose indent is that of the lines that it is wrapped to."""
        text = line.lstrip()
        return Padding(Text(text), (0, 0, 0, len(line) - len(text)))

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column()
    for title, lines in sections:
        style = "bold yellow" if title.startswith("Warning") else ""
        grid.add_row(escape(printable(title)), Group(*(indented(printable(line)) for line in lines)), style=style)
    console.print(grid)


def show_checks(checks: Iterable[tuple[str, bool, str]]) -> None:
    """Show checks and their results."""
    console = terminal(sys.stdout, highlight=False, emoji=False)
    if console is None:
        for name, passed, reason in checks:
            typer.echo(f"{'ok' if passed else 'FAILED':<8}{name:<20}{printable(reason)}")
        return
    from rich.markup import escape
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for name, passed, reason in checks:
        grid.add_row("[bold green]ok[/]" if passed else "[bold red]FAILED[/]", escape(name), escape(printable(reason)))
    console.print(grid)


def show_json(result: Any) -> None:
    """Print a result as JSON, without control characters."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(result), indent=2).decode()
    typer.echo("\n".join(line if line.isprintable() else "".join(map(_in_json, line)) for line in text.split("\n")))


def _in_json(character: str) -> str:
    r"""A character of JSON text, as \u if it is not printable; such characters occur in strings only."""
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k] << 8 | units[k + 1]:04x}" for k in range(0, len(units), 2))


def wrapped(text: str, margin: int = 0) -> str:
    """A sentence in lines as wide as those of sections, less a margin."""
    return textwrap.fill(text, SENTENCE_WIDTH - margin, break_long_words=False, break_on_hyphens=False)


def shown(path: object) -> str:
    """A path as printable text, whatever bytes it contains."""
    return printable(str(path))


@contextlib.contextmanager
def progress() -> Iterator[Any]:
    """Show what is being done, on a terminal only: ``with progress() as step: step("reading")``."""
    console = terminal(sys.stderr)
    if console is None:
        yield lambda description: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        current = "starting"

        def step(description: str) -> None:
            nonlocal current
            current = description
            bar.update(task, description=description, refresh=True)

        def part(fraction: float) -> None:
            bar.update(task, description=f"{current}: {100 * fraction:.0f}%")

        with watched_by(Stages(step, part)):
            yield step


@dataclass(frozen=True)
class Stages:
    """Who is told by the library what it does, and how far it is."""

    doing: Callable[[str], None]
    done: Callable[[float], None]

    def check(self) -> None:
        """A command is stopped by signals."""


def pairs_shown(step: Callable[[str], None]) -> Callable[[int, int], None]:
    """Show how many pairs of coupled chains have been run."""
    return lambda done, total: step(f"running coupled chains: {done:,} of {total:,} pairs")

"""Output of the commands: rich on a terminal, plain text when piped, JSON on request, or the table alone."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import stat
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from keepsum._progress import LOG, watched_by
from keepsum._saying import arg
from keepsum._text import printable
from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.releasing.destination import Destination
    from keepsum.releasing.facts import LedgerRecord

TAKEN_FOR_TERMINAL = ("FORCE_COLOR", "TTY_COMPATIBLE")  # variables of rich's that may make any stream a terminal
SENTENCE_WIDTH = 96
NOT_SHOWN = 3  # the exit status of a command that has done its work but could not report it
REPORT_CUT_OFF = "{done} Only the report was cut off: {reason}."


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


class Verbose:
    """Who writes a line per step to standard error, once ``--verbose`` asked for it."""

    handler: logging.Handler | None = None


def tell_steps(wanted: bool) -> None:
    """Write a line per step to standard error from now on, or no more."""
    if Verbose.handler is not None:
        LOG.removeHandler(Verbose.handler)
        LOG.setLevel(logging.NOTSET)
        Verbose.handler = None
    if wanted:
        Verbose.handler = _Lines(logging.INFO)
        LOG.addHandler(Verbose.handler)
        LOG.setLevel(logging.INFO)


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write it, if that is possible."""
        with contextlib.suppress(OSError, ValueError):
            print(f"keepsum: {printable(record.getMessage())}", file=sys.stderr, flush=True)


def show(sections: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Show titles and lines in two columns."""
    console = terminal(sys.stdout, highlight=False, emoji=False)
    if console is None:
        from keepsum.releasing.wording import as_text

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


class Shown:
    """Whether a result was printed as JSON: there is one document on standard output."""

    json = False


def show_json(result: Any) -> None:
    """Print a result as JSON, without control characters."""
    import msgspec

    Shown.json = True
    text = msgspec.json.format(msgspec.json.encode(result, enc_hook="".join), indent=2).decode()
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
    console = None if Verbose.handler is not None else terminal(sys.stderr)  # lines and a spinner do not mix
    if console is None:
        yield LOG.info
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

        def started(description: str) -> None:
            LOG.info(description)
            step(description)

        def part(fraction: float) -> None:
            bar.update(task, description=f"{current}: {100 * fraction:.0f}%")

        with watched_by(ScreenWatcher(step, part)):
            yield started


@dataclass(frozen=True)
class ScreenWatcher:
    """Who is told by the library what it does, and how far it is."""

    doing: Callable[[str], None]
    done: Callable[[float], None]

    def check(self) -> None:
        """A command is stopped by signals."""


def pairs_shown(step: Callable[[str], None]) -> Callable[[int, int], None]:
    """Show how many pairs of coupled chains have been run."""
    return lambda done, total: step(f"running coupled chains: {done:,} of {total:,} pairs")


# ``--output -``: the table on standard output, and everything else that a command prints on standard error.

STANDARD_OUTPUT = "-"
INCOMPLETE = "The table on standard output may be incomplete: {reason}. {done}"
CERTIFICATE_STAYS = "Its certificate is written: {}. {}"
SPENT = "If anybody may have seen a part of the table, that was a release, and another one adds to the privacy loss."
FREE = "Run the command again: it costs no privacy."


class Reserved:
    """Standard output, while it is reserved for a table."""

    stream: Any = None


@contextlib.contextmanager
def reserved() -> Iterator[None]:
    """Reserve standard output for a table: whatever else is printed goes to standard error, a prompt too."""
    if Reserved.stream is not None:  # by the caller
        yield
        return
    Reserved.stream = sys.stdout
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        Reserved.stream = None


def destination(output: str, certificate: Path | None, kind: str = "csv") -> Destination:
    """Where a release is to be written, by the options --output and --certificate."""
    from keepsum.releasing.destination import Destination

    if output != STANDARD_OUTPUT:
        if certificate is not None:
            raise InputError(
                f"{arg.certificate} must be given {arg.output:with} - only: otherwise the certificate is written "
                "beside the table. Leave it out."
            )
        return Destination.at(output, kind)
    if certificate is None:
        raise InputError(
            f"{arg.certificate} must be given {arg.output:with} -, such as {arg.certificate} released.certificate.json."
        )
    return Destination.standard_output(certificate)


def check_free(json: bool, files: Iterable[Path | str] = ()) -> None:
    """Refuse a standard output that a table cannot be written to; it must not be one of the files."""
    if json:
        raise InputError(f"{arg.json} must not be given {arg.output:with} -: both would be on standard output.")
    if Reserved.stream is None or getattr(Reserved.stream, "name", None) == os.devnull:  # closed from the start
        raise InputError(f"Standard output must be open for {arg.output} -, but it is closed. Nothing was released.")
    for file in files:
        if _is_stream(Path(file)):
            raise InputError(f"Standard output must not be redirected to {shown(file)!r}. Choose another file.")
    check_reader()


def check_reader() -> None:
    """Refuse a pipe that nobody reads, as before a mistyped command: no noise must be drawn for it."""
    number = None if Reserved.stream is None else _number()
    if number is None or not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(number, 0)
    if any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0)):
        raise InputError("Standard output must be read by somebody, but it is closed. Nothing was released.")


def deliver(table: bytes) -> None:
    """Write a table to standard output, past all buffers: nothing is left that the end of the process would write."""
    stream = Reserved.stream.buffer
    raw, rest = getattr(stream, "raw", stream), memoryview(table)
    while rest:
        written = raw.write(rest)
        if written is None:  # a pipe that is full and does not wait
            raise BlockingIOError(errno.EAGAIN, "it is a pipe that does not wait for its reader")
        rest = rest[written:]
    number = _number()
    if number is not None and stat.S_ISREG(os.fstat(number).st_mode):
        os.fsync(number)  # some file systems notice only now that they are full


def record_release(place: Destination, charged: LedgerRecord | None = None, cost: str = SPENT) -> None:
    """Record, when the files of a release are written, what is true even if its table cannot be delivered."""
    certificate, ledger = repr(shown(place.certificate)), _ledger(charged)
    if place.is_stream:
        done(CERTIFICATE_STAYS.format(certificate, cost) + ledger, cut_off=INCOMPLETE)
    else:
        done(f"The release is written: {shown(place.table)!r} with its certificate {certificate}.{ledger}")


def deliver_release(place: Destination, table: bytes, charged: LedgerRecord | None = None) -> None:
    """Write the table of a release that goes to standard output."""
    if place.is_stream:
        deliver(table)
        written = f"its table to standard output, its certificate to {shown(place.certificate)!r}."
        done(f"The release is written: {written}{_ledger(charged)}")


def _ledger(charged: LedgerRecord | None) -> str:
    return "" if charged is None else f" It is charged as entry {charged.entry:,} of the ledger."


def _number() -> int | None:
    """The descriptor of standard output, if it has one."""
    try:
        return int(Reserved.stream.fileno())
    except (OSError, ValueError):
        return None


def _is_stream(file: Path) -> bool:
    number = _number()
    with contextlib.suppress(OSError, ValueError):
        return number is not None and file.is_file() and os.path.samestat(os.fstat(number), file.stat())
    return False

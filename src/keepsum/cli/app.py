"""The commands as one program, and the one place where an error becomes a message and an exit status."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import os
import pkgutil
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from keepsum import __version__
from keepsum._memory import limited, ran_out
from keepsum._saying import Reference
from keepsum.cli import commands
from keepsum.cli.help_text import Trimmed, paragraphs
from keepsum.cli.screen import (
    STANDARD_OUTPUT,
    Done,
    Shown,
    abandon_streams,
    done,
    error,
    note,
    reserved,
    show_json,
    tell_steps,
    warning,
)
from keepsum.errors import (
    DeclinedError,
    FailedCheckError,
    InputError,
    KeepsumError,
    KeepsumWarning,
    TooMuchWorkError,
    UnreachableError,
)
from keepsum.specs.faces import in_shell, key_of
from keepsum_shell.stopping import STOPPED, Stop

# What became of a command that failed: its exit status, a sentence, and the same as data for ``--json``.

OUTPUT = ("--output", "-o")


@dataclass(frozen=True)
class Failure:
    """Why a command failed, of which kind that is, and the error if it is one of ours."""

    status: int
    kind: str
    message: str
    error: KeepsumError | None = None

    @property
    def words(self) -> str:
        """The message in the words of the shell."""
        return in_shell(self.message)

    def as_data(self) -> dict[str, Any]:
        """The kind, the subject, the problem and the remedy."""
        error = KeepsumError(self.message) if self.error is None else self.error
        subject, remedy, advice = error.subject, error.remedy, error.advice
        parts = [part for part in (subject, error.row) if part is not None]
        about = {part.kind: _key(part) for part in parts} or None
        what = None if advice is None else {"words": in_shell(advice)}
        if remedy is not None and what is not None:
            what = {remedy.kind: _key(remedy), "value": remedy.value, **what}
        return {"kind": self.kind, "subject": about, "problem": in_shell(error.problem), "remedy": what}


def _key(part: Reference) -> str:
    """An option by its key in a spec, or by its name if it is no release's; anything else by its name."""
    return key_of(part.name) if part.kind == "option" else part.name


def of(error: KeepsumError, reason: str | None = None) -> Failure:
    """A command that ended with this error; if its work was done, what was done and why it was not reported."""
    return unless_done(Failure(error.status, error.kind, str(error), error), str(error) if reason is None else reason)


def unless_done(failure: Failure, reason: str) -> Failure:
    """The failure, or, if the work is done, what was done and why it was not reported."""
    if Done.words is None:
        return failure
    message = Done.cut_off.format(done=Done.words, reason=reason.rstrip("."))
    return Failure(Done.status, "not reported", message)


def _is_for_table(arguments: Sequence[str]) -> bool:
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(
        (name in OUTPUT and value == STANDARD_OUTPUT) or name == f"--output={STANDARD_OUTPUT}" for name, value in pairs
    )


HELP = """Release tables of counts under differential privacy, with the totals you declare kept exactly.

Start with:

    keepsum plan counts.csv --count n --keep county --epsilon 0.25

The files that examples name are written to examples/files by: make examples
"""
OUTPUTS = ("output", "output_path")  # parameters for where a table goes
INTERRUPTED = 130  # what typer returns after a signal
# Wherever typer keeps it: the root of its errors about how a command was called.
UsageProblem = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def build() -> typer.Typer:
    """The program, with one command per module."""
    app = typer.Typer(
        name="keepsum",
        cls=Group,
        help=HELP,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def keepsum(
        version: Annotated[
            bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_version)
        ] = False,
    ) -> None:
        """The program as a whole."""

    for found in pkgutil.iter_modules(commands.__path__):
        module = importlib.import_module(f"{commands.__name__}.{found.name}")
        if hasattr(module, "add"):  # it has commands of its own
            module.add(app)
        else:
            app.command(found.name, help=module.HELP)(getattr(module, found.name))
    for info in app.registered_groups:
        info.cls = Group
    for group in [app, *(info.typer_instance for info in app.registered_groups)]:
        for command in [] if group is None else group.registered_commands:
            command.cls = Command
            command.callback = None if command.callback is None else _telling(command.callback)
    return app


class Helped:
    """A command, or a group of them, whose help has examples that can be copied, and no types of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, without types: those of arguments and of flags go without saying."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in parameters:
            if one.param_type_name == "argument" or getattr(one, "is_flag", False):
                one.display_type = one.display_type_rich = lambda ctx: ""
        return parameters

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help, with examples that can be copied."""
        with _laid_out(self, formatter):
            super().format_help(ctx, formatter)  # type: ignore[misc]


class Command(Helped, TyperCommand):
    """A command; with ``--output -`` standard output is for the table alone, whatever the command prints."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with reserved() if STANDARD_OUTPUT in map(str, map(ctx.params.get, OUTPUTS)) else contextlib.nullcontext():
            return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Show options under their headings, in a pipe as on a terminal."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            shown = one.get_help_record(ctx)
            title = "Arguments" if one.param_type_name == "argument" else getattr(one, "rich_help_panel", None)
            if shown is not None:
                groups.setdefault(title or "Options", []).append(shown)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class Group(Helped, TyperGroup):
    """All commands."""


@contextlib.contextmanager
def _laid_out(command: Any, formatter: Any) -> Iterator[None]:
    """The help of a command as lines for this terminal, while it is shown."""
    text = command.help
    try:
        if command.rich_markup_mode is None:  # a backspace tells typer to leave the lines of a paragraph as they are
            width = formatter.width - 2
            command.help = "\n\n".join(f"\b\n{lines}" for lines in paragraphs(text, width))
            yield
        else:
            from rich.markup import escape

            width = shutil.get_terminal_size().columns - 2
            command.help = "\n\n".join(escape(lines) for lines in paragraphs(text, width))
            with contextlib.redirect_stdout(Trimmed(sys.stdout)):
                yield
    finally:
        command.help = text


def _telling(callback: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a command with one more option, by which the command says what it does."""
    text = "Write a line to standard error for each step."
    flag = inspect.Parameter(
        "verbose", inspect.Parameter.KEYWORD_ONLY, default=typer.Option(False, "--verbose", help=text), annotation=bool
    )
    own = inspect.signature(callback, eval_str=True)

    @functools.wraps(callback)
    def told(*arguments: Any, verbose: bool = False, **options: Any) -> Any:
        tell_steps(verbose)
        return callback(*arguments, **options)

    told.__signature__ = own.replace(parameters=[*own.parameters.values(), flag])  # type: ignore[attr-defined]
    return told


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"keepsum {__version__}")
        raise typer.Exit


def run(arguments: list[str], stop: Stop | None = None) -> int:
    """Run a command.

    The status is 0 for success, 3 if the work is done but could not be reported, 128 plus the number of the signal if
    it was stopped before, and else that of the error (``keepsum.errors``).
    """
    if stop is None:
        stop = Stop()
        try:
            return run(arguments, stop)
        finally:
            stop.restore()
    done(None)
    tell_steps(False)
    Shown.json = False
    try:
        outcome = _outcome(arguments or ["--help"], stop)
        stop.closed = True
    except KeyboardInterrupt:  # one that arrives while another problem is being handled
        outcome = _stopped(stop.status)
    if isinstance(outcome, Failure):
        # Print a failure as data if that was asked for, unless the result was printed, or the output is for a table
        if "--json" in arguments and not Shown.json and not _is_for_table(arguments):
            show_json({"error": outcome.as_data()})
        error(outcome.words)
    elif Done.words is not None and getattr(sys.stdout, "name", None) == os.devnull:  # it was closed from the start
        note(Done.words)
    abandon_streams()
    return outcome.status if isinstance(outcome, Failure) else outcome


def _outcome(arguments: list[str], stop: Stop) -> int | Failure:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character shows a question mark
    with warnings.catch_warnings():
        warnings.simplefilter("default", KeepsumWarning)
        postponed: list[str] = []  # until the command is done: if it fails, what is wrong comes first, and alone

        def postpone(message: Warning | str, kind: type[Warning], *_: Any) -> None:
            if issubclass(kind, KeepsumWarning):
                postponed.append(in_shell(str(message)))

        warnings.showwarning = postpone  # type: ignore[assignment]
        try:
            status: Any = build()(args=arguments, standalone_mode=False)
            sys.stdout.flush()
            for sentence in postponed:
                warning(sentence)
        except (Exception, SystemExit, KeyboardInterrupt) as problem:
            if isinstance(problem, SystemExit) and not problem.code:  # completion, which ends the process by itself
                return 0
            return _answer(problem, stop)
    if status == INTERRUPTED and stop.number is not None:
        return _stopped(stop.status)
    return status if isinstance(status, int) else 0


def _answer(problem: BaseException, stop: Stop) -> Failure:
    if isinstance(problem, UsageProblem):
        return Failure(InputError.status, "usage", _usage(problem))
    match problem:
        case FailedCheckError():
            return Failure(problem.status, problem.kind, str(problem), problem)
        case KeepsumError():
            return of(problem)
        case MemoryError():
            return of(TooMuchWorkError(ran_out()), "memory ran out")
        case BrokenPipeError() | SystemExit():  # typer leaves by itself when a pipe breaks
            closed = "Standard output was closed before the command finished. Nothing was released or written."
            return of(UnreachableError(closed), "standard output was closed")
        case KeyboardInterrupt() | typer.Abort():
            return _stopped(DeclinedError.status if stop.number is None else stop.status)
        case OSError() | UnicodeError():
            reason = getattr(problem, "strerror", None) or str(problem)
            failed = UnreachableError(f"The command failed: {reason}. Nothing was released or written.")
            return of(failed, reason)
    if limited() and isinstance(problem, (ImportError, RuntimeError)):  # no library loads and no thread starts
        return of(TooMuchWorkError(ran_out()), "memory ran out")
    if Done.words is not None:
        error(Done.words)
    raise problem


def _stopped(status: int) -> Failure:
    """The command was stopped, by a signal or where it asked for something."""
    return unless_done(Failure(status, "stopped", STOPPED), "the command was stopped")


def _usage(problem: Any) -> str:
    """What typer says about the call, and where to find help."""
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "keepsum"
    message = " ".join(str(problem.format_message()).split())
    end = "" if message.endswith(("?", ".")) or not message else "."
    return f"{message}{end} See: {path} --help".strip()

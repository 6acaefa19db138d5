"""The commands as one program, and the one place where an error becomes a message."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pkgutil
import shutil
import sys
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from keepsum import __version__
from keepsum._memory import limited, ran_out
from keepsum.cli import commands
from keepsum.cli.help_text import Trimmed, paragraphs
from keepsum.cli.screen import Done, FailedError, abandon_streams, done, error, note, warning
from keepsum.cli.standard_output import STANDARD_OUTPUT, reserved
from keepsum.cli.terms import in_shell_terms
from keepsum.errors import KeepsumError, KeepsumWarning
from keepsum_shell.stopping import STOPPED, Stop

HELP = """Release tables of counts under differential privacy, with the totals you declare kept exactly.

Start with:

    keepsum plan counts.csv --count n --keep county --epsilon 0.25

The files that examples name are written to examples/files by: make examples
"""
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

    for module in pkgutil.iter_modules(commands.__path__):
        importlib.import_module(f"{commands.__name__}.{module.name}").add(app)
    for info in app.registered_groups:
        info.cls = Group
    for group in [app, *(info.typer_instance for info in app.registered_groups)]:
        for command in [] if group is None else group.registered_commands:
            command.cls = Command
    return app


class Command(TyperCommand):
    """A command whose help shows arguments by name, without the types of Python.

    With ``--output -`` standard output is for the table alone, whatever the command prints.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with reserved() if str(ctx.params.get("output")) == STANDARD_OUTPUT else contextlib.nullcontext():
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, whose types are not shown."""
        return _without_types(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help, with examples that can be copied."""
        with _laid_out(self, formatter):
            super().format_help(ctx, formatter)


class Group(TyperGroup):
    """All commands, with options without the types of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, whose types are not shown."""
        return _without_types(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help, with examples that can be copied."""
        with _laid_out(self, formatter):
            super().format_help(ctx, formatter)


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


def _without_types(parameters: list[Any]) -> list[Any]:
    """The types of arguments and of flags go without saying; other options have names for their values."""
    for parameter in parameters:
        if parameter.param_type_name == "argument" or getattr(parameter, "is_flag", False):
            parameter.display_type = parameter.display_type_rich = lambda ctx: ""
    return parameters


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"keepsum {__version__}")
        raise typer.Exit


def run(arguments: list[str], stop: Stop | None = None) -> int:
    """Run a command.

    The status is 0 for success, 1 if a check failed, 2 for bad input, 3 if the work is done but could not be reported,
    128 plus the number of the signal if it was stopped before.
    """
    if stop is None:
        stop = Stop()
        try:
            return run(arguments, stop)
        finally:
            stop.restore()
    done(None)
    try:
        status, message = _outcome(arguments or ["--help"], stop)
        stop.closed = True
    except KeyboardInterrupt:  # one that arrives while another problem is being handled
        status, message = _unless_done(stop.status, STOPPED, "the command was stopped")
    if message is not None:
        error(in_shell_terms(message))
    elif Done.words is not None and getattr(sys.stdout, "name", None) == os.devnull:  # it was closed from the start
        note(Done.words)
    abandon_streams()
    return status


def _outcome(arguments: list[str], stop: Stop) -> tuple[int, str | None]:
    """The status of a command, and a message if it failed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character shows a question mark
    with warnings.catch_warnings():
        warnings.simplefilter("default", KeepsumWarning)
        postponed: list[str] = []  # until the command is done: if it fails, what is wrong comes first, and alone

        def postpone(message: Warning | str, kind: type[Warning], *_: Any) -> None:
            if issubclass(kind, KeepsumWarning):
                postponed.append(in_shell_terms(str(message)))

        warnings.showwarning = postpone  # type: ignore[assignment]
        try:
            status: Any = build()(args=arguments, standalone_mode=False)
            sys.stdout.flush()
            for sentence in postponed:
                warning(sentence)
        except (Exception, SystemExit, KeyboardInterrupt) as problem:
            if isinstance(problem, SystemExit) and not problem.code:  # completion, which ends the process by itself
                return 0, None
            return _answer(problem, stop)
    if status == INTERRUPTED and stop.number is not None:
        return _unless_done(stop.status, STOPPED, "the command was stopped")
    return (status if isinstance(status, int) else 0), None


def _answer(problem: BaseException, stop: Stop) -> tuple[int, str]:
    """The status and the message of a command that failed or was stopped."""
    if isinstance(problem, UsageProblem):
        return 2, _usage(problem)
    match problem:
        case FailedError():
            return 1, str(problem)
        case KeepsumError():
            return _unless_done(2, str(problem), str(problem))
        case MemoryError():
            return _unless_done(2, ran_out(), "memory ran out")
        case BrokenPipeError() | SystemExit():  # typer leaves by itself when a pipe breaks
            closed = "Standard output was closed before the command finished. Nothing was released or written."
            return _unless_done(2, closed, "standard output was closed")
        case KeyboardInterrupt() | typer.Abort():
            status = 1 if stop.number is None else stop.status
            return _unless_done(status, STOPPED, "the command was stopped")
        case OSError() | UnicodeError():
            reason = getattr(problem, "strerror", None) or str(problem)
            failure = f"The command failed: {reason}. Nothing was released or written."
            return _unless_done(2, failure, reason)
    if limited() and isinstance(problem, (ImportError, RuntimeError)):  # no library loads and no thread starts
        return _unless_done(2, ran_out(), "memory ran out")
    if Done.words is not None:
        error(Done.words)
    raise problem


def _unless_done(status: int, message: str, reason: str) -> tuple[int, str]:
    """The given status and message, or, if the work is done, what was done and why it was not reported."""
    if Done.words is None:
        return status, message
    return Done.status, Done.cut_off.format(done=Done.words, reason=reason.rstrip("."))


def _usage(problem: Any) -> str:
    """What typer says about the call, and where to find help."""
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "keepsum"
    message = " ".join(str(problem.format_message()).split())
    end = "" if message.endswith(("?", ".")) or not message else "."
    return f"{message}{end} See: {path} --help".strip()

"""The shell's commands gathered into one program, and the one place where an error becomes a sentence."""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import sys
import warnings
from typing import Annotated, Any

import typer

from keepsum import __version__
from keepsum.cli import commands
from keepsum.cli.screen import FailedError, error, warning
from keepsum.errors import KeepsumError, KeepsumWarning

INTERRUPTED = 130  # what typer returns after Ctrl-C
# Wherever typer keeps it: the root of its errors about how a command was called.
UsageProblem = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def build() -> typer.Typer:
    """The program, with every command there is a module for."""
    app = typer.Typer(
        name="keepsum",
        help="Release tables of counts under differential privacy, with the totals you declare kept exactly.",
        epilog="Start with: keepsum plan counts.csv --count n --keep county --epsilon 0.25",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown" if sys.stdout.isatty() else None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def keepsum(
        version: Annotated[
            bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_version)
        ] = False,
    ) -> None:
        """Release tables of counts under differential privacy, with the totals you declare kept exactly."""

    for found in pkgutil.iter_modules(commands.__path__):
        importlib.import_module(f"{commands.__name__}.{found.name}").add(app)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"keepsum {__version__}")
        raise typer.Exit


def run(arguments: list[str]) -> int:
    """Run a command; 0 it is done, 1 a check failed, 2 the input was bad."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot write a letter shows a question mark
    with warnings.catch_warnings():
        warnings.simplefilter("default", KeepsumWarning)
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        status, words = _outcome(arguments or ["--help"])
    if words is not None:
        error(_in_shell_words(words))
    return status


def _outcome(arguments: list[str]) -> tuple[int, str | None]:
    """The status of a command, and a sentence if it failed."""
    try:
        status: Any = build()(args=arguments, standalone_mode=False)
        sys.stdout.flush()
    except FailedError as failure:
        return 1, str(failure)
    except KeepsumError as problem:
        return 2, str(problem)
    except UsageProblem as problem:  # type: ignore[misc]
        return 2, _usage(problem)
    except MemoryError:
        return 2, "The table does not fit in memory. Drop an axis, merge categories, or use a larger machine."
    except (BrokenPipeError, SystemExit):  # typer leaves by itself when a pipe breaks
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads on: the interpreter must not try again
        return 2, "Standard output was closed before the command was done, and nothing was released."
    except (OSError, UnicodeError) as problem:
        return 2, f"The command could not be done, because: {getattr(problem, 'strerror', None) or problem}."
    except (typer.Abort, KeyboardInterrupt):
        return 1, "Stopped, and nothing was released."
    if status == INTERRUPTED:
        return 1, "Stopped, and nothing was released."
    return (status if isinstance(status, int) else 0), None


# What messages of the library call the options of the shell.
IN_SHELL = {
    "domain=": "--categories or --domain",
    "within=": "--within ",
    "keep_order=True": "--keep-order",
    "plan.explain()": "keepsum plan",
    "with force": "with --force",
    "accept each by name (or 'all')": "accept each with --accept-pinned NAME (or all)",
}


def _in_shell_words(words: str) -> str:
    for ours, shell in IN_SHELL.items():
        words = words.replace(ours, shell)
    return words


def _show_warning(message: Warning | str, kind: type[Warning], *_: Any) -> None:
    if issubclass(kind, KeepsumWarning):
        warning(_in_shell_words(str(message)))


def _usage(problem: Any) -> str:
    """What typer says of the call, with the help to read."""
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "keepsum"
    message = " ".join(str(problem.format_message()).split())
    end = "" if message.endswith(("?", ".")) or not message else "."
    return f"{message}{end} See: {path} --help".strip()

"""The shell's commands gathered into one program, and the one place where an error becomes a sentence."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from typing import Annotated, Any

import typer

from keepsum import __version__
from keepsum.cli import commands
from keepsum.cli.screen import FailedError, error, warning
from keepsum.errors import KeepsumError, KeepsumWarning

# Wherever typer keeps it: the root of its errors about how a command was called.
UsageProblem = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def build() -> typer.Typer:
    """The program, with every command there is a module for."""
    app = typer.Typer(
        name="keepsum",
        help="Release tables of counts under differential privacy, with the totals you declare kept exactly.",
        epilog="Start with: keepsum plan counts.csv --count n --keep county --epsilon 0.25",
        no_args_is_help=True,
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
    with warnings.catch_warnings():
        warnings.simplefilter("default", KeepsumWarning)
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        try:
            status: Any = build()(args=arguments, standalone_mode=False)
        except FailedError as failure:
            error(str(failure))
            return 1
        except KeepsumError as problem:
            error(str(problem))
            return 2
        except UsageProblem as problem:  # type: ignore[misc]
            error(_usage(problem))
            return 2
        except MemoryError:
            error("The table does not fit in memory. Drop an axis, merge categories, or use a larger machine.")
            return 2
        except (typer.Abort, KeyboardInterrupt):
            error("Stopped, and nothing was released.")
            return 1
    return status if isinstance(status, int) else 0


def _show_warning(message: Warning | str, kind: type[Warning], *_: Any) -> None:
    if issubclass(kind, KeepsumWarning):
        warning(str(message).replace("domain=", "--domain"))


def _usage(problem: Any) -> str:
    """What typer says of the call, with the help to read."""
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "keepsum"
    message = " ".join(str(problem.format_message()).split())
    end = "" if message.endswith(("?", ".")) or not message else "."
    return f"{message}{end} See: {path} --help".strip()

"""``keepsum help``: the help of a command, and how files are written."""

from __future__ import annotations

from typing import Annotated

import typer

from keepsum.cli.help_text import FILES, PUBLISHED, paragraphs
from keepsum.errors import InputError

FILES_TOPIC = "files"
WIDTH = 100
HELP = """Show the help of a command, or how files are written.

Examples:

    keepsum help release

    keepsum help files

The last one shows how categories, kept totals and published figures are written, in options and in files. Commands of
two words, such as ledger init, are topics as well.
"""


def help(  # noqa: A001
    ctx: typer.Context,
    topic: Annotated[list[str] | None, typer.Argument(help="A command, or files.", metavar="TOPIC")] = None,
) -> None:
    """Show help."""
    import shutil

    if topic == [FILES_TOPIC]:
        width = min(shutil.get_terminal_size().columns, WIDTH) - 2
        typer.echo("\n\n".join(paragraphs(FILES + PUBLISHED, width)))
        return
    group = ctx.find_root()
    command = group.command
    for place, name in enumerate(topic or []):
        inner = getattr(command, "commands", {}).get(name)
        if inner is None:
            known = ", ".join([*getattr(command, "commands", {}), *([] if place else [FILES_TOPIC])])
            raise InputError(f"The topic must be one of {known}, got {name!r}.")
        command = inner
    typer.echo(command.get_help(type(ctx)(command, info_name=" ".join(topic or []), parent=group)))

"""``keepsum app``: the page in the browser."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from keepsum._saying import arg
from keepsum.cli.screen import note

HELP = """Open a page in the browser that takes a table from a file to a verified release, step by step.

Examples:

    keepsum app

    keepsum app --ledger ledger.db --dataset pop2010

    keepsum app --no-browser --port 0

It prints a link, and serves the page on this machine alone until it is interrupted (Ctrl-C). The link works once, for
one browser. Files stay in memory: nothing is written to disk unless you save it. Needs the extra web.
"""


def app(
    port: Annotated[int, typer.Option("--port", help="The port; 0 for any that is free.", metavar="PORT")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the link, and open no browser.")] = False,
    ledger: Annotated[
        str | None, typer.Option("--ledger", help="Charge releases to this ledger.", metavar="FILE")
    ] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="The dataset of the ledger.", metavar="NAME")] = None,
) -> None:
    """Serve the page."""
    from keepsum._extras import check_installed
    from keepsum.errors import InputError

    check_installed("The page", "web")
    if not 0 <= port <= 65535:
        raise InputError(f"{arg.port} must be from 0 to 65535, got {port}.")
    from keepsum.desk.desk import Desk
    from keepsum.desk.serving import listen, serve

    listening = listen(port)
    desk = Desk(ledger, dataset)
    with ExitStack() as stack:

        def ready(link: str) -> None:
            typer.echo(f"Open {link}")
            if not no_browser:
                from keepsum.desk.serving import opened

                stack.enter_context(opened(link))

        serve(desk, listening, ready, note)

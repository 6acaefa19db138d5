"""The option for the number of threads, as ``threads=`` in Python."""

from __future__ import annotations

from typing import Annotated

import typer

Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        help="How many threads to use; by default one for each core.",
        min=1,
        metavar="N",
        show_default=False,
    ),
]

"""The command line as tests run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from command import Commands, installed


@pytest.fixture(scope="session")
def commands() -> Iterator[Commands]:
    """The process that commands are forked from."""
    running = Commands()
    yield running
    running.close()


@pytest.fixture
def run(commands: Commands, tmp_path: Path) -> Callable[..., Any]:
    """Run keepsum in an empty folder: run("release", ...) gives status, output and errors.

    With options of ``subprocess.run`` (``env``, ``preexec_fn``) it is the installed program, else a fork that starts
    at once.
    """

    def call(*arguments: object, stdin: bytes | None = None, **options: Any) -> Any:
        if options:
            return installed(*arguments, cwd=tmp_path, stdin=stdin, **options)
        return commands.run(*arguments, cwd=tmp_path, stdin=stdin)

    return call


@pytest.fixture
def answered(commands: Commands, tmp_path: Path) -> Callable[..., Any]:
    """Run ``keepsum init`` in an empty folder, with answers typed on a terminal."""

    def call(answers: list[str], *arguments: str) -> Any:
        return commands.answered(answers, *arguments, cwd=tmp_path)

    return call

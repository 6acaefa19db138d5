"""The command line as tests run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from cli.to_stream import COUNTS
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


@pytest.fixture(scope="session")
def program() -> Any:
    """The commands with their options, which take longer to read than most commands to run."""
    from typer.main import get_command

    from keepsum.cli import app

    return get_command(app.build())


@pytest.fixture
def inside(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Run keepsum in an empty folder as ``run`` does, but in this process; figures of reports are not drawn.

    Tests of the page draw all of them.
    """
    from keepsum.cli import app
    from report.undrawn import without_figures

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "build", lambda: program)
    without_figures(monkeypatch)

    def call(*arguments: object) -> Any:
        capsys.readouterr()
        status = app.run(list(map(str, arguments)))
        said, complaints = capsys.readouterr()
        return CompletedProcess(["keepsum", *map(str, arguments)], status, said.encode(), complaints.encode())

    return call


@pytest.fixture
def folder(program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, in which commands are run, also in forks of this process."""
    from keepsum.cli import app

    (tmp_path / "counts.csv").write_text(COUNTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "build", lambda: program)
    return tmp_path

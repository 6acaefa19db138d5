"""Each of fifty failures has its status, kind and remedy, in the words of the shell, a spec, the page and Python."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fifty_failures import COMMANDS, OUTCOMES, make_files
from keepsum._saying import PYTHON, said
from keepsum.cli import app
from keepsum.cli.app import Failure
from keepsum.errors import KeepsumError
from keepsum.specs.faces import PAGE, SHELL, SPEC

FACES = (SHELL, SPEC, PAGE, PYTHON)
WITHOUT_DATA = ("a release changed",)  # whose checks are printed
# What is wrong with a release, or with the call itself, is about none of its options, columns, rows and files.
ABOUT_NOTHING = {"a release changed", "a sum of no release", "an option that is none"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files, a release that was changed since, and a ledger that half a release fits."""
    made = tmp_path_factory.mktemp("failures")
    make_files(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        total = ["--count", "n", "--keep-total", "--epsilon", "1", "--yes", "-o", "changed.csv"]
        assert app.run(["release", "counts.csv", *total]) == 0
        lines = Path("changed.csv").read_text().splitlines()
        Path("changed.csv").write_text("\n".join([*lines[:-1], "B,m,999"]) + "\n")
        assert app.run(["ledger", "init", "l.db", "--dataset", "pop", "--budget", "0.5"]) == 0
        yield made


def test_there_are_fifty():
    assert len(COMMANDS) >= 50
    assert COMMANDS.keys() == OUTCOMES.keys()
    assert {outcome[0] for outcome in OUTCOMES.values()} == {1, 2, 4, 5, 6, 7}
    assert {name for name, outcome in OUTCOMES.items() if outcome[2] is None} == ABOUT_NOTHING


@pytest.mark.parametrize("name", COMMANDS)
def test_a_failure_is_what_it_is_in_every_face(name, folder, monkeypatch, capsys):
    failures: list[Failure] = []
    made = Failure.__init__

    def seen(self: Failure, *arguments: Any, **options: Any) -> None:
        made(self, *arguments, **options)
        failures.append(self)

    monkeypatch.setattr(Failure, "__init__", seen)
    monkeypatch.delenv("KEEPSUM_LEDGER", raising=False)
    before = {path.name for path in folder.iterdir()}
    status, kind, subject, remedy, *words = OUTCOMES[name]
    assert app.run(COMMANDS[name]) == status
    assert {path.name for path in folder.iterdir()} == before
    output, complaint = capsys.readouterr()
    failure = failures[-1]
    assert (failure.status, failure.kind) == (status, kind)
    assert complaint.splitlines()[-1] == f"keepsum: {failure.words}"
    if name not in WITHOUT_DATA:
        error = json.loads(output)["error"]
        assert set(error) == {"kind", "subject", "problem", "remedy"}
        assert error["kind"] == kind
        assert error["problem"] in failure.words
        assert error["subject"] == subject
    if failure.error is None:
        return
    assert failure.error.__cause__ is None
    assert isinstance(failure.error.__context__, KeepsumError | OSError | None)  # which hold no data
    assert (None if failure.error.remedy is None else failure.error.remedy.name) == remedy
    advice = failure.error.advice
    expected = words[0] if words else None
    if isinstance(expected, list):
        assert [said(advice, face) for face in FACES] == expected
    else:
        assert (None if advice is None else said(advice, SHELL)) == expected

"""Sums over a release, when another release comes to their place while they are worked out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import keepsum as ks
from cli.to_stream import COUNTS
from keepsum.cli.accuracies import Result
from keepsum.facade import estimates as facade
from keepsum.report import writing
from keepsum.sources.atomic import claimed

SPEC = """version = 1
[source]
data = "counts.csv"
count = "n"

[keep]
margins = ["county"]

[mechanism]
epsilon = 1

[output]
path = "r.csv"

[[marginal]]
axes = ["county"]
output = "place/table.csv"
"""
OPTIONS = ["--count", "n", "--keep", "county", "--epsilon", "1"]
MARGINAL = ["marginal", "first.csv", "--axes", "county", "-o", "place/table.csv"]
COMMANDS = {
    "marginal": (MARGINAL, (facade, "file_of")),
    "a spec": (["release", "--yes"], (facade, "marginal_of")),
    "accuracy": (["accuracy", "counts.csv", *OPTIONS, "--margins", "place/table.csv"], (Result, "margins_table")),
    "a report": (["report", "first.csv", "--margins", "place/table.csv"], (writing, "written")),
}


@pytest.fixture(scope="module")
def release() -> ks.Release:
    table = ks.Table.from_array([[5, 6, 7], [8, 9, 10]], axes={"county": ["A", "B"], "age": ["0-17", "18-64", "65+"]})
    return ks.release(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1))


@pytest.fixture
def here(tmp_path: Path, release: ks.Release) -> Path:
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "keepsum.toml").write_text(SPEC)
    (tmp_path / "place").mkdir()
    release.save(tmp_path / "first.csv")
    return tmp_path


def before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, step: Callable[[], Any]) -> list[str]:
    """What happens before a function is called, the first time."""
    real, steps = getattr(owner, name), [step]

    def late(*arguments: Any, **options: Any) -> Any:
        while steps:
            steps.pop()()
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, late)
    return steps


@pytest.mark.parametrize("other", ["place/", "place/table.csv"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_release_that_came_meanwhile_is_not_replaced(inside, here, monkeypatch, release, command, other):
    """Not by a file in its folder, nor by one that would have its certificate."""
    arguments, (owner, name) = COMMANDS[command]
    left = before(monkeypatch, owner, name, lambda: release.save(here / other if "." in other else f"{here}/{other}"))
    done = inside(*arguments, "--force")
    assert left == []
    assert done.returncode == (3 if command == "a spec" else 2), done.stderr
    assert b"Output 'place/table.csv' must not " in done.stderr
    assert ks.verify(here / "place" / "table.csv")
    assert not [path for path in here.rglob("*") if path.name.startswith(".")]


@pytest.mark.parametrize("lock", ["place", "place/table.certificate.json"])
@pytest.mark.parametrize("command", COMMANDS)
def test_sums_are_written_under_the_lock_of_a_release(inside, here, command, lock):
    arguments, _ = COMMANDS[command]
    with claimed(here / lock):
        done = inside(*arguments, "--force")
    assert done.returncode == (3 if command == "a spec" else 5), done.stderr
    assert b"Output 'place/table.csv' must be free, but another process is writing it." in done.stderr
    assert not (here / "place" / "table.csv").exists()


def test_from_python(here, monkeypatch, release):
    margin = release.marginal(["county"])
    before(monkeypatch, facade, "file_of", lambda: release.save(f"{here}/place/"))
    with pytest.raises(ks.InputError, match="must not replace a file of a release"):
        margin.save(here / "place" / "table.csv", force=True)
    assert ks.verify(here / "place")

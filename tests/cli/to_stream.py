"""Releases to standard output, for the tests of what is written and of what goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faults import Fork, in_shell

COUNTS = "county,age,n\nA,0-17,5\nA,18-64,6\nA,65+,7\nB,0-17,8\nB,18-64,9\nB,65+,10\n"
DECLARED = ["--count", "n", "--keep", "county", "--epsilon", "0.5"]
TO_STREAM = ["--output", "-", "--certificate", "r.certificate.json"]


def release(*more: str, table: str = "counts.csv") -> list[str]:
    return ["release", table, *DECLARED, "--yes", *more]


def names(folder: Path) -> set[str]:
    """What a command has written."""
    return {path.name for path in folder.iterdir()} - {"counts.csv", "said.txt", "complaints.txt", "empty"}


def forked(arguments: list[str], folder: Path, **options: Any) -> Any:
    """Status, output and complaints of a command in a process of its own."""
    (folder / "empty").mkdir(exist_ok=True)
    found = Fork(in_shell(arguments, folder / "empty", **options), folder).wait()
    assert found.error is None, found.error
    assert "Traceback" not in found.result[2]
    return found.result

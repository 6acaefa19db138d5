"""``keepsum init`` asks about records in databases of any kind and in folders, and the spec that it writes runs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import Commands
from support import mostly_audit


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    running = Commands()
    yield running
    running.close()


@mostly_audit("records", ["duckdb", "sqlite address", "postgres", "folder"], indirect=True)
def test_records_are_asked_about(records: dict[str, Any], commands: Commands, tmp_path: Path) -> None:
    answers = ["nowhere", records["table"]] if "table" in records else []
    answers += ["place,age", "", """01,02,b'c,"q""x",A,a""", ""]
    answers += ["bins 0,18", "n", "y", "unknown", "y", "person", "2", "total", "y", "1", "n", "out/"]
    done = commands.answered(answers, records["source"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert said.count("Which table of the database?") == (2 if "table" in records else 0)
    assert "Columns: person, place, age, code, share, born." in said
    assert "rather than having a count" not in said
    written = tomllib.loads((tmp_path / "keepsum.toml").read_text(encoding="utf-8"))
    assert written["source"].get("table") == records.get("table")
    assert written["records"] == {
        "by": ["place", "age"], "bins": {"age": ["0", "18", ""]}, "missing": {"age": "unknown"}, "unit": "person",
        "max_rows_per_unit": 2,
    }  # fmt: skip
    assert commands.run("release", "--yes", cwd=tmp_path).returncode == 0

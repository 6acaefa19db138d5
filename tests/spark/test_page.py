"""docs/spark.md is run as a reader would: its example by Python in a process of its own, then its commands."""

from __future__ import annotations

import subprocess
import sys

from command import shell
from pages import REPO, Reader, steps


def test_the_page_runs(tmp_path, need):
    need("java")
    page = (REPO / "docs" / "spark.md").read_text(encoding="utf-8")
    (example,) = [step.text for step in steps(page) if step.kind == "python"]
    files = tmp_path / "files"
    files.mkdir()
    (files / "example.py").write_text(example, encoding="utf-8")
    reader = Reader(files, tmp_path / "page", lambda lines, folder: shell(lines, folder, []))
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=reader.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Verification(passed)" in done.stdout
    commands = [step for step in steps(page) if step.kind == "command"]
    assert [step.text for step in commands] == ["keepsum verify counties"]
    for step in commands:
        reader.command(step)

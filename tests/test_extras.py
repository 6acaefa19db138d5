"""A package that is missing is named in one sentence, with a way to install it that works."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import keepsum as ks
import keepsum_shell
from keepsum import _extras

REPO = Path(__file__).parent.parent
EXTRAS = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
MODULES = {"ibis": "ibis-framework", "dp_accounting": "dp-accounting"}  # that are not named like their packages
FROM_AN_INDEX = re.compile(r"pip install\s+['\"]?keepsum\b|keepsum\[")


def texts() -> list[Path]:
    """All that a user may read: sources, pages and scripts; the changelog tells what was."""
    kinds = {".py", ".md", ".j2", ".html", ".js", ".toml", ".json", ""}
    folders = [path for name in ("src", "docs", "examples", "experiments") for path in (REPO / name).rglob("*")]
    pages = [REPO / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "Makefile")]
    return [p for p in [*folders, *pages] if p.is_file() and p.suffix in kinds and "__pycache__" not in p.parts]


def test_nothing_says_that_keepsum_is_on_an_index():
    for wrong in ("pip install 'keepsum[sql]'", "pip install keepsum", "needs `keepsum[web]`"):
        assert FROM_AN_INDEX.search(wrong)
    read = texts()
    assert len(read) > 300
    assert [str(p.relative_to(REPO)) for p in read if FROM_AN_INDEX.search(p.read_text(encoding="utf-8"))] == []


def test_one_sentence_for_all():
    one, two = _extras.missing("A plot", "report", "matplotlib"), _extras.missing("A report", "report", "a", "b")
    assert one == (
        "A plot needs matplotlib, which is not installed. Run in a clone of Keepsum: pip install '.[report]'"
    )
    assert two.startswith("A report needs a and b, which are not installed. Run in")
    instead = _extras.missing("Reading 'a.csv.zst'", "parquet", "pyarrow", instead="Unpack the file")
    assert "not installed. Unpack the file, or run in a clone of Keepsum: pip install '.[parquet]'" in instead


def test_extras_are_those_of_the_project():
    """Each extra that a message names exists, and has the packages that are asked for."""
    source = "".join(path.read_text(encoding="utf-8") for path in (REPO / "src").rglob("*.py"))
    named = re.findall(r'(?:missing|check_installed)\((?:f?"[^"]*"), "(\w+)"', source)
    assert set(named) == set(EXTRAS)
    assert "which is not installed. Install" not in source.replace("Install it with: pip install {wanted}", "")
    for extra, modules in _extras.PACKAGES.items():
        packages = {re.split(r"[\[>=<]", line)[0] for line in EXTRAS[extra]}
        backends = set(re.findall(r"\w+", "".join(re.findall(r"\[.*\]", " ".join(EXTRAS[extra])))))
        assert {MODULES.get(name, name) for name in modules} <= packages | backends | {"pyarrow"}  # which ibis needs


def test_the_command_line_says_what_it_needs(monkeypatch, capsys):
    class Absent:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "keepsum.cli.app":
                raise ModuleNotFoundError("No module named 'typer'", name="typer")

    monkeypatch.delitem(sys.modules, "keepsum.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    stop = keepsum_shell.Stop()
    try:
        assert keepsum_shell._run(stop) == 2
    finally:
        stop.restore()
    assert capsys.readouterr().err == (
        "keepsum: The command line needs typer, which is not installed. "
        "Run in a clone of Keepsum: pip install '.[cli]'\n"
    )


def test_records_are_refused_without_what_counts_them(monkeypatch):
    real = _extras.find_spec
    monkeypatch.setattr(_extras, "find_spec", lambda name: None if name == "duckdb" else real(name))
    with pytest.raises(ks.InputError, match=r"^Counting records needs duckdb, .*: pip install '\.\[sql\]'$"):
        ks.tabulate("people.parquet", by=["county"], domain={"county": ["Cook"]})

"""The README's example does what the README shows, and the documents name what there is."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

import keepsum

REPO = Path(__file__).parent.parent
PACKAGE = Path(keepsum.__file__).parent


def blocks(text: str, language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [content for found, content in fenced if found == language]


def output_of(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})  # noqa: S102
    return out.getvalue()


def test_readme_example_prints_what_it_shows():
    readme = (REPO / "README.md").read_text(encoding="utf-8")
    (example,) = blocks(readme, "python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    assert output_of(example) in blocks(readme, "")


@pytest.mark.parametrize("path", sorted((REPO / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def test_architecture_names_every_module():
    text = (REPO / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([\w/]+\.py)` \|", text, flags=re.MULTILINE))
    there = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"}
    assert named == there


def test_guarantees_name_tests_that_exist():
    """A sampler's docstring says which file tests its law."""
    named = [
        name
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r"``(tests/[\w/]+\.py)``", path.read_text(encoding="utf-8"))
    ]
    assert len(named) >= 5
    for name in named:
        assert (REPO / name).exists(), name


def test_make_help_lists_every_target():
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    for target in ("setup", "test", "lint", "demo", "bench", "clean"):
        assert re.search(rf"^{target}:.*## ", makefile, flags=re.MULTILINE), target


def test_constraints_pin_names_and_versions_only():
    for line in (REPO / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), line

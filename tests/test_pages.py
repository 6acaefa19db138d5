"""Every page for readers is run from top to bottom, and does what it shows (``tests/pages.py`` says how)."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import Commands
from pages import PAGES, REPO, Reader, commands_of, make_targets, named, problems, shows, steps, words

ELSEWHERE = {"docs/spark.md": "tests/spark/test_page.py"}  # with its own environment
SLOW = ("docs/general.md", "docs/guide.md", "docs/mcmc.md")  # the guide searches for an epsilon
NAMES = [str(page.relative_to(REPO)) for page in PAGES]


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    running = Commands()
    yield running
    running.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of ``make examples``."""
    folder = tmp_path_factory.mktemp("examples") / "files"
    subprocess.run([sys.executable, REPO / "examples" / "files.py", folder], check=True)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_every_block_is_run_or_says_why_not(name):
    assert problems((REPO / name).read_text(encoding="utf-8")) == []


WRONG = {
    "```\nls\n```": "no way to run a block of 'no language'",
    "```yaml\na: 1\n```": "no way to run a block of 'yaml'",
    "```toml\na = 1\n```": "must name the file",
    "Text:\n\n    keepsum plan counts.csv\n": "must be in a fenced block",
    "Run `keepsum plan ... --epsilon 1` now.": "must be complete",
    "| a | b |\n|---|---|\n| x | `... --within county:state` |\n": "must be complete",
}


@pytest.mark.parametrize("text", WRONG)
def test_blocks_that_are_neither_are_found(text):
    (problem,) = problems(text)
    assert WRONG[text] in problem
    if text.startswith("```"):
        assert problems(f"<!-- not run: a reason -->\n{text}") == []


def test_pages_that_do_not_do_what_they_show_are_found(commands, files, tmp_path):
    wrong = (
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```python\nks.rng()\n```\n",
        "```sh\nls nothing\n```\n",
        "```console\n$ echo a\nb\n```\n",
        "<!-- varies: figures -->\n```console\n$ echo a 1\nb 2\n```\n",
        "Run `keepsum show nothing.json`.",
        "```sh\necho a\n```\n\n```text\nb\n```\n",
    )
    for k, page in enumerate(wrong):
        reader = Reader(files, tmp_path / str(k), commands.shell)
        with pytest.raises((AssertionError, NameError)):
            reader.read(page)
    Reader(files, tmp_path / "right", commands.shell).read(
        "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```console\n$ echo a\na\n```\n"
    )


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.audit) if n in SLOW else n for n in NAMES])
def test_pages_run_and_print_what_they_show(name, commands, files, tmp_path, monkeypatch):
    if name in ELSEWHERE:
        assert (REPO / ELSEWHERE[name]).exists()
        return
    monkeypatch.delenv("KEEPSUM_LEDGER", raising=False)
    Reader(files, tmp_path / "files", commands.shell).read((REPO / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_no_page_writes_over_a_file_of_the_examples(name, files):
    """Pages are read one after the other in the same folder: the next one needs its files as they were."""
    shown = [step for step in steps((REPO / name).read_text(encoding="utf-8")) if step.kind == "toml"]
    there = {path.name for path in files.iterdir()}
    assert not {named(step) for step in shown if step.why_not is None} & there
    for step in shown:  # one that is shown is as it is
        if named(step) in there:
            assert tomllib.loads(step.text) == tomllib.loads((files / str(named(step))).read_text(encoding="utf-8"))


def test_three_dots_stand_for_what_is_left_out_and_for_nothing_else():
    printed = "one 1\ntwo and more\nthree\n"
    for shown in ("one 1\n...", "...\nthree", "one ...\nthree", "one 1\ntwo ...\nthree", "one 1 ...", "...", printed):
        assert shows(shown, printed, varies=False), shown
    for shown in ("one 1", "three", "...\ntwo", "one 1\nthree", "two ...", "on ...", "one 2\n...", "...\none 1"):
        assert not shows(shown, printed, varies=False), shown
    assert shows("one 2\n...", printed, varies=True)
    assert not shows("two 2\n...", printed, varies=True)
    assert shows("", "", varies=True)


def test_targets_of_make_exist():
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    named = {target for page in PAGES for target in make_targets(page.read_text(encoding="utf-8"))}
    assert {"demo", "test", "examples", "paper"} <= named
    for target in named:
        assert re.search(rf"^{target}:.*## ", makefile, flags=re.MULTILINE), target


def test_the_demo_prints_what_its_page_shows(commands, tmp_path):
    """Every line of the demo is that of docs/start.md, but for the noise; the totals of both are right."""
    (shown,) = [
        step for step in steps((REPO / "docs" / "start.md").read_text(encoding="utf-8")) if step.kind == "console"
    ]
    demo = commands.shell(str(REPO / "examples" / "demo"), tmp_path)
    assert demo.returncode == 0
    assert words(demo.stdout) == words(shown.text)
    plan = re.compile(r"^Table .*?(?=^Released )", flags=re.MULTILINE | re.DOTALL)  # has no noise, and the same figures
    assert plan.findall(demo.stdout) == plan.findall(shown.text) != []
    assert len(list(commands_of(shown))) == 6
    for text in (shown.text, demo.stdout):
        rows = re.findall(r"^(\w+),([\w ]+),(\d+)\t\1,\2,(-?\d+)$", text, flags=re.MULTILINE)
        assert len(rows) == 16
        for axis in (0, 1):
            for label in {row[axis] for row in rows}:
                before, after = (sum(int(row[k]) for row in rows if row[axis] == label) for k in (2, 3))
                assert before == after

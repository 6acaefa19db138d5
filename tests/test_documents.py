"""The README's example does what the README shows, and the documents name what there is."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keepsum
from experiments.claims import Claim, equal, summary

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


LONG_PAGES = [pytest.param(name, marks=pytest.mark.audit) for name in ("mcmc.md", "general.md")]
PAGES = [*LONG_PAGES, "accounting.md", "analysis.md", "focus.md", "ledger.md", "registry.md"]


@pytest.mark.parametrize("name", PAGES)
def test_pages_print_what_they_show(name):
    """The examples run one after the other, as a reader would type them; each one's output stands below it."""
    page = (REPO / "docs" / name).read_text(encoding="utf-8")
    names: dict[str, object] = {}
    printed = []
    for example in blocks(page, "python"):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(example, name, "exec"), names)  # noqa: S102
        printed.append(out.getvalue())
    assert [text for text in printed if text] == blocks(page, "text")


def shape(text: str) -> list[list[str]]:
    """The words of each line, with figures, keys and times taken out: what noise may change."""
    return [re.sub(r"-?\d[\d:TZ-]*", "#", line).split() for line in text.splitlines() if line.strip()]


def test_readme_shows_what_the_demo_prints():
    """Every line of the demo is that of the README, but for the noise; the totals of both are right."""
    (shown,) = blocks((REPO / "README.md").read_text(encoding="utf-8"), "console")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    demo = subprocess.run(
        [REPO / "examples" / "demo"], capture_output=True, text=True, check=True, env=os.environ | {"PATH": path}
    )
    assert shape(demo.stdout) == shape(shown)
    plan = re.compile(r"^Table .*?(?=^Released )", flags=re.MULTILINE | re.DOTALL)  # has no noise, and the same figures
    assert plan.findall(demo.stdout) == plan.findall(shown) != []
    assert demo.stderr == ""
    for text in (shown, demo.stdout):
        rows = re.findall(r"^(\w+),([\w ]+),(\d+)\t\1,\2,(-?\d+)$", text, flags=re.MULTILINE)
        assert len(rows) == 16
        for axis in (0, 1):
            for label in {row[axis] for row in rows}:
                before, after = (sum(int(row[k]) for row in rows if row[axis] == label) for k in (2, 3))
                assert before == after


def test_architecture_names_every_folder_and_fits_two_screens():
    text = (REPO / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders, ideas = text.split("## Ideas")
    named = set(re.findall(r"^\| `([\w/]+)/`", folders, flags=re.MULTILINE))
    there = {str(path.parent.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    covered = {folder for folder in there if any(folder == name or folder.startswith(f"{name}/") for name in named)}
    assert there - covered <= {".", "sampling"}
    assert named <= there
    assert max(len(folders.splitlines()), len(ideas.splitlines())) <= 60


def verdicts() -> list[Claim]:
    """The claims of the committed results, as far as their counts depend on them."""
    with (REPO / "experiments" / "out" / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    values = {"agrees": 0.0, "disagrees": 1.0, "not run": None}
    return [Claim(row["claim"], row["where"], 0, values[row["verdict"]], equal()) for row in rows]


def test_pages_state_how_the_paper_came_out():
    """Only the paper's claims count, and what is said of those that disagree holds."""
    counted = summary(verdicts())
    results = (REPO / "experiments" / "out" / "results.md").read_text(encoding="utf-8")
    assert counted in results
    of_paper, _, _ = counted.partition(" Of ")
    assert of_paper.startswith("Of the paper's 41 claims 37 agree")
    for name in ("README.md", "experiments/README.md"):
        text = " ".join((REPO / name).read_text(encoding="utf-8").split())
        assert of_paper.removesuffix(".").lower() in text.lower(), name
        assert "reconstructed" in text, name
        assert "counties of" in text, name
        assert "one finding" in text, name
    disagreeing = [claim for claim in verdicts() if claim.verdict == "disagrees"]
    assert len(disagreeing) == 3
    assert all(claim.what.startswith("Gaussian σ² needs a factor") for claim in disagreeing)


def linked(page: Path) -> set[Path]:
    """The pages that a page links to."""
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for target in targets}


def test_every_page_is_reached_from_the_readme():
    reached, ahead = set(), [REPO / "README.md"]
    while ahead:
        page = ahead.pop()
        if page.resolve() not in reached:
            reached.add(page.resolve())
            ahead += [target for target in linked(page) if target.exists()]
    assert {page.name for page in (REPO / "docs").glob("*.md") if page.resolve() not in reached} == set()


def test_links_of_documents_lead_somewhere():
    for page in [REPO / "README.md", REPO / "experiments" / "README.md", *(REPO / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


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
    short = ("setup", "test", "lint", "demo", "app", "clean")
    for target in (*short, "setup-spark", "audit", "bench", "bench-spark", "convergence", "paper"):
        assert re.search(rf"^{target}:.*## ", makefile, flags=re.MULTILINE), target


def test_constraints_pin_names_and_versions_only():
    for name in ("constraints.txt", "constraints-spark.txt"):
        for line in (REPO / name).read_text(encoding="utf-8").splitlines():
            assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), line

"""The documents name what there is. That their examples run is tested in ``test_pages.py``."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import keepsum
from experiments.claims import Claim, equal, summary
from pages import steps

REPO = Path(__file__).parent.parent
PACKAGE = Path(keepsum.__file__).parent


def test_the_readme_has_a_short_example():
    (example,) = [step for step in steps((REPO / "README.md").read_text(encoding="utf-8")) if step.kind == "python"]
    assert len([line for line in example.text.splitlines() if line.strip()]) <= 12


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


def test_readme_tells_a_focus_with_its_price():
    """What totals gain and what cells lose, as the page that is run prints it."""
    page = (REPO / "docs" / "focus.md").read_text()
    without, focused = (line.strip("[]").split(", ") for line in re.findall(r"^1/2 (\[.*\])$", page, re.MULTILINE)[:2])
    words = " ".join((REPO / "README.md").read_text().split())
    (state, county, cell), options = without, "`--focus state=0.1 --focus county=0.1`"
    stated = (
        f"standard deviation of {cell} in a cell, {county} in a county and {state} in the state; with {options} it is"
    )
    assert f"{stated} {focused[2]}, {focused[1]} and {focused[0]} at the same loss" in words


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
    short = ("setup", "test", "lint", "demo", "app", "examples", "clean")
    for target in (*short, "setup-spark", "audit", "bench", "bench-spark", "convergence", "paper"):
        assert re.search(rf"^{target}:.*## ", makefile, flags=re.MULTILINE), target


def test_constraints_pin_names_and_versions_only():
    for name in ("constraints.txt", "constraints-spark.txt"):
        for line in (REPO / name).read_text(encoding="utf-8").splitlines():
            assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), line

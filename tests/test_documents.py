"""The documents name what there is. That their examples run is tested in ``test_pages.py``."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import keepsum
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


def test_readme_states_how_the_paper_came_out():
    results = (REPO / "experiments" / "out" / "results.md").read_text(encoding="utf-8")
    readme = " ".join((REPO / "README.md").read_text(encoding="utf-8").split())
    claims, agree, disagree, missing = re.search(
        r"(\d+) claims: (\d+) agree, (\d+) disagree, (\d+) not run", results
    ).groups()
    assert f"of {claims} claims {agree} agree, {disagree} disagree, {missing} was not run" in readme


def test_readme_states_how_fast_tables_are_drawn():
    """The figures beside the picture are those of the table that the picture was made from."""
    with (REPO / "experiments" / "out" / "table_speed.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["table"]: row for row in csv.DictReader(file)}
    rate = {table: row["column splitting, draws per second"] for table, row in rows.items()}
    readme = " ".join((REPO / "README.md").read_text(encoding="utf-8").split())
    assert (
        f"One core draws {rate['16 × 16']} tables of 16 × 16 per second, {rate['64 × 64']} of 64 × 64 and "
        f"{rate['1000 × 4']} of 1000 × 4 (ε = 0.25)" in readme
    )
    steps = rows["6 × 6"]["its steps per draw"]
    assert f"had not met after {steps.removeprefix('> ')} steps at 6 × 6" in readme
    assert steps.startswith("> ")


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

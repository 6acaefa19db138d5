"""The documents name what there is. That their examples run is tested in ``test_pages.py``."""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path

import keepsum
from experiments.claims import Claim, equal, summary
from pages import steps

REPO = Path(__file__).parent.parent
PACKAGE = Path(keepsum.__file__).parent


README = REPO / "README.md"


def test_the_readme_is_short():
    text = README.read_text(encoding="utf-8")
    (example,) = [step for step in steps(text) if step.kind == "python"]
    assert len([line for line in example.text.splitlines() if line.strip()]) <= 8
    assert len(text.splitlines()) <= 120
    commands = [line for step in steps(text) if step.kind == "console" for line in step.text.splitlines() if line]
    assert len([line for line in commands if not line.startswith(("$", "..."))]) <= 6


def test_the_table_of_the_readme_is_a_release():
    """Counts before are the example's, those after come from a seed; the margin of error is what a plan states."""
    text = README.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \|((?: -?\d+ → -?\d+ \|)+) \*\*(\d+)\*\* \|$", text, flags=re.MULTILINE)
    cells = [[tuple(map(int, cell.split(" → "))) for cell in row.strip(" |").split(" | ")] for _, row, _ in rows]
    table = keepsum.read_table(
        REPO / "examples" / "children.csv",
        count="n",
        domain={"county": [row[0] for row in rows], "education": ["Low", "Medium", "High", "Very High"]},
    )
    plan = keepsum.plan(table, keep=["county", "education"], mechanism=keepsum.Laplace(epsilon=1))
    released = plan.release(table, rng=keepsum.rng(seed=2026)).table
    assert [before for row in cells for before, _ in row] == table.counts.tolist()
    assert [after for row in cells for _, after in row] == released.counts.tolist()
    assert [int(total) for *_, total in rows] == [sum(after for _, after in row) for row in cells]
    (totals,) = re.findall(r"^\| total \|(.*)\|$", text, flags=re.MULTILINE)
    by_education = [sum(before for before, _ in column) for column in zip(*cells, strict=True)]
    assert [int(total) for total in re.findall(r"\*\*(\d+)\*\*", totals)] == [*by_education, sum(by_education)]
    (margin,) = re.findall(r"within (±\d+) of the confidential one", text)
    assert f"margin of error {margin} per cell" in str(plan.accuracy())


def test_architecture_names_every_folder_and_fits_two_screens():
    text = (REPO / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders, ideas = text.split("## Ideas")
    named = set(re.findall(r"^\| `([\w/]+)/`", folders, flags=re.MULTILINE))
    there = {str(path.parent.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    covered = {folder for folder in there if any(folder == name or folder.startswith(f"{name}/") for name in named)}
    assert there - covered <= {".", "sampling"}
    assert named <= there
    assert max(len(folders.splitlines()), len(ideas.splitlines())) <= 60


def test_a_docstring_names_files_that_there_are():
    folders = [REPO / name for name in ("src", "tests", "benchmarks", "experiments", "docs", "scripts")]
    there = [f"/{path.relative_to(REPO).as_posix()}" for folder in folders for path in folder.rglob("*.py")]
    for path in PACKAGE.rglob("*.py"):
        for name in re.findall(r"``([\w/.]+\.py)``", path.read_text(encoding="utf-8")):
            assert any(file.endswith(f"/{name}") for file in there), (path.name, name)


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
    read = {
        name: " ".join((REPO / name).read_text(encoding="utf-8").split())
        for name in ("README.md", "experiments/README.md", "docs/research.md")
    }
    for name in ("README.md", "experiments/README.md"):
        assert of_paper.removesuffix(".").lower() in read[name].lower(), name
    for name in ("docs/research.md", "experiments/README.md"):
        assert "reconstructed" in read[name], name
        assert "counties of" in read[name], name
    assert all("one finding" in text for text in read.values())
    disagreeing = [claim for claim in verdicts() if claim.verdict == "disagrees"]
    assert len(disagreeing) == 3
    assert all(claim.what.startswith("Gaussian σ² needs a factor") for claim in disagreeing)


def linked(page: Path) -> set[Path]:
    """The pages that a page links to."""
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for target in targets}


def test_every_page_is_reached_from_the_readme():
    reached, ahead = set(), [README]
    while ahead:
        page = ahead.pop()
        if page.resolve() not in reached:
            reached.add(page.resolve())
            ahead += [target for target in linked(page) if target.exists()]
    assert {page.name for page in (REPO / "docs").glob("*.md") if page.resolve() not in reached} == set()


def test_the_index_has_a_line_for_every_page():
    index = REPO / "docs" / "index.md"
    lines = re.findall(r"^- \[[^]]+\]\(([^)#]+)\): \S.*$", index.read_text(encoding="utf-8"), flags=re.MULTILINE)
    there = {page.name for page in (REPO / "docs").glob("*.md")} - {"index.md"}
    assert sorted(name for name in lines if "/" not in name) == sorted(there)
    outside = {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "experiments/README.md"}
    assert {name.removeprefix("../") for name in lines if "/" in name} == outside
    assert index.resolve() in linked(README)


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


def unfinished(text: str) -> list[str]:
    """Lines of a list that are no beginning, end or middle of an entry: what a merge leaves that goes wrong."""
    lines, wrong = text.splitlines(), []
    for before, line in itertools.pairwise(lines):
        ended = before.endswith(".")
        follows = before.startswith(("- ", "  "))
        if line.startswith("  ") and (not follows or (ended and line.strip()[0].islower())):
            wrong.append(line)
        if line.startswith("- ") and follows and not before.endswith((".", ":")):
            wrong.append(line)
        if not line and follows and not ended:
            wrong.append(before)
        if re.search(r"\. - ", line):
            wrong.append(line)
    return wrong


def test_entries_of_the_changelog_are_whole():
    assert unfinished((REPO / "CHANGELOG.md").read_text(encoding="utf-8")) == []


def test_an_entry_that_a_merge_cut_is_found():
    whole = "- What cannot be drawn is refused in 0.1 s\n  instead of 22 to 28. A set is named.\n- Labels are shared.\n"
    assert unfinished(whole) == []
    assert unfinished(whole + "  instead of 22 to 28.\n") == ["  instead of 22 to 28."]
    assert unfinished("- What cannot be drawn is refused\n" + whole) == [whole.splitlines()[0]]
    assert unfinished(whole + "- Labels are shared. - Sets are named.\n") == ["- Labels are shared. - Sets are named."]


def test_make_help_lists_every_target():
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    short = ("setup", "test", "lint", "demo", "app", "examples", "clean")
    for target in (*short, "setup-spark", "audit", "bench", "bench-spark", "convergence", "paper"):
        assert re.search(rf"^{target}:.*## ", makefile, flags=re.MULTILINE), target


def test_constraints_pin_names_and_versions_only():
    for name in ("constraints.txt", "constraints-spark.txt"):
        for line in (REPO / name).read_text(encoding="utf-8").splitlines():
            assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), line

"""`make paper` with little of everything, and what the committed results say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import HANG

REPO = Path(__file__).parents[2]
RESULTS = REPO / "experiments" / "out"
LARGEST = 300_000  # bytes of a figure


def check_page(folder: Path) -> str:
    """Every figure that the page shows is there and small, and nothing that disagrees is left unexplained."""
    page = (folder / "results.md").read_text(encoding="utf-8")
    shown = re.findall(r"\]\(([\w-]+\.(?:png|svg))\)", page)
    assert len(shown) >= 20
    for name in shown:
        assert 0 < (folder / name).stat().st_size < LARGEST, name
    assert "UNEXPLAINED" not in page
    for name in ("claims", "children_noise_l1", "children_noise_l2", "gaussian_sigma", "accuracy", "exactness"):
        assert len((folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()) > 2
    assert len(re.findall(r"\| (?:agrees|\*\*disagrees\*\*|\*\*not run\*\*) \|$", page, flags=re.MULTILINE)) >= 40
    return page


@pytest.mark.audit
def test_make_paper_quick(tmp_path):
    """Little of everything, from `make` to the page; piped, so it shows no progress."""
    stamp = tmp_path / "ready"  # newer than what the environment is made from: make has nothing to do for it
    stamp.touch()
    out = tmp_path / "out"
    arguments = [f"OUT={out}", f"BIN={Path(sys.executable).parent}", f"STAMP={stamp}"]
    path = os.pathsep.join(filter(None, [str(REPO / "src"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        ["make", "--no-print-directory", "paper", "QUICK=1", *arguments],
        cwd=REPO,
        # The tests may themselves be run by make, whose flags are not for this one.
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("keepsum: the paper is reproduced in")
    assert "**A quick run**" in check_page(out)


def test_committed_results_are_of_a_full_run():
    if not (RESULTS / "results.md").exists():
        pytest.fail("experiments/out/results.md is not there: run make paper.")
    page = check_page(RESULTS)
    assert "A full run of `make paper`." in page
    assert "(437 counties, five states; no census file was given)" in page


def test_the_page_for_researchers_shows_figures_that_are_there():
    page = (REPO / "docs" / "research.md").read_text(encoding="utf-8")
    shown = re.findall(r"\(\.\./(experiments/out/[\w-]+\.png)\)", page)
    assert len(shown) >= 3
    assert all((REPO / name).exists() for name in shown)

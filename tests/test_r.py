"""The R package: its tests, on releases that are made here, with what Python says of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import keepsum as ks
from pages import steps

REPO = Path(__file__).parents[1]
PACKAGE = REPO / "r"

pytestmark = pytest.mark.audit

COUNTIES = {"county": list("ABCDEF"), "sex": ["f", "m"]}
STATES = {"state": ["X", "Y"], "county": {"X": list("abc"), "Y": list("ad")}, "age": [2, 10, 30]}


def releases() -> dict[str, tuple[ks.Release, list[dict]]]:
    """Releases by their folders, each with the sums that are asked of it."""
    counties = ks.Domain(COUNTIES)
    states = ks.Domain(STATES, within={"county": "state"})
    laplace, gaussian = ks.Laplace(epsilon=1), ks.Gaussian(sigma=4)
    of_counties = [{}, {"county": "A"}, {"sex": "f"}, {"county": ["A", "B"], "sex": "m"}, {"county": "C", "sex": "f"}]
    of_states = [
        {"state": "X", "age": 10},
        {"county": "a"},
        {"age": [2, 30]},
        {"state": "Y"},
        {"county": "d", "age": 2},
    ]
    made = {
        "counties": (counties, ["county"], laplace, of_counties, False),
        "free": (counties, [], laplace, of_counties, False),
        "gaussian": (counties, [[]], gaussian, of_counties, False),
        "nonnegative": (counties, ["sex"], laplace, of_counties, True),
        "states": (states, ["state", ["county"]], ks.Laplace(epsilon="0.3"), of_states, False),
        "overlapping": (counties, ["county", "sex"], laplace, [], False),
        "focused": (counties, [], ks.Laplace(epsilon=1, focus={"county": "0.5"}), [], False),
    }
    random = np.random.default_rng(1)
    found = {}
    for name, (domain, keep, mechanism, queries, nonnegative) in made.items():
        table = ks.Table.from_array(random.integers(0, 30, domain.size), axes=domain, count="n")
        release = ks.release(table, keep=keep, mechanism=mechanism, rng=ks.rng(seed=name))
        found[name] = (ks.postprocess.nonnegative(release) if nonnegative else release, queries)
    return found


def wide_release(tmp_path: Path, folder: Path) -> ks.Release:
    """A release of a table with a column for each category."""
    (tmp_path / "wide.csv").write_text("county,w,b\nA,40,122\nB,106,188\nC,80,9\n", encoding="utf-8")
    options = ["--wide", "race=w,b", "--count", "n", "--keep", "county", "--epsilon", "1", "--yes", "--no-spec"]
    command = [sys.executable, "-m", "keepsum", "release", "wide.csv", *options, "--output", f"{folder}/"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (folder / "table.csv").read_text(encoding="utf-8").startswith("county,w,b")
    return ks.read_release(folder)


def facts(release: ks.Release, labels: dict) -> dict:
    """What R must find, too."""
    low, high = release.interval(labels)
    kept = release.noise.keeps(labels)
    return {
        "labels": labels,
        "released": (low + high) // 2,
        "interval": [low, high],
        "half": release.noise.interval(labels, 0.5)[1],
        "pmf": [float(k == 0) if kept else release.noise.pmf(labels, k) for k in range(4)],
    }


def test_the_package_for_r(need, tmp_path):
    need("r")
    folder, library = tmp_path / "files", tmp_path / "library"
    folder.mkdir()
    library.mkdir()
    expected = {}
    for name, (release, queries) in releases().items():
        release.save(f"{folder / name}/")
        expected[name] = [facts(release, labels) for labels in queries]
    wide = wide_release(tmp_path, folder / "wide")
    expected["wide"] = [
        facts(wide, labels) for labels in ({"race": "b"}, {"county": "A"}, {"county": "B", "race": "w"})
    ]
    (folder / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
    environment = os.environ | {
        "KEEPSUM_R_FILES": str(folder),
        "R_LIBS": str(library),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    shutil.copytree(PACKAGE, tmp_path / "r")
    install = ["R", "CMD", "INSTALL", f"--library={library}", str(tmp_path / "r")]
    done = subprocess.run(install, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tests = ["Rscript", "testthat.R"]
    done = subprocess.run(
        tests, cwd=tmp_path / "r" / "tests", env=environment, capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL 0 | WARN 0 | SKIP 0" in done.stdout

    page = (REPO / "docs" / "r.md").read_text(encoding="utf-8")
    (tmp_path / "page.R").write_text("\n".join(step.text for step in steps(page) if step.kind == "r"), encoding="utf-8")
    subprocess.run([sys.executable, REPO / "examples" / "files.py", tmp_path], check=True)
    done = subprocess.run(
        ["Rscript", "page.R"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 Output 'out' already exists" in done.stdout, done.stdout

"""`make bench` runs every benchmark and then tells what missed, whatever the first of them found."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
BENCHMARKS = REPO / "benchmarks"
REPORT = """
import sys
sys.path.insert(0, {folder!r})
from measuring import Report
report = Report()
for figure in {figures}:
    report.line(f"figure {{figure}}", figure, "times", 10, at_least=True)
sys.exit(report.status)
"""
BROKEN = REPORT.format(folder=str(BENCHMARKS), figures=[6, 7, "broken"])  # after two that miss


@pytest.fixture
def bench(tmp_path):
    """Run benchmarks whose figures, of which 10 or more are wanted, are given, or that are given as code."""

    def run(*benchmarks):
        scripts = []
        for k, one in enumerate(benchmarks):
            code = one if isinstance(one, str) else REPORT.format(folder=str(BENCHMARKS), figures=one)
            scripts.append(tmp_path / f"bench{k}.py")
            scripts[-1].write_text(code)
        return subprocess.run(
            [sys.executable, BENCHMARKS / "run.py", *scripts], capture_output=True, text=True, check=False
        )

    return run


def test_all_is_run_and_then_it_fails(bench):
    done = bench([20, 3, 30], "raise SystemExit(7)", "raise ValueError('broken')", [4, 5], BROKEN, [50])
    assert done.returncode == 1
    for figure in (20, 3, 30, 4, 5, 6, 7, 50):
        assert f"\nfigure {figure} " in done.stdout
    _, missed = done.stdout.split("\nmissed:\n")
    assert re.findall(r"^(bench\d)\.py: (.*)$", re.sub(r" +", " ", missed), flags=re.MULTILINE) == [
        ("bench0", "figure 3 3 times at least 10"),
        ("bench1", "ended with status 7"),
        ("bench2", "ended with status 1"),
        ("bench3", "figure 4 4 times at least 10"),
        ("bench3", "figure 5 5 times at least 10"),
        ("bench4", "figure 6 6 times at least 10"),
        ("bench4", "figure 7 7 times at least 10"),
        ("bench4", "ended with status 1"),
    ]
    assert "ValueError: broken" in done.stderr


def test_where_nothing_misses_it_says_so(bench):
    done = bench([20], [10])
    assert done.returncode == 0
    assert done.stdout.endswith("keepsum: every limit is met\n")


def test_make_bench_runs_every_benchmark():
    """One command, which no benchmark can end; every benchmark that has a limit is on its list."""
    recipe = re.search(r"^bench:.*\n((?:\t.*\n)+)", (REPO / "Makefile").read_text(), flags=re.MULTILINE)
    assert recipe is not None
    assert recipe[1].strip() == "@$(BIN)/python benchmarks/run.py"
    listed = re.search(r"^BENCHMARKS = \((.*)\)$", (BENCHMARKS / "run.py").read_text(), flags=re.MULTILINE)
    assert listed is not None
    reporting = [path.name for path in BENCHMARKS.glob("*.py") if "report.status" in path.read_text()]
    assert sorted(re.findall(r'"(\w+\.py)"', listed[1])) == sorted(reporting)

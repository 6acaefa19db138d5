"""Run every case to the end, write what was measured, and fail if a target was missed. Run by `make bench`.

Environment variables: QUICK=1 for a short run, DEMO=1 to time `make demo` on a fresh clone, WRITE=1 to put what a full
run measured into benchmarks/results.json and from there into every page, OUT for the folder of the results, CASES for
a part of the names of the cases to run; what other cases have measured before then stays.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import cases, plots, results
from benchmarks.pages import write_pages
from benchmarks.registry import CASES, Bench, Case
from benchmarks.reporting import Screen, merged, summary, write_results
from keepsum_shell.streams import keep_standard_output

HERE = Path(__file__).parent


def main(chosen: Sequence[Case], out: Path, quick: bool = False, write: bool = False) -> int:
    """Run these cases; 1 if a target was missed or a case failed, else 0."""
    screen = Screen(len(chosen))
    bench = Bench(quick, screen.figure)
    with screen:
        for case in chosen:
            screen.begin(case.name)
            bench.run(case)
    write_results(bench, out)
    if write and not quick and not bench.failed:
        publish(bench, out)
    screen.end(summary(bench, out))
    return 1 if bench.missed or bench.failed else 0


def publish(bench: Bench, out: Path) -> None:
    """Put a run into the results file, and from there into plots and pages."""
    whole = merged(results.load(), bench)
    results.save(whole)
    plots.draw_all(whole["bench"], out / "plots")
    for plot in (out / "plots").glob("*.png"):
        shutil.copy(plot, HERE.parent / "docs" / "speed")
    write_pages()


def choose(quick: bool, names: str) -> list[Case]:
    """The cases of this run."""
    cases.load()
    return [case for case in CASES if (case.quick or not quick) and names in case.name]


if __name__ == "__main__":
    keep_standard_output()
    QUICK = bool(os.environ.get("QUICK"))
    WRITE, OUT = bool(os.environ.get("WRITE")), Path(os.environ.get("OUT") or HERE / "out")
    print("keepsum: loading the library and its peers", flush=True)
    sys.exit(main(choose(QUICK, os.environ.get("CASES", "")), OUT, QUICK, WRITE))

"""Run every case to the end, write what was measured, and fail if a target was missed. Run by `make bench`.

Environment variables: QUICK=1 for a short run, DEMO=1 to time `make demo` on a fresh clone, WRITE=1 to put table and
plots into docs/speed.md, OUT for the folder of the results, CASES for a part of the names of the cases to run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import cases
from benchmarks.measuring import cpu_clock
from benchmarks.registry import CASES, Bench, Case
from benchmarks.reporting import Screen, summary, write_page, write_results
from keepsum_shell.streams import keep_standard_output

HERE = Path(__file__).parent


def main(chosen: Sequence[Case], out: Path, quick: bool = False, page: Path | None = None) -> int:
    """Run these cases; 1 if a target was missed or a case failed, else 0."""
    start, screen = (cpu_clock(), time.perf_counter()), Screen(len(chosen))
    bench = Bench(quick, screen.figure)
    with screen:
        for case in chosen:
            screen.begin(case.name)
            bench.run(case)
    write_results(bench, out, cpu_clock() - start[0], time.perf_counter() - start[1])
    if page is not None:
        write_page(out, page)
    screen.end(summary(bench, out))
    return 1 if bench.missed or bench.failed else 0


def choose(quick: bool, names: str) -> list[Case]:
    """The cases of this run."""
    cases.load()
    return [case for case in CASES if (case.quick or not quick) and names in case.name]


if __name__ == "__main__":
    keep_standard_output()
    QUICK = bool(os.environ.get("QUICK"))
    PAGE = HERE.parent / "docs" / "speed.md" if os.environ.get("WRITE") else None
    print("keepsum: loading the library and its peers", flush=True)
    sys.exit(main(choose(QUICK, os.environ.get("CASES", "")), Path(os.environ.get("OUT") or HERE / "out"), QUICK, PAGE))

"""Compare 10,000 random fibres with what is stated, and write `out/fibres.md`. Run by `make fibres`.

FIBRES=number for another number, SEED=number for other fibres, OUT=folder for another output folder. Every fibre is
compared in the l1 norm, and one in four in the l2 norm as well.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.machine import commit
from benchmarks.results import today
from experiments.fibres.run import page, run

OUT = Path(__file__).parents[1] / "out"


def main() -> int:
    """Run all kinds; the exit status is 1 if any change is farther than stated."""
    number, seed = int(os.environ.get("FIBRES", "10000")), int(os.environ.get("SEED", "1"))
    out = Path(os.environ.get("OUT") or OUT)
    results = run(number, seed, lambda line: print(line, flush=True))
    out.mkdir(parents=True, exist_ok=True)
    (out / "fibres.md").write_text(page(results, seed, f"{today()}, commit {commit()}"), encoding="utf-8")
    beyond = sum(len(found.beyond) for found in results.values())
    print(f"keepsum: {beyond} changes beyond what is stated; the results are in {out / 'fibres.md'}")
    return int(beyond > 0)


if __name__ == "__main__":
    sys.exit(main())

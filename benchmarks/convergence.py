"""How close the general sampler's chains come to their target, on a list of systems. Run by `make convergence`.

Meeting times are cached in the user's cache folder as pairs are run, so that an interrupted run resumes where it
stopped. With WRITE=1 the table goes into benchmarks/results.json, and from there into docs/general.md.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

import keepsum as ks
from benchmarks import results
from benchmarks.machine import short_description
from benchmarks.pages import write_pages
from benchmarks.systems import SYSTEMS, general_chain
from keepsum.convergence.observe import BlockConvergence, observe
from keepsum.privacy.numbers import three_digits_up

BENCHMARK_PAIRS = 4_500
LIMIT = 1e-3  # on the total variation: what must be shown at 95% confidence
COLUMNS = (
    "system", "epsilon", "kept", "steps", "seconds per draw", "pairs", "last meeting", "limit", "extrapolated",
    "rounding",
)  # fmt: skip


def main() -> int:
    rows: list[dict[str, str]] = []
    failures = []
    print(" | ".join(COLUMNS), flush=True)
    for name, keep in SYSTEMS.items():
        for epsilon in ("0.25", "1"):
            row, measured = measure(name, keep, epsilon)
            rows.append(row)
            print(" | ".join(row.values()), flush=True)
            if measured.upper > LIMIT:
                failures.append(f"{name} at epsilon {epsilon}: {three_digits_up(measured.upper)}")
    if os.environ.get("WRITE"):
        about = {"date": results.today(), "machine": short_description(), "command": "make convergence"}
        results.save({**results.load(), "convergence": {**about, "rows": rows}})
        write_pages()
    print("\n".join(["missed:", *failures]) if failures else "keepsum: every limit is met")
    return len(failures)


def measure(name: str, keep: ks.Invariants, epsilon: str) -> tuple[dict[str, str], BlockConvergence]:
    chain, _ = general_chain(keep, epsilon)

    def add(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{name}, epsilon {epsilon}: {done} more pairs\033[K", end="\r", file=sys.stderr)

    measured = observe(chain, 1, BENCHMARK_PAIRS, 0.95, os.cpu_count() or 1, add)
    out = np.empty((1, chain.width), dtype=np.int64)
    chain.draw_into(out, ks.rng(seed=1))
    draws = 3 if chain.steps * chain.cost > 10**6 else 30
    times = []
    for k in range(draws):
        start = time.process_time()
        chain.draw_into(out, ks.rng(seed=k))
        times.append(time.process_time() - start)
    last = measured.meetings[-1][0] if measured.meetings else 0
    cells = [
        name,
        epsilon,
        f"{100 / chain.tries:.0f}%",
        f"{chain.steps:,}",
        f"{min(times):.2g}",
        f"{measured.pairs:,}",
        f"{last:,}",
        three_digits_up(measured.upper),
        three_digits_up(measured.extrapolated),
        three_digits_up(measured.rounding),
    ]
    return dict(zip(COLUMNS, cells, strict=True)), measured


if __name__ == "__main__":
    sys.exit(main())

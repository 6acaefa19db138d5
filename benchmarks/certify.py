"""How near the general sampler's chains come to their law, on a list of systems. Run by `make certify`.

Pairs of chains are kept in the user's cache folder as they are run, so that a run that is stopped goes on where it was.
With --write the table goes into docs/general.md.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from systems import SYSTEMS, general_chain

import keepsum as ks
from keepsum.convergence.observe import BlockConvergence, observe
from keepsum.privacy.numbers import three_digits_up

PAIRS = 4_500
# Distances that must be shown at 95% confidence.
LIMITS = {"20 × 20": 1e-2, "102 × 5": 1e-2}
LIMIT = 1e-3
PAGE = Path(__file__).parents[1] / "docs" / "general.md"
HEAD = (
    "| system | ε | proposals that pass | steps of a draw | seconds of a draw | pairs | last meeting after "
    "| at most, at 95% | extrapolated | of these rounding |\n|---|---|---|---|---|---|---|---|---|---|"
)


def main() -> int:
    rows, failures = [HEAD], []
    print(HEAD, flush=True)
    for name, keep in SYSTEMS.items():
        for epsilon in ("0.25", "1"):
            row, found = measure(name, keep, epsilon)
            rows.append(row)
            print(row, flush=True)
            if found.upper > LIMITS.get(name, LIMIT):
                failures.append(f"{name} at epsilon {epsilon}: {three_digits_up(found.upper)}")
    if "--write" in sys.argv:
        write(rows)
    print("\n".join(["missed:", *failures]) if failures else "keepsum: every limit is met")
    return len(failures)


def measure(name: str, keep: ks.Invariants, epsilon: str) -> tuple[str, BlockConvergence]:
    chain, _ = general_chain(keep, epsilon)

    def add(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{name}, epsilon {epsilon}: {done} more pairs\033[K", end="\r", file=sys.stderr)

    found = observe(chain, 1, PAIRS, 0.95, os.cpu_count() or 1, add)
    out = np.empty((1, chain.width), dtype=np.int64)
    chain.draw_into(out, ks.rng(seed=1))
    draws = 3 if chain.steps * chain.cost > 10**6 else 30
    times = []
    for k in range(draws):
        start = time.process_time()
        chain.draw_into(out, ks.rng(seed=k))
        times.append(time.process_time() - start)
    last = found.meetings[-1][0] if found.meetings else 0
    cells = [
        name,
        epsilon,
        f"{100 / chain.tries:.0f}%",
        f"{chain.steps:,}",
        f"{min(times):.2g}",
        f"{found.pairs:,}",
        f"{last:,}",
        three_digits_up(found.upper),
        three_digits_up(found.extrapolated),
        three_digits_up(found.rounding),
    ]
    return f"| {' | '.join(cells)} |", found


def write(rows: list[str]) -> None:
    """Into the page, between the marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split("<!-- certify -->\n")[0], text.split("<!-- end -->")[1]
    PAGE.write_text(before + "<!-- certify -->\n" + "\n".join(rows) + "\n<!-- end -->" + rest, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

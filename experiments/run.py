"""Run every experiment in order and write `results.md`. `make paper` calls it.

QUICK=1 runs a little of everything; COUNTIES=path and DAS=path name census files; OUT=folder is the output folder.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from experiments import beyond, children, circles, counties, levels, tables, theory
from experiments.cache import Cache
from experiments.claims import Claim, as_table, explanations, summary
from experiments.setting import Section, Setting
from keepsum_shell.streams import keep_standard_output

OUT = Path(__file__).parent / "out"
REDONE = (
    "The paper's data were not to be had in full. The first experiment has a matrix that we reconstructed, because the "
    "paper gives its own only as a drawing; the second the paper's printed table, with one total corrected; the third, "
    "unless files are given, counties of plotnine's `midwest` in place of the Census Bureau's."
)


def say(line: str) -> None:
    """Show progress, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line[:150]}", end="", file=sys.stderr, flush=True)


def setting_from(environment: dict[str, str]) -> Setting:
    """The setting from environment variables."""
    out = Path(environment.get("OUT") or OUT)

    def path(name: str) -> Path | None:
        return Path(environment[name]) if environment.get(name) else None

    quick = environment.get("QUICK", "") not in ("", "0")
    return Setting(out, quick, Cache(out / "cache", say), path("COUNTIES"), path("DAS"))


def sections(setting: Setting) -> list[Section]:
    """Every experiment, in the paper's order."""
    first, small = circles.run(setting)
    second, more = children.run(setting)
    third, _ = counties.run(setting)
    theoretical = theory.run(setting, small + more)
    return [first, second, third, theoretical, beyond.run(setting), tables.run(setting), levels.run(setting)]


def results(setting: Setting, parts: Sequence[Section]) -> str:
    """The page: every claim with its verdict, the disagreements and their reasons, then the experiments."""
    claims = [claim for part in parts for claim in part.claims]
    mode = (
        "**A quick run** (`make paper QUICK=1`): few pairs, steps and draws. It shows that everything runs; "
        "do not cite it."
        if setting.quick
        else "A full run of `make paper`."
    )
    lines = [
        "# The paper, reproduced",
        "*Integer Subspace Differential Privacy* (Dharangutte, Gao, Gong, Yu; AAAI 2023): every table, figure and "
        "claim, with Keepsum's exact samplers beside it. Written by `make paper`; verdicts are computed from the "
        "numbers, not typed. Seeds are fixed, so every number is reproducible; speeds are those that `make bench` "
        "measured (`benchmarks/results.json`). *Where* is the label in the paper's source.",
        f"{mode} {summary(claims)}",
        REDONE,
        "## Claims",
        as_table(claims),
        "## What disagrees, and what was not run",
        explanations(claims),
    ]
    for part in parts:
        lines += [f"## {part.title}", *part.text]
    return "\n\n".join(lines) + "\n"


def _cells(claim: Claim) -> list[str]:
    """A claim as a row of a CSV file, with numbers in full."""
    ours = "" if claim.ours is None else repr(float(claim.ours))
    return [claim.what, claim.where, claim.paper_text or repr(claim.paper), ours, claim.tolerance.rule, claim.verdict]


def write_tables(setting: Setting, parts: Sequence[Section]) -> None:
    """The claims and every table of the page, as CSV files."""
    head = ["claim", "where", "paper", "ours", "agree if", "verdict"]
    claims = [_cells(claim) for part in parts for claim in part.claims]
    tables = {"claims": [head, *claims]} | {name: rows for part in parts for name, rows in part.tables.items()}
    for name, rows in tables.items():
        with (setting.out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> int:
    """Run everything; the exit status only says that it ran, because a claim may disagree and be explained."""
    setting = setting_from(dict(os.environ))
    setting.out.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    page = setting.out / "results.md"
    parts = sections(setting)
    write_tables(setting, parts)
    page.write_text(results(setting, parts), encoding="utf-8")
    say("")
    print(f"keepsum: the paper is reproduced in {page} ({time.perf_counter() - start:.0f} s)")
    return 0


if __name__ == "__main__":
    keep_standard_output()
    sys.exit(main())

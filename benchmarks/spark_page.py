"""What was measured of releases through Spark, as a part of docs/spark.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.measuring import exponent

PURPOSES = (
    "read the input, labels to positions",
    "bring the cells of tasks together",
    "sum the groups",
    "fill and write",
    "read back, labels to positions",
    "check every cell, and make pieces of the canonical file",
    "collect the sums of what was checked",
)
HASH, SCHEMA = "runJob", "parquet"  # what Spark calls the stages for pieces, and those that read the types of columns
HEAD = ("", "wall", "CPU", "cells per CPU second", "shuffled", "driver: Python, Java", "a worker's Python")


def page(results: dict[str, Any]) -> str:
    """Tables of all figures, in Markdown."""
    machine = "; ".join(f"{name} {value}" for name, value in results["machine"].items())
    rows = [_row(f"Spark, {_power(found['cells'])} cells", found) for found in results["spark"]]
    rows += [_row(f"`ks.release`, {_power(found['cells'])} cells", found) for found in results["alone"]]
    rows += [_row(f"noise alone, one core, {_power(results['sampler']['cells'])} cells", results["sampler"])]
    columns = [column for column in zip(HEAD, *rows, strict=True) if any(column[1:])]
    rows = list(zip(*columns, strict=True))
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    text = f"{machine}. {results['date']}.\n\n{''.join(_line(line) for line in lines)}\n"
    if len(results["spark"]) > 1:
        text += f"CPU time grows with the number of cells to the power {growth(results['spark']):.2f}.\n\n"
    return text + _stages(results["spark"][-1]) + _driver(results["driver"])


def figures(results: dict[str, Any]) -> dict[str, float]:
    """The seconds that the page mentions: the CPU time of a cell and of the driver, and the time of a piece."""
    largest = results["spark"][-1]
    hashed = [stage for stage in largest["stages"] if stage["name"] == HASH]
    return {
        "spark/cell/seconds": largest["cpu"] / largest["cells"],
        "spark/driver/seconds": results["driver"]["cpu"],
        "spark/piece/seconds": sum(s["seconds"] for s in hashed) / sum(s["tasks"] for s in hashed),
    }


def growth(results: Sequence[dict[str, Any]]) -> float:
    """The power of the number of cells that CPU time grows with."""
    return exponent([found["cells"] for found in results], [found["cpu"] for found in results])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _row(name: str, found: dict[str, Any]) -> tuple[str, ...]:
    moved = f"{found['shuffled'] / 1e6:,.0f} MB" if "shuffled" in found else ""
    memory = ", ".join(f"{size / 1e6:,.0f} MB" for size in found["memory"])
    worker = f"{found['worker'] / 1e6:,.0f} MB" if "worker" in found else ""
    rate = found["cells"] / found["cpu"]
    return name, f"{found['wall']:,.1f} s", f"{found['cpu']:,.1f} s", f"{rate:,.0f}", moved, memory, worker


def _stages(found: dict[str, Any]) -> str:
    text = f"Stages at {_power(found['cells'])} cells:\n\n"
    text += "| | Spark tasks | wall | longest task | shuffled |\n|---|---|---|---|---|\n"
    large = [stage for stage in found["stages"] if stage["name"] not in (HASH, SCHEMA)]
    if len(large) != len(PURPOSES):
        raise AssertionError(f"stages are {[stage['name'] for stage in large]}")
    for purpose, stage in zip(PURPOSES, large, strict=True):
        text += _stage(purpose, [stage])
    return text + _stage("hash the pieces, a few at a time", [s for s in found["stages"] if s["name"] == HASH]) + "\n"


def _stage(purpose: str, stages: Sequence[dict[str, Any]]) -> str:
    tasks, seconds, moved = (sum(stage[name] for stage in stages) for name in ("tasks", "seconds", "shuffled"))
    longest = max(stage["longest"] for stage in stages)
    return f"| {purpose} | {tasks} | {seconds:,.1f} s | {longest:,.1f} s | {moved / 1e6:,.0f} MB |\n"


def _driver(found: dict[str, Any]) -> str:
    seconds = ", ".join(f"{name} {value:.2g} s" for name, value in found["seconds"].items())
    return (
        f"The driver, with {found['groups']:,} groups ({_power(found['cells'])} cells, {found['tasks']:,} tasks): "
        f"{found['cpu']:.1f} s of CPU, {found['memory'][0] / 1e6:,.0f} MB at most ({seconds}); "
        f"{found['broadcast'] / 1e6:,.0f} MB are sent to each worker, and the certificate has "
        f"{found['certificate'] / 1e6:,.0f} MB.\n"
    )


def _power(cells: int) -> str:
    return f"10^{len(str(cells)) - 1}"

"""What was measured of releases through Spark, as a part of docs/spark.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.measuring import exponent

HEAD = "| | wall | CPU | rows per CPU second | shuffled | driver: Python, Java |\n|---|---|---|---|---|---|\n"


def page(results: dict[str, Any]) -> str:
    """Tables of all figures, in Markdown."""
    machine = "; ".join(f"{name} {value}" for name, value in results["machine"].items())
    rows = [_row(f"Spark, {_power(found['cells'])} cells", found) for found in results["spark"]]
    rows += [_row(f"`ks.release`, {_power(found['cells'])} cells", found) for found in results["alone"]]
    rows += [_row(f"noise alone, one core, {_power(results['sampler']['cells'])} cells", results["sampler"])]
    text = f"{machine}.\n\n{HEAD}{''.join(rows)}\n"
    if len(results["spark"]) > 1:
        text += f"CPU time grows with the number of cells to the power {growth(results['spark']):.2f}.\n\n"
    return text + _stages(results["spark"][-1]) + _driver(results["driver"])


def growth(results: Sequence[dict[str, Any]]) -> float:
    """The power of the number of cells that CPU time grows with."""
    return exponent([found["cells"] for found in results], [found["cpu"] for found in results])


def _row(name: str, found: dict[str, Any]) -> str:
    moved = f"{found['shuffled'] / 1e6:,.0f} MB" if "shuffled" in found else ""
    memory = ", ".join(f"{size / 1e6:,.0f} MB" for size in found["memory"])
    rate = found["cells"] / found["cpu"]
    return f"| {name} | {found['wall']:,.1f} s | {found['cpu']:,.1f} s | {rate:,.0f} | {moved} | {memory} |\n"


def _stages(found: dict[str, Any]) -> str:
    text = f"Stages at {_power(found['cells'])} cells:\n\n"
    text += "| stage | Spark tasks | seconds | longest task | shuffled |\n|---|---|---|---|---|\n"
    for stage in found["stages"]:
        if stage["work"] >= 0.01 * sum(other["work"] for other in found["stages"]):
            text += f"| {stage['stage']} ({stage['name']}) | {stage['tasks']} | {stage['seconds']:,.1f} "
            text += f"| {stage['longest']:,.1f} s | {stage['shuffled'] / 1e6:,.0f} MB |\n"
    return text + "\n"


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

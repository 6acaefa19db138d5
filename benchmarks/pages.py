"""Figures in README and docs: each is that of the results file, and says which.

In prose a figure is followed by its name, ``3,200<!-- figure: two-way/32x32/0.25/draws_per_second -->``, and
so is when and where it was measured, ``2026-11-18, ...<!-- measured: two-way/32x32/0.25/draws_per_second -->``.
A table stands between ``<!-- NAME -->`` and ``<!-- end -->``, NAME one of ``TABLES``. ``python -m benchmarks.pages``
writes both anew, and so does every command that measures; ``tests/test_figures.py`` fails if a page shows another
figure, or one without a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import reporting, results, spark_page

REPO = Path(__file__).parents[1]
FIGURE = re.compile(r"(?P<shown>[\d.,]*\d(?:e-?\d+)?(?:%| (?:ns|µs|ms|s))?)<!-- figure: (?P<name>[^<>]+) -->")
MEASURED = re.compile(r"\d{4}-\d\d-\d\d, [^<>()]+<!-- measured: (?P<name>[^<>]+) -->")
TWO_WAY = ("20x20/2", "20x20/3", "32x32/0.25", "32x32/1", "32x32/3", "64x64/0.25", "64x64/1", "64x64/3",
           "128x128/0.25", "128x128/1")  # fmt: skip
THREE_WAY, EPSILONS = ("3x3x3", "5x4x3", "100x3x3", "4x4x4", "20x4x4", "5x5x5", "6x6x6"), ("0.25", "1")
SLOWER = {"solved_regions": " (solving for regions, which is quicker here)"}
CONVERGENCE = (
    "| system | ε | kept by thinning | steps per draw | seconds per draw | pairs | last meeting after "
    "| 95% limit on TV | extrapolated | rounding included |\n|---|---|---|---|---|---|---|---|---|---|\n"
)


def pages() -> list[Path]:
    """Every page that may show a figure."""
    return [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]


def filled(text: str, measured: Mapping[str, Any]) -> str:
    """A page with the figures and tables of the results file."""
    text = FIGURE.sub(lambda found: _figure(found, measured["figures"]), text)
    text = MEASURED.sub(lambda found: _measured(found["name"], measured["figures"][found["name"]]), text)
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        if begin in text:
            before, rest = text.split(begin)
            text = before + begin + table(measured).rstrip("\n") + "\n" + end + rest.partition(end)[2]
    return text


def _figure(found: re.Match[str], figures: Mapping[str, Any]) -> str:
    if found["name"] not in figures:
        raise KeyError(f"No figure is called {found['name']}: run the command that measures it with WRITE=1.")
    return found[0].replace(found["shown"], results.shown(figures[found["name"]]), 1)


def _measured(name: str, figure: Mapping[str, Any]) -> str:
    return f"{figure['date']}, {figure['machine']}<!-- measured: {name} -->"


def write_pages() -> None:
    """Put the figures of the results file into every page."""
    measured = results.load()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if filled(text, measured) != text:
            page.write_text(filled(text, measured), encoding="utf-8")


def by_sides(name: str) -> str:
    """A table by its sides: 32x32 is 32 × 32."""
    return name.replace("x", " × ")


def two_way(measured: Mapping[str, Any]) -> str:
    """Two-way tables with labels: how often proposals are accepted, and draws per second."""
    figures = measured["figures"]
    rows = ["| table | ε | accepted | draws per second |", "|---|---|---|---|"]
    for name in TWO_WAY:
        shape, epsilon = name.split("/")
        accepted, rate = (figures[f"two-way/{name}/{what}"] for what in ("accepted", "draws_per_second"))
        rows.append(f"| {by_sides(shape)} | {epsilon} | {results.shown(accepted)} | {results.shown(rate)} |")
    return "\n".join(rows)


def three_way(measured: Mapping[str, Any]) -> str:
    """Three-way tables: how they are drawn, how often proposals are accepted, and draws per second."""
    rows = ["| table | ε = 0.25: accepted, draws per second | ε = 1 |", "|---|---|---|"]
    for shape in THREE_WAY:
        cells = [_three_way(measured["figures"], f"three-way/{shape}/{epsilon}") for epsilon in EPSILONS]
        rows.append(f"| {' | '.join([by_sides(shape), *cells])} |")
    return "\n".join(rows)


def _three_way(figures: Mapping[str, Any], name: str) -> str:
    exactness, method = (figures[f"{name}/{what}"]["value"] for what in ("exactness", "method"))
    if exactness != "exact":
        return f"general sampler ({exactness})"
    accepted, rate = (results.shown(figures[f"{name}/{what}"]) for what in ("accepted", "draws_per_second"))
    return f"{accepted}, {rate}{SLOWER.get(method, '')}"


def convergence(measured: Mapping[str, Any]) -> str:
    """How close chains come to their target."""
    return CONVERGENCE + "\n".join(f"| {' | '.join(row.values())} |" for row in measured["convergence"]["rows"])


TABLES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "bench": lambda measured: reporting.page(measured["bench"]),
    "bench-spark": lambda measured: spark_page.page(measured["spark"]),
    "convergence": convergence,
    "two-way": two_way,
    "three-way": three_way,
}


if __name__ == "__main__":
    write_pages()

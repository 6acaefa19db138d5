"""What a run shows as it goes on, and what it writes: results.json, results.md and the plots."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks import machine, plots
from benchmarks.measuring import Spread, Times
from benchmarks.registry import Bench, Figure

HEAD = "| what | ours | peer | median (quartiles) | target | met |\n|---|---|---|---|---|---|"
CLOCK_NOTE = (
    "CPU seconds, ours and peers by turns in one run; a ratio is the median over rounds, with quartiles. "
    "A target is missed if the better quartile misses it."
)


class Screen:
    """Figures line by line; on a terminal also the case that is running, by rich."""

    def __init__(self, cases: int) -> None:
        self._cases, self._begun = cases, 0
        self._bar: Any = None
        if sys.stdout.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
            self._bar = Progress(*columns, transient=True, refresh_per_second=2)
            self._task = self._bar.add_task("", total=cases)

    def __enter__(self) -> Screen:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def begin(self, name: str) -> None:
        """Say which case is running."""
        self._begun += 1
        if self._bar:
            self._bar.update(self._task, description=name, completed=self._begun - 1)
        self.end(f"\n== {name} ({self._begun} of {self._cases})")

    def figure(self, figure: Figure) -> None:
        """Show a figure."""
        self.end(line(figure))

    def end(self, text: str) -> None:
        """Show a line above the bar, if there is one."""
        if self._bar and self._bar.live.is_started:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, flush=True)


def line(figure: Figure) -> str:
    """A figure and its target, for a terminal.

    >>> line(Figure("case", "ours / NumPy's", Spread(0.5, 0.4, 0.6), "×", None, {}))
    "ours / NumPy's                                                                  0.5 ×          (0.4 to 0.6)"
    """
    value = figure.value
    spread = "" if value.low == value.high else f"({number(value.low)} to {number(value.high)})"
    target = "" if figure.target is None else f"target {figure.target}"
    verdict = "  MISSED" if figure.missed else ""
    text = f"{figure.what:<72} {number(value.median):>10} {figure.unit:<10} {spread:<22} {target}{verdict}"
    return text.rstrip()


def number(value: float) -> str:
    """Three significant digits.

    >>> number(0.012345), number(12.345), number(123456.0)
    ('0.0123', '12.3', '123,000')
    """
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def seconds(value: float) -> str:
    """A time in a unit that suits it.

    >>> seconds(1.5), seconds(0.0002), seconds(31e-9)
    ('1.5 s', '200 µs', '31 ns')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{number(value * 1e9)} ns"


def row(figure: Figure) -> str:
    """A figure as a row of the table."""
    value = figure.value
    names = list(figure.times)
    medians = {name: seconds(figure.times[name].spread(figure.clock).median) for name in names}
    ours = medians[names[0]] if names else ""
    peers = "; ".join(f"{name} {medians[name]}" for name in names[1:])
    spread = "" if value.low == value.high else f" ({number(value.low)} to {number(value.high)})"
    met = "" if figure.target is None else "**no**" if figure.missed else "yes"
    measured = f"{number(value.median)} {figure.unit}".rstrip() + spread
    return f"| {figure.what} | {ours} | {peers} | {measured} | {figure.target or ''} | {met} |"


def table(bench: Bench) -> str:
    """All figures, case by case, and the growth exponents."""
    parts = [case_table(bench, name) for name in dict.fromkeys(figure.case for figure in bench.figures)]
    fitted = [f"{curve.label} ({curve.plot}) {number(curve.exponent)}" for curve in bench.curves if curve.exponent]
    if fitted:
        parts.append(f"Growth exponents, least squares on a log-log scale: {'; '.join(fitted)}.")
    return "\n\n".join(parts)


def case_table(bench: Bench, name: str) -> str:
    """The figures of one case."""
    rows = [row(figure) for figure in bench.figures if figure.case == name]
    return "\n".join([f"**{name[0].upper()}{name[1:]}**", "", HEAD, *rows])


def as_data(bench: Bench, described: dict[str, str], cpu: float, wall: float) -> dict[str, Any]:
    """A run as data, for results.json."""
    return {
        "machine": described,
        "quick": bench.quick,
        "seconds": {"cpu": round(cpu, 1), "wall": round(wall, 1)},
        "figures": [
            {
                "case": figure.case,
                "what": figure.what,
                **_spread(figure.value),
                "unit": figure.unit,
                "target": None if figure.target is None else str(figure.target),
                "missed": figure.missed,
                "times": _times(figure.times),
            }
            for figure in bench.figures
        ],
        "curves": [
            {
                "plot": curve.plot,
                "label": curve.label,
                "exponent": curve.exponent,
                "points": [
                    {"size": p.size, "least": p.least, **_times({"seconds": p.timing})["seconds"]} for p in curve.points
                ],
            }
            for curve in bench.curves
        ],
        "cases": {name: round(took, 1) for name, took in bench.took.items()},
        "failed": bench.failed,
    }


def _spread(value: Spread) -> dict[str, float]:
    return {"median": value.median, "low": value.low, "high": value.high}


def _times(times: Times) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {"cpu": _spread(timing.spread("cpu")), "wall": _spread(timing.spread("wall"))}
        for name, timing in times.items()
    }


def write_results(bench: Bench, out: Path, cpu: float, wall: float) -> None:
    """Write results.json, results.md and the plots."""
    out.mkdir(parents=True, exist_ok=True)
    described = machine.describe()
    data = as_data(bench, described, cpu, wall)
    (out / "results.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    names = plots.draw_all(bench, out)
    length = f"{wall / 60:.1f} minutes, {cpu / 60:.1f} of CPU time"
    parts = [
        f"{CLOCK_NOTE} {'A quick run' if bench.quick else 'The run'} took {length}.",
        "; ".join(f"{name} {value}" for name, value in described.items()) + ".",
        *(f"![{plots.CAPTIONS[name]}](speed/{name}.png)" for name in names),
        table(bench),
    ]
    (out / "results.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def write_page(out: Path, page: Path) -> None:
    """Put the table and the plots of a run into a page, between its markers."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split("<!-- bench -->\n")[0], text.split("<!-- end -->")[1]
    results = (out / "results.md").read_text(encoding="utf-8")
    page.write_text(f"{before}<!-- bench -->\n{results}<!-- end -->{rest}", encoding="utf-8")
    folder = page.parent / "speed"
    folder.mkdir(exist_ok=True)
    for name in [*(f"{plot}.png" for plot in plots.CAPTIONS), "results.json"]:
        if (out / name).exists():
            shutil.copy(out / name, folder)


def summary(bench: Bench, out: Path) -> str:
    """What missed and what failed, at the end."""
    where = os.path.relpath(out)
    lines = [f"\nkeepsum: results are in {where}"]
    lines += [f"missed: {figure.case}: {' '.join(line(figure).split())}" for figure in bench.missed]
    lines += [f"failed: {failure}" for failure in bench.failed]
    if not bench.missed and not bench.failed:
        lines.append("keepsum: every target is met")
    return "\n".join(lines)

"""What a run shows as it goes on, and what it writes: a run as data, its page, its plots, and the results file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks import machine, plots, results
from benchmarks.measuring import Spread, Times, Timing
from benchmarks.registry import CASES, Bench, Figure

HEAD = "| what | ours | peer | median (quartiles) | target | met |\n|---|---|---|---|---|---|"
CLOCK_NOTE = (
    "CPU seconds of the best round, ours and peers by turns in one run; a ratio is the median over rounds, with "
    "quartiles. "
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


def row(figure: dict[str, Any]) -> str:
    """A figure as a row of the table."""
    times = {name: seconds(one[figure["clock"]]["best"]) for name, one in figure["times"].items()}
    ours, *others = list(times) or [""]
    peers = "; ".join(f"{name} {times[name]}" for name in others)
    low, high = figure["low"], figure["high"]
    spread = "" if low == high else f" ({number(low)} to {number(high)})"
    met = "" if figure["target"] is None else "**no**" if figure["missed"] else "yes"
    measured = f"{number(figure['median'])} {figure['unit']}".rstrip() + spread
    return f"| {figure['what']} | {times.get(ours, '')} | {peers} | {measured} | {figure['target'] or ''} | {met} |"


def table(data: dict[str, Any]) -> str:
    """All figures, case by case, and the growth exponents."""
    parts = [case_table(data, name) for name in dict.fromkeys(figure["case"] for figure in data["figures"])]
    fitted = [
        f"{curve['label']} ({curve['plot']}) {number(curve['exponent'])}"
        for curve in data["curves"]
        if curve["exponent"]
    ]
    if fitted:
        parts.append(f"Growth exponents, least squares on a log-log scale: {'; '.join(fitted)}.")
    return "\n\n".join(parts)


def case_table(data: dict[str, Any], name: str) -> str:
    """The figures of one case."""
    rows = [row(figure) for figure in data["figures"] if figure["case"] == name]
    return "\n".join([f"**{name[0].upper()}{name[1:]}**", "", HEAD, *rows])


def page(data: dict[str, Any]) -> str:
    """A run as a page: where it was made, the plots, all figures."""
    dates = sorted({figure["date"] for figure in data["figures"]})
    measured = f"Measured on {' and '.join(dates)}{' in a quick run' * data['quick']}."
    return "\n\n".join(
        [
            f"{CLOCK_NOTE} {measured}",
            "; ".join(f"{name} {value}" for name, value in data["machine"].items()) + ".",
            *(f"![{plots.CAPTIONS[name]}](speed/{name}.png)" for name in plots.drawn(data)),
            table(data),
        ]
    )


def as_data(bench: Bench) -> dict[str, Any]:
    """A run as data."""
    return {
        "machine": machine.describe(),
        "quick": bench.quick,
        "figures": [
            {
                "case": figure.case,
                "what": figure.what,
                **_spread(figure.value),
                "unit": figure.unit,
                "target": None if figure.target is None else str(figure.target),
                "limit": None if figure.target is None else [figure.target.limit, figure.target.at_least],
                "missed": figure.missed,
                "clock": figure.clock,
                "times": _times(figure.times),
                "date": results.today(),
            }
            for figure in bench.figures
        ],
        "curves": [
            {
                "case": curve.case,
                "plot": curve.plot,
                "label": curve.label,
                "exponent": curve.exponent,
                "points": [{"size": p.size, "least": p.least, **_timing(p.timing)["cpu"]} for p in curve.points],
            }
            for curve in bench.curves
        ],
        "cases": {name: round(took, 1) for name, took in bench.took.items()},
        "failed": bench.failed,
    }


def _spread(value: Spread) -> dict[str, float]:
    return {"median": value.median, "low": value.low, "high": value.high}


def _timing(timing: Timing) -> dict[str, dict[str, float]]:
    return {
        "cpu": {"best": timing.best, **_spread(timing.spread("cpu"))},
        "wall": {"best": float(timing.wall.min()), **_spread(timing.spread("wall"))},
    }


def _times(times: Times) -> dict[str, dict[str, dict[str, float]]]:
    return {name: _timing(timing) for name, timing in times.items()}


def records(bench: Bench) -> dict[str, Any]:
    """The figures of a run that pages show by their names."""
    return {name: results.entry(value, unit, "make bench") for name, (value, unit) in bench.records.items()}


def write_results(bench: Bench, out: Path) -> None:
    """Write this run alone: results.json, results.md and the plots."""
    out.mkdir(parents=True, exist_ok=True)
    data = as_data(bench)
    results.save({"figures": records(bench), "bench": data}, out / "results.json")
    plots.draw_all(data, out)
    (out / "results.md").write_text(page(data) + "\n", encoding="utf-8")


def merged(known: dict[str, Any], bench: Bench) -> dict[str, Any]:
    """The results file with this run in it: of a case that was run again, nothing is left of what it said before."""
    new, order = as_data(bench), {case.name: place for place, case in enumerate(CASES)}
    old = known.get("bench", {"figures": [], "curves": [], "cases": {}})
    for part in ("figures", "curves"):
        kept = [one for one in old[part] if one["case"] not in bench.took and one["case"] in order]
        new[part] = sorted(kept + new[part], key=lambda one: order.get(one["case"], len(order)))
    new["cases"] = {name: took for name, took in {**old["cases"], **new["cases"]}.items() if name in order}
    return {**known, "bench": new, "figures": {**known.get("figures", {}), **records(bench)}}


def summary(bench: Bench, out: Path) -> str:
    """What missed and what failed, at the end."""
    where = os.path.relpath(out)
    lines = [f"\nkeepsum: results are in {where}"]
    lines += [f"missed: {figure.case}: {' '.join(line(figure).split())}" for figure in bench.missed]
    lines += [f"failed: {failure}" for failure in bench.failed]
    if not bench.missed and not bench.failed:
        lines.append("keepsum: every target is met")
    return "\n".join(lines)

"""The one file of measured figures, `benchmarks/results.json`: who measures writes there, every page reads from there.

Under ``figures`` each figure has a name, and then its value, unit, date, machine and the command that measured it.
Under the names of commands stands what their tables are made from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import short_description

FILE = Path(__file__).parent / "results.json"
TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def load(file: Path = FILE) -> dict[str, Any]:
    """Everything that was measured."""
    return dict(json.loads(file.read_text(encoding="utf-8")))


def save(results: Mapping[str, Any], file: Path = FILE) -> None:
    """Write everything, figures by name."""
    ordered = {**results, "figures": dict(sorted(results["figures"].items()))}
    file.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def today() -> str:
    """The date of a measurement."""
    return datetime.now(UTC).date().isoformat()


def entry(value: float | str, unit: str, command: str) -> dict[str, Any]:
    """A figure that is measured now, on this machine."""
    return {"value": value, "unit": unit, "date": today(), "machine": short_description(), "command": command}


def value(name: str) -> Any:
    """The value of a figure."""
    return load()["figures"][name]["value"]


def shown(figure: Mapping[str, Any]) -> str:
    """A figure as pages show it, to two digits, steps to three.

    >>> shown({"value": 3204.6, "unit": "draws/s"}), shown({"value": 0.0261, "unit": "share"})
    ('3,200', '2.6%')
    >>> shown({"value": 0.000312, "unit": "s"}), shown({"value": 1999999, "unit": "steps"})
    ('310 µs', '2,000,000')
    """
    number, unit = figure["value"], figure["unit"]
    if unit == "share":
        return f"{two_digits(100 * number)}%"
    if unit == "s":
        size, name = next(((s, n) for s, n in TIMES if float(f"{number:.1e}") >= s), TIMES[-1])
        return f"{two_digits(number / size)} {name}"
    if unit == "steps":
        return f"{float(f'{number:.3g}'):,.0f}"
    return two_digits(number) if isinstance(number, (int, float)) else str(number)


def two_digits(number: float) -> str:
    """A number with two significant digits.

    >>> two_digits(3204.6), two_digits(10.4), two_digits(0.0123)
    ('3,200', '10', '0.012')
    """
    rounded = float(f"{number:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"

"""About how long a draw takes: from what its samplers state that it costs, so that nothing is drawn to find out.

What a plan says was measured on one core of an aarch64 server (Neoverse-N1, as in docs/speed.md), split columns on one
of x86-64 (Xeon at 2.50 GHz); another machine may be twice as fast or half as fast. It does not depend on the machine
that says it, so that a plan reads the same everywhere. `make bench` compares it with what draws
take (``benchmarks/cases/stated.py``).

How many draws margins of error are simulated from follows from other figures, which are never measured again: a
certificate states that number, and it must not change because a sampler has become faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from keepsum.planning.selection.choice import Choice, Method

# Measured for each method over tables of many shapes: the middle of figures that differ by at most about 2 either way.
NANOSECONDS_PER_CELL: dict[Method, float] = {
    "independent_cells": 7,
    "part_by_part": 12,
    "nested_totals": 50,
    "column_splitting": 4,
    "axis_elimination": 4,
    "layer_splitting": 18,
    "solved_regions": 20,
    "conditional_cells": 85,
    "mixture_rejection": 40,
    "mixture_chain": 22,
    "heat_bath_chain": 26,
    "gaussian_chain": 50,
}
# Splitting columns also computes, for each row of each bundle, what decides whether the bundle is accepted.
NANOSECONDS_PER_ENTRY = 300
# What margins of error are simulated by: the measurements of an earlier version, kept as they were.
SIMULATION_NANOSECONDS: dict[Method, float] = {
    "independent_cells": 20,
    "part_by_part": 25,
    "nested_totals": 50,
    "column_splitting": 20,
    "axis_elimination": 20,
    "layer_splitting": 12,
    "solved_regions": 20,
    "conditional_cells": 110,
    "mixture_rejection": 50,
    "mixture_chain": 30,
    "heat_bath_chain": 35,
    "gaussian_chain": 50,
}
UNITS = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (60.0, "min"), (3600.0, "h"))


def seconds_per_draw(choices: Sequence[Choice]) -> float | None:
    """About how many seconds a draw of all blocks takes on one core; None if one has no sampler."""
    nanoseconds: dict[int, float] = {}  # by sampler: groups that are drawn together share one, and its cost
    for choice in choices:
        if choice.method is None:
            return None
        nanoseconds[id(choice.sampler)] = _nanoseconds(choice.method, choice)
    return sum(nanoseconds.values()) / 1e9


def _nanoseconds(method: Method, choice: Choice) -> float:
    """About how many nanoseconds a draw takes; of proposals that are rejected about the first half is computed."""
    drawing = NANOSECONDS_PER_CELL[method] * max(1, choice.cost)
    if method not in ("column_splitting", "axis_elimination"):
        return drawing
    return drawing + NANOSECONDS_PER_ENTRY * len(choice.cells) / math.sqrt(choice.acceptance or 1)


def simulation_nanoseconds(choice: Choice) -> float:
    """The nanoseconds that a row of ``simulate_into`` counts for, where the number of rows is decided."""
    if choice.method is None:
        raise AssertionError("there is a sampler")
    return SIMULATION_NANOSECONDS[choice.method] * max(1, choice.simulation_cost)


def describe_duration(seconds: float) -> str:
    """A duration with one digit.

    >>> describe_duration(0.0031), describe_duration(46), describe_duration(4000)
    ('about 3 ms', 'about 50 s', 'about 1 h')
    >>> describe_duration(2e-7)
    'less than 1 µs'
    """
    if seconds < UNITS[0][0]:
        return f"less than 1 {UNITS[0][1]}"
    size, unit = next((size, unit) for size, unit in reversed(UNITS) if float(f"{seconds / size:.0e}") >= 1)
    return f"about {float(f'{seconds / size:.0e}'):,.0f} {unit}"

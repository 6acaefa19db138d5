"""About how long a draw takes: from what its samplers state that it costs, so that nothing is drawn to find out.

The figures were measured on one core of an aarch64 server (Neoverse-N1, as in docs/speed.md); another machine may be
twice as fast or half as fast. They do not depend on the machine that says them, so that a plan reads the same
everywhere. They enter no certificate but by how many draws margins of error are simulated from
(``accuracy/simulation.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from keepsum.planning.selection.choice import Choice, Method

# Measured for each method over tables of many shapes: the middle of figures that differ by at most about 2 either way.
NANOSECONDS_PER_CELL: dict[Method, float] = {
    "independent_cells": 20,
    "part_by_part": 25,
    "nested_totals": 50,
    "column_splitting": 20,
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
        nanoseconds[id(choice.sampler)] = NANOSECONDS_PER_CELL[choice.method] * max(1, choice.cost)
    return sum(nanoseconds.values()) / 1e9


def simulation_nanoseconds(choice: Choice) -> float:
    """About how many nanoseconds a row of ``simulate_into`` takes on one core."""
    if choice.method is None:
        raise AssertionError("there is a sampler")
    return NANOSECONDS_PER_CELL[choice.method] * max(1, choice.simulation_cost)


def describe_duration(seconds: float) -> str:
    """A duration, rounded to 1, 2 or 5 of a power of ten.

    >>> describe_duration(0.0031), describe_duration(46), describe_duration(4000)
    ('about 2 ms', 'about 50 s', 'about 1 h')
    >>> describe_duration(2e-7)
    'less than 1 µs'
    """
    if seconds < UNITS[0][0]:
        return f"less than 1 {UNITS[0][1]}"
    size, unit = next(((size, unit) for size, unit in reversed(UNITS) if seconds >= size), UNITS[0])
    power = 10 ** math.floor(math.log10(seconds / size))
    digit = min((1, 2, 5, 10), key=lambda candidate: abs(math.log(seconds / size / power / candidate)))
    return f"about {digit * power:,.0f} {unit}"

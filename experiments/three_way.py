"""Three-way tables under all two-way margins: which are drawn exactly, how often proposals are accepted, how fast."""

from __future__ import annotations

import time
from typing import Any

import keepsum as ks
from experiments.setting import Section, Setting
from experiments.table_speed import two_digits

SHAPES = ((3, 3, 3), (5, 4, 3), (100, 3, 3), (4, 4, 4), (20, 4, 4), (5, 5, 5), (6, 6, 6))
QUICK_SHAPES = ((3, 3, 3), (5, 4, 3))
EPSILONS = ("0.25", "1")
SECONDS = 4.0  # of drawing, for each table


def margins(shape: tuple[int, ...]) -> ks.Invariants:
    """All two-way margins of a table."""
    domain = ks.Domain({axis: range(n) for axis, n in zip("abc", shape, strict=True)})
    return ks.Invariants.margins(domain, [["a", "b"], ["a", "c"], ["b", "c"]])


def planned_draws(shape: str, epsilon: str) -> dict[str, Any]:
    """How a table is drawn, and CPU seconds of one core; only exact draws are timed."""
    totals = margins(tuple(map(int, shape.split())))
    start = time.process_time()
    plan = ks.plan(totals, ks.Laplace(epsilon=epsilon))
    (choice,) = plan.samplers
    prepared = time.process_time()
    draws = 0
    while choice.exactness == "exact" and time.process_time() < prepared + SECONDS:
        step = 1 if choice.cost > 10**6 else 50
        plan.sample(step, rng=ks.rng(seed=f"three-way {draws}"))
        draws += step
    return {
        "method": str(choice.method),
        "exactness": choice.exactness,
        "acceptance": choice.acceptance or 0.0,
        "planning": prepared - start,
        "rate": draws / (time.process_time() - prepared) if draws else 0.0,
    }


def percent(share: float) -> str:
    """A share with two significant digits.

    >>> percent(1.0), percent(0.934), percent(0.0025)
    ('100%', '93%', '0.25%')
    """
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"


def add(setting: Setting, section: Section) -> None:
    """Add the table."""
    shapes = QUICK_SHAPES if setting.quick else SHAPES
    rows = []
    for shape in shapes:
        for epsilon in EPSILONS:
            one = setting.cache.step(planned_draws, shape=" ".join(map(str, shape)), epsilon=epsilon)
            accepted, rate = float(one["acceptance"]), float(one["rate"])
            rows.append(
                [
                    " × ".join(map(str, shape)),
                    epsilon,
                    str(one["method"]),
                    str(one["exactness"]),
                    percent(accepted) if accepted else "-",
                    two_digits(float(one["planning"])),
                    two_digits(rate) if rate else "-",
                ]
            )
    section.say(
        "**Three-way tables** with all two-way margins kept, l1 Laplace noise: how plans draw them, CPU seconds of one "
        "core. *Layer splitting* is the same proof with vectors in place of integers, and is taken where its tables "
        "and those of its referee fit into memory."
    )
    section.table(
        "three_way",
        ["table", "ε", "method", "exactness", "proposals accepted", "seconds to prepare", "draws per second"],
        rows,
    )

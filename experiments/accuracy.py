"""The error of a cell under every mechanism, at the same per-person epsilon.

An epsilon per unit of distance means something else in each norm: a person's distance is larger in l1 than in l2. So
mechanisms are compared at the same per-person epsilon, and epsilon per unit follows from the distance of one person.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import keepsum as ks
from experiments import steps
from experiments.drawing import BLUE, GREEN, GREY, ORANGE, PINK, RED, new, note, save
from experiments.setting import Section, Setting

# Per person. The paper's Gaussian needs an epsilon below 1/e per unit of l2 distance, which is 0.52 for a person at
# distance sqrt(2).
PERSON_EPSILON, DELTA = "0.5", "1e-6"
SYSTEMS = {"circles": "circles", "children": "children", "102 counties": "sum 102"}
EXACT_KINDS = ("l1", "l2", "gaussian", "gaussian paper")
NAMES = {
    "l1": "l1 Laplace",
    "l2": "l2 Laplace",
    "gaussian": f"Gaussian, our σ (δ = {DELTA})",
    "gaussian paper": f"Gaussian, the paper's σ (δ = {DELTA})",
    "projected": "double geometric, projected",
    "topdown": "non-negative least squares, rounded",
}
COLOURS = dict(zip(NAMES, (BLUE, ORANGE, GREEN, RED, GREY, PINK), strict=True))
TIE = 1.05  # errors within this factor of the smallest count as equal

Sizes = dict[str, dict[str, float]]  # by system and mechanism


def add(setting: Setting, section: Section) -> None:
    """Add the table, the figure and the text."""
    steps_of = {name: _steps(setting, system) for name, system in SYSTEMS.items()}
    errors: Sizes = {
        name: {kind: float(step["size"]) for kind, step in by_kind.items()} for name, by_kind in steps_of.items()
    }
    section.say(
        f"**Mean absolute error of a cell** at the same per-person ε = {PERSON_EPSILON}, with δ = {DELTA} for "
        f"Gaussian noise. Per unit of distance that is an ε of "
        + ", ".join(
            f"{float(by_kind['l1']['unit']):.3g} in l1 and {float(by_kind['l2']['unit']):.3g} in l2 for {name}"
            for name, by_kind in steps_of.items()
        )
        + ":"
    )
    section.table(
        "accuracy",
        ["mechanism", *errors],
        [
            [NAMES[kind], *(f"{sizes[kind]:.3g}" if kind in sizes else "-" for sizes in errors.values())]
            for kind in NAMES
        ],
    )
    section.say(
        "The last two rows add double geometric noise with the l1 epsilon per unit to every cell and then restore the "
        "totals. "
        "Projected noise is "
        + ", ".join(
            f"{sizes['projected'] / sizes['l1']:.2f} times l1 Laplace for {name}" for name, sizes in errors.items()
        )
        + ", and the paper's Gaussian "
        + ", ".join(f"{sizes['gaussian paper'] / sizes['gaussian']:.1f} times ours" for sizes in errors.values())
        + "."
    )
    name = save(_figure(errors), setting.out, "accuracy")
    section.figure(name, f"Mean absolute error of every mechanism at per-person ε = {PERSON_EPSILON}")


def finding(errors: Sizes) -> str:
    """A sentence on which mechanism errs least: one for all systems, or one per system."""
    best_of = [
        [kind for kind in NAMES if sizes.get(kind, np.inf) <= TIE * min(sizes.values())] for sizes in errors.values()
    ]
    common = [kind for kind in NAMES if all(kind in kinds for kinds in best_of)]
    if not common:
        least = (f"{_short(kinds[0])} for {name}" for name, kinds in zip(errors, best_of, strict=True))
        return f"At equal loss for one person no mechanism errs least everywhere:\n{', '.join(least)}"
    best = common[0]
    others = []
    for kind in ("l1", "l2", "gaussian"):
        if kind != best:
            ratios = [sizes[kind] / sizes[best] for sizes in errors.values()]
            others.append(f"{_short(kind)} {min(ratios):.1f} to {max(ratios):.1f} times as much")
    return (
        f"At equal loss for one person {_short(best)} errs least, or within {TIE - 1:.0%} of it, everywhere;\n"
        f"{', '.join(others)}"
    )


def _short(kind: str) -> str:
    return NAMES[kind].split(" (")[0].replace(",", " with")


def _figure(errors: Sizes) -> Any:
    figure, panels = new(10, 4.2)
    axes = panels[0, 0]
    for row, sizes in enumerate(errors.values()):
        for place, (kind, size) in enumerate(sizes.items()):  # a little apart, because some are equal
            axes.plot(size, row + 0.12 * (place - 2.5), "o", color=COLOURS[kind], markersize=9)
    for place, (kind, name) in enumerate(NAMES.items()):
        axes.text(1.02, 0.95 - 0.11 * place, "● " + name, color=COLOURS[kind], transform=axes.transAxes, fontsize=10)
    axes.set_title(finding(errors))
    axes.set_yticks(range(len(errors)), list(errors))
    axes.set_ylim(len(errors) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.set_xticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"], minor=False)
    axes.set_xlabel("mean absolute error of a cell (records, log scale)")
    axes.grid(axis="y", color="#DDDDDD")
    note(figure, f"ε = {PERSON_EPSILON} for one person, in each norm at that person's own distance")
    return figure


def _steps(setting: Setting, system: str) -> dict[str, Any]:
    """Every mechanism on one system; the baselines use the epsilon per unit of l1, as l1 Laplace does."""
    draws = setting.scaled(5_000, 500)
    by_kind: dict[str, Any] = {
        kind: setting.cache.step(
            steps.sizes, system=system, kind=kind, epsilon=PERSON_EPSILON, delta=DELTA, draws=draws, seed=f"size {kind}"
        )
        for kind in EXACT_KINDS
    }
    unit = repr(float(by_kind["l1"]["unit"]))
    few = draws if system.startswith("sum") else setting.scaled(500, 100)  # an integer program each
    noise = setting.cache.step(steps.projected, system=system, epsilon=unit, draws=few, seed="size")["draws"]
    by_kind["projected"] = {"size": np.abs(noise).mean()}
    if system.startswith("sum"):
        from experiments.census import midwest

        counts = midwest()[0].population
        released = ks.baselines.topdown_like(counts, steps.invariants(system), unit, draws, rng=ks.rng(seed="size"))
        by_kind["topdown"] = {"size": np.abs(released - counts).mean()}
    return by_kind

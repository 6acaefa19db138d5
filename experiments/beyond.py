"""Beyond the paper: the exactness of each system of totals, county by race with both margins, a million cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse, stats

import keepsum as ks
from experiments.census import races
from experiments.claims import NOT_IN_PAPER, Claim, equal, not_rejected
from experiments.drawing import new, note, save
from experiments.setting import Section, Setting
from experiments.small import EPSILON, RATE
from experiments.steps import invariants, mechanism

MECHANISMS = {"l1": "l1 Laplace", "l2": "l2 Laplace", "gaussian": "Gaussian"}
SHADES = {"exact": "#0072B2", "rounded": "#56B4E9", "estimated": "#E69F00", "no sampler": "#595959"}
REGION_AXES = ("county", "sex", "age", "education")  # county by sex, and age, are kept: entries add up over education
# The systems of the map; quick runs skip those that take long to plan.
MAPPED_SYSTEMS = {
    "one sum, 102 cells": "sum 102",
    "three levels, 2,000 cells": "levels 10 10 20",
    "circles, 14 cells": "circles",
    "4 × 4, both margins": "table 4 4",
    "10 × 10, both margins": "table 10 10",
    "102 × 5, both margins": "table 102 5",
    "20 × 20, both margins": "table 20 20",
    "64 × 64, both margins": "table 64 64",
    "1000 × 4, both margins": "table 1000 4",
    "3,143 × 8, both margins": "table 3143 8",
    "40 × 4 regions of three cells": "regions 20 2 4 3",
    "5 × 4 × 3, two-way margins": "table 5 4 3",
    "4 × 4 × 4, two-way margins": "table 4 4 4",
    "5 × 5 × 5, two-way margins": "table 5 5 5",
    "6 × 6 × 6, two-way margins": "table 6 6 6",
    "20 × 4 × 4, two-way margins": "table 20 4 4",
    "10 × 10 × 10, two-way margins": "table 10 10 10",
    "5 weighted totals, 40 cells": "random 5 40",
    # Decomposable margins of several axes. One-way margins:
    "6 × 4 × 2, three one-way margins": "margins 6x4x2 A B C",
    "20 × 8 × 2, three one-way margins": "margins 20x8x2 A B C",
    "51 × 20 × 2, three one-way margins": "margins 51x20x2 A B C",
    "10 × 10 × 10, three one-way margins": "margins 10x10x10 A B C",
    "6 × 6 × 6 × 6, four one-way margins": "margins 6x6x6x6 A B C D",
    "10 × 5 × 4 × 3 × 2, five one-way margins": "margins 10x5x4x3x2 A B C D E",
    # Chains:
    "20 × 8 × 2, chain AB, BC": "margins 20x8x2 AB BC",
    "10 × 5 × 4 × 3, chain AB, BC, CD": "margins 10x5x4x3 AB BC CD",
    "8 × 6 × 5 × 4, chain AB, BC, CD": "margins 8x6x5x4 AB BC CD",
    "6 × 4 × 3 × 2 × 2, chain AB, BC, CD, DE": "margins 6x4x3x2x2 AB BC CD DE",
    "10 × 5 × 4 × 3, chain AB, BC, and D": "margins 10x5x4x3 AB BC D",
    # Stars:
    "20 × 8 × 2, star AB, AC": "margins 20x8x2 AB AC",
    "10 × 5 × 4 × 3, star AB, AC, AD": "margins 10x5x4x3 AB AC AD",
    "10 × 4 × 3 × 2 × 2, star AB, AC, AD, AE": "margins 10x4x3x2x2 AB AC AD AE",
    "10 × 5 × 4 × 3, star AB, AC, and D": "margins 10x5x4x3 AB AC D",
    "6 × 5 × 4 × 3, star ABC, ABD": "margins 6x5x4x3 ABC ABD",
    # Counties (C) in states (S), by sex (X) and age (A):
    "4 states of 5 counties × 2 × 8: C, SX": "nested 4x5x2x8 C SX",
    "4 states of 5 counties × 2 × 8: C, X, A": "nested 4x5x2x8 C X A",
    "4 states of 5 counties × 2 × 8: C, SX, A": "nested 4x5x2x8 C SX A",
    "4 states of 5 counties × 2 × 8: CX, SA": "nested 4x5x2x8 CX SA",
    "4 states of 5 counties × 2 × 8: C, SX, SA": "nested 4x5x2x8 C SX SA",
    # Structural zeros where the first two categories are the same:
    "20 × 8, both margins, zeros": "zeros 20x8 A B",
    "12 × 12, both margins, zeros": "zeros 12x12 A B",
    "6 × 4 × 2, three one-way margins, zeros": "zeros 6x4x2 A B C",
    "6 × 4 × 2, chain AB, BC, zeros": "zeros 6x4x2 AB BC",
    "6 × 4 × 2 × 2, star AB, AC, and D, zeros": "zeros 6x4x2x2 AB AC D",
    # Not decomposable:
    "6 × 5 × 4 × 3: AB, BC, CA, and D": "margins 6x5x4x3 AB BC CA D",
    "4 × 4 × 4 × 4: AB, BC, CD, DA": "margins 4x4x4x4 AB BC CD DA",
}
SLOW = {
    "64 × 64, both margins",
    "40 × 4 regions of three cells",
    "4 × 4 × 4, two-way margins",
    "5 × 5 × 5, two-way margins",
    "6 × 6 × 6, two-way margins",
    "20 × 4 × 4, two-way margins",
    "10 × 10 × 10, two-way margins",
    "5 weighted totals, 40 cells",
    *(name for name, totals in MAPPED_SYSTEMS.items() if totals.startswith(("margins", "nested", "zeros"))),
} - {"6 × 4 × 2, three one-way margins"}
NESTED_AXES = ("S", "C", "X", "A")  # states, their counties, sex and age


def run(setting: Setting) -> Section:
    """The map of exactness, county by race, and a million cells."""
    section = Section("Beyond the paper")
    _map(setting, section)
    _county_by_race(setting, section)
    _million(setting, section)
    return section


def system(name: str) -> ks.Invariants:
    """Totals by name, including those of :func:`experiments.steps.invariants`."""
    kind, *numbers = name.split()
    if kind in ("margins", "nested", "zeros"):
        return kept_margins(kind, [int(number) for number in numbers[0].split("x")], numbers[1:])
    sizes = [int(number) for number in numbers]
    if kind == "table":
        axes = [f"x{k}" for k in range(len(sizes))]
        domain = ks.Domain({axis: range(n) for axis, n in zip(axes, sizes, strict=True)})
        return ks.Invariants.margins(domain, [[a for a in axes if a != summed] for summed in axes])
    if kind == "regions":
        domain = ks.Domain({axis: range(n) for axis, n in zip(REGION_AXES, sizes, strict=True)})
        return ks.Invariants.margins(domain, [["county", "sex"], ["age"]])
    if kind == "levels":
        return ks.Invariants.matrix(hierarchy(*sizes))
    if kind == "random":
        weights = np.random.default_rng(5).integers(0, 4, size=sizes)
        return ks.Invariants.matrix(weights)
    return invariants(name)


def kept_margins(kind: str, sizes: list[int], margins: list[str]) -> ks.Invariants:
    """Margins of axes that are letters: crossed, or counties in states, or with zeros where A and B are the same."""
    if kind == "nested":
        states, counties, *others = sizes
        nested = {state: [f"{state}.{county}" for county in range(counties)] for state in range(states)}
        crossed = {axis: range(n) for axis, n in zip(NESTED_AXES[2:], others, strict=True)}
        domain = ks.Domain({"S": range(states), "C": nested, **crossed}, within={"C": "S"})
    else:
        domain = ks.Domain({axis: range(n) for axis, n in zip("ABCDE", sizes, strict=False)})
    for same in range(min(sizes[:2])) if kind == "zeros" else ():
        domain = domain.without({"A": same, "B": same})
    return ks.Invariants.margins(domain, [*map(list, margins)])


def hierarchy(states: int, counties: int, tracts: int) -> sparse.csr_array:
    """The nation, its states and their counties as totals of tracts."""
    cells = np.arange(states * counties * tracts)
    parts = [np.zeros_like(cells), 1 + cells // (counties * tracts), 1 + states + cells // tracts]
    rows, columns = np.concatenate(parts), np.tile(cells, 3)
    shape = (1 + states + states * counties, len(cells))
    return sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=shape)


def level(name: str, kind: str) -> dict[str, Any]:
    """The exactness of a plan's sampling."""
    return {"level": ks.plan(keep=system(name), mechanism=mechanism(kind, EPSILON)).guarantee.sampling}


def _map(setting: Setting, section: Section) -> None:
    names = [name for name in MAPPED_SYSTEMS if not (setting.quick and name in SLOW)]
    steps = {
        name: {kind: setting.cache.step(level, name=MAPPED_SYSTEMS[name], kind=kind) for kind in MECHANISMS}
        for name in names
    }
    levels = {name: {kind: str(one["level"]) for kind, one in row.items()} for name, row in steps.items()}
    section.say(
        f"**Exactness by totals and noise**, ε = {EPSILON}, δ = 1e-6, from `plan.guarantee.sampling`. *Exact*: no "
        f"rounding; *rounded*: an exact method in floating-point numbers, with a stated bound; *estimated*: a chain, "
        f"whose convergence is measured by coupling before any release; *no sampler*: a release is refused. "
        f"Gaussian noise is wide at this ε; narrow noise in hundreds of overlapping dimensions is not exact "
        f"([docs/gaussian.md](../../docs/gaussian.md)). The paper's samplers are estimated everywhere."
    )
    section.table(
        "exactness", ["totals", *MECHANISMS.values()], [[name, *row.values()] for name, row in levels.items()]
    )
    _draw_map(setting, levels)
    section.figure("exactness", "How noise is drawn under which totals: exactly, rounded, estimated, or not at all")


def _draw_map(setting: Setting, levels: dict[str, dict[str, str]]) -> None:
    """A tile for each combination; the title counts those that are exact, and those that are not."""
    figure, panels = new(9.6, 0.4 * len(levels) + 1.5)
    axes = panels[0, 0]
    for row, by_kind in enumerate(levels.values()):
        for column, exactness in enumerate(by_kind.values()):
            axes.add_patch(_tile(column, row, SHADES[exactness]))
            colour = "white" if exactness in ("exact", "no sampler") else "black"
            axes.text(column, row, exactness, ha="center", va="center", color=colour)
    tiles = [exactness for by_kind in levels.values() for exactness in by_kind.values()]
    counts = {name: tiles.count(name) for name in SHADES if name in tiles}
    axes.set_title(f"Of {len(tiles)}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    axes.set_xticks(range(len(MECHANISMS)), list(MECHANISMS.values()))
    axes.set_yticks(range(len(levels)), list(levels))
    axes.set_xlim(-0.5, len(MECHANISMS) - 0.5)
    axes.set_ylim(len(levels) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    note(figure, f"ε = {EPSILON}, δ = 1e-6; the paper's chains are estimated in every tile")
    save(figure, setting.out, "exactness")


def _tile(column: int, row: int, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, facecolor=colour, edgecolor="none")


def by_race(state: str, rows: int, draws: int) -> dict[str, Any]:
    """The counties of a state by race with both margins kept: planned, drawn and checked."""
    table = races()[1][state]
    plan = ks.plan(keep=system(f"table {rows} 5"), mechanism=ks.Laplace.per_unit(epsilon=EPSILON))
    noise = plan.sample(draws, rng=ks.rng(seed=f"race {state}")).reshape(draws, *table.shape)
    broken = np.abs(noise.sum(axis=1)).sum() + np.abs(noise.sum(axis=2)).sum()
    return {
        "level": plan.guarantee.sampling,
        "broken": broken,
        "size": np.abs(noise).mean(axis=(0, 1)),
        "people": table.sum(axis=0),
        "negative": (table + noise < 0).mean(),
    }


def _county_by_race(setting: Setting, section: Section) -> None:
    names, tables = races()
    draws = setting.scaled(20, 2)
    chosen = ["WI"] if setting.quick else list(tables)
    by_state = {
        state: setting.cache.step(by_race, state=state, rows=len(tables[state]), draws=draws) for state in chosen
    }
    section.say(
        f"**County by race, both margins kept** (every county's population and every race's), ε = {EPSILON}, l1."
    )
    section.table(
        "county_by_race",
        ["state", "cells", "sampling", *(f"mean abs. noise, {name}" for name in names)],
        [
            [state, str(tables[state].size), str(one["level"]), *(f"{size:.2f}" for size in one["size"])]
            for state, one in by_state.items()
        ],
    )
    section.claims.append(
        Claim(
            "County by race: margins changed by the noise, all states",
            NOT_IN_PAPER,
            0,
            float(sum(int(one["broken"]) for one in by_state.values())),
            equal(),
        )
    )


def million(states: int, counties: int, tracts: int) -> dict[str, Any]:
    """A generated hierarchy: planned, drawn once, every total and the variance checked."""
    matrix = hierarchy(states, counties, tracts)
    plan = ks.plan(keep=ks.Invariants.matrix(matrix), mechanism=ks.Laplace.per_unit(epsilon=EPSILON))
    noise = plan.sample(rng=ks.rng(seed="million"))
    blocks = (noise.astype(float) ** 2).reshape(-1, tracts).mean(axis=1)  # counties are independent of each other
    law = plan.noise.variance(0)
    z = (blocks.mean() - law) / (blocks.std(ddof=1) / np.sqrt(len(blocks)))
    return {
        "level": plan.guarantee.sampling,
        "broken": np.count_nonzero(matrix @ noise),
        "totals": matrix.shape[0],
        "cells": matrix.shape[1],
        "variance": blocks.mean(),
        "law": law,
        "p": 2 * stats.norm.sf(abs(z)),
    }


def _million(setting: Setting, section: Section) -> None:
    one = setting.cache.step(million, states=50, counties=40, tracts=setting.scaled(500, 50))
    cells, totals = int(one["cells"]), int(one["totals"])
    section.say(
        f"**A hierarchy of {cells:,} cells**: nation, 50 states, 2,000 counties, tracts (generated), {totals:,} totals "
        f"kept, ε = {EPSILON}, l1, drawn in one go ({one['level']}). Variance of a cell {float(one['variance']):.3f}, "
        f"under the published distribution {float(one['law']):.3f}."
    )
    section.claims += [
        Claim(
            f"Hierarchy of {cells:,} cells: totals changed, of {totals:,}",
            NOT_IN_PAPER,
            0,
            int(one["broken"]),
            equal(),
        ),
        Claim(
            f"Hierarchy of {cells:,} cells: variance agrees with the published distribution (p-value)",
            NOT_IN_PAPER,
            float(one["law"]),
            float(one["p"]),
            not_rejected(RATE),
            paper_text=f"variance {float(one['law']):.3f}",
        ),
    ]

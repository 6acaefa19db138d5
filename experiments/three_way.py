"""Three-way tables under all two-way margins: which are drawn exactly, how often proposals are accepted, how fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.pages import EPSILONS, THREE_WAY, by_sides
from benchmarks.results import load, shown
from experiments.setting import Section


def add(section: Section) -> None:
    """Add the table that `make bench` measured."""
    figures = load()["figures"]
    section.say(
        "**Three-way tables** with all two-way margins kept, l1 Laplace noise: how plans draw them, CPU seconds of one "
        "core. *Layer splitting* is the same proof with vectors in place of integers, and is taken where its tables "
        "and those of its referee fit into memory."
    )
    section.table(
        "three_way",
        ["table", "ε", "method", "exactness", "proposals accepted", "draws per second"],
        [_row(figures, shape, epsilon) for shape in THREE_WAY for epsilon in EPSILONS],
    )


def _row(figures: Mapping[str, Any], shape: str, epsilon: str) -> list[str]:
    found = [
        shown(figures[name]) if (name := f"three-way/{shape}/{epsilon}/{what}") in figures else "-"
        for what in ("method", "exactness", "accepted", "draws_per_second")
    ]
    return [by_sides(shape), epsilon, *found]

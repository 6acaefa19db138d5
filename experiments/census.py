"""Read county populations, in the Census Bureau's layout or a plain one, and output of the DAS."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class State:
    """The counties of one state, by increasing population.

    Attributes
    ----------
    name, counties, population
        The state, its counties and their populations.
    das
        The populations published by the disclosure avoidance system, or None.
    vintage
        The demonstration product they come from.
    """

    name: str
    counties: tuple[str, ...]
    population: np.ndarray
    das: np.ndarray | None = None
    vintage: str = ""


def read_counties(path: Path) -> list[State]:
    """States in a file with columns state, county, population_2010, or in a co-est file (its SUMLEV 050 rows).

    Raises
    ------
    ValueError
        If the columns fit neither layout.
    """
    rows = _rows(path)
    columns = set(rows[0]) if rows else set()
    if {"SUMLEV", "STNAME", "CTYNAME", "CENSUS2010POP"} <= columns:
        # SUMLEV 040 is the state, 050 a county; "50" if a program has read it as a number.
        kept = [row for row in rows if row["SUMLEV"].strip().lstrip("0") == "50"]
        return _states([(row["STNAME"], row["CTYNAME"], int(row["CENSUS2010POP"])) for row in kept])
    if {"state", "county", "population_2010"} <= columns:
        return _states([(row["state"], row["county"], int(row["population_2010"])) for row in rows])
    raise ValueError(
        f"A county file must have columns state, county, population_2010, or SUMLEV, STNAME, CTYNAME, CENSUS2010POP; "
        f"{path.name} has {', '.join(sorted(columns)) or 'none'}."
    )


def read_das(path: Path) -> list[State]:
    """States in a file with columns state, county, population_2010, das_population and das_vintage."""
    rows = _rows(path)
    needed = {"state", "county", "population_2010", "das_population", "das_vintage"}
    if not rows or not needed <= set(rows[0]):
        raise ValueError(f"A DAS file must have columns {', '.join(sorted(needed))}; {path.name} has others.")
    states = []
    for name in dict.fromkeys(row["state"] for row in rows):
        counties = [row for row in rows if row["state"] == name]
        population = np.array([int(row["population_2010"]) for row in counties])
        order = np.argsort(population, kind="stable")
        states.append(
            State(
                name,
                tuple(counties[i]["county"] for i in order),
                population[order],
                np.array([int(row["das_population"]) for row in counties])[order],
                " and ".join(sorted({row["das_vintage"] for row in counties})),
            )
        )
    return states


def midwest() -> list[State]:
    """The 437 counties of five states that come with plotnine, used without a census file."""
    from plotnine.data import midwest

    names = {"IL": "Illinois", "IN": "Indiana", "MI": "Michigan", "OH": "Ohio", "WI": "Wisconsin"}
    return _states(
        [
            (names[state], re.sub(r"\bMc(\w)", lambda m: "Mc" + m[1].upper(), county.title()), int(population))
            for state, county, population in zip(midwest.state, midwest.county, midwest.poptotal, strict=True)
        ]
    )


def races() -> tuple[list[str], dict[str, np.ndarray]]:
    """County by race for the same five states: the names of the columns, and a table of (counties, 5) per state."""
    from plotnine.data import midwest

    columns = ["popwhite", "popblack", "popamerindian", "popasian", "popother"]
    tables = {
        str(state): part[columns].to_numpy().astype(np.int64)
        for state, part in midwest.groupby(midwest.state.astype(str))
    }
    return [name.removeprefix("pop") for name in columns], tables


def _rows(path: Path) -> list[dict[str, str]]:
    """The Bureau's files are in latin-1, most others in UTF-8."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return list(csv.DictReader(text.splitlines()))


def _states(rows: list[tuple[str, str, int]]) -> list[State]:
    by_state: dict[str, list[tuple[int, str]]] = {}
    for state, county, population in rows:
        by_state.setdefault(state, []).append((population, county))
    states = []
    for name, counties in by_state.items():
        counties.sort()
        states.append(State(name, tuple(county for _, county in counties), np.array([n for n, _ in counties])))
    return states

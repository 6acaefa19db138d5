"""Random systems of many kinds, and random tables of few people, most of them made so that changes are dear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice, pairwise
from typing import TypeAlias

import numpy as np
from scipy.optimize import linprog

from experiments.fibres.nearest import Counts, counts_of
from experiments.fibres.systems import Cell, Change, System

Rng: TypeAlias = np.random.Generator
Kind: TypeAlias = Callable[[Rng], System]
TABLES = 5  # of each system that is drawn


def lengths(rng: Rng, names: str | Sequence[str], most: int = 3) -> dict[str, int]:
    """Two or three categories for each axis, mostly two."""
    return {name: int(rng.integers(2, most + 1)) if rng.random() < 0.4 else 2 for name in names}


def with_zeros(rng: Rng, system: System, share: float) -> System:
    """The same system with some cells that are structural zeros, two cells at least being left."""
    number = min(len(system.cells) - 2, int(rng.binomial(len(system.cells), share)))
    drawn = rng.choice(len(system.cells), size=max(0, number), replace=False)
    zeros = frozenset(system.cells[k] for k in drawn)
    return System(system.axes, system.margins, system.weighted, zeros)


def nested(rng: Rng, above: int, most: int = 3) -> tuple[int, ...]:
    """For each category of a nested axis the one it lies in: one to three each."""
    return tuple(int(k) for k in np.repeat(np.arange(above), rng.integers(1, most + 1, size=above)))


# -- systems ---------------------------------------------------------------------------------------------------------


def hierarchy(rng: Rng) -> System:
    """Nested totals: states, counties, perhaps tracts, perhaps by sex, with structural zeros."""
    states = int(rng.integers(2, 4))
    counties = nested(rng, states)
    axes: dict[str, int | tuple[str, tuple[int, ...]]] = {"state": states, "county": ("state", counties)}
    margins: list[list[str]] = [["state"], ["county"]][: int(rng.integers(1, 3))]
    if rng.random() < 0.4:
        axes["tract"] = ("county", nested(rng, len(counties), 2))
    axes["sex"] = 2
    if rng.random() < 0.4:
        margins = [[*margin, "sex"] for margin in margins]
    if rng.random() < 0.5:
        axes["age"] = int(rng.integers(2, 4))
    return with_zeros(rng, System.of(axes, [[], *margins]), 0.2)


def two_way_zeros(rng: Rng) -> System:
    """Both margins of a two-way table with structural zeros: at random, or all but a cycle; perhaps a free axis."""
    rows, columns = (int(n) for n in rng.integers(2, 6, size=2))
    axes = {"row": rows, "column": columns}
    system = System.of(axes | ({"free": 2} if rng.random() < 0.3 else {}), [["row"], ["column"]])
    if rng.random() < 0.5 and min(rows, columns) > 2:
        cycle = min(rows, columns)
        kept = {(k, k) for k in range(cycle)} | {(k, (k + 1) % cycle) for k in range(cycle)}
        extra = {cell[:2] for cell in system.cells if rng.random() < 0.1}
        return System(system.axes, system.margins, (), frozenset(c for c in system.cells if c[:2] not in kept | extra))
    return with_zeros(rng, system, 0.35)


def one_way(rng: Rng) -> System:
    """One-way margins of three axes or four."""
    names = "ABCD"[: int(rng.integers(3, 5))]
    return System.of(lengths(rng, names), names)


def chain(rng: Rng) -> System:
    """{AB, BC, CD}, perhaps with DE."""
    names = "ABCDE"[: int(rng.integers(4, 6))]
    return System.of(lengths(rng, names), [a + b for a, b in pairwise(names)])


def star(rng: Rng) -> System:
    """{AB, AC, AD}, perhaps with AE, perhaps with a margin apart."""
    arms = "BCDE"[: int(rng.integers(2, 5))]
    apart = rng.random() < 0.5
    return System.of(
        lengths(rng, "A" + arms + "F" * apart, 2 + (len(arms) < 4)), ["A" + b for b in arms] + ["F"] * apart
    )


def star_apart(rng: Rng) -> System:
    """{AB, BC, BD, E}."""
    return System.of(lengths(rng, "ABCDE"), ["AB", "BC", "BD", "E"])


def nested_crossing(rng: Rng) -> System:
    """{county, state x sex, age}, or other margins of a nested axis that cross others."""
    states = int(rng.integers(2, 4))
    axes = {"state": states, "county": ("state", nested(rng, states)), "sex": 2, "age": int(rng.integers(2, 4))}
    choices = (
        [["county"], ["state", "sex"], ["age"]],
        [["county", "sex"], ["state", "age"]],
        [["county", "sex"], ["state", "sex", "age"]],
        [["county", "sex"], ["county", "age"]],
        [["state", "sex"], ["sex", "age"]],
        [["county", "age"], ["state", "sex"], ["sex"]],
    )
    return System.of(axes, choices[int(rng.integers(len(choices)))])


def two_families(rng: Rng) -> System:
    """Counties within states and jobs within industries, under margins of both."""
    states, industries = (int(n) for n in rng.integers(2, 4, size=2))
    axes = {
        "state": states,
        "county": ("state", nested(rng, states, 2)),
        "industry": industries,
        "job": ("industry", nested(rng, industries, 2)),
        "sex": 2,
    }
    choices = (
        [["county"], ["job"], ["state", "industry"]],
        [["county"], ["state", "industry"], ["sex"]],
        [["county", "industry"], ["state", "job"]],
        [["county"], ["job"]],
        [["county", "sex"], ["state", "job"]],
        [["state", "industry"], ["industry", "sex"], ["county"]],
    )
    return System.of(axes, choices[int(rng.integers(len(choices)))])


def siblings(rng: Rng) -> System:
    """Two axes nested in one: counties and school districts within states."""
    states = 2
    axes = {
        "state": states,
        "county": ("state", nested(rng, states, 2)),
        "district": ("state", nested(rng, states, 2)),
        "sex": 2,
    }
    choices = ([["county"], ["district"]], [["county"], ["state", "sex"]], [["county"], ["district", "sex"]], [["sex"]])
    return System.of(axes, choices[int(rng.integers(len(choices)))])


def layers(rng: Rng) -> System:
    """All two-way margins of r x c x 2."""
    r, c = (int(n) for n in rng.integers(2, 5, size=2))
    return System.of({"row": r, "column": c, "layer": 2}, combinations(("row", "column", "layer"), 2))


def cube(rng: Rng) -> System:
    """All two-way margins of 3 x 3 x 3, sometimes with an axis in no margin."""
    axes = {"row": 3, "column": 3, "layer": 3} | ({"free": 2} if rng.random() < 0.1 else {})
    return System.of(axes, combinations(("row", "column", "layer"), 2))


def weighted(rng: Rng) -> System:
    """One or two rows of weights over the categories of an axis, perhaps with a margin of another."""
    size = int(rng.integers(3, 6))
    axes = {"group": size, "sex": 2} if rng.random() < 0.4 else {"group": size}
    plain = System.of(axes)
    rows = [rng.integers(0, 4, size=size) for _ in range(int(rng.integers(1, 3)))]
    entries = [[int(row[cell[0]]) for cell in plain.cells] for row in rows]
    margins = [["sex"]] if len(axes) == 2 and rng.random() < 0.5 else []
    return System.of(axes, margins, entries)


def one_way_zeros(rng: Rng) -> System:
    """One-way margins of 2 x 2 x 2 or of 3 x 2 x 2 with structural zeros."""
    axes = {"A": int(rng.integers(2, 4)), "B": 2, "C": 2}
    return with_zeros(rng, System.of(axes, "ABC"), 0.2)


def two_margins_zeros(rng: Rng) -> System:
    """{AB, BC} with structural zeros."""
    return with_zeros(rng, System.of(lengths(rng, "ABC", 4), ["AB", "BC"]), 0.2)


def decomposable(rng: Rng) -> System:
    """A random set of decomposable margins: each shares with one of those before it a part of that one."""
    sets: list[set[str]] = []
    names = iter("ABCDEF")
    for _ in range(int(rng.integers(2, 5))):
        shared = set()
        if sets:
            before = sorted(sets[int(rng.integers(len(sets)))])
            shared = set(rng.choice(before, size=int(rng.integers(0, len(before))), replace=False).tolist())
        new = {name for name in [next(names, None) for _ in range(int(rng.integers(1, 3)))] if name}
        if new:
            sets.append(shared | new)
    used = sorted(set().union(*sets))
    free = [name for name in [next(names, None)] if name and rng.random() < 0.3]
    return System.of(lengths(rng, [*used, *free]), [sorted(margin) for margin in sets])


def tailed_cycle(rng: Rng) -> System:
    """Margins that are not decomposable, with an axis in just one: {AB, BC, CA, AD}."""
    axes = lengths(rng, "ABCD")
    return System.of(axes, ["AB", "BC", "CA", "AD"] if rng.random() < 0.5 else ["AB", "BC", "CA", "D"])


def four_cycle(rng: Rng) -> System:
    """{AB, BC, CD, DA}, binary."""
    return System.of(dict.fromkeys("ABCD", 2), ["AB", "BC", "CD", "DA"])


def subsets(rng: Rng) -> System:
    """Totals of random sets of cells of a two-way table, which overlap; some cells may be in none."""
    axes = {"A": int(rng.integers(2, 4)), "B": int(rng.integers(2, 4))}
    size = axes["A"] * axes["B"]
    rows = (rng.random((int(rng.integers(1, 4)), size)) < 0.5).astype(int)
    return System.of(axes, [], [row for row in rows.tolist() if any(row)] or [[1] * size])


KINDS: dict[str, Kind] = {
    "hierarchies with zeros": hierarchy,
    "two-way with zeros": two_way_zeros,
    "one-way margins": one_way,
    "chains": chain,
    "stars": star,
    "{AB, BC, BD, E}": star_apart,
    "nested with crossing": nested_crossing,
    "two nested families": two_families,
    "two axes nested in one": siblings,
    "r x c x 2": layers,
    "3 x 3 x 3": cube,
    "weighted": weighted,
    "one-way margins with zeros": one_way_zeros,
    "{AB, BC} with zeros": two_margins_zeros,
    "decomposable": decomposable,
    "cycle with a tail": tailed_cycle,
    "four-cycle": four_cycle,
    "subsets": subsets,
}


# -- tables ----------------------------------------------------------------------------------------------------------


def random_people(rng: Rng, system: System) -> Counts:
    """A few people anywhere."""
    x = np.zeros(len(system.cells), dtype=np.int64)
    np.add.at(x, rng.integers(len(x), size=int(rng.integers(2, 9))), 1)
    return x


def witnesses(rng: Rng, system: System, change: Change | None = None) -> Counts:
    """Somebody, for each margin somebody else who is like the cell to go to there, and few or none besides."""
    change = random_change(rng, system) if change is None else change
    if change is None:
        return random_people(rng, system)
    target = system.cells[change.targets[int(rng.integers(len(change.targets)))]]
    people = [system.cells[change.i]]
    people += [_unlike(rng, system, target, margin) for margin in system.margins if margin & change.changed]
    people += [system.cells[int(k)] for k in rng.integers(len(system.cells), size=int(rng.choice([0, 0, 0, 1, 2])))]
    return counts_of(system, people)


def random_change(rng: Rng, system: System) -> Change | None:
    """A change of somebody to a value that some cell has: of two, the one that more margins meet."""
    possible = [change for change in system.changes(int(rng.integers(len(system.cells)))) if change.targets]
    drawn = [possible[int(k)] for k in rng.integers(len(possible), size=2)] if possible else []
    return max(drawn, key=lambda change: sum(bool(m & change.changed) for m in system.margins), default=None)


def _unlike(rng: Rng, system: System, target: Cell, margin: frozenset[str]) -> Cell:
    """A cell that is like the target on a margin and, mostly, on nothing else."""
    places = [system.place[name] for name in margin]
    like = [cell for cell in system.cells if all(cell[k] == target[k] for k in places)]
    same = np.array([sum(a == b for a, b in zip(cell, target, strict=True)) for cell in like])
    if rng.random() < 0.6:
        like = [cell for cell, number in zip(like, same, strict=True) if number == same.min()]
    return like[int(rng.integers(len(like)))]


def circuit(rng: Rng, system: System) -> Counts:
    """The people whom a change of smallest support takes away, which is what a long way round starts from."""
    size = len(system.cells)
    cost = np.where(rng.random(size) < 0.5, rng.exponential(size=size), 0) if rng.random() < 0.5 else rng.random(size)
    j = int(rng.integers(size))
    both = np.hstack([system.kept, -system.kept]).astype(float)
    bounds = [(1, None) if k == j else (0, 0) if k == size + j else (0, None) for k in range(2 * size)]
    found = linprog(np.tile(cost, 2) + 1e-6, A_eq=both, b_eq=np.zeros(len(both)), bounds=bounds, method="highs-ds")
    if found.status != 0:
        return random_people(rng, system)
    change = found.x[:size] - found.x[size:]
    scale = next((n for n in range(1, 13) if np.allclose(n * change, np.rint(n * change), atol=1e-7)), 0)
    x = np.maximum(0, -np.rint(scale * change).astype(np.int64))
    if not 0 < x.sum() <= 30:
        return random_people(rng, system)
    if rng.random() < 0.3:
        x[int(rng.integers(size))] += 1
    return x


def permutations(rng: Rng, system: System) -> Counts:
    """One person in each row and layer, no two in a column of a layer: the dearest tables of r x c x 2 are such."""
    x = np.zeros(len(system.cells), dtype=np.int64)
    row, column, layer = (system.axes[k].length for k in range(3))
    shift = rng.permutation(column)
    for level in range(layer):
        for k in range(min(row, column)):
            cell = (k, int(shift[(k + level) % min(row, column)]), level, *(0 for _ in system.axes[3:]))
            x[system.number[cell]] += 1
    return x


def draw_table(rng: Rng, system: System, name: str) -> Counts:
    """A table of one of these makes."""
    makes: list[Callable[[Rng, System], Counts]] = [random_people, circuit, circuit]
    if system.margins:
        makes += [witnesses, witnesses, witnesses]
    if name in ("r x c x 2", "3 x 3 x 3"):
        makes += [permutations]
    return makes[int(rng.integers(len(makes)))](rng, system)


def draw_system(rng: Rng, name: str) -> System:
    """A system of a kind that leaves some cell open."""
    system = KINDS[name](rng)
    while len(system.pinned) == len(system.cells):
        system = KINDS[name](rng)
    return system


def known(name: str) -> Iterator[tuple[System, Counts]]:
    """The dearest tables of a kind that are known, which its random fibres begin with."""
    if name == "two-way with zeros":
        for n in (3, 4, 5):
            open_cells = {(k, k) for k in range(n)} | {(k, (k + 1) % n) for k in range(n)}
            plain = System.of({"row": n, "column": n}, [["row"], ["column"]])
            system = System(plain.axes, plain.margins, (), frozenset(plain.cells) - open_cells)
            yield system, counts_of(system, [(k, k) for k in range(n)])
    if name == "chains":
        system = System.of(dict.fromkeys("ABCD", 2), ["AB", "BC", "CD"])
        yield system, counts_of(system, [(0, 0, 0, 0), (0, 1, 1, 0), (1, 1, 0, 1)])
    if name == "{AB, BC, BD, E}":
        system = System.of(dict.fromkeys("ABCDE", 2), ["AB", "BC", "BD", "E"])
        people = [(0, 0, 0, 0, 0), (0, 1, 1, 1, 1), (1, 1, 0, 1, 1), (1, 1, 1, 0, 1)]
        yield system, counts_of(system, people)
    if name == "nested with crossing":
        axes = {"state": 2, "county": ("state", (0, 0, 1, 1)), "sex": 2, "age": 2}
        system = System.of(axes, [["county"], ["state", "sex"], ["age"]])
        yield system, counts_of(system, [(0, 0, 0, 0), (1, 2, 1, 1), (1, 3, 0, 1)])
    if name == "r x c x 2":
        for n in (3, 4, 5):
            axes = {"row": n, "column": n, "layer": 2}
            system = System.of(axes, combinations(axes, 2))
            yield system, counts_of(system, [(k, (k + z) % n, z) for k in range(n) for z in range(2)])
    if name == "weighted":
        system = System.of({"group": 3}, weighted=[[1, 2, 3]])
        yield system, counts_of(system, [(1,), (1,)])
    if name == "one-way margins with zeros":
        zeros = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
        system = System.of(dict.fromkeys("ABC", 2), "ABC", zeros=zeros)
        yield system, counts_of(system, [(0, 0, 0), (1, 1, 1), (1, 1, 1)])


def fibres(rng: Rng, name: str, number: int) -> Iterator[tuple[System, Counts]]:
    """So many fibres of a kind: those that are known, then random ones, a few of each system."""
    yield from islice(known(name), number)
    for k in range(number - len(list(known(name)))):
        if k % TABLES == 0:
            system = draw_system(rng, name)
        yield system, draw_table(rng, system, name)

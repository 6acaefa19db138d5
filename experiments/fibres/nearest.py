"""The nearest real table in which somebody is in a given cell: by integer programming, and by listing a small fibre.

Real tables have counts of 0 or more, and no count where there is no cell. A solver proposes a table, integers check it:
its totals, its counts and its length are computed again, and the solver's own lower bound leaves no room for a shorter
one. In the l2 norm lengths are squares; a count that changes by n costs 1 + 3 + 5 + ... + (2n - 1), unit by unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp

from experiments.fibres.systems import Change, Rows, System

Counts: TypeAlias = npt.NDArray[np.int64]
Reals: TypeAlias = npt.NDArray[np.float64]
Focus: TypeAlias = Sequence[tuple[int, Rows]]  # the weight of each focus, and its totals
MOST_TABLES = 200_000  # of a fibre that is listed


class UnsolvedError(Exception):
    """The solver did not prove that its table is the nearest one."""


@dataclass(frozen=True)
class Measure:
    """The length of a change: l1, or the square of l2; with a focus, l1 and what focused totals change, weighed."""

    norm: str = "l1"
    weight: int = 1
    focus: Focus = ()

    def length(self, change: Counts) -> int:
        """The length, in integers."""
        if self.norm == "l2":
            return int((change**2).sum())
        return self.weight * int(abs(change).sum()) + sum(w * int(abs(rows @ change).sum()) for w, rows in self.focus)


L1, L2 = Measure(), Measure("l2")


@dataclass
class Nearest:
    """The nearest tables to one real table x, each solved once.

    Examples
    --------
    >>> chain = System.of({"A": 2, "B": 2, "C": 2, "D": 2}, ["AB", "BC", "CD"])
    >>> people = [(0, 0, 0, 0), (0, 1, 1, 0), (1, 1, 0, 1)]
    >>> fibre = Nearest(chain, counts_of(chain, people))
    >>> to_b = next(c for c in chain.changes(chain.number[0, 0, 0, 0]) if c.axis == "B")
    >>> fibre.weak(to_b), fibre.strong(to_b), fibre.listed(chain.kept, to_b.targets[0])
    (6, None, 6)
    """

    system: System
    x: Counts
    measure: Measure = L1
    solved: int = 0
    _known: dict[tuple[frozenset[str] | None, int], int | None] = field(default_factory=dict, repr=False)

    def weak(self, change: Change) -> int | None:
        """The distance of the nearest table with somebody in a target, everybody else anywhere; None without one."""
        return self._smallest(change, None)

    def strong(self, change: Change) -> int | None:
        """The same where everybody else keeps all attributes but those that change."""
        return self._smallest(change, change.changed)

    def _smallest(self, change: Change, changed: frozenset[str] | None) -> int | None:
        distances = [self._distance(changed, j) for j in change.targets]
        return min((d for d in distances if d is not None), default=None)

    def _distance(self, changed: frozenset[str] | None, j: int) -> int | None:
        if self.x[j] > 0:
            return 0
        key = (changed, j)
        if key not in self._known:
            rows = self.rows(changed)
            self._known[key] = nearest(rows, self.x, j, self.measure)
            self.solved += 1
        return self._known[key]

    def rows(self, changed: frozenset[str] | None) -> Rows:
        """The totals that stay: those that are kept and, in the strong reading, what is known of the others."""
        kept = self.system.kept
        return kept if changed is None else np.unique(np.vstack([kept, self.system.others(changed)]), axis=0)

    def listed(self, rows: Rows, j: int) -> int | None:
        """The same distance by listing every table of the fibre."""
        lengths = (self.measure.length(y - self.x) for y in tables(rows, self.x) if y[j] > 0)
        return min(lengths, default=None)


def counts_of(system: System, people: Sequence[tuple[int, ...]]) -> Counts:
    """The table of a list of people."""
    x = np.zeros(len(system.cells), dtype=np.int64)
    for cell in people:
        x[system.number[cell]] += 1
    return x


def possible(rows: Rows, x: Counts) -> npt.NDArray[np.bool_]:
    """The cells that may have a count in some table with the totals of x: none of their totals is too small."""
    signless = rows[(rows >= 0).all(axis=1)]
    return np.asarray((signless <= (signless @ x)[:, None]).all(axis=0))


# -- integer programming ---------------------------------------------------------------------------------------------


def nearest(rows: Rows, x: Counts, j: int, measure: Measure = L1) -> int | None:
    """The smallest length of y - x over real tables y with the totals of x and somebody in cell j; None without one."""
    up = np.flatnonzero(possible(rows, x))
    if x[j] > 0 or j not in up:
        return 0 if x[j] > 0 else None
    down = np.flatnonzero(x)
    place, costs, upper = _variables(np.append(up, down), len(up), x, measure)
    signs = np.where(np.arange(len(up) + len(down)) < len(up), 1, -1)[place]
    cells = np.append(up, down)[place]  # each variable raises or lowers the count of a cell
    lower = np.zeros(len(cells))
    lower[int(np.flatnonzero(cells == j)[0])] = 1
    matrix = np.unique(rows[:, cells] * signs, axis=0)
    matrix = matrix[(matrix != 0).any(axis=1)]
    constraints = [LinearConstraint(matrix, 0, 0)]
    if measure.focus:
        further = np.vstack([totals for _, totals in measure.focus])
        constraints = _with_focus(matrix, further[:, cells] * signs)
        costs = np.append(costs, [weight for weight, totals in measure.focus for _ in totals])
        lower, upper = np.append(lower, np.zeros(len(further))), np.append(upper, np.full(len(further), np.inf))
    result = milp(
        costs,
        integrality=np.ones(len(costs)),
        bounds=Bounds(lower, upper),
        constraints=constraints,
        options={"mip_rel_gap": 0},
    )
    if result.status == 2:
        return None
    if result.status != 0:
        raise UnsolvedError(result.message)
    y = x.copy()
    np.add.at(y, cells, signs * np.rint(result.x[: len(cells)]).astype(np.int64))
    return _checked(rows, x, j, y, measure, result.mip_dual_bound)


def _variables(cells: Counts, gaining: int, x: Counts, measure: Measure) -> tuple[npt.NDArray[np.int64], Reals, Reals]:
    """Variables: how much each cell gains or loses, in one piece or, in the l2 norm, unit by unit at a rising cost."""
    most = np.where(np.arange(len(cells)) < gaining, x.sum(), x[cells])
    if measure.norm == "l1":
        return np.arange(len(cells)), np.full(len(cells), float(measure.weight)), most.astype(float)
    costs = np.concatenate([2.0 * np.arange(m) + 1 for m in most])
    return np.repeat(np.arange(len(cells)), most), costs, np.ones(len(costs))


def _with_focus(matrix: Rows, totals: Rows) -> list[LinearConstraint]:
    """Further variables, no smaller than the change of each focused total, up or down."""
    none, one = np.zeros((len(matrix), len(totals))), np.eye(len(totals))
    return [
        LinearConstraint(np.hstack([matrix, none]), 0, 0),
        LinearConstraint(np.hstack([totals, -one]), -np.inf, 0),
        LinearConstraint(np.hstack([-totals, -one]), -np.inf, 0),
    ]


def _checked(rows: Rows, x: Counts, j: int, y: Counts, measure: Measure, bound: float) -> int:
    """The length of y - x, once y is a real table with the same totals and no shorter change is possible."""
    if (y < 0).any() or y[j] < 1 or (rows @ y != rows @ x).any():
        raise UnsolvedError("The table of the solver does not have the totals.")
    length = measure.length(y - x)
    if math.ceil(bound - 1e-6) < length - (1 if measure.norm == "l1" and measure.weight == 1 else 0):
        raise UnsolvedError(f"A length of {length} was found, and only {bound} is proved.")
    return length


# -- listing ---------------------------------------------------------------------------------------------------------


def tables(rows: Rows, x: Counts, most: int = MOST_TABLES) -> Iterator[Counts]:
    """Every real table with the totals of x, which must bound every count (weights are not negative)."""
    if (rows < 0).any():
        raise ValueError("Weights must not be negative.")
    cells = np.flatnonzero(possible(rows, x))
    columns = [rows[:, cell] for cell in cells]
    later = np.zeros((len(cells) + 1, len(rows)), dtype=bool)  # whether a total has a cell from here on
    for k in range(len(cells) - 1, -1, -1):
        later[k] = later[k + 1] | (columns[k] > 0)
    y, count = np.zeros(len(x), dtype=np.int64), 0

    def fill(k: int, rest: Counts) -> Iterator[Counts]:
        nonlocal count
        if (rest[~later[k]] != 0).any():
            return
        if k == len(cells):
            count += 1
            if count > most:
                raise UnsolvedError(f"There are more than {most} tables.")
            yield y.copy()
            return
        positive = columns[k] > 0
        for number in range(int((rest[positive] // columns[k][positive]).min()) + 1):
            y[cells[k]] = number
            yield from fill(k + 1, rest - number * columns[k])
        y[cells[k]] = 0

    return fill(0, rows @ x)

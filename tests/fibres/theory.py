"""The rules of one person's distance as they are written down, change by change, without Keepsum's planning.

Longest Graver elements are those that are proved (two margins; r x c x 2; 3 x 3 x 3), or enumerated (Pottier) where
that takes little.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from experiments.fibres.comparison import Stated, described
from experiments.fibres.nearest import L1, L2, Measure, Nearest
from experiments.fibres.systems import Change, System

MOST_GRAVER = 60  # elements; more take long


@dataclass(frozen=True)
class Figure:
    """A distance by a rule: of the l1 norm, and its square of the l2 norm where that is known."""

    length: int
    rule: str
    reading: str
    exact: bool
    square: int | None = None


@dataclass(frozen=True)
class Theory:
    system: System

    @cached_property
    def maximal(self) -> list[frozenset[str]]:
        """The maximal kept margins, without axes of one category, or of one in each category of their parent."""
        length = {axis.name: axis.length for axis in self.system.axes}
        several = {axis.name for axis in self.system.axes if axis.length > (length[axis.parent] if axis.parent else 1)}
        closed = {margin & several for margin in self.system.margins}
        return [m for m in closed if m and not any(m < other for other in closed)]

    @cached_property
    def crossed(self) -> bool:
        return not self.system.zeros and not self.system.weighted

    def figure(self, change: Change, j: int) -> Figure | None:
        """The figure for a change to the cell j, one of its targets; None where none is known."""
        kept = self.system.kept
        if (kept[:, change.i] == kept[:, j]).all():
            return Figure(2, "move", "strong", True, 2)
        meeting = [margin for margin in self.maximal if margin & change.changed]
        k = len(meeting)
        if self.crossed and k == 1:
            return Figure(4, "exchange", "strong", self.exchange_attained(meeting[0], change.changed), 4)
        if self.crossed and k >= 2 and decomposable(self.component(meeting)):
            square = 2 * (k + 1) if k <= 2 else (k - 1) ** 2 + k + 3
            return Figure(2 * (k + 1), "junction tree", "weak", k < len(self.maximal), square)
        longest = self.blocks(change.i, j)
        if longest is None:
            return None
        least = 2 * (k + 1) if not self.system.weighted else 0
        return Figure(max(longest, least), "block", "weak", False)

    def exchange_attained(self, margin: frozenset[str], changed: frozenset[str]) -> bool:
        """Two cells agree on the margin less what changes, differ on both, and in an axis outside of both."""
        places = self.system.place
        less = [places[a] for a in margin - changed]
        both = [places[a] for a in margin & changed]
        outside = [k for a, k in places.items() if a not in margin | changed]
        return any(
            all(p[k] == q[k] for k in less) and any(p[k] != q[k] for k in both) and any(p[k] != q[k] for k in outside)
            for p in self.system.cells
            for q in self.system.cells
        )

    def component(self, meeting: list[frozenset[str]]) -> list[frozenset[str]]:
        """The maximal margins that are connected with those."""
        connected = set(meeting)
        while True:
            axes = frozenset().union(*connected)
            more = {margin for margin in self.maximal if margin & axes}
            if more == connected:
                return list(connected)
            connected = more

    # -- blocks ---------------------------------------------------------------------------------------

    @cached_property
    def regions(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns that differ, and which one each cell has."""
        columns, region = np.unique(self.system.kept, axis=1, return_inverse=True)
        return columns, region.reshape(-1)

    @cached_property
    def block_of(self) -> list[int | None]:
        """The block of each region; None for a region whose sum is kept."""
        return matroid_blocks(self.regions[0])

    def blocks(self, i: int, j: int) -> int | None:
        """What the blocks of two cells of different regions need."""
        _, region = self.regions
        parts = [self.block_of[region[cell]] for cell in (i, j)]
        if parts[0] is not None and parts[0] == parts[1]:
            return self.longest(parts[0])
        needs = [2 if part is None else self.longest(part) for part in parts]
        return None if None in needs else sum(needs)

    def longest(self, block: int) -> int | None:
        """The longest Graver element of a block, or a bound."""
        known = self.__dict__.setdefault("_longest", {})
        if block not in known:
            known[block] = self._longest_of(block)
        return known[block]

    def _longest_of(self, block: int) -> int | None:
        inside = [k for k, b in enumerate(self.block_of) if b == block]
        if self.crossed and is_full_table(self.system, self.maximal):
            sizes = sorted(axis.length for axis in self.system.axes if any(axis.name in m for m in self.maximal))
            while len(sizes) > 2 and sizes[0] == 2:
                sizes = sizes[1:]
            doubled = 2 ** (len(self.maximal) - len(sizes))
            if len(sizes) == 2:
                return 4 if doubled == 1 else doubled * 2 * min(sizes)
            if sizes == [3, 3, 3]:
                return 18 * doubled
        if not self.system.weighted and len(self.maximal) == 2:
            pairs = self._two_margins(inside)
            return 2 * min(len({p[0] for p in pairs}), len({p[1] for p in pairs}))
        return graver_length(self.regions[0][:, inside])

    def _two_margins(self, inside: list[int]) -> list[tuple[tuple[int, ...], ...]]:
        places = [[self.system.place[a] for a in margin] for margin in self.maximal]
        _, region = self.regions
        cells = [self.system.cells[int(np.flatnonzero(region == k)[0])] for k in inside]
        return [tuple(tuple(cell[k] for k in ps) for ps in places) for cell in cells]


def stated_by_theory(system: System, measure: Measure = L1) -> dict[str, Stated]:
    """The largest figure of each attribute, as a plan states it."""
    theory = Theory(system)
    figures: dict[str, list[Figure | None]] = {}
    for i in range(len(system.cells)):
        for change in system.changes(i):
            if i not in system.pinned and not system.pinned.issuperset(change.targets):
                figures.setdefault(change.axis, []).extend(theory.figure(change, j) for j in change.targets)
    return {axis.name: _largest(figures.get(axis.name, []), measure) for axis in system.axes}


def _largest(figures: list[Figure | None], measure: Measure) -> Stated:
    if any(figure is None or (measure == L2 and figure.square is None) for figure in figures):
        return Stated(None, known=False)
    if not figures:
        return Stated(None, unprotected=True)
    largest = max(figure.length if measure == L1 else figure.square for figure in figures)
    exact = measure == L1 and any(figure.exact and figure.length == largest for figure in figures)
    strong = all(figure.reading == "strong" for figure in figures)
    return Stated(largest, strong=strong, exact=exact, unprotected=True)


@dataclass
class Tally:
    """Changes, one target at a time, against their figures."""

    theory: Theory
    compared: int = 0
    wrong: list[str] = field(default_factory=list)
    attained: set[tuple[str, int]] = field(default_factory=set)

    def add(self, x: np.ndarray) -> None:
        system = self.theory.system
        l1, l2 = Nearest(system, x), Nearest(system, x, L2)
        for i in np.flatnonzero(x):
            for change in system.changes(int(i)):
                for j in change.targets:
                    figure = None if x[j] else self.theory.figure(change, j)
                    if figure is not None:
                        self._one(replace(change, targets=(j,)), figure, l1, l2)

    def _one(self, change: Change, figure: Figure, l1: Nearest, l2: Nearest) -> None:
        weak = l1.weak(change)
        if weak is None:
            return
        distance = l1.strong(change) if figure.reading == "strong" else weak
        square = l2.weak(change) if figure.square is not None and distance == figure.length > 4 else 0
        self.compared += 1
        if distance is None or distance > figure.length or square > (figure.square or 0):
            self.wrong.append(f"{described(l1, change)}: {distance}, squared {square}, against {figure}")
        if distance == figure.length:
            self.attained.add((figure.rule, distance))


def decomposable(margins: list[frozenset[str]]) -> bool:
    """Whether ears can be taken off one by one (GYO)."""
    left = [set(margin) for margin in margins]
    while len(left) > 1:
        ear = next(
            (
                m
                for m in left
                if any(
                    o is not m and all(a in o or not any(a in p for p in left if p is not m) for a in m) for o in left
                )
            ),
            None,
        )
        if ear is None:
            return False
        left = [m for m in left if m is not ear]
    return True


def is_full_table(system: System, maximal: list[frozenset[str]]) -> bool:
    axes = frozenset().union(*maximal) if maximal else frozenset()
    free_of_nesting = all(axis.parent is None for axis in system.axes if axis.name in axes)
    return free_of_nesting and len(axes) >= 2 and set(maximal) == {axes - {a} for a in axes}


def matroid_blocks(columns: np.ndarray) -> list[int | None]:
    """Columns that share a circuit, by fundamental circuits; None for a column in no circuit."""
    matrix = [[Fraction(int(entry)) for entry in row] for row in columns]
    pivots, row = [], 0
    for c in range(columns.shape[1]):
        found = next((r for r in range(row, len(matrix)) if matrix[r][c]), None)
        if found is None:
            continue
        matrix[row], matrix[found] = matrix[found], matrix[row]
        pivot = matrix[row][c]
        matrix[row] = [entry / pivot for entry in matrix[row]]
        for r in range(len(matrix)):
            if r != row and matrix[r][c]:
                factor = matrix[r][c]
                matrix[r] = [a - factor * b for a, b in zip(matrix[r], matrix[row], strict=True)]
        pivots.append(c)
        row += 1
    label: list[int | None] = [None] * columns.shape[1]
    for c in range(columns.shape[1]):
        if c in pivots:
            continue
        circuit = [c, *(pivots[r] for r in range(len(pivots)) if matrix[r][c])]
        merged = {label[k] for k in circuit if label[k] is not None} | {c}
        label = [c if k in circuit or (b is not None and b in merged) else b for k, b in enumerate(label)]
    return label


def integer_kernel(columns: np.ndarray) -> list[tuple[int, ...]]:
    """A basis of the integer vectors that a matrix takes to 0, by unimodular column operations."""
    work = [[int(e) for e in column] for column in columns.T]
    unit = [[int(a == b) for a in range(len(work))] for b in range(len(work))]
    start = 0
    for r in range(columns.shape[0]):
        while True:
            nonzero = sorted((k for k in range(start, len(work)) if work[k][r]), key=lambda k: abs(work[k][r]))
            if len(nonzero) <= 1:
                break
            small = nonzero[0]
            for k in nonzero[1:]:
                q = work[k][r] // work[small][r]
                work[k] = [a - q * b for a, b in zip(work[k], work[small], strict=True)]
                unit[k] = [a - q * b for a, b in zip(unit[k], unit[small], strict=True)]
        if nonzero:
            work[start], work[nonzero[0]] = work[nonzero[0]], work[start]
            unit[start], unit[nonzero[0]] = unit[nonzero[0]], unit[start]
            start += 1
    return [tuple(u) for u in unit[start:]]


def graver_length(columns: np.ndarray) -> int | None:
    """The longest element of the Graver basis, by Pottier's algorithm; None if there are too many."""
    basis = integer_kernel(columns)
    elements = {v for b in basis for v in (b, tuple(-e for e in b))}

    def reduced(vector: tuple[int, ...]) -> tuple[int, ...]:
        again = True
        while again and any(vector):
            again = False
            for g in elements:
                if all(a * b >= 0 and abs(a) <= abs(b) for a, b in zip(g, vector, strict=True)):
                    vector = tuple(b - a for a, b in zip(g, vector, strict=True))
                    again = True
                    break
        return vector

    queue = [(f, g) for f in elements for g in elements]
    while queue:
        f, g = queue.pop()
        rest = reduced(tuple(a + b for a, b in zip(f, g, strict=True)))
        if any(rest):
            for new in (rest, tuple(-e for e in rest)):
                queue += [(new, old) for old in elements]
                elements.add(new)
            if len(elements) > MOST_GRAVER:
                return None
    minimal = [
        v
        for v in elements
        if not any(g != v and all(a * b >= 0 and abs(a) <= abs(b) for a, b in zip(g, v, strict=True)) for g in elements)
    ]
    return max(sum(abs(e) for e in v) for v in minimal)

"""A small system: axes, nesting, structural zeros and kept totals; and the changes of one person's values in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

import keepsum as ks

Cell: TypeAlias = tuple[int, ...]
Rows: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Axis:
    """An attribute; for a nested one, its parent axis and the category of the parent that each category lies in."""

    name: str
    length: int
    parent: str | None = None
    lies_in: tuple[int, ...] = ()


@dataclass(frozen=True)
class Change:
    """Somebody in cell ``i`` has another value of ``axis``: the cells they may be in, and the axes that change."""

    i: int
    axis: str
    value: int
    targets: tuple[int, ...]
    changed: frozenset[str]


@dataclass(frozen=True)
class System:
    """Cells and kept totals: margins, or integer rows over the cells in order.

    Examples
    --------
    >>> places = System.of({"state": 2, "county": ("state", (0, 0, 1)), "sex": 2}, [["county"], ["state", "sex"]])
    >>> places.cells[:3], len(places.cells), places.margins[0] == {"state", "county"}
    (((0, 0, 0), (0, 0, 1), (0, 1, 0)), 6, True)
    >>> change = next(c for c in places.changes(0) if c.axis == "county" and c.value == 2)
    >>> sorted(change.changed), [places.cells[j] for j in change.targets]
    (['county', 'state'], [(1, 2, 0)])
    """

    axes: tuple[Axis, ...]
    margins: tuple[frozenset[str], ...] = ()
    weighted: tuple[tuple[int, ...], ...] = ()
    zeros: frozenset[Cell] = frozenset()
    kind: str = ""

    @classmethod
    def of(
        cls,
        axes: Mapping[str, int | tuple[str, tuple[int, ...]]],
        margins: Iterable[Iterable[str]] = (),
        weighted: Iterable[Iterable[int]] = (),
        zeros: Iterable[Cell] = (),
        kind: str = "",
    ) -> System:
        """A system from lengths of axes, or (parent, categories of the parent); margins have the parents, too."""
        made = tuple(
            Axis(name, size) if isinstance(size, int) else Axis(name, len(size[1]), *size)
            for name, size in axes.items()
        )
        parents = {axis.name: axis.parent for axis in made}

        def closed(margin: Iterable[str]) -> frozenset[str]:
            names = set()
            for name in margin:
                above: str | None = name
                while above is not None:
                    names.add(above)
                    above = parents[above]
            return frozenset(names)

        rows = tuple(tuple(int(entry) for entry in row) for row in weighted)
        return cls(made, tuple(closed(margin) for margin in margins), rows, frozenset(zeros), kind)

    @cached_property
    def place(self) -> dict[str, int]:
        """The place of each axis."""
        return {axis.name: k for k, axis in enumerate(self.axes)}

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells: every combination of categories that lie in one another, less the structural zeros."""
        nested = [(k, self.place[axis.parent], axis.lies_in) for k, axis in enumerate(self.axes) if axis.parent]
        every = product(*(range(axis.length) for axis in self.axes))
        possible = (cell for cell in every if all(inside[cell[k]] == cell[above] for k, above, inside in nested))
        return tuple(cell for cell in possible if cell not in self.zeros)

    @cached_property
    def number(self) -> dict[Cell, int]:
        """The number of each cell."""
        return {cell: k for k, cell in enumerate(self.cells)}

    def ancestors(self, axis: str) -> Iterator[str]:
        """The axis and those that it is nested in, upwards."""
        above: str | None = axis
        while above is not None:
            yield above
            above = self.axes[self.place[above]].parent

    def descendants(self, axis: str) -> frozenset[str]:
        """The axis and all that are nested in it."""
        return frozenset(other.name for other in self.axes if axis in self.ancestors(other.name))

    # -- totals -------------------------------------------------------------------------------------

    def margin_rows(self, names: Iterable[str]) -> Rows:
        """A row of zeros and ones for each total of a margin."""
        places = sorted(self.place[name] for name in names)
        keys = [tuple(cell[k] for k in places) for cell in self.cells]
        rows = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        matrix = np.zeros((len(rows), len(keys)), dtype=np.int64)
        matrix[[rows[key] for key in keys], np.arange(len(keys))] = 1
        return matrix

    @cached_property
    def kept(self) -> Rows:
        """Every kept total, and the number of people."""
        parts = [self.margin_rows(margin) for margin in self.margins]
        if self.weighted:
            parts.append(np.array(self.weighted, dtype=np.int64))
        return np.unique(np.vstack([*parts, self.margin_rows([])]), axis=0)

    @cached_property
    def pinned(self) -> frozenset[int]:
        """The cells whose count the kept totals determine."""
        _, sizes, turned = np.linalg.svd(self.kept.astype(float))
        free = turned[int((sizes > 1e-9 * sizes[0]).sum()) :]
        return frozenset(np.flatnonzero((abs(free) < 1e-9).all(axis=0)).tolist())

    def others(self, changed: frozenset[str]) -> Rows:
        """The margin of all axes but those that change: what a reader of the strong reading knows."""
        return self.margin_rows(axis.name for axis in self.axes if axis.name not in changed)

    # -- changes of one person ----------------------------------------------------------------------

    def changes(self, i: int) -> Iterator[Change]:
        """Every change of somebody in cell i to another value of an axis that some cell has."""
        for axis in self.axes:
            for value in range(axis.length):
                if value != self.cells[i][self.place[axis.name]]:
                    yield self._change(i, axis.name, value)

    def _change(self, i: int, axis: str, value: int) -> Change:
        cell, values = self.cells[i], {axis: value}
        topmost, above = axis, self.axes[self.place[axis]].parent
        while above is not None:
            below = next(other for other in self.ancestors(axis) if self.axes[self.place[other]].parent == above)
            values[above] = self.axes[self.place[below]].lies_in[values[below]]
            if values[above] == cell[self.place[above]]:
                break
            topmost, above = above, self.axes[self.place[above]].parent
        changed = self.descendants(topmost)
        wanted = {self.place[name]: cell[self.place[name]] for name in self.place if name not in changed}
        wanted |= {self.place[name]: code for name, code in values.items()}
        targets = (j for j, other in enumerate(self.cells) if all(other[k] == code for k, code in wanted.items()))
        return Change(i, axis, value, tuple(targets), changed)

    # -- the same for Keepsum -----------------------------------------------------------------------

    @cached_property
    def domain(self) -> ks.Domain:
        """The same cells for Keepsum, categories named by their numbers."""
        paths: dict[str, list[tuple[str, ...]]] = {}
        for axis in self.axes:
            above = paths[axis.parent] if axis.parent else []
            paths[axis.name] = [(*(above[axis.lies_in[c]] if axis.parent else ()), f"{c}") for c in range(axis.length)]
        names = {name: [p if len(p) > 1 else p[0] for p in several] for name, several in paths.items()}
        within = {axis.name: axis.parent for axis in self.axes if axis.parent}
        domain = ks.Domain(names, within)
        return domain.without(*({name: f"{zero[k]}" for name, k in self.place.items()} for zero in self.zeros))

    @cached_property
    def invariants(self) -> ks.Invariants:
        """The same kept totals for Keepsum."""
        keep = ks.Invariants.margins(self.domain, [sorted(margin, key=self.place.get) for margin in self.margins])
        if not self.weighted:
            return keep
        order = [self._cell(index) for index in range(self.domain.size)]
        rows = ks.Invariants.matrix(np.array(self.weighted, dtype=np.int64)[:, order]).over(self.domain)
        return keep + rows if self.margins else rows

    def _cell(self, index: int) -> int:
        named = self.domain.cell(index)
        codes: Sequence[object] = [named[axis.name] for axis in self.axes]
        return self.number[tuple(int(code[-1] if isinstance(code, tuple) else str(code)) for code in codes)]

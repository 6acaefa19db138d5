"""The cells of a table: named axes, possibly nested, without structural zeros."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum._saying import the
from keepsum._text import given, how_many, printable, shown_name, shown_names, type_of
from keepsum.errors import DomainError
from keepsum.tables.axes import MAX_AXES, MAX_CELLS, Axis, Label, NestedCells, make_axes, quoted


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Domain:
    """The cells of a table, by name.

    Parameters
    ----------
    categories
        The categories of each axis, in order. For a nested axis either a mapping from parents to lists of labels, or a
        sequence of (parent, label) pairs; if the parent is nested too, it is itself such a tuple.
    within
        The parent of each nested axis: ``{"county": "state"}``.

    Examples
    --------
    >>> import keepsum as ks
    >>> school = ks.Domain({"county": ["Alpha", "Beta"], "education": ["low", "high"]})
    >>> school.size, school.cell(2), school.index({"county": "Beta", "education": "low"})
    (4, {'county': 'Beta', 'education': 'low'}, 2)

    The cells of a nested axis are the declared pairs, not a product:

    >>> places = ks.Domain(
    ...     {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Lake"], "WI": ["Lake"]}},
    ...     within={"county": "state"},
    ... )
    >>> places
    Domain(state 2 > county 3: 3 cells)
    >>> places.categories("county")
    (('IL', 'Cook'), ('IL', 'Lake'), ('WI', 'Lake'))

    The algebra: a product, a projection, and the marginal cell of each cell.

    >>> both = places * ks.Domain({"sex": ["f", "m"]})
    >>> both
    Domain(state 2 > county 3, sex 2: 6 cells)
    >>> both.project(["state"])
    Domain(state 2: 2 cells)
    >>> both.marginal_index(["state"]).tolist()
    [0, 0, 0, 0, 1, 1]

    Impossible combinations can be declared structural zeros; they are not cells and get no noise:

    >>> ks.Domain({"sex": ["f", "m"], "pregnant": ["no", "yes"]}).without({"sex": "m", "pregnant": "yes"})
    Domain(sex 2, pregnant 2, less 1 structural zero: 3 cells)
    """

    _axes: tuple[Axis, ...]
    _impossible: IntArray  # positions on the grid that are structural zeros, in order

    def __init__(self, categories: Mapping[str, Any], within: Mapping[str, str] | None = None) -> None:
        self._fill(make_axes(categories, within), np.empty(0, dtype=np.int64))

    @classmethod
    def of(cls, axes: Iterable[Axis], impossible: IntArray | None = None, most: int = MAX_CELLS) -> Domain:
        """A domain of existing axes (each family together, parents first), of at most so many cells."""
        domain = object.__new__(cls)
        domain._fill(tuple(axes), np.empty(0, dtype=np.int64) if impossible is None else impossible, most)
        return domain

    def _fill(self, axes: tuple[Axis, ...], impossible: IntArray, most: int = MAX_CELLS) -> None:
        impossible.setflags(write=False)
        object.__setattr__(self, "_axes", axes)
        object.__setattr__(self, "_impossible", impossible)
        if len(axes) > MAX_AXES:
            raise DomainError(f"A domain must have at most {MAX_AXES} axes, got {len(axes):,}. Leave some out.")
        positions = math.prod(self.shape)
        if positions > most:
            raise DomainError(
                f"A domain must have at most {most:,} cells, got {positions:,}. Drop an axis or merge categories."
            )
        if positions == len(impossible):
            raise DomainError("A domain must have at least one cell, but all are declared structural zeros.")

    # -- axes and cells -----------------------------------------------------------------------------

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes, with each family of nested axes together, parents first."""
        return tuple(axis.name for axis in self._axes)

    @property
    def within(self) -> dict[str, str]:
        """The parent of each nested axis."""
        return {axis.name: axis.parent.name for axis in self._axes if axis.parent is not None}

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of the grid along each family of axes, including structural zeros."""
        return tuple(family.size for family in self.families)

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape) - len(self._impossible)

    @property
    def structural_zeros(self) -> int:
        """The number of structural zeros."""
        return len(self._impossible)

    @property
    def is_cell(self) -> npt.NDArray[np.bool_]:
        """For each position on the grid, whether it is a cell (and not a structural zero)."""
        mask = np.ones(math.prod(self.shape), dtype=bool)
        mask[self._impossible] = False
        return mask

    def axis(self, name: str) -> Axis:
        """The axis with this name."""
        for axis in self._axes:
            if isinstance(name, str) and axis.name == name:
                return axis
        raise DomainError(f"An axis must be one of {quoted(self.axes)}, got {the.name(name)}. Check the spelling.")

    def categories(self, name: str) -> tuple[Any, ...]:
        """The categories of an axis; for a nested axis, tuples that start with the outermost parent."""
        axis = self.axis(name)
        return axis.labels if axis.parent is None else tuple(axis.paths())

    def codes(self, name: str) -> IntArray:
        """The code of each cell's category on an axis: its position among ``categories``."""
        self.axis(name)
        before, after = 1, math.prod(self.shape)
        for family in self.families:
            after //= family.size
            if name in family.codes:
                return self._cells_only(np.tile(np.repeat(family.codes[name], after), before))
            before *= family.size
        raise AssertionError(f"axis {name!r} is in no family")  # pragma: no cover

    def __repr__(self) -> str:
        families = (" > ".join(f"{name} {len(self.axis(name)):,}" for name in f.codes) for f in self.families)
        zeros = self.structural_zeros
        less = f", less {how_many(zeros, 'structural zero')}" if zeros else ""
        return printable(f"Domain({', '.join(families)}{less}: {how_many(self.size, 'cell')})")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return self._axes == other._axes and np.array_equal(self._impossible, other._impossible)

    def __hash__(self) -> int:
        return hash((self._axes, len(self._impossible)))

    # -- cell <-> index -----------------------------------------------------------------------------

    def cell(self, index: int) -> dict[str, Label]:
        """The labels of the cell at this index."""
        is_whole = isinstance(index, (int, np.integer)) and not isinstance(index, bool)
        if not is_whole or not 0 <= index < self.size:
            raise DomainError(f"A cell index must be a whole number from 0 to {self.size - 1}, got {given(index)}.")
        position = int(self._positions(np.array([index]))[0])
        rows = np.unravel_index(position, self.shape)
        return {
            name: self.axis(name).labels[int(codes[row])]
            for family, row in zip(self.families, rows, strict=True)
            for name, codes in family.codes.items()
        }

    def index(self, cell: Mapping[str, Label]) -> int:
        """The index of the cell with these labels, one per axis."""
        if not isinstance(cell, Mapping):
            raise DomainError(f"A cell must be a mapping from axes to labels, got {type_of(cell)}.")
        if any(name not in self.axes for name in cell) or any(name not in cell for name in self.axes):
            raise DomainError(
                f"A cell must have a label for each of {quoted(self.axes)}, got labels for {shown_names(cell)}."
            )
        codes: dict[str, int] = {}
        for axis in self._axes:
            key = cell[axis.name] if axis.parent is None else (codes[axis.parent.name], cell[axis.name])
            code = axis.lookup().get(key) if isinstance(cell[axis.name], Hashable) else None
            if code is None:
                raise DomainError(_not_a_category(axis.name, cell[axis.name]))
            codes[axis.name] = code
        index = int(self.locate({name: np.array([code]) for name, code in codes.items()})[0])
        if index < 0:
            raise DomainError(f"Cell {describe(cell)} is declared a structural zero, so it has no index.")
        return index

    def name(self, index: int) -> str:
        """The name of the cell at this index: ``county=Beta, education=low``."""
        return describe(self.cell(index))

    def locate(self, codes: Mapping[str, IntArray]) -> IntArray:
        """The index of each cell given by codes, one array per axis; -1 for a structural zero."""
        rows = [family.rows(codes) for family in self.families]
        missing = np.logical_or.reduce([row < 0 for row in rows])
        position = np.ravel_multi_index([np.maximum(row, 0) for row in rows], self.shape).astype(np.int64)
        if len(self._impossible):
            missing |= np.isin(position, self._impossible)
            position -= np.searchsorted(self._impossible, position)
        return np.where(missing, -1, position)

    # -- the algebra --------------------------------------------------------------------------------

    def __mul__(self, other: Domain) -> Domain:
        """The product: every cell of this domain with every cell of the other."""
        if not isinstance(other, Domain):
            return NotImplemented
        shared = [name for name in self.axes if name in other.axes]
        if shared:
            raise DomainError(f"Domains to multiply must have different axes, both have {quoted(shared)}.")
        if not (self.structural_zeros or other.structural_zeros):
            return Domain.of(self._axes + other._axes)
        both = self.is_cell[:, None] & other.is_cell[None, :]
        return Domain.of(self._axes + other._axes, np.flatnonzero(~both))

    def project(self, axes: Iterable[str]) -> Domain:
        """The domain of a margin: the given axes, with the parents of nested ones."""
        names = self.closure(axes)
        if not names:
            raise DomainError("A projection must have at least one axis, got none. The grand total has no domain.")
        kept = Domain.of(axis for axis in self._axes if axis.name in names)
        if not self.structural_zeros:
            return kept
        present = np.zeros(kept.size, dtype=bool)
        present[self._grid_margin(names)] = True
        return Domain.of(kept._axes, np.flatnonzero(~present))

    def marginal_index(self, axes: Iterable[str]) -> IntArray:
        """The marginal cell of each cell, as an index of ``project(axes)``."""
        margin = self._grid_margin(self.closure(axes))
        if not self.structural_zeros:
            return margin
        # A marginal cell without cells does not exist: renumber the others.
        return np.unique(margin, return_inverse=True)[1]

    def without(self, *combinations: Mapping[str, Any]) -> Domain:
        """Declare structural zeros: each combination maps axes to a label, or to a list of labels."""
        excluded = np.zeros(self.size, dtype=bool)
        for number, combination in enumerate(combinations, 1):
            matched = self.matching(combination)
            if not matched.any():
                raise DomainError(f"A structural zero must match at least one cell; combination {number} matches none.")
            excluded |= matched
        return Domain.of(self._axes, np.union1d(self._impossible, self._positions(np.flatnonzero(excluded))))

    def relabelled(self, translate: Callable[[Label], Label]) -> Domain:
        """The same cells with other labels, which must be as different as before."""
        axes: dict[str, Axis] = {}
        for axis in self._axes:
            parent = None if axis.parent is None else axes[axis.parent.name]
            axes[axis.name] = Axis(axis.name, tuple(map(translate, axis.labels)), parent, axis.parent_codes)
        return Domain.of(axes.values(), self._impossible)

    def closure(self, axes: Iterable[str]) -> tuple[str, ...]:
        """The given axes with the ancestors of nested ones, in the order of the domain."""
        if not isinstance(axes, Iterable):
            raise DomainError(f"Axes must be a list of names, got {type_of(axes)}.")
        names: set[str] = set()
        for name in [axes] if isinstance(axes, str) else axes:
            axis: Axis | None = self.axis(name)
            while axis is not None:
                names.add(axis.name)
                axis = axis.parent
        return tuple(name for name in self.axes if name in names)

    # -- internals ----------------------------------------------------------------------------------

    @cached_property
    def families(self) -> tuple[NestedCells, ...]:
        """The families of nested axes: the grid is their product, in row-major order."""
        members: dict[str, list[Axis]] = {}
        for axis in self._axes:
            root = axis
            while root.parent is not None:
                root = root.parent
            members.setdefault(root.name, []).append(axis)
        return tuple(NestedCells.of(axes) for axes in members.values())

    def _cells_only(self, grid: IntArray) -> IntArray:
        return np.delete(grid, self._impossible) if len(self._impossible) else grid

    def _positions(self, index: IntArray) -> IntArray:
        """The position of each cell on the grid; structural zeros have a position but no index."""
        cells_before_gap = self._impossible - np.arange(len(self._impossible))
        return index + np.searchsorted(cells_before_gap, index, side="right")

    def _grid_margin(self, names: Iterable[str]) -> IntArray:
        """The position of each cell on the grid of the margin."""
        margin = np.zeros(1, dtype=np.int64)
        for family in self.families:
            size, marginal_cell = family.project(names)
            margin = (margin[:, None] * size + marginal_cell[None, :]).ravel()
        return self._cells_only(margin)

    def matching(self, combination: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """For each cell, whether it has one of the given labels on every given axis."""
        if not isinstance(combination, Mapping):
            raise DomainError(f"A combination must be a mapping from axes to labels, got {type_of(combination)}.")
        matches = np.ones(self.size, dtype=bool)
        for name, wanted in combination.items():
            labels = self.axis(name).labels
            chosen = list(wanted) if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
            for label in chosen:
                if label not in labels:
                    raise DomainError(_not_a_category(name, label))
            matches &= np.array([label in chosen for label in labels])[self.codes(name)]
        return matches


def _not_a_category(axis: str, label: object) -> str:
    return f"A label of axis {the.column(axis)} must be one of its categories, got {shown_name(label)}."


def describe(cell: Mapping[str, Label]) -> str:
    """The name of a cell of a table or of a margin.

    >>> describe({"state": "IL", "county": "Cook"})
    'state=IL, county=Cook'
    """
    return ", ".join(f"{axis}={label}" for axis, label in cell.items())

"""Blocks of one form, grouped: how many, how large, and the smallest change through their cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.families import on_squares
from keepsum.lattice.grids import Grid
from keepsum.lattice.shortest import Measure, ShortVectors
from keepsum.lattice.structure import FORCED, FREE, Block, Structure, System
from keepsum.lattice.two_way import TwoWay
from keepsum.planning.crossing import CrossTable
from keepsum.privacy.distance import Distance, Norm

FormKind: TypeAlias = Literal["free", "sums", "nested", "crossed", "focused", "table", "regions"]


@dataclass(frozen=True)
class BlockForm:
    """The form of a block, as facts.

    Attributes
    ----------
    kind
        ``"free"``: a cell under no total. ``"sums"``: a region whose sum is kept. ``"nested"``: regions in nested
        totals, focused or kept. ``"crossed"``: a two-way table with both margins focused or kept. ``"focused"``:
        regions in focused and kept totals, nested or not. ``"table"``: a table under all margins of
        one way less; one of two ways may have structural zeros. ``"regions"``: regions under totals that overlap in any
        other way.
    regions, totals
        How many regions a block has (the entries of a table that are not structural zeros), and how many totals it is
        under.
    smallest, largest
        The sizes of its smallest and largest region, in cells; over all blocks where only their sums are kept.
    shape
        The lengths of the axes of a table, in the order in which its cells are.
    """

    kind: FormKind
    regions: int = 1
    totals: int = 0
    smallest: int = 1
    largest: int = 1
    shape: tuple[int, ...] = ()

    @property
    def zeros(self) -> int:
        """The number of structural zeros of a table."""
        return math.prod(self.shape) - self.regions if self.shape else 0


@dataclass(frozen=True)
class BlockGroup:
    """Blocks of one form: how many, how large, and the smallest change through their cells.

    Attributes
    ----------
    form
        The form of each block.
    blocks, cells
        How many blocks, and how many cells they have together.
    dimension, codimension
        The dimension of their noise and the number of independent totals, of all together.
    distance
        The smallest change through a cell, for the cell where it is largest.
    members
        The blocks themselves, where kept totals overlap.
    tables
        The tables, where focused totals cross.
    """

    form: BlockForm
    blocks: int
    cells: int
    dimension: int
    codimension: int
    distance: Distance
    members: tuple[Block, ...] = ()
    tables: tuple[CrossTable, ...] = ()

    @property
    def in_closed_form(self) -> bool:
        """Whether cells are under no total, or in regions with a kept sum, and under no focus."""
        return self.form.kind in ("free", "sums")

    def without_focus(self, levels: int) -> BlockGroup:
        """The same beside focused totals of so many levels, of which changes in these blocks change none."""
        return replace(self, distance=replace(self.distance, focused=(0,) * levels))


def groups_of(structure: Structure, norm: Norm) -> Iterator[BlockGroup]:
    """Cells under no total, sums, and each form of blocks whose totals overlap."""
    free = structure.sizes[structure.part == FREE]
    if len(free):
        cells = int(free.sum())
        yield BlockGroup(BlockForm("free"), cells, cells, cells, 0, Distance(norm, 1))
    sums = structure.sizes[(structure.part == FORCED) & (structure.sizes > 1)]
    if len(sums):
        cells, count = int(sums.sum()), len(sums)
        yield BlockGroup(_sums_form(sums), count, cells, cells - count, count, Distance(norm, 2))
    alike: dict[tuple[int, bytes], list[Block]] = {}
    for block in structure.blocks:
        key = (id(block.system), structure.sizes[block.regions].tobytes())
        alike.setdefault(key, []).append(block)
    for blocks in alike.values():
        yield _overlap_group(blocks, structure.sizes[blocks[0].regions], norm)


def _overlap_group(blocks: list[Block], sizes: IntArray, norm: Norm) -> BlockGroup:
    system = blocks[0].system
    cells = int(sizes.sum())
    return BlockGroup(
        form=_overlap_form(system, sizes),
        blocks=len(blocks),
        cells=cells * len(blocks),
        dimension=(cells - system.rank) * len(blocks),
        codimension=system.rank * len(blocks),
        distance=_overlap_distance(system, sizes, norm),
        members=tuple(blocks),
    )


def _overlap_distance(system: System, sizes: IntArray, norm: Norm) -> Distance:
    """Within a region of several cells one count moves; a cell that is its own region must take others with it."""
    alone = np.flatnonzero(sizes == 1).tolist()
    if not alone:
        return Distance(norm, 2)
    if system.grid is not None:
        # A nonzero vector of a tensor product of root lattices has at least 2^p entries.
        return Distance(norm, 2 ** len(system.grid.shape))
    if system.two_way is not None:
        # Vectors are sums of cycles with entries +1 and -1, which do not cancel: see ``lattice/opposite.py``.
        return Distance(norm, int(system.two_way.cycles[alone].max()))
    if system.collapses is not None:
        # Entries add up to 0, and no two regions are alike: a vector has two entries of either sign, or one of 2.
        on_square = on_squares(system.matrix)
        alone = [region for region in alone if not on_square[region]]
        if not alone:
            return Distance(norm, 4)
    measure = Measure(norm, fewest_first=False)
    upper, lower = ShortVectors(system.matrix, system.basis, sizes).through(measure, alone)
    longest = int(upper[alone].max())
    return Distance(norm, max(2, longest), longest <= max(2, int(lower[alone].max())))


def _sums_form(sizes: IntArray) -> BlockForm:
    return BlockForm("sums", regions=1, totals=1, smallest=int(sizes.min()), largest=int(sizes.max()))


def _overlap_form(system: System, sizes: IntArray) -> BlockForm:
    table = system.two_way if system.grid is None else system.grid
    return BlockForm(
        kind="regions" if table is None else "table",
        regions=len(sizes),
        totals=int(system.matrix.shape[0]),
        smallest=int(sizes.min()),
        largest=int(sizes.max()),
        shape=() if table is None else _shape(table),
    )


def _shape(table: Grid | TwoWay) -> tuple[int, ...]:
    """The lengths of the axes in the order of the declared ones: the last is that which changes most often."""
    places: list[IntArray] = [table.row, table.column] if isinstance(table, TwoWay) else _places(table)
    changes = [int(np.count_nonzero(np.diff(place))) for place in places]
    return tuple(table.shape[axis] for axis in np.argsort(changes, kind="stable"))


def _places(grid: Grid) -> list[IntArray]:
    """The place of every column along each axis."""
    order = np.argsort(grid.column, axis=None)
    return list(np.unravel_index(order, grid.shape))

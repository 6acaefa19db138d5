"""Blocks of one form together: how many there are, how large, and the cheapest change through their cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from keepsum.lattice.measure import Measure
from keepsum.lattice.shortest import ShortVectors
from keepsum.lattice.structure import FORCED, FREE, Block, Structure, System
from keepsum.privacy.distance import Distance, Norm
from keepsum.tables.axes import IntArray


@dataclass(frozen=True)
class BlockGroup:
    """Blocks of one form: how many, how large, and the cheapest change through their cells.

    Attributes
    ----------
    structure
        The form of each block, in words.
    blocks, cells
        How many blocks, and how many cells they have together.
    dimension, codimension
        The dimension of their noise and the number of independent totals, of all together.
    distance
        The largest, over their cells, of the smallest change through the cell.
    members
        The blocks themselves, where totals overlap.
    """

    structure: str
    blocks: int
    cells: int
    dimension: int
    codimension: int
    distance: Distance
    members: tuple[Block, ...] = ()


def groups_of(structure: Structure, norm: Norm) -> Iterator[BlockGroup]:
    """Cells under no total, sums, and each form of blocks whose totals overlap."""
    free = structure.sizes[structure.part == FREE]
    if len(free):
        cells = int(free.sum())
        yield BlockGroup("cells under no total", cells, cells, cells, 0, Distance(norm, 1))
    sums = structure.sizes[(structure.part == FORCED) & (structure.sizes > 1)]
    if len(sums):
        cells, count = int(sums.sum()), len(sums)
        yield BlockGroup(_sums_in_words(sums), count, cells, cells - count, count, Distance(norm, 2))
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
        structure=_overlap_in_words(system, sizes),
        blocks=len(blocks),
        cells=cells * len(blocks),
        dimension=(cells - system.rank) * len(blocks),
        codimension=system.rank * len(blocks),
        distance=_overlap_distance(system, sizes, norm),
        members=tuple(blocks),
    )


def _overlap_distance(system: System, sizes: IntArray, norm: Norm) -> Distance:
    """Between two cells of one region a count moves; a region of one cell must draw others along."""
    alone = np.flatnonzero(sizes == 1).tolist()
    if not alone:
        return Distance(norm, 2)
    if system.grid is not None:
        # A nonzero vector of a tensor product of root lattices has at least 2^p entries.
        return Distance(norm, 2 ** len(system.grid.shape))
    measure = Measure(norm, fewest_first=False)
    upper, lower = ShortVectors(system.matrix, system.basis, sizes).through(measure, alone)
    longest = int(upper[alone].max())
    return Distance(norm, max(2, longest), longest <= max(2, int(lower[alone].max())))


def _sums_in_words(sums: IntArray) -> str:
    low, high = int(sums.min()), int(sums.max())
    cells = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{cells} cells with their sum kept"


def _overlap_in_words(system: System, sizes: IntArray) -> str:
    if system.grid is not None:
        shape = " × ".join(str(n) for n in system.grid.shape)
        ways = len(system.grid.shape) - 1
        kept = "both margins" if ways == 1 else f"all {ways}-way margins"
        name = f"{shape} table with {kept} kept"
    else:
        totals = system.matrix.shape[0]
        name = f"{len(sizes):,} regions under {totals:,} overlapping total{'s' * (totals != 1)}"
    if sizes.max() == 1:
        return name
    low, high = int(sizes.min()), int(sizes.max())
    return f"{name}, each of {f'{low:,}' if low == high else f'{low:,} to {high:,}'} cells"

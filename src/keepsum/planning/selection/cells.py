"""The cells of each part of a table, in the order in which its samplers draw them.

Where cells are taken together in groups, these are the groups; in blocks each as often as it has cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.structure import FORCED, FREE, Block, Structure


def free_cells(structure: Structure) -> IntArray:
    """The cells under no total."""
    return np.flatnonzero((structure.part == FREE)[structure.region])


def sums_cells(structure: Structure) -> tuple[IntArray, IntArray]:
    """The cells of regions whose sum the totals force to be 0, region by region, and the sizes of these regions."""
    regions = np.flatnonzero((structure.part == FORCED) & (structure.sizes > 1))
    chosen = np.zeros(len(structure.sizes), dtype=bool)
    chosen[regions] = True
    order, _ = structure.cells_by_region
    return order[chosen[structure.region[order]]], structure.sizes[regions]


def block_cells(structure: Structure, blocks: Sequence[Block]) -> tuple[list[IntArray], IntArray]:
    """The cells of each block, region by region, and the sizes of the regions of a block; all have one form."""
    cells = [
        structure.repeated(np.concatenate([structure.cells(r) for r in block.regions.tolist()])) for block in blocks
    ]
    return cells, structure.sizes[blocks[0].regions]

"""Focused totals beside kept ones: blocks of regions and totals, nested or not.

With an entry y_g for each focused total g and the row z(g) - y_g = 0, noise with a focus is noise on a longer lattice,
whose entries are weighed one by one: Gaussian noise has |z|^2 plus a weight times y_g^2 for each total, l1 Laplace
noise |z| plus a weight times |y_g|. So the longer matrix is decomposed like any other; its blocks have regions of
cells, and focused totals as regions without cells. Totals that the kept ones determine are in no block. Nothing here
depends on the weights. In l1 Laplace noise it is used for totals that ``nested.py`` has no trees and tables for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum.lattice.structure import FORCED, Block, Structure, decompose
from keepsum.planning.focus_totals import FocusTotals
from keepsum.planning.groups import BlockGroup, Form, groups_of
from keepsum.planning.nested import focused_margins, without_noise
from keepsum.privacy.distance import Distance
from keepsum.privacy.focus import Level
from keepsum.tables.invariants import Invariants


@dataclass(frozen=True, eq=False)
class FocusedBlocks:
    """The longer lattice.

    Attributes
    ----------
    margins
        The totals of each level.
    structure
        The regions and blocks of the noise; focused totals are regions of 0 cells, behind all others.
    levels
        The level of each focused total.
    """

    margins: tuple[FocusTotals, ...]
    structure: Structure
    levels: IntArray

    @property
    def first_total(self) -> int:
        """The number of the first region that is a focused total."""
        return len(self.structure.sizes) - len(self.levels)

    def levels_of(self, block: Block) -> IntArray:
        """The levels of the focused totals of a block, which come behind its regions of cells."""
        return self.levels[np.sort(block.regions)[self._cell_regions(block) :] - self.first_total]

    def level_of_columns(self, block: Block) -> IntArray:
        """The level of each column of a block's system; -1 for regions of cells."""
        level = np.full(len(block.regions), -1, dtype=np.int64)
        totals = block.regions >= self.first_total
        level[totals] = self.levels[block.regions[totals] - self.first_total]
        return level

    def members(self, block: Block) -> list[IntArray]:
        """For each focused total of a block, the places of its regions among those of the block, both in order."""
        regions, totals = np.split(np.sort(block.regions), [self._cell_regions(block)])
        cells, starts = self.structure.cells_by_region
        first = cells[starts[regions]]
        numbers, starts = totals - self.first_total, np.searchsorted(self.levels, np.arange(len(self.margins) + 1))
        found: list[IntArray] = []
        for level, margin in enumerate(self.margins):
            label = margin.labels[first]
            order = np.argsort(label, kind="stable")
            wanted = numbers[self.levels[numbers] == level] - starts[level]
            low, high = (np.searchsorted(label[order], wanted, side=side) for side in ("left", "right"))
            found += [order[start:end] for start, end in zip(low.tolist(), high.tolist(), strict=True)]
        return found

    def _cell_regions(self, block: Block) -> int:
        return int((block.regions < self.first_total).sum())

    def groups(self, smallest: Distance) -> Iterator[BlockGroup]:
        """The blocks by form; ``smallest`` is the smallest change through a cell, for the cell where it is largest."""
        without = tuple(block for block in self.structure.blocks if self._cell_regions(block) == len(block.regions))
        for group in groups_of(replace(self.structure, blocks=without), smallest.norm):
            yield group.without_focus(len(self.margins))
        alike: dict[tuple[int, bytes, bytes], list[Block]] = {}
        for block in self.structure.blocks:
            if self._cell_regions(block) < len(block.regions):
                key = (
                    id(block.system),
                    self.structure.sizes[block.regions].tobytes(),
                    self.level_of_columns(block).tobytes(),
                )
                alike.setdefault(key, []).append(block)
        for blocks in alike.values():
            yield self._group(blocks, smallest)

    def _group(self, blocks: list[Block], smallest: Distance) -> BlockGroup:
        system, regions = blocks[0].system, self._cell_regions(blocks[0])
        sizes = self.structure.sizes[np.sort(blocks[0].regions)[:regions]]
        kept = system.rank - (system.width - regions)  # each focused total has a row of its own
        return BlockGroup(
            form=Form("focused", regions, system.width - regions + kept, int(sizes.min()), int(sizes.max())),
            blocks=len(blocks),
            cells=int(sizes.sum()) * len(blocks),
            dimension=(int(sizes.sum()) - kept) * len(blocks),
            codimension=kept * len(blocks),
            distance=smallest,
            members=tuple(blocks),
        )


def focused_blocks(focus: Sequence[Level], invariants: Invariants) -> FocusedBlocks:
    """The longer lattice of kept and focused totals.

    Raises
    ------
    PlanError
        If all totals of a level are kept, or two levels are the same totals.
    """
    margins = focused_margins(focus, invariants)
    totals = sparse.vstack([margin.coefficients() for margin in margins], format="csr")
    count, size = totals.shape
    kept = invariants.coefficients
    matrix = sparse.block_array(
        [[kept, sparse.csr_array((kept.shape[0], count), dtype=np.int64)], [totals, -sparse.eye_array(count)]],
        format="csr",
        dtype=np.int64,
    )
    longer = decompose(sparse.csr_array(matrix))
    levels = np.repeat(np.arange(len(margins)), [margin.height for margin in margins])
    of_totals = longer.region[size:]
    for number, level in enumerate(focus):
        if (longer.part[of_totals[levels == number]] == FORCED).all():
            raise without_noise(level)
    sizes = longer.sizes.copy()
    sizes[of_totals] = 0
    region = longer.region[:size].copy()
    for array in (region, sizes):
        array.setflags(write=False)
    return FocusedBlocks(margins, Structure(region, sizes, longer.part, longer.blocks), levels)

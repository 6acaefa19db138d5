"""Samplers for Gaussian noise with a focus: the lattice Gaussian of each block, exact, or none.

Nested totals have a triangular factor in closed form, others that of their Gram matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keepsum.lattice.structure import Block
from keepsum.planning.focused_blocks import FocusedBlocks
from keepsum.planning.selection.cells import block_cells
from keepsum.planning.selection.choice import BUDGET, Choice, Reason
from keepsum.planning.selection.gaussian import choose_exact
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.gaussian.blocks import BlockGaussian
from keepsum.sampling.gaussian.factors import LARGEST_DIMENSION, make_factor
from keepsum.sampling.gaussian.trees import tree_factor


def choose_focused(focused: FocusedBlocks, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form with focused totals, whose weights are those of cells times 2 rho sigma^2."""
    system, sigma = blocks[0].system, mechanism.scale
    ordered = [Block(np.sort(block.regions), block.system) for block in blocks]
    cells, sizes = block_cells(focused.structure, ordered)
    sizes = sizes[sizes > 0]
    levels = focused.levels_of(blocks[0]).tolist()
    weights = [2 * mechanism.focus[level].weight * sigma**2 for level in levels]
    tree = _tree(focused, blocks[0], len(sizes))
    if tree is None:
        place = np.argsort(np.argsort(blocks[0].regions)).tolist()
        basis = [{place[column]: entry for column, entry in vector.items()} for vector in system.basis]
        factor = make_factor(basis, sizes, weights)
    else:
        order, parents, kept = tree
        weights = [weights[total] for total in order]
        factor = tree_factor(parents, sizes, [None, *weights] if kept else weights)
    if factor is None:
        return Choice.none(np.concatenate(cells), Reason("too_many_dimensions", limit=LARGEST_DIMENSION))
    part, one = (BlockGaussian(factor, sizes, count, weights=weights) for count in (len(blocks), 1))
    return choose_exact(sigma, part, np.concatenate(cells), one, BUDGET)


def _tree(focused: FocusedBlocks, block: Block, regions: int) -> tuple[list[int], list[int], bool] | None:
    """The order of the focused totals of a block, the parents of its regions and totals, and whether the root is kept.

    None if they are not nested, or what is kept in the block is anything but the sum of all its cells.
    """
    totals = len(block.regions) - regions
    kept = block.system.rank - totals
    members = focused.members(block)
    order = sorted(range(totals), key=lambda total: -len(members[total]))
    if kept > 1 or (not kept and len(members[order[0]]) < regions):
        return None
    of_cells = set(np.flatnonzero(block.regions < focused.first_total).tolist())
    if kept and any(sum(entry for at, entry in vector.items() if at in of_cells) for vector in block.system.basis):
        return None
    home = np.full(regions, 0 if kept else -1, dtype=np.int64)
    parents = [-1] if kept else []
    for total in order:
        around = home[members[total]]
        if (around != around[0]).any():
            return None
        home[members[total]] = len(parents)
        parents.append(int(around[0]))
    return order, [*home.tolist(), *parents], bool(kept)

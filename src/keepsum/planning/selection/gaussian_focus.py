"""Samplers for Gaussian noise with a focus: the lattice Gaussian of each block, exact."""

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


def choose_focused(focused: FocusedBlocks, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form with focused totals, whose weights are those of cells times 2 rho sigma^2."""
    system, sigma = blocks[0].system, mechanism.scale
    ordered = [Block(np.sort(block.regions), block.system) for block in blocks]
    cells, sizes = block_cells(focused.structure, ordered)
    sizes = sizes[sizes > 0]
    levels = focused.levels_of(blocks[0]).tolist()
    weights = [2 * mechanism.focus[level].weight * sigma**2 for level in levels]
    place = np.argsort(np.argsort(blocks[0].regions)).tolist()
    basis = [{place[column]: entry for column, entry in vector.items()} for vector in system.basis]
    factor = make_factor(basis, sizes, weights)
    if factor is None:
        return Choice.none(np.concatenate(cells), Reason("too_many_dimensions", limit=LARGEST_DIMENSION))
    part, one = (BlockGaussian(factor, sizes, count, weights=weights) for count in (len(blocks), 1))
    return choose_exact(sigma, part, np.concatenate(cells), one, BUDGET)

"""The general samplers under l1 Laplace noise with a focus, for totals that cross in any way.

With an entry for each focused total (``focused_blocks.py``) noise with a focus is noise on a longer lattice, whose
entries have epsilons of their own. A mixture of lattice Gaussians draws it, by rejection or by a chain, or heat-bath
moves do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keepsum.lattice.structure import Block
from keepsum.planning.focused_blocks import FocusedBlocks
from keepsum.planning.selection import general
from keepsum.planning.selection.cells import block_cells
from keepsum.planning.selection.choice import Choice, Reason
from keepsum.planning.selection.general import Arranged, Problem
from keepsum.planning.selection.l1 import HIGHEST_EPSILON, LOWEST_EPSILON
from keepsum.planning.selection.outcomes import OutcomeStore, limits_of
from keepsum.planning.selection.settling import choose_general
from keepsum.privacy.mechanism import Mechanism


def choose_focused(focused: FocusedBlocks, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form with focused totals: as pilots have chosen before, if they have, or by new ones."""
    cells, sizes = block_cells(focused.structure, blocks)
    in_order = np.concatenate(cells)
    epsilons = [1 / mechanism.scale, *(level.weight for level in mechanism.focus)]
    if min(epsilons) < LOWEST_EPSILON or max(epsilons) > HIGHEST_EPSILON:
        return Choice.none(
            in_order, Reason("epsilon_out_of_range", lowest=str(LOWEST_EPSILON), highest=str(HIGHEST_EPSILON))
        )
    levels = focused.level_of_columns(blocks[0]).tolist()
    problem = Problem(blocks[0].system, sizes, len(blocks), epsilons[0], tuple(epsilons[1 + level] for level in levels))
    kind = f"laplace-l1 focus {[str(epsilon) for epsilon in problem.epsilons]}"
    store = OutcomeStore(kind, problem.system.matrix, sizes, len(blocks))
    arranged = Arranged(problem, in_order, lambda sampler: sampler)
    limits = limits_of("general", vars(general))
    return choose_general(arranged, store, limits, lambda: Choice.none(in_order, Reason("totals_cross")))

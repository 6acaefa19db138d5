"""The sampler of two-way tables whose margins are focused or kept: exact, by splitting columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keepsum.planning.crossing import CrossTable
from keepsum.planning.selection.choice import Choice, Reason
from keepsum.planning.selection.l1 import HIGHEST_EPSILON, LOWEST_EPSILON
from keepsum.planning.selection.splitting import by_splitting
from keepsum.privacy.mechanism import Mechanism


def choose_crossed(tables: Sequence[CrossTable], mechanism: Mechanism) -> Choice:
    """Tables of one form; the longer side, with what is added, as rows."""
    table, epsilon = tables[0], 1 / mechanism.scale
    margins, entries = table.margins(mechanism), table.entries
    turned = margins.shape[0] < margins.shape[1]
    order = np.lexsort((table.row, table.column)) if turned else np.arange(len(table.cells))
    cells = np.concatenate([each.cells[order] for each in tables])
    epsilons = [epsilon, *(level.weight for level in mechanism.focus)]
    if min(epsilons) < LOWEST_EPSILON or max(epsilons) > HIGHEST_EPSILON:
        return Choice.none(
            cells, Reason("epsilon_out_of_range", lowest=str(LOWEST_EPSILON), highest=str(HIGHEST_EPSILON))
        )
    if turned:
        entries, margins = entries.T, margins.transposed
    return by_splitting(epsilon, entries, len(tables), cells, margins=margins)

"""The samplers of two-way tables whose margins are focused or kept: exact by splitting columns, else a general one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum.planning.crossing import CrossTable
from keepsum.planning.selection import splitting
from keepsum.planning.selection.choice import Choice, Reason
from keepsum.planning.selection.l1 import HIGHEST_EPSILON, LOWEST_EPSILON
from keepsum.planning.selection.outcomes import OutcomeStore
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.l1.splitting.added import KEPT, NOTHING, Margins, two_way


def choose_crossed(tables: Sequence[CrossTable], mechanism: Mechanism) -> Choice:
    """Tables of one form."""
    table, epsilon = tables[0], 1 / mechanism.scale
    cells = np.concatenate([each.cells for each in tables])
    epsilons = [epsilon, *(level.weight for level in mechanism.focus)]
    if min(epsilons) < LOWEST_EPSILON or max(epsilons) > HIGHEST_EPSILON:
        return Choice.none(
            cells, Reason("epsilon_out_of_range", lowest=str(LOWEST_EPSILON), highest=str(HIGHEST_EPSILON))
        )
    matrix, weights = longer_matrix(table.entries, table.margins(mechanism))
    sizes = table.entries[table.entries > 0]
    store = OutcomeStore(f"laplace-l1 {epsilon} crossed {[str(w) for w in weights]}", matrix, sizes, len(tables))
    exact = None if store.has_entry else _by_splitting(tables, mechanism)
    if exact is not None and exact.sampler is not None:
        return exact
    from keepsum.planning.selection import general  # not loaded where tables are drawn exactly
    from keepsum.planning.selection.crossed_lattice import arranged_tables
    from keepsum.planning.selection.outcomes import limits_of
    from keepsum.planning.selection.settling import choose_general

    limits = [*limits_of("general", vars(general)), *limits_of("splitting", vars(splitting))]
    arranged = arranged_tables(matrix, sizes, epsilon, weights, cells)
    return choose_general(arranged, store, limits, lambda: exact or _by_splitting(tables, mechanism))


def _by_splitting(tables: Sequence[CrossTable], mechanism: Mechanism) -> Choice:
    """The longer side, with what is added, as rows."""
    table, margins = tables[0], tables[0].margins(mechanism)
    entries, order = table.entries, np.arange(len(table.cells))
    if margins.shape[0] < margins.shape[1]:
        entries, margins, order = entries.T, margins.transposed, np.lexsort((table.row, table.column))
    cells: IntArray = np.concatenate([each.cells[order] for each in tables])
    return splitting.by_splitting(1 / mechanism.scale, two_way(entries, margins), len(tables), cells)


def longer_matrix(entries: IntArray, margins: Margins) -> tuple[sparse.csr_array, list[Fraction]]:
    """The totals of a table over its entries, row by row, and focused totals, with the weights of the latter.

    A kept total has the row z(g) = 0, a focused one z(g) - y_g = 0 with an entry y_g of its own.

    >>> matrix, weights = longer_matrix(np.array([[1, 2], [0, 1]]), Margins((KEPT, KEPT), (Fraction(1), Fraction(2))))
    >>> matrix.toarray().tolist(), [str(weight) for weight in weights]
    ([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, -1, 0], [0, 1, 1, 0, -1]], ['1', '2'])
    """
    row, column = np.nonzero(entries)
    totals = [(weight, row == i) for i, weight in enumerate(margins.rows)]
    totals += [(weight, column == j) for j, weight in enumerate(margins.columns)]
    totals += [(margins.whole, np.ones(len(row), dtype=bool))]
    stated = [(weight, members) for weight, members in totals if weight != NOTHING]
    weights = [weight for weight, _ in stated if weight is not KEPT]
    added = sparse.coo_array(
        (
            -np.ones(len(weights), dtype=np.int64),
            ([k for k, (weight, _) in enumerate(stated) if weight is not KEPT], range(len(weights))),
        ),
        shape=(len(stated), len(weights)),
    )
    sums = sparse.csr_array(np.array([members for _, members in stated], dtype=np.int64))
    return sparse.csr_array(sparse.hstack([sums, added], format="csr", dtype=np.int64)), weights

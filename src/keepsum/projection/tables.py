"""Two-way tables under both margins: the sums of the entries of the nearest table, exactly.

An entry of several cells with sum s costs what its nearest cells cost (``nearest.py``): a convex function whose slope
at s is a function of the level of s. In l2 that slope is 1 - 2 level. In l1 it is 1 where the level is at most 0,
else -1; of all tables that are nearest in l1 the one that is nearest in l2 is wanted, so the slope is the pair of
both. Half of its differences are those of ``-level + step * (level <= 0)`` with a step that exceeds what the levels
along any cycle of rows and columns add up to, so that whole numbers compare as the pairs do.

These are costs of a flow from rows to columns, and a flow with prices of rows and columns is nearest if no entry can be
raised or lowered for less than its prices (complementary slackness). The method moves the excess of rows and columns
along cheapest paths, first in large amounts, then in halves of these down to 1, with prices by Dijkstra's algorithm
[1]_: exact, in integers, in a number of steps that does not depend on how large counts are but for a logarithm.

All nearest tables are the flows whose steps from this one cost nothing. The one that is taken has the largest first
entry, of those the one with the largest second entry, and so on: so it does not depend on the way to it.

References
----------
.. [1] Ahuja, Magnanti, Orlin: Network Flows, 1993, section 14.5 (capacity scaling for convex costs).
"""

from __future__ import annotations

import numpy as np

from keepsum._arrays import IntArray
from keepsum._work import spend
from keepsum.errors import PlanError
from keepsum.lattice.two_way import TwoWay
from keepsum.privacy.distance import Norm
from keepsum.projection.kernel_arguments import Entries, Flow
from keepsum.sampling.core.kernel import Kernel, pack

lower_where_it_pays = Kernel("lower_where_it_pays", Entries, Flow, int)
settle = Kernel("settle", Entries, Flow, int, int)
prefer_first = Kernel("prefer_first", Entries, Flow, int, int)

LARGEST = 2**60  # what prices and costs stay below
STEPS_OF_SEARCH = 100  # entries in a microsecond: 100 x 100 of them take about a second
ROUNDS, SEARCHES = 20, 1000  # of new prices, and of ways to shift counts, between two chances to stop


def nearest_entries(table: TwoWay, counts: list[IntArray], norm: Norm) -> IntArray:
    """The sum of each entry of the nearest table with both margins unchanged.

    Parameters
    ----------
    table
        The row and the column of each entry.
    counts
        The counts of the cells of each entry.

    Raises
    ------
    PlanError
        If there is no table without negative counts, or numbers are too large.
    """
    entries = _entries(table, counts, norm)
    flow = _start(entries, np.array([int(cells.sum()) for cells in counts], dtype=np.int64))
    amount = 1 << max(0, int(np.abs(flow.excess).max(initial=0)).bit_length() - 1)
    arguments = pack(entries), pack(flow)
    while amount:
        lower_where_it_pays.run(*arguments, pack(amount))
        spend(ROUNDS * len(flow.sums) / STEPS_OF_SEARCH)
        while settle.run(*arguments, pack(amount), pack(ROUNDS)):
            spend(ROUNDS * len(flow.sums) / STEPS_OF_SEARCH)
        amount //= 2
    if flow.excess.any():
        raise PlanError("No table without negative counts has the kept totals, so there is no nearest one.")
    for begin in range(0, len(flow.sums), SEARCHES):
        spend(SEARCHES * len(flow.sums) / STEPS_OF_SEARCH)
        prefer_first.run(*arguments, pack(begin), pack(min(begin + SEARCHES, len(flow.sums))))
    return flow.sums


def _entries(table: TwoWay, counts: list[IntArray], norm: Norm) -> Entries:
    if np.count_nonzero(np.diff(table.row)) > np.count_nonzero(np.diff(table.column)):  # searches are by row
        table = TwoWay(table.column, table.row)
    rows, columns = table.shape
    ordered = [np.sort(cells)[::-1] if len(cells) > 1 else cells for cells in counts]
    column = table.column + rows
    node = np.concatenate([table.row, column])
    every = np.concatenate(ordered)
    largest = int(np.abs(every).sum()) + 1
    step = 2 * (min(rows, columns) + 1) * 2 * largest if norm == "l1" else 0
    if (step + largest) * (rows + columns) * 4 >= LARGEST:
        raise PlanError(f"Counts of a table of {rows:,} x {columns:,} entries must be smaller to find the nearest one.")
    return Entries(
        row=np.ascontiguousarray(table.row),
        column=column,
        start=np.cumsum([0, *(len(cells) for cells in counts)]),
        counts=every,
        upto=np.concatenate([np.cumsum(cells) for cells in ordered]) if len(every) > len(ordered) else every.copy(),
        pointers=np.concatenate([[0], np.cumsum(np.bincount(node, minlength=rows + columns))]),
        at=np.argsort(node, kind="stable") % len(column),
        step=step,
        rows=rows,
    )


def _start(table: Entries, sums: IntArray) -> Flow:
    """Every entry at the sum of its positive counts, with all prices 0, and the excess that this leaves."""
    nodes = len(table.pointers) - 1
    positive = np.add.reduceat(np.maximum(table.counts, 0), table.start[:-1])
    excess = np.zeros(nodes, dtype=np.int64)
    np.add.at(excess, table.row, positive - sums)
    np.subtract.at(excess, table.column, positive - sums)

    def room(length: int) -> IntArray:
        return np.zeros(length, dtype=np.int64)

    heap = 2 * len(sums) + nodes + 1
    return Flow(
        sums=positive,
        price=room(nodes),
        excess=excess,
        distance=room(nodes),
        seen=np.zeros(nodes, dtype=np.int8),
        next_arc=room(nodes),
        path=room(nodes + 1),
        entry=room(nodes + 1),
        heap_distance=room(heap),
        heap_node=room(heap),
    )

"""Two-way tables under both margins, with structural zeros: the bipartite graph of their rows, columns and entries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum.lattice.graphs import alternating_cycles, biconnected_components, shortest_cycles
from keepsum.lattice.grids import Grid
from keepsum.lattice.matrix import Row

DENSE = 10**7  # entries of a table, zeros included, that are stored


@dataclass(frozen=True, eq=False)
class TwoWay:
    """A two-way table with structural zeros whose kept totals are both its margins.

    Attributes
    ----------
    row, column
        For each region the row and the column of its entry; no two regions share an entry.
    """

    row: IntArray
    column: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return int(self.row.max()) + 1, int(self.column.max()) + 1

    @property
    def zeros(self) -> int:
        """The number of structural zeros."""
        return int(np.prod(self.shape)) - len(self.row)

    @property
    def grid(self) -> Grid | None:
        """The same table as a grid, if it is full."""
        if self.zeros or min(self.shape) < 2:
            return None
        column = np.empty(self.shape, dtype=np.int64)
        column[self.row, self.column] = np.arange(len(self.row))
        return Grid(column)

    @property
    def graph(self) -> tuple[IntArray, IntArray, int]:
        """The ends of each edge, columns after rows, and the number of vertices."""
        rows, columns = self.shape
        return self.row, self.column + rows, rows + columns

    @cached_property
    def present(self) -> BoolArray:
        """Which entries are not structural zeros, of shape (rows, columns)."""
        present = np.zeros(self.shape, dtype=bool)
        present[self.row, self.column] = True
        return present

    @cached_property
    def cycles(self) -> IntArray:
        """For each region the length of the shortest cycle through its edge, 0 for a bridge.

        Most entries of a table are on a cycle of four edges, and these are counted: of the walks with three steps from
        a row to a column, those that go back and forth are known.
        """
        lengths = np.zeros(len(self.row), dtype=np.int64)
        if math.prod(self.shape) <= DENSE:
            table = self.present.astype(np.float64)
            walks = table @ (table.T @ table) if len(table.T) < len(table) else (table @ table.T) @ table
            straight = walks[self.row, self.column] - table.sum(axis=1)[self.row] - table.sum(axis=0)[self.column] + 1
            lengths[straight > 0] = 4
        longer = np.flatnonzero(lengths == 0)
        if len(longer):
            lengths[longer] = shortest_cycles(*self.graph, longer)
        return lengths

    def blocks(self) -> list[IntArray]:
        """The regions of each block: the biconnected components of the graph, without its bridges.

        A cycle with entries +1 and -1 in turn is a circuit of the matroid of the totals, and there are no others. So
        the components of the matroid are those of the graph, and the sum of a bridge, on no circuit, is determined.
        """
        return [regions for regions in biconnected_components(*self.graph) if len(regions) > 1]

    def basis(self) -> list[Row]:
        """A basis of the region sums that keep the totals: the fundamental cycles of a spanning forest."""
        return alternating_cycles(*self.graph)

    def margins(self, regions: IntArray) -> sparse.csr_array:
        """The totals of rows and columns over some of the regions, in an order that depends on the regions alone."""
        rows, width = self.shape[0], len(regions)
        vertex = np.concatenate([self.row[regions], self.column[regions] + rows])
        place = np.tile(np.arange(width), 2)
        order = np.lexsort((place, vertex))
        supports = np.split(place[order], np.flatnonzero(np.diff(vertex[order])) + 1)
        supports.sort(key=lambda support: support.tolist())
        bounds = np.cumsum([0, *(len(support) for support in supports)])
        entries = np.ones(2 * width, dtype=np.int64)
        return sparse.csr_array((entries, np.concatenate(supports), bounds), shape=(len(supports), width))


def two_way_of(grid: Grid) -> TwoWay:
    """A grid of two ways as a two-way table."""
    row, column = np.empty(grid.column.size, dtype=np.int64), np.empty(grid.column.size, dtype=np.int64)
    row[grid.column], column[grid.column] = np.indices(grid.shape)
    return TwoWay(row, column)

"""The parts of a matrix of totals: regions, forced sums, and the blocks where totals overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray, grouped, ranked
from keepsum.errors import InputError
from keepsum.lattice.elimination import LLL_LIMIT, eliminate, kernel, reduce
from keepsum.lattice.families import Collapse, collapse_of, collapses_of, dimension_of, matroid_components
from keepsum.lattice.graphs import connected_components
from keepsum.lattice.grids import Grid, recognise
from keepsum.lattice.matrix import Row, matrix_rows, rows_matrix
from keepsum.lattice.symmetry import all_alike
from keepsum.lattice.two_way import TwoWay, recognise_two_way, two_way_of

# Regions: classes of cells that are part of exactly the same totals.


def identical_columns(columns: sparse.csc_array) -> tuple[IntArray, IntArray]:
    """The class of each column, and the first column of each class; two columns share a class if they are equal.

    Classes are numbered by their first column. The first entries of all columns are compared at once, then the second
    ones, and so on: one sort per level and no hashing, so there are no collisions.

    Examples
    --------
    >>> classes, first = identical_columns(sparse.csc_array([[1, 1, 0, 1], [0, 2, 0, 0]]))
    >>> classes.tolist(), first.tolist()
    ([0, 1, 2, 0], [0, 1, 2])
    """
    lengths = np.diff(columns.indptr)
    longest = int(lengths.max(initial=0))
    # An entry is a row and a value; there are few values, so both are encoded in one number, starting at 1.
    entries = columns.indices.astype(np.int64) + 1
    if (columns.data != 1).any():
        values, value_code = np.unique(columns.data, return_inverse=True)
        entries = entries * len(values) + value_code
    equally_long = bool((lengths == longest).all())
    classes = np.zeros(columns.shape[1], dtype=np.int64)
    for level in range(longest):
        if equally_long:
            code = entries[level::longest]
        else:
            reached = np.flatnonzero(lengths > level)
            code = np.zeros(len(classes), dtype=np.int64)
            code[reached] = entries[columns.indptr[reached] + level]
        classes = ranked(_pair(classes, code))[1]
    return _by_first(classes)


def _pair(a: IntArray, b: IntArray) -> IntArray:
    """One number per pair of numbers."""
    width = int(b.max(initial=0)) + 1
    if (int(a.max(initial=0)) + 1) * width >= 2**63:
        b = ranked(b)[1]
        width = int(b.max(initial=0)) + 1
    return a * width + b


def _by_first(classes: IntArray) -> tuple[IntArray, IntArray]:
    """Renumber the classes in the order of their first members, and return these members."""
    count = int(classes.max(initial=-1)) + 1
    first = np.empty(count, dtype=np.int64)
    first[classes[::-1]] = np.arange(len(classes) - 1, -1, -1)  # the last value written is the first member
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(count)
    return rank[classes], np.sort(first)


# The parts of a matrix of totals: regions, forced sums, and the blocks where totals overlap.
#
# Cells with identical columns form a *region*. A region that is in no total is *free*. A region whose sum the totals
# determine is *forced* (a forced region of one cell is *pinned*). The other regions form *blocks*, the connected
# components of the matroid of the matrix: the lattice is the direct sum of its parts.


Key: TypeAlias = tuple[bytes, ...]

FREE, FORCED = -1, -2
FOCUSED = -3  # not of kept totals alone: a region whose cells are drawn together with others, see ``planning/nested``
# Weights of at most SMALL_WEIGHT bits, or at most FEW_TOTALS totals, are always accepted; beyond that, all weights
# together may have WEIGHT_BITS bits: 40 dense totals of 62 bits over 80 cells take 7 seconds, 60 over 120 take 40.
SMALL_WEIGHT, FEW_TOTALS, WEIGHT_BITS = 8, 10, 250_000


@dataclass(frozen=True, eq=False)
class System:
    """The totals of one block over its regions, shared by all blocks of the same form.

    Attributes
    ----------
    matrix, rank
        The totals, one row each, and how many of them are independent.
    grid
        The full table whose margins the totals are, if they are recognised.
    with_zeros
        The two-way table with structural zeros whose margins they are, if they are recognised.
    summed_out
        The collapses of the totals where they were needed to find the block; ``collapses`` has them in any case.
    """

    matrix: sparse.csr_array
    rank: int
    grid: Grid | None
    with_zeros: TwoWay | None = None
    summed_out: tuple[Collapse, ...] | None = None

    @classmethod
    def recognised(cls, matrix: sparse.csr_array, rank: int) -> System:
        """Totals of this rank, with the table whose margins they are."""
        grid = recognise(matrix)
        return cls(matrix, rank, grid, recognise_two_way(matrix) if grid is None else None)

    @property
    def width(self) -> int:
        """The number of regions."""
        return int(self.matrix.shape[1])

    @cached_property
    def two_way(self) -> TwoWay | None:
        """The two-way table, full or with structural zeros, whose margins the totals are, if they are recognised."""
        if self.grid is None:
            return self.with_zeros
        return two_way_of(self.grid) if len(self.grid.shape) == 2 else None

    @cached_property
    def collapses(self) -> tuple[Collapse, ...] | None:
        """The families of totals in the order in which they are summed out, if they all can be; see ``families``."""
        if self.summed_out is not None:
            return self.summed_out
        if self.two_way is not None:
            return (collapse_of(self.two_way),)
        return collapses_of(self.matrix) if self.grid is None else None

    @cached_property
    def all_alike(self) -> bool:
        """Whether permutations of the regions that keep the lattice take each region to every other one."""
        return self.grid is not None or (self.collapses is not None and all_alike(self.collapses))

    @cached_property
    def basis(self) -> list[Row]:
        """A basis of the region sums that keep the totals: a closed form for tables, else LLL up to a limit."""
        if self.grid is not None:
            return self.grid.basis()
        if self.width - self.rank > LLL_LIMIT and self.two_way is not None:
            return self.two_way.basis()
        vectors = kernel(matrix_rows(self.matrix), self.width)
        return reduce(vectors, self.width) if len(vectors) <= LLL_LIMIT else vectors


@dataclass(frozen=True)
class Block:
    """A set of regions whose totals overlap; column j of the system is ``regions[j]``."""

    regions: IntArray
    system: System


@dataclass(frozen=True)
class Structure:
    """The parts of a matrix of totals.

    Attributes
    ----------
    region
        The region of each cell.
    sizes
        The number of cells of each region.
    part
        For each region the number of its block, ``FREE`` or ``FORCED``.
    blocks
        The blocks.
    weight
        How many cells each cell stands for, where cells that no total tells apart are taken together; None if each
        stands for itself. ``region`` then has an entry for each of these groups, and ``sizes`` counts what is in them.
    """

    region: IntArray
    sizes: IntArray
    part: IntArray
    blocks: tuple[Block, ...]
    weight: IntArray | None = None

    @property
    def rank(self) -> int:
        """The rank of the matrix."""
        return int((self.part == FORCED).sum()) + sum(block.system.rank for block in self.blocks)

    @property
    def dimension(self) -> int:
        """The dimension of the lattice: the number of cells less the rank."""
        return int(self.sizes.sum()) - self.rank

    @property
    def pinned(self) -> IntArray:
        """The cells in which every vector of the lattice is zero."""
        return np.flatnonzero(((self.part == FORCED) & (self.sizes == 1))[self.region])

    @cached_property
    def cells_by_region(self) -> tuple[IntArray, IntArray]:
        """The cells in the order of their regions, and where each region starts."""
        entries = self.sizes if self.weight is None else np.bincount(self.region, minlength=len(self.sizes))
        return np.argsort(self.region, kind="stable"), np.concatenate([[0], np.cumsum(entries)])

    def cells(self, region: int) -> IntArray:
        """The cells of a region, in order."""
        order, starts = self.cells_by_region
        return order[starts[region] : starts[region + 1]]

    def numbered_parts(self, with_blocks: bool) -> IntArray:
        """For each region its part: 0 under no total, 1, 2, ... for sums, blocks from there on; -1 if it is in none."""
        number = np.full(len(self.sizes), -1, dtype=np.int64)
        number[self.part == FREE] = 0
        sums = np.flatnonzero((self.part == FORCED) & (self.sizes > 1))
        number[sums] = 1 + np.arange(len(sums))
        if with_blocks:
            inside = self.part >= 0
            number[inside] = 1 + len(sums) + self.part[inside]
        return number

    def number_of(self, cells: IntArray) -> int:
        """How many cells there are in these, which may be groups."""
        return len(cells) if self.weight is None else int(self.weight[cells].sum())

    def repeated(self, cells: IntArray) -> IntArray:
        """These cells, groups as often as they have cells."""
        return cells if self.weight is None else np.repeat(cells, self.weight[cells])


def counted(labels: IntArray, weight: IntArray | None, count: int = 0) -> IntArray:
    """How many cells have each label, groups of cells as many as they stand for.

    >>> counted(np.array([0, 2, 2]), None).tolist(), counted(np.array([0, 2, 2]), np.array([5, 1, 2])).tolist()
    ([1, 0, 2], [5, 0, 3])
    """
    if weight is None:
        return np.bincount(labels, minlength=count)
    sizes = np.zeros(max(count, int(labels.max(initial=-1)) + 1), dtype=np.int64)
    np.add.at(sizes, labels, weight)
    return sizes


def decompose(matrix: sparse.csr_array, weight: IntArray | None = None) -> Structure:
    """Find regions, forced sums and blocks; ``weight`` says how many cells each column stands for, if not one.

    Examples
    --------
    Two totals that share a cell:

    >>> parts = decompose(sparse.csr_array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]]))
    >>> parts.region.tolist(), parts.sizes.tolist(), len(parts.blocks), parts.rank
    ([0, 0, 1, 2, 2], [2, 1, 2], 1, 2)
    """
    columns = matrix.tocsc()
    region, first = identical_columns(columns)
    sizes = counted(region, weight)
    small = matrix if len(first) == matrix.shape[1] else columns[:, first].tocsr()
    part = np.full(len(sizes), FREE, dtype=np.int64)
    part[small.indices] = FORCED
    open_regions = _peel(small)
    blocks: list[Block] = []
    for block in _blocks(small, open_regions):
        part[block.regions] = len(blocks)
        blocks.append(block)
    for array in (region, sizes, part):
        array.setflags(write=False)
    return Structure(region, sizes, part, tuple(blocks), weight)


def _peel(matrix: sparse.csr_array) -> IntArray:
    """The regions that remain when totals of a single region are removed, repeatedly.

    A hierarchy of totals is removed entirely, level by level.
    """
    pattern = sparse.csr_array((np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    by_column = pattern.tocsc()
    remaining = np.diff(pattern.indptr).astype(np.int64)  # the number of regions still in each total
    index_sum = np.asarray(pattern @ np.arange(matrix.shape[1], dtype=np.int64))  # and the sum of their indices
    present = np.diff(by_column.indptr) > 0
    while True:
        # For a total with one region left, the sum of indices is the index of that region.
        determined = np.unique(index_sum[remaining == 1])
        if not len(determined):
            return np.flatnonzero(present)
        present[determined] = False
        removed = by_column[:, determined]
        remaining -= np.bincount(removed.indices, minlength=len(remaining))
        index_sum -= np.asarray(removed @ determined)


def _blocks(matrix: sparse.csr_array, regions: IntArray) -> Iterator[Block]:
    """The blocks among the regions that remain after peeling, part by connected part; equal parts are solved once."""
    if not len(regions):
        return
    rest = matrix.tocsc()[:, regions].tocsr()
    rest = rest[np.flatnonzero(np.diff(rest.indptr))]
    solved: dict[Key, list[tuple[IntArray, System]]] = {}
    for columns, part in _connected_parts(rest):
        key = _key(part)
        if key not in solved:
            solved[key] = _solve(part)
        for members, system in solved[key]:
            block_regions = regions[columns[members]]
            block_regions.setflags(write=False)
            yield Block(block_regions, system)


def _key(matrix: sparse.csr_array) -> Key:
    return matrix.indptr.tobytes(), matrix.indices.tobytes(), matrix.data.tobytes()


def _connected_parts(matrix: sparse.csr_array) -> Iterator[tuple[IntArray, sparse.csr_array]]:
    """The connected components of totals and columns: the columns and the matrix of each."""
    height, width = matrix.shape
    links = matrix.tocoo()
    count, label = connected_components(links.row, links.col + height, height + width)
    if count == 1:
        yield np.arange(width), matrix
        return
    row_order, row_starts = _grouped(label[:height], count)
    column_order, column_starts = _grouped(label[height:], count)
    place = np.empty(width, dtype=np.int64)
    place[column_order] = np.arange(width) - np.repeat(column_starts[:-1], np.diff(column_starts))
    by_part = matrix[row_order]
    for k in range(count):
        columns = column_order[column_starts[k] : column_starts[k + 1]]
        top, bottom = by_part.indptr[row_starts[k]], by_part.indptr[row_starts[k + 1]]
        part = sparse.csr_array(
            (
                by_part.data[top:bottom],
                place[by_part.indices[top:bottom]],
                by_part.indptr[row_starts[k] : row_starts[k + 1] + 1] - top,
            ),
            shape=(row_starts[k + 1] - row_starts[k], len(columns)),
        )
        part.sort_indices()
        yield columns, part


def _grouped(labels: IntArray, count: int) -> tuple[IntArray, IntArray]:
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=count))])
    return np.argsort(labels, kind="stable"), starts


def _solve(matrix: sparse.csr_array) -> list[tuple[IntArray, System]]:
    """The matroid components of a connected part with more than one column; the others are forced."""
    width = matrix.shape[1]
    grid = recognise(matrix)
    if grid is not None:
        return [(np.arange(width), System(matrix, width - grid.dimension, grid))]
    table = recognise_two_way(matrix)
    if table is not None:
        return _two_way_blocks(matrix, table)
    collapses = collapses_of(matrix)
    if collapses is not None:
        blocks = _summed_out_blocks(matrix, collapses)
        if blocks is not None:
            return blocks
    _check_weights(matrix)
    rows = matrix_rows(matrix)
    reduced = eliminate(rows, width, units_only=False)
    components = _circuit_components(reduced.pivots, reduced.rows, width)
    if len(components) == 1 and len(components[0]) == width:
        return [(np.arange(width), System(matrix, len(reduced.pivots), None))]
    result = []
    for members in components:
        inside = set(members)
        rank = sum(pivot in inside for pivot in reduced.pivots.values())
        result.append((np.array(members), _component_system(rows, rank, members)))
    return result


def _two_way_blocks(matrix: sparse.csr_array, table: TwoWay) -> list[tuple[IntArray, System]]:
    """The blocks of a connected part that is a two-way table, without elimination; equal ones share a system."""
    width = matrix.shape[1]
    blocks = table.blocks()
    if len(blocks) == 1 and len(blocks[0]) == width:
        grid = table.grid
        return [(np.arange(width), System(matrix, sum(table.shape) - 1, grid, table if grid is None else None))]
    systems: dict[Key, System] = {}
    result = []
    for regions in blocks:
        margins = table.margins(regions)
        key = _key(margins)
        if key not in systems:
            # A connected bipartite graph has one relation: all rows together are all columns together.
            systems[key] = System.recognised(margins, margins.shape[0] - 1)
        result.append((regions, systems[key]))
    return result


def _summed_out_blocks(
    matrix: sparse.csr_array, collapses: tuple[Collapse, ...]
) -> list[tuple[IntArray, System]] | None:
    """The blocks of a connected part whose families can be summed out; None where that takes elimination."""
    width = matrix.shape[1]
    label = matroid_components(collapses)
    if label is None:
        return None
    components = [np.flatnonzero(label == k) for k in range(int(label.max(initial=-1)) + 1)]
    if len(components) == 1 and len(components[0]) == width:
        return [(np.arange(width), System(matrix, width - dimension_of(collapses), None, None, collapses))]
    rows = matrix_rows(matrix)
    result = []
    for members in components:
        inside = sparse.csr_array(matrix[:, members])
        of_component = collapses_of(inside)
        if of_component is None:
            return None
        rank = len(members) - dimension_of(of_component)
        result.append((members, _component_system(rows, rank, members.tolist())))
    return result


def _check_weights(matrix: sparse.csr_array) -> None:
    """Refuse weights whose elimination would take minutes: entries can grow to the bits of all totals together."""
    bits = int(np.abs(matrix.data).max(initial=0)).bit_length()
    if bits > SMALL_WEIGHT and min(matrix.shape) > FEW_TOTALS and bits * matrix.nnz > WEIGHT_BITS:
        raise InputError(
            f"Overlapping totals must be fewer or have smaller weights: {matrix.shape[0]:,} totals with weights of "
            f"{bits} bits would take minutes."
        )


def _component_system(rows: list[Row], rank: int, members: list[int]) -> System:
    """The totals of one component: the original rows inside it if they suffice, else all rows, restricted to it.

    Restricted rows have the right row space. In a direct sum, the rank of the matrix is the sum of the ranks of its
    components, that is of the matrix restricted to the columns of each. The row space lies in the direct sum of the
    restricted row spaces, which has that same dimension, so it is all of it: each restricted row is itself a
    combination of rows of the matrix, and the lattice is the direct sum of the kernels of the restricted rows.
    """
    place = {j: n for n, j in enumerate(members)}
    inside = [row for row in rows if row.keys() <= place.keys()]
    if len(eliminate(inside, max(members) + 1, units_only=False).pivots) < rank:
        inside = rows
    local = [{place[j]: entry for j, entry in row.items() if j in place} for row in inside]
    distinct = {tuple(row.items()): row for row in local if row}
    matrix = rows_matrix(list(distinct.values()), len(members))
    return System.recognised(matrix, rank)


def _circuit_components(pivots: dict[int, int], rows: list[Row], width: int) -> list[list[int]]:
    """The connected components of the matroid, without the coloops.

    In reduced form, a pivot column and the other columns of its row lie on a common circuit.
    """
    edges = np.array([(pivot, j) for i, pivot in pivots.items() for j in rows[i]], dtype=np.int64).reshape(-1, 2)
    label = connected_components(edges[:, 0], edges[:, 1], width)[1]
    return [columns.tolist() for columns in grouped(label) if len(columns) > 1]

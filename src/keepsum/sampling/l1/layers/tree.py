"""The columns of a table as the leaves of a binary tree, and which nodes and rows are alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sampling.l1.splitting.added import Extended

Load: TypeAlias = tuple[int, ...]  # the number of cells, and that of added entries of each further weight


@dataclass(frozen=True)
class NodeClass:
    """Nodes with the same entries below them, row by row; leaves have no children.

    ``cells[k]`` is how many cells a row of kind k has below such a node, ``added[k]`` how many added entries of each
    further weight.
    """

    cells: tuple[int, ...]
    children: tuple[int, int] | None = None
    added: tuple[Load, ...] = ()

    @property
    def loads(self) -> list[Load]:
        """Both together, for each kind of row."""
        added = self.added or ((),) * len(self.cells)
        return [(cells, *more) for cells, more in zip(self.cells, added, strict=True)]


@dataclass(frozen=True)
class Tree:
    """A binary tree over the columns of a table.

    Attributes
    ----------
    kinds
        The cells of each entry, for each kind of row: kinds x columns, columns in the order of the leaves.
    kind_of_row
        The kind of each row.
    order
        The column of the table that each leaf is.
    left, right
        The children of each inner node. Inner nodes are 0, 1, 2, ..., parents before children, the root first;
        leaf k is node ``inner + k``.
    classes
        The classes of nodes, children before parents.
    class_of
        The class of each node, leaves included.
    further
        The weights of added entries, beside that of cells.
    """

    kinds: IntArray
    kind_of_row: IntArray
    order: IntArray
    left: IntArray
    right: IntArray
    classes: tuple[NodeClass, ...]
    class_of: IntArray
    further: tuple[Fraction, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.kind_of_row)

    @property
    def inner(self) -> int:
        """The number of inner nodes."""
        return len(self.left)

    @property
    def root_class(self) -> int:
        """The class of the root, which no other node has."""
        return int(self.class_of[0])

    @property
    def rows_of_kind(self) -> IntArray:
        """How many rows there are of each kind."""
        return np.bincount(self.kind_of_row, minlength=len(self.kinds))


def grow(sizes: IntArray) -> Tree:
    """The tree for a table whose entries have so many cells, 0 for a structural zero.

    The left part of a node has as many columns as the largest power of two below its own number: so that most nodes
    have equal halves, which then share their tables. Columns that are alike stand together.

    >>> tree = grow(np.ones((4, 3), dtype=np.int64))
    >>> tree.left.tolist(), tree.right.tolist()
    ([1, 2], [4, 3])
    >>> [(kind.cells, kind.children) for kind in tree.classes]
    [((1,), None), ((2,), (0, 0)), ((3,), (1, 0))]
    """
    return grow_extended(Extended(sizes))


def grow_extended(table: Extended) -> Tree:
    """The tree for a table with added entries; an added column is alone on one side of the root."""
    sizes, columns, more = table.sizes, table.sizes.shape[1], len(table.further)
    order = np.lexsort(np.concatenate([table.codes, sizes])[::-1, : columns - table.apart])
    order = np.append(order, np.arange(len(order), columns))
    both = np.concatenate([sizes[:, order], table.codes[:, order]], axis=1)
    kinds, kind_of_row = np.unique(both, axis=0, return_inverse=True)
    added = (kinds[:, columns:, None] == 1 + np.arange(more)).astype(np.int64)
    kinds = kinds[:, :columns]
    left, right = np.empty(columns - 1, dtype=np.int64), np.empty(columns - 1, dtype=np.int64)
    class_of = np.empty(2 * columns - 1, dtype=np.int64)
    classes: dict[NodeClass, int] = {}
    for node, first, last, children in _bottom_up(columns, table.apart):
        below = None if children is None else (int(class_of[children[0]]), int(class_of[children[1]]))
        extra = tuple(map(tuple, added[:, first:last].sum(axis=1).tolist())) if more else ()
        node_class = NodeClass(tuple(kinds[:, first:last].sum(axis=1).tolist()), below, extra)
        class_of[node] = classes.setdefault(node_class, len(classes))
        if children is not None:
            left[node], right[node] = children
    return Tree(kinds, kind_of_row.reshape(-1), order, left, right, tuple(classes), class_of, table.further)


def _bottom_up(columns: int, apart: bool) -> Iterator[tuple[int, int, int, tuple[int, int] | None]]:
    """Nodes with their columns and their children, children before parents."""
    waiting, nodes, following = [(0, 0, columns)], [], 1
    while waiting:  # inner nodes get their numbers on the way down, depth first
        node, first, last = waiting.pop()
        middle = first + (1 << ((last - first - 1).bit_length() - 1))
        if apart and last == columns:
            middle = columns - 1
        parts = []
        for start, stop in ((first, middle), (middle, last)):
            parts.append((columns - 1 + start, start, stop))
            if stop - start > 1:
                parts[-1] = (following, start, stop)
                following += 1
        nodes.append((node, first, last, (parts[0][0], parts[1][0])))
        waiting += [part for part in reversed(parts) if part[2] - part[1] > 1]
    for leaf in range(columns):
        yield columns - 1 + leaf, leaf, leaf + 1, None
    yield from reversed(nodes)

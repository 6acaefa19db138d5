"""The columns of a table as the leaves of a binary tree, and which nodes and rows are alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import IntArray


@dataclass(frozen=True)
class NodeClass:
    """Nodes with the same entries below them, row by row; leaves have no children.

    ``cells[k]`` is how many cells a row of kind k has below such a node.
    """

    cells: tuple[int, ...]
    children: tuple[int, int] | None = None


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
    """

    kinds: IntArray
    kind_of_row: IntArray
    order: IntArray
    left: IntArray
    right: IntArray
    classes: tuple[NodeClass, ...]
    class_of: IntArray

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
    order = np.lexsort(sizes[::-1])
    kinds, kind_of_row = np.unique(sizes[:, order], axis=0, return_inverse=True)
    columns = sizes.shape[1]
    left, right = np.empty(columns - 1, dtype=np.int64), np.empty(columns - 1, dtype=np.int64)
    class_of = np.empty(2 * columns - 1, dtype=np.int64)
    classes: dict[NodeClass, int] = {}
    for node, first, last, children in _bottom_up(columns):
        below = None if children is None else (int(class_of[children[0]]), int(class_of[children[1]]))
        node_class = NodeClass(tuple(kinds[:, first:last].sum(axis=1).tolist()), below)
        class_of[node] = classes.setdefault(node_class, len(classes))
        if children is not None:
            left[node], right[node] = children
    return Tree(kinds, kind_of_row.reshape(-1), order, left, right, tuple(classes), class_of)


def _bottom_up(columns: int) -> Iterator[tuple[int, int, int, tuple[int, int] | None]]:
    """Nodes with their columns and their children, children before parents."""
    waiting, nodes, following = [(0, 0, columns)], [], 1
    while waiting:  # inner nodes get their numbers on the way down, depth first
        node, first, last = waiting.pop()
        middle = first + (1 << ((last - first - 1).bit_length() - 1))
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

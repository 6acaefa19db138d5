"""The layers of a table as the leaves of a binary tree, and which nodes are alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import IntArray


@dataclass(frozen=True)
class NodeClass:
    """Nodes with as many layers; those of one layer have no children."""

    layers: int
    children: tuple[int, int] | None = None


@dataclass(frozen=True)
class Tree:
    """A binary tree over so many layers.

    Attributes
    ----------
    rows
        The number of rows, each with all layers.
    left, right
        The children of each inner node. Inner nodes are 0, 1, 2, ..., parents before children, the root first;
        layer k is node ``inner + k``.
    classes
        The classes of nodes, children before parents.
    class_of
        The class of each node, leaves included.
    """

    rows: int
    left: IntArray
    right: IntArray
    classes: tuple[NodeClass, ...]
    class_of: IntArray

    @property
    def inner(self) -> int:
        """The number of inner nodes."""
        return len(self.left)

    @property
    def layers(self) -> int:
        """The number of layers."""
        return len(self.left) + 1

    @property
    def root_class(self) -> int:
        """The class of the root, which no other node has."""
        return int(self.class_of[0])


def grow(rows: int, layers: int) -> Tree:
    """The tree over so many layers.

    The left part of a node has as many layers as the largest power of two below its own number: so that most nodes
    have equal halves, which then share their tables.

    >>> tree = grow(4, 3)
    >>> tree.left.tolist(), tree.right.tolist()
    ([1, 2], [4, 3])
    >>> [(kind.layers, kind.children) for kind in tree.classes]
    [(1, None), (2, (0, 0)), (3, (1, 0))]
    """
    left, right = np.empty(layers - 1, dtype=np.int64), np.empty(layers - 1, dtype=np.int64)
    class_of = np.empty(2 * layers - 1, dtype=np.int64)
    classes: dict[NodeClass, int] = {}
    for node, first, last, children in _bottom_up(layers):
        below = None if children is None else (int(class_of[children[0]]), int(class_of[children[1]]))
        class_of[node] = classes.setdefault(NodeClass(last - first, below), len(classes))
        if children is not None:
            left[node], right[node] = children
    return Tree(rows, left, right, tuple(classes), class_of)


def _bottom_up(layers: int) -> Iterator[tuple[int, int, int, tuple[int, int] | None]]:
    """Nodes with their layers and their children, children before parents."""
    waiting, nodes, following = [(0, 0, layers)], [], 1
    while waiting:  # inner nodes get their numbers on the way down, depth first
        node, first, last = waiting.pop()
        middle = first + (1 << ((last - first - 1).bit_length() - 1))
        parts = []
        for start, stop in ((first, middle), (middle, last)):
            parts.append((layers - 1 + start, start, stop))
            if stop - start > 1:
                parts[-1] = (following, start, stop)
                following += 1
        nodes.append((node, first, last, (parts[0][0], parts[1][0])))
        waiting += [part for part in reversed(parts) if part[2] - part[1] > 1]
    for leaf in range(layers):
        yield layers - 1 + leaf, leaf, leaf + 1, None
    yield from reversed(nodes)

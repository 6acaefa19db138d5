"""The laws of all nodes of a tree: weights, and how sums split."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sampling.l1.splitting.splits import Split, split_of
from keepsum.sampling.l1.splitting.transforms import Branch, Frequencies, frequencies_of
from keepsum.sampling.l1.splitting.tree import NodeClass, Tree
from keepsum.sampling.l1.splitting.weights import Weights, convolve, drawn_reach, leaf

TAIL_BITS = 52  # sums beyond the tables have a chance of about 2^-52 each, and are left to the referee


@dataclass(frozen=True, eq=False)
class Law:
    """The law of a row below a node.

    Attributes
    ----------
    weights
        W.
    cells
        The number of cells, for a leaf.
    parts
        The laws of the children, for an inner node.
    branch
        Their weights, and F.
    split
        How sums split.
    """

    weights: Weights
    cells: int = 0
    parts: tuple[int, int] = (-1, -1)
    branch: Branch | None = None
    split: Split | None = None


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of a tree.

    Attributes
    ----------
    laws
        All different ones, those of children before those of parents.
    law_of
        For each class of nodes and each kind of row, its law.
    frequencies
        For each class of nodes, its frequencies; None for leaves and the root.
    """

    laws: tuple[Law, ...]
    law_of: IntArray
    frequencies: tuple[Frequencies | None, ...]


def laws_of(epsilon: Fraction, tree: Tree, tail_bits: int = TAIL_BITS) -> Laws:
    """All laws of a tree."""
    laws: list[Law] = []
    law_of = np.empty((len(tree.classes), len(tree.kinds)), dtype=np.int64)
    frequencies: list[Frequencies | None] = []
    reaches = _reaches(epsilon, tree, tail_bits)
    for c, node_class in enumerate(tree.classes):
        reach, table_reach = reaches[c]
        keys = _keys(node_class, law_of)
        rows: dict[tuple[int, int], int] = {}
        for key, count in zip(keys, tree.rows_of_kind.tolist(), strict=True):
            rows[key] = rows.get(key, 0) + count
        kept = None
        if node_class.children is None:
            new = [Law(leaf(epsilon, cells, table_reach), cells) for cells, _ in rows]
        else:
            left_drawn = reaches[node_class.children[0]][0]
            followed = max(left_drawn, reach) + left_drawn // 2
            branches = [_branch(laws[a].weights, laws[b].weights, table_reach, followed) for a, b in rows]
            if c != tree.root_class:
                kept = frequencies_of(list(zip(branches, rows.values(), strict=True)), float(epsilon))
            new = [_law(branch, key, reach, tree.rows, kept) for branch, key in zip(branches, rows, strict=True)]
        place = {key: len(laws) + k for k, key in enumerate(rows)}
        law_of[c] = [place[key] for key in keys]
        laws += new
        frequencies.append(kept)
    return Laws(tuple(laws), law_of, tuple(frequencies))


def _keys(node_class: NodeClass, law_of: IntArray) -> list[tuple[int, int]]:
    """What tells the laws of a class apart: the number of cells of a leaf, the laws of a node's children."""
    if node_class.children is None:
        return [(cells, -1) for cells in node_class.cells]
    left, right = node_class.children
    return list(zip(law_of[left].tolist(), law_of[right].tolist(), strict=True))


def _reaches(epsilon: Fraction, tree: Tree, tail_bits: int) -> list[tuple[int, int]]:
    """For each class of nodes, how far sums are drawn by tables, and how far weights are needed.

    Sums below a node go no farther than those over the rest of the row. Weights go farther: near its end a convolution
    misses what lies beyond, which is bounded by moments of all cells below the parent, about twice as many, and sums
    below the parent go farther than those below the node.
    """
    rows = tree.kinds.sum(axis=1)
    cells = [np.array(node_class.cells) for node_class in tree.classes]
    drawn = [drawn_reach(epsilon, int(np.minimum(below, rows - below).max()), tail_bits) for below in cells]
    needed = [drawn_reach(epsilon, 2 * int(below.max()), tail_bits + 8) + max(drawn) for below in cells]
    return [(0, 0) if c == tree.root_class else (drawn[c], needed[c]) for c in range(len(cells))]


def _branch(left: Weights, right: Weights, reach: int, followed: int) -> Branch:
    return Branch(left, right, convolve(left, right, reach), min(followed, left.reach))


def _law(branch: Branch, parts: tuple[int, int], reach: int, rows: int, kept: Frequencies | None) -> Law:
    split = split_of(branch, reach, rows, kept)
    weights = branch.whole if kept is None else branch.whole.times(split.numbers)
    return Law(weights, parts=parts, branch=branch, split=split)

"""The laws of all nodes of a tree: weights, and how sums split."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sampling.l1.splitting.splits import Split, split_of
from keepsum.sampling.l1.splitting.transforms import Branch, Frequencies, frequencies_of
from keepsum.sampling.l1.splitting.tree import Tree
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
    drawn
        How far sums go that are to be drawn by tables.
    """

    weights: Weights
    cells: int = 0
    parts: tuple[int, int] = (-1, -1)
    branch: Branch | None = None
    split: Split | None = None
    drawn: int = 0


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

    @property
    def usable(self) -> bool:
        """Whether errors are so small that tables draw sums nearly as far as they go."""
        splits = [(law.split, law.drawn) for law in self.laws if law.split is not None]
        return all(2 * split.reach >= drawn for split, drawn in splits)


def laws_of(epsilon: Fraction, tree: Tree, tail_bits: int = TAIL_BITS) -> Laws:
    """All laws of a tree."""
    laws: list[Law] = []
    law_of, keys = _numbered(tree)
    frequencies: list[Frequencies | None] = []
    reaches = _reaches(epsilon, tree, tail_bits)
    for c, node_class in enumerate(tree.classes):
        drawn, needed = reaches[c]
        kept = None
        if node_class.children is None:
            laws += [Law(leaf(epsilon, cells, needed), cells) for cells, _ in keys[c]]
        else:
            # What is not followed is bounded by moments of all cells below.
            followed = drawn_reach(epsilon, max(node_class.cells), tail_bits) + (drawn + 1) // 2
            branches = [_branch(laws[a].weights, laws[b].weights, needed, followed) for a, b in keys[c]]
            if c != tree.root_class:
                counts = np.bincount(law_of[c] - len(laws), tree.rows_of_kind).astype(int).tolist()
                kept = frequencies_of(list(zip(branches, counts, strict=True)), float(epsilon))
            laws += [_law(branch, key, drawn, tree.rows, kept) for branch, key in zip(branches, keys[c], strict=True)]
        frequencies.append(kept)
    return Laws(tuple(laws), law_of, tuple(frequencies))


def entries_of(epsilon: Fraction, tree: Tree) -> int:
    """About how many entries of tables ``laws_of`` computes: the time and the memory that it takes."""
    rate, total = float(epsilon), 0.0
    variance = 2 * math.exp(-rate) / math.expm1(-rate) ** 2  # of a cell
    _, keys = _numbered(tree)
    for node_class, laws, (drawn, needed) in zip(tree.classes, keys, _reaches(epsilon, tree, TAIL_BITS), strict=True):
        total += len(laws) * float(needed) ** 2
        if node_class.children is not None:
            spread = math.sqrt(tree.rows * variance * max(node_class.cells) / 4)
            total += len(laws) * (drawn + 1) * (4 * drawn + 7 * spread)
    return int(total)


def _numbered(tree: Tree) -> tuple[IntArray, list[list[tuple[int, int]]]]:
    """The number of the law of each class and kind, and what tells the laws of a class apart, in their order.

    That is the number of cells of a leaf, and the laws of the children of a node.
    """
    law_of = np.empty((len(tree.classes), len(tree.kinds)), dtype=np.int64)
    distinct: list[list[tuple[int, int]]] = []
    count = 0
    for c, node_class in enumerate(tree.classes):
        keys = [(cells, -1) for cells in node_class.cells]
        if node_class.children is not None:
            left, right = node_class.children
            keys = list(zip(law_of[left].tolist(), law_of[right].tolist(), strict=True))
        place = {key: count + k for k, key in enumerate(dict.fromkeys(keys))}
        law_of[c] = [place[key] for key in keys]
        distinct.append(list(place))
        count += len(place)
    return law_of, distinct


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
    return Law(weights, parts=parts, branch=branch, split=split, drawn=0 if branch.whole.ends else reach)

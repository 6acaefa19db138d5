"""The laws of all nodes of a tree: weights, how sums split, and the labels that nodes carry.

A node has one or several *groups*, each with weights W_g; a leaf has one. A pair (a, b) of groups of its children is a
*base*: F = W_a * W_b, with split laws, characteristic functions and numbers t_m(y), one for each block of frequencies,

    B(y) <= sum over m of the product of t_m(y_i) over all rows,

by Hölder's inequality within each block. A *label* is a base and a block; its weights are F t_m. The labels of a node
are sorted into its groups, and the weights of a group are at least the norm (sum over its labels of (F t_m)^p)^(1/p),
rounded up to floats, which define the proposal: by Hölder's inequality once more, the weights of all its labels
together are at most those of the group. With one block and one group this is W = F t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.l1.splitting.grouping import grouped
from keepsum.sampling.l1.splitting.splits import Split, split_of
from keepsum.sampling.l1.splitting.transforms import Branch, Frequencies, frequencies_of
from keepsum.sampling.l1.splitting.tree import Tree
from keepsum.sampling.l1.splitting.weights import Weights, convolve, drawn_reach, leaf, table_moments

TAIL_BITS = 52  # sums beyond the tables have a chance of about 2^-52 each, and are left to the referee
SMALL = 10**5  # what small tables cost, in entries
SMALLEST = 1e-280  # no weight is taken to be smaller than this
ABOVE = 1 + 1e-11  # for the rounding of powers and roots


@dataclass(frozen=True, eq=False)
class Base:
    """A pair of groups of the children, and for each law of rows its weights and how sums split."""

    left: int
    right: int
    branches: tuple[Branch, ...]
    splits: tuple[Split, ...]


@dataclass(frozen=True)
class Label:
    """A base and a block of frequencies; if ``swapped``, the left child has the right group of the base."""

    base: int
    block: int
    swapped: bool = False


@dataclass(frozen=True, eq=False)
class Candidate:
    """A label, or the two that differ in which child is which, and the logarithms of its weights for each law."""

    labels: tuple[Label, ...]
    logs: list[Floats]


@dataclass(frozen=True, eq=False)
class NodeLaws:
    """The laws of a class of nodes.

    Attributes
    ----------
    parts
        For each law of rows, the laws of the children; for a leaf, the number of cells and -1.
    groups
        The weights of each group, for each law of rows.
    bases
        The bases; none for a leaf.
    labels
        The labels of each group; none for a leaf and the root.
    frequencies
        The frequencies; None for a leaf and the root.
    drawn
        How far sums go that are to be drawn by tables.
    """

    parts: tuple[tuple[int, int], ...]
    groups: tuple[tuple[Weights, ...], ...]
    bases: tuple[Base, ...] = ()
    labels: tuple[tuple[Label, ...], ...] = ()
    frequencies: Frequencies | None = None
    drawn: int = 0


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of a tree.

    Attributes
    ----------
    nodes
        Those of each class of nodes, children before parents.
    law_of
        For each class of nodes and each kind of row, which of the class's laws it has.
    """

    nodes: tuple[NodeLaws, ...]
    law_of: IntArray

    @property
    def usable(self) -> bool:
        """Whether errors are so small that tables draw sums nearly as far as they go."""
        return all(
            branch.whole.ends or 2 * split.reach >= node.drawn
            for node in self.nodes
            for base in node.bases
            for branch, split in zip(base.branches, base.splits, strict=True)
        )


@dataclass(frozen=True)
class Labelling:
    """How many blocks of frequencies a node has, and how many groups at most."""

    blocks: int = 1
    groups: int = 1


def laws_of(epsilon: Fraction, tree: Tree, labelling: Labelling, tail_bits: int = TAIL_BITS) -> Laws:
    """All laws of a tree."""
    nodes: list[NodeLaws] = []
    law_of, keys = numbered(tree)
    reaches = _reaches(epsilon, tree, tail_bits)
    for c, node_class in enumerate(tree.classes):
        drawn, needed = reaches[c]
        if node_class.children is None:
            nodes.append(NodeLaws(tuple(keys[c]), (tuple(leaf(epsilon, cells, needed) for cells, _ in keys[c]),)))
            continue
        # What is not followed is bounded by moments of all cells below.
        followed = drawn_reach(epsilon, max(node_class.cells), tail_bits) + max(reach for reach, _ in reaches) // 2
        left, right = (nodes[child] for child in node_class.children)
        alike = node_class.children[0] == node_class.children[1]
        is_root = c == tree.root_class
        pairs = [
            (a, b) for a in range(len(left.groups)) for b in range(a if alike and not is_root else 0, len(right.groups))
        ]
        branches = {
            (a, b): tuple(_branch(left.groups[a][i], right.groups[b][j], needed, followed) for i, j in keys[c])
            for a, b in pairs
        }
        counts = np.bincount(law_of[c], tree.rows_of_kind, minlength=len(keys[c])).astype(int).tolist()
        rest = [cells - below for cells, below in zip(tree.kinds.sum(axis=1).tolist(), node_class.cells, strict=True)]
        rests = [leaf(epsilon, rest[law_of[c].tolist().index(k)], needed) for k in range(len(keys[c]))]
        kept = None
        if not is_root or len(pairs) > 1:
            blocks = 1 if is_root else labelling.blocks
            kept = frequencies_of([branches[pairs[0]], branches[pairs[-1]]], counts, rests, float(epsilon), blocks)
        bases = tuple(Base(*pair, branches[pair], _splits(branches[pair], drawn, kept)) for pair in pairs)
        if kept is None or is_root:
            nodes.append(NodeLaws(tuple(keys[c]), (), bases, frequencies=kept, drawn=drawn))
            continue
        labels, groups = _grouped(bases, counts, rests, kept, labelling.groups, alike)
        nodes.append(NodeLaws(tuple(keys[c]), groups, bases, labels, kept, drawn))
    return Laws(tuple(nodes), law_of)


def _splits(branches: tuple[Branch, ...], reach: int, kept: Frequencies | None) -> tuple[Split, ...]:
    shares = [0.0] * len(branches) if kept is None else kept.shares.tolist()
    return tuple(split_of(branch, reach, kept, share) for branch, share in zip(branches, shares, strict=True))


def _grouped(
    bases: tuple[Base, ...],
    counts: list[int],
    rests: list[Weights],
    kept: Frequencies,
    most: int,
    alike: bool,
) -> tuple[tuple[tuple[Label, ...], ...], tuple[tuple[Weights, ...], ...]]:
    """The labels of a node in groups, and the weights of the groups."""
    candidates = []
    for k, base in enumerate(bases):
        for m in range(kept.blocks):
            logs = [_log_weights(branch, split, m) for branch, split in zip(base.branches, base.splits, strict=True)]
            labels = (Label(k, m), Label(k, m, True)) if alike and base.left != base.right else (Label(k, m),)
            candidates.append(Candidate(labels, logs))
    numbers = grouped([(candidate.logs, len(candidate.labels)) for candidate in candidates], counts, rests, most)
    labels_of: list[tuple[Label, ...]] = []
    weights: list[tuple[Weights, ...]] = []
    for group in range(max(numbers) + 1):
        members = [candidate for candidate, number in zip(candidates, numbers, strict=True) if number == group]
        labels_of.append(tuple(label for member in members for label in member.labels))
        weights.append(
            tuple(
                _together(
                    [
                        (bases[member.labels[0].base].branches[k], member.logs[k], len(member.labels))
                        for member in members
                    ],
                    share,
                )
                for k, share in enumerate(kept.raised_shares.tolist())
            )
        )
    return tuple(labels_of), tuple(weights)


def _log_weights(branch: Branch, split: Split, block: int) -> Floats:
    """An upper bound on log(F t_m), in true units, for all y of the table; beyond the split tables t is 1.

    It is finite, unless F ends: floats may call a weight 0 that is none.
    """
    upper = branch.whole.values + branch.whole.errors + (0.0 if branch.whole.ends else SMALLEST)
    with np.errstate(divide="ignore"):
        logs = np.log(upper) + branch.whole.exponent * math.log(2)
    logs[: split.reach + 1] += np.log(split.numbers[:, block])
    return logs


def _together(members: list[tuple[Branch, Floats, int]], share: float) -> Weights:
    """The weights of a group: the norm of its labels' weights, rounded up; beyond the table, their sum."""
    logs = np.array([member_logs for _, member_logs, _ in members])
    copies = np.array([count for *_, count in members])
    highest = np.maximum(logs.max(axis=0), -1e300)  # all are -inf where only 0 has weight
    norm = highest
    if share > 0:
        total = (copies[:, None] * np.exp((logs - highest) / share)).sum(axis=0)
        norm = highest + np.log(np.maximum(total, 1.0)) * share
    exponent = math.ceil(norm[0] / math.log(2))
    values = np.exp(norm - exponent * math.log(2)) * ABOVE
    # Beyond the table, moments of the sum of all labels.
    moments = np.array(
        [
            branch.whole.log_moments + branch.whole.exponent * math.log(2) + math.log(count)
            for branch, _, count in members
        ]
    )
    log_moments = np.logaddexp.reduce(moments, axis=0) - exponent * math.log(2) + 1e-9
    first, ends = members[0][0].whole, all(branch.whole.ends for branch, *_ in members)
    log_moments = table_moments(values, first.rates, log_moments, ends)
    return Weights(values, np.zeros(len(values)), first.rates, log_moments, exponent, ends)


def entries_of(epsilon: Fraction, tree: Tree, labelling: Labelling) -> int:
    """About how many entries of tables ``laws_of`` computes: the time and the memory that it takes."""
    rate, total = float(epsilon), 0.0
    variance = 2 * math.exp(-rate) / math.expm1(-rate) ** 2  # of a cell
    _, keys = numbered(tree)
    groups = []
    for node_class, laws, (drawn, needed) in zip(tree.classes, keys, _reaches(epsilon, tree, TAIL_BITS), strict=True):
        total += len(laws) * float(needed) ** 2
        if node_class.children is None:
            groups.append(1)
            continue
        left, right = (groups[child] for child in node_class.children)
        bases = left * (left + 1) // 2 if node_class.children[0] == node_class.children[1] else left * right
        groups.append(min(labelling.groups, bases * labelling.blocks))
        spread = math.sqrt(tree.rows * variance * max(node_class.cells) / 4)
        each = (drawn + 1) * (4 * drawn + 7 * spread) + float(needed) ** 2 + SMALL
        total += bases * len(laws) * each
    return int(total)


def numbered(tree: Tree) -> tuple[IntArray, list[list[tuple[int, int]]]]:
    """Which law of its class each class and kind has, and what tells the laws of a class apart, in their order.

    That is the number of cells of a leaf, and the laws of the children of a node.
    """
    law_of = np.empty((len(tree.classes), len(tree.kinds)), dtype=np.int64)
    distinct: list[list[tuple[int, int]]] = []
    for c, node_class in enumerate(tree.classes):
        keys = [(cells, -1) for cells in node_class.cells]
        if node_class.children is not None:
            left, right = node_class.children
            keys = list(zip(law_of[left].tolist(), law_of[right].tolist(), strict=True))
        place = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        law_of[c] = [place[key] for key in keys]
        distinct.append(list(place))
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

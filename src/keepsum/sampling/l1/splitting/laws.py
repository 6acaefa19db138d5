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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.l1.splitting.grouping import grouped
from keepsum.sampling.l1.splitting.reaches import farthest, less, reaches_of
from keepsum.sampling.l1.splitting.splits import Split, split_of
from keepsum.sampling.l1.splitting.transforms import Branch, Frequencies, frequencies_of
from keepsum.sampling.l1.splitting.tree import Load, Tree
from keepsum.sampling.l1.splitting.weights import Weights, convolve, lowest_of, sum_of, table_moments

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
        For each law of rows, the laws of the children; for a leaf, its load: how many cells, and added entries of each
        further weight.
    groups
        The weights of each group, for each law of rows.
    bases
        The bases; none for a leaf.
    labels
        The labels of each group; none for a leaf and the root.
    frequencies
        The frequencies; None for a leaf and the root.
    drawn
        For each law of rows, how far sums go that are to be drawn by tables.
    """

    parts: tuple[Load, ...]
    groups: tuple[tuple[Weights, ...], ...]
    bases: tuple[Base, ...] = ()
    labels: tuple[tuple[Label, ...], ...] = ()
    frequencies: Frequencies | None = None
    drawn: tuple[int, ...] = ()


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
            branch.whole.ends or 2 * split.reach >= drawn
            for node in self.nodes
            for base in node.bases
            for branch, split, drawn in zip(base.branches, base.splits, node.drawn, strict=True)
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
    rates = (epsilon, *tree.further)
    reaches = reaches_of(rates, tree, law_of, tail_bits)
    lowest, whole_rows = float(lowest_of(rates)), tree.classes[tree.root_class].loads
    for c, node_class in enumerate(tree.classes):
        drawn, needed = reaches[c]
        if node_class.children is None:
            nodes.append(NodeLaws(tuple(keys[c]), (tuple(map(partial(sum_of, rates), keys[c], needed)),)))
            continue
        # What is not followed is bounded by moments of all cells below.
        followed = farthest(rates, node_class.loads, tail_bits) + max(max(reach) for reach, _ in reaches) // 2
        left, right = (nodes[child] for child in node_class.children)
        alike = node_class.children[0] == node_class.children[1]
        is_root = c == tree.root_class
        pairs = [
            (a, b) for a in range(len(left.groups)) for b in range(a if alike and not is_root else 0, len(right.groups))
        ]
        branches = {
            (a, b): tuple(
                _branch(left.groups[a][i], right.groups[b][j], reach, followed)
                for (i, j), reach in zip(keys[c], needed, strict=True)
            )
            for a, b in pairs
        }
        counts = np.bincount(law_of[c], tree.rows_of_kind, minlength=len(keys[c])).astype(int).tolist()
        rest = [less(row, below) for row, below in zip(whole_rows, node_class.loads, strict=True)]
        rests = [sum_of(rates, rest[law_of[c].tolist().index(k)], reach) for k, reach in enumerate(needed)]
        kept = None
        if not is_root or len(pairs) > 1:
            blocks = 1 if is_root else labelling.blocks
            kept = frequencies_of([branches[pairs[0]], branches[pairs[-1]]], counts, rests, lowest, blocks)
        bases = tuple(Base(*pair, branches[pair], _splits(branches[pair], drawn, kept)) for pair in pairs)
        if kept is None or is_root:
            nodes.append(NodeLaws(tuple(keys[c]), (), bases, frequencies=kept, drawn=drawn))
            continue
        labels, groups = _grouped(bases, counts, rests, kept, labelling.groups, alike)
        nodes.append(NodeLaws(tuple(keys[c]), groups, bases, labels, kept, drawn))
    return Laws(tuple(nodes), law_of)


def _splits(branches: tuple[Branch, ...], reaches: Sequence[int], kept: Frequencies | None) -> tuple[Split, ...]:
    shares = [0.0] * len(branches) if kept is None else kept.shares.tolist()
    return tuple(
        split_of(branch, reach, kept, share) for branch, reach, share in zip(branches, reaches, shares, strict=True)
    )


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
    rates, total = (epsilon, *tree.further), 0.0
    variances = [2 * math.exp(-rate) / math.expm1(-rate) ** 2 if rate else 0.0 for rate in map(float, rates)]
    groups = []
    reaches = reaches_of(rates, tree, numbered(tree)[0], TAIL_BITS)
    for node_class, (drawn, needed) in zip(tree.classes, reaches, strict=True):
        total += sum(float(reach) ** 2 for reach in needed)
        if node_class.children is None:
            groups.append(1)
            continue
        left, right = (groups[child] for child in node_class.children)
        bases = left * (left + 1) // 2 if node_class.children[0] == node_class.children[1] else left * right
        groups.append(min(labelling.groups, bases * labelling.blocks))
        widest = max(sum(n * each for n, each in zip(load, variances, strict=True)) for load in node_class.loads)
        spread = math.sqrt(tree.rows * widest / 4)
        total += bases * sum(
            (near + 1) * (4 * near + 7 * spread) + float(far) ** 2 + SMALL
            for near, far in zip(drawn, needed, strict=True)
        )
    return int(total)


def numbered(tree: Tree) -> tuple[IntArray, list[list[Load]]]:
    """Which law of its class each class and kind has, and what tells the laws of a class apart, in their order.

    That is the load of a leaf, and the laws of the children of a node.
    """
    law_of = np.empty((len(tree.classes), len(tree.kinds)), dtype=np.int64)
    distinct: list[list[Load]] = []
    for c, node_class in enumerate(tree.classes):
        keys: list[Load] = node_class.loads
        if node_class.children is not None:
            left, right = node_class.children
            keys = list(zip(law_of[left].tolist(), law_of[right].tolist(), strict=True))
        place = {key: k for k, key in enumerate(dict.fromkeys(keys))}
        law_of[c] = [place[key] for key in keys]
        distinct.append(list(place))
    return law_of, distinct


def _branch(left: Weights, right: Weights, reach: int, followed: int) -> Branch:
    ends = left.reach if right.is_flat else min(followed, left.reach)
    return Branch(left, right, convolve(left, right, reach), ends)

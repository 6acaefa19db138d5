"""The layers of a table as leaves of a binary tree, and the tables of all classes of its nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.fft import irfftn, next_fast_len, rfftn

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.l1.layers.laws import Joint, RowSplit, joint_of, norm
from keepsum.sampling.l1.layers.weights import (
    LARGEST_EXPONENT,
    TILTS,
    Box,
    VectorWeights,
    convolve,
    layer_log_moments,
    layer_weights,
    pair,
)

# The layers of a table as the leaves of a binary tree, and which nodes are alike.


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


# The tables of all classes of nodes: weights, the numbers t, and where characteristic functions are computed.


REFEREE_BITS = 128  # of precision, that an ordinary question to the referee takes
TAIL_BITS = 40  # vectors outside the box have a chance of about 2^-40 each, and are left to the referee
NEGLIGIBLE = 1e-10  # of B: what parts that add up to 0 modulo G but not to 0 come to, for ordinary vectors
COARSE = 1e-2  # the same for the numbers t, which are only larger for it
RARE = 1e-6  # the chance of vectors whose number t is left at 1
NORM_TAIL_BITS = 16  # the box in which the numbers t are computed is smaller; what it misses is added to them
NORM_ENTRIES = 10**8  # entries of laws that are computed for the numbers t of a class at most: some seconds
SAMPLES = 24  # vectors that G is guessed from


@dataclass(frozen=True, eq=False)
class NodeTables:
    """What nodes of a class have in common.

    Attributes
    ----------
    weights
        W.
    numbers
        t over the box; 1 for layers and the root.
    children
        The classes of the children; None for a layer.
    split
        How vectors split; None for a layer.
    """

    weights: VectorWeights
    numbers: Floats
    children: tuple[int, int] | None = None
    split: RowSplit | None = None


def tables_of(epsilon: Fraction, tree: Tree, columns: int, tail_bits: int) -> tuple[NodeTables, ...]:
    """The tables of all classes of a tree, children before parents."""
    layers = tree.layers
    box = Box(columns, box_reach(epsilon, columns, layers, tail_bits))
    layer, ones = layer_weights(epsilon, box), np.ones(box.shape)
    tables: list[NodeTables] = []
    for c, node_class in enumerate(tree.classes):
        if node_class.children is None:
            tables.append(NodeTables(layer, ones))
            continue
        a, b = node_class.children
        split = RowSplit(tables[a].weights, tables[b].weights)
        if c == tree.root_class:
            tables.append(NodeTables(layer, ones, node_class.children, split))
        else:
            smaller = min(box.reach, box_reach(epsilon, columns, layers, NORM_TAIL_BITS))
            tables.append(_inner(float(epsilon), node_class, split, tree.rows, layers, smaller))
    return tuple(tables)


def box_reach(epsilon: Fraction, columns: int, layers: int, tail_bits: int) -> int:
    """How far vectors go: beyond, a part at the root has a chance below 2^-``tail_bits`` or so.

    A guess, which decides nothing but when the referee is asked: the bound of ``beyond_boxes`` over F(0), which is
    taken to be that of a Gaussian law.
    """
    rate = float(epsilon)
    q = rate * TILTS
    moments = layer_log_moments(epsilon, columns, np.concatenate([[0.0], q]))
    spread = math.log1p(2.0 * layers / rate**2) * (columns - 1) / 2
    whole = max(0.0, layers * float(moments[0]) - spread)
    bits = tail_bits * math.log(2) + math.log(4 * columns) - whole
    return max(2, math.ceil(float(((bits + (layers - 1) * moments[1:]) / (2 * q)).min())))


def entries_of(epsilon: Fraction, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """About how many entries of tables and laws a sampler computes.

    To keep at a time, per proposal, and by the referee for an ordinary question.
    """
    rows, layers, columns = shape
    reach = box_reach(epsilon, columns, layers, TAIL_BITS)
    size = Box(columns, reach).size
    convolved = (3 * reach + 1) ** (columns - 1) if layers > 4 else 0
    kept = (20 + 2 * min(rows, size)) * size + 6 * convolved
    settled = Box(columns, box_reach(epsilon, columns, layers, REFEREE_BITS)).size
    return int(kept), int(rows * (layers - 1) * (size + 10 * rows ** ((columns - 1) / 2))), int(settled)


def _inner(epsilon: float, node_class: NodeClass, split: RowSplit, rows: int, layers: int, smaller: int) -> NodeTables:
    """The tables of an inner node but the root: F, then t, by the laws in a smaller box, then W."""
    cells = node_class.layers
    whole = pair(epsilon, split.left) if cells == 2 else convolve(split.left, split.right)
    places, shares = _ordinary(whole, epsilon, layers - cells, smaller)
    points, growth, coarse = _group(split, places, shares, rows, epsilon)
    numbers = _numbers(split, places, coarse, rows, smaller)
    split = replace(split, points=points, growth=growth)
    return NodeTables(whole.times(numbers), numbers, node_class.children, split)


def _ordinary(whole: VectorWeights, epsilon: float, others: int, smaller: int) -> tuple[IntArray, Floats]:
    """One vector of each orbit that matters, its stored coordinates, and about the chance of the orbit.

    Guessed from the law of the vectors of two groups of layers, these and all others, that add up to 0.
    """
    box = whole.box
    vectors, orbit_of = box.orbits
    points = next_fast_len(2 * box.side, real=True)
    sizes = (points,) * box.dimensions
    layer = np.where(box.inside, np.exp(-epsilon * box.lengths), 0.0)
    shifted = np.zeros(sizes)
    shifted[(slice(0, box.side),) * box.dimensions] = layer
    shifted = np.roll(shifted, (-box.reach,) * box.dimensions, axis=tuple(range(box.dimensions)))
    rest = np.roll(irfftn(rfftn(shifted) ** others, sizes), (box.reach,) * box.dimensions, tuple(range(box.dimensions)))
    chances = whole.values * np.maximum(rest[(slice(0, box.side),) * box.dimensions], 0.0)
    shares = np.bincount(orbit_of[box.inside], chances[box.inside], minlength=len(vectors))
    counts = np.bincount(orbit_of[box.inside], minlength=len(vectors))
    order = np.argsort(-shares / counts, kind="stable")
    upto = np.cumsum(shares[order]) / shares.sum()
    enough = int(np.searchsorted(upto, 1 - RARE)) + 1
    kept = order[: max(1, min(enough, NORM_ENTRIES // Box(box.columns, smaller).size))]
    return vectors[kept, :-1], shares[kept] / shares.sum()


def _group(split: RowSplit, vectors: IntArray, shares: Floats, rows: int, epsilon: float) -> tuple[int, float, int]:
    """G, s, and a smaller G for the numbers t: aliasing is to be negligible for ordinary vectors.

    What is ordinary is a guess; bounds for the vectors at hand are computed when a table is drawn.
    """
    upto = np.cumsum(shares) / shares.sum()
    chosen = np.unique(np.searchsorted(upto, (np.arange(SAMPLES) + 0.5) / SAMPLES))
    weights = np.diff(np.concatenate([[0.0], (upto[chosen[:-1]] + upto[chosen[1:]]) / 2, [1.0]]))
    growths = np.linspace(0.2 * epsilon, min(3.4 * epsilon, LARGEST_EXPONENT / split.box.reach), 33)
    growth, variance = np.zeros(len(growths)), 0.0
    for y, share in zip(vectors[chosen], weights.tolist(), strict=True):
        joint = joint_of(split, y)
        if math.isinf(joint.error):
            continue
        centred = joint.log_growth(growths) - np.multiply.outer(np.concatenate([y, -y]) / 2, growths)
        growth += rows * share * centred.mean(axis=0)
        variance += rows * share * _variance(joint)
    dimensions = split.box.dimensions
    log_bridge = -dimensions / 2 * math.log(max(1.0, 2 * math.pi * variance))
    points = [
        (growth + math.log(2 * dimensions) - log_bridge - math.log(level)) / growths for level in (NEGLIGIBLE, COARSE)
    ]
    best = int(points[0].argmin())
    fine, coarse = (next_fast_len(max(3, math.ceil(float(p.min()))), real=True) for p in points)
    return fine, float(growths[best]), min(coarse, fine)


def _variance(joint: Joint) -> float:
    """The variance of a coordinate of the part."""
    box = joint.split.box
    marginal = box.marginal(joint.values, 0) / joint.total
    u = np.arange(-box.reach, box.reach + 1)
    mean = float(marginal @ u)
    return float(marginal @ (u - mean) ** 2)


def _numbers(split: RowSplit, vectors: IntArray, points: int, rows: int, smaller: int) -> Floats:
    """The numbers t over the box: the norms of the orbits of these vectors, 1 elsewhere."""
    box, within = split.box, RowSplit(split.left.within(smaller), split.right.within(smaller))
    orbits, orbit_of = box.orbits
    by_orbit = np.ones(len(orbits) + 1)  # the last one is for places outside the box
    for y in vectors:
        by_orbit[orbit_of[box.place(y)]] = norm(joint_of(within, y), points, rows)
    return by_orbit[orbit_of]

"""How far the tables of a tree's laws go: guesses that decide when the referee is asked, never the law."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sampling.l1.splitting.tree import Load, Tree
from keepsum.sampling.l1.splitting.weights import drawn_reach


def reaches_of(
    rates: tuple[Fraction, ...], tree: Tree, law_of: IntArray, tail_bits: int
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """For each class of nodes and each of its laws, how far sums are drawn by tables, and how far weights are needed.

    Sums below a node go no farther than those over the rest of the row. Weights go farther: near its end a convolution
    misses what lies beyond, which is bounded by moments of all cells below the parent, about twice as many, and sums
    below the parent go farther than those below the node. Where all entries have one weight, laws go equally far.
    """
    rows = tree.classes[tree.root_class].loads
    drawn = np.empty(law_of.shape, dtype=np.int64)
    needed = np.empty_like(drawn)
    for c, node_class in enumerate(tree.classes):
        pairs = [(below, less(row, below)) for row, below in zip(rows, node_class.loads, strict=True)]
        near, far = [_narrower(rates, *pair) for pair in pairs], [tuple(2 * n for n in below) for below, _ in pairs]
        if len(rates) == 1:
            near, far = [max(near)] * len(near), [max(far)] * len(far)
        drawn[c] = [drawn_reach(rates, load, tail_bits) for load in near]
        needed[c] = [drawn_reach(rates, load, tail_bits + 8) for load in far]
    # Where the rest of a row may be anything, sums go as far as they like: twice as far as if it held them back.
    flat = np.array([[_is_flat(rates, load) for load in node_class.loads] for node_class in tree.classes])
    times = 1 + flat.any(axis=0)
    drawn, needed = times * drawn, times * needed + times * drawn.max(axis=0)
    needed = np.where(flat, needed.max(), needed)
    drawn[tree.root_class] = needed[tree.root_class] = 0
    return [(_by_law(drawn[c], law_of[c]), _by_law(needed[c], law_of[c])) for c in range(len(tree.classes))]


def _by_law(reaches: IntArray, laws: IntArray) -> tuple[int, ...]:
    """The farthest of each law, from those of kinds of rows."""
    largest = np.zeros(int(laws.max()) + 1, dtype=np.int64)
    np.maximum.at(largest, laws, reaches)
    return tuple(largest.tolist())


def farthest(rates: tuple[Fraction, ...], loads: Sequence[Load], tail_bits: int) -> int:
    """How far the widest of some sums goes."""
    different = {max(loads)} if len(rates) == 1 else set(loads)
    return max(drawn_reach(rates, load, tail_bits) for load in different)


def _narrower(rates: tuple[Fraction, ...], one: Load, other: Load) -> Load:
    """The sum with the smaller variance, about; one that is flat has none."""
    if len(rates) == 1:
        return min(one, other)
    if _is_flat(rates, one) or _is_flat(rates, other):
        return other if _is_flat(rates, one) else one
    return min(one, other, key=lambda load: sum(n / rate**2 for n, rate in zip(load, rates, strict=True) if rate))


def _is_flat(rates: tuple[Fraction, ...], load: Load) -> bool:
    return any(n and not rate for n, rate in zip(load, rates, strict=True))


def less(row: Load, below: Load) -> Load:
    """What a row has beside what is below a node."""
    return tuple(n - m for n, m in zip(row, below, strict=True))

"""l1 Laplace noise in three-way tables under all two-way margins: exact, by splitting the layers.

A row of the table is a matrix of layers by columns. In each layer it has a vector of c entries that add up to 0, and
over the layers these vectors add up to 0. Take a binary tree over the layers, and for a node S the sum y_i of the
vectors of row i over the layers of S. All two-way margins are 0 if and only if the y_i of the root are 0, and those of
every node add up to 0 over the rows. So the layers are split as ``splitting`` does the columns of a two-way table,
with vectors in place of integers: ``docs/exact-tables.md`` has the proof.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sampling.core.driving import PILOT_DRAWS, equal_ranges, in_parallel
from keepsum.sampling.core.forking import ProcessLock
from keepsum.sampling.core.kernel_arguments import UNLIMITED, WORD_BITS
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.l1.layers.laws import (
    TINY,
    Digits,
    PartsReferee,
    RowLaw,
    bridge_bounds,
    draw_bridge,
    row_law,
    tries_at_once,
)
from keepsum.sampling.l1.layers.nodes import NEGLIGIBLE, REFEREE_BITS, TAIL_BITS, grow, tables_of
from keepsum.sampling.l1.layers.referee import LayersReferee
from keepsum.sampling.l1.splitting.weights import ULP

TASK_TABLES = 16  # tables that a worker draws at a time
CACHE_BYTES = 2**28  # memory for laws that are kept for the next table
PART_ENTRIES = 10  # entries of a law that take as long as drawing a part
LARGEST_ERROR = 1e-8  # of the law of parts at the root: with more, the referee would be asked too often


@dataclass
class Effort:
    """What draws took: accepted tables, proposals, and entries of laws that were computed.

    A part that is drawn counts as ten entries.
    """

    accepted: int = 0
    proposals: int = 0
    entries: int = 0


@dataclass
class _Cache:
    """Laws by class of node and vector, the latest ones. Threads share it; what it holds changes no draw."""

    most: int
    size: int = 0
    known: OrderedDict[tuple[int, bytes], RowLaw] = field(default_factory=OrderedDict)
    lock: ProcessLock = field(default_factory=ProcessLock)

    def get(self, node_class: int, y: IntArray) -> RowLaw | None:
        with self.lock.here():
            return self.known.get((node_class, y.tobytes()))

    def put(self, node_class: int, law: RowLaw) -> None:
        key = (node_class, law.y.tobytes())
        with self.lock.here():
            if key in self.known:
                return
            self.known[key] = law
            self.size += law.nbytes
            while self.size > self.most and len(self.known) > 1:
                self.size -= self.known.popitem(last=False)[1].nbytes


class LayerSplitting:
    """Double geometric noise in three-way tables with all two-way margins 0.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of l1 distance.
    shape
        The numbers of rows, of layers, and of columns: take the longest axis as rows, the shortest as columns.
    count
        How many such tables a draw has.
    word_bits
        Digits of a random word that floats see; fewer only to test the referee.
    tail_bits
        Vectors with a chance below about 2^-``tail_bits`` are left to the referee; fewer only to test that.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|_1) on the tables with zero two-way margins.
    ``tests/statistical/test_layers.py``.
    """

    def __init__(
        self,
        epsilon: Fraction,
        shape: tuple[int, int, int],
        count: int = 1,
        word_bits: int = WORD_BITS,
        tail_bits: int = TAIL_BITS,
    ) -> None:
        rows, layers, columns = self._shape = shape
        self._count, self._word_bits = count, word_bits
        self._block = rows * layers * columns
        self.width = self._block * count
        self._tree = grow(rows, layers)
        self._tables = tables_of(epsilon, self._tree, columns, tail_bits)
        self._splits = {c: made.split for c, made in enumerate(self._tables) if made.split is not None}
        self._referee = LayersReferee(epsilon, self._tables)
        self._tries = tries_at_once(rows, columns - 1)
        self._cache = _Cache(CACHE_BYTES)
        self._root = row_law(self._splits[self._tree.root_class], np.zeros(columns - 1, dtype=np.int64))

    @property
    def usable(self) -> bool:
        """Whether draws are decided by floats, all but a few."""
        return self._root.error < LARGEST_ERROR

    @property
    def settled(self) -> float:
        """About how many coefficients of polynomials the referee computes to accept the vectors below a node."""
        rows, _, columns = self._shape
        further = REFEREE_BITS * math.log(2) + math.log(NEGLIGIBLE)
        bases = [split.points + further / split.growth for split in self._splits.values() if split.growth]
        return float(rows * max(bases, default=0.0) ** (columns - 1))

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the tables of a draw one after the other, row by row and layer by layer."""
        flat = out.reshape(-1, self._block)

        def work(first: int, last: int, stream: Stream) -> None:
            effort = Effort()
            for k in range(first, last):
                flat[k] = self._draw(Digits.of(stream, self._word_bits), effort)

        in_parallel(work, equal_ranges(len(flat), TASK_TABLES), rng, threads)

    def pilot(self, rng: Rng, most: int, enough: int = PILOT_DRAWS) -> Effort:
        """Draw until ``enough`` tables are accepted or ``most`` entries of laws are computed."""
        effort, digits = Effort(), Digits.of(rng.stream(), self._word_bits)
        while effort.accepted < enough and effort.entries < most:
            self._draw(digits, effort, most)
        return effort

    def _draw(self, digits: Digits, effort: Effort, most: int = UNLIMITED) -> IntArray:
        """Propose until a table is accepted, or so many entries of laws are computed."""
        while effort.entries < most:
            effort.proposals += 1
            table = self._propose(digits, effort)
            if table is not None:
                effort.accepted += 1
                return table
        return np.zeros(self._block, dtype=np.int64)

    def _propose(self, digits: Digits, effort: Effort) -> IntArray | None:
        """A table, or None where a node is rejected."""
        rows, layers, columns = self._shape
        tree = self._tree
        vectors = np.zeros((2 * layers - 1, rows, columns - 1), dtype=np.int64)
        for node in range(tree.inner):
            left, right = int(tree.left[node]), int(tree.right[node])
            vectors[left] = self._split(node, vectors[node], digits, effort)
            vectors[right] = vectors[node] - vectors[left]
            for child in (left, right):
                if child < tree.inner and not self._accept(child, vectors[child], digits, effort):
                    return None
        table = np.empty((rows, layers, columns), dtype=np.int64)
        table[:, :, :-1] = vectors[tree.inner :].transpose(1, 0, 2)
        table[:, :, -1] = -table[:, :, :-1].sum(axis=2)
        return table.reshape(-1)

    def _split(self, node: int, vectors: IntArray, digits: Digits, effort: Effort) -> IntArray:
        """The parts of all rows below the left child."""
        node_class = int(self._tree.class_of[node])

        def accept(y: IntArray, part: IntArray, top: Fraction, uniform: LazyUniform) -> bool:
            return self._referee.accept_part(node_class, tuple(y.tolist()), tuple(part.tolist()), top, uniform)

        def draw_outside(law: RowLaw, uniform: LazyUniform) -> IntArray | None:
            top = 2**law.outside_bits / Fraction(law.scale)
            return self._referee.draw_outside(node_class, tuple(law.y.tolist()), top, uniform)

        laws = [self._law(node_class, y, effort) for y in vectors]
        referee = PartsReferee(accept, draw_outside)
        parts, tries = draw_bridge(self._splits[node_class], laws, digits, self._tries, referee)
        effort.entries += PART_ENTRIES * tries * len(laws)
        return parts

    def _accept(self, node: int, vectors: IntArray, digits: Digits, effort: Effort) -> bool:
        """Whether the vectors below an inner node but the root are accepted: with chance B over the product of t."""
        node_class = int(self._tree.class_of[node])
        low, high = self._factor(node_class, vectors, effort)

        def settle(_: int, uniform: LazyUniform) -> bool:
            return self._referee.accept_vectors(node_class, [tuple(y) for y in vectors.tolist()], uniform)

        return bool(digits.below(np.array([low]), np.array([high]), settle)[0])

    def _factor(self, node_class: int, vectors: IntArray, effort: Effort) -> tuple[float, float]:
        """Bounds on B over the product of t."""
        split, numbers = self._splits[node_class], self._tables[node_class].numbers
        transforms = [self._law(node_class, y, effort).transform for y in vectors]
        known = [row for row in transforms if row is not None]
        if len(known) < len(transforms) or not split.box.holds(vectors).all():
            return 0.0, 1.0
        low, high = bridge_bounds(known, split)
        product = float(np.prod(numbers[tuple((vectors + split.box.reach).T)]))
        rounding = (len(vectors) + 8) * ULP
        return low / product * (1 - rounding), max(high, 0.0) / product * (1 + rounding) + TINY

    def _law(self, node_class: int, y: IntArray, effort: Effort) -> RowLaw:
        if node_class == self._tree.root_class:
            return self._root
        law = self._cache.get(node_class, y)
        if law is None:
            law = row_law(self._splits[node_class], y)
            effort.entries += law.envelopes.size
            self._cache.put(node_class, law)
        return law

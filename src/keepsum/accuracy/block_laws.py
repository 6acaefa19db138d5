"""The noise in blocks where totals overlap, and of what a focus concerns: exact, estimated from draws, or bounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from keepsum._arrays import Floats, IntArray, grouped
from keepsum._saying import the
from keepsum.accuracy.cell_noise import CellLaw, cell_law, check_range
from keepsum.accuracy.queries import Piece, QueryWeights
from keepsum.accuracy.query_laws import BoundLaw, EstimatedLaw, ExactLaw, PieceLaw, dominated_piece, piece_law
from keepsum.accuracy.simulation import needed_draws, simulated
from keepsum.errors import InputError, NoSamplerError
from keepsum.lattice.structure import Structure
from keepsum.planning.focus import KEPT
from keepsum.planning.groups import BlockGroup
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.l1.focus.marginals import FocusLaws
from keepsum.sampling.l1.focus.sampler import NestedFocus
from keepsum.sampling.l1.focus.tree import ABSENT

# The law of the noise of cells, and of sums of cells, that a focus concerns: exact where they form a total.
#
# A sum whose cells in each tree of nested totals are one cell, all cells of a total, or some of the cells of a total
# that contains no smaller one, is a sum of independent pieces with known laws. Laws are log-concave, so that beyond
# the end of a table probabilities fall at least as fast as at its end.


RELIABLE = 1e-9  # probabilities above this, relative to the largest, are right to several digits


@dataclass(frozen=True, eq=False)
class FocusedPiece:
    """A part of a query in one tree of nested totals, with a known law."""

    weight: int
    masses: Floats  # the probabilities of 0, 1, 2, ...; those of negative values are the same

    @property
    def classes(self) -> tuple[tuple[int, int], ...]:
        """As those of a ``Piece``: its weight."""
        return ((self.weight, 1),)

    @cached_property
    def variance(self) -> float:
        """Its variance."""
        squares = np.arange(len(self.masses), dtype=np.float64) ** 2
        return 2 * self.weight**2 * float(squares @ self.masses)

    def law(self) -> ExactLaw:
        """Its law alone."""
        return ExactLaw(self.weight, self.masses, self.variance)

    @cached_property
    def _end(self) -> tuple[int, float]:
        """A place up to which probabilities are reliable, and the logarithm of how fast they fall there."""
        last = int(np.flatnonzero(self.masses > RELIABLE * self.masses[0])[-1])
        if not last:
            return 0, math.inf
        return last, math.log(self.masses[last - 1]) - math.log(self.masses[last])

    @property
    def largest_tilt(self) -> float:
        """E[exp(h X)] is finite below this."""
        return self._end[1] / self.weight

    def log_moments(self, tilts: Floats) -> Floats:
        """Upper bounds on ln E[exp(h X)]: probabilities beyond the end are bounded by a geometric series."""
        last, rate = self._end
        places = np.arange(1, last + 1)
        moments = []
        for tilt in (self.weight * tilts).tolist():
            if tilt >= rate:
                moments.append(math.inf)
                continue
            grown = np.log(self.masses[1 : last + 1]) + tilt * places
            inside = float(np.exp(grown).sum()) + float(np.exp(grown - 2 * tilt * places).sum())
            rest = 0.0 if math.isinf(rate) else 2 * self.masses[last] * math.exp(tilt * last) / math.expm1(rate - tilt)
            moments.append(math.log(self.masses[0] + inside + rest))
        return np.array(moments)

    def least_fall(self, angles: Floats) -> Floats | None:
        """Nothing is assumed of its transform."""
        return np.zeros(len(angles))

    def work(self, angles: int) -> float:
        """How many numbers the transform takes."""
        return angles

    def transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """E[cos(t X)] at t = 2 pi k / (points unit)."""
        places = np.arange(len(self.masses)) * (self.weight // unit) % points
        folded = np.bincount(places, weights=self.masses, minlength=points)
        # The negative values have the conjugate transform, and 0 counts once.
        whole = 2 * np.fft.rfft(folded).real - self.masses[0]
        return np.asarray(whole[where])


@dataclass(frozen=True)
class _Shape:
    """For each total, the outermost one that it is in, how many cells it has, and how many totals it is around."""

    root: IntArray
    cells: IntArray
    children: IntArray

    @classmethod
    def of(cls, parents: IntArray, sizes: IntArray) -> _Shape:
        root, cells = np.arange(len(parents)), sizes.copy()
        for node, parent in enumerate(parents.tolist()):  # parents come first
            if parent != ABSENT:
                root[node] = root[parent]
        for node, parent in reversed(list(enumerate(parents.tolist()))):
            if parent != ABSENT:
                cells[parent] += cells[node]
        return cls(root, cells, np.bincount(parents[parents != ABSENT], minlength=len(parents)))


AnyPiece: TypeAlias = Piece | FocusedPiece
_known: WeakKeyDictionary[BlockSamplers, FocusedNoise] = WeakKeyDictionary()


class FocusedNoise:
    """The laws of cells and sums in the trees of nested totals of a plan."""

    def __init__(self, blocks: BlockSamplers) -> None:
        nested = blocks.nested
        if nested is None:
            raise AssertionError("there is a focus")
        self.nested = nested
        self.sampler = next(c.sampler for c in blocks.choices if isinstance(c.sampler, NestedFocus))
        self.totals = nested.totals(blocks.mechanism)
        self.focused = nested.home >= 0
        self._pieces: dict[tuple[object, ...], FocusedPiece] = {}

    @classmethod
    def of(cls, blocks: BlockSamplers) -> FocusedNoise | None:
        """That of a plan; None without a focus, or without a sampler for it."""
        if blocks.nested is None or not any(isinstance(choice.sampler, NestedFocus) for choice in blocks.choices):
            return None
        if blocks not in _known:
            _known[blocks] = cls(blocks)
        return _known[blocks]

    @cached_property
    def _laws(self) -> FocusLaws:
        return FocusLaws(self.totals, self.sampler.kinds, self.sampler.laws)

    @cached_property
    def _shape(self) -> _Shape:
        return _Shape.of(self.nested.parents, self.nested.sizes)

    def classes(self) -> Iterator[tuple[IntArray, ExactLaw]]:
        """Cells with the same law, as places among the cells of the trees in order, and their law."""
        home = self.nested.home[self.nested.cells]
        nodes = np.unique(home)
        like = {node: self._laws.like_cell(node) for node in nodes.tolist()}
        _, number = np.unique([like[node] for node in nodes.tolist()], return_inverse=True)
        of_node = np.full(len(self.nested.parents), -1, dtype=np.int64)
        of_node[nodes] = number
        for k in range(int(number.max()) + 1):
            yield np.flatnonzero(of_node[home] == k), self._cell(int(nodes[int(np.argmax(number == k))]), 1).law()

    def cell_variance(self, cell: int) -> float:
        """The variance of a cell's noise."""
        return self._cell(int(self.nested.home[cell]), 1).variance

    def pieces(self, query: QueryWeights) -> dict[FocusedPiece, int] | None:
        """The pieces of a query over cells of the trees, each with how often it occurs; None if a law is not known."""
        home = self.nested.home[query.cells]
        roots = self._shape.root[home]
        found: dict[FocusedPiece, int] = {}
        for members in grouped(roots):
            count = self.nested.structure.number_of(query.cells[members])
            piece = self._piece(int(roots[members[0]]), home[members], query.weights[members], count)
            if piece is None:
                return None
            if piece.weight:
                found[piece] = found.get(piece, 0) + 1
        return found

    def pieces_of_sums(self, sums: IntArray, count: int) -> list[dict[FocusedPiece, int] | None]:
        """The pieces of each of some sums of cells; ``sums`` says in which of them each cell is."""
        cells = np.flatnonzero(self.focused)
        order = cells[np.argsort(sums[cells], kind="stable")]
        starts = np.searchsorted(sums[order], np.arange(count + 1))
        ones = np.ones(len(order), dtype=np.int64)
        return [
            self.pieces(QueryWeights(len(sums), order[start:end], ones[start:end]))
            for start, end in pairwise(starts.tolist())
        ]

    def _piece(self, root: int, home: IntArray, weights: IntArray, count: int) -> FocusedPiece | None:
        """The piece of a query in one tree, over so many cells; of weight 0 if the kept total determines it."""
        base = int(weights[0])
        if (weights != base).any():
            return None  # of several weights
        size, kept = int(self._shape.cells[root]), self.nested.levels[root] == KEPT
        if count == size:
            return NO_NOISE if kept else self._total(root, abs(base))
        if count == 1:
            return self._cell(int(home[0]), abs(base))
        node: int = int(home[0])
        if (home == node).all() and count < self.nested.sizes[node] and not self._shape.children[node]:
            return self._some(node, count, abs(base))
        while node != ABSENT and self._shape.cells[node] < count:
            node = int(self.nested.parents[node])
        if node != ABSENT and self._shape.cells[node] == count and self._inside(node, home):
            return self._total(node, abs(base))
        return None

    def _inside(self, node: int, home: IntArray) -> bool:
        """Whether all of these totals are a total, or inside it."""
        waiting = np.unique(home)
        while len(waiting):
            waiting = np.unique(self.nested.parents[waiting[waiting != node]])
            if len(waiting) and waiting[0] == ABSENT:
                return False
        return True

    def _cell(self, node: int, weight: int) -> FocusedPiece:
        return self._made(("cell", self._laws.like_cell(node), weight), weight, lambda: self._laws.law_of_cell(node))

    def _total(self, node: int, weight: int) -> FocusedPiece:
        key = ("total", *self._laws.like_total(node), weight)
        return self._made(key, weight, lambda: self._laws.law_of_total(node))

    def _some(self, node: int, cells: int, weight: int) -> FocusedPiece:
        key = ("some", *self._laws.like_total(node), cells, weight)
        return self._made(key, weight, lambda: self._laws.law_of_some_cells(node, cells))

    def _made(self, key: tuple[object, ...], weight: int, law: Callable[[], Floats]) -> FocusedPiece:
        if key not in self._pieces:
            self._pieces[key] = FocusedPiece(weight, law())
        return self._pieces[key]


NO_NOISE = FocusedPiece(0, np.ones(1))


def law_of_piece(piece: AnyPiece, cell: CellLaw) -> PieceLaw:
    """The law of any piece."""
    return piece if isinstance(piece, FocusedPiece) else piece_law(piece, cell)


# The noise in blocks where totals overlap: estimated from simulated draws if that is cheap, otherwise bounded.


LARGEST_SUM = 2.0**60  # of simulated noise with weights, so that a few of them fit 64 bits
USUAL_LEVEL = 0.95  # at which a law must be of use if nothing else is known
NO_SAMPLER = (
    f"Margins of error need a sampler for every block, and one has none. {the.call('plan.explain()')} shows every "
    "block."
)


def free_cell(mechanism: Mechanism) -> CellLaw | None:
    """The noise of a free cell; None where cells are not independent: all share one scale in l2 Laplace noise."""
    check_range(mechanism)
    return cell_law(mechanism)


@dataclass(frozen=True, eq=False)
class CellClass:
    """Cells of a group of blocks whose noise has one law, as columns of the group; and that law, if it is known."""

    choice: Choice
    columns: IntArray
    law: ExactLaw | None = None

    @property
    def cells(self) -> IntArray:
        """The cells."""
        return self.choice.cells[self.columns]


def classes_of(blocks: BlockSamplers, by_region: bool = False) -> Iterator[CellClass]:
    """The classes of all cells whose law is not known in closed form.

    ``by_region`` takes those of different regions for different, as earlier versions did except in full tables.
    """
    closed = free_cell(blocks.mechanism) is not None
    for group, choice in zip(blocks.groups, blocks.choices, strict=True):
        if group.form.kind == "nested":
            yield from _focused_classes(blocks, choice)
        elif group.tables:
            yield from _crossed_classes(group, choice)
        elif group.members or not closed:
            for columns in _exchangeable(blocks.noise_structure, group, choice, by_region):
                yield CellClass(choice, columns)


def _focused_classes(blocks: BlockSamplers, choice: Choice) -> Iterator[CellClass]:
    """The classes of cells that a focus concerns."""
    focused = FocusedNoise.of(blocks)
    if focused is None:
        raise NoSamplerError(NO_SAMPLER)
    for columns, law in focused.classes():
        yield CellClass(choice, columns, law)


def _crossed_classes(group: BlockGroup, choice: Choice) -> Iterator[CellClass]:
    """The classes of cells in tables of one form, which the sampler draws one after the other, all in one order."""
    table, tables = group.tables[0], np.arange(len(group.tables))
    size = len(table.cells)
    order = np.argsort(choice.cells[:size])
    for places in table.alike():
        columns = order[np.searchsorted(choice.cells[:size], table.cells[places], sorter=order)]
        yield CellClass(choice, (size * tables[:, None] + columns).reshape(-1))


def class_law(
    blocks: BlockSamplers, cells: CellClass, level: float = USUAL_LEVEL, patient: bool = False
) -> EstimatedLaw | BoundLaw | ExactLaw:
    """The law of one cell of a class."""
    if cells.law is not None:
        return cells.law
    choice, computable = cells.choice, free_cell(blocks.mechanism) is not None
    if choice.sampler is None:
        raise NoSamplerError(NO_SAMPLER)
    noise = simulated(blocks, choice, needed_draws(level, len(cells.columns)), patient or not computable)
    if noise is None:
        return class_bound(blocks, cells)
    bound = partial(class_bound, blocks, cells) if computable else None
    return EstimatedLaw(noise[:, choice.first + cells.columns], None, bound, choice.chain is not None)


def class_bound(blocks: BlockSamplers, cells: CellClass) -> BoundLaw:
    """A bound on the law of one cell of a class in blocks where totals overlap."""
    cell = free_cell(blocks.mechanism)
    if cell is None:
        raise AssertionError("l2 Laplace noise is always simulated")
    return _bound([], QueryWeights(blocks.size, cells.cells[:1], np.ones(1, dtype=np.int64)), blocks, cell)


def query_law(
    blocks: BlockSamplers,
    rest: QueryWeights,
    known: list[tuple[PieceLaw, int]],
    computed: ExactLaw | BoundLaw,
    level: float = USUAL_LEVEL,
) -> EstimatedLaw | BoundLaw:
    """The law of a query of which ``rest`` lies in blocks, or all of it in l2 Laplace noise.

    Parameters
    ----------
    blocks, rest
        What lies in blocks.
    known, computed
        The pieces elsewhere, and the law of their sum.
    level
        At which the law must be of use.
    """
    cell = free_cell(blocks.mechanism)
    bound = None if cell is None else partial(_bound, known, rest, blocks, cell)
    values, chain = _drawn_query(blocks, rest, level, patient=cell is None)
    if values is None or not isinstance(computed, ExactLaw):
        if bound is None:
            raise AssertionError("l2 Laplace noise is always simulated")
        return bound()
    return EstimatedLaw(values[:, None], computed if known else None, bound, chain)


def _bound(known: list[tuple[PieceLaw, int]], rest: QueryWeights, blocks: BlockSamplers, cell: CellLaw) -> BoundLaw:
    pieces: list[tuple[PieceLaw, int]] = [*known, (dominated_piece(rest, blocks.structure, cell), 1)]
    return BoundLaw(1, pieces, sum(times * piece.variance for piece, times in pieces), variance_known=False)


def _drawn_query(
    blocks: BlockSamplers, query: QueryWeights, level: float, patient: bool
) -> tuple[IntArray | None, bool]:
    """The query's noise in simulated draws, None if these would take long; and whether a chain drew some of it."""
    vector = np.zeros(blocks.size, dtype=np.int64)
    vector[query.cells] = query.weights
    touched: dict[int, list[Choice]] = {}
    for choice in blocks.choices:
        if vector[choice.cells].any():
            touched.setdefault(id(choice.sampler), []).append(choice)
    parts = []
    for choices in touched.values():
        if choices[0].sampler is None:
            raise NoSamplerError(NO_SAMPLER)
        noise = simulated(blocks, choices[0], needed_draws(level), patient)
        if noise is None:
            return None, False
        weights = np.zeros(noise.shape[1], dtype=np.int64)
        for choice in choices:
            weights[choice.first : choice.first + len(choice.cells)] = vector[choice.cells]
        if float(np.abs(noise).max(initial=0)) * float(np.abs(weights.astype(np.float64)).sum()) > LARGEST_SUM:
            raise InputError("Weights of a query must be smaller for noise as wide as this. Scale it down.")
        parts.append(noise @ weights)
    draws = min(len(part) for part in parts)
    chain = any(choice.chain is not None for choices in touched.values() for choice in choices)
    return np.asarray(sum(part[:draws] for part in parts)), chain


def _exchangeable(
    structure: Structure, group: BlockGroup, choice: Choice, by_region: bool = False
) -> Iterator[IntArray]:
    """Columns of the sampler whose noise has the same law: those of a region, all of a table, and of equal blocks."""
    if not group.members:
        region = structure.region[choice.cells]
        size = structure.sizes[region]
        for value in np.unique(size).tolist():
            yield np.flatnonzero(size == value)
        return
    system = group.members[0].system
    sizes = structure.sizes[group.members[0].regions]
    if (sizes == sizes[0]).all() and (system.grid is not None or (not by_region and system.all_alike)):
        yield np.arange(len(choice.cells))
        return
    place = np.full(len(structure.sizes), -1, dtype=np.int64)
    for block in group.members:
        place[block.regions] = np.arange(len(block.regions))
    region = place[structure.region[choice.cells]]
    for j in np.flatnonzero(sizes).tolist():  # focused totals are regions without cells
        yield np.flatnonzero(region == j)

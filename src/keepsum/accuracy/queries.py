"""Linear queries over the cells of a table: a cell, a sum of cells by their labels, or whole weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.lattice.determined import determined
from keepsum.lattice.matrix import as_integers, as_matrix
from keepsum.lattice.structure import FORCED, FREE, Structure
from keepsum.tables.axes import Label
from keepsum.tables.invariants import Invariants

LARGEST_WEIGHT = 2**31  # so that sums of a few million counts with such weights fit 64 bits
Query: TypeAlias = int | Mapping[str, Any] | npt.ArrayLike | sparse.sparray | sparse.spmatrix


@dataclass(frozen=True, eq=False)
class QueryWeights:
    """A query as the cells that it concerns, in order, and their weights, none of them 0."""

    size: int
    cells: IntArray
    weights: IntArray

    def of(self, counts: IntArray) -> int:
        """The value of the query on a table."""
        return sum(w * c for w, c in zip(self.weights.tolist(), counts[self.cells].tolist(), strict=True))

    def times(self, factor: int) -> QueryWeights:
        """The query times a whole number."""
        if not factor:
            return QueryWeights(self.size, self.cells[:0], self.weights[:0])
        return QueryWeights(self.size, self.cells, self.weights * factor)

    def where(self, chosen: BoolArray) -> QueryWeights:
        """The query over some of its cells only."""
        return QueryWeights(self.size, self.cells[chosen], self.weights[chosen])

    def __add__(self, other: QueryWeights) -> QueryWeights:
        both = np.zeros(self.size, dtype=np.int64)
        both[self.cells] = self.weights
        both[other.cells] += other.weights
        return _nonzero(both)

    def __sub__(self, other: QueryWeights) -> QueryWeights:
        return self + QueryWeights(other.size, other.cells, -other.weights)


def as_weights(query: Query, invariants: Invariants) -> QueryWeights:
    """A query as weights of cells.

    Raises
    ------
    InputError
        If it is not a cell, labels, or a vector of whole numbers, one for each cell.
    """
    if isinstance(query, QueryWeights):
        return query
    size = invariants.size
    if isinstance(query, Mapping):
        return _labelled(query, invariants)
    if isinstance(query, (int, np.integer)) and not isinstance(query, bool):
        if not 0 <= query < size:
            raise InputError(f"A cell must be a number from 0 to {size - 1:,}, got another number.")
        return QueryWeights(size, np.array([int(query)]), np.ones(1, dtype=np.int64))
    if sparse.issparse(query):
        vector = as_matrix(query, "A query").toarray().reshape(-1)
    elif isinstance(query, (list, tuple, np.ndarray)):
        vector = as_integers(query, "A query").reshape(-1)
    else:
        raise InputError(
            f"A query must be a number from 0 to {size - 1:,}, a mapping, or a whole number for each cell, got "
            f"{type_of(query)}."
        )
    if len(vector) != size:
        raise InputError(f"A query must have a whole number for each of the {size:,} cells, got {len(vector):,}.")
    if len(vector) and np.abs(vector).max() > LARGEST_WEIGHT:
        raise InputError(f"Weights of a query must be at most {LARGEST_WEIGHT:,} in size. Scale it down.")
    return _nonzero(vector)


def _labelled(labels: Mapping[str, Label], invariants: Invariants) -> QueryWeights:
    """The sum over all cells with these labels; axes that are left out are summed over."""
    if invariants.domain is None:
        raise InputError("These cells have no names. Give a cell by its number.")
    chosen = np.flatnonzero(invariants.domain.matching(labels))
    if not len(chosen):
        raise InputError("A query must match at least one cell, and no cell has all of these labels.")
    return QueryWeights(invariants.size, chosen, np.ones(len(chosen), dtype=np.int64))


def _nonzero(vector: IntArray) -> QueryWeights:
    cells = np.flatnonzero(vector)
    return QueryWeights(len(vector), cells, vector[cells])


@dataclass(frozen=True)
class Piece:
    """A part of a query whose noise is independent of the rest.

    Attributes
    ----------
    size
        The number of cells of the region, whose noise adds up to 0; 0 for a cell under no total.
    classes
        (weight, cells): weights in increasing order with the number of cells that have them; in a region less the
        weight of most of its cells, because all cells together have no noise, and without those.
    """

    size: int
    classes: tuple[tuple[int, int], ...]


def pieces_of(query: QueryWeights, structure: Structure) -> tuple[dict[Piece, int], QueryWeights]:
    """The pieces of a query where sums are forced or cells are free, each with how many there are; and the rest.

    The rest lies in blocks where totals overlap; what the kept totals determine there is left out.
    """
    region = structure.region[query.cells]
    part = structure.part[region]
    pieces: dict[Piece, int] = {}
    for weight, count in zip(*np.unique(np.abs(query.weights[part == FREE]), return_counts=True), strict=True):
        pieces[Piece(0, ((int(weight), 1),))] = int(count)
    forced = part == FORCED
    pieces |= _forced_pieces(region[forced], query.weights[forced], structure)
    return pieces, _overlapping(query, part, structure)


def undetermined(query: QueryWeights, structure: Structure) -> QueryWeights:
    """A query outside of blocks, without regions with a forced sum whose cells all have one weight."""
    regions, place, taken = np.unique(structure.region[query.cells], return_inverse=True, return_counts=True)
    lowest = np.full(len(regions), np.iinfo(np.int64).max)
    highest = np.full(len(regions), np.iinfo(np.int64).min)
    np.minimum.at(lowest, place, query.weights)
    np.maximum.at(highest, place, query.weights)
    whole = (structure.part[regions] == FORCED) & (taken == structure.sizes[regions]) & (lowest == highest)
    return query.where(~whole[place])


def _forced_pieces(region: IntArray, weights: IntArray, structure: Structure) -> dict[Piece, int]:
    """One piece for each region that is touched, unless all of its cells have the same weight; how many there are."""
    if not len(region):
        return {}
    order = np.lexsort((weights, region))
    region, weights = region[order], weights[order]
    other = np.diff(region) != 0
    starts = np.flatnonzero(np.concatenate([[True], other | (np.diff(weights) != 0)]))
    classes = np.stack([weights[starts], np.diff(np.append(starts, len(region)))], axis=1)
    # Regions of one size with the same classes are alike.
    cuts = np.searchsorted(starts, np.flatnonzero(np.concatenate([[True], other, [True]]))).tolist()
    sizes = structure.sizes[region[starts[cuts[:-1]]]].tolist()
    alike = Counter((size, classes[a:b].tobytes()) for size, (a, b) in zip(sizes, pairwise(cuts), strict=True))
    pieces: dict[Piece, int] = {}
    for (size, listed), times in alike.items():
        found = [(w, n) for w, n in np.frombuffer(listed, dtype=np.int64).reshape(-1, 2).tolist()]
        rest = size - sum(n for _, n in found)
        everything = [*found, *([(0, rest)] if rest else [])]
        if len(everything) > 1:
            piece = canonical_piece(size, everything)
            pieces[piece] = pieces.get(piece, 0) + times
    return pieces


def canonical_piece(size: int, classes: list[tuple[int, int]]) -> Piece:
    """Weights less that of most cells; of a piece and its mirror image, which has the same law, one is chosen."""
    base = max(classes, key=lambda item: (item[1], -item[0]))[0]
    relative = sorted((w - base, n) for w, n in classes if w != base)
    mirrored = sorted((-w, n) for w, n in relative)
    return Piece(size, tuple(max(relative, mirrored)))


def _overlapping(query: QueryWeights, part: IntArray, structure: Structure) -> QueryWeights:
    """What of a query lies in blocks; nothing if the kept totals determine that."""
    inside = (part != FREE) & (part != FORCED)
    rest = QueryWeights(query.size, query.cells[inside], query.weights[inside])
    if len(rest.cells):
        indptr = np.array([0, len(rest.cells)])
        row = sparse.csr_array((rest.weights, rest.cells, indptr), shape=(1, query.size))
        if determined(structure, row)[0]:
            return QueryWeights(query.size, rest.cells[:0], rest.weights[:0])
    return rest

"""The noise in blocks where totals overlap: estimated from simulated draws if that is cheap, otherwise bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from keepsum._arrays import IntArray
from keepsum.accuracy.focused import FocusedNoise
from keepsum.accuracy.free_cells import FreeCell, FreeGaussian, FreeLaplace
from keepsum.accuracy.law import check_range
from keepsum.accuracy.piece_laws import PieceLaw
from keepsum.accuracy.projected import dominated_piece
from keepsum.accuracy.queries import Weights
from keepsum.accuracy.query_laws import BoundLaw, EstimatedLaw, ExactLaw
from keepsum.accuracy.simulation import needed_draws, simulated
from keepsum.errors import InputError
from keepsum.lattice.structure import Structure
from keepsum.planning.groups import BlockGroup
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice
from keepsum.privacy.mechanism import Mechanism

LARGEST_SUM = 2.0**60  # of simulated noise with weights, so that a few of them fit 64 bits
USUAL_LEVEL = 0.95  # at which a law must be of use if nothing else is known
NO_SAMPLER = "Margins of error need a sampler for every block, and one has none. plan.explain() shows every block."


def free_cell(mechanism: Mechanism) -> FreeCell | None:
    """The noise of a free cell; None where cells are not independent: all share one scale in l2 Laplace noise."""
    check_range(mechanism)
    cells: dict[str, FreeCell] = {
        "laplace-l1": FreeLaplace(float(1 / mechanism.scale)),
        "gaussian": FreeGaussian(float(mechanism.scale)),
    }
    return cells.get(mechanism.kind)


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
        raise InputError(NO_SAMPLER)
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
        raise InputError(NO_SAMPLER)
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
    return _bound([], Weights(blocks.size, cells.cells[:1], np.ones(1, dtype=np.int64)), blocks, cell)


def query_law(
    blocks: BlockSamplers,
    rest: Weights,
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


def _bound(known: list[tuple[PieceLaw, int]], rest: Weights, blocks: BlockSamplers, cell: FreeCell) -> BoundLaw:
    pieces: list[tuple[PieceLaw, int]] = [*known, (dominated_piece(rest, blocks.structure, cell), 1)]
    return BoundLaw(1, pieces, sum(times * piece.variance for piece, times in pieces), variance_known=False)


def _drawn_query(blocks: BlockSamplers, query: Weights, level: float, patient: bool) -> tuple[IntArray | None, bool]:
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
            raise InputError(NO_SAMPLER)
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

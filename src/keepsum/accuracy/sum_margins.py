"""Margins of error of many sums of cells at once, such as all totals of a margin: each law is worked out once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum.accuracy.block_laws import NO_SAMPLER, free_cell
from keepsum.accuracy.focused import AnyPiece, FocusedNoise, FocusedPiece, law_of_piece
from keepsum.accuracy.margins import WEAKEST, Accuracy
from keepsum.accuracy.piece_laws import FreeCell, PieceLaw
from keepsum.accuracy.projected import DominatedPiece
from keepsum.accuracy.queries import Piece, canonical_piece
from keepsum.accuracy.query_laws import BoundLaw, EstimatedLaw, ExactLaw, check_level, sum_law
from keepsum.accuracy.simulation import needed_draws, simulated
from keepsum.accuracy.words import Basis
from keepsum.errors import InputError
from keepsum.lattice.determined import determined
from keepsum.lattice.structure import FOCUSED, FORCED, FREE, Structure
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice

NUMBERS_AT_ONCE = 2**22
NOTHING = ExactLaw(1, np.ones(1), 0.0)


def sum_accuracy(blocks: BlockSamplers, sums: IntArray, count: int, level: float, simultaneous: bool) -> Accuracy:
    """The margin of error of each of ``count`` sums; ``sums`` says in which of them each cell is.

    Simultaneous margins are all longer by one factor if they are simulated. If not, they divide what may go wrong among
    the sums (Bonferroni), and so are conservative.
    """
    level = check_level(level)
    found = _Margins(blocks, sums, count, level).found()
    if simultaneous and found.basis == "estimated":
        found = _Margins(blocks, sums, count, level).joint(found)
    elif simultaneous and count > 1 and found.margins.any():
        divided = _Margins(blocks, sums, count, 1 - (1 - level) / count).found(may_simulate=False)
        found = replace(divided, basis="conservative")
    found.margins.setflags(write=False)
    return Accuracy(level, found.margins, found.basis, found.draws, found.error, simultaneous, what="total")


@dataclass(frozen=True, eq=False)
class _Found:
    margins: IntArray
    basis: Basis = "exact"
    draws: int = 0
    error: float = 0.0


class _Margins:
    """The margins of some sums at a level."""

    def __init__(self, blocks: BlockSamplers, sums: IntArray, count: int, level: float) -> None:
        self.blocks, self.sums, self.count, self.level = blocks, sums, count, level
        self.cell = free_cell(blocks.mechanism)
        self._computed: dict[frozenset[tuple[AnyPiece, int]], ExactLaw | BoundLaw] = {}
        self._reached: dict[frozenset[tuple[AnyPiece, int]], int] = {}

    def found(self, may_simulate: bool = True) -> _Found:
        """The margins, and how they are known."""
        pieces = self._pieces
        margins = np.zeros(self.count, dtype=np.int64)
        bases: set[Basis] = {"exact"}
        inside = self._in_blocks()
        for k in np.flatnonzero(~inside).tolist():
            margins[k], basis = self._reach(frozenset(pieces[k].items()))
            bases.add(basis)
        draws, error = 0, 0.0
        chosen = np.flatnonzero(inside)
        if len(chosen):
            drawn = self._drawn() if may_simulate else None
            if drawn is None:
                margins[chosen] = [self._bounded(k, pieces[k]) for k in chosen.tolist()]
                bases.add("conservative")
            else:
                draws = min(len(noise) for _, noise in drawn)
                bases.add("estimated")
                error = self._estimate(drawn, chosen, pieces, draws, margins)
        return _Found(margins, max(bases, key=WEAKEST.index), draws, error)

    def joint(self, each: _Found) -> _Found:
        """The margins, all longer by the factor that the worst of them needs in enough draws; or by bounds."""
        drawn = None if any(self._pieces) else self._drawn()
        if drawn is None:
            return replace(
                _Margins(self.blocks, self.sums, self.count, 1 - (1 - self.level) / self.count).found(False),
                basis="conservative",
            )
        worst = np.zeros(each.draws)
        for some, values in self._values(drawn, np.flatnonzero(each.margins), each.draws):
            np.maximum(worst, (np.abs(values) / each.margins[some]).max(axis=1), out=worst)
        chain = any(choice.chain is not None for choices, _ in drawn for choice in choices)
        # As whole numbers of thousandths, rounded up.
        factor, error = EstimatedLaw(np.ceil(worst * 1000).astype(np.int64)[:, None], chain=chain).estimated(self.level)
        return _Found(each.margins * factor // 1000, "estimated", each.draws, error)

    @cached_property
    def _pieces(self) -> list[dict[AnyPiece, int]]:
        if self.cell is None:
            return [{} for _ in range(self.count)]
        pieces = _pieces(self.blocks.noise_structure, self.sums, self.count)
        if not self._focus_drawn:
            for each, focused in zip(pieces, self._focused, strict=True):
                each |= dict((focused or {}).items())
        return pieces

    @cached_property
    def _focused(self) -> list[dict[FocusedPiece, int] | None]:
        """The pieces of each sum among cells under a focus; None where the law of one is not known."""
        if self.blocks.nested is None:
            return [{} for _ in range(self.count)]
        focused = FocusedNoise.of(self.blocks)
        if focused is None:
            raise InputError(NO_SAMPLER)
        return focused.pieces_of_sums(self.sums, self.count)

    @property
    def _focus_drawn(self) -> bool:
        """Whether the noise of cells under a focus is simulated, because the law of a sum is not known."""
        return any(pieces is None for pieces in self._focused)

    @cached_property
    def _drawn_cells(self) -> BoolArray:
        """The cells whose noise is simulated, where their joint law is not known."""
        structure = self.blocks.noise_structure
        part = structure.part[structure.region]
        return np.asarray((part >= 0) | ((part == FOCUSED) & self._focus_drawn))

    def _in_blocks(self) -> BoolArray:
        """Which sums have cells in blocks; in l2 Laplace noise, which have cells with noise."""
        noisy = self._drawn_cells
        if self.cell is None:
            noisy = np.ones(len(noisy), dtype=bool)
            noisy[self.blocks.pinned] = False
        return np.asarray(np.bincount(self.sums[noisy], minlength=self.count) > 0)

    def _law(self, key: frozenset[tuple[AnyPiece, int]]) -> ExactLaw | BoundLaw:
        if key not in self._computed:
            self._computed[key] = NOTHING if not key else sum_law(self._known(key), 1)
        return self._computed[key]

    def _known(self, key: frozenset[tuple[AnyPiece, int]]) -> list[tuple[PieceLaw, int]]:
        if self.cell is None:
            raise AssertionError("all of l2 Laplace noise is simulated")
        ordered = sorted(key, key=lambda item: (isinstance(item[0], FocusedPiece), repr(item)))
        return [(law_of_piece(piece, self.cell), times) for piece, times in ordered]

    def _reach(self, key: frozenset[tuple[AnyPiece, int]]) -> tuple[int, Basis]:
        law = self._law(key)
        if key not in self._reached:
            self._reached[key] = law.reach(self.level) if key else 0
        return self._reached[key], law.basis

    def _drawn(self) -> list[tuple[list[Choice], IntArray]] | None:
        """The simulated noise of each sampler of blocks; None if it would take long."""
        samplers: dict[int, list[Choice]] = {}
        for group, choice in zip(self.blocks.groups, self.blocks.choices, strict=True):
            if group.members or self.cell is None or (group.form.kind == "nested" and self._focus_drawn):
                samplers.setdefault(id(choice.sampler), []).append(choice)
        drawn = []
        for choices in samplers.values():
            if choices[0].sampler is None:
                raise InputError(NO_SAMPLER)
            noise = simulated(self.blocks, choices[0], needed_draws(self.level), patient=self.cell is None)
            if noise is None:
                return None
            drawn.append((choices, noise))
        return drawn

    def _estimate(
        self,
        drawn: list[tuple[list[Choice], IntArray]],
        chosen: IntArray,
        pieces: list[dict[AnyPiece, int]],
        draws: int,
        margins: IntArray,
    ) -> float:
        """Fill in the margins of sums with cells in blocks; returns the largest standard error."""
        chain = any(choice.chain is not None for choices, _ in drawn for choice in choices)
        worst = 0.0
        for some, values in self._values(drawn, chosen, draws):
            for column, k in enumerate(some.tolist()):
                worst = max(worst, self._estimated(k, pieces[k], values[:, column : column + 1], chain, margins))
        return worst

    def _values(
        self, drawn: list[tuple[list[Choice], IntArray]], chosen: IntArray, draws: int
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Some of the chosen sums at a time, and their noise in the blocks, one row per draw."""
        width = max(1, NUMBERS_AT_ONCE // draws)
        for start in range(0, len(chosen), width):
            some = chosen[start : start + width]
            yield some, np.asarray(sum(self._summed(choices, noise[:draws], some) for choices, noise in drawn))

    def _estimated(self, k: int, pieces: dict[AnyPiece, int], drawn: IntArray, chain: bool, margins: IntArray) -> float:
        if not drawn.any() and self._is_determined(k):
            margins[k], _ = self._reach(frozenset(pieces.items()))
            return 0.0
        rest = self._law(frozenset(pieces.items()))
        if not isinstance(rest, ExactLaw):
            margins[k] = self._bounded(k, pieces)
            return 0.0
        margins[k], error = EstimatedLaw(drawn, rest if pieces else None, None, chain).estimated(self.level)
        return error

    def _summed(self, choices: list[Choice], noise: IntArray, some: IntArray) -> IntArray:
        """The noise that a sampler adds to each of some sums, one row per draw."""
        place = np.full(self.count, -1, dtype=np.int64)
        place[some] = np.arange(len(some))
        columns = np.concatenate([choice.first + np.arange(len(choice.cells)) for choice in choices])
        target = place[np.concatenate([self.sums[choice.cells] for choice in choices])]
        used = target >= 0
        shape = (noise.shape[1], len(some))
        indicator = sparse.csr_array((np.ones(int(used.sum()), dtype=np.int64), (columns[used], target[used])), shape)
        return np.asarray((indicator.T @ noise.T).T)

    def _bounded(self, k: int, pieces: dict[AnyPiece, int]) -> int:
        """The margin of a bound: cells in blocks count as if they were free."""
        if self._is_determined(k):
            return self._reach(frozenset(pieces.items()))[0]
        if self.cell is None:
            raise AssertionError("all of l2 Laplace noise is simulated")
        cells = int((self._drawn_cells & (self.sums == k)).sum())
        more: list[tuple[PieceLaw, int]] = [(_free_cells(self.cell, cells), 1), *self._known(frozenset(pieces.items()))]
        return BoundLaw(1, more, sum(times * piece.variance for piece, times in more)).reach(self.level)

    def _is_determined(self, k: int) -> bool:
        """Whether the kept totals determine what of a sum lies in blocks."""
        structure = self.blocks.structure  # of the kept totals, which determine nothing else under a focus
        cells = np.flatnonzero((self.sums == k) & self._drawn_cells)
        shape = (1, len(self.sums))
        row = sparse.csr_array((np.ones(len(cells), dtype=np.int64), cells, np.array([0, len(cells)])), shape=shape)
        return bool(determined(structure, row)[0])


def _free_cells(cell: FreeCell, number: int) -> DominatedPiece:
    return DominatedPiece(cell, np.ones(1), np.array([float(number)]))


def _pieces(structure: Structure, sums: IntArray, count: int) -> list[dict[AnyPiece, int]]:
    """The pieces of each sum outside of blocks: k of the n cells of a region, or free cells."""
    pieces: list[dict[AnyPiece, int]] = [{} for _ in range(count)]
    region = structure.region
    known = np.flatnonzero((structure.part[region] == FREE) | (structure.part[region] == FORCED))
    size = np.where(structure.part[region[known]] == FORCED, structure.sizes[region[known]], 0)
    free = known[size == 0]
    for k, cells in zip(*np.unique(sums[free], return_counts=True), strict=True):
        pieces[k][Piece(0, ((1, 1),))] = int(cells)
    forced = known[size > 1]
    keys, cells = np.unique(sums[forced] * len(structure.sizes) + region[forced], return_counts=True)
    total, number = np.divmod(keys, len(structure.sizes))
    for k, n, taken in zip(total.tolist(), structure.sizes[number].tolist(), cells.tolist(), strict=True):
        if taken < n:
            piece = canonical_piece(n, [(1, taken), (0, n - taken)])
            pieces[k][piece] = pieces[k].get(piece, 0) + 1
    return pieces

"""Margins of error of many sums of cells at once, such as all totals of a margin: each law is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum.accuracy.block_laws import NO_SAMPLER, free_cell
from keepsum.accuracy.focused import FocusedPiece, law_of_piece
from keepsum.accuracy.free_cells import FreeCell
from keepsum.accuracy.margins import WEAKEST, Accuracy
from keepsum.accuracy.piece_laws import PieceLaw
from keepsum.accuracy.projected import DominatedPiece
from keepsum.accuracy.query_laws import SPARE, BoundLaw, EstimatedLaw, ExactLaw, check_level, sum_law
from keepsum.accuracy.simulation import needed_draws, simulated
from keepsum.accuracy.sum_pieces import Kind, SumPieces
from keepsum.accuracy.words import Basis
from keepsum.errors import InputError
from keepsum.lattice.determined import determined
from keepsum.lattice.structure import FOCUSED
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice

NUMBERS_AT_ONCE = 2**22
Estimate: TypeAlias = Callable[[EstimatedLaw, float], tuple[int, float]]  # a margin at a level, and its standard error
NOTHING = ExactLaw(1, np.ones(1), 0.0)


def sum_accuracy(
    blocks: BlockSamplers,
    sums: IntArray,
    count: int,
    level: float,
    simultaneous: bool,
    estimate: Estimate = EstimatedLaw.estimated,
) -> Accuracy:
    """The margin of error of each of ``count`` sums; ``sums`` says in which of them each cell is.

    Simultaneous margins are all longer by one factor if they are simulated. If not, they divide what may go wrong among
    the sums (Bonferroni), and so are conservative.
    """
    level = check_level(level)
    each = _Margins(blocks, sums, count, level, estimate=estimate)
    found = each.found()
    if simultaneous and found.basis == "estimated":
        found = each.joint(found)
    elif simultaneous and count > 1:
        found = each.divided()
    found.margins.setflags(write=False)
    return Accuracy(level, found.margins, found.basis, found.draws, found.error, simultaneous, what="total")


@dataclass(frozen=True, eq=False)
class _Found:
    margins: IntArray
    basis: Basis = "exact"
    draws: int = 0
    error: float = 0.0


class _Margins:
    """The margins of some sums at a level; ``divided_by`` so many, if each is to get a part of what may go wrong."""

    def __init__(
        self,
        blocks: BlockSamplers,
        sums: IntArray,
        count: int,
        level: float,
        pieces: SumPieces | None = None,
        divided_by: int = 1,
        estimate: Estimate = EstimatedLaw.estimated,
    ) -> None:
        self.blocks, self.sums, self.count, self.level = blocks, sums, count, level
        self.cell = free_cell(blocks.mechanism)
        self._estimate_of = estimate
        self._allowed = (1 - level) / divided_by
        # Where a computed law is not precise enough for a part of what may go wrong, a bound is.
        self._computes = divided_by == 1 or self._allowed > 4 * SPARE
        self._pieces = SumPieces.of_plan(blocks, sums, count) if pieces is None else pieces
        self._computed: dict[Kind, ExactLaw | BoundLaw] = {}
        self._reached: dict[Kind, int] = {}
        self._bounds: dict[tuple[int, int], int] = {}

    def found(self, may_simulate: bool = True) -> _Found:
        """The margins, and how they are known."""
        margins = np.zeros(self.count, dtype=np.int64)
        bases: set[Basis] = {"exact"}
        inside, kinds = self._inside > 0, self._pieces.of_sum
        reaches = np.zeros(len(self._pieces.kinds), dtype=np.int64)
        for number in np.unique(kinds[~inside]).tolist():
            reaches[number], basis = self._reach(self._pieces.kinds[number])
            bases.add(basis)
        margins[~inside] = reaches[kinds[~inside]]
        draws, error = 0, 0.0
        chosen = np.flatnonzero(inside)
        if len(chosen):
            drawn = self._drawn() if may_simulate else None
            if drawn is None:
                margins[chosen] = [self._bounded(k) for k in chosen.tolist()]
                bases.add("conservative")
            else:
                draws = min(len(noise) for _, noise in drawn)
                bases.add("estimated")
                error = self._estimate(drawn, chosen, draws, margins)
        return _Found(margins, max(bases, key=WEAKEST.index), draws, error)

    def joint(self, each: _Found) -> _Found:
        """The margins, all longer by the factor that the worst of them needs in enough draws; or by bounds."""
        drawn = None if any(self._pieces.kinds) else self._drawn()
        if drawn is None:
            return self.divided()
        worst, least = np.zeros(each.draws), each.margins.copy()
        for some, values in self._values(drawn, np.flatnonzero(self._inside), each.draws):
            # What hardly ever has noise has a margin of 0, but all such sums together often have some.
            least[some] = np.maximum(each.margins[some], values.any(axis=0))
            np.maximum(worst, (np.abs(values) / np.maximum(least[some], 1)).max(axis=1), out=worst)
        chain = any(choice.chain is not None for choices, _ in drawn for choice in choices)
        # As whole numbers of thousandths, rounded up.
        factor, error = EstimatedLaw(np.ceil(worst * 1000).astype(np.int64)[:, None], chain=chain).estimated(self.level)
        return _Found(least * factor // 1000, "estimated", each.draws, error)

    def divided(self) -> _Found:
        """The margins at the level that divides what may go wrong among the sums, none of them simulated."""
        others = _Margins(self.blocks, self.sums, self.count, self.level, self._pieces, self.count)
        found = others.found(may_simulate=False)
        return replace(found, basis="conservative") if found.margins.any() else found

    @cached_property
    def _drawn_cells(self) -> BoolArray:
        """Which cells are in blocks, or under a focus whose sums are simulated."""
        structure = self.blocks.noise_structure
        part = structure.part[structure.region]
        return np.asarray((part >= 0) | ((part == FOCUSED) & (not self._pieces.focus_known)))

    @cached_property
    def _inside(self) -> IntArray:
        """How many cells of each sum are in blocks; in l2 Laplace noise, how many have noise."""
        noisy = self._drawn_cells
        if self.cell is None:
            noisy = np.ones(len(self.sums), dtype=bool)
            noisy[self.blocks.pinned] = False
        return np.bincount(self.sums[noisy], minlength=self.count)

    @cached_property
    def _determined(self) -> BoolArray:
        """Of which sums the kept totals, and no focus, determine what lies in blocks."""
        cells = np.flatnonzero(self._drawn_cells)
        ones = np.ones(len(cells), dtype=np.int64)
        sums = sparse.csr_array((ones, (self.sums[cells], cells)), shape=(self.count, len(self.sums)))
        return np.asarray(determined(self.blocks.structure, sums))

    def _law(self, key: Kind) -> ExactLaw | BoundLaw:
        if key not in self._computed:
            self._computed[key] = NOTHING if not key else sum_law(self._known(key), 1)
        return self._computed[key]

    def _known(self, key: Kind) -> list[tuple[PieceLaw, int]]:
        if self.cell is None:
            raise AssertionError("all of l2 Laplace noise is simulated")
        ordered = sorted(key, key=lambda item: (isinstance(item[0], FocusedPiece), repr(item)))
        return [(law_of_piece(piece, self.cell), times) for piece, times in ordered]

    def _reach(self, key: Kind) -> tuple[int, Basis]:
        law = self._law(key)
        if key not in self._reached:
            self._reached[key] = self._reach_of(law, key) if key else 0
        return self._reached[key], law.basis

    def _reach_of(self, law: ExactLaw | BoundLaw, key: Kind) -> int:
        if isinstance(law, ExactLaw) and self._computes:
            return law.reach(1 - self._allowed)
        bound = BoundLaw(1, self._known(key), law.variance) if isinstance(law, ExactLaw) else law
        return bound.reach_but_for(self._allowed)

    def _drawn(self) -> list[tuple[list[Choice], IntArray]] | None:
        """The simulated noise of each sampler of blocks; None if it would take long."""
        drawn = []
        for groups in self._pieces.drawn(self.blocks):
            choices = [choice for _, choice in groups]
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
        draws: int,
        margins: IntArray,
    ) -> float:
        """Fill in the margins of sums with cells in blocks; returns the largest standard error."""
        chain = any(choice.chain is not None for choices, _ in drawn for choice in choices)
        worst = 0.0
        for some, values in self._values(drawn, chosen, draws):
            for column, k in enumerate(some.tolist()):
                worst = max(worst, self._estimated(k, values[:, column : column + 1], chain, margins))
        return worst

    def _values(
        self, drawn: list[tuple[list[Choice], IntArray]], chosen: IntArray, draws: int
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Some of the chosen sums at a time, and their noise in the blocks, one row per draw."""
        width = max(1, NUMBERS_AT_ONCE // draws)
        for start in range(0, len(chosen), width):
            some = chosen[start : start + width]
            yield some, np.asarray(sum(self._summed(choices, noise[:draws], some) for choices, noise in drawn))

    def _estimated(self, k: int, drawn: IntArray, chain: bool, margins: IntArray) -> float:
        kind = self._pieces.of(k)
        if not drawn.any() and self._determined[k]:
            margins[k], _ = self._reach(kind)
            return 0.0
        rest = self._law(kind)
        if not isinstance(rest, ExactLaw):
            margins[k] = self._bounded(k)
            return 0.0
        law = EstimatedLaw(drawn, rest if kind else None, None, chain)
        margins[k], error = self._estimate_of(law, self.level)
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

    def _bounded(self, k: int) -> int:
        """The margin of a bound: cells in blocks count as if they were free."""
        if self._determined[k]:
            return self._reach(self._pieces.of(k))[0]
        key = int(self._inside[k]), int(self._pieces.of_sum[k])
        if key not in self._bounds:
            if self.cell is None:
                raise AssertionError("all of l2 Laplace noise is simulated")
            cells, known = _free_cells(self.cell, key[0]), self._known(self._pieces.of(k))
            more: list[tuple[PieceLaw, int]] = [(cells, 1), *known]
            bound = BoundLaw(1, more, sum(times * piece.variance for piece, times in more))
            self._bounds[key] = bound.reach_but_for(self._allowed)
        return self._bounds[key]


def _free_cells(cell: FreeCell, number: int) -> DominatedPiece:
    return DominatedPiece(cell, np.ones(1), np.array([float(number)]))

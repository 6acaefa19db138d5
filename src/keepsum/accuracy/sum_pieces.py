"""The pieces of many sums of cells at once, outside of blocks: sums that are made of the same pieces are one kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from keepsum._arrays import IntArray, tallied
from keepsum.accuracy.block_laws import NO_SAMPLER, free_cell
from keepsum.accuracy.focused import AnyPiece, FocusedNoise, FocusedPiece
from keepsum.accuracy.queries import Piece, canonical_piece
from keepsum.errors import InputError
from keepsum.lattice.structure import FORCED, FREE, Structure
from keepsum.planning.groups import BlockGroup
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice

Kind: TypeAlias = frozenset[tuple[AnyPiece, int]]  # pieces, and how many there are of each


@dataclass(frozen=True, eq=False)
class SumPieces:
    """What each of many sums is made of.

    Attributes
    ----------
    kinds
        The kinds of sums.
    of_sum
        The number of each sum's kind.
    focus_known
        Whether the pieces of cells under a focus are among them: none are if the law of one of them is not known.
    """

    kinds: list[Kind]
    of_sum: IntArray
    focus_known: bool = True

    def of(self, number: int) -> Kind:
        """The pieces of a sum."""
        return self.kinds[int(self.of_sum[number])]

    @classmethod
    def none(cls, count: int) -> SumPieces:
        """Sums without any piece."""
        return cls([frozenset()], np.zeros(count, dtype=np.int64))

    @classmethod
    def of_plan(cls, blocks: BlockSamplers, sums: IntArray, count: int) -> SumPieces:
        """The pieces of ``count`` sums of a plan; none in l2 Laplace noise, all of which is simulated."""
        if free_cell(blocks.mechanism) is None:
            return cls.none(count)
        pieces = cls.find(blocks.noise_structure, sums, count)
        if blocks.nested is None:
            return pieces
        if any(choice.sampler is None for choice in blocks.choices):
            raise InputError(NO_SAMPLER)
        focused = FocusedNoise.of(blocks)
        if focused is None or blocks.nested.tables:
            return replace(pieces, focus_known=False)
        return pieces.with_focused(focused.pieces_of_sums(sums, count))

    @classmethod
    def find(cls, structure: Structure, sums: IntArray, count: int) -> SumPieces:
        """The pieces of ``count`` sums; ``sums`` says in which of them each cell is.

        They are k of the n cells of a region with a forced sum, and cells under no total.
        """
        total, shape, pieces = _shapes(structure, sums)
        # How many pieces of each shape a sum has, sum by sum.
        keys, times = np.unique(total * max(1, len(pieces)) + shape, return_counts=True)
        total, shape = np.divmod(keys, max(1, len(pieces)))
        ends = np.searchsorted(total, np.arange(count + 1))
        entries = np.stack([shape, times], axis=1)
        numbers: dict[bytes, int] = {}
        kinds: list[Kind] = []
        of_sum = np.empty(count, dtype=np.int64)
        for k, (start, end) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
            key = entries[start:end].tobytes()
            if key not in numbers:
                numbers[key] = len(kinds)
                kinds.append(frozenset((pieces[place], n) for place, n in entries[start:end].tolist()))
            of_sum[k] = numbers[key]
        return cls(kinds, of_sum)

    def with_focused(self, focused: Sequence[dict[FocusedPiece, int] | None]) -> SumPieces:
        """With the pieces of each sum among cells under a focus; None where the law of one is not known."""
        numbers: dict[tuple[int, Kind], int] = {}
        kinds: list[Kind] = []
        of_sum = np.empty_like(self.of_sum)
        for k, (number, pieces) in enumerate(zip(self.of_sum.tolist(), focused, strict=True)):
            if pieces is None:
                return replace(self, focus_known=False)
            key = number, frozenset(pieces.items())
            if key not in numbers:
                numbers[key] = len(kinds)
                kinds.append(self.kinds[number] | key[1])
            of_sum[k] = numbers[key]
        return SumPieces(kinds, of_sum)

    def drawn(self, blocks: BlockSamplers) -> list[list[tuple[BlockGroup, Choice]]]:
        """What of the sums is in no piece: the groups of cells that each sampler must draw."""
        computed = free_cell(blocks.mechanism) is not None
        samplers: dict[int, list[tuple[BlockGroup, Choice]]] = {}
        for group, choice in zip(blocks.groups, blocks.choices, strict=True):
            known = group.in_closed_form or (group.form.kind == "nested" and self.focus_known)
            if not computed or not known:
                samplers.setdefault(id(choice.sampler), []).append((group, choice))
        return list(samplers.values())


def _shapes(structure: Structure, sums: IntArray) -> tuple[IntArray, IntArray, list[Piece]]:
    """Every piece of every sum: the sum, and which of the different pieces it is."""
    region = structure.region
    part = structure.part[region]
    free = np.flatnonzero(part == FREE)
    forced = np.flatnonzero((part == FORCED) & (structure.sizes[region] > 1))
    weight = None if structure.weight is None else structure.weight[forced]
    keys, taken = tallied(sums[forced] * len(structure.sizes) + region[forced], weight)
    total, number = np.divmod(keys, len(structure.sizes))
    size = structure.sizes[number]
    some = taken < size
    # k cells have the law of the n - k others, whose sum is the opposite.
    base = int(structure.sizes.max()) + 1
    pairs = size[some] * base + np.minimum(taken, size - taken)[some]
    different, which = np.unique(pairs, return_inverse=True)
    shapes = [divmod(pair, base) for pair in different.tolist()]
    pieces = [canonical_piece(n, [(1, k), (0, n - k)]) for n, k in shapes]
    free = structure.repeated(free)
    alone = np.full(len(free), len(pieces), dtype=np.int64)
    return (
        np.concatenate([total[some], sums[free]]),
        np.concatenate([which, alone]),
        [*pieces, Piece(0, ((1, 1),))],
    )

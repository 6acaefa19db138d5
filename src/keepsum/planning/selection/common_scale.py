"""The sampler for l2 Laplace noise: lattice Gaussians of one random width, shared by all blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.structure import Block, Structure
from keepsum.planning.selection.choice import BUDGET, Choice, Reason, block_cells, free_cells, sums_cells
from keepsum.planning.selection.gaussian import NUMERATOR_ROOM, in_part_order, overlap_part
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.core.rng import Rng, rng
from keepsum.sampling.gaussian.common_scale import CommonScale
from keepsum.sampling.gaussian.parts import SamplerPart
from keepsum.sampling.gaussian.sums import FreeGaussian, SumsGaussian

PROPOSALS = 400  # in a pilot


class Apart:
    """A part of a sampler that draws several groups together; on its own it draws nothing."""

    def __init__(self, part: SamplerPart) -> None:
        self.part, self.width = part, part.width

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Never called: ``together`` replaces it."""
        raise AssertionError("drawn together with the other groups")


def choose_free(structure: Structure, _: Mechanism) -> Choice:
    """Cells under no total."""
    cells = free_cells(structure)
    return Choice("conditional_cells", Apart(FreeGaussian(len(cells))), cells)


def choose_sums(structure: Structure, _: Mechanism) -> Choice:
    """Regions whose sum the totals force to be 0."""
    cells, sizes = sums_cells(structure)
    return Choice("conditional_cells", Apart(SumsGaussian(sizes)), cells)


def choose_overlap(structure: Structure, blocks: Sequence[Block], _: Mechanism) -> Choice:
    """Blocks of one form whose totals overlap."""
    system = blocks[0].system
    cells, sizes = block_cells(structure, blocks)
    part, ordered = overlap_part(system, sizes, len(cells)), in_part_order(system, sizes, cells)
    if part is None:
        return Choice.none(ordered, Reason("too_many_totals"))
    return Choice("conditional_cells", Apart(part), ordered)


def together(choices: Sequence[Choice], mechanism: Mechanism) -> tuple[Choice, ...]:
    """One sampler for all groups; none for any if one group has no sampler."""
    parts = [choice.sampler.part for choice in choices if isinstance(choice.sampler, Apart)]
    if len(parts) < len(choices):
        return _without(choices, Reason("another_block"))
    sampler = CommonScale(1 / mechanism.scale, parts)
    if float(sampler.staircase.edges[-1]) * sampler.width > NUMERATOR_ROOM:
        return _without(choices, Reason("no_room"))
    accepted, proposals = sampler.pilot(rng(seed="keepsum pilot"), PROPOSALS)
    cost = sampler.width * proposals // max(1, accepted)
    if not accepted or (cost > BUDGET and accepted < proposals / 10):
        return _without(choices, Reason("rarely_accepted", acceptance=max(1, accepted) / proposals))
    firsts = np.cumsum([0, *(part.width for part in parts)]).tolist()
    return tuple(
        replace(choice, sampler=sampler, cost=cost, first=first, acceptance=accepted / proposals)
        for choice, first in zip(choices, firsts, strict=False)
    )


def _without(choices: Sequence[Choice], reason: Reason) -> tuple[Choice, ...]:
    """No sampler for any group, for this reason; groups that already have a reason keep it."""
    return tuple(choice if choice.sampler is None else Choice.none(choice.cells, reason) for choice in choices)

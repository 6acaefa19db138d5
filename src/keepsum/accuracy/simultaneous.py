"""Margins that hold for all cells at once.

Where sums are forced they are computed. Write T(u) = E[cos(u z)] over the noise of a free cell that is at most r in
size. Given that the noise of n cells adds up to 0, the chance that all of them are within r is the mean over u of
T(u)^n over that of phi(u)^n (``piece_laws.py``); regions are independent. In blocks the largest noise of each simulated
draw is taken. Where neither is possible each cell gets its share of what may go wrong (Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.block_laws import NO_SAMPLER, class_bound, classes_of, free_cell
from keepsum.accuracy.free_cells import FreeCell, turn_of
from keepsum.accuracy.law import cell_law, margin
from keepsum.accuracy.piece_laws import piece_law
from keepsum.accuracy.queries import Piece
from keepsum.accuracy.query_laws import LEVEL_TOO_HIGH, SPARE, BoundLaw
from keepsum.accuracy.simulation import needed_draws, simulated, standard_error
from keepsum.accuracy.words import STANDARD_ERRORS, Basis
from keepsum.errors import InputError
from keepsum.lattice.structure import FORCED
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice


@dataclass(frozen=True, eq=False)
class Computed:
    """Cells whose joint law is known: how many are free, and how many regions there are of each size."""

    cell: FreeCell
    free: int
    regions: dict[int, int]

    def within(self, reach: int) -> float:
        """The chance that the noise of all of them is at most so large."""
        log = self.free * math.log(float(self.cell.transform_within(np.zeros(1), reach)[0])) if self.free else 0.0
        for size, times in self.regions.items():
            angles, _, zero = self._turns[size]
            inside = float((self.cell.transform_within(angles, reach) ** size).sum()) / zero
            if inside <= 0:
                return 0.0
            log += times * math.log(inside)
        return math.exp(min(0.0, log))

    @cached_property
    def _turns(self) -> dict[int, tuple[Floats, float, float]]:
        turns = {}
        for size in self.regions:
            angles, points = turn_of(self.cell, size, size)
            turns[size] = angles, points, float(np.exp(-size * self.cell.fall(angles)).sum())
        return turns


@dataclass(frozen=True, eq=False)
class Simulated:
    """The largest noise of all cells of a sampler, in each draw."""

    largest: IntArray
    chain: bool

    def beyond(self, reach: int) -> tuple[float, float]:
        """The share of draws beyond, and its standard error."""
        over = (self.largest > reach).astype(np.float64)
        return float(over.mean()), standard_error(over, self.chain)


def simultaneous_margins(blocks: BlockSamplers, level: float, patient: bool) -> tuple[IntArray, Basis, int, float]:
    """The margin of each cell, how they are known, from how many simulated draws, and the error of these."""
    computed, cells = _computed(blocks)
    drawn = _blocks(blocks, level, patient)
    margins = np.zeros(blocks.size, dtype=np.int64)
    if (computed is None and len(cells)) or drawn is None:
        _divide(blocks, level, cells, margins)
        return margins, "conservative", 0, 0.0
    if computed is None and not drawn:  # nothing has noise
        return margins, "exact", 0, 0.0
    reach, error = _smallest(computed, list(drawn.values()), 1 - level)
    margins[cells] = reach
    for choice in blocks.choices:
        if id(choice.sampler) in drawn:
            margins[choice.cells] = reach
    draws = min((len(part.largest) for part in drawn.values()), default=0)
    return margins, "estimated" if drawn else "exact", draws, error


def _divide(blocks: BlockSamplers, level: float, cells: IntArray, margins: IntArray) -> None:
    """Margins by Bonferroni: of ``cells``, whose laws are known, and of those in blocks, by their bounds."""
    classes, structure = list(classes_of(blocks)), blocks.noise_structure
    each = (1 - level) / (len(cells) + sum(len(part.cells) for part in classes))
    for part in classes:
        computed = part.law if each > 4 * SPARE else None  # a bound where a computed law is not precise enough
        margins[part.cells] = (
            class_bound(blocks, part).reach_but_for(each) if computed is None else computed.reach(1 - each)
        )
    region = structure.region[cells]
    size = np.where(structure.part[region] == FORCED, structure.sizes[region], 0)
    for value in np.unique(size).tolist():
        margins[cells[size == value]] = _each_margin(blocks, value, each)


def _each_margin(blocks: BlockSamplers, size: int, allowed: float) -> int:
    """The margin of a cell of a region; by a bound where a computed law is not precise enough."""
    law, cell = cell_law(blocks.mechanism), free_cell(blocks.mechanism)
    if law is None or cell is None or size == 1:
        return 0
    wide = law.wide_deviation(size)
    if wide is not None:
        return math.ceil(-wide * NormalDist().inv_cdf(allowed / 2)) + 1
    if allowed > 4 * SPARE:
        return margin(law, size, 1 - allowed)
    return BoundLaw(1, [(piece_law(Piece(size, ((1, 1),)), cell), 1)], law.variance(size)).reach_but_for(allowed)


def _computed(blocks: BlockSamplers) -> tuple[Computed | None, IntArray]:
    """The cells under no total or in regions with forced sums; None for their law if it is too wide or shared."""
    cell, law = free_cell(blocks.mechanism), cell_law(blocks.mechanism)
    groups = zip(blocks.groups, blocks.choices, strict=True)
    parts = [choice.cells for group, choice in groups if group.in_closed_form]
    if cell is None or law is None or not parts:
        return None, np.zeros(0, dtype=np.int64)
    cells = np.concatenate(parts)
    if law.wide_deviation(0) is not None:
        return None, cells
    structure = blocks.noise_structure
    region = np.unique(structure.region[cells])
    forced = structure.part[region] == FORCED
    sizes, times = np.unique(structure.sizes[region[forced]], return_counts=True)
    regions = {n: k for n, k in zip(sizes.tolist(), times.tolist(), strict=True) if n > 1}
    free = int(structure.sizes[region[~forced]].sum())
    return Computed(cell, free, regions), cells


def _blocks(blocks: BlockSamplers, level: float, patient: bool) -> dict[int, Simulated] | None:
    """The largest noise of each sampler of blocks; None if one of them would take long."""
    drawn: dict[int, Simulated] = {}
    for part in classes_of(blocks):
        key = id(part.choice.sampler)
        if key in drawn:
            continue
        largest = _largest(blocks, part.choice, level, patient)
        if largest is None:
            return None
        drawn[key] = Simulated(largest, part.choice.chain is not None)
    return drawn


def _largest(blocks: BlockSamplers, choice: Choice, level: float, patient: bool) -> IntArray | None:
    if choice.sampler is None:
        raise InputError(NO_SAMPLER)
    # A few more than are needed leave room for the chance that is computed.
    needed = math.ceil(1.02 * needed_draws(level))
    noise = simulated(blocks, choice, needed, patient or free_cell(blocks.mechanism) is None)
    return None if noise is None else np.asarray(np.abs(noise).max(axis=1))


def _smallest(computed: Computed | None, drawn: list[Simulated], allowed: float) -> tuple[int, float]:
    """The smallest margin that all cells stay within, but for what is allowed, and the error of that chance."""
    if allowed <= 2 * SPARE:
        raise InputError(LEVEL_TOO_HIGH)
    draws = min((len(part.largest) for part in drawn), default=0)
    least = math.sqrt(allowed * (1 - allowed) / draws) if draws else 0.0

    def chance_beyond(reach: int) -> tuple[float, float]:
        inside = 1.0 if computed is None else computed.within(reach)
        errors = [least**2]
        for part in drawn:
            share, error = part.beyond(reach)
            inside *= 1 - share
            errors.append(error**2)
        return 1 - inside, math.sqrt(max(errors[0], sum(errors[1:])))

    def holds(reach: int) -> bool:
        chance, error = chance_beyond(reach)
        return chance + STANDARD_ERRORS * error <= allowed - (0 if drawn else SPARE)

    low, high = -1, 1
    while not holds(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high, chance_beyond(high)[1] if drawn else 0.0

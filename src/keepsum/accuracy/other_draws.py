"""Which margins of error other simulated draws can have given: those of another version, or of another sampler.

Another simulation of m draws saw a share of the noise beyond a margin that differs from the share in our n draws by
SURE (1 + n/m)^(1/2) of our standard errors at most, but for a probability of about 10^-9. So its margin is not one that
too large a share of our draws is beyond, and no larger than one that few enough are beyond, its own errors allowed for
in both: it took STANDARD_ERRORS of them off the share that it allowed.

However few they are, and where draws take too long to be made again, a margin is at most what none of them is beyond,
but for a probability of 10^-9: the moments of the noise are at most those of free cells (``query_laws.py``). l2 Laplace
noise z on a lattice L of dimension d has E[exp(eps |z| / 2)] <= 2^d: the sum of exp(-eps |z| / 2) over L is that of
exp(-eps |w|) over the 2^d cosets of L in L / 2, and L itself has the largest, as exp(-|x|) has a positive transform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from keepsum._arrays import Floats
from keepsum.accuracy.block_laws import class_law, classes_of, free_cell
from keepsum.accuracy.levels import level_margins
from keepsum.accuracy.margins import Accuracy, accuracy
from keepsum.accuracy.query_laws import BoundLaw, DominatedPiece, EstimatedLaw
from keepsum.accuracy.simulation import (
    MOST_EFFORT,
    STANDARD_ERRORS,
    effort,
    needed_draws,
    smallest_margin,
    standard_error,
)
from keepsum.accuracy.sums import Estimate
from keepsum.planning.samplers import BlockSamplers

SURE = 6  # standard errors by which shares differ at most
ERROR_OF_ERROR = 4 / 3  # by which another simulation's standard error may differ from what ours makes of it
NEVER = 1e-9  # the probability that some simulated number is beyond a limit that was not simulated
LOOSE = 2  # by which a proved bound may be longer than ours for free cells: it depends on how it was found
MOST_GROUPS = 4  # of blocks where totals overlap: choosing a sampler takes seconds for each
UNLIMITED = 2**62


def is_quickly_chosen(blocks: BlockSamplers) -> bool:
    """Whether exact samplers of all blocks can be chosen again in a few seconds."""
    return sum(bool(group.members or group.tables) for group in blocks.groups) <= MOST_GROUPS


def is_quickly_simulated(blocks: BlockSamplers, level: float) -> bool:
    """Whether all margins of error at a level can be worked out again in a few seconds, samplers chosen included."""
    closed = free_cell(blocks.mechanism) is not None
    if not is_quickly_chosen(blocks):
        return False
    total, known = 0.0, set()
    for group, choice in zip(blocks.groups, blocks.choices, strict=True):
        if choice.sampler is None:
            return False
        if (group.members or group.tables or not closed) and id(choice.sampler) not in known:
            known.add(id(choice.sampler))
            total += effort(choice, needed_draws(level))
    return total <= MOST_EFFORT


@dataclass(frozen=True, eq=False)
class MarginRange:
    """The smallest and the largest margins of error that other draws can have given: of cells, and of focused totals.

    Attributes
    ----------
    smallest, largest
        Of each cell.
    focused
        The smallest and the largest typical margin of the totals of each focus.
    """

    smallest: Accuracy
    largest: Accuracy
    focused: tuple[tuple[int, int], ...] = ()

    @property
    def typical(self) -> tuple[int, int]:
        """The smallest and the largest typical margin of cells."""
        return self.smallest.typical, self.largest.typical


_ranges: WeakKeyDictionary[BlockSamplers, dict[tuple[float, int], MarginRange]] = WeakKeyDictionary()


def simulated_range(blocks: BlockSamplers, level: float, draws: int) -> MarginRange:
    """What so many other draws can have given, by draws of our own; worked out once for a plan."""
    found = _ranges.setdefault(blocks, {})
    if (level, draws) not in found:
        found[level, draws] = _simulated_range(blocks, level, draws)
    return found[level, draws]


def _simulated_range(blocks: BlockSamplers, level: float, draws: int) -> MarginRange:
    ours = accuracy(blocks, level)
    smallest, largest = ours.margins.copy(), ours.margins.copy()
    for part in classes_of(blocks, by_region=True):
        law = class_law(blocks, part, level)
        if isinstance(law, EstimatedLaw):
            smallest[part.cells], largest[part.cells] = margin_range(law, level, draws)

    def estimate(end: int) -> Estimate:
        return lambda law, each: (margin_range(law, each, draws)[end], 0.0)

    low, high = (level_margins(blocks, level, estimate=estimate(end)) for end in (0, 1))
    limits = possible_range(blocks, level, draws)
    largest = np.minimum(largest, limits.largest.margins)
    focused = (
        (a.accuracy.typical, min(b.accuracy.typical, most))
        for a, b, (_, most) in zip(low, high, limits.focused, strict=True)
    )
    return MarginRange(replace(ours, margins=smallest), replace(ours, margins=largest), tuple(focused))


def possible_range(blocks: BlockSamplers, level: float, draws: int) -> MarginRange:
    """The same without any draw: no margin is beyond all of their noise, and no proved bound beyond that of free cells.

    ``draws`` is 0 for margins that are proved bounds.
    """
    weight = blocks.noise_structure.weight
    none, most = np.zeros(blocks.size, dtype=np.int64), np.empty(blocks.size, dtype=np.int64)
    most.fill(_most(blocks, 1, level, draws))
    most[blocks.pinned] = 0
    focused = []
    for totals in blocks.margins:
        sizes = np.sort(np.bincount(totals.labels[totals.labels >= 0], minlength=totals.height))
        focused.append((0, _most(blocks, int(sizes[totals.height // 2]), level, draws)))
    return MarginRange(Accuracy(level, none, weight=weight), Accuracy(level, most, weight=weight), tuple(focused))


def _most(blocks: BlockSamplers, cells: int, level: float, draws: int) -> int:
    """A limit for margins of sums of so many cells: what no draw is beyond, or a few times a bound for free cells."""
    cell = free_cell(blocks.mechanism)
    if cell is None:
        dimension = sum(group.dimension for group in blocks.groups)
        reached = 2 * (dimension * math.log(2) + math.log(max(1, draws) / NEVER)) * float(blocks.mechanism.scale)
        return math.ceil(math.sqrt(cells) * reached)
    piece = DominatedPiece.of_free_cells(cell, cells)
    bound = BoundLaw(1, [(piece, 1)], piece.variance)
    return bound.reach_but_for(NEVER / (draws * blocks.size)) if draws else LOOSE * bound.reach(level)


def margin_range(law: EstimatedLaw, level: float, draws: int) -> tuple[int, int]:
    """The smallest and the largest margin that so many other draws of cells of one law can have given."""
    allowed = 1 - level
    fewer = math.sqrt(law.draws / draws)
    apart = SURE * math.hypot(1, fewer)
    above = apart + STANDARD_ERRORS * ERROR_OF_ERROR * fewer
    below = apart - STANDARD_ERRORS / ERROR_OF_ERROR * fewer
    least = math.sqrt(allowed * level / law.drawn.size)

    def holds(margin: int, errors: float) -> bool:
        beyond: Floats = law.beyond(margin)
        error = max(least, standard_error(beyond, law.chain))
        return float(beyond.mean()) + errors * error <= allowed

    # None of our draws is beyond this, or hardly any with the part of the noise that was computed.
    top = int(np.abs(law.drawn).max(initial=0)) + (0 if law.rest is None else law.rest.unit * len(law.rest.masses))
    smallest = smallest_margin(lambda margin: holds(margin, -below), top)
    largest = smallest_margin(lambda margin: holds(margin, above), top) if holds(top, above) else UNLIMITED
    return smallest, largest

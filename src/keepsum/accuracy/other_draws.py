"""Which margins of error other simulated draws can have given: those of another version, or of another sampler.

Another simulation of m draws saw a share of the noise beyond a margin that differs from the share in our n draws by
SURE (1 + n/m)^(1/2) of our standard errors at most, but for a chance of about 10^-9. So its margin is not one that too
large a share of our draws is beyond, and no larger than one that few enough are beyond, its own errors allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from keepsum._arrays import Floats
from keepsum.accuracy.block_laws import class_law, classes_of, free_cell
from keepsum.accuracy.margins import accuracy
from keepsum.accuracy.query_laws import EstimatedLaw
from keepsum.accuracy.simulation import MOST_EFFORT, effort, needed_draws, standard_error
from keepsum.accuracy.words import STANDARD_ERRORS
from keepsum.planning.samplers import BlockSamplers

SURE = 6  # standard errors by which shares differ at most
ERROR_OF_ERROR = 4 / 3  # by which another simulation's standard error may exceed what ours makes of it
MOST_GROUPS = 4  # of blocks where totals overlap: choosing a sampler takes seconds for each
UNLIMITED = 2**62


def is_quickly_simulated(blocks: BlockSamplers, level: float) -> bool:
    """Whether all margins of error at a level can be worked out again in a few seconds, samplers chosen included."""
    closed = free_cell(blocks.mechanism) is not None
    if sum(bool(group.members or group.tables) for group in blocks.groups) > MOST_GROUPS:
        return False
    total, known = 0.0, set()
    for group, choice in zip(blocks.groups, blocks.choices, strict=True):
        if choice.sampler is None:
            return False
        if (group.members or group.tables or not closed) and id(choice.sampler) not in known:
            known.add(id(choice.sampler))
            total += effort(choice, needed_draws(level))
    return total <= MOST_EFFORT


def typical_range(blocks: BlockSamplers, level: float, draws: int) -> tuple[int, int]:
    """The smallest and the largest typical margin that so many other draws can have given."""
    smallest = accuracy(blocks, level).margins.copy()
    largest = smallest.copy()
    for part in classes_of(blocks):
        law = class_law(blocks, part, level)
        if isinstance(law, EstimatedLaw):
            smallest[part.cells], largest[part.cells] = margin_range(law, level, draws)
    middle = len(smallest) // 2
    return int(np.sort(smallest)[middle]), int(np.sort(largest)[middle])


def margin_range(law: EstimatedLaw, level: float, draws: int) -> tuple[int, int]:
    """The smallest and the largest margin that so many other draws of cells of one law can have given."""
    sizes, allowed = np.abs(law.drawn), 1 - level
    fewer = math.sqrt(law.draws / draws)
    apart = SURE * math.hypot(1, fewer)
    above = apart + STANDARD_ERRORS * ERROR_OF_ERROR * fewer
    least = math.sqrt(allowed * level / sizes.size)

    def share_and_error(margin: int) -> tuple[float, float]:
        beyond: Floats = (sizes > margin).mean(axis=1)
        return float(beyond.mean()), max(least, standard_error(beyond, law.chain))

    def holds(margin: int, errors: float) -> bool:
        share, error = share_and_error(margin)
        return share + errors * error <= allowed

    top = int(sizes.max(initial=0))
    smallest = _first(top, lambda margin: holds(margin, -apart))
    largest = _first(top, lambda margin: holds(margin, above)) if holds(top, above) else UNLIMITED
    return smallest, largest


def _first(top: int, holds: Callable[[int], bool]) -> int:
    """The smallest margin that holds, as the largest one does."""
    low, high = -1, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high

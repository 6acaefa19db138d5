"""Simulated noise of blocks whose law is not known in closed form: drawn once, and only if that takes little time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum._progress import doing
from keepsum.errors import InputError
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice, Sampler, simulate_into, simulation_nanoseconds
from keepsum.sampling.core.rng import rng

# How margins of error are known, in words.


Basis: TypeAlias = Literal["exact", "conservative", "estimated"]
STANDARD_ERRORS = 3  # that margins from simulated draws allow for


def words_of_basis(basis: Basis, draws: int, error: float) -> str:
    """How margins are known; empty if they were computed.

    Examples
    --------
    >>> words_of_basis("estimated", 4000, 0.000347)
    'from 4,000 simulated draws with 0.11 percentage points allowed for their error'
    """
    if basis == "exact":
        return ""
    if basis == "conservative":
        return "by a proved bound, which is too long rather than too short"
    points = f" with {_two_digits_up(100 * STANDARD_ERRORS * error)} percentage points" if error else ""
    return f"from {draws:,} simulated draws{points and points + ' allowed for their error'}"


def _two_digits_up(number: float) -> str:
    place = max(0, 1 - math.floor(math.log10(number)))
    return f"{math.ceil(number * 10**place * (1 - 1e-12)) / 10**place:.{place}f}"


# Simulated noise of blocks whose law is not known in closed form: drawn once, and only if that takes little time.
#
# Noise does not depend on the data, so drawing it for this purpose costs no budget. It comes from a seed of its own,
# so that what is estimated from it is always the same.


# Nanoseconds that a simulation is said to take (by durations.py, not by a clock): half a second anyway, two at most.
EFFORT, MOST_EFFORT = 5 * 10**8, 2 * 10**9
FEWEST_DRAWS, FEWEST_WIDE_DRAWS, MOST_DRAWS = 40, 8, 4000
ENOUGH_CELLS = 4 * 10**5  # in all draws: few draws of a wide sampler are enough
BATCHES = 20  # of successive states of a chain, which may be correlated
KEPT_NUMBERS = 2**23  # of simulated noise that are kept with a plan
MOST_NUMBERS = 2**27  # of simulated noise at all: a gigabyte

_drawn: WeakKeyDictionary[BlockSamplers, dict[tuple[int, int], IntArray]] = WeakKeyDictionary()


def simulated(blocks: BlockSamplers, choice: Choice, needed: int = 0, patient: bool = False) -> IntArray | None:
    """Simulated noise of all cells of a sampler, a row for each draw; None if it would take long.

    Parameters
    ----------
    blocks, choice
        The sampler, and the plan that it is part of.
    needed
        The fewest draws that are of any use.
    patient
        Simulate however long it takes.
    """
    if choice.sampler is None:
        return None
    width, usual = choice.sampler.width, _usual_draws(choice, choice.sampler.width)
    draws = max(usual, needed)
    if effort(choice, needed) > MOST_EFFORT and not patient:
        return None
    if draws * width > MOST_NUMBERS:
        raise InputError(f"Level must be smaller: it takes {draws:,} simulated draws of {width:,} cells.")
    kept, key = _drawn.setdefault(blocks, {}), (id(choice.sampler), draws)
    noise = kept.get(key)
    if noise is None:  # more draws that are there from another level are not taken: results depend on nothing else
        noise = _simulate(choice.sampler, draws, _number(blocks, choice.sampler))
        for other in [other for other in list(kept) if other[0] == key[0] and other[1] != usual]:
            kept.pop(other, None)
        if noise.size <= 2 * KEPT_NUMBERS:
            kept[key] = noise
    return noise


def effort(choice: Choice, needed: int = 0) -> float:
    """About how many nanoseconds simulating a sampler takes."""
    if choice.sampler is None:
        raise AssertionError("there is a sampler")
    return max(_usual_draws(choice, choice.sampler.width), needed) * simulation_nanoseconds(choice)


def _usual_draws(choice: Choice, width: int) -> int:
    fewest = min(FEWEST_DRAWS, max(FEWEST_WIDE_DRAWS, ENOUGH_CELLS // width))
    return max(fewest, min(MOST_DRAWS, int(EFFORT // simulation_nanoseconds(choice)), KEPT_NUMBERS // width))


def _number(blocks: BlockSamplers, sampler: Sampler) -> int:
    """The place of a sampler among those of a plan."""
    return next(number for number, choice in enumerate(blocks.choices) if choice.sampler is sampler)


def _simulate(sampler: Sampler, draws: int, number: int) -> IntArray:
    """Draws from a seed of the sampler's own: noise in different blocks is added up as if it were independent."""
    doing("simulating noise for margins of error")
    noise = np.empty((draws, sampler.width), dtype=np.int64)
    simulate_into(sampler, noise, rng(seed=f"keepsum accuracy {number}" if number else "keepsum accuracy"))
    noise.setflags(write=False)
    return noise


def needed_draws(level: float, columns: int = 1) -> int:
    """The fewest draws from which a margin at a level can be told, if each has this many cells of one law."""
    return math.ceil(STANDARD_ERRORS**2 * level / ((1 - level) * columns)) + 1


def standard_error(values: Floats, chain: bool) -> float:
    """The standard error of a mean over draws; of a chain, as it is between batches, if that is larger."""
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    if not chain or len(values) < 2 * BATCHES:
        return error
    means = np.array([batch.mean() for batch in np.array_split(values, BATCHES)])
    return max(error, float(means.std(ddof=1)) / math.sqrt(BATCHES))


def estimated_margin(sizes: IntArray, level: float, chain: bool = False) -> tuple[int, float] | None:
    """The smallest margin beyond which at most a fraction 1 - level of the noise lies, and what that is uncertain by.

    It allows for three standard errors of that fraction. None if these draws are too few for the level.

    Parameters
    ----------
    sizes
        Absolute noise, one row per draw, columns of one law. Draws are independent, or states of a chain; columns need
        not be.
    level
        The probability to stay within the margin.
    chain
        Whether draws are states of a chain.

    Examples
    --------
    >>> import numpy as np
    >>> margin, error = estimated_margin(np.arange(1000).reshape(1000, 1) % 100, 0.95)  # 94 without standard errors
    >>> margin, round(error, 4)
    (97, 0.0069)
    """
    draws, columns = sizes.shape
    allowed = 1 - level
    least = math.sqrt(allowed * level / (draws * columns))
    if STANDARD_ERRORS * least > allowed:
        return None

    def holds(margin: int) -> bool:
        share, error = _beyond(sizes, margin, level, chain)
        return share + STANDARD_ERRORS * error <= allowed

    margin = smallest_margin(holds, int(sizes.max(initial=0)))
    return margin, _beyond(sizes, margin, level, chain)[1]


def smallest_margin(holds: Callable[[int], bool], top: int | None = None) -> int:
    """The smallest margin that holds, where all larger ones do; ``top`` is known to.

    >>> smallest_margin(lambda margin: margin**2 >= 50), smallest_margin(lambda margin: margin**2 >= 50, 8)
    (8, 8)
    """
    low, high = -1, 1 if top is None else top
    while top is None and not holds(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def margin_before_rounding(sizes: IntArray, level: float, margin: int, chain: bool = False) -> float:
    """The same margin as if noise were not whole numbers: from margin - 1/2, just too small, to margin + 1/2.

    >>> import numpy as np
    >>> round(margin_before_rounding(np.arange(1000).reshape(1000, 1) % 100, 0.95, 97), 2)
    96.56
    """
    if margin == 0:
        return 0.0
    found = [_beyond(sizes, each, level, chain) for each in (margin - 1, margin)]
    # Tails are about exponential, so that logarithms are about linear.
    above, below = (math.log((share + STANDARD_ERRORS * error) / (1 - level)) for share, error in found)
    return margin - 0.5 + max(0.0, above) / (max(0.0, above) - min(below, -1e-9))


def _beyond(sizes: IntArray, margin: int, level: float, chain: bool) -> tuple[float, float]:
    """The fraction of the noise beyond a margin, and its standard error.

    Cells that rarely stray together look too certain: the error is no smaller than that of independent cells.
    """
    beyond: Floats = (sizes > margin).mean(axis=1)
    least = math.sqrt((1 - level) * level / sizes.size)
    return float(beyond.mean()), max(least, standard_error(beyond, chain))

"""Margins of error of the cells of a plan, before any budget is spent.

Where the law of a cell's noise is known in closed form its margin is computed. Where totals overlap it is simulated:
noise does not depend on the data, so drawing it for this purpose costs no budget.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keepsum._arguments import check_number
from keepsum._arrays import IntArray
from keepsum._progress import doing
from keepsum.accuracy.law import CellLaw, cell_law, margin
from keepsum.errors import InputError
from keepsum.lattice.structure import FORCED, Structure
from keepsum.planning.groups import BlockGroup
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice, simulate_into
from keepsum.sampling.core.rng import rng

# Simulated cells for a group of blocks, rejected ones included, and the fewest and most draws.
MARGIN_CELLS = 2 * 10**7
FEWEST_MARGIN_DRAWS, FEWEST_WIDE_DRAWS, MOST_MARGIN_DRAWS = 40, 8, 4000
WIDE_SAMPLER = 5 * 10**5
STANDARD_ERRORS = 3


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy:
    """The margins of error of released counts.

    Attributes
    ----------
    level
        The probability that a cell's noise stays within its margin, at least.
    margins
        The margin of error of each cell, in counts; 0 for a pinned cell.
    draws
        The number of simulated draws behind the margins, the smallest for any cell; 0 if all were computed.

    Examples
    --------
    >>> import keepsum as ks
    >>> plan = ks.plan(ks.Invariants.subsets(5, [[0, 1, 2]]), ks.Laplace(epsilon=0.25))
    >>> plan.accuracy()
    Accuracy(typical 95% margin of error ±8 per cell (±8 to ±12))
    >>> plan.accuracy(level=0.5).margins.tolist()
    [2, 2, 2, 3, 3]
    """

    level: float
    margins: IntArray
    draws: int

    @property
    def typical(self) -> int:
        """The median margin."""
        return int(np.sort(self.margins)[len(self.margins) // 2])

    def __str__(self) -> str:
        low, high = int(self.margins.min()), int(self.margins.max())
        spread = "" if low == high else f" (±{low:,} to ±{high:,})"
        source = f", from {self.draws:,} simulated draws" if self.draws else ""
        return f"typical {100 * self.level:.4g}% margin of error ±{self.typical:,} per cell{spread}{source}"

    def __repr__(self) -> str:
        return f"Accuracy({self})"

    def _repr_html_(self) -> str:
        return f"<p><b>Accuracy</b> {html.escape(str(self))}</p>"


def accuracy(blocks: BlockSamplers, level: float = 0.95) -> Accuracy:
    """The margin of error of every cell at a level.

    A simulated margin allows three standard errors of the fraction of cells beyond it, taken over draws.
    """
    level = check_number(level, "Level", 0, 1)
    margins = np.zeros(blocks.size, dtype=np.int64)
    law = cell_law(blocks.mechanism)
    fewest = 0
    drawn: dict[int, IntArray] = {}
    for group, choice in zip(blocks.groups, blocks.choices, strict=True):
        if law is not None and not group.members:
            _compute(law, blocks.structure, choice.cells, level, margins)
            continue
        if id(choice.sampler) not in drawn:
            drawn[id(choice.sampler)] = _simulated(choice, _draws(choice))
        noise = drawn[id(choice.sampler)][:, choice.first : choice.first + len(choice.cells)]
        draws = len(noise)
        fewest = min(fewest or draws, draws)
        for columns in _exchangeable(blocks.structure, group, choice):
            margins[choice.cells[columns]] = simulated_margin(np.abs(noise[:, columns]), level)
    margins.setflags(write=False)
    return Accuracy(level, margins, fewest)


def _compute(law: CellLaw, structure: Structure, cells: IntArray, level: float, margins: IntArray) -> None:
    """Cells under no total, or cells of regions with forced sums: the size of the region is all that matters."""
    region = structure.region[cells]
    size = np.where(structure.part[region] == FORCED, structure.sizes[region], 0)
    for value in np.unique(size).tolist():
        margins[cells[size == value]] = margin(law, value, level)


def _draws(choice: Choice) -> int:
    """As many draws as the effort allows; few are enough for a sampler with very many cells of one law."""
    fewest = (
        FEWEST_MARGIN_DRAWS if choice.sampler is None or choice.sampler.width <= WIDE_SAMPLER else FEWEST_WIDE_DRAWS
    )
    return max(fewest, min(MOST_MARGIN_DRAWS, MARGIN_CELLS // max(1, choice.simulation_cost)))


def _simulated(choice: Choice, draws: int) -> IntArray:
    """Noise for the margins only, from its own seed, so that they are always the same."""
    if choice.sampler is None:
        raise InputError(
            "Margins of error need a sampler for every block, and one has none. plan.explain() shows every block."
        )
    doing("simulating margins of error")
    noise = np.empty((draws, choice.sampler.width), dtype=np.int64)
    simulate_into(choice.sampler, noise, rng(seed="keepsum accuracy"))
    return noise


def _exchangeable(structure: Structure, group: BlockGroup, choice: Choice) -> Iterator[IntArray]:
    """Columns of the sampler whose noise has the same law: those of a region, all of a table, and of equal blocks."""
    if not group.members:
        region = structure.region[choice.cells]
        size = structure.sizes[region]
        for value in np.unique(size).tolist():
            yield np.flatnonzero(size == value)
        return
    system = group.members[0].system
    sizes = structure.sizes[group.members[0].regions]
    if system.grid is not None and (sizes == sizes[0]).all():
        yield np.arange(len(choice.cells))
        return
    place = np.full(len(structure.sizes), -1, dtype=np.int64)
    for block in group.members:
        place[block.regions] = np.arange(len(block.regions))
    region = place[structure.region[choice.cells]]
    for j in range(len(sizes)):
        yield np.flatnonzero(region == j)


def simulated_margin(sizes: IntArray, level: float) -> int:
    """The smallest margin beyond which at most a fraction 1 - level of the noise lies, allowing for standard errors.

    Parameters
    ----------
    sizes
        Absolute noise, one row per draw, columns of one law. Draws are independent, columns need not be.

    Examples
    --------
    >>> import numpy as np
    >>> simulated_margin(np.arange(1000).reshape(1000, 1) % 100, 0.95)  # 94 without standard errors
    97
    """
    draws, columns = sizes.shape
    allowed = 1 - level
    # Cells that rarely stray together look too certain: no smaller error than that of independent cells.
    least = math.sqrt(allowed * level / (draws * columns))
    low, high = -1, int(sizes.max())
    while high - low > 1:
        middle = (low + high) // 2
        beyond: npt.NDArray[np.float64] = (sizes > middle).mean(axis=1)
        error = max(least, float(beyond.std(ddof=1)) / math.sqrt(draws))
        if float(beyond.mean()) + STANDARD_ERRORS * error <= allowed:
            high = middle
        else:
            low = middle
    return high

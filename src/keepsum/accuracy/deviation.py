"""The standard deviation of one cell's noise: in closed form, that of wide noise, or simulated.

A simulated one is shown with no more digits than its draws support: the others would differ between processors, whose
floating-point functions differ in the last digit and so lead to other draws of chains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import Floats
from keepsum.accuracy.focused import FocusedNoise
from keepsum.accuracy.law import cell_law
from keepsum.accuracy.simulation import simulated, standard_error
from keepsum.accuracy.words import STANDARD_ERRORS
from keepsum.lattice.structure import FORCED, FREE
from keepsum.planning.geometry import cell_share
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice, simulate_into
from keepsum.sampling.core.rng import rng

FEWEST_DRAWS = 4  # of l1 noise under overlapping totals, where more would take long
DIGITS = 3  # that are shown of a standard deviation, at most
# The proposals of a chain say as much as its draws and take less: half a second of them, and enough for 100 to pass.
PROPOSING, PASSING, MOST_PROPOSALS = 10**7, 100, 50_000


@dataclass(frozen=True)
class Deviation:
    """A standard deviation, and its standard error if it is simulated; computed ones have none.

    Examples
    --------
    >>> print(Deviation(4.3155), Deviation(4.3155, 0.003), Deviation(4.3155, 0.03), Deviation(4.3155, 0.3))
    4.32 about 4.32 about 4.3 about 4
    >>> print(Deviation(0.0123, 0.3), Deviation(2.97, 0.02), Deviation(1234.0), Deviation(1234.0, 8.0))
    about 0.01 about 3.0 1.23e+03 about 1200
    """

    value: float
    error: float = 0.0

    def __str__(self) -> str:
        """Three digits; of a simulated one, those that three standard errors do not change by more than one."""
        if not self.error:
            return f"{self.value:.{DIGITS}g}"
        first = math.floor(math.log10(self.value))
        last = max(first - DIGITS + 1, min(first, math.ceil(math.log10(STANDARD_ERRORS * self.error))))
        return f"about {round(self.value, -last):.{max(0, -last)}f}"

    @classmethod
    def of_squares(cls, squares: Floats, chain: bool) -> Deviation:
        """From the mean square of each draw."""
        value = math.sqrt(squares.mean())
        return cls(value, standard_error(squares, chain) / (2 * value) if value else 0.0)

    @classmethod
    def of_weighted(cls, squares: Floats, log_weights: Floats) -> Deviation:
        """From the mean square of each proposal, and the logarithm of its weight in the noise."""
        weights: Floats = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        mean = float(weights @ squares)
        value = math.sqrt(mean)
        return cls(value, math.sqrt(float(weights**2 @ (squares - mean) ** 2)) / (2 * value) if value else 0.0)


def cell_deviation(blocks: BlockSamplers, cell: int) -> Deviation | None:
    """The standard deviation of a cell's noise; in the l2 norm, that of wide noise. None where it is not known."""
    if blocks.mechanism.kind not in ("laplace-l2", "gaussian") or blocks.margins:
        return _known_or_simulated(blocks, cell)
    share = cell_share(blocks.structure, int(blocks.structure.region[cell]))
    if share is None:
        return None
    scale = float(blocks.mechanism.scale)
    if blocks.mechanism.kind == "gaussian":
        return Deviation(scale * math.sqrt(share))
    # l2 Laplace noise is Gaussian of a random width w, and w^2 has mean (m + 1)/eps^2.
    return Deviation(math.sqrt(share * (blocks.structure.dimension + 1)) * scale)


def _known_or_simulated(blocks: BlockSamplers, cell: int) -> Deviation | None:
    if any(choice.sampler is None for choice in blocks.choices):
        return None
    focused = FocusedNoise.of(blocks)
    if focused is not None and focused.focused[cell]:
        return Deviation(math.sqrt(focused.cell_variance(cell)))
    structure, law = blocks.noise_structure, cell_law(blocks.mechanism)
    region = structure.region[cell]
    if law is not None and structure.part[region] in (FREE, FORCED):
        size = 0 if structure.part[region] == FREE else int(structure.sizes[region])
        return Deviation(0.0 if size == 1 else math.sqrt(law.variance(size)))
    choice = next((choice for choice in blocks.choices if (choice.cells == cell).any()), None)
    return None if choice is None else _simulated_deviation(blocks, choice)


def _simulated_deviation(blocks: BlockSamplers, choice: Choice) -> Deviation | None:
    """The standard deviation over all cells of a group, from the draws of the margins of error if there are any."""
    if choice.sampler is None:
        return None
    if blocks.mechanism.kind == "laplace-l1":
        proposed = _proposed_deviation(choice)
        if proposed is not None:
            return proposed
    noise = simulated(blocks, choice)
    if noise is None:
        noise = np.empty((FEWEST_DRAWS, choice.sampler.width), dtype=np.int64)
        simulate_into(choice.sampler, noise, rng(seed="keepsum comparison"))
    part = noise[:, choice.first : choice.first + len(choice.cells)].astype(np.float64)
    return Deviation.of_squares((part**2).mean(axis=1), choice.chain is not None)


def _proposed_deviation(choice: Choice) -> Deviation | None:
    """The same from the proposals of a chain, weighted, where every region is one cell; else None."""
    from keepsum.sampling.general.chains import MixtureChain

    chain = choice.chain
    if not isinstance(chain, MixtureChain) or not chain.cell_by_cell:
        return None
    number = min(MOST_PROPOSALS, max(PROPOSING // chain.proposals.cost, math.ceil(PASSING * chain.tries)))
    sums, log_weights = chain.proposals.propose(number, rng(seed="keepsum comparison").stream())
    return Deviation.of_weighted((sums.astype(np.float64) ** 2).mean(axis=1), log_weights)

"""The standard deviation of one cell's noise: in closed form, that of wide noise, or simulated."""

from __future__ import annotations

import math

import numpy as np

from keepsum.accuracy.focused import FocusedNoise
from keepsum.accuracy.law import cell_law
from keepsum.accuracy.simulation import simulated
from keepsum.lattice.structure import FORCED, FREE
from keepsum.planning.geometry import cell_share
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice, simulate_into
from keepsum.sampling.core.rng import rng

FEWEST_DRAWS = 4  # of l1 noise under overlapping totals, where more would take long


def cell_deviation(blocks: BlockSamplers, cell: int) -> float | None:
    """The standard deviation of a cell's noise; in the l2 norm, that of wide noise. None where it is not known."""
    if blocks.mechanism.kind not in ("laplace-l2", "gaussian") or blocks.margins:
        return _known_or_simulated(blocks, cell)
    share = cell_share(blocks.structure, int(blocks.structure.region[cell]))
    if share is None:
        return None
    scale = float(blocks.mechanism.scale)
    if blocks.mechanism.kind == "gaussian":
        return scale * math.sqrt(share)
    # l2 Laplace noise is Gaussian of a random width w, and w^2 has mean (m + 1)/eps^2.
    return math.sqrt(share * (blocks.geometry.dimension + 1)) * scale


def _known_or_simulated(blocks: BlockSamplers, cell: int) -> float | None:
    if any(choice.sampler is None for choice in blocks.choices):
        return None
    focused = FocusedNoise.of(blocks)
    if focused is not None and focused.focused[cell]:
        return math.sqrt(focused.cell_variance(cell))
    structure, law = blocks.noise_structure, cell_law(blocks.mechanism)
    region = structure.region[cell]
    if law is not None and structure.part[region] in (FREE, FORCED):
        size = 0 if structure.part[region] == FREE else int(structure.sizes[region])
        return 0.0 if size == 1 else math.sqrt(law.variance(size))
    choice = next((choice for choice in blocks.choices if (choice.cells == cell).any()), None)
    return None if choice is None else _simulated_deviation(blocks, choice)


def _simulated_deviation(blocks: BlockSamplers, choice: Choice) -> float | None:
    """The standard deviation over all cells of a group, from the draws of the margins of error if there are any."""
    if choice.sampler is None:
        return None
    if choice.chain is not None and choice.chain.mean_square is not None:
        return math.sqrt(choice.chain.mean_square)
    noise = simulated(blocks, choice)
    if noise is None:
        noise = np.empty((FEWEST_DRAWS, choice.sampler.width), dtype=np.int64)
        simulate_into(choice.sampler, noise, rng(seed="keepsum comparison"))
    return float(noise[:, choice.first : choice.first + len(choice.cells)].std())

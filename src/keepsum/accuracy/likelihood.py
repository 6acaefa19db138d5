"""The probability of a whole vector of noise, for analyses by likelihood."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.block_laws import free_cell
from keepsum.accuracy.focused import FocusedNoise
from keepsum.accuracy.free_cells import FreeCell, turn_of
from keepsum.errors import InputError
from keepsum.lattice.matrix import as_integers
from keepsum.lattice.structure import FORCED, FREE
from keepsum.planning.samplers import BlockSamplers
from keepsum.sampling.l1.focus.mass import log_mass
from keepsum.tables.invariants import Invariants


def log_weights(noise: npt.ArrayLike, blocks: BlockSamplers, invariants: Invariants) -> Floats:
    """Ln of the weight of each row of noise, that of no noise being 0; -infinity where a total is not kept."""
    rows = noise_rows(noise, blocks.size)
    scale = float(blocks.mechanism.scale)
    values = rows.astype(np.float64)
    totals = [
        (float(level.weight), margin.coefficients() @ values.T)
        for level, margin in zip(blocks.mechanism.focus, blocks.margins, strict=True)
    ]
    if blocks.mechanism.kind == "laplace-l1":
        logs = -np.abs(values).sum(axis=1) / scale
        for weight, sums in totals:
            logs -= weight * np.abs(sums).sum(axis=0)
    elif blocks.mechanism.kind == "gaussian":
        logs = -(values**2).sum(axis=1) / (2 * scale**2)
        for weight, sums in totals:
            logs -= weight * (sums**2).sum(axis=0)
    else:
        logs = -np.sqrt((values**2).sum(axis=1)) / scale
    kept = invariants.coefficients @ rows.T
    logs[np.asarray((kept != 0).any(axis=0)).ravel()] = -np.inf
    return np.asarray(logs)


def log_constant(blocks: BlockSamplers) -> float | None:
    """Ln of the sum of all weights, where it is known: outside of blocks, in l1 Laplace and Gaussian noise.

    The weights of n cells that add up to 0 have the sum of those of n free cells, times the chance that these do. Trees
    of focused totals add their own.
    """
    cell, structure = free_cell(blocks.mechanism), blocks.noise_structure
    if cell is None or structure.blocks or blocks.focused is not None:
        return None
    total = 0.0
    if blocks.nested is not None:
        focused = FocusedNoise.of(blocks)
        if focused is None:
            return None
        total = log_mass(focused.sampler.kinds, focused.sampler.laws)
    each = -math.log(_chance_of_no_noise(cell))
    total += each * int(structure.sizes[structure.part == FREE].sum())
    sizes, times = np.unique(structure.sizes[structure.part == FORCED], return_counts=True)
    for size, number in zip(sizes.tolist(), times.tolist(), strict=True):
        if size > 1:
            angles, points = turn_of(cell, size, size)
            total += number * (size * each + math.log(float(np.exp(-size * cell.fall(angles)).sum()) / points))
    return total


def _chance_of_no_noise(cell: FreeCell) -> float:
    return float(cell.transform_within(np.zeros(1), 0)[0])


def noise_rows(noise: Any, size: int) -> IntArray:
    """One vector of noise, or several as rows, as whole numbers."""
    rows = as_integers(noise, "Noise")
    if rows.ndim not in (1, 2) or rows.shape[-1] != size:
        raise InputError(f"Noise must have a whole number for each of the {size:,} cells.")
    return np.atleast_2d(rows)

"""Samplers for Gaussian noise: the lattice Gaussian of each block, or a chain where the noise is too narrow for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.grids import Grid
from keepsum.lattice.structure import Block, Structure, System
from keepsum.planning.geometry import block_factor
from keepsum.planning.selection.cells import block_cells, free_cells, sums_cells
from keepsum.planning.selection.choice import BUDGET, Choice, Reason
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.core.rng import rng
from keepsum.sampling.gaussian.blocks import BlockGaussian
from keepsum.sampling.gaussian.parts import Part, Variances
from keepsum.sampling.gaussian.sums import FreeGaussian, LatticeGaussian, SumsGaussian, sum_acceptance
from keepsum.sampling.gaussian.tables import TableGaussian

# Cells that may be drawn per accepted draw of a region with its sum kept, which is fast: some seconds.
SUM_BUDGET = 2 * 10**8
NUMERATOR_ROOM = 2.0**55  # width times cells: numerators of centres stay a hundred times below 2^63
NARROWEST, WIDEST = Fraction(1, 50), Fraction(10**8)
NARROW_SIGMA = 2  # up to this sigma, chains are tried where the acceptance rate of the exact sampler is too low
FREE_COST = 10  # the time that a cell under no total takes, in cells of l1 Laplace noise
RAREST = 1e-15  # the smallest acceptance rate that counts as more than none
# Cells that a pilot draws, and how near its rate may come to the one that decides before a longer pilot spends a
# quarter of the budget: a few weights of rare proposals make up most of such a mean.
PILOT, CLOSE = 2 * 10**6, 1000


def choose_free(structure: Structure, mechanism: Mechanism) -> Choice:
    """Cells under no total: every draw is accepted."""
    cells, sigma = free_cells(structure), mechanism.scale
    part = FreeGaussian(structure.number_of(cells))
    missing = _out_of_range(sigma, part)
    if missing is not None:
        return Choice.none(cells, missing)
    return Choice("independent_cells", LatticeGaussian(part, sigma**2), cells, FREE_COST * part.width)


def choose_sums(structure: Structure, mechanism: Mechanism) -> Choice:
    """Regions whose sum the totals force to be 0."""
    cells, sizes = sums_cells(structure)
    return choose_exact(mechanism.scale, SumsGaussian(sizes), cells, SumsGaussian([sizes.max()]), SUM_BUDGET)


def choose_overlap(structure: Structure, blocks: Sequence[Block], mechanism: Mechanism) -> Choice:
    """Blocks of one form whose totals overlap; where the noise is too narrow for the exact sampler, a chain."""
    sigma, system = mechanism.scale, blocks[0].system
    cells, sizes = block_cells(structure, blocks)
    ordered = in_part_order(system, sizes, cells)
    part, one = overlap_part(system, sizes, len(cells)), overlap_part(system, sizes, 1)
    if part is None or one is None:
        exact = Choice.none(ordered, Reason("too_many_totals"))
    else:
        exact = choose_exact(sigma, part, ordered, one, BUDGET)
    if exact.sampler is not None or not NARROWEST <= sigma <= NARROW_SIGMA:
        return exact
    from keepsum.planning.selection.narrow import choose_narrow  # not loaded where an exact sampler applies

    return choose_narrow(system, sizes, cells, float(sigma) ** 2, exact.reasons) or exact


def overlap_part(system: System, sizes: IntArray, count: int) -> Part | None:
    """``count`` blocks of one form: a table in closed form, others by their triangular factor, if there is one."""
    grid = _table(system, sizes)
    if grid is not None:
        return TableGaussian(grid.shape, count)
    factor = block_factor(system, sizes.tobytes())
    return None if factor is None else BlockGaussian(factor, sizes, count)


def in_part_order(system: System, sizes: IntArray, cells: list[IntArray]) -> IntArray:
    """The cells of blocks in the order in which ``overlap_part`` draws them."""
    grid = _table(system, sizes)
    return np.concatenate(cells if grid is None else [block[grid.column.reshape(-1)] for block in cells])


def _table(system: System, sizes: IntArray) -> Grid | None:
    """The grid of a block that is a table of single cells."""
    return system.grid if sizes.max() == 1 else None


def _out_of_range(sigma: Fraction, part: Part) -> Reason | None:
    if not NARROWEST <= sigma <= WIDEST:
        return Reason("sigma_out_of_range", lowest=str(NARROWEST), highest=str(WIDEST))
    return Reason("no_room") if float(sigma) * part.width > NUMERATOR_ROOM else None


def choose_exact(sigma: Fraction, part: Part, cells: IntArray, one: Part, budget: int) -> Choice:
    """The exact sampler, if a draw of one block stays within the budget.

    Where many totals overlap, narrow noise has a low acceptance rate; it is estimated here, from some draws of one
    block.
    """
    missing = _out_of_range(sigma, part)
    if missing is not None:
        return Choice.none(cells, missing)
    rate = max(acceptance(one, sigma**2, budget), RAREST)
    if one.width / rate > budget:
        return Choice.none(cells, Reason("rarely_accepted", limit=budget, acceptance=rate))
    sampler, cost = LatticeGaussian(part, sigma**2), math.ceil(part.width / rate)
    return Choice("conditional_cells", sampler, cells, cost, acceptance=rate)


def acceptance(part: Part, variance: Fraction, budget: int) -> float:
    """The acceptance rate of a block: known for sums, else measured by a pilot with its own seed."""
    if isinstance(part, SumsGaussian):
        return sum_acceptance(part.width, float(variance))
    if part.log_theta_bound(float(variance)) < 1e-9:
        return 1.0
    rate = _measured(part, variance, max(4, min(400, PILOT // part.width)))
    if part.width / CLOSE < budget * rate < CLOSE * part.width:
        rate = _measured(part, variance, max(4, budget // (4 * part.width)))
    return rate


def _measured(part: Part, variance: Fraction, proposals: int) -> float:
    """The mean weight of so many proposals, some at a time."""
    source, centred, weights = rng(seed="keepsum pilot"), part.log_theta_centred(float(variance)), []
    step = max(1, PILOT // part.width)
    for first in range(0, proposals, step):
        out = np.empty((min(step, proposals - first), part.width), dtype=np.int64)
        weights.append(part.fill(out, Variances.constant(variance, len(out)), False, source, 1))
    return float(np.exp(np.concatenate(weights) - centred).mean())

"""On the driver: the sums of pieces that the kept totals leave open, and what is refused because they do.

A group whose sum the totals force has the sum 0; groups in overlapping totals get theirs from the sampler of their
block, as on one machine.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum._memory import check_room
from keepsum.errors import PlanError
from keepsum.lattice.structure import FREE
from keepsum.planning.plan import CompiledPlan
from keepsum.planning.quotient import Quotient
from keepsum.sampling.core.rng import Rng
from keepsum.sampling.l1.split_sums import split_sums
from keepsum.spark.layout import TASK_CELLS, Layout

BLOCK_CELLS = 10**8  # in overlapping totals, whose noise the driver draws to know the sums
BYTES_A_CELL = 48  # that drawing them takes


def check_distributable(plan: CompiledPlan) -> Quotient:
    """The groups of a plan, if its noise can be drawn task by task.

    Raises
    ------
    PlanError
        With what stands in the way, and what to do instead.
    """
    structure, quotient, kind = plan.structure, plan.quotient, plan.mechanism.kind
    if quotient is None:
        raise AssertionError("plans of Spark are in groups")
    if kind == "laplace-l2":
        raise PlanError(
            "Noise in Spark must be l1 Laplace or Gaussian noise: l2 Laplace noise shares one scale between all cells, "
            "so that no part of it can be drawn alone. Choose norm='l1' or Gaussian noise, or release on one machine."
        )
    inside = sum(int(structure.sizes[block.regions].sum()) for block in structure.blocks)
    if inside > BLOCK_CELLS:
        raise PlanError(
            f"Kept totals that overlap must concern at most {BLOCK_CELLS:,} cells in Spark, because the driver draws "
            f"their sums, and these concern {inside:,}. Keep totals that are nested or disjoint."
        )
    check_room(inside, f"Overlapping totals of {inside:,} cells, which the driver draws,", BYTES_A_CELL)
    largest = int(structure.sizes.max())
    if kind == "gaussian" and largest > TASK_CELLS and not is_free(plan):
        raise PlanError(
            f"Under Gaussian noise a kept total must have at most {TASK_CELLS:,} cells of its own in Spark, and one "
            f"has {largest:,}: no exact way is known to divide it between tasks. Choose Laplace noise, or keep totals "
            f"inside it."
        )
    return quotient


def is_free(plan: CompiledPlan) -> bool:
    """Whether all cells are under no total, and no focus."""
    return bool((plan.blocks.noise_structure.part == FREE).all())


def draw_sums(plan: CompiledPlan, layout: Layout, rng: Rng) -> IntArray | None:
    """The sum of the noise of each piece; None if all are 0."""
    divided = len(layout.pieces) - 1 > len(layout.ends)
    if is_free(plan) or not (plan.structure.blocks or plan.blocks.nested or divided):
        return None
    sums = np.zeros(len(layout.ends), dtype=np.int64)
    for group, choice in zip(plan.groups, plan.samplers, strict=True):
        if choice.sampler is None or group.in_closed_form:
            continue
        noise = np.empty((1, choice.sampler.width), dtype=np.int64)
        choice.sampler.draw_into(noise, rng)
        if group.members:
            np.add.at(sums, choice.cells, noise[0])
        else:
            sums[choice.cells] = _of_groups(plan, choice.cells, noise[0], rng)
    return _of_pieces(1 / plan.mechanism.scale, sums, layout, rng)


def _of_groups(plan: CompiledPlan, groups: IntArray, drawn: IntArray, rng: Rng) -> IntArray:
    """The sums of groups in nested totals, from those of the cells that stand in a total and in no smaller one."""
    nested, weight = plan.blocks.nested, plan.structure.weight
    if nested is None or weight is None:
        raise AssertionError("these groups are in nested totals")
    _, place = np.unique(nested.home[groups], return_inverse=True)
    sums = drawn[place]
    for number in np.flatnonzero(np.bincount(place) > 1).tolist():
        several = np.flatnonzero(place == number)
        sums[several] = split_sums(1 / plan.mechanism.scale, weight[groups[several]], int(drawn[number]), rng)
    return sums


def _of_pieces(epsilon: Fraction, sums: IntArray, layout: Layout, rng: Rng) -> IntArray:
    """The sums of groups, those of large ones divided between their pieces."""
    group = layout.group(layout.pieces[:-1])
    of_pieces, sizes = sums[group], np.diff(layout.pieces)
    several = np.flatnonzero(np.bincount(group) > 1)
    for number in several.tolist():
        first, last = np.searchsorted(group, [number, number + 1])
        of_pieces[first:last] = split_sums(epsilon, sizes[first:last], int(sums[number]), rng)
    return of_pieces

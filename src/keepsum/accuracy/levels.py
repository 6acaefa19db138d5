"""Margins of error of cells and of the totals of each focus."""

from __future__ import annotations

from dataclasses import replace

from keepsum.accuracy.margins import Accuracy, LevelMargins, accuracy
from keepsum.accuracy.sum_margins import sum_accuracy
from keepsum.planning.samplers import BlockSamplers


def accuracy_by_level(
    blocks: BlockSamplers, level: float = 0.95, simultaneous: bool = False, patient: bool = False
) -> Accuracy:
    """The margin of error of every cell, as in ``accuracy``, and those of the totals of each focus, if there is one."""
    found = accuracy(blocks, level, simultaneous, patient)
    if not blocks.margins:
        return found
    levels = []
    for focus, margin in zip(blocks.mechanism.focus, blocks.margins, strict=True):
        totals = margin.domain.marginal_index(margin.axes)
        levels.append(LevelMargins(focus.axes, sum_accuracy(blocks, totals, margin.height, found.level, simultaneous)))
    return replace(found, levels=tuple(levels))

"""Margins of error of cells and of the totals of each focus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from keepsum.accuracy.margins import WEAKEST, Accuracy, LevelMargins, accuracy
from keepsum.accuracy.noise import Noise
from keepsum.accuracy.query_laws import EstimatedLaw
from keepsum.accuracy.sum_margins import Estimate, sum_accuracy
from keepsum.planning.focus_totals import FocusTotals
from keepsum.planning.samplers import BlockSamplers
from keepsum.tables.invariants import Invariants


def accuracy_by_level(
    blocks: BlockSamplers, level: float = 0.95, simultaneous: bool = False, patient: bool = False
) -> Accuracy:
    """The margin of error of every cell, as in ``accuracy``, and those of the totals of each focus, if there is one."""
    found = accuracy(blocks, level, simultaneous, patient)
    return replace(found, levels=level_margins(blocks, found.level, simultaneous))


def level_margins(
    blocks: BlockSamplers, level: float, simultaneous: bool = False, estimate: Estimate = EstimatedLaw.estimated
) -> tuple[LevelMargins, ...]:
    """The margins of error of the totals of each focus; ``estimate`` finds one from simulated draws."""
    levels = []
    for focus, totals in zip(blocks.mechanism.focus, blocks.margins, strict=True):
        if totals.covers:
            margins = sum_accuracy(blocks, totals.labels, totals.height, level, simultaneous, estimate)
        else:
            margins = _of_subsets(blocks, totals, level, simultaneous, estimate)
        levels.append(LevelMargins(focus.axes, margins, focus.each))
    return tuple(levels)


def _of_subsets(
    blocks: BlockSamplers, totals: FocusTotals, level: float, simultaneous: bool, estimate: Estimate
) -> Accuracy:
    """The margins of a few totals, each by its own law; what may go wrong is divided among them if simultaneous."""
    each = 1 - (1 - level) / totals.height if simultaneous else level
    noise = Noise(blocks, Invariants(blocks.size, ()))
    laws = [noise.law((totals.labels == number).astype(np.int64)) for number in range(totals.height)]
    reached = [estimate(law, each) if isinstance(law, EstimatedLaw) else (law.reach(each), 0.0) for law in laws]
    margins = np.array([margin for margin, _ in reached], dtype=np.int64)
    margins.setflags(write=False)
    return Accuracy(
        level,
        margins,
        max((law.basis for law in laws), key=WEAKEST.index),
        min((law.draws for law in laws if isinstance(law, EstimatedLaw)), default=0),
        max((error for _, error in reached), default=0.0),
        simultaneous,
        what="total",
    )

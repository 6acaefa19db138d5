"""What coupled chains showed, as curves to be drawn, from the meeting times in a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.convergence.bounds import tv_upper_bound
from keepsum.convergence.times import MeetingTimes
from keepsum.planning.describe import describe_form
from keepsum.privacy.numbers import three_digits_up
from keepsum.releasing.guarantee_facts import BlockRecord, ConvergenceRecord
from keepsum.releasing.records import form_of

POINTS = 400


@dataclass(frozen=True, eq=False)
class ChainCurve:
    """How near a chain comes to its target, by the number of its steps.

    Attributes
    ----------
    name
        The form of the blocks that it draws.
    blocks
        How many of them there are.
    steps
        How many steps a draw takes.
    pairs, unmet
        How many pairs of coupled chains were run, and how many had not met.
    confidence
        That of the limit.
    upper
        The limit on the total variation of one block after these steps, as the certificate states it.
    at, bound, limit
        Numbers of steps, the bound estimated from the pairs after each, and its limit.
    """

    name: str
    blocks: int
    steps: int
    pairs: int
    unmet: int
    confidence: float
    upper: str
    at: IntArray
    bound: Floats
    limit: Floats


def chain_curves(blocks: Sequence[BlockRecord]) -> list[ChainCurve]:
    """The curves of all forms of blocks that were drawn by chains."""
    return [_curve(block, block.convergence) for block in blocks if block.convergence is not None]


def _curve(block: BlockRecord, stated: ConvergenceRecord) -> ChainCurve:
    times = _times(stated)
    at = np.unique(np.linspace(0, max(2.0, 1.25 * stated.steps), POINTS).astype(np.int64))
    bound = tv_upper_bound(times, t=at, confidence=stated.confidence)
    limit = np.minimum(1.0, np.asarray(bound.upper) + stated.rounding)
    return ChainCurve(
        describe_form(form_of(block.form)),
        block.blocks,
        stated.steps,
        stated.pairs,
        stated.unmet,
        stated.confidence,
        three_digits_up(stated.upper),
        at,
        np.minimum(1.0, np.asarray(bound.estimate)),
        limit,
    )


def _times(stated: ConvergenceRecord) -> MeetingTimes:
    met = [steps + stated.lag for steps, pairs in stated.meetings for _ in range(pairs)]
    times = np.array([*met, *[stated.give_up] * stated.unmet], dtype=np.int64)
    return MeetingTimes(times, stated.lag, np.arange(len(times)) >= len(met), stated.give_up)

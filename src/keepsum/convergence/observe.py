"""How near chains come to their target: bounds on the total variation from the meeting times of coupled chains.

It needs no data and spends no budget: noise does not depend on counts. Meeting times are kept (``store.py``). Chunk k
of the pairs of a chain is drawn from a seed that its fingerprint and k give: anybody can draw it again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from keepsum._arguments import check_number, check_whole
from keepsum._text import type_of
from keepsum.convergence.bounds import TvBound, tv_upper_bound
from keepsum.convergence.store import CHUNK, MeetingTimeStore
from keepsum.convergence.times import MeetingTimes
from keepsum.errors import InputError
from keepsum.privacy.guarantee import SamplingError
from keepsum.privacy.numbers import three_digits_up
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.weights import GeometricTail

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keepsum.sampling.general.chains import Chain

# Pairs for each form of blocks, the fewest of them, and what they may cost together, in cells drawn freely (a minute).
PAIRS, FEWEST, EFFORT = 4000, 300, 2 * 10**9
FEWEST_PAIRS, MOST_PAIRS = 20, 10**6  # that may be asked for, and that a record may hold
WEIGHTS = 20_000  # candidates whose weights are looked at, or as many as the pairs see, if that is more
PATIENCE = 20  # pairs are followed for so many times the steps of a draw
TARGET_TV = 1e-9  # chains run for as many steps as a pilot extrapolates to this: nothing smaller is claimed
CONFIDENCE = 0.95
CONFIDENCES = 0.5, 0.9999  # what may be asked for lies between these

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class BlockConvergence:
    """What pairs of chains show of one form of blocks.

    Attributes
    ----------
    blocks
        How many of them a draw has.
    steps
        How long a chain runs per draw.
    lag, give_up
        By how many steps one chain of a pair leads, and at what step a pair is given up.
    meetings
        How many pairs met, by the steps from the lag to the meeting.
    unmet
        How many were given up.
    confidence
        The level of ``upper``.
    predicted
        The total variation after the steps of a draw that the weights of many proposals predict
        (``sampling/general/weights.py``); 0 where a chain has no weights. It is taken into both limits: rare states
        that hold a chain for long show in weights, where a pair shows them only if it waits there.
    rounding
        The total variation that floating-point numbers add to a draw of one block (``Chain.rounding``). Pairs are made
        of the same numbers and cannot see it; it is in both limits.
    """

    blocks: int
    steps: int
    lag: int
    give_up: int
    meetings: tuple[tuple[int, int], ...]
    unmet: int
    confidence: float
    predicted: float = 0.0
    rounding: float = 0.0

    @property
    def pairs(self) -> int:
        """How many pairs were run."""
        return sum(count for _, count in self.meetings) + self.unmet

    @cached_property
    def times(self) -> MeetingTimes:
        """The meeting times."""
        met = np.repeat(
            np.array([steps for steps, _ in self.meetings], dtype=np.int64),
            np.array([count for _, count in self.meetings], dtype=np.int64),
        )
        times = np.concatenate([met + self.lag, np.full(self.unmet, self.give_up, dtype=np.int64)])
        return MeetingTimes(times, self.lag, np.arange(len(times)) >= len(met), self.give_up)

    @cached_property
    def bound(self) -> TvBound:
        """The bound of the total variation after the steps of a draw."""
        return tv_upper_bound(self.times, t=self.steps, confidence=self.confidence)

    @property
    def upper(self) -> float:
        """The confidence limit of the total variation of one block, at most 1.

        It holds if pairs that have not met do not become much slower to meet (``ks.mcmc.tv_upper_bound``), and is
        never below what weights predict. Rounding comes on top.
        """
        return float(min(1.0, max(self.bound.upper, self.predicted) + self.rounding))

    @property
    def extrapolated(self) -> float:
        """The total variation if the meeting times go on falling off as they do where they were observed.

        Never less than what was observed, nor than the 1e-9 that the number of steps aims at; with rounding on top.
        """
        if self.unmet:
            return 1.0
        tail = GeometricTail.of(self.times.excess).distance(self.steps, self.lag)
        return min(1.0, max(TARGET_TV, tail, float(self.bound.estimate), self.predicted) + self.rounding)

    def __repr__(self) -> str:
        unmet = f", {self.unmet:,} NOT MET" if self.unmet else ""
        return (
            f"BlockConvergence({self.steps:,} steps; {self.pairs:,} pairs{unmet}; total variation at most "
            f"{three_digits_up(self.upper)} at {100 * self.confidence:.4g}%, "
            f"extrapolated {three_digits_up(self.extrapolated)})"
        )


@dataclass(frozen=True)
class Convergence:
    """What pairs of chains show of all blocks that are drawn by chains.

    Attributes
    ----------
    groups
        For each group of blocks what pairs of chains showed; None where it is drawn exactly, or by rejection.
    rounding
        The total variation that rounding adds to blocks that are drawn by rejection, at most.
    confidence
        The level at which all limits hold together.
    """

    groups: tuple[BlockConvergence | None, ...]
    rounding: float
    confidence: float

    @property
    def chains(self) -> tuple[BlockConvergence, ...]:
        """The groups that are drawn by chains."""
        return tuple(group for group in self.groups if group is not None)

    @property
    def error(self) -> SamplingError:
        """The total variation between a draw and its target, summed over all blocks."""
        if not self.chains:
            return SamplingError(self.rounding)
        upper = sum(group.blocks * group.upper for group in self.chains) + self.rounding
        beyond = sum(group.blocks * group.extrapolated for group in self.chains) + self.rounding
        fewest = min(group.pairs for group in self.chains)
        return SamplingError(min(1.0, upper), min(1.0, beyond), self.confidence, fewest)

    def plot(self, names: Sequence[str] = ()) -> Figure:
        """Draw the bound against the steps of a chain, with its limit and its extrapolation.

        Parameters
        ----------
        names
            What the groups that are drawn by chains are called, one for each; by default they are numbered.
        """
        from keepsum.convergence.plot import Panel, plot_convergence

        chains = self.chains
        if not names:
            names = [f"Chain {k + 1}" for k in range(len(chains))] if len(chains) > 1 else ["The chain"]
        return plot_convergence(
            [
                Panel(name, group.times, group.steps, group.confidence, group.upper, group.extrapolated,
                      group.predicted, group.rounding)
                for name, group in zip(names, chains, strict=True)
            ]
        )  # fmt: skip

    def __repr__(self) -> str:
        lines = [f"  {group!r}" for group in self.chains] or ["  no block is drawn by a chain"]
        return "\n".join(["Convergence(", *lines, ")"])


def observe_all(
    chains: Sequence[tuple[Chain | None, int]],
    rounding: float = 0.0,
    pairs: int | None = None,
    confidence: float = CONFIDENCE,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Convergence:
    """Run pairs of chains for every form of blocks that is drawn by chains.

    Parameters
    ----------
    chains
        For each group of blocks its chain, or None if it is drawn otherwise, and how many blocks it has.
    rounding
        The total variation that rounding adds to groups that are not drawn by chains.
    pairs, confidence, threads, progress
        See ``Plan.certify``.
    """
    pairs = None if pairs is None else check_whole(pairs, "The number of pairs", FEWEST_PAIRS, MOST_PAIRS)
    confidence = float(check_number(confidence, "The confidence", *CONFIDENCES))
    if progress is not None and not callable(progress):
        raise InputError(f"Progress must be a function of the pairs done and wanted, got {type_of(progress)}.")
    threads = None if threads is None else check_whole(threads, "The number of threads", 1)
    forms = sum(chain is not None for chain, _ in chains)
    wanted = [0 if chain is None else pairs or _enough(chain, forms) for chain, _ in chains]
    each = 1 - (1 - confidence) / max(1, forms)
    reporter = _Reporter(progress, sum(wanted))
    workers = threads or os.cpu_count() or 1
    groups = tuple(
        None if chain is None else observe(chain, blocks, count, each, workers, reporter.add)
        for (chain, blocks), count in zip(chains, wanted, strict=True)
    )
    return Convergence(groups, rounding, confidence)


def observe(
    chain: Chain,
    blocks: int,
    pairs: int,
    confidence: float = CONFIDENCE,
    threads: int = 1,
    add: Callable[[int], None] = lambda count: None,
) -> BlockConvergence:
    """Run pairs of one chain, as far as the cache does not have them; ``add`` is told of each chunk."""
    times = _times(chain, pairs, threads, add)
    excess = Counter(time - chain.lag for time in times if time >= 0)
    return BlockConvergence(
        blocks=blocks,
        steps=chain.steps,
        lag=chain.lag,
        give_up=_give_up(chain),
        meetings=tuple(sorted(excess.items())),
        unmet=sum(time < 0 for time in times),
        confidence=confidence,
        predicted=chain.predicted_distance(max(WEIGHTS, pairs * chain.lag)),
        rounding=chain.rounding,
    )


def _enough(chain: Chain, forms: int) -> int:
    """As many pairs as are wanted, fewer where they would take long."""
    return int(max(FEWEST, min(PAIRS, EFFORT // (forms * chain.cost * (chain.lag + chain.lag // 2)))))


def _give_up(chain: Chain) -> int:
    return chain.lag + max(1000, PATIENCE * chain.steps)


class _Reporter:
    """Tells a caller how many of all pairs have been run."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)


def _times(chain: Chain, pairs: int, threads: int, add: Callable[[int], None]) -> list[int]:
    """The meeting times of the first pairs of a chain, from the cache as far as it has them."""
    key = chain.fingerprint()
    chunks = -(-pairs // CHUNK)
    store = MeetingTimeStore(f"{chain.cache_key()}-{chain.lag}-{_give_up(chain)}", chain.lag, _give_up(chain))
    known = store.read()[:chunks]
    add(CHUNK * len(known))
    while len(known) < chunks:
        source = rng(seed=f"keepsum pairs {key} {len(known)}")
        times = chain.meeting_times(CHUNK, chain.lag, _give_up(chain), source, threads)
        known.append(times.tolist())
        store.write(known)
        add(CHUNK)
    return [time for chunk in known for time in chunk][:pairs]

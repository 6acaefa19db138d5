"""How close chains come to their target: bounds on the total variation from the meeting times of coupled chains."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from keepsum._arguments import check_number, check_whole
from keepsum._cache import CacheFile
from keepsum._progress import doing
from keepsum._saying import arg
from keepsum._text import percent, type_of
from keepsum._threads import threads_of
from keepsum.convergence.bounds import TvBound, clopper_pearson, tv_upper_bound
from keepsum.convergence.times import MeetingTimes
from keepsum.errors import InputError
from keepsum.privacy.guarantee import SamplingError
from keepsum.privacy.numbers import three_digits_up
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.weights import GeometricTail

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keepsum.sampling.general.chains import Chain


# The file cache of meeting times: pairs of chains that were run once are not run again.
#
# Times are stored pair by pair, in chunks, so that an interrupted run resumes where it stopped, and another plan with
# the same blocks reuses them.


CHUNK_PAIRS = 250  # pairs that are run and stored together


class MeetingTimeStore:
    """The file that holds the meeting times of one chain, in chunks; -1 for a pair that was given up.

    Parameters
    ----------
    name
        The file's name: one for each chain, lag and step at which pairs are given up.
    lag, give_up
        The smallest and the largest possible meeting time.
    """

    def __init__(self, name: str, lag: int, give_up: int) -> None:
        self._file = CacheFile("convergence", f"{name}.json")
        self._name, self._lag, self._give_up = name, lag, give_up

    def read(self) -> list[list[int]]:
        """The stored chunks; none if the file is missing or damaged."""
        digest, _, text = (self._file.read() or "").partition("\n")
        if digest != self._digest(text):
            return []
        try:
            chunks = json.loads(text)
        except (ValueError, RecursionError):
            return []
        whole = isinstance(chunks, list) and all(
            isinstance(chunk, list) and len(chunk) == CHUNK_PAIRS and all(self._possible(time) for time in chunk)
            for chunk in chunks
        )
        return chunks if whole else []

    def _digest(self, text: str) -> str:
        """What tells a file that was damaged, or copied from another chain's: whoever forges one can forge it too."""
        return hashlib.sha256(f"{self._name} {text}".encode()).hexdigest()

    def _possible(self, time: object) -> bool:
        return type(time) is int and (time == -1 or self._lag <= time <= self._give_up)

    def write(self, chunks: list[list[int]]) -> None:
        """Replace the file atomically; where the folder cannot be written to, nothing is stored."""
        text = json.dumps(chunks)
        self._file.write(f"{self._digest(text)}\n{text}")


# How close chains come to their target: bounds on the total variation from the meeting times of coupled chains.
#
# This needs no data and spends no budget: noise does not depend on counts. Meeting times are cached.
# The seed of chunk k of the pairs follows from the chain's fingerprint and k: anybody can run it again.


# Pairs per form of blocks, the fewest of them, and their total cost, in independent cells drawn (a minute).
DEFAULT_PAIRS, FEWEST_DEFAULT_PAIRS, PAIRS_EFFORT = 4000, 300, 2 * 10**9
FEWEST_PAIRS, MOST_PAIRS = 20, 10**6  # the fewest that may be requested, the most that a record may hold
WEIGHTS = 20_000  # candidates whose weights are examined, or as many as the pairs see, if that is more
PATIENCE = 20  # pairs are given up after this many times the steps of a draw
TARGET_TV = 1e-9  # chains run until a pilot extrapolates to this: nothing smaller is claimed
CONFIDENCE = 0.95
CONFIDENCES = 0.5, 0.9999  # the range that may be requested

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class BlockConvergence:
    """What coupled chains show for one form of blocks.

    Attributes
    ----------
    blocks
        How many of them a draw has.
    steps
        How long a chain runs per draw.
    lag, give_up
        The lag between the chains of a pair, and the step at which a pair is given up.
    meetings
        The number of pairs that met, by the steps from the lag to the meeting.
    unmet
        How many were given up.
    confidence
        The confidence level of ``upper``.
    predicted
        The total variation after the steps of a draw that the weights of many proposals predict
        (``sampling/general/weights.py``); 0 where a chain has no weights. Neither limit is below it:
        rare states that hold a chain for long show in the weights, and in a pair only if it gets stuck there.
    rounding
        The total variation that floating-point arithmetic adds to a draw of one block (``Chain.rounding``). Pairs use
        the same arithmetic and cannot show it; both limits include it.
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
        """The bound on the total variation after the steps of a draw."""
        return tv_upper_bound(self.times, t=self.steps, confidence=self.confidence)

    @property
    def upper(self) -> float:
        """The confidence limit on the total variation of one block, at most 1.

        It assumes that pairs which have not met do not become slower to meet (``ks.mcmc.tv_upper_bound``), and is never
        below what the weights predict. Rounding is added.
        """
        return float(min(1.0, max(self.bound.upper, self.predicted) + self.rounding))

    @property
    def extrapolated(self) -> float:
        """The total variation if the tail of the meeting times stays geometric, as observed.

        Never below the observed bound, nor below the 1e-9 that the number of steps aims at. Rounding is added.
        """
        if self.unmet:
            return 1.0
        tail = GeometricTail.of(self.times.excess).distance(self.steps, self.lag)
        return min(1.0, max(TARGET_TV, tail, float(self.bound.estimate), self.predicted) + self.rounding)

    def __repr__(self) -> str:
        unmet = f", {self.unmet:,} NOT MET" if self.unmet else ""
        return (
            f"BlockConvergence({self.steps:,} steps; {self.pairs:,} pairs{unmet}; total variation at most "
            f"{three_digits_up(self.upper)} at {percent(self.confidence)}, "
            f"{three_digits_up(self.extrapolated)} extrapolated)"
        )


@dataclass(frozen=True)
class Convergence:
    """What coupled chains show for all blocks that are drawn by chains.

    Attributes
    ----------
    groups
        What coupled chains showed for each group of blocks; None where it is drawn exactly, or by rejection.
    rounding
        An upper bound on the total variation that rounding adds to blocks drawn by rejection.
    confidence
        The confidence level at which all limits hold jointly.
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
        extrapolated = sum(group.blocks * group.extrapolated for group in self.chains) + self.rounding
        fewest = min(group.pairs for group in self.chains)
        return SamplingError(min(1.0, upper), min(1.0, extrapolated), self.confidence, fewest)

    def plot(self, names: Sequence[str] = ()) -> Figure:
        """Draw the bound against the steps of a chain, with its limit and its extrapolation.

        Parameters
        ----------
        names
            Names of the groups drawn by chains, one each; by default they are numbered.
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
    """Run coupled chains for every form of blocks that is drawn by chains.

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
        raise InputError(f"{arg.progress} must be a function of the pairs done and wanted, got {type_of(progress)}.")
    wanted, each = _wanted(chains, pairs), _each(chains, confidence)
    reporter = _Reporter(progress, sum(wanted))
    workers = threads_of(threads)
    groups = tuple(
        None if chain is None else observe(chain, blocks, count, each, workers, reporter.add)
        for (chain, blocks), count in zip(chains, wanted, strict=True)
    )
    return Convergence(groups, rounding, confidence)


def smallest_error(chains: Sequence[tuple[Chain | None, int]]) -> SamplingError:
    """What ``observe_all`` with its defaults shows at best: the limit from pairs all of which meet in time."""
    alpha, wanted = 1 - _each(chains, CONFIDENCE), _wanted(chains, None)
    groups = [(blocks, pairs) for (_, blocks), pairs in zip(chains, wanted, strict=True) if pairs]
    return SamplingError(min(1.0, sum(blocks * clopper_pearson(0, pairs, alpha / 2) for blocks, pairs in groups)))


def _wanted(chains: Sequence[tuple[Chain | None, int]], pairs: int | None) -> list[int]:
    """How many pairs each group is to have; none where it is not drawn by chains."""
    forms = sum(chain is not None for chain, _ in chains)
    return [0 if chain is None else pairs or _enough(chain, forms) for chain, _ in chains]


def _each(chains: Sequence[tuple[Chain | None, int]], confidence: float) -> float:
    """The confidence level of each limit, so that all hold jointly at this one."""
    return 1 - (1 - confidence) / max(1, sum(chain is not None for chain, _ in chains))


def observe(
    chain: Chain,
    blocks: int,
    pairs: int,
    confidence: float = CONFIDENCE,
    threads: int = 1,
    add: Callable[[int], None] = lambda count: None,
) -> BlockConvergence:
    """Run the pairs of one chain that are not in the cache; ``add`` is called with the pairs of each chunk."""
    times = _times(chain, pairs, threads, add)
    excess = Counter(time - chain.lag for time in times if time >= 0)
    proposals = max(WEIGHTS, pairs * chain.lag)
    doing(f"examining the weights of {proposals:,} proposals")
    return BlockConvergence(
        blocks=blocks,
        steps=chain.steps,
        lag=chain.lag,
        give_up=_give_up(chain),
        meetings=tuple(sorted(excess.items())),
        unmet=sum(time < 0 for time in times),
        confidence=confidence,
        predicted=chain.predicted_distance(proposals),
        rounding=chain.rounding,
    )


def _enough(chain: Chain, forms: int) -> int:
    """The default number of pairs, fewer where they would take too long."""
    affordable = PAIRS_EFFORT // (forms * chain.cost * (chain.lag + chain.lag // 2))
    return int(max(FEWEST_DEFAULT_PAIRS, min(DEFAULT_PAIRS, affordable)))


def _give_up(chain: Chain) -> int:
    return chain.lag + max(1000, PATIENCE * chain.steps)


class _Reporter:
    """Reports how many of all pairs have been run."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)


def _times(chain: Chain, pairs: int, threads: int, add: Callable[[int], None]) -> list[int]:
    """The meeting times of the first pairs of a chain, from the cache where it has them."""
    key = chain.fingerprint()
    chunks = -(-pairs // CHUNK_PAIRS)
    store = MeetingTimeStore(f"{chain.cache_key()}-{chain.lag}-{_give_up(chain)}", chain.lag, _give_up(chain))
    known = store.read()[:chunks]
    add(CHUNK_PAIRS * len(known))
    while len(known) < chunks:
        source = rng(seed=f"keepsum pairs {key} {len(known)}")
        times = chain.meeting_times(CHUNK_PAIRS, chain.lag, _give_up(chain), source, threads)
        known.append(times.tolist())
        store.write(known)
        add(CHUNK_PAIRS)
    return [time for chunk in known for time in chunk][:pairs]

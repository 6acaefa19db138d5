"""How near the chains of a plan come to their law, shown by pairs of chains that meet.

It needs no data and spends no budget: noise does not depend on counts. What was found is kept in the user's cache
folder, pair by pair, so that a run that was stopped goes on where it was, and another plan with the same blocks finds
it. Chunk k of the pairs of a chain is drawn from a seed that its fingerprint and k give: anybody can draw it again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keepsum._arguments import check_number, check_whole
from keepsum._cache import user_cache
from keepsum._signals import held_back
from keepsum._text import printable, type_of
from keepsum.errors import InputError
from keepsum.privacy.guarantee import SamplingError, significant
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.weights import GeometricTail

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keepsum.convergence.bounds import TvBound
    from keepsum.convergence.times import MeetingTimes
    from keepsum.planning.plan import Plan
    from keepsum.sampling.general.chains import Chain

# Pairs for each form of blocks, the fewest of them, and what they may cost together, in cells drawn freely (a minute).
PAIRS, FEWEST, EFFORT = 4000, 300, 2 * 10**9
FEWEST_PAIRS, MOST_PAIRS = 20, 10**6  # that may be asked for, and that a certificate may speak of
WEIGHTS = 20_000  # candidates whose weights are looked at, or as many as the pairs see, if that is more
CHUNK = 250  # pairs that are drawn and kept together
PATIENCE = 20  # pairs are followed for so many times the steps of a draw
FARTHEST = 1e-9  # chains are run for as many steps as a pilot extrapolates to this: nothing smaller is claimed
CONFIDENCE = 0.95
CONFIDENCES = 0.5, 0.9999  # what may be asked for lies between these

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Convergence:
    """What pairs of chains show of one form of blocks.

    Attributes
    ----------
    form, sampler
        The blocks and their sampler, in words.
    blocks
        How many of them a draw has.
    steps
        How long a chain runs for a draw.
    lag, most
        How far one chain of a pair leads, and at what step a pair is given up.
    meetings
        How many pairs met, by the steps from the lag to the meeting.
    unmet
        How many were given up.
    confidence
        The level of ``upper``.
    foretold
        The distance after the steps of a draw that the weights of many proposals give
        (``sampling/general/weights.py``); 0 where a chain has no weights. What they show is taken into both limits:
        rare states that hold a chain for long show in weights, where a pair shows them only if it waits there.
    rounding
        The total variation that floating-point numbers add to a draw of one block (``Chain.rounding``). Pairs are made
        of the same numbers and cannot see it; it is in both limits.
    """

    form: str
    sampler: str
    blocks: int
    steps: int
    lag: int
    most: int
    meetings: tuple[tuple[int, int], ...]
    unmet: int
    confidence: float
    foretold: float = 0.0
    rounding: float = 0.0

    @property
    def pairs(self) -> int:
        """How many pairs were run."""
        return sum(count for _, count in self.meetings) + self.unmet

    @cached_property
    def times(self) -> MeetingTimes:
        """The meeting times."""
        from keepsum.convergence.times import MeetingTimes

        met = np.repeat(
            np.array([steps for steps, _ in self.meetings], dtype=np.int64),
            np.array([count for _, count in self.meetings], dtype=np.int64),
        )
        times = np.concatenate([met + self.lag, np.full(self.unmet, self.most, dtype=np.int64)])
        return MeetingTimes(times, self.lag, np.arange(len(times)) >= len(met), self.most)

    @cached_property
    def bound(self) -> TvBound:
        """The bound of the distance after the steps of a draw."""
        from keepsum.convergence.bounds import tv_upper_bound

        return tv_upper_bound(self.times, t=self.steps, confidence=self.confidence)

    @property
    def upper(self) -> float:
        """The confidence limit of the distance of one block, at most 1.

        It holds if pairs that have not met do not become much slower to meet (``ks.mcmc.tv_upper_bound``), and is
        never below what weights foretell. Rounding comes on top.
        """
        return float(min(1.0, max(self.bound.upper, self.foretold) + self.rounding))

    @property
    def extrapolated(self) -> float:
        """The distance if the meeting times go on falling off as they do where they were seen.

        Never less than what was seen, nor than the 1e-9 that the number of steps is meant for; with rounding on top.
        """
        if self.unmet:
            return 1.0
        tail = GeometricTail.of(self.times.excess).distance(self.steps, self.lag)
        return min(1.0, max(FARTHEST, tail, float(self.bound.estimate), self.foretold) + self.rounding)

    def __repr__(self) -> str:
        return (
            f"Convergence({printable(self.form)}: {self.steps:,} steps; {self.pairs:,} pairs"
            f"{f', {self.unmet:,} NOT MET' if self.unmet else ''}; total variation at most "
            f"{significant(self.upper)} at {100 * self.confidence:.4g}%, extrapolated {significant(self.extrapolated)})"
        )


@dataclass(frozen=True)
class Certification:
    """What was shown of all blocks of a plan that are drawn by chains.

    Attributes
    ----------
    groups
        For each group of blocks what pairs of chains showed; None where it is drawn exactly, or by rejection.
    rounding
        The total variation that rounding adds to blocks that are drawn by rejection, at most.
    confidence
        The level at which all limits hold together.
    """

    groups: tuple[Convergence | None, ...]
    rounding: float
    confidence: float

    @property
    def chains(self) -> tuple[Convergence, ...]:
        """The groups that are drawn by chains."""
        return tuple(group for group in self.groups if group is not None)

    @property
    def error(self) -> SamplingError:
        """How far a draw may be from its law, summed over all blocks."""
        if not self.chains:
            return SamplingError(self.rounding)
        upper = sum(group.blocks * group.upper for group in self.chains) + self.rounding
        beyond = sum(group.blocks * group.extrapolated for group in self.chains) + self.rounding
        fewest = min(group.pairs for group in self.chains)
        return SamplingError(min(1.0, upper), min(1.0, beyond), self.confidence, fewest)

    def plot(self) -> Figure:
        """Draw the bound against the steps of a chain, with its limit and its extrapolation."""
        from keepsum.convergence.plot import plot_certification

        return plot_certification(self)

    def __repr__(self) -> str:
        lines = [f"  {group!r}" for group in self.chains] or ["  no block is drawn by a chain"]
        return "\n".join(["Certification(", *lines, ")"])


def certify(
    plan: Plan,
    pairs: int | None = None,
    confidence: float = CONFIDENCE,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Certification:
    """Run pairs of chains for every form of blocks that is drawn by chains; see ``Plan.certify``."""
    pairs = None if pairs is None else check_whole(pairs, "The number of pairs", FEWEST_PAIRS, MOST_PAIRS)
    confidence = check_number(confidence, "The confidence", *CONFIDENCES)
    if progress is not None and not callable(progress):
        raise InputError(f"Progress must be a function of the pairs done and wanted, got {type_of(progress)}.")
    confidence = float(confidence)
    threads = None if threads is None else check_whole(threads, "The number of threads", 1)
    chains = [choice.chain for choice in plan.samplers if choice.chain is not None]
    wanted = [pairs or _enough(chain, len(chains)) for chain in chains]
    own = 1 - (1 - confidence) / max(1, len(chains))
    reporter = _Reporter(progress, sum(wanted))
    threads = threads or os.cpu_count() or 1
    counts = iter(wanted)
    found: list[Convergence | None] = []
    for group, choice in zip(plan.groups, plan.samplers, strict=True):
        if choice.chain is None:
            found.append(None)
            continue
        names = (group.structure, choice.words, group.blocks)
        found.append(observe(choice.chain, *names, next(counts), own, threads, reporter.add))
    rounding = sum(choice.rounding for choice in plan.samplers)
    return Certification(tuple(found), rounding, confidence)


def observe(
    chain: Chain,
    form: str,
    sampler: str,
    blocks: int,
    pairs: int,
    confidence: float = CONFIDENCE,
    threads: int = 1,
    add: Callable[[int], None] = lambda count: None,
) -> Convergence:
    """Run pairs of one chain, as far as the cache does not have them; ``add`` is told of each chunk."""
    times = _times(chain, pairs, threads, add)
    excess = Counter(time - chain.lag for time in times if time >= 0)
    return Convergence(
        form=form,
        sampler=sampler,
        blocks=blocks,
        steps=chain.steps,
        lag=chain.lag,
        most=_most(chain),
        meetings=tuple(sorted(excess.items())),
        unmet=sum(time < 0 for time in times),
        confidence=confidence,
        foretold=chain.predicted_distance(max(WEIGHTS, pairs * chain.lag)),
        rounding=chain.rounding,
    )


def _enough(chain: Chain, forms: int) -> int:
    """As many pairs as are wanted, fewer where they would take long."""
    return int(max(FEWEST, min(PAIRS, EFFORT // (forms * chain.cost * (chain.lag + chain.lag // 2)))))


def _most(chain: Chain) -> int:
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
    shelf = _Shelf(f"{key[:32]}-{chain.lag}-{_most(chain)}", chain.lag, _most(chain))
    known = shelf.read()[:chunks]
    add(CHUNK * len(known))
    while len(known) < chunks:
        source = rng(seed=f"keepsum pairs {key} {len(known)}")
        times = chain.meeting_times(CHUNK, chain.lag, _most(chain), source, threads)
        known.append(times.tolist())
        shelf.write(known)
        add(CHUNK)
    return [time for chunk in known for time in chunk][:pairs]


class _Shelf:
    """The file of the cache that holds the pairs of a chain, in chunks."""

    def __init__(self, name: str, lag: int, most: int) -> None:
        folder = cache_folder()
        self._path = None if folder is None else folder / f"{name}.json"
        self._lag, self._most = lag, most

    def read(self) -> list[list[int]]:
        """The chunks that are there; none if the file is missing or damaged."""
        if self._path is None:
            return []
        try:
            found = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return []
        whole = isinstance(found, list) and all(
            isinstance(chunk, list) and len(chunk) == CHUNK and all(self._possible(time) for time in chunk)
            for chunk in found
        )
        return found if whole else []

    def _possible(self, time: object) -> bool:
        return type(time) is int and (time == -1 or self._lag <= time <= self._most)

    def write(self, chunks: list[list[int]]) -> None:
        """Replace the file, in whole or not at all; a folder that cannot be written to keeps nothing."""
        if self._path is None:
            return
        with held_back(), suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent, suffix=".part")
            try:
                with os.fdopen(handle, "w") as file:
                    json.dump(chunks, file)
                Path(name).replace(self._path)
            except BaseException:
                with suppress(OSError):
                    Path(name).unlink()
                raise


def cache_folder() -> Path | None:
    """Where meeting times are kept: ``KEEPSUM_CACHE``, or the user's cache folder; None for a user without one."""
    own = os.environ.get("KEEPSUM_CACHE")
    base = Path(own) if own else user_cache()
    return None if base is None else base / "convergence"

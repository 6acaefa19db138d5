"""Between Python and the kernels: feeding words, settling ties, and sharing work between threads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from keepsum.sampling.core.kernel_arguments import WORD_BITS, State, States, new_state
from keepsum.sampling.core.kernels import ACCEPT_BITS, DONE, MORE, TIE_DRAW
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream

TASK_CELLS = 2**16  # about a millisecond of work
TASKS = 64  # tasks that chains or pairs are cut into, for any number of threads: a seed gives the same result
PILOT_DRAWS = 100  # accepted draws that tell a rejection sampler's rate well enough


class TableLaw(Protocol):
    """A law that kernels draw from by looking into a table."""

    def resolve(self, word: int, extra: Stream) -> int:
        """What a word that ties comes to."""


@dataclass(frozen=True)
class Referee:
    """Who settles what a kernel's words leave open.

    ``law(state)`` is the law whose word tied. ``answer(state, uniform)`` is what an acceptance, or another
    draw by inversion, comes to for a uniform number whose first digits are those that the kernel saw.
    """

    word_bits: int
    law: Callable[[State], TableLaw]
    answer: Callable[[State, LazyUniform], int]

    def draw(self, state: State, stream: Stream) -> None:
        """Settle a draw by a table."""
        state.answer = self.law(state).resolve(int(stream.words[stream.position]), stream.extra)
        stream.position += 1

    def accept(self, state: State, stream: Stream) -> None:
        """Settle an acceptance."""
        count = min(ACCEPT_BITS, self.word_bits)
        bits = int(stream.words[stream.position]) >> (WORD_BITS - count)
        state.answer = self.answer(state, LazyUniform(stream.extra, bits, count))
        stream.position += 1


def run(
    kernel: Callable[[Any, States, Any, Any], int],
    stream: Stream,
    tables: Any,
    task: Any,
    referee: Referee | None = None,
    states: States | None = None,
) -> State:
    """Run a kernel to its end, with as many words as it takes, and return its state.

    ``referee`` settles the ties of kernels that have any; ``states`` has the state to go on from.
    """
    announce(kernel)
    states = new_state() if states is None else states
    position = states["position"]
    stream.renew()
    if stream.position == len(stream.words):
        stream.more()
    while True:
        position[0] = stream.position
        code = kernel(stream.words, states, tables, task)
        stream.position = int(position[0])
        if code == DONE:
            return states[0]
        if code == MORE:
            stream.more()
        elif referee is None:
            raise AssertionError(f"{kernel} left a comparison open")
        elif code == TIE_DRAW:
            referee.draw(states[0], stream)
        else:
            referee.accept(states[0], stream)


_ANNOUNCED: set[object] = set()


def announce(kernel: Any) -> None:
    """Say on a terminal that a kernel is about to be compiled, if numba has not kept it from an earlier run."""
    if kernel in _ANNOUNCED:
        return
    _ANNOUNCED.add(kernel)
    kept = kernel._cache.cache_path if hasattr(kernel, "_cache") else None  # None too where nothing is kept
    warm = kept is not None and any(Path(kept).glob(f"*{kernel.py_func.__name__}*.nbi"))
    if not warm and sys.stderr is not None and sys.stderr.isatty():
        print("keepsum: compiling a sampler, a few seconds the first time", file=sys.stderr)


def in_parallel(
    work: Callable[[int, int, Stream], Any], ranges: Sequence[tuple[int, int]], rng: Rng, threads: int
) -> list[Any]:
    """Work through ranges of jobs, from the first to before the last of each, and return the results in order.

    Each range has a stream of its own that depends on its place alone: threads change nothing but time.
    """
    streams = [rng.stream() for _ in ranges]
    if threads == 1 or len(ranges) == 1:
        return [work(first, last, stream) for (first, last), stream in zip(ranges, streams, strict=True)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, *zip(*ranges, strict=True), streams))


def equal_ranges(count: int, step: int) -> list[tuple[int, int]]:
    """Cut so many jobs into ranges of ``step``.

    >>> equal_ranges(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(first, min(first + step, count)) for first in range(0, count, step)]


def cell_ranges(sizes: npt.NDArray[np.int64], draws: int, most: int = TASK_CELLS) -> list[tuple[int, int]]:
    """Cut jobs (draw by draw, part by part) into ranges of about ``most`` cells.

    >>> cell_ranges(np.array([3, 3, 3]), draws=2, most=6)
    [(0, 2), (2, 3), (3, 5), (5, 6)]
    >>> cell_ranges(np.array([2, 1]), draws=4, most=6)
    [(0, 4), (4, 8)]
    """
    count, width = len(sizes), int(sizes.sum())
    if width <= most:
        return equal_ranges(draws * count, max(1, most // max(width, 1)) * count)
    ends = np.cumsum(sizes)
    cuts = [0]
    while cuts[-1] < count:
        before = int(ends[cuts[-1]] - sizes[cuts[-1]])
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, before + most, side="right"))))
    return [(d * count + a, d * count + b) for d in range(draws) for a, b in pairwise(cuts)]

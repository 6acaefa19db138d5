"""Between Python and the kernels: feeding words, settling ties, and sharing work between threads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from keepsum.sampling.core.geometric import WORD_BITS, Geometric
from keepsum.sampling.core.kernels import ACCEPT_BITS, ANSWER, DONE, MORE, POSITION, STATE_SIZE, TIE_DRAW
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.core.tabulated import TabulatedLaw

State: TypeAlias = npt.NDArray[np.int64]

TASK_CELLS = 2**16  # about a millisecond of work
PILOT_DRAWS = 100  # accepted draws that tell a rejection sampler's rate well enough
UNLIMITED = 2**62


@dataclass(frozen=True)
class Referee:
    """Who settles what a kernel's words leave open.

    ``law(state)`` is the geometric law whose draw tied. ``answer(state, uniform)`` is what an acceptance, or another
    draw by inversion, comes to for a uniform number whose first digits are those that the kernel saw.
    """

    word_bits: int
    law: Callable[[State], Geometric | TabulatedLaw]
    answer: Callable[[State, LazyUniform], int]

    def draw(self, state: State, stream: Stream) -> None:
        """Settle a geometric draw."""
        law = self.law(state)
        words = stream.words[stream.position : stream.position + law.words_per_draw]
        state[ANSWER] = law.resolve(words, stream.extra)
        stream.position += law.words_per_draw

    def accept(self, state: State, stream: Stream) -> None:
        """Settle an acceptance."""
        count = min(ACCEPT_BITS, self.word_bits)
        bits = int(stream.words[stream.position]) >> (WORD_BITS - count)
        state[ANSWER] = self.answer(state, LazyUniform(stream.extra, bits, count))
        stream.position += 1


def run(
    kernel: Callable[..., int],
    stream: Stream,
    referee: Referee,
    arguments: Sequence[Any],
    start: Mapping[int, int] | None = None,
) -> State:
    """Run a kernel to its end and return its state; ``start`` sets places of the state beforehand."""
    announce(kernel)
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    state[ANSWER] = -1
    for place, value in (start or {}).items():
        state[place] = value
    stream.renew()
    while True:
        state[POSITION] = stream.position
        code = kernel(stream.words, state, *arguments)
        stream.position = int(state[POSITION])
        if code == DONE:
            return state
        if code == MORE:
            stream.more()
        elif code == TIE_DRAW:
            referee.draw(state, stream)
        else:
            referee.accept(state, stream)


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


def in_parallel(tasks: Sequence[Callable[[Stream], Any]], rng: Rng, threads: int) -> list[Any]:
    """Run tasks, each on a stream of its own that depends on its place alone: threads change nothing but time."""
    streams = [rng.stream() for _ in tasks]
    if threads == 1 or len(tasks) == 1:
        return [task(stream) for task, stream in zip(tasks, streams, strict=True)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda pair: pair[0](pair[1]), zip(tasks, streams, strict=True)))


def ranges(sizes: npt.NDArray[np.int64], draws: int, most: int = TASK_CELLS) -> list[tuple[int, int]]:
    """Cut jobs (draw by draw, part by part) into runs of about ``most`` cells.

    >>> ranges(np.array([3, 3, 3]), draws=2, most=6)
    [(0, 2), (2, 3), (3, 5), (5, 6)]
    >>> ranges(np.array([2, 1]), draws=4, most=6)
    [(0, 4), (4, 8)]
    """
    count, width = len(sizes), int(sizes.sum())
    if width <= most:
        step = max(1, most // max(width, 1)) * count
        return [(first, min(first + step, draws * count)) for first in range(0, draws * count, step)]
    cuts = [0]
    filled = 0
    for job, size in enumerate(sizes.tolist()):
        if filled and filled + size > most:
            cuts.append(job)
            filled = 0
        filled += size
    cuts.append(count)
    return [(d * count + a, d * count + b) for d in range(draws) for a, b in pairwise(cuts)]

"""Between Python and the kernels: feeding words, settling ties, and sharing work between threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from keepsum._progress import reporter
from keepsum.sampling.core.kernel import Kernel, Packed, pack
from keepsum.sampling.core.kernel_arguments import (
    ACCEPT_BITS,
    DONE,
    MORE,
    TIE_DRAW,
    WORD_BITS,
    State,
    States,
    new_state,
)
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream

TASK_CELLS = 2**16  # about a millisecond of work
TASKS = 64  # tasks that chains or pairs are cut into, for any number of threads: a seed gives the same result
_NO_WORDS = pack(np.empty(0, dtype=np.uint64))
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

    Whoever runs it often with the same ``tables`` may pack them once (``packing``).
    ``referee`` settles the ties of kernels that have any; ``states`` has the state to go on from.
    """
    states = new_state() if states is None else states
    call = _prepared(kernel, states, tables, task)
    position = states["position"]
    stream.renew()
    if stream.position == len(stream.words):
        stream.more()
    while True:
        position[0] = stream.position
        code = call(stream.words)
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


class _Last:
    """The tables that were packed last: the tasks of a draw share them."""

    packed: Packed | None = None


def _prepared(kernel: Callable[..., int], states: States, tables: Any, task: Any) -> Callable[[Any], int]:
    """A kernel as a function of its words alone; what stays the same from call to call is packed once."""
    if not isinstance(kernel, Kernel):
        return lambda words: kernel(words, states, tables, task)
    last = _Last.packed
    if isinstance(tables, Packed):
        packed_tables = tables
    elif last is not None and last.value is tables:
        packed_tables = last
    else:
        packed_tables = _Last.packed = pack(tables)
    packed_states, packed_task, packed_words = pack(states), pack(task), _NO_WORDS

    def call(words: Any) -> int:
        nonlocal packed_words
        if packed_words.value is not words:
            packed_words = pack(words)
        return int(kernel.run(packed_words, packed_states, packed_tables, packed_task))

    return call


def in_parallel(
    work: Callable[[int, int, Stream], Any], ranges: Sequence[tuple[int, int]], rng: Rng, threads: int
) -> list[Any]:
    """Work through ranges of jobs, from the first to before the last of each, and return the results in order.

    Each range has a stream of its own that depends on its place alone: threads change nothing but time.
    The calling thread is one of them, for a new one takes a while to be given a core of its own.
    """
    results: list[Any] = [None] * len(ranges)
    report, finished = reporter(), count(1)  # whoever watches is looked up in the calling thread
    queue = deque((place, cut, rng.stream()) for place, cut in enumerate(ranges))

    def work_off() -> None:
        done: Stream | None = None
        try:
            while (job := _next(queue)) is not None:
                place, (first, last), stream = job
                if done is not None:
                    stream.follow(done)
                done = stream
                results[place] = work(first, last, stream)
                if report is not None:
                    report(next(finished) / len(ranges))
        except BaseException:
            queue.clear()  # no thread begins anything more
            raise

    others = min(threads, len(ranges)) - 1
    if others < 1:
        work_off()
        return results
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(others) as pool:
        try:
            helpers = [pool.submit(work_off) for _ in range(others)]
            work_off()
            for helper in helpers:
                helper.result()
        except BaseException:
            queue.clear()  # also where a thread could not be started
            raise
    return results


def _next(queue: deque[Any]) -> Any:
    """The next in a queue that threads share, None if there is none."""
    with suppress(IndexError):
        return queue.popleft()
    return None


def equal_ranges(count: int, step: int) -> list[tuple[int, int]]:
    """Cut so many jobs into ranges of at most ``step``, as even as they come.

    >>> equal_ranges(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    >>> equal_ranges(9, 8)
    [(0, 5), (5, 9)]
    """
    pieces = max(1, -(-count // step))
    step = max(1, -(-count // pieces))
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

"""Meeting times of any kernel: Algorithm 3 over the one interface that kernels have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from keepsum._arguments import check_whole
from keepsum._text import type_of
from keepsum.convergence.times import MeetingTimes
from keepsum.errors import InputError
from keepsum.research.mcmc.draws import Draws
from keepsum.research.mcmc.running import progress, spread
from keepsum.sampling.core.rng import Rng, Stream

MAX_STEPS = 10**6
STEPS = ("start", "step", "coupled_step")  # what a kernel must have


class Kernel(Protocol):
    """A Markov chain and a coupling of two copies of it.

    ``rng`` is a :class:`Draws`. A state is a number, an array, a tuple of such, or anything that ``==`` compares; a
    step must return new states, not change the old ones. ``info`` is up to the kernel. In ``coupled_step`` each chain
    by itself must move as ``step`` does, and chains that are equal must stay equal; nothing here can check that, a
    test can.
    """

    def start(self, rng: Draws) -> Any:
        """A state from the initial law."""
        ...

    def step(self, rng: Draws, state: Any) -> tuple[Any, Any]:
        """The next state, and what happened."""
        ...

    def coupled_step(self, rng: Draws, pair: tuple[Any, Any]) -> tuple[tuple[Any, Any], Any]:
        """The next states of both chains, and what happened."""
        ...


@dataclass(frozen=True)
class ManyAtOnce:
    """A kernel over arrays of states, one pair a row, for :func:`meeting_times_of`: three functions.

    ``start(rng, count)`` returns ``count`` rows; ``step(rng, states)`` and ``coupled_step(rng, (x, y))`` take and
    return as many rows as they are given, each moved independently of the others.
    """

    start: Callable[[Draws, int], Any]
    step: Callable[[Draws, Any], tuple[Any, Any]]
    coupled_step: Callable[[Draws, tuple[Any, Any]], tuple[tuple[Any, Any], Any]]


def meeting_times_of(
    kernel: Kernel | ManyAtOnce,
    *,
    lag: int,
    pairs: int = 200,
    max_steps: int = MAX_STEPS,
    rng: Rng | None = None,
    threads: int | None = None,
    show_progress: bool | None = None,
) -> MeetingTimes:
    """Couple a kernel of your own: pairs of lagged chains until they meet (Algorithm 3).

    Parameters
    ----------
    kernel
        An object with ``start``, ``step`` and ``coupled_step``, see :class:`Kernel`; or a :class:`ManyAtOnce`, which
        moves many pairs by one call.
    lag, pairs, max_steps, rng, threads, show_progress
        As in :func:`meeting_times`. Kernels in pure Python gain nothing from threads.

    Guarantee
    ---------
    Estimated: the first step t > lag with X_t = Y_(t - lag), for the kernel as it is.
    ``tests/research/mcmc/test_pairs.py``.

    Examples
    --------
    A fair coin, tossed anew with chance 1/4 at each step, in both chains alike:

    >>> import keepsum as ks
    >>> class Coin:
    ...     def start(self, rng):
    ...         return int(rng.random() < 0.5)
    ...     def step(self, rng, state):
    ...         new = rng.random() < 0.25
    ...         return (int(rng.random() < 0.5) if new else state), new
    ...     def coupled_step(self, rng, pair):
    ...         new = rng.random() < 0.25
    ...         return ((int(rng.random() < 0.5),) * 2 if new else pair), new
    >>> times = ks.mcmc.meeting_times_of(Coin(), lag=5, pairs=1000, rng=ks.rng(seed=1))
    >>> ks.mcmc.tv_upper_bound(times, t=4).estimate < 0.5 * 0.75**4 / (1 - 0.75**5) + 0.1
    True
    """
    if not isinstance(kernel, ManyAtOnce) and not all(callable(getattr(kernel, name, None)) for name in STEPS):
        raise InputError(f"A kernel must have start, step and coupled_step, got {type_of(kernel)}.")
    lag, pairs = check_whole(lag, "The lag", 1), check_whole(pairs, "The number of pairs", 1)
    last = checked_last(max_steps, lag)

    def work(jobs: range, stream: Stream) -> list[tuple[int, bool]]:
        rng = Draws(stream)
        if isinstance(kernel, ManyAtOnce):
            return _meet_many(kernel, rng, len(jobs), lag, last)
        return [_meet(kernel, rng, lag, last) for _ in jobs]

    with progress("coupled pairs", pairs, show_progress) as advanced:
        found = spread(work, pairs, rng, threads, advanced)
    return as_meeting_times(found, lag, last)


def _meet(kernel: Kernel, rng: Draws, lag: int, last: int) -> tuple[int, bool]:
    """One pair: the first chain walks alone for steps 1 to lag, then both move together until they meet."""
    x = kernel.start(rng)
    for _ in range(lag):
        x, _ = kernel.step(rng, x)
    pair = x, kernel.start(rng)
    for step in range(lag + 1, last + 1):
        pair, _ = kernel.coupled_step(rng, pair)
        if same(*pair):
            return step, True
    return last, False


def same(x: Any, y: Any) -> bool:
    """Whether two states are equal: tuples part by part, arrays entry by entry.

    >>> same((1, np.zeros(3)), (1, np.zeros(3))), same((1, np.zeros(3)), (1, np.ones(3)))
    (True, False)
    """
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(same(a, b) for a, b in zip(x, y, strict=True))
    return bool(np.all(x == y))


def _meet_many(kernel: ManyAtOnce, rng: Draws, count: int, lag: int, last: int) -> list[tuple[int, bool]]:
    """The same for many pairs; those that have met leave the arrays."""
    x = kernel.start(rng, count)
    for _ in range(lag):
        x, _ = kernel.step(rng, x)
    y = kernel.start(rng, count)
    times, alive = np.full(count, last), np.arange(count)
    for step in range(lag + 1, last + 1):
        (x, y), _ = kernel.coupled_step(rng, (x, y))
        apart = (x != y).reshape(len(x), -1).any(axis=1)
        times[alive[~apart]] = step
        x, y, alive = x[apart], y[apart], alive[apart]
        if not alive.size:
            break
    met = np.ones(count, dtype=bool)
    met[alive] = False
    return list(zip(times.tolist(), met.tolist(), strict=True))


def checked_last(max_steps: int, lag: int) -> int:
    """The last step, which must leave room for coupled ones."""
    last = check_whole(max_steps, "max_steps", 1)
    if last <= lag:
        raise InputError(f"max_steps must be larger than the lag, {lag:,}, got {last:,}. Chains meet after the lag.")
    return last


def as_meeting_times(found: list[tuple[int, bool]], lag: int, last: int) -> MeetingTimes:
    """Steps and whether the pairs met there, as meeting times."""
    times, met = (np.array(column) for column in zip(*found, strict=True))
    return MeetingTimes(times, lag, ~met, last)

"""Algorithms 2 and 3: two chains with a lag, coupled until they meet, of our own or of any kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from keepsum._arguments import check_whole
from keepsum._saying import the
from keepsum._text import type_of
from keepsum.convergence.times import MeetingTimes
from keepsum.errors import InputError
from keepsum.lattice import Lattice
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.research.mcmc.kernel_arguments import WALK_STATE, Pair, ProblemTables
from keepsum.research.mcmc.metropolis import ChainProblem, advance, as_starts, begin, pose, progress, spread
from keepsum.sampling.core.driving import run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import Words
from keepsum.sampling.core.rng import Rng, Stream

# Floating-point draws for kernels of users, from the one door to randomness.


MOST_NUMBERS = 2**32  # in one call


class Draws:
    """Uniform and normal numbers from a stream of words, under the names that numpy's ``Generator`` has.

    What kernels get as ``rng``. Floats: 53 bits a draw, and normal numbers by inversion.

    Examples
    --------
    >>> import keepsum as ks
    >>> rng = ks.mcmc.Draws(ks.rng(seed=1).stream())
    >>> 0 < rng.random() < 1, rng.normal(size=3).shape
    (True, (3,))
    """

    def __init__(self, stream: Stream) -> None:
        if not isinstance(stream, Stream):
            raise InputError(
                f"Draws must come from a stream, got {type_of(stream)}. Use {the.call('ks.rng().stream()')}."
            )
        self.stream = stream

    def random(self, size: int | tuple[int, ...] | None = None) -> Any:
        """Uniform numbers strictly between 0 and 1."""
        if size is None:
            return ((self.stream.word() >> 11) + 0.5) * 2.0**-53
        sizes = size if isinstance(size, tuple) else (size,)
        shape = tuple(check_whole(length, "The size", 0) for length in sizes)
        check_whole(math.prod(shape), "The size", 0, MOST_NUMBERS)
        words = self.stream.take(math.prod(shape))
        return (((words >> np.uint64(11)) + 0.5) * 2.0**-53).reshape(shape)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: int | tuple[int, ...] | None = None) -> Any:
        """Normal numbers."""
        return loc + scale * ndtri(self.random(size))

    def exponential(self, scale: Any = 1.0, size: int | tuple[int, ...] | None = None) -> Any:
        """Exponential numbers."""
        return -scale * np.log(self.random(size))


# Meeting times of any kernel: Algorithm 3 over the one interface that kernels have.


MAX_STEPS = 10**6
STEPS = ("start", "step", "coupled_step")  # what a kernel must have


class CoupledKernel(Protocol):
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
    kernel: CoupledKernel | ManyAtOnce,
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


def _meet(kernel: CoupledKernel, rng: Draws, lag: int, last: int) -> tuple[int, bool]:
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


# Algorithms 2 and 3: two chains with a lag, coupled until they meet, as compiled loops.


couple_walks = Kernel("couple_walks", Words, WALK_STATE, ProblemTables, Pair)


def meeting_times(
    lattice: Lattice,
    mechanism: Request | Mechanism,
    a: float | Sequence[float],
    *,
    lag: int,
    pairs: int = 200,
    max_steps: int = MAX_STEPS,
    start: Any = None,
    basis: Any = None,
    rng: Rng | None = None,
    threads: int | None = None,
    show_progress: bool | None = None,
) -> MeetingTimes:
    """Run Algorithms 2 and 3 of the paper: pairs of lagged chains of Algorithm 1, coupled until they meet.

    Each coordinate of the two pre-jumps is coupled maximally, and one uniform number accepts or refuses for both.

    Parameters
    ----------
    lattice, mechanism, a, basis
        As in :func:`metropolis`.
    lag
        How many steps the first chain is ahead; :func:`choose_lag` finds a good one.
    pairs
        How many independent pairs.
    max_steps
        The last step of the first chain. A pair that has not met by then comes back as censored.
    start
        A vector of the lattice at which all chains start; by default each starts from the law g.
    rng, threads
        As in :func:`metropolis`: a seed gives the same times for any number of threads.
    show_progress
        Whether to show a bar; by default only on a terminal (and only if ``rich`` is installed).

    Returns
    -------
    MeetingTimes
        For :func:`tv_upper_bound`.

    Guarantee
    ---------
    Estimated: tau is drawn from the coupling that is described here, whose chains each have the law of
    :func:`metropolis`; densities are evaluated in float64. ``tests/research/mcmc/test_coupling.py``.

    Notes
    -----
    The paper's errata are corrected: the proposals are set once before the loop over coordinates, the second chain's
    acceptance moves w^(l-L), and the first chain walks alone for steps 1 to L.

    References
    ----------
    Integer Subspace Differential Privacy, ``alg:coupling-gibbs`` and ``alg:llag-alt``.
    Biswas, Jacob and Vanetti (2019), Estimating convergence of Markov chains with L-lag couplings.

    Examples
    --------
    >>> import keepsum as ks
    >>> times = ks.mcmc.meeting_times(
    ...     ks.Lattice([[1, 1, 1]]), ks.Laplace.per_unit(epsilon=1), 0.4, lag=50, pairs=500, rng=ks.rng(seed=1)
    ... )
    >>> times
    MeetingTimes(500 pairs, lag 50, median tau - lag 7)
    >>> ks.mcmc.tv_upper_bound(times, t=20).estimate
    0.16
    """
    lag, pairs = check_whole(lag, "The lag", 1), check_whole(pairs, "The number of pairs", 1)
    max_steps = checked_last(max_steps, lag)
    problem = pose(lattice, mechanism, a, basis)
    starts = as_starts(start, lattice, 1)

    def work(jobs: range, stream: Stream) -> list[tuple[int, bool]]:
        return [meet(problem, stream, lag, max_steps, starts) for _ in jobs]

    with progress("coupled pairs", pairs, show_progress) as advanced:
        found = spread(work, pairs, rng, threads, advanced)
    return as_meeting_times(found, lag, max_steps)


def meet(problem: ChainProblem, stream: Stream, lag: int, last: int, starts: Any) -> tuple[int, bool]:
    """One pair by Algorithm 3: the step at which it met, or the last one, and whether it met."""
    x, y = (np.zeros(problem.width, dtype=np.int64) if starts is None else starts[0].copy() for _ in range(2))
    v, w = np.zeros((2, problem.dimension), dtype=np.int64)
    states = begin(problem, x, starts is None, stream, v)
    second = begin(problem, y, starts is None, stream, w)
    advance(problem, stream, states, x, lag, v)
    states["second_norm"] = second["norm"]
    x_moves, y_moves = np.zeros((2, problem.dimension), dtype=np.int64)
    state = run(couple_walks, stream, problem.tables, Pair(x, y, w - v, x_moves, y_moves, last), states=states)
    return int(state.step), bool(state.met)

"""Algorithms 2 and 3: two chains with a lag, coupled until they meet, as compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keepsum._arguments import check_whole
from keepsum.convergence.times import MeetingTimes
from keepsum.lattice import Lattice
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.research.mcmc.kernel_arguments import WALK_STATE, Pair, ProblemTables
from keepsum.research.mcmc.metropolis import advance, begin
from keepsum.research.mcmc.pairs import MAX_STEPS, as_meeting_times, checked_last
from keepsum.research.mcmc.problem import Problem, as_starts, pose
from keepsum.research.mcmc.running import progress, spread
from keepsum.sampling.core.driving import run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import Words
from keepsum.sampling.core.rng import Rng, Stream

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


def meet(problem: Problem, stream: Stream, lag: int, last: int, starts: Any) -> tuple[int, bool]:
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

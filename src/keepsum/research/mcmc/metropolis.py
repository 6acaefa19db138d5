"""Algorithm 1: a Metropolis chain on the lattice with double geometric pre-jumps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keepsum._arguments import check_whole
from keepsum._arrays import Floats, IntArray
from keepsum.errors import InputError
from keepsum.lattice import Lattice
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.research.mcmc.kernel_arguments import WALK_STATE, ProblemTables, Start, Walk
from keepsum.research.mcmc.problem import Problem, as_starts, pose
from keepsum.research.mcmc.running import spread
from keepsum.sampling.core.driving import run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import States, Words, new_state
from keepsum.sampling.core.rng import Rng, Stream

start_from_g = Kernel("start_from_g", Words, WALK_STATE, ProblemTables, Start)
walk = Kernel("walk", Words, WALK_STATE, ProblemTables, Walk)


@dataclass(frozen=True, eq=False)
class ChainInfo:
    """What the chains did, apart from where they are.

    Attributes
    ----------
    steps, burn_in, thin
        As asked for.
    accepted
        Accepted steps after the burn-in, one figure per chain.
    cell_updates
        How many entries of the basis were added to cells, the burn-in included: what the steps cost.
    """

    steps: int
    burn_in: int
    thin: int
    accepted: IntArray
    cell_updates: IntArray

    @property
    def acceptance_rate(self) -> Floats:
        """The acceptance rate of each chain."""
        return np.asarray(self.accepted / self.steps, dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Chains:
    """Draws of several chains, where they ended, and what they did.

    Attributes
    ----------
    draws
        int64, (chains, kept draws, cells): every ``thin``-th state after the burn-in.
    state
        int64, (chains, cells): the last states. Give them as ``start`` to go on.
    info
        Acceptance and cost.
    """

    draws: IntArray
    state: IntArray
    info: ChainInfo

    def __repr__(self) -> str:
        chains, kept, _ = self.draws.shape
        rate = self.info.acceptance_rate.mean()
        return f"Chains({chains} of {self.info.steps:,} steps, {kept:,} draws each, {rate:.1%} accepted)"


def metropolis(
    lattice: Lattice,
    mechanism: Request | Mechanism,
    steps: int,
    a: float | Sequence[float],
    *,
    start: Any = None,
    burn_in: int = 0,
    thin: int = 1,
    chains: int = 1,
    basis: Any = None,
    rng: Rng | None = None,
    threads: int | None = None,
) -> Chains:
    """Run Algorithm 1 of the paper: propose z + C v with a random pre-jump v, accept with min(1, q(z*) / q(z)).

    Parameters
    ----------
    lattice
        Where the noise lives.
    mechanism
        The target q: ``Laplace`` in either norm, or ``Gaussian``.
    steps
        Steps of each chain after its burn-in; ``steps // thin`` states are kept.
    a
        The parameter of the double geometric pre-jumps, P(v) = (1 - a)/(1 + a) a^|v|: one, or one per coordinate.
    start
        Where to start: a vector of the lattice, or one per chain; by default the law g, one pre-jump from 0.
    burn_in, thin, chains
        Steps that are thrown away first; keep every how manyeth state; how many independent chains.
    basis
        Columns C that generate the lattice; by default the last d - rank columns of V of the Smith form. Whether they
        generate all of it is checked exactly up to dimension 500; beyond, it is the caller's word.
    rng
        The source of randomness; ``ks.rng(seed=...)`` repeats, for any number of threads.
    threads
        How many threads to use; by default as many as there are cores.

    Returns
    -------
    Chains
        ``.draws``, ``.state`` and ``.info`` with the acceptance rate.

    Guarantee
    ---------
    For research and comparison; not an exact sampler. The law of a state tends to q(z) as the steps grow, and
    :func:`meeting_times` with :func:`tv_upper_bound` estimates how near it is. q is evaluated in float64 (for l1 the
    log ratio is epsilon times a whole number, rounded once). ``tests/research/mcmc/test_metropolis.py``.

    Notes
    -----
    The basis is kept in compressed columns, and the norm is updated over the cells that a proposal touches. A step
    costs a table look-up a coordinate and the nonzeros of the columns whose pre-jump is not 0.

    References
    ----------
    Integer Subspace Differential Privacy, ``alg:metropolis-gibbs``.

    Examples
    --------
    >>> import numpy as np
    >>> import keepsum as ks
    >>> lattice = ks.Lattice([[1, 1, 1, 1]])
    >>> runs = ks.mcmc.metropolis(
    ...     lattice, ks.Laplace.per_unit(0.5), 10_000, np.exp(-1), burn_in=1000, thin=10, chains=4, rng=ks.rng(seed=1)
    ... )
    >>> runs
    Chains(4 of 10,000 steps, 1,000 draws each, 52.7% accepted)
    >>> runs.draws.shape, bool(lattice.contains(runs.draws.reshape(-1, 4)).all())
    ((4, 1000, 4), True)
    """
    steps, burn_in = check_whole(steps, "The number of steps", 1), check_whole(burn_in, "The burn-in", 0)
    thin, chains = check_whole(thin, "Thinning", 1), check_whole(chains, "The number of chains", 1)
    if thin > steps:
        raise InputError(f"Thinning must be at most the number of steps, {steps}, got {thin}. Nothing would be kept.")
    problem = pose(lattice, mechanism, a, basis)
    starts = as_starts(start, lattice, chains)
    draws = np.empty((chains, steps // thin, lattice.width), dtype=np.int64)
    states = np.zeros((chains, lattice.width), dtype=np.int64) if starts is None else starts

    def work(jobs: range, stream: Stream) -> list[States]:
        ends = []
        for i in jobs:
            walking = begin(problem, states[i], starts is None, stream)
            advance(problem, stream, walking, states[i], steps + burn_in, None, draws[i], burn_in, thin)
            ends.append(walking)
        return ends

    ends = np.concatenate(spread(work, chains, rng, threads))
    return Chains(draws, states, ChainInfo(steps, burn_in, thin, ends["accepted"], ends["updates"]))


def begin(problem: Problem, z: IntArray, from_g: bool, stream: Stream, coordinates: IntArray | None = None) -> States:
    """The state of a chain that starts at z, or one pre-jump from it; z and its coordinates are changed in place."""
    states = new_state(WALK_STATE, norm=problem.norm(z))
    if from_g:
        moved = np.zeros(problem.dimension, dtype=np.int64) if coordinates is None else coordinates
        run(start_from_g, stream, problem.tables, Start(z, moved), states=states)
    return states


def advance(
    problem: Problem,
    stream: Stream,
    states: States,
    z: IntArray,
    last: int,
    coordinates: IntArray | None = None,
    out: IntArray | None = None,
    burn_in: int = 0,
    thin: int = 1,
) -> None:
    """Walk to step ``last``; z, its coordinates and the state are changed in place."""
    moved, moves = np.zeros((2, problem.dimension), dtype=np.int64)
    task = Walk(
        z=z,
        out=np.empty((0, problem.width), dtype=np.int64) if out is None else out,
        burn_in=burn_in,
        thin=thin,
        last=last,
        coordinates=np.zeros(0, dtype=np.int64) if coordinates is None else coordinates,
        moved=moved,
        moves=moves,
        before=np.empty(problem.width, dtype=np.int64),
        whole=problem.touches_most,
    )
    run(walk, stream, problem.tables, task, states=states)

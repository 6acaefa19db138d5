"""Algorithm 1: a Metropolis chain on the lattice with double geometric pre-jumps, and what it needs to run."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat
from scipy import sparse

from keepsum._arguments import as_array, check_flag, check_whole
from keepsum._arrays import Floats, IntArray
from keepsum._saying import arg, the
from keepsum._text import given, type_of
from keepsum._threads import threads_of
from keepsum.errors import InputError
from keepsum.lattice import Lattice
from keepsum.lattice.elimination import LLL_LIMIT
from keepsum.lattice.matrix import as_matrix
from keepsum.privacy import as_mechanism
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.research.mcmc.kernel_arguments import (
    GAUSSIAN,
    GUIDE_BITS,
    L1,
    L2,
    OPEN,
    WALK_STATE,
    Columns,
    PreJumps,
    ProblemTables,
    Start,
    Target,
    Walk,
)
from keepsum.sampling.core.driving import TASKS, equal_ranges, in_parallel, run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import States, Words, new_state
from keepsum.sampling.core.rng import Rng, Stream, checked_rng

# Jobs shared between threads, and their progress on a terminal.


Result = TypeVar("Result")


def spread(
    work: Callable[[range, Stream], Sequence[Result]],
    count: int,
    rng: Rng | None,
    threads: int | None,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Result]:
    """Do ``count`` jobs, each run of them on a stream of its own; the results in the order of the jobs."""
    source = checked_rng(rng)
    workers = threads_of(threads)

    def run(first: int, last: int, stream: Stream) -> Sequence[Result]:
        results = work(range(first, last), stream)
        advance(last - first)
        return results

    parts = in_parallel(run, equal_ranges(count, -(-count // TASKS)), source, workers)
    return [result for part in parts for result in part]


@contextmanager
def progress(label: str, total: int, show: bool | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal that has rich, nothing when piped; yields what to call with the number of jobs done."""
    if show is not None:
        show = check_flag(show, f"{arg.show_progress}")
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ModuleNotFoundError:  # an extra that the library does without
        yield lambda _: None
        return
    lock = threading.Lock()
    with Progress(console=Console(stderr=True, force_terminal=show), transient=True) as bar:
        task = bar.add_task(label, total=total)

        def advance(count: int) -> None:
            with lock:
                bar.advance(task, count)

        yield advance


# What the chains need: a basis in compressed columns, the law of the pre-jumps, and the target.


LARGEST_ENTRY = 2**20  # of a basis, and of a start: squares and their sums then stay far below 2^63
TABLED = 1024  # acceptance chances that are looked up


@dataclass(frozen=True, eq=False)
class ChainProblem:
    """A lattice by a basis, a double geometric law for each coordinate, and the target.

    Attributes
    ----------
    columns, jumps, target
        As the kernels read them.
    a
        The parameter of each coordinate's pre-jump.
    width
        The number of cells.
    """

    columns: Columns
    jumps: PreJumps
    target: Target
    a: Floats
    width: int

    @property
    def tables(self) -> ProblemTables:
        """What the kernels read."""
        return ProblemTables(self.columns, self.jumps, self.target)

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return len(self.columns.starts) - 1

    @property
    def updates_per_step(self) -> float:
        """How many entries of the basis a proposal adds to cells, on average: a coordinate is 0 by (1 - a)/(1 + a)."""
        return float((2 * self.a / (1 + self.a)) @ np.diff(self.columns.starts))

    @property
    def touches_most(self) -> bool:
        """Whether summing all cells up anew is no dearer than following those that a proposal touches."""
        return self.updates_per_step >= self.width / 4

    def norm(self, z: IntArray) -> int:
        """|z| in l1, or its square in l2: a whole number either way."""
        return int(np.abs(z).sum()) if self.target.kind == L1 else int((z * z).sum())

    def log_density(self, z: IntArray) -> float:
        """The logarithm of q(z), up to a constant."""
        norm = float(self.norm(z))
        return -self.target.rate * (math.sqrt(norm) if self.target.kind == L2 else norm)


def pose(
    lattice: Lattice, mechanism: Request | Mechanism, a: float | Sequence[float], basis: Any = None
) -> ChainProblem:
    """Check what the user gave and bring it into the form that kernels read."""
    if not isinstance(lattice, Lattice):
        raise InputError(
            f"The lattice must be a {the.call('ks.Lattice')}, got {type_of(lattice)}. Use {the.call('ks.Lattice(A)')}."
        )
    if lattice.dimension == 0:
        raise InputError("The lattice must have a dimension of at least 1, got 0. Every cell is pinned: keep less.")
    columns = _columns(lattice.sparse_basis if basis is None else _checked(lattice, basis))
    parameters = _parameters(a, lattice.dimension)
    return ChainProblem(columns, _pre_jumps(parameters), _target(mechanism), parameters, lattice.width)


def _columns(basis: sparse.csc_array) -> Columns:
    if np.abs(basis.data).max() > LARGEST_ENTRY:
        raise InputError(f"The entries of the basis must be at most {LARGEST_ENTRY:,}, got larger ones.")
    parts = (basis.indptr, basis.indices, basis.data)
    return Columns(*(np.ascontiguousarray(part, dtype=np.int64) for part in parts))


def _checked(lattice: Lattice, basis: Any) -> sparse.csc_array:
    """The user's basis: in the lattice, and generating all of it (decided exactly up to dimension 500)."""
    shape = (lattice.width, lattice.dimension)
    matrix = sparse.csc_array(as_matrix(basis, "The basis"))
    if matrix.shape != shape:
        raise InputError(f"The basis must be {shape[0]} x {shape[1]}, one vector a column, got shape {matrix.shape}.")
    if not np.all(lattice.contains(matrix.toarray().T)):
        raise InputError("The basis must lie in the lattice, got a column that changes a kept total.")
    if shape[1] <= LLL_LIMIT:
        gram = fmpz_mat((matrix.T @ matrix).toarray().tolist())
        if int(gram.det()) != lattice.gram_determinant:
            raise InputError(
                f"The basis must generate the whole lattice, this one does not. Use {the.call('lattice.basis')}."
            )
    matrix.eliminate_zeros()
    return matrix


def _parameters(a: float | Sequence[float], dimension: int) -> Floats:
    array = as_array(a)
    if array is None or array.dtype.kind not in "iuf":
        raise InputError(f"a must be a number between 0 and 1, or one per coordinate, got {given(a)}.")
    if array.ndim > 1 or array.size not in (1, dimension):
        raise InputError(f"a must be one number or {dimension}, one per coordinate, got shape {array.shape}.")
    if not np.all((array > 0) & (array < 1)):
        raise InputError(f"a must lie strictly between 0 and 1, got {given(a)}. The paper takes exp(-1) to exp(-2.5).")
    return np.array(np.broadcast_to(array.astype(np.float64).reshape(-1), dimension))


def _pre_jumps(parameters: Floats) -> PreJumps:
    """Tables for the different parameters; a cell of a table is decided where its two ends have the same magnitude."""
    different, law = np.unique(parameters, return_inverse=True)
    log_a, half = np.log(different), (1 + different) / 2
    ends = np.arange(1, 2**GUIDE_BITS + 1) / 2**GUIDE_BITS
    at_ends = np.floor(np.log(ends * half[:, None]) / log_a[:, None])
    same = at_ends[:, 1:] == at_ends[:, :-1]
    quick = np.full((len(different), 2**GUIDE_BITS, 2), OPEN, dtype=np.int16)
    for sign, bit in ((1, 0), (-1, 1)):
        quick[:, 1:, bit][same] = sign * at_ends[:, 1:][same]
    return PreJumps(law.astype(np.int64), quick.reshape(len(different), -1), log_a, half)


def _target(mechanism: Request | Mechanism) -> Target:
    """The law of a mechanism, as the loops read it; one that depends on a plan is given as ``plan.mechanism``."""
    known = as_mechanism(mechanism)
    scale = known.scale
    laws = {
        "laplace-l1": (L1, 1 / scale),
        "laplace-l2": (L2, 1 / scale),
        "gaussian": (GAUSSIAN, 1 / (2 * scale**2)),
    }
    if known.kind not in laws:
        raise InputError(f"The paper's chain is for Laplace and Gaussian noise, got {type_of(known)}.")
    kind, rate = laws[known.kind]
    return Target(kind, float(rate), np.exp(-float(rate) * np.arange(TABLED)))


def as_starts(start: Any, lattice: Lattice, rows: int) -> npt.NDArray[np.int64] | None:
    """Where chains start, one row each, or None for the law g: one vector of the lattice, or one for each chain."""
    if start is None:
        return None
    array = as_array(start)
    shapes = ((lattice.width,), (rows, lattice.width))
    if array is None or array.shape not in shapes or array.dtype.kind not in "iu":
        kind = "rows of several lengths" if array is None else f"{array.dtype} of shape {array.shape}"
        raise InputError(f"The start must be whole numbers of shape {shapes[0]} or {shapes[1]}, got {kind}.")
    if array.size and np.abs(array).max() > LARGEST_ENTRY:
        raise InputError(f"The entries of the start must be at most {LARGEST_ENTRY:,}, got larger ones.")
    if not np.all(lattice.contains(array)):
        raise InputError("The start must lie in the lattice, got a vector that changes a kept total.")
    return np.array(np.broadcast_to(array, (rows, lattice.width)), dtype=np.int64)


# Algorithm 1: a Metropolis chain on the lattice with double geometric pre-jumps.


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


def begin(
    problem: ChainProblem, z: IntArray, from_g: bool, stream: Stream, coordinates: IntArray | None = None
) -> States:
    """The state of a chain that starts at z, or one pre-jump from it; z and its coordinates are changed in place."""
    states = new_state(WALK_STATE, norm=problem.norm(z))
    if from_g:
        moved = np.zeros(problem.dimension, dtype=np.int64) if coordinates is None else coordinates
        run(start_from_g, stream, problem.tables, Start(z, moved), states=states)
    return states


def advance(
    problem: ChainProblem,
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

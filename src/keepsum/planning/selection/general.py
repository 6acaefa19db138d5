"""The general samplers, for blocks that no exact one covers: rejection from a mixture, else a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from keepsum.lattice.matrix import Row
from keepsum.lattice.structure import System
from keepsum.lattice.tables import Grid, table_matrix
from keepsum.planning.selection.l1 import BUDGET, Choice, Folded, Sampler, fold_signs, folded_order, share
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.chains import Chain, HeatBathChain, MixtureChain, MixtureRejection
from keepsum.sampling.general.heat_bath import HeatBath, gaussian_logs, laplace_logs, short_moves, table_moves
from keepsum.sampling.general.mixture import Mixture, OneWidth, Proposals, Tuned, tune
from keepsum.sampling.general.mixture_kernels import FLOOR
from keepsum.sampling.general.scales import LONGEST_LAW, log_ratio_error, sum_reach
from keepsum.sampling.general.slabs import Slabs, lattice_slab, table_slabs
from keepsum.sampling.general.weights import GeometricTail, Renewal, allowing, thinned
from keepsum.tables.axes import IntArray

Floats = npt.NDArray[np.float64]

# Limits of a block: totals whose leverages are worked out, coordinates of a dense factor, and its multiplications.
TOTALS, COORDINATES, MULTIPLICATIONS = 3000, 1500, 10**8
BOUNDED = 600  # dimensions up to which the bound of the weights is worked out: it is out of reach far below
REJECTION_TAUS = (0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)
PILOT = 4 * 10**7  # what a pilot may cost, in cells drawn freely: about a second, and for large blocks
LONG_PILOT = 3 * 10**8  # some seconds
SLOWEST = 2 * 10**10  # a draw that would take minutes is no sampler
FAR = 1e-9  # the distance that the number of steps is extrapolated to
NEAR = 0.05  # and the distance of the first candidate, by which proposals are thinned
LEFT = 0.005  # the share of pairs which do not meet at once that have not met within a lag either
ENOUGH = 20_000  # proposals that a pilot should see
NARROW, SELDOM = 1, 0.3  # from this epsilon on heat-bath moves are tried where mixture proposals are accepted seldom
PAIRS, FEW_PAIRS = 60, 16  # coupled in a pilot of heat-bath moves, at most and at least
MOST_SWEEPS = 2000  # after which such a pair is given up


@dataclass(frozen=True)
class Problem:
    """Blocks of one form: their totals, the sizes of their regions, and how many there are."""

    system: System
    sizes: IntArray
    count: int
    epsilon: Fraction


def choose_general(system: System, sizes: IntArray, cells: list[IntArray], epsilon: Fraction, why: str) -> Choice:
    """Blocks of one form under l1 Laplace noise; ``why`` says what keeps the exact samplers from them."""
    if system.grid is not None and sizes.max() == 1 and 2 in system.grid.shape:
        return _folded(system.grid, cells, epsilon, why)
    own = np.concatenate(cells)
    return _choose(Problem(system, sizes, len(cells), epsilon), own, why, lambda sampler: sampler)


def _folded(grid: Grid, cells: list[IntArray], epsilon: Fraction, why: str) -> Choice:
    """Along axes of two categories the noise just changes sign: the rest of the table has the larger rate."""
    core = tuple(sorted((n for n in grid.shape if n > 2), reverse=True))
    pairs = len(grid.shape) - len(core)
    rest = Grid(np.arange(int(np.prod(core)), dtype=np.int64).reshape(core))
    system = System(table_matrix(core), rest.column.size - rest.dimension, rest)
    places = folded_order(grid)
    own = np.concatenate([block[places] for block in cells])
    count = len(cells)
    problem = Problem(system, np.ones(rest.column.size, dtype=np.int64), count, epsilon * 2**pairs)
    return _choose(problem, own, why, lambda sampler: Folded(sampler, count, fold_signs(pairs)))


def _choose(problem: Problem, cells: IntArray, why: str, wrap: Callable[[Sampler], Sampler]) -> Choice:
    system = problem.system
    if system.matrix.shape[0] > TOTALS:
        return Choice(f"no sampler: {why}, and more than {TOTALS:,} totals overlap", None, cells)
    slabs = slabs_of(system)
    if slabs.size > COORDINATES or slabs.multiplications > MULTIPLICATIONS:
        return Choice(f"no sampler: {why}, and the block is too large for a chain", None, cells)
    if sum_reach(float(problem.epsilon), int(problem.sizes.max())) > LONGEST_LAW:
        return Choice(f"no sampler: {why}, and its regions are too large for a chain at this epsilon", None, cells)
    mixture = Mixture.of(float(problem.epsilon), slabs, system.matrix, problem.sizes, tau=0.1)
    rejection = _rejection(problem, mixture, slabs)
    if rejection is not None:
        cost = round(problem.count * mixture.cost / rejection.acceptance)
        words = f"drawn by rejection from a mixture of Gaussians; {share(rejection.acceptance)} of tries accepted"
        whole = wrap(rejection)
        return Choice(words, whole, cells, cost, guarantee="rounded", rounding=rejection.rounding)
    chain, words = _chain(problem, mixture)
    if chain is None:
        return Choice(f"no sampler: {why}, and {words}", None, cells)
    cost = problem.count * chain.steps * chain.cost
    return Choice(f"{words} ({why})", wrap(chain), cells, cost, guarantee="estimated", chain=chain)


def slabs_of(system: System) -> Slabs:
    """The lattice of a block, laid out: tables in slabs, others whole."""
    return table_slabs(system.grid.column) if system.grid is not None else lattice_slab(system.basis, system.width)


def _rejection(problem: Problem, mixture: Mixture, slabs: Slabs) -> MixtureRejection | None:
    """The rejection sampler with the best threshold, if a draw stays within the budget."""
    if slabs.dimension > BOUNDED:
        return None
    source = rng(seed="keepsum pilot")
    proposals = max(100, min(2000, PILOT // (len(REJECTION_TAUS) * mixture.cost)))
    found: list[tuple[float, Mixture]] = []
    for tau in REJECTION_TAUS:
        own = mixture.at(tau)
        _, log_weights = own.propose(proposals, source.stream())
        found.append((float(np.exp(log_weights - own.log_bound).mean()), own))
    rate, best = max(found, key=lambda pair: pair[0])
    if mixture.cost > BUDGET * rate:
        return None
    sampler = MixtureRejection(problem.epsilon, best, problem.sizes, problem.count)
    accepted, tries = sampler.pilot(source, -(-BUDGET // mixture.cost))
    if not accepted or tries * mixture.cost > BUDGET * accepted:
        return None
    return MixtureRejection(problem.epsilon, best, problem.sizes, problem.count, accepted / tries)


def _chain(problem: Problem, mixture: Mixture) -> tuple[Chain | None, str]:
    """The chain that needs the least work for a draw, and what to say of it."""
    chain, tuned = mixture_chain(problem, mixture)
    narrow = problem.epsilon >= NARROW and tuned.acceptance < SELDOM
    bath = _heat_bath(problem, chain.steps * chain.cost) if narrow else None
    if bath is not None:
        return bath, f"drawn by {bath.steps:,} sweeps of heat-bath moves along {len(bath.bath.moves):,} short vectors"
    if chain.steps * chain.cost > SLOWEST:
        return None, "a chain would take minutes for a draw"
    tries = f"{chain.tries:,.0f}" if chain.tries > 10 else f"{chain.tries:.2g}"
    return chain, f"drawn by {chain.steps:,} steps of a chain of mixture proposals, about {tries} a step"


def mixture_chain(problem: Problem, mixture: Mixture, near: float = NEAR) -> tuple[MixtureChain, Tuned]:
    """The chain of mixture proposals, tuned by a pilot: its first candidates are ``near``, its last ones far nearer."""
    tuned = tune(mixture, rng(seed="keepsum pilot"), max(PILOT, min(LONG_PILOT, ENOUGH * mixture.cost)))
    chain = _thinned(problem.epsilon, tuned.mixture, problem.sizes, problem.count, tuned.log_weights, near)
    chain.mean_square = tuned.mean_square if problem.sizes.max() == 1 else None
    return chain, tuned


def _thinned(
    epsilon: Fraction | None, proposals: Proposals, sizes: IntArray, count: int, log_weights: Floats, near: float
) -> MixtureChain:
    """The chain with the cap and the steps that the weights of a pilot ask for."""
    renewal = thinned(log_weights, near)
    steps = max(1, Renewal.of(allowing(log_weights), renewal.log_cap).steps_for(FAR))
    lag = _lag(renewal.steps_for(near * LEFT))
    return MixtureChain(epsilon, proposals, sizes, count, steps, lag, renewal.log_cap, renewal.tries)


def _lag(steps: int) -> int:
    return max(4, min(100, steps))


def _heat_bath(problem: Problem, other: int) -> HeatBathChain | None:
    """Heat-bath moves, if they need less work than the other sampler."""
    moves = _moves(problem.system)
    if moves is None:
        return None
    distinct, law = np.unique(problem.sizes, return_inverse=True)
    logs = tuple(laplace_logs(float(problem.epsilon), n) for n in distinct.tolist())
    slips = max(log_ratio_error(float(problem.epsilon), n) for n in distinct.tolist())
    bath = HeatBath(logs, law, moves, slips)
    return heat_bath_chain(bath, problem.epsilon, problem.sizes, problem.count, other)


def _moves(system: System) -> tuple[Row, ...] | None:
    return table_moves(system.grid) if system.grid is not None else short_moves(system.basis)


def heat_bath_chain(
    bath: HeatBath, epsilon: Fraction | None, sizes: IntArray, count: int, other: float
) -> HeatBathChain | None:
    """A chain with as many sweeps as a pilot of coupled pairs asks for, if that costs less than ``other``."""
    if not bath.has_room:
        return None
    lag = 4
    chain = HeatBathChain(epsilon, bath, sizes, count, steps=1)
    source = rng(seed="keepsum pilot")
    # A few pairs first: they tell most baths that do not meet, and how many more a pilot can afford.
    most = int(min(MOST_SWEEPS, other / bath.cost, LONG_PILOT / (8 * bath.cost)))
    first = chain.meeting_times(4, lag, lag + most, source) if most > lag else np.full(4, -1)
    if (first < 0).any():
        return None
    pairs = int(max(FEW_PAIRS, min(PAIRS, LONG_PILOT / (2 * bath.cost * float(first.mean())))))
    times = chain.meeting_times(pairs, lag, lag + MOST_SWEEPS, source)
    if (times < 0).any():
        return None
    tail = GeometricTail.of(times - lag)
    steps = tail.steps_for(FAR, lag)
    if steps * bath.cost > other:
        return None
    return HeatBathChain(epsilon, bath, sizes, count, steps, _lag(tail.steps_for(NEAR, lag)))


def choose_narrow(system: System, sizes: IntArray, cells: list[IntArray], variance: float) -> Choice | None:
    """Blocks under Gaussian noise too narrow for the exact sampler: a chain of proposals, or heat-bath moves."""
    width = int(sizes.sum())
    found = [_narrow_chain(system, sizes, len(cells), variance), _narrow_bath(system, sizes, len(cells), variance)]
    possible = [chain for chain in found if chain is not None and chain.steps * chain.cost <= SLOWEST]
    if not possible:
        return None
    chain = min(possible, key=lambda chain: chain.steps * chain.cost)
    how = "steps of a chain of lattice Gaussians" if isinstance(chain, MixtureChain) else "sweeps of heat-bath moves"
    words = f"drawn by {chain.steps:,} {how} (the exact sampler would accept too seldom)"
    own, cost = np.concatenate(cells), len(cells) * chain.steps * chain.cost
    if chain.width != width * len(cells):
        raise AssertionError("a chain draws every cell")
    return Choice(words, chain, own, cost, guarantee="estimated", chain=chain)


def _narrow_chain(system: System, sizes: IntArray, count: int, variance: float) -> MixtureChain | None:
    width = int(sizes.sum())
    if system.grid is not None and sizes.max() == 1:
        slabs = table_slabs(system.grid.column)
    else:
        slabs = lattice_slab(list(cell_moves(tuple(system.basis), sizes)), width)
    if slabs.size > COORDINATES or slabs.multiplications > MULTIPLICATIONS or variance < FLOOR:
        return None
    proposals = OneWidth(slabs, variance)
    tries = max(200, min(20_000, LONG_PILOT // proposals.cost))
    _, log_weights = proposals.propose(tries, rng(seed="keepsum pilot").stream())
    return _thinned(None, proposals, np.ones(width, dtype=np.int64), count, log_weights, NEAR)


def _narrow_bath(system: System, sizes: IntArray, count: int, variance: float) -> HeatBathChain | None:
    moves = _moves(system)
    if moves is None:
        return None
    width = int(sizes.sum())
    bath = HeatBath((gaussian_logs(variance),), np.zeros(width, dtype=np.int64), cell_moves(moves, sizes))
    return heat_bath_chain(bath, None, np.ones(width, dtype=np.int64), count, SLOWEST)


def cell_moves(moves: tuple[Row, ...], sizes: npt.NDArray[np.int64]) -> tuple[Row, ...]:
    """Moves of region sums as moves of cells: each through the first cells, and between the cells of a region.

    >>> cell_moves(({0: 1, 1: -1},), np.array([2, 1]))
    ({0: 1, 2: -1}, {0: 1, 1: -1})
    """
    starts = (np.cumsum(sizes) - sizes).tolist()
    through = [{starts[region]: value for region, value in move.items()} for move in moves]
    between = [
        {start: 1, start + k: -1} for start, size in zip(starts, sizes.tolist(), strict=True) for k in range(1, size)
    ]
    return (*through, *between)

"""The general samplers, for blocks that no exact one covers: rejection from a mixture, else a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from keepsum._arrays import Floats, IntArray
from keepsum.convergence.observe import TARGET_TV
from keepsum.lattice.grids import Grid, table_matrix
from keepsum.lattice.matrix import Row
from keepsum.lattice.structure import System
from keepsum.planning.selection.choice import BUDGET, Choice, Method, Reason, Sampler
from keepsum.planning.selection.folding import Folded, core_shape, fold_signs, folded_order
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.chains import Chain, HeatBathChain, MixtureChain, MixtureRejection
from keepsum.sampling.general.heat_bath import HeatBath, gaussian_logs, laplace_logs, short_moves, table_moves
from keepsum.sampling.general.mixture import Mixture, OneWidth, Proposals, Tuned, tune
from keepsum.sampling.general.mixture_kernels import FLOOR
from keepsum.sampling.general.scales import LONGEST_LAW, log_ratio_error, sum_reach
from keepsum.sampling.general.slabs import Slabs, lattice_slab, table_slabs
from keepsum.sampling.general.weights import GeometricTail, Renewal, allowing, thinned

# Limits of a block: totals whose leverages are computed, coordinates of a dense factor, and its multiplications.
TOTALS, COORDINATES, MULTIPLICATIONS = 3000, 1500, 10**8
BOUNDED = 600  # dimensions up to which the bound on the weights is computed: rejection is out of reach far below that
REJECTION_TAUS = (0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)
MIXTURE_PILOT = 4 * 10**7  # the cost of a pilot, in independent cells drawn: about a second, and for large blocks
LONG_PILOT = 3 * 10**8  # some seconds
CHAIN_BUDGET = 2 * 10**10  # draws that take minutes are not offered
CANDIDATE_TV = 0.05  # the total variation of the first candidate from the target, by thinning of proposals
UNMET_AFTER_LAG = 0.005  # of the pairs that do not meet at once, the fraction that has not met within another lag
ENOUGH = 20_000  # proposals that a pilot should see
# From this epsilon on heat-bath moves are tried where mixture proposals are accepted less often than this.
NARROW_EPSILON, RARELY = 1, 0.3
PILOT_PAIRS, FEWEST_PILOT_PAIRS = 60, 16  # in a pilot of heat-bath moves, at most and at least
MOST_SWEEPS = 2000  # after which such a pair is given up


@dataclass(frozen=True)
class Problem:
    """Blocks of one form: their totals, the sizes of their regions, and how many there are."""

    system: System
    sizes: IntArray
    count: int
    epsilon: Fraction


def choose_general(
    system: System, sizes: IntArray, cells: list[IntArray], epsilon: Fraction, reasons: tuple[Reason, ...]
) -> Choice:
    """Blocks of one form under l1 Laplace noise; ``reasons`` say why no exact sampler applies."""
    if system.grid is not None and sizes.max() == 1 and 2 in system.grid.shape:
        return _folded(system.grid, cells, epsilon, reasons)
    problem = Problem(system, sizes, len(cells), epsilon)
    return _choose(problem, np.concatenate(cells), reasons, lambda sampler: sampler)


def _folded(grid: Grid, cells: list[IntArray], epsilon: Fraction, reasons: tuple[Reason, ...]) -> Choice:
    """Along axes of two categories the noise only changes sign: the rest of the table has a larger epsilon."""
    core = core_shape(grid)
    pairs = len(grid.shape) - len(core)
    rest = Grid(np.arange(int(np.prod(core)), dtype=np.int64).reshape(core))
    system = System(table_matrix(core), rest.column.size - rest.dimension, rest)
    places = folded_order(grid)
    ordered = np.concatenate([block[places] for block in cells])
    count = len(cells)
    problem = Problem(system, np.ones(rest.column.size, dtype=np.int64), count, epsilon * 2**pairs)
    return _choose(problem, ordered, reasons, lambda sampler: Folded(sampler, count, fold_signs(pairs)))


def _choose(
    problem: Problem, cells: IntArray, reasons: tuple[Reason, ...], wrap: Callable[[Sampler], Sampler]
) -> Choice:
    if problem.system.matrix.shape[0] > TOTALS:
        return Choice.none(cells, *reasons, Reason("too_many_totals", limit=TOTALS))
    slabs = slabs_of(problem.system)
    if slabs.size > COORDINATES or slabs.multiplications > MULTIPLICATIONS:
        return Choice.none(cells, *reasons, Reason("block_too_large"))
    if sum_reach(float(problem.epsilon), int(problem.sizes.max())) > LONGEST_LAW:
        return Choice.none(cells, *reasons, Reason("regions_too_large"))
    mixture = Mixture.of(float(problem.epsilon), slabs, problem.system.matrix, problem.sizes, tau=0.1)
    rejection = _rejection(problem, mixture, slabs)
    if rejection is not None:
        return Choice(
            "mixture_rejection",
            wrap(rejection),
            cells,
            round(problem.count * mixture.cost / rejection.acceptance),
            exactness="rounded",
            rounding=rejection.rounding,
            acceptance=rejection.acceptance,
            reasons=reasons,
        )
    chain = _chain(problem, mixture)
    if chain is None:
        return Choice.none(cells, *reasons, Reason("chain_too_slow"))
    return _by_chain(chain, wrap(chain), cells, problem.count, reasons)


def _by_chain(chain: Chain, whole: Sampler, cells: IntArray, count: int, reasons: tuple[Reason, ...]) -> Choice:
    """A choice of a chain, with its facts."""
    method: Method = "heat_bath_chain"
    if isinstance(chain, MixtureChain):
        method = "gaussian_chain" if isinstance(chain.proposals, OneWidth) else "mixture_chain"
    return Choice(
        method,
        whole,
        cells,
        count * chain.steps * chain.cost,
        exactness="estimated",
        chain=chain,
        steps=chain.steps,
        proposals_per_step=float(chain.tries) if isinstance(chain, MixtureChain) else None,
        moves=len(chain.bath.moves) if isinstance(chain, HeatBathChain) else None,
        reasons=reasons,
    )


def slabs_of(system: System) -> Slabs:
    """The lattice of a block, laid out: tables in slabs, others whole."""
    return table_slabs(system.grid.column) if system.grid is not None else lattice_slab(system.basis, system.width)


def _rejection(problem: Problem, mixture: Mixture, slabs: Slabs) -> MixtureRejection | None:
    """The rejection sampler with the best threshold, if a draw stays within the budget."""
    if slabs.dimension > BOUNDED:
        return None
    source = rng(seed="keepsum pilot")
    proposals = max(100, min(2000, MIXTURE_PILOT // (len(REJECTION_TAUS) * mixture.cost)))
    rated: list[tuple[float, Mixture]] = []
    for tau in REJECTION_TAUS:
        candidate = mixture.at(tau)
        _, log_weights = candidate.propose(proposals, source.stream())
        rated.append((float(np.exp(log_weights - candidate.log_bound).mean()), candidate))
    rate, best = max(rated, key=lambda pair: pair[0])
    if mixture.cost > BUDGET * rate:
        return None
    sampler = MixtureRejection(problem.epsilon, best, problem.sizes, problem.count)
    accepted, tries = sampler.pilot(source, -(-BUDGET // mixture.cost))
    if not accepted or tries * mixture.cost > BUDGET * accepted:
        return None
    return MixtureRejection(problem.epsilon, best, problem.sizes, problem.count, accepted / tries)


def _chain(problem: Problem, mixture: Mixture) -> Chain | None:
    """The chain that needs the least work per draw, unless that takes minutes."""
    chain, tuned = mixture_chain(problem, mixture)
    narrow = problem.epsilon >= NARROW_EPSILON and tuned.acceptance < RARELY
    bath = _heat_bath(problem, chain.steps * chain.cost) if narrow else None
    if bath is not None:
        return bath
    return chain if chain.steps * chain.cost <= CHAIN_BUDGET else None


def mixture_chain(problem: Problem, mixture: Mixture, candidate_tv: float = CANDIDATE_TV) -> tuple[MixtureChain, Tuned]:
    """The chain of mixture proposals, tuned by a pilot so that first candidates are within that TV of the target."""
    tuned = tune(mixture, rng(seed="keepsum pilot"), max(MIXTURE_PILOT, min(LONG_PILOT, ENOUGH * mixture.cost)))
    chain = _thinned(problem.epsilon, tuned.mixture, problem.sizes, problem.count, tuned.log_weights, candidate_tv)
    chain.mean_square = tuned.mean_square if problem.sizes.max() == 1 else None
    return chain, tuned


def _thinned(
    epsilon: Fraction | None,
    proposals: Proposals,
    sizes: IntArray,
    count: int,
    log_weights: Floats,
    candidate_tv: float,
) -> MixtureChain:
    """The chain with the cap and the number of steps that follow from the weights of a pilot."""
    renewal = thinned(log_weights, candidate_tv)
    steps = max(1, Renewal.of(allowing(log_weights), renewal.log_cap).steps_for(TARGET_TV))
    lag = _lag(renewal.steps_for(candidate_tv * UNMET_AFTER_LAG))
    return MixtureChain(epsilon, proposals, sizes, count, steps, lag, renewal.log_cap, renewal.tries)


def _lag(steps: int) -> int:
    return max(4, min(100, steps))


def _heat_bath(problem: Problem, budget: int) -> HeatBathChain | None:
    """Heat-bath moves, if a draw costs no more than the budget, which is the cost of the other chain."""
    moves = _moves(problem.system)
    if moves is None:
        return None
    distinct, law = np.unique(problem.sizes, return_inverse=True)
    logs = tuple(laplace_logs(float(problem.epsilon), n) for n in distinct.tolist())
    slips = max(log_ratio_error(float(problem.epsilon), n) for n in distinct.tolist())
    bath = HeatBath(logs, law, moves, slips)
    return heat_bath_chain(bath, problem.epsilon, problem.sizes, problem.count, budget)


def _moves(system: System) -> tuple[Row, ...] | None:
    return table_moves(system.grid) if system.grid is not None else short_moves(system.basis)


def heat_bath_chain(
    bath: HeatBath, epsilon: Fraction | None, sizes: IntArray, count: int, budget: float
) -> HeatBathChain | None:
    """A chain whose number of sweeps follows from a pilot of coupled pairs, if a draw stays within the budget."""
    if not bath.has_room:
        return None
    lag = 4
    chain = HeatBathChain(epsilon, bath, sizes, count, steps=1)
    source = rng(seed="keepsum pilot")
    # A few pairs first: they reject most chains that do not meet, and show how many more a pilot can afford.
    sweeps = int(min(MOST_SWEEPS, budget / bath.cost, LONG_PILOT / (8 * bath.cost)))
    first = chain.meeting_times(4, lag, lag + sweeps, source) if sweeps > lag else np.full(4, -1)
    if (first < 0).any():
        return None
    pairs = int(max(FEWEST_PILOT_PAIRS, min(PILOT_PAIRS, LONG_PILOT / (2 * bath.cost * float(first.mean())))))
    times = chain.meeting_times(pairs, lag, lag + MOST_SWEEPS, source)
    if (times < 0).any():
        return None
    tail = GeometricTail.of(times - lag)
    steps = tail.steps_for(TARGET_TV, lag)
    if steps * bath.cost > budget:
        return None
    return HeatBathChain(epsilon, bath, sizes, count, steps, _lag(tail.steps_for(CANDIDATE_TV, lag)))


def choose_narrow(
    system: System, sizes: IntArray, cells: list[IntArray], variance: float, reasons: tuple[Reason, ...]
) -> Choice | None:
    """Blocks under Gaussian noise too narrow for the exact sampler: a chain of proposals, or heat-bath moves."""
    chains = [_narrow_chain(system, sizes, len(cells), variance), _narrow_bath(system, sizes, len(cells), variance)]
    possible = [chain for chain in chains if chain is not None and chain.steps * chain.cost <= CHAIN_BUDGET]
    if not possible:
        return None
    chain = min(possible, key=lambda chain: chain.steps * chain.cost)
    if chain.width != int(sizes.sum()) * len(cells):
        raise AssertionError("a chain draws every cell")
    return _by_chain(chain, chain, np.concatenate(cells), len(cells), reasons)


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
    return _thinned(None, proposals, np.ones(width, dtype=np.int64), count, log_weights, CANDIDATE_TV)


def _narrow_bath(system: System, sizes: IntArray, count: int, variance: float) -> HeatBathChain | None:
    moves = _moves(system)
    if moves is None:
        return None
    width = int(sizes.sum())
    bath = HeatBath((gaussian_logs(variance),), np.zeros(width, dtype=np.int64), cell_moves(moves, sizes))
    return heat_bath_chain(bath, None, np.ones(width, dtype=np.int64), count, CHAIN_BUDGET)


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

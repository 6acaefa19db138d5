"""The general samplers, for blocks that no exact one covers: rejection from a mixture, else a chain.

``settle`` runs pilots and comes to an outcome, which is kept in the cache (``outcomes.py``); ``draw_by`` makes the
sampler of an outcome, whether it was just found or read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.convergence.observe import TARGET_TV
from keepsum.lattice.grids import Grid, table_matrix
from keepsum.lattice.matrix import Row
from keepsum.lattice.structure import System
from keepsum.planning.selection.choice import BUDGET, Choice, Method, Reason, Sampler
from keepsum.planning.selection.folding import Folded, core_shape, fold_signs, folded_order
from keepsum.planning.selection.outcomes import REJECTION_TAUS, Outcome
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.chains import Chain, HeatBathChain, MixtureChain, MixtureRejection
from keepsum.sampling.general.heat_bath import HeatBath, laplace_logs, short_moves, table_moves
from keepsum.sampling.general.mixture import Mixture, OneWidth, Proposals, Tuned, tries, tune
from keepsum.sampling.general.scales import LONGEST_LAW, log_ratio_error, log_sum_law, sum_reach, typical_variances
from keepsum.sampling.general.slabs import Slabs, lattice_slab, table_slabs
from keepsum.sampling.general.weights import GeometricTail, Renewal, thinned

# Limits of a block: totals whose leverages are computed, coordinates of a dense factor, and its multiplications.
TOTALS, COORDINATES, MULTIPLICATIONS = 3000, 1500, 10**8
BOUNDED = 600  # dimensions up to which the bound on the weights is computed: rejection is out of reach far below that
MIXTURE_PILOT = 8 * 10**6  # the cost of a pilot, in independent cells drawn: a third of a second
RARE_COST = 3  # how many times more than a chain heat-bath moves may cost: their pilot extrapolates less
SWEEPS_PILOT = 2 * 10**7  # the same for the first pair of heat-bath chains, and for all that follow
FEW_PROPOSALS = 64  # that tell what is out of reach
OUT_OF_REACH = 20  # where they say that it costs so many times its budget
RATED, RATING = 1000, 4 * 10**6  # proposals that tell an acceptance rate, at most, and their cost
CHAIN_BUDGET = 2 * 10**10  # draws that take more than some minutes are not offered
# Draws that cost more than this, some seconds, may be farther from the target than TARGET_TV, up to this.
BRIEF, FAR_TV = 2 * 10**8, 1e-5
CANDIDATE_TV = 0.05  # the total variation of the first candidate from the target, by thinning of proposals
UNMET_AFTER_LAG = 0.005  # of the pairs that do not meet at once, the fraction that has not met within another lag
# From this epsilon on heat-bath moves are tried where mixture proposals are accepted less often than this.
NARROW_EPSILON, RARELY = 1, 0.3
PILOT_PAIRS, FEWEST_PILOT_PAIRS = 60, 16  # in a pilot of heat-bath moves, at most and at least
FIRST_PAIRS = 4  # that must have met before others are run
MOST_SWEEPS = 2000  # after which such a pair is given up
SLOWEST_MEETING = 4  # a draw takes at least so many times the sweeps in which a pair meets


@dataclass(frozen=True, eq=False)
class Problem:
    """Blocks of one form: their totals, the sizes of their regions, and how many there are.

    ``weights`` are the epsilons of all regions where focused totals, regions of no cells, have others than cells.
    """

    system: System
    sizes: IntArray
    count: int
    epsilon: Fraction
    weights: tuple[Fraction, ...] = ()

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        """The epsilon of each region."""
        return self.weights or (self.epsilon,) * len(self.sizes)

    @cached_property
    def kinds(self) -> list[tuple[float, int]]:
        """The epsilon and the size of each region; a focused total is noise like that of one cell."""
        return list(zip(map(float, self.epsilons), np.maximum(self.sizes, 1).tolist(), strict=True))

    @cached_property
    def slabs(self) -> Slabs:
        """The lattice, laid out."""
        return slabs_of(self.system)

    @cached_property
    def mixture(self) -> Mixture:
        """Proposals, at any threshold."""
        epsilons, sizes = np.array(self.kinds).T
        return Mixture.of(epsilons, self.slabs, self.system.matrix, sizes.astype(np.int64), tau=0.1)

    @cached_property
    def bath(self) -> HeatBath | None:
        """Heat-bath moves, if there are not too many."""
        moves = short_moves_of(self.system)
        if moves is None:
            return None
        distinct = sorted(set(self.kinds))
        law = np.array([distinct.index(kind) for kind in self.kinds], dtype=np.int64)
        logs = tuple(laplace_logs(*kind) for kind in distinct)
        slips = max(log_ratio_error(*kind) for kind in distinct)
        bath = HeatBath(logs, law, moves, slips)
        return bath if bath.has_room else None

    @cached_property
    def obstacle(self) -> Reason | None:
        """Why there is no mixture for them."""
        if self.system.matrix.shape[0] > TOTALS:
            return Reason("too_many_totals", limit=TOTALS)
        if self.system.grid is None and self.system.width - self.system.rank > COORDINATES:  # one slab, of gigabytes
            return Reason("block_too_large")
        if self.slabs.size > COORDINATES or self.slabs.multiplications > MULTIPLICATIONS:
            return Reason("block_too_large")
        if max(sum_reach(*kind) for kind in set(self.kinds)) > LONGEST_LAW:
            return Reason("regions_too_large")
        return None

    @cached_property
    def log_sum(self) -> float:
        """About ln of the sum over the lattice of the law's weights, that of 0 being 1: a mean of a few weights."""
        _, log_weights = self.mixture.propose(FEW_PROPOSALS, rng(seed="keepsum few").stream())
        top = float(log_weights.max())
        mean = top + math.log(float(np.exp(log_weights - top).mean()))
        return max(0.0, mean - self.mixture.bounds.log_whole)

    @cached_property
    def log_solving_rate(self) -> float:
        """About ln of the largest acceptance rate that solving for regions may have (``sampling/l1/rejection.py``).

        It is the chance that free noise keeps the totals, over the largest chances of the regions solved for: the sum
        over the lattice times the chance of 0 in all others, at most those of the smallest regions.
        """
        smallest = np.sort(self.sizes)[: self.system.width - self.system.rank].tolist()
        log_zero = {n: -_log_mass(float(self.epsilon), n) for n in set(smallest)}
        return self.log_sum + math.fsum(log_zero[n] for n in smallest)

    def solving_is_out_of_reach(self, budget: int) -> bool:
        """Whether solving for regions would cost far more cells per draw than a budget."""
        cells = int(self.sizes.sum())
        return self.obstacle is None and self.log_solving_rate < math.log(cells / (OUT_OF_REACH * budget))


def _log_mass(epsilon: float, size: int) -> float:
    """Ln of the sum of the law of a region's sums, that of 0 being 1."""
    if size == 1:
        return -math.log(math.tanh(epsilon / 2))
    law = log_sum_law(epsilon, size)
    return math.log(2 * float(np.exp(law - law[0]).sum()) - 1)


@dataclass(frozen=True)
class Arranged:
    """A problem as the general samplers draw it: its cells in their order, and what becomes of a sampler."""

    problem: Problem
    cells: IntArray
    wrap: Callable[[Sampler], Sampler]


def arrange(problem: Problem, cells: list[IntArray]) -> Arranged:
    """Along axes of two categories the noise only changes sign: the rest of a table has a larger epsilon."""
    grid = problem.system.grid
    if grid is None or problem.sizes.max() > 1 or 2 not in grid.shape:
        return Arranged(problem, np.concatenate(cells), lambda sampler: sampler)
    core = core_shape(grid)
    pairs, count = len(grid.shape) - len(core), len(cells)
    rest = Grid(np.arange(int(np.prod(core)), dtype=np.int64).reshape(core))
    system = System(table_matrix(core), rest.column.size - rest.dimension, rest)
    places = folded_order(grid)
    ordered = np.concatenate([block[places] for block in cells])
    inner = Problem(system, np.ones(rest.column.size, dtype=np.int64), count, problem.epsilon * 2**pairs)
    return Arranged(inner, ordered, lambda sampler: Folded(sampler, count, fold_signs(pairs)))


def settle(problem: Problem, reasons: tuple[Reason, ...]) -> Outcome:
    """What pilots choose for blocks under l1 Laplace noise; ``reasons`` say why no exact sampler applies."""
    if problem.obstacle is not None:
        return Outcome(None, reasons)
    outcome = _rejection(problem) or _chain(problem)
    return replace(outcome, reasons=reasons)


def draw_by(outcome: Outcome, arranged: Arranged) -> Choice:
    """The sampler of an outcome, with its facts; everything that is stated of it is worked out or measured here."""
    problem, cells, reasons = arranged.problem, arranged.cells, outcome.reasons
    if problem.obstacle is not None:
        return Choice.none(cells, *reasons, problem.obstacle)
    if outcome.method == "mixture_rejection":
        rejection = _rejection_with(problem, outcome.tau)
        if rejection is not None:
            return _by_rejection(rejection, arranged.wrap(rejection), cells, reasons)
    chain = chain_of(problem, outcome)
    if chain is None or chain.steps * chain.cost > CHAIN_BUDGET:
        return Choice.none(cells, *reasons, Reason("chain_too_slow"))
    return by_chain(chain, arranged.wrap(chain), cells, problem.count, reasons)


def chain_of(problem: Problem, outcome: Outcome) -> Chain | None:
    """The chain of an outcome."""
    if outcome.method == "mixture_chain":
        proposals = problem.mixture.at(outcome.tau, outcome.stretch)
        chain = counted(MixtureChain(problem.epsilon, proposals, problem.sizes, problem.count, 1), outcome)
        return chain if math.isfinite(chain.tries) else None
    if outcome.method == "heat_bath_chain":
        bath = problem.bath
        if bath is not None:
            return HeatBathChain(problem.epsilon, bath, problem.sizes, problem.count, outcome.steps, outcome.lag)
    return None


def counted(chain: MixtureChain, outcome: Outcome) -> MixtureChain:
    """The chain with the cap and the steps of an outcome, its proposals counted anew."""
    chain.log_cap, chain.steps, chain.lag = outcome.log_cap, outcome.steps, outcome.lag
    chain.tries = six_digits(tries(chain.proposals, outcome.log_cap, rng(seed="keepsum count")))
    return chain


def six_digits(measured: float) -> float:
    """A measured number without the digits that depend on how a machine adds up floats.

    >>> six_digits(0.00022727981039)
    0.00022728
    """
    return float(f"{measured:.6g}")


def _by_rejection(rejection: MixtureRejection, whole: Sampler, cells: IntArray, reasons: tuple[Reason, ...]) -> Choice:
    """A choice of rejection, with its facts."""
    return Choice(
        "mixture_rejection",
        whole,
        cells,
        round(rejection.count * rejection.cells_per_try / rejection.acceptance),
        exactness="rounded",
        rounding=rejection.rounding,
        acceptance=rejection.acceptance,
        reasons=reasons,
    )


def by_chain(chain: Chain, whole: Sampler, cells: IntArray, count: int, reasons: tuple[Reason, ...]) -> Choice:
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


def _rejection(problem: Problem) -> Outcome | None:
    """Rejection with the threshold of the smallest bound, if a draw stays within the budget.

    The mean weight does not depend on the threshold, so the smallest bound accepts most. Where a few weights show that
    it is out of reach, the bound is not proved.
    """
    if problem.slabs.dimension > BOUNDED:
        return None
    mixture = problem.mixture
    widths, variances = problem.slabs.widths(), typical_variances(mixture.epsilons, mixture.sizes)
    log_volume = float(np.log(problem.slabs.widths(variances)).sum())
    bounds = [problem.mixture.at(tau).bounds.about_log_bound(widths, log_volume) for tau in REJECTION_TAUS]
    best = int(np.argmin(bounds))
    log_rate = problem.log_sum + problem.mixture.bounds.log_whole - bounds[best]
    if not log_rate > math.log(problem.mixture.cost / (OUT_OF_REACH * BUDGET)):
        return None
    tau = REJECTION_TAUS[best]
    return None if _rejection_with(problem, tau) is None else Outcome("mixture_rejection", tau=tau)


def _rejection_with(problem: Problem, tau: float) -> MixtureRejection | None:
    """Rejection with this threshold, if a draw stays within the budget: its rate is the mean of the weights over M."""
    mixture = problem.mixture.at(tau)
    proposals = max(100, min(RATED, RATING // mixture.cost))
    _, log_weights = mixture.propose(proposals, rng(seed="keepsum pilot").stream())
    rate = six_digits(float(np.exp(log_weights - mixture.log_bound).mean()))
    if mixture.cost > BUDGET * rate:
        return None
    return MixtureRejection(problem.epsilon, mixture, problem.sizes, problem.count, rate)


def _chain(problem: Problem) -> Outcome:
    """The chain that needs the least work per draw; heat-bath moves may need more where few proposals are accepted."""
    chain, tuned = mixture_chain(problem, problem.mixture)
    if problem.epsilon >= NARROW_EPSILON and tuned.acceptance < RARELY and problem.bath is not None:
        sweeps = sweeps_of(problem.bath, min(RARE_COST * chain.steps * chain.cost, CHAIN_BUDGET))
        if sweeps is not None:
            return sweeps
    return Outcome("mixture_chain", (), tuned.mixture.tau, tuned.mixture.stretch, chain.log_cap, chain.steps, chain.lag)


def mixture_chain(problem: Problem, mixture: Mixture, candidate_tv: float = CANDIDATE_TV) -> tuple[MixtureChain, Tuned]:
    """The chain of mixture proposals, tuned by a pilot so that first candidates are within that TV of the target."""
    tuned = tune(mixture, rng(seed="keepsum pilot"), MIXTURE_PILOT)
    return _thinned(problem, tuned, candidate_tv), tuned


def _thinned(problem: Problem, tuned: Tuned, candidate_tv: float) -> MixtureChain:
    sizes, count = problem.sizes, problem.count
    return thinned_chain(problem.epsilon, tuned.mixture, sizes, count, tuned.log_weights, candidate_tv)


def thinned_chain(
    epsilon: Fraction | None,
    proposals: Proposals,
    sizes: IntArray,
    count: int,
    log_weights: Floats,
    candidate_tv: float = CANDIDATE_TV,
) -> MixtureChain:
    """The chain with the cap and the number of steps that follow from the weights of a pilot."""
    renewal = thinned(log_weights, candidate_tv)
    lag = _lag(renewal.steps_for(candidate_tv * UNMET_AFTER_LAG))
    chain = MixtureChain(epsilon, proposals, sizes, count, 1, lag, renewal.log_cap, renewal.tries)
    extended, brief = Renewal.with_tail(log_weights, renewal.log_cap), BRIEF // chain.cost
    steps = extended.steps_for(TARGET_TV)
    chain.steps = max(1, steps if steps <= brief else max(brief, extended.steps_for(FAR_TV)))
    return chain


def _lag(steps: int) -> int:
    return max(4, min(100, steps))


def short_moves_of(system: System) -> tuple[Row, ...] | None:
    """Short vectors that generate the lattice of a block, if there are not too many."""
    return table_moves(system.grid) if system.grid is not None else short_moves(system.basis)


def sweeps_of(bath: HeatBath, budget: float) -> Outcome | None:
    """Heat-bath moves with sweeps that follow from a pilot of coupled pairs, if a draw stays within the budget.

    A few pairs are run first, one after the other: the first that has not met in time ends the pilot, and they show how
    many more it can afford.
    """
    lag = 4
    chain = HeatBathChain(None, bath, np.ones(bath.regions, dtype=np.int64), 1, steps=1)
    source = rng(seed="keepsum pilot")
    most = int(min(MOST_SWEEPS, budget / (SLOWEST_MEETING * bath.cost), SWEEPS_PILOT / bath.cost))
    first: list[int] = []
    while len(first) < FIRST_PAIRS:
        time = int(chain.meeting_times(1, lag, lag + most, source)[0]) if most > lag else -1
        if time < 0:
            return None
        first.append(time)
    affordable = SWEEPS_PILOT / (bath.cost * float(np.mean(first)))
    pairs = int(max(FEWEST_PILOT_PAIRS, min(PILOT_PAIRS, affordable)))
    times = chain.meeting_times(pairs, lag, lag + MOST_SWEEPS, source)
    if (times < 0).any():
        return None
    tail = GeometricTail.of(times - lag)
    steps = tail.steps_for(TARGET_TV, lag)
    if steps * bath.cost > budget:
        return None
    return Outcome("heat_bath_chain", steps=steps, lag=_lag(tail.steps_for(CANDIDATE_TV, lag)))

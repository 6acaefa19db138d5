"""The general samplers, for blocks that no exact one covers: rejection or chains, as pilots choose or have chosen."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from scipy import sparse

from keepsum._arrays import Floats, IntArray
from keepsum._cache import CacheFile
from keepsum.convergence.observe import TARGET_TV
from keepsum.lattice.grids import Grid, table_matrix
from keepsum.lattice.matrix import Row
from keepsum.lattice.structure import System
from keepsum.planning.selection.choice import (
    BUDGET,
    Choice,
    Folded,
    Method,
    Reason,
    Sampler,
    core_shape,
    fold_signs,
    folded_order,
)
from keepsum.sampling.core.kernel import machine, text_of_kernels
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.chains import Chain, HeatBathChain, MixtureChain, MixtureRejection
from keepsum.sampling.general.heat_bath import HeatBath, laplace_logs, short_moves, table_moves
from keepsum.sampling.general.mixture import Mixture, OneWidth, Proposals, Tuned, tries, tune
from keepsum.sampling.general.scales import (
    LONGEST_LAW,
    Slabs,
    lattice_slab,
    log_ratio_error,
    log_sum_law,
    sum_reach,
    table_slabs,
    typical_variances,
)
from keepsum.sampling.general.weights import GeometricTail, Renewal, thinned

# What pilots chose for a block that the general samplers draw, and the cache that keeps it for later plans.
#
# An entry holds choices only: the method, the threshold of a mixture, the cap of a chain, its steps and its lag, and
# why no exact sampler applies. Nothing that a certificate states of a sampler is taken from it: bounds and rounding
# are worked out again, and proposals per step and acceptance rates are measured again, by the same pilots whether an
# entry was found or not, so that both ways lead to the same plan. How near a chain comes to its target after that
# many steps is shown by coupled pairs. So a forged entry can make draws slow, or a chain short, and then the
# certificate says that it is short; it cannot make it say more than holds. (Whoever can write to the cache can do
# worse: meeting times are kept there, too. It is the user's own folder.)
#
# An entry is named by a hash of the totals over the regions, the sizes of the regions, the number of blocks, the
# noise, the limits of the selection, the text of this package, and the versions and the processor that floats depend
# on. No label and no count enters it: a plan has none. An entry that is damaged, or was made for another name, is
# left aside.


PACKAGE = Path(__file__).parents[2]
MOST_STEPS, LONGEST_LAG = 10**10, 100
REJECTION_TAUS = (0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)

Limits: TypeAlias = list[tuple[str, object]]
GeneralMethod: TypeAlias = Literal["mixture_rejection", "mixture_chain", "heat_bath_chain", "gaussian_chain"]


@dataclass(frozen=True)
class Outcome:
    """What pilots chose for a block.

    Attributes
    ----------
    method
        How it is drawn; None if no general sampler applies.
    reasons
        Why no exact one does.
    tau, stretch
        The threshold of the mixture, and the stretch of its exponents.
    log_cap
        Ln of the weight from which on every proposal passes.
    steps, lag
        Those of the chain.
    """

    method: GeneralMethod | None
    reasons: tuple[Reason, ...] = ()
    tau: float = 1.0
    stretch: float = 1.0
    log_cap: float = 0.0
    steps: int = 1
    lag: int = 4

    @property
    def is_possible(self) -> bool:
        """Whether pilots could have chosen this."""
        from keepsum.sampling.general.mixture import STRETCHES, TAUS  # not loaded to see that there is no entry

        taus = REJECTION_TAUS if self.method == "mixture_rejection" else TAUS
        return (
            (self.method not in ("mixture_rejection", "mixture_chain") or self.tau in taus)
            and self.stretch in STRETCHES
            and abs(self.log_cap) < 1e6
            and 1 <= self.steps <= MOST_STEPS
            and 1 <= self.lag <= LONGEST_LAG
            and all(reason.lowest is None and reason.highest is None for reason in self.reasons)
        )


@dataclass(frozen=True)
class _Entry:
    """An outcome as it is stored, with the name that it was stored under and a hash of it."""

    name: str
    outcome: Outcome
    digest: str


class OutcomeStore:
    """The file that holds the outcome of one block's pilots.

    Parameters
    ----------
    kind
        The kind of noise and its parameter.
    matrix, sizes, count
        The totals, the sizes of the regions, and the number of blocks.
    """

    def __init__(self, kind: str, matrix: sparse.csr_array, sizes: IntArray, count: int) -> None:
        digest = hashlib.sha256(repr((kind, count, matrix.shape)).encode())
        for array in (matrix.indptr, matrix.indices, matrix.data, sizes):
            digest.update(repr(len(array)).encode() + np.asarray(array, dtype="<i8").tobytes())
        self._name = digest.hexdigest()
        self._file = CacheFile("plans", f"{self._name}.json")

    @property
    def has_entry(self) -> bool:
        """Whether there is an entry, good or bad."""
        return self._file.read() is not None

    def read(self, limits: Limits) -> Outcome | None:
        """The stored outcome; None if there is none, or the entry is damaged, or has another name or other limits."""
        text, name = self._file.read(), self._name_with(limits)  # the name from before any pilots are run
        if text is None:
            return None
        try:
            entry = msgspec.json.decode(text, type=_Entry)
        except (msgspec.MsgspecError, RecursionError):
            return None
        if entry.name != name or entry.digest != _digest(name, entry.outcome):
            return None
        return entry.outcome if entry.outcome.is_possible else None

    def drop(self) -> None:
        """Remove an entry, if there is one: of another version, say, that had to run pilots for this block."""
        self._file.remove()

    def write(self, outcome: Outcome, limits: Limits) -> None:
        """Keep an outcome, if there is where."""
        name = self._name_with(limits)
        entry = _Entry(name, outcome, _digest(name, outcome))
        self._file.write(msgspec.json.encode(entry).decode())

    def _name_with(self, limits: Limits) -> str:
        """The name under these limits of the selection, in these surroundings; most blocks have no pilots."""
        return hashlib.sha256(repr((_surroundings(), self._name, sorted(limits))).encode()).hexdigest()


def _digest(name: str, outcome: Outcome) -> str:
    return hashlib.sha256(name.encode() + msgspec.json.encode(outcome)).hexdigest()


@lru_cache(maxsize=1)
def _surroundings() -> str:
    """What the outcome of a pilot depends on beside its block: the text of the package, and how floats are added up."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        with suppress(OSError):
            digest.update(path.read_bytes())
    return f"{digest.hexdigest()} {text_of_kernels()} {version('scipy')} {machine()}"


def limits_of(module: str, names: dict[str, object]) -> Limits:
    """The constants of a module of the selection, by their names.

    >>> limits_of("here", {"BUDGET": 1, "budget": 2, "_Entry": 3})
    [('here.BUDGET', '1')]
    """
    return [(f"{module}.{name}", repr(value)) for name, value in names.items() if name.isupper()]


# The general samplers, for blocks that no exact one covers: rejection from a mixture, else a chain.
#
# ``settle`` runs pilots and comes to an outcome, which is kept in the cache (``general.py``); ``draw_by`` makes the
# sampler of an outcome, whether it was just found or read.


# Limits of a block: totals whose leverages are computed, coordinates of a dense factor, and its multiplications.
TOTALS, COORDINATES, MULTIPLICATIONS = 3000, 1500, 10**8
BOUNDED = 600  # dimensions up to which the bound on the weights is computed: rejection is out of reach far below that
MIXTURE_PILOT = 8 * 10**6  # the cost of a pilot, in independent cells drawn: a third of a second
RARE_COST = 3  # how many times more than a chain heat-bath moves may cost: their pilot extrapolates less
SWEEPS_PILOT = 2 * 10**7  # the same for the first pair of heat-bath chains, and for all that follow
FEW_PROPOSALS = 64  # that tell what is out of reach
OUT_OF_REACH = 20  # where they say that it costs so many times its budget
# A Gaussian rate takes sums of this variance and more, and is right to some factors of 10: this is the logarithm.
WIDE_VARIANCE, ROUGHLY = 10, 10
CHAIN_DIMENSIONS = 700  # of single cells: 729 need twenty times the budget of a chain, at any epsilon
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
class BlockProblem:
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

    @cached_property
    def log_wide_rate(self) -> float:
        """The same rate as if the sums of the totals were Gaussian; infinite where they are too narrow for that.

        The chance that r independent totals are all 0 is then 1 over the root of (2 pi)^r det(A V A'). It takes a
        fraction of a second for any block, where proposals of a mixture may take many.
        """
        rows = self.system.matrix.shape[0]
        if rows > TOTALS or self.weights:
            return math.inf
        from scipy.linalg import lapack  # slow to import, and no release of a hierarchy or a two-way table needs it

        a = math.exp(-float(self.epsilon))
        matrix = self.system.matrix.astype(np.float64)
        product = ((matrix * (self.sizes * (2 * a / (1 - a) ** 2))) @ matrix.T).toarray()
        if product.diagonal().min() < WIDE_VARIANCE:
            return math.inf
        factor, _, rank, _ = lapack.dpstrf(product, lower=1)
        if rank < self.system.rank:
            return math.inf
        log_zero = -math.log(2 * math.pi) * self.system.rank / 2
        log_zero -= float(np.log(np.diag(factor)[: self.system.rank]).sum())
        widest = np.sort(self.sizes)[len(self.sizes) - self.system.rank :].tolist()
        log_mass = {n: _log_mass(float(self.epsilon), n) for n in set(widest)}
        return log_zero + math.fsum(log_mass[n] for n in widest)

    def solving_is_out_of_reach(self, budget: int) -> bool:
        """Whether solving for regions would cost far more cells per draw than a budget."""
        least = math.log(int(self.sizes.sum()) / (OUT_OF_REACH * budget))
        if self.log_wide_rate < least - ROUGHLY:
            return True
        return self.obstacle is None and self.log_solving_rate < least

    @cached_property
    def chain_is_out_of_reach(self) -> bool:
        """Whether a chain of mixture proposals would need far more work than its budget: it has too many dimensions.

        The logarithms of their weights have a variance of about a hundredth per dimension, less where regions have
        several cells, and the steps grow with its exponential.
        """
        roughness = float((1 / np.maximum(self.sizes, 1)).mean())
        return roughness * (self.system.width - self.system.rank) > CHAIN_DIMENSIONS


def _log_mass(epsilon: float, size: int) -> float:
    """Ln of the sum of the law of a region's sums, that of 0 being 1."""
    if size == 1:
        return -math.log(math.tanh(epsilon / 2))
    law = log_sum_law(epsilon, size)
    return math.log(2 * float(np.exp(law - law[0]).sum()) - 1)


@dataclass(frozen=True)
class OrderedProblem:
    """A problem as the general samplers draw it: its cells in their order, and what becomes of a sampler."""

    problem: BlockProblem
    cells: IntArray
    wrap: Callable[[Sampler], Sampler]


def arrange(problem: BlockProblem, cells: list[IntArray]) -> OrderedProblem:
    """Along axes of two categories the noise only changes sign: the rest of a table has a larger epsilon."""
    grid = problem.system.grid
    if grid is None or problem.sizes.max() > 1 or 2 not in grid.shape:
        return OrderedProblem(problem, np.concatenate(cells), lambda sampler: sampler)
    core = core_shape(grid)
    pairs, count = len(grid.shape) - len(core), len(cells)
    rest = Grid(np.arange(int(np.prod(core)), dtype=np.int64).reshape(core))
    system = System(table_matrix(core), rest.column.size - rest.dimension, rest)
    places = folded_order(grid)
    ordered = np.concatenate([block[places] for block in cells])
    inner = BlockProblem(system, np.ones(rest.column.size, dtype=np.int64), count, problem.epsilon * 2**pairs)
    return OrderedProblem(inner, ordered, lambda sampler: Folded(sampler, count, fold_signs(pairs)))


def settle(problem: BlockProblem, reasons: tuple[Reason, ...]) -> Outcome:
    """What pilots choose for blocks under l1 Laplace noise; ``reasons`` say why no exact sampler applies."""
    if problem.obstacle is not None:
        return Outcome(None, reasons)
    if problem.chain_is_out_of_reach:
        return replace(_sweeps(problem, CHAIN_BUDGET) or Outcome(None), reasons=reasons)
    outcome = _rejection(problem) or _chain(problem)
    return replace(outcome, reasons=reasons)


def draw_by(outcome: Outcome, arranged: OrderedProblem) -> Choice:
    """The sampler of an outcome, with its facts; everything that is stated of it is worked out or measured here."""
    problem, cells, reasons = arranged.problem, arranged.cells, outcome.reasons
    if problem.obstacle is not None:
        return Choice.none(cells, *reasons, problem.obstacle)
    if outcome.method == "mixture_rejection":
        rejection = _rejection_with(problem, outcome.tau)
        if rejection is not None:
            return _by_rejection(rejection, arranged.wrap(rejection), cells, reasons)
    chain = None if outcome.method is None else chain_of(problem, outcome)
    if chain is None or chain.steps * chain.cost > CHAIN_BUDGET:
        return Choice.none(cells, *reasons, Reason("chain_too_slow"))
    return by_chain(chain, arranged.wrap(chain), cells, problem.count, reasons)


def chain_of(problem: BlockProblem, outcome: Outcome) -> Chain | None:
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


def _rejection(problem: BlockProblem) -> Outcome | None:
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


def _rejection_with(problem: BlockProblem, tau: float) -> MixtureRejection | None:
    """Rejection with this threshold, if a draw stays within the budget: its rate is the mean of the weights over M."""
    mixture = problem.mixture.at(tau)
    proposals = max(100, min(RATED, RATING // mixture.cost))
    _, log_weights = mixture.propose(proposals, rng(seed="keepsum pilot").stream())
    rate = six_digits(float(np.exp(log_weights - mixture.log_bound).mean()))
    if mixture.cost > BUDGET * rate:
        return None
    return MixtureRejection(problem.epsilon, mixture, problem.sizes, problem.count, rate)


def _chain(problem: BlockProblem) -> Outcome:
    """The chain that needs the least work per draw; heat-bath moves may need more where few proposals are accepted."""
    chain, tuned = mixture_chain(problem, problem.mixture)
    if tuned.acceptance < RARELY:
        sweeps = _sweeps(problem, min(RARE_COST * chain.steps * chain.cost, CHAIN_BUDGET))
        if sweeps is not None:
            return sweeps
    return Outcome("mixture_chain", (), tuned.mixture.tau, tuned.mixture.stretch, chain.log_cap, chain.steps, chain.lag)


def _sweeps(problem: BlockProblem, budget: float) -> Outcome | None:
    """Heat-bath moves, where noise is narrow and they stay within the budget."""
    if problem.epsilon < NARROW_EPSILON or problem.bath is None:
        return None
    return sweeps_of(problem.bath, budget)


def mixture_chain(
    problem: BlockProblem, mixture: Mixture, candidate_tv: float = CANDIDATE_TV
) -> tuple[MixtureChain, Tuned]:
    """The chain of mixture proposals, tuned by a pilot so that first candidates are within that TV of the target."""
    tuned = tune(mixture, rng(seed="keepsum pilot"), MIXTURE_PILOT)
    sizes, count = problem.sizes, problem.count
    return thinned_chain(problem.epsilon, tuned.mixture, sizes, count, tuned.log_weights, candidate_tv), tuned


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


# A general sampler where no exact one is fast enough: as pilots have chosen before, or by new ones.


def choose_general(
    arranged: OrderedProblem, store: OutcomeStore, limits: Limits, exact: Callable[[], Choice]
) -> Choice:
    """What pilots have chosen under these limits, if they have; else an exact sampler, or what new pilots choose.

    ``exact`` gives the exact sampler, or says why there is none; it is not called where a choice is known.
    """
    outcome = store.read(limits)
    if outcome is not None:
        choice = draw_by(outcome, arranged)
        if choice.sampler is not None or outcome.method is None:
            return choice
    tried = exact()
    if tried.sampler is not None:
        store.drop()
        return tried
    outcome = settle(arranged.problem, tried.reasons)
    store.write(outcome, limits)
    return draw_by(outcome, arranged)

"""l1 Laplace noise on any lattice, by a mixture of lattice Gaussians with a variance for each region.

e^(-eps |z|) is a mixture of e^(-z^2/2v) over v (``scales.py``). So propose a variance for each region, then the region
sums S as a lattice Gaussian with these variances, coordinate by coordinate (Klein): coordinate j is a discrete
Gaussian of width s_j around c_j. On the pairs (v, S) the target over the proposal's law is the *weight*

    w = prod_i t_i(v_i)/g_i(v_i) e^(-S_i^2/2v_i + S_i^2/2f_i) h_i(S_i)  prod_j rho_{s_j}(Z - c_j),

t the target density of variances, g the one drawn from, f = max(v, FLOOR) the variances with which S is drawn, h <= H
the law of a sum of cells over its mixture, and rho_s(Z - c) the sum over whole k of e^(-(k-c)^2/2s^2).

**The bound.** Let t_i <= K_i g_i max(v_i, tau)^(-q_i/2) with tau >= FLOOR, and write V for max(v, tau).

1. f >= v, so the second factor is at most 1.
2. rho_s(Z - c) <= rho_s(Z): the Fourier coefficients of the sum over k are positive.
3. 1/s_j^2 is a Schur complement of B' F^-1 B, which grows with F^-1 in the order of forms; so s_j grows with F, and
   F <= V. rho_s(Z) grows with s, so rho_{s_j(F)}(Z) <= rho_{s_j(V)}(Z) = sqrt(2 pi) s_j(V) theta(s_j(V)).
4. theta(s) = rho_s(Z)/(sqrt(2 pi) s) = sum over k of e^(-2 pi^2 s^2 k^2) falls with s, and V >= tau, so
   theta(s_j(V)) <= theta(sqrt(tau) s_j(1)).
5. prod s_j(V) = det(B' V^-1 B)^(-1/2), and det(B' V^-1 B) = const det(A V A')/det V. By Cauchy and Binet det(A V A')
   is a sum of products of variances with positive coefficients, so its logarithm is convex in ln v and lies above its
   tangent at any v0: ln det(A V A') >= ln det(A V0 A') + sum_i leverage_i (ln V_i - ln v0_i), where
   leverage_i = v0_i a_i'(A V0 A')^-1 a_i. With q_i = 1 - leverage_i therefore
   prod s_j(V) prod V_i^(-q_i/2) <= det(B' V0^-1 B)^(-1/2) prod v0_i^(-q_i/2).

Together w <= M = prod K_i H_i (2 pi)^(m/2) det(B' V0^-1 B)^(-1/2) prod v0_i^(-q_i/2) prod theta(sqrt(tau) s_j(1)).

Accepting proposals with chance w/M therefore draws from the target itself. Where M is too large, proposals are thinned:
they pass with a chance of min(1, w/cap) for a cap that few weights exceed, and those that pass feed a Metropolis chain
with what remains of their weights, max(1, w/cap) (``native/general_chains.c``). It forgets where it was each time it
moves.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.driving import run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import RowsTask, Words, new_state
from keepsum.sampling.core.rng import Rng, Stream
from keepsum.sampling.core.rng import rng as new_rng
from keepsum.sampling.general.kernel_arguments import (
    CHAIN_STATE,
    FLOOR,
    ChainRoom,
    MixtureRoom,
    MixtureTables,
    MixtureTask,
)
from keepsum.sampling.general.mixture_bounds import MixtureBounds, Rounding, coordinate_rounding
from keepsum.sampling.general.scales import (
    SHARP,
    ScaleLaw,
    Slabs,
    fixed_scale,
    leverages,
    log_ratios,
    pack_scales,
    scale_law,
    typical_variances,
)
from keepsum.sampling.general.weights import Renewal

weigh = Kernel("weigh", Words, CHAIN_STATE, MixtureTables, MixtureTask)

MULTIPLICATIONS_PER_CELL = 40  # of a factor, in the time that a cell takes
TAUS = (0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, 1.2)
STRETCHES = (1.0, 1.1, 1.2)
WORTH = 1.01  # a step of the search must gain so much
PLACES = 6  # that a search looks at, about
FEWEST_SEEN, MOST_SEEN = 500, 50_000  # proposals of a pilot
PASSED = 50  # candidates from which their number per proposal is told
CONFIRMED = 5 * 10**6  # what proposals cost that show again how many pass, at least
SAME = 9  # exponents that agree to so many decimals are one: they are rounded, and bounds take that into account


@dataclass(frozen=True, eq=False)
class Proposals(ABC):
    """Proposals of region sums on a lattice, with their weights.

    Parameters
    ----------
    slabs
        The lattice.
    """

    slabs: Slabs

    @property
    @abstractmethod
    def cost(self) -> int:
        """What a proposal costs, in cells drawn freely."""

    @property
    @abstractmethod
    def rounding(self) -> Rounding:
        """What float64 does to draws."""

    @property
    @abstractmethod
    def tables(self) -> MixtureTables:
        """What the kernels read."""

    @property
    def words_per_proposal(self) -> int:
        """What a proposal takes: a word for each region and coordinate, and one to accept it by."""
        return len(self.slabs.order) + self.slabs.dimension + 1

    def room(self) -> MixtureRoom:
        """Room for the proposals of one worker."""
        regions, size = len(self.slabs.order), self.slabs.size
        stacked = (self.slabs.drawn if self.slabs.slabs > 1 else 0, size, size)
        square = (size, size) if self.slabs.slabs > 1 else (0, 0)
        return MixtureRoom(
            squares=np.zeros(regions),
            variances=np.zeros(regions),
            precisions=np.zeros(stacked),
            form=np.zeros((size, size)),
            inverse=np.zeros(square),
            sums=np.zeros(square),
            roots=np.zeros(size),
            centres=np.zeros(size),
            coordinates=np.zeros(size),
            passed=np.zeros(size),
        )

    def propose(self, count: int, stream: Stream) -> tuple[IntArray, Floats]:
        """Independent proposals, one row each in the order of the slabs, and their log weights."""
        out = np.empty((count, len(self.slabs.order)), dtype=np.int64)
        room = self.chain_room(count)
        run(weigh, stream, self.tables, RowsTask(0, count, out, room), states=new_state(CHAIN_STATE))
        return out, room.log_weights

    def chain_room(self, log_weights: int) -> ChainRoom:
        """Room for one worker: for proposals, and for so many of their log weights."""
        return ChainRoom(self.room(), np.empty(log_weights), np.empty(len(self.slabs.order), dtype=np.int64))

    def _cost(self, width: float) -> int:
        """Regions, coordinates that are drawn along a law of that width, and the factor."""
        along = int((7 + width / 16) * self.slabs.dimension)
        return 2 * len(self.slabs.order) + along + self.slabs.multiplications // MULTIPLICATIONS_PER_CELL


@dataclass(frozen=True, eq=False)
class Mixture(Proposals):
    """Proposals of the scale mixture, for l1 Laplace noise.

    Parameters
    ----------
    slabs
        The lattice.
    epsilons
        The epsilon of each region, in the order of the slabs.
    sizes
        The number of cells of each region, in the order of the slabs.
    exponents
        The q of each region: 1 less its leverage.
    tau
        The variance below which the exponents no longer act.
    stretch
        By how much the exponents are raised, at least 1: a chain may accept more with a little more than the bound's
        own. Weights stay bounded, by tau^(-(stretch - 1) q/2) more for each region.
    """

    epsilons: Floats
    sizes: IntArray
    exponents: Floats
    tau: float
    stretch: float = 1.0

    @classmethod
    def of(
        cls, epsilon: float | Floats, slabs: Slabs, matrix: sparse.csr_array, sizes: IntArray, tau: float
    ) -> Mixture:
        """For totals over regions; ``sizes``, and epsilons if there are several, in the order of the columns."""
        epsilons = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), len(sizes))
        exponents = 1 - leverages(matrix, typical_variances(epsilons, sizes))[slabs.order]
        rounded = np.asarray(np.round(np.clip(exponents, 0.0, 1.0), SAME), dtype=np.float64)
        return cls(slabs, epsilons[slabs.order], sizes[slabs.order], rounded, tau)

    def at(self, tau: float, stretch: float = 1.0) -> Mixture:
        """The same with another threshold."""
        return replace(self, tau=tau, stretch=stretch)

    @property
    def cost(self) -> int:
        """What a proposal costs, in cells drawn freely."""
        return self._cost(math.sqrt(float(typical_variances(self.epsilons[:1], self.sizes[:1])[0])))

    @cached_property
    def _laws(self) -> tuple[list[ScaleLaw], IntArray]:
        """The different laws, and the number of each region's. Exponents that agree to 1e-12 are one."""
        each = zip(self.epsilons.tolist(), self.sizes.tolist(), self.exponents.tolist(), strict=True)
        keys = [(epsilon, n, round(q, 12)) for epsilon, n, q in each]
        distinct = sorted(set(keys))
        place = {key: n for n, key in enumerate(distinct)}
        laws = [scale_law(epsilon, n, q * self.stretch, self.tau) for epsilon, n, q in distinct]
        return laws, np.array([place[key] for key in keys], dtype=np.int64)

    @cached_property
    def _ratios(self) -> list[Floats]:
        kinds = list(zip(self.epsilons.tolist(), self.sizes.tolist(), strict=True))
        known = {kind: log_ratios(*kind) for kind in set(kinds)}
        laws, law = self._laws
        return [known[kinds[np.flatnonzero(law == k)[0]]] for k in range(len(laws))]

    @cached_property
    def tables(self) -> MixtureTables:
        """What the kernels read."""
        laws, law = self._laws
        return MixtureTables(pack_scales(laws, self._ratios), self.slabs.tables(law), self.words_per_proposal)

    @cached_property
    def bounds(self) -> MixtureBounds:
        """What is proved of its weights and of its draws."""
        if self.tau < FLOOR or self.stretch < 1:
            raise AssertionError("the proof needs a threshold above the floor, and no smaller exponents")
        laws, law = self._laws
        fields = (self.slabs, self.epsilons, self.sizes, self.exponents, self.tau, self.stretch)
        return MixtureBounds(*fields, laws, law, self._ratios)

    @cached_property
    def log_bound(self) -> float:
        """Ln M, and the rounding of a log weight: no weight that is computed is larger (the module has the proof).

        Infinite where floats do not prove it.
        """
        return self.bounds.log_bound + self.bounds.rounding.relative

    @property
    def rounding(self) -> Rounding:
        """What float64 does to draws."""
        return self.bounds.rounding


@dataclass(frozen=True, eq=False)
class OneWidth(Proposals):
    """Proposals for Gaussian noise, cell by cell: one variance for all in the place of a mixture.

    The weights are prod_j rho_{s_j}(Z - c_j), nearly constant for wide noise. For narrow noise they vary too much for
    the exact sampler (``sampling/gaussian/sums.py``), which knows no better bound than their largest value.
    """

    variance: float

    @property
    def cost(self) -> int:
        """What a proposal costs, in cells drawn freely."""
        return self._cost(math.sqrt(self.variance))

    @cached_property
    def tables(self) -> MixtureTables:
        """What the kernels read."""
        scales = pack_scales([fixed_scale(self.variance)], [np.zeros(0)])
        law = np.zeros(len(self.slabs.order), dtype=np.int64)
        return MixtureTables(scales, self.slabs.tables(law), self.words_per_proposal)

    @property
    def rounding(self) -> Rounding:
        """What float64 does to draws.

        The width is spread over its last digits, by SHARP of itself. The mean of the form is at most the dimension m,
        so that the law moves by at most m SHARP.
        """
        terms = 3 * (len(self.slabs.order) + self.slabs.dimension)
        coordinates = coordinate_rounding(self.slabs, terms, 64.0, self.variance, self.variance * (1 + 4 * SHARP))
        return replace(coordinates, lost=self.slabs.dimension * SHARP)


@dataclass(frozen=True)
class Tuned:
    """A mixture with its threshold chosen, and the log weights of a pilot's proposals."""

    mixture: Mixture
    log_weights: Floats

    @property
    def acceptance(self) -> float:
        """The acceptance rate of a chain that sees all proposals."""
        return Renewal.of(self.log_weights).acceptance


def tune(mixture: Mixture, rng: Rng, budget: int) -> Tuned:
    """Choose the threshold and the stretch that accept most, by a pilot that costs about ``budget`` in all.

    A quarter of it goes to a search, one step at a time to where it no longer pays, always with the same words, so that
    chance does not decide; the rest to what was chosen.
    """
    search = max(40, min(2000, budget // (4 * PLACES * mixture.cost)))
    known: dict[tuple[int, int], float] = {}

    def accepted(place: tuple[int, int]) -> float:
        if place not in known:
            proposals = mixture.at(TAUS[place[0]], STRETCHES[place[1]])
            _, log_weights = proposals.propose(search, new_rng(seed="keepsum search").stream())
            known[place] = Renewal.of(log_weights).acceptance
        return known[place]

    best = _usual_place(float(np.median(mixture.epsilons)))
    for direction in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 0), (-1, 0)):
        while True:
            following = (best[0] + direction[0], best[1] + direction[1])
            if not (0 <= following[0] < len(TAUS) and 0 <= following[1] < len(STRETCHES)):
                break
            if accepted(following) < accepted(best) * WORTH:
                break
            best = following
    chosen = mixture.at(TAUS[best[0]], STRETCHES[best[1]])
    seen = max(FEWEST_SEEN, min(MOST_SEEN, 3 * budget // (4 * mixture.cost)))
    return Tuned(chosen, chosen.propose(seen, rng.stream())[1])


def _usual_place(epsilon: float) -> tuple[int, int]:
    """Where a search starts: the threshold and the stretch that most blocks have at this epsilon."""
    if epsilon < 0.5:
        return TAUS.index(0.07), STRETCHES.index(1.1)
    return TAUS.index(0.14 if epsilon < 1.5 else 0.8), STRETCHES.index(1.0)


def tries(proposals: Proposals, log_cap: float, rng: Rng) -> float:
    """How many proposals there are for one that passes the cap.

    They are counted until fifty have passed, and for some hundredths of a second; or fifty thousand times. Whoever
    makes a chain counts its proposals here, always the same: what a cache says of them is not taken over.
    """
    stream, weights = rng.stream(), np.zeros(0)
    count = max(200, min(5000, CONFIRMED // proposals.cost))
    passed = 0.0
    while passed < PASSED and len(weights) < MOST_SEEN:
        _, log_weights = proposals.propose(count, stream)
        weights = np.append(weights, log_weights)
        passed = float(np.exp(np.minimum(weights - log_cap, 0.0)).sum()) if log_cap > -math.inf else float(len(weights))
    return len(weights) / passed if passed > 0 else math.inf

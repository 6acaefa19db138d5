"""l1 Laplace noise on any lattice, by a mixture of lattice Gaussians with a variance for each region.

e^(-eps |z|) is a mixture of e^(-z^2/2v) over v (``scales.py``). So propose a variance for each region, then the region
sums S as a lattice Gaussian with these variances, coordinate by coordinate (Klein): coordinate j is a discrete
Gaussian of width s_j around c_j. On the pairs (v, S) the wanted law over the proposed one is the *weight*

    w = prod_i t_i(v_i)/g_i(v_i) e^(-S_i^2/2v_i + S_i^2/2f_i) h_i(S_i)  prod_j rho_{s_j}(Z - c_j),

t the wanted density of variances, g the one drawn from, f = max(v, FLOOR) the variances with which S is drawn, h <= H
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

Accepting proposals with chance w/M therefore draws from the law itself. Where M is too large, proposals pass with a
chance of min(1, w/cap) for a cap that few weights exceed, and those that pass feed a Metropolis chain with what is left
of their weights, max(1, w/cap) (``chain_kernels.py``). It forgets where it was each time it moves.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum.sampling.kernel_tables import MixtureRoom, ScaleTables, SlabTables
from keepsum.sampling.mixture_kernels import FLOOR, weigh
from keepsum.sampling.renewal import Renewal
from keepsum.sampling.rng import Rng, Stream
from keepsum.sampling.rng import rng as new_rng
from keepsum.sampling.scales import CUT, ScaleLaw, fixed_scale, log_ratios, pack_scales, scale_law, shape_for
from keepsum.sampling.slabs import Slabs, leverages, log_volume

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

TAUS = (0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, 1.2)
STRETCHES = (1.0, 1.05, 1.1, 1.2, 1.3)
WORTH = 1.005  # a step of the search must gain so much
SLACK = 1e-6  # added to ln M for the rounding of its own terms
CHUNK = 2**16  # words taken at a time


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
    def tables(self) -> tuple[ScaleTables, SlabTables]:
        """What the kernels read."""

    @property
    def words(self) -> int:
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
        scales, slabs = self.tables
        room = self.room()
        out = np.empty((count, len(self.slabs.order)), dtype=np.int64)
        log_weights = np.empty(count)
        step = max(1, CHUNK // self.words)
        for first in range(0, count, step):
            own = slice(first, min(first + step, count))
            words = stream.take(self.words * (own.stop - own.start))
            weigh(words, self.words, scales, slabs, room, out[own], log_weights[own])
        return out, log_weights

    def _cost(self, width: float) -> int:
        """Regions, coordinates that are drawn along a law of that width, and the factor."""
        along = int((7 + width / 16) * self.slabs.dimension)
        return 2 * len(self.slabs.order) + along + self.slabs.multiplications // 15


@dataclass(frozen=True, eq=False)
class Mixture(Proposals):
    """Proposals of the scale mixture, for l1 Laplace noise.

    Parameters
    ----------
    slabs
        The lattice.
    epsilon
        The privacy loss per unit of l1 distance.
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

    epsilon: float
    sizes: IntArray
    exponents: Floats
    tau: float
    stretch: float = 1.0

    @classmethod
    def of(cls, epsilon: float, slabs: Slabs, matrix: sparse.csr_array, sizes: IntArray, tau: float) -> Mixture:
        """For totals over regions; ``sizes`` in the order of the columns of the matrix."""
        own = sizes[slabs.order]
        exponents = 1 - leverages(matrix, typical_variances(epsilon, sizes))[slabs.order]
        return cls(slabs, epsilon, own, np.clip(exponents, 0.0, 1.0), tau)

    def at(self, tau: float, stretch: float = 1.0) -> Mixture:
        """The same with another threshold."""
        return replace(self, tau=tau, stretch=stretch)

    @property
    def cost(self) -> int:
        """What a proposal costs, in cells drawn freely."""
        return self._cost(math.sqrt(float(typical_variances(self.epsilon, self.sizes[:1])[0])))

    @cached_property
    def _laws(self) -> tuple[list[ScaleLaw], IntArray]:
        """The different laws, and the number of each region's. Exponents that agree to 1e-12 are one."""
        keys = [(n, round(q, 12)) for n, q in zip(self.sizes.tolist(), self.exponents.tolist(), strict=True)]
        distinct = sorted(set(keys))
        place = {key: n for n, key in enumerate(distinct)}
        laws = [scale_law(self.epsilon, n, q * self.stretch, self.tau) for n, q in distinct]
        return laws, np.array([place[key] for key in keys], dtype=np.int64)

    @cached_property
    def _ratios(self) -> list[Floats]:
        known = {n: log_ratios(self.epsilon, n) for n in np.unique(self.sizes).tolist()}
        _, law = self._laws
        return [known[int(self.sizes[np.flatnonzero(law == k)[0]])] for k in range(len(self._laws[0]))]

    @cached_property
    def tables(self) -> tuple[ScaleTables, SlabTables]:
        """What the kernels read."""
        laws, law = self._laws
        return pack_scales(self.epsilon, laws, self._ratios), self.slabs.tables(law)

    @cached_property
    def log_bound(self) -> float:
        """Ln M: no weight is larger (see the module's text for the proof)."""
        if self.tau < FLOOR or self.stretch < 1:
            raise AssertionError("the proof needs a threshold above the floor, and no smaller exponents")
        laws, law = self._laws
        variances = typical_variances(self.epsilon, self.sizes)
        highest = np.array([max(0.0, own.max(initial=0.0)) for own in self._ratios])
        regions = np.array([own.log_bound for own in laws])[law] + highest[law]
        widths = self.slabs.widths() * math.sqrt(self.tau)
        tangent = log_volume(self.slabs, variances) - float((self.exponents * np.log(variances)).sum()) / 2
        roots = self.slabs.dimension * math.log(2 * math.pi) / 2
        raised = -(self.stretch - 1) * float(self.exponents.sum()) * math.log(self.tau) / 2
        return float(regions.sum()) + tangent + roots + raised + float(_log_theta(widths).sum()) + SLACK

    @property
    def log_weight_error(self) -> float:
        """A bound of the rounding of a log weight.

        It is a sum of N terms, three for each region and each coordinate, each of at most X in size and right to 4
        units in the last place: N X 4u for the terms and N^2 X u for adding them up, u = 2^-53. X is that of the terms
        (2 n - 2) ln y and eps^2 y^2/2 of a region at the widest y that is drawn with a chance above e^-CUT, and at
        least 64. (Proposals with a larger term are less likely than e^-40, or accepted with no larger chance.)
        """
        terms = 3 * (len(self.sizes) + self.slabs.dimension)
        power = 2 * (shape_for(self.epsilon, int(self.sizes.max())) - 1)
        widest = self._widest
        largest = max(64.0, power * abs(math.log(widest)) + power * CUT, (self.epsilon * widest) ** 2 / 2)
        # Laws of sums are products of as many ratios as they have entries, each right to 8 units.
        tabulated = sum(len(own) for own in self._ratios) and max(len(own) for own in self._ratios)
        return (terms**2 + 4 * terms) * largest * 2.0**-53 + len(self.sizes) * tabulated * 8 * 2.0**-53

    @property
    def _widest(self) -> float:
        """The root of the largest variance that is drawn with a chance above e^-CUT."""
        power = 2 * (shape_for(self.epsilon, int(self.sizes.max())) - 1)
        return (math.sqrt(power + 1) + math.sqrt(2 * CUT)) / self.epsilon

    def rounding(self, acceptance: float) -> float:
        """A bound of the total variation that float64 adds to a draw by rejection.

        A weight that is right to a factor e^(+-E) changes the law of accepted draws by at most 2E in total variation. A
        draw by inversion takes a number of 53 bits and compares it with cumulated weights that have been rounded once
        for each term, at most 20 s + 18 terms for a width s: a miss by that much hits the wrong value with a chance of
        2^-52 for each term. Widths are at most s_j(1) times the root of the largest variance. A proposal has one such
        draw for each coordinate, and for each region one with a search, a logarithm and few roundings (8); sums beyond
        e^-SPREAD of the likeliest are left out, less than two roundings; the number that it is accepted by has 53 bits
        too. Proposals are made 1/acceptance times for a draw.
        """
        widths = 20 * self.slabs.widths() * self._widest + 18
        misses = (10 * len(self.sizes) + float(widths.sum()) + 1) * 2.0**-52
        return 2 * self.log_weight_error + misses / acceptance


@dataclass(frozen=True, eq=False)
class OneWidth(Proposals):
    """Proposals for Gaussian noise, cell by cell: one variance for all in the place of a mixture.

    The weights are prod_j rho_{s_j}(Z - c_j), nearly constant for wide noise. For narrow noise they vary too much for
    the exact sampler (``lattice_gaussian.py``), which knows no better bound than their largest value.
    """

    variance: float

    @property
    def cost(self) -> int:
        """What a proposal costs, in cells drawn freely."""
        return self._cost(math.sqrt(self.variance))

    @cached_property
    def tables(self) -> tuple[ScaleTables, SlabTables]:
        """What the kernels read."""
        scales = pack_scales(0.0, [fixed_scale(self.variance)], [np.zeros(0)])
        return scales, self.slabs.tables(np.zeros(len(self.slabs.order), dtype=np.int64))


def typical_variances(epsilon: float, sizes: IntArray) -> Floats:
    """The mean variance of each region's mixture."""
    return np.array([2 * shape_for(epsilon, n) / epsilon**2 for n in sizes.tolist()])


def _log_theta(widths: Floats) -> Floats:
    """Ln of the sum over k of e^(-2 pi^2 s^2 k^2), by whichever sum is short."""
    k = np.arange(1, 40)
    dual = 1 + 2 * np.exp(-2 * np.pi**2 * np.outer(widths**2, k**2)).sum(axis=1)
    direct = (1 + 2 * np.exp(-np.outer(1 / (2 * widths**2), k**2)).sum(axis=1)) / (math.sqrt(2 * math.pi) * widths)
    return np.asarray(np.log(np.where(widths > 0.4, dual, direct)))


@dataclass(frozen=True)
class Tuned:
    """A mixture with its threshold chosen, the log weights of a pilot's proposals, and the mean square of a sum."""

    mixture: Mixture
    log_weights: Floats
    mean_square: float

    @property
    def acceptance(self) -> float:
        """The share of all proposals that a chain would accept."""
        return Renewal.of(self.log_weights).acceptance


def tune(mixture: Mixture, rng: Rng, budget: int) -> Tuned:
    """Choose the threshold and the stretch that accept most, by a pilot that costs about ``budget`` in all.

    Half of it goes to a search, one step at a time from the middle to where it no longer pays, always with the same
    words, so that chance does not decide; the rest to what was chosen.
    """
    search = max(20, min(2000, budget // (2 * 8 * mixture.cost)))
    known: dict[tuple[int, int], float] = {}

    def accepted(place: tuple[int, int]) -> float:
        if place not in known:
            proposals = mixture.at(TAUS[place[0]], STRETCHES[place[1]])
            _, log_weights = proposals.propose(search, new_rng(seed="keepsum search").stream())
            known[place] = Renewal.of(log_weights).acceptance
        return known[place]

    best = (3 if mixture.epsilon < 0.5 else 5, 0)
    for direction in ((1, 0), (-1, 0), (0, 1), (1, 0), (-1, 0)):
        while True:
            following = (best[0] + direction[0], best[1] + direction[1])
            if not (0 <= following[0] < len(TAUS) and following[1] < len(STRETCHES)):
                break
            if accepted(following) < accepted(best) * WORTH:
                break
            best = following
    chosen = mixture.at(TAUS[best[0]], STRETCHES[best[1]])
    final = max(200, min(50_000, budget // (2 * mixture.cost)))
    sums, log_weights = chosen.propose(final, rng.stream())
    weights = np.exp(log_weights - log_weights.max())
    squares = float(weights @ (sums.astype(np.float64) ** 2).mean(axis=1) / weights.sum())
    return Tuned(chosen, log_weights, squares)

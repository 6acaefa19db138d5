"""What is proved of proposals from the scale mixture: their largest weight, their acceptance, and their scales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_UP, Context
from functools import cached_property

import numpy as np
import numpy.typing as npt
from flint import arb

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.balls import precision
from keepsum.sampling.general.kernel_arguments import FLOOR
from keepsum.sampling.general.scales import (
    UNIT,
    ScaleLaw,
    Slabs,
    VerifiedForm,
    log_ratio_error,
    log_sum_law,
    log_tail,
    typical_variances,
)

# What is proved of the laws of scales, as the kernels read them.
#
# How far the target density rises above them is enclosed in ball arithmetic.


ENCLOSURE_BITS = 96


def log_excess(law: ScaleLaw, doubt: float = 0.0) -> float:
    """At least ln of t(y) max(v, tau)^(q/2) / g(y) for all y > 0 and all q >= 0 within ``doubt`` of the law's exponent.

    On a piece with the line h + s (y - e), and with a the power of y, the logarithm is a constant plus
    f(y) = -eps^2 y^2/2 + a ln y - s y. That is concave, so it lies below its tangent at any place y0, and is at most
    f(y0) plus f'(y0) times how far an end of the piece is. Taken where f' is nearly 0 that is right to the last digits,
    though nothing depends on it. The last piece has no end: there f'(y0) < 0 is shown. Where the density bends, at
    v = tau, a piece ends; if that is beyond the last edge, the tail is cut in two there.

    Floats leave out pieces that are lower than the highest by more than the doubt and 2^-40 of the largest term, a
    thousand times what floats err by.
    """
    pieces = _pieces(law, doubt)
    possible = pieces[_may_be_highest(law, doubt, *pieces.T)].tolist()
    with precision(ENCLOSURE_BITS):
        return max(above(_highest(law, doubt, *piece)) for piece in possible)


def _pieces(law: ScaleLaw, doubt: float) -> Floats:
    """For each piece its ends, the edge, height and slope of its line, and where about it is highest."""
    root = math.sqrt(law.tau)
    ends = np.append(law.edge[1:], math.inf)
    pieces = np.column_stack([law.edge, ends, law.edge, law.height, law.slope])
    if law.edge[-1] < root:
        pieces = np.vstack([pieces, pieces[-1]])
        pieces[-2, 1] = pieces[-1, 0] = root
    low, high, slope = pieces[:, 0], pieces[:, 1], pieces[:, 4]
    power = law.power + law.exponent * (low >= root)
    power[-1] += doubt
    reach = np.sqrt(slope**2 + 8 * law.half * power)
    top = np.where(slope <= 0, (reach - slope) / (4 * law.half), 2 * power / (np.abs(slope) + reach))
    top = np.clip(top, low, high)
    # In a piece without end a place behind the top: it falls from there on, however it was rounded.
    top[-1] *= 1 + 2.0**-30
    return np.column_stack([pieces, top])


def about_log_excess(law: ScaleLaw) -> float:
    """The same as ``log_excess`` in floats, for comparisons that prove nothing."""
    heights, _ = _heights(law, 0.0, *_pieces(law, 0.0).T)
    return float(heights.max())


def _may_be_highest(law: ScaleLaw, doubt: float, *columns: Floats) -> npt.NDArray[np.bool_]:
    heights, doubts = _heights(law, doubt, *columns)
    return np.asarray((heights + doubts >= (heights - doubts).max()) | (columns[1] == math.inf))


def _heights(law: ScaleLaw, doubt: float, *columns: Floats) -> tuple[Floats, Floats]:
    """The logarithm at the top of each piece in floats, and what it may be off by."""
    low, high, edge, height, slope, top = columns
    inside = low < math.sqrt(law.tau)
    logs = np.log(np.where(top > 0, top, 1.0))
    level = math.log(law.tau) / 2
    terms = np.array(
        [
            -law.half * top**2,
            law.power * logs,
            law.exponent * np.where(inside, level, logs),
            -height,
            -slope * (top - edge),
        ]
    )
    farthest = np.where(inside, abs(level), np.abs(np.log(np.maximum([low, high], math.sqrt(law.tau)))).max(axis=0))
    doubts = doubt * np.where(farthest < math.inf, farthest, 0.0) + 2.0**-40 * np.abs(terms).sum(axis=0)
    return np.asarray(terms.sum(axis=0)), np.asarray(doubts)


def _highest(
    law: ScaleLaw, doubt: float, low: float, high: float, edge: float, height: float, slope: float, top: float
) -> arb:
    """At least the logarithm on one piece."""
    half, exponent, y = arb(law.half), arb(law.exponent, doubt), arb(top)
    # sqrt(tau) is no float: ln max(v, tau)/2 lies between these two below the root, and that near to ln y above it.
    root = math.sqrt(law.tau)
    bend, threshold = arb(root).log(), arb(law.tau).log() / 2
    power, level = arb(law.power), exponent * bend.union(threshold)
    if low >= root:
        power, level = power + exponent, exponent * (threshold - bend).union(arb(0))
    falls = -2 * half * y - arb(slope)
    value = level - half * y * y - arb(height) - arb(slope) * (y - arb(edge))
    if low >= root or law.power:
        falls += power / y
        value += power * y.log()
    if high < math.inf:
        return value + (falls * (arb(low) - y)).max(falls * (arb(high) - y))
    if not falls < 0:
        raise AssertionError("the density of a scale falls faster than its tail in the end")
    return value + falls * (arb(low) - y)


def mass_defect(law: ScaleLaw) -> float:
    """At most so much of what is drawn is not from the density e^(height + slope (y - edge)): rounded masses.

    Each mass is a product of four numbers that are right to 4 units.
    """
    rise = law.slope[:-1] * np.diff(law.edge)
    masses = np.exp(law.height) * np.append(np.expm1(rise), -1.0) / law.slope
    return float(np.abs(np.diff(law.passed, append=1.0) - masses).sum()) + 32 * 2.0**-53 * float(masses.sum())


def mean_square(law: ScaleLaw) -> float:
    """At least the mean of y^2: that of the upper edges, and of an exponential tail."""
    fall = -float(law.slope[-1])
    chances = np.diff(law.passed, append=1.0)
    end = float(law.edge[-1])
    tail = end**2 + 2 * end / fall + 2 / fall**2
    return float((chances[:-1] * law.edge[1:] ** 2).sum() + (chances[-1] + mass_defect(law)) * tail) * (1 + 2.0**-40)


def above(number: arb) -> float:
    """A float that is at least as large."""
    return float(np.nextafter(float(number.upper()), math.inf))


# What is proved of proposals from the scale mixture: their largest weight, their acceptance rate, what floats do.
#
# docs/general.md has the proofs; here are the numbers, every one of them on the safe side. Nothing comes from a
# pilot.


SPARE = 2.0**-40  # of any logarithm that is worked out in floats: a thousand times what it errs by
SEVERAL = 40.0  # what is less likely than e^-40 is left aside, and counted
REACH = 10.0  # a Gaussian has less than e^-50 beyond so many standard deviations


@dataclass(frozen=True)
class Rounding:
    """What float64 does to draws.

    Attributes
    ----------
    relative
        A bound of the error of ln of a proposal's density times its weight.
    lost
        A total variation by which the law drawn from differs, however it is drawn from.
    misses
        The chance that a proposal is not the one that real numbers would give, at most.
    """

    relative: float
    lost: float
    misses: float

    def by_rejection(self, acceptance: float) -> float:
        """The total variation of an accepted draw from the law: a density right to e^(+-2 E) is off by so much."""
        return self._law + self.misses / acceptance if acceptance > 0 else 1.0

    def by_chain(self, proposals: float) -> float:
        """The same for a draw that sees so many proposals, on average: each of them may be missed."""
        return self._law + self.misses * proposals

    @property
    def _law(self) -> float:
        return math.expm1(2 * self.relative) / 2 + self.lost if self.relative < 0.1 else 1.0


def stated(bound: float) -> float:
    """A bound as it is stated: two digits, rounded up, so that the last digits of a machine do not show; at most 1.

    >>> stated(1.203e-9), stated(0.0), stated(7.0)
    (1.3e-09, 0.0, 1.0)
    """
    short = Context(prec=2, rounding=ROUND_UP).create_decimal(repr(float(bound)))
    return min(1.0, float(short))


def coordinate_rounding(slabs: Slabs, terms: int, largest: float, least: float, most: float) -> Rounding:
    """What floats do to a proposal's coordinates and to its weight, whose ``terms`` have at most the ``largest`` size.

    ``least`` is the smallest variance of a region, ``most`` the largest mean of one. The squared width of a coordinate
    is a concave function of the variances (the least of some linear ones, by Gauss and Markov) that grows with them, so
    its mean is at most the one at their means.
    """
    low, high = slabs.width_bounds
    # A coordinate's weights by recurrence, their sum, and its grid of cumulated weights (docs/general.md).
    drawn = float((1400 + 48 / (least * low**2)).sum()) * UNIT
    grid = float((20 * high * math.sqrt(most) + 18).sum()) * 2 * UNIT
    weight = (terms**2 + 48 * terms) * largest * UNIT
    return Rounding(weight + drawn, 0.0, grid + 256 * UNIT + terms * math.exp(-SEVERAL))


@dataclass(frozen=True, eq=False)
class MixtureBounds:
    """The bounds of a mixture.

    Parameters
    ----------
    slabs, epsilons, sizes, exponents, tau, stretch
        Those of the mixture.
    laws, law
        Its different laws of scales, and which of them each region has.
    ratios
        The law of sums over its mixture, for each of the laws.
    """

    slabs: Slabs
    epsilons: Floats
    sizes: IntArray
    exponents: Floats
    tau: float
    stretch: float
    laws: list[ScaleLaw]
    law: IntArray
    ratios: list[Floats]

    @cached_property
    def _kinds(self) -> list[tuple[float, int]]:
        """The epsilon and the size of each region."""
        return list(zip(self.epsilons.tolist(), self.sizes.tolist(), strict=True))

    @cached_property
    def _variances(self) -> Floats:
        return typical_variances(self.epsilons, self.sizes)

    @cached_property
    def _form(self) -> VerifiedForm | None:
        return self.slabs.form(self._variances)

    @cached_property
    def _shares(self) -> tuple[Floats, Floats]:
        """Below and above 1 less the leverage of each region: b' (B' V0^-1 B)^-1 b / v0."""
        low, high = (self._form or _unproved()).quadratic(self.slabs.full_basis())
        return low / self._variances * (1 - 4 * UNIT), np.minimum(1.0, high / self._variances * (1 + 4 * UNIT))

    @cached_property
    def _excess(self) -> Floats:
        """For each law ln K: with the exponents as they are exactly, which floats know to a few digits less."""
        low, high = self._shares
        used = np.array([law.exponent for law in self.laws])[self.law] / self.stretch
        doubt = np.maximum(high - used, used - low) * self.stretch + 8 * UNIT
        worst = np.zeros(len(self.laws))
        np.maximum.at(worst, self.law, np.maximum(doubt, 0.0))
        return np.array([log_excess(law, slip) for law, slip in zip(self.laws, worst.tolist(), strict=True)])

    @cached_property
    def _highest(self) -> Floats:
        """For each law ln H: how far the law of sums rises above its mixture, floats included."""
        highest = np.array([max(0.0, ratios.max(initial=0.0)) for ratios in self.ratios])
        slips = np.zeros(len(self.laws))
        np.maximum.at(slips, self.law, [log_ratio_error(epsilon, n) for epsilon, n in self._kinds])
        return highest + slips

    @cached_property
    def log_bound(self) -> float:
        """Ln M, proved; infinite where floats do not prove that the form is positive definite."""
        if self._form is None:
            return math.inf
        shares, logs = self._shares, np.log(self._variances)
        widths, _ = self.slabs.width_bounds
        parts = [
            *(self._excess + self._highest)[self.law].tolist(),
            self._form.log_volume[1],
            *np.maximum(-shares[0] * logs / 2, -shares[1] * logs / 2).tolist(),
            self.slabs.dimension * math.log(2 * math.pi) / 2,
            -(self.stretch - 1) * float(shares[1 if self.tau < 1 else 0].sum()) * math.log(self.tau) / 2,
            *log_theta_sum(widths * math.sqrt(self.tau)).tolist(),
        ]
        enclosed, others = parts[: len(self.law)], parts[len(self.law) :]
        return math.fsum(parts) + 4 * UNIT * math.fsum(map(abs, enclosed)) + SPARE * math.fsum(map(abs, others))

    def about_log_bound(self, widths: Floats, log_volume: float) -> float:
        """About ln M, in floats that prove nothing: to choose a threshold, and to see what is out of reach.

        ``widths`` are those at variances of 1, ``log_volume`` is -1/2 ln det(B' V0^-1 B).
        """
        excess = np.array([about_log_excess(law) for law in self.laws]) + self._highest
        used = np.array([law.exponent for law in self.laws])[self.law]
        thetas = log_theta_sum(widths * math.sqrt(self.tau))
        half = self.slabs.dimension * math.log(2 * math.pi) / 2 + log_volume
        return float(excess[self.law].sum() - (used * np.log(self._variances)).sum() / 2 + thetas.sum() + half)

    @cached_property
    def log_acceptance(self) -> float:
        """At most ln of the mean of w/M: the sum of the law's weights over the lattice, over M.

        That sum is at least the weight of 0. And it is at least the sum of any product of mixtures of Gaussians below
        the law, of which Poisson summation and an inequality of Jensen's or Gibbs' give lower bounds (docs/general.md).
        """
        if self._form is None:
            return -math.inf
        return self.log_whole * (1 - SPARE) + max(0.0, self._log_sum()) - self.log_bound - 1e-6

    @property
    def log_whole(self) -> float:
        """Ln of the product of the integrals of the t_i: a mean weight is that times the sum of the law's weights."""
        from scipy.special import gammaln  # slow to import

        powers = np.array([law.power for law in self.laws])[self.law] + 1
        logs = np.array([math.log(2 / epsilon**2) for epsilon, _ in self._kinds])
        whole = gammaln(powers / 2) + powers / 2 * logs - math.log(2)
        return float(whole.sum())

    @property
    def acceptance(self) -> float:
        """At most the acceptance rate of rejection."""
        return math.exp(self.log_acceptance)

    def _log_sum(self) -> float:
        """At most ln of the sum over the lattice of the law's weights, that of 0 being 1."""
        offsets, cut = np.array([_below_law(epsilon, n) for epsilon, n in self._kinds]).T
        if not cut.sum() < 0.5:
            return -math.inf
        return max(self._by_variances(offsets), self._by_sums(offsets)) + math.log1p(-float(cut.sum()))

    def _by_variances(self, offsets: Floats) -> float:
        """Jensen's inequality for det(A V A')^(-1/2) as a function of the variances: good where few totals overlap."""
        from scipy.special import kve

        lifted, single = np.where(offsets > 0, offsets, 1.0), offsets == 0
        # The integral of e^(A - sqrt(A^2 + eps^2 x^2)), and its mean square.
        whole = np.where(single, 1.0, lifted * kve(1, lifted)) * 2 / self.epsilons
        squares = np.where(single, 2.0, lifted * kve(2, lifted) / kve(1, lifted)) / self.epsilons**2
        # Exponential laws may be taken with other means than their own, at the price of a divergence.
        change = np.where(single, 1 - (len(offsets) - self.slabs.dimension) / (2 * len(offsets)), 1.0)
        form = self.slabs.form(squares * change)
        if form is None:
            return -math.inf
        regions = np.log(whole) - np.log(2 * math.pi * squares * change) / 2 - (change - 1 - np.log(change))
        return self.slabs.dimension * math.log(2 * math.pi) / 2 + form.log_volume[0] + float(regions.sum())

    def _by_sums(self, offsets: Floats) -> float:
        """Gibbs' inequality with a Gaussian law of the sums: good where many totals overlap."""
        form, size = self._form or _unproved(), self.slabs.dimension
        deviations = np.sqrt(self._shares[1] * self._variances)
        entropy = size / 2 * (1 + math.log(2 * math.pi)) + form.log_volume[0]
        best = -math.inf
        for scale in np.geomspace(0.2, 3, 28).tolist():
            spread = self.epsilons * scale * deviations
            costs = np.minimum(math.sqrt(2 / math.pi) * spread, np.hypot(offsets, spread) - offsets)
            best = max(best, entropy + size * math.log(scale) - float(costs.sum()))
        return best

    @cached_property
    def rounding(self) -> Rounding:
        """What floats do to a draw."""
        most = FLOOR + max(mean_square(law) for law in self.laws)
        largest = max(64.0, *(_largest_term(law) for law in self.laws))
        terms = 3 * (len(self.sizes) + self.slabs.dimension)
        coordinates = coordinate_rounding(self.slabs, terms, largest, FLOOR, most)
        tables = math.fsum(log_ratio_error(epsilon, n) for epsilon, n in self._kinds)
        beyond = math.fsum(math.exp(log_tail(epsilon, n)) for epsilon, n in self._kinds if n > 1)
        defects = np.array([mass_defect(law) for law in self.laws])[self.law]
        misses = coordinates.misses + float(defects.sum())
        return Rounding(coordinates.relative + tables, beyond + self._grid, misses)

    @property
    def _grid(self) -> float:
        """That variances are drawn by numbers of 53 bits: 2^-54 of the variation of integrands (docs/general.md)."""
        from scipy.special import gammaln

        total = 0.0
        for place, law in enumerate(self.laws):
            epsilon, size = self._kinds[np.flatnonzero(self.law == place)[0]]
            power = law.power + 1
            whole = gammaln(power / 2) + power / 2 * math.log(2 / epsilon**2) - math.log(2)
            log_top = float(self._rough_excess[place]) - law.exponent * math.log(law.tau) / 2
            reach = len(self.ratios[place]) if size > 1 else REACH * float(law.edge[-1])
            share = math.exp(min(700.0, log_top - float(whole) + max(0.0, self.ratios[place].max(initial=0.0))))
            bends = 5 + len(law.edge) / 1000
            total += int((self.law == place).sum()) * bends * share * (2 * reach + 1) * UNIT / 2
        return total

    @cached_property
    def _rough_excess(self) -> Floats:
        """Ln K for the exponents that are used, for chains on lattices whose own are not worked out."""
        return np.array([log_excess(law) for law in self.laws])


def _largest_term(law: ScaleLaw) -> float:
    """The largest size of a term of a region's log weight."""
    first, last = float(law.edge[1]), float(law.edge[-1])
    return max(law.power * max(abs(math.log(first)), abs(math.log(last))), law.half * last**2)


def _below_law(epsilon: float, size: int) -> tuple[float, float]:
    """A function below the law of a region's sums, e^(A - sqrt(A^2 + eps^2 S^2)): the largest A, and what to take off.

    It is a mixture of Gaussians: the exponent is minus a Bernstein function of S^2. What lies beyond the region's table
    is at most that share of the whole (as in ``log_tail``), and the table's own error comes to it.

    >>> _below_law(1.0, 1)
    (0.0, 0.0)
    """
    if size == 1:
        return 0.0, 0.0
    fallen = -log_sum_law(epsilon, size)[1:]
    s = epsilon * np.arange(1, len(fallen) + 1)
    offset = max(0.0, float(((s**2 - fallen**2) / (2 * fallen)).min()) * (1 - SPARE))
    end = float(s[-1])
    beyond = 2 * math.exp(offset - math.hypot(offset, end)) / math.expm1(epsilon * end / math.hypot(offset, end))
    return offset, beyond + log_ratio_error(epsilon, size)


def log_theta_sum(widths: Floats) -> Floats:
    """Ln of the sum over k of e^(-2 pi^2 s^2 k^2), by whichever sum is short."""
    k = np.arange(1, 40)
    dual = 1 + 2 * np.exp(-2 * np.pi**2 * np.outer(widths**2, k**2)).sum(axis=1)
    direct = (1 + 2 * np.exp(-np.outer(1 / (2 * widths**2), k**2)).sum(axis=1)) / (math.sqrt(2 * math.pi) * widths)
    return np.asarray(np.log(np.where(widths > 0.4, dual, direct)))


def _unproved() -> VerifiedForm:
    raise AssertionError("a form that is not proved to be positive definite has no bounds")

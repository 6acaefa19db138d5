"""The laws that the scale mixture draws variances from, in pieces that invert in closed form.

A Laplace variable is Gaussian with a random variance v of density proportional to e^(-eps^2 v/2), a sum of n of them
with density v^(n-1) e^(-eps^2 v/2). In y = sqrt(v), and together with the Gaussian's own factor 1/sqrt(v), the wanted
density is y^(2(n-1)) e^(-eps^2 y^2/2), or with another order in the place of n (``shape_for``).
It is proposed with a further factor max(v, tau)^(q/2), which makes up for the weight of the lattice (``mixture.py``).
The log density is then interpolated by straight lines: a line of slope t has its mass, and the inverse of it, in
closed form. Whatever is drawn from is known exactly, so the interpolation costs nothing but a little of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from keepsum.sampling.kernel_tables import ScaleTables
from keepsum.sampling.mixture_kernels import GUIDE

Floats = npt.NDArray[np.float64]

CUT = 45.0  # e^-45 of the largest density is where the pieces end and straight tails begin
FINE = 0.04  # pieces are this wide, in units of 1/eps and of y
SPREAD = 40.0  # sums of regions are tabulated to e^-40
LEAST = 1.25  # the smallest order of a Gamma law other than 1
LONGEST = 4 * 10**6  # entries of the law of a sum
FLATTEST = 1e-12


@dataclass(frozen=True)
class ScaleLaw:
    """The law of y for a region: n cells, exponent q, threshold tau.

    Attributes
    ----------
    edge, height, slope, passed
        The pieces: log density ``height + slope (y - edge)``, and the mass before each.
    log_bound
        ln of the largest quotient of the wanted density times max(v, tau)^(q/2) and the density drawn from.
    """

    power: float
    edge: Floats
    height: Floats
    slope: Floats
    passed: Floats
    log_bound: float


def scale_law(epsilon: float, size: int, exponent: float, tau: float) -> ScaleLaw:
    """Lay straight lines through the log density at edges, and a tangent beyond the last."""
    power, root = 2 * (shape_for(epsilon, size) - 1), math.sqrt(tau)

    def log_density(y: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            own = power * np.log(y) if power else np.zeros_like(y)
        return np.asarray(-((epsilon * y) ** 2) / 2 + own + exponent * np.log(np.maximum(y, root)))

    edge = _edges(epsilon, power, exponent, root)
    at = log_density(edge)
    if power:
        at[0] = at[1]  # the density rises from 0 there: a level piece above it
    slope = np.empty_like(edge)
    slope[:-1] = np.diff(at) / np.diff(edge)
    slope[-1] = -(epsilon**2) * edge[-1] + (power + exponent * (edge[-1] > root)) / edge[-1]
    mass = np.empty_like(edge)
    rise = slope[:-1] * np.diff(edge)
    # Slopes of almost 0 would divide 0 by 0.
    mass[:-1] = np.diff(edge) * np.where(
        np.abs(rise) < 1e-9, 1 + rise / 2, np.expm1(rise) / np.where(rise == 0, 1, rise)
    )
    mass[-1] = -1 / slope[-1]
    top = float(at.max())
    mass *= np.exp(at - top)
    passed = np.concatenate([[0.0], np.cumsum(mass)])
    height = at - top - math.log(passed[-1])
    passed = passed[:-1] / passed[-1]
    slope = np.where(np.abs(slope) < FLATTEST, FLATTEST, slope)  # level lines are tilted by less than rounding
    return ScaleLaw(power, edge, height, slope, passed, _log_bound(log_density, edge, height, slope))


def fixed_scale(variance: float) -> ScaleLaw:
    """No mixture: one width, spread over its last digits so that its density is a number."""
    width = math.sqrt(variance)
    spread = 1e-12 * width
    height = -math.log(spread)
    return ScaleLaw(
        power=0.0,
        edge=np.array([width, width + spread]),
        height=np.array([height, height - 60]),
        slope=np.array([1e-12, -1 / spread]),
        passed=np.array([0.0, 1.0]),
        log_bound=0.0,
    )


def _edges(epsilon: float, power: float, exponent: float, root: float) -> Floats:
    """From 0 through the threshold to where the density has fallen by e^-CUT, finer where it bends."""
    top = math.sqrt(power + exponent) / epsilon + math.sqrt(2 * CUT) / epsilon
    bend = FINE / math.sqrt(max(1.0, power + exponent))
    edges = [0.0]
    if power:
        # Below this the density is less than e^-CUT of the largest, or y is far below a whole number.
        edges.append(min(root, math.sqrt(power) / epsilon) * math.exp(-CUT / power))
    else:
        edges += np.linspace(0, root, max(2, math.ceil(root * epsilon / FINE) + 1))[1:].tolist()
    while edges[-1] < top:
        y = edges[-1]
        following = y + min(FINE / epsilon, bend * y)
        edges.append(root if y < root < following else following)
    return np.array(edges)


def _log_bound(log_density: Callable[[Floats], Floats], edge: Floats, height: Floats, slope: Floats) -> float:
    """The largest gap between the wanted log density and the lines, looked for at many places of every piece.

    The log density is concave between edges, so a gap is largest inside; with 16 places it is found to within 1% of
    itself, which ``mixture.py`` allows for many times over. Beyond the last edge the tangent lies above.
    """
    share = np.linspace(0, 1, 17)
    inside = edge[:-1, None] + share * np.diff(edge)[:, None]
    line = height[:-1, None] + slope[:-1, None] * (inside - edge[:-1, None])
    inner = log_density(inside[1:]) - line[1:]
    first = log_density(inside[0, 1:]) - line[0, 1:]
    return float(max(inner.max(), first.max(), (log_density(edge[-1:]) - height[-1:]).max()))


def pack_scales(epsilon: float, laws: Sequence[ScaleLaw], ratios: Sequence[Floats]) -> ScaleTables:
    """Laws and ratios one behind the other, as the kernels read them."""
    start = np.cumsum([0, *(len(law.edge) for law in laws)])
    guide = np.array([np.searchsorted(law.passed, np.arange(GUIDE) / GUIDE, side="right") - 1 for law in laws])
    return ScaleTables(
        start=start.astype(np.int64),
        edge=np.concatenate([law.edge for law in laws]),
        height=np.concatenate([law.height for law in laws]),
        unheight=np.exp(-np.concatenate([law.height for law in laws])),
        slope=np.concatenate([law.slope for law in laws]),
        passed=np.concatenate([law.passed for law in laws]),
        guide=guide.astype(np.int32),
        power=np.array([law.power for law in laws]),
        half=epsilon**2 / 2,
        ratio_start=np.cumsum([0, *(len(own) for own in ratios)]).astype(np.int64),
        ratios=np.concatenate([*ratios, np.zeros(0)]),
    )


def shape_for(epsilon: float, size: int) -> float:
    """The order of the Gamma law of a region's variance.

    For one cell it is 1, and the mixture is the Laplace law itself. For n cells it is chosen so that the variance
    agrees with that of n double geometrics, which at large epsilon are narrower than n Laplace variables; 1 where that
    would be less than LEAST, so that no density is infinite at 0, or rises there over hundreds of orders.
    """
    if size == 1 or epsilon > 100:
        return 1.0
    shape = size * (epsilon / 2 / math.sinh(epsilon / 2)) ** 2
    return shape if shape >= LEAST else 1.0


@lru_cache(maxsize=256)
def log_ratios(epsilon: float, size: int) -> Floats:
    """Ln of the law of a sum of n double geometrics over the mixture's density there, for sums 0, 1, ...

    Up to a constant, for sums as likely as e^-SPREAD; none for a single cell, where the two agree.
    """
    if size == 1:
        return np.zeros(0)
    law = log_sum_law(epsilon, size)
    ratios = law - log_mixture(epsilon, shape_for(epsilon, size), np.arange(len(law), dtype=np.float64))
    return np.asarray(ratios - ratios[0])


def log_mixture(epsilon: float, shape: float, sums: Floats) -> Floats:
    """Ln of the integral of y^(2 shape - 2) e^(-eps^2 y^2/2 - S^2/2y^2) dy over y > 0, up to a constant.

    In x = ln y the integrand is analytic in a strip, falls off doubly exponentially to the right and at least like
    e^(x (2 shape - 1)) to the left, so the trapezoid rule with a quarter of its width as the step is accurate to the
    last digits.
    """
    power = 2 * shape - 1
    result = np.empty(len(sums))
    for first in range(0, len(sums), 4096):
        own = sums[first : first + 4096, None]
        square = (power + np.sqrt(power**2 + 4 * (epsilon * own) ** 2)) / (2 * epsilon**2)  # e^2x at the top
        width = 1 / np.sqrt(2 * epsilon**2 * square + 2 * own**2 / square)
        step = np.minimum(width / 4, 1 / 16)
        # To the left it falls like e^(power x), and once S^2/2y^2 is large much faster.
        far = np.log(120 * square / np.maximum(own, 1e-100) ** 2 + 1) / 2
        left = int(np.ceil((12 * width + np.minimum(45 / power, far)) / step).max())
        right = int(np.ceil(12 * width / step).max())
        away = step * np.arange(-left, right + 1)
        grown = square * np.exp(2 * away)
        logs = power * away - epsilon**2 * grown / 2 - own**2 / (2 * grown)
        top = logs.max(axis=1)
        tail = np.log((np.exp(logs - top[:, None])).sum(axis=1)) + np.log(step[:, 0])
        result[first : first + 4096] = top + tail + power * np.log(square[:, 0]) / 2
    return result


@lru_cache(maxsize=256)
def log_sum_law(epsilon: float, size: int) -> Floats:
    """Ln of the law of a sum of n double geometrics at 0, 1, ... as far as e^-SPREAD of the largest, up to a constant.

    The generating function G = ((1 - a x)(1 - a/x))^-n has x G' (1 - a x)(1 - a/x) = n a (x - 1/x) G, so that
    a (n - S - 1) p(S+1) = a (n + S - 1) p(S-1) - (1 + a^2) S p(S), and the ratios r(S) = p(S+1)/p(S) follow from each
    other downwards, where the recurrence forgets where it started by a factor a^2 a step.
    """
    return _log_law(sum_ratios(epsilon, size, sum_reach(epsilon, size)))


def sum_reach(epsilon: float, size: int) -> int:
    """How many sums are as likely as e^-SPREAD of the likeliest, at most."""
    deviation = math.sqrt(2 * size * math.exp(-epsilon)) / -math.expm1(-epsilon)
    return int(math.sqrt(2 * SPREAD) * deviation + SPREAD / epsilon) + 16


def _log_law(ratios: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(ratios))])


def sum_ratios(epsilon: float, size: int, most: int) -> Floats:
    """p(S+1)/p(S) for S = 0, ..., most - 2."""
    from keepsum.sampling.mixture_kernels import fall

    out = np.empty(most - 1)
    fall(math.exp(-epsilon), size, most + int(SPREAD / epsilon) + 16, out)
    return out

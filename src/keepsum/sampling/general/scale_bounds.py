"""What is proved of the laws of scales, as the kernels read them.

How far the target density rises above them is enclosed in ball arithmetic.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from flint import arb

from keepsum._arrays import Floats
from keepsum.sampling.core.balls import precision
from keepsum.sampling.general.scales import ScaleLaw

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

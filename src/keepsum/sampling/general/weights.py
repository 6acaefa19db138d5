"""What the weights of independent proposals tell of the chain that accepts and rejects them.

Two chains that see the same candidates and the same uniform numbers meet when the one with the larger weight accepts:
the other then accepts too. Let one start from a candidate, and let the other be under the target and see that
candidate too. If it does not accept it, its weight is the larger one, and stays so until it accepts: what it does not
accept, and the other might, has a smaller weight. So with r(w) = 1 - E min(1, w*/w), the chance that weight w rejects
a candidate, they have not met after t more steps with chance E r(w)^(t + 1), w being the weight under the target: that
of a candidate, each counted w times. The total variation after t steps is at most that (Liu 1996 has the spectrum of
the chain; the coupling is Jerrum's). Estimated from weights that were seen, this says nothing of larger ones, and it is
these that a chain stays at: a tail is added to those seen (``with_tail``). A bound from it is an extrapolation.

Candidates are proposals thinned by a cap (``native/general_chains.c``). Let caps be far above the mean weight, 1. Then
there are about c proposals for a candidate, a weight w above a cap c rejects with a chance of about 1 - c/w, and by
Bernoulli's inequality (1 - c/nw)^n >= 1 - c/w: a cap of c brings the first candidate nearer than a cap of c/n does
after n - 1 steps, for as many proposals. What speaks for some steps is that pairs show them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keepsum._arrays import Floats

FEWEST_IN_TAIL = 50  # pairs, or weights, from which a tail is told
# A tail of weights: how many standard deviations it goes beyond the largest, or beyond where the target has most of its
# mass, in steps of how many, and where it ends in any case.
REACH, FINE, FARTHEST = 8.0, 1 / 16, 37.0


@dataclass(frozen=True)
class Renewal:
    """A chain of thinned proposals as the weights of a pilot show it.

    Attributes
    ----------
    log_cap
        Ln of the weight from which on every proposal passes.
    tries
        Proposals for one that passes.
    chances
        The law of a weight under the target: a chance for each weight.
    rejects
        The chance that a chain with this weight rejects a candidate.
    """

    log_cap: float
    tries: float
    chances: Floats
    rejects: Floats

    @classmethod
    def of(cls, log_weights: Floats, log_cap: float = -math.inf, masses: Floats | None = None) -> Renewal:
        """From log weights up to a constant, the same as that of the cap, and the mass of each.

        Examples
        --------
        Equal weights accept every proposal:

        >>> Renewal.of(np.zeros(100)).acceptance
        1.0
        """
        order = np.argsort(log_weights, kind="stable")
        ordered = log_weights[order]
        mass = np.ones(len(ordered)) if masses is None else masses[order]
        if not math.isfinite(ordered[-1]):
            raise AssertionError("the weights of a pilot must be numbers, and one of them above 0")
        passing = mass * (np.exp(np.minimum(ordered, log_cap) - log_cap) if log_cap > -math.inf else 1.0)
        candidates = passing / passing.sum()
        weights = np.exp(np.maximum(ordered, log_cap) - max(float(ordered[-1]), log_cap))
        target = candidates * weights
        lower, upper = np.cumsum(target), np.cumsum(candidates)
        # Where a weight is 0 every candidate is accepted.
        accepted = np.where(weights > 0, lower / np.where(weights > 0, weights, 1.0), upper)
        rejects = np.clip(upper - accepted, 0.0, 1.0)
        return cls(log_cap, float(mass.sum() / passing.sum()), target / lower[-1], rejects)

    @classmethod
    def with_tail(cls, log_weights: Floats, log_cap: float = -math.inf) -> Renewal:
        """The same with a tail of weights that are too rare to have been seen (``with_tail``)."""
        extended, masses = with_tail(log_weights)
        return cls.of(extended, log_cap, masses)

    @property
    def acceptance(self) -> float:
        """The acceptance rate of a chain under its target, of candidates."""
        return float(1 - (self.chances * self.rejects).sum())

    def distance(self, steps: int) -> float:
        """The estimated bound of the distance after so many steps: E r(w)^(steps + 1) under the target.

        >>> weights = Renewal.of(np.log(np.arange(1, 101)))
        >>> round(weights.distance(5), 3), weights.distance(20) < 1e-6
        (0.004, True)
        """
        distance = float((self.chances * self.rejects ** (steps + 1)).sum())
        if math.isnan(distance):
            raise AssertionError("a distance must be a number")
        return distance

    def steps_for(self, distance: float, most: int = 10**12) -> int:
        """The smallest number of steps with an estimated distance that small."""
        low, high = -1, 0
        while self.distance(high) > distance and high < most:
            low, high = high, 2 * high + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.distance(middle) > distance else (low, middle)
        return high


def with_tail(log_weights: Floats) -> tuple[Floats, Floats]:
    """Log weights with those too rare to have been seen, and the mass of each.

    A log weight is a sum over cells and coordinates, and far up its distribution is close to normal: on a normal plot
    of 10,000 to 500,000 of them the slope stays within a quarter, from one in two to one in 10,000 (docs/general.md).
    The slope is that of the upper quarter, raised by two standard errors, or of the upper twentieth where it is steeper
    there; a line of that slope through the upper twentieth gives the tail. At 6 x 6 x 6 and epsilon 0.25, 500 weights
    without a tail ask for 170 steps, after which 300,000 show a total variation of 1e-5. In small blocks tails are
    rather like x^-2 to x^-8: for these the largest weight seen counts as twice as large.

    >>> extended, masses = with_tail(np.arange(100.0))
    >>> len(extended) > 100, float(masses.sum().round(9))
    (True, 1.0)
    """
    from scipy.special import ndtr, ndtri

    ordered = np.sort(log_weights)
    count = len(ordered)
    finite = int(np.isfinite(ordered).sum())  # a weight of 0 belongs to no tail
    quarter, twentieth = (min(max(2, count // part), finite) for part in (4, 20))
    slope = _slope(ordered, quarter) * (1 + 2 / math.sqrt(quarter))
    if twentieth >= FEWEST_IN_TAIL:
        slope = max(slope, _slope(ordered, twentieth))
    ends = np.arange(0, slope + REACH, FINE) - ndtri(1 / count)
    ends = ends[ends < FARTHEST]
    # Each bin counts as its upper end.
    tail = ordered[-twentieth:].mean() + slope * (ends[1:] - _scores(count, twentieth).mean())
    masses = -np.diff(ndtr(-ends))
    ordered[-1] += math.log(2)
    return np.concatenate([ordered, tail]), np.concatenate([np.full(count, (1 - masses.sum()) / count), masses])


def _slope(ordered: Floats, above: int) -> float:
    """The slope of so many largest ones on a normal plot, at least 0; as large as any if there are not two."""
    if above < 2:
        return FARTHEST
    scores = _scores(len(ordered), above)
    scores -= scores.mean()
    return max(0.0, float((scores * ordered[-above:]).sum() / (scores**2).sum()))


def _scores(count: int, above: int) -> Floats:
    """The normal scores of the largest of so many."""
    from scipy.special import ndtri  # takes a tenth of a second to import

    scores: Floats = ndtri((np.arange(count - above, count) + 0.5) / count)
    return scores


def thinned(log_weights: Floats, distance: float) -> Renewal:
    """With the smallest of these weights as a cap by which the first candidate is within this distance of the target.

    At least fifty of the weights stay above it, or a quarter, even if the distance is then larger: what is beyond a
    cap must have been seen.

    >>> seen = np.log(np.arange(1, 1001))
    >>> [round(math.exp(thinned(seen, distance).log_cap)) for distance in (0.1, 0.01, 0.0)]
    [598, 894, 950]
    """
    caps = np.sort(log_weights)[: len(log_weights) - min(FEWEST_IN_TAIL, len(log_weights) // 4)].tolist()
    low, high = -1, len(caps) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if Renewal.of(log_weights, caps[middle]).distance(0) > distance else (low, middle)
    return Renewal.of(log_weights, caps[high])


@dataclass(frozen=True)
class GeometricTail:
    """Meeting times whose tail is taken to be geometric: P(T > t) = share * rate^(t - start) from ``start`` on.

    The tail starts where one pair in twenty has not met, or fifty of them, but at the median at the earliest. Its rate
    comes from the mean excess there, raised by two standard errors. An extrapolation: it holds as far as the tail
    stays geometric.
    """

    start: int
    share: float
    rate: float

    @classmethod
    def of(cls, excess: npt.NDArray[np.int64]) -> GeometricTail:
        """From times after the lag.

        >>> GeometricTail.of(np.array([1, 1, 2, 2, 3, 3, 4, 6])).start
        2
        """
        ordered = np.sort(excess)
        count = len(ordered)
        unmet = min(count // 2, max(FEWEST_IN_TAIL, count // 20))
        start = int(ordered[count - unmet - 1])
        beyond = (ordered[ordered > start] - start).astype(np.float64)
        # As if there were one more, which matters where they are few.
        mean = (float(beyond.sum()) + 1) / (len(beyond) + 1) * (1 + 2 / np.sqrt(len(beyond) + 1))
        return cls(start, (len(beyond) + 1) / (count + 1), float(1 - 1 / max(mean, 1.05)))

    def distance(self, steps: int, lag: int) -> float:
        """What the bound of the distance would be after so many steps, with pairs of that lag: an extrapolation."""
        return float(min(1.0, self.share * self.rate ** (steps - self.start) / (1 - self.rate**lag)))

    def steps_for(self, distance: float, lag: int) -> int:
        """The smallest number of steps with a distance that small."""
        steps = np.log(distance * (1 - self.rate**lag) / self.share) / np.log(self.rate)
        return max(1, self.start + int(np.ceil(steps)))

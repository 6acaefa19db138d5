"""What the weights of independent proposals tell of the chain that accepts and rejects them.

Two chains that see the same candidates and the same uniform numbers meet when the one with the larger weight accepts:
the other then accepts too. Let one start from a candidate, and let the other be under the target and see that
candidate too. If it does not accept it, its weight is the larger one, and stays so until it accepts: what it does not
accept, and the other might, has a smaller weight. So with r(w) = 1 - E min(1, w*/w), the chance that weight w rejects
a candidate, they have not met after t more steps with chance E r(w)^(t + 1), w being the weight under the target: that
of a candidate, each counted w times. The total variation after t steps is at most that (Liu 1996 has the spectrum of
the chain; the coupling is Jerrum's). Estimated from weights that were seen, this says nothing of larger ones: a bound
from it is an extrapolation.

Candidates are proposals thinned by a cap (``chains_kernels.py``). Let caps be far above the mean weight, 1. Then there
are about c proposals for a candidate, a weight w above a cap c rejects with a chance of about 1 - c/w, and by
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
        The law of a weight under the target: a chance for each proposal seen.
    rejects
        The chance that a chain with this weight rejects a candidate.
    """

    log_cap: float
    tries: float
    chances: Floats
    rejects: Floats

    @classmethod
    def of(cls, log_weights: Floats, log_cap: float = -math.inf) -> Renewal:
        """From log weights up to a constant, the same as that of the cap.

        Examples
        --------
        Equal weights accept every proposal:

        >>> Renewal.of(np.zeros(100)).acceptance
        1.0
        """
        ordered = np.sort(log_weights)
        if not math.isfinite(ordered[-1]):
            raise AssertionError("the weights of a pilot must be numbers, and one of them above 0")
        passing = np.exp(np.minimum(ordered, log_cap) - log_cap) if log_cap > -math.inf else np.ones(len(ordered))
        candidates = passing / passing.sum()
        weights = np.exp(np.maximum(ordered, log_cap) - max(float(ordered[-1]), log_cap))
        target = candidates * weights
        lower, upper = np.cumsum(target), np.cumsum(candidates)
        # Where a weight is 0 every candidate is accepted.
        share = np.where(weights > 0, lower / np.where(weights > 0, weights, 1.0), upper)
        rejects = np.clip(upper - share, 0.0, 1.0)
        return cls(log_cap, float(len(ordered) / passing.sum()), target / lower[-1], rejects)

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
        return float((self.chances * self.rejects ** (steps + 1)).sum())

    def steps_for(self, distance: float, most: int = 10**7) -> int:
        """The smallest number of steps with an estimated distance that small."""
        low, high = -1, 0
        while self.distance(high) > distance and high < most:
            low, high = high, 2 * high + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.distance(middle) > distance else (low, middle)
        return high


def allowing(log_weights: Floats) -> Floats:
    """The same with the largest weight counted as twice as large, for those that were not seen.

    Weights have tails like x^-2 to x^-8, so that a pilot's largest one is seldom far below what a hundred times as many
    show: measured at 4 x 4 and 12 x 12, where without this the distance came out 30 and 300 times too small.

    >>> np.exp(allowing(np.log([1.0, 3.0, 2.0]))).round(9).tolist()
    [1.0, 6.0, 2.0]
    """
    raised = np.array(log_weights, dtype=np.float64)
    raised[np.argmax(raised)] += math.log(2)
    return raised


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

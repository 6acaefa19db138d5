"""What the weights of independent proposals tell of the chain that accepts and rejects them.

Two chains that see the same proposals and the same uniform numbers meet when the one with the larger weight accepts:
the other then accepts too, and until then the larger weight stays what it was. So with r(w) = 1 - E min(1, w*/w), the
chance that weight w rejects a proposal, a pair that starts with larger weight W has not met after t steps with chance
E r(W)^t. One chain starts from a proposal and the other from the law wanted, so the distance after t steps is at most
E r(max)^t, and both laws of W are those of the weights, the second with each weight counted w times (Liu 1996 has the
spectrum of the chain; the coupling is Jerrum's). Estimated from weights that were seen, this says nothing of larger
ones: a bound from it is an extrapolation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEWEST_LEFT = 50  # pairs from which the rate of a tail is told


@dataclass(frozen=True)
class Renewal:
    """The weights of a pilot's proposals, smallest first, with mean 1, and the chance that each rejects a proposal."""

    weights: Floats
    rejects: Floats

    @classmethod
    def of(cls, log_weights: Floats) -> Renewal:
        """From log weights up to a constant.

        Examples
        --------
        Equal weights accept every proposal:

        >>> Renewal.of(np.zeros(100)).acceptance
        1.0
        """
        weights = np.exp(np.sort(log_weights) - log_weights.max())
        weights = weights / weights.mean()
        count = len(weights)
        above = np.arange(count - 1, -1, -1)
        passed = np.cumsum(weights)
        # Where a weight is 0 every proposal is accepted.
        accepts = np.where(weights > 0, passed / np.where(weights > 0, weights, 1.0), np.arange(1.0, count + 1)) + above
        return cls(weights, np.clip(1 - accepts / count, 0.0, 1.0))

    @property
    def acceptance(self) -> float:
        """The share of proposals that a chain under its own law accepts."""
        return float((self.weights * (1 - self.rejects)).mean())

    @property
    def largest(self) -> float:
        """The largest weight seen, over the mean."""
        return float(self.weights[-1])

    def distance(self, steps: int) -> float:
        """The estimated bound of the distance after so many steps: E r(max of the two weights)^steps.

        >>> weights = Renewal.of(np.log(np.arange(1, 101)))
        >>> round(weights.distance(5), 3), weights.distance(20) < 1e-6
        (0.011, True)
        """
        count = len(self.weights)
        proposed = np.arange(1, count + 1) / count  # laws of the two weights, cumulated
        wanted = np.cumsum(self.weights) / count
        both = np.diff(proposed * wanted, prepend=0.0)
        return float((both * self.rejects**steps).sum())

    def steps_for(self, distance: float, most: int = 10**7) -> int:
        """The smallest number of steps with an estimated distance that small."""
        low, high = 0, 1
        while self.distance(high) > distance and high < most:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.distance(middle) > distance else (low, middle)
        return high


@dataclass(frozen=True)
class GeometricTail:
    """Meeting times whose tail is taken to be geometric: P(T > t) = share * rate^(t - start) from ``start`` on.

    The tail starts where one pair in twenty is left, or fifty of them, but at the median at the earliest. Its rate
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
        left = min(count // 2, max(FEWEST_LEFT, count // 20))
        start = int(ordered[count - left - 1])
        beyond = (ordered[ordered > start] - start).astype(np.float64)
        # As if there were one more, which matters where few are left.
        mean = (float(beyond.sum()) + 1) / (len(beyond) + 1) * (1 + 2 / np.sqrt(len(beyond) + 1))
        return cls(start, (len(beyond) + 1) / (count + 1), float(1 - 1 / max(mean, 1.05)))

    def distance(self, steps: int, lag: int) -> float:
        """The bound of the distance after so many steps, with pairs of that lag."""
        return float(min(1.0, self.share * self.rate ** (steps - self.start) / (1 - self.rate**lag)))

    def steps_for(self, distance: float, lag: int) -> int:
        """The smallest number of steps with a distance that small."""
        wanted = np.log(distance * (1 - self.rate**lag) / self.share) / np.log(self.rate)
        return max(1, self.start + int(np.ceil(wanted)))

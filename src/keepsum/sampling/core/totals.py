"""The total of the positive parts of a small region whose noise has sum 0, drawn by one word.

Given sum 0, both the positive and the negative parts of double geometric noise have the same total N, with weight
C(N + n - 1, n - 1)^2 e^(-2 eps N). For small regions this law has a short table of exact thresholds, like a
geometric one.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from flint import arb

from keepsum.sampling.core.balls import ball, precision
from keepsum.sampling.core.geometric import WORD_BITS
from keepsum.sampling.core.tabulated import TabulatedLaw


class TotalLaw(TabulatedLaw):
    """The law of N for a region of n cells, and its table.

    Guarantee
    ---------
    Exact: thresholds by ball arithmetic, ties settled by ``resolve``. ``tests/statistical/test_sums.py``.
    """

    def __init__(self, size: int, epsilon: Fraction, word_bits: int = WORD_BITS) -> None:
        self.size, self.epsilon = size, epsilon
        super().__init__(word_bits)

    def partial_weights(self, bits: int) -> tuple[list[arb], arb]:
        """The weights of N <= 0, N <= 1, ... as balls."""
        return _partial_weights(self.size, self.epsilon, bits)


def whole_weight(size: int, epsilon: Fraction, bits: int) -> arb:
    """The sum over N of C(N + n - 1, n - 1)^2 e^(-2 eps N), to about 2^-bits."""
    return _partial_weights(size, epsilon, bits)[1]


def _partial_weights(size: int, epsilon: Fraction, bits: int) -> tuple[list[arb], arb]:
    """The weights of N <= 0, N <= 1, ... until the rest is below 2^-bits of them, and of all N, as balls."""
    with precision(bits + 64):
        a2 = ball(-2 * epsilon).exp()
        weight, total = arb(1), arb(1)
        sums = [total]
        k = 0
        while True:
            weight *= (arb(k + size) / (k + 1)) ** 2 * a2
            k += 1
            # The ratio of weights falls with k, so once it is below 1 the rest is at most a geometric series.
            following = (arb(k + size) / (k + 1)) ** 2 * a2
            if following < 1:
                rest = weight / (1 - following)
                if rest < total * arb(2) ** -bits:
                    return sums, total + rest * (arb(1) / 2 + arb(0, 0.5))  # between total and total + rest
            total += weight
            sums.append(total)


@lru_cache(maxsize=512)
def total_law(size: int, epsilon: Fraction, word_bits: int = WORD_BITS) -> TotalLaw:
    """The law for a size and an epsilon, made once."""
    return TotalLaw(size, epsilon, word_bits)

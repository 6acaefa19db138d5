"""l1 Laplace noise in a table under both margins: exact, by drawing all rows but two.

Draw all rows but the last two, each with sum 0, and let T be their column sums. The last two rows u, v must have
u + v = -T, so T has weight W(T) = sum over u with sum 0 of a^(|u|_1 + |u + T|_1), a = e^-eps, and W(T) <= W(0) by
Cauchy-Schwarz (u and u + T range over the same set). So accept T with chance W(T)/W(0), then draw u given T.

W is a convolution along the row: each column contributes a^(|s| + |s + t|), flat over t + 1 values and geometric
beyond, so a convolution costs a few operations per entry. It is computed in floats from sums and products of positive
numbers, with a proved bound on rounding and on what was cut off; a comparison that falls within it is settled in
ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb, arb_poly

from keepsum._arrays import IntArray
from keepsum.sampling.core.balls import ball, digits, precision
from keepsum.sampling.core.driving import PILOT_DRAWS, TASK_CELLS, Referee, equal_ranges, in_parallel, run
from keepsum.sampling.core.geometric import WORD_BITS, geometric
from keepsum.sampling.core.kernel_arguments import UNLIMITED, State, SumLaw, Task
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.core.tabulated import pack
from keepsum.sampling.core.totals import total_law, whole_weight
from keepsum.sampling.l1.compositions import accept_sum, has_table, mode, rate_of
from keepsum.sampling.l1.kernel_arguments import TwoRowsRoom, TwoRowsTables
from keepsum.sampling.l1.two_rows_kernels import DRAW_ROWS, LAST_ROWS, OFFSET, fill_tables, reach_of


class TwoRows:
    """Double geometric noise in tables with all row and column sums 0.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of l1 distance.
    rows, columns
        The shape; at least 3 rows and 2 columns. Take the longer side as rows.
    count
        How many such tables a draw has.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|_1) on the tables with zero margins.
    ``tests/statistical/test_tables.py``.
    """

    def __init__(self, epsilon: Fraction, rows: int, columns: int, count: int = 1, word_bits: int = WORD_BITS) -> None:
        self.rows, self.columns, self._count = rows, columns, count
        self.width = rows * columns * count
        self._law = geometric(epsilon, word_bits)
        self._epsilon = epsilon
        self._rate = rate_of(epsilon)
        self._mode = mode(columns, epsilon)
        self._total = total_law(columns, epsilon, word_bits) if has_table(columns, epsilon) else None
        self._room = room_for(epsilon, rows, columns)
        self._powers = _powers(epsilon, 5 * self._room)
        whole = zero_weight(epsilon, columns, 128)
        with precision(192):
            self._scale_low, self._scale_high = _below_and_above(1 / whole)
            b = ball(-2 * epsilon).exp()
            _, self._tails = _below_and_above(2 * b / (1 - b))

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the tables of a draw one after the other."""
        step = max(1, TASK_CELLS // (16 * self.rows * self.columns))

        def work(first: int, last: int, stream: Stream) -> None:
            self._run(first, last, out.reshape(-1), stream)

        in_parallel(work, equal_ranges(len(out) * self._count, step), rng, threads)

    def pilot(self, rng: Rng, most: int) -> tuple[int, int]:
        """Draw until a hundred tables are accepted or ``most`` tries are made; how many of each there were."""
        out = np.empty(PILOT_DRAWS * self.rows * self.columns, dtype=np.int64)
        state = self._run(0, PILOT_DRAWS, out, rng.stream(), most)
        return int(state.job), int(state.tries)

    @property
    def cells_per_try(self) -> int:
        """What a try costs: the table, and its share of the convolutions, which few tries come to."""
        return self.rows * self.columns + self.columns * self._room // 256

    def _run(self, first: int, last: int, flat: IntArray, stream: Stream, most: int = UNLIMITED) -> State:
        tables, room = self._tables(), self._new_room()
        drawn = self._total or self._law
        referee = Referee(self._law.word_bits, lambda _: drawn, lambda state, u: self._answer(state, room.sums, u))
        return run(fill_tables, stream, tables, Task(first, last, flat, room, most), referee)

    def _tables(self) -> TwoRowsTables:
        totals, _, _ = pack([self._total] if self._total else [], self._law.word_bits)
        return TwoRowsTables(
            geometric=self._law.table,
            law=SumLaw(self.columns, self._rate, self._mode, self._law.table.shift),
            totals=totals,
            by_table=self._total is not None,
            epsilon=float(self._epsilon),
            scale_low=self._scale_low,
            scale_high=self._scale_high,
            tails=self._tails,
            powers=self._powers,
            rows=self.rows,
            columns=self.columns,
        )

    def _new_room(self) -> TwoRowsRoom:
        """Room for the tables of one worker."""
        return TwoRowsRoom(
            scratch=np.empty(self.columns, dtype=np.int64),
            sums=np.zeros(self.columns, dtype=np.int64),
            suffix=np.empty((self.columns, self._room)),
            work=np.empty(self._room),
        )

    def _answer(self, state: State, sums: IntArray, uniform: LazyUniform) -> int:
        """What the kernel could not decide: a row's total, the column sums, or an entry of the last rows."""
        if state.phase == DRAW_ROWS:
            return accept_sum(self.columns, self._epsilon, int(state.negative_total), uniform)
        needs = sums.tolist()
        if state.phase == LAST_ROWS:
            column = int(state.column)
            return draw_entry(self._epsilon, needs[column:], -int(state.row_sum), uniform) + OFFSET

        def chance(bits: int) -> tuple[int, int]:
            def value() -> arb:
                return row_weight(self._epsilon, needs, 0, bits + 64) / zero_weight(
                    self._epsilon, self.columns, bits + 64
                )

            return digits(value)(bits)

        return int(uniform.below(chance))


def room_for(epsilon: Fraction, rows: int, columns: int) -> int:
    """Entries of a convolution, for column sums up to ten standard deviations; beyond it the referee takes over."""
    rate = float(epsilon)
    deviation = math.sqrt(2 * rows * math.exp(-rate)) / -math.expm1(-rate)
    return 2 * int(reach_of(columns, rate, 10 * columns * (deviation + 1))) + 1


def zero_weight(epsilon: Fraction, columns: int, bits: int) -> arb:
    """W(0), the weight of b^|u|_1 over all u with sum 0, b = e^(-2 eps): (1 - b^2)^c times the sum over totals N."""
    totals = whole_weight(columns, 2 * epsilon, bits)
    with precision(bits + 64):
        return totals * (1 - ball(-4 * epsilon).exp()) ** columns


def entry_weights(epsilon: Fraction, needs: Sequence[int], goal: int, bits: int) -> tuple[list[arb], int, arb]:
    """The weights of the first entry s of a row with the given column needs and the given sum, as balls.

    Returns
    -------
    tuple
        The weights of s = low, low + 1, ...; low; and a bound on the weight of everything that was cut off.
    """
    spread = sum(abs(t) for t in needs)
    with precision(bits + 64):
        r = ball(-epsilon / 2).exp()
        room = len(needs) * float(((1 + r) / (1 - r)).log()) + 2 * float(epsilon) * (spread + abs(goal))
        reach = math.ceil((bits + room) / (1.5 * float(epsilon))) + abs(goal) + 1
        cut = ((1 + r) / (1 - r)) ** len(needs) * ball(epsilon * spread - epsilon * reach * Fraction(3, 2)).exp()
        a = ball(-epsilon).exp()
        powers = [arb(1)]
        for _ in range(2 * reach + spread):
            powers.append(powers[-1] * a)
        rest = arb_poly([1])
        for t in needs[1:]:
            rest *= arb_poly([powers[abs(s) + abs(s + t)] for s in range(-reach, reach + 1)])
        centre = reach * (len(needs) - 1)  # the place of sum 0 in the product
        weights = [
            powers[abs(s) + abs(s + needs[0])] * rest[goal - s + centre]
            if 0 <= goal - s + centre <= 2 * centre
            else arb(0)
            for s in range(-reach, reach + 1)
        ]
        return weights, -reach, cut


def row_weight(epsilon: Fraction, needs: Sequence[int], goal: int, bits: int) -> arb:
    """The weight of all rows u with that sum, sum over u of a^(|u_j| + |u_j + needs_j|), as a ball."""
    weights, _, cut = entry_weights(epsilon, needs, goal, bits)
    return sum(weights, arb(0)) + arb(0, 1) * cut


def draw_entry(epsilon: Fraction, needs: Sequence[int], goal: int, uniform: LazyUniform) -> int:
    """The first entry of a row given its sum, by inversion with as many digits as it takes."""

    def chance(upto: int, bits: int) -> tuple[int, int]:
        def value() -> arb:
            weights, low, cut = entry_weights(epsilon, needs, goal, bits + 64)
            doubt = arb(0, 1) * cut
            return (sum(weights[: upto - low + 1], arb(0)) + doubt) / (sum(weights, arb(0)) + doubt)

        return digits(value)(bits)

    weights, low, _ = entry_weights(epsilon, needs, goal, 64)
    shares = np.cumsum([float(w.mid()) for w in weights])
    guess = low + int(np.searchsorted(shares / shares[-1], uniform.known))
    while guess > low and uniform.below(lambda bits, s=guess - 1: chance(s, bits)):  # type: ignore[misc]
        guess -= 1
    while not uniform.below(lambda bits, s=guess: chance(s, bits)):  # type: ignore[misc]
        guess += 1
    return guess


def _powers(epsilon: Fraction, count: int) -> npt.NDArray[np.float64]:
    """a^k for k = 0, 1, ..., each the float nearest to it."""
    with precision(128):
        a, power = ball(-epsilon).exp(), arb(1)
        powers = np.empty(count)
        for k in range(count):
            powers[k] = float(power)
            power *= a
    return powers


def _below_and_above(value: arb) -> tuple[float, float]:
    """Floats that enclose a ball, and some units more."""
    low, high = float(value.lower()), float(value.upper())
    return float(np.nextafter(low, -np.inf)) * (1 - 1e-15), float(np.nextafter(high, np.inf)) * (1 + 1e-15)

"""l1 Laplace noise under overlapping totals: exact, by drawing most regions freely and solving for the others.

The totals are equations between the sums of regions. Draw all regions but ``rank`` of them freely; the equations give
the sums of the others. Reject the draw unless these are whole numbers, and accept them with a chance proportional to
their own probability (``sum_laws``). Then fill these regions, given their sums. Whatever regions are solved for, the
acceptance rate is the chance that free noise keeps the totals, divided by the solved regions' largest probabilities; so
the widest regions are solved for.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum.lattice.elimination import eliminate
from keepsum.lattice.matrix import Row, matrix_rows
from keepsum.sampling.core.driving import PILOT_DRAWS, TASK_CELLS, Referee, equal_ranges, in_parallel, run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import EXACT_STATE, UNLIMITED, WORD_BITS, State, Task, Words
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.l1.double_geometric import double_geometric
from keepsum.sampling.l1.forced_sums import accept_rest
from keepsum.sampling.l1.kernel_arguments import ACCEPT_SINGLES, ACCEPT_WIDE, SolvedRoom, SolvedTables, SolvedTask
from keepsum.sampling.l1.sum_laws import powers_below, sum_law, sum_tables

fill_solved_blocks = Kernel("fill_solved_blocks", Words, EXACT_STATE, SolvedTables, SolvedTask)

# Sums of regions stay far below 2^42, so with coefficients up to this no product can wrap.
LARGEST_COEFFICIENT = 2**20
LARGEST_DENOMINATOR = 2**62


class SolvedRegions:
    """Double geometric noise in blocks of regions whose totals are all 0.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of l1 distance.
    matrix
        The totals over the regions.
    sizes
        The number of cells of each region.
    count
        How many such blocks a draw has.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|_1) on the lattice. ``tests/statistical/test_tables.py``.
    """

    def __init__(
        self,
        epsilon: Fraction,
        matrix: sparse.csr_array,
        sizes: npt.ArrayLike,
        count: int = 1,
        word_bits: int = WORD_BITS,
    ) -> None:
        self._sizes = np.asarray(sizes, dtype=np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._count = count
        self._epsilon = epsilon
        self._law = double_geometric(epsilon, word_bits)
        self._solved, self._free, numerators, self._denominator = split(matrix_rows(matrix), self._sizes.tolist())
        self.usable = (
            max((abs(e) for row in numerators for e in row), default=0) * len(self._free) <= LARGEST_COEFFICIENT
            and self._denominator < LARGEST_DENOMINATOR
        )
        shape = (len(self._solved), len(self._free))
        self._numerators = np.array(numerators if self.usable else 0, dtype=np.int64).reshape(
            shape if self.usable else (1, 1)
        )
        parts = powers_below(max(2, int(self._sizes.max())))
        widths = np.unique(self._sizes[self._solved])
        self._laws = len(parts) + np.searchsorted(widths, self._sizes[self._solved])
        self._sums = sum_tables([*parts, *widths.tolist()], epsilon, word_bits)
        self._block = int(self._sizes.sum())
        self.width = self._block * count

    @property
    def cells_per_try(self) -> int:
        """What a try costs."""
        return self._block

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the blocks of a draw one after the other, region by region."""
        step = max(1, TASK_CELLS // (16 * self._block))

        def work(first: int, last: int, stream: Stream) -> None:
            self._run(first, last, out.reshape(-1), stream)

        in_parallel(work, equal_ranges(len(out) * self._count, step), rng, threads)

    def pilot(self, rng: Rng, most: int) -> tuple[int, int]:
        """Draw until a hundred blocks are accepted or ``most`` tries are made; how many of each there were."""
        draws = max(1, min(PILOT_DRAWS, 10**7 // self._block))
        out = np.empty(draws * self._block, dtype=np.int64)
        state = self._run(0, draws, out, rng.stream(), most)
        return int(state.job), int(state.tries)

    def _run(self, first: int, last: int, flat: IntArray, stream: Stream, most: int = UNLIMITED) -> State:
        singles = int((self._sizes[self._free] == 1).sum())
        tables = SolvedTables(
            noise=self._law.table,
            sums=self._sums,
            sizes=self._sizes,
            starts=self._starts,
            free=self._free,
            singles=singles,
            solved=self._solved,
            laws=self._laws,
            numerators=self._numerators,
            denominator=self._denominator,
            width=self._block,
        )
        room = SolvedRoom(
            single_sums=np.empty(singles, dtype=np.int64),
            free_sums=np.empty(len(self._free), dtype=np.int64),
            solved_sums=np.empty(len(self._solved), dtype=np.int64),
        )
        referee = Referee(
            self._law.word_bits, lambda _: self._law, lambda state, uniform: self._answer(state, room, uniform)
        )
        return run(fill_solved_blocks, stream, tables, Task(first, last, flat, room, most), referee)

    def _answer(self, state: State, room: SolvedRoom, uniform: LazyUniform) -> int:
        """Whether a sum is accepted: of the solved regions, or inside one of them of what its first cells leave."""
        if state.phase == ACCEPT_SINGLES:
            return sum_law(1, self._epsilon).accept(int(state.rest), uniform)
        size = int(self._sizes[self._solved[state.region]])
        if state.phase == ACCEPT_WIDE:
            return sum_law(size, self._epsilon).accept(int(room.solved_sums[state.region]), uniform)
        return accept_rest(size, self._epsilon, state, uniform)


def split(rows: list[Row], sizes: list[int]) -> tuple[IntArray, IntArray, list[list[int]], int]:
    """Which regions are solved for, the widest that determine the rest, and how.

    Returns
    -------
    tuple
        The solved regions, the free ones, and numerators and a denominator: the sums of the solved regions are
        ``-numerators @ free_sums / denominator``.
    """
    width = len(sizes)
    widest = sorted(range(width), key=lambda r: (-sizes[r], r))
    place = {r: k for k, r in enumerate(widest)}
    independent = [rows[i] for i in eliminate(rows, width, units_only=False).pivots]
    columns = fmpz_mat([[row.get(r, 0) for r in widest] for row in independent])
    # In the reduced row echelon form the pivots are the first columns that are independent of those before them.
    reduced, _, rank = columns.rref()
    table = reduced.tolist()
    pivots = [next(j for j, e in enumerate(row) if e != 0) for row in table[:rank]]
    solved = [widest[j] for j in pivots]
    free = sorted(set(range(width)) - set(solved), key=lambda r: (sizes[r] > 1, r))  # single cells first
    shares = [[Fraction(int(row[place[r]]), int(row[j])) for r in free] for row, j in zip(table, pivots, strict=False)]
    denominator = lcm(*(f.denominator for row in shares for f in row), 1)
    numerators = [[int(f * denominator) for f in row] for row in shares]
    return np.array(solved, dtype=np.int64), np.array(free, dtype=np.int64), numerators, denominator

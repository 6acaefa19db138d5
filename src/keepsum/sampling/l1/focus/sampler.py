"""l1 Laplace noise with more accuracy in some totals, kept and focused ones nested: exact.

The noise has P(z) proportional to exp(-eps sum of |z_i| - sum over focused totals g of eps_g |z(g)|), z(g) its sum over
the cells of g, on the vectors with z(g) = 0 for all kept totals. Given the sum of a total its parts are independent of
everything else, and given the sum of two parts the left one has a chance proportional to the product of their weights,
which contain everything that is below them, the weights of focused totals included. So sums are split from the roots
down to the cells, each by a draw of ``envelopes``: about two tries per cell, whatever the epsilons and the totals.

What a plan takes is in proportion to the entries of the tables (``sizes.entries_of``): one for each sum that has a
chance of 2^-64 or more, for each kind of sum. A county of 20 cells has some 60 / epsilon, and a million of entries take
about 10 seconds. Sums beyond the tables are left to the referee, who makes tables that go as far as they must.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sampling.core.driving import Referee, cell_ranges, in_parallel, run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import EXACT_STATE, WORD_BITS, State, Task, Words
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.l1.focus.envelopes import NOTHING, Envelope, envelope
from keepsum.sampling.l1.focus.kernel_arguments import OFFSET, FocusRoom, FocusTables, FocusTask
from keepsum.sampling.l1.focus.laws import ALWAYS, TAIL_BITS, FloatLaw, float_laws
from keepsum.sampling.l1.focus.referee import FocusReferee
from keepsum.sampling.l1.focus.tree import ABSENT, Kinds, Totals

fill_trees = Kernel("fill_trees", Words, EXACT_STATE, FocusTables, FocusTask)

HALVING_BITS = 31  # of a proposal's word: the place takes 32, and the side one


class NestedFocus:
    """Double geometric noise under nested totals, some of them kept and some with a weight of their own.

    Parameters
    ----------
    totals
        The totals.
    as_sums
        Draw the sum of the cells that stand in a total and in no smaller one, not the cells; one for each such total.
    word_bits, tail_bits, halving_bits
        How many bits of a word an acceptance sees, how far tables go, and how many blocks a word tells apart; fewer
        only to test what happens where these do not suffice.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|_1 - sum of eps_g |z(g)|) on the vectors with z(g) = 0 for all kept g.
    ``tests/statistical/test_focus.py``.
    """

    def __init__(
        self,
        totals: Totals,
        word_bits: int = WORD_BITS,
        tail_bits: int = TAIL_BITS,
        halving_bits: int = HALVING_BITS,
        as_sums: bool = False,
    ) -> None:
        self.kinds = Kinds(totals, as_sums)
        self.width = sum(count > 0 for count in totals.cells) if as_sums else sum(totals.cells)
        self._word_bits = word_bits
        self.laws = float_laws(self.kinds, tail_bits)
        self._envelopes = _envelopes(self.kinds, self.laws)
        self._tables = self._packed(halving_bits)
        self._referee = FocusReferee(self.kinds.all)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the cells of the totals one after the other."""
        sizes = np.diff(self._tables.root_start)

        def work(first: int, last: int, stream: Stream) -> None:
            self._run(first, last, out.reshape(-1), stream)

        in_parallel(work, cell_ranges(sizes, len(out)), rng, threads)

    def _run(self, first: int, last: int, flat: IntArray, stream: Stream) -> State:
        height = max(_heights(self.kinds))
        room = FocusRoom(np.empty(height, dtype=np.int64), np.empty(height, dtype=np.int64))
        referee = Referee(
            self._word_bits,
            lambda state: _FarPart(self._referee, *_current(state, room)),
            lambda state, uniform: self._accepts(state, room, uniform),
        )
        return run(fill_trees, stream, self._tables, Task(first, last, flat, room), referee)

    def _accepts(self, state: State, room: FocusRoom, uniform: LazyUniform) -> int:
        """Whether a part that was proposed is accepted."""
        kind, y = _current(state, room)
        factor = 2 ** int(state.step) / Fraction(float(self._envelopes[kind].peak[y]))
        return int(self._referee.accept(kind, y, int(state.value), factor, uniform))

    def _packed(self, halving_bits: int) -> FocusTables:
        kinds, roots = self.kinds.all, self.kinds.roots
        values, envelopes = [law.values for law in self.laws], self._envelopes
        return FocusTables(
            left=np.array([ABSENT if kind.end else kind.left for kind in kinds], dtype=np.int64),
            right=np.array([ABSENT if kind.end else kind.right for kind in kinds], dtype=np.int64),
            value_start=_starts(values)[:-1],
            reach=np.array([law.reach for law in self.laws], dtype=np.int64),
            error=np.array([law.error for law in self.laws]),
            beyond=np.array([law.beyond for law in self.laws]),
            values=np.concatenate(values),
            split_start=_starts([split.peak for split in envelopes])[:-1],
            split_reach=np.array([len(split.peak) - 1 for split in envelopes], dtype=np.int64),
            middle=np.concatenate([split.middle for split in envelopes]),
            block=np.concatenate([split.block for split in envelopes]),
            peak=np.concatenate([split.peak for split in envelopes]),
            root_kind=np.array([root.kind for root in roots], dtype=np.int64),
            root_start=_starts([root.order for root in roots]),
            order=np.concatenate([root.order for root in roots]),
            halving_bits=halving_bits,
            shift=WORD_BITS - self._word_bits,
        )


class _FarPart:
    """The left part of a sum that the tables do not reach, in place of a law that words are looked up in."""

    def __init__(self, referee: FocusReferee, kind: int, y: int) -> None:
        self._referee, self._kind, self._y = referee, kind, y

    def resolve(self, word: int, extra: Stream) -> int:
        """The part; the word that the kernel stopped at is not used."""
        return self._referee.draw(self._kind, self._y, extra) + OFFSET


def _current(state: State, room: FocusRoom) -> tuple[int, int]:
    """The kind and the size of the sum that is being split; a negative one is split like its opposite."""
    top = int(state.node) - 1
    return int(room.kinds[top]), abs(int(room.sums[top]))


def _envelopes(kinds: Kinds, laws: list[FloatLaw]) -> list[Envelope]:
    """How the sums of each kind split, as far as their laws reach; of a root only 0 does."""

    def of(number: int) -> Envelope:
        left, right, *_, end = kinds.all[number]
        if left == ABSENT or end:
            return NOTHING
        return envelope(laws[left], ALWAYS if right == ABSENT else laws[right], laws[number].reach)

    return [of(number) for number in range(len(kinds.all))]


def _heights(kinds: Kinds) -> list[int]:
    """How many sums wait at most, from a sum of each kind on: the right part waits for the left one."""
    heights: list[int] = []
    for left, right, *_, end in kinds.all:
        below = 1 if left == ABSENT or end else heights[left] + (right != ABSENT)
        heights.append(max(below, 1 if right == ABSENT or end else heights[right]))
    return heights


def _starts(arrays: Sequence[np.ndarray[tuple[int], np.dtype[np.generic]]]) -> IntArray:
    """Where each of some arrays starts when they are joined, and where the last one ends."""
    return np.cumsum([0, *(len(array) for array in arrays)])

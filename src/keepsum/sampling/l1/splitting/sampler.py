"""l1 Laplace noise in two-way tables of any shape: exact, by splitting the columns.

Take a binary tree over the columns, and for a node S the sums y_i of each row i over the columns of S. All columns have
sum 0 if and only if the y_i of every node add up to 0. From the root down, split each y_i into the sums u_i and
y_i - u_i below the two children, independently by the laws of ``splits``, given that the u_i add up to 0: all rows but
one are drawn freely, that one is solved for and accepted with its weight relative to its peak. Accept the sums below
each node with chance B / (product of t), B the chance that its free parts add up to 0; whenever one is rejected, begin
again at the root. What is left has the law exp(-eps |z|_1): ``docs/exact-tables.md`` has the proof.

Entries may be regions of several cells, which are drawn given their sums at the end, or structural zeros. Margins may
have weights of their own instead of being 0: then the table has a further row and column (``added``), which are not
written.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum.sampling.core.driving import PILOT_DRAWS, TASK_CELLS, Referee, equal_ranges, in_parallel, run
from keepsum.sampling.core.kernel import Kernel
from keepsum.sampling.core.kernel_arguments import EXACT_STATE, UNLIMITED, WORD_BITS, State, Task, Words
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.l1.double_geometric import double_geometric
from keepsum.sampling.l1.forced_sums import accept_rest
from keepsum.sampling.l1.splitting.added import Margins, extended
from keepsum.sampling.l1.splitting.kernel_arguments import (
    ACCEPT_ROW,
    DRAW_ROWS,
    FILL,
    LABEL_LEFT,
    LABEL_RIGHT,
    OFFSET,
    PICK_ROOT,
    SplittingRoom,
    SplittingTables,
    SplittingTask,
)
from keepsum.sampling.l1.splitting.laws import TAIL_BITS, Labelling, laws_of
from keepsum.sampling.l1.splitting.packing import group_tables, integers, root_bases, split_tables, starts
from keepsum.sampling.l1.splitting.referee import SplittingReferee
from keepsum.sampling.l1.splitting.tree import Tree, grow_extended
from keepsum.sampling.l1.sum_laws import powers_below, sum_tables

fill_split_tables = Kernel("fill_split_tables", Words, EXACT_STATE, SplittingTables, SplittingTask)

PLAIN = Labelling()


class ColumnSplitting:
    """Double geometric noise in tables with all row and column sums 0.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of l1 distance.
    sizes
        The number of cells of each entry, rows x columns; 0 for a structural zero. Take the longer side as rows.
    count
        How many such tables a draw has.
    tail_bits
        Sums with a chance below about 2^-``tail_bits`` are left to the referee; fewer only to test that.
    labelling
        How many labels nodes have: more accept more proposals of wide tables, and take longer to plan.
    margins
        The weights of the row and column sums, where they are not 0.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|_1) on the tables with zero margins, times exp(-eps_g |z(g)|) for each
    margin g with a weight. ``tests/statistical/test_splitting.py``, ``tests/statistical/test_crossing.py``.
    """

    def __init__(
        self,
        epsilon: Fraction,
        sizes: npt.ArrayLike,
        count: int = 1,
        word_bits: int = WORD_BITS,
        tail_bits: int = TAIL_BITS,
        labelling: Labelling = PLAIN,
        margins: Margins | None = None,
    ) -> None:
        table = extended(np.asarray(sizes, dtype=np.int64), margins)
        self._sizes = table.sizes
        self._epsilon, self._count, self._word_bits = epsilon, count, word_bits
        self._block = int(self._sizes.sum())
        self.width = self._block * count
        self._tree = grow_extended(table)
        self._laws = laws_of(epsilon, self._tree, labelling, tail_bits)
        self._tables = self._packed()
        self._referee = SplittingReferee(epsilon, self._tree, self._laws)

    @property
    def usable(self) -> bool:
        """Whether draws are decided by tables, all but a few."""
        return self._laws.usable

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the tables of a draw one after the other, entry by entry and row by row."""
        step = max(1, TASK_CELLS // (16 * self._block))

        def work(first: int, last: int, stream: Stream) -> None:
            self._run(first, last, out.reshape(-1), stream)

        in_parallel(work, equal_ranges(len(out) * self._count, step), rng, threads)

    def pilot(self, rng: Rng, most: int, enough: int = PILOT_DRAWS) -> tuple[int, int, int]:
        """Draw until ``enough`` tables are accepted or ``most`` parts of rows are drawn.

        Returns
        -------
        tuple
            The numbers of accepted tables, of proposals, and of parts drawn.
        """
        draws = max(1, min(enough, 10**7 // self._block))
        out = np.empty(draws * self._block, dtype=np.int64)
        state = self._run(0, draws, out, rng.stream(), most)
        return int(state.job), int(state.tries), int(state.rows_drawn)

    def _run(self, first: int, last: int, flat: IntArray, stream: Stream, most: int = UNLIMITED) -> State:
        room = self._new_room()
        law = double_geometric(self._epsilon, self._word_bits)
        referee = Referee(self._word_bits, lambda _: law, lambda state, u: self._answer(state, room, u))
        return run(fill_split_tables, stream, self._tables, Task(first, last, flat, room, most), referee)

    def _packed(self) -> SplittingTables:
        tree, laws = self._tree, self._laws
        nodes = [laws.nodes[c] for c in tree.class_of[: tree.inner].tolist()]
        kept = [node.frequencies for node in nodes]
        lengths = integers([0 if f is None else len(f.measure) for f in kept])
        rows, columns = np.nonzero(self._sizes)
        entry_sizes = self._sizes[rows, columns]
        leaf_of = np.empty(len(tree.order), dtype=np.int64)
        leaf_of[tree.order] = tree.inner + np.arange(len(tree.order))
        by_class = tree.class_of[: tree.inner]
        bases = starts([len(node.bases) for node in laws.nodes])
        root_chances, root_error = root_bases(tree, laws)
        return SplittingTables(
            splits=split_tables(tree, laws),
            groups=group_tables(laws),
            kinds=len(tree.kinds),
            kind_of_row=tree.kind_of_row,
            left=tree.left,
            right=tree.right,
            inner=tree.inner,
            law=laws.law_of[by_class].reshape(-1),
            law_count=integers([len(node.parts) for node in nodes]),
            base_start=bases[by_class],
            base_left=integers([base.left for node in laws.nodes for base in node.bases]),
            base_right=integers([base.right for node in laws.nodes for base in node.bases]),
            split_start=starts([len(node.bases) * len(node.parts) for node in laws.nodes])[by_class],
            group_start=starts([len(node.labels) for node in laws.nodes])[by_class],
            blocks=integers([1 if f is None else f.blocks for f in kept]),
            frequencies=lengths,
            measure_start=np.cumsum(lengths) - lengths,
            measure=np.concatenate([np.empty(0), *(f.measure for f in kept if f is not None)]),
            log_alias=np.array([0.0 if f is None else np.log(2.0) - f.growth * f.points for f in kept]),
            is_real=np.array([_is_real(tree, node) for node in range(tree.inner)], dtype=np.int64),
            root_chances=root_chances,
            root_error=root_error,
            entry_row=np.ascontiguousarray(rows),  # nonzero gives views with gaps
            entry_leaf=leaf_of[columns],
            entry_size=entry_sizes,
            entry_start=np.cumsum(entry_sizes) - entry_sizes,
            noise=double_geometric(self._epsilon, self._word_bits).table,
            sums=sum_tables(powers_below(int(entry_sizes.max())), self._epsilon, self._word_bits),
            width=self._block,
        )

    def _new_room(self) -> SplittingRoom:
        """Room for the tables of one worker; the sums below the root are 0."""
        longest = int(self._tables.frequencies.max(initial=0))
        labels = int(np.diff(self._tables.groups.start).max(initial=0))
        nodes = 2 * self._tree.inner + 1
        return SplittingRoom(
            sums=np.zeros((nodes, self._tree.rows), dtype=np.int64),
            group=np.zeros(nodes, dtype=np.int64),
            base=np.zeros(nodes, dtype=np.int64),
            swapped=np.zeros(nodes, dtype=np.int64),
            logs=np.empty(max(labels + 1, int(self._tables.blocks.max()), 2)),
            product=np.empty(longest),
            product_imaginary=np.empty(longest),
        )

    def _answer(self, state: State, room: SplittingRoom, uniform: LazyUniform) -> int:
        """What the kernel could not decide."""
        node, phase, sums = int(state.node), int(state.phase), room.sums
        if phase == FILL:
            size = int(self._tables.entry_size[state.region])
            return accept_rest(size, self._epsilon, state, uniform)
        if phase == PICK_ROOT:
            return self._referee.pick_root(uniform)
        base = int(room.base[node])
        if phase == DRAW_ROWS:
            row = int(state.row)
            return self._referee.draw_sum(node, base, row, abs(int(sums[node, row])), uniform) + OFFSET
        if phase == ACCEPT_ROW:
            row = int(state.solved)
            u = int(sums[self._tree.left[node], row])
            return self._referee.accept_row(node, base, row, int(sums[node, row]), u, uniform)
        child = int(self._tree.left[node] if phase < LABEL_RIGHT else self._tree.right[node])
        group, below = int(room.group[child]), sums[child].tolist()
        if phase in (LABEL_LEFT, LABEL_RIGHT):
            return self._referee.pick_label(child, group, below, uniform)
        return self._referee.accept_node(child, group, int(room.base[child]), below, uniform)


def _is_real(tree: Tree, node: int) -> bool:
    """Whether both children of a node are alike, so that the law of a part is symmetric about half the sum."""
    children = tree.classes[tree.class_of[node]].children
    return children is not None and children[0] == children[1]

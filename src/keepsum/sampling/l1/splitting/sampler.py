"""l1 Laplace noise under every decomposable set of totals: exact, by splitting columns, family by family.

A table whose totals collapse family by family (``lattice/families.py``) is drawn backwards, bundle by bundle
(``bundles``). The sums y_i of a bundle are each split into the sums u_i and y_i - u_i below two children, independently
by the laws of ``splits``, given that the u_i add up to 0: all but one are drawn freely, that one is solved for and
accepted with its weight relative to its peak. Of many, all but every eighth are drawn freely and accepted with the
chance that those have the sum that is needed, relative to a bound; then these are drawn in the same way. Before that
the sums of a bundle are accepted with chance B / (product of t), B the chance that their free parts add up to 0; when
they are rejected, all that they are connected to so far is drawn again. What is left has the law exp(-eps |z|_1):
``docs/exact-tables.md`` has the proof.

A two-way table is the case of one collapse: its columns are summed out, and one tree splits them. Entries may be
regions of several cells, which are drawn given their sums at the end, or structural zeros. Margins of a two-way table
may have weights of their own instead of being 0: then the table has a further row and column (``added``), which are
not written. So may those of several axes, with further slices and corners (``slices``).
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
from keepsum.sampling.l1.splitting.bundles import NONE, SplitTable, bundled
from keepsum.sampling.l1.splitting.kernel_arguments import (
    ACCEPT_ROW,
    ACCEPT_SUM,
    DRAW_ROWS,
    DRAW_SOLVED,
    FILL,
    OFFSET,
    PICK_LABEL,
    SplittingRoom,
    SplittingTables,
    SplittingTask,
)
from keepsum.sampling.l1.splitting.laws import TAIL_BITS, Labelling, Solving, laws_of
from keepsum.sampling.l1.splitting.packing import group_tables, integers, root_bases, split_tables, starts
from keepsum.sampling.l1.splitting.referee import SplittingReferee
from keepsum.sampling.l1.splitting.slices import MarginWeights, two_way
from keepsum.sampling.l1.sum_laws import powers_below, sum_tables

fill_split_tables = Kernel("fill_split_tables", Words, EXACT_STATE, SplittingTables, SplittingTask)

PLAIN, FEW_ROWS = Labelling(), Solving()


class Splitting:
    """Double geometric noise in tables whose totals collapse family by family.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of l1 distance.
    table
        The entries of a table, and how its totals collapse.
    count
        How many such tables a draw has.
    tail_bits
        Sums with a chance below about 2^-``tail_bits`` are left to the referee; fewer only to test that.
    labelling
        How many labels bundles have: more accept more proposals of wide tables, and take longer to plan.
    solving
        Which rows of a bundle are solved for together.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|_1) on the tables whose totals are 0, times the weights of added entries.
    ``tests/statistical/test_splitting.py``, ``tests/statistical/test_crossing.py``,
    ``tests/statistical/test_decomposable.py``, ``tests/statistical/test_slices.py``.
    """

    def __init__(
        self,
        epsilon: Fraction,
        table: SplitTable,
        count: int = 1,
        word_bits: int = WORD_BITS,
        tail_bits: int = TAIL_BITS,
        labelling: Labelling = PLAIN,
        solving: Solving = FEW_ROWS,
    ) -> None:
        self._sizes = table.loads[:, 0]
        self._epsilon, self._count, self._word_bits = epsilon, count, word_bits
        self._block = int(self._sizes.sum())
        self.width = self._block * count
        self._bundles = bundled(table)
        self._laws = laws_of(epsilon, self._bundles, labelling, tail_bits, solving)
        self._tables = self._packed(solving)
        self._referee = SplittingReferee(epsilon, self._bundles, self._laws)

    @property
    def usable(self) -> bool:
        """Whether draws are decided by tables, all but a few."""
        return self._laws.usable

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, the tables of a draw one after the other, each entry by entry."""
        step = max(1, TASK_CELLS // (16 * self._block))

        def work(first: int, last: int, stream: Stream) -> None:
            self._run(first, last, out.reshape(-1), stream)

        in_parallel(work, equal_ranges(len(out) * self._count, step), rng, threads)

    def pilot(self, rng: Rng, most: int, enough: int = PILOT_DRAWS) -> tuple[int, int, int]:
        """Draw until ``enough`` tables are accepted or ``most`` parts of rows are drawn.

        Returns
        -------
        tuple
            The numbers of accepted tables, of proposals (accepted tables and rejected bundles), and of parts drawn.
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

    def _packed(self, solving: Solving) -> SplittingTables:
        bundles, laws = self._bundles, self._laws
        kept = [form.frequencies for form in laws.forms]
        lengths = integers([0 if f is None else len(f.measure) for f in kept])
        points = integers([0 if f is None else f.points for f in kept])
        roots = [root_bases(form, own) for form, own in zip(bundles.forms, laws.forms, strict=True)]
        written = np.flatnonzero(self._sizes)
        entry_sizes = self._sizes[written]
        groups = starts([len(own.labels) for own in laws.forms])
        return SplittingTables(
            splits=split_tables(bundles, laws),
            groups=group_tables(bundles, laws),
            start=bundles.start,
            at=bundles.at,
            left=bundles.left,
            right=bundles.right,
            law=bundles.law,
            below=bundles.below,
            tagged=bundles.tagged,
            tag_start=starts([len(own.bases) for own in laws.forms]),
            tags=integers([base.tag for own in laws.forms for base in own.bases]),
            restart=bundles.restart,
            form=bundles.form,
            law_count=integers([len(form.parts) for form in bundles.forms]),
            split_start=starts(
                [len(own.bases) * len(form.parts) for form, own in zip(bundles.forms, laws.forms, strict=True)]
            ),
            group_start=np.where([form.is_root for form in bundles.forms], NONE, groups),
            blocks=integers([1 if f is None else f.blocks for f in kept]),
            few=integers([0 if f is None else f.few for f in kept]),
            frequencies=lengths,
            measure_start=np.cumsum(lengths) - lengths,
            measure=np.concatenate([np.empty(0), *(f.measure for f in kept if f is not None)]),
            points=points,
            turn_start=2 * (np.cumsum(points) - points),
            cosines=np.concatenate([np.empty(0), *(np.cos(np.pi / g * np.arange(2 * g)) for g in points if g)]),
            sines=np.concatenate([np.empty(0), *(np.sin(np.pi / g * np.arange(2 * g)) for g in points if g)]),
            growth=np.array([0.0 if f is None else f.growth for f in kept]),
            centre=np.array([0.0 if f is None else f.centre for f in kept]),
            log_alias=np.array([0.0 if f is None else np.log(2.0) - f.growth * f.points for f in kept]),
            bases=integers([len(chances) for chances, _ in roots]),
            root_start=starts([len(chances) for chances, _ in roots]),
            root_chances=np.concatenate([chances for chances, _ in roots]),
            root_error=np.array([error for _, error in roots]),
            entry_at=bundles.entry_at[written],
            entry_size=entry_sizes,
            entry_start=np.cumsum(entry_sizes) - entry_sizes,
            noise=double_geometric(self._epsilon, self._word_bits).table,
            sums=sum_tables(powers_below(int(entry_sizes.max())), self._epsilon, self._word_bits),
            solved_rows=solving.rows,
            solved_every=solving.every,
            width=self._block,
        )

    def _new_room(self) -> SplittingRoom:
        """Room for the tables of one worker."""
        longest = int(self._tables.frequencies.max(initial=0))
        labels = int(np.diff(self._tables.groups.start).max(initial=0))
        return SplittingRoom(
            sums=np.zeros(self._bundles.places, dtype=np.int64),
            group=np.zeros(self._bundles.count, dtype=np.int64),
            base=np.zeros(self._bundles.count, dtype=np.int64),
            logs=np.empty(max(labels + 1, int(self._tables.blocks.max()), 2)),
            product=np.empty(longest),
            product_imaginary=np.empty(longest),
            part=np.empty(3),
        )

    def _answer(self, state: State, room: SplittingRoom, uniform: LazyUniform) -> int:
        """What the kernel could not decide."""
        number, phase, tables = int(state.bundle), int(state.phase), self._tables
        if phase == FILL:
            size = int(tables.entry_size[state.region])
            return accept_rest(size, self._epsilon, state, uniform)
        form, base = int(tables.form[number]), int(room.base[number])
        first, last = int(tables.start[number]), int(tables.start[number + 1])
        if phase in (DRAW_ROWS, DRAW_SOLVED, ACCEPT_ROW):
            place = first + int(state.solved if phase == ACCEPT_ROW else state.row)
            y, law = int(room.sums[tables.at[place]]), int(tables.law[place])
            if phase != ACCEPT_ROW:
                return self._referee.draw_sum(form, base, law, abs(y), uniform) + OFFSET
            return self._referee.accept_row(form, base, law, y, int(room.sums[tables.left[place]]), uniform)
        if phase == PICK_LABEL and self._bundles.forms[form].is_root:
            return self._referee.pick_root(form, uniform)
        sums = list(zip(tables.law[first:last].tolist(), room.sums[tables.at[first:last]].tolist(), strict=True))
        if phase == ACCEPT_SUM:
            part, bound = sums[:: tables.solved_every], float(room.part[2])
            return self._referee.accept_sum(form, base, part, -int(state.others_sum), bound, uniform)
        group = int(room.group[number])
        if phase == PICK_LABEL:
            return self._referee.pick_label(form, group, sums, uniform)
        return self._referee.accept_bundle(form, group, base, sums, uniform)


class ColumnSplitting(Splitting):
    """Double geometric noise in two-way tables with all row and column sums 0.

    Parameters
    ----------
    sizes
        The number of cells of each entry, rows x columns; 0 for a structural zero. Take the longer side as rows.
    margins
        The weights of the row and column sums, where they are not 0.

    Guarantee
    ---------
    Exact, as ``Splitting``, times exp(-eps_g |z(g)|) for each margin g with a weight.
    """

    def __init__(
        self,
        epsilon: Fraction,
        sizes: npt.ArrayLike,
        count: int = 1,
        word_bits: int = WORD_BITS,
        tail_bits: int = TAIL_BITS,
        labelling: Labelling = PLAIN,
        margins: MarginWeights | None = None,
    ) -> None:
        table = two_way(np.asarray(sizes, dtype=np.int64), margins)
        super().__init__(epsilon, table, count, word_bits, tail_bits, labelling)

"""On workers: rows of labels to positions of cells, the noise of a task, and a released table read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from keepsum._arrays import BoolArray, IntArray
from keepsum.sampling.core.rng import keyed_rng
from keepsum.sources.writing import canonical_piece
from keepsum.spark.layout import Layout
from keepsum.tables.axes import Axis, Label
from keepsum.tables.domain import Domain
from keepsum.tables.released import ColumnLayout as Columns

# On workers: rows of labels to positions of cells. What is wrong becomes a row too, and the driver says so.
#
# Nothing here raises on account of the data: an error of a worker would be tried again, and would show its row.

PROBLEM = -1  # in place of a task: the position then says what is wrong, and on which axis
MISSING, UNDECLARED, NO_COUNT, NEGATIVE, FRACTION, TOO_LARGE, TWICE = range(7)
KINDS = 8  # a position with a problem is kind + KINDS * axis
COUNT_LIMIT = 2**62  # of counts, and of the sum of those of a task
FLUSH_ROWS = 2**21  # records that are counted before their cells are handed on

TASK, POSITION, COUNTED = "task", "position", "n"
SCHEMA = f"{TASK} int, {POSITION} long, {COUNTED} long"


@dataclass(frozen=True, eq=False)
class Encoder:
    """Labels to codes, for each axis of a domain."""

    domain: Domain

    @cached_property
    def _lookups(self) -> dict[str, dict[Any, int]]:
        """The code of each label as text; of a nested axis, of each label with the code of its parent."""
        return {name: _lookup(self.domain.axis(name)) for name in self.domain.axes}

    def codes(self, batch: Any) -> tuple[dict[str, IntArray], BoolArray, set[int]]:
        """The codes of the rows of a batch, which rows have all of them, and what is wrong with the others."""
        codes: dict[str, IntArray] = {}
        good, problems = np.ones(batch.num_rows, dtype=bool), set()
        for number, name in enumerate(self.domain.axes):
            axis = self.domain.axis(name)
            parents = None if axis.parent is None else codes[axis.parent.name]
            texts, place = _texts(batch.column(number))
            found = _found(texts, place, self._lookups[name], parents)
            missing = (place == len(texts)) | (np.array([*texts, "."], dtype=object) == "")[place]
            bad = found < 0
            if (bad & missing).any():
                problems.add(MISSING + KINDS * number)
            if (bad & ~missing & good).any():  # within a parent that is declared
                problems.add(UNDECLARED + KINDS * number)
            good &= ~bad
            codes[name] = np.maximum(found, 0)
        return codes, good, problems

    def cells(self, batch: Any) -> tuple[IntArray, BoolArray, set[int]]:
        """The number in the domain of the cell of each row, as far as it has one."""
        codes, good, problems = self.codes(batch)
        cells = self.domain.locate(codes) if batch.num_rows else np.empty(0, dtype=np.int64)
        return cells, good, problems


def _lookup(axis: Axis) -> dict[Any, int]:
    if axis.parent is None:
        return {str(label): code for label, code in axis.lookup().items()}
    return {(parent, str(label)): code for (parent, label), code in axis.lookup().items()}


def _texts(column: Any) -> tuple[list[str], IntArray]:
    """The different values as text, and the place of each row's; their number for a missing one.

    Spark takes any bytes for text: those that are none become characters that no declared label has.
    """
    import pyarrow as pa

    encoded = column.dictionary_encode()
    values = encoded.dictionary
    if pa.types.is_date(values.type):
        texts = values.cast(pa.string()).to_pylist()  # Python has no dates before the year 1 or after 9999
    elif pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        texts = [value.decode(errors="surrogateescape") for value in values.cast(pa.large_binary()).to_pylist()]
    else:
        texts = [_text(value) for value in values.to_pylist()]
    return texts, encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False).astype(np.int64)


def _text(value: Any) -> str:
    """A whole number or a boolean as labels are written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _found(texts: list[str], place: IntArray, lookup: dict[Any, int], parents: IntArray | None) -> IntArray:
    if parents is None:
        codes = np.array([*(lookup.get(text, -1) for text in texts), -1], dtype=np.int64)
        return codes[place]
    width = len(texts) + 1
    pairs, pair = np.unique(parents * width + place, return_inverse=True)
    found = [
        lookup.get((key // width, texts[key % width]), -1) if key % width < len(texts) else -1 for key in pairs.tolist()
    ]
    return np.array(found, dtype=np.int64)[pair]


def _counts(column: Any) -> tuple[IntArray, BoolArray, set[int]]:
    """The counts of a batch, which rows have one, and what is wrong with the others."""
    import pyarrow as pa

    problems: set[int] = set()
    absent = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    if absent.any():
        problems.add(NO_COUNT)
    if pa.types.is_integer(column.type):
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        fraction = np.zeros(len(values), dtype=bool)
    elif pa.types.is_decimal(column.type):
        numbers = [0 if value is None else value for value in column.to_pylist()]
        fraction = np.array([number != int(number) for number in numbers], dtype=bool)
        values = np.array([min(max(int(number), -1), COUNT_LIMIT) for number in numbers], dtype=np.int64)
    else:
        floats = np.nan_to_num(column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64), nan=0.0)
        fraction = floats != np.rint(floats)
        values = np.where(np.abs(floats) >= 2.0**53, float(COUNT_LIMIT), floats)
    large, negative = values >= COUNT_LIMIT, values < 0
    for kind, bad in ((FRACTION, fraction), (TOO_LARGE, large), (NEGATIVE, negative)):
        if bad.any():
            problems.add(kind)
    good = ~(absent | fraction | large | negative)
    return np.where(good, values, 0).astype(np.int64), good, problems


def encode(layout: Callable[[], Layout], of_records: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Rows of labels, and of counts in the last column unless they are records, as positions with their counts.

    A function for ``mapInArrow``; ``layout`` is called on workers.
    """

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        where = layout()
        encoder = Encoder(where.domain)
        problems: set[int] = set()
        waiting: list[IntArray] = []
        for batch in batches:
            cells, good, wrong = encoder.cells(batch)
            problems |= wrong
            if of_records:
                waiting.append(where.positions(cells[good]))
                if sum(map(len, waiting)) >= FLUSH_ROWS:
                    yield _counted(where, waiting)
                    waiting = []
                continue
            counts, usable, wrong = _counts(batch.column(batch.num_columns - 1))
            problems |= wrong
            good &= usable
            positions = where.positions(cells[good])
            yield _batch(where.task(positions), positions, counts[good])
        if waiting:
            yield _counted(where, waiting)
        found = np.array(sorted(problems), dtype=np.int64)
        yield _batch(np.full(len(found), PROBLEM), found, np.zeros(len(found), dtype=np.int64))

    return work


def _counted(layout: Layout, positions: list[IntArray]) -> Any:
    cells, counts = np.unique(np.concatenate(positions), return_counts=True)
    return _batch(layout.task(cells), cells, counts)


def _batch(task: IntArray, position: IntArray, count: IntArray) -> Any:
    import pyarrow as pa

    columns = [pa.array(task, pa.int32()), pa.array(position, pa.int64()), pa.array(count, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, [TASK, POSITION, COUNTED])


def by_task(batches: Iterator[Any]) -> Iterator[tuple[int, IntArray, IntArray]]:
    """The tasks of a partition that is sorted by them: positions and counts, without the row that every task has.

    Only the rows of one task are held at a time.
    """
    current, waiting = None, [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
    for batch in batches:
        tasks, positions, counts = (batch.column(place).to_numpy(zero_copy_only=False) for place in range(3))
        cuts = [0, *(np.flatnonzero(np.diff(tasks)) + 1).tolist(), len(tasks)]
        for start, end in pairwise(cuts if len(tasks) else [0]):
            if current is not None and tasks[start] != current:
                yield current, *_joined(waiting)
                waiting = []
            current = int(tasks[start])
            there = positions[start:end] >= 0
            waiting.append((positions[start:end][there], counts[start:end][there]))
    if current is not None:
        yield current, *_joined(waiting)


def _joined(parts: list[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    positions, counts = zip(*parts, strict=True)
    return np.concatenate(positions), np.concatenate(counts)


def summarise(layout: Callable[[], Layout], of_records: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The sum of each group that has one, for ``mapInArrow`` on partitions sorted by task; problems as they are."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        where = layout()
        for task, positions, counts in by_task(batches):
            if task == PROBLEM:
                yield _sums(np.full(len(positions), PROBLEM), positions)
            elif float(counts.astype(np.float64).sum()) >= COUNT_LIMIT:
                yield _sums(np.array([PROBLEM]), np.array([TOO_LARGE]))
            elif not of_records and len(np.unique(positions)) < len(positions):
                yield _sums(np.array([PROBLEM]), np.array([TWICE]))
            else:
                groups, place = np.unique(where.group(positions), return_inverse=True)
                totals = np.zeros(len(groups), dtype=np.int64)
                np.add.at(totals, place, counts)
                yield _sums(groups, totals)

    return work


def _sums(groups: IntArray, totals: IntArray) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array(groups, pa.int64()), pa.array(totals, pa.int64())], ["group", "total"])


SUMMARY = "group long, total long"


# The noise of a task is that of its pieces given their sums, drawn from a source whose key follows from the secret of
# the release and the number of the task: whoever does the task, and however often, draws the same.

BATCH_ROWS = 2**16  # that are handed to Spark at a time


@dataclass(frozen=True, eq=False)
class TaskNoise:
    """How the noise of a release is drawn, task by task."""

    # What the keys of all tasks are derived from; held for the run, in the driver and in a broadcast variable.
    secret: bytes = field(repr=False)
    # Of the mechanism: ``"laplace-l1"`` or ``"gaussian"``, and its width.
    kind: str
    scale: Fraction
    # The sum of the noise of each piece of the layout; None if all are 0.
    sums: IntArray | None = field(default=None, repr=False)
    free: bool = False  # whether cells are under no total, so that there are no sums

    def draw(self, layout: Layout, task: int) -> IntArray:
        """The noise of the cells of a task, in the order of their positions."""
        pieces, sizes = layout.pieces_of(task)
        noise = np.empty((1, int(sizes.sum())), dtype=np.int64)
        sums = None if self.sums is None else self.sums[pieces]
        self._sampler(sizes, sums).draw_into(noise, keyed_rng(self.secret, task))
        drawn: IntArray = noise[0]
        return drawn

    def _sampler(self, sizes: IntArray, sums: IntArray | None) -> Any:
        width = int(sizes.sum())
        if self.kind == "laplace-l1":
            from keepsum.sampling.l1.forced_sums import ForcedSums, FreeCells

            return FreeCells(1 / self.scale, width) if self.free else ForcedSums(1 / self.scale, sizes, sums)
        from keepsum.sampling.gaussian.sums import FreeGaussian, LatticeGaussian, SumsGaussian

        part = FreeGaussian(width) if self.free else SumsGaussian(sizes, sums=sums)
        return LatticeGaussian(part, self.scale**2)


def fill(
    layout: Callable[[], Layout], noise: Callable[[], TaskNoise], count: str
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The released rows of tasks, for ``mapInArrow`` on partitions sorted by task.

    ``layout`` and ``noise`` are called on workers.
    """

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        where, how = layout(), noise()
        for task, positions, counts in by_task(batches):
            first, last = where.starts[task : task + 2].tolist()
            released = how.draw(where, task)
            np.add.at(released, positions - first, counts)
            rows = labelled(where.domain, where.codes(where.rows(first, last)), released, count)
            yield from rows.to_batches(max_chunksize=BATCH_ROWS)

    return work


def labelled(domain: Domain, codes: dict[str, IntArray], counts: IntArray, count: str) -> Any:
    """Rows with the labels of cells, and their counts."""
    import pyarrow as pa

    columns = {name: pa.array(list(domain.axis(name).labels)).take(pa.array(codes[name])) for name in domain.axes}
    return pa.table(columns | {count: pa.array(counts)})


# On workers: a released table read back, piece by piece: every cell once, the totals, and the canonical file.
#
# The hash in a certificate is that of the canonical CSV file, in the order of the domain. Workers write its pieces,
# and the driver hashes them one behind the other.

CHUNK_CELLS = 2**19  # of a piece of the file
LOCATED = "chunk int, cell long, n long"
PIECES = "chunk int, problem boolean, file binary, groups array<long>, totals array<long>"
NO_CHUNK = -1


def chunks_of(size: int) -> int:
    """How many pieces the file of a table has."""
    return -(-size // CHUNK_CELLS)


def locate(layout: Callable[[], Layout]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Released rows as numbers of cells, for ``mapInArrow``; rows that are of no cell are in no piece."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        encoder = Encoder(layout().domain)
        for batch in batches:
            cells, good, _ = encoder.cells(batch)
            counts = batch.column(batch.num_columns - 1)
            good &= counts.is_valid().to_numpy(zero_copy_only=False)
            chunk = np.where(good, cells // CHUNK_CELLS, 0)
            cell = np.where(good, cells, NO_CHUNK)
            columns = [pa.array(chunk, pa.int32()), pa.array(cell), counts.fill_null(0).cast(pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, ["chunk", "cell", "n"])

    return work


def check_pieces(layout: Callable[[], Layout], count: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The piece of the file that a partition holds, and the sums of groups in it, for ``mapInArrow``."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        where, table = layout(), pa.Table.from_batches(list(batches), _schema(pa))
        if not table.num_rows:
            return
        chunk = int(table.column("chunk")[0].as_py())
        cells, counts = table.column("cell").to_numpy(), table.column("n").to_numpy()
        first, last = chunk * CHUNK_CELLS, min((chunk + 1) * CHUNK_CELLS, where.size)
        order = np.argsort(cells, kind="stable")
        whole = len(cells) == last - first and bool((cells[order] == np.arange(first, last)).all())
        values = counts[order] if whole else counts[:0]
        file = piece(where, first, last, values, count) if whole else b""
        groups, totals = _totals(where, first, last, values) if whole else (cells[:0], cells[:0])
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([chunk], pa.int32()),
                pa.array([not whole]),
                pa.array([file], pa.binary()),
                pa.array([groups], pa.list_(pa.int64())),
                pa.array([totals], pa.list_(pa.int64())),
            ],
            ["chunk", "problem", "file", "groups", "totals"],
        )

    return work


def _schema(pa: Any) -> Any:
    return pa.schema([("chunk", pa.int32()), ("cell", pa.int64()), ("n", pa.int64())])


def piece(layout: Layout, first: int, last: int, counts: IntArray, count: str) -> bytes:
    """The rows of some cells of the domain in the canonical file."""
    domain = layout.domain
    rows = list(np.unravel_index(np.arange(first, last), domain.shape))
    codes = layout.codes(rows)
    labels: dict[str, tuple[Sequence[Label], IntArray]] = {
        name: (domain.axis(name).labels, codes[name]) for name in domain.axes
    }
    columns = Columns((*labels, count), None, labels, {count: None})
    return canonical_piece(counts, columns, first=first == 0, last=last == layout.size)


def _totals(layout: Layout, first: int, last: int, counts: IntArray) -> tuple[IntArray, IntArray]:
    groups, place = np.unique(layout.group(layout.positions(np.arange(first, last))), return_inverse=True)
    totals = np.zeros(len(groups), dtype=np.int64)
    np.add.at(totals, place, counts)
    return groups, totals

"""On workers: a released table read back, piece by piece: every cell once, the totals, and the canonical file.

The hash in a certificate is that of the canonical CSV file, in the order of the domain. Workers write its pieces, and
the driver hashes them one behind the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sources.writing import canonical_piece
from keepsum.spark.encoding import Encoder
from keepsum.spark.layout import Layout
from keepsum.tables.axes import Label
from keepsum.tables.layout import Layout as Columns

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
    """The groups that some cells of the domain are in, and the sums of their counts."""
    groups, place = np.unique(layout.group(layout.positions(np.arange(first, last))), return_inverse=True)
    totals = np.zeros(len(groups), dtype=np.int64)
    np.add.at(totals, place, counts)
    return groups, totals

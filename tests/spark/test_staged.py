"""The file that is hashed does not fit the driver."""

from __future__ import annotations

import hashlib

import pytest

from keepsum.spark.places import outside_errors
from keepsum.spark.released import PIECES_AT_A_TIME, _hash

PIECES, BYTES = 9, 25 * 10**6  # 225 MB in all; the driver of the tests takes at most 128 MB at once


def test_a_file_is_hashed_piece_by_piece(spark):
    """And in order, whichever worker is first. All pieces at once are refused by Spark."""
    size = BYTES

    def work(batches):
        import hashlib

        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                file = pa.array([hashlib.shake_256(bytes([number])).digest(size)], pa.binary())
                yield pa.RecordBatch.from_arrays([pa.array([number]), file], ["chunk", "file"])

    pieces = spark.range(0, PIECES, 1, PIECES).mapInArrow(work, "chunk long, file binary")
    assert PIECES % PIECES_AT_A_TIME
    with pytest.raises(outside_errors(), match="maxResultSize"):
        pieces.collect()
    digest = hashlib.sha256()
    for number in range(PIECES):
        digest.update(hashlib.shake_256(bytes([number])).digest(BYTES))
    assert _hash(pieces.rdd, PIECES) == digest.hexdigest()

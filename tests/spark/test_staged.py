"""The file that is hashed is larger than the driver's memory."""

from __future__ import annotations

import hashlib

from keepsum.spark.staged import _hash

PIECES, BYTES = 42, 3 * 10**7  # 1.26 GB in all, more than Java's 1 GB


def test_a_file_is_hashed_piece_by_piece(spark):
    """Java would hold on to all that ``toLocalIterator`` hands out, and run out of memory."""

    size = BYTES

    def work(batches):
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                file = pa.array([bytes([number]) * size], pa.binary())
                yield pa.RecordBatch.from_arrays([pa.array([number]), file], ["chunk", "file"])

    pieces = spark.range(0, PIECES, 1, PIECES).mapInArrow(work, "chunk long, file binary")
    assert spark._jvm.java.lang.Runtime.getRuntime().maxMemory() < PIECES * BYTES
    digest = hashlib.sha256()
    for number in range(PIECES):
        digest.update(bytes([number]) * BYTES)
    assert _hash(pieces.rdd, PIECES) == digest.hexdigest()

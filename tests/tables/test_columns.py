"""Parquet and Arrow files that nobody vouches for: bounded before they are decoded, validated before use."""

import contextlib
import io
import random
import subprocess
import sys
import zlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import keepsum as ks
from keepsum import _memory as memory
from keepsum.sources.reading import open_columns
from keepsum.tables.columns import unpacked_size

LABELS = ["Alpha", "Beta", "Gamma", "Delta"]


def as_parquet(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink, **options)
    return sink.getvalue()


def as_arrow(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def read(data: bytes, **options) -> ks.Table:
    return ks.read_table(io.BytesIO(data), count="n", **options)


def bad_offsets() -> pa.Array:
    """Four texts, of which the second is said to end two gigabytes behind the first."""
    _, offsets, data = pa.array(LABELS).buffers()
    wrong = np.frombuffer(offsets, dtype=np.int32)[:5].copy()
    wrong[2] = 2**31 - 1
    return pa.Array.from_buffers(pa.string(), 4, [None, pa.py_buffer(wrong), data])


def bad_indices() -> pa.Array:
    codes = pa.array([0, 1, 2, 10**8], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(LABELS), safe=False)


def table_of(labels: pa.Array) -> pa.Table:
    return pa.table({"county": labels, "n": pa.array([4, 3, 2, 1])})


@pytest.mark.parametrize("labels", [bad_offsets, bad_indices])
def test_bad_offsets_and_indices_are_refused(labels):
    """They would lead into memory that is not the file's."""
    domain = {"county": LABELS}
    with pytest.raises(ks.DataError, match="cannot be read"):
        read(as_arrow(table_of(labels())), domain=domain)
    with pytest.raises(ks.InputError, match="valid Arrow data"):
        ks.Table.from_frame(table_of(labels()), count="n", domain=domain)
    frame = pd.DataFrame({"n": [4, 3, 2, 1]})
    frame["county"] = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([labels()])))
    with pytest.raises(ks.InputError, match="valid Arrow data"):
        ks.Table.from_frame(frame, count="n", domain=domain)


@pytest.mark.audit
def test_a_bad_offset_does_not_kill_the_shell(tmp_path):
    path = tmp_path / "bad.arrow"
    path.write_bytes(as_arrow(table_of(bad_offsets())))
    arguments = ["plan", str(path), "--count", "n", "--keep-total", "--epsilon", "1"]
    command = [sys.executable, "-c", "from keepsum_shell import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be read as one" in done.stderr


def test_good_files_are_read_as_they_were():
    domain = {"county": LABELS}
    for labels in (
        pa.array(LABELS),
        pa.array(LABELS, pa.large_string()),
        pa.array(LABELS).dictionary_encode(),
        pa.chunked_array([LABELS[:2], LABELS[2:]]),
        pa.chunked_array([pa.array(LABELS[:2]).dictionary_encode(), pa.array(LABELS[2:]).dictionary_encode()]),
    ):
        for data in (as_parquet(table_of(labels)), as_arrow(table_of(labels), unify_dictionaries=True)):
            table = read(data, domain=domain)
            assert table.counts.tolist() == [4, 3, 2, 1]
            kind = table.to_frame().schema.field("county").type  # texts are codes again where they were
            assert pa.types.is_dictionary(kind) == pa.types.is_dictionary(labels.type)
    numbers = pa.table({"age": pa.array([1, 2, 3], pa.int8()), "n": pa.array([1, 2, 3], pa.uint16())})
    assert read(as_parquet(numbers), domain={"age": [1, 2, 3]}).counts.tolist() == [1, 2, 3]
    missing = pa.table({"county": ["Alpha", None], "n": [1, 2]})
    with pytest.raises(ks.DataError, match=r"row 2, column 'county', must not be missing"):
        read(as_parquet(missing), domain=domain)


def test_columns_that_are_dropped_are_not_decoded():
    table = table_of(pa.array(LABELS)).append_column("lists", pa.array([[1], [2], [3], [4]]))
    for data in (as_parquet(table), as_arrow(table)):
        assert read(data, drop=["lists"], domain={"county": LABELS}).counts.tolist() == [4, 3, 2, 1]
        with pytest.raises(ks.DataError, match="'lists' must contain text or numbers"):
            read(data, axes=["lists"])


def bomb(rows: int) -> pa.Table:
    return pa.table({"county": pa.repeat(pa.scalar("Alpha"), rows), "n": pa.repeat(pa.scalar(1), rows)})


@pytest.mark.parametrize("write", [as_parquet, lambda table: as_arrow(table, compression="zstd")])
def test_many_equal_rows_are_refused_at_the_second(write, monkeypatch):
    """A small file can stand for millions of rows; that they are one cell shows in the first two."""
    data = write(bomb(200_000))
    assert len(data) < 4 * 200_000
    looked_at = []
    monkeypatch.setattr("keepsum.tables.table.arrange", lambda *_: looked_at.append(1))
    with pytest.raises(ks.DataError, match="row 1 and row 2 are the same cell"):
        read(data)
    with pytest.raises(ks.DataError, match="row 1 and row 2 are the same cell"):
        ks.Table.from_frame(bomb(200_000), count="n")
    assert not looked_at


def test_rows_that_do_not_fit_are_refused_before_they_are_decoded(monkeypatch):
    data = as_parquet(bomb(200_000))
    monkeypatch.setattr(memory, "available", lambda: 10**7)
    with pytest.raises(ks.TooMuchWorkError, match="200,000 rows"):
        read(data)
    with pytest.raises(ks.TooMuchWorkError, match="200,000 rows"):
        read(as_arrow(bomb(200_000), compression="zstd"))


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_what_an_arrow_file_unpacks_to_is_known_before(compression, monkeypatch):
    table = pa.table({"county": pa.array(LABELS * 2000).dictionary_encode(), "n": pa.repeat(pa.scalar(1), 8000)})
    data = as_arrow(table, compression=compression)
    buffers = [buffer for column in table.columns for buffer in column.chunk(0).buffers() if buffer is not None]
    assert sum(buffer.size for buffer in buffers) <= unpacked_size(data) <= sum(buffer.size + 64 for buffer in buffers)
    assert unpacked_size(as_arrow(table)) == 0
    assert len(data) < 8000
    monkeypatch.setattr(memory, "available", lambda: 50_000)
    with pytest.raises(ks.TooMuchWorkError, match="unpacked, must fit in memory"):
        read(data, axes=["county"])


def test_a_packed_buffer_may_claim_anything():
    """The claim stands before the packed bytes; pyarrow would ask for that much memory."""
    data = as_arrow(table_of(pa.array(LABELS)), compression="zstd")
    claim, counts = (32).to_bytes(8, "little"), 4 * 8  # what four counts unpack to
    forged = data.replace(claim, (2**45).to_bytes(8, "little"))
    assert len(forged) == len(data)
    assert unpacked_size(forged) - unpacked_size(data) == 2**45 - counts
    with pytest.raises(ks.TooMuchWorkError, match="must fit in memory"):
        read(forged, axes=["county"])


def test_one_long_text_in_every_row_is_one_object():
    """A dictionary of one long text, and a code for each row: decoded plainly it would take gigabytes."""
    labels = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, dtype=np.int32)), pa.array(["x" * 9_000]))
    source = open_columns(
        io.BytesIO(as_parquet(pa.table({"county": labels, "n": pa.repeat(pa.scalar(1), 100_000)}))), "n"
    ).source
    values = source.labels("county")
    assert len(values) == 100_000
    assert values.values == ["x" * 9_000]


def views(length: int = 9_000, start: int = 0, rows: int = 4) -> pa.Array:
    """Views of one long text, the last of them of this length from this place."""
    text = b"x" * 9_000
    words = np.zeros((rows, 4), dtype=np.int32)
    words[:, 0] = [9_000] * (rows - 1) + [length]
    words[:, 1] = np.frombuffer(b"xxxx", dtype=np.int32)
    words[-1, 3] = start
    return pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(words.tobytes()), pa.py_buffer(text)])


def test_views_of_one_long_text_are_one_object():
    """Each row is 16 bytes in the file; as texts of their own they would be a gigabyte."""
    table = pa.table({"county": views(rows=100_000), "n": pa.repeat(pa.scalar(1), 100_000)})
    values = open_columns(io.BytesIO(as_arrow(table)), "n").source.labels("county")
    assert (len(values), values.values) == (100_000, ["x" * 9_000])


@pytest.mark.parametrize(("length", "start"), [(10**9, 0), (9_000, 10**9), (9_000, 1), (-5, 0), (9_000, -1)])
def test_views_that_lead_out_of_the_file_are_refused(length, start):
    with pytest.raises(ks.DataError, match="cannot be read as one"):
        read(as_arrow(table_of(views(length, start))), axes=["county"])


@pytest.mark.parametrize("write", ["write_ipc", "write_parquet"])
def test_files_that_polars_writes(write, tmp_path):
    """Its texts are views, and so are the values of its categories; a release has plain texts."""
    sexes = pl.Series(["f", "m"] * 2, dtype=pl.Categorical)
    frame = pl.DataFrame({"county": ["a county with a long name"] * 2 + ["b"] * 2, "sex": sexes, "n": [1, 2, 3, 4]})
    path = tmp_path / f"counts.{'arrow' if write == 'write_ipc' else 'parquet'}"
    getattr(frame, write)(path)
    kinds = pa.ipc.open_file(path).schema.types if write == "write_ipc" else []
    assert kinds[:1] == [pa.string_view()] * (write == "write_ipc")
    table = ks.read_table(path, count="n", domain={"county": ["b", "a county with a long name"], "sex": ["f", "m"]})
    assert table.counts.tolist() == [3, 4, 1, 2]
    release = ks.release(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1))
    saved = release.save(tmp_path / f"released{path.suffix}")
    assert ks.verify(saved).passed
    again = pl.read_ipc(saved) if kinds else pl.read_parquet(saved)
    assert again.schema["county"] == pl.String
    with_gaps = frame.with_columns(county=pl.Series(["a", None, "b", "b"]))
    getattr(with_gaps, write)(path)
    with pytest.raises(ks.DataError, match="row 2"):
        ks.read_table(path, count="n", domain={"county": ["a", "b"], "sex": ["f", "m"]})


def test_a_released_table_of_another_size_is_not_decoded(released, tmp_path):
    out = released.save(tmp_path / "out.parquet")
    many = pa.repeat(pa.scalar("Alpha"), 50_000)
    out.write_bytes(as_parquet(pa.table({"county": many, "education": many, "count": pa.repeat(pa.scalar(1), 50_000)})))
    (failed,) = [check for check in ks.verify(out).checks if check.name == "table"]
    assert failed.words == "The released table must have 16 rows, one per cell, got 50,000."


def test_a_header_of_many_columns_is_quick_to_refuse(tmp_path):
    """Names were compared each with each."""
    path = tmp_path / "wide.csv"
    names = [f"c{k}" for k in range(14_000)]
    path.write_text(",".join([*names, "n"]) + "\n" + ",".join(["x"] * 14_000 + ["1"]) + "\n")
    with pytest.raises(ks.DataError, match="at most 64 axes, got 14,000 columns"):
        ks.read_table(path, count="n")


def spoiled(data: bytes, rng: random.Random) -> bytes:
    """A file with some bytes changed, cut off, or moved."""
    result = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        place = rng.randrange(len(result))
        result[place] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    if rng.random() < 0.2:
        del result[rng.randrange(len(result)) :]
    if rng.random() < 0.1:
        place = rng.randrange(len(result) + 1)
        result[place:place] = result[: rng.randrange(64)]
    return bytes(result)


def good_files() -> list[bytes]:
    table = table_of(pa.array(LABELS))
    coded = table_of(pa.array(LABELS).dictionary_encode())
    return [
        as_parquet(table),
        as_parquet(table, compression="zstd", use_dictionary=False),
        as_arrow(table),
        as_arrow(coded),
        as_arrow(coded, compression="lz4"),
    ]


@pytest.mark.filterwarnings("ignore::keepsum.KeepsumWarning")
@pytest.mark.parametrize("data", good_files(), ids=["parquet", "plain parquet", "arrow", "codes", "compressed"])
def test_spoiled_files_are_refused_or_read(data):
    """Never a crash, and no error but ours."""
    rng = random.Random(zlib.crc32(data))
    for _ in range(150):
        forged = spoiled(data, rng)
        with contextlib.suppress(ks.InputError, ks.TooMuchWorkError):
            read(forged, axes=["county"])

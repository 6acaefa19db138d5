"""Files of records: none is left out, none is counted twice, and no column is filled or converted in silence."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import keepsum as ks

DOMAIN = {"x": ["1", "2", "01"]}


def counts(source: object) -> list[int]:
    return ks.tabulate(source, by="x", domain=DOMAIN).counts.tolist()


def refused(source: object, words: str) -> str:
    with pytest.raises(ks.KeepsumError, match=words) as caught:
        counts(source)
    return str(caught.value)


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n01\n")
    return path


def test_a_file_that_is_given_twice(file, tmp_path):
    (tmp_path / "soft.csv").symlink_to(file)
    (tmp_path / "hard.csv").hardlink_to(file)
    (tmp_path / "copy.csv").write_text(file.read_text())
    for other in (file, f"{tmp_path}/../{tmp_path.name}/a.csv", tmp_path / "soft.csv", tmp_path / "hard.csv"):
        refused([file, other], "given once")
    refused([file, f"{tmp_path}/a*.csv"], "given once")
    refused(tmp_path, "given once")
    assert counts([file, tmp_path / "copy.csv"]) == [2, 0, 2]
    assert counts(tmp_path / "soft.csv") == [1, 0, 1]


@pytest.mark.parametrize("name", ["b.xlsx", "b", "b.csv.bz2", "readme.md", "_b.csv", ".b.csv", "_temporary/b.csv"])
def test_a_folder_with_something_that_would_be_left_out(name, file):
    (file.parent / name).parent.mkdir(exist_ok=True)
    (file.parent / name).write_text("x\n2\n")
    assert repr(Path(name).name) in refused(file.parent, "nothing but CSV, Parquet or Arrow files")
    assert counts(f"{file.parent}/a.*") == [1, 0, 1]


def test_a_folder_in_a_folder(file):
    (file.parent / "more" / "inner").mkdir(parents=True)
    (file.parent / "more" / "inner" / "b.csv").write_text("x\n2\n")
    (file.parent / "_SUCCESS").touch()
    (file.parent / ".a.csv.crc").touch()
    assert counts(file.parent) == [1, 1, 1]
    (file.parent / "_SUCCESS").unlink()
    assert counts(f"{file.parent}/**") == [1, 1, 1]
    refused(f"{file.parent}/*", "matches a folder")
    elsewhere = file.parent / "more" / "link"
    elsewhere.symlink_to(file.parent / "more" / "inner")
    refused(file.parent, "but contains 'link'")


def test_what_is_no_plain_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for source in (tmp_path / "pipe.csv", f"{tmp_path}/p*.csv", "/dev/null", "/dev/zero"):
        refused(source, "must be a plain file")
    refused(tmp_path, "nothing but")


def write(path: Path, **columns: pa.Array) -> None:
    writer = pyarrow.parquet.write_table if path.suffix == ".parquet" else pyarrow.feather.write_feather
    writer(pa.table(columns), path)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"x": pa.array(["01"])}, "of one type"),
        ({"x": pa.array([1.6])}, "of one type"),
        ({"x": pa.array([None], pa.null())}, "of one type"),
        ({"y": pa.array([1])}, "must have a column 'x'"),
        ({"X": pa.array([1])}, "must have a column 'x'"),
        ({"X": pa.array([1]), "x": pa.array([1])}, "only in case"),
    ],
)
def test_parts_with_other_columns(suffix, other, words, tmp_path):
    for first, second in (("a", "b"), ("b", "a")):
        write(tmp_path / f"{first}.{suffix}", x=pa.array([1, 2]))
        write(tmp_path / f"{second}.{suffix}", **other)
        refused(tmp_path, words)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_parts_with_columns_that_are_not_counted_by(suffix, tmp_path):
    write(tmp_path / f"a.{suffix}", z=pa.array([1, 1]), x=pa.array(["1", "2"]))
    write(tmp_path / f"b.{suffix}", x=pa.array(["01"]).dictionary_encode(), y=pa.array(["2"]))
    write(tmp_path / f"c.{suffix}", x=pa.array(["01"], pa.large_string()))
    assert counts(tmp_path) == [1, 1, 2]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(end, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(end.join(["x,y", "1,a", '01,"b"', "2,c", ""]).encode())
    assert counts(path) == [1, 1, 1]


def test_line_ends_of_two_kinds(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x\r\n1\n2\r01\n")
    refused(path, "one kind of line ends")


def test_a_file_without_a_header_shows_no_record(tmp_path):
    (tmp_path / "a.csv").write_text("Alice,Cook\nBob,Lake\n")
    (tmp_path / "b.csv").write_text("Alice,Alice\nBob,Lake\n")
    frame = pd.DataFrame([["Bob", "x", "Lake"]], columns=["Alice", "x", "Cook"])
    for source in (tmp_path / "a.csv", tmp_path / "b.csv", frame):
        with pytest.raises(ks.DataError) as caught:
            ks.tabulate(source, by=["county", "x"], domain={"x": ["1"], "county": ["Cook"]})
        assert "Alice" not in str(caught.value)
        assert "'county'" in str(caught.value) or "different names" in str(caught.value)


@pytest.mark.parametrize(
    "make", [lambda c: pd.DataFrame([c], columns=["x", "x"]), lambda c: pa.table([c, c], ["x"] * 2)]
)
def test_frames_whose_columns_have_the_same_name(make):
    refused(make(["1", "2"]), "same name")


def test_half_floats_are_numbers():
    frame = pa.table({"x": pa.array([1.0, 2.0], pa.float16())})
    assert ks.tabulate(frame, by="x", domain={"x": [1, 2]}).counts.tolist() == [1, 1]

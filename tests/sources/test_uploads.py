"""Files in memory are read as those on disk: the same tables, counts of records, and checks of releases."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import keepsum as ks
from keepsum.releasing.verify import verify_files
from keepsum.sources.uploads import Upload
from keepsum.specs.building import table_of
from keepsum.specs.spec import Axes, RecordsSpec, SourceSpec, Spec

PEOPLE = "id,sex,age,born\n" + "".join(f"p{k % 30},{'fm'[k % 2]},{k % 90},19{50 + k % 40}-01-31\n" for k in range(300))
COUNTED = Spec(
    source=SourceSpec(data="people"),
    records=RecordsSpec(
        by=["sex", "age", "born"], bins={"age": ["0", "18", "65", ""], "born": ["", "1970-01-01", ""]}, unit="id",
        max_rows_per_unit=3,
    ),
    axes=Axes(categories={"sex": ["f", "m"]}),
)  # fmt: skip


def as_parquet(path: Path) -> None:
    rows = [line.split(",") for line in PEOPLE.splitlines()[1:]]
    columns = dict(zip(("id", "sex", "age", "born"), map(list, zip(*rows, strict=True)), strict=True))
    born = pa.array(columns["born"]).cast(pa.date32())
    ages = pa.array([int(age) for age in columns["age"]])
    pq.write_table(pa.table({"id": columns["id"], "sex": columns["sex"], "age": ages, "born": born}), path)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_records_in_memory_are_counted_as_those_in_a_file(kind, tmp_path):
    path = tmp_path / f"people.{kind}"
    if kind == "parquet":
        as_parquet(path)
    else:
        path.write_bytes(PEOPLE.encode() if kind == "csv" else gzip.compress(PEOPLE.encode(), mtime=0))
    from_memory = table_of(COUNTED, upload=Upload(path.name, path.read_bytes()))
    on_disk = Spec(source=SourceSpec(data=str(path)), records=COUNTED.records, axes=COUNTED.axes)
    from_file = table_of(on_disk)
    assert np.array_equal(from_memory.counts, from_file.counts)
    assert from_memory.counts.sum() == 90  # three records of each of thirty people
    assert (from_memory.domain, from_memory.records) == (from_file.domain, from_file.records)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,sex,age\n", "File 'p.csv' must have a column 'born', but has none."),
        (PEOPLE.replace("p1,", ",", 1), "must identify the unit of every record"),
        (PEOPLE.replace(",f,", ",x,"), "must be declared categories"),
        (PEOPLE.replace(",f,", ",,", 1), "must not be missing"),
    ],
)
def test_wrong_records_in_memory_are_refused_in_the_same_words(text, words, tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ks.KeepsumError, match=words) as first:
        table_of(COUNTED, upload=Upload("p.csv", text.encode()))
    with pytest.raises(ks.KeepsumError) as second:
        table_of(Spec(source=SourceSpec(data=str(path)), records=COUNTED.records, axes=COUNTED.axes))
    assert str(first.value) == str(second.value)


def test_a_table_in_memory_has_the_name_of_its_file(tmp_path):
    spec = Spec(source=SourceSpec(data="x.csv", count="n"), axes=Axes(categories={"a": ["x", "y"]}))
    table = table_of(spec, upload=Upload("x.csv", b"a,n\nx,3\ny,4\n"))
    assert table.counts.tolist() == [3, 4]
    with pytest.raises(ks.DataError, match=r"File 'x\.csv'"):
        table_of(spec, upload=Upload("x.csv", b"\x00\x00"))
    assert "PK" not in repr(Upload("x.csv", b"PK"))


def test_a_release_in_memory_verifies_and_a_changed_one_does_not(children, tmp_path):
    release = ks.release(children, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1))
    release = ks.postprocess.nonnegative(release)
    release.save(f"{tmp_path}/out/")
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert verify_files(files)
    assert repr(verify_files(files)) == repr(ks.verify(tmp_path / "out"))
    lines = files["table.csv"].split(b"\n")
    changed = files | {"table.csv": b"\n".join([lines[0], lines[1] + b"1", *lines[2:]])}
    assert not verify_files(changed)
    assert not verify_files({name: data for name, data in files.items() if "unbiased" not in name})
    with pytest.raises(ks.InputError, match="must have a table and a certificate"):
        verify_files({"certificate.json": files["certificate.json"]})

"""Releases that were changed after they were saved do not verify in Spark, nor on one machine."""

from __future__ import annotations

import json

import pytest

import keepsum as ks
from keepsum import spark as kss
from keepsum.releasing.canonical import make_keys


def with_column(table, place, make):
    name = table.column_names[place]
    return table.set_column(place, name, make(table[name].to_pylist()))


def changes():
    """What becomes of the rows of a file, by name."""
    import pyarrow as pa

    return {
        "count": lambda table: with_column(table, 3, lambda n: pa.array([n[0] + 1, *n[1:]])),
        "row": lambda table: table.slice(1),
        "label": lambda table: with_column(table, 1, lambda labels: pa.array(["z", *labels[1:]])),
        "column": lambda table: table.append_column("more", table["n"]),
        "decimals": lambda table: with_column(table, 3, lambda n: pa.array([k + 0.5 for k in n])),
        "time": lambda table: table.set_column(3, "n", table["n"].cast(pa.timestamp("us"))),
        "bytes": lambda table: table.set_column(1, "county", table["county"].cast(pa.binary())),
        "list": lambda table: with_column(table, 1, lambda labels: pa.array([[label] for label in labels])),
        "end": lambda table: table,
        "folder": lambda table: table,
    }


CHANGED = ["count", "row", "label", "column", "decimals", "time", "bytes", "list", "end", "folder"]


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_table_does_not_verify(spark, unsaved, tmp_path, name):
    from pyarrow import parquet

    unsaved().save(tmp_path / "out")
    (file,) = (tmp_path / "out" / "table.parquet").glob("*.parquet")
    parquet.write_table(changes()[name](parquet.read_table(file)), file)
    if name == "end":
        file.write_bytes(file.read_bytes()[:-100])
    if name == "folder":
        (file.parent / "sub").mkdir()
        (file.parent / "sub" / file.name).write_bytes(file.read_bytes())
    (file.parent / f".{file.name}.crc").unlink()
    wrong = [check for check in kss.verify(tmp_path / "out", spark).checks if not check.passed]
    assert wrong
    assert not any("Exception thrown" in check.words for check in wrong)  # of Spark, which says nothing
    assert not ks.verify(tmp_path / "out")


def swap_labels(data):
    totals = data["kept"]["parts"][0]["totals"]
    totals[0]["labels"], totals[1]["labels"] = totals[1]["labels"], totals[0]["labels"]


def forget_a_total(data):
    del data["kept"]["parts"][0]["totals"][1]


def change_a_total(data):
    data["kept"]["parts"][0]["totals"][0]["value"] = 13


@pytest.mark.parametrize("change", [swap_labels, forget_a_total, change_a_total])
def test_a_changed_certificate_does_not_verify(spark, unsaved, tmp_path, change):
    unsaved().save(tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    data = json.loads(path.read_bytes())
    change(data)
    path.write_text(json.dumps(data))
    assert not kss.verify(tmp_path / "out", spark)
    assert not ks.verify(tmp_path / "out")


def test_nothing_is_worked_out_of_a_certificate_that_somebody_else_signed(spark, unsaved, tmp_path, monkeypatch):
    for name in ("own", "other"):
        make_keys(tmp_path / f"{name}.pem", tmp_path / f"{name}.pub.pem")
    unsaved().save(tmp_path / "out", sign_with=tmp_path / "own.pem")
    assert kss.verify(tmp_path / "out", spark, key=tmp_path / "own.pub.pem")
    monkeypatch.setattr("keepsum.spark.verifying._kept", None)
    checks = kss.verify(tmp_path / "out", spark, key=tmp_path / "other.pub.pem").checks
    assert [(check.name, check.passed) for check in checks] == [("certificate", True), ("signature", False)]


def test_a_certificate_that_cannot_be_read_does_not_verify(spark, unsaved, tmp_path):
    unsaved().save(tmp_path / "out")
    (tmp_path / "out" / "certificate.json").unlink()
    (tmp_path / "out" / "certificate.json").mkdir()
    (check,) = kss.verify(tmp_path / "out", spark).checks
    assert "cannot be read" in check.words


def test_what_spark_reads_of_itself_does_not_matter(spark, unsaved, tmp_path):
    """A file says in its metadata that it has other columns than it has."""
    from pyarrow import parquet

    unsaved().save(tmp_path / "out")
    (file,) = (tmp_path / "out" / "table.parquet").glob("*.parquet")
    table = parquet.read_table(file)
    key = b"org.apache.spark.sql.parquet.row.metadata"
    own = parquet.read_metadata(file).metadata
    parquet.write_table(table.replace_schema_metadata({key: own[key].replace(b'"n"', b'"m"')}), file)
    next(file.parent.glob(f".{file.name}.crc")).unlink()
    assert kss.verify(tmp_path / "out", spark)


def test_no_session(spark, unsaved, tmp_path, monkeypatch):
    unsaved().save(tmp_path / "out")
    with pytest.raises(ks.InputError, match="spark= must be a Spark session"):
        kss.verify(tmp_path / "out", None)
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)
    with pytest.raises(ks.InputError, match="must be running, but it was stopped"):
        kss.verify(tmp_path / "out", spark)


def test_names_that_spark_takes_for_patterns_are_refused(spark, tmp_path):
    """Spark would read the table of another folder than that of the certificate."""
    (tmp_path / "w" / "bas[e]").mkdir(parents=True)
    with pytest.raises(ks.InputError, match="which Spark takes for a pattern"):
        kss.verify(tmp_path / "w" / "bas[e]", spark)


def test_a_folder_without_a_table_does_not_verify(spark, unsaved, tmp_path):
    unsaved().save(tmp_path / "out")
    for file in (tmp_path / "out" / "table.parquet").iterdir():
        file.unlink()
    assert [check.words for check in kss.verify(tmp_path / "out", spark).checks if not check.passed] == [
        "it has no files"
    ]

"""Releases without negative counts: what is stated of them, and what verification finds."""

import json
import shutil

import numpy as np
import pytest

import keepsum as ks
from keepsum.lattice.structure import decompose
from keepsum.projection import nearest as projection
from keepsum.releasing.canonical import make_keys
from keepsum.releasing.certificate import certificate_topics
from keepsum.sources.writing import table_bytes, table_hash
from support import mostly_audit

LAPLACE = ks.Laplace.per_unit(epsilon=0.2)
KEEP = {"a sum": [[]], "a hierarchy": ["age", []], "a two-way table": ["age", "place"], "nothing but cells": []}


def sparse() -> ks.Table:
    counts = np.zeros((5, 6), dtype=np.int64)
    counts[::2, ::3] = 40
    return ks.Table.from_array(counts, axes={"age": list("abcde"), "place": list("uvwxyz")})


def overlapping(table: ks.Table) -> ks.Invariants:
    return ks.Invariants.subsets(30, [range(20), range(10, 30), [*range(15), *range(25, 30)]]).over(table.domain)


@pytest.fixture(scope="module")
def release() -> ks.Release:
    return ks.release(sparse(), keep=["age", "place"], mechanism=LAPLACE)


@pytest.fixture(scope="module")
def without(release) -> ks.Release:
    return ks.postprocess.nonnegative(release)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("name", KEEP)
def test_totals_are_kept_and_it_verifies(name, norm, tmp_path):
    keep = sparse().keep(*KEEP[name])
    release = ks.plan(keep=keep, mechanism=LAPLACE).release(sparse())
    without = ks.postprocess.nonnegative(release, norm)
    assert release.table.counts.min() < 0 <= without.table.counts.min()
    assert keep.holds(release.table, without.table)
    assert without.unbiased is release.table
    without.save(f"{tmp_path}/out/")
    found = ks.verify(tmp_path / "out")
    assert found, found
    assert "non-negative table" in [check.name for check in found.checks]
    (record,) = without.certificate.postprocessing
    change = np.abs(without.table.counts - release.table.counts)
    assert record.norm == norm
    assert record.unique
    assert record.sha256 == table_hash(without.table)
    assert (record.cells_changed, record.l1_distance, record.largest_change) == (
        np.count_nonzero(change), change.sum(), change.max()
    )  # fmt: skip


def test_everything_else_in_a_certificate_is_of_the_unbiased_table(release, without):
    for name in release.certificate._record.__struct_fields__:
        if name != "postprocessing":
            assert getattr(without.certificate, name) == getattr(release.certificate, name)
    assert without.accuracy().margins.tolist() == release.accuracy().margins.tolist()


def test_a_reader_is_told_of_the_bias(without):
    sentence = without.certificate.warnings[0]
    (record,) = without.certificate.postprocessing
    assert f"{record.cells_changed} of 30 cells changed, by at most {record.largest_change}" in sentence
    assert "Counts at or near 0 are now biased upwards" in sentence
    assert "intervals are those of the unbiased table beside it" in sentence
    assert "nearest table in l1" in without.certificate._repr_html_()


def test_where_nothing_is_negative_nothing_changes():
    table = ks.Table.from_array([500, 600, 700], axes={"age": list("abc")})
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=2))
    without = ks.postprocess.nonnegative(release)
    assert without.table.counts.tolist() == release.table.counts.tolist()
    assert not any("negative" in sentence for sentence in without.certificate.warnings)  # nothing to be warned of
    (published,) = dict(certificate_topics(without.certificate))["Published"]
    assert published.endswith("no count was negative, so it is the unbiased table itself.")


def test_overlapping_totals_have_a_distance_that_is_worked_out_again(tmp_path):
    table = sparse()
    release = ks.plan(keep=overlapping(table), mechanism=LAPLACE).release(table)
    without = ks.postprocess.nonnegative(release)
    assert not without.certificate.postprocessing[0].unique
    assert "one of the nearest tables" in without.certificate.warnings[0]
    without.save(tmp_path / "out.csv")
    assert ks.verify(tmp_path / "out.csv")
    with pytest.raises(ks.PlanError, match="Use l1"):
        ks.postprocess.nonnegative(release, "l2")


def test_it_reads_the_release_alone(release, tmp_path):
    """The same table from the files, later, as at once."""
    release.save(f"{tmp_path}/out/")
    again = ks.read_release(tmp_path / "out")
    assert again.certificate.to_json() == release.certificate.to_json()
    assert again.plan.person_distance == release.plan.person_distance
    first, second = ks.postprocess.nonnegative(release), ks.postprocess.nonnegative(again)
    assert first.certificate.to_json() == second.certificate.to_json()
    first.save(f"{tmp_path}/first/")
    second.save(f"{tmp_path}/second/")
    for name in ("table.csv", "table.unbiased.csv", "certificate.json"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    assert (tmp_path / "out" / "table.csv").read_bytes() == (tmp_path / "first" / "table.unbiased.csv").read_bytes()


@mostly_audit("name", ["out.csv", "out.parquet", "out.arrow", "out/"])
def test_it_can_be_read_again(without, tmp_path, name):
    without.save(f"{tmp_path}/{name}")
    again = ks.read_release(f"{tmp_path}/{name}")
    assert again.table.counts.tolist() == without.table.counts.tolist()
    assert again.unbiased.counts.tolist() == without.unbiased.counts.tolist()
    again.save(f"{tmp_path}/{name}", force=True)
    assert ks.verify(f"{tmp_path}/{name}")


def test_once_is_enough(without):
    with pytest.raises(ks.InputError, match="removed already"):
        ks.postprocess.nonnegative(without)


def test_a_release_that_does_not_verify_is_not_read(release, tmp_path):
    path = release.save(tmp_path / "out.csv")
    path.write_text(path.read_text().rsplit("\ne,z,", 1)[0] + "\ne,z,999999\n")
    with pytest.raises(ks.InputError, match="must verify before it is used, but this one fails: hash"):
        ks.read_release(path)
    seeded = ks.release(sparse(), keep=[[]], mechanism=LAPLACE, rng=ks.rng(seed=1))
    seeded.save(path, force=True)
    with pytest.raises(ks.InputError, match="randomness"):
        ks.read_release(path)
    assert ks.read_release(path, allow_seeded=True).table.counts.tolist() == seeded.table.counts.tolist()


# -- what verification finds ------------------------------------------------------------------------


def failures(path) -> dict[str, str]:
    return {check.name: check.words for check in ks.verify(path).checks if not check.passed}


def forge(folder, release: ks.Release, counts: np.ndarray) -> None:
    """Publish other counts instead, with all that the certificate states about them."""
    from dataclasses import replace

    from keepsum.releasing.postprocess import nonnegative_record

    table = replace(release.table, counts=counts)
    (record,) = release.certificate.postprocessing
    stated = nonnegative_record(release.unbiased, table, record.norm, record.unique)
    document = json.loads((folder / "certificate.json").read_bytes())
    document["postprocessing"] = [json.loads(ks_json(stated))]
    (folder / "certificate.json").write_text(json.dumps(document))
    (folder / "table.csv").write_bytes(table_bytes(table, "csv"))


def ks_json(record) -> bytes:
    import msgspec

    return msgspec.json.encode(record)


@pytest.fixture
def folder(without, tmp_path):
    without.save(f"{tmp_path}/out/")
    return tmp_path / "out"


def test_a_table_that_keeps_the_totals_but_is_not_the_nearest(folder, without):
    """Two people swap cells, and the certificate is made to agree with it."""
    counts = without.table.counts.reshape(5, 6).copy()
    rows, columns = np.nonzero(counts)
    i, j = rows[0], columns[0]
    k, m = next((a, b) for a, b in zip(rows, columns, strict=True) if a != i and b != j)
    counts[[i, k], [j, m]] -= 1
    counts[[i, k], [m, j]] += 1
    forge(folder, without, counts.ravel())
    assert failures(folder) == {"non-negative table": "is not the nearest to the unbiased table in l1"}


def test_the_unbiased_table_is_not_the_nearest(folder, without):
    forge(folder, without, without.unbiased.counts)
    assert failures(folder) == {"non-negative table": "has negative counts"}


def test_truncation_at_zero_breaks_totals(folder, without):
    forge(folder, without, np.maximum(without.unbiased.counts, 0))
    assert failures(folder) == {"non-negative table": "does not keep every total"}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("norm", "l2", None),
        ("unique", False, "did not change as the certificate states"),
        ("sha256", "0" * 64, "does not match the certificate"),
        ("cells_changed", 1, "did not change as the certificate states"),
        ("l1_distance", 1, "did not change as the certificate states"),
        ("largest_change", 100, "did not change as the certificate states"),
    ],
)
def test_every_fact_about_it_is_recomputed(folder, without, field, value, words):
    document = json.loads((folder / "certificate.json").read_bytes())
    document["postprocessing"][0][field] = value
    (folder / "certificate.json").write_text(json.dumps(document))
    if field == "norm":  # the table may be nearest in both norms
        same = np.array_equal(ks.postprocess.nonnegative(before(without), "l2").table.counts, without.table.counts)
        assert bool(failures(folder)) != same
    else:
        assert failures(folder) == {"non-negative table": words}


def before(release: ks.Release) -> ks.Release:
    """A release without what was made of it."""
    from dataclasses import replace

    import msgspec

    certificate = msgspec.structs.replace(release.certificate._record, postprocessing=[])
    return ks.Release(replace(release._record, table=release.unbiased, certificate=certificate), release.plan)


def test_both_tables_must_be_there_and_be_the_right_ones(folder):
    shutil.copy(folder / "table.unbiased.csv", folder.parent / "kept.csv")
    (folder / "table.unbiased.csv").unlink()
    assert "unbiased table" in failures(folder)
    shutil.copy(folder / "table.csv", folder / "table.unbiased.csv")
    assert "hash" in failures(folder)
    shutil.copy(folder.parent / "kept.csv", folder / "table.unbiased.csv")
    assert ks.verify(folder)
    shutil.copy(folder / "table.unbiased.csv", folder / "table.csv")
    assert failures(folder) == {"non-negative table": "does not match the certificate"}
    (folder / "table.csv").write_text("nothing\n")
    assert "non-negative table" in failures(folder)


def test_a_certificate_that_claims_too_little_fails(folder):
    """Without the record, the published table is not the one that was released."""
    document = json.loads((folder / "certificate.json").read_bytes())
    document["postprocessing"] = []
    (folder / "certificate.json").write_text(json.dumps(document))
    assert "hash" in failures(folder)


def test_a_projection_that_cannot_be_worked_out_again_fails(folder, monkeypatch):
    def gives_up(*_):
        raise ks.PlanError("The solver did not find the nearest table within its limits.")

    monkeypatch.setattr(projection, "_block_sums", gives_up)
    assert "did not find" in failures(folder)["non-negative table"]


def test_a_signature_is_that_of_the_new_certificate(release, tmp_path):
    make_keys(tmp_path / "key.pem", tmp_path / "key.pub.pem")
    release.save(f"{tmp_path}/out/", sign_with=tmp_path / "key.pem")
    without = ks.postprocess.nonnegative(ks.read_release(tmp_path / "out", key=tmp_path / "key.pub.pem"))
    assert without.certificate.signature is None
    without.save(f"{tmp_path}/new/", sign_with=tmp_path / "key.pem")
    assert ks.verify(tmp_path / "new", key=tmp_path / "key.pub.pem")


# -- files ------------------------------------------------------------------------------------------


def test_names_of_files(without, release, tmp_path):
    without.save(tmp_path / "out.csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "out.certificate.json", "out.csv", "out.unbiased.csv"
    ]  # fmt: skip
    release.save(tmp_path / "out.csv", force=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.certificate.json", "out.csv"]


def test_a_file_of_somebody_elses_is_not_replaced(without, release, tmp_path):
    (tmp_path / "out.unbiased.csv").write_text("mine")
    for saved in (without, release):
        with pytest.raises(ks.InputError, match="already exists"):
            saved.save(tmp_path / "out.csv")
    (tmp_path / "out.unbiased.csv").unlink()
    release.save(tmp_path / "out.unbiased.csv")
    for saved in (without, release):
        with pytest.raises(ks.InputError, match="a certificate of its own"):
            saved.save(tmp_path / "out.csv", force=True)
    assert ks.verify(tmp_path / "out.unbiased.csv")


def test_the_kept_totals_decide_whether_it_is_determined(without):
    assert projection.is_unique(decompose(without.plan.invariants.coefficients))
    assert not projection.is_unique(decompose(overlapping(sparse()).coefficients))


def test_who_names_the_unbiased_table_is_told_what_it_belongs_to(without, tmp_path):
    from keepsum.releasing.destination import read_certificate

    without.save(f"{tmp_path}/out/")
    without.save(tmp_path / "released.csv")
    for name, words in (
        ("out/table.unbiased.csv", f"name its folder, {str(tmp_path / 'out')!r}."),
        ("released.unbiased.csv", f"name its table, {str(tmp_path / 'released.csv')!r}."),
    ):
        for read in (ks.verify, read_certificate):
            with pytest.raises(ks.InputError) as caught:
                read(tmp_path / name)
            assert str(caught.value).endswith(f"This is the unbiased table of a release: {words}")

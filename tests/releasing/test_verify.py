"""Releases that are verified: what a check says of a table, of its totals and of what was declared."""

import json

import polars as pl
import pytest

import keepsum as ks
from releasing.verifying import LAPLACE, edit, failures

NONNEGATIVE = {
    "kind": "nonnegative", "norm": "l1", "unique": True, "sha256": "0" * 64,
    "cells_changed": 0, "l1_distance": 0, "largest_change": 0,
}  # fmt: skip


def test_one_changed_cell_fails_and_says_which_total_broke(signed):
    lines = signed.read_text().splitlines()
    county, education, count = lines[6].split(",")
    lines[6] = f"{county},{education},{int(count) + 1}"
    signed.write_text("\n".join(lines) + "\n")
    found = ks.verify(signed)
    assert not found
    (broken,) = [check for check in found.checks if check.name == "kept totals"]
    assert broken.words == (
        "3 differ: total of county=Beta (55 in the certificate, 56 in the table); "
        "total of education=Medium (35 in the certificate, 36 in the table); "
        "grand total (135 in the certificate, 136 in the table)"
    )


def test_every_change_of_the_declarations_fails(released, tmp_path):
    path = released.save(tmp_path / "out.csv")
    certificate = tmp_path / "out.certificate.json"
    assert failures(path) == []
    good = certificate.read_bytes()
    for change, check in (
        (lambda d: d["kept"]["parts"][0]["totals"][0].update(value=21), "kept totals"),
        (lambda d: d["kept"]["parts"][0]["totals"][0].update(labels=["Beta"]), "kept totals"),
        (lambda d: d["kept"]["parts"][0]["totals"].pop(), "kept totals"),
        (lambda d: d["kept"]["parts"][0]["totals"].reverse(), "kept totals"),
        (lambda d: d["kept"]["parts"].pop(0), "statement"),
        (lambda d: d["kept"]["parts"][0].update(axes=["nowhere"]), "kept totals"),
        (lambda d: d["kept"]["parts"][0].update(axes=["education"]), "kept totals"),
        (lambda d: d["domain"]["axes"][0]["labels"].reverse(), "kept totals"),
        (lambda d: d["domain"]["axes"][0]["labels"].pop(), "kept totals"),
        (lambda d: d["domain"]["axes"][0].update(parents=[0, 0, 0, 0]), "kept totals"),
        (lambda d: d["domain"].update(structural_zeros=[99]), "kept totals"),
        (lambda d: d["domain"].update(structural_zeros=[2**52, 2**53 - 1]), "kept totals"),
        (lambda d: d["domain"].update(taken_from_data=["nowhere"]), "kept totals"),
        (lambda d: d["table"].update(cells=17), "statement"),
        (lambda d: d["table"].update(count="number"), "table"),
        (lambda d: d["table"].update(sha256="0" * 64), "hash"),
        (lambda d: d.update(randomness="seed"), "randomness"),
        (lambda d: d.update(surprise=1), "certificate"),
        (lambda d: d.update(released="9999-99-99T99:99:99Z"), "certificate"),
        (lambda d: d.update(postprocessing=["rounded"]), "certificate"),
        (lambda d: d.update(postprocessing=[NONNEGATIVE]), "unbiased table"),
        (lambda d: d.update(ledger="paid"), "certificate"),
    ):
        edit(certificate, change)
        assert check in failures(path)
        certificate.write_bytes(good)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("Alpha,Low", "Alfa,Low"),
        lambda text: text.replace("education", "schooling"),
        lambda text: text.rsplit("\n", 2)[0] + "\n",
        lambda text: text + "Alpha,Low,3\n",
        lambda text: text.replace("\n", ".0\n").replace("count.0", "count"),
        lambda text: text.replace("\n", ",x\n"),
        lambda text: "",
    ],
)
def test_tables_that_are_none_fail(released, tmp_path, change):
    path = released.save(tmp_path / "out.csv")
    path.write_text(change(path.read_text()))
    assert "table" in failures(path)


def test_a_seeded_release_fails_unless_allowed(children, tmp_path):
    out = ks.release(children, keep=["county"], mechanism=LAPLACE, rng=ks.rng(seed=1))
    path = out.save(tmp_path / "out.csv")
    assert failures(path) == ["randomness"]
    assert failures(path, allow_seeded=True) == []


def test_published_figures(released, tmp_path):
    path = released.save(tmp_path / "out.csv")
    totals = tmp_path / "totals.csv"
    totals.write_text("county,education,count\nAlpha,,20\n,Low,50\n,,135\n")
    assert failures(path, totals=totals) == []
    totals.write_text("total,count\ntotal of county=Alpha,20\ngrand total,136\n")
    (wrong,) = [check for check in ks.verify(path, totals=totals).checks if not check.passed]
    assert (wrong.name, wrong.words) == ("published figures", "1 differs: grand total")
    for text, words in [
        ("county,count\nOmega,20\n", "line 2 of 'totals.csv' must belong to a kept total"),
        ("county,education,count\nAlpha,Low,20\n", "must belong to a kept total"),
        ("town,count\nAlpha,20\n", "must be axes"),
        ("county,number\nAlpha,20\n", "count column"),
        ("county,count\nAlpha,20\nAlpha,21\n", "must be consistent, but line 3"),
        ("county,count\n", "at least one figure"),
        ("county,count\nAlpha,2O\n", "plain digits"),
    ]:
        totals.write_text(text)
        with pytest.raises(ks.InputError, match=words):
            ks.verify(path, totals=totals)


def test_missing_files_are_bad_input(released, tmp_path):
    path = released.save(tmp_path / "out.csv")
    with pytest.raises(ks.InputError, match=r"table .*must be a file"):
        ks.verify(tmp_path / "none.csv", tmp_path / "out.certificate.json")
    (tmp_path / "out.certificate.json").unlink()
    with pytest.raises(ks.InputError, match=r"certificate .*must be a file"):
        ks.verify(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ks.InputError, match="contain one table"):
        ks.verify(tmp_path / "empty")


def test_other_files_in_the_folder_of_a_release_are_not_its_table(released, tmp_path):
    """Such as a report, a plot or a spec of that name; of two tables nobody knows which one it is."""
    folder = released.save(f"{tmp_path}/out/").parent
    for ending in (".html", ".png", ".pem", ".toml", ""):
        (folder / f"table{ending}").write_text("not a table")
    assert ks.verify(folder)
    (folder / "table.tsv").write_text("a table")
    with pytest.raises(ks.InputError, match="must contain one table, got 2"):
        ks.verify(folder)


def test_whole_numbers_as_labels_verify_from_text(tmp_path):
    table = ks.Table.from_array([5, 7, 9], axes={"age": [1, 2, 30]}, count="n")
    out = ks.release(table, keep=[[]], mechanism=LAPLACE)
    assert ks.verify(out.save(tmp_path / "out.csv"))
    assert ks.verify(out.save(tmp_path / "other.parquet"))


def test_verifications_show_themselves(released, tmp_path):
    found = ks.verify(released.save(tmp_path / "out.csv"))
    assert repr(found).startswith("Verification(passed)")
    assert "<b>FAIL</b>" not in found._repr_html_()


def ordered(tmp_path, **options):
    """A release of categories that were taken from a frame."""
    frame = pl.DataFrame({"g": ["b", "a10", "a9"], "h": ["x", "y", "x"], "n": [5, 6, 7]})
    with pytest.warns(ks.CategoriesFromDataWarning):
        table = ks.Table.from_frame(frame, "n", ["h", "g"], within={"g": "h"}, **options)
    return ks.release(table, keep=[[]], mechanism=LAPLACE).save(tmp_path / "out.csv")


def test_a_public_order_is_recorded_and_verified(tmp_path):
    table = ordered(tmp_path, keep_order=True)
    record = json.loads((tmp_path / "out.certificate.json").read_bytes())
    assert record["domain"]["keeps_file_order"] is True
    assert [axis["labels"] for axis in record["domain"]["axes"]] == [["x", "y"], ["b", "a9", "a10"]]
    certificate = ks.Certificate.from_json((tmp_path / "out.certificate.json").read_bytes())
    assert "in the order of the file, declared public" in certificate.warnings[-1]
    assert failures(table) == []


def test_an_order_that_is_not_public_is_that_of_the_labels(tmp_path):
    table = ordered(tmp_path)
    path = tmp_path / "out.certificate.json"
    certificate = ks.Certificate.from_json(path.read_bytes())
    assert certificate.domain.keeps_file_order is False
    assert not any("order" in sentence for sentence in certificate.warnings)
    assert failures(table) == []


def test_categories_in_an_order_that_nobody_declared_public(tmp_path):
    """A certificate cannot hide that it was the rows that decided."""
    table = ordered(tmp_path, keep_order=True)
    path = tmp_path / "out.certificate.json"
    edit(path, lambda data: data["domain"].update(keeps_file_order=False))
    (check,) = [check for check in ks.verify(table).checks if not check.passed]
    assert check.words.endswith(": the order of categories")
    for wrong in (["g", "h"], ["h", "h"], ["planet"]):
        edit(path, lambda data, wrong=wrong: data["domain"].update(taken_from_data=wrong))
        assert failures(table) == ["kept totals"]


def test_the_words_are_those_of_show_and_what_is_only_stated_is_said(signed, tmp_path):
    words = {check.name: check.words for check in ks.verify(signed).checks}
    assert "l1 distance 4: two people exchange values), for a change of any one attribute" in words["statement"]
    assert "the publisher" not in words["statement"]
    visits = pl.DataFrame({"who": [1, 1, 2, 3], "x": ["a", "b", "a", "b"], "y": ["c", "d", "d", "c"]})
    domain = {"x": ["a", "b"], "y": ["c", "d"]}
    table = ks.tabulate(visits, by=["x", "y"], domain=domain, unit="who", max_rows_per_unit=3)
    path = ks.release(table, keep=["x"], mechanism=LAPLACE).save(tmp_path / "visits.csv")
    verification = ks.verify(path)
    words = {check.name: check.words for check in verification.checks}
    assert verification
    assert "per person of at most 3 records" in words["statement"]
    assert words["statement"].endswith("is the publisher's word, and cannot be checked")
    assert words["signature"] == "none: nothing shows who published it"


def test_a_name_that_is_too_long_gets_a_sentence():
    with pytest.raises(ks.InputError, match="The released table must be"):
        ks.verify("x" * 5000 + ".csv")

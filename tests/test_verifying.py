import json

import msgspec
import pytest

import keepsum as ks
from keepsum.signing import make_keys
from keepsum.writing import table_bytes, table_hash

LAPLACE = ks.Laplace(epsilon=0.25)


@pytest.fixture
def signed(released, tmp_path):
    make_keys(tmp_path / "key.pem", tmp_path / "key.pub.pem")
    return released.save(tmp_path / "out.csv", sign_with=tmp_path / "key.pem")


def failures(*arguments, **options):
    return [check.name for check in ks.verify(*arguments, **options).checks if not check.passed]


def edit(path, change):
    data = json.loads(path.read_bytes())
    change(data)
    path.write_bytes(msgspec.json.encode(data))


def test_signatures(signed, tmp_path):
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600
    assert failures(signed, key=tmp_path / "key.pub.pem") == []
    assert failures(signed) == []
    make_keys(tmp_path / "other.pem", tmp_path / "other.pub.pem")
    assert failures(signed, key=tmp_path / "other.pub.pem") == ["signature"]


def test_an_unsigned_release_fails_a_key(released, tmp_path):
    make_keys(tmp_path / "key.pem", tmp_path / "key.pub.pem")
    assert failures(released.save(tmp_path / "out.csv"), key=tmp_path / "key.pub.pem") == ["signature"]


def test_one_changed_cell_fails_and_says_which_total_broke(signed):
    lines = signed.read_text().splitlines()
    county, education, count = lines[6].split(",")
    lines[6] = f"{county},{education},{int(count) + 1}"
    signed.write_text("\n".join(lines) + "\n")
    found = ks.verify(signed)
    assert not found
    (broken,) = [check for check in found.checks if check.name == "kept totals"]
    assert broken.words == "3 broken: total of county=Beta; total of education=Medium; grand total"


def test_a_compensating_change_with_a_new_hash_fails_the_signature(signed, released, tmp_path):
    counts = released.table.counts.copy()
    counts[[0, 5]] += 1
    counts[[1, 4]] -= 1
    forged = ks.Table(released.table.domain, counts, "count")
    signed.write_bytes(table_bytes(forged, "csv"))
    assert failures(signed) == ["hash"]
    edit(tmp_path / "out.certificate.json", lambda data: data["table"].update(sha256=table_hash(forged)))
    assert failures(signed) == ["signature"]
    edit(tmp_path / "out.certificate.json", lambda data: data.update(signature=None))
    assert failures(signed, key=tmp_path / "key.pub.pem") == ["signature"]


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda d: d["guarantee"]["person"].update(distance=2), "statement"),
        (lambda d: d["guarantee"]["person"].update(reading="distance 4, so epsilon 0.5: one person"), "statement"),
        (lambda d: d["guarantee"].update(words="epsilon 0.1 per unit of l1 distance"), "statement"),
        (lambda d: d["mechanism"].update(epsilon="1/8"), "statement"),
        (lambda d: d["mechanism"].update(law="exp(-0.1 |z|₁)"), "statement"),
        (lambda d: d["exposure"].update(pinned=["county=Alpha, education=Low"]), "statement"),
        (lambda d: d["kept"]["totals"][0].update(value=21), "kept totals"),
        (lambda d: d["kept"]["totals"].pop(), "kept totals"),
        (lambda d: d["kept"]["parts"].pop(), "statement"),
        (lambda d: d["kept"]["parts"][0].update(axes=["nowhere"]), "kept totals"),
        (lambda d: d["domain"]["axes"][0]["labels"].reverse(), "hash"),
        (lambda d: d["domain"]["axes"][0]["labels"].pop(), "table"),
        (lambda d: d["domain"].update(structural_zeros=[99]), "kept totals"),
        (lambda d: d.update(randomness="seeded, not for publication"), "randomness"),
        (lambda d: d.update(surprise=1), "certificate"),
        (lambda d: d["guarantee"]["person"].update(reading="distance 4, so epsilon 1e-9: 2 people"), "statement"),
        (lambda d: d["guarantee"]["person"].update(distance=1000), "statement"),
        (lambda d: d["guarantee"]["person"].update(distance_is="an upper bound"), "statement"),
        (lambda d: d["guarantee"].update(between="any two tables whatsoever"), "statement"),
        (lambda d: d["guarantee"].update(delta=[]), "statement"),
        (lambda d: d["guarantee"].update(blocks=[]), "statement"),
        (lambda d: d["guarantee"].update(sampling="rounded"), "statement"),
        (lambda d: d["exposure"].update(bounded=7), "statement"),
        (lambda d: d["exposure"].update(not_checked=-5), "statement"),
        (lambda d: d["accuracy"].update(typical_margin=0), "statement"),
        (lambda d: d.update(warnings=[]), "statement"),
        (lambda d: d.update(postprocessing=["rounded"]), "statement"),
        (lambda d: d.update(ledger="paid"), "statement"),
        (lambda d: d.update(released="9999-99-99T99:99:99Z"), "certificate"),
        (lambda d: d["domain"]["axes"][0].update(parents=[0, 0, 0, 0]), "kept totals"),
        (lambda d: d["domain"].update(structural_zeros=[2**62, 2**63]), "kept totals"),
    ],
)
def test_every_changed_statement_fails(released, tmp_path, change, check):
    path = released.save(tmp_path / "out.csv")
    assert failures(path) == []
    edit(tmp_path / "out.certificate.json", change)
    assert check in failures(path)


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
    assert (wrong.name, wrong.words) == ("published figures", "1 broken: grand total")
    for text, words in [
        ("county,count\nOmega,20\n", "line 2 of 'totals.csv' must be that of a kept total"),
        ("county,education,count\nAlpha,Low,20\n", "must be that of a kept total"),
        ("town,count\nAlpha,20\n", "must be axes"),
        ("county,number\nAlpha,20\n", "count column"),
        ("county,count\nAlpha,20\nAlpha,21\n", "repeats a total"),
        ("county,count\n", "at least one row"),
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
    with pytest.raises(ks.InputError, match="hold one table"):
        ks.verify(tmp_path / "empty")


def test_whole_numbers_as_labels_verify_from_text(tmp_path):
    table = ks.Table.from_array([5, 7, 9], axes={"age": [1, 2, 30]}, count="n")
    out = ks.release(table, keep=[[]], mechanism=LAPLACE)
    assert ks.verify(out.save(tmp_path / "out.csv"))
    assert ks.verify(out.save(tmp_path / "other.parquet"))


def test_verifications_show_themselves(released, tmp_path):
    found = ks.verify(released.save(tmp_path / "out.csv"))
    assert repr(found).startswith("Verification(passed)")
    assert "<b>FAIL</b>" not in found._repr_html_()


def test_no_key_may_stand_twice(signed, tmp_path):
    """A reader would see one value and a program the other."""
    path = tmp_path / "out.certificate.json"
    path.write_text(path.read_text().replace('"epsilon": "1/4"', '"epsilon": "1/1000000", "epsilon": "1/4"'))
    assert failures(signed, key=tmp_path / "key.pub.pem") == ["certificate"]


def test_the_signature_names_the_key_that_made_it(signed, tmp_path):
    edit(tmp_path / "out.certificate.json", lambda data: data["signature"].update(public_key="0" * 64))
    assert failures(signed, key=tmp_path / "key.pub.pem") == ["signature"]
    assert failures(signed) == ["signature"]


def test_keys_of_small_order_sign_nothing(signed, tmp_path):
    """Under the key 1 the signature (1, 0) verifies for about any message."""
    forged = {"algorithm": "Ed25519", "public_key": "01" + "00" * 31, "value": "01" + "00" * 63}
    edit(tmp_path / "out.certificate.json", lambda data: data.update(signature=forged))
    assert failures(signed) == ["signature"]


def test_deep_and_large_numbers_fail_without_a_crash(released, tmp_path):
    path = released.save(tmp_path / "out.csv")
    certificate = tmp_path / "out.certificate.json"
    good = certificate.read_text()
    certificate.write_text(good.replace('"parts": [', '"parts": [' + "[" * 50_000 + "]" * 50_000 + ","))
    assert failures(path) == ["certificate"]
    certificate.write_text(good.replace('"value": 135', f'"value": {2**70}'))
    assert failures(path)

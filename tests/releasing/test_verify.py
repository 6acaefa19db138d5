import copy
import hashlib
import json
import os
import random
import re

import msgspec
import polars as pl
import pytest

import keepsum as ks
from keepsum.releasing.signing import make_keys, read_public_key
from keepsum.sources.writing import table_bytes, table_hash

LAPLACE = ks.Laplace(epsilon=0.25)


NONNEGATIVE = {
    "kind": "nonnegative", "norm": "l1", "unique": True, "sha256": "0" * 64,
    "cells_changed": 0, "l1_distance": 0, "largest_change": 0,
}  # fmt: skip


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
    assert broken.words == (
        "3 differ: total of county=Beta (55 in the certificate, 56 in the table); "
        "total of education=Medium (35 in the certificate, 36 in the table); "
        "grand total (135 in the certificate, 136 in the table)"
    )


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
        (lambda d: d.update(ledger="paid"), "statement"),
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


def ordered(tmp_path, **options):
    """A release of categories that were taken from a frame."""
    frame = pl.DataFrame({"g": ["b", "a10", "a9"], "h": ["x", "y", "x"], "n": [5, 6, 7]})
    with pytest.warns(ks.CategoriesFromDataWarning):
        table = ks.Table.from_frame(frame, ["h", "g"], "n", within={"g": "h"}, **options)
    return ks.release(table, [[]], LAPLACE).save(tmp_path / "out.csv")


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


# -- files that were made to deceive ----------------------------------------------------------------


@pytest.fixture
def nothing_further(monkeypatch):
    """Whatever verify would work out from a certificate."""

    def called(*_):
        raise AssertionError("verify went on")

    for name in ("kept_invariants", "_check_table", "_statement", "_randomness"):
        monkeypatch.setattr(f"keepsum.releasing.verify.{name}", called)


def test_nothing_is_worked_out_after_a_bad_signature(signed, released, tmp_path, nothing_further):
    """A forged certificate may ask for any amount of work."""
    make_keys(tmp_path / "other.pem", tmp_path / "other.pub.pem")
    checks = ks.verify(signed, key=tmp_path / "other.pub.pem").checks
    assert [check.name for check in checks] == ["certificate", "signature"]
    assert checks[-1].words.endswith("; nothing else was checked")
    edit(tmp_path / "out.certificate.json", lambda data: data["table"].update(cells=17))
    assert failures(signed) == ["signature"]
    unsigned = released.save(tmp_path / "unsigned.csv")
    assert failures(unsigned, key=tmp_path / "key.pub.pem") == ["signature"]


def test_a_key_that_is_no_point_is_a_failed_signature(signed, tmp_path):
    edit(tmp_path / "out.certificate.json", lambda data: data["signature"].update(public_key="02" + "00" * 31))
    assert failures(signed) == ["signature"]


def rewrite(path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1), encoding="utf-8", newline="")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"cells": 16', '"cells": 16.5'),
        ('"cells": 16', '"cells": "16"'),
        ('"cells": 16', '"cells": true'),
        ('"bounded": 0', '"bounded": -0'),
        ('"total_variation": 0.0', '"total_variation": -0.0'),
        ('"total_variation": 0.0', '"total_variation": NaN'),
        ('"total_variation": 0.0', '"total_variation": 1e999'),
        ('"epsilon": "1/4"', '"epsilon": "01/4"'),
        ('"epsilon": "1/4"', '"epsilon": "1/4\\n"'),
        ('"epsilon": "1/4"', '"epsilon": "１/4"'),
        ('"norm": "l1"', '"norm": "l1", "norm": "l1"'),
        ('"norm": "l1"', '"norm": "l1", "\\u006eorm": "l1"'),
        ('"Alpha"', '"Alpha\\ud800"'),
        ('Z"', 'Z\\n"'),
        ('"released": "2', '"released": "２'),
        ('"ledger": null,', '"ledger":\u00a0null,'),
        ("{", "\ufeff{"),
        ("{", "[{"),
    ],
)
def test_what_has_no_single_meaning_is_no_certificate(released, tmp_path, old, new):
    path = released.save(tmp_path / "out.csv")
    rewrite(tmp_path / "out.certificate.json", old, new)
    assert failures(path) == ["certificate"]


def test_another_program_may_lay_out_a_signed_certificate_anew(signed, tmp_path):
    """Order, white space, escapes and the spelling of numbers are not what was signed."""
    certificate, key = tmp_path / "out.certificate.json", tmp_path / "key.pub.pem"
    good = certificate.read_text(encoding="utf-8")
    for old, new in (
        ('"cells": 16', '"cells": 1.6e1'),
        ('"level": 0.95', '"level": 95.0E-2'),
        ('"total_variation": 0.0', '"total_variation": 0'),
        ('"epsilon": "1/4"', '"epsilon": "1\\/4"'),
        ('"norm": "l1"', '"\\u006eorm": "l\\u0031"'),
    ):
        certificate.write_text(good.replace(old, new), encoding="utf-8")
        assert certificate.read_text(encoding="utf-8") != good
        assert failures(signed, key=key) == []
    document = json.loads(good)
    certificate.write_text(json.dumps(document, sort_keys=True), encoding="utf-8")
    assert failures(signed, key=key) == []
    certificate.write_text(json.dumps(dict(reversed(document.items())), indent=7), encoding="utf-8")
    assert failures(signed, key=key) == []


def test_a_signature_is_that_of_rfc_8785(signed, tmp_path):
    """Checked as another program would: the canonical form of the file less its signature, by the published key."""
    document = json.loads((tmp_path / "out.certificate.json").read_bytes())
    signature = document.pop("signature")
    # No text of this certificate needs care, and no number but 0.0: sorted keys without white space are canonical.
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    message = re.sub(r":0\.0([,}])", r":0\1", text)
    key = read_public_key(tmp_path / "key.pub.pem")
    key.verify(bytes.fromhex(signature["value"]), message.encode())


def test_a_later_version_still_verifies_todays_signature(signed, tmp_path, monkeypatch):
    """It knows a field more, with a default value; what is signed is what is in the file."""

    class Later(ks.Certificate, frozen=True):
        region: str | None = None

    certificate = tmp_path / "out.certificate.json"
    old = Later.from_json(certificate.read_bytes())
    assert old.region is None
    assert json.loads(old.to_json()) == json.loads(certificate.read_bytes())
    monkeypatch.setattr("keepsum.releasing.verify.Certificate", Later)
    assert failures(signed, key=tmp_path / "key.pub.pem") == []
    edit(certificate, lambda data: data.update(region=None))  # nobody signed this
    assert failures(signed, key=tmp_path / "key.pub.pem") == ["signature"]


def test_nothing_stands_behind_a_certificate(released, tmp_path):
    path = released.save(tmp_path / "out.csv")
    certificate = tmp_path / "out.certificate.json"
    good = certificate.read_bytes()
    for more in (b"{}", b"\0", b"//", good):
        certificate.write_bytes(good + more)
        assert failures(path) == ["certificate"]
    certificate.write_bytes(b" \n" + msgspec.json.format(good, indent=7) + b"\t\r\n")  # white space says nothing
    assert failures(path) == []


@pytest.mark.parametrize("field", ["value", "public_key"])
def test_a_signature_has_one_form(signed, tmp_path, field):
    path = tmp_path / "out.certificate.json"
    good = json.loads(path.read_bytes())["signature"][field]
    for other in (good + "\n", good.upper(), " " + good, good + "\u0000", good[:-1] + "\uff11"):
        edit(path, lambda data, other=other: data["signature"].update({field: other}))
        assert failures(signed) == ["certificate"]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["domain"]["axes"].append(d["domain"]["axes"][0]),
        lambda d: d["domain"].update(taken_from_data=["county", "county"]),
        lambda d: d["domain"].update(taken_from_data=["nowhere"]),
        lambda d: d["kept"]["parts"].append(d["kept"]["parts"][0]),
        lambda d: d["kept"]["parts"][0].update(axes=["county", "county"]),
    ],
)
def test_repeated_axes_and_margins_fail(released, tmp_path, change):
    path = released.save(tmp_path / "out.csv")
    edit(tmp_path / "out.certificate.json", change)
    assert failures(path) == ["kept totals"]


def test_quotients_are_in_lowest_terms(released, tmp_path):
    path = released.save(tmp_path / "out.csv")
    edit(tmp_path / "out.certificate.json", lambda data: data["mechanism"]["parameters"].update(epsilon="2/8"))
    assert failures(path) == ["statement"]


def axis(name, labels, parent=None):
    return {"name": name, "labels": labels, "parent": parent, "parents": None if parent is None else [0] * len(labels)}


@pytest.mark.parametrize(
    ("axes", "parts", "words"),
    [
        ([axis(f"k{k}", ["x"]) for k in range(3000)], [], "at most 64 axes"),
        # Axes side by side within one parent multiply.
        (
            [axis("r", ["x"]), *(axis(f"k{k}", list(range(3000)), "r") for k in range(4))],
            [],
            "at most 2,147,483,647 cells",
        ),
        # Every set of 16 axes is a margin with an entry for each cell.
        (
            [axis(f"k{k}", ["x", "y"]) for k in range(16)],
            [
                {"kind": "margin", "axes": [f"k{k}" for k in range(16) if m >> k & 1], "totals": []}
                for m in range(2**12)
            ],
            "margins over 65,536 cells must fit in memory",
        ),
    ],
    ids=["axes", "nested axes", "margins"],
)
def test_a_small_certificate_cannot_ask_for_much(released, tmp_path, monkeypatch, axes, parts, words):
    path = released.save(tmp_path / "out.csv")

    def change(data):
        data["domain"].update(axes=axes)
        data["kept"].update(parts=parts)

    edit(tmp_path / "out.certificate.json", change)
    monkeypatch.setattr("keepsum._memory.available", lambda: 10**9)
    (failed,) = [check for check in ks.verify(path).checks if not check.passed]
    assert failed.name == "kept totals"
    assert words in failed.words


def test_labels_cannot_write_lines_of_their_own(tmp_path):
    """A label with a line feed looked like another check that had passed."""
    forged = "a\nok      signature           valid, by the given key\x1b[1A\u202e"
    table = ks.Table.from_array([[5, 6], [7, 8]], axes={"county": [forged, "b"], "sex": ["f", "m"]})
    path = ks.release(table, keep=["county"], mechanism=LAPLACE).save(tmp_path / "out.csv")
    assert ks.verify(path)
    edit(tmp_path / "out.certificate.json", lambda data: data["kept"]["parts"][0]["totals"][0].update(value=12))
    found = ks.verify(path)
    assert not found
    for check in found.checks:
        assert check.words.isprintable()
    assert all(line.isprintable() for line in repr(found).split("\n"))
    assert len(repr(found).split("\n")) == 1 + len(found.checks)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_private_keys_are_open_to_their_owner_alone(tmp_path, umask):
    old = os.umask(umask)
    try:
        make_keys(tmp_path / "key.pem", tmp_path / "key.pub.pem")
    finally:
        os.umask(old)
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o610])
def test_a_private_key_that_others_can_read_is_refused(released, tmp_path, mode):
    make_keys(tmp_path / "key.pem", tmp_path / "key.pub.pem")
    (tmp_path / "key.pem").chmod(mode)
    with pytest.raises(ks.InputError, match=f"readable by its owner only, got mode {mode:04o}. Run chmod 600"):
        released.save(tmp_path / "out.csv", sign_with=tmp_path / "key.pem")
    assert not (tmp_path / "out.csv").exists()


STRANGE = [
    0,
    -1,
    2**63,
    10**30,
    -(2**63),
    0.5,
    1e308,
    "",
    "x",
    "a\n",
    "1/0",
    "l2",
    "gaussian",
    None,
    [],
    {},
    [[0]],
    True,
]


def places(value, above=()):
    """The way to every value of a JSON document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [above] * bool(above) + [way for key, held in inside for way in places(held, (*above, key))]


def put(data, way, value) -> None:
    for key in way[:-1]:
        data = data[key]
    data[way[-1]] = value


def test_no_changed_value_makes_verify_raise(children, tmp_path):
    """Any one value of a certificate, or of its file of invariants, may be anything."""
    rng = random.Random(5)
    overlap = ks.Invariants.subsets(16, [[0, 1, 4], [4, 5, 9]]).over(children.domain)
    path = ks.plan(children.keep("county") + overlap, LAPLACE).release(children).save(tmp_path / "out.csv")
    certificate, sidecar = tmp_path / "out.certificate.json", tmp_path / "out.invariants.json"
    good = {file: json.loads(file.read_bytes()) for file in (certificate, sidecar)}
    for _ in range(120):
        data = copy.deepcopy(good)
        changed = rng.choice([certificate, certificate, sidecar])
        put(data[changed], rng.choice(places(good[changed])), rng.choice(STRANGE))
        written = msgspec.json.encode(data[sidecar]) + b"\n"
        if changed is sidecar:
            data[certificate]["kept"]["parts"][-1]["sha256"] = hashlib.sha256(written).hexdigest()
        certificate.write_bytes(msgspec.json.encode(data[certificate]))
        sidecar.write_bytes(written)
        assert isinstance(ks.verify(path), ks.Verification)


def test_what_is_no_plain_file_is_named_and_not_opened(signed, released, tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with pytest.raises(ks.InputError, match=r"must be a file, but it is a pipe\."):
        ks.verify(pipe)
    with pytest.raises(ks.InputError, match=r"The certificate .* must be a file, but it is a pipe\."):
        ks.verify(signed, pipe)
    for special, kind in ((pipe, "a pipe"), ("/dev/zero", "a device")):
        with pytest.raises(ks.InputError, match=f"must be a regular file, but it is {kind}"):
            ks.verify(signed, key=special)
        with pytest.raises(ks.InputError, match=f"must be a regular file, but it is {kind}"):
            released.save(tmp_path / "again.csv", sign_with=special)
        with pytest.raises(ks.InputError, match=f"must be a regular file, but it is {kind}"):
            ks.verify(signed, totals=special)


def test_the_words_are_those_of_show_and_what_is_only_stated_is_said(signed, tmp_path):
    words = {check.name: check.words for check in ks.verify(signed).checks}
    assert "l1 distance 4: two people swap cells), for a change of any one attribute" in words["statement"]
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


def test_nothing_is_worked_out_for_a_table_of_another_domain(released, tmp_path, monkeypatch):
    """A certificate of a few lines can declare millions of cells."""
    path = released.save(tmp_path / "out.csv")
    path.write_text("a,count\nx,1\n")
    monkeypatch.setattr("keepsum.releasing.verify.contradictions", None)
    assert failures(path) == ["table"]

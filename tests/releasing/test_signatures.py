"""Signatures and keys: who published a release, and that nobody changed it since."""

import json
import os
import re

import pytest

import keepsum as ks
from keepsum.releasing.canonical import make_keys, read_public_key
from keepsum.releasing.certificate import CertificateRecord
from keepsum.sources.writing import table_bytes, table_hash
from releasing.verifying import edit, failures


def test_signatures(signed, tmp_path):
    assert (tmp_path / "key.pem").stat().st_mode & 0o777 == 0o600
    assert failures(signed, key=tmp_path / "key.pub.pem") == []
    assert failures(signed) == []
    make_keys(tmp_path / "other.pem", tmp_path / "other.pub.pem")
    assert failures(signed, key=tmp_path / "other.pub.pem") == ["signature"]


def test_an_unsigned_release_fails_a_key(released, tmp_path):
    make_keys(tmp_path / "key.pem", tmp_path / "key.pub.pem")
    assert failures(released.save(tmp_path / "out.csv"), key=tmp_path / "key.pub.pem") == ["signature"]


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


def test_the_signature_names_the_key_that_made_it(signed, tmp_path):
    edit(tmp_path / "out.certificate.json", lambda data: data["signature"].update(public_key="0" * 64))
    assert failures(signed, key=tmp_path / "key.pub.pem") == ["signature"]
    assert failures(signed) == ["signature"]


def test_keys_of_small_order_sign_nothing(signed, tmp_path):
    """Under the key 1 the signature (1, 0) verifies for about any message."""
    forged = {"algorithm": "Ed25519", "public_key": "01" + "00" * 31, "value": "01" + "00" * 63}
    edit(tmp_path / "out.certificate.json", lambda data: data.update(signature=forged))
    assert failures(signed) == ["signature"]


@pytest.fixture
def nothing_further(monkeypatch):
    """Whatever verify would work out from a certificate."""

    def called(*_):
        raise AssertionError("verify went on")

    for name in ("kept_invariants", "_check_table", "_statement", "randomness_check"):
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

    class Later(CertificateRecord, frozen=True):
        region: str | None = None

    certificate = tmp_path / "out.certificate.json"
    old = Later.from_json(certificate.read_bytes())
    assert old.region is None
    assert json.loads(old.to_json()) == json.loads(certificate.read_bytes())
    monkeypatch.setattr("keepsum.releasing.verify.CertificateRecord", Later)
    assert failures(signed, key=tmp_path / "key.pub.pem") == []
    edit(certificate, lambda data: data.update(region=None))  # nobody signed this
    assert failures(signed, key=tmp_path / "key.pub.pem") == ["signature"]


@pytest.mark.parametrize("field", ["value", "public_key"])
def test_a_signature_has_one_form(signed, tmp_path, field):
    path = tmp_path / "out.certificate.json"
    good = json.loads(path.read_bytes())["signature"][field]
    for other in (good + "\n", good.upper(), " " + good, good + "\u0000", good[:-1] + "\uff11"):
        edit(path, lambda data, other=other: data["signature"].update({field: other}))
        assert failures(signed) == ["certificate"]


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

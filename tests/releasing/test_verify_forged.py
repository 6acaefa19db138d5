"""Certificates and tables that were made to deceive, to crash a verifier, or to keep it busy."""

import copy
import hashlib
import json
import os
import random

import msgspec
import pytest

import keepsum as ks
from releasing.verifying import LAPLACE, edit, failures
from support import mostly_audit


def test_no_key_may_stand_twice(signed, tmp_path):
    """A reader would see one value and a program the other."""
    path = tmp_path / "out.certificate.json"
    path.write_text(path.read_text().replace('"epsilon": "1/4"', '"epsilon": "1/1000000", "epsilon": "1/4"'))
    assert failures(signed, key=tmp_path / "key.pub.pem") == ["certificate"]


def test_deep_and_large_numbers_fail_without_a_crash(released, tmp_path):
    path = released.save(tmp_path / "out.csv")
    certificate = tmp_path / "out.certificate.json"
    good = certificate.read_text()
    certificate.write_text(good.replace('"parts": [', '"parts": [' + "[" * 50_000 + "]" * 50_000 + ","))
    assert failures(path) == ["certificate"]
    certificate.write_text(good.replace('"value": 135', f'"value": {2**70}'))
    assert failures(path)


def rewrite(path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1), encoding="utf-8", newline="")


@mostly_audit(
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


def test_nothing_stands_behind_a_certificate(released, tmp_path):
    path = released.save(tmp_path / "out.csv")
    certificate = tmp_path / "out.certificate.json"
    good = certificate.read_bytes()
    for more in (b"{}", b"\0", b"//", good):
        certificate.write_bytes(good + more)
        assert failures(path) == ["certificate"]
    certificate.write_bytes(b" \n" + msgspec.json.format(good, indent=7) + b"\t\r\n")  # white space says nothing
    assert failures(path) == []


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
    path = (
        ks.plan(keep=children.keep("county") + overlap, mechanism=LAPLACE).release(children).save(tmp_path / "out.csv")
    )
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


def test_nothing_is_worked_out_for_a_table_of_another_domain(released, tmp_path, monkeypatch):
    """A certificate of a few lines can declare millions of cells."""
    path = released.save(tmp_path / "out.csv")
    path.write_text("a,count\nx,1\n")
    monkeypatch.setattr("keepsum.releasing.verify.contradictions", None)
    assert failures(path) == ["table"]

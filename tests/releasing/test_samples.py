"""Releases that were made once and must verify for good."""

import json
import shutil
from pathlib import Path

import pytest

import keepsum as ks
from keepsum.releasing.canonical import canonical, parse
from keepsum.releasing.certificate import certificate_topics

SAMPLES = Path(__file__).parents[1] / "certificates"
FOLDERS = sorted(path.parent for path in SAMPLES.glob("*/certificate.json"))


def test_the_samples_are_there():
    """At least those of the first version of the schema; more may be added."""
    assert {path.name for path in FOLDERS} >= {
        "attributes", "chains", "gaussian", "hierarchy", "invariants", "l2_laplace", "margins", "rounded", "signed",
        "nonnegative", "nonnegative_l2", "nonnegative_overlapping", "tight", "zcdp",
    }  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_sample_verifies(folder):
    key = folder / "key.pub.pem"
    found = ks.verify(folder, key=key if key.exists() else None)
    assert found, found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_sample_can_be_read_shown_and_written_again(folder):
    data = (folder / "certificate.json").read_bytes()
    certificate = ks.Certificate.from_json(data)
    assert canonical(parse(certificate.to_json())) == canonical(parse(data))
    details = str(certificate_topics(certificate, details=True))
    assert "per unit of" in details or "zCDP" in details
    assert certificate.ledger is None
    sidecar = folder / "invariants.json"
    plan = certificate.plan(sidecar.read_bytes() if sidecar.exists() else None)
    assert plan.size == certificate.table.cells
    assert plan.person.length == certificate.guarantee.person.distance.length


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_changed_sample_fails(folder, tmp_path):
    copied = shutil.copytree(folder, tmp_path / "out")
    file = copied / "certificate.json"
    document = json.loads(file.read_bytes())
    document["guarantee"]["person"]["distance"]["length"] += 1
    file.write_text(json.dumps(document), encoding="utf-8")
    assert not ks.verify(copied)


@pytest.mark.parametrize("name", ["gaussian", "rounded", "chains"])
def test_an_earlier_sample_is_checked_by_its_own_definition_and_that_is_said(name):
    """Their margins are not decomposable: in real tables the distance is another one, or is not known."""
    folder = SAMPLES / name
    certificate = ks.Certificate.from_json((folder / "certificate.json").read_bytes())
    lattice, today = (
        certificate.plan(),
        ks.plan(keep=certificate.plan().invariants, mechanism=ks.Laplace.per_unit(epsilon=1)),
    )
    assert (certificate.schema, lattice.person.rule) == ("keepsum.certificate/2", None)
    assert today.person is None or today.person.rule is not None
    words = {check.name: check.words for check in ks.verify(folder).checks}
    assert "checked by the definition of that schema: the shortest change that keeps the totals" in words["certificate"]


def test_the_signature_is_the_publishers(tmp_path):
    from keepsum.releasing.canonical import make_keys

    make_keys(tmp_path / "key.pem", tmp_path / "key.pub.pem")
    assert not ks.verify(SAMPLES / "signed", key=tmp_path / "key.pub.pem")

"""Releases taken in from certificates, and ledgers checked against them."""

import shutil
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

import keepsum as ks
from keepsum.ledger.store import Link
from ledger.making import DOMAIN, ROWS, TABLE, TENTH, charge, laplace, links_of, made, rewritten, tampered
from test_arguments import check_message

TESTS = Path(__file__).parents[1]


@pytest.fixture
def ledger(tmp_path):
    return ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(1))


def refused(ledger, certificate, problem, **options) -> None:
    before = ledger.head
    with pytest.raises(ks.InputError, match=problem) as caught:
        ledger.import_release(certificate, **options)
    check_message(caught.value)
    assert ledger.head == before


# -- taken in --------------------------------------------------------------------------------------------------------


def test_a_release_made_without_a_ledger(ledger):
    certificate = laplace("1/4").release(TABLE).certificate
    assert certificate.ledger is None
    assert ledger.import_release(certificate).spent.epsilon == Fraction(1, 4)
    (spend,) = ledger.spends()
    assert (spend.outcome, spend.sha256) == ("imported", certificate.table.sha256)
    assert spend.entry.imported.released == certificate.released
    refused(ledger, certificate, "The release is in the ledger already, as entry 4")
    read = ks.Certificate.from_json(certificate.to_json())
    refused(ks.Ledger.open(ledger.path), read, "already, as entry 4")
    charge(ledger, laplace("3/4"))
    assert ledger.standing().left == 0
    assert [spend.entry.table for spend in ledger.spends()] == [3, 3]


def test_what_has_happened_is_charged_whatever_the_budget(ledger):
    certificate = laplace(2).release(TABLE).certificate
    standing = ledger.import_release(certificate)
    assert (standing.spent.epsilon, standing.left) == (2, 0)
    with pytest.raises(ks.BudgetError, match="0 of 1 left"):
        charge(ledger)
    gaussian = ks.plan(keep=ROWS, mechanism=ks.Gaussian.per_unit(rho="1/8")).release(TABLE).certificate
    assert ledger.import_release(gaussian).spent is None  # which no pure budget can state
    ledger.set_budget("data", ks.Budget.per_unit(rho=10))
    assert ledger.standing().spent.rho == 2 + Fraction(1, 8)


def test_totals_in_a_file_of_their_own(ledger):
    release = ks.plan(keep=ks.Invariants.subsets(4, [[0, 1, 2]]), mechanism=ks.Laplace.per_unit("1/4")).release(TABLE)
    assert release.invariants_file is not None
    refused(ledger, release.certificate, "needs its file of invariants")
    refused(ledger, release.certificate, "must have the hash", invariants=b"{}")
    refused(ledger, release.certificate, "must be given as bytes", invariants="text")
    ledger.import_release(release.certificate, invariants=release.invariants_file)
    with pytest.raises(ks.PlanError, match="together determine"):
        charge(ledger, laplace("1/10", ks.Invariants.subsets(4, [[0, 1]]).over(DOMAIN)))


@pytest.mark.parametrize(("name", "exactness"), [("rounded", "rounded"), ("chains", "estimated")])
def test_sampling_that_is_not_exact(tmp_path, name, exactness):
    certificate = ks.Certificate.from_json((TESTS / "certificates" / name / "certificate.json").read_bytes())
    epsilon = Fraction(certificate.mechanism.parameters["epsilon"])
    pure, approximate = (
        ks.Ledger.create(tmp_path / file, budget=budget)
        for file, budget in (("pure.db", ks.Budget.per_unit(1)), ("delta.db", ks.Budget.per_unit(1, "1/10")))
    )
    assert pure.import_release(certificate).spent is None
    assert approximate.import_release(certificate).spent.epsilon <= epsilon
    cost = approximate.spends()[0].entry.cost
    assert (cost.sampling, Fraction(cost.epsilon)) == (exactness, epsilon)
    assert Fraction(cost.error) >= Fraction(certificate.guarantee.sampling.total_variation)


def test_a_release_that_was_charged_to_this_ledger(ledger):
    certificate = TENTH.release(TABLE, ledger=ledger).certificate
    refused(ledger, certificate, "The release is in the ledger already, as entry 4")
    ledger.add_dataset("more", ks.Budget.per_unit(1))
    refused(ledger, certificate, "as entry 4", dataset="more")
    with ledger.charged(TENTH, "data") as receipt:  # one whose outcome was never written
        unknown = msgspec.structs.replace(laplace("1/10").release(TABLE).certificate._record, ledger=receipt.record)
        refused(ledger, unknown, f"as entry {receipt.record.entry}", dataset="data")
        receipt.released("1" * 64)


def test_a_release_that_was_charged_to_another_ledger(ledger, tmp_path):
    """Which has the same entry number, and a dataset of the same name."""
    other = made(tmp_path / "other.db", releases=0)
    certificate = TENTH.release(TABLE, ledger=other).certificate
    TENTH.release(TABLE, ledger=ledger)
    assert certificate.ledger.entry == 4
    ledger.import_release(certificate)
    assert len(ledger.spends()) == 2
    refused(ledger, certificate, "as entry 6")


def test_ledgers_that_were_made_alike_are_told_apart(tmp_path):
    """In the same second, with the same budget and the same release."""
    first, second = (made(tmp_path / name, releases=0) for name in ("a.db", "b.db"))
    charge(first)
    charge(second)
    assert {link.hash for link in links_of(first.path)}.isdisjoint(link.hash for link in links_of(second.path))


def test_two_releases_of_the_same_table(ledger):
    """With little noise two releases are often alike, and each of them costs."""
    first = laplace("1/4").release(TABLE).certificate._record
    later = msgspec.structs.replace(first, released="2031-01-01T00:00:00Z")
    other = msgspec.structs.replace(first, mechanism=laplace("1/8").release(TABLE).certificate.mechanism)
    ledger.import_release(first)
    assert ledger.import_release(later).spent.epsilon == Fraction(1, 2)
    ledger.import_release(other)
    for certificate in (first, later, other):
        refused(ledger, certificate, "already")
    assert len(ledger.spends()) == 3


def test_a_release_that_was_cut_off_can_be_taken_in_again(ledger):
    certificates = [TENTH.release(TABLE, ledger=ledger).certificate for _ in range(3)]
    with tampered(ledger.path) as connection:
        connection.execute("DELETE FROM entries WHERE number > 5")
    again = ks.Ledger.open(ledger.path)
    assert again.standing().spent.epsilon == Fraction(1, 10)
    for certificate in certificates[1:]:
        again.import_release(certificate)
    refused(again, certificates[0], "already")
    assert again.standing().spent.epsilon == Fraction(3, 10)


@pytest.mark.filterwarnings("ignore:The release is imported, but")  # of tables that are none of one dataset
def test_every_kind_of_certificate_that_was_published(tmp_path):
    """Noise by chains, whose error is a confidence limit, records, files of totals, and all the others."""
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(rho=1, delta="1/2"))
    folders = sorted(path.parent for path in (TESTS / "certificates").glob("*/certificate.json"))
    for folder in folders:
        certificate = ks.Certificate.from_json((folder / "certificate.json").read_bytes())
        file = folder / "invariants.json"
        totals = file.read_bytes() if file.exists() else None
        before = ledger.standing().spent.rho
        ledger.import_release(certificate, invariants=totals)
        assert ledger.standing().spent.rho > before
        refused(ledger, certificate, "already", invariants=totals)
    costs = {folder.name: spend.entry.cost for folder, spend in zip(folders, ledger.spends(), strict=True)}
    assert (costs["chains"].sampling, costs["rounded"].sampling) == ("estimated", "rounded")
    assert Fraction(costs["chains"].error) > 0
    assert ks.Ledger.open(ledger.path).standing() == ledger.standing()


@pytest.mark.parametrize("wrong", [None, b"{}", 5, TABLE])
def test_what_is_no_certificate(ledger, wrong):
    refused(ledger, wrong, "must be given by its path or its Certificate")
    with pytest.raises(ks.InputError, match="must be checked against"):
        ledger.check(against=[wrong])
    if wrong is None or isinstance(wrong, int):
        with pytest.raises(ks.InputError, match="must be checked against a list of certificates"):
            ledger.check(against=wrong)


# -- checked ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def published(ledger):
    """Four releases of a ledger, by their certificates."""
    return [TENTH.release(TABLE, ledger=ledger).certificate for _ in range(4)]


def test_a_ledger_that_has_every_entry(ledger, published):
    found = ledger.check(against=iter(published))
    assert (found.passed, found.entries, found.compared, found.problems) == (True, 11, 4, ())
    assert (found.entries, found.head) == ledger.head
    assert ledger.check(against=[published[0], published[0]]).passed  # the same one twice


def test_a_cut_end(ledger, published):
    with tampered(ledger.path) as connection:
        connection.execute("DELETE FROM entries WHERE number > 7")
    assert ks.Ledger.open(ledger.path).check(against=published[:2]).passed
    found = ks.Ledger.open(ledger.path).check(against=published)
    assert len(found.problems) == 2
    assert found.problems[0].startswith("No entry for the release of 20")
    assert "entry 8 of dataset 'data': the end of the ledger was cut off, or an older copy" in found.problems[0]


def test_an_outcome_cut_off_is_no_charge_lost(ledger, published):
    with tampered(ledger.path) as connection:
        connection.execute("DELETE FROM entries WHERE number > 10")
    assert ks.Ledger.open(ledger.path).check(against=published).passed


def test_a_restored_backup_that_went_on(ledger, published, tmp_path):
    backup = shutil.copy(ledger.path, tmp_path / "backup.db")
    late = TENTH.release(TABLE, ledger=ledger).certificate
    restored = ks.Ledger.open(backup)
    assert not restored.check(against=[late]).passed
    newer = laplace("1/7").release(TABLE, ledger=restored).certificate
    (problem,) = restored.check(against=[*published, late, newer]).problems
    assert "Another entry for the release of" in problem
    assert "the ledger was rewritten, or it is another ledger" in problem


def test_a_chain_rewritten_to_its_end(ledger, published):
    """Every hash is computed anew, so that the chain is sound, and every certificate from there on contradicts it."""
    contents = [link.content for link in links_of(ledger.path)[1:]]
    contents[4] = contents[4].replace('"epsilon":"1/10"', '"epsilon":"1/1000"')
    rewritten(ledger.path, contents)
    forged = ks.Ledger.open(ledger.path)
    assert forged.check().passed
    assert forged.standing().spent.epsilon < Fraction(4, 10)
    found = forged.check(against=published)
    assert len(found.problems) >= 3
    assert all("the ledger was rewritten" in problem for problem in found.problems)


def test_a_certificate_of_another_ledger(ledger, published, tmp_path):
    other = made(tmp_path / "other.db", releases=0)
    stranger = laplace("1/3").release(TABLE, ledger=other).certificate
    (problem,) = ledger.check(against=[*published, stranger]).problems
    assert "it is another ledger" in problem
    (problem,) = ledger.check(against=[TENTH.release(TABLE).certificate]).problems
    assert problem.endswith("was not charged to a ledger; it can be imported.")


def test_two_releases_of_one_charge(ledger, published):
    """A copy of the ledger was charged twice, or somebody forged a certificate."""
    changed = msgspec.structs.replace(
        published[1]._record, table=msgspec.structs.replace(published[1].table, sha256="1" * 64)
    )
    (problem,) = ledger.check(against=[*published, changed]).problems
    assert problem.startswith("Another table in the release of")
    with tampered(ledger.path) as connection:
        connection.execute("DELETE FROM entries WHERE number = 11")  # the last outcome, so that its table is not known
    last = msgspec.structs.replace(published[3]._record, table=changed.table)
    (problem,) = ks.Ledger.open(ledger.path).check(against=[published[3], last]).problems
    assert problem == "Two different releases name entry 10: one of them was charged to a copy."


def test_a_certificate_that_names_an_entry_which_is_no_charge(ledger, published):
    outcome: Link = links_of(ledger.path)[4]
    record = msgspec.structs.replace(published[0].ledger, entry=outcome.number, head=outcome.hash)
    (problem,) = ledger.check(against=[msgspec.structs.replace(published[0]._record, ledger=record)]).problems
    assert problem.startswith("No charge in the release of")
    record = msgspec.structs.replace(published[0].ledger, dataset="other")
    (problem,) = ledger.check(against=[msgspec.structs.replace(published[0]._record, ledger=record)]).problems
    assert problem.startswith("No charge in the release of")

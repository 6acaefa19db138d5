"""What was charged stays charged, whatever becomes of the release, and the ledger says what became of it."""

import pytest

import keepsum as ks
from ledger.making import DOMAIN, TABLE, TENTH, Undrawn, Watched, charge, laplace, made


@pytest.fixture
def ledger(tmp_path):
    return ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(1))


def outcomes(ledger) -> list[str]:
    """As they are in the file."""
    return [spend.outcome for spend in ks.Ledger.open(ledger.path).spends()]


def test_a_release_is_told_apart_by_its_table(ledger):
    release = TENTH.release(TABLE, ledger=ledger)
    (spend,) = ledger.spends()
    charged = release.certificate.ledger
    assert (spend.outcome, spend.sha256) == ("released", release.certificate.table.sha256)
    assert (charged.dataset, charged.entry, charged.head) == ("data", spend.number, spend.hash)
    assert ledger.export()[charged.entry - 1]["hash"] == charged.head
    assert ledger.head[0] == charged.entry + 1  # the outcome


@pytest.mark.parametrize("error", [AssertionError, KeyboardInterrupt, SystemExit, MemoryError, ks.PlanError])
def test_a_draw_that_fails_stays_charged(ledger, error):
    def act() -> None:
        raise error

    with pytest.raises(error):
        TENTH.release(TABLE, ledger=ledger, rng=Watched(act))
    assert outcomes(ledger) == ["failed"]
    assert ledger.standing().spent.epsilon * 10 == 1
    assert ledger.spends()[0].sha256 is None
    TENTH.release(TABLE, ledger=ledger)
    assert outcomes(ledger) == ["failed", "released"]


def test_the_charge_is_on_disk_before_anything_is_drawn(ledger):
    seen = []
    TENTH.release(TABLE, ledger=ledger, rng=Watched(lambda: seen.append(outcomes(ledger))))
    assert seen
    assert all(each == ["unknown"] for each in seen)
    assert outcomes(ledger) == ["released"]


def test_what_is_refused_draws_nothing_and_charges_nothing(ledger):
    too_much, refused = laplace(2), ks.plan(keep=ks.Invariants.subsets(4, [[0]]), mechanism=ks.Laplace.per_unit(1))
    before = ledger.head
    with pytest.raises(ks.BudgetError):
        too_much.release(TABLE, ledger=ledger, rng=Undrawn())
    with pytest.raises(ks.PlanError, match="without noise"):
        refused.release(TABLE, ledger=ledger, rng=Undrawn())
    with pytest.raises(ks.InputError, match="must be one of the ledger"):
        TENTH.release(TABLE, ledger=ledger, dataset="none", rng=Undrawn())
    other = ks.Table.from_array([1, 2], axes={"county": ["Alpha", "Beta"]})
    with pytest.raises(ks.InputError):
        TENTH.release(other, ledger=ledger, rng=Undrawn())
    assert ledger.head == before
    with pytest.raises(AssertionError, match="noise was drawn"):  # so that this randomness would tell
        TENTH.release(TABLE, ledger=ledger, rng=Undrawn())


def test_an_outcome_that_cannot_be_written_is_a_warning(ledger):
    """The release is made, and charged; only what became of it is not in the ledger."""
    held = ledger.path.with_name("away.db")
    with pytest.warns(ks.LedgerWarning, match=r"made and charged as entry 4, but the ledger could not be told") as seen:
        release = TENTH.release(
            TABLE, ledger=ledger, rng=Watched(lambda: ledger.path.exists() and ledger.path.rename(held))
        )
    assert str(seen[0].message).count("does not exist") == 1
    assert seen[0].filename == __file__
    assert repr(ledger).startswith("Ledger(")  # whatever became of its file
    assert release.certificate.ledger.entry == 4
    held.rename(ledger.path)
    assert outcomes(ledger) == ["unknown"]
    assert ledger.check(against=[release.certificate]).passed
    charge(ledger)
    assert outcomes(ledger) == ["unknown", "released"]


def test_a_failure_that_cannot_be_written_is_the_error_that_it_was(ledger):
    def act() -> None:
        ledger.path.unlink()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # and no warning, which would be an error here
        TENTH.release(TABLE, ledger=ledger, rng=Watched(act))


def test_a_context_that_ends_without_a_release_has_failed(ledger):
    with ledger.charged(TENTH):
        pass
    with pytest.raises(ZeroDivisionError), ledger.charged(TENTH) as receipt:
        raise ZeroDivisionError
    assert receipt.record.entry == 6
    with ledger.charged(TENTH) as outer, ledger.charged(TENTH) as inner:
        inner.released("1" * 64)
        outer.released("2" * 64)
    assert outcomes(ledger) == ["failed", "failed", "released", "released"]
    assert [spend.sha256 for spend in ledger.spends()] == [None, None, "2" * 64, "1" * 64]


def test_the_variable_names_a_ledger_for_all_releases(ledger, monkeypatch, tmp_path):
    monkeypatch.setenv("KEEPSUM_LEDGER", str(ledger.path))
    assert TENTH.release(TABLE).certificate.ledger.entry == 4
    assert ks.release(TABLE, keep=["county"], mechanism=ks.Laplace.per_unit(0.1)).certificate.ledger.entry == 6
    other = made(tmp_path / "other.db", releases=0)
    assert TENTH.release(TABLE, ledger=other).certificate.ledger.entry == 4
    assert len(ledger.spends()) == 2
    monkeypatch.setenv("KEEPSUM_LEDGER", str(tmp_path / "none.db"))
    with pytest.raises(ks.LedgerError, match="does not exist"):
        TENTH.release(TABLE, rng=Undrawn())
    monkeypatch.setenv("KEEPSUM_LEDGER", "")
    assert TENTH.release(TABLE).certificate.ledger is None
    with pytest.raises(ks.InputError, match="must be named with its ledger"):
        TENTH.release(TABLE, dataset="data", rng=Undrawn())


def test_datasets_have_budgets_of_their_own(ledger):
    ledger.add_dataset("more", ks.Budget.per_unit(rho=1), DOMAIN)
    with pytest.raises(ks.InputError, match=r"Say which dataset .* 'data', 'more'"):
        TENTH.release(TABLE, ledger=ledger)
    TENTH.release(TABLE, ledger=ledger, dataset="more")
    laplace(1).release(TABLE, ledger=ledger, dataset="data")
    assert (ledger.standing("data").left, ledger.standing("more").left) == (0, 1 - ks.Budget.per_unit("1/200").epsilon)
    with pytest.raises(ks.InputError, match="is in the ledger already"):
        ledger.add_dataset("more", ks.Budget.per_unit(1))


def test_a_number_that_could_not_be_read_again_is_refused(ledger):
    """It would be in the file for good, and nobody could open the ledger any more."""
    from fractions import Fraction

    long = Fraction(10**3000 + 1, 3 * 10**3000)
    before = ledger.head
    for way in (lambda: ledger.set_budget("data", ks.Budget.per_unit(long)), lambda: charge(ledger, laplace(long))):
        with pytest.raises(ks.InputError, match="shorter"):
            way()
    with pytest.raises(ks.InputError, match=r"up to 2\^53"):
        ledger.add_dataset("more", ks.Budget.per_unit(1), ks.Domain({"code": [10**30, 1]}))
    for name in ("", "a" * 201, " a", "a\nb", "\ud800", 5, None):
        with pytest.raises(ks.InputError, match="The name of a dataset must be"):
            ledger.add_dataset(name, ks.Budget.per_unit(1))
    assert ledger.head == before
    assert ks.Ledger.open(ledger.path).head == before

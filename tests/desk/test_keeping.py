"""What was drawn is never lost nor charged twice, and no page shows one draft with the number of another."""

from __future__ import annotations

import re
import threading

import pytest

import keepsum as ks
from desk.asking import opened, release
from keepsum.desk import deriving, finished
from keepsum.releasing.release import Prepared
from keepsum.specs.writing import toml_of
from support import mostly_audit


@pytest.fixture
def charged(tmp_path):
    """A browser at the last step, its desk, and the ledger."""
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=100)
    browser, desk = opened(ledger=str(tmp_path / "ledger.db"))
    browser.form("/example", {"name": "children"})
    browser.page("/release")
    return browser, desk, ledger


def fail(*_):
    raise MemoryError


def test_a_page_has_the_statements_of_the_version_that_it_has(monkeypatch):
    """While a page waits for what it shows, another tab changes the draft."""
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    browser.form("/privacy", {"epsilon": "2", "reading": "person", "kind": "laplace"})
    gate, begun, real, pages = threading.Event(), threading.Event(), deriving.MAKERS["ready"], []

    def slow(draft, made, job, ledger):
        if draft.spec.mechanism.epsilon == "2":
            begun.set()
            gate.wait()
        return real(draft, made, job, ledger)

    monkeypatch.setitem(deriving.MAKERS, "ready", slow)
    monkeypatch.setattr("keepsum.desk.desk.PATIENCE", None)
    tab = threading.Thread(target=lambda: pages.append(browser.get("/release").text))
    tab.start()
    assert begun.wait()
    browser.post("/privacy", {"version": desk.version, "epsilon": "10", "reading": "person", "kind": "laplace"})
    gate.set()
    tab.join()
    assert f'data-version="{desk.version}"' in pages[0]
    assert "epsilon 10" in pages[0]
    assert not re.search(r"epsilon 2(?![\d.])", pages[0])


@mostly_audit("broken", ["files_of", "about"])
def test_what_was_drawn_is_kept_whatever_fails_after_it(charged, broken, monkeypatch):
    browser, desk, ledger = charged
    real = getattr(finished, broken)
    monkeypatch.setattr(finished, broken, fail)
    for _ in range(3):  # clicks
        page = browser.form("/release", {})
        assert "Memory ran out" in page
        assert "Make what is missing" in page
        assert "The release failed" not in page
    drawn = desk.finished.drawn
    assert len(ledger.spends()) == 1
    assert not desk.finished.is_whole
    monkeypatch.setattr(finished, broken, real)
    page = browser.form("/release", {})
    assert "Every check of the release passes" in page
    assert "Make what is missing" not in page
    assert desk.finished.drawn.certificate.table == drawn.certificate.table
    assert len(ledger.spends()) == 1


@pytest.mark.audit
def test_a_draw_that_the_ledger_cannot_note_is_kept(charged, monkeypatch):
    browser, desk, ledger = charged
    monkeypatch.setattr(ks.Ledger, "_conclude", fail)
    page = browser.form("/release", {})
    assert "the ledger could not note that it was made" in page
    assert desk.finished.is_whole
    assert len(ledger.spends()) == 1


def test_a_charge_by_somebody_else_is_not_ours(charged, monkeypatch):
    browser, _, ledger = charged

    def other(*_):
        table = ks.Table.from_array([[15, 1], [20, 10]], axes={"county": ["a", "b"], "sex": ["f", "m"]})
        ks.plan(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1)).release(table, ledger=ledger)
        raise ks.LedgerError("The ledger must be readable.")

    monkeypatch.setattr(finished, "draw_charged", other)
    page = browser.form("/release", {})
    assert len(ledger.spends()) == 1
    assert "The release failed: The ledger must be readable." in page
    assert "stays charged" not in page


def test_our_own_charge_is_told(charged, monkeypatch):
    browser, _, ledger = charged
    monkeypatch.setattr(Prepared, "draw", fail)
    page = browser.form("/release", {})
    assert "The release failed: Memory ran out" in page
    assert "stays charged" in page
    assert len(ledger.spends()) == 1


@pytest.mark.audit
def test_a_download_that_breaks_off_takes_nothing(charged):
    browser, desk, _ = charged
    browser.form("/release", {})
    browser.leaves = True
    assert browser.get("/release.zip").status == 200
    assert not desk.finished.is_taken
    browser.leaves = False
    browser.get("/release.zip")
    assert desk.finished.is_taken


@pytest.mark.audit
def test_a_page_that_was_made_during_a_release_asks_again_although_that_has_ended_meanwhile(charged, monkeypatch):
    """What a page shows is from before the end, so it must not look as if it were from after it."""
    from keepsum.desk import pages

    browser, desk, _ = charged
    gate, real, rendered = threading.Event(), finished.files_of, []

    def slow(drawn):
        gate.wait()
        return real(drawn)

    def ended(scene, *given):
        found = real_common(scene, *given)
        if scene.progress is not None and not rendered:
            rendered.append(scene)
            gate.set()
            scene.progress.wait(None)
        return found

    real_common = pages.views.common
    monkeypatch.setattr(finished, "files_of", slow)
    monkeypatch.setattr(pages.views, "common", ended)
    browser.post("/release", {"version": desk.version})
    assert 'id="progress"' in browser.get("/release").text
    assert rendered


SPARSE = "place,sex,n\n" + "".join(f"{place},{sex},{place == 'a'}\n" for place in "abcdefgh" for sex in "fm")
SPARSE = SPARSE.replace("True", "40").replace("False", "0")


def files_in(desk):
    return sorted(desk.finished.files)


def test_negative_counts_are_removed_by_a_button_that_costs_nothing(tmp_path):
    """The draw and its charge stay as they are; the table as it was drawn is beside the other, and both verify."""
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=100)
    browser, desk = opened(ledger=str(tmp_path / "ledger.db"))
    browser.upload("sparse.csv", SPARSE.encode())
    browser.form("/keep", {"margin": "1"})
    page = release(browser)
    assert "Remove negative counts" in page  # of 14 counts of 0 all but one in 16,000 releases have one
    drawn = desk.finished
    browser.form("/nonnegative", {})
    desk.releasing.wait(None)
    page = browser.page("/release")
    assert "This is the nearest table without negative counts" in page
    assert "Remove negative counts" not in page
    mended = desk.finished
    assert mended.drawn.unbiased.counts.tolist() == drawn.drawn.table.counts.tolist()
    assert mended.drawn.table.counts.min() >= 0
    assert mended.verification.passed
    assert files_in(desk) == sorted([*drawn.files, "table.unbiased.csv"])
    assert not mended.is_taken
    assert len(ledger.spends()) == 1
    browser.form("/nonnegative", {})
    assert desk.finished is mended


def test_a_release_that_cannot_be_mended_stays_as_it_was(tmp_path, monkeypatch):
    browser, desk = opened()
    browser.upload("sparse.csv", SPARSE.encode())
    browser.form("/keep", {"margin": "1"})
    release(browser)
    drawn = desk.finished
    monkeypatch.setattr(finished, "without_negative", fail)
    browser.form("/nonnegative", {})
    desk.releasing.wait(None)
    assert "The release stays as it was drawn, with negative counts:" in browser.page("/release")
    assert desk.finished is drawn


def test_the_draft_can_be_downloaded_as_a_spec():
    browser, desk = opened()
    assert browser.get("/keepsum.toml").status == 404
    browser.upload("sparse.csv", SPARSE.encode())
    browser.form("/keep", {"margin": "1"})
    page = browser.page("/release")
    assert f'href="{browser.guard.base}/keepsum.toml"' in page
    answer = browser.get("/keepsum.toml")
    assert answer.status == 200
    assert answer.text == toml_of(desk.draft.spec)
    assert 'margins = [["sex"]]' in answer.text

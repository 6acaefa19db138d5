"""What a curator stumbled over from the noise to the downloaded release, and what the page does about it now."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from html import unescape

import pytest

import keepsum as ks
from desk.asking import PERCENT, PERSON, Browser, marked, opened, release, steps


@pytest.mark.audit
def test_a_large_loss_needs_a_tick_of_its_own():
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    page = browser.form("/privacy", PERSON | {"epsilon": "50"}, "privacy")
    assert steps(page)["Privacy"] == ("warned", "little protection")
    page = browser.page("/release")
    assert 'name="know" id="know-loss" value="loss" required> I know that this gives little protection.' in page
    assert "Tick that you know it" in browser.form("/release", {})
    assert "Tick that you know it" in browser.form("/release", {"know": "delta"})
    assert desk.finished is None
    assert "<h1>Released</h1>" in browser.form("/release", {"know": "loss"})


@pytest.mark.audit
def test_an_accepted_delta_needs_a_tick_of_its_own():
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    desk.change(desk.version, lambda spec: _accepting(spec, "0.01"))
    page = browser.page("/release")
    assert "What sampling adds to delta was accepted: up to 0.01" in page
    assert steps(page)["Privacy"] == ("warned", "a delta accepted")
    assert "Tick that you know it" in browser.form("/release", {})
    assert "<h1>Released</h1>" in browser.form("/release", {"know": "delta"})


def _accepting(spec, delta):
    from msgspec.structs import replace

    return replace(spec, output=replace(spec.output, accept_delta=delta))


def test_the_confirmation_has_the_loss_in_numbers():
    browser, _ = opened()
    browser.form("/example", {"name": "counties"})
    browser.form("/fix", {"number": "0"})
    field = re.search('<bdi>county</bdi> <input name="(focus-[0-9]+)"', browser.page("/privacy"))[1]
    browser.form("/privacy", PERSON | {field: "2"})
    page = browser.page("/release")
    assert "2.72 times" in page
    assert "Per-person epsilon 1" in page
    assert "<p>Laplace noise.</p>" in page
    assert "Focus, in shares of the loss: totals of county 2, cells 1." in page
    assert "4 totals of state" in page


def test_privacy_begins_with_the_plain_sentence():
    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    page = browser.page("/privacy")
    assert page.index("at most 2.72 times as likely") < page.index("per-person epsilon 1 (l1 distance 4")


@pytest.mark.audit
def test_releases_of_the_same_file_add_up_without_a_ledger():
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    release(browser)
    assert "was of an earlier draft" not in browser.form("/again", {})
    said = "1 release of this file was made at this page already. Losses of releases of the same data add up"
    for step in ("privacy", "release"):
        assert f"{said}: one person&#39;s are epsilon 1 so far, and epsilon 2 with this one." in browser.page(
            f"/{step}"
        )
    browser.form("/keep", {"total": "1"})
    assert "was of an earlier draft" in browser.page("/release")
    assert (
        f"{said}. For one person, epsilon 1 so far and epsilon 1 by this one; but they keep other totals or are of "
        "other tables, so one person may lose more than the sum: per unit of distance they are epsilon 0.25 so far, "
        "and epsilon 0.75 with this one." in browser.page("/release")
    )
    browser.upload("again.csv", desk.draft.upload.data)  # the same data, chosen again
    browser.form("/keep", {"total": "1"})
    assert said in browser.page("/release")
    browser.upload("other.csv", PERCENT)
    browser.form("/fix", {"number": "0"})
    browser.form("/keep", {"total": "1"})
    assert said not in browser.page("/release")


@pytest.mark.audit
def test_the_released_table_has_all_totals_with_their_margins():
    browser, _ = opened()
    browser.form("/example", {"name": "counties"})
    browser.form("/fix", {"number": "0"})
    browser.form("/keep", {"margin": ["0"]})
    field = re.search('<bdi>sex</bdi> <input name="(focus-[0-9]+)"', browser.page("/privacy"))[1]
    page = browser.form("/privacy", PERSON | {field: "1"})
    assert re.search('and of a total of <bdi>sex</bdi></span> <b class="level">±[0-9]+</b>', page)
    page = release(browser)
    assert "<h3>Totals of state <small>kept exactly</small></h3>" in page
    assert re.search(r'<bdi>North</bdi></th><td class="total kept">[0-9,]+<small>exact</small>', page)
    assert "<h3>Totals of sex <small>in the focus, with noise</small></h3>" in page
    assert re.search(r'<bdi>female</bdi></th><td class="cell">[0-9,]+<small>±[0-9]+</small>', page)
    assert re.search(r'<td class="total" title="has noise">[0-9,]+<small>±[0-9]+</small></td>', page)
    assert re.search(r'title="kept exactly">[0-9,]+<small>exact</small></td></tr></tfoot>', page)
    assert "with noise, and its 95% margin of error" in page


@pytest.mark.audit
def test_totals_at_the_edges_are_not_listed_twice():
    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    page = release(browser)
    assert "<h3>Totals of" not in page
    assert page.count("<small>exact</small>") == 9


@pytest.mark.audit
def test_a_signature_that_is_not_there_has_no_tick():
    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    assert '<li class="neutral"><b>signature</b> none' in release(browser)


def test_a_focus_is_wrong_at_its_field():
    browser, _ = opened()
    browser.form("/example", {"name": "people"})
    field = re.search('<bdi>sex</bdi> <input name="(focus-[0-9]+)"', browser.page("/privacy"))[1]
    page = browser.form("/privacy", PERSON | {field: "abc"})
    assert marked(page) == [field]
    assert page.index('id="problem-focus"') > page.index("better accuracy for totals that matter")


def test_a_refusal_of_the_ledger_is_in_the_terms_that_were_chosen(tmp_path):
    ks.Ledger.create(tmp_path / "ledger.db", budget="0.1")
    browser, _ = opened(ledger=str(tmp_path / "ledger.db"))
    browser.form("/example", {"name": "children"})
    assert "Epsilon 0.1 per person would fit." in browser.page("/release")


@pytest.mark.audit
def test_the_zip_unpacks_to_a_folder_that_verifies_as_the_page_says(tmp_path):
    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    assert "<code>keepsum verify release</code>" in release(browser)
    zipfile.ZipFile(io.BytesIO(browser.get("/release.zip").body)).extractall(tmp_path)
    command = [sys.executable, "-c", "from keepsum_shell import main; main()", "verify", "release"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0


@pytest.mark.audit
def test_the_folder_of_a_release_is_told_in_full(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    release(browser)
    page = browser.form("/save", {"folder": "~/out"})
    assert f"The release is written to {tmp_path}/out. Check it with: keepsum verify {tmp_path}/out" in page
    assert ks.verify(tmp_path / "out")


def test_a_used_link_says_so_and_nothing_else():
    browser, _ = opened()
    browser.form("/link", {})
    link = re.search('<code id="link">([^<]*)</code>', browser.form("/link", {}))[1]
    path = unescape(link).partition(browser.host)[2]
    other = Browser(browser.app, browser.guard)
    assert other.ask("GET", path).status == 200
    stranger = Browser(browser.app, browser.guard)
    answers = [stranger.ask("GET", path), stranger.get("/?token=x")]
    assert [answer.status for answer in answers] == [403, 403]
    assert answers[0].body == answers[1].body
    assert "This link has been used." in answers[0].text
    assert stranger.cookie == ""
    assert stranger.get("/").body == b""

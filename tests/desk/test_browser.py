"""The journey in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

from itertools import pairwise

import pytest

import keepsum as ks
from desk.driving import STEPS, downloaded, go, on, settled, until
from keepsum.desk.guards import USED
from report.test_browser import CONTRASTS


@pytest.mark.parametrize("example", ["children", "counties", "people"])
def test_the_whole_journey(show, tmp_path, example):
    page = show()
    page.locator(f"#example-{example}").click()
    page.wait_for_selector("#meaning")
    if example == "counties":
        page.get_by_role("button", name="Nest county within state").click()
        page.wait_for_selector(".trouble", state="detached")
    on(page)
    assert page.locator(".kept").count() > 1
    on(page)
    assert page.locator("#typical").inner_text().startswith("±")
    on(page)
    assert page.locator("figure svg").first.is_visible()
    on(page)
    page.get_by_role("button", name="Release the table").click()
    page.wait_for_selector("#download")
    settled(page)
    assert page.locator(".checks .failed").count() == 0
    assert ks.verify(downloaded(page, tmp_path))
    with page.context.expect_page() as report:
        page.locator("#report").click()
    report.value.wait_for_selector("#rows tr")
    assert report.value.locator("#filter").is_visible()  # its own script runs, under its own policy


def test_a_file_is_uploaded_and_a_tick_shows_at_once(show, desk):
    page = show()
    data = b"place,sex,n\n" + b"".join(b"%s,%s,%d\n" % (p, s, 9) for p in (b"a", b"b", b"c") for s in (b"f", b"m"))
    page.locator("#file").set_input_files({"name": "my table.csv", "mimeType": "text/csv", "buffer": data})
    page.wait_for_selector("#meaning")
    assert page.locator("#count").input_value() == "n"
    go(page, "Keep")
    assert page.locator(".grid .kept").count() == 0
    page.get_by_label("place", exact=False).first.check()
    page.wait_for_selector(".grid .kept")
    settled(page)
    assert page.evaluate("document.activeElement.name") == "margin"  # the focus stays
    page.reload()
    assert page.locator("input[name=margin]").first.is_checked()
    for _ in range(2):
        page.locator(".pick").nth(_).click()
    page.locator("#set-name").fill("corner")
    page.get_by_role("button", name="Keep their total").click()
    page.wait_for_selector(".sets")
    assert desk.draft.spec.keep.subset[0].name == "corner"


def test_pinned_cells_are_red_at_once(show):
    page = show()
    page.locator("#example-children").click()
    go(page, "Keep")
    assert page.locator("td.pinned").count() == 0
    for cell in ("0", "1", "2"):
        page.locator(f".pick[data-cell='{cell}']").click()
    page.locator("#set-name").fill("three")
    page.get_by_role("button", name="Keep their total").click()
    page.wait_for_selector("td.pinned")
    assert "pinned" in page.locator("td", has=page.locator(".pick[data-cell='3']")).get_attribute("class")


def test_the_margin_moves_with_the_slider(show, desk):
    page = show()
    page.locator("#example-children").click()
    go(page, "Privacy")
    before = page.locator("#typical").inner_text()
    page.locator("#slider").focus()
    for _ in range(60):
        page.keyboard.press("ArrowLeft")
    until(page, lambda: page.locator("#typical").inner_text() != before)
    assert float(page.locator("#epsilon").input_value()) < 1
    epsilon = page.locator("#epsilon").input_value()
    until(page, lambda: desk.draft.spec.mechanism.epsilon == epsilon)
    settled(page)
    assert page.evaluate("document.activeElement.id") == "slider"
    page.reload()
    assert page.locator("#epsilon").input_value() == epsilon
    assert page.locator("#said").inner_text() == ""  # no change was made from an old version


def test_the_place_on_the_curve_is_marked(show):
    page = show()
    page.locator("#example-people").click()
    go(page, "Privacy")
    until(page, lambda: page.locator("#curve svg > circle").count() == 10)  # it comes in parts

    def mark() -> tuple[float, float]:
        dot = page.locator("#curve .live circle")
        return float(dot.get_attribute("cx")), float(dot.get_attribute("cy"))

    at_one = page.locator("#curve svg > circle").nth(6)  # 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1
    assert mark() == pytest.approx((float(at_one.get_attribute("cx")), float(at_one.get_attribute("cy"))), abs=0.2)
    page.locator("#epsilon").fill("0.1")
    tenth = page.locator("#curve svg > circle").nth(3)
    until(page, lambda: mark()[1] == pytest.approx(float(tenth.get_attribute("cy")), abs=0.2))
    assert mark()[0] == pytest.approx(float(tenth.get_attribute("cx")), abs=0.2)


def test_a_wrong_epsilon_is_told_at_its_field(show):
    page = show()
    page.locator("#example-children").click()
    go(page, "Privacy")
    page.locator("#epsilon").fill("much")
    page.locator("#epsilon").press("Enter")
    page.wait_for_selector("#problem-epsilon")
    assert page.locator("#epsilon").get_attribute("aria-describedby") == "problem-epsilon"
    assert page.locator("#epsilon").input_value() == "much"
    page.locator("#epsilon").fill("2")
    page.locator("#epsilon").press("Enter")
    page.wait_for_selector("#problem-epsilon", state="detached")


def test_back_and_forth_loses_nothing(show, desk):
    page = show()
    page.locator("#example-children").click()
    go(page, "Privacy")
    page.get_by_label("Gaussian", exact=False).check()
    page.wait_for_selector("#delta")
    for step in [*reversed(STEPS), *STEPS]:
        go(page, step)
        page.reload()
    page.go_back()
    settled(page)
    go(page, "Privacy")
    assert page.locator("input[value=gaussian]").is_checked()
    assert desk.draft.spec.mechanism.kind == "gaussian"


def test_a_double_click_releases_once(show, desk, monkeypatch):
    drawn = []
    from keepsum.desk import finished as module

    real = module.draw_charged
    monkeypatch.setattr(module, "draw_charged", lambda *given: drawn.append(1) or real(*given))
    page = show()
    page.locator("#example-children").click()
    go(page, "Release")
    page.locator("#go").dblclick()
    page.wait_for_selector("#download")
    assert drawn == [1]


def test_another_browser_has_nothing_without_a_link_of_its_own(show, link, request):
    page = show()
    page.locator("#example-children").click()
    stranger = request.getfixturevalue("chromium").new_context()
    for path, text in (("/table", ""), ("/?token=guess", USED), ("/release.zip", "")):
        answer = stranger.request.get(page.url.replace("/table", path))
        assert (answer.status, answer.text()) == (403, text)
    other = stranger.new_page()
    assert other.goto(link()).status == 200
    stranger.close()


def test_a_form_of_another_site_does_nothing(show, desk, request):
    page = show()
    base = page.url.removesuffix("/table")
    csrf = page.evaluate("document.body.dataset.csrf")
    evil = page.context.new_page()
    evil.route("http://evil.example/", lambda route: route.fulfill(body="<p>hello", content_type="text/html"))
    evil.goto("http://evil.example/")
    evil.set_content(
        f'<form method="post" action="{base}/example"><input name="csrf" value="{csrf}">'
        f'<input name="name" value="children"></form>'
    )
    with evil.expect_response(f"{base}/example") as answer:
        evil.evaluate("document.forms[0].submit()")
    assert answer.value.status == 403
    assert desk.draft is None
    evil.close()


def test_hostile_categories_are_shown_as_text(show):
    page = show()
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    rows = "".join(f'"{a}",{b},9\n' for a in (evil, "plain") for b in "pq")
    data = f"what,b,n\n{rows}".encode()
    page.locator("#file").set_input_files({"name": "<b>x</b>.csv", "mimeType": "text/csv", "buffer": data})
    page.wait_for_selector("#meaning")
    go(page, "Keep")
    assert page.locator("tbody bdi", has_text=evil).count() == 1
    assert page.locator("img").count() == 0


def test_quick_changes_all_count(show, desk):
    page = show()
    page.locator("#example-counties").click()
    page.locator(".fixes button").first.click()
    page.wait_for_selector(".trouble", state="detached")
    go(page, "Keep")
    page.evaluate("for (const box of document.querySelectorAll('input[name=margin]')) if (!box.checked) box.click()")
    until(page, lambda: len(desk.draft.spec.keep.margins) == page.locator("input[name=margin]").count() > 3)
    assert page.locator("#said").inner_text() == ""


def held_back(page, address):
    """The next request to this address waits in a list until it is let through."""
    waiting = []
    page.route(address, lambda route: route.continue_() if waiting else waiting.append(route))
    return waiting


def test_what_is_typed_while_an_answer_is_on_its_way_stays(show, desk):
    """Also where the answer has another value in that field, and whether Enter or another field follows."""
    page = show()
    page.locator("#example-children").click()
    go(page, "Privacy")
    waiting = held_back(page, "**/privacy*")
    page.get_by_text("Details: whose loss epsilon is").click()
    page.get_by_label("per unit of distance between two tables").check()
    until(page, lambda: waiting)
    page.locator("#epsilon").fill("20")
    before = page.locator("body").get_attribute("data-version")
    waiting[0].continue_()
    until(page, lambda: page.locator("body").get_attribute("data-version") != before)
    assert page.locator("#epsilon").input_value() == "20"
    page.locator("#epsilon").blur()
    page.wait_for_selector(".trouble:has-text('little protection')")
    assert desk.draft.spec.mechanism.epsilon == "20"


# -- everybody can use it ---------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_step_is_legible_and_fits_a_telephone(show, scheme):
    page = show(360, color_scheme=scheme)
    page.locator("#example-counties").click()
    page.wait_for_selector(".trouble")
    for k, step in enumerate(["Table", *STEPS]):
        if k == 1:
            page.locator(".fixes button").first.click()
            page.wait_for_selector(".trouble", state="detached")
        go(page, step)
        low = [(round(ratio, 2), kind, text[:40]) for ratio, kind, text in page.evaluate(CONTRASTS) if ratio < 4.5]
        assert low == [], step
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, step
    page.locator("#go").click()
    page.wait_for_selector("#download")
    settled(page)
    assert [kind for ratio, kind, _ in page.evaluate(CONTRASTS) if ratio < 4.5] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_every_field_has_a_name(show):
    page = show()
    page.locator("#example-counties").click()
    page.locator(".fixes button").first.click()
    page.wait_for_selector(".trouble", state="detached")
    for step in STEPS:
        go(page, step)
        nameless = page.evaluate("""() => [...document.querySelectorAll(
            'input:not([type=hidden]), select, textarea, button')].filter(e => !e.closest('[hidden]') &&
            !(e.labels && e.labels.length) && !e.getAttribute('aria-label') && !e.textContent.trim())
            .map(e => e.outerHTML)""")
        assert nameless == []
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))")
        assert levels.count(1) == 1
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels)), (step, levels)
        assert page.locator("[aria-current=step]").count() == 1
        assert page.locator("#said[role=status][aria-live=polite]").count() == 1
        assert (
            page.evaluate("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"]):not(main):not(.pick)').length")
            == 0
        )
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert len(ids) == len(set(ids))
        assert page.locator("svg:not([role=img]), svg[role=img]:not(:has(title))").count() == 0


def test_the_keyboard_alone_is_enough(show):
    """From the example to the release, by Tab, Space and Enter."""
    page = show()

    def tab_to(wanted: str) -> None:
        for _ in range(200):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({wanted!r})"):
                assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
                return
        pytest.fail(f"{wanted} is not reached by Tab")

    tab_to("#example-children")
    page.keyboard.press("Enter")
    page.wait_for_selector("#meaning")
    for step in STEPS[1:]:
        tab_to("#next")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/{step.lower()}")
        settled(page)
        if step == "Keep":
            tab_to("#total")
            page.keyboard.press("Space")
            until(page, lambda: page.locator(".steps .here small").inner_text() == "9 totals")
            settled(page)
    tab_to("#go")
    page.keyboard.press("Enter")
    page.wait_for_selector("#download")


def test_an_upload_that_is_too_large_is_told(show, monkeypatch, desk):
    page = show()
    page.evaluate("window.fetch = async () => new Response(JSON.stringify({problem: 'too large'}), {status: 413})")
    page.locator("#file").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": b"a,n\n"})
    page.wait_for_selector("#said .trouble")
    assert desk.draft is None

"""The page in a real browser: Debian's Chromium, driven by Playwright, never a downloaded one."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keepsum.report.page import FIRST_ROWS, number
from report.samples import HOSTILE, facts_by_name, html_by_name, release_of
from support import mostly_audit

WIDTHS = (1280, 360)


def each(first: list, others: list) -> list:
    """Releases, or the like, of which the others are tested by the audit alone."""
    return [*first, *(pytest.param(*other, marks=pytest.mark.audit) for other in others)]


ROWS = "#rows tr"

# Contrast by WCAG 2: the text of every element that has some of its own, on the nearest background that is opaque.
CONTRASTS = """() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const opaque = (colour) => { const parts = channels(colour); return parts.length === 3 || parts[3] === 1; };
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || ["SCRIPT", "STYLE", "NOSCRIPT", "title", "desc"].includes(element.tagName)) continue;
    if (!element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    let ground = element;
    while (ground && !opaque(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(ink), light(getComputedStyle(ground).backgroundColor)].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), element.className.baseVal ?? element.className, element.textContent.trim()]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests of this file."""
    from playwright.sync_api import sync_playwright  # here, because without chromium nothing needs it

    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a report, by the name of its release, made once."""
    folder = tmp_path_factory.mktemp("reports")

    def file(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            path.write_text(html_by_name(name), encoding="utf-8")
        return path

    return file


@pytest.fixture
def show(need: Callable[[str], None], request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Open a report; whatever the console says, and whatever is asked for but the file itself, fails the test."""
    need("chromium")
    running, file = request.getfixturevalue("browser"), request.getfixturevalue("pages")
    contexts, complaints, requests = [], [], []

    def open_page(name: str, width: int = 1280, **options: Any) -> Any:
        context = running.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: requests.append(asked.url))
        page.goto(file(name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url for url in requests if not url.startswith("blob:")} <= {
        *(f.as_uri() for f in file("margins").parent.glob("*.html")),
        "data:,",
    }


def texts(page: Any, column: int) -> list[str]:
    """A column of the page of the table that is shown."""
    return page.locator(f"{ROWS} > :nth-child({column})").all_inner_texts()


def as_number(text: str) -> int:
    return int(text.replace(",", "").replace("−", "-").lstrip("±"))


# -- the table --------------------------------------------------------------------------------------


@mostly_audit("name", each(["nonnegative", "hostile", "long"], [["margins"], ["hierarchy"], ["invariants"]]))
def test_the_script_shows_the_rows_that_the_page_has_without_it(show, name):
    plain = show(name, java_script_enabled=False)
    scripted = show(name)
    assert plain.locator(f"{ROWS} > *").all_inner_texts() == scripted.locator(f"{ROWS} > *").all_inner_texts()
    classes = "nodes => nodes.map(n => n.className)"
    assert plain.locator(f"{ROWS} > *").evaluate_all(classes) == scripted.locator(f"{ROWS} > *").evaluate_all(classes)
    assert not plain.locator("#filter").is_visible()
    assert scripted.locator("#filter").is_visible()


def test_all_rows_are_shown_page_by_page(show):
    page = show("long")
    release = release_of("long")
    cells = release.plan.size
    seen: list[str] = []
    for k in range(1, 1 + -(-cells // FIRST_ROWS)):
        if k > 1:
            page.locator("#on").click()
        assert page.locator("#place").input_value() == str(k)
        seen += texts(page, 3)
    assert list(map(as_number, seen)) == release.table.counts.tolist()
    assert page.locator("#on").get_attribute("aria-disabled") == "true"
    page.locator("#place").fill("2")
    page.locator("#place").press("Enter")
    assert page.locator("#status").inner_text() == f"Rows 51 to 100 of {cells}"
    page.locator("#place").fill("999")
    page.locator("#place").press("Enter")
    assert page.locator("#status").inner_text().endswith(f"to {cells} of {cells}")
    page.locator("#back").click()
    page.locator("#place").fill("")
    page.locator("#place").press("Enter")
    assert "NaN" not in page.locator("#place").input_value()


def test_a_single_page_has_nothing_to_turn(show):
    assert not show("margins").locator("#pager").is_visible()


def test_every_column_sorts_both_ways(show):
    page, release = show("long"), release_of("long")
    counts, margins = release.table.counts.tolist(), release.accuracy().margins.tolist()
    buttons = page.locator("#released thead button")
    assert buttons.count() == 5
    for k in range(5):
        buttons.nth(k).click()
        header = page.locator("#released thead th").nth(k)
        first = texts(page, k + 1)
        assert header.get_attribute("aria-sort") == ("ascending" if k < 2 else "descending")
        if k == 2:
            assert list(map(as_number, first)) == sorted(counts, reverse=True)[:FIRST_ROWS]
        if k == 3:
            assert list(map(as_number, first)) == sorted(margins, reverse=True)[:FIRST_ROWS]
        buttons.nth(k).click()
        assert header.get_attribute("aria-sort") == ("descending" if k < 2 else "ascending")
        assert page.locator("#released thead th[aria-sort]").count() == 1
        if k == 2:
            assert list(map(as_number, texts(page, 3))) == sorted(counts)[:FIRST_ROWS]
    buttons.nth(1).click()
    named = texts(page, 2)
    assert named == sorted(named, key=lambda label: int(label.split()[1]))  # not County 1, County 10, County 2
    buttons.nth(0).click()
    assert texts(page, 1) == ["State 1"] * 29 + ["State 2"] * 21  # in the order of the categories


def test_relative_margins_sort_with_counts_that_have_none_last(show):
    page = show("long")
    page.locator("button[data-sort=relative]").click()
    shown = texts(page, 5)
    missing = shown.count("count ≤ 0")
    assert shown[:missing] == ["count ≤ 0"] * missing
    release = release_of("long")
    margins, counts = release.accuracy().margins, release.table.counts
    assert missing == int(((counts <= 0) & (margins > 0)).sum()) > 0


def test_words_find_rows(show):
    page, domain = show("long"), release_of("long").table.domain
    page.locator("#filter").fill("state 2 COUNTY 15")
    assert set(texts(page, 1)) == {"State 2"}
    assert set(texts(page, 2)) == {"County 15"}
    page.locator("#filter").fill("nowhere")
    assert page.locator("#status").inner_text() == "No row has these words."
    assert page.locator(ROWS).count() == 0
    page.locator("#filter").fill("alone")
    assert page.locator(ROWS).count() == 1
    assert texts(page, 4) == ["±0: kept exactly"]
    page.locator("#filter").fill("")
    assert page.locator("#status").inner_text() == f"Rows 1 to 50 of {domain.size}"


@pytest.mark.parametrize("name", each(["nonnegative", "hostile"], [["margins"], ["invariants"], ["signed"], ["long"]]))
def test_the_download_is_the_file_of_margins(show, tmp_path, name):
    page = show(name)
    with page.expect_download() as download:
        page.locator("#download").click()
    download.value.save_as(tmp_path / "it.csv")
    assert download.value.suggested_filename == "released.margins.csv"
    assert (tmp_path / "it.csv").read_bytes() == facts_by_name(name).cells.to_csv()


def test_cells_are_shaded_by_what_is_chosen(show):
    page = show("margins")
    shades = f"{ROWS} > .heat"
    colours = "nodes => nodes.map(n => getComputedStyle(n).backgroundColor)"
    by_count = page.locator(shades).evaluate_all(colours)
    page.get_by_role("radio", name="relative uncertainty").check()
    by_relative = page.locator(shades).evaluate_all(colours)
    page.get_by_role("radio", name="nothing").check()
    unshaded = page.locator(shades).evaluate_all(colours)
    assert len(set(by_count)) > 2
    assert len(set(by_relative)) > 2
    assert by_count != by_relative
    assert len(set(unshaded)) == 1


# -- everybody can read it --------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "width"), each([("light", 1280), ("dark", 360)], [("light", 360), ("dark", 1280)]))
def test_contrast_is_high_enough_whatever_is_shaded(show, scheme, width):
    page = show("long", width, color_scheme=scheme)
    shades = set()
    for shade in ("count", "relative", "none"):
        page.locator(f"input[value={shade}]").check()
        found = page.evaluate(CONTRASTS)
        assert len(found) > 300
        low = [(round(ratio, 2), kind, text[:40]) for ratio, kind, text in found if ratio < 4.5]
        assert low == []
        shades |= {kind for _, kind, _ in found if "heat" in kind}
    assert {f"c{k}" for k in range(7)} <= set(" ".join(shades).split())
    assert {f"r{k}" for k in range(7)} <= set(" ".join(shades).split())


def test_the_measure_of_contrast_can_fail(show):
    page = show("margins")
    page.evaluate("document.querySelector('h1').setAttribute('class', 'faint')")
    page.evaluate("document.styleSheets[0].insertRule('.faint { color: rgb(170, 170, 170) }')")
    assert any(ratio < 4.5 for ratio, kind, _ in page.evaluate(CONTRASTS) if kind == "faint")


@pytest.mark.parametrize(
    "name", each(["hostile", "gaussian"], [["margins"], ["nonnegative"], ["invariants"], ["long"]])
)
def test_a_telephone_does_not_scroll_sideways(show, name):
    page = show(name, 360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    narrow, wide = page.locator("figure .narrow svg"), page.locator("figure .wide svg")
    assert all(figure.is_visible() for figure in narrow.all())
    assert not any(figure.is_visible() for figure in wide.all())
    sizes = page.evaluate(
        "[...document.querySelectorAll('figure .narrow text')].map(t => "
        "parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getScreenCTM().a)"
    )
    assert min(sizes) >= 12


def test_words_of_figures_stay_inside_them(show):
    """Text has the font of the page, which is not the one that it was laid out with."""
    for width in WIDTHS:
        page = show("long", width)
        cut = page.evaluate("""() => [...document.querySelectorAll('figure svg text')]
            .filter(t => t.getClientRects().length)
            .filter(t => {
                const a = t.getBoundingClientRect(), b = t.ownerSVGElement.getBoundingClientRect();
                return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
            }).map(t => t.textContent)""")
        assert cut == []


def test_the_keyboard_alone_is_enough(show):
    page = show("long")
    page.locator("#filter").focus()
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.sort || document.activeElement.id || ''"))
    sorting = ["label0", "label1", "count", "margin", "relative"]
    assert [name for name in reached if name][:9] == ["download", *sorting, "back", "place", "on"]
    page.locator("button[data-sort=count]").focus()
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=descending]").count() == 1
    page.locator("#on").focus()
    page.keyboard.press("Space")
    assert page.locator("#place").input_value() == "2"
    assert page.evaluate("document.activeElement.id") == "on"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_reader_who_wants_no_motion_has_none(show):
    behaviour = "getComputedStyle(document.documentElement).scrollBehavior"
    assert show("margins", reduced_motion="reduce").evaluate(behaviour) == "auto"
    assert show("margins", reduced_motion="no-preference").evaluate(behaviour) == "smooth"


def test_it_prints_without_its_buttons(show, tmp_path):
    page = show("long", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(253, 252, 250)"  # on paper
    assert not page.locator("#download").is_visible()
    assert not page.locator("#filter").is_visible()
    assert not page.locator("nav").is_visible()
    assert not page.locator("#on").is_visible()
    assert page.locator(ROWS).count() == FIRST_ROWS
    assert all(row.is_visible() for row in page.locator(ROWS).all())
    assert page.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    page.pdf(path=tmp_path / "it.pdf")
    assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "it.pdf").read_bytes())) >= 3


# -- labels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scripts", [True, False])
def test_hostile_labels_do_nothing(show, scripts):
    page = show("hostile", java_script_enabled=scripts)
    assert page.title() == "Counts by <b>place and a&b"
    assert page.locator("#rows img, #rows script, #rows b, .cross img, .cross b").count() == 0
    assert page.locator("script").count() == 2
    if scripts:
        page.locator("#filter").fill("harmed")
        assert page.locator(ROWS).count() == 6
        page.locator("button[data-sort=label0]").click()
        assert page.title() == "Counts by <b>place and a&b"
    shown = page.locator(f"{ROWS} > th").evaluate_all("nodes => nodes.map(n => n.textContent)")
    assert set(shown) <= set(HOSTILE)
    assert set(shown) == (set(HOSTILE) if not scripts else {label for label in HOSTILE if "harmed" in label})


def test_large_counts_keep_every_digit(show):
    """Beyond 2^53, where a number of a script would be rounded."""
    largest = max(release_of("invariants").table.counts.tolist())
    assert largest > 2**53
    assert number(largest) in texts(show("invariants"), 3)

"""The page as text: what it may load, what stands in it, and that labels stay text."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import keepsum as ks
from keepsum import _extras
from keepsum.accuracy import simulation
from keepsum.releasing.canonical import make_keys
from keepsum.report import page as embedding
from keepsum.report.cells import STEPS, count_step
from keepsum.report.facts import facts_of
from keepsum.report.figures import chain_figure
from keepsum.report.page import Names, embedded, page
from report.samples import HOSTILE, html_by_name, release_of
from support import mostly_audit

PAGES = ["margins", "hierarchy", "nonnegative", "signed", "sdmx", "records", "invariants", "gaussian", "hostile"]


class Elements(HTMLParser):
    """The elements of a page with their attributes, and the text in each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "input", "br", "path", "use"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        if self.open:
            self.texts.append((self.open[-1], data))


@pytest.fixture(scope="module", params=PAGES)
def made(request) -> tuple[str, str, Elements]:
    html = html_by_name(request.param)
    return request.param, html, Elements(html)


@mostly_audit("made", PAGES, indirect=True)
def test_the_policy_allows_its_own_script_and_style_alone(made):
    _, html, elements = made
    (policy,) = [a["content"] for _, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert set(rules) == {"default-src", "style-src", "script-src", "img-src", "base-uri", "form-action"}


def test_nothing_is_loaded_and_nothing_has_a_style_or_a_script_of_its_own(made):
    _, _, elements = made
    for tag, attributes in elements.found:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name != "style", tag
            if name in ("href", "src", "xlink:href", "action", "srcset", "data"):
                assert value.startswith("#") or value == "data:,", (tag, value)
        assert tag not in ("iframe", "object", "embed", "form", "base", "img", "image")
    assert sum(tag == "script" for tag, _ in elements.found) == 2


def test_identifiers_are_unique_and_what_refers_to_them_finds_them(made):
    _, _, elements = made
    names = [a["id"] for _, a in elements.found if "id" in a]
    assert len(names) == len(set(names))
    for _, attributes in elements.found:
        for key in ("aria-labelledby", "for"):
            assert set(attributes.get(key, "").split()) <= set(names)
        for key in ("href", "xlink:href"):
            if attributes.get(key, "").startswith("#"):
                assert attributes[key][1:] in names
        for value in attributes.values():
            assert set(re.findall(r"url\(#([^)]*)\)", value or "")) <= set(names)


def test_figures_are_described_and_headers_have_scopes(made):
    _, _, elements = made
    pictures = [a for tag, a in elements.found if tag == "svg"]
    assert pictures
    assert all(a["role"] == "img" and len(a["aria-labelledby"].split()) == 2 for a in pictures)
    assert all(a.get("scope") in ("row", "col") for tag, a in elements.found if tag == "th")
    assert [a["lang"] for tag, a in elements.found if tag == "html"] == ["en"]


def test_text_of_figures_is_large_enough_on_a_telephone(made):
    """A narrow figure is 328 pixels wide on a screen of 360, and its text is never smaller than 12."""
    narrow = re.findall(r'<div class="narrow">(.*?)</div>', made[1], flags=re.DOTALL)
    assert narrow
    assert all(readable(figure) for figure in narrow)


def readable(figure: str) -> bool:
    (width,) = re.findall(r'viewBox="0 0 ([\d.]+) [\d.]+"', figure)
    sizes = list(map(float, re.findall(r'font-size="([\d.]+)(?:px)?"', figure)))
    assert len(sizes) == len(re.findall(r"<text", figure)) > 4
    return float(width) <= 328 and min(sizes) >= 12


def test_the_figure_of_a_chain_is_readable_too(facts):
    (curve,) = facts("chains").chains
    picture = chain_figure(curve, 0)
    assert readable(picture.narrow)
    assert f"{curve.steps} steps, after which the limit is {curve.upper}" in picture.caption


def test_what_a_page_says_is_in_its_facts(made, facts):
    name, _, elements = made
    stated = facts(name)
    text = " ".join("".join(data for tag, data in elements.texts if tag not in ("script", "style")).split())
    for sentence in (*stated.privacy.plain, *stated.warnings, *stated.postprocessing, stated.ledger, stated.exactness):
        assert " ".join(sentence.split()) in text
    for word in (
        stated.published.sha256,
        stated.published.released[:10],
        *(part.words for part in stated.kept.parts),
        *(f"{name}: {value:,}" for part in stated.kept.parts if len(part.totals) > 1 for name, value in part.totals),
        *(f"{part.words}: {part.totals[0][1]:,}" for part in stated.kept.parts if len(part.totals) == 1),
        *stated.software.values(),
    ):
        assert " ".join(word.split()) in text
    assert (
        f"typical cell (from ±{stated.margins.smallest}" in text or f"±{stated.margins.largest} for every cell" in text
    )
    how = "computed from the law" if not stated.margins.draws else f"from {stated.margins.draws:,} simulated draws with"
    assert how in text


def test_pinned_cells_are_said_to_be_kept_exactly():
    html = html_by_name("hierarchy")
    assert html.count("±0: kept exactly") >= 2  # in a sentence and in the table
    assert "state=DC, county=DC" in html


@pytest.mark.usefixtures("undrawn")
def test_smaller_losses_of_changes_within_a_focused_total_are_stated(facts):
    text = " ".join(page(facts("focus"), Names(), "0").split())
    assert "<dt>A change <bdi>within one total of state</bdi></dt><dd>epsilon 0.8 (l1 distance 2" in text


def test_the_same_facts_give_the_same_bytes_whatever_the_user_has_set():
    import matplotlib as mpl

    first = html_by_name("margins")
    with mpl.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.grid": True, "savefig.bbox": "tight"}):
        assert release_of("margins").to_html() == first
        assert mpl.rcParams["font.size"] == 30


@pytest.mark.audit
def test_a_report_of_files_is_that_of_memory(tmp_path):
    """So it needs nothing but what is published."""
    table = ks.Table.from_array([[15, 1], [20, 10], [7, 3]], axes={"county": list("abc"), "sex": ["f", "m"]})
    release = ks.release(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1))
    assert ks.read_release(release.save(tmp_path / "out.csv")).to_html() == release.to_html()


@pytest.mark.usefixtures("undrawn")
def test_verify_commands(facts):
    text = page(facts("signed"), Names("it's here/"), "0")
    assert "keepsum verify &#39;it&#39;&#34;&#39;&#34;&#39;s here/&#39; --key PUBLISHER.pub.pem" in text
    assert "keepsum verify released.csv --allow-seeded" in page(facts("hostile"), Names(), "0")


# -- labels -----------------------------------------------------------------------------------------


def test_labels_are_text_everywhere():
    html = html_by_name("hostile")
    elements = Elements(html)
    shown = [data for tag, data in elements.texts if tag in ("th", "td", "bdi")]
    for label in HOSTILE:
        assert label in shown
    assert not [tag for tag, _ in elements.found if tag in ("b", "img")]
    assert "49" not in [data.strip() for data in shown if "7 * 7" in data]


def test_embedded_text_cannot_end_its_script_and_comes_back_as_it_was():
    html = html_by_name("hostile")
    (text,) = re.findall(r'<script type="application/json" id="cells">(.*?)</script>', html, flags=re.DOTALL)
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text)["labels"][0]["values"] == HOSTILE
    assert json.loads(text)["count"]["name"] == "<i>n</i>"


def unpacked(packed: dict) -> list[int]:
    kinds = {"u1": "<u1", "u2": "<u2", "i4": "<i4", "i8": "<i8"}
    return np.frombuffer(base64.b64decode(packed["data"]), dtype=kinds[packed["type"]]).tolist()


@pytest.mark.parametrize("name", ["invariants", "nonnegative", "signed", "hierarchy"])
def test_embedded_numbers_are_those_of_the_release(name, facts):
    cells = facts(name).cells
    data = json.loads(embedded(cells).json)
    assert unpacked(data["count"]["values"]) == cells.count.values.tolist()
    assert unpacked(data["margins"]) == cells.margins.tolist()
    assert unpacked(data["exact"]) == np.flatnonzero(cells.is_exact).tolist()
    assert (data["unbiased"] is None) == (cells.unbiased is None)
    for column, stored in zip(cells.labels, data["labels"], strict=True):
        assert [stored["values"][code] for code in unpacked(stored["codes"])] == [
            column.label(k) for k in range(len(cells))
        ]


@pytest.mark.usefixtures("undrawn")
def test_a_page_without_room_for_all_cells_says_so_and_has_the_first(monkeypatch):
    """Which cells those are depends on their number alone."""
    release = release_of("margins")
    stated = facts_of(release._record, release.plan._record)
    monkeypatch.setattr(embedding, "MOST_CELLS", 12)
    html = page(stated, Names(margins="out.margins.csv"), "0")
    assert "the first 12 of 20 cells, by their place in the table and not by their counts" in html
    assert "out.margins.csv" in html
    data = json.loads(embedded(stated.cells).json)
    assert unpacked(data["count"]["values"]) == release.table.counts[:12].tolist()


# -- shades -----------------------------------------------------------------------------------------


def test_the_legend_of_counts_has_every_count_once(facts):
    from keepsum.report.page import _Rows

    rows = _Rows(facts("hostile").cells)
    ends = [list(map(int, re.findall(r"\d+", words.replace(",", "")))) for _, words in rows.count_legend()]
    assert ends[0] == [0]
    covered = [count for low, *high in ends[1:] for count in range(low, (high or [low])[0] + 1)]
    assert covered == list(range(1, rows.largest + 1))
    for (step, _), (low, *_) in list(zip(rows.count_legend(), ends, strict=True))[1:]:
        assert count_step(low, rows.largest) == step
    assert count_step(rows.largest, rows.largest) == STEPS


# -- without the extra ------------------------------------------------------------------------------


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(_extras.PACKAGES, "report", ("jinja2", "not_there", "nor_this"))
    with pytest.raises(ks.InputError, match=r"needs not_there and nor_this, which are not installed\. Run "):
        release_of("margins").to_html()


def test_a_release_loads_neither_templates_nor_plots():
    code = (
        "import sys, keepsum as ks; t = ks.Table.from_array([5, 6], axes={'a': ['x', 'y']});"
        "ks.release(t, keep=[[]], mechanism=ks.Laplace.per_unit(1)); import keepsum.cli.app as app; app.build();"
        "print([m for m in ('jinja2', 'matplotlib', 'keepsum.report') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_release_whose_noise_takes_long_to_simulate(monkeypatch):
    """Margins are then proved bounds, and no law is drawn."""
    monkeypatch.setattr(simulation, "MOST_EFFORT", 1)
    table = ks.Table.from_array([[15, 1, 4], [20, 10, 6], [7, 3, 8]], axes={"county": list("abc"), "age": list("xyz")})
    release = ks.release(table, keep=["county", "age"], mechanism=ks.Laplace.per_unit(epsilon=1))
    html = release.to_html()
    assert "by a proved bound, which is too long rather than too short" in html
    assert "would take long to simulate" in html
    assert facts_of(release._record, release.plan._record).curves == ()


@pytest.mark.usefixtures("undrawn")
def test_a_release_that_was_signed_when_it_was_saved_says_so(tmp_path):
    """As its files do; saved again without a key, it is not."""
    table = ks.Table.from_array([30, 40, 50], axes={"place": list("abc")})
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1))
    make_keys(tmp_path / "key.pem", tmp_path / "key.pub.pem")
    saved = release.save(tmp_path / "signed.csv", sign_with=tmp_path / "key.pem")
    html = release.to_html()
    assert "with the Ed25519 key" in html
    assert html == ks.read_release(saved).to_html()
    assert release.certificate.signature is None
    release.save(tmp_path / "plain.csv")
    assert "no: nothing shows who published it" in release.to_html()

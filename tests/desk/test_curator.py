"""What a curator who saw the page for the first time stumbled over, and what the page does about it now."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from html import unescape
from pathlib import Path

import openpyxl
import pytest

import keepsum as ks
from desk.asking import Browser, opened
from keepsum.cli.terms import IN_SHELL
from keepsum.desk.terms import FIELDS, in_page_terms

CHILDREN = (Path(__file__).parents[2] / "examples" / "children.csv").read_bytes()
DESK = Path(ks.__file__).parent / "desk"
PERSON = {"epsilon": "1", "reading": "person", "kind": "laplace"}
PERCENT = b"place,sex,n,Percent\na,f,3,1.5\na,m,4,2.5\nb,f,9,3.5\nb,m,2,4.5\n"


def steps(page):
    """The state and the words of each step."""
    found = re.findall(r'<li class="(\w+)[^"]*"><a [^>]*>.*?<b>(\w+)</b>(?:<small>([^<]*)</small>)?', page, re.S)
    return {name: (state, words) for state, name, words in found}


def marked(page):
    """The fields with a red frame."""
    return re.findall(r'id="([\w-]+)"[^>]* aria-invalid="true"', page)


def release(browser, **fields):
    browser.page("/release")
    return browser.form("/release", fields)


def workbook(**sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


# -- the table --------------------------------------------------------------------------------------


def test_a_column_is_left_out_by_the_button():
    browser, desk = opened()
    browser.upload("t.csv", PERCENT)
    page = browser.page("/table")
    assert marked(page) == ["role-3"]
    assert "<button>Leave out Percent</button>" in page
    page = browser.form("/fix", {"number": "0"})
    assert "trouble" not in page
    assert desk.draft.spec.source.drop == ["Percent"]
    assert "--drop Percent" in browser.page("/release")


def test_a_column_is_left_out_by_hand():
    browser, desk = opened()
    browser.upload("t.csv", PERCENT)
    roles = {"rows": "counts", "count": "n", "role-0": "axis", "role-1": "axis", "role-3": "out"}
    page = browser.form("/table", roles)
    assert "trouble" not in page
    assert "4 cells" in page
    assert desk.draft.spec.source.drop == ["Percent"]
    assert "--drop Percent" in browser.page("/release")


def test_columns_that_are_not_listed_are_left_out():
    browser, desk = opened()
    names = ["place", "n", *(f"c{k}" for k in range(70))]
    rows = [",".join([place, "5", *"x" * 70]) for place in "ab"]
    browser.upload("t.csv", "\n".join([",".join(names), *rows]).encode())
    browser.form("/table", {"rows": "counts", "count": "n", "role-0": "axis", "role-2": "out"})
    assert "2 cells" in browser.page("/table")
    assert len(desk.draft.spec.source.drop) == 70


@pytest.mark.audit
def test_all_categories_are_declared_by_one_button():
    browser, desk = opened()
    browser.upload("people.csv", b"sex,clinic\nf,A\nm,B\n")
    page = browser.form("/table", {"rows": "records", "role-0": "axis", "role-1": "axis", "alone": "1"})
    assert "Declare the categories of sex, clinic below" in page
    assert page.count("<button>Declare these categories</button>") == 1
    assert "A\nB" not in page  # none is taken from the records
    lists = {"axis-0": "sex", "labels-0": "f\nm", "axis-1": "clinic", "labels-1": "A\nB\nC", "missing-1": "unknown"}
    browser.form("/categories", lists | {"labels-1": "A\nB\nC\nunknown"})
    assert desk.draft.spec.axes.categories == {"sex": ["f", "m"], "clinic": ["A", "B", "C", "unknown"]}
    assert desk.draft.spec.records.missing == {"clinic": "unknown"}
    assert "8 cells" in browser.page("/table")


def test_a_list_from_the_data_is_declared_only_if_somebody_says_that_it_is_public():
    browser, desk = opened()
    browser.upload("t.csv", CHILDREN)
    shown = {"axis-0": "county", "labels-0": "Alpha\nBeta\nDelta\nGamma", "axis-1": "education", "labels-1": ""}
    assert "These lists are public: they do not come from the confidential data" in browser.page("/table")
    assert "nothing was declared" in browser.form("/categories", shown)
    assert desk.draft.spec.axes.categories is None
    browser.form("/categories", shown | {"public": "1"})
    assert desk.draft.spec.axes.categories == {"county": ["Alpha", "Beta", "Delta", "Gamma"]}
    browser.form("/categories", shown | {"labels-0": "Alpha\nBeta\nDelta\nGamma\nZeta", "public": "1"})
    assert len(desk.draft.spec.axes.categories["county"]) == 5
    assert "20 cells" in browser.page("/table")


@pytest.mark.parametrize(
    "text",
    ["sex\tclinic\nf\tA\nm\tB\n\tC\n", "sex,clinic\nf,A\nm,B\n,C\n", 'sex = ["f", "m"]\nclinic = ["A", "B", "C"]\n'],
)
def test_all_lists_come_from_one_text(text):
    browser, desk = opened()
    browser.upload("people.csv", b"sex,clinic\nf,A\nm,B\n")
    browser.form("/table", {"rows": "records", "role-0": "axis", "role-1": "axis", "alone": "1"})
    assert "6 cells" in browser.form("/lists", {"lists": text})
    assert desk.draft.spec.axes.categories == {"sex": ["f", "m"], "clinic": ["A", "B", "C"]}


def test_lists_of_a_nested_column_come_as_in_a_file_of_the_shell():
    browser, _ = opened()
    browser.upload("people.csv", b"state,county\nIL,Cook\nWI,Lake\n")
    roles = {"rows": "records", "role-0": "axis", "role-1": "within:state", "alone": "1"}
    browser.form("/table", roles)
    text = 'state = ["IL", "WI"]\n[county]\nIL = ["Cook", "Lake"]\nWI = ["Lake"]\n'
    page = browser.form("/lists", {"lists": text})
    assert "3 cells" in page
    assert "IL &gt; Cook" in page


@pytest.mark.parametrize("text", ["", "color\nred\n", "sex = 3\n", 'sex = ["f"\n', "sex = [[1.5]]\n", "sex,sex\nf,m\n"])
def test_lists_that_are_none_are_refused_in_a_sentence(text):
    browser, desk = opened()
    browser.upload("people.csv", b"sex,clinic\nf,A\nm,B\n")
    browser.form("/table", {"rows": "records", "role-0": "axis", "role-1": "axis", "alone": "1"})
    page = browser.form("/lists", {"lists": text})
    assert "must" in re.search('class="said">(.*?)</p>', page)[1]
    assert desk.draft.spec.axes.categories is None


def test_a_value_that_is_not_declared_opens_and_marks_the_list_of_its_column():
    browser, _ = opened()
    browser.upload("people.csv", b"sex,clinic\nf,A\nm,B\n")
    browser.form("/table", {"rows": "records", "role-0": "axis", "role-1": "axis", "alone": "1"})
    lists = {"axis-0": "sex", "labels-0": "f\nm", "axis-1": "clinic", "labels-1": "A"}
    page = browser.form("/categories", lists)
    assert "Values of column &#39;clinic&#39; must be declared categories" in page
    assert marked(page) == ["role-1", "labels-1"]
    assert re.findall('<details([^>]*)><summary><b><bdi>(sex|clinic)<', page) == [
        ("", "sex"), (' open class="marked"', "clinic"),
    ]  # fmt: skip


def test_what_was_read_is_shown_beside_each_column():
    browser, _ = opened()
    page = browser.form("/example", {"name": "children"})
    assert '<td class="brief"><bdi>Low, Medium, High, Very High</bdi></td>' in page


def test_cells_without_a_row_are_told_in_words_whatever_the_rows_are():
    whole, hole = opened()[0], opened()[0]
    whole.upload("t.csv", CHILDREN)
    hole.upload("t.csv", b"".join(line for line in CHILDREN.splitlines(keepends=True) if b"Alpha,High" not in line))
    pages = [re.search("<main.*</main>", browser.page("/table"), re.S)[0] for browser in (whole, hole)]
    plain = [
        re.sub(re.escape(browser.guard.csrf), "", page) for browser, page in zip((whole, hole), pages, strict=True)
    ]
    plain = [re.sub(f"/{browser.guard.room}", "", page) for browser, page in zip((whole, hole), plain, strict=True)]
    assert plain[0] == plain[1]
    assert "Cells without a row count as 0." in plain[0]


def test_a_file_without_counts_is_offered_as_records_first():
    browser, desk = opened()
    browser.upload("people.csv", b"sex,clinic\nf,A\nm,B\n")
    page = browser.page("/table")
    assert "No column has counts" in page
    assert 'class="trouble"' not in page
    assert steps(page)["Table"] == ("open", "say what it is")
    assert re.search('name="rows" value="records"><button>Each row is a record</button>', page)
    browser.form("/table", {"rows": "records"})
    assert desk.draft.spec.records.by == ["sex", "clinic"]


def test_rows_that_were_left_out_come_back():
    browser, desk = opened()
    browser.upload("t.csv", CHILDREN + b"Total,Low,50\nTotal,Medium,35\nTotal,High,30\nTotal,Very High,20\n")
    browser.page("/table")
    page = browser.form("/fix", {"number": "0"})
    assert "Without the rows of county: Total" in page
    page = browser.form("/undo", {"what": "rows:county"})
    assert desk.draft.spec.source.drop_rows is None
    assert "look like totals" in page


def test_another_sheet_is_chosen_afterwards():
    browser, desk = opened()
    notes, counts = [("note", "n"), ("a", 1), ("b", 2)], [("place", "Cases"), ("a", 3), ("b", 4), ("c", 5)]
    browser.upload("b.xlsx", workbook(notes=notes, counts=counts))
    browser.page("/table")
    browser.form("/fix", {"number": "0"})
    browser.form("/keep", {"margin": "0"})
    page = browser.form("/undo", {"what": "sheet"})
    assert "Which one is the table?" in page
    assert "3 cells" in browser.form("/fix", {"number": "1"})
    assert (desk.draft.spec.source.count, desk.draft.spec.keep.margins) == ("Cases", None)


@pytest.mark.audit
def test_one_starts_over_but_no_release_is_lost_by_it():
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    assert "Or try an example" in browser.form("/over", {})
    browser.form("/example", {"name": "children"})
    page = release(browser)
    assert "would be lost" in page
    page = browser.form("/over", {"step": "release"}, "release")
    assert "Start over all the same" in page
    assert desk.finished is not None
    assert "Or try an example" in browser.form("/over", {"sure": "1"})
    assert (desk.draft, desk.finished) == (None, None)


# -- the steps --------------------------------------------------------------------------------------


def test_nothing_is_done_that_nobody_has_looked_at():
    browser, _ = opened()
    page = browser.form("/example", {"name": "children"})
    assert steps(page)["Keep"] == ("open", "2 kept: check")
    assert steps(page)["Privacy"][0] != "done"
    assert steps(browser.page("/release"))["Privacy"] == ("open", "±6 per cell: check")
    assert steps(browser.page("/release"))["Preview"][0] == "open"
    for step in ("keep", "privacy", "preview"):
        browser.page(f"/{step}")
    assert [state for state, _ in steps(browser.page("/release")).values()] == ["done"] * 4 + ["open"]
    page = browser.form("/example", {"name": "people"})
    assert steps(page)["Keep"] == ("open", "1 kept: check")


def test_the_next_step_says_why_it_cannot_be_taken():
    browser, _ = opened()
    assert "Choose a table first." in browser.page("/table")
    browser.upload("t.csv", CHILDREN)
    assert "Tick a total first." in browser.page("/keep")
    assert 'class="button off" id="next"' in browser.page("/keep")
    assert 'class="button off" id="next"' not in browser.page("/table")


# -- privacy and release ----------------------------------------------------------------------------


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
    assert "Laplace noise, epsilon" in page
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
    ks.Ledger(tmp_path / "ledger.db", budget="0.1")
    browser, _ = opened(ledger=str(tmp_path / "ledger.db"))
    browser.form("/example", {"name": "children"})
    assert "Epsilon 0.4 per person would fit." in browser.page("/release")


# -- taking it away ---------------------------------------------------------------------------------


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


# -- words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [*IN_SHELL, *IN_SHELL.values(), "Option --attributes must", "--target largest"])
def test_no_message_has_an_option_or_an_argument(message):
    said = in_page_terms(f"Something is wrong. {message}{'' if message.endswith('=') else ' '}'x'.")
    assert "--" not in said
    assert not re.search(r"\b[a-z_]+=", said)


TROUBLE = {
    "numbers": PERCENT,
    "wide": b"place,a,b\nx,1,2\ny,3,4\n",
    "nested": b"state,county,n\nA,a,3\nA,b,4\nB,c,9\nB,d,2\n",
    "same": b"county,fips,n\na,x1,3\nb,x2,4\nc,x3,9\n",
    "totals": CHILDREN + b"Total,Low,50\nTotal,Medium,35\nTotal,High,30\nTotal,Very High,20\n",
    "blank": CHILDREN + b"Total,,135\n",
    "sparse": "\n".join(["a,b,c,n", *(f"a{k},b{k * 7 % 31},c{k * 11 % 37},5" for k in range(60))]).encode(),
    "encoding": "région,n\nÎle,5\nsud,9\n".encode("windows-1252"),
    "no rows": b"place,n\n",
    "axis": b"n\n4\n",
}


@pytest.mark.audit
def without_shell(page):
    """A page without what it shows of the shell."""
    return re.sub("(?s)<pre.*?</pre>|<code>keepsum app --ledger FILE</code>", "", page)


@pytest.mark.parametrize("name", TROUBLE)
def test_no_page_has_an_option_but_where_the_shell_is_shown(name):
    browser, desk = opened()
    browser.upload("t.csv", TROUBLE[name])
    browser.page("/table")
    assert desk.peek().problem is not None
    for step in ("table", "keep", "privacy", "preview", "release"):
        page = without_shell(browser.page(f"/{step}"))
        assert "--" not in page
        assert not re.search(rf"\b(with|Pass|pass|out) ({'|'.join(FIELDS)})=", page)


@pytest.mark.parametrize("fields", [{"epsilon": ""}, {"epsilon": "x"}, {"kind": "gaussian", "delta": "2"}])
def test_no_message_about_the_noise_has_an_option(fields):
    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    page = without_shell(browser.form("/privacy", PERSON | fields))
    assert 'class="trouble"' in page
    assert "--" not in page


UNCLEAR = (
    "whose any attribute could be different",
    "a unit of distance",
    "a code of ",
    "Every combination of categories is a cell",
    "the chance that is left out",
    "Take it away",
)


def test_sentences_that_nobody_understood_are_gone():
    texts = [path.read_text() for path in [*(DESK / "templates").iterdir(), DESK / "fixes.py"]]
    assert [words for words in UNCLEAR for text in texts if words in text] == []

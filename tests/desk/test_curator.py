"""What a curator who saw the page for the first time stumbled over, and what the page does about it now."""

from __future__ import annotations

import io
import re
from pathlib import Path

import openpyxl
import pytest

import keepsum as ks
from desk.asking import CHILDREN, PERCENT, marked, opened, release, steps

DESK = Path(ks.__file__).parent / "desk"


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

"""What the shell would say in words has its way out as a button."""

from __future__ import annotations

import itertools
import re

import pytest

import keepsum as ks
from desk.asking import CHILDREN, opened, release, released_files


@pytest.mark.audit
def test_a_nested_column_has_its_fix_as_a_button():
    browser, desk = opened()
    page = browser.form("/example", {"name": "counties"})
    assert "Each &#39;county&#39; has one &#39;state&#39; in the data" in page
    assert "Nest county within state" in page
    page = browser.form("/fix", {"number": "0"})
    assert "trouble" not in page
    assert desk.draft.spec.axes.within == {"county": "state"}
    assert "Released" in release(browser)
    table = ks.Certificate.from_json(released_files(browser)["certificate.json"])
    assert [axis.parent for axis in table.domain.axes] == [None, "state", None, None]


def test_a_row_of_totals_has_its_fix_as_a_button():
    browser, desk = opened()
    browser.upload("t.csv", CHILDREN + b"Total,Low,50\nTotal,Medium,35\nTotal,High,30\nTotal,Very High,20\n")
    page = browser.page("/table")
    assert "look like totals" in page
    page = browser.form("/fix", {"number": "0"})
    assert desk.draft.spec.source.drop_rows == {"county": ["Total"]}
    assert "16 cells" in page


def test_a_column_of_numbers_has_its_fixes_as_buttons():
    browser, desk = opened()
    rows = [
        f"{place},{year},{k * 7 + 3}" for k, (place, year) in enumerate((p, y) for p in "abc" for y in (2001, 2002))
    ]
    browser.upload("t.csv", "\n".join(["place,year,n", *rows]).encode())
    page = browser.page("/table")
    assert "Column &#39;year&#39; contains numbers" in page
    assert "year is an axis" in page
    browser.form("/fix", {"number": "1"})
    assert desk.draft.spec.axes.names == ["place", "year"]
    assert "6 cells" in browser.page("/table")


def test_an_encoding_and_a_sheet_have_their_fixes_as_buttons(tmp_path):
    import openpyxl

    browser, desk = opened()
    browser.upload("t.csv", "région,n\nÎle,5\nsud,9\n".encode("windows-1252"))
    assert "Read it as windows-1252" in browser.page("/table")
    assert "2 cells" in browser.form("/fix", {"number": "0"})
    assert desk.draft.spec.source.encoding == "windows-1252"
    book = openpyxl.Workbook()
    for name in ("notes", "counts"):
        sheet = book.create_sheet(name)
        for row in (("place", "n"), ("a", 3), ("b", 4)):
            sheet.append(row)
    book.remove(book["Sheet"])
    book.save(tmp_path / "b.xlsx")
    browser.upload("b.xlsx", (tmp_path / "b.xlsx").read_bytes())
    assert "Read the sheet counts" in browser.page("/table")
    assert "2 cells" in browser.form("/fix", {"number": "1"})
    assert (desk.draft.spec.source.sheet, desk.draft.spec.source.count) == ("counts", "n")


def test_a_large_loss_has_its_fix_as_a_button():
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    page = browser.form("/privacy", {"epsilon": "20", "reading": "unit", "kind": "laplace"})
    assert "this gives little protection" in page
    assert "Make epsilon 1 the loss of one person" in page
    page = browser.form("/fix", {"number": "0"}, "privacy")
    assert "little protection" not in page
    assert (desk.draft.spec.mechanism.epsilon, desk.draft.spec.mechanism.per_unit) == ("1", None)


@pytest.mark.audit
def test_an_estimated_delta_has_its_fixes_as_buttons():
    browser, desk = opened()
    cells = itertools.product(range(3), repeat=4)
    rows = [",".join([*(f"{axis}{k}" for axis, k in zip("abcd", cell, strict=True)), "25"]) for cell in cells]
    browser.upload("t.csv", "\n".join(["a,b,c,d,n", *rows]).encode())
    browser.form("/keep", {"margin": ["0,1", "1,2", "2,3", "0,3"]})
    browser.form("/privacy", {"epsilon": "1", "reading": "unit", "kind": "laplace"})
    browser.page("/release")
    page = browser.page("/privacy")
    assert "Sampling adds delta" in page
    assert "<button>Use Gaussian noise, exact under nearly all totals</button>" in page
    assert re.search("<button>Accept delta 0[.]\\d+</button>", page)
    assert desk.draft.spec.output.accept_delta is None
    browser.form("/fix", {"number": "0"}, "privacy")
    assert desk.draft.spec.mechanism.kind == "gaussian"
    assert "Released" in release(browser)

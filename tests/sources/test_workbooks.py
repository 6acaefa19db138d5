"""Sheets of workbooks, as openpyxl writes them and as people change them."""

import io
import re
import sys
from datetime import date, datetime, time

import openpyxl
import pytest

import keepsum as ks
from keepsum.sources.writing import own_kind, table_bytes
from sources.workbook_files import ROWS, SECRET, book, changed, in_sheet, read, refused, shared


def test_a_sheet_is_read_and_released_as_csv(tmp_path):
    assert read(tmp_path, shared(book())).counts.tolist() == [SECRET, 6, 7, 8]
    table = read(tmp_path, book())
    assert table.counts.tolist() == [SECRET, 6, 7, 8]
    assert own_kind(table) == "csv"
    assert table_bytes(table, "csv").decode() == f"age,sex,n\n01,f,{SECRET}\n01,m,6\n85+,f,7\n85+,m,8\n"


def test_the_same_as_the_same_sheet_saved_as_csv(tmp_path):
    rows = [("year", "day", "code", "n"), (2020, date(2026, 11, 17), "007", 1), (2021, date(2026, 1, 2), "7", 2)]
    csv = tmp_path / "counts.csv"
    csv.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    domain = {"year": [2020, 2021], "day": ["2026-01-02", "2026-11-17"], "code": ["007", "7"]}
    for declared in (domain, domain | {"year": ["2020", "2021"]}):
        sheet, text = read(tmp_path, book(rows), domain=declared), ks.read_table(csv, "n", domain=declared)
        assert sheet.counts.tolist() == text.counts.tolist()
        assert sheet.domain == text.domain
        assert table_bytes(sheet, "csv") == table_bytes(text, "csv")


ZIPS = [("zip", "year", "n"), (1234, 2020, 5), ("00501", 2020, 6), (98765, 2020, 7), (123456, 2020, 8)]
AS_SHOWN = ("00501", "01234", "98765", "123456")


def formatted(code, cells=("A2", "A4", "A5", "B2", "C2", "C3")):
    def change(sheet):
        for cell in cells:
            sheet[cell].number_format = code

    return change


@pytest.mark.parametrize("code", ["00000", "00000;@", "[$-409]00000", "[Blue]00000_)"])
@pytest.mark.parametrize("edit", [None, (rb' r="[A-Z]+[0-9]+"', b""), (rb'(<c )(r="\w+") (s="\d+")', rb"\1\3 \2")])
def test_codes_have_the_zeros_that_people_see(tmp_path, code, edit):
    """Stored as the number 1234, shown as 01234; a count in such a format is the number."""
    data = book(ZIPS, change=formatted(code))
    if edit is not None:
        data = changed(data, lambda name, xml: re.sub(*edit, xml) if "sheet1" in name else xml)
    table = read(tmp_path, data, domain={"zip": AS_SHOWN, "year": ["2020", "02020"]})
    cells = {tuple(table.domain.cell(k).values()): n for k, n in enumerate(table.counts.tolist()) if n}
    assert cells == {("00501", "2020"): 6, ("01234", "02020"): 5, ("98765", "2020"): 7, ("123456", "2020"): 8}


@pytest.mark.parametrize(
    "code",
    ["00000-0000", "[<=99999]00000;00000-0000", '"Nr" 000', "000 00", '"FIPS "0', '0 "people"', 'General" kg"', "\\N0"],
)
def test_codes_in_other_formats_are_not_guessed(tmp_path, code):
    data = book(ZIPS, change=formatted(code, ["A4", "C2"]))
    refused(tmp_path, data, "Cell A4 of sheet 'Counts' must have a label, .* shows more than its digits", domain=None)
    domain = {"zip": ["1234", "00501", "98765", "123456"], "year": ["2020"]}
    assert read(tmp_path, book(ZIPS, change=formatted(code, ["C2"])), domain=domain).counts.tolist() == [5, 6, 7, 8]


@pytest.mark.parametrize("code", ['0"000"', "0\\0", "0%", "0.00%", "0,", "#,##0,", '0.0,,"M"', '0;0"000"', '0"a;b"%'])
def test_counts_that_look_like_other_numbers(tmp_path, code):
    domain = {"zip": ["1234", "00501", "98765", "123456"], "year": ["2020"]}
    words = "Cell C3 of sheet 'Counts' must show the count that it has"
    refused(tmp_path, book(ZIPS, change=formatted(code, ["C3"])), words, domain=domain)
    if ";" not in code.split('"')[0]:
        words = "Cell A4 of sheet 'Counts' must have a label"
        refused(tmp_path, book(ZIPS, change=formatted(code, ["A4"])), words, domain=domain)


@pytest.mark.parametrize(
    "code",
    ["General", "0", "#,##0", "0.00", "0.00E+00", "#,##0_);(#,##0)", '_(* #,##0_);_(* (#,##0);_(* "-"_);_(@_)', "0\\ "],
)
def test_formats_without_leading_zeros(tmp_path, code):
    domain = {"zip": ["1234", "00501", "98765", "123456"], "year": ["2020"]}
    assert read(tmp_path, book(ZIPS, change=formatted(code)), domain=domain).counts.tolist() == [5, 6, 7, 8]


def test_labels_do_not_depend_on_other_rows(tmp_path):
    """A row may be absent because its count is 0."""
    rows = [("age", "when", "n"), (1, datetime(2026, 1, 2), 5), (2, datetime(2026, 1, 2, 8, 30), 6), ("85+", "x", 7)]
    whole, part = [], []
    for some, columns in ((rows, whole), (rows[:2], part)):
        with pytest.warns(ks.CategoriesFromDataWarning):
            table = read(tmp_path, book(some), axes=["age", "when"], domain=None, dense=True)
        columns += [table.domain.categories(name) for name in ("age", "when")]
    assert whole == [("1", "2", "85+"), ("2026-01-02", "2026-01-02 08:30:00", "x")]
    assert part == [("1",), ("2026-01-02",)]


def test_blank_rows_and_columns_are_left_out(tmp_path):
    def blank(sheet):
        sheet.insert_rows(3)
        sheet["F20"] = None
        sheet["A30"] = ""
        sheet["F30"].number_format = "0.00"

    table = read(tmp_path, book(change=blank))
    assert table.counts.tolist() == [SECRET, 6, 7, 8]
    refused(tmp_path, book([*ROWS, (), ("01", "f", 1)]), "row 2 of sheet 'Counts' and row 7 of sheet 'Counts' are the")


def test_which_sheet(tmp_path):
    several = book(others=["Notes", "2020"])
    message = refused(tmp_path, several, "must have one sheet")
    assert "named with sheet=, got 'Counts', 'Notes', '2020'." in message
    assert read(tmp_path, several, sheet="Counts").counts.tolist() == [SECRET, 6, 7, 8]
    refused(tmp_path, several, "must be one of 'Counts', 'Notes', '2020', got 'counts'", sheet="counts")
    refused(tmp_path, several, "Sheet 'Notes' of 'counts.xlsx' must start with a header", sheet="Notes")
    refused(tmp_path, book(others=[f"S{k}" for k in range(30)]), "got 31 sheets")
    refused(tmp_path, several, "The sheet must be text", sheet=0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "must start with a header, but its first row is empty"),
        ([(), *ROWS], "first row is empty"),
        ([("Persons by age",), *ROWS], "Column B of sheet 'Counts' must have a name in the first row"),
        ([("age", None, "n"), *ROWS[1:]], "Column B of sheet 'Counts' must have a name"),
        ([("age", "age", "n"), *ROWS[1:]], "different names, got 'age' twice"),
        ([ROWS[0], ("old", "f", None)], "Count in row 2 of sheet 'Counts', column 'n', .* missing"),
        ([ROWS[0], ("old", "f", 1), ("old", "m", SECRET + 0.5)], "Count in row 3 of sheet 'Counts', column 'n'"),
        ([ROWS[0], ("old", "f", True)], "Count in row 2 of sheet 'Counts', column 'n', .* not a number"),
        ([ROWS[0], ("old", "f", date(2026, 1, 2))], "Count in row 2 of sheet 'Counts', column 'n'"),
        ([ROWS[0], ("old", "f", "many")], "Count in row 2 of sheet 'Counts', column 'n', .* plain digits"),
        ([ROWS[0], ("old", "f", -SECRET)], "Count in row 2 of sheet 'Counts', column 'n', .* negative"),
        ([ROWS[0], ("old", None, SECRET)], "Category in row 2 of sheet 'Counts', column 'sex', must not be missing"),
        ([ROWS[0], ("old", True, SECRET)], "Category in row 2 of sheet 'Counts', column 'sex', must be text"),
        ([ROWS[0], ("old", 1.5, SECRET)], "'sex' must be declared, because it contains numbers"),
        ([ROWS[0], ("old", time(8, 30), SECRET)], "Category in row 2 of sheet 'Counts', column 'sex', must be text"),
        ([ROWS[0], ("old", "f", "=40+2")], "Cell C2 of sheet 'Counts' must have a value, .* formula without a stored"),
        ([ROWS[0], ("old", "=A2", 1)], "Cell B2 of sheet 'Counts' must have a value, .* formula without a stored"),
        ([("n",), (1,)], "at least one axis"),
        ([("n",)], "at least one axis"),
    ],
)
def test_bad_sheets(tmp_path, rows, message):
    refused(tmp_path, book(rows), message, domain=None)


def test_merged_cells(tmp_path):
    data = book(change=lambda sheet: sheet.merge_cells("A2:A3"))
    refused(tmp_path, data, "Sheet 'Counts' of 'counts.xlsx' must not have merged cells, but row 2 has some")


def test_stored_results_of_formulas(tmp_path):
    data = book([*ROWS[:4], ("85+", "m", "=5+3")])
    assert read(tmp_path, in_sheet(data, b"<v></v>", b"<v>8</v>")).counts.tolist() == [SECRET, 6, 7, 8]


def test_a_formula_on_another_sheet_is_none_of_this_one(tmp_path):
    made = openpyxl.Workbook()
    made.active.append(("x",))
    made.active["C2"] = "=1+1"
    counts = made.create_sheet("Counts")
    for row in (ROWS[0], ("01", "f", None)):
        counts.append(row)
    sink = io.BytesIO()
    made.save(sink)
    refused(tmp_path, sink.getvalue(), "column 'n', .* missing", sheet="Counts")


def test_errors_of_excel_are_missing_values(tmp_path):
    data = book([ROWS[0], ("01", "f", "#N/A")])
    refused(tmp_path, data, "row 2 of sheet 'Counts', column 'n'")
    refused(tmp_path, book([ROWS[0], ("01", "#REF!", 5)]), "column 'sex', must not be missing")


def test_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(ks.InputError) as caught:
        read(tmp_path, book())
    assert str(caught.value) == (
        "Reading 'counts.xlsx' needs python-calamine, which is not installed. Save the sheet as CSV, or run in "
        "a clone of Keepsum: pip install '.[excel]'"
    )

"""Sheets of workbooks, as openpyxl writes them and as people and forgers change them."""

import io
import re
import sys
import zipfile
from datetime import date, datetime, time

import openpyxl
import pytest

import keepsum as ks
from keepsum import _memory
from keepsum.sources import archives, workbooks
from keepsum.sources.writing import own_kind, table_bytes

SECRET = 8675309
ROWS = [("age", "sex", "n"), ("01", "f", SECRET), ("01", "m", 6), ("85+", "f", 7.0), ("85+", "m", "8")]
CATEGORIES = {"age": ["01", "85+"], "sex": ["f", "m"]}


def book(rows=ROWS, title="Counts", others=(), change=None):
    """The bytes of a workbook."""
    made = openpyxl.Workbook()
    made.active.title = title
    for row in rows:
        made.active.append(row)
    for other in others:
        made.create_sheet(other)
    if change is not None:
        change(made.active)
    sink = io.BytesIO()
    made.save(sink)
    return sink.getvalue()


def changed(data, edit, compress=zipfile.ZIP_DEFLATED):
    """A workbook with other members: ``edit`` gets each name and content, and returns the content, or None."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(sink, "w", compress) as new:
        for name in old.namelist():
            content = edit(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return sink.getvalue()


def in_sheet(data, old, new):
    """A workbook whose first sheet has other XML."""
    assert old in zipfile.ZipFile(io.BytesIO(data)).read("xl/worksheets/sheet1.xml")
    return changed(data, lambda name, xml: xml.replace(old, new) if name == "xl/worksheets/sheet1.xml" else xml)


def shared(data):
    """The workbook as Excel writes it: texts in a member of their own."""
    texts = []

    def refer(match):
        if match[1] not in texts:
            texts.append(match[1])
        return b't="s"><v>%d</v>' % texts.index(match[1])

    def edit(name, xml):
        return re.sub(rb't="inlineStr"><is>(.*?)</is>', refer, xml) if "sheet1" in name else xml

    referring = changed(data, edit)
    items = b"".join(b"<si>" + text + b"</si>" for text in texts)
    sink = io.BytesIO(referring)
    with zipfile.ZipFile(sink, "a", zipfile.ZIP_DEFLATED) as made:
        made.writestr(
            "xl/sharedStrings.xml",
            b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">' + items + b"</sst>",
        )
    return sink.getvalue()


def read(tmp_path, data, **arguments):
    file = tmp_path / "counts.xlsx"
    file.write_bytes(data)
    return ks.read_table(file, **({"count": "n", "domain": CATEGORIES} | arguments))


def refused(tmp_path, data, message, **arguments):
    with pytest.raises(ks.InputError, match=message) as caught:
        read(tmp_path, data, **arguments)
    assert caught.value.__context__ is None
    assert str(SECRET) not in str(caught.value)
    assert str(caught.value).isprintable()
    return str(caught.value)


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


# -- files that are no workbooks, or hostile ones ------------------------------------------------------


def archive(members):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as made:
        for name, content in members.items():
            made.writestr(name, content)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(512), "it is password-protected or an old .xls. Save the sheet as"),
        (archive({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": ""}), "another kind of"),
        (archive({"xl/workbook.bin": ""}), "another kind of workbook. Save the sheet as .xlsx or CSV."),
        (archive({"counts.csv": f"a,n\nx,{SECRET}\n"}), "it is a zip archive. Unpack it first."),
        (archive({"xl/workbook.xml": "nothing"}), "must be a complete .xlsx workbook"),
        (archive({"xl/workbook.xml": "<workbook/>"}), "must be a complete .xlsx workbook|got "),
        (b"PK\x03\x04" + bytes(100), "must be a complete .xlsx workbook, but it cannot be read as one"),
        (book()[:-30], "must be a complete .xlsx workbook"),
        (book()[:2000], "must be a complete .xlsx workbook"),
    ],
)
def test_files_that_are_no_workbooks(tmp_path, data, message):
    refused(tmp_path, data, message)


def test_any_damage_gives_a_sentence(tmp_path):
    """Each byte in turn; what still reads is the table, because members have checksums."""
    data = book()
    for place in range(0, len(data), 7):
        wrong = bytearray(data)
        wrong[place] ^= 0x55
        try:
            assert read(tmp_path, bytes(wrong)).counts.tolist() == [SECRET, 6, 7, 8]
        except ks.InputError as problem:
            assert str(SECRET) not in str(problem)  # noqa: PT017


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_any_damage_under_other_methods(tmp_path, method):
    data = changed(book(), lambda name, xml: xml, method)
    assert read(tmp_path, data).counts.tolist() == [SECRET, 6, 7, 8]
    for place in range(0, len(data), 101):
        wrong = bytearray(data)
        wrong[place] ^= 0xFF
        try:
            assert read(tmp_path, bytes(wrong)).counts.tolist() == [SECRET, 6, 7, 8]
        except ks.InputError as problem:
            assert str(SECRET) not in str(problem)  # noqa: PT017


def test_a_member_that_unpacks_to_more_than_fits(tmp_path, monkeypatch):
    data = changed(book(), lambda name, xml: xml + b" " * 2**24 if "sheet1" in name else xml)
    assert len(data) < 2**16
    monkeypatch.setattr(_memory, "available", lambda: 2**24)
    refused(tmp_path, data, "File 'counts.xlsx', unpacked, must fit in memory")


def test_a_member_that_is_larger_than_the_directory_says(tmp_path, monkeypatch):
    """The size in the directory is forged; no more than that is unpacked."""
    data = changed(book(), lambda name, xml: xml + b" " * 2**24 if "sheet1" in name else xml)
    size = zipfile.ZipFile(io.BytesIO(data)).getinfo("xl/worksheets/sheet1.xml").file_size
    forged = data.replace(size.to_bytes(4, "little"), (4000).to_bytes(4, "little"))
    assert forged != data
    monkeypatch.setattr(_memory, "available", lambda: 2**24)
    refused(tmp_path, forged, "must be a complete .xlsx workbook")


def test_entities(tmp_path):
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    for member in ("xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"):
        data = changed(shared(book()), lambda name, xml, member=member: bomb + xml if name == member else xml)
        refused(tmp_path, data, "must be a complete .xlsx workbook")


def test_a_cell_far_away(tmp_path):
    """Calamine makes an array of all cells up to the last one, here of 17 billion."""
    data = book(change=lambda sheet: sheet.cell(1_048_576, 16_384, "x"))
    refused(tmp_path, data, "A sheet of 'counts.xlsx' with 1,048,576 rows and 16,384 columns must fit in memory")
    for old, new in ((b' r="XFD1048576"', b" r='XFD1048576'"), (b"<c r=", b"<c   s='0' r=")):
        refused(tmp_path, in_sheet(data, old, new), "16,384 columns must fit in memory")
    blank = book(change=lambda sheet: setattr(sheet.cell(1_048_576, 16_384), "number_format", "0.00"))
    assert read(tmp_path, blank).counts.tolist() == [SECRET, 6, 7, 8]


def sheet_of(data):
    return zipfile.ZipFile(io.BytesIO(data)).read("xl/worksheets/sheet1.xml")


def test_the_last_cell_is_found_whatever_is_looked_at_together(monkeypatch):
    xml = sheet_of(book(change=lambda sheet: sheet.cell(300, 30, "x")))
    for size in (1, 7, 40, 100, 10**6):
        monkeypatch.setattr(archives, "CHUNK", size)
        assert archives._last_place(xml) == (300, 30)
        assert archives._last_cell(xml) == (300, 30)


def test_places_may_be_left_out(tmp_path):
    """As some programs do: rows and cells are then one after another."""
    without = re.sub(rb' r="[A-Z]*[0-9]+"', b"", sheet_of(book()))
    data = changed(book(), lambda name, xml: without if "sheet1" in name else xml)
    assert archives._last_place(without) is None
    assert archives._last_cell(without) == (5, 3)
    assert read(tmp_path, data).counts.tolist() == [SECRET, 6, 7, 8]
    prefixed = re.sub(rb"<(/?)(row|c|v|is|t|sheetData|worksheet)\b", rb"<\1x:\2", sheet_of(book()))
    prefixed = prefixed.replace(
        b"xmlns=", b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:x='
    )
    assert archives._last_cell(prefixed) == (5, 3)


FAR = [
    b'<row r="9"><c r="ZZZZ9"><v>1</v></c></row>',
    b'<row r="9"><c r="A99999999"><v>1</v></c></row>',
    b'<row r="9"><c r="zzz9"><v>1</v></c></row>',
    b'<row r="99999999"><c><v>1</v></c></row>',
    b'<row r="1048576"><c r="A1048576"><v>1</v></c></row><row r="7">' + b"<c><v>1</v></c>" * 16384 + b"</row>",
    b'<row r="1048576"><c><v>1</v></c></row><row r="7"><c r="XFC7"><v>1</v></c><c><v>1</v></c></row>',
    b"<row r='1048576'><c r='XFD1048576'><v>1</v></c></row>",
    b'<row r = "1048576"><c s="1" r = "XFD1048576"><v>1</v></c></row>',
    b'<x:row r="1048576"><x:c r="XFD1048576"><x:v>1</x:v></x:c></x:row>',
    '<é:row r="1048576"><é:c r="XFD1048576"><v>1</v></é:c></é:row>'.encode(),
    b"<!-- <c a=' --><row r='1048576'><c r=\"XFD1048576\" x=' y=\"1\"><v>1</v></c></row>",
    b'<!-- <c a=" --><row r="1048576"><c r="XFD1048576" x="1"><v>1</v></c></row>',
    b'<c a=">" r="XFD1048576"><v>1</v></c>',
    b'<c a="<" r="XFD1048576"><v>1</v></c>',
    b'<c r="A1" r="XFD1048576"><v>1</v></c><c r="A1048576"><v>1</v></c>',
    b'<c r="A1"r="XFD1048576"><v>1</v></c><c r="A1048576"><v>1</v></c>',
    b'<c r="A1" t="n" r\t=\n"XFD1048576"><v>1</v></c>',
    b'<a:b:c r="XFD1048576"><v>1</v></a:b:c>',
    b'<c\tr="XFD1048576"><v>1</v></c>',
    b'<row r="1048576"><c r="XFD"><v>1</v></c></row><row><c r="XFD1"><v>1</v></c></row>',
]


@pytest.mark.parametrize("cells", FAR)
def test_cells_far_away_in_other_words(tmp_path, cells):
    """Whatever calamine may understand by them, it does not get to see them."""
    data = in_sheet(book(), b"</sheetData>", cells + b"</sheetData>")
    refused(tmp_path, data, "must fit in memory|must be a complete .xlsx workbook|must have a name in the first row")


def test_tags_of_very_many_attributes_take_no_time():
    """Nothing is tried twice; if it were, this would not end."""
    many = b"<c" + b' a=""' * 10**5
    assert archives._last_cell(many) is None
    assert archives._last_cell(many + b' r="ZZZZ1">') is None
    assert archives._last_cell(b"<" + b"x" * 10**6 + b"<c " * 10**5) is None


def test_one_long_text_in_very_many_cells(tmp_path, monkeypatch):
    """Each would have a copy of it."""
    data = shared(book([*ROWS, *[("x" * 30_000, "f", 1)] * 2000]))
    assert len(data) < 2**15
    monkeypatch.setattr(_memory, "available", lambda: 2**25)
    message = r"The texts in 'counts.xlsx', the longest of 30,\d+ characters, must fit in memory"
    refused(tmp_path, data, message)
    for other in (b"t='s'", b't = "s"'):
        refused(tmp_path, in_sheet(data, b't="s"', other), message)
    refused(tmp_path, in_sheet(data, b' t="s"', b't="s"'), message)


def test_a_panic_of_the_reader_is_an_error():
    class PanicException(BaseException):  # as pyo3 names it
        pass

    def panic():
        raise PanicException

    assert workbooks._attempt(panic) is None
    with pytest.raises(KeyboardInterrupt):
        workbooks._attempt(lambda: (_ for _ in ()).throw(KeyboardInterrupt))


def test_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(ks.InputError) as caught:
        read(tmp_path, book())
    assert str(caught.value) == (
        "Reading 'counts.xlsx' needs python-calamine, which is not installed. Install keepsum[excel], or save the "
        "sheet as CSV."
    )

"""Files that are no workbooks, damaged ones, and ones that ask for more than fits in memory."""

import io
import re
import zipfile

import pytest

import keepsum as ks
from keepsum import _memory
from keepsum.sources import workbooks
from sources.workbook_files import ROWS, SECRET, book, changed, in_sheet, read, refused, shared


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
        monkeypatch.setattr(workbooks, "CHUNK", size)
        assert workbooks._last_place(xml) == (300, 30)
        assert workbooks._last_cell(xml) == (300, 30)


def test_places_may_be_left_out(tmp_path):
    """As some programs do: rows and cells are then one after another."""
    without = re.sub(rb' r="[A-Z]*[0-9]+"', b"", sheet_of(book()))
    data = changed(book(), lambda name, xml: without if "sheet1" in name else xml)
    assert workbooks._last_place(without) is None
    assert workbooks._last_cell(without) == (5, 3)
    assert read(tmp_path, data).counts.tolist() == [SECRET, 6, 7, 8]
    prefixed = re.sub(rb"<(/?)(row|c|v|is|t|sheetData|worksheet)\b", rb"<\1x:\2", sheet_of(book()))
    prefixed = prefixed.replace(
        b"xmlns=", b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:x='
    )
    assert workbooks._last_cell(prefixed) == (5, 3)


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
    assert workbooks._last_cell(many) is None
    assert workbooks._last_cell(many + b' r="ZZZZ1">') is None
    assert workbooks._last_cell(b"<" + b"x" * 10**6 + b"<c " * 10**5) is None


def test_one_long_text_in_very_many_cells(tmp_path, monkeypatch):
    """Each would have a copy of it."""
    data = shared(book([*ROWS, *[("long", "f", 1)] * 2000]))
    data = changed(data, lambda name, xml: xml.replace(b"long", b"x" * 30_000) if "sharedStrings" in name else xml)
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

"""Workbooks of the tests, changes of their members, and how they are read or refused."""

import io
import re
import zipfile

import openpyxl
import pytest

import keepsum as ks

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
    with pytest.raises((ks.InputError, ks.TooMuchWorkError), match=message) as caught:
        read(tmp_path, data, **arguments)
    assert isinstance(caught.value, ks.TooMuchWorkError) == ("must fit in memory" in str(caught.value))
    assert caught.value.__context__ is None
    assert str(SECRET) not in str(caught.value)
    assert str(caught.value).isprintable()
    return str(caught.value)

"""Text files in any encoding as UTF-8, and what a file is that is no text."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping

from keepsum._text import given
from keepsum.errors import DataError, InputError
from keepsum.tables.findings import Encoding, refuse

CHUNK = 2**24  # bytes decoded at a time
BYTE_ORDER_MARKS = {  # the longer ones first: that of UTF-32 starts with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
UTF = ("utf-8", "utf-16", "utf-32")  # how their names start
NOT_OF_FILES = {"undefined", "idna", "punycode", "unicode-escape", "raw-unicode-escape"}
SWAPPED_NEWLINE = "\u0a00".encode()  # a line feed of UTF-16 read in the other byte order
PROBE = "a,1\n"  # in most encodings these are the bytes of ASCII
ZIP, OLE2 = b"PK\x03\x04", bytes.fromhex("d0cf11e0a1b11ae1")  # new workbooks, and old or encrypted ones
OTHER_FILES = {  # by their first bytes
    rb"%PDF-": "a PDF file",
    rb"BZh[1-9]1AY&SY": "compressed by bzip2",
    rb"\xfd7zXZ\0": "compressed by xz",
    rb"7z\xbc\xaf'\x1c": "a 7z archive",
    rb"Rar!\x1a\x07": "a RAR archive",
    rb"\x1f\x8b": "compressed twice",
    rb"(?s:.{257})ustar": "a tar archive",
    rb"\$FL[23]@\(#\)": "an SPSS file",
    rb"\{\\rtf": "an RTF document",
    rb"\s*<(?i:!doctype html|html)\b": "a web page",
    rb"\s*<\?xml\s": "an XML file",
    rb"\s*(?:\[\s*)?\{\s*\"": "a JSON file",
    rb"PK\x05\x06": "an empty zip archive",
}

DATABASES = {rb"SQLite format 3\0": "an SQLite database", rb"(?s:.{8}DUCK..)\0\0": "a DuckDB database"}


def is_workbook(data: bytes) -> bool:
    """Whether these are the first bytes of a workbook, or of what may be one."""
    return data.startswith((ZIP, OLE2))


def to_utf8(data: bytes, name: str, encoding: str | None = None) -> bytes:
    r"""A text file as UTF-8, with its byte order mark if it has one.

    Without an encoding it must be UTF-8, or start with the byte order mark of UTF-16 or UTF-32.

    Examples
    --------
    >>> to_utf8("Côte".encode("windows-1252"), "towns.csv", "windows-1252").decode()
    'Côte'
    >>> to_utf8("Côte".encode("utf-16"), "towns.csv").decode()
    '\ufeffCôte'
    """
    database = _first_fitting(DATABASES, data)
    if database is not None:
        raise DataError(
            f"File {name!r} must be a table of counts, but it is {database}. Count the records in one of its tables: "
            f"ks.tabulate(source, by=[...], table=...)."
        )
    other = _first_fitting(OTHER_FILES, data)
    if other is not None:
        raise DataError(f"File {name!r} must be a table, but it is {other}. Save the table as CSV, Parquet or .xlsx.")
    marked = next((named for mark, named in BYTE_ORDER_MARKS.items() if data.startswith(mark)), None)
    if encoding is not None:
        codec = check_encoding(encoding)
        _check_named(data, name, codec, marked)
        return _decoded(data, name, codec)
    if marked is not None:
        return _decoded(data, name, marked)
    start = data[:CHUNK]
    if start.count(b"\0") > len(start) // 10:
        refuse(Encoding(name, f"utf-16-{_order(start)}", has_nulls=True))
    is_text = is_utf8(data)
    if not is_text and b"\0" in data:
        raise DataError(
            f"File {name!r} must be a table, but it is neither text nor a format that is known. Save the table as CSV, "
            f"Parquet or .xlsx."
        )
    if not is_text:
        refuse(Encoding(name, "windows-1252"))
    return data


def _order(data: bytes) -> str:
    """The byte order in which most characters of a text in UTF-16 or UTF-32 are Latin letters and digits."""
    return "be" if data[::4].count(0) > data[3::4].count(0) else "le"


def _check_named(data: bytes, name: str, encoding: str, marked: str | None) -> None:
    """Refuse an encoding in which a file would be read, but not as the text that it is."""
    wrong = f"File {name!r} must be in the encoding that is named, but"
    if marked is not None and not encoding.startswith(marked[:6]):
        raise DataError(f"{wrong} it starts with the byte order mark of {marked[:6].upper()}. Leave out encoding=.")
    is_ascii_too = PROBE.encode(encoding) == PROBE.encode()
    if data.isascii() and b"\0" not in data and not (is_ascii_too or encoding == "utf-8-sig"):
        raise DataError(f"{wrong} it is plain ASCII. Leave out encoding=.")
    if encoding in ("utf-16", "utf-32") and marked is None:
        raise DataError(f"{wrong} it has no byte order mark. Pass encoding='{encoding}-{_order(data[:CHUNK])}'.")
    if not encoding.startswith(UTF) and not data.isascii() and is_utf8(data):
        raise DataError(
            f"{wrong} it is UTF-8, which cannot be chance in a long file. Leave out encoding=, or save the file as "
            f"UTF-8 if it is not."
        )


def check_encoding(encoding: object) -> str:
    """The name of an encoding as Python has it."""
    try:
        codec = codecs.lookup(encoding) if isinstance(encoding, str) else None
    except (LookupError, ValueError):
        codec = None
    if codec is None or not getattr(codec, "_is_text_encoding", True) or codec.name in NOT_OF_FILES:
        raise InputError(
            f"encoding= must be the name of an encoding such as 'windows-1252' or 'utf-16', got {given(encoding)}."
        )
    return codec.name


def is_utf8(data: bytes) -> bool:
    """Whether a file is UTF-8, decoded piece by piece."""
    try:
        for _ in _pieces(data, "utf-8"):
            pass
    except UnicodeError:  # not passed on, because it contains the file
        return False
    return True


def _pieces(data: bytes, encoding: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)()
    view = memoryview(data)
    for start in range(0, len(data), CHUNK):
        yield decoder.decode(view[start : start + CHUNK])
    yield decoder.decode(b"", final=True)


def _decoded(data: bytes, name: str, encoding: str) -> bytes:
    """A file in a known encoding as UTF-8; the error names the line, and does not contain the text."""
    try:
        text = b"".join(piece.encode("utf-8") for piece in _pieces(data, encoding))
        if b"\n" in text or not encoding.startswith("utf-16") or SWAPPED_NEWLINE not in text:
            return text
        place = "the order of its bytes"
    except (UnicodeError, ValueError, AssertionError):  # the error contains the file
        place = _bad_place(data, encoding)
    raise DataError(
        f"File {name!r} must be text in the encoding {encoding!r}, but {place} is not. Name another encoding, or save "
        f"it as UTF-8."
    )


def _bad_place(data: bytes, encoding: str) -> str:
    """Where a file is not in an encoding, for a message."""
    try:
        good, found, _ = data.decode(encoding, "replace").partition("\ufffd")
    except (UnicodeError, ValueError, AssertionError):  # some encodings cannot replace what they do not know
        found = ""
    return f"line {1 + good.count(chr(10)):,}" if found else "a part of it"


def _first_fitting(kinds: Mapping[bytes, str], data: bytes) -> str | None:
    """What a file is that is no table, by its first bytes."""
    return next((kind for start, kind in kinds.items() if re.match(start, data)), None)

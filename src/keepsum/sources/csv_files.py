"""Text files of delimited values in any encoding, and what a file is that is no text."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from keepsum._saying import arg, the
from keepsum._text import given, shown_names
from keepsum.errors import DataError, InputError
from keepsum.tables.columns import coded
from keepsum.tables.findings import Encoding, refuse
from keepsum.tables.origins import TextFile
from keepsum.tables.source import Coded, Source

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
            f"File {the.file(name)} must be a table of counts, but it is {database}. Count the records in one of its "
            f"tables: {the.call('ks.tabulate(source, by=[...], table=...)')}."
        )
    other = _first_fitting(OTHER_FILES, data)
    if other is not None:
        raise DataError(
            f"File {the.file(name)} must be a table, but it is {other}. Save the table as CSV, Parquet or .xlsx."
        )
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
            f"File {the.file(name)} must be a table, but it is neither text nor a format that is known. Save the "
            "table as CSV, Parquet or .xlsx."
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
        raise DataError(
            f"{wrong} it starts with the byte order mark of {marked[:6].upper()}. {arg.encoding:Leave out}."
        )
    is_ascii_too = PROBE.encode(encoding) == PROBE.encode()
    if data.isascii() and b"\0" not in data and not (is_ascii_too or encoding == "utf-8-sig"):
        raise DataError(f"{wrong} it is plain ASCII. {arg.encoding:Leave out}.")
    if encoding in ("utf-16", "utf-32") and marked is None:
        raise DataError(f"{wrong} it has no byte order mark. {arg.encoding:Pass}'{encoding}-{_order(data[:CHUNK])}'.")
    if not encoding.startswith(UTF) and not data.isascii() and is_utf8(data):
        raise DataError(
            f"{wrong} it is UTF-8, which cannot be chance in a long file. {arg.encoding:Leave out}, or save the file "
            "as UTF-8 if it is not."
        )


def check_encoding(encoding: object) -> str:
    """The name of an encoding as Python has it."""
    try:
        codec = codecs.lookup(encoding) if isinstance(encoding, str) else None
    except (LookupError, ValueError):
        codec = None
    if codec is None or not getattr(codec, "_is_text_encoding", True) or codec.name in NOT_OF_FILES:
        raise InputError(
            f"{arg.encoding} must be the name of an encoding such as 'windows-1252' or 'utf-16', got {given(encoding)}."
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
        # Where a file is not in an encoding, for a message
        try:
            good, found, _ = data.decode(encoding, "replace").partition("\ufffd")
        except (UnicodeError, ValueError, AssertionError):  # some encodings cannot replace what they do not know
            found = ""
        place = f"line {1 + good.count(chr(10)):,}" if found else "a part of it"
    raise DataError(
        f"File {the.file(name)} must be text in the encoding {encoding!r}, but {place} is not. Name another encoding, "
        "or save it as UTF-8."
    )


def _first_fitting(kinds: Mapping[bytes, str], data: bytes) -> str | None:
    """What a file is that is no table, by its first bytes."""
    return next((kind for start, kind in kinds.items() if re.match(start, data)), None)


# A file is read by pyarrow where it is installed and the file is regular; otherwise, and for every error message, by
# Python's csv module. Both give the same columns (``tests/sources/test_csv_files.py``).

DELIMITERS = (",", ";", "\t", "|")
LONGEST_HEADER = 10**5
SMALL = 10**5  # bytes; smaller files are read without pyarrow, which takes a moment to load
MOST_IN_A_BLOCK = 2**31 - 1  # bytes, for pyarrow
LONGEST_NUMBER = 18  # characters, so that a number fits 64 bits
PROBLEMS = {  # what is wrong, by the words of Python's csv module
    "field larger": f"a value has more than {csv.field_size_limit():,} characters",
    "unexpected end": "a quoted value does not end",
    "expected after": "text follows the quote that ends a value",
    "new-line": "there is a line break of another kind",
}
QUOTE, RETURN, NEWLINE = b'"', b"\r", b"\n"


def csv_source(text: bytes, name: str, counts: Sequence[str]) -> tuple[Source, TextFile]:
    """The columns of a CSV file in UTF-8, and its form; the columns of counts tell the delimiter."""
    byte_order_mark = text.startswith(b"\xef\xbb\xbf")
    text = text[3:] if byte_order_mark else text
    # The first line and its line ending
    line = text[: LONGEST_HEADER + 2].split(NEWLINE, 1)[0].decode("utf-8", "ignore")
    first_line, newline = line.removesuffix("\r"), "\r\n" if line.endswith("\r") else "\n"
    _check_start(text, first_line, name)
    delimiter = _delimiter(first_line, counts)
    names = next(csv.reader(io.StringIO(text[:LONGEST_HEADER].decode("utf-8", "ignore"), ""), delimiter=delimiter))
    if len(names) < 2 and not set(names) & set(counts):
        raise DataError(
            f"File {the.file(name)} must start with a header of several columns, separated by a comma, semicolon, tab "
            "or bar, but its first line has one. Remove lines above the header."
        )
    source = _by_arrow(text, delimiter, name, counts) or _by_python(text, delimiter, name)
    quoted_names = _quoted(first_line, source.names, delimiter)
    form = TextFile(
        columns=source.names,
        delimiter=delimiter,
        newline=newline,
        byte_order_mark=byte_order_mark,
        ends_with_newline=text.endswith(NEWLINE),
        quoted_names=quoted_names,
        # The header decides: quotes in the rows would reveal which rows there are, or how the counts were written.
        quoted_columns=quoted_names,
    )
    return source, form


def refuse_null_characters(text: bytes, name: str) -> None:
    """Refuse a file that some program filled up, or that is no text."""
    if b"\0" in text:
        line = text.count(NEWLINE, 0, text.index(b"\0")) + 1
        raise DataError(
            f"File {the.file(name)} must be text, but line {line:,} contains a null character. Save it again."
        )


def _check_start(text: bytes, first_line: str, name: str) -> None:
    if not text or text.isspace():
        raise DataError(f"File {the.file(name)} must start with a header, but it is empty.")
    if not first_line.strip():
        raise DataError(
            f"File {the.file(name)} must start with a header, but its first line is empty. Remove blank lines."
        )
    if "\r" in first_line:
        raise DataError(f"File {the.file(name)} must have lines that end in a line feed, the first of them a header.")
    if len(first_line) > LONGEST_HEADER:
        raise DataError(
            f"File {the.file(name)} must start with a header of at most {LONGEST_HEADER:,} characters, but its first "
            "line is longer."
        )
    if re.fullmatch(r'"?sep=."?', first_line):
        raise DataError(
            f"File {the.file(name)} must start with a header, but its first line is for Excel. Remove that line."
        )


def _delimiter(header: str, counts: Sequence[str]) -> str:
    """The delimiter for which the header contains a column of counts, else the one that gives most columns."""
    columns = {delimiter: _split(header, delimiter) for delimiter in DELIMITERS}
    for delimiter, names in columns.items():
        if set(counts) & set(names):
            return delimiter
    return max(DELIMITERS, key=lambda delimiter: len(columns[delimiter]))


def _split(header: str, delimiter: str) -> list[str]:
    return next(csv.reader([header], delimiter=delimiter), [])


def check_header(header: Sequence[str], name: str) -> None:
    """Refuse a header that has a column without a name, or names one twice."""
    nameless = next((place for place, column in enumerate(header, 1) if not column), None)
    if nameless is not None:
        raise DataError(
            f"Column {nameless:,} of {the.file(name)} must have a name in the header. Name it, or remove the column "
            f"(pandas writes such a one unless index=False)."
        )
    twice = sorted(column for column, times in Counter(header).items() if times > 1)
    if twice:
        names = shown_names(twice)
        repeated = "one" if names == "others" else names
        raise DataError(
            f"Columns of {the.file(name)} must have different names, got {repeated} twice. Is there a header?"
        )


def _quoted(header: str, names: Sequence[str], delimiter: str) -> frozenset[str]:
    value = re.compile(rf'"(?:[^"]|"")*"|[^{re.escape(delimiter)}]*')
    quoted_names: set[str] = set()
    position = 0
    for name in names:
        match = value.match(header, position)
        if match is None:
            break
        if match[0].startswith('"'):
            quoted_names.add(name)
        position = match.end() + len(delimiter)
    return frozenset(quoted_names)


# -- by Python --------------------------------------------------------------------------------------


def _by_python(text: bytes, delimiter: str, name: str) -> Source:
    rows: list[list[str]] = []
    lines: list[int] = []
    header: list[str] = []
    for line, row in _rows(text, delimiter, name):
        if not header:
            header = row
            continue
        rows.append(row)
        lines.append(line)
    position = {column: k for k, column in enumerate(header)}

    def values(column: str) -> list[str]:
        return [row[position[column]] for row in rows]

    return Source(
        names=tuple(header),
        labels=cache(lambda column: Coded.of(values(column))),
        counts=values,
        where=lambda row: f"line {lines[row]}",
        height=len(rows),
    )


def _rows(text: bytes, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """The header and the rows, each with the line on which it ends."""
    reader = csv.reader(io.TextIOWrapper(io.BytesIO(text), "utf-8", newline=""), delimiter=delimiter, strict=True)
    problem = ""
    try:
        header = next(reader)
        check_header(header, name)
        yield reader.line_num, header
        for row in reader:
            if not row:
                continue  # a blank line
            if len(row) != len(header):
                raise DataError(
                    f"{the.row(f'line {reader.line_num}').called(f'Line {reader.line_num}')} of {the.file(name)} must "
                    f"have {len(header)} values like the header, got {len(row)}."
                )
            yield reader.line_num, row
    except csv.Error as error:
        problem = next((words for start, words in PROBLEMS.items() if start in str(error)), "")
        problem = problem or "it cannot be split into values"
    if problem:
        raise DataError(
            f"File {the.file(name)} must be well-formed CSV, but {the.row(f'line {reader.line_num}')} is not: "
            f"{problem}."
        )


# -- by Arrow ---------------------------------------------------------------------------------------


def _by_arrow(text: bytes, delimiter: str, name: str, counts: Sequence[str]) -> Source | None:
    """The columns as pyarrow reads them; None if it is not installed, or might read the file differently."""
    if len(text) < SMALL or not _is_regular(text, delimiter.encode()):
        return None
    try:
        import pyarrow
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    header = next(_rows(text, delimiter, name))[1]
    has_quotes = QUOTE in text
    # At the end of a block pyarrow takes \r\n within quotes apart, so such a file is one block.
    block = len(text) + 1 if has_quotes and RETURN in text else 2**20
    if block > MOST_IN_A_BLOCK:
        return None
    labels = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    types = {column: pyarrow.string() if column in counts else labels for column in header}
    try:
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(text),
            arrow_csv.ReadOptions(column_names=header, skip_rows_after_names=1, block_size=block),
            arrow_csv.ParseOptions(
                delimiter=delimiter, quote_char='"' if has_quotes else False, newlines_in_values=has_quotes
            ),
            arrow_csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
    except (pyarrow.ArrowException, ValueError):  # the other reader says what is wrong
        return None
    return Source(
        names=tuple(header),
        labels=cache(lambda column: coded(table.column(column))),
        counts=lambda column: _numbers(table.column(column)),
        where=_lines(text, delimiter, name),
        height=table.num_rows,
    )


def _numbers(column: Any) -> Any:
    """Counts in plain digits, with a minus sign or without, as integers; if there is anything else, all as text."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_dictionary(column.type):
        return coded(column).to_list()
    lengths = compute.min_max(compute.binary_length(column)).as_py()
    if not lengths["min"] or lengths["max"] > LONGEST_NUMBER or not all(map(_has_digits_only, column.chunks)):
        return column.to_pylist()
    try:
        return column.cast("int64").to_numpy()
    except pyarrow.ArrowInvalid:  # a minus sign in the middle
        return column.to_pylist()


def _has_digits_only(texts: Any) -> bool:
    """Whether an array of texts has no characters but digits and minus signs."""
    _, offsets, characters = texts.buffers()
    if not len(texts) or characters is None:
        return True
    ends = np.frombuffer(offsets, dtype=np.int32)[[texts.offset, texts.offset + len(texts)]]
    codes = np.frombuffer(characters, dtype=np.uint8)[ends[0] : ends[1]]
    return bool((((codes >= ord("0")) & (codes <= ord("9"))) | (codes == ord("-"))).all())


def _lines(text: bytes, delimiter: str, name: str) -> Callable[[int], str]:
    """What to call a row: found by reading the file again, because blank lines and line breaks in values count."""

    @cache
    def where(row: int) -> str:
        rows = islice(_rows(text, delimiter, name), row + 1, row + 2)
        return next((f"line {line}" for line, _ in rows), f"row {row + 1}")

    return where


def _is_regular(text: bytes, delimiter: bytes) -> bool:
    """Whether every reader sees the same values: quotes only around whole values, and no stray line breaks."""
    if b"\0" in text or (RETURN in text and text.count(RETURN) != text.count(b"\r\n")):
        return False
    if QUOTE not in text:
        return True
    opening = True
    ends = frozenset((*delimiter, *RETURN, *NEWLINE))
    for start in range(0, len(text), CHUNK):
        chunk = np.frombuffer(text, dtype=np.uint8, count=min(CHUNK, len(text) - start), offset=start)
        quotes = np.flatnonzero(chunk == ord(QUOTE)) + start
        before = quotes[0 if opening else 1 :: 2] - 1
        after = quotes[1 if opening else 0 :: 2] + 1
        if not _all_in(text, before, ends) or not _all_in(text, after, ends):
            return False
        opening ^= bool(len(quotes) % 2)
    return opening


def _all_in(text: bytes, positions: Any, allowed: frozenset[int]) -> bool:
    """Whether the file has one of these characters, or its start or end, at every position."""
    inside = positions[(positions >= 0) & (positions < len(text))]
    return set(np.unique(np.frombuffer(text, dtype=np.uint8)[inside]).tolist()) <= allowed

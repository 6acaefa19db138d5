"""Files as people have them: in other encodings, compressed, with semicolons and decimal commas."""

import gzip
import io
from encodings.aliases import aliases

import pyarrow as pa
import pytest

import keepsum as ks
from keepsum import _memory
from keepsum.sources import reading
from keepsum.sources.writing import table_bytes

SECRET = str(8675309)
TEXT = f"county;sex;n\r\nCôte d’Or;f;{SECRET}\r\nCôte d’Or;m;6\r\nAin;f;7\r\nAin;m;8\r\n"
TOWNS = {"county": ["Côte d’Or", "Ain"], "sex": ["f", "m"]}
ZSTD = pa.compress(TEXT.encode(), codec="zstd", asbytes=True)


def read(tmp_path, data, **arguments):
    file = tmp_path / "towns.dat"  # the name says nothing
    file.write_bytes(data)
    return ks.read_table(file, **({"count": "n", "domain": TOWNS} | arguments))


def refused(tmp_path, data, message, **arguments):
    with pytest.raises((ks.InputError, ks.TooMuchWorkError), match=message) as caught:
        read(tmp_path, data, **arguments)
    assert isinstance(caught.value, ks.TooMuchWorkError) == ("must fit in memory" in str(caught.value))
    assert caught.value.__context__ is None
    assert SECRET not in str(caught.value)
    assert str(caught.value).isprintable()
    return str(caught.value)


# -- encodings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "encoding", "mark"),
    [
        (TEXT.encode("windows-1252"), "windows-1252", False),
        (TEXT.encode("windows-1252"), "CP1252", False),
        (TEXT.encode("utf-16"), None, True),
        (TEXT.encode("utf-16"), "utf-16", False),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), None, True),
        (TEXT.encode("utf-32"), None, True),
        (TEXT.encode("utf-16-le"), "utf-16-le", False),
        (TEXT.encode("utf-16-be"), "utf-16-be", False),
        (TEXT.encode("utf-8"), "utf-8-sig", False),
        (TEXT.encode("utf-8-sig"), "utf-8-sig", False),
        (TEXT.encode("utf-8-sig"), None, True),
        (TEXT.encode("utf-8-sig"), "utf-8", True),
        (TEXT.encode("utf-8"), "utf-8", False),
        (TEXT.encode("gb18030"), "gb18030", False),
    ],
)
def test_an_encoding_makes_no_difference_but_for_the_mark(tmp_path, data, encoding, mark):
    table = read(tmp_path, data, encoding=encoding)
    assert table.counts.tolist() == [int(SECRET), 6, 7, 8]
    assert table.domain.categories("county") == ("Côte d’Or", "Ain")
    assert table_bytes(table, "csv") == (b"\xef\xbb\xbf" if mark else b"") + TEXT.encode()  # in UTF-8


UTF = {"utf_8", "utf_7", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be"}
PLAIN = b"county;sex;n\r\nAin;f;5\r\nAin;m;6\r\n"


def is_ascii_too(encoding):
    try:
        return PLAIN.decode(encoding) == PLAIN.decode()
    except (LookupError, UnicodeError):
        return False


@pytest.mark.parametrize("encoding", sorted({*aliases.values(), "mac_farsi", "cp720", "cp856", "palmos"} - UTF))
def test_no_encoding_garbles_utf_8(tmp_path, encoding):
    """Every encoding of Python: a file in UTF-8 is refused, and plain ASCII is read as it is or refused."""
    refused(tmp_path, TEXT.encode(), "encoding", encoding=encoding)
    domain = {"county": ["Ain"], "sex": ["f", "m"]}
    if is_ascii_too(encoding):
        assert table_bytes(read(tmp_path, PLAIN, encoding=encoding, domain=domain), "csv") == PLAIN
    else:
        refused(tmp_path, PLAIN, "but it is plain ASCII|must be the name of an encoding", encoding=encoding)


@pytest.mark.parametrize("encoding", ["cp437", "mac_roman", "latin-1", "cp850", "iso-8859-15", "shift_jis", "cp1251"])
def test_other_encodings_are_read(tmp_path, encoding):
    town = {"shift_jis": "京都", "cp1251": "Киев"}.get(encoding, "Köln")
    text = f"county;sex;n\n{town};f;5\n{town};m;6\n"
    table = read(tmp_path, text.encode(encoding), encoding=encoding, domain={"county": [town], "sex": ["f", "m"]})
    assert table_bytes(table, "csv").decode() == text


def test_characters_are_decoded_across_pieces(tmp_path, monkeypatch):
    from keepsum.sources import csv_files

    for size in (1, 2, 3, 5):
        monkeypatch.setattr(csv_files, "CHUNK", size)
        assert read(tmp_path, TEXT.encode("utf-16")).counts.tolist() == [int(SECRET), 6, 7, 8]
        assert read(tmp_path, TEXT.encode()).counts.tolist() == [int(SECRET), 6, 7, 8]


NO_ENCODINGS = ["klingon", "base64", "rot13", "undefined", "punycode", "unicode_escape", "../x", "a\0b", ""]


@pytest.mark.parametrize("encoding", [*NO_ENCODINGS, 5, b"utf-8", ["utf-8"]])
def test_a_wrong_name_of_an_encoding(tmp_path, encoding):
    refused(tmp_path, TEXT.encode(), "encoding= must be the name of an encoding such as", encoding=encoding)


@pytest.mark.parametrize(
    ("data", "encoding", "message"),
    [
        (TEXT.encode("windows-1252"), None, "must be UTF-8 text, .* pass encoding='windows-1252'"),
        (TEXT.encode("windows-1252"), "utf-8", "in the encoding 'utf-8', but line 2 is not"),
        (TEXT.encode("windows-1252") + b"\x81;f;1\r\n", "windows-1252", "but line 6 is not"),
        (TEXT.encode("utf-16-le")[:-1], "utf-16-le", "in the encoding 'utf-16-le'"),
        (TEXT.encode("utf-16-be"), None, "null characters. If it is UTF-16, pass encoding='utf-16-be'"),
        (TEXT.encode("utf-16-be"), "utf-16-le", "'utf-16-le', but the order of its bytes is not"),
        (TEXT.encode("utf-16-be"), "utf-16", "no byte order mark. Pass encoding='utf-16-be'"),
        (TEXT.encode("utf-16-le"), "utf-16", "no byte order mark. Pass encoding='utf-16-le'"),
        (TEXT.encode("utf-32-be"), "utf-32", "no byte order mark. Pass encoding='utf-32-be'"),
        (b"\xff\xfe" + TEXT.encode("utf-16-le"), "utf-16-be", "'utf-16-be', but the order of its bytes is not"),
        (TEXT.encode("utf-16"), "windows-1252", "starts with the byte order mark of UTF-16. Leave out encoding="),
        (TEXT.encode("utf-32"), "utf-16", "starts with the byte order mark of UTF-32. Leave out encoding="),
        (PLAIN, "cp500", "but it is plain ASCII. Leave out encoding="),
        (PLAIN + b" ", "utf-16", "but it is plain ASCII. Leave out encoding="),
        (b"%PDF-1.7\n", "latin-1", "a PDF file"),
        (TEXT.encode("utf-16-le"), None, "null characters. If it is UTF-16, pass encoding='utf-16-le'"),
        (TEXT.encode("utf-16")[:-1], None, "in the encoding 'utf-16-le'"),
    ],
)
def test_what_is_not_in_the_encoding(tmp_path, data, encoding, message):
    refused(tmp_path, data, message, encoding=encoding)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"%PDF-1.7\n\xe2\xe3", "a PDF file"),
        (b"%PDF-1.7\n", "a PDF file"),
        (b"BZh91AY&SY\xff", "compressed by bzip2"),
        (b"\xfd7zXZ\0\0\xff", "compressed by xz"),
        (b"7z\xbc\xaf'\x1c\xff", "a 7z archive"),
        (b"Rar!\x1a\x07\x01\0\xff", "a RAR archive"),
        (b"$FL2@(#) SPSS", "an SPSS file"),
        (b"{\\rtf1\\ansi", "an RTF document"),
        (b"\n<!DOCTYPE html><html>", "a web page"),
        (b"<HTML>", "a web page"),
        (b"x.csv" + bytes(252) + b"ustar\0", "a tar archive"),
        (gzip.compress(gzip.compress(TEXT.encode(), mtime=0), mtime=0), "compressed twice"),
    ],
)
def test_what_a_file_really_is(tmp_path, start, kind):
    refused(tmp_path, start, f"must be a table, but it is {kind}. Save the table as CSV, Parquet or .xlsx.")


def test_an_encoding_or_a_sheet_is_for_some_files_only(tmp_path):
    sink = io.BytesIO()
    from pyarrow import parquet

    parquet.write_table(pa.table({"county": ["Ain"], "n": [1]}), sink)
    refused(tmp_path, sink.getvalue(), "Leave out encoding=", encoding="utf-8")
    refused(tmp_path, sink.getvalue(), "Leave out sheet=", sheet="Counts")
    refused(tmp_path, TEXT.encode(), "Leave out sheet=", sheet="Counts")


# -- compressed files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(TEXT.encode(), mtime=0),
        gzip.compress(TEXT[:20].encode(), mtime=0) + gzip.compress(TEXT[20:].encode(), mtime=0),
        gzip.compress(TEXT.encode(), mtime=0) + bytes(100),
        ZSTD,
        pa.compress(TEXT[:20].encode(), codec="zstd", asbytes=True)
        + pa.compress(TEXT[20:].encode(), codec="zstd", asbytes=True),
        gzip.compress(TEXT.encode("utf-16"), mtime=0),
    ],
    ids=["gzip", "gzip members", "gzip padded", "zstd", "zstd frames", "gzip of UTF-16"],
)
def test_compressed_files_are_recognised_by_their_bytes(tmp_path, data):
    table = read(tmp_path, data)
    assert table.counts.tolist() == [int(SECRET), 6, 7, 8]
    assert table_bytes(table, "csv").removeprefix(b"\xef\xbb\xbf") == TEXT.encode()


def test_other_formats_and_encodings_inside(tmp_path):
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, (table := pa.table({"sex": ["f", "m"], "n": [1, 2]})).schema) as writer:
        writer.write_table(table)
    assert read(tmp_path, gzip.compress(sink.getvalue(), mtime=0), domain={"sex": ["f", "m"]}).counts.tolist() == [1, 2]
    packed = gzip.compress(TEXT.encode("windows-1252"), mtime=0)
    assert read(tmp_path, packed, encoding="windows-1252").counts.tolist() == [int(SECRET), 6, 7, 8]


def test_damaged_compressed_files(tmp_path):
    packed = gzip.compress(TEXT.encode(), mtime=0)
    for end in (2, 5, 12, len(packed) // 2, len(packed) - 1):
        refused(tmp_path, packed[:end], "must be a complete gzip file, but it is damaged or cut off")
    refused(tmp_path, packed + b"more", "complete gzip file")
    wrong = bytearray(packed)
    wrong[-6] ^= 1  # the checksum
    refused(tmp_path, bytes(wrong), "complete gzip file")
    for end in (4, 6, 12, len(ZSTD) // 2, len(ZSTD) - 1):
        refused(tmp_path, ZSTD[:end], "must be a complete zstd file, but it is damaged or cut off")
    for place in range(4, len(ZSTD)):
        changed = bytearray(ZSTD)
        changed[place] ^= 0xFF
        with pytest.raises(ks.InputError) as caught:  # damaged, or other text, which is no table either
            read(tmp_path, bytes(changed), domain={"county": ["Côte d’Or"], "sex": ["f", "m"]})
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_bomb_is_refused_before_memory_runs_out(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(reading, "CHUNK", 2**16)
    monkeypatch.setattr(_memory, "available", lambda: 12 * 2**18)
    text = b"county,n\n" + b"0" * 2**22
    packed = gzip.compress(text, mtime=0) if kind == "gzip" else pa.compress(text, codec="zstd", asbytes=True)
    unpacked = []
    real = reading.check_room
    monkeypatch.setattr(reading, "check_room", lambda size, *rest: (unpacked.append(size), real(size, *rest)))
    assert len(packed) < 2**13
    refused(tmp_path, packed, "File 'towns.dat', unpacked, must fit in memory")
    assert max(unpacked) <= 2**18 + 2**16  # no more was unpacked than there is room for


def test_zstd_without_pyarrow(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(reading, "_standard_zstd", lambda: None)
    with pytest.raises(ks.InputError, match=r"Reading 'towns.dat' needs pyarrow.* Unpack the file, or "):
        read(tmp_path, ZSTD)


# -- semicolons and decimal commas ------------------------------------------------------------------


def test_decimal_commas_with_semicolons(tmp_path):
    text = "sex;share;n\nf;12,5;15,0\nm;87,5;105,00\n"
    table = read(tmp_path, text.encode(), domain={"sex": ["f", "m"]}, drop=["share"])
    assert table.counts.tolist() == [15, 105]
    assert table_bytes(table, "csv") == b"sex;n\nf;15\nm;105\n"
    table = read(tmp_path, text.encode(), axes="sex", domain={"sex": ["f", "m"]})
    assert table.counts.tolist() == [15, 105]
    refused(tmp_path, text.replace("15,0", "15,5").encode(), "line 2, column 'n'", axes="sex", domain=None)
    refused(tmp_path, text.replace("15,0", "15,000").encode(), "line 2, column 'n'", axes="sex", domain=None)


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("county;sex;number", "'county', 'sex', 'number'"),
        ("county\tsex\tnumber", "'county', 'sex', 'number'"),
        ("county|sex|number", "'county', 'sex', 'number'"),
        ("county,sex,number", "'county', 'sex', 'number'"),
        ("county;sex;number, all", "'county', 'sex', 'number, all'"),
    ],
)
def test_the_columns_that_there_are_by_the_likeliest_delimiter(tmp_path, header, columns):
    row = header.replace("number", SECRET)
    message = refused(tmp_path, f"{header}\n{row}\n".encode(), "The count column must be one of the columns")
    assert f"one of the columns {columns}, got 'n'" in message

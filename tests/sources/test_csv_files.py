"""Text files: the fast reader sees what Python's csv module sees, or leaves the file to it."""

import csv
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import keepsum as ks
from keepsum.errors import DataError
from keepsum.sources import csv_files
from keepsum.sources.csv_files import _by_arrow, _by_python, _is_regular

VALUES = st.text(alphabet='ab",;\t\n\r é0-', max_size=4)


@pytest.fixture(autouse=True)
def _any_size(monkeypatch):
    monkeypatch.setattr(csv_files, "SMALL", 0)


def contents(source):
    columns = [source.labels(name).to_list() for name in source.names]
    places = [source.where(row) for row in range(source.height)]
    return source.names, columns, places


def written(rows, delimiter, newline, quoting) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator=newline, quoting=quoting).writerows(rows)
    return text.getvalue().encode()


def compare(text: bytes, delimiter: str) -> bool:
    """Both readers, and whether the fast one took the file at all."""
    try:
        expected = contents(_by_python(text, delimiter, "file"))
    except DataError:
        expected = None
    try:
        source = _by_arrow(text, delimiter, "file", "n")
    except DataError:
        assert expected is None
        return False
    if source is not None:
        assert expected == contents(source)
    return source is not None


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(VALUES, VALUES), max_size=5),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_files_that_programs_write(rows, delimiter, newline, quoting):
    compare(written([("x", "n"), *rows], delimiter, newline, quoting), delimiter)


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet='ab",\n\r 0', max_size=30))
@example('"a"b,1\n')
@example('a,"1\n')
@example('"a,",b"\n')
@example("a,1\n\n\nb,2\n")
@example('" a",1\n')
@example(' "a",1\n')
def test_files_that_nobody_vouches_for(rows):
    compare(f"x,n\n{rows}".encode(), ",")


def test_ordinary_files_are_read_fast():
    assert compare(b"x,n\na,1\nb,2\n", ",")
    assert compare(b'"x","n"\r\n"a, b",1\r\n"c\nd",2\r\n', ",")
    assert not compare(b'x,n\n"5"" pipe",1\n', ",")


def test_line_breaks_within_quotes_at_the_end_of_a_block():
    """pyarrow drops the line feed where its block of a mebibyte ends between it and the carriage return."""
    rows = "".join(f'"P{k:06d}\r\nNorth",1\r\n' for k in range(60_000))
    for shift in (0, 5, 11, 17):
        text = ("x" * (shift + 1) + ",n\r\n" + rows).encode()
        labels = _by_arrow(text, ",", "file", "n").labels("x" * (shift + 1)).values
        assert labels == [f"P{k:06d}\r\nNorth" for k in range(60_000)]


def test_quotes_are_regular_across_chunks(monkeypatch):
    monkeypatch.setattr(csv_files, "CHUNK", 3)
    assert _is_regular(b'x,n\n"a",1\n"b",2\n', b",")
    assert not _is_regular(b'x,n\n"a"b,1\n', b",")
    assert not _is_regular(b'x,n\n"a,1\n', b",")


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [(["1", "20"], [1, 20]), (["15.0", "3"], [15, 3]), (["15,00", "3."], [15, 3]), ([" 7 ", "+8"], [7, 8]),
     (["10,00", "1.000000"], [10, 1])],
)  # fmt: skip
def test_counts_of_any_plain_form(tmp_path, numbers, expected):
    path = tmp_path / "counts.csv"
    path.write_text("x;n\n" + "".join(f"{x};{n}\n" for x, n in zip("ab", numbers, strict=True)))
    assert ks.read_table(path, count="n", domain={"x": ["a", "b"]}).counts.tolist() == expected


AMBIGUOUS = ["1.000", "1,000", "1,0000", "1.0000", "1,00,000", "1.000.000", "1 000", "1'000"]


@pytest.mark.parametrize("number", [*AMBIGUOUS, "0x10", "5-3", "--5", "1e3", "", "15.5", "٣"])
def test_counts_that_could_mean_something_else(tmp_path, number):
    path = tmp_path / "counts.csv"
    path.write_text(f"x;n\na;{number}\nb;1\n")
    with pytest.raises(ks.DataError, match="line 2, column 'n', must be a whole number"):
        ks.read_table(path, count="n", domain={"x": ["a", "b"]})


def test_errors_name_the_line(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text('x,n\n"a",1\n\n"b",2\n"c\nd",3\n"e",x\n')
    with pytest.raises(ks.DataError, match="line 7, column 'n'"):
        ks.read_table(path, count="n", domain={"x": ["a", "b", "c\nd", "e"]})

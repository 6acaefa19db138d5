import io
import os
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import keepsum as ks
from keepsum import _memory
from keepsum.sources.declarations import file_text, read_domain, read_keep
from keepsum.sources.sdmx import read_structure

DOMAIN = {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Washington"], "WI": ["Washington"]}}


def read(tmp_path, text, **arguments):
    file = tmp_path / "counties.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_from(file, **arguments)


def read_from(file, **arguments):
    return ks.read_table(file, **({"count": "n", "within": {"county": "state"}, "domain": DOMAIN} | arguments))


@pytest.mark.parametrize(
    "text",
    [
        "state,county,n\nIL,Cook,5\nIL,Washington,6\nWI,Washington,7\n",
        "state;county;n\r\nIL;Cook;5\r\nIL;Washington;6\r\nWI;Washington;7\r\n",
        "n\tcounty\tstate\n5\tCook\tIL\n\n6\tWashington\tIL\n7\tWashington\tWI",
        "\ufeffstate,county,n\nWI,Washington,7\nIL,Washington,6\nIL,Cook,5\n",
        '"state","county","n"\n"IL","Cook","5"\n"IL","Washington"," 6 "\n"WI","Washington","+7"\n',
    ],
    ids=["plain", "semicolons", "tabs", "byte-order mark", "quoted"],
)
def test_files_in_many_forms(tmp_path, text):
    table = read(tmp_path, text)
    assert table.counts.tolist() == [5, 6, 7]
    assert table.count == "n"


def test_codes_stay_text_and_other_columns_are_left_out(tmp_path):
    table = read(tmp_path, "fips,name,n\n01001,Autauga,3\n", axes=["fips"], within=None, domain={"fips": ["01001"]})
    assert table.domain.categories("fips") == ("01001",)


def test_categories_from_the_file_are_warned_of(tmp_path):
    with pytest.warns(ks.CategoriesFromDataWarning) as caught:
        table = read(tmp_path, "state,county,n\nIL,Cook,5\nWI,Cook,6\n", domain=None)
    assert table.domain.categories("county") == (("IL", "Cook"), ("WI", "Cook"))
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must start with a header, but it is empty"),
        ("\n\n", "must start with a header, but it is empty"),
        ("\ufeff", "must start with a header, but it is empty"),
        ("\n\nstate,county,n\nIL,Cook,5\n", "first line is empty. Remove blank lines"),
        ("Counties of 2020\nstate,county,n\nIL,Cook,98765\n", "header of several columns, .*Remove lines above"),
        ("sep=,\nstate,county,n\nIL,Cook,98765\n", "first line is for Excel. Remove that line"),
        ("s" * 200_000 + "\n", "header of at most 100,000 characters"),
        ("state,county,n,\nIL,Cook,98765,\n", "Column 4 of 'counties.csv' must have a name in the header"),
        (",state,county,n\n0,IL,Cook,98765\n", "Column 1 of .* index=False"),
        ("state,county,n\nIL,Co\0ok,98765\n", "line 2 contains a null character"),
        ("state,county,n\nIL,Cook,98765\0\0\n", "line 2 contains a null character"),
        (b"\x89\xfe\0\x01" * 100, "null characters"),
        (b"\x89\xfe\x02\x01" * 100 + b"\0", "neither text nor a format that is known"),
        ('[{"state": "IL", "n": 98765}]', "a JSON file"),
        ('<?xml version="1.0"?>', "an XML file"),
        (b"PK\x05\x06" + bytes(18), "an empty zip archive"),
        ("state,county,n\nIL," + "x" * 200_000 + ",98765\n", "line 2 is not: a value has more than 131,072 char"),
        ('state,county,n\nIL,"Co"ok,98765\n', "line 2 is not: text follows the quote that ends a value"),
        ("state,county,m\nIL,Cook,5\n", "The count column must be one of"),
        ("IL,Cook,98765\nIL,Washington,3\n", "may be data"),
        ("state,county,n\nIL,,5\n", "line 2, column 'county', must not be missing"),
        (
            "state,county,n\nIL,Cook,5\nTotal,,98765\n",
            "line 3, column 'county', must not be missing, but the label 'Total' in column 'state' says that this is a "
            r"row of totals, which would be counted twice. Leave it out with drop_rows=\{'state': 'Total'\}\.",
        ),
        (
            "state,county,n\n,Total 98765,5\n",
            r"the label text with a number in it in column 'county' .* with drop_rows=\.",
        ),
        *(
            (f"state,county,n\nIL,Cook,{sign}\n", "line 2, column 'n', .* a sign for a suppressed or missing count")
            for sign in ("<5", "< 10", "NA", "n/a", "*", "**", "..", "…", ":", "-", "s", "c", "x", "(D)", "suppressed")
        ),
        (b"SQLite format 3\0" + bytes(99), r"an SQLite database. Count .*: ks.tabulate\(source, by=\[...\], table="),
        (bytes(8) + b"DUCK\x40" + bytes(99), "a DuckDB database. Count the records in one of its tables"),
        ("state,county,n\nIL,Cook\n", "Line 2 of 'counties.csv' must have 3 values"),
        ("state,county,n\nIL,Cook,5\n\nIL,Washington,-98765\n", "line 4, column 'n', .* negative"),
        ("state,county,n\nIL,Cook,5.5\n", "line 2, column 'n', .* plain digits"),
        ('state,county,n\nIL,Cook,"98,765"\n', "line 2, column 'n', .* plain digits"),
        ("state;county;n\nIL;Cook;98.765\n", "line 2, column 'n', .* plain digits"),
        ("state,county,n\nIL,Cook,\n", "line 2, column 'n', .* missing"),
        ("state,county,n\nIL,Cook,99999999999999999999\n", "fit 64 bits"),
        ("state,county,n\nIL,Cook,1\nIL,Cook,98765\n", "line 2 and line 3 are the same cell"),
        ("state,county,n,n\nIL,Cook,1,2\n", "different names"),
        ("state,county,n\nTX,Cook,98765\n", "line 2, column 'state', is not a declared category"),
        ("state,county,n\nIL,Côte,5\n".encode("latin-1"), "UTF-8"),
        ('state,county,n\nIL,"Cook,98765\n', "well-formed CSV, but line 2 is not: a quoted value does not end"),
    ],
)
def test_bad_files(tmp_path, text, message):
    with pytest.raises(ks.DataError, match=message) as caught:
        read(tmp_path, text)
    assert "98765" not in str(caught.value)
    assert "98,765" not in str(caught.value)


def test_not_a_path():
    with pytest.raises(ks.InputError, match="a path or a file opened in binary mode, got a value of type 'NoneType'"):
        ks.read_table(None, count="n")


def test_what_is_no_file(tmp_path):
    for path, message in (
        (tmp_path, "must be a table, but it is a folder. Name a file in it"),
        (os.devnull, "must be a file or a pipe, but it is a device"),
        ("/dev/zero", "must be a file or a pipe, but it is a device"),
        ("", "must be a path, got an empty one"),
    ):
        with pytest.raises(ks.InputError, match=message):
            ks.read_table(path, count="n")


def test_declarations_are_regular_files(tmp_path):
    """Reading a pipe may never end, and reading a device does not."""
    os.mkfifo(tmp_path / "pipe.toml")
    table = ks.Table.from_array([1, 2], axes={"sex": ["f", "m"]})
    readers = (read_domain, file_text, lambda path: read_keep(path, table), lambda path: read_structure(path, []))
    for path, kind in ((tmp_path / "pipe.toml", "a pipe"), ("/dev/zero", "a device")):
        for reader in readers:
            with pytest.raises(ks.InputError, match=f"must be a regular file, but it is {kind}. Save it as a file"):
                reader(path)


def test_a_pipe_is_read_as_far_as_it_fits_in_memory(tmp_path, monkeypatch):
    text = b"state,county,n\nIL,Cook,5\nIL,Washington,6\nWI,Washington,7\n"
    os.mkfifo(tmp_path / "pipe")
    for _ in range(2):
        with ThreadPoolExecutor() as pool:
            pool.submit((tmp_path / "pipe").write_bytes, text)
            assert read_from(tmp_path / "pipe").counts.tolist() == [5, 6, 7]
    monkeypatch.setattr(_memory, "available", lambda: 100)
    with pytest.raises(ks.TooMuchWorkError, match="Standard input must fit in memory"):
        read_from(io.BytesIO(text))


def test_a_name_of_two_lines(tmp_path):
    table = read(tmp_path, '"the\ntown",n\na,5\nb,6\n', within=None, domain={"the\ntown": ["a", "b"]})
    assert table.domain.axes == ("the\ntown",)


def test_labels_of_frames_come_back(tmp_path):
    """A null character in a file was hardly meant; a frame has what it has, and its release verifies."""
    frame = pd.DataFrame({"town": ["a\0b", "c"], "n": [5, 6]})
    table = ks.Table.from_frame(frame, count="n", domain={"town": ["a\0b", "c"]})
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1), rng=ks.rng(seed=1))
    assert ks.verify(release.save(tmp_path / "out.csv"), allow_seeded=True)


def test_missing_file(tmp_path):
    with pytest.raises(ks.UnreachableError, match="No such file"):
        ks.read_table(tmp_path / "nothing.csv", count="n")


def test_no_rows_needs_declared_categories(tmp_path):
    assert read(tmp_path, "state,county,n\n").counts.tolist() == [0, 0, 0]
    with pytest.raises(ks.DataError, match="must be declared"):
        read(tmp_path, "state,county,n\n", domain=None)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "frame"])
def test_an_index_of_pandas_is_no_column(tmp_path, kind):
    """It is written only where rows were left out or sorted, so that it would tell which cells are empty."""
    whole = pd.DataFrame({"g": ["a", "b", "c"], "n": [5, 0, 7]})
    tables = []
    for frame in (whole, whole[whole.n > 0], whole.sort_values("n")):
        path = tmp_path / f"in.{kind}"
        arrow = pa.Table.from_pandas(frame)
        if kind == "frame":
            tables.append(ks.Table.from_frame(arrow, count="n", domain={"g": ["a", "b", "c"]}))
            continue
        parquet.write_table(arrow, path) if kind == "parquet" else feather.write_feather(arrow, path)
        tables.append(ks.read_table(path, "n", domain={"g": ["a", "b", "c"]}, drop=[]))
    assert [table.counts.tolist() for table in tables] == [[5, 0, 7]] * 3
    assert [table.to_frame().column_names for table in tables] == [["g", "n"]] * 3

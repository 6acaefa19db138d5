"""A released table comes back in the shape of the one that went in, and its hash does not depend on that shape."""

import hashlib
import warnings

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepsum as ks
from keepsum.sources.writing import kind_of, table_bytes, table_hash
from keepsum.tables.origins import TextFile

PLAIN = b"state,county,n\nIL,Cook,5\nIL,Lake,6\nWI,Lake,7\n"
SHAPES = {
    "plain": PLAIN,
    "semicolons and CRLF": b"state;county;n\r\nIL;Cook;5\r\nIL;Lake;6\r\nWI;Lake;7\r\n",
    "tabs, no last newline": b"n\tcounty\tstate\n5\tCook\tIL\n6\tLake\tIL\n7\tLake\tWI",
    "byte-order mark": b"\xef\xbb\xbf" + PLAIN,
    "text quoted": b'"state","county","n"\n"IL","Cook",5\n"IL","Lake",6\n"WI","Lake",7\n',
    "some quoted": b'state,"county",n\nIL,"Cook",5\nIL,"Lake",6\nWI,"Lake",7\n',
    "quotes where needed": b'state,county,n\nIL,"Cook, the ""big"" one",5\nIL,Lake,6\nWI,"La\nke",7\n',
    "a carriage return": b'state,county,n\nIL,"Co\rok",5\nIL,Lake,6\nWI,Lake,7\n',
    "another newline in a label": b'state,county,n\nIL,"Co\r\nok",5\nIL,Lake,6\nWI,Lake,7\n',
}
OTHERS = {  # what only rows tell, and a release does not
    "another order": b"state,county,n\nWI,Lake,7\nIL,Lake,6\nIL,Cook,5\n",
    "quoted counts": b'state,county,n\nIL,Cook,"5"\nIL,Lake,"6"\nWI,Lake,"7"\n',
    "quoted labels": b'state,county,n\n"IL","Cook",5\n"IL","Lake",6\n"WI","Lake",7\n',
}


def read(data, tmp_path, **options):
    path = tmp_path / "in.csv"
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ks.CategoriesFromDataWarning)
        return ks.read_table(path, "n", **({"within": {"county": "state"}} | options))


@pytest.mark.parametrize("data", SHAPES.values(), ids=SHAPES)
def test_files_come_back_byte_for_byte(data, tmp_path):
    assert table_bytes(read(data, tmp_path), "csv") == data


@pytest.mark.parametrize("data", OTHERS.values(), ids=OTHERS)
def test_what_only_rows_tell_does_not_come_back(data, tmp_path):
    assert table_bytes(read(data, tmp_path), "csv") == PLAIN


def test_the_header_decides_about_quotes(tmp_path):
    """Rows would tell which of them there are: of the labels here only those of one cell need quotes."""
    declared = {"state": ["IL", "WI"], "county": {"IL": ["Cook, the big one"], "WI": ["Lake"]}}
    one = read(b'state,county,n\nIL,"Cook, the big one",5\nWI,Lake,0\n', tmp_path, domain=declared)
    two = read(b'state,county,n\nIL,"Cook, the big one",5\n', tmp_path, domain=declared)
    assert table_bytes(one, "csv") == table_bytes(two, "csv")
    everything = read(b'"state","county","n"\n"IL","Cook","5"\n"IL","Lake","6"\n"WI","Lake","7"\n', tmp_path)
    assert table_bytes(everything, "csv") == SHAPES["text quoted"]


def test_a_released_file_has_the_shape_of_the_confidential_one(tmp_path):
    data = SHAPES["semicolons and CRLF"]
    with pytest.warns(ks.LargeLossWarning):
        released = ks.release(
            read(data, tmp_path), keep=["state"], mechanism=ks.Laplace.per_unit(epsilon=40), accept_pinned="all"
        )
    assert table_bytes(released.table, "csv") == data  # epsilon 40: the noise is 0 but once in 10^17 draws


LABELS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5)


@given(
    labels=st.lists(LABELS, min_size=1, unique=True),
    delimiter=st.sampled_from(",;\t|"),
    newline=st.sampled_from(["\n", "\r\n"]),
    marked=st.booleans(),
)
def test_any_labels_survive(labels, delimiter, newline, marked, tmp_path_factory):
    """What is written is read again as the same table, and written again as the same bytes."""
    origin = TextFile(("a", "n"), delimiter, newline, marked, True, frozenset("a"), frozenset("a"))
    table = ks.Table.from_array(range(len(labels)), axes={"a": labels}, count="n")
    once = table_bytes(ks.Table(table.domain, table.counts, "n", origin), "csv")
    path = tmp_path_factory.mktemp("any") / "t.csv"
    path.write_bytes(once)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ks.KeepsumWarning)
        back = ks.read_table(path, "n", domain=table.domain)
    assert back.counts.tolist() == table.counts.tolist()
    assert table_bytes(back, "csv") == once


def test_the_hash_is_that_of_the_plainest_file(tmp_path):
    for data in (*SHAPES.values(), *OTHERS.values()):
        if not any(mark in data for mark in (b"big", b'"Co\r', b"La\nke")):
            assert table_hash(read(data, tmp_path)) == hashlib.sha256(PLAIN).hexdigest()


def test_parquet_and_arrow(tmp_path):
    frame = pa.table({"g": pa.array(["a", "b"]).dictionary_encode(), "age": pa.array([1, 2], pa.int16()), "n": [3, 4]})
    table = ks.Table.from_frame(frame, count="n", domain={"g": ["a", "b"], "age": [1, 2]})
    for kind in ("parquet", "arrow"):
        path = tmp_path / f"t.{kind}"
        path.write_bytes(table_bytes(table, kind))
        back = ks.read_table(path, "n", domain=table.domain)
        assert back.counts.tolist() == table.counts.tolist()
        assert back.to_frame().schema.field("age").type == pa.int16()
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(ks.DataError, match="complete Parquet or Arrow"):
            ks.read_table(path, "n")


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ks.InputError, match=r"must end in \.csv"):
        kind_of(tmp_path / "table.xlsx")

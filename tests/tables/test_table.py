import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import keepsum as ks

ROWS = {
    "state": ["IL", "IL", "WI"],
    "county": ["Washington", "Cook", "Washington"],
    "fips": ["01001", "01003", "55131"],
    "n": [4242, 17, 0],
}
DECLARED = {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Washington"], "WI": ["Washington"]}}
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_frames_come_back_as_the_callers_own(make):
    frame = make(ROWS)
    table = ks.Table.from_frame(frame, "n", ["county"], within={"county": "state"}, domain=DECLARED)
    assert table.domain.axes == ("state", "county")
    assert table.counts.tolist() == [17, 4242, 0]
    back = table.to_frame()
    assert type(back) is type(frame)
    columns = back.to_pydict() if isinstance(back, pa.Table) else {c: list(back[c]) for c in back.columns}
    assert columns == {"state": ["IL", "IL", "WI"], "county": ["Cook", "Washington", "Washington"], "n": [17, 4242, 0]}
    assert list(columns) == ["state", "county", "n"]


def test_column_types_come_back():
    frame = pl.DataFrame({"g": ["a", "b"], "age": [1, 2], "n": [3, 4]}).cast(
        {"g": pl.Categorical, "age": pl.Int16, "n": pl.UInt32}
    )
    back = ks.Table.from_frame(frame, count="n", domain={"g": ["a", "b"], "age": [1, 2]}).to_frame()
    assert back.schema == frame.schema | {"n": pl.Int64}
    assert back.height == 4


def test_codes_stay_text():
    with pytest.warns(ks.CategoriesFromDataWarning):
        table = ks.Table.from_frame(pd.DataFrame(ROWS), "n", ["fips"])
    assert table.domain.categories("fips") == ("01001", "01003", "55131")


def test_categories_from_the_data_are_warned_of_by_name():
    with pytest.warns(ks.CategoriesFromDataWarning, match="'county' were taken from the data") as caught:
        ks.Table.from_frame(
            pd.DataFrame(ROWS), "n", ["county"], within={"county": "state"}, domain={"state": ["IL", "WI"]}
        )
    assert caught[0].filename == __file__


def test_absent_cells_are_zero_and_order_is_free():
    frame = pl.DataFrame({"a": ["y"], "b": [2], "count": [5]})
    table = ks.Table.from_frame(frame, domain={"a": ["x", "y"], "b": [1, 2]})
    assert table.counts.tolist() == [0, 0, 0, 5]


def test_a_domain_may_be_given_whole():
    domain = ks.Domain({"a": ["x", "y"], "b": [1, 2]}).without({"a": "x", "b": 1})
    frame = pl.DataFrame({"b": [1, 2, 1], "a": ["x", "x", "y"], "n": [0, 7, 8]})
    table = ks.Table.from_frame(frame, count="n", domain=domain)
    assert table.counts.tolist() == [7, 8, 0]
    with pytest.raises(ks.DataError, match="row 1 must be empty, because it is declared a structural zero"):
        ks.Table.from_frame(frame.with_columns(n=9), count="n", domain=domain)


SECRET = 987654


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": [SECRET, -SECRET, 1]}, "row 2, column 'n', .* negative"),
        ({"n": [SECRET, None, 1]}, "row 2, column 'n', .* missing"),
        ({"n": [float(SECRET), 1.0, SECRET + 0.5]}, "row 3, column 'n', .* has decimals"),
        ({"n": [float(SECRET), float("nan"), 1.0]}, "row 2, column 'n', .* missing"),
        ({"n": ["1", "2", "six"]}, "row 3, column 'n', .* plain digits"),
        ({"n": ["1", "2", "1,000"]}, "row 3, column 'n', .* plain digits"),
        ({"n": [True, False, True]}, "row 1, column 'n', .* not a number"),
        ({"n": [1e300, 2.0, 3.0]}, "row 1, column 'n', .* too large"),
        ({"n": [float("inf"), 2.0, 3.0]}, "row 1, column 'n', .* too large"),
        ({"n": [2**62, 2**62, 1]}, "sum that fits 64 bits"),
        ({"state": ["IL", None, "WI"]}, "row 2, column 'state', must not be missing"),
        ({"state": ["IL", "TX", "WI"]}, "row 2, column 'state', is not a declared category"),
        ({"county": ["Cook", "Washington", "Cook"]}, "row 3, column 'county', .* within its state"),
        ({"county": ["Cook", "Cook", "Washington"]}, "row 1 and row 2 are the same cell"),
    ],
)
def test_bad_rows_are_named_and_counts_never_shown(make, change, message):
    frame = make(ROWS | change)
    with pytest.raises(ks.DataError, match=message) as caught:
        ks.Table.from_frame(frame, "n", ["county"], within={"county": "state"}, domain=DECLARED)
    assert str(SECRET) not in str(caught.value)


def test_counts_beyond_64_bits():
    for n in (np.array([2**63, 1, 1], dtype=np.uint64), [2**70, 1, 1]):
        frame = pd.DataFrame(ROWS | {"n": pd.Series(n)})
        with pytest.raises(ks.DataError, match=r"row 1, column 'n', .* fit 64 bits"):
            ks.Table.from_frame(frame, "n", ["county"], within={"county": "state"}, domain=DECLARED)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": ["x", "y"], "n": pd.array([1, None], dtype="Int64")}), "row 2, column 'n', .* missing"),
        (pd.DataFrame({"a": pd.array(["x", None], dtype="string"), "n": [1, 2]}), "row 2, column 'a', .* missing"),
        (pd.DataFrame({"a": ["x", pd.NA], "n": [1, 2]}), "row 2, column 'a', .* missing"),
        (pd.DataFrame({"a": ["x", ""], "n": [1, 2]}), "row 2, column 'a', .* missing"),
        (pd.DataFrame({"a": [["x"], "y"], "n": [1, 2]}), "row 1, column 'a', must be text"),
        (pd.DataFrame({"a": [10.5, 123456.0], "n": [1, 2]}), "'a' must be declared, because it contains numbers"),
        (pd.DataFrame({"a": ["x"], "n": pd.Series([Decimal("Infinity")], dtype=object)}), "not a finite number"),
        (pd.DataFrame({"a": ["x"], "n": pd.Series([float("inf")], dtype=object)}), "too large to be exact"),
        (pd.DataFrame({"a": ["x"], "n": pd.Series([1e17], dtype=object)}), "too large to be exact"),
        (pd.DataFrame({"a": ["x"], "n": pd.Series([np.array([1, 2])], dtype=object)}), "not a number"),
        (pd.DataFrame({"a": ["x"], "n": pd.to_timedelta([1], unit="D")}), "not a number"),
        (pd.DataFrame({"a": ["x"], "n": ["9" * 5000]}), "does not fit 64 bits"),
        (pl.DataFrame({"a": ["x"], "n": [2**100]}, schema={"a": pl.String, "n": pl.Int128}), "does not fit 64 bits"),
        (pd.DataFrame([["x", "y", 1]], columns=["a", "a", "n"]), "'a' twice"),
        (pd.DataFrame([["x", 1]], columns=[0, "n"]), "columns must be text, got other names"),
        (
            pd.DataFrame([["x", 1]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("n", "n")])),
            "columns must be text, got other names",
        ),
    ],
)
def test_strange_frames(frame, message):
    with pytest.raises(ks.InputError, match=message) as caught:
        ks.Table.from_frame(frame, count="n")
    assert "123456" not in str(caught.value)


@pytest.mark.parametrize("within", [{"a": "a"}, {"a": "b", "b": "a"}])
def test_axes_nested_in_a_circle_are_refused(within):
    with pytest.raises(ks.InputError, match="must not be nested in itself"):
        ks.Table.from_frame(pd.DataFrame({"a": ["x"], "b": ["p"], "n": [1]}), count="n", within=within)


def test_one_axis_may_be_given_as_text():
    table = ks.Table.from_frame(pl.DataFrame({"county": ["x"], "n": [1]}), "n", "county", domain={"county": ["x"]})
    assert table.keep("county").height == 1
    assert ks.Invariants.margins(table.domain, "county").height == 1


def test_masked_and_ragged_arrays_are_refused():
    axes = {"a": ["x", "y"]}
    with pytest.raises(ks.DataError, match=r"cell \[1\], column 'counts', .* missing"):
        ks.Table.from_array(np.ma.array([1, 2], mask=[False, True]), axes)
    with pytest.raises(ks.DataError, match="rows of one length"):
        ks.Table.from_array([[1, 2], [3]], axes)
    with pytest.raises(ks.DataError, match="Use from_array"):
        ks.Table(ks.Domain(axes), np.array([1.5, -2]))
    with pytest.raises(ks.DataError, match="must not have the name of an axis"):
        ks.Table.from_array([1, 2], {"count": ["x", "y"]})
    assert ks.Table.from_array([1, 2], {"count": ["x", "y"]}, count="n").to_frame("polars").columns == ["count", "n"]


def test_a_type_without_room_gives_way():
    frame = pl.DataFrame({"g": ["a"], "n": [3]}).cast({"g": pl.Enum(["a"])})
    back = ks.Table.from_frame(frame, count="n", domain={"g": ["a", "b"]}).to_frame()
    assert back["g"].to_list() == ["a", "b"]


def test_within_must_agree_with_a_domain():
    domain = ks.Domain(DECLARED, {"county": "state"})
    with pytest.raises(ks.InputError, match="must agree with the domain"):
        ks.Table.from_frame(pd.DataFrame(ROWS), "n", None, within={}, domain=domain)


def test_whole_floats_are_counts():
    frame = pd.DataFrame(ROWS | {"n": [1.0, 2.0, 3.0]})
    table = ks.Table.from_frame(frame, "n", ["county"], within={"county": "state"}, domain=DECLARED)
    assert table.counts.dtype == np.int64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": "m"}, "The count column must be one of the columns 'state', 'county', 'fips', 'n', got 'm'"),
        ({"axes": ["planet"]}, "got 'planet'"),
        ({"axes": ["n"]}, "an axis or the count, not both"),
        ({"axes": []}, "at least one axis"),
        ({"within": {"county": "planet"}}, "got 'planet'"),
        ({"axes": "county", "domain": {"planet": ["Earth"]}}, "got 'planet'"),
        ({"domain": ks.Domain({"state": ["IL", "WI"]}), "axes": ["state", "fips"]}, "must be those of the domain"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ks.InputError, match=message):
        ks.Table.from_frame(pd.DataFrame(ROWS), **{"count": "n"} | arguments)


def test_what_is_no_frame():
    with pytest.raises(ks.InputError, match="pandas, polars or pyarrow table, got a value of type 'list'"):
        ks.Table.from_frame([1, 2, 3])


def test_arrays():
    domain = ks.Domain({"a": ["x", "y"], "b": [1, 2]}).without({"a": "x", "b": 1})
    assert ks.Table.from_array([[0, 1], [2, 3]], domain).counts.tolist() == [1, 2, 3]
    assert ks.Table.from_array([1, 2, 3], domain).counts.tolist() == [1, 2, 3]
    with pytest.raises(ks.DataError, match=r"cell \[0, 0\] must be 0"):
        ks.Table.from_array([[SECRET, 1], [2, 3]], domain)
    with pytest.raises(ks.DataError, match=r"shape \(2, 2\) or \(3,\), got \(2, 3\)"):
        ks.Table.from_array(np.zeros((2, 3)), domain)
    with pytest.raises(ks.DataError, match=r"cell \[1, 0\], column 'counts', .* negative"):
        ks.Table.from_array([[0, 1], [-SECRET, 3]], domain)


def test_counts_are_never_shown(children):
    table = ks.Table.from_array([SECRET, SECRET], {"a": ["<x>", "y"]})
    for view in (repr(table), str(table), table._repr_html_(), f"{table}"):
        assert str(SECRET) not in view
    assert repr(children) == "Table(county 4, education 4: 16 cells, counts not shown)"


def test_counts_cannot_be_changed(children):
    with pytest.raises(ValueError, match="read-only"):
        children.counts[0] = 1


def test_to_frame_asks_which_kind(children):
    with pytest.raises(ks.InputError, match=r"to_frame\('pandas'\)"):
        children.to_frame()
    with pytest.raises(ks.InputError, match="got 'excel'"):
        children.to_frame("excel")
    assert children.to_frame("polars")["count"].sum() == 135


def test_keep_by_name(children):
    keep = children.keep("county", ["county", "education"], total=True)
    assert [keep.name(i) for i in (0, 4, 20)] == [
        "total of county=Alpha",
        "total of county=Alpha, education=Low",
        "grand total",
    ]
    with pytest.raises(ks.DomainError, match="got 'planet'"):
        children.keep("planet")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16", "float32", "uint64", "UInt8", "Int64", "object", "str"])
def test_counts_come_back_as_64_bit_integers(dtype):
    """Whoever chose a smaller type may have looked at the counts; and pandas wraps or rounds what has no room."""
    frame = pd.DataFrame({"g": ["a", "b"], "n": pd.Series([1, 2]).astype(dtype)})
    table = ks.Table.from_frame(frame, count="n", domain={"g": ["a", "b"]})
    for counts in ([-1, 4], [2**40 + 1, -(2**40)], [3, 0]):
        back = ks.Table(table.domain, np.array(counts), "n", table.origin).to_frame()
        assert back["n"].tolist() == counts
        assert back["n"].dtype == np.int64


def test_truth_values_are_no_categories():
    with pytest.raises(ks.DataError, match="must be text"):
        ks.Table.from_frame(pl.DataFrame({"g": [True, False], "n": [1, 2]}), count="n")


class Text(str):
    """Text of a type of its own, as libraries have it."""


@pytest.mark.filterwarnings("ignore::keepsum.CategoriesFromDataWarning")
@pytest.mark.parametrize("text", [np.str_, Text])
def test_text_of_any_type_is_saved(tmp_path, text):
    """Names and labels are Python's own text from the start, so that a release that is drawn can be written."""
    place, sex, code, n = map(text, ("place", "sex", "code", "n"))
    domain = ks.Domain(
        {place: [text("a"), "b"], text("town"): {text("a"): ["x", "y"], "b": [text("x"), "y"]}, sex: ["f", "m"]},
        within={text("town"): place},
    )
    rows = {"place": ["a", "a", "b", "b"], "sex": ["f", "m"] * 2, "code": ["1", "1", "2", "2"], "n": [5, 6, 7, 8]}
    declared = {place: ["a", "b"], sex: [text("f"), text("m")]}
    labels = pd.DataFrame(rows | {"place": pd.Series(list(map(text, rows["place"])), dtype=object)})
    tables = {
        "array": ks.Table.from_array(range(8), domain, count=n),
        "frame": ks.Table.from_frame(pl.DataFrame(rows), n, [place, sex], domain=declared, carry={code: place}),
        "labels": ks.Table.from_frame(labels, "n", ["place", "sex"], drop=["code"]),
    }
    for name, table in tables.items():
        mechanism = ks.Laplace.per_unit(epsilon=1, focus={sex: 1} if name == "array" else None)
        release = ks.release(table, keep=[place], mechanism=mechanism)
        assert ks.verify(release.save(tmp_path / f"{name}.csv"))
        names = [*release.table.domain.axes, *release.table.domain.within, release.table.count]
        assert {type(one) for one in [*names, *release.table.domain.axis("place").labels]} == {str}
    for k, mechanism in enumerate(
        (
            ks.Laplace.per_unit(epsilon=1, norm=text("l2")),
            ks.Laplace(1, attributes=[sex]),
            ks.Gaussian.per_unit(1, 1e-6, calibration=text("tight")),
        )
    ):
        release = ks.release(tables["frame"], keep=[place], mechanism=mechanism)
        assert ks.verify(release.save(tmp_path / f"{k}.csv"))
    people = pd.DataFrame({"place": ["a", "b"], "id": [1, 2]})
    counted = ks.tabulate(people, by=place, domain={place: ["a", "b"]}, unit=text("id"), max_rows_per_unit=1)
    assert ks.verify(
        ks.release(counted, keep=[], mechanism=ks.Laplace.per_unit(epsilon=1)).save(tmp_path / "people.csv")
    )


NANOSECONDS = [1577836800_000_000_000, 1577923200_000_000_000]  # two midnights


@pytest.mark.filterwarnings("ignore::keepsum.CategoriesFromDataWarning")
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_in_nanoseconds_are_labels_if_python_has_such_times(make, zone):
    kind = pa.timestamp("ns", zone)
    table = pa.table({"day": pa.array(NANOSECONDS, kind), "n": [5, 6]})
    finer = pa.table({"day": pa.array([NANOSECONDS[0] + 1, NANOSECONDS[1]], kind), "n": [5, 6]})
    native = {pd.DataFrame: pa.Table.to_pandas, pl.DataFrame: pl.from_arrow, pa.table: lambda table: table}[make]
    labels = (
        ["2020-01-01", "2020-01-02"] if zone is None else ["2020-01-01 00:00:00+00:00", "2020-01-02 00:00:00+00:00"]
    )
    assert list(ks.Table.from_frame(native(table), count="n").domain.axis("day").labels) == labels
    with pytest.raises(ks.DataError, match="Times in column 'day' must be whole microseconds"):
        ks.Table.from_frame(native(finer), count="n")


@pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.date32()], ids=str)
@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_times_of_years_that_python_has_not_are_refused(make, kind):
    """Arrow overflows there, and polars panics; pandas shows them as they are."""
    number, whole = (2**55, pa.int64()) if kind == pa.timestamp("ms") else (2**30, pa.int32())
    table = pa.table({"day": pa.array([number, 0], whole).cast(kind), "n": [5, 6]})
    with pytest.raises(ks.DataError, match=r"must be whole microseconds of the years 1 to 9999, but one is not\."):
        ks.Table.from_frame(pl.from_arrow(table) if make is pl.DataFrame else table, count="n")


WITHOUT_PANDAS = """
import sys, io
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import polars as pl, keepsum as ks
for kind in (pl.Datetime("ns"), pl.Duration("ns"), pl.Time):
    frame = pl.DataFrame({"day": pl.Series([1, 2_000_000]).cast(kind), "n": [5, 6]})
    file = io.BytesIO()
    frame.write_parquet(file)
    file.seek(0)
    for read in (
        lambda: ks.Table.from_frame(frame, count="n"),
        lambda: ks.Table.from_frame(frame.to_arrow(), count="n"),
        lambda: ks.read_table(file, "n"),
        lambda: ks.Table.from_frame(frame.cast({"n": pl.Int64}), "n", "day"),
    ):
        try:
            read()
        except ks.DataError:
            continue
        raise SystemExit(f"{kind} is read")
"""


def test_times_in_nanoseconds_are_refused_in_a_sentence_without_pandas():
    """Arrow then raises an error of its own, and with pandas cuts them off."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

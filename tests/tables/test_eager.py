"""Frames that are queries, and dates as categories, in every library."""

from datetime import UTC, date, datetime

import ibis
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import keepsum as ks

SECRET = 8675309
DAYS = [date(2026, 1, 2), date(2026, 11, 17)]
TIMES = [datetime(2026, 1, 2, 0, 0), datetime(2026, 11, 17, 8, 30)]
IN_UTC = [moment.replace(tzinfo=UTC) for moment in TIMES]
DAY_TEXTS = ("2026-01-02", "2026-11-17")
TIME_TEXTS = ("2026-01-02 00:00:00", "2026-11-17 08:30:00")
ZONED_TEXTS = ("2026-01-02 00:00:00+00:00", "2026-11-17 08:30:00+00:00")

FRAMES = {
    "pandas dates": (pd.DataFrame({"day": pd.to_datetime(DAYS)}), DAY_TEXTS),
    "pandas objects": (pd.DataFrame({"day": pd.Series(DAYS, dtype=object)}), DAY_TEXTS),
    "pandas nanoseconds": (pd.DataFrame({"day": pd.to_datetime(TIMES).astype("datetime64[ns]")}), TIME_TEXTS),
    "pandas seconds": (pd.DataFrame({"day": pd.to_datetime(TIMES).astype("datetime64[s]")}), TIME_TEXTS),
    "pandas with a zone": (pd.DataFrame({"day": pd.to_datetime(IN_UTC)}), ZONED_TEXTS),
    "pandas of Arrow": (
        pd.DataFrame({"day": pd.Series(DAYS, dtype=pd.ArrowDtype(pa.date32()))}),
        DAY_TEXTS,
    ),
    "polars Date": (pl.DataFrame({"day": DAYS}), DAY_TEXTS),
    "polars Datetime": (pl.DataFrame({"day": TIMES}), TIME_TEXTS),
    "polars at midnight": (pl.DataFrame({"day": pl.Series(DAYS).cast(pl.Datetime("ms"))}), DAY_TEXTS),
    "polars with a zone": (pl.DataFrame({"day": IN_UTC}), ZONED_TEXTS),
    "pyarrow date32": (pa.table({"day": pa.array(DAYS, pa.date32())}), DAY_TEXTS),
    "pyarrow date64": (pa.table({"day": pa.array(DAYS, pa.date64())}), DAY_TEXTS),
    "pyarrow dictionary": (pa.table({"day": pa.array(DAYS, pa.date32()).dictionary_encode()}), DAY_TEXTS),
    "pyarrow timestamp": (pa.table({"day": pa.array(TIMES, pa.timestamp("us"))}), TIME_TEXTS),
    "pyarrow with a zone": (pa.table({"day": pa.array(IN_UTC, pa.timestamp("us", "UTC"))}), ZONED_TEXTS),
}


def with_counts(frame):
    counts = [5, 6]
    if isinstance(frame, pd.DataFrame):
        return frame.assign(n=counts)
    return (
        frame.with_columns(n=pl.Series(counts))
        if isinstance(frame, pl.DataFrame)
        else frame.append_column("n", [counts])
    )


@pytest.mark.parametrize(("frame", "texts"), FRAMES.values(), ids=FRAMES)
def test_dates_are_categories(frame, texts):
    with pytest.warns(ks.CategoriesFromDataWarning):
        table = ks.Table.from_frame(with_counts(frame), count="n")
    assert table.domain.categories("day") == texts
    assert table.to_dict() == {"day": list(texts), "n": [5, 6]}
    declared = ks.Table.from_frame(with_counts(frame), count="n", domain={"day": list(texts)})
    assert declared.counts.tolist() == [5, 6]
    assert nw.from_native(declared.to_frame())["day"].to_list() == list(texts)


@pytest.mark.parametrize("kind", [name for name in FRAMES if name.startswith("pyarrow")])
def test_dates_in_files(tmp_path, kind):
    frame, texts = FRAMES[kind]
    frame = with_counts(frame)
    parquet.write_table(frame, tmp_path / "in.parquet")
    with pa.ipc.new_file(tmp_path / "in.arrow", frame.schema) as writer:
        writer.write_table(frame)
    for name in ("in.parquet", "in.arrow"):
        table = ks.read_table(tmp_path / name, "n", domain={"day": list(texts)})
        assert table.counts.tolist() == [5, 6]


def test_a_lazy_frame_is_collected():
    query = pl.LazyFrame({"sex": ["f", "m", "x"], "n": [1, 2, 3]}).filter(pl.col("sex") != "x")
    table = ks.Table.from_frame(query, count="n", domain={"sex": ["f", "m"]})
    assert table.counts.tolist() == [1, 2]
    assert isinstance(table.to_frame(), pl.DataFrame)


def test_a_query_that_fails():
    query = pl.LazyFrame({"sex": [str(SECRET)], "n": [SECRET]}).with_columns(pl.col("sex").str.to_date("%Y"))
    with pytest.raises(ks.InputError, match="must be a query that polars can collect") as caught:
        ks.Table.from_frame(query.with_columns(pl.col("nowhere")), count="n")
    assert caught.value.__context__ is None
    assert str(SECRET) not in str(caught.value)


def test_a_record_batch_is_a_table():
    batch = pa.record_batch({"sex": ["f", "m"], "n": [1, 2]})
    table = ks.Table.from_frame(batch, count="n", domain={"sex": ["f", "m"]})
    assert table.counts.tolist() == [1, 2]
    assert isinstance(table.to_frame(), pa.Table)


def of_library(module):
    return type("DataFrame", (), {"__module__": module, "columns": ["sex", "n"]})()


@pytest.mark.parametrize(
    ("frame", "library", "call"),
    [
        (ibis.table({"sex": "string", "n": "int64"}, name="people"), "ibis", "to_pyarrow()"),
        (of_library("pyspark.sql.classic.dataframe"), "pyspark", "toPandas()"),
        (of_library("dask.dataframe.core"), "dask", "compute()"),
        (of_library("duckdb"), "duckdb", "to_arrow_table()"),
    ],
)
def test_other_queries_are_refused_with_the_call_that_runs_them(frame, library, call):
    with pytest.raises(ks.InputError) as caught:
        ks.Table.from_frame(frame, count="n")
    assert str(caught.value) == (
        f"The frame must be in memory, as a pandas, polars or pyarrow table, got a query of {library}. "
        f"Pass frame.{call}."
    )

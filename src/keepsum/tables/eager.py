"""Frames that are queries: those of polars are collected, others are refused with the call that runs them."""

from __future__ import annotations

from typing import Any

from keepsum.errors import InputError

TO_MEMORY = {
    "pyspark": "toPandas()",
    "dask": "compute()",
    "dask_expr": "compute()",
    "ibis": "to_pyarrow()",
    "duckdb": "to_arrow_table()",
    "_duckdb": "to_arrow_table()",
    "sqlframe": "toPandas()",
    "daft": "to_arrow()",
    "vaex": "to_arrow_table()",
}


def eager(frame: Any) -> Any:
    """The frame in memory: a polars LazyFrame is collected, a record batch of pyarrow is a table."""
    library, kind = type(frame).__module__.partition(".")[0], type(frame).__name__
    if library in TO_MEMORY:
        name = library.removeprefix("_")
        raise InputError(
            f"The frame must be in memory, as a pandas, polars or pyarrow table, got a query of {name}. Pass "
            f"frame.{TO_MEMORY[library]}."
        )
    if (library, kind) == ("pyarrow", "RecordBatch"):
        import pyarrow

        return pyarrow.Table.from_batches([frame])
    if (library, kind) != ("polars", "LazyFrame"):
        return frame
    collected = None
    try:
        collected = frame.collect()
    except Exception:  # not passed on, because it may contain data
        del frame
    if collected is None:
        raise InputError("The LazyFrame must be a query that polars can collect, but it failed. Collect it to see why.")
    return collected

"""Records counted into tables, against DuckDB's own GROUP BY over the same file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from benchmarks.children import COUNTIES, in_child, timing_of
from benchmarks.measuring import ratio
from benchmarks.registry import Bench, at_most, case

RECORDS, QUICK_RECORDS = 10**7, 10**6
OURS, PEER = "keepsum", "DuckDB GROUP BY"
MOST = {"parquet": 3, "csv": 2}  # times as long as DuckDB's own GROUP BY
QUICK_MOST = {"parquet": 12, "csv": 6}  # where starting takes longer than counting


def people(rows: int) -> pa.Table:
    """Made-up people with a county, an age, a sex and a number that is not counted by."""
    rng = np.random.default_rng(1)
    counties = pa.array([f"c{k}" for k in range(COUNTIES)])
    return pa.table(
        {
            "person": rng.integers(0, rows, rows),
            "county": counties.take(pa.array(rng.integers(0, COUNTIES, rows))),
            "age": rng.integers(0, 96, rows),
            "sex": pa.array(["f", "m"]).take(pa.array(rng.integers(0, 2, rows))),
            "income": rng.normal(5e4, 2e4, rows).round(2),
        }
    )


@case("records into 100,000 cells")
def records(bench: Bench) -> None:
    """Each in a process of its own; starting Python is left out, importing ibis and DuckDB is not."""
    rows = bench.pick(RECORDS, QUICK_RECORDS)
    with tempfile.TemporaryDirectory() as folder:
        table = people(rows)
        pyarrow.parquet.write_table(table, Path(folder, "people.parquet"))
        pyarrow.csv.write_csv(table, Path(folder, "people.csv"))
        for form in MOST:
            compare(bench, Path(folder, f"people.{form}"), form, rows)
        bounded = in_child("tabulated", Path(folder, "people.parquet"), "bounded")
        bench.figure(f"{rows:,} records, at most 3 per person: memory", bounded["gigabytes"], "GB", at_most(1.0))


def compare(bench: Bench, path: Path, form: str, rows: int) -> None:
    """The time as a multiple of DuckDB's, and the memory."""
    ours, peer = [], []
    for _ in range(bench.pick(5, 3)):
        ours.append(in_child("tabulated", path))
        peer.append(in_child("grouped", path))
    assert all(result["value"] == rows for result in (*ours, *peer))
    times = {OURS: timing_of(ours), PEER: timing_of(peer)}
    limit = (QUICK_MOST if bench.quick else MOST)[form]
    what = f"{rows:,} records of a {form} file"
    bench.figure(f"{what}: times as long as {PEER}", ratio(times[OURS], times[PEER]), "×", at_most(limit), times)
    bench.figure(f"{what}: memory", max(result["gigabytes"] for result in ours), "GB", at_most(1.0))

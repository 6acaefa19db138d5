"""Files of counts, released and verified, against polars, which only reads and writes them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.children import in_child, timing_of
from benchmarks.measuring import ratio
from benchmarks.registry import Bench, at_most, case

COUNTIES, QUICK_COUNTIES, AGES = 5_000, 500, 1_000
MOST, QUICK_MOST = 12, 40  # times as long as polars; a small file takes no time to copy
PEER = "read and written by polars"


def counts(counties: int) -> pl.DataFrame:
    """Made-up people by state, county and age: a hundred counties in each state."""
    county, age = np.divmod(np.arange(counties * AGES), AGES)
    people = np.random.default_rng(1).poisson(20, counties * AGES)
    labels = pl.DataFrame({"state": county // 100, "county": county, "age": age}).select(
        pl.format("S{}", "state").alias("state"),
        pl.format("County {}", "county").alias("county"),
        pl.format("a{}", "age").alias("age"),
    )
    return labels.with_columns(n=people)


@case("files of counts")
def files(bench: Bench) -> None:
    """Each in a process of its own; starting Python is left out, importing what is needed is not."""
    counties = bench.pick(COUNTIES, QUICK_COUNTIES)
    rows = counties * AGES
    limit = bench.pick(MOST, QUICK_MOST)
    with tempfile.TemporaryDirectory() as folder:
        path, output, copy = f"{folder}/counts.csv", f"{folder}/released.csv", f"{folder}/copy.csv"
        counts(counties).write_csv(Path(path))
        released, verified, copied = [], [], []
        for _ in range(3):
            released.append(in_child("released_file", path, output))
            verified.append(in_child("verified_file", output))
            copied.append(in_child("copied_file", path, copy))
    assert all(result["value"] == 0 for result in released)
    assert all(result["value"] == 1 for result in verified)
    for what, results in (("to a release", released), ("verified", verified)):
        times = {"keepsum": timing_of(results), PEER: timing_of(copied)}
        most = at_most(limit)
        bench.figure(f"{rows:,} rows {what}: times as long as {PEER}", ratio(*times.values()), "×", most, times)
        bench.figure(f"{rows:,} rows {what}: memory", max(r["gigabytes"] for r in results), "GB", at_most(1.1))

"""A hierarchy released through Spark, on a cluster of this machine, and the same on one machine. `make bench-spark`.

The figures go to benchmarks/out/spark.md and spark.json. Environment variables: CELLS for other sizes (powers of ten,
"6,7"), WRITE=1 to put the figures into benchmarks/results.json and from there into docs/spark.md, OUT for the folder of
the results.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import keepsum as ks
from benchmarks import results as known
from benchmarks.machine import cpu_model
from benchmarks.pages import write_pages
from benchmarks.spark_costs import Costs, events_of, shuffled, stages
from benchmarks.spark_page import figures, page

HERE = Path(__file__).parent
MASTER = "local-cluster[2,1,2048]"
OTHER = {"sex": 2, "age": 100, "group": 50}  # 10^4 cells in each county
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
}
EPSILON = Fraction(1, 2)
MECHANISM = ks.Laplace.per_unit(epsilon=EPSILON)
KEEP = [[], ["state"], ["county"]]
AXES = ["state", "county", *OTHER]


def declared(counties: int) -> tuple[dict[str, Any], dict[str, str]]:
    """States with the same number of counties each."""
    states = 10 ** (len(str(counties)) // 2)
    names = {f"s{s:04}": [f"c{c:04}" for c in range(counties // states)] for s in range(states)}
    domain: dict[str, Any] = {"state": list(names), "county": names}
    return domain | {name: [f"{name}{k:02}" for k in range(n)] for name, n in OTHER.items()}, {"county": "state"}


def counts(spark: Any, counties: int) -> Any:
    """Every tenth cell has a count, made from its number: rows as an agency's table has them."""
    from pyspark.sql import functions as f

    domain, _ = declared(counties)
    cells, number = counties * int(np.prod(list(OTHER.values()))), f.col("id") * 10
    columns, inside = [], 1
    for name, n in reversed(OTHER.items()):
        columns.append(f.format_string(f"{name}%02d", (number / inside).cast("long") % n).alias(name))
        inside *= n
    county, per_state = (number / inside).cast("long"), counties // len(domain["state"])
    columns.append(f.format_string("c%04d", county % per_state).alias("county"))
    columns.append(f.format_string("s%04d", (county / per_state).cast("long")).alias("state"))
    return spark.range(cells // 10).select(*columns[::-1], (f.col("id") % 97 + 1).alias("n"))


def through_spark(cells: int, out: Path) -> dict[str, Any]:
    """One release on the cluster, saved: times, memory and bytes."""
    from pyspark.sql import SparkSession

    from keepsum import spark as kss

    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(dir=out) as folder:
        builder = SparkSession.builder.master(MASTER).appName("keepsum benchmark")
        (Path(folder) / "events").mkdir()
        chosen = SETTINGS | {"spark.eventLog.dir": f"{folder}/events", "spark.local.dir": f"{folder}/local"}
        for name, value in chosen.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        java = int(spark._jvm.java.lang.ProcessHandle.current().pid())
        warm = counts(spark, 10)
        _release(kss, warm, 10, folder, "warm")
        counties = cells // 10**4
        input_path = f"{folder}/input.parquet"
        counts(spark, counties).write.parquet(input_path)
        spark.sparkContext.setJobDescription("measured")
        with Costs() as costs:
            _release(kss, spark.read.parquet(input_path), counties, folder, "measured")
        worker = costs.most_of("pyspark.daemon")
        size = sum(path.stat().st_size for path in (Path(folder) / "measured").rglob("*.parquet") if path.is_file())
        spark.stop()
        events = events_of(Path(folder) / "events", "measured")
        return costs.figures([os.getpid(), java]) | {
            "cells": cells,
            "rows read": cells // 10,
            "shuffled": shuffled(events),
            "written": size,
            "worker": worker,
            "stages": stages(events),
        }


def _release(kss: Any, df: Any, counties: int, folder: str, name: str) -> None:
    domain, within = declared(counties)
    released = kss.release(
        df,
        axes=AXES,
        count="n",
        keep=KEEP,
        mechanism=MECHANISM,
        domain=domain,
        within=within,
        staging=f"{folder}/staging",
    )
    released.save(f"{folder}/{name}")


def on_one_machine(cells: int, out: Path) -> dict[str, Any]:
    """The same release by ks.release, in memory, saved as Parquet."""
    warm, counties = _table(10), cells // 10**4
    with tempfile.TemporaryDirectory(dir=out) as folder:
        ks.release(warm, keep=KEEP, mechanism=MECHANISM)
        table = _table(counties)
        with Costs() as costs:
            ks.release(table, keep=KEEP, mechanism=MECHANISM).save(f"{folder}/table.parquet")
        return costs.figures([os.getpid()]) | {"cells": cells}


def _table(counties: int) -> ks.Table:
    domain, within = declared(counties)
    whole = ks.Domain(domain, within)
    values = np.zeros(whole.size, dtype=np.int64)
    values[::10] = np.arange(whole.size // 10) % 97 + 1
    return ks.Table.from_array(values, axes=whole)


def sampler_alone(cells: int, out: Path) -> dict[str, Any]:
    """The noise of so many cells in counties on one core, a million cells at a time."""
    from keepsum.sampling.core.rng import rng
    from keepsum.sampling.l1.forced_sums import ForcedSums

    part = 10**6
    sampler, source = ForcedSums(EPSILON, np.full(part // 10**4, 10**4), None), rng()
    noise = np.empty((1, part), dtype=np.int64)
    sampler.draw_into(noise, source)
    with Costs() as costs:
        for _ in range(cells // part):
            sampler.draw_into(noise, source)
    return costs.figures([os.getpid()]) | {"cells": cells}


def driver_alone(cells: int, out: Path) -> dict[str, Any]:
    """What the driver does for a table of so many cells, with the sums that workers would have sent made up."""
    from keepsum.sampling.core.rng import rng
    from keepsum.spark import release
    from keepsum.spark.layout import Layout
    from keepsum.spark.preparing import (
        Declared,
        check_distributable,
        draw_sums,
        facts_of,
        is_free,
        ready_plan,
        totals_of,
    )
    from keepsum.spark.workers import TaskNoise

    certificate = importlib.import_module(release.__module__)._certificate
    counties, seconds = cells // 10**4, {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = work()
        seconds[name] = time.process_time() - start
        return result

    with Costs() as costs:
        what = timed("domain", lambda: Declared.of(AXES, "n", *declared(counties), None))
        plan = timed("plan", lambda: ready_plan(what.plan(KEEP, MECHANISM), (), None))
        layout = timed("layout", lambda: Layout.of(check_distributable(plan)))
        sums = np.random.default_rng(1).integers(0, 10**6, size=counties)
        facts = timed("facts", lambda: facts_of(plan, sums))
        totals = timed("totals", lambda: totals_of(plan, sums))
        drawn = timed("sums drawn", lambda: draw_sums(plan, layout, rng()))
        noise = TaskNoise(bytes(32), plan.mechanism.kind, plan.mechanism.scale, drawn, is_free(plan))
        sent = timed("broadcast", lambda: len(pickle.dumps((layout, noise))))
        document = timed("certificate", lambda: certificate(facts, what, totals, "0" * 64, False, None).to_json())
    return costs.figures([os.getpid()]) | {
        "cells": cells,
        "groups": counties,
        "tasks": layout.tasks,
        "broadcast": sent,
        "certificate": len(document),
        "seconds": seconds,
    }


WORKS = {work.__name__: work for work in (through_spark, on_one_machine, sampler_alone, driver_alone)}


def in_a_process(name: str, cells: int, out: Path) -> dict[str, Any]:
    """A measurement in a process of its own, so that its memory is its own."""
    command = [sys.executable, "-m", "benchmarks.spark", name, str(cells), str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent)
    if ended.returncode:
        raise SystemExit(f"{name} of {cells:,} cells failed:\n{ended.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    print(f"{name}, {cells:,} cells: {found['wall']:.0f} s, {found['cpu']:.0f} s of CPU", flush=True)
    return found


def main(out: Path, sizes: list[int]) -> None:
    """Measure everything, and write it down after each step."""
    out.mkdir(parents=True, exist_ok=True)
    about = {"date": known.today(), "command": "make bench-spark"}
    results: dict[str, Any] = {**about, "machine": describe_spark(), "spark": [], "alone": []}
    jobs = [("alone", "on_one_machine", 10**7)]
    jobs += [("spark", "through_spark", cells) for cells in sizes]
    jobs += [("sampler", "sampler_alone", 10**8), ("driver", "driver_alone", 10**10)]
    for key, name, cells in jobs:
        found = in_a_process(name, cells, out)
        if isinstance(results.get(key), list):
            results[key].append(found)
        else:
            results[key] = found
        (out / "spark.json").write_text(json.dumps(results, indent=1) + "\n")
    text = page(results)
    (out / "spark.md").write_text(text)
    if os.environ.get("WRITE"):
        named = {name: known.entry(value, "s", "make bench-spark") for name, value in figures(results).items()}
        whole = known.load()
        known.save({**whole, "spark": results, "figures": {**whole["figures"], **named}})
        write_pages()
    print(text)


def describe_spark() -> dict[str, str]:
    """The machine, and the versions that matter here."""
    from importlib.metadata import version

    whole = {"CPU": cpu_model(), "cores": str(os.cpu_count()), "Python": sys.version.split()[0]}
    return whole | {name: version(name) for name in ("pyspark", "pyarrow", "numpy")}


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(WORKS[sys.argv[1]](int(sys.argv[2]), Path(sys.argv[3]))))
    else:
        SIZES = [10 ** int(power) for power in os.environ.get("CELLS", "7,8").split(",")]
        main(Path(os.environ.get("OUT") or HERE / "out"), SIZES)

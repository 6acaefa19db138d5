"""Work in a process of its own: for its memory, for a cold start, or for an empty cache.

``python -m benchmarks.children NAME ARGUMENT...`` runs one job and prints its CPU and wall seconds, its peak memory and
whatever it returns, as JSON.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

import keepsum as ks
from benchmarks.measuring import Timing, once
from benchmarks.peers import EPSILON, numpy_noise
from benchmarks.systems import county_hierarchy, groups, margins

REPO = Path(__file__).parents[1]
COUNTIES = 3143  # with 16 bins of ages and 2 sexes about 100,000 cells
AGES = [*range(0, 96, 6), None]
STREAMED = 10**6  # cells that are drawn at once where a table is streamed to disk
JOBS: dict[str, Callable[..., Any]] = {}


def job(run: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function to the list of jobs."""
    JOBS[run.__name__] = run
    return run


def in_child(name: str, *arguments: object, **environment: str) -> dict[str, Any]:
    """Run a job in a process of its own, with these environment variables."""
    command = [sys.executable, "-m", "benchmarks.children", name, *map(str, arguments)]
    done = subprocess.run(command, cwd=REPO, env=os.environ | environment, stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def timing_of(results: list[dict[str, Any]], count: float = 1) -> Timing:
    """The seconds that jobs report, per unit of work."""
    return Timing(*(np.array([result[clock] for result in results]) / count for clock in ("cpu", "wall")))


@contextmanager
def fresh_copy() -> Iterator[dict[str, str]]:
    """The environment of a first run ever: a copy of the package with its bytecode, and empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "src")
        shutil.copytree(REPO / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([sys.executable, "-m", "compileall", "-q", source], check=True)
        yield os.environ | {"KEEPSUM_CACHE": f"{folder}/cache", "PYTHONPATH": str(source)}


def peak_gigabytes() -> float:
    """The most memory that this process has held.

    From /proc where there is one: ``ru_maxrss`` of a new process starts at what its parent held.
    """
    status = Path("/proc/self/status")
    if status.exists():
        kilobytes = int(re.findall(r"^VmHWM:\s*(\d+) kB$", status.read_text(encoding="ascii"), flags=re.MULTILINE)[0])
        return kilobytes / 2**20
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


@job
def tabulated(path: str, bounded: str = "") -> int:
    """Records of a file into about 100,000 cells."""
    unit: dict[str, Any] = {"unit": "person", "max_rows_per_unit": 3} if bounded else {}
    domain = {"county": [f"c{k}" for k in range(COUNTIES)], "sex": ["f", "m"]}
    table = ks.tabulate(path, ["county", "age", "sex"], domain, bins={"age": AGES}, **unit)
    return int(table.counts.sum())


@job
def released_file(path: str, output: str) -> int:
    """A file of counts under state totals to a release, as the shell does it."""
    from keepsum.cli.app import run

    options = ["--count", "n", "--within", "county:state", "--keep", "state", "--epsilon", "1", "--yes", "--force"]
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        return run(["release", path, *options, "--output", output])


@job
def verified_file(output: str) -> int:
    """The release again, verified."""
    return int(bool(ks.verify(output)))


@job
def copied_file(path: str, output: str) -> int:
    """The same file, read and written by polars."""
    import polars

    polars.read_csv(path).write_csv(output)
    return 0


@job
def grouped(path: str) -> int:
    """The same columns grouped by DuckDB alone, bins by arithmetic: what nobody can do without."""
    import duckdb

    source = f"'{path}'" if path.endswith(".parquet") else f"read_csv('{path}', header=true)"
    query = f"SELECT county, age // 6 AS bin, sex, count(*) AS n FROM {source} GROUP BY ALL"  # noqa: S608
    return sum(row[-1] for row in duckdb.sql(query).fetchall())


@job
def plan_hierarchy(cells: int) -> None:
    plan = ks.plan(keep=county_hierarchy(cells), mechanism=ks.Laplace.per_unit(epsilon=EPSILON))
    assert not plan.structure.blocks


@job
def plan_three_totals(cells: int) -> None:
    rng = np.random.default_rng(1)
    chosen = [np.flatnonzero(rng.random(cells) < 0.5) for _ in range(3)]
    plan = ks.plan(keep=ks.Invariants.subsets(cells, chosen), mechanism=ks.Laplace.per_unit(epsilon=EPSILON))
    assert len(plan.structure.sizes) <= 8


@job
def kernel_basis(*shape: int) -> None:
    _ = ks.Lattice(margins(*shape).coefficients).basis


@job
def smith_form(*shape: int) -> None:
    _ = ks.Lattice(margins(*shape).coefficients).smith


@job
def plan_general(*shape: int) -> float:
    """CPU seconds of planning alone, with imports and a first plan behind it."""
    mechanism = ks.Laplace.per_unit(epsilon=EPSILON)
    _ = ks.plan(keep=margins(3, 3), mechanism=mechanism).samplers
    keep = margins(*shape)
    cpu, _ = once(lambda: ks.plan(keep=keep, mechanism=mechanism).samplers)
    return cpu


@job
def beyond_the_output(cells: int) -> float:
    """Bytes per cell that drawing takes at its peak, besides the noise itself."""
    plan = ks.plan(keep=groups(cells, 51), mechanism=ks.Laplace.per_unit(epsilon=EPSILON))
    ks.plan(
        keep=groups(5100, 51), mechanism=ks.Laplace.per_unit(epsilon=EPSILON)
    ).sample()  # kernels compiled, tables made
    _ = plan.samplers
    tracemalloc.start()  # numpy's arrays are counted
    noise = plan.sample(threads=2)
    _, peak = tracemalloc.get_traced_memory()
    return (peak - noise.nbytes) / cells


@job
def stream(what: str, cells: int) -> dict[str, float]:
    """Write that many cells of noise to disk, a million at a time: disjoint parts of a table are independent."""
    draw: Callable[[], Any]
    if what == "NumPy":
        draw = numpy_noise(STREAMED).run
    else:
        keep = groups(STREAMED, 51) if what == "totals" else ks.Invariants.subsets(STREAMED, [])
        plan, rng = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=EPSILON)), ks.rng()
        plan.sample(rng=rng)
        draw = lambda: plan.sample(rng=rng)[:STREAMED]  # noqa: E731

    def write() -> None:
        with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR")) as file:
            for _ in range(cells // STREAMED):
                file.write(draw().data)
            assert file.tell() == 8 * cells

    cpu, wall = once(write)
    return {"cpu": cpu, "wall": wall}


def main(name: str, *arguments: str) -> None:
    values: list[Any] = []
    given = [int(a) if a.isdigit() else a for a in arguments]
    cpu, wall = once(lambda: values.append(JOBS[name](*given)))
    print(json.dumps({"cpu": cpu, "wall": wall, "gigabytes": peak_gigabytes(), "value": values[0]}))


if __name__ == "__main__":
    main(*sys.argv[1:])

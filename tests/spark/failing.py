"""A driver whose cluster is broken on purpose, in a process of its own; it says what became of each release.

``python failing.py FOLDER`` breaks one cluster in several ways, and writes results.json; with ``die`` behind it, the
driver is killed in the middle of a release. Moments are chosen by files, never by the clock: an attempt of a task waits
while there is a barrier, and the driver removes it once it has done what the test is about.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import keepsum as ks
from keepsum import spark as kss
from keepsum.sampling.core.rng import Rng
from keepsum.spark import releasing
from keepsum.spark.layout import Layout

sys.path.insert(0, str(Path(__file__).parents[1]))
from spark.settings import SETTINGS, workers_run_this_python
from spark.traces import traces

DOMAIN = {"state": ["a", "b", "c", "d"], "sex": ["f", "m"], "age": [0, 1, 2]}
SCHEMA = "state string, sex string, age long, n long"
ROWS = [("a", "f", 0, 5), ("a", "m", 2, 7), ("b", "m", 1, 100), ("c", "f", 1, 20), ("d", "f", 2, 1)]
TASK_CELLS = 6  # of the 24: a task for each state, alone in its partition
BREAKING = {
    "spark.io.encryption.enabled": "true",
    "spark.task.maxFailures": "4",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "100ms",
}
QUANTILE = "spark.speculation.quantile"  # of tasks that are done before others have copies
NO_COPIES, COPIES = "1.0", "0.25"


def cluster(folder: Path) -> str:
    """A master and two workers, as ``local-cluster[2,1,1024]`` has them, but on hosts with different names.

    No speculative copy of a task is started on the host of the task.
    """
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(SETTINGS.items())))
    jvm: Any = SparkContext._jvm
    conf = jvm.org.apache.spark.SparkConf(False).set("spark.local.dir", str(folder / "local"))
    conf = conf.set("spark.master.rest.enabled", "false")
    master = jvm.org.apache.spark.deploy.master.Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, conf)._1()
    urls = SparkContext._gateway.new_array(jvm.java.lang.String, 1)
    urls[0] = master.address().toSparkURL()
    option = jvm.scala.Option
    for number, host in enumerate(["127.0.0.1", "127.0.0.2"]):
        jvm.org.apache.spark.deploy.worker.Worker.startRpcEnvAndEndpoint(
            host, 0, 0, 1, 1024, urls, str(folder / "work"), option.apply(number), conf, option.empty()
        )
    return str(urls[0])


def start(folder: Path, master: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("keepsum failures")
    folders = {"spark.eventLog.dir": "events", "spark.local.dir": "local", "spark.sql.warehouse.dir": "warehouse"}
    for name in ("events", "saved"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, value in {**SETTINGS, **BREAKING, QUANTILE: NO_COPIES}.items():
        builder = builder.config(name, value)
    for name, place in folders.items():
        builder = builder.config(name, str(folder / place))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def release(spark: Any, folder: Path, df: Any = None) -> kss.SparkRelease:
    """The same release each time, in four tasks, charged to one ledger."""
    path = folder / "ledger.db"
    ledger = ks.Ledger.open(path) if path.exists() else ks.Ledger.create(path, budget=ks.Budget.per_unit(100))
    frame = spark.createDataFrame(ROWS, SCHEMA).repartition(4) if df is None else df
    small = type("Small", (), {"of": staticmethod(lambda groups: Layout.of(groups, TASK_CELLS))})
    with patch.object(importlib.import_module(kss.release.__module__), "Layout", small):
        return kss.release(
            frame,
            axes=list(DOMAIN),
            count="n",
            keep=[["state"]],
            mechanism=ks.Laplace.per_unit(epsilon=1),
            domain=DOMAIN,
            rng=ks.rng(seed=22),
            ledger=ledger,
            staging=folder / "staging",
        )


def told(folder: Path, before: Callable[[int, int, Path], None]) -> Callable[..., Any]:
    """The function that fills tasks; each attempt leaves its process, calls ``before``, and leaves what it drew."""
    real = FILL

    def fill(layout: Any, noise: Any, count: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
        inner = real(layout, noise, count)

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            held = list(batches)
            (task,) = {task for batch in held for task in batch.column("task").to_pylist()}
            for number in itertools.count():
                try:
                    attempt = (folder / f"{task}.{number}.attempt").open("x")
                    break
                except FileExistsError:
                    continue
            with attempt:
                attempt.write(f"{os.getpid()} {os.getppid()}")
            (folder / f"{task}.{number}.started").hardlink_to(folder / f"{task}.{number}.attempt")
            before(task, number, folder)
            drawn = list(inner(iter(held)))
            rows = [row for batch in drawn for row in batch.to_pylist()]
            (folder / f"{task}.{number}.drawn").write_text(json.dumps(rows))
            yield from drawn

        return work

    return fill


def wait_for(path: Path) -> str:
    while not path.exists():
        time.sleep(0.02)
    return path.read_text()


def at_the_barrier(task: int, number: int, folder: Path) -> None:
    """All attempts of the first task wait."""
    while task == 0 and (folder / "barrier").exists():
        time.sleep(0.02)


def fail_at_first(task: int, number: int, folder: Path) -> None:
    """Every task fails at its first attempt."""
    if number == 0:
        raise RuntimeError(f"task {task} fails on purpose")


def wait_for_a_copy(task: int, number: int, folder: Path) -> None:
    """The first attempt of the first task goes on once there is a speculative copy of it."""
    while task == 0 and not (folder / "0.1.started").exists():
        time.sleep(0.02)


class Failures:
    """One cluster, and one release after the other on it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.spark = folder, start(folder, cluster(folder))
        self.secrets: list[bytes] = []
        self.results: dict[str, Any] = {}
        make_secret = Rng.secret

        def remembered(source: Rng) -> bytes:
            self.secrets.append(make_secret(source))
            return self.secrets[-1]

        Rng.secret = remembered  # type: ignore[method-assign]
        self.jvm = self.spark._jvm.java.lang.ProcessHandle

    def run(
        self, name: str, before: Callable[[int, int, Path], None], meanwhile: Callable[[Path], None], df: Any = None
    ) -> None:
        """A release whose tasks call ``before``, while the driver does something else."""
        own = self.folder / name
        own.mkdir()
        (own / "barrier").touch()
        releasing.fill = told(own, before)
        other = threading.Thread(target=meanwhile, args=(own,))
        other.start()
        error, rows = None, []
        try:
            released = release(self.spark, self.folder, df)
            rows = sorted(map(list, released.table.collect()))
            released.save(self.folder / "saved" / name)
        except ks.KeepsumError as problem:
            error = str(problem)
        other.join()
        spends = ks.Ledger.open(self.folder / "ledger.db").spends()
        drawn: dict[str, list[Any]] = {}
        for path in sorted(own.glob("*.drawn")):
            drawn.setdefault(path.name.split(".")[0], []).append(json.loads(path.read_text()))
        folders = [self.folder / name for name in ("events", "local", "work")]
        self.results[name] = {
            "rows": rows,
            "error": error,
            "outcomes": [spend.outcome for spend in spends],
            "attempts": {task: len(list(own.glob(f"{task}.*.started"))) for task in range(4)},
            "drawn": drawn,
            "staged": [path.name for path in (self.folder / "staging").iterdir()],
            "traces": traces(self.secrets[-1], folders),
            "searched": [sum(1 for _ in folder.rglob("*")) for folder in folders],
        }

    def let_tasks_have(self, quantile: str) -> None:
        """Let tasks from now on have speculative copies, or none; each stage looks at the settings when it starts."""
        self.spark._jsc.sc().conf().set(QUANTILE, quantile)

    def executor_of(self, pid: int) -> int:
        """The process of the executor whose daemon has this process: the parent of the daemon."""
        return int(self.jvm.of(pid).get().parent().get().pid())

    def kill_worker(self, own: Path) -> None:
        process, _ = wait_for(own / "0.0.started").split()
        os.kill(int(process), signal.SIGKILL)
        (own / "barrier").unlink()

    def kill_executor(self, own: Path) -> None:
        _, daemon = wait_for(own / "0.0.started").split()
        os.kill(self.executor_of(int(daemon)), signal.SIGKILL)
        (own / "barrier").unlink()

    def change_input(self, own: Path) -> None:
        """Other counts from now on, and no worker that knows the old ones."""
        wait_for(own / "0.0.started")
        (self.folder / "changed").touch()
        for child in self.jvm.current().children().toArray():
            if "CoarseGrainedExecutorBackend" in str(child.info().commandLine().orElse("")):
                os.kill(child.pid(), signal.SIGKILL)
        (own / "barrier").unlink()

    def changing(self) -> Any:
        """A DataFrame with another count once there is a certain file."""
        flag = self.folder / "changed"

        def work(batches: Any) -> Any:
            import pyarrow as pa

            for batch in batches:
                counts = [count + flag.exists() for count in batch.column("n").to_pylist()]
                yield batch.set_column(3, "n", pa.array(counts))

        return self.spark.createDataFrame(ROWS, SCHEMA).mapInArrow(work, SCHEMA)


def break_the_cluster(folder: Path) -> None:
    failures = Failures(folder)

    def nothing(own: Path) -> None:
        pass

    failures.run("undisturbed", lambda task, number, own: None, nothing)
    failures.run("killed worker", at_the_barrier, failures.kill_worker)
    failures.run("killed executor", at_the_barrier, failures.kill_executor)
    failures.run("failed attempts", fail_at_first, nothing)
    failures.let_tasks_have(COPIES)
    failures.run("speculation", wait_for_a_copy, nothing)
    failures.let_tasks_have(NO_COPIES)
    failures.run("changed input", at_the_barrier, failures.change_input, failures.changing())
    (folder / "results.json").write_text(json.dumps(failures.results))
    failures.spark.stop()


def die(folder: Path) -> None:
    """Release, with the driver killed once a task is filled."""
    spark = start(folder, "local[1]")
    driver, java = os.getpid(), spark._jvm.java.lang.ProcessHandle.current().pid()

    def kill(task: int, number: int, own: Path) -> None:
        if task == 3:
            os.kill(driver, signal.SIGKILL)
            os.kill(java, signal.SIGKILL)

    releasing.fill = told(folder, kill)
    release(spark, folder).save(folder / "saved" / "never")


FILL = releasing.fill
if __name__ == "__main__":
    warnings.simplefilter("ignore")
    workers_run_this_python()
    (die if sys.argv[2:] == ["die"] else break_the_cluster)(Path(sys.argv[1]))

"""One local cluster, of two workers with a core and a process each, for all tests but those that break one.

Without PySpark, which has an environment of its own (``make setup-spark``), only tests that need none are collected.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import keepsum as ks
from keepsum import spark as kss
from keepsum.spark.places import Place
from spark.settings import SETTINGS, workers_run_this_python
from support import missing_service

WITHOUT_SPARK = ("test_layout.py",)

if find_spec("pyspark") is None:
    collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py") if path.name not in WITHOUT_SPARK]


def session(master: str, folder: Path, **settings: Any) -> Any:
    """A Spark session with an event log and its files in a folder; workers run this Python."""
    verdict = missing_service("java", os.environ.get("KEEPSUM_REQUIRE", ""))
    if verdict == "fail":
        pytest.fail("KEEPSUM_REQUIRE names java, but it is not installed.")
    if verdict == "skip":
        pytest.skip("java is not installed.")
    from pyspark.sql import SparkSession

    workers_run_this_python()
    (folder / "events").mkdir(parents=True)
    chosen = {
        **SETTINGS,
        "spark.eventLog.dir": str(folder / "events"),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **settings,
    }
    builder = SparkSession.builder.master(master).appName("keepsum tests")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[tuple[Any, Path]]:
    """The session, and the folder of its event log."""
    folder = tmp_path_factory.mktemp("cluster")
    spark = session("local-cluster[2,1,1024]", folder, **{"spark.driver.maxResultSize": "128m"})  # for test_staged
    yield spark, folder / "events"
    spark.stop()


@pytest.fixture(scope="session")
def spark(cluster: tuple[Any, Path]) -> Any:
    return cluster[0]


@pytest.fixture
def frame(spark: Any) -> Callable[..., Any]:
    """A DataFrame of rows in so many partitions."""

    def make(rows: list[tuple[Any, ...]], schema: str, partitions: int = 2) -> Any:
        return spark.createDataFrame(rows, schema).repartition(partitions)

    return make


@pytest.fixture(scope="session")
def staged(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A release that is never saved."""
    rows, schema = (
        [("a", "x", 0, 5), ("a", "y", 2, 7), ("b", "x", 1, 100)],
        "state string, county string, age int, n long",
    )
    domain = {"state": ["a", "b"], "county": {"a": ["x", "y"], "b": ["x"]}, "age": [0, 1, 2]}
    return kss.release(
        spark.createDataFrame(rows, schema),
        axes=list(domain),
        count="n",
        keep=[["state"]],
        mechanism=ks.Laplace.per_unit(epsilon=1),
        domain=domain,
        within={"county": "state"},
        staging=tmp_path_factory.mktemp("staged"),
    )


@pytest.fixture
def unsaved(staged: Any, spark: Any, tmp_path: Path) -> Callable[[], kss.SparkRelease]:
    """Copies of that release, each as if it had been made with the staging folder of the test."""

    def copy() -> kss.SparkRelease:
        place = Place.of(spark, tmp_path / "staging" / f"copy-{uuid.uuid4().hex[:12]}", "A copy")
        shutil.copytree(staged._place.path.removeprefix("file:"), place.path.removeprefix("file:"))
        return kss.SparkRelease(place, staged.certificate, staged.domain)

    return copy

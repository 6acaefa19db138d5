"""The secret of a release is in no setting, event log, query plan or file that stays."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

import keepsum as ks
from keepsum import spark as kss
from keepsum.sampling.core.rng import Rng
from spark.traces import forms, in_text, traces

SCHEMA, ROWS = "g int, x int, n long", [(0, 0, 918273645546372), (1, 2, 7)]
DOMAIN = {"g": [0, 1], "x": [0, 1, 2]}


def of(spark, frame, tmp_path):
    """A release of a small table, and its secret; the event log has the plans of all stages of its queries."""
    spark.conf.set("spark.sql.ui.explainMode", "extended")
    secrets, made = [], Rng.secret

    def kept(self):
        secrets.append(made(self))
        return secrets[-1]

    with patch.object(Rng, "secret", kept):
        released = kss.release(
            frame(ROWS, SCHEMA),
            axes=["g", "x"],
            count="n",
            keep=[["g"]],
            mechanism=ks.Laplace.per_unit(epsilon=1),
            domain=DOMAIN,
            staging=tmp_path / "staging",
        )
    released.save(tmp_path / "out")
    spark.conf.unset("spark.sql.ui.explainMode")
    return released, secrets[0]


def holding(secret, cluster, released, tmp_path):
    """Where a secret is, of all places that outlive a release: settings, plans, event logs, workers' files, output."""
    from pyspark.find_spark_home import _find_spark_home

    spark, events = cluster
    texts = {
        "settings": str(spark.sparkContext.getConf().getAll()) + str(spark.conf.getAll),
        "plan": released.table._jdf.queryExecution().toString(),
    }
    logs = Path(_find_spark_home()) / "work" / spark.sparkContext.applicationId
    folders = {"event log": events, "local": events.parent / "local", "executors": logs, "output": tmp_path}
    log = b"".join(path.read_bytes() for path in events.rglob("events_*"))
    assert b"MapInArrow" in log
    assert b"== Analyzed Logical Plan ==" in log
    assert len(list(logs.glob("*/stderr"))) == 2
    found = {name for name, text in texts.items() if in_text(secret, text.encode())}
    return found | {name for name, folder in folders.items() if traces(secret, [folder])}


def test_the_search_finds_every_form():
    secret = bytes(range(100, 132))
    for form in forms(secret):
        assert in_text(secret, b"before " + form + b" after")
    assert in_text(secret, base64.b64encode(b"xy" + secret + b"z"))
    assert not in_text(secret, b"nothing")


def test_nothing_holds_the_secret(cluster, frame, tmp_path):
    released, secret = of(cluster[0], frame, tmp_path)
    assert holding(secret, cluster, released, tmp_path) == set()


def to_setting(spark, secret):
    spark.conf.set("spark.keepsum.secret", secret.hex())


def to_plan(spark, secret):
    from pyspark.sql.functions import lit

    spark.range(1).select(lit(base64.b64encode(secret).decode())).collect()


def to_worker_log(spark, secret):
    def work(batches):
        for batch in batches:
            print(secret, file=sys.stderr, flush=True)
            yield batch

    spark.range(4).mapInArrow(work, "id long").collect()


@pytest.mark.parametrize(
    ("leak", "where"),
    [
        (to_setting, "settings"),
        (to_plan, "event log"),
        (to_worker_log, "executors"),
        (None, "local"),
    ],
    ids=["a setting", "a plan", "a worker's log", "a broadcast variable that is not destroyed"],
)
def test_a_leak_is_found(cluster, frame, tmp_path, monkeypatch, leak, where):
    from pyspark.core.broadcast import Broadcast

    spark, _ = cluster
    if leak is None:
        monkeypatch.setattr(Broadcast, "destroy", lambda self, blocking=False: None)
    released, secret = of(cluster[0], frame, tmp_path)
    if leak is not None:
        leak(spark, secret)
    assert where in holding(secret, cluster, released, tmp_path)
    spark.conf.unset("spark.keepsum.secret")


def test_event_logs_and_plans_hold_no_counts(cluster, frame, tmp_path):
    """Counts are rows, which are in none of them; only how many rows there are."""
    _, events = cluster
    kss.release(
        frame(ROWS, SCHEMA),
        axes=["g", "x"],
        count="n",
        keep=[["g"]],
        mechanism=ks.Laplace.per_unit(epsilon=1),
        domain=DOMAIN,
        staging=tmp_path / "staging",
    )
    text = b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert text
    # The rows of this test are a local relation, whose values Spark leaves out of plans.
    assert b"918273645546372" not in text

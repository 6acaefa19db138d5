"""The secret of a release is in no setting, event log, query plan or file that stays."""

from __future__ import annotations

import base64

import keepsum as ks
from keepsum import spark as kss
from keepsum.sampling.core.rng import Rng

SCHEMA, ROWS = "g int, x int, n long", [(0, 0, 918273645546372), (1, 2, 7)]
DOMAIN = {"g": [0, 1], "x": [0, 1, 2]}


def forms(secret: bytes) -> list[bytes]:
    """The ways in which bytes get into texts; base64 at each of its three offsets."""
    texts = [
        secret,
        secret.hex().encode(),
        secret.hex().upper().encode(),
        repr(secret)[2:-1].encode(),
        str(list(secret)).encode(),
    ]
    texts += [str([byte - 256 * (byte > 127) for byte in secret]).encode()]
    texts += [base64.b64encode(bytes(shift) + secret)[4 if shift else 0 : -4] for shift in range(3)]
    return texts


def leaks(data: bytes, secret: bytes) -> bool:
    return any(form in data for form in forms(secret))


def test_the_search_finds_every_form():
    secret = bytes(range(100, 132))
    for form in forms(secret):
        assert leaks(b"before " + form + b" after", secret)
    assert leaks(base64.b64encode(b"xy" + secret + b"z"), secret)
    assert not leaks(b"nothing", secret)


def test_nothing_holds_the_secret(cluster, frame, tmp_path, monkeypatch):
    spark, events = cluster
    secrets, made = [], Rng.secret

    def kept(self):
        secrets.append(made(self))
        return secrets[-1]

    monkeypatch.setattr(Rng, "secret", kept)
    released = kss.release(
        frame(ROWS, SCHEMA), ["g", "x"], "n", [["g"]], ks.Laplace(epsilon=1), DOMAIN, staging=tmp_path / "staging"
    )
    (secret,) = secrets
    released.save(tmp_path / "out")
    settings = str(spark.sparkContext.getConf().getAll()) + str(spark.conf.getAll)
    plan = released.table._jdf.queryExecution().toString()
    assert not leaks((settings + plan).encode(), secret)
    logs = [path for path in events.rglob("*") if path.is_file()]
    text = b"".join(path.read_bytes() for path in logs)
    assert b"SparkListenerSQLExecutionStart" in text  # the log of queries, with their plans
    assert b"MapInArrow" in text
    assert not leaks(text, secret)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(leaks(path.read_bytes(), secret) for path in files)


def test_event_logs_and_plans_hold_no_counts(cluster, frame, tmp_path):
    """Counts are rows, which are in none of them; only how many rows there are."""
    _, events = cluster
    kss.release(
        frame(ROWS, SCHEMA), ["g", "x"], "n", [["g"]], ks.Laplace(epsilon=1), DOMAIN, staging=tmp_path / "staging"
    )
    text = b"".join(path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert text
    # The rows of this test are a local relation, whose values Spark leaves out of plans.
    assert b"918273645546372" not in text

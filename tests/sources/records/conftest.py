"""A Postgres server of the tests' own, and one small set of records in every kind of source."""

from __future__ import annotations

import gzip
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest

from support import missing_service, postgres_programs

PEOPLE = pd.DataFrame(
    {
        "person": [1, 1, 1, 2, 2, 3, 4, 5, 6, 6, 7, 7],
        "place": ["01", "02", "01", "01", "01", "02", "b'c", "01", 'q"x', "02", "A", "a"],
        "age": [3, 44, 17, 18, 64, 65, 0, 99, 18, 30, 44, 44],
        "code": [7, 8, 7, 7, 8, 8, 7, 7, 8, 8, 7, 8],
        "share": [0.0, 0.1, 0.5, 0.49, 0.25, 0.75, 0.999, 0.5, 0.1, 0.2, 0.3, 0.4],
        "born": [f"20{k:02d}-0{1 + k % 9}-28" for k in range(12)],
    }
)
PLACES = ["01", "02", "b'c", 'q"x', "A", "a"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server that listens on a socket in a temporary folder, and nowhere else."""
    verdict = missing_service("postgres", os.environ.get("KEEPSUM_REQUIRE", ""))
    if verdict == "fail":
        pytest.fail("KEEPSUM_REQUIRE names postgres, but it is not installed.")
    if verdict == "skip":
        pytest.skip("postgres is not installed.")
    programs = postgres_programs()
    folder = Path(tempfile.mkdtemp(prefix="keepsum-postgres-"))
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        folder.chmod(0o755)
    data = folder / "data"
    run_as_user(f"{programs}/initdb", "-D", data, "-A", "trust", "-U", user, "-E", "UTF8", "--locale=C.UTF-8")
    rules = data / "pg_hba.conf"  # everybody is let in without a password, but "guarded"
    rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    run_as_user(f"{programs}/pg_ctl", "-D", data, "-l", folder / "log", "-w", "-o", options, "start")
    try:
        yield f"postgres://{user}@/postgres?host={folder}"
    finally:
        run_as_user(f"{programs}/pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def run_as_user(*command: object) -> None:
    """Run a command as the server's own user: Postgres refuses to run as root."""
    other = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    words = [str(word) for word in command]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **other)


def connect(address: str) -> psycopg.Connection:
    return psycopg.connect(address.replace("postgres://", "postgresql://"), autocommit=True)


def fill(connection: Any, name: str, place: str = "TEXT") -> None:
    """The people as a table of a database."""
    cursor = connection.cursor()
    cursor.execute(f"DROP TABLE IF EXISTS {name}")
    columns = f"person INTEGER, place {place}, age INTEGER, code INTEGER, share DOUBLE PRECISION, born DATE"
    cursor.execute(f"CREATE TABLE {name} ({columns})")
    mark = "?" if isinstance(connection, sqlite3.Connection) else "%s"
    cursor.executemany(f"INSERT INTO {name} VALUES ({', '.join([mark] * 6)})", PEOPLE.values.tolist())  # noqa: S608
    if isinstance(connection, sqlite3.Connection):
        connection.commit()


def sqlite_file(folder: Path) -> Path:
    connection = sqlite3.connect(folder / "people.db")
    fill(connection, "people", "TEXT COLLATE NOCASE")
    connection.close()
    return folder / "people.db"


def duckdb_file(folder: Path) -> Path:
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.register("frame", PEOPLE)
        connection.execute("CREATE TABLE people AS SELECT * REPLACE (CAST(born AS DATE) AS born) FROM frame")
    return folder / "people.duckdb"


def parted(folder: Path) -> Path:
    inside = folder / "parts"
    inside.mkdir()
    PEOPLE[:5].to_parquet(inside / "a[1].parquet", index=False)
    PEOPLE[5:].to_parquet(inside / "b.parquet", index=False)
    return inside


def csv(folder: Path, name: str = "people.csv", **how: Any) -> Path:
    PEOPLE.to_csv(folder / name, index=False, **how)
    return folder / name


def gz(folder: Path) -> Path:
    path = folder / "people.csv.gz"
    path.write_bytes(gzip.compress(PEOPLE.to_csv(index=False).encode(), mtime=0))
    return path


def zst(folder: Path) -> Path:
    path = folder / "people.csv.zst"
    path.write_bytes(pa.compress(PEOPLE.to_csv(index=False).encode(), codec="zstd", asbytes=True))
    return path


def parquet(folder: Path) -> Path:
    PEOPLE.to_parquet(folder / "people.parquet", index=False)
    return folder / "people.parquet"


def halves(folder: Path) -> list[Path]:
    PEOPLE[:7].to_csv(folder / "one.csv", index=False)
    PEOPLE[7:].to_csv(folder / "two.csv", index=False)
    return [folder / "one.csv", folder / "two.csv"]


# Each makes the arguments of a call from a folder.
SOURCES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "csv": lambda folder: {"source": csv(folder)},
    "semicolons": lambda folder: {"source": str(csv(folder, "semicolons.csv", sep=";"))},
    "csv.gz": lambda folder: {"source": gz(folder)},
    "csv.zst": lambda folder: {"source": zst(folder)},
    "several csv": lambda folder: {"source": halves(folder)},
    "pattern": lambda folder: {"source": str(halves(folder)[0].parent / "[ot]*.csv")},
    "parquet": lambda folder: {"source": parquet(folder)},
    "folder": lambda folder: {"source": parted(folder)},
    "pandas": lambda folder: {"source": PEOPLE},
    "pandas dates": lambda folder: {"source": PEOPLE.assign(born=pd.to_datetime(PEOPLE["born"]))},
    "pandas categories": lambda folder: {"source": PEOPLE.astype({"place": "category"})},
    "polars": lambda folder: {"source": pl.from_pandas(PEOPLE)},
    "polars lazy": lambda folder: {"source": pl.from_pandas(PEOPLE).lazy()},
    "pyarrow": lambda folder: {"source": pa.Table.from_pandas(PEOPLE)},
    "ibis": lambda folder: {"source": ibis.memtable(pa.Table.from_pandas(PEOPLE))},
    "duckdb": lambda folder: {"source": duckdb_file(folder), "table": "people"},
    "sqlite": lambda folder: {"source": sqlite_file(folder), "table": "people"},
    "sqlite address": lambda folder: {"source": f"sqlite:///{sqlite_file(folder)}", "table": "people"},
}


@pytest.fixture(params=[*SOURCES, "postgres"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The people in one kind of source, as arguments of ``ks.tabulate``."""
    if request.param != "postgres":
        return SOURCES[request.param](tmp_path)
    address = request.getfixturevalue("postgres")
    with connect(address) as connection:
        fill(connection, "people")
    return {"source": address, "table": "public.people"}

"""Records on the command line: the same result as from Python, and one sentence for what is wrong."""

from __future__ import annotations

import json
import sqlite3

import pandas as pd
import pytest

import keepsum as ks
from support import mostly_audit, refusal

PEOPLE = pd.DataFrame(
    {
        "who": [1, 1, 2, 3, 4, 5] * 6,
        "place": ["x", "y", "x", "y", "x", "y"] * 6,
        "age": [3, 20, 70, 17, 18, 65] * 6,
        "race": ["a", "", "b", "a", "b", ""] * 6,
    }
)
CATEGORIES = 'place = ["x", "y"]\nrace = ["a", "b", "unknown"]\n'
BY = ["--by", "place,age,race", "--domain", "categories.toml", "--bins", "age=0,18,65,", "--missing", "race=unknown"]
NOISE = ["--keep", "place", "--epsilon", "1"]
UNIT = ["--unit", "who", "--max-rows-per-unit", "1"]


@pytest.fixture
def folder(tmp_path):
    PEOPLE.to_parquet(tmp_path / "people.parquet", index=False)
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "categories.toml").write_text(CATEGORIES)
    with sqlite3.connect(tmp_path / "people.db") as database:
        PEOPLE.to_sql("people", database, index=False)
    return tmp_path


@pytest.mark.parametrize("file", ["people.parquet", "people.csv"])
@pytest.mark.parametrize("unit", [[], UNIT])
def test_a_release_is_that_of_python(run, folder, file, unit):
    done = run("release", file, *BY, *NOISE, *unit, "-o", "out/", "--seed", "7", "--yes")
    assert done.returncode == 0, done.stderr
    table = ks.tabulate(
        PEOPLE,
        ["place", "age", "race"],
        {"place": ["x", "y"], "race": ["a", "b", "unknown"]},
        bins={"age": [0, 18, 65, None]},
        missing={"race": "unknown"},
        **({"unit": "who", "max_rows_per_unit": 1} if unit else {}),
    )
    same = ks.release(table, keep=["place"], mechanism=ks.Laplace(1), rng=ks.rng(seed="7"))
    certificate = ks.Certificate.from_json((folder / "out" / "certificate.json").read_bytes())
    assert certificate.table.sha256 == same.certificate.table.sha256
    assert certificate.records == same.certificate.records
    assert ks.verify(folder / "out", allow_seeded=True).passed


def test_a_plan_reads_nothing(run, folder):
    done = run("plan", "nowhere.parquet", *BY, *NOISE, *UNIT, "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["cells"] == 18
    assert any("records" in sentence for sentence in plan["warnings"])
    assert plan["unit"] == "person"
    assert b"per-record" in run("plan", *BY, *NOISE).stdout


UNIT_IS_A_RECORD = b"Unit            one record, not one person: epsilon is the loss of one record"


def test_without_a_bound_per_person_the_first_line_says_that_the_unit_is_a_record(run, folder):
    released = run("release", "people.csv", *BY, *NOISE, "-o", "out/", "--yes")
    for done in (run("plan", *BY, *NOISE), run("accuracy", *BY, *NOISE), released, run("show", "out/")):
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(UNIT_IS_A_RECORD)
        assert b"per-record epsilon 1 " in b" ".join(done.stdout.split())
    assert json.loads(run("plan", *BY, *NOISE, "--json").stdout)["unit"] == "record"
    found = json.loads(run("accuracy", *BY, *NOISE, "--json").stdout)
    assert (found["unit"], found["per_person"]) == ("record", False)
    assert found["person"].startswith("per-record epsilon 1 ")
    found = json.loads(run("accuracy", *BY, *NOISE, *UNIT, "--json").stdout)
    assert (found["unit"], found["per_person"]) == ("person", True)
    for bounded in (UNIT, ["--max-rows-per-unit", "1"]):
        done = run("plan", *BY, *NOISE, *bounded)
        assert b"Unit  " not in done.stdout
        assert b"per-person epsilon 1 " in b" ".join(done.stdout.split())
    (folder / "keepsum.toml").write_text(
        "version = 1\nsource.data = 'people.csv'\nrecords.by = ['place']\naxes.categories.place = ['x', 'y']\n"
        "keep.total = true\nmechanism.epsilon = 1\noutput.path = 'again/'\n"
    )
    assert run("release", "--yes").stdout.startswith(UNIT_IS_A_RECORD)


@mostly_audit(
    ("arguments", "words"),
    [
        (["people.csv", *BY, "--count", "n"], "--count must not be combined with --by"),
        (["people.csv", *BY, "--axes", "place"], "--axes must not be combined with --by"),
        (["people.csv", *BY, "--drop", "who"], "--drop must not be combined with --by"),
        (["people.csv", *BY, "--keep-order"], "--keep-order must not be combined with --by"),
        (["people.csv", *BY, "--sheet", "One"], "--sheet must not be combined with --by"),
        (["people.csv", *BY, "--encoding", "windows-1252"], "--encoding must not be combined with --by"),
        (["people.csv", *BY, "--structure", "dsd.xml"], "--structure must not be combined with --by"),
        (["people.csv", *BY, "--flag", "OBS_STATUS=A"], "--flag must not be combined with --by"),
        (["people.csv", "--bins", "age=0,1"], "--bins requires --by"),
        (["people.csv", "--table", "people"], "--table requires --by"),
        (["people.db"], "an SQLite database. Count the records in one of its tables: --table NAME --by COLUMNS."),
        (["people.db", *BY], "Name it with --table, one of 'people'."),
        (["people.db", *BY, "--table", "peple"], "Check --table, one of 'people'."),
        (
            ["people.csv", "--by", "place,age_group", "--bins", "age=0,18,"],
            "columns to count by, 'place', 'age_group', got 'age'. Correct the name, or add the column with --by.",
        ),
        (["postgres://me@host/db"], "with --by"),
        (["postgres://me:Alice8675309@host/db", *BY, "--table", "people"], "must not contain a password"),
        ([" postgres://me:Alice8675309@host/db"], "with --by"),
        (["postgres:me:Alice8675309@host/db"], "with --by"),
        (["host=here password=Alice8675309"], "with --by"),
        (["host=here password=Alice8675309", *BY], "such as sqlite:///people.db"),
        (["people.csv", *BY, "--unit", "who"], "--unit and --max-rows-per-unit must be given together"),
        (["people.csv", *BY, "--max-rows-per-unit", "2"], "--unit and --max-rows-per-unit must be given together"),
        (["people.csv", *BY, "--bins", "age"], "--bins must be such as age=0,18,65,"),
        (["people.csv", "--by", "place,who", "--categories", "place=x,y"], "with --bins"),
        (["people.csv", "--by", "place", "--categories", "place=x"], "--categories or --domain"),
        (["people.csv", "--by", "race", "--categories", "race=a,b"], "with --missing"),
        (["nowhere.csv", *BY], "No such file"),
        (["-", *BY], "standard input"),
        (["postgres://me@/db?host=/nowhere", *BY, "--table", "people"], "no server answers there"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(run, folder, arguments, words):
    keep = ["--keep", "race"] if "race=a,b" in arguments else ["--keep", "place"]
    done = run("release", *arguments, *keep, "--epsilon", "1", "-o", "out/", "--yes")
    assert done.returncode == refusal(done)
    errors = done.stderr.decode()
    assert words in errors
    assert "Traceback" not in errors
    assert "Alice8675309" not in errors + done.stdout.decode()
    assert not (folder / "out").exists()


NOISE_ALONE = (
    "This is the margin of the noise alone: records left out by the bound per person are not in it, and their number "
    "is confidential."
)


@pytest.mark.parametrize("unit", [[], UNIT, ["--max-rows-per-unit", "1"]], ids=["records", "bounded", "one each"])
def test_margins_and_totals_say_that_records_may_have_been_left_out(run, folder, unit):
    """Only where there is a bound that may leave some out."""
    released = run("release", "people.csv", *BY, *NOISE, *unit, "-o", "out/", "--yes")
    for text in (released.stdout, run("show", "out/").stdout, run("plan", "people.csv", *BY, *NOISE, *unit).stdout):
        words = " ".join(text.decode().split())
        assert (NOISE_ALONE in words) == (unit == UNIT)
        assert ("2 totals of the counted records, published exactly" in words) == (unit == UNIT)
        assert "2 totals" in words

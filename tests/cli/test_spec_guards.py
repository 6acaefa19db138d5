"""What a spec must never do: overwrite what a release is made from, read other data, hold a password, be half read."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from keepsum.cli import app
from support import mostly_audit, refusal

COUNTS = "state,sex,n\n" + "".join(f"{state},{sex},{7 + k}\n" for k, state in enumerate(("IL", "WI")) for sex in "fm")
PEOPLE = "person,sex\n" + "".join(f"{k},{'fm'[k % 2]}\n" for k in range(5))
SPEC = """version = 1
[source]
data = "counts.csv"
count = "n"
[keep]
margins = ["state"]
[mechanism]
epsilon = 0.5
[output]
path = "out/"
"""
RECORDS = ["--by", "sex", "--categories", "sex=f,m", "--keep-total", "--epsilon", "1"]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def refused(run: Callable[..., Any], *arguments: str) -> str:
    """What is said when a command is refused."""
    done = run(*arguments)
    message: str = done.stderr.decode()
    assert (done.returncode, done.stdout) == (refusal(done), b""), message
    assert message.count("\n") == 1
    return message


COUNTED = ["--count", "n", "--keep", "state", "--epsilon", "1", "--yes", "--force"]
OVER_INPUTS = {
    "the table": ["counts.csv", *COUNTED, "-o", "counts.csv"],
    "a table of another kind in the folder": ["out/table.parquet", *COUNTED, "-o", "out/"],
    "a file of a pattern": ["many/*.csv", *RECORDS, "--yes", "--force", "-o", "many/table.csv"],
    "a new file in a folder of records": ["many/", *RECORDS, "--yes", "-o", "many/new.csv"],
    "the folder of records": ["many/", *RECORDS, "--yes", "--force", "-o", "many/"],
    "a database": ["sqlite:///people.csv", "--table", "t", *RECORDS, "--yes", "--force", "-o", "people.csv"],
    "a file of totals": ["counts.csv", *COUNTED, "--keep-file", "matrix.csv", "-o", "matrix.csv"],
    "published figures": ["counts.csv", *COUNTED, "--totals", "figures.csv", "-o", "figures.csv"],
}


@mostly_audit("what", OVER_INPUTS)
def test_no_output_replaces_an_input(what: str, run: Callable[..., Any], here: Path) -> None:
    (here / "many").mkdir()
    (here / "many" / "table.csv").write_text(PEOPLE)
    (here / "out").mkdir()
    pl.DataFrame({"state": ["IL", "WI"], "n": [3, 4]}).write_parquet(here / "out" / "table.parquet")
    for name in ("matrix.csv", "figures.csv"):
        (here / name).write_text("1,2\n")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert "Output must not be" in refused(run, "release", *OVER_INPUTS[what])
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_no_table_replaces_the_data_of_another(run: Callable[..., Any], here: Path) -> None:
    (here / "one").mkdir()
    (here / "one" / "table.csv").write_text(COUNTS)
    tables = "\n[[table]]\nname = 'a'\noutput.path = 'one/'\n[[table]]\nname = 'b'\nsource.data = 'one/table.csv'\n"
    (here / "keepsum.toml").write_text(SPEC + tables + "output.path = 'two/'\n")
    assert "keepsum.toml, line 14: Output must not be" in refused(run, "release", "--yes", "--force")
    assert (here / "one" / "table.csv").read_text() == COUNTS


def test_sums_are_not_put_beside_the_certificate_of_another_table(run: Callable[..., Any], here: Path) -> None:
    (here / "old.certificate.json").write_text("{}")
    (here / "keepsum.toml").write_text(SPEC + "[[marginal]]\naxes = ['state']\noutput = 'old.csv'\n")
    message = refused(run, "release", "--yes")
    assert "keepsum.toml, line 13: Output 'old.csv' must not be beside a certificate of that name" in message


def test_the_folder_of_a_spec_is_no_pattern(run: Callable[..., Any], here: Path) -> None:
    for folder, rows in (("proj[1]", PEOPLE), ("proj1", PEOPLE + "9,f\n")):
        (here / folder / "p").mkdir(parents=True)
        (here / folder / "p" / "a.csv").write_text(rows)
    spec = "version = 1\nsource.data = 'p/*.csv'\nrecords.by = ['sex']\naxes.categories.sex = ['f', 'm']\n"
    spec += "keep.total = true\n"
    (here / "proj[1]" / "keepsum.toml").write_text(spec + "mechanism.epsilon = 1\noutput.path = 'r.csv'\n")
    done = run("release", "--spec", "proj[1]/keepsum.toml", "--yes")
    assert done.returncode == 0, done.stderr
    assert sum(pl.read_csv((here / "proj[1]" / "r.csv").read_bytes())["count"]) == 5


def test_a_database_is_looked_for_in_the_folder_of_the_spec(run: Callable[..., Any], here: Path) -> None:
    (here / "db").mkdir()
    for name, rows in (("db/people.db", 5), ("people.db", 50)):
        with sqlite3.connect(here / name) as database:
            database.execute("create table t (sex text)")
            database.executemany("insert into t values (?)", [("f",)] * rows)
    spec = (
        "version = 1\nsource = { data = 'sqlite:///people.db', table = 't' }\nrecords.by = ['sex']\nkeep.total = true\n"
    )
    spec += "axes.categories.sex = ['f', 'm']\nmechanism.epsilon = 1\noutput.path = 'r.csv'\n"
    (here / "db" / "keepsum.toml").write_text(spec)
    done = run("release", "--spec", "db/keepsum.toml", "--yes")
    assert done.returncode == 0, done.stderr
    assert sum(pl.read_csv(here / "db" / "r.csv")["count"]) == 5


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 3000 + "]" * 3000])
def test_what_cannot_be_parsed_is_not_taken_for_an_empty_spec(value: str, run: Callable[..., Any], here: Path) -> None:
    (here / "keepsum.toml").write_text(f"{SPEC}\n[records]\nmax_rows_per_unit = {value}\n")
    arguments = ["counts.csv", "--spec", "keepsum.toml", "--count", "n", "--keep", "state", "--epsilon", "1"]
    assert "Spec 'keepsum.toml' must be valid TOML, but is not" in refused(run, "plan", *arguments)


@pytest.mark.parametrize(
    "address", ["postgres://u:hunter2@h/db", "host=x password=hunter2", "mysql://u:hunter2@h/db", "u:hunter2@h"]
)
def test_a_spec_with_a_password_is_refused_by_every_command(address: str, run: Callable[..., Any], here: Path) -> None:
    (here / "keepsum.toml").write_text(SPEC.replace("counts.csv", address))
    for command in ("plan", "release"):
        assert "hunter2" not in refused(run, command)


def test_a_key_that_looks_like_a_message_is_an_unknown_key(run: Callable[..., Any], here: Path) -> None:
    (here / "keepsum.toml").write_text('version = 1\n"a` - at `$.nope.x" = 1\n')
    assert "must not have a key" in refused(run, "plan")


def test_sums_over_a_projected_release_are_those_of_the_unbiased_table(run: Callable[..., Any], here: Path) -> None:
    (here / "counts.csv").write_text("state,sex,n\nIL,f,0\nIL,m,0\nWI,f,0\nWI,m,30\n")
    spec = SPEC.replace('margins = ["state"]', "total = true").replace("0.5", "0.1")
    marginal = "[postprocess]\nnonnegative = true\n[[marginal]]\naxes = ['state']\noutput = 'sums.csv'\n"
    (here / "keepsum.toml").write_text(spec + marginal)
    done = run("release", "--yes", "--seed", "3")
    assert done.returncode == 0, done.stderr
    again = run("marginal", "out/", "--axes", "state", "-o", "again.csv", "--allow-seeded")
    assert again.returncode == 0, again.stderr
    assert (here / "sums.csv").read_bytes() == (here / "again.csv").read_bytes()
    note = " ".join(again.stdout.decode().split("\n", 1)[1].split())
    assert "unbiased" in note
    assert note in " ".join(done.stdout.decode().split())


def test_a_plan_is_of_the_release_that_would_be_made(run: Callable[..., Any], here: Path) -> None:
    (here / "keepsum.toml").write_text(SPEC)
    arguments = ["--categories", "sex=f,m", "--categories", "state=IL,WI", "--epsilon", "2"]
    planned, released = run("plan", *arguments), run("release", *arguments, "--yes")
    assert released.returncode == 0, released.stderr
    kept = b"Kept exactly    2 totals of state"
    assert kept in planned.stdout
    assert kept in released.stdout


def test_sentences_for_what_is_missing(run: Callable[..., Any], here: Path) -> None:
    assert "because there is no keepsum.toml in this folder" in refused(run, "release")
    assert "because there is no keepsum.toml in this folder" in refused(run, "plan", "--epsilon", "1")
    assert "Option --spec must be the name of a file" in refused(run, "plan", "--spec", "")
    (here / "keepsum.toml").write_text(SPEC)
    assert "or --spec keepsum.toml to use that spec with this table" in refused(run, "plan", "counts.csv")
    noise = ["--mechanism", "gaussian", "--rho", "1", "--calibration", "tight"]
    assert "Option --calibration requires --epsilon" in refused(run, "plan", "counts.csv", *COUNTED[:4], *noise)


def test_a_release_whose_sums_failed_is_told_with_the_way_to_them(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Releasing the spec again would cost privacy, and keepsum marginal does not."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (here / "keepsum.toml").write_text(SPEC + "[[marginal]]\naxes = ['state']\noutput = 'sums.csv'\n")
    monkeypatch.chdir(here)
    monkeypatch.setattr("keepsum.facade.estimates.marginal_of", full)
    assert app.run(["release", "--yes"]) == 3
    said = capsys.readouterr().err
    assert "The release is written: 'out/table.csv'" in said
    assert "The sums failed: No space left on device. keepsum marginal makes them from the release" in said
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert app.run(["verify", "out/"]) == 0


WITH_TOTALS = "county,sex,n\nA,f,1\nA,m,2\nB,f,3\nB,m,4\nTotal,f,4\nTotal,m,6\n"
REST = '[keep]\nmargins = ["county"]\n[mechanism]\nepsilon = 0.5\n'
IN_KEYS = {
    "a label to drop that is not there": ('count = "n"\ndrop_rows = { county = "Totl" }', 5, "has no label 'Totl'"),
    "a column to drop rows by": ('count = "n"\ndrop_rows = { cnty = "Total" }', 5, "got 'cnty'"),
    "rows of totals": ('count = "n"', 2, 'Leave them out with source.drop_rows = { county = "Total" }, or declare the'),
    "an encoding that is none": ('count = "n"\nencoding = "utf99"', 5, "source.encoding must be the name of an"),
    "an encoding that it is not in": ('count = "n"\nencoding = "utf-16"', 5, "Leave out source.encoding."),
    "a sheet of no workbook": ('count = "n"\nsheet = "x"', 5, "Leave out source.sheet."),
    "another count": ('count = "m"', 4, "Name it with source.count."),
    "no count": ("", 2, "Set source.count."),
}


@mostly_audit(("keys", "line", "words"), IN_KEYS.values(), ids=IN_KEYS)
def test_errors_name_keys_of_the_spec_and_the_line(
    keys: str, line: int, words: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "counts.csv").write_text(WITH_TOTALS)
    (tmp_path / "keepsum.toml").write_text(f'version = 1\n[source]\ndata = "counts.csv"\n{keys}\n{REST}')
    message = refused(run, "plan")
    assert f"keepsum.toml, line {line}: " in message
    assert words in message
    assert "--" not in message


def test_errors_of_options_name_options(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "counts.csv").write_text(WITH_TOTALS)
    (tmp_path / "keepsum.toml").write_text(f'version = 1\n[source]\ndata = "counts.csv"\ncount = "n"\n{REST}')
    message = refused(run, "plan", "--encoding", "utf-16")
    assert "Leave out --encoding." in message
    assert "source." not in message

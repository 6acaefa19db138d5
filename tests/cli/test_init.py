"""``keepsum init`` writes a spec that runs, by options alone; what it asks is in ``test_init_questions.py``."""

from __future__ import annotations

import sqlite3
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import mostly_audit, refusal

COUNTS = "county,sex,n\n" + "".join(f"{county},{sex},{7 * k}\n" for k, county in enumerate("ABC") for sex in "fm")
NESTED = "state,county,n\nIL,Cook,1\nIL,Kane,2\nWI,Lake,3\nWI,Dane,4\nWI,Total,7\n"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "nested.csv").write_text(NESTED)
    return tmp_path


def spec_in(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "keepsum.toml").read_text(encoding="utf-8"))


def test_a_spec_by_options_runs(run: Callable[..., Any], here: Path) -> None:
    arguments = ["counts.csv", "--count", "n", "--keep", "county", "--keep", "county,sex", "--keep-total"]
    noise = ["--mechanism", "gaussian", "--epsilon", "0.5", "--delta", "1e-6", "--accept-pinned"]
    done = run("init", *arguments[:5], *noise[:-1], "-o", "rel.csv", "--nonnegative")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"Spec  keepsum.toml\nNext: keepsum plan")
    assert spec_in(here) == {
        "version": 1,
        "source": {"data": "counts.csv", "count": "n"},
        "keep": {"margins": ["county"]},
        "mechanism": {"kind": "gaussian", "epsilon": 0.5, "delta": "1e-6"},
        "postprocess": {"nonnegative": True},
        "output": {"path": "rel.csv"},
    }
    assert run("release", "--yes").returncode == 0
    assert run("verify", "rel.csv").returncode == 0


def test_a_spec_elsewhere_and_its_categories(run: Callable[..., Any], here: Path) -> None:
    (here / "specs").mkdir()
    arguments = ["nested.csv", "--count", "n", "--within", "county:state", "--drop-rows", "county=Total"]
    release = ["--keep", "state", "--epsilon", "1/3", "--write-categories", "--spec", "specs/keepsum.toml"]
    done = run("init", *arguments, *release)
    assert done.returncode == 0, done.stderr
    assert b"keepsum release --spec specs/keepsum.toml" in done.stdout
    written = spec_in(here / "specs")
    assert written["source"] == {"data": "../nested.csv", "count": "n", "drop_rows": {"county": ["Total"]}}
    assert written["axes"] == {
        "within": {"county": "state"},
        "categories": {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Kane"], "WI": ["Dane", "Lake"]}},
    }
    assert (written["mechanism"], written["output"]) == ({"epsilon": "1/3"}, {"path": "../out/"})
    released = run("release", "--spec", "specs/keepsum.toml", "--yes", "--json")
    assert released.returncode == 0, released.stderr
    assert (here / "out" / "certificate.json").is_file()


GIVEN = ["counts.csv", "--count", "n", "--epsilon", "1"]
RECORDS = ["--by", "county", "--categories", "county=A,B", "--keep-total", "--epsilon", "1"]
WRONG = {
    "no table": ([], "A table must be given: keepsum init counts.csv"),
    "no file": (["none.csv", "--count", "n"], "File 'none.csv' must be readable"),
    "no count": (["counts.csv"], "Pass --count COLUMN"),
    "no noise": (["counts.csv", "--count", "n", "--keep", "county"], "Option --epsilon must be given"),
    "no totals": (["counts.csv", "--count", "n", "--epsilon", "1"], "At least one total must be kept"),
    "a trap": (["nested.csv", "--count", "n", "--epsilon", "1", "--keep-total"], "look like totals"),
    "a choice": (["counts.csv", "--only", "x"], "Option --only must not be given"),
    "no noise left": ([*GIVEN, "--keep", "county,sex"], "The kept totals determine every cell"),
    "no place": ([*GIVEN, "--keep-total", "-o", "y"], "Output must be a file such as 'released.csv'"),
    "onto the table": ([*GIVEN, "--keep-total", "-o", "counts.csv"], "Output must not be the confidential table"),
    "onto the spec": ([*GIVEN, "--keep-total", "--spec", "s.csv", "-o", "s.csv"], "Output must not be the spec"),
    "no records": (["none.csv", *RECORDS], "File 'none.csv' must be readable"),
    "a password": (["postgres://me:secret@host/db", *RECORDS], "must not contain a password"),
    "a password by keyword": (["host=x password=secret", *RECORDS], "The address of a database must be such as"),
    "a password in a query": (["postgres://me@host/db?password=secret", *RECORDS], "must not contain a password"),
    "a password without a scheme": (["me:secret@host/db", *RECORDS], "The address of a database must be such as"),
}


@mostly_audit("what", WRONG)
def test_without_a_terminal_options_must_say_everything(what: str, run: Callable[..., Any], here: Path) -> None:
    arguments, words = WRONG[what]
    failed = run("init", *arguments)
    assert failed.returncode == refusal(failed)
    assert words in failed.stderr.decode()
    assert b"secret" not in failed.stderr + failed.stdout
    assert not (here / "keepsum.toml").exists()


def test_a_spec_is_not_replaced_by_accident(run: Callable[..., Any], here: Path) -> None:
    arguments = ["init", "counts.csv", "--count", "n", "--keep", "county", "--epsilon", "1"]
    (here / "keepsum.toml").write_text("mine")
    failed = run(*arguments)
    assert failed.returncode == refusal(failed)
    assert b"There must be no spec 'keepsum.toml' yet" in failed.stderr
    assert b"--force" in failed.stderr
    assert (here / "keepsum.toml").read_text() == "mine"
    assert run(*arguments, "--force").returncode == 0


def test_a_spec_does_not_replace_what_it_names(run: Callable[..., Any], here: Path) -> None:
    arguments = ["init", *GIVEN, "--keep-total", "--force"]
    (here / "link.csv").symlink_to("counts.csv")
    for spec in ("counts.csv", "./counts.csv", "link.csv"):
        failed = run(*arguments, "--spec", spec)
        assert failed.returncode == refusal(failed)
        assert b"The spec must not be a file that it names" in failed.stderr
    (here / "totals.toml").write_text('[[total]]\nname = "a"\ncells = [{county = "A"}]\n')
    assert run(*arguments, "--keep-file", "totals.toml", "--spec", "totals.toml").returncode == 2
    assert (here / "counts.csv").read_text() == COUNTS


def test_paths_through_a_link_to_a_folder(run: Callable[..., Any], here: Path) -> None:
    """A folder that leads elsewhere: ".." is the folder above where it leads."""
    (here / "deep" / "specs").mkdir(parents=True)
    (here / "specs").symlink_to("deep/specs")
    done = run("init", *GIVEN, "--keep-total", "--spec", "specs/keepsum.toml", "-o", "out/")
    assert done.returncode == 0, done.stderr
    written = spec_in(here / "specs")
    assert (written["source"]["data"], written["output"]["path"]) == ("../../counts.csv", "../../out/")
    assert run("release", "--spec", "specs/keepsum.toml", "--yes").returncode == 0
    assert (here / "out" / "certificate.json").is_file()


def test_the_address_of_a_file_is_its_path_seen_from_the_spec(run: Callable[..., Any], here: Path) -> None:
    (here / "specs").mkdir()
    with sqlite3.connect(here / "people.db") as database:
        database.execute("CREATE TABLE people (county TEXT)")
        database.executemany("INSERT INTO people VALUES (?)", [("A",), ("B",), ("B",)])
    database.close()
    done = run("init", "sqlite:///people.db", "--table", "people", *RECORDS, "--spec", "specs/keepsum.toml")
    assert done.returncode == 0, done.stderr
    assert spec_in(here / "specs")["source"] == {"data": "../people.db", "table": "people"}
    assert run("release", "--spec", "specs/keepsum.toml", "--yes").returncode == 0


def test_a_release_may_go_to_standard_output(run: Callable[..., Any], here: Path) -> None:
    done = run("init", *GIVEN, "--keep-total", "-o", "-", "--certificate", "released.json")
    assert done.returncode == 0, done.stderr
    assert spec_in(here)["output"] == {"path": "-", "certificate": "released.json"}
    assert run("release", "--yes").stdout.startswith(b"county,sex,n")
    failed = run("init", *GIVEN, "--keep-total", "-o", "-", "--certificate", "s.toml", "--spec", "s.toml")
    assert failed.returncode == refusal(failed)


def test_its_help_is_of_a_spec_that_is_written(run: Callable[..., Any]) -> None:
    shown = " ".join(run("init", "--help").stdout.decode().split())
    assert "--spec FILE The spec to write; keepsum.toml by default." in shown
    assert "overridden by options" not in shown
    assert "--only" not in shown
    assert "--only" in run("release", "--help").stdout.decode()

"""``keepsum init`` writes a spec that runs: by options, and by answers on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command import KEEPSUM
from keepsum.cli.commands.init import with_options
from keepsum.cli.declaration import Declaration
from keepsum.cli.questions import advised, likely_count, margins, options
from keepsum.errors import InputError
from support import HANG

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


WRONG = {
    "no table": ([], "A table must be given: keepsum init counts.csv"),
    "no file": (["none.csv", "--count", "n"], "File 'none.csv' must be readable"),
    "no count": (["counts.csv"], "Pass --count COLUMN"),
    "no noise": (["counts.csv", "--count", "n", "--keep", "county"], "Option --epsilon must be given"),
    "no totals": (["counts.csv", "--count", "n", "--epsilon", "1"], "At least one total must be kept"),
    "a trap": (["nested.csv", "--count", "n", "--epsilon", "1", "--keep-total"], "look like totals"),
    "a choice": (["counts.csv", "--only", "x"], "Option --only must not be given"),
}


@pytest.mark.parametrize("what", WRONG)
def test_without_a_terminal_options_must_say_everything(what: str, run: Callable[..., Any], here: Path) -> None:
    arguments, words = WRONG[what]
    failed = run("init", *arguments)
    assert failed.returncode == 2
    assert words in failed.stderr.decode()
    assert not (here / "keepsum.toml").exists()


def test_a_spec_is_not_replaced_by_accident(run: Callable[..., Any], here: Path) -> None:
    arguments = ["init", "counts.csv", "--count", "n", "--keep", "county", "--epsilon", "1"]
    (here / "keepsum.toml").write_text("mine")
    assert run(*arguments).returncode == 2
    assert (here / "keepsum.toml").read_text() == "mine"
    assert run(*arguments, "--force").returncode == 0


def answered(answers: list[str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """Run ``keepsum init`` with answers typed on a terminal."""
    parent, child = pty.openpty()
    os.write(parent, "".join(f"{answer}\n" for answer in answers).encode())
    command = [KEEPSUM, "init", *arguments]
    done = subprocess.run(command, cwd=cwd, stdin=child, capture_output=True, timeout=HANG, check=False)
    os.close(parent)
    os.close(child)
    return done


def test_answers_on_a_terminal(run: Callable[..., Any], here: Path) -> None:
    """What is noticed in the table is met by Enter; a wrong answer is told and asked again."""
    answers = [
        "none.csv",  # is not there
        "nested.csv",
        "y",  # rows have counts
        "",  # n, by its name
        "",  # rows of totals are dropped
        "",  # counties are nested
        "town",  # no axis
        "state total",
        "y",  # per person
        "-1",  # no epsilon
        "0.5",
        "y",  # the categories are public
        "n",  # counts may be negative
        "",  # out/
    ]
    done = answered(answers, cwd=here)
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "File 'none.csv' must exist" in said
    assert "Columns: state, county, n." in said
    assert "look like totals" in said
    assert "Options to add [--drop-rows county=Total]" in said
    assert "Options to add [--within county:state]" in said
    assert "An axis must be one of 'state', 'county', got 'town'" in said
    assert "Epsilon must be a positive number, got '-1'" in said
    assert spec_in(here) == {
        "source": {"data": "nested.csv", "count": "n", "drop_rows": {"county": ["Total"]}},
        "axes": {
            "within": {"county": "state"},
            "categories": {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Kane"], "WI": ["Dane", "Lake"]}},
        },
        "keep": {"margins": ["state"], "total": True},
        "mechanism": {"epsilon": 0.5, "per_person": True},
        "output": {"path": "out/"},
    }
    assert run("release", "--yes").returncode == 0


def test_records_on_a_terminal(run: Callable[..., Any], here: Path) -> None:
    (here / "people.csv").write_text("county,age\nA,3\nB,40\n")
    answers = ["n", "county,age", "--categories county=A,B --bins 'age=0,18,", "--categories county=A,B"]
    answers += ["--bins age=0,18,", "county", "n", "1", "n", "people/"]
    done = answered(answers, "people.csv", cwd=here)
    assert done.returncode == 0, done.stderr
    assert b"with every quotation mark closed" in done.stderr
    assert spec_in(here)["records"] == {"by": ["county", "age"], "bins": {"age": ["0", "18", ""]}}
    assert run("release", "--yes").returncode == 0


def test_leaving_in_the_middle_writes_nothing(here: Path) -> None:
    done = answered(["y", "\x04"], "counts.csv", cwd=here)
    assert done.returncode != 0
    assert not (here / "keepsum.toml").exists()


def test_more_options_are_added_to_those_there_are() -> None:
    both = with_options(Declaration(table="x.csv", keep=["a"], count="n"), ["--keep", "b", "--dense", "--count", "m"])
    assert both == Declaration(table="x.csv", keep=["a", "b"], count="m", dense=True)
    with pytest.raises(InputError, match="Options must be like --within county:state, but: "):
        with_options(Declaration(), ["--withn", "a:b"])


def test_answers_are_read_as_in_a_shell() -> None:
    assert margins("county sex,age total") == ["--keep", "county", "--keep", "sex,age", "--keep-total"]
    assert options("--within 'a b:c'") == ["--within", "a b:c"]
    for read in (margins, options):
        with pytest.raises(InputError):
            read("'")
    with pytest.raises(InputError, match="At least one total"):
        margins("")
    assert likely_count(["a", "N", "b"]) == "N"
    assert likely_count(["a", "b"]) == "b"
    assert likely_count([]) is None
    assert advised("Nothing to add.") is None

"""Which spec a command uses: that of the folder only where options are about the same table."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SPEC = """
version = 1
[source]
data = "records.csv"
[records]
by = ["sex"]
max_rows_per_unit = 1
[axes]
domain = "sex.toml"
[keep]
total = true
[mechanism]
epsilon = 1
"""
AFRESH = b"keepsum.toml of this folder is not used, because "


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "keepsum.toml").write_text(SPEC)
    (tmp_path / "sex.toml").write_text('sex = ["f", "m"]\n')
    (tmp_path / "other.toml").write_text('county = ["A", "B", "C"]\n')
    (tmp_path / "counts.csv").write_text("county,n\nA,3\nB,4\nC,5\n")
    return tmp_path


def test_other_categories_start_afresh_and_say_so(here: Path, inside: Callable[..., Any]) -> None:
    noise = ["--keep-total", "--epsilon", "1"]
    done = inside("plan", "--domain", "other.toml", *noise)
    assert done.returncode == 0, done.stderr
    assert AFRESH + b"--domain is given" in done.stderr
    quiet = inside("plan", "--domain", "other.toml", *noise, "--no-spec")
    assert (quiet.returncode, quiet.stderr) == (0, b"")
    assert quiet.stdout == done.stdout


def test_the_categories_of_the_spec_are_those_of_the_spec(here: Path, inside: Callable[..., Any]) -> None:
    done = inside("plan", "--domain", str(here / "sex.toml"), "--epsilon", "2")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == inside("plan", "--epsilon", "2").stdout


def test_another_table_starts_afresh_and_says_so(here: Path, inside: Callable[..., Any]) -> None:
    plan = ["plan", "counts.csv", "--count", "n", "--keep-total", "--epsilon", "1"]
    done = inside(*plan)
    assert done.returncode == 0, done.stderr
    assert AFRESH + b"a table is given" in done.stderr
    assert AFRESH not in inside(*plan, "--no-spec").stderr


def test_no_spec_ignores_it(here: Path, inside: Callable[..., Any]) -> None:
    done = inside("plan", "--no-spec", "--keep-total", "--epsilon", "1")
    assert done.returncode == 2
    assert b"A table must be given" in done.stderr
    assert b"because --no-spec leaves out keepsum.toml" in done.stderr
    done = inside("release", "--domain", "other.toml", "--epsilon", "1")
    assert b"A table must be given" in done.stderr
    assert b"because keepsum.toml has another file of categories" in done.stderr
    done = inside("plan", "--no-spec", "--spec", "keepsum.toml")
    assert b"Option --no-spec must not be combined with --spec" in done.stderr


def test_init_writes_every_option_of_a_release(tmp_path: Path, inside: Callable[..., Any]) -> None:
    (tmp_path / "counts.csv").write_text("county,n\nA,3\nB,4\nC,5\n")
    init = ["init", "counts.csv", "--count", "n", "--keep-total", "--epsilon", "1"]
    more = ["--title", "T", "--accept-delta", "0.1", "--ledger", "l.db", "--dataset", "d", "--nonnegative-norm", "l2"]
    refused = inside(*init, *more)
    assert b"Option --nonnegative-norm must be given with --nonnegative" in refused.stderr
    assert not (tmp_path / "keepsum.toml").exists()
    assert inside(*init, *more, "--nonnegative").returncode == 0
    spec = tomllib.loads((tmp_path / "keepsum.toml").read_text())
    assert spec["output"] == {"path": "out/", "title": "T", "accept_delta": "0.1"}
    assert spec["ledger"] == {"path": "l.db", "dataset": "d"}
    assert spec["postprocess"] == {"nonnegative": True, "norm": "l2"}

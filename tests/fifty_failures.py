"""Fifty ways in which a command fails: the files, the command, and what must become of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COUNTS = "county,sex,n\nA,f,3\nA,m,4\nB,f,9\nB,m,2\n"
NESTED = "state,county,n\nX,a,3\nX,b,4\nY,c,9\nY,d,2\n"
FILES = {
    "counts.csv": COUNTS,
    "nested.csv": NESTED,
    "missing.csv": "county,n\nA,3\n,4\n",
    "float.csv": "county,n\nA,3.5\nB,4\n",
    "negative.csv": "county,n\nA,-3\nB,4\n",
    "twice.csv": "county,n\nA,3\nA,4\n",
    "header.csv": "county,n\n",
    "empty.csv": "",
    "ragged.csv": "county,n\nA,3,4\n",
    "repeated.csv": "county,county,n\nA,B,3\n",
    "measure.csv": "county,n,income\nA,3,700.5\nB,4,900.25\n",
    "totals.csv": "county,sex,n\nA,f,3\nA,Total,3\nB,f,9\nB,Total,9\n",
    "words.csv": "within={x},carry=,n\nA,p,3\nA,q,4\nB,p,1\nB,q,2\n",
    "people.csv": "county,sex\nA,f\nA,m\nB,f\n",
    "bad.toml": "version = 1\n[source]\nnonsense = 3\n",
    "none.toml": "not toml at all [",
    "there.csv": "mine",
    "key.pem": "no key",
    "domain.toml": 'county = ["A", "B"]\nsex = ["f", "m"]\n',
    "spec.toml": 'version = 1\n[source]\ndata = "counts.csv"\ncount = "n"\n[keep]\nmargins = ["town"]\n'
    "[mechanism]\nepsilon = 1\n",
    "three.toml": 'a = ["1", "2", "3", "4", "5"]\nb = ["1", "2", "3", "4", "5"]\nc = ["1", "2", "3", "4", "5"]\n',
}
WINDOWS = "région,n\nÎle,5\nsud,9\n".encode("windows-1252")

PLAN = ["plan", "counts.csv", "--count", "n", "--keep", "county", "--epsilon", "1", "--json"]
RELEASE = ["release", "counts.csv", "--count", "n", "--keep", "county", "--epsilon", "1", "--yes", "--json"]
BY = ["plan", "people.csv", "--by", "county,sex", "--keep-total", "--epsilon", "1", "--json"]


def plan(table: str, *more: str) -> list[str]:
    """The plan of another table."""
    return ["plan", table, "--count", "n", "--keep-total", "--epsilon", "1", *more, "--json"]


COMMANDS: dict[str, list[str]] = {
    "no such column": [*PLAN, "--count", "m"],
    "count not named": ["plan", "measure.csv", "--count", "people", "--keep-total", "--epsilon", "1", "--json"],
    "no such axis": [*PLAN, "--axes", "town"],
    "nesting not declared": plan("nested.csv"),
    "parent unknown": [*PLAN, "--within", "county:state"],
    "nested in itself": [*PLAN, "--within", "county:county"],
    "a label is missing": plan("missing.csv"),
    "a count is no whole number": plan("float.csv"),
    "a count is negative": plan("negative.csv"),
    "a cell comes twice": plan("twice.csv"),
    "a table without rows": plan("header.csv"),
    "an empty file": plan("empty.csv"),
    "a row of another length": plan("ragged.csv"),
    "a column twice": plan("repeated.csv"),
    "another measure": plan("measure.csv"),
    "rows of totals": plan("totals.csv"),
    "names like words of ours": plan("words.csv", "--drop", "town"),
    "another encoding": plan("windows.csv"),
    "an encoding that is none": plan("counts.csv", "--encoding", "klingon"),
    "a sheet of no workbook": plan("counts.csv", "--sheet", "A"),
    "dropped and unknown": plan("counts.csv", "--drop", "town"),
    "no file": plan("nothing.csv"),
    "a folder for a file": plan("folder"),
    "no epsilon": ["plan", "counts.csv", "--count", "n", "--keep", "county", "--json"],
    "epsilon below zero": [*PLAN, "--epsilon", "-1"],
    "epsilon is a word": [*PLAN, "--epsilon", "much"],
    "rho for laplace": [*PLAN, "--rho", "1"],
    "gaussian without delta": [*PLAN, "--mechanism", "gaussian"],
    "delta of one": [*PLAN, "--mechanism", "gaussian", "--delta", "1"],
    "focus in l2": [*PLAN, "--norm", "l2", "--focus", "county=1"],
    "cell share without focus": [*PLAN, "--cell-share", "1"],
    "no totals": ["plan", "counts.csv", "--count", "n", "--epsilon", "1", "--json"],
    "totals and nothing": [*PLAN, "--keep-nothing"],
    "every cell determined": [*PLAN, "--keep", "county,sex"],
    "pinned cells": [*RELEASE, "--keep-file", "pins.toml", "-o", "pins.csv"],
    "epsilon out of range": [*RELEASE, "--per-unit", "--epsilon", "5000", "-o", "range.csv"],
    "no categories of records": BY,
    "a unit without a bound": [*BY, "--domain", "domain.toml", "--unit", "sex"],
    "records without by": ["plan", "people.csv", "--unit", "sex", "--keep-total", "--epsilon", "1", "--json"],
    "spec with an unknown key": ["plan", "--spec", "bad.toml", "--json"],
    "spec that is no TOML": ["plan", "--spec", "none.toml", "--json"],
    "spec with a wrong total": ["plan", "--spec", "spec.toml", "--json"],
    "no spec": ["plan", "--spec", "nothing.toml", "--json"],
    "no output": RELEASE,
    "output exists": [*RELEASE, "-o", "there.csv"],
    "output in no folder": [*RELEASE, "-o", "nowhere/out.csv"],
    "output is the table": [*RELEASE, "-o", "counts.csv", "--force"],
    "output of another kind": [*RELEASE, "-o", "out.doc"],
    "key that is none": [*RELEASE, "-o", "signed.csv", "--sign", "key.pem"],
    "no ledger": [*RELEASE, "-o", "l.csv", "--ledger", "none.db", "--dataset", "d"],
    "budget is spent": [*RELEASE, "-o", "b.csv", "--ledger", "l.db", "--dataset", "pop"],
    "not in the ledger": [*RELEASE, "-o", "d.csv", "--ledger", "l.db", "--dataset", "other"],
    "an option that is none": ["plan", "counts.csv", "--epsillon", "1", "--json"],
    "a release changed": ["verify", "changed.csv"],
    "no release": ["verify", "nothing.csv", "--json"],
    "a sum of no release": ["marginal", "changed.csv", "--axes", "county", "-o", "sum.csv", "--json"],
    "nobody to ask": [*[word for word in RELEASE if word != "--yes"], "-o", "asked.csv"],
}


# What becomes of each: the status, the kind, what it is about (an option by its key in a spec), what the remedy is of,
# and what to do: in the words of the shell, a spec, the page and Python, or in one sentence where all say the same.
OUTCOMES: dict[str, Any] = json.loads(
    Path(__file__).with_name("golden").joinpath("fifty_failures.json").read_text(encoding="utf-8")
)


def make_files(folder: Path) -> None:
    """Write the files that the commands are about."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "windows.csv").write_bytes(WINDOWS)
    (folder / "folder").mkdir()
    cells = '[[total]]\nname = "one"\ncells = [{ county = "A", sex = "f" }]\n'
    (folder / "pins.toml").write_text(cells, encoding="utf-8")

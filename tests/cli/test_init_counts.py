"""Where ``keepsum init`` looks for the counts: in a column that is called so, in several columns, or nowhere."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl

from keepsum.sources.headers import Header, header_in
from keepsum.sources.reading import FileForm
from keepsum.specs.proposals import Likely, likely_columns
from support import mostly_audit, refusal

END = ["total", "y", "1", "n", "n", "out/"]  # totals, per person, epsilon, categories, negative counts, output
RACES = ("White", "Black", "Other, incl. mixed")
WIDE = [("County", "Age group", *RACES, "Total")] + [
    (county, age, 1, 2, 3, 6) for county in ("Cook", "Lake") for age in ("young", "old")
]


def spec_in(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "keepsum.toml").read_text(encoding="utf-8"))


def write(path: Path, rows: list[tuple[Any, ...]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


PROPOSED = {
    "by its name": ([("county", "N", "births"), ("A", 5, 3)], Likely("N", True)),
    "by a name of several words": (
        [("Number of people", "year", "last"), (5, 2020, 6)],
        Likely("Number of people", True),
    ),
    "a total number": ([("sex", "Total number", "year"), ("f", 5, 2020)], Likely("Total number", True)),
    "with suppressed counts": ([("sex", "n"), ("f", "<5"), ("m", 7)], Likely("n", True)),
    "the only one of whole numbers": ([("county", "share", "Bestand"), ("A", "0.5", 5)], Likely("Bestand")),
    "a date": ([("county", "visit"), ("A", "2020-01-31")], Likely()),
    "a date by a name": ([("county", "n"), ("A", "31.1.2020")], Likely()),
    "decimals by a name": ([("county", "value"), ("A", "0.5"), ("B", "7")], Likely()),
    "labels by a name": ([("county", "n"), ("A", "x")], Likely()),
    "identifiers and ages": ([("patient_id", "county", "PersonID", "age"), (1, "A", 2, 3)], Likely()),
    "several": ([("county", "f", "m", "Total"), ("A", 1, 2, 3)], Likely(wide=("f", "m"), totals=("Total",))),
    "a total alone": ([("county", "Total"), ("A", 3)], Likely("Total", True)),
    "not a header": ([("A", "B", "15"), ("C", "D", "16")], Likely()),
}


@mostly_audit(("rows", "likely"), PROPOSED.values(), ids=PROPOSED)
def test_what_is_proposed(rows: list[tuple[Any, ...]], likely: Likely, tmp_path: Path) -> None:
    write(tmp_path / "x.csv", rows)
    assert likely_columns(header_in(str(tmp_path / "x.csv"), None, FileForm())) == likely


def test_of_a_large_file_only_names_are_known() -> None:
    assert likely_columns(Header(["a", "freq", "b"])) == Likely("freq", True)
    assert likely_columns(Header(["a", "b"])) == Likely()
    assert likely_columns(Header(["a", "n"]), ["n"]) == Likely()


def test_dates_and_identifiers_are_not_proposed(answered: Callable[..., Any], tmp_path: Path) -> None:
    """Records are asked about first, and can still be said to be such where a column is asked for."""
    visits = [("person_id", "county", "visit"), (1, "A", date(2026, 1, 2)), (2, "B", date(2026, 1, 3))]
    write(tmp_path / "visits.csv", visits)
    records = ["county", "A,B", "", "n", "total", "y", "1", "n", "out/"]
    for answers in (["y"], ["", "n", "-"]):
        done = answered([*answers, *records], "visits.csv", "--force")
        assert done.returncode == 0, done.stderr
        said = done.stderr.decode()
        assert "Is each row a record (rather than having a count)? [y/n]" in said
        assert "[visit]" not in said
        assert spec_in(tmp_path)["records"]["by"] == ["county"]
    assert "Which column has the counts? (- if each row is a record):" in said


def test_a_column_called_a_count_may_be_none(answered: Callable[..., Any], tmp_path: Path) -> None:
    write(tmp_path / "x.csv", [("county", "n"), ("A", 1), ("B", 2)])
    done = answered(["", "-", "county", "A,B", "", "n", "total", "y", "1", "n", "out/"], "x.csv")
    assert done.returncode == 0, done.stderr
    assert b"Which column has the counts? (- if each row is a record) [n]" in done.stderr


def test_a_wide_sheet(run: Callable[..., Any], answered: Callable[..., Any], tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in WIDE:
        book.active.append(row)
    book.save(tmp_path / "race.xlsx")
    done = answered(["n", "y", "County", "race", *END], "race.xlsx")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert (
        'Are the 3 columns White, Black, "Other, incl. mixed" the categories of one axis, with a count in each? [y/n]'
        in said
    )
    assert "The axis must have a name that no column has, got 'County'." in said
    assert "Left out as the total of these columns, by its name: Total." in said
    assert spec_in(tmp_path)["source"] == {"data": "race.xlsx", "wide": {"race": list(RACES)}, "drop": ["Total"]}
    assert run("release", "--yes").returncode == 0


def test_columns_that_are_no_categories(answered: Callable[..., Any], tmp_path: Path) -> None:
    write(tmp_path / "x.csv", [("county", "births", "deaths"), ("A", 1, 2), ("B", 3, 4)])
    done = answered(["n", "n", "births", "out", *END], "x.csv")
    assert done.returncode == 0, done.stderr
    assert spec_in(tmp_path)["source"] == {"data": "x.csv", "count": "births", "drop": ["deaths"]}


def test_numbers_in_a_header_are_not_shown(answered: Callable[..., Any], tmp_path: Path) -> None:
    write(tmp_path / "x.csv", [("county", "4711", "4712"), ("A", 1, 2), ("B", 3, 4)])
    done = answered(["n", "y", "code", "total", "y", "1", "n", "n", ""], "x.csv")
    assert done.returncode == 0, done.stderr
    assert b"Are the 2 columns of whole numbers the categories of one axis" in done.stderr
    assert b"471" not in done.stderr


def test_refusals_name_wide(run: Callable[..., Any], tmp_path: Path) -> None:
    write(tmp_path / "race.csv", WIDE)
    failed = run("plan", "race.csv", "--keep-total", "--epsilon", "1")
    assert failed.returncode == refusal(failed)
    assert b"Pass --count COLUMN, or name the columns with --wide if several have counts." in failed.stderr
    failed = run("plan", "race.csv", "--count", "White", "--keep-total", "--epsilon", "1")
    assert failed.returncode == refusal(failed)
    assert b"in several columns, one for each category of an axis, name them with --wide." in failed.stderr
    write(tmp_path / "one.csv", [("county", "people"), ("A", 1)])
    assert b"--wide" not in run("plan", "one.csv", "--keep-total", "--epsilon", "1").stderr

"""What ``keepsum init`` notices, one thing after the other: an accepted answer stays, whatever comes next."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

END = ["total", "y", "1", "n", "n", "out/"]  # totals, per person, epsilon, categories, negative counts, output


def spec_in(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "keepsum.toml").read_text(encoding="utf-8"))


def write(path: Path, header: str, *rows: str) -> None:
    path.write_text("\n".join([header, *rows, ""]))


def test_dropped_rows_stay_dropped_where_labels_have_two_spellings(
    answered: Callable[..., Any], tmp_path: Path
) -> None:
    rows = [f"{town},{age},5" for town in ("Altstadt", "Hafen") for age in ("young", "old")]
    write(tmp_path / "cases.csv", "town,age,n", *rows, "altstadt ,middle,3", "Gesamt,alle Altersgruppen,23")
    answers = ["", "--categories 'town=Altstadt,Hafen,\"altstadt \"'", *END]
    done = answered(answers, "cases.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert said.count("town=Gesamt") == 1  # neither asked again nor told again
    assert "Labels 'Altstadt' and 'altstadt ' in column 'town' differ only in spaces or case" in said
    assert spec_in(tmp_path)["source"]["drop_rows"] == {"town": ["Gesamt"]}


def test_a_nesting_stays_where_labels_have_two_spellings(answered: Callable[..., Any], tmp_path: Path) -> None:
    write(tmp_path / "x.csv", "state,county,n", "IL,Cook,1", "IL,Kane,2", "WI,Lake,3", "WI,Dane,4", "il,Will,5")
    done = answered(["", "--categories 'state=IL,WI,il'", *END], "x.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"Is county within state?") == 1
    assert b"Is every combination" not in done.stderr
    assert spec_in(tmp_path)["axes"]["within"] == {"county": "state"}


def test_totals_of_one_column_are_dropped_together(
    run: Callable[..., Any], answered: Callable[..., Any], tmp_path: Path
) -> None:
    """Some are noticed only once the nesting is declared."""
    rows = ["Illinois,Cook,1", "Illinois,Kane,2", "Illinois,All Illinois,3", "Iowa,Polk,3", "Iowa,Linn,4"]
    write(tmp_path / "x.csv", "state,county,n", *rows, "Iowa,Total,7")
    done = answered(["", "", "", *END], "x.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"county=Total") == 1
    assert spec_in(tmp_path)["source"]["drop_rows"] == {"county": ["Total", "All Illinois"]}
    assert run("release", "--yes").returncode == 0


# -- the way on -------------------------------------------------------------------------------------


def test_enter_is_told_what_is_wrong_and_how_to_leave(answered: Callable[..., Any], tmp_path: Path) -> None:
    write(tmp_path / "x.csv", "town,n", "Lake,1", "lake ,2", "Rome,3")
    done = answered([""], "x.csv", "--count", "n")
    assert done.returncode != 0
    said = done.stderr.decode()
    assert said.count("differ only in spaces or case") == 2
    assert "Type the options, as in a shell. Ctrl-C leaves, and nothing is written." in said
    done = answered(["", "x.csv"])
    assert b"An answer is needed. Ctrl-C leaves, and nothing is written." in done.stderr


def test_a_single_cell_is_told_before_totals_are_asked_for(answered: Callable[..., Any], tmp_path: Path) -> None:
    """No total could be kept of it, so the question would have no answer."""
    write(tmp_path / "x.csv", "town", "Rome")
    answers = ["town", "Rome", "", "n", "--categories town=Rome,Utica", "total", "y", "1", "n", "out/"]
    done = answered(answers, "x.csv")
    assert done.returncode == 0, done.stderr
    assert b"A table must have more than one cell, because any kept total determines a single one." in done.stderr
    assert spec_in(tmp_path)["axes"]["categories"] == {"town": ["Rome", "Utica"]}

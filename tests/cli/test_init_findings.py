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

"""What ``keepsum init`` asks about the values of records, because nothing is inferred from them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDS = "state,county,sex,born,age\nIL,Cook,f,1999-01-02,20\nWI,,,2001-02-03,-1\n"
END = ["n", "total", "1", "n", "out/"]  # one record per person, totals, epsilon, negative, output


def spec_in(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "keepsum.toml").read_text(encoding="utf-8"))


def test_a_label_for_missing_values(run: Callable[..., Any], answered: Callable[..., Any], tmp_path: Path) -> None:
    """It becomes a category, of a nested column within each parent; bins have it anyway."""
    (tmp_path / "x.csv").write_text(RECORDS)
    answers = [
        "y",
        "state,county,sex,age",
        "county:state",
        "IL,WI",
        "",
        "Cook",
        "Dane",
        "not known",
        "f,m",
        "a=b",
        "unknown",
    ]
    answers += ["bins 0,18", "y", "y", "0-17", "no age", *END]
    done = answered(answers, "x.csv")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "Can values of sex be missing? Then a label for them, such as unknown (Enter: none is missing)" in said
    assert "must not contain an equals sign, got 'a=b'" in said
    assert "The category of missing values of 'age' must not be one of its bins" in said
    written = spec_in(tmp_path)
    assert written["records"]["missing"] == {"county": "not known", "sex": "unknown", "age": "no age"}
    assert written["axes"]["categories"] == {
        "state": ["IL", "WI"],
        "county": {"IL": ["Cook", "not known"], "WI": ["Dane", "not known"]},
        "sex": ["f", "m", "unknown"],
    }
    assert run("release", "--yes").returncode == 0


def test_a_label_that_is_a_category_already(answered: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(RECORDS)
    (tmp_path / "c.toml").write_text('sex = ["f", "m", "x"]\n')
    done = answered(["y", "sex", "f,m,x", "x", *END], "x.csv")
    assert done.returncode == 0, done.stderr
    assert spec_in(tmp_path)["axes"]["categories"] == {"sex": ["f", "m", "x"]}
    done = answered(["y", "sex", "file c.toml", "unknown", "x", *END], "x.csv", "--force")
    assert done.returncode == 0, done.stderr
    assert b"The category of missing values of 'sex' must be one of its categories" in done.stderr
    assert spec_in(tmp_path)["records"]["missing"] == {"sex": "x"}


def test_open_ends_of_bins(run: Callable[..., Any], answered: Callable[..., Any], tmp_path: Path) -> None:
    """Asked at each end that the answer leaves closed; one edge will do if an end is open."""
    (tmp_path / "x.csv").write_text(RECORDS)
    answers = ["y", "born,age", "", "bins 2000-01-01", "n", "n", "bins 2000-01-01", "y", "y", ""]
    answers += ["bins ,18,65", "n", "", *END]
    done = answered(answers, "x.csv")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "Can values of born be before 2000-01-01? [y/n]" in said
    assert "Can values of born be 2000-01-01 or later? [y/n]" in said
    assert "Can values of age be below" not in said
    assert "Can values of age be 65 or above? [y/n]" in said
    assert spec_in(tmp_path)["records"]["bins"] == {"born": ["", "2000-01-01", ""], "age": ["", "18", "65"]}
    assert run("release", "--yes").returncode == 0


def test_bins_and_nesting_that_do_not_go_together(answered: Callable[..., Any], tmp_path: Path) -> None:
    """An answer is refused; of options it is told, before any totals are asked for."""
    (tmp_path / "x.csv").write_text(RECORDS)
    done = answered(["y", "state,county", "county:state", "bins 0,1", "IL,WI"], "x.csv")
    assert b"must have categories, not bins, because another one is within it" in done.stderr
    assert b"Can values of state be missing?" in done.stderr
    options = ["--by", "county", "--within", "county:state", "--bins", "state=0,1,"]
    done = answered(["", "n"], "x.csv", *options)
    assert b"must not be nested, because it is cut into bins" in done.stderr
    assert b"Options to add" in done.stderr


def test_each_column_is_counted_by_once(answered: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(RECORDS)
    done = answered(["y", "sex,sex", "sex", "f,m", "", *END], "x.csv")
    assert done.returncode == 0, done.stderr
    assert b"The answer must name each once, got 'sex,sex'." in done.stderr
    assert spec_in(tmp_path)["records"]["by"] == ["sex"]


def test_several_records_of_persons_whom_no_column_identifies(answered: Callable[..., Any], tmp_path: Path) -> None:
    """Then nothing is claimed per person; a bound that options give is not asked for again."""
    (tmp_path / "one.csv").write_text("county,person\nA,x\nB,x\n")
    by = ["one.csv", "--by", "county", "--categories", "county=A,B"]
    done = answered(["y", "-", "total", "1", "n", "out/"], *by)
    assert done.returncode == 0, done.stderr
    assert spec_in(tmp_path)["records"] == {"by": ["county"]}
    assert b"Epsilon, the privacy loss of one record" in done.stderr
    done = answered(["-", "person", "total", "1", "n", "out/"], *by, "--max-rows-per-unit", "2", "--force")
    assert done.returncode == 0, done.stderr
    assert spec_in(tmp_path)["records"] == {"by": ["county"], "unit": "person", "max_rows_per_unit": 2}
    done = answered(["total", "1", "n", "out/"], *by, "--max-rows-per-unit", "1", "--force")
    assert done.returncode == 0, done.stderr
    assert b"several records" not in done.stderr

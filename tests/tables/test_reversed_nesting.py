"""States within counties: a nesting declared the wrong way round is noticed by labels alone."""

from __future__ import annotations

import warnings

import polars as pl
import pytest

import keepsum as ks

STATES, COUNTIES = ["IL", "IL", "WI", "WI"], ["Cook", "Lake", "Dane", "Rock"]


def table(within: dict[str, str], **columns) -> ks.Table:
    frame = pl.DataFrame({"state": STATES, "county": COUNTIES, "n": [8675309, 2, 3, 4]} | columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ks.CategoriesFromDataWarning)
        return ks.Table.from_frame(frame, count="n", within=within)


def test_the_wrong_way_round_is_refused_and_the_right_one_is_named():
    with pytest.raises(ks.DataError, match="Each 'county' has one 'state' in the data, as if 'state' were") as caught:
        table({"state": "county"})
    assert "Pass within={'county': 'state'}, or declare" in str(caught.value)
    assert "8675309" not in str(caught.value)
    assert table({"county": "state"}).domain.size == 4


def test_numbered_categories_of_many_parents_are_nested_rightly():
    """Fewer labels than parents, but parents with several of them."""
    made = table({"state": "county"}, state=["1", "2", "1", "1"], county=["A", "A", "B", "C"])
    assert made.domain.size == 4


def test_one_category_everywhere_says_nothing():
    assert table({"state": "county"}, state=["all-day"] * 4).domain.size == 4


def test_declared_categories_are_meant():
    declared = {"county": COUNTIES, "state": list(zip(COUNTIES, STATES, strict=True))}
    frame = pl.DataFrame({"state": STATES, "county": COUNTIES, "n": [1, 2, 3, 4]})
    made = ks.Table.from_frame(frame, count="n", within={"state": "county"}, domain=declared)
    assert made.domain.size == 4


def test_the_shell_names_its_option(tmp_path, capsys):
    from keepsum.cli.app import run

    rows = [f"{state},{county},5" for state, county in zip(STATES, COUNTIES, strict=True)]
    (tmp_path / "counts.csv").write_text("\n".join(["state,county,n", *rows]) + "\n")
    options = ["--count", "n", "--within", "state:county", "--keep-total", "--epsilon", "1"]
    assert run(["plan", str(tmp_path / "counts.csv"), *options]) == 2
    assert "Pass --within county:state, or declare" in " ".join(capsys.readouterr().err.split())

"""Labels that differ only in spaces or case stop a table, unless the categories are declared."""

from __future__ import annotations

import polars as pl
import pytest

import keepsum as ks


def table(columns: dict, **declared) -> ks.Table:
    return ks.Table.from_frame(pl.DataFrame(columns), **({} if "wide" in declared else {"count": "n"}), **declared)


@pytest.mark.parametrize("other", ["Lake ", "lake", " LAKE", "Lake\u00a0"])
def test_a_category_in_two_spellings_is_refused(other):
    columns = {"county": ["Cook", "Lake", other], "n": [1, 2, 8675309]}
    with pytest.raises(ks.DataError, match="in column 'county' differ only in spaces or case") as caught:
        table(columns)
    message = str(caught.value)
    assert "'Lake' and " in message
    assert "domain=" in message
    assert "8675309" not in message


def test_declared_categories_are_meant():
    columns = {"county": ["Lake", "lake"], "n": [1, 2]}
    assert table(columns, domain={"county": ["Lake", "lake"]}).counts.tolist() == [1, 2]


def test_other_labels_and_numbers_are_not_near():
    with pytest.warns(ks.CategoriesFromDataWarning):
        made = table({"county": ["Lake", "Lakes", "La ke"], "year": [1, 2, 3], "n": [1, 2, 3]}, axes=["county"])
    assert made.domain.size == 3


def test_a_nested_category_is_compared_with_those_of_its_parent():
    """Lake in Illinois and lake in Wisconsin are two counties in any spelling."""
    apart = {"state": ["IL", "IL", "WI", "WI"], "county": ["Cook", "Lake", "lake", "Dane"], "n": [1, 2, 3, 4]}
    with pytest.warns(ks.CategoriesFromDataWarning):
        assert table(apart, within={"county": "state"}).domain.size == 4
    with pytest.raises(ks.DataError, match="Labels 'Lake' and 'lake' in column 'county'"):
        table(apart | {"state": ["IL", "IL", "IL", "WI"]}, within={"county": "state"})
    with pytest.raises(ks.DataError, match="Labels 'IL' and 'il' in column 'state'"):
        table(apart | {"state": ["IL", "il", "WI", "WI"]}, within={"county": "state"})


def test_columns_of_a_wide_table_are_compared_too():
    with pytest.raises(ks.DataError, match="Labels 'white' and 'White' in column 'race'"):
        table({"county": ["a", "b"], "white": [1, 2], "White": [3, 4]}, wide="race", axes=["county"])


def test_the_shell_names_its_options(tmp_path, capsys):
    from keepsum.cli.app import run

    file = tmp_path / "counts.csv"
    file.write_text("county,n\nLake,1\nLake ,2\nCook,3\n")
    assert run(["plan", str(file), "--count", "n", "--keep-total", "--epsilon", "1"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "Labels 'Lake' and 'Lake ' in column 'county' differ only in spaces or case" in error
    assert "--categories or --domain" in error

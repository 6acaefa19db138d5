"""The tables of databases and the columns of any source, as ``keepsum init`` lists them."""

from __future__ import annotations

from typing import Any

import pytest

from keepsum.sources.headers import header_in, is_database, table_names
from keepsum.sources.reading import FileForm

from .conftest import PEOPLE

FILES = ["csv", "semicolons", "csv.gz", "csv.zst", "pattern", "parquet", "folder"]
DATABASES = ["duckdb", "sqlite", "sqlite address", "postgres"]


@pytest.mark.parametrize("records", [*FILES, *DATABASES], indirect=True)
def test_the_columns_of_every_source(records: dict[str, Any]) -> None:
    assert header_in(str(records["source"]), records.get("table"), FileForm()).names == list(PEOPLE.columns)
    assert is_database(str(records["source"])) == ("table" in records)


@pytest.mark.parametrize("records", DATABASES, indirect=True)
def test_the_tables_of_every_database(records: dict[str, Any]) -> None:
    assert "people" in table_names(str(records["source"]))

"""Records on the command line: ``--by county,age --bins age=0,18,65, --missing race=unknown``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keepsum as ks
from keepsum._memory import BYTES_A_CELL, check_room
from keepsum.errors import InputError
from keepsum.sources.records.databases import is_address

OF_RECORDS = ("bins", "missing", "unit", "max_rows_per_unit", "database_table")
OF_COUNTS = (
    *("axes", "drop", "drop_rows", "carry", "wide", "dense", "keep_order"),
    *("sheet", "encoding", "structure", "flag"),
)


@dataclass(frozen=True)
class RecordOptions:
    """What the options declare about records; see ``ks.tabulate``."""

    by: Sequence[str]
    within: Mapping[str, str] | None
    categories: Mapping[str, Any] | None
    bins: Mapping[str, Sequence[str]]
    missing: Mapping[str, str]
    unit: str | None
    max_rows_per_unit: int | None
    table: str | None
    count: str

    def declared(self) -> dict[str, Any]:
        """The arguments that declare the cells."""
        return {
            "within": self.within,
            "bins": self.bins,
            "missing": self.missing,
            "unit": self.unit,
            "max_rows_per_unit": self.max_rows_per_unit,
        }


def count_records(options: RecordOptions, source: str | None) -> ks.Table:
    """The table of counts of records."""
    if source is None:
        raise InputError("Records must be given: keepsum release people.parquet --by county,sex ...")
    if source == "-":
        raise InputError("Records must be in a file or a database, got standard input. Save them as a file first.")
    return ks.tabulate(
        source, options.by, options.categories, **options.declared(), table=options.table, count=options.count
    )


def empty_table(options: RecordOptions) -> ks.Table:
    """The declared cells without any record: a plan depends on nothing else."""
    import numpy as np

    from keepsum.sources.records.declaring import declare_cells

    cells = declare_cells(options.by, options.categories, **options.declared())
    check_room(cells.domain.size, f"A table of {cells.domain.size:,} cells", BYTES_A_CELL)
    return ks.Table(cells.domain, np.zeros(cells.domain.size, dtype=np.int64), options.count, records=cells.records)


def refuse_with_by(declared: Any) -> None:
    """Refuse options that describe a file of counts."""
    given = [name for name in OF_COUNTS if getattr(declared, name)]
    given += ["count"] if declared.count is not None else []
    if given:
        raise InputError(f"Option {_option(given[0])} must not be combined with --by, which counts records.")


def refuse_without_by(declared: Any) -> None:
    """Refuse options that describe records, and addresses of databases."""
    given = [name for name in OF_RECORDS if getattr(declared, name) not in (None, [])]
    if given:
        raise InputError(f"Option {_option(given[0])} requires --by, the columns to count records by.")
    if declared.table is not None and is_address(declared.table):
        raise InputError("A database must be read with --by, the columns to count its records by.")


def _option(name: str) -> str:
    return "--table" if name == "database_table" else f"--{name.replace('_', '-')}"


def parse_bins(texts: Iterable[str]) -> dict[str, list[str]]:
    """The edges of columns, as text; nothing between commas is an open end.

    >>> parse_bins(["age=0,18,65,", "born=,2000-01-01,"])
    {'age': ['0', '18', '65', ''], 'born': ['', '2000-01-01', '']}
    """
    return {column: edges.split(",") for column, edges in _pairs(texts, "bins", "age=0,18,65,").items()}


def parse_missing(texts: Iterable[str]) -> dict[str, str]:
    """The category of missing values of columns.

    >>> parse_missing(["race=unknown"])
    {'race': 'unknown'}
    """
    return _pairs(texts, "missing", "race=unknown")


def _pairs(texts: Iterable[str], option: str, example: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        column, equals, value = text.rpartition("=")
        if not (column and equals and value):
            raise InputError(f"Option --{option} must be such as {example}, got {text!r}.")
        if pairs.setdefault(column, value) != value:
            raise InputError(f"Option --{option} must be given once for {column!r}, got it twice.")
    return pairs

"""``ks.tabulate``: a table from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keepsum._arguments import check_flag, check_text
from keepsum.sources.records.counting import count_records
from keepsum.sources.records.declaring import declare_cells
from keepsum.tables.domain import Domain
from keepsum.tables.table import Table, quoted_table


def tabulate(
    source: Any,
    by: str | Sequence[str],
    domain: Domain | Mapping[str, Any] | None = None,
    *,
    within: Mapping[str, str] | None = None,
    bins: Mapping[str, Any] | None = None,
    missing: Mapping[str, Any] | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    table: str | None = None,
    count: str = "count",
    quote_formulas: bool = False,
) -> Table:
    """Count records (one row per person, or several) into a table.

    The records are grouped where they are, by DuckDB in this process or by their own database, and only read. The cells
    come from what you declare, never from the data: a cell without records has the count 0, and a record that belongs
    to no declared cell is an error that names the column.

    Parameters
    ----------
    source
        A CSV or Parquet file, a list, pattern or folder of them; a DuckDB or SQLite file; ``sqlite:///people.db`` or
        ``postgres://user@host/database`` (the password comes from PGPASSWORD or a password file); a pandas, polars or
        pyarrow frame; or a table of ibis.
    by
        The columns to count by: the axes of the table.
    domain
        The categories of every column that is not cut into bins: a ``Domain``, or a mapping. Values of CSV files are
        text; whole numbers match their digits, dates match 2020-01-31, and booleans ``"true"`` and ``"false"``.
    within
        The parent of each nested axis: ``{"county": "state"}``.
    bins
        The edges of columns of numbers or dates: ``{"age": [0, 18, 65, None]}`` has the categories 0-17, 18-64 and 65+.
    missing
        The category of missing values (null, empty or NaN) of a column: ``{"race": "unknown"}``. It must be declared;
        that of a column with bins is added as its last.
    unit, max_rows_per_unit
        The column that identifies a person by text or whole numbers, and how many records of each are counted at most:
        the first in the order of their labels and bins, so that totals of late labels lose most. A release then
        protects persons, and otherwise single records. ``max_rows_per_unit=1`` alone declares that every record is of
        another person.
    table
        The table of a database: ``"people"`` or ``"census.people"``.
    count
        The name of the column of counts.
    quote_formulas
        Put an apostrophe before labels that a spreadsheet would run as formulas; see :func:`keepsum.read_table`.

    Examples
    --------
    >>> import keepsum as ks, pyarrow as pa
    >>> people = pa.table({"sex": ["f", "m", "f"], "age": [3, 44, 17]})
    >>> ks.tabulate(people, by=["sex", "age"], domain={"sex": ["f", "m"]}, bins={"age": [0, 18, 65, None]})
    Table(sex 2, age 3: 6 cells, counts not shown)

    Raises
    ------
    DataError
        If the records cannot be read, or one of them belongs to no declared cell.

    Notes
    -----
    On two cores, ten million records take about 2 s from Parquet, 3 s with a unit of whole numbers, and 4 s from CSV,
    of which DuckDB's own grouping takes two thirds (``benchmarks/cases/records.py``). Which records of a unit are
    counted depends on the records of that unit alone, so that a change of one unit changes at most
    ``max_rows_per_unit`` counted records.
    """
    check_text(count, "The name of the count column")
    cells = declare_cells(
        by,
        domain,
        within=within,
        bins=bins,
        missing=missing,
        unit=unit,
        max_rows_per_unit=max_rows_per_unit,
    )
    quotes = check_flag(quote_formulas, "quote_formulas=")
    counted = count_records(source, cells, table, count)
    return quoted_table(counted) if quotes else counted

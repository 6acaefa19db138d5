"""How a table came to be: the form in which it was read, or the records from which it was counted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

# The form in which a table was read, so that a release can be written in the same form.
#
# Only the names and types of columns, the header and the end of the file are recorded: rows would reveal which cells
# have none.

INDEX = re.compile(r"__index_level_[0-9]+__")  # the column that pandas writes for an unnamed index


@dataclass(frozen=True)
class Frame:
    """A data frame of some library, with the types of its columns; the type of the count is not used."""

    backend: str
    columns: tuple[str, ...]
    dtypes: Mapping[str, Any]
    file: str | None = None  # the format of the file that it was read from
    wide: str | None = None  # the axis whose categories are columns


@dataclass(frozen=True)
class TextFile:
    """A text file of delimited values."""

    columns: tuple[str, ...]  # the columns in order
    # The separators of values and of lines.
    delimiter: str = ","
    newline: str = "\n"
    # How the file starts and ends.
    byte_order_mark: bool = False
    ends_with_newline: bool = True
    # The names in the header that are quoted, and the columns whose labels are to be quoted.
    quoted_names: frozenset[str] = frozenset()
    quoted_columns: frozenset[str] = frozenset()
    wide: str | None = None  # the axis whose categories are columns
    # Columns that have one value in all rows, such as the attributes of an SDMX-CSV file.
    constants: Mapping[str, str] = field(default_factory=dict)


Origin: TypeAlias = Frame | TextFile


# How a table was counted from records: whose they are, and how many of one unit were counted at most.

Subject: TypeAlias = Literal["person", "record"]
LARGEST_BOUND = 10**6  # records of one unit


@dataclass(frozen=True)
class Records:
    """What a table of counted records says about the people behind them.

    Examples
    --------
    >>> Records().changes, Records("person", 3).changes
    (1, 3)
    """

    # The column that identifies a person (or whatever unit is protected); None if no column does.
    unit: str | None = None
    # How many records of one unit were counted at most; None if that is not bounded, so that a guarantee is per record.
    # 1 without a unit is what the curator declared: every record is of another person.
    max_rows: int | None = None

    @property
    def changes(self) -> int:
        """How many records change at most when one unit does; 1 where the guarantee is per record."""
        return 1 if self.max_rows is None else self.max_rows

    @property
    def one_each(self) -> bool:
        """Whether the curator declared that every record is of another person."""
        return self.unit is None and self.max_rows == 1

    @property
    def truncated(self) -> bool:
        """Whether records of a unit may have been left out: those that come last in the order of the columns."""
        return self.max_rows is not None and not self.one_each


def changes_of(records: Records | None) -> int:
    """How many records change at most when one unit does; in a table of counts one person is one count."""
    return 1 if records is None else records.changes


def subject_of(records: Records | None) -> Subject:
    """Whom a guarantee concerns: a record where a person may have any number of them."""
    return "record" if records is not None and records.max_rows is None else "person"

"""The form in which a table was read, so that a release can be written in the same form.

Only the names and types of columns, the header and the end of the file are recorded: rows would reveal which cells have
none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

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
class Text:
    """A text file of delimited values.

    Attributes
    ----------
    columns
        The columns in order.
    delimiter, newline
        The separators of values and of lines.
    byte_order_mark, ends_with_newline
        How the file starts and ends.
    quoted_names, quoted_columns
        The names in the header that are quoted, and the columns whose labels are to be quoted.
    wide
        The axis whose categories are columns.
    constants
        Columns that have one value in all rows, such as the attributes of an SDMX-CSV file.
    """

    columns: tuple[str, ...]
    delimiter: str = ","
    newline: str = "\n"
    byte_order_mark: bool = False
    ends_with_newline: bool = True
    quoted_names: frozenset[str] = frozenset()
    quoted_columns: frozenset[str] = frozenset()
    wide: str | None = None
    constants: Mapping[str, str] = field(default_factory=dict)


Origin: TypeAlias = Frame | Text

"""What a table came as, so that a released one can be given back in the same shape.

Only the shape is remembered, and only as far as names and types of columns, the header and the end of the file tell it:
rows would tell which cells have none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

INDEX = re.compile(r"__index_level_[0-9]+__")  # what pandas calls an index without a name


@dataclass(frozen=True)
class Frame:
    """A data frame of some library, with the types of its columns; that of the count is not used again."""

    backend: str
    columns: tuple[str, ...]
    dtypes: Mapping[str, Any]
    file: str | None = None  # the kind of file that it was read from


@dataclass(frozen=True)
class Text:
    """A text file of values between delimiters.

    Attributes
    ----------
    columns
        The columns in their order.
    delimiter, newline
        What stands between values, and at the end of a line.
    byte_order_mark, ends_with_newline
        How the file starts and ends.
    quoted_names, quoted_columns
        Which names of the header stand in quotes, and which columns of labels below it are to.
    """

    columns: tuple[str, ...]
    delimiter: str = ","
    newline: str = "\n"
    byte_order_mark: bool = False
    ends_with_newline: bool = True
    quoted_names: frozenset[str] = frozenset()
    quoted_columns: frozenset[str] = frozenset()


Origin: TypeAlias = Frame | Text

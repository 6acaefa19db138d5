"""Errors of drivers in our own words.

What a driver says may contain data, a path or a password. None of it is passed on, not even as the context of our
error: it only decides which of the sentences below is said.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import TypeVar

from keepsum.errors import DataError, KeepsumError

T = TypeVar("T")
MEMORY = "counting the records needs more memory than there is, and nothing is written to disk. Count fewer columns"
NO_SUCH_TABLE = "has no such table"

# The name of the error's class, what its text contains, and our words for it; the first that fits is said.
REASONS = [
    (r"OutOfMemory", r"", MEMORY),
    (r"", r"[Cc]onnection refused|[Tt]imeout expired|socket.*No such file|server closed", "no server answers there"),
    (r"", r"translate host name|resolve host|Name or service not known", "there is no such host"),
    (r"", r"password|authentication", "the server does not let this user in. Set PGPASSWORD, or use a password file"),
    (r"", r'database "[^"]*" does not exist', "the server has no such database"),
    (r"", r'role "[^"]*" does not exist', "the server has no such user"),
    (r"InsufficientPrivilege", r"", "this user may not read it"),
    (r"Duplicate", r"", "two of its columns have the same name. Rename one"),
    (r"TableNotFound|UndefinedTable|CatalogException|InvalidSchemaName", r"", f"it {NO_SUCH_TABLE}. Check table="),
    (r"", r"no such table|Table with name", f"it {NO_SUCH_TABLE}. Check table="),
    (
        r"",
        r"not a database|not a valid DuckDB|read enough bytes|file is encrypted|file is malformed",
        "it is not such a database",
    ),
    (r"", r"database is locked|lock on file|Conflicting lock", "another process is writing to it. Try again later"),
    (r"", r"[Pp]ermission denied|unable to open", "it cannot be opened"),
    (r"", r"unicode|utf-?8|[Ee]ncoding|byte sequence", "it is not UTF-8 text. Save it as UTF-8"),
    (
        r"",
        r"CSV|Expected Number of Columns",
        "it is not well-formed CSV with one kind of line ends, and as many values in every row as in the header",
    ),
    (r"", r"[Pp]arquet|thrift|snappy", "it is not a whole Parquet file"),
    (r"ArrowInvalid|ArrowTypeError", r"", "a column has values of several types. Convert it to text first"),
    (r"", r"unbound", "it is bound to no database. Take the table from a connection"),
    (r"UnsupportedBackend|OperationNotDefined|UnsupportedOperation", r"", "its database cannot do what this needs"),
]


def attempt(action: Callable[[], T], what: str) -> T:
    """Do what a driver does, or raise an error that says in our own words what failed.

    Warnings of drivers are about their own use of each other, and may show data as well: they are not passed on either.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return action()
    except (KeepsumError, MemoryError):
        raise
    except Exception as error:
        reason = _reason(type(error).__name__, str(error))
    raise DataError(f"{what} must be readable, but {reason}.")


def _reason(kind: str, text: str) -> str:
    """What went wrong, for a driver's error of this class and with this text.

    >>> _reason("OperationalError", 'connection to server at "10.0.0.1" failed: Connection refused')
    'no server answers there'
    >>> _reason("ConversionException", "Could not convert 'Alice' to INT64")
    'reading it failed'
    """
    for named, pattern, words in REASONS:
        if re.search(named, kind) and re.search(pattern, text):
            return words
    return "reading it failed"

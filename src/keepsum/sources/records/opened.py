"""Records that are open: what is asked of them, and how they are closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keepsum.sources.records.failures import attempt
from keepsum.sources.records.running import memory_setting, run_on


def duckdb_settings() -> dict[str, str]:
    """No extension is downloaded or loaded, nothing is written to disk, and some memory is left."""
    return {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "temp_directory": "",
        "preserve_insertion_order": "false",
        **memory_setting(),
    }


@dataclass(frozen=True)
class OpenRecords:
    """Records that can be counted.

    Attributes
    ----------
    table
        The records as a table of ibis.
    dialect
        Where they are: ``"files"`` (DuckDB in this process), or the name of a database of ibis.
    name
        What they are called in a message.
    run
        Evaluate an expression over them, as an Arrow table.
    close
        Close them.
    """

    table: Any
    dialect: str
    name: str
    run: Callable[[Any], Any]
    close: Callable[[], None]


def opened(backend: Any, find: Callable[[], Any], dialect: str, name: str) -> OpenRecords:
    """The records of a connection, which is closed if they are not there."""
    try:
        records = attempt(find, name)
    except BaseException:
        backend.disconnect()
        raise
    return OpenRecords(records, dialect, name, run_on(backend, name), backend.disconnect)

"""What users hold: an object of the public face around the plain record that the layers below work with."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

Record = TypeVar("Record")


class Holding(Generic[Record]):
    """An object of the public face, which holds a record of another name and shows what users need of it."""

    _record: Record


def record_in(held: Any, kind: type[Any]) -> Any:
    """The record of this kind that users gave in an object of the public face; anything else as it was given."""
    record = held._record if isinstance(held, Holding) else held
    return record if isinstance(record, kind) else held

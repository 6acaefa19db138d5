"""How a table was counted from records: whose they are, and how many of one unit were counted at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Subject: TypeAlias = Literal["person", "record"]
LARGEST_BOUND = 10**6  # records of one unit


@dataclass(frozen=True)
class Records:
    """What a table of counted records says about the people behind them.

    Attributes
    ----------
    unit
        The column that identifies a person (or whatever unit is protected); None if no column does.
    max_rows
        How many records of one unit were counted at most; None if that is not bounded, so that a guarantee is per
        record. 1 without a unit is what the curator declared: every record is of another person.

    Examples
    --------
    >>> Records().changes, Records("person", 3).changes
    (1, 3)
    """

    unit: str | None = None
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

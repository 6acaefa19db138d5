"""A table after its release: its counts are published, may be negative, and are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from keepsum._arrays import IntArray
from keepsum.tables.carried import Carried
from keepsum.tables.counted import check_counted
from keepsum.tables.domain import Domain
from keepsum.tables.first_rows import FirstRows
from keepsum.tables.frames import columns_of, frame_of
from keepsum.tables.origins import Origin


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedTable:
    """Published counts over a domain, as a release or a file of one has them.

    Not a ``Table``, whose counts are confidential: it cannot be released again by mistake.

    Attributes
    ----------
    domain, counts
        The cells, and the released count of each.
    count
        The name of the column of counts.
    origin, rows
        What the table came as, and the cell of each row if their order is public.
    carried
        Columns that follow from an axis.
    """

    domain: Domain
    counts: IntArray
    count: str = "count"
    origin: Origin | None = None
    rows: IntArray | None = None
    carried: tuple[Carried, ...] = ()

    def __post_init__(self) -> None:
        check_counted(self)
        self.counts.setflags(write=False)

    def to_dict(self) -> dict[str, list[Any]]:
        """The labels and the counts of every cell, column by column."""
        return columns_of(self)

    def to_frame(self, backend: str | None = None) -> Any:
        """All cells and counts as a data frame of the caller's own kind, or of the kind named.

        Axes have the types that they came with, where these have room for all categories; counts are 64-bit integers.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; needed if the table did not come from a frame.
        """
        return frame_of(self, backend)

    def __repr__(self) -> str:
        return f"ReleasedTable({repr(self.domain)[7:-1]})\n{FirstRows.of(self).as_text()}"

    def _repr_html_(self) -> str:
        return FirstRows.of(self).as_html()

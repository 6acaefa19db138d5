"""A file in memory: it has a name for messages and its contents, and no place on disk."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Upload:
    """A file that was handed over as bytes; wherever a table or records are read, it stands for a path."""

    name: str
    data: bytes = field(repr=False)

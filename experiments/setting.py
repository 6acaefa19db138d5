"""The input and the output of every experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.cache import Cache
from experiments.claims import Claim


@dataclass(frozen=True)
class Setting:
    """The output folder, the amount to run, and the data to read.

    Attributes
    ----------
    out
        The folder of figures, tables and ``results.md``.
    quick
        Fewer pairs, steps and draws: to see that everything runs; the numbers mean little.
    counties, das
        Files of the Census Bureau's counties and of its disclosure avoidance system, or None.
    cache
        The cache of slow steps.
    """

    out: Path
    quick: bool
    cache: Cache
    counties: Path | None = None
    das: Path | None = None

    def scaled(self, full: int, quick: int) -> int:
        """One of two sizes, for a full or a quick run."""
        return quick if self.quick else full


@dataclass
class Section:
    """A part of ``results.md``: its claims, its text with tables and figures, and the tables by name."""

    title: str
    claims: list[Claim] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)

    def say(self, *paragraphs: str) -> None:
        """Add paragraphs."""
        self.text.extend(paragraphs)

    def table(self, name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table; it is also written to a CSV file with this name."""
        lines = [head, ["---"] * len(head), *rows]
        self.text.append("\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines))
        self.tables[name] = [list(head), *(list(row) for row in rows)]

    def figure(self, name: str, caption: str) -> None:
        """Add a figure with a caption, which is also its alternative text."""
        self.text.append(f"![{caption}]({name}.png)\n\n*{caption}* ([SVG]({name}.svg))")

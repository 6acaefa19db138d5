"""What is noticed in a file of counts and must be declared, as data, from which the refusing sentence is made here.

``keepsum init`` makes a question of the same data. No count is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from keepsum._text import MAX_NAMES, given, has_number, shown_name, shown_names
from keepsum.errors import DataError
from keepsum.tables.axes import Label

REST = (
    "Publish one along with the other with carry=, drop it with drop=, or pass dense=True if every combination is "
    "meant to be a cell."
)

WIDE = " If the counts are in several columns, one for each category of an axis, name them with wide=."


@dataclass(frozen=True)
class Totals:
    """Labels of an axis that look like totals; if ``are_columns``, they are columns of a wide table."""

    axis: str
    labels: tuple[Label, ...]
    are_columns: bool = False

    @property
    def are_nameable(self) -> bool:
        """Whether a message may list the labels."""
        return len(self.labels) <= MAX_NAMES and not any(has_number(str(label)) for label in self.labels)

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        totals = list(self.labels)
        if self.are_columns:
            return (
                f"Columns of a wide table must not be totals, which would be counted twice, but "
                f"{shown_names(totals) if self.are_nameable else 'some'} may be. Leave them out with "
                f"drop={totals if self.are_nameable else ''}, or declare the categories of {self.axis!r} with domain= "
                f"if they are among them."
            )
        labels = totals[0] if len(totals) == 1 else totals
        example = f"{{{self.axis!r}: {labels!r}}}" if self.are_nameable else ""
        return (
            f"Rows with the label {shown_name(totals[0])} in column {self.axis!r} look like totals, which would be "
            f"counted twice. Leave them out with drop_rows={example}, or declare the categories of {self.axis!r} with "
            f"domain= if it is one of them."
        )


@dataclass(frozen=True)
class BlankTotals:
    """A row with a missing label that by the label of another axis is a row of totals."""

    axis: str
    label: Label
    column: str
    row: str

    @property
    def totals(self) -> Totals:
        """The rows to leave out."""
        return Totals(self.axis, (self.label,))

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        example = f"{{{self.axis!r}: {self.label!r}}}" if self.totals.are_nameable else ""
        return (
            f"Category in {self.row}, column {self.column!r}, must not be missing, but the label "
            f"{shown_name(self.label)} in column {self.axis!r} says that this is a row of totals, which would be "
            f"counted twice. Leave it out with drop_rows={example}."
        )


@dataclass(frozen=True)
class Nested:
    """Axes each of which determines another, as if nested in it, with all nesting that is declared or looks so.

    If ``nearly``, most of its labels do: places in two states may have one name.
    """

    parents: tuple[tuple[str, str], ...]
    within: tuple[tuple[str, str], ...]
    nearly: bool = False

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        child, parent = self.parents[0]
        each = f"Most labels of {child!r} have" if self.nearly else f"Each {child!r} has"
        nest = f"within={dict(self.within)!r} to nest {'it' if len(self.parents) == 1 else 'them'}"
        return (
            f"{each} one {parent!r} in the data, as if nested in it, but they are declared as independent axes. Pass "
            f"{nest}, or dense=True if every combination is meant to be a cell."
        )


@dataclass(frozen=True)
class Same:
    """Two columns that determine each other; ``code`` is the one that rather names the other."""

    axis: str
    code: str
    columns: tuple[str, str]

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        first, second = self.columns
        return f"Columns {first!r} and {second!r} determine each other, so they are no independent axes. {REST}"


@dataclass(frozen=True)
class Following:
    """A column that follows from an axis which is nested in another already."""

    axis: str
    code: str

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        return f"Each {self.axis!r} has one {self.code!r} in the data, so it is no independent axis. {REST}"


@dataclass(frozen=True)
class Sparse:
    """So many cells that most have no row, over these axes."""

    cells: int
    axes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        return (
            f"Most of the {self.cells:,} combinations of categories have no row, and each would become a cell. Pass "
            f"dense=True if this is meant, name the parent of each nested axis with within=, or declare the categories "
            f"with domain=."
        )


@dataclass(frozen=True)
class Numbers:
    """Columns of numbers that nobody declared, which may be other measures, among all that would be axes.

    If several are of whole numbers, the table may be wide.
    """

    columns: tuple[str, ...]
    axes: tuple[str, ...]
    may_be_wide: bool = False

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        return (
            f"Column {self.columns[0]!r} must be declared, because it contains numbers: it may be another measure, and "
            f"an axis is published as it is. Choose the axes with axes=, declare its categories with domain=, publish "
            f"it along with an axis with carry=, or drop it with drop=.{WIDE if self.may_be_wide else ''}"
        )


@dataclass(frozen=True)
class Sheets:
    """A workbook of several sheets, none of which is named."""

    file: str
    names: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        choices = ", ".join(map(given, self.names)) if len(self.names) <= MAX_NAMES else f"{len(self.names):,} sheets"
        return f"File {self.file!r} must have one sheet, or the sheet must be named with sheet=, got {choices}."


@dataclass(frozen=True)
class Encoding:
    """A text file in an encoding that nobody named; ``likely`` is one that it may be in."""

    file: str
    likely: str
    has_nulls: bool = False

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        if self.has_nulls:
            return (
                f"File {self.file!r} must be text, but it contains null characters. If it is UTF-16, pass "
                f"encoding={self.likely!r}, else save the table as CSV in UTF-8."
            )
        return (
            f"File {self.file!r} must be UTF-8 text, but it is not. If it comes from Windows, pass "
            f"encoding={self.likely!r}, else name its encoding, or save it as UTF-8."
        )


Finding: TypeAlias = Totals | BlankTotals | Nested | Same | Following | Sparse | Numbers | Sheets | Encoding


class UndeclaredError(DataError):
    """Something in the data must be declared first; ``finding`` says what, if the error is as it was raised."""

    def __init__(self, message: str = "", finding: Finding | None = None) -> None:
        super().__init__(message)
        self.finding = finding


def refuse(finding: Finding | None) -> None:
    """Refuse what was found, if anything was."""
    if finding is not None:
        raise UndeclaredError(finding.sentence, finding)

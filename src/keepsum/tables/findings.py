"""What is noticed in a file of counts and must be declared, as data, from which the refusing sentence is made here.

``keepsum init`` makes a question of the same data. No count is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from keepsum._saying import Text, arg, the
from keepsum._text import MAX_NAMES, given, has_number, shown_name, shown_names
from keepsum.errors import DataError
from keepsum.tables.axes import Label

REST = (
    f"Publish one along with the other {arg.carry:with}, drop it {arg.drop:with}, or {arg.dense(True):pass} if every "
    "combination is meant to be a cell."
)

WIDE = f" If the counts are in several columns, one for each category of an axis, name them {arg.wide:with}."


class Noticed:
    """Something that is noticed in a file, and must be declared."""

    @property
    def sentence(self) -> Text:
        """What is wrong, and what to do; every face says it in its own words."""
        return Text(self._said())

    def _said(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class TotalLabels(Noticed):
    """Labels of an axis that look like totals; if ``are_columns``, they are columns of a wide table."""

    axis: str
    labels: tuple[Label, ...]
    are_columns: bool = False

    @property
    def are_nameable(self) -> bool:
        """Whether a message may list the labels."""
        return len(self.labels) <= MAX_NAMES and not any(has_number(str(label)) for label in self.labels)

    def _said(self) -> str:
        totals = list(self.labels)
        if self.are_columns:
            return (
                "Columns of a wide table must not be totals, which would be counted twice, but "
                f"{shown_names(totals) if self.are_nameable else 'some'} may be. Leave them out "
                f"{arg.drop(totals if self.are_nameable else None):with}, or declare the categories of {self.axis!r} "
                f"{arg.domain:with} if they are among them."
            )
        labels = totals[0] if len(totals) == 1 else totals
        example = {self.axis: labels} if self.are_nameable else None
        return (
            f"Rows with the label {shown_name(totals[0])} in column {the.column(self.axis)} look like totals, which "
            f"would be counted twice. Leave them out {arg.drop_rows(example):with}, or declare the categories of "
            f"{self.axis!r} {arg.domain:with} if it is one of them."
        )


@dataclass(frozen=True)
class BlankTotals(Noticed):
    """A row with a missing label that by the label of another axis is a row of totals."""

    axis: str
    label: Label
    column: str
    row: str

    @property
    def totals(self) -> TotalLabels:
        """The rows to leave out."""
        return TotalLabels(self.axis, (self.label,))

    def _said(self) -> str:
        example = {self.axis: self.label} if self.totals.are_nameable else None
        return (
            f"Category in {self.row}, column {the.column(self.column)}, must not be missing, but the label "
            f"{shown_name(self.label)} in column {the.column(self.axis)} says that this is a row of totals, which "
            f"would be counted twice. Leave it out {arg.drop_rows(example):with}."
        )


@dataclass(frozen=True)
class NestedAxes(Noticed):
    """Axes each of which determines another, as if nested in it, with all nesting that is declared or looks so.

    If ``nearly``, most of its labels do: places in two states may have one name.
    """

    parents: tuple[tuple[str, str], ...]
    within: tuple[tuple[str, str], ...]
    nearly: bool = False

    def _said(self) -> str:
        child, parent = self.parents[0]
        each = f"Most labels of {child!r} have" if self.nearly else f"Each {child!r} has"
        nest = f"{arg.within(dict(self.within)):Pass} to nest {'it' if len(self.parents) == 1 else 'them'}"
        return (
            f"{each} one {parent!r} in the data, as if nested in it, but they are declared as independent axes. "
            f"{nest}, or {arg.dense(True):pass} if every combination is meant to be a cell."
        )


@dataclass(frozen=True)
class Same(Noticed):
    """Two columns that determine each other; ``code`` is the one that rather names the other."""

    axis: str
    code: str
    columns: tuple[str, str]

    def _said(self) -> str:
        first, second = self.columns
        return f"Columns {first!r} and {second!r} determine each other, so they are no independent axes. {REST}"


@dataclass(frozen=True)
class Following(Noticed):
    """A column that follows from an axis which is nested in another already."""

    axis: str
    code: str

    def _said(self) -> str:
        return f"Each {self.axis!r} has one {self.code!r} in the data, so it is no independent axis. {REST}"


@dataclass(frozen=True)
class Sparse(Noticed):
    """So many cells that most have no row, over these axes."""

    cells: int
    axes: tuple[str, ...]

    def _said(self) -> str:
        return (
            f"Most of the {self.cells:,} combinations of categories have no row, and each would become a cell. "
            f"{arg.dense(True):Pass} if this is meant, name the parent of each nested axis {arg.within:with}, or "
            f"declare the categories {arg.domain:with}."
        )


@dataclass(frozen=True)
class Numbers(Noticed):
    """Columns of numbers that nobody declared, which may be other measures, among all that would be axes.

    If several are of whole numbers, the table may be wide.
    """

    columns: tuple[str, ...]
    axes: tuple[str, ...]
    may_be_wide: bool = False

    def _said(self) -> str:
        return (
            f"Column {the.column(self.columns[0])} must be declared, because it contains numbers: it may be another "
            f"measure, and an axis is published as it is. Choose the axes {arg.axes:with}, declare its categories "
            f"{arg.domain:with}, publish it along with an axis {arg.carry:with}, or drop it "
            f"{arg.drop:with}.{WIDE if self.may_be_wide else ''}"
        )


@dataclass(frozen=True)
class Sheets(Noticed):
    """A workbook of several sheets, none of which is named."""

    file: str
    names: tuple[str, ...]

    def _said(self) -> str:
        choices = ", ".join(map(given, self.names)) if len(self.names) <= MAX_NAMES else f"{len(self.names):,} sheets"
        return (
            f"File {the.file(self.file)} must have one sheet, or the sheet must be named {arg.sheet:with}, got "
            f"{choices}."
        )


@dataclass(frozen=True)
class Encoding(Noticed):
    """A text file in an encoding that nobody named; ``likely`` is one that it may be in."""

    file: str
    likely: str
    has_nulls: bool = False

    def _said(self) -> str:
        if self.has_nulls:
            return (
                f"File {the.file(self.file)} must be text, but it contains null characters. If it is UTF-16, "
                f"{arg.encoding(self.likely):pass}, else save the table as CSV in UTF-8."
            )
        return (
            f"File {the.file(self.file)} must be UTF-8 text, but it is not. If it comes from Windows, "
            f"{arg.encoding(self.likely):pass}, else name its encoding, or save it as UTF-8."
        )


Finding: TypeAlias = TotalLabels | BlankTotals | NestedAxes | Same | Following | Sparse | Numbers | Sheets | Encoding


class UndeclaredError(DataError):
    """Something in the data must be declared first; ``finding`` says what, if the error is as it was raised."""

    def __init__(self, message: str = "", finding: Finding | None = None) -> None:
        super().__init__(message)
        self.finding = finding


def refuse(finding: Finding | None) -> None:
    """Refuse what was found, if anything was."""
    if finding is not None:
        raise UndeclaredError(finding.sentence, finding)

"""The library speaks of calls and arguments; the page shows its own steps and fields instead.

What is noticed in a table is data, of which a sentence for the page is made here. In other messages, arguments and
options are replaced by what the page calls them; those that no phrase covers, by the name of their field.
"""

from __future__ import annotations

import re

from keepsum._text import given, shown_name
from keepsum.tables.findings import (
    BlankTotals,
    Encoding,
    Finding,
    Following,
    Nested,
    Numbers,
    Same,
    Sheets,
    Sparse,
    Totals,
)

COLUMNS, CATEGORIES = "under Columns", "under Categories"
# Phrases of messages, as the page says them; a value that follows an argument goes with it.
IN_PAGE = {
    "Pass count=COLUMN, or name the columns with wide= if several have counts": "Choose it, or use the shell if "
    "several columns have counts",
    "Pass count=COLUMN": "Choose it",
    "Name it with count=": "Choose it",
    "Name them with count=": "Choose it",
    "Include more columns with axes=, carry them along with carry=, or leave them out with drop=": "Say what they are "
    "under Columns",
    "Name another axis, or leave the column out with drop=": "Choose another one, or leave the column out",
    "Choose them with axes=": "Leave some out under Columns",
    "Name them with by=": "Choose them under Columns",
    "or add the column with by=": "or count by that column too",
    "Categories of axis": "Categories of",
    "Declare them with domain=, or cut numbers and dates with bins=": "Declare them under Categories: a list, or edges "
    "to cut numbers and dates at",
    "once: by bins= or by domain=": "once: by edges or by a list",
    "once, with --categories or --domain": "once",
    "Pass domain=": "Declare them under Categories",
    "Cut numbers and times into bins with bins=": "Cut numbers and times at edges, under Categories",
    "with domain=": CATEGORIES,
    "with bins=": "at edges, under Categories",
    "with missing=": CATEGORIES,
    "with drop=": COLUMNS,
    "with carry=": COLUMNS,
    "with within=": COLUMNS,
    "with axes=": COLUMNS,
    "Axes in within= must": "Columns within others must",
    "Pass encoding=": "Read it as ",
    "Leave out encoding=, or": "Read it as UTF-8, or",
    "Leave out encoding=": "Choose the file again",
    "Leave out sheet=": "Choose the file again",
    "with keep_order=True": "in the shell",
    "Option --epsilon must be given for Laplace noise. Pass --epsilon 0.25, for example": "Epsilon must be given. "
    "Enter a number such as 1",
    "Pass --keep, --keep-total, --keep-file, or --keep-nothing": "Tick it, or that there is none",
    "in the files of --keep-file": "under Sets of cells",
    "Argument focus= must": "Weights of a focus must",
    "Argument cell_share= must": "The weight of cells must",
    "Keys of focus= must": "Totals of a focus must",
    "in focus= must": "in the focus must",
    "with unit= and max_rows_per_unit=, with max_rows_per_unit=1 alone if every record is of another person": "with "
    "the column that says who a person is and the most records of each, or tick that every record is of another person",
    "unit= and max_rows_per_unit= must be given together: a guarantee per unit needs both. max_rows_per_unit=1 alone "
    "declares that every record is of another person.": "The column that says who a person is and the most records "
    "that are counted of each must be given together. Enter that number, or tick that every record is of "
    "another person.",
    "unit= and max_rows_per_unit= must": "Who a person is and the most records of each must",
    ", with per_unit": ", under Details of the step Privacy",
    "with per_unit": "under Details of the step Privacy",
    "measure it by plan.certify() and accept it with accept_delta=DELTA": "measure and accept it in the shell",
    "plan.pinned lists them": "the step Keep lists them",
    "accept each by its name in accept_pinned= (or 'all')": "accept them with the button",
    "plan.explain()": "the step Preview",
    "cross-classification with domain=": "cross-classification when the ledger is made",
    "ks.Ledger.create(path, budget=...)": "the shell",
    "ledger.check(against=certificates)": "the shell",
    "ledger.check()": "the shell",
    "ledger.set_budget": "the shell",
    "with of='largest'": "in the shell",
    ", or replace it with force=True": "",
    " Pass patient=True to do it, however long it takes.": "",
}
# What the page calls the arguments and options that no phrase covers.
FIELDS = {
    "count": "the column of counts",
    "drop": "the columns that are left out",
    "drop_rows": "the rows that are left out",
    "carry": "the columns published along with others",
    "within": "the columns within others",
    "axes": "the columns that the table is counted by",
    "names": "the columns that the table is counted by",
    "by": "the columns that records are counted by",
    "domain": "the categories",
    "categories": "the categories",
    "bins": "the edges",
    "missing": "the category of missing values",
    "unit": "who a person is",
    "max_rows_per_unit": "the most records of one person",
    "dense": "that every combination of categories can occur",
    "quote_formulas": "quoted formulas, in the shell",
    "keep_order": "the order of the rows",
    "sheet": "the sheet",
    "encoding": "the encoding",
    "wide": "several columns of counts, in the shell",
    "structure": "an SDMX structure, in the shell",
    "flags": "flags of an SDMX file, in the shell",
    "flag": "flags of an SDMX file, in the shell",
    "table": "a database, in the shell",
    "focus": "the focus",
    "focus_file": "the focus",
    "cell_share": "the weight of cells",
    "epsilon": "epsilon",
    "delta": "delta",
    "rho": "rho, in the shell",
    "sigma": "sigma, in the shell",
    "norm": "the noise",
    "mechanism": "the noise",
    "per_unit": "whose loss epsilon is",
    "keep_nothing": "that no total is kept",
    "accept_delta": "the button",
    "accept_pinned": "the button",
    "keep": "the kept totals",
    "keep_total": "the kept totals",
    "keep_file": "the kept totals",
    "dataset": "the dataset, when the page is started",
    "ledger": "the ledger, when the page is started",
    "force": "the shell",
    "patient": "the shell",
}
_VALUE = r"(?:\{[^{}]*\}|\[[^\[\]]*\]|\([^()]*\)|'[^']*'|True|[0-9][0-9.e-]*[0-9]|[0-9]|[A-Z]+\b)?"
_NAMES = "|".join(sorted(FIELDS, key=len, reverse=True))
_MECHANISM = r"\b(?:Laplace|Gaussian)(?:\.per_unit)?\((?:[^()]|\([^()]*\))*\)"  # stays as it is
_ARGUMENT = re.compile(rf"{_MECHANISM}|(?<![\w.'\"=(-])({_NAMES})={_VALUE}")
_OPTION = re.compile(r"(?:\bOption )?--([a-z]+(?:-[a-z]+)*)(?:[ =][0-9][0-9.]*\b|\s[A-Z]+\b)?")
_CALL = re.compile(r"ks\.(Laplace|Gaussian)(?:\.per_unit)?\(([^()]*)\)")
_ACCEPT = re.compile(rf"accept it with accept_delta={_VALUE}")
_DROPPED = re.compile(rf"with drop(?:_rows)?={_VALUE}")


def in_page_terms(message: str, finding: Finding | None = None) -> str:
    """A message with the steps and fields of the page instead of arguments and options.

    >>> in_page_terms("Categories of 'age' must be declared. Declare them with domain=, or cut numbers with bins=.")
    "Categories of 'age' must be declared. Declare them under Categories, or cut numbers at edges, under Categories."
    >>> in_page_terms("Gaussian noise is drawn exactly: ks.Gaussian(1, 1e-6).")
    'Gaussian noise is drawn exactly: Gaussian noise at the step Privacy.'
    """
    if finding is not None:
        return _noticed(finding)
    message = _CALL.sub(lambda call: _noise(call[1], call[2]), message)
    message = _ACCEPT.sub("accept it with the button", message)
    message = _DROPPED.sub(COLUMNS, message)
    for phrase, instead in IN_PAGE.items():
        message = message.replace(phrase, instead)
    message = _ARGUMENT.sub(lambda match: _named(match) if match[1] else match[0], message)
    return _OPTION.sub(lambda match: _field(match[1], at_start=match[0].startswith("Option")), message)


def _named(argument: re.Match[str]) -> str:
    name = FIELDS[argument[1]]
    is_first = not argument.start() or argument.string[: argument.start()].endswith(". ")
    return f"{name[0].upper()}{name[1:]}" if is_first else name


def _field(option: str, at_start: bool) -> str:
    name = FIELDS.get(option.replace("-", "_"), f"{option.replace('-', ' ')}, in the shell")
    return f"{name[0].upper()}{name[1:]}" if at_start else name


def _noise(kind: str, arguments: str) -> str:
    norm = "l2 " if kind == "Laplace" and "l2" in arguments else ""
    return f"{norm}{kind} noise at the step Privacy"


def _noticed(finding: Finding) -> str:
    """What was noticed, for a page that has a button for each way out."""
    match finding:
        case Totals() | BlankTotals():
            return _totals(finding)
        case Nested():
            child, parent = finding.parents[0]
            each = f"Most labels of {child!r} have" if finding.nearly else f"Each {child!r} has"
            return (
                f"{each} one {parent!r} in the data, as if nested in it. Nest it, and each {child!r} has cells in its "
                f"own {parent!r} alone."
            )
        case Same():
            first, second = finding.columns
            return f"Columns {first!r} and {second!r} determine each other, so one of them says nothing new."
        case Following():
            return f"Each {finding.axis!r} has one {finding.code!r} in the data, so {finding.code!r} says nothing new."
        case Sparse():
            return (
                f"Most of the {finding.cells:,} combinations of categories have no row, and each would become a cell. "
                f"Say under Columns which column is within which, or declare the categories."
            )
        case Numbers():
            wide = " Tables with the counts in several columns are for the shell." if finding.may_be_wide else ""
            return (
                f"Column {finding.columns[0]!r} contains numbers: it may be another measure, and whatever a table is "
                f"counted by is published as it is. What is it?{wide}"
            )
    return _file(finding)


def _totals(finding: Totals | BlankTotals) -> str:
    if isinstance(finding, BlankTotals):
        return (
            f"Column {finding.column!r} is empty in {finding.row}, and the label {shown_name(finding.label)} in column "
            f"{finding.axis!r} says that this is a row of totals, which would be counted twice."
        )
    if finding.are_columns:
        return "Some columns may be totals of the others, which would be counted twice. Leave them out?"
    return (
        f"Rows with the label {shown_name(finding.labels[0])} in column {finding.axis!r} look like totals, which would "
        f"be counted twice. Leave them out, or declare the categories of {finding.axis!r} if it is one of them."
    )


def _file(finding: Sheets | Encoding) -> str:
    if isinstance(finding, Sheets):
        return f"{finding.file!r} has several sheets. Which one is the table?"
    return (
        f"{finding.file!r} is text in another encoding than UTF-8. It may be {given(finding.likely)}; if not, save it "
        f"as UTF-8 and choose it again."
    )

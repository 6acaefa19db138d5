"""What ``keepsum init`` asks about the data: where they are, and what their columns mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from keepsum._text import are_showable
from keepsum.cli import questions
from keepsum.cli.asking_records import asked_about_records
from keepsum.cli.declaration import Declaration
from keepsum.cli.noticed import settle
from keepsum.cli.screen import note
from keepsum.cli.terms import in_shell_terms
from keepsum.errors import InputError, KeepsumError
from keepsum.specs.quoting import listed, pair
from keepsum.tables.findings import UndeclaredError

if TYPE_CHECKING:
    from keepsum.sources.headers import Header
    from keepsum.specs.count_columns import Likely

STANDARD_INPUT = "-"
RECORD = "-"  # the answer that no column has counts, because each row is a record


def check_source(source: str) -> None:
    """Refuse data that are not there, and an address with a password: it would be written to the spec."""
    from keepsum.sources.records.connecting import check_address
    from keepsum.sources.records.databases import is_address
    from keepsum.sources.records.files import find_files

    if source == STANDARD_INPUT:
        return
    if is_address(source):
        check_address(source)
        return
    if not source:
        raise InputError("The table must be the name of a file, got an empty name.")
    if not Path(source).is_file() and not Path(source).is_fifo():
        find_files(source)  # a folder or a pattern, or else refused


def asked_about_source(declared: Declaration) -> Declaration:
    """Ask where the data are, and what the columns mean, as far as no option says it."""
    if declared.table == STANDARD_INPUT:
        raise InputError("The table must be a file where questions are asked, got standard input. Name a file.")
    if declared.table is None:
        declared, header = questions.ask_until("Which file has the table?", None, _opening(declared))
    elif declared.count is not None or declared.wide is not None:
        return declared
    elif declared.by:  # then no more is needed from the data
        return asked_about_records(_in_database(declared), [])
    else:
        declared, header = _opened(declared)
    if declared.by:
        return asked_about_records(declared, header.names)
    if declared.count is not None or declared.wide is not None:
        return declared
    return _asked_about_columns(declared, header)


def _asked_about_columns(declared: Declaration, header: Header) -> Declaration:
    """Ask where the counts are, or how records are counted."""
    if are_showable(header.names):
        note(f"Columns: {questions.shown_list(header.names)}.")
    if _can_have_counts(declared, header.names):
        counted = _asked_about_counts(declared, header)
        if counted is not None:
            return counted
        if declared.sheet is not None or declared.encoding is not None or _is_workbook(str(declared.table)):
            raise InputError(
                "Records must be in a CSV file in UTF-8, a Parquet file or a database, and these are not. Save them so."
            )
    return asked_about_records(declared, header.names)


def _can_have_counts(declared: Declaration, columns: Sequence[str]) -> bool:
    """Whether rows may have counts: not in a database, and not in several files or a single column."""
    from keepsum.sources.headers import is_database

    return not is_database(str(declared.table)) and Path(str(declared.table)).is_file() and len(columns) > 1


def _asked_about_counts(declared: Declaration, header: Header) -> Declaration | None:
    """Ask where the counts are; None if each row is a record.

    A column is proposed only if its name says that it has counts, or if no other one has whole numbers.
    """
    from keepsum.specs.count_columns import likely_columns

    likely = likely_columns(header, _declared_columns(declared))
    if likely.count is None:
        if questions.confirm("Is each row a record (rather than having a count)?", None):
            return None
    elif not questions.confirm(
        "Does each row have a count (rather than being one record)?", True if likely.is_named else None
    ):
        return None
    if likely.wide:
        wide = _asked_about_wide(declared, header.names, likely)
        if wide is not None:
            return wide
    count = questions.ask_until(
        f"Which column has the counts? ({RECORD} if each row is a record)",
        None if likely.count is None else questions.shown_name(likely.count),
        questions.chosen("The column", [*header.names, RECORD]),
    )
    return None if count == RECORD else replace(declared, count=count)


def _declared_columns(declared: Declaration) -> list[str]:
    """The columns that options say something about."""
    spec = declared.options()
    nesting = spec.axes.within or {}
    named = [*(spec.axes.names or []), *(spec.axes.categories or {}), *nesting, *nesting.values()]
    return [*named, *(spec.source.drop or []), *(spec.source.carry or [])]


def _asked_about_wide(declared: Declaration, columns: Sequence[str], likely: Likely) -> Declaration | None:
    """Ask whether columns are the categories of one axis; a column that by name is their total is left out."""
    names = questions.shown_list(likely.wide) if are_showable(likely.wide) else "of whole numbers"
    if not questions.confirm(
        f"Are the {len(likely.wide)} columns {names} the categories of one axis, with a count in each?", None
    ):
        return None

    def named(answer: str) -> str:
        if answer in columns:
            raise InputError(f"The axis must have a name that no column has, got {answer!r}.")
        return answer

    axis = questions.ask_until("What is this axis called? (such as race)", None, named)
    changed = replace(declared, wide=pair(axis, likely.wide))
    if not likely.totals or (declared.axes and not declared.drop):  # then other columns are left out anyway
        return changed
    if are_showable(likely.totals):
        note(f"Left out as the total of these columns, by its name: {questions.shown_list(likely.totals)}.")
    return replace(changed, drop=[*(declared.drop or []), listed(likely.totals)])


def _is_workbook(table: str) -> bool:
    from keepsum.sources.encodings import ZIP
    from keepsum.sources.records.files import start_of

    return start_of(Path(table)).startswith(ZIP)


def _opening(declared: Declaration) -> Callable[[str], tuple[Declaration, Header]]:
    def read(answer: str) -> tuple[Declaration, Header]:
        check_source(answer)
        return _opened(replace(declared, table=answer))

    return read


def _opened(declared: Declaration) -> tuple[Declaration, Header]:
    """The columns, and the declaration with the sheet, the encoding, or the table of a database that was asked for."""
    from keepsum.sources.headers import is_database

    if is_database(str(declared.table)) and declared.database_table is None:
        return _table_of_database(declared)
    while True:
        try:
            return declared, _columns(declared)
        except UndeclaredError as error:
            finding = error.finding
            if finding is None:
                raise
        settled = settle(finding, declared, _problem_of_columns)
        if settled is None:
            raise UndeclaredError(finding.sentence)
        declared = settled


def _columns(declared: Declaration) -> Header:
    from keepsum.sources.headers import header_in
    from keepsum.sources.reading import FileForm

    form = FileForm.checked(declared.sheet, declared.encoding, None, None)
    return header_in(str(declared.table), declared.database_table, form)


def _problem_of_columns(declared: Declaration) -> str | None:
    return problem_of(declared, _columns)


def _in_database(declared: Declaration) -> Declaration:
    """The declaration with the table of the database, if it is one."""
    from keepsum.sources.headers import is_database

    if declared.database_table is None and is_database(str(declared.table)):
        return _table_of_database(declared)[0]
    return declared


def _table_of_database(declared: Declaration) -> tuple[Declaration, Header]:
    from keepsum.sources.headers import table_names

    names = table_names(str(declared.table))

    def read(answer: str) -> tuple[Declaration, Header]:
        changed = replace(declared, database_table=answer)
        return changed, _columns(changed)

    choices = f" ({questions.shown_list(names)})" if names else ""
    return questions.ask_until(f"Which table of the database?{choices}", names[0] if len(names) == 1 else None, read)


def problem_of(declared: Declaration, attempt: Callable[[Declaration], object]) -> str | None:
    """What stops an attempt; nothing if that is only something else that was noticed."""
    try:
        attempt(declared)
    except UndeclaredError:
        return None
    except KeepsumError as error:
        return in_shell_terms(str(error))
    return None

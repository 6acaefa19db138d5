"""What ``keepsum init`` asks about the data: where they are, and what their columns mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from keepsum.cli import questions
from keepsum.cli.asking_records import asked_about_records
from keepsum.cli.declaration import Declaration
from keepsum.cli.noticed import settle
from keepsum.cli.screen import note
from keepsum.cli.terms import in_shell_terms
from keepsum.errors import InputError, KeepsumError
from keepsum.tables.findings import NoticedError

STANDARD_INPUT = "-"


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
        declared, columns = questions.ask_until("Which file has the table?", None, _opening(declared))
    elif declared.count is not None or declared.wide is not None:
        return declared
    elif declared.by:  # then no more is needed from the data
        return asked_about_records(_in_database(declared), [])
    else:
        declared, columns = _opened(declared)
    if declared.by:
        return asked_about_records(declared, columns)
    if declared.count is not None or declared.wide is not None:
        return declared
    if questions.are_showable(columns):
        note(f"Columns: {questions.shown_list(columns)}.")
    if not _has_counts(declared, columns):
        return asked_about_records(declared, columns)
    count = questions.ask_until(
        "Which column has the counts?", questions.likely_count(columns), questions.chosen("The column", columns)
    )
    return replace(declared, count=count)


def _has_counts(declared: Declaration, columns: Sequence[str]) -> bool:
    """Whether each row has a count, where that is possible."""
    from keepsum.sources.headers import is_database

    if is_database(str(declared.table)) or not Path(str(declared.table)).is_file() or len(columns) == 1:
        return False
    if questions.confirm("Does each row have a count (rather than being one record)?", default=True):
        return True
    if declared.sheet is not None or declared.encoding is not None or _is_workbook(str(declared.table)):
        raise InputError(
            "Records must be in a CSV file in UTF-8, a Parquet file or a database, and these are not. Save them so."
        )
    return False


def _is_workbook(table: str) -> bool:
    from keepsum.sources.encodings import ZIP
    from keepsum.sources.records.files import start_of

    return start_of(Path(table)).startswith(ZIP)


def _opening(declared: Declaration) -> Callable[[str], tuple[Declaration, list[str]]]:
    def read(answer: str) -> tuple[Declaration, list[str]]:
        check_source(answer)
        return _opened(replace(declared, table=answer))

    return read


def _opened(declared: Declaration) -> tuple[Declaration, list[str]]:
    """The columns, and the declaration with the sheet, the encoding, or the table of a database that was asked for."""
    from keepsum.sources.headers import is_database

    if is_database(str(declared.table)) and declared.database_table is None:
        return _table_of_database(declared)
    while True:
        try:
            return declared, _columns(declared)
        except NoticedError as error:
            finding = error.finding
            if finding is None:
                raise
        settled = settle(finding, declared, _problem_of_columns)
        if settled is None:
            raise NoticedError(finding.sentence)
        declared = settled


def _columns(declared: Declaration) -> list[str]:
    from keepsum.sources.headers import column_names
    from keepsum.sources.reading import FileForm

    form = FileForm.checked(declared.sheet, declared.encoding, None, None)
    return column_names(str(declared.table), declared.database_table, form)


def _problem_of_columns(declared: Declaration) -> str | None:
    return problem_of(declared, _columns)


def _in_database(declared: Declaration) -> Declaration:
    """The declaration with the table of the database, if it is one."""
    from keepsum.sources.headers import is_database

    if declared.database_table is None and is_database(str(declared.table)):
        return _table_of_database(declared)[0]
    return declared


def _table_of_database(declared: Declaration) -> tuple[Declaration, list[str]]:
    from keepsum.sources.headers import table_names

    names = table_names(str(declared.table))

    def read(answer: str) -> tuple[Declaration, list[str]]:
        changed = replace(declared, database_table=answer)
        return changed, _columns(changed)

    choices = f" ({questions.shown_list(names)})" if names else ""
    return questions.ask_until(f"Which table of the database?{choices}", names[0] if len(names) == 1 else None, read)


def problem_of(declared: Declaration, attempt: Callable[[Declaration], object]) -> str | None:
    """What stops an attempt; nothing if that is only something else that was noticed."""
    try:
        attempt(declared)
    except NoticedError:
        return None
    except KeepsumError as error:
        return in_shell_terms(str(error))
    return None

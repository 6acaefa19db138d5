"""What ``keepsum init`` asks about records: the columns to count by, their categories, and who a person is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from keepsum.cli import questions
from keepsum.cli.categories import parse_name
from keepsum.cli.declaration import Declaration
from keepsum.cli.more_options import with_options
from keepsum.errors import InputError
from keepsum.specs.quoting import joined, listed, pair

BINS, FILE = "bins ", "file "
NONE = "-"  # the answer that no column does


def asked_about_records(declared: Declaration, columns: Sequence[str]) -> Declaration:
    """Ask how records are counted, as far as no option says it."""
    if not declared.by:
        by = questions.ask_until(
            "Columns to count records by, with commas between them", None, questions.several("A column", columns)
        )
        declared = replace(declared, by=[listed(by)])
        declared = _asked_about_nesting(declared, by)
    for column in _by(declared):
        declared = _asked_about_categories(declared, column)
    return declared if declared.unit is not None else _asked_about_persons(declared, columns)


def _by(declared: Declaration) -> list[str]:
    """The columns to count by, with parents before their children."""
    from keepsum.tables.source import with_parents

    spec = declared.options()
    return with_parents(spec.records.by or [], spec.axes.within or {})


def _asked_about_nesting(declared: Declaration, by: Sequence[str]) -> Declaration:
    if len(by) < 2 or declared.within:
        return declared

    def read(answer: str) -> Declaration:
        from keepsum.tables.axes import check_nesting

        if not answer:
            return declared
        changed = with_options(declared, [f"--within={joined(*one)}" for one in questions.nestings(answer, by)])
        check_nesting(by, changed.options().axes.within or {})
        return changed

    question = (
        f"Is one of them within another? (such as {joined(by[-1], by[0])}, several with a blank between; Enter: no)"
    )
    return questions.ask_until(question, "", read)


def _asked_about_categories(declared: Declaration, column: str) -> Declaration:
    """Ask for the categories or the bins of a column, if none are declared; those of a nested one by parent."""
    from keepsum.specs.building import categories_of

    spec = declared.options()
    categories: Mapping[str, Any] = categories_of(spec) or {}
    if column in categories or column in (spec.records.bins or {}):
        return declared
    parent = (spec.axes.within or {}).get(column)
    if parent is not None:
        for path in _paths(categories[parent]):
            question = f"Categories of {column} in {', '.join(path)}, with commas between them"
            declared = questions.ask_until(question, None, _categories(declared, column, path))
        return _asked_about_missing(declared, column)
    other = f"or: {BINS}0,18,65, for numbers or dates; or: {FILE}categories.toml"
    question = f"Categories of {column}, with commas between them ({other})"
    return _asked_about_missing(questions.ask_until(question, None, _declaration_of(declared, column)), column)


def _paths(categories: Any) -> list[tuple[str, ...]]:
    """The categories of an axis, each with its parents, outermost first."""
    if not isinstance(categories, Mapping):
        return [tuple(map(str, label)) if isinstance(label, (list, tuple)) else (str(label),) for label in categories]
    parents = {path if isinstance(path, tuple) else (path,): labels for path, labels in categories.items()}
    return [(*map(str, path), str(label)) for path, labels in parents.items() for label in labels]


def _declaration_of(declared: Declaration, column: str) -> Callable[[str], Declaration]:
    def read(answer: str) -> Declaration:
        if answer.startswith(BINS):
            return _binned(declared, column, answer.removeprefix(BINS).replace(" ", ""))
        if answer.startswith(FILE):
            return _from_file(declared, column, answer.removeprefix(FILE).strip())
        return _categories(declared, column, ())(answer)

    return read


def _binned(declared: Declaration, column: str, edges: str) -> Declaration:
    """Bins between the edges; whether values lie outside them is asked, and not inferred from the records."""
    from keepsum.sources.records.bins import check_bins

    if column in (declared.options().axes.within or {}).values():
        raise InputError(f"Column {column!r} must have categories, not bins, because another one is within it.")
    given = edges.split(",")
    inner = given[given[0] == "" : len(given) - (given[-1] == "")]
    bins = check_bins({column: ["", *inner, ""]})[column]  # which refuses what cannot be edges
    below, above = ("before {}", "{} or later") if bins.kind == "date" else ("below {}", "{} or above")
    ends = [
        given[0] == "" or questions.confirm(f"Can values of {column} be {below.format(inner[0])}?", None),
        given[-1] == "" or questions.confirm(f"Can values of {column} be {above.format(inner[-1])}?", None),
    ]
    cut = [*([""] if ends[0] else []), *inner, *([""] if ends[1] else [])]
    check_bins({column: cut})
    return with_options(declared, [f"--bins={column}={','.join(cut)}"])


def _asked_about_missing(declared: Declaration, column: str) -> Declaration:
    """Ask for the category of missing values: nothing is inferred from the records, so only the curator can know."""
    if column in (declared.options().records.missing or {}):
        return declared

    def read(answer: str) -> Declaration:
        label = parse_name(answer)
        if not label:
            return declared
        if "=" in label:
            raise InputError(f"The label of missing values must not contain an equals sign, got {label!r}.")
        return _with_category(with_options(declared, [f"--missing={column}={label}"]), column, label)

    question = f"Can values of {column} be missing? Then a label for them, such as unknown (Enter: none is missing)"
    return questions.ask_until(question, "", read)


def _with_category(declared: Declaration, column: str, label: str) -> Declaration:
    """The declaration with one more category of a column, for each parent if it is nested; bins get it anyway."""
    from keepsum.sources.records.bins import check_bins
    from keepsum.specs.building import categories_of

    spec = declared.options()
    if column in (spec.records.bins or {}):
        if label in check_bins(spec.records.bins)[column].labels:
            raise InputError(f"The label of missing values must not be that of a bin, got {label!r}.")
        return declared
    categories = (spec.axes.categories or {}).get(column)
    if categories is None:
        if label not in map(str, (categories_of(spec) or {})[column]):
            raise InputError(f"The label of missing values must be in the file of categories, got {label!r}.")
        return declared
    groups = categories if isinstance(categories, Mapping) else {(): categories}
    added = [pair(column, [*labels, label], *path) for path, labels in groups.items() if label not in labels]
    return with_options(declared, [f"--categories={text}" for text in added])


def _from_file(declared: Declaration, column: str, file: str) -> Declaration:
    from keepsum.specs.building import categories_of

    if declared.domain is not None:
        raise InputError("Categories must be in one file, got another. Name them here, or add them to that file.")
    changed = replace(declared, domain=file)
    if column not in (categories_of(changed.options()) or {}):
        raise InputError(f"File {file!r} must have the categories of {column!r}, but has none.")
    return changed


def _categories(declared: Declaration, column: str, path: tuple[str, ...]) -> Callable[[str], Declaration]:
    def read(answer: str) -> Declaration:
        from keepsum.tables.domain import Domain

        target = pair(column, [], *path)
        changed = with_options(declared, [f"--categories={target}{answer}"])
        categories: Any = (changed.options().axes.categories or {})[column]
        labels = categories[path] if path else categories
        Domain({column: labels})  # which refuses what cannot be categories
        return changed

    return read


def _asked_about_persons(declared: Declaration, columns: Sequence[str]) -> Declaration:
    """Ask whether a person may have several records, and if so who a person is, and how many of them are counted.

    Nothing is assumed: that every record is of another person is a claim that only the curator can make.
    """
    if declared.max_rows_per_unit == 1:  # which alone declares that every record is of another person
        return declared
    if declared.max_rows_per_unit is None and not questions.confirm("Can one person have several records?", None):
        return replace(declared, max_rows_per_unit=1)
    by = _by(declared)

    def read(answer: str) -> str | None:
        from keepsum.sources.records.declaring import check_unit

        if answer == NONE and declared.max_rows_per_unit is None:
            return None
        if answer == NONE:
            raise InputError("A column must identify a person, because --max-rows-per-unit bounds the records of each.")
        questions.chosen("The column", columns)(answer)
        check_unit(answer, 1, by)
        return answer

    without = f" ({NONE} if none does: the guarantee is then for one record, not for one person)"
    question = f"Which column identifies a person?{without if declared.max_rows_per_unit is None else ''}"
    unit = questions.ask_until(question, None, read)
    if unit is None:
        return declared
    if declared.max_rows_per_unit is not None:
        return replace(declared, unit=unit)

    def bounded(answer: str) -> Declaration:
        from keepsum.sources.records.declaring import check_unit

        if not answer.isdecimal():
            raise InputError(f"The number of records must be a whole number such as 3, got {answer!r}.")
        check_unit(unit, int(answer), by)
        return replace(declared, unit=unit, max_rows_per_unit=int(answer))

    return questions.ask_until("At most how many records of each person are counted?", None, bounded)

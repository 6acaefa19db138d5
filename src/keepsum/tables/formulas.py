"""Labels that a spreadsheet would run as formulas, such as ``=cmd()``: an apostrophe in front makes them text.

Labels are quoted before anything is declared, hashed or published, so that a table, its certificate and a file of it
that is read again have the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from keepsum._text import shown_names
from keepsum.errors import DataError
from keepsum.tables.coded import Coded
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Origin, Text

# What a formula begins with, in East Asian width too; a line end or a tab is skipped by some programs.
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
_NUMBER = re.compile(r"[+-][0-9]+([.,][0-9]+)?")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may run this text; numbers with a sign are numbers.

    >>> [text for text in ("=cmd()", " +x", "-5 to 0", "@a", "-5", "+1.5", "5-9", "a=b") if is_formula(text)]
    ['=cmd()', ' +x', '-5 to 0', '@a']
    """
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def quoted_label(label: Any) -> Any:
    """A label with an apostrophe in front if a spreadsheet may run it; anything else as it is."""
    return f"'{label}" if isinstance(label, str) and is_formula(label) else label


def quoted_columns(columns: Mapping[str, Coded]) -> dict[str, Coded]:
    """Columns with quoted labels."""
    for name, column in columns.items():
        _check_different(name, _texts_in(column.values))
    return {name: column.translated(quoted_label) for name, column in columns.items()}


def quoted_origin(origin: Origin | None) -> Origin | None:
    """What a table came as; of a wide one, the names of columns are labels."""
    if origin is None or origin.wide is None:
        return origin
    changed = replace(origin, columns=tuple(map(quoted_label, origin.columns)))
    if isinstance(changed, Text):
        return replace(changed, quoted_names=frozenset(map(quoted_label, changed.quoted_names)))
    return changed


def quoted_categories(declared: Domain | Mapping[str, Any] | None) -> Domain | Mapping[str, Any] | None:
    """Declared categories with quoted labels; a mapping may be of any form that ``Domain`` takes."""
    if isinstance(declared, Domain):
        return quoted_domain(declared)
    for name, categories in (declared or {}).items():
        _check_different(name, _texts_in(categories))
    return None if declared is None else {name: _quoted_inside(categories) for name, categories in declared.items()}


def quoted_domain(domain: Domain) -> Domain:
    """The cells with quoted labels."""
    for name in domain.axes:
        _check_different(name, _texts_in(domain.axis(name).labels))
    return domain.relabelled(quoted_label)


def check_names(names: Iterable[str]) -> None:
    """Refuse names of columns that a spreadsheet may run: they are published as they are."""
    formulas = [name for name in names if is_formula(name)]
    if formulas:
        raise DataError(
            f"Names of columns must not be formulas if labels are quoted, got {shown_names(formulas)}. Rename them."
        )


def _quoted_inside(categories: Any) -> Any:
    if isinstance(categories, Mapping):
        return {_quoted_inside(parent): _quoted_inside(labels) for parent, labels in categories.items()}
    if isinstance(categories, (list, tuple)):
        return type(categories)(map(_quoted_inside, categories))
    return quoted_label(categories)


def _texts_in(categories: Any) -> list[str]:
    """The labels of an axis that are text; those of its parents are compared with each other elsewhere."""
    if isinstance(categories, Mapping):
        return [text for labels in categories.values() for text in _texts_in(labels)]
    if isinstance(categories, (list, tuple)):
        labels = [label[-1] if isinstance(label, (list, tuple)) and label else label for label in categories]
        return [label for label in labels if isinstance(label, str)]
    return []


def _check_different(name: str, labels: Iterable[str]) -> None:
    """Refuse two labels that would be the same."""
    before = set(labels)
    if any(is_formula(label) and f"'{label}" in before for label in before):
        raise DataError(
            f"Labels of {name!r} must be different once formulas are quoted, but two differ by an apostrophe in front "
            f"alone. Rename one of them."
        )

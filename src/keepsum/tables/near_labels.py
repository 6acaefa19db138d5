"""Labels that differ only in spaces or case, as if one category were written in two ways.

They are noticed by labels alone, never by a count, and only on axes whose categories nobody declared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from keepsum._text import shown_name
from keepsum.errors import DataError
from keepsum.tables.axes import Label
from keepsum.tables.coded import Coded, combined
from keepsum.tables.source import with_parents


def refuse_near_labels(columns: Mapping[str, Coded], within: Mapping[str, str], declared: Collection[str]) -> None:
    """Refuse two categories of an axis (of one parent, if it is nested) whose labels differ only in spaces or case.

    Parameters
    ----------
    columns, within
        The axes, and the parent of each nested one.
    declared
        The axes whose categories are declared: these are meant as they are.
    """
    for name, column in columns.items():
        if name in declared:
            continue
        pair = _near(column, [columns[axis] for axis in with_parents([name], within) if axis != name])
        if pair is not None:
            first, second = map(shown_name, pair)
            raise DataError(
                f"Labels {first} and {second} in column {name!r} differ only in spaces or case, as if they were one "
                f"category. Correct the data, or declare the categories of {name!r} with domain= if they are two."
            )


def _near(column: Coded, parents: list[Coded]) -> tuple[Label, Label] | None:
    """Two labels of one parent that differ only in spaces or case, if there are any."""
    spellings: dict[str, list[int]] = {}
    for code, label in enumerate(column.values):
        if isinstance(label, str):
            spellings.setdefault(plain(label), []).append(code)
    groups = [codes for codes in spellings.values() if len(codes) > 1]
    if not parents or not groups:
        return next(((column.values[codes[0]], column.values[codes[1]]) for codes in groups), None)
    group_of = {code: group for group, codes in enumerate(groups) for code in codes}
    may_be_near = np.zeros(len(column.values), dtype=bool)
    may_be_near[list(group_of)] = True
    rows = np.flatnonzero(may_be_near[column.codes])
    path = combined(parents)[rows]
    first_codes: dict[tuple[int, int], int] = {}
    for owner, code in dict.fromkeys(zip(path.tolist(), column.codes[rows].tolist(), strict=True)):
        first = first_codes.setdefault((owner, group_of[code]), code)
        if first != code:
            return column.values[first], column.values[code]
    return None


def plain(label: str) -> str:
    r"""A label without what is hardly seen: the case of letters, and spaces around and between words.

    >>> plain("Lake ") == plain("lake"), plain("St.\xa0 Clair") == plain("St. Clair"), plain("Lake") == plain("Lakes")
    (True, True, False)
    """
    return " ".join(label.casefold().split())

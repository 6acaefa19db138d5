"""What users declare in files: categories, totals that are not margins, and figures already published."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from keepsum._arguments import check_path
from keepsum._text import shown_names, type_of
from keepsum.errors import DataError, DomainError, InputError
from keepsum.sources.reading import as_utf8, open_columns
from keepsum.tables.axes import IntArray, quoted
from keepsum.tables.cells import cells_of, check_counts, check_labels, locate
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin
from keepsum.tables.labels import as_label
from keepsum.tables.released import ReleasedTable
from keepsum.tables.table import Table

INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


def read_domain(path: str | PathLike[str]) -> dict[str, Any]:
    """The categories of axes from a TOML file.

    An axis has a list; a nested axis has a table from parent to list, or a list of [parent, label] pairs::

        sex = ["f", "m"]

        [county]
        IL = ["Cook", "Lake"]
        WI = ["Lake"]
    """
    declared = _toml(path, "of categories")
    for axis, categories in declared.items():
        if not isinstance(categories, (list, dict)):
            raise InputError(
                f"Axis {axis!r} of {str(path)!r} must have a list of categories, got {type_of(categories)}."
            )
    return declared


def read_keep(path: str | PathLike[str], table: Table) -> Invariants:
    """Totals that are not margins, from a file.

    Parameters
    ----------
    path
        Either TOML, with one ``[[total]]`` for each total: its ``cells`` are a list of mappings from axes to a label or
        a list of labels, and every cell that matches one of them belongs to it; ``name`` is optional, ``weight`` a
        whole number, by default 1. Or CSV: a matrix of whole numbers without a header, one line a total, one number
        for each row of the table in its order, which must be public (``keep_order``).
    table
        The table that the totals are of.
    """
    if Path(path).suffix.lower() == ".toml":
        return _subsets(_toml(path, "of totals"), table.domain, fspath(path))
    return _matrix(path, table)


def _subsets(declared: Mapping[str, Any], domain: Domain, name: str) -> Invariants:
    totals = declared.get("total")
    if not isinstance(totals, list) or not totals or set(declared) != {"total"}:
        raise InputError(f"File {name!r} must have a [[total]] for each total to keep, and nothing else.")
    chosen: list[IntArray] = []
    weights: list[int] = []
    names: list[str] = []
    for k, total in enumerate(totals):
        where = f"Total {k + 1} of {name!r}"
        if not isinstance(total, Mapping) or not set(total) <= {"name", "cells", "weight"} or "cells" not in total:
            raise InputError(f"{where} must have cells, and may have a name and a weight, and nothing else.")
        weight = total.get("weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, int) or not 0 < abs(weight) < 2**31:
            raise InputError(f"{where} must have a weight that is a whole number of at most 31 bits and not 0.")
        if not isinstance(total.get("name", ""), str):
            raise InputError(f"{where} must have a name that is text.")
        chosen.append(_chosen(total["cells"], domain, where))
        weights.append(weight)
        names.append(str(total.get("name", f"total {k + 1}")))
    if len(set(names)) < len(names):
        raise InputError(f"Totals of {name!r} must have different names.")
    sizes = [len(cells) for cells in chosen]
    rows = sparse.csr_array(
        (np.repeat(weights, sizes), np.concatenate(chosen), np.cumsum([0, *sizes])), shape=(len(chosen), domain.size)
    )
    return Invariants.matrix(rows, names).over(domain)


def _chosen(cells: Any, domain: Domain, where: str) -> IntArray:
    """The cells that match any of some mappings from axes to labels."""
    if not isinstance(cells, list) or not cells or not all(isinstance(cell, Mapping) and cell for cell in cells):
        raise InputError(f"{where} must have cells as a list such as [{{{domain.axes[0]} = ...}}].")
    for wanted in (value for cell in cells for value in cell.values()):
        if not all(isinstance(label, (str, int)) for label in (wanted if isinstance(wanted, list) else [wanted])):
            raise InputError(f"{where} must have labels that are text or whole numbers, or lists of these.")
    problem = ""
    try:
        found = np.unique(np.concatenate([np.flatnonzero(domain.matching(cell)) for cell in cells]))
    except DomainError as error:
        problem = str(error)
    if problem:
        raise InputError(f"{where}: {problem}")
    if not len(found):
        raise InputError(f"{where} must have at least one cell, none matches.")
    return found


def _matrix(path: str | PathLike[str], table: Table) -> Invariants:
    name = Path(path).name
    if table.rows is None and table.origin is not None:
        raise InputError(
            f"A matrix such as {name!r} must go with keep_order=True, because it numbers the rows of the table and so "
            f"makes their order public. Or name the cells in a .toml file."
        )
    lines = [line.split(",") for line in _text(path).splitlines() if line.strip()]
    for k, line in enumerate(lines):
        if len(line) != table.domain.size:
            raise InputError(
                f"Line {k + 1} of {name!r} must have {table.domain.size:,} numbers, one for each row of the table, "
                f"it has {len(line):,}."
            )
    rows = np.zeros((len(lines), table.domain.size), dtype=np.int64)
    for k, line in enumerate(lines):
        if not all(INTEGER.fullmatch(value) and len(value) < 16 for value in line):
            raise InputError(f"Line {k + 1} of {name!r} must be whole numbers, without a header.")
        if not any(int(value) for value in line):
            raise InputError(f"Line {k + 1} of {name!r} must have a number but 0.")
        cells = slice(None) if table.rows is None else table.rows
        rows[k, cells] = [int(value) for value in line]
    if not len(rows):
        raise InputError(f"File {name!r} must have a line for each total to keep, it is empty.")
    return Invariants.matrix(rows).over(table.domain)


def read_totals(path: str | PathLike[str], invariants: Invariants, count: str) -> dict[int, int]:
    """Published figures by the number of the kept total that they belong to.

    Parameters
    ----------
    path
        A file with a row for each figure and the same count column as the table. Columns that are axes say which
        total it is, an empty one meaning all of that axis (CSV only); or a column ``total`` has its name.
    """
    source = open_columns(path, count).source
    name = Path(path).name
    if count not in source.names:
        raise DataError(f"Totals in {name!r} must have the count column {count!r}, got {source.found()}.")
    values = check_counts(source.counts(count), source.where, count, negative=True)
    axes = [column for column in source.names if column != count]
    by_name = axes == ["total"] and "total" not in (invariants.domain.axes if invariants.domain else ())
    find = _by_name(invariants) if by_name else _by_cell(invariants, axes, name)
    columns = [source.labels(column) for column in axes]
    figures: dict[int, int] = {}
    for line, labels in enumerate(zip(*columns, strict=True) if columns else [()] * len(values)):
        row = find(labels)
        if row is None:
            raise DataError(f"Figure in {source.where(line)} of {name!r} must be that of a kept total, it is none.")
        if figures.setdefault(row, int(values[line])) != int(values[line]):
            raise DataError(f"Figures in {name!r} must agree, {source.where(line)} repeats a total with another one.")
    if not figures:
        raise DataError(f"Totals in {name!r} must have at least one row, there is none.")
    return figures


def _by_name(invariants: Invariants) -> Any:
    rows = {name: row for row, name in enumerate(invariants.names)}
    if len(rows) < invariants.height:
        raise InputError("Totals must have different names to be told apart by name. Rename those of the files.")
    return lambda labels: rows.get(labels[0])


def _by_cell(invariants: Invariants, axes: list[str], name: str) -> Any:
    domain = invariants.domain
    if domain is None or not set(axes) <= set(domain.axes):
        known = () if domain is None else domain.axes
        raise DataError(
            f"Columns of {name!r} must be axes, {quoted(known)}, or 'total', beside the count, got {shown_names(axes)}."
        )
    starts: dict[tuple[str, ...], int] = {}
    start = 0
    for part in invariants.parts:
        if isinstance(part, Margin):
            starts[part.axes] = start
        start += part.height

    places: dict[tuple[str, ...], dict[tuple[Any, ...], int]] = {}

    def find(labels: Iterable[Any]) -> int | None:
        cell = {axis: label for axis, label in zip(axes, labels, strict=True) if label not in ("", None)}
        margin = domain.closure(cell)
        if margin not in starts or set(margin) != set(cell):
            return None
        if margin not in places:
            places[margin] = _cells_of_margin(domain, margin)
        place = places[margin].get(tuple(str(cell[axis]) for axis in margin))
        return None if place is None else starts[margin] + place

    return find


def _cells_of_margin(domain: Domain, margin: tuple[str, ...]) -> dict[tuple[Any, ...], int]:
    """The place of each cell of a margin, by its labels as text."""
    if not margin:
        return {(): 0}
    cells = domain.project(margin)
    columns = [[str(cells.axis(axis).labels[code]) for code in cells.codes(axis).tolist()] for axis in margin]
    return {labels: place for place, labels in enumerate(zip(*columns, strict=True))}


def read_released(path: str | PathLike[str], domain: Domain, count: str) -> ReleasedTable:
    """A released table again: exactly the axes and the count, every cell once, whole numbers that may be negative."""
    file = open_columns(path, count)
    source = file.source
    if sorted(source.names) != sorted([*domain.axes, count]):
        raise DataError(f"Columns of the released table must be {quoted([*domain.axes, count])}, got {source.found()}.")
    if source.height is not None and source.height != domain.size:  # before a column is looked at
        raise _not_all_cells(domain, source.height)
    columns: dict[str, list[Any]] = {}
    for name in domain.axes:
        whole = isinstance(domain.axis(name).labels[0], int)
        labels = check_labels(source.labels(name), source.where, name)
        columns[name] = [as_label(label, whole) for label in labels] if whole else labels
    counts = check_counts(source.counts(count), source.where, count, negative=True)
    index = locate(columns, counts, domain, source.where)
    if len(index) != domain.size:
        raise _not_all_cells(domain, len(index))
    return ReleasedTable(domain, cells_of(index, counts, domain.size), count, file.origin, index)


def _not_all_cells(domain: Domain, rows: int) -> DataError:
    return DataError(f"The released table must have {domain.size:,} rows, one for each cell, it has {rows:,}.")


def _toml(path: str | PathLike[str], what: str) -> dict[str, Any]:
    text = _text(path)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Only the place: the file may be one of counts, given by mistake, and the error may repeat some of it.
        place = re.search(r"at (line \d+, column \d+|end of document)", str(error))
    raise InputError(f"File {what} {str(path)!r} must be TOML, but it is not{f' at {place[1]}' if place else ''}.")


def _text(path: str | PathLike[str]) -> str:
    file = check_path(path, "The file")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"File {str(path)!r} must be readable, but: {error.strerror or error}.") from None
    text = as_utf8(data)
    if text is None:
        raise InputError(f"File {str(path)!r} must be UTF-8 text. Save it as UTF-8 and try again.")
    return text.removeprefix("\ufeff")

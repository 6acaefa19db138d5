"""Declarations in files: categories, kept totals that are not margins, and published figures."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from keepsum._arguments import check_path
from keepsum._arrays import IntArray
from keepsum._saying import arg, the
from keepsum._text import shown_names, type_of
from keepsum.errors import DataError, DomainError, InputError, UnreachableError
from keepsum.sources.reading import as_utf8, open_columns
from keepsum.sources.sdmx import without_attributes
from keepsum.sources.uploads import Upload, refuse_special
from keepsum.tables.axes import Label, as_label, quoted
from keepsum.tables.cells import Carried, cells_of, check_labels, locate
from keepsum.tables.counts import check_counts
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin
from keepsum.tables.released import ReleasedTable
from keepsum.tables.source import Coded, Source
from keepsum.tables.table import Table

INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
MOST_PARTS = 100  # of a key, such as a.b.c: the memory that a parser takes grows with their square
LONG_KEY = f"a key must have at most {MOST_PARTS} parts"
_LONG_KEY = re.compile(
    rf"""(?:(?:(?<!\\)"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|(?<![A-Za-z0-9_-])[A-Za-z0-9_-]+)[ \t]*\.[ \t]*){{{MOST_PARTS}}}"""
)


def read_domain(path: str | PathLike[str]) -> dict[str, Any]:
    """Read the categories of axes from a TOML file.

    An axis has a list; a nested axis has a table from parents to lists, or a list of [parent, label] pairs::

        sex = ["f", "m"]

        [county]
        IL = ["Cook", "Lake"]
        WI = ["Lake"]
    """
    return _domain(_toml(path, "of categories"), f" of {str(path)!r}")


def domain_of(text: str, what: str) -> dict[str, Any]:
    """The categories of axes from the text of such a file, which messages call as ``what`` says."""
    try:
        declared = load_toml(text)
    except (ValueError, RecursionError) as error:
        where = toml_problem(error, text)
    else:
        return _domain(declared, "")
    raise InputError(f"{what} must be valid TOML, but are not{where}.")


def _domain(declared: dict[str, Any], place: str) -> dict[str, Any]:
    for axis, categories in declared.items():
        if not isinstance(categories, (list, dict)):
            raise InputError(
                f"Axis {the.column(axis)}{place} must have a list of categories, got {type_of(categories)}."
            )
    return declared


def read_keep(path: str | PathLike[str], table: Table) -> Invariants:
    """Read totals that are not margins from a file.

    Parameters
    ----------
    path
        Either TOML, with one ``[[total]]`` per total: its ``cells`` are a list of mappings from axes to a label or a
        list of labels, and every cell that matches one of them is included; ``name`` is optional; ``weight`` is a whole
        number, by default 1. Or CSV: a matrix of whole numbers without a header, with one line per total and one number
        per row of the table, in the order of the rows, which must be public (``keep_order``).
    table
        The table whose totals they are.
    """
    if Path(path).suffix.lower() == ".toml":
        declared = _toml(path, "of totals")
        totals = declared.get("total")
        if not isinstance(totals, list) or not totals or set(declared) != {"total"}:
            raise InputError(
                f"File {the.file(fspath(path))} must contain a [[total]] for each total to keep, and nothing else."
            )
        return subsets(totals, table.domain, "[[total]]", f" of {fspath(path)!r}")
    return _matrix(path, table)


def subsets(totals: Sequence[Any], domain: Domain, kind: str, place: str = "") -> Invariants:
    """Totals of sets of cells, declared as in ``read_keep``; messages call them "[[total]] 2 of 'totals.toml'"."""
    chosen: list[IntArray] = []
    weights: list[int] = []
    names: list[str] = []
    for k, total in enumerate(totals):
        where = f"{kind} {k + 1}{place}"
        if not isinstance(total, Mapping) or not set(total) <= {"name", "cells", "weight"} or "cells" not in total:
            raise InputError(f"{where} must have cells, optionally a name and a weight, and nothing else.")
        weight = total.get("weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, int) or not 0 < abs(weight) < 2**31:
            raise InputError(f"The weight of {where} must be a nonzero whole number of at most 31 bits.")
        if not isinstance(total.get("name", ""), str):
            raise InputError(f"The name of {where} must be text.")
        chosen.append(_chosen(total["cells"], domain, where))
        weights.append(weight)
        name = str(total.get("name", f"total {k + 1}"))
        if name in names:
            raise InputError(f"The name of {where} must differ from those of the totals before it.")
        names.append(name)
    if set(weights) == {1}:
        return Invariants.subsets(domain.size, chosen, names).over(domain)
    sizes = [len(cells) for cells in chosen]
    rows = sparse.csr_array(
        (np.repeat(weights, sizes), np.concatenate(chosen), np.cumsum([0, *sizes])), shape=(len(chosen), domain.size)
    )
    return Invariants.matrix(rows, names).over(domain)


def _chosen(cells: Any, domain: Domain, where: str) -> IntArray:
    """The cells that match at least one mapping from axes to labels."""
    if not isinstance(cells, list) or not cells or not all(isinstance(cell, Mapping) and cell for cell in cells):
        raise InputError(f"The cells of {where} must be a list such as [{{{domain.axes[0]} = ...}}].")
    for wanted in (value for cell in cells for value in cell.values()):
        if not all(isinstance(label, (str, int)) for label in (wanted if isinstance(wanted, list) else [wanted])):
            raise InputError(f"The labels of {where} must be text or whole numbers, or lists of these.")
    problem = ""
    try:
        matching = np.unique(np.concatenate([np.flatnonzero(domain.matching(cell)) for cell in cells]))
    except DomainError as error:
        problem = f"{error:marked}"
    if problem:
        raise InputError(f"{where}: {problem}")
    if not len(matching):
        raise InputError(f"{where} must match at least one cell, but matches none.")
    return matching


def _matrix(path: str | PathLike[str], table: Table) -> Invariants:
    name = Path(path).name
    if table.rows is None and table.origin is not None:
        raise InputError(
            f"A matrix such as {name!r} must be used {arg.keep_order(True):with}, because it refers to rows of the "
            "table by position and so makes their order public. Or name the cells in a .toml file."
        )
    lines = [line.split(",") for line in file_text(path).splitlines() if line.strip()]
    for k, line in enumerate(lines):
        if len(line) != table.domain.size:
            raise InputError(
                f"Line {k + 1} of {name!r} must have {table.domain.size:,} numbers, one per row of the table, "
                f"got {len(line):,}."
            )
    rows = np.zeros((len(lines), table.domain.size), dtype=np.int64)
    for k, line in enumerate(lines):
        if not all(INTEGER.fullmatch(value) and len(value) < 16 for value in line):
            raise InputError(f"Line {k + 1} of {name!r} must contain whole numbers only; there is no header.")
        if not any(int(value) for value in line):
            raise InputError(f"Line {k + 1} of {name!r} must contain a number other than 0.")
        cells = slice(None) if table.rows is None else table.rows
        rows[k, cells] = [int(value) for value in line]
    if not len(rows):
        raise InputError(f"File {the.file(name)} must have one line per total to keep, but it is empty.")
    return Invariants.matrix(rows).over(table.domain)


def read_totals(path: str | PathLike[str], invariants: Invariants, count: str) -> dict[int, int]:
    """Read published figures, by the index of the kept total.

    Parameters
    ----------
    path
        A file with one row per figure and the same count column as the table. Columns of axes identify the total, where
        an empty value means all categories of that axis (CSV only); or a column ``total`` contains its name.
    """
    refuse_special(check_path(path, "The file of published figures"), "File")
    source = open_columns(path, count).source
    name = Path(path).name
    if count not in source.names:
        raise DataError(
            f"File {the.file(name)} must have the count column {the.column(count)}, got {source.actual_columns()}."
        )
    values = check_counts(source.counts(count), source.where, count, negative=True)
    axes = [column for column in source.names if column != count]
    by_name = axes == ["total"] and "total" not in (invariants.domain.axes if invariants.domain else ())
    find = _by_name(invariants) if by_name else _by_cell(invariants, axes, name)
    columns = [source.labels(column).to_list() for column in axes]
    figures: dict[int, int] = {}
    for line, labels in enumerate(zip(*columns, strict=True) if columns else [()] * len(values)):
        row = find(labels)
        if row is None:
            raise DataError(
                f"The figure in {the.row(source.where(line))} of {the.file(name)} must belong to a kept total, but "
                "does not."
            )
        if figures.setdefault(row, int(values[line])) != int(values[line]):
            raise DataError(
                f"Figures in {the.file(name)} must be consistent, but {the.row(source.where(line))} gives "
                "another figure for the same total."
            )
    if not figures:
        raise DataError(f"File {the.file(name)} must have at least one figure, but it has no rows.")
    return figures


def _by_name(invariants: Invariants) -> Any:
    rows = {name: row for row, name in enumerate(invariants.names)}
    if len(rows) < invariants.height:
        raise InputError("Totals must have different names to be identified by name. Rename the totals in the files.")
    return lambda labels: rows.get(labels[0])


def _by_cell(invariants: Invariants, axes: list[str], name: str) -> Any:
    domain = invariants.domain
    if domain is None or not set(axes) <= set(domain.axes):
        known = () if domain is None else domain.axes
        raise DataError(
            f"Columns of {name!r} other than the count must be axes ({quoted(known)}) or 'total', got "
            f"{shown_names(axes)}."
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
    if not margin:
        return {(): 0}
    cells = domain.project(margin)
    columns = [[str(cells.axis(axis).labels[code]) for code in cells.codes(axis).tolist()] for axis in margin]
    return {labels: place for place, labels in enumerate(zip(*columns, strict=True))}


def read_released(
    path: str | PathLike[str] | Upload,
    domain: Domain,
    count: str,
    carried: Sequence[Carried] = (),
    attributes: Mapping[str, str] | None = None,
) -> ReleasedTable:
    """Read a released table: exactly the axes, the carried columns and the count, every cell once, whole numbers.

    ``attributes`` are columns beside them that have one value in all rows.
    """
    categories = (str(label) for name in domain.axes for label in domain.axis(name).labels)
    file = open_columns(path, count, *categories, released=True)
    source = without_attributes(file.source, attributes or {})
    wide = _wide_axis(source, domain, [column.name for column in carried])
    source = source if wide is None else _long(source, domain, wide, count)
    expected = [*domain.axes, *(column.name for column in carried), count]
    if sorted(source.names) != sorted(expected):
        raise DataError(f"Columns of the released table must be {quoted(expected)}, got {source.actual_columns()}.")
    if source.height is not None and source.height != domain.size:  # before any column is read
        raise _not_all_cells(domain, source.height)
    columns = {name: _labels_of(source, name, domain.axis(name).labels) for name in domain.axes}
    counts = check_counts(source.counts(count), source.where, count, negative=True, decimals=False)
    index = locate(columns, counts, domain, source.where)
    if len(index) != domain.size:
        raise _not_all_cells(domain, len(index))
    for column in carried:
        values = _labels_of(source, column.name, column.values)
        if values.to_list() != [column.values[code] for code in domain.codes(column.axis)[index].tolist()]:
            raise DataError(
                f"Column {the.column(column.name)} of the released table must follow from {column.axis!r} as stated."
            )
    origin = replace(file.origin, wide=wide)
    return ReleasedTable(domain, cells_of(index, counts, domain.size), count, origin, index, tuple(carried))


def _labels_of(source: Source, name: str, labels: Sequence[Label]) -> Coded:
    column = check_labels(source.labels(name), source.where, name)
    whole = isinstance(labels[0], int)
    return column.translated(lambda label: as_label(label, whole=True)) if whole else column


def _wide_axis(source: Source, domain: Domain, carried: Sequence[str]) -> str | None:
    """The axis whose categories are the columns, if a released table is wide."""
    for axis in domain.axes:
        others = [*(name for name in domain.axes if name != axis), *carried]
        if sorted(source.names) == sorted([*others, *map(str, domain.axis(axis).labels)]):
            return axis
    return None


def _long(source: Source, domain: Domain, wide: str, count: str) -> Source:
    return source.melted(wide, [str(label) for label in domain.axis(wide).labels], count)


def _not_all_cells(domain: Domain, rows: int) -> DataError:
    return DataError(f"The released table must have {domain.size:,} rows, one per cell, got {rows:,}.")


def _toml(path: str | PathLike[str], what: str) -> dict[str, Any]:
    text = file_text(path)
    try:
        return load_toml(text)
    except (ValueError, RecursionError) as error:
        where = toml_problem(error, text)
    raise InputError(f"File {what} {str(path)!r} must be valid TOML, but is not{where}.")


def load_toml(text: str) -> dict[str, Any]:
    """What a TOML document contains; ``ValueError`` also for a key that takes much memory and means nothing."""
    if match := _LONG_KEY.search(text):
        raise ValueError(f"{LONG_KEY} (at line {text.count(chr(10), 0, match.start()) + 1}, column 1)")
    return tomllib.loads(text)


def toml_problem(error: Exception, text: str) -> str:
    """Where TOML is wrong and what is likely: the file may contain counts by mistake, so nothing in it is repeated."""
    position = re.search(r"at (line (\d+), column \d+|end of document)", str(error))
    if position is None:
        return ""
    cause = f": {LONG_KEY}" if LONG_KEY in str(error) else ""
    line = text.splitlines()[int(position[2]) - 1] if position[2] and position[2] != "0" else ""
    if re.search(r"overwrite a value|twice|Cannot mutate", str(error)):
        cause = ": a key or a table may be there twice"
    elif re.search(r"=\s*[+-]?\d+,\d+\s*(#.*)?$", line):
        cause = ": a number must have a decimal point, not a comma"
    elif re.search(r"=\s*[^\W\d]|[\[,]\s*[^\W\d]", line) and "Invalid value" in str(error):
        cause = ": text must be in quotes"
    return f" ({position[1]}){cause}"


def file_text(path: str | PathLike[str]) -> str:
    """The text of a UTF-8 file of declarations."""
    file = check_path(path, "The file")
    refuse_special(file, "File")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UnreachableError(f"File {the.file(path)} must be readable, but: {error.strerror or error}.") from None
    text = as_utf8(data)
    if text is None:
        raise InputError(f"File {the.file(path)} must be UTF-8 text. Save it as UTF-8 and try again.")
    return text.removeprefix("\ufeff")

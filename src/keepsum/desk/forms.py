"""What forms say, as changes of a spec. Each form changes its own part and leaves the rest."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from keepsum.errors import InputError
from keepsum.sources.declarations import domain_of
from keepsum.specs.option import listed
from keepsum.specs.spec import Axes, Keep, NoiseSpec, RecordsSpec, SourceSpec, Spec, Subset
from keepsum.tables.domain import Domain

replace = msgspec.structs.replace
Form = Mapping[str, Sequence[str]]
COUNTS, RECORDS = "counts", "records"
ROWS = "rows:"  # before the column by which rows are left out
AXIS, OUT, UNIT, WITHIN, WITH = "axis", "out", "unit", "within:", "with:"


def one(form: Form, name: str, default: str = "") -> str:
    """The one value of a field."""
    values = form.get(name) or [default]
    return values[-1].strip()


def small_number(text: str) -> int:
    """A whole number below 10**9; -1 if the text is none.

    >>> small_number("12"), small_number(""), small_number("9" * 5000)
    (12, -1, -1)
    """
    return int(text) if text.isdecimal() and len(text) < 10 else -1


# -- the table --------------------------------------------------------------------------------------


def meaning(spec: Spec, form: Form, columns: Sequence[str]) -> Spec:
    """What the rows and columns mean; nothing is said of what is not in the form."""
    roles = {name: one(form, f"role-{k}", OUT) for k, name in enumerate(columns) if f"role-{k}" in form}
    if one(form, "rows") == RECORDS:
        roles = roles or dict.fromkeys(columns, AXIS)
        return _of_records(spec, form, roles)
    count = one(form, "count") or None
    source = replace(spec.source, count=count)
    if not roles or count != spec.source.count:  # another column of counts: what the others are is found again
        return replace(
            spec, source=replace(source, drop=None, carry=None), records=RecordsSpec(), axes=_kept_categories(spec)
        )
    roles.pop(count or "", None)
    within = {name: role.removeprefix(WITHIN) for name, role in roles.items() if role.startswith(WITHIN)}
    carry = {name: role.removeprefix(WITH) for name, role in roles.items() if role.startswith(WITH)}
    names = [name for name, role in roles.items() if role == AXIS or name in within]
    left_out = [name for name in columns if name != count and name not in names and name not in carry]
    declared = {axis: labels for axis, labels in (spec.axes.categories or {}).items() if axis in names}
    axes = replace(
        spec.axes,
        names=names or None,
        within=within or None,
        categories=declared or None,
        dense="dense" in form or None,
    )
    return replace(
        spec, source=replace(source, drop=left_out or None, carry=carry or None), records=RecordsSpec(), axes=axes
    )


def _kept_categories(spec: Spec) -> Axes:
    return Axes(categories=spec.axes.categories if not spec.axes.within else None)


def _of_records(spec: Spec, form: Form, roles: Mapping[str, str]) -> Spec:
    within = {name: role.removeprefix(WITHIN) for name, role in roles.items() if role.startswith(WITHIN)}
    by = [name for name, role in roles.items() if role == AXIS or name in within]
    unit = next((name for name, role in roles.items() if role == UNIT), None)
    before = spec.records
    most = _whole(one(form, "most"), "The number of records of one person")
    if "alone" in form:
        most = 1
    records = replace(
        before,
        by=by or None,
        bins={name: edges for name, edges in (before.bins or {}).items() if name in by} or None,
        missing={name: label for name, label in (before.missing or {}).items() if name in by} or None,
        unit=unit,
        max_rows_per_unit=most if unit is not None or most == 1 else None,
    )
    declared = {axis: labels for axis, labels in (spec.axes.categories or {}).items() if axis in by}
    source = SourceSpec(data=spec.source.data, encoding=spec.source.encoding, sheet=spec.source.sheet)
    return replace(spec, source=source, records=records, axes=Axes(within=within or None, categories=declared or None))


def _whole(text: str, what: str) -> int | None:
    if not text:
        return None
    if small_number(text) < 0:
        raise InputError(f"{what} must be a whole number such as 3, got {text[:20]!r}.")
    return int(text)


def undone(spec: Spec, what: str) -> Spec:
    """The spec without a sheet, an encoding, or rows that were left out; another sheet may have other columns."""
    source = spec.source
    if what in ("sheet", "encoding"):
        other = (
            SourceSpec(data=source.data, encoding=source.encoding) if what == "sheet" else SourceSpec(data=source.data)
        )
        return replace(spec, source=other, records=RecordsSpec(), axes=Axes(), keep=Keep())
    column = what.removeprefix(ROWS)
    rows = {name: labels for name, labels in (source.drop_rows or {}).items() if name != column}
    return replace(spec, source=replace(source, drop_rows=rows or None))


# -- the kept totals --------------------------------------------------------------------------------


def totals(spec: Spec, form: Form, axes: Sequence[str]) -> Spec:
    """The margins to keep: each value of the field is the places of its axes, with commas between them."""
    margins: list[str | list[str]] = []
    for value in form.get("margin") or []:
        places = [small_number(place) for place in value.split(",")]
        if not all(0 <= place < len(axes) for place in places):
            raise InputError("A total must be of axes of this table. Load the page again.")
        margins.append([axes[place] for place in places])
    output = replace(spec.output, accept_pinned=None)
    if "nothing" in form and not spec.keep.nothing:  # the last tick counts
        return replace(spec, keep=Keep(nothing=True), output=output)
    total = "total" in form or None
    nothing = "nothing" in form and not (margins or total)
    keep = replace(spec.keep, margins=margins or None, total=total, nothing=nothing or None)
    return replace(spec, keep=keep, output=output)


def add_set(spec: Spec, form: Form, domain: Domain) -> Spec:
    """One more kept total, over the cells that were clicked."""
    cells = sorted({int(cell) for cell in re.findall(r"\d{1,12}", one(form, "cells"))})
    name = one(form, "name")
    if not cells or cells[-1] >= domain.size:
        raise InputError("A set must have at least one cell. Click the cells whose total is to be kept.")
    if not name:
        raise InputError("A set of cells must have a name, such as 'coast'. Enter one.")
    subset = Subset(name=name, cells=[dict(domain.cell(cell)) for cell in cells])
    keep = replace(spec.keep, subset=[*(spec.keep.subset or []), subset], nothing=None)
    return replace(spec, keep=keep, output=replace(spec.output, accept_pinned=None))


def drop_set(spec: Spec, form: Form) -> Spec:
    """One kept total of a set of cells less."""
    number = small_number(one(form, "number"))
    left = [subset for k, subset in enumerate(spec.keep.subset or []) if k != number]
    return replace(spec, keep=replace(spec.keep, subset=left or None), output=replace(spec.output, accept_pinned=None))


# -- the noise --------------------------------------------------------------------------------------

KINDS = ("laplace", "laplace-l2", "gaussian")


def noise(spec: Spec, form: Form, levels: Sequence[tuple[str, ...]]) -> Spec:
    """The mechanism; ``levels`` are the totals that a focus may be on."""
    kind = one(form, "kind", "laplace")
    if kind not in KINDS:
        raise InputError("The noise must be one of those on the page. Load it again.")
    per_unit = one(form, "reading", "person") == "unit"
    epsilon = one(form, "epsilon") or None
    focus: dict[str, Any] = {}
    for k, axes in enumerate(levels):
        weight = one(form, f"focus-{k}")
        if weight and weight != "0":
            focus[listed(axes) if axes else ""] = weight
    is_gaussian = kind == "gaussian"
    if kind == "laplace-l2" or (is_gaussian and per_unit):
        focus = {}
    mechanism = NoiseSpec(
        kind="gaussian" if is_gaussian else "laplace",
        epsilon=epsilon,
        delta=(one(form, "delta") or "1e-6") if is_gaussian else None,
        norm="l2" if kind == "laplace-l2" else None,
        per_unit=per_unit or None,
        focus=focus or None,
        cell_share=_share(one(form, "cell_share")) if focus and not per_unit else None,
    )
    output = spec.output if mechanism == spec.mechanism else replace(spec.output, accept_delta=None)
    nonnegative = "nonnegative" in form or None
    return replace(
        spec, mechanism=mechanism, output=output, postprocess=replace(spec.postprocess, nonnegative=nonnegative)
    )


def _share(text: str) -> str | None:
    """The share of cells; that of which nothing is said is 1."""
    return None if text in ("", "1") else text


# Categories, as forms declare them: one list for each column, or all lists in one text.
#
# Nothing is inferred from records. Lists of a table of counts are declared only if somebody says that they are
# public.

NESTED = " > "  # between the labels of a nested category and its parents
LISTS = (
    "The lists must have a line of columns, with the categories of each below it, or be TOML such as "
    'sex = ["female", "male"].'
)


def declared(spec: Spec, form: Form) -> Spec:
    """The categories of every column in the form, one in each line; none if there is no line."""
    if any(_lines(form[f"labels-{number}"][-1]) for number in _numbers(form) if f"labels-{number}" in form):
        _check_public(spec, form)
    for number in _numbers(form):
        axis = one(form, f"axis-{number}")
        if f"labels-{number}" not in form:  # a list too long to be shown stays as it is
            continue
        lines = _lines(form[f"labels-{number}"][-1])
        spec = _declared(spec, axis, lines, one(form, f"bins-{number}"), one(form, f"missing-{number}"))
    return spec


def _check_public(spec: Spec, form: Form) -> None:
    if not spec.records.by and "public" not in form:
        raise InputError(
            "Lists of a table of counts must be public to be declared, and nobody has said so: nothing was declared. "
            "Tick it beside the button, or empty the lists that are not."
        )


def _numbers(form: Form) -> Iterator[int]:
    number = 0
    while f"axis-{number}" in form:
        yield number
        number += 1


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _declared(spec: Spec, axis: str, lines: Sequence[str], edges: str, label: str) -> Spec:
    lists = _without(spec.axes.categories, axis)
    bins, missing = _without(spec.records.bins, axis), _without(spec.records.missing, axis)
    if edges:
        bins[axis] = [edge.strip() for edge in edges.split(",")]
    elif lines:
        lists[axis] = _labels(spec, axis, lines)
    if label:
        missing[axis] = label
    return replace(
        spec,
        axes=replace(spec.axes, categories=lists or None),
        records=replace(spec.records, bins=bins or None, missing=missing or None),
    )


def _without(mapping: Mapping[str, Any] | None, key: str) -> dict[str, Any]:
    return {name: value for name, value in (mapping or {}).items() if name != key}


def _labels(spec: Spec, axis: str, lines: Sequence[str]) -> list[Any]:
    """Labels, each with those of its parents before it if the axis is nested; refuses what is no list of categories."""
    depth, parent = 0, (spec.axes.within or {}).get(axis)
    while parent is not None:
        depth, parent = depth + 1, (spec.axes.within or {}).get(parent)
    if not depth:
        Domain({axis: lines})
        return list(lines)
    paths = [[part.strip() for part in line.split(NESTED, depth)] for line in lines]
    if any(len(path) != depth + 1 for path in paths):
        raise InputError(
            f"Categories of {axis!r} must be lines such as {NESTED.join(['parent'] * depth + ['label'])!r}, because it "
            f"is nested, got one without {NESTED.strip()!r}."
        )
    if len({tuple(path) for path in paths}) < len(paths):
        raise InputError(f"Categories of {axis!r} must be different, got one twice.")
    return paths


# -- all lists in one text ------------------------------------------------------------------------------------------


def from_text(spec: Spec, form: Form, axes: Sequence[str]) -> Spec:
    """The categories of several columns from one text: a file of categories, or columns copied from a sheet."""
    text = (form.get("lists") or [""])[-1].removeprefix("\ufeff")
    if not text.strip():
        raise InputError(LISTS)
    _check_public(spec, form)
    found = _toml(text) or _columns(text)
    strange = [axis for axis in found if axis not in axes]
    if strange or not found:
        got = ", ".join(map(repr, strange[:3])) or "none"
        raise InputError(f"The lists must be of columns that the table is counted by, got {got}. {LISTS}")
    for axis, labels in found.items():
        if isinstance(labels, list) and all(isinstance(label, str) for label in labels):
            spec = _declared(spec, axis, labels, "", (spec.records.missing or {}).get(axis, ""))
            continue
        spec = _declared(spec, axis, [], "", (spec.records.missing or {}).get(axis, ""))
        lists = {**(spec.axes.categories or {}), axis: labels}
        spec = replace(spec, axes=replace(spec.axes, categories=lists))
    return _checked(spec)


def _checked(spec: Spec) -> Spec:
    """The spec, if what TOML declares has the form of one."""
    try:
        return msgspec.convert(msgspec.to_builtins(spec), Spec)
    except msgspec.ValidationError:
        pass
    raise InputError(LISTS)


def _toml(text: str) -> dict[str, Any] | None:
    """Categories as in a file of the shell; None if the text is nothing of the kind."""
    first = text.lstrip().splitlines()[0]
    return domain_of(text, "The lists") if "=" in first or first.startswith(("[", "#")) else None


def _columns(text: str) -> dict[str, list[str]]:
    """The first line has columns, and those below it a category of each; what is blank is none."""
    first = text.lstrip().splitlines()[0]
    separator = next((sign for sign in "\t;," if sign in first), ",")
    rows = list(csv.reader(io.StringIO(text.strip("\r\n")), delimiter=separator))
    names = [name.strip() for name in rows[0]]
    if len(set(names)) < len(names) or not all(names):
        raise InputError(LISTS)
    lists: dict[str, list[str]] = {name: [] for name in names}
    for row in rows[1:]:
        for name, label in zip(names, row, strict=False):
            if label.strip() and label.strip() not in lists[name]:
                lists[name].append(label.strip())
    return {name: labels for name, labels in lists.items() if labels}

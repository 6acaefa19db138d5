"""Categories, as forms declare them: one list for each column, or all lists in one text.

Nothing is inferred from records. Lists of a table of counts are declared only if somebody says that they are public.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from keepsum.desk.forms import Form, one
from keepsum.errors import InputError
from keepsum.specs.spec import Spec
from keepsum.tables.domain import Domain

replace = msgspec.structs.replace
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
    """The categories or the edges of one column, and the category of its missing values."""
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
    from keepsum.sources.declarations import domain_of

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

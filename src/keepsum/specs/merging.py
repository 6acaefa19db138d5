"""One spec over another: a table's own keys over those of the whole spec, and options over both."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from keepsum.specs.spec import SECTIONS, Keep, Noise, Spec
from keepsum.tables.source import with_parents

P = TypeVar("P", bound=msgspec.Struct)
PRIVACY = ("epsilon", "delta", "rho", "sigma", "calibration")
# What remains of these parameters where one of them is replaced.
REMAINS = {"epsilon": {"delta", "calibration"}, "rho": set[str](), "sigma": set[str]()}
BY_COLUMN = {"axes": ("within", "categories"), "records": ("bins", "missing")}
BY_KEY = ("within", "categories", "bins", "missing", "drop_rows", "flags", "carry")


def merged(base: Spec, over: Spec) -> Spec:
    """The spec ``over``, and what it leaves out from ``base``.

    Lists and values are replaced as a whole, mappings from columns key by key. A privacy parameter replaces those that
    it cannot be combined with (rho replaces epsilon and delta), a file of categories those of the spec.
    """
    parts = {section: _merged(getattr(base, section), getattr(over, section)) for section in SECTIONS}
    replace = msgspec.structs.replace
    if over.output.path is not None:  # a certificate goes with its own table
        parts["output"] = replace(parts["output"], certificate=over.output.certificate)
    if over.axes.domain is not None:
        parts["axes"] = replace(parts["axes"], categories=over.axes.categories)
    parts["mechanism"] = _merged(_without_replaced(base.mechanism, over.mechanism), over.mechanism)
    return Spec(**parts)


def overridden(spec: Spec, options: Spec) -> Spec:
    """The spec with options over it: those for kept totals replace all that it keeps."""
    by = options.records.by
    both = merged(spec if by is None else for_columns(spec, by), options)
    return both if options.keep == Keep() else msgspec.structs.replace(both, keep=options.keep)


def _merged(base: P, over: P) -> P:
    chosen: dict[str, Any] = {}
    for field in msgspec.structs.fields(over):
        below, above = getattr(base, field.name), getattr(over, field.name)
        if field.name in BY_KEY and isinstance(below, dict) and isinstance(above, dict) and above:
            chosen[field.name] = below | above
        else:
            chosen[field.name] = below if above is None else above
    return type(over)(**chosen)


def _without_replaced(base: Noise, over: Noise) -> Noise:
    """The noise without the parameters that new ones replace."""
    if over.kind is not None and over.kind != (base.kind or "laplace"):
        base = msgspec.structs.replace(
            base, **dict.fromkeys(("norm", "focus", "cell_share", "focus_files", "subset", *PRIVACY[1:]))
        )
    given = [name for name in REMAINS if getattr(over, name) is not None]
    if not given:
        return base
    remains = set.intersection(*(REMAINS[name] for name in given))
    return msgspec.structs.replace(base, **{name: None for name in PRIVACY if name not in remains})


def for_columns(common: Spec, by: list[str]) -> Spec:
    """A spec for a table that counts records by these columns, with their parents: nothing is said of others."""
    columns = with_parents(by, common.axes.within or {})
    parts = {}
    for section, keys in BY_COLUMN.items():
        part = getattr(common, section)
        said = {key: getattr(part, key) for key in keys if getattr(part, key) is not None}
        kept = {key: {column: value for column, value in of.items() if column in columns} for key, of in said.items()}
        parts[section] = msgspec.structs.replace(part, **kept)
    return msgspec.structs.replace(common, **parts)

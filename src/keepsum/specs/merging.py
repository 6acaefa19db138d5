"""One spec over another: a table's own keys over those of the whole spec, and options over both."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from keepsum.errors import InputError
from keepsum.specs.spec import SECTIONS, Keep, Noise, Spec
from keepsum.tables.source import with_parents

P = TypeVar("P", bound=msgspec.Struct)
PRIVACY = ("epsilon", "delta", "rho", "sigma", "calibration")
IN_A_UNIT = ("epsilon", "rho", "delta")
LOSSES = ("epsilon", "rho", "sigma")
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


def overridden(spec: Spec, options: Spec, found: bool = False) -> Spec:
    """The spec with options over it: those for kept totals replace all that it keeps.

    If the loss is to be ``found``, that of a spec in another unit is none to begin with.
    """
    _check_unit(spec.mechanism, options.mechanism, found)
    if found and options.mechanism.per_unit and not spec.mechanism.per_unit:
        spec = msgspec.structs.replace(spec, mechanism=_without(spec.mechanism, *LOSSES))
    by = options.records.by
    both = merged(spec if by is None else for_columns(spec, by), options)
    return both if options.keep == Keep() else msgspec.structs.replace(both, keep=options.keep)


def _check_unit(spec: Noise, options: Noise, found: bool) -> None:
    """Refuse options that would read a number of the spec in another unit, or be read in another one than it says."""
    if spec.per_unit and not options.per_unit and options.sigma is None:
        for name in (*IN_A_UNIT, "focus"):
            if getattr(options, name) is not None:
                what = "focus" if name == "focus" else "loss"
                raise InputError(
                    f"Option --{name} must be given with --per-unit, as the spec's loss is per unit of distance. For "
                    f"the {what} of one person take per_unit out of the spec."
                )
    if not options.per_unit or spec.per_unit:
        return
    if not found and options.epsilon is None and options.rho is None:
        raise InputError("Option --per-unit must be given with --epsilon or --rho, as the spec's loss is one person's.")
    left = _without_replaced(spec, options)
    if left.delta is not None and options.delta is None:
        raise InputError("Option --per-unit must be given with --delta, as the spec's delta is one person's.")
    if left.focus and not options.focus:
        raise InputError("Option --per-unit must be given with --focus, as the values of the spec's focus are shares.")


def number_in_another_unit(common: Noise, table: Noise) -> str | None:
    """The first key of the whole spec that a table would read in another unit; None if there is none."""
    if table.per_unit is None or table.per_unit == bool(common.per_unit):
        return None
    left = _without_replaced(common, table)
    return next((name for name in (*IN_A_UNIT, "focus") if getattr(left, name) and getattr(table, name) is None), None)


def _merged(base: P, over: P) -> P:
    chosen: dict[str, Any] = {}
    for field in msgspec.structs.fields(over):
        below, above = getattr(base, field.name), getattr(over, field.name)
        if field.name in BY_KEY and isinstance(below, dict) and isinstance(above, dict) and above:
            chosen[field.name] = below | above
        else:
            chosen[field.name] = below if above is None else above
    return type(over)(**chosen)


def _without(noise: Noise, *names: str) -> Noise:
    return msgspec.structs.replace(noise, **dict.fromkeys(names))


def _without_replaced(base: Noise, over: Noise) -> Noise:
    """The noise without the parameters that new ones replace."""
    if over.kind is not None and over.kind != (base.kind or "laplace"):
        base = _without(base, "norm", "focus", "cell_share", "focus_files", "subset", *PRIVACY[1:])
    given = [name for name in REMAINS if getattr(over, name) is not None]
    if not given:
        return base
    remains = set.intersection(*(REMAINS[name] for name in given))
    unit = None if over.sigma is not None else base.per_unit  # a width is no loss
    left = _without(base, *(name for name in PRIVACY if name not in remains))
    return msgspec.structs.replace(left, per_unit=unit)


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

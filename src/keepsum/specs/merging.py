"""One spec over another: a table's own keys over those of the whole spec, and options over both."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from keepsum.specs.spec import SECTIONS, Noise, Spec, is_said

P = TypeVar("P", bound=msgspec.Struct)
PRIVACY = ("epsilon", "delta", "rho", "sigma", "calibration")
# What remains of these parameters where one of them is replaced.
REMAINS = {"epsilon": {"delta", "calibration"}, "rho": set[str](), "sigma": set[str]()}
BY_COLUMN = {"axes": ("within", "categories"), "records": ("bins", "missing")}


def merged(base: Spec, over: Spec) -> Spec:
    """The spec ``over``, and what it leaves out from ``base``.

    Lists and values are replaced as a whole, tables key by key. A privacy parameter replaces those that it cannot be
    combined with: rho replaces epsilon and delta.
    """
    parts = {section: _merged(getattr(base, section), getattr(over, section)) for section in SECTIONS}
    if over.output.path is not None:  # a certificate goes with its own table
        parts["output"] = msgspec.structs.replace(parts["output"], certificate=over.output.certificate)
    parts["mechanism"] = _merged(_without_replaced(base.mechanism, over.mechanism), over.mechanism)
    return Spec(**parts)


def _merged(base: P, over: P) -> P:
    chosen: dict[str, Any] = {}
    for field in msgspec.structs.fields(over):
        below, above = getattr(base, field.name), getattr(over, field.name)
        if isinstance(below, dict) and isinstance(above, dict):
            chosen[field.name] = below | above
        else:
            chosen[field.name] = above if is_said(above) else below
    return type(over)(**chosen)


def _without_replaced(base: Noise, over: Noise) -> Noise:
    """The noise without the parameters that new ones replace."""
    if over.kind is not None and over.kind != (base.kind or "laplace"):
        base = msgspec.structs.replace(base, norm=None, **dict.fromkeys(PRIVACY[1:]))
    given = [name for name in REMAINS if getattr(over, name) is not None]
    if not given:
        return base
    remains = set.intersection(*(REMAINS[name] for name in given))
    return msgspec.structs.replace(base, **{name: None for name in PRIVACY if name not in remains})


def for_columns(common: Spec, by: list[str]) -> Spec:
    """What tables have in common, for one that counts records by these columns: nothing is said of others."""
    parts = {
        section: msgspec.structs.replace(
            getattr(common, section),
            **{key: {c: v for c, v in getattr(getattr(common, section), key).items() if c in by} for key in keys},
        )
        for section, keys in BY_COLUMN.items()
    }
    return msgspec.structs.replace(common, **parts)

"""Which keys of a spec a message is about: for the line of a file, or the field of a form, that it is shown at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from keepsum.specs.spec import Spec, asks

UNRELATED = 5


def keys_about(message: str, spec: Spec, sections: Sequence[str]) -> list[tuple[str, str]]:
    """The keys of some sections that a message is most closely about, as (section, key); none if it is about none."""
    ranks = {key: _rank(message, key[1], getattr(getattr(spec, key[0]), key[1])) for key in said(spec, sections)}
    best = min(ranks.values(), default=UNRELATED)
    return [key for key, rank in ranks.items() if rank == best < UNRELATED]


def said(spec: Spec, sections: Sequence[str]) -> list[tuple[str, str]]:
    """The keys of sections about which something was said."""
    parts = {section: getattr(spec, section) for section in sections}
    return [(name, key) for name, part in parts.items() for key in part.__struct_fields__ if asks(getattr(part, key))]


def _rank(message: str, key: str, value: Any) -> int:
    """How closely a message is about a key: it is to go, its value is wrong, repeated, or it has its name as a word."""
    option = key.replace("_", "-")
    if re.search(rf"\bLeave out (--{option}\b(?!-)|{key}=)", message):
        return 0
    wrong = re.search(r"(?:\bgot|\bhas no label) ('[^']*'|\"[^\"]*\")", message)
    if wrong is not None and _quotes(wrong[1], value):
        return 1
    if not isinstance(value, dict) and _quotes(message, value):
        return 2
    if re.search(rf"--{option}\b(?!-)|\b{key}=", message):
        return 3
    words = {word.lower() for word in re.findall(r"\w+", message)}
    return 4 if key in words else UNRELATED


def _quotes(message: str, value: Any) -> bool:
    """Whether a message repeats a text of a value in quotes."""
    if isinstance(value, str):
        return repr(value) in message
    if isinstance(value, dict):
        return any(_quotes(message, item) for pair in value.items() for item in pair)
    return isinstance(value, list) and any(_quotes(message, item) for item in value)

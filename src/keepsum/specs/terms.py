"""The library speaks of arguments; a message about a spec shows its keys instead."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

SECTIONS = {
    "source": ("count", "drop", "drop_rows", "carry", "wide", "keep_order", "sheet", "encoding", "structure", "flags"),
    "axes": ("within", "dense", "quote_formulas"),
    "records": ("by", "bins", "missing", "unit", "max_rows_per_unit"),
    "mechanism": ("delta",),
    "output": ("accept_delta",),
}
KEYS = {
    **{name: f"{section}.{name}" for section, names in SECTIONS.items() for name in names},
    "axes": "axes.names",
    "domain": "axes.categories",
    "table": "source.table",
}
_NAMES = "|".join(sorted(KEYS, key=len, reverse=True))
_ARGUMENT = re.compile(rf"(?<![\w.'\"=-])({_NAMES})=(\{{[^{{}}]*\}}|\[[^\[\]]*\]|'[^']*'|True|\d+|[A-Z]+\b)?")
_PASSED = re.compile(rf"\b(Pass|pass) (?=(?:{'|'.join(SECTIONS)})\.)")


def in_spec_terms(message: str) -> str:
    """A message of the library with keys of a spec instead of arguments.

    >>> in_spec_terms("Pass within={'county': 'state'} to nest it, or dense=True if all are cells. Leave out sheet=.")
    'Set axes.within = { county = "state" } to nest it, or axes.dense = true if all are cells. Leave out source.sheet.'
    """
    message = _ARGUMENT.sub(lambda match: _setting(match[1], match[2]), message)
    message = _PASSED.sub(lambda match: "Set " if match[1] == "Pass" else "set ", message)
    return message.replace("with per_unit", "with mechanism.per_unit = true")


def _setting(name: str, value: str | None) -> str:
    if value is None or value.isupper():  # nothing, or a word that stands for something
        return KEYS[name]
    try:
        return f"{KEYS[name]} = {_toml(ast.literal_eval(value))}"
    except (ValueError, SyntaxError):
        return f"{KEYS[name]} = {value}"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_name(str(key))} = {_toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _name(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)

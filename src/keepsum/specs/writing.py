"""A spec as the text of ``keepsum.toml``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from keepsum.sources.records.databases import is_address, scheme_of, sqlite_path
from keepsum.specs.spec import PATHS, SECTIONS, Spec

HEAD = """# What to release, for `keepsum release` in this folder. Options override it: keepsum release --epsilon 0.5
# Every key is in docs/inputs.md, "A release that repeats". Paths are relative to this file.
version = 1
"""
COMMENTS = {
    "source": "Where the table is.",
    "records": "How records are counted.",
    "axes": "The axes, which is nested in which, and their categories.",
    "keep": "The totals that are published exactly, and so not protected.",
    "mechanism": "The noise.",
    "postprocess": "What is made of the release.",
    "output": "Where the release goes.",
    "ledger": "The ledger that it is charged to.",
}
WIDTH = 100  # of a line, beyond which a list has a line per item
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_of(spec: Spec) -> str:
    """The text of a spec with one release; nothing is written of what has its default."""
    sections = [_section(name, getattr(spec, name)) for name in SECTIONS]
    return "\n".join([HEAD, *(text for text in sections if text)])


def in_folder_of(spec: Spec, file: Path) -> Spec:
    """The spec with its paths as they are seen from the folder of the file that it is written to."""
    replaced = {}
    for section, keys in PATHS.items():
        part = getattr(spec, section)
        paths = {key: _seen_from(getattr(part, key), file.parent) for key in keys}
        replaced[section] = msgspec.structs.replace(part, **paths)
    return msgspec.structs.replace(spec, **replaced)


def _seen_from(value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return [_seen_from(path, folder) for path in value]
    if value is None or value == "-":
        return value
    if scheme_of(value) == "sqlite":  # a path is looked for in the folder of the spec, wherever that is used from
        value = sqlite_path(value)
    if is_address(value) or folder == Path() or Path(value).is_absolute():
        return value
    # Without links, which ".." does not follow back; what the path itself leads to stays its own affair.
    place = Path(value).parent.resolve() / Path(value).name
    path = os.path.relpath(place, folder.resolve())
    return path + "/" * (value.endswith("/") and not path.endswith("/"))


def _section(name: str, part: msgspec.Struct) -> str:
    content = {
        field.encode_name: getattr(part, field.name)
        for field in msgspec.structs.fields(part)
        if getattr(part, field.name) is not None
    }
    if not content:
        return ""
    tables = {key: value for key, value in content.items() if _is_long(value)}
    lines = [f"# {COMMENTS[name]}", f"[{name}]"]
    lines += [f"{key} = {_value(value)}" for key, value in content.items() if key not in tables]
    for key, table in tables.items():
        lines += ["", f"[{name}.{key}]", *(f"{_key(name)} = {_value(item)}" for name, item in table.items())]
    return "\n".join(lines) + "\n"


def _is_long(value: Any) -> bool:
    """Whether a mapping is written as a table of its own."""
    return isinstance(value, Mapping) and len(_value(value)) > WIDTH // 2


def _by_name(categories: Any) -> Any:
    """Categories by parent with the parent's label as the key; those of deeper nesting as lists of labels."""
    if not isinstance(categories, Mapping) or not any(isinstance(key, tuple) for key in categories):
        return categories
    if all(len(path) == 1 for path in categories):
        return {path[0]: labels for path, labels in categories.items()}
    return [[*path, label] for path, labels in categories.items() for label in labels]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
        value = {key: item for key, item in value.items() if item is not None}
    value = _by_name(value)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(item)}' for key, item in value.items())} }}"
    items = [_value(item) for item in value]
    line = f"[{', '.join(items)}]"
    return line if len(line) <= WIDTH else "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def _key(name: Any) -> str:
    return name if isinstance(name, str) and _BARE.fullmatch(name) else _text(str(name))


def _text(text: str) -> str:
    r"""Text in quotes, as TOML wants it.

    >>> print(_text('5" pipe\n'))
    "5\" pipe\u000a"
    """
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{"".join(c if c.isprintable() else _escaped(c) for c in quoted)}"'


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"

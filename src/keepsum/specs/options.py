"""All options of a release by their keys, each with what every face of Keepsum must know of it.

The record of an option (``Option``) stands beside its key in ``spec.py``. Look one up by its key, ``OPTIONS[key]``, and
say it in the words of a face:

- ``.key``, a spec: ``source.count``; ``.section`` and ``.name`` are its parts;
- ``.flag``, the shell: ``--count``; None for what a spec alone says (``source.data`` is the argument TABLE);
- ``.argument``, Python: ``count``, of ``ks.read_table``, ``ks.tabulate``, a mechanism or ``ks.release``;
- ``.label``, a sentence on the page: "the column of counts";
- ``.kind.show(value)``, the texts that a shell gives a value by, one for each time that the flag must be given.

>>> option = OPTIONS["source.carry"]
>>> option.flag, option.argument, option.label
('--carry', 'carry', 'the columns published along with others')
>>> option.kind.show({"fips": "county"})
['fips:county']
>>> by_argument("max_rows_per_unit").key, by_flag("--axes").key
('records.max_rows_per_unit', 'axes.names')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, get_type_hints

import msgspec

from keepsum.specs.option import Option
from keepsum.specs.spec import Spec, SpecFile

S = TypeVar("S", bound=Spec)


def _all() -> Iterator[Option]:
    for section, part in get_type_hints(Spec).items():
        for name, hint in get_type_hints(part, include_extras=True).items():
            for option in getattr(hint, "__metadata__", ()):
                if isinstance(option, Option):
                    flag = f"--{name.replace('_', '-')}" if option.flag == "" else option.flag
                    yield replace(option, key=f"{section}.{name}", flag=flag, argument=option.argument or name)


OPTIONS: Mapping[str, Option] = {option.key: option for option in _all()}


# Files in a spec, which are looked for in its folder; the data may also be an address.
PATHS = tuple(option for option in OPTIONS.values() if option.kind.is_path)


def by_flag(flag: str) -> Option:
    """The option of the shell; KeyError if there is none."""
    return _BY_FLAG[flag]


def by_argument(argument: str) -> Option:
    """The first option that Python calls so; KeyError if there is none."""
    return _BY_ARGUMENT[argument]


_BY_FLAG = {option.flag: option for option in OPTIONS.values() if option.flag is not None}
_BY_ARGUMENT = {option.argument: option for option in reversed(list(OPTIONS.values()))}


def value_of(spec: Spec, option: Option) -> Any:
    """What a spec says of an option; None if nothing."""
    return getattr(getattr(spec, option.section), option.name)


def with_values(spec: S, values: Mapping[str, Any]) -> S:
    """The spec with other values, by their keys."""
    sections: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    parts = {name: msgspec.structs.replace(getattr(spec, name), **said) for name, said in sections.items()}
    return msgspec.structs.replace(spec, **parts)


def adding(spec: S, values: Mapping[str, Any]) -> S:
    """The spec with more values, by their keys: they are appended to lists, and replace those of mappings.

    >>> spec = adding(Spec(), {"source.drop": ["a"], "axes.within": {"town": "county"}})
    >>> spec = adding(spec, {"source.drop": ["b"], "axes.within": {"county": "state"}})
    >>> spec.source.drop, spec.axes.within
    (['a', 'b'], {'town': 'county', 'county': 'state'})
    """
    return with_values(spec, {key: _both(value_of(spec, OPTIONS[key]), value) for key, value in values.items()})


def with_typed(spec: S, key: str, texts: Sequence[str]) -> S:
    """The spec with more values of an option, read from the texts that its flag would be given.

    >>> with_typed(Spec(), "axes.within", ["town:county"]).axes.within
    {'town': 'county'}
    """
    option = OPTIONS[key]
    return adding(spec, {key: option.kind.read(texts, option.flag or "", spec.axes.within or {})})


def _both(before: Any, more: Any) -> Any:
    if isinstance(before, dict) and isinstance(more, dict):
        inner = {key: _both(before[key], of) for key, of in more.items() if isinstance(before.get(key), dict)}
        return {**before, **more, **inner}
    if isinstance(before, list) and isinstance(more, list):
        return [*(one for one in before if one not in more), *more]
    return more


def json_schema() -> bytes:
    """The JSON Schema of ``keepsum.toml``, for editors that complete, explain and check it."""
    schema = msgspec.json.schema(SpecFile)
    for option in OPTIONS.values():
        part = type(getattr(Spec(), option.section)).__name__
        schema["$defs"][part]["properties"][option.name]["description"] = option.help
    document: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "keepsum.toml",
        **schema,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"

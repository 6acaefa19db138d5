"""``keepsum.toml``, read strictly: an error names the key and the line."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from keepsum._arguments import check_path
from keepsum._text import given, shown_name
from keepsum.errors import InputError
from keepsum.sources.declarations import file_text, load_toml, toml_problem
from keepsum.sources.records.databases import check_no_password, is_address, scheme_of, sqlite_path
from keepsum.specs.lines import Key, lines_of
from keepsum.specs.spec import PATHS, SECTIONS, VERSION, Spec, SpecFile

NAME = "keepsum.toml"
WITHOUT_VERSION = (
    "a spec must have version = 1 in its first line, where epsilon and rho are the loss of one person. Leave out "
    "per_person = true; where it was not said, write per_unit = true in [mechanism] to mean the loss per unit of "
    "distance."
)
PER_PERSON = (
    "must not have a key 'per_person', because epsilon and rho are the loss of one person. Leave it out, or write "
    "per_unit = true for the loss per unit of distance."
)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*?)`(?: - at `\$\.?(?P<place>.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<key>\w+)`(?: - at `\$\.?(?P<place>.*)`)?$")
_KIND = re.compile(r"Expected `(?P<wanted>.*?)`, got `(?P<got>\w+)`(?: - at `\$\.?(?P<place>.*)`)?$")
_CHOICE = re.compile(r"Invalid enum value .*?(?: - at `\$\.?(?P<place>.*)`)?$", re.DOTALL)
TABLES = ("table", "marginal", "keep.subset")
IN_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "text",
    "null": "left out",
}


@dataclass(frozen=True)
class Lines:
    """The keys of a spec and their lines, to say where something is wrong."""

    name: str
    of_keys: Mapping[Key, int] = field(default_factory=dict, repr=False)

    def at(self, key: Key) -> str:
        """The place of a key, or of the nearest that contains it: ``keepsum.toml, line 7``."""
        while key and not self.has(key):
            key = key[:-1]
        first = min((line for other, line in self.of_keys.items() if other[: len(key)] == key), default=0)
        return f"{self.name}, line {first}" if key else self.name

    def has(self, key: Key) -> bool:
        """Whether there is such a key, or one in it."""
        return any(other[: len(key)] == key for other in self.of_keys)


def read_spec(path: Path) -> tuple[SpecFile, Lines]:
    """A spec with the files that it names relative to its folder, and the lines of its keys."""
    text = file_text(path)
    name = str(path)
    problem = None
    try:
        content = {key: _without_dates(value) for key, value in load_toml(text).items()}
    except (ValueError, RecursionError) as error:
        problem = toml_problem(error, text)  # without a place for what is too deep or too long
    if problem is not None:
        raise InputError(f"Spec {name!r} must be valid TOML, but is not{problem}.")
    lines = Lines(name, lines_of(text))
    _check_version(content, lines)
    try:
        spec = msgspec.convert(content, SpecFile)
    except msgspec.ValidationError as error:
        problem = _in_words(str(error), lines, content)
    if problem is not None:
        raise InputError(problem)
    _check_names(spec, lines)
    _check_paths(spec, lines)
    spec = _in_folder(spec, path.parent)
    _check_addresses(spec, lines)
    return spec, lines


def _check_version(content: Mapping[str, Any], lines: Lines) -> None:
    """Refuse a spec of which it is not known what its keys mean."""
    if "version" not in content:
        raise InputError(f"{lines.name}: {WITHOUT_VERSION}")
    version = content["version"]
    if type(version) is not int or version != VERSION:
        got = given(version) if isinstance(version, (str, int, float)) else "something else"
        raise InputError(f"{lines.at(('version',))}: version must be {VERSION}, got {got}.")


def _without_dates(value: Any) -> Any:
    """Dates as ISO text, which is how labels and edges have them."""
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _without_dates(item) for key, item in value.items()}
    return [_without_dates(item) for item in value] if isinstance(value, list) else value


def _in_words(problem: str, lines: Lines, content: Any) -> str:
    """What is wrong with a spec: the line, the key and what it must be. No value is repeated."""
    if match := _UNKNOWN.match(problem):
        key = _key(match["place"])
        if match["key"] == "per_person" and key[-1:] == ("mechanism",):
            return f"{lines.at((*key, match['key']))}: {_shown(key)} {PER_PERSON}"
        where = _shown(key) or "the spec"
        unknown = f"{where} must not have a key {shown_name(match['key'])}. {_advice(key, match['key'])}"
        return f"{lines.at((*key, match['key']))}: {unknown}"
    if match := _MISSING.match(problem):
        key = _key(match["place"])
        return f"{lines.at(key)}: {_shown(key)} must have a key {match['key']!r}."
    if match := _KIND.match(problem):
        key = _key(match["place"])
        kinds = match["wanted"].split(" | ")
        wanted = [IN_WORDS[kind] for kind in kinds if kind != "null" and (kind != "int" or "float" not in kinds)]
        return (
            f"{lines.at(key)}: {_shown(key) or 'the spec'} must be {' or '.join(wanted)}, got {IN_WORDS[match['got']]}."
        )
    match = _CHOICE.match(problem)
    key = _key(match["place"] if match else None)
    choices = {"kind": "'laplace' or 'gaussian'", "norm": "'l1' or 'l2'"}
    got = given(_value(content, key))
    return f"{lines.at(key)}: {_shown(key)} must be {choices.get(str(key[-1]) if key else '', 'another')}, got {got}."


def _advice(key: Key, name: str) -> str:
    """Where an unknown key belongs, if that is known; else those that there may be."""
    in_section = bool(key) and key[-1] in SECTIONS
    root = key[:-1] if in_section else key
    if root == () or (root[0] == "table" and len(root) == 2):
        if name == "version":
            return "Put it in the first line."
        sections = [section for section in SECTIONS if name in _fields((section,))]
        if sections:
            places = [f"{section}.{name}" if root else f"[{section}]" for section in sections]
            return f"{'Write' if root else 'Put it in'} {' or '.join(places)}."
    known = _fields(key)
    near = get_close_matches(name, known, 1)
    return f"Did you mean {near[0]!r}?" if near else f"Its keys are {', '.join(known)}."


def _value(content: Any, key: Key) -> Any:
    for part in key:
        content = content[part]
    return content


def _key(place: str | None) -> Key:
    """The key that msgspec names, such as ``table[0].mechanism``; what it does not name is left out."""
    found = re.findall(r"\[(\d+)\]|(\[\.\.\.\])|([^.\[\]]+)", place or "")
    key: list[str | int] = []
    for number, unnamed, name in found:
        if unnamed:
            break
        key.append(int(number) if number else name)
    return tuple(key)


def _shown(key: Key) -> str:
    """A key as a reader writes it: ``mechanism.epsilon``, ``[[table]] 2 keep``, ``item 3 of keep.margins``."""
    numbers = [place for place, part in enumerate(key) if isinstance(part, int)]
    if not numbers:
        return ".".join(map(str, key))
    place = numbers[0]
    name, number, rest = ".".join(map(str, key[:place])), int(key[place]) + 1, _shown(key[place + 1 :])
    if name in TABLES:
        return f"[[{name}]] {number}" + (f" {rest}" if rest else "")
    return f"item {number} of {name}"


def _fields(key: Key) -> list[str]:
    """The keys that there may be in a part of a spec."""
    kind: Any = SpecFile
    for part in key:
        if isinstance(part, int):
            continue
        hint = next((f.type for f in msgspec.structs.fields(kind) if f.name == part), SpecFile)
        kind = getattr(hint, "__args__", (hint,))[0]
        kind = getattr(kind, "__args__", (kind,))[0]  # of a list that may be left out
    return [f.name for f in msgspec.structs.fields(kind)]


def _check_names(spec: SpecFile, lines: Lines) -> None:
    """Several tables have different names, and every sum is over one of them."""
    names = [table.name for table in spec.table]
    for place, name in enumerate(names):
        if not name or name in names[:place]:
            raise InputError(
                f"{lines.at(('table', place, 'name'))}: tables must have different names that are not empty."
            )
    for place, marginal in enumerate(spec.marginal):
        key = ("marginal", place, "of")
        if spec.table and marginal.of not in names:
            raise InputError(f"{lines.at(key)}: [[marginal]] {place + 1} must say of which table it is, with 'of'.")
        if not spec.table and marginal.of is not None:
            raise InputError(f"{lines.at(key)}: 'of' must be left out, because the spec has no [[table]].")


def _check_paths(spec: SpecFile, lines: Lines) -> None:
    """Text in TOML may contain characters that no path can."""
    parts: list[tuple[Key, Any, tuple[str, ...]]] = [
        ((*place, section), getattr(part, section), keys)
        for place, part in _parts(spec)
        for section, keys in PATHS.items()
    ]
    parts += [(("marginal", place), marginal, ("output",)) for place, marginal in enumerate(spec.marginal)]
    for place, part, keys in parts:
        for key in keys:
            value, where = getattr(part, key), (*place, key)
            for path in [value] if isinstance(value, str) else value or []:
                check_path(path, f"{lines.at(where)}: {_shown(where)}")


def _parts(spec: SpecFile) -> list[tuple[Key, Spec]]:
    """What all releases have in common, and every table."""
    return [((), spec), *((("table", place), table) for place, table in enumerate(spec.table))]


def _check_addresses(spec: SpecFile, lines: Lines) -> None:
    """A spec is passed on, so it must hold no password."""
    for key, part in _parts(spec):
        data = part.source.data
        problem = ""
        try:
            for source in [data] if isinstance(data, str) else data or []:
                check_no_password(source)
        except InputError as error:
            problem = str(error)
        if problem:
            raise InputError(f"{lines.at((*key, 'source', 'data'))}: {problem}")


def _in_folder(spec: SpecFile, folder: Path) -> SpecFile:
    """The spec with its files relative to the folder that it is in."""
    replace = msgspec.structs.replace
    return replace(
        spec,
        **dict(_sections_in_folder(spec, folder)),
        table=[replace(table, **dict(_sections_in_folder(table, folder))) for table in spec.table],
        marginal=[replace(marginal, output=_path(marginal.output, folder)) for marginal in spec.marginal],
    )


def _sections_in_folder(spec: Spec, folder: Path) -> Iterator[tuple[str, Any]]:
    for section, keys in PATHS.items():
        part = getattr(spec, section)
        paths = {key: _paths(getattr(part, key), folder) for key in keys}
        yield section, msgspec.structs.replace(part, **paths)


def _paths(value: str | list[str] | None, folder: Path) -> Any:
    if isinstance(value, list):
        return [_path(path, folder) for path in value]
    return value if value is None else _path(value, folder)


def _path(path: str, folder: Path) -> str:
    """A path of the spec, as seen from here; an address, standard output and a folder's slash stay as they are."""
    if folder == Path() or path in ("", "-"):
        return path
    if scheme_of(path) == "sqlite":
        return f"sqlite:///{folder / sqlite_path(path)}"
    if is_address(path):
        return path
    place = Path(glob.escape(str(folder))) if glob.has_magic(path) and not (folder / path).exists() else folder
    return str(place / path) + ("/" if path.endswith("/") else "")

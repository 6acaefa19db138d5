"""``keepsum.toml``, read strictly: an error names the key and the line."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from keepsum._arguments import check_path
from keepsum._saying import arg, the
from keepsum._text import given, shown_name
from keepsum.errors import InputError
from keepsum.sources.declarations import file_text, load_toml, toml_problem
from keepsum.sources.records.files import check_no_password, is_address, scheme_of, sqlite_path
from keepsum.specs.options import PATHS, value_of, with_values
from keepsum.specs.spec import SECTIONS, VERSION, Spec, SpecFile

# Where the keys of a TOML document are: a parser gives values, and a message needs lines.

Key = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_NAME = re.compile(r"""[ \t]*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([A-Za-z0-9_-]+))[ \t]*""")
# What a value consists of: strings, comments, brackets, and anything else.
_PIECE = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'|"
    r"\#[^\n]*|"
    r"[\[{]|[\]}]|\n|[^\"'\#\[\]{}\n]+",
    re.DOTALL,
)


def lines_of(text: str) -> dict[Key, int]:
    r"""The line of every key and table header of a valid TOML document; keys in inline tables are not looked for.

    The tables of an array are numbered from 0.

    >>> lines_of("[a]\nb = 1\n[[c]]\n[[c]]\nd.e = '''\n[x]'''\n")
    {('a',): 1, ('a', 'b'): 2, ('c', 0): 3, ('c', 1): 4, ('c', 1, 'd', 'e'): 5}
    """
    found: dict[Key, int] = {}
    arrays: dict[Key, int] = {}
    table: Key = ()
    line, counted = 1, 0
    for position, is_array, is_header, names in _statements(text):
        line, counted = line + text.count("\n", counted, position), position
        if is_header:
            # The path of a header, with the number of the table of each array that it is in
            path: Key = ()
            for place, name in enumerate(names):
                path = (*path, name)
                if is_array and place == len(names) - 1:
                    arrays[path] = arrays.get(path, -1) + 1
                if path in arrays:
                    path = (*path, arrays[path])
            table = path
            found.setdefault(table, line)
        else:
            found.setdefault((*table, *names), line)
    return found


def _statements(text: str) -> Iterator[tuple[int, bool, bool, list[str]]]:
    """Headers and keys: where each begins, whether it is an array's header or a header, and its names."""
    position = 0
    while True:
        space = _SPACE.match(text, position)
        position = space.end() if space else position
        if position >= len(text):
            return
        start = position
        is_array, is_header = text.startswith("[[", position), text.startswith("[", position)
        names, position = _names(text, position + is_array + is_header)
        yield start, is_array, is_header, names
        position = text.find("\n", position) if is_header else _after_value(text, position)
        if position < 0:
            return


def _names(text: str, position: int) -> tuple[list[str], int]:
    """A dotted key, and the position after it."""
    names: list[str] = []
    while match := _NAME.match(text, position):
        names.append(next(name for name in match.groups() if name is not None))
        position = match.end()
        if not text.startswith(".", position):
            break
        position += 1
    return names, position


def _after_value(text: str, position: int) -> int:
    depth = 0
    while match := _PIECE.match(text, position):
        piece = match.group()
        depth += (piece in "[{") - (piece in "]}")
        if piece == "\n" and depth <= 0:
            break
        position = match.end()
    return position


S = TypeVar("S", bound=Spec)
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
SETTING = re.compile(r"\{([A-Za-z_]\w*)\}")  # what --set gives a text for
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
class KeyLines:
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


def _at(lines: KeyLines, key: Key) -> str:
    """The place of a key in a message, which is about this file."""
    return f"{the.file(lines.name).called(lines.at(key))}"


def read_spec(path: Path, settings: Mapping[str, str] | None = None) -> tuple[SpecFile, KeyLines]:
    """A spec with the files that it names relative to its folder, and the lines of its keys.

    With ``settings``, ``{month}`` in a text of the spec stands for the setting of that name.
    """
    text = file_text(path)
    name = str(path)
    problem = None
    try:
        content = {key: _without_dates(value) for key, value in load_toml(text).items()}
    except (ValueError, RecursionError) as error:
        problem = toml_problem(error, text)  # without a place for what is too deep or too long
    if problem is not None:
        raise InputError(f"Spec {the.file(name)} must be valid TOML, but is not{problem}.")
    used: set[str] = set()
    content = _filled(content, settings or {}, used)
    if unused := next((known for known in settings or {} if known not in used), None):
        raise InputError(
            f"Spec {the.file(name)} must have a text with {{{unused}}}, but has none. Leave out "
            f"{arg['set'].of(unused)}."
        )
    lines = KeyLines(name, lines_of(text))
    # Refuse a spec of which it is not known what its keys mean
    if "version" not in content:
        raise InputError(f"{_at(lines, ())}: {WITHOUT_VERSION}")
    version = content["version"]
    if type(version) is not int or version != VERSION:
        got = given(version) if isinstance(version, (str, int, float)) else "something else"
        raise InputError(f"{_at(lines, ('version',))}: version must be {VERSION}, got {got}.")
    try:
        spec = msgspec.convert(content, SpecFile)
    except msgspec.ValidationError as error:
        problem = _in_words(str(error), lines, content)
    if problem is not None:
        raise InputError(problem)
    _check_names(spec, lines)
    _check_paths(spec, lines, settings or {})
    # The spec with its files relative to the folder that it is in
    spec = msgspec.structs.replace(
        _files_in(spec, path.parent),
        table=[_files_in(table, path.parent) for table in spec.table],
        marginal=[msgspec.structs.replace(one, output=_path(one.output, path.parent)) for one in spec.marginal],
    )
    _check_addresses(spec, lines)
    return spec, lines


def _without_dates(value: Any) -> Any:
    """Dates as ISO text, which is how labels and edges have them."""
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _without_dates(item) for key, item in value.items()}
    return [_without_dates(item) for item in value] if isinstance(value, list) else value


def _filled(value: Any, settings: Mapping[str, str], used: set[str]) -> Any:
    """A value with settings in place of their names in braces; other braces stay, and so do keys.

    >>> _filled({"data": ["{month}.csv", "{x}"]}, {"month": "2026-12"}, set())
    {'data': ['2026-12.csv', '{x}']}
    """

    def setting(found: re.Match[str]) -> str:
        if found[1] not in settings:
            return found[0]
        used.add(found[1])
        return settings[found[1]]

    if isinstance(value, dict):
        return {key: _filled(item, settings, used) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, settings, used) for item in value]
    return SETTING.sub(setting, value) if isinstance(value, str) else value


def _in_words(problem: str, lines: KeyLines, content: Any) -> str:
    """What is wrong with a spec: the line, the key and what it must be. No value is repeated."""
    if match := _UNKNOWN.match(problem):
        key = _key(match["place"])
        if match["key"] == "per_person" and key[-1:] == ("mechanism",):
            return f"{_at(lines, (*key, match['key']))}: {_shown(key)} {PER_PERSON}"
        where = _shown(key) or "the spec"
        unknown = f"{where} must not have a key {shown_name(match['key'])}. {_advice(key, match['key'])}"
        return f"{_at(lines, (*key, match['key']))}: {unknown}"
    if match := _MISSING.match(problem):
        key = _key(match["place"])
        return f"{_at(lines, key)}: {_shown(key)} must have a key {match['key']!r}."
    if match := _KIND.match(problem):
        key = _key(match["place"])
        kinds = match["wanted"].split(" | ")
        wanted = [IN_WORDS[kind] for kind in kinds if kind != "null" and (kind != "int" or "float" not in kinds)]
        got = IN_WORDS[match["got"]]
        return f"{_at(lines, key)}: {_shown(key) or 'the spec'} must be {' or '.join(wanted)}, got {got}."
    match = _CHOICE.match(problem)
    key = _key(match["place"] if match else None)
    choices = {"kind": "'laplace' or 'gaussian'", "norm": "'l1' or 'l2'"}
    got = given(_value(content, key))
    return f"{_at(lines, key)}: {_shown(key)} must be {choices.get(str(key[-1]) if key else '', 'another')}, got {got}."


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
    kind: Any = SpecFile
    for part in key:
        if isinstance(part, int):
            continue
        hint = next((f.type for f in msgspec.structs.fields(kind) if f.name == part), SpecFile)
        kind = getattr(hint, "__args__", (hint,))[0]
        kind = getattr(kind, "__args__", (kind,))[0]  # of a list that may be left out
    return [f.name for f in msgspec.structs.fields(kind)]


def _check_names(spec: SpecFile, lines: KeyLines) -> None:
    """Several tables have different names, and every sum is over one of them."""
    names = [table.name for table in spec.table]
    for place, name in enumerate(names):
        if not name or name in names[:place]:
            raise InputError(
                f"{_at(lines, ('table', place, 'name'))}: tables must have different names that are not empty."
            )
    for place, marginal in enumerate(spec.marginal):
        key = ("marginal", place, "of")
        if spec.table and marginal.of not in names:
            raise InputError(f"{_at(lines, key)}: [[marginal]] {place + 1} must say of which table it is, with 'of'.")
        if not spec.table and marginal.of is not None:
            raise InputError(f"{_at(lines, key)}: 'of' must be left out, because the spec has no [[table]].")


def _check_paths(spec: SpecFile, lines: KeyLines, settings: Mapping[str, str]) -> None:
    """Text in TOML may contain characters that no path can, and names in braces that nothing was set for."""
    paths: list[tuple[Key, Any]] = [
        ((*place, one.section, one.name), value_of(part, one)) for place, part in _parts(spec) for one in PATHS
    ]
    paths += [(("marginal", place, "output"), marginal.output) for place, marginal in enumerate(spec.marginal)]
    for where, value in paths:
        for path in [value] if isinstance(value, str) else value or []:
            check_path(path, f"{_at(lines, where)}: {_shown(where)}")
            if (name := SETTING.search(path)) and name[1] not in settings:
                raise InputError(
                    f"{_at(lines, where)}: {_shown(where)} must be told what {name[0]} stands for. Pass "
                    f"{arg['set'].of(f'{name[1]}=TEXT')}."
                )


def _parts(spec: SpecFile) -> list[tuple[Key, Spec]]:
    return [((), spec), *((("table", place), table) for place, table in enumerate(spec.table))]


def _check_addresses(spec: SpecFile, lines: KeyLines) -> None:
    """A spec is passed on, so it must hold no password."""
    for key, part in _parts(spec):
        data = part.source.data
        problem = ""
        try:
            for source in [data] if isinstance(data, str) else data or []:
                check_no_password(source)
        except InputError as error:
            problem = f"{error:marked}"
        if problem:
            raise InputError(f"{_at(lines, (*key, 'source', 'data'))}: {problem}")


def _files_in(spec: S, folder: Path) -> S:
    return with_values(spec, {one.key: _paths(value_of(spec, one), folder) for one in PATHS})


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

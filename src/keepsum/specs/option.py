"""What the record of an option says, and the kinds of values that options have: how each is typed and shown again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from keepsum._saying import arg
from keepsum.errors import InputError

# Names and labels as options of the shell take them: one that contains what separates it from others is quoted.


def listed(labels: Iterable[Any]) -> str:
    """Labels with commas between them, as options take them.

    >>> listed(["Cook", "Rome, NY", '5" pipe', " x"])
    'Cook,"Rome, NY","5"" pipe"," x"'
    """
    return ",".join(quoted(str(label), ',"') for label in labels)


def pair(axis: str, labels: Sequence[Any], *path: str) -> str:
    """A column and labels, as ``--drop-rows`` and ``--categories`` take them; ``path`` are the parents of the labels.

    >>> pair("town", ["Total"]), pair("a=b", ["Total"]), pair("county", ["Cook", "Lake"], "IL")
    ('town=Total', '"a=b"=Total', 'county:IL=Cook,Lake')
    """
    return f"{':'.join(quoted(part, ':=' + chr(34)) for part in (axis, *path))}={listed(labels)}"


def joined(first: str, second: str) -> str:
    """Two names as ``--within`` and ``--carry`` take them.

    >>> joined("county", "state"), joined("Age: years", "Age, group")
    ('county:state', '"Age: years":"Age, group"')
    """
    return ":".join(quoted(name, ',:"') for name in (first, second))


def quoted(text: str, special: str) -> str:
    """A name or a label, in double quotes if it has blanks around it or one of the special marks in it."""
    if text == text.strip() and not any(mark in text for mark in special):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


# Values as options of the shell have them: ``--categories 'education=Low,Medium,Very High'``, ``--drop 'a,"b, c"'``.
#
# One rule for all: a name or label that contains what separates it from others is put in double quotes.

_QUOTED = r'"(?:[^"]|"")*"'  # text in double quotes, with quotes doubled inside
MECHANISMS = ("laplace", "gaussian")
FORM = "AXIS=LABEL,LABEL such as 'sex=f,m', or CHILD:PARENT=LABEL,LABEL such as 'county:IL=Cook,Lake'"
FORMS = {"--drop-rows": "COLUMN=LABEL,LABEL such as 'county=Total'", "--wide": "AXIS=COLUMN,COLUMN such as 'sex=f,m'"}


def parse_categories(texts: Iterable[str], within: Mapping[str, str], option: str = "--categories") -> dict[str, Any]:
    """Categories of axes from command-line options, in the form that ``Domain`` takes.

    Blanks around a label are ignored. A label that contains a comma or a quote, or starts or ends with a blank, must be
    in double quotes, with quotes doubled inside. Categories of a nested axis are given per parent, outermost first,
    separated by colons.

    Examples
    --------
    >>> parse_categories(['education=Low, Very High', 'town="Rome, NY","5"" pipe"'], {})
    {'education': ['Low', 'Very High'], 'town': ['Rome, NY', '5" pipe']}
    >>> parse_categories(["county:IL=Cook,Lake", "county:WI=Lake"], {"county": "state"})
    {'county': {('IL',): ['Cook', 'Lake'], ('WI',): ['Lake']}}
    """
    declared: dict[str, Any] = {}
    seen: set[tuple[str, ...]] = set()
    for text in texts:
        target, labels = _split(text, option)
        axis, *path = target
        if axis not in within:  # a colon is part of its name
            axis, path = ":".join(target), []
        elif not path:
            raise InputError(
                f"{arg[option]} must say within which {within[axis]!r} the categories of {axis!r} are, such as "
                f"{axis}:PARENT=LABEL,LABEL, got {text!r}."
            )
        if len(set(labels)) < len(labels):
            raise InputError(f"{arg[option]} must have different labels, got one twice in {text!r}.")
        if (axis, *path) in seen:
            raise InputError(f"{arg[option]} must give the labels of {':'.join(target)!r} once, got them twice.")
        seen.add((axis, *path))
        if path:
            declared.setdefault(axis, {})[tuple(path)] = labels
        else:
            declared[axis] = labels
    return declared


def _split(text: str, option: str) -> tuple[list[str], list[str]]:
    target, end = _values(text, ":", "=")
    labels, last = _values(text[end:], ",", "")
    if not end or last < len(text) - end or not all((*target, *labels)):
        raise InputError(f"{arg[option]} must be {FORMS.get(option, FORM)}, got {text!r}.")
    return target, labels


def _values(text: str, separator: str, end: str) -> tuple[list[str], int]:
    """The separated values up to an end mark (or the end of the text), and the position after it; 0 without it."""
    value = re.compile(rf"\s*({_QUOTED}|[^{separator}{end}\"]*?)\s*([{separator}{end}]|\Z)")
    values: list[str] = []
    position = 0
    while match := value.match(text, position):
        values.append(_unquoted(match[1]))
        position = match.end()
        if match[2] != separator:
            return values, position if match[2] == end else 0
    return values, 0


def parse_names(texts: Iterable[str] | None, option: str) -> list[str]:
    """Names with commas between them; one with a comma or a quote is put in double quotes.

    >>> parse_names(["county, Age group", '"Region, state"'], "Option --drop")
    ['county', 'Age group', 'Region, state']
    """
    names: list[str] = []
    for text in texts or []:
        values, end = _values(text, ",", "")
        if end < len(text) or not all(values):
            raise InputError(
                f"{option} must be names with commas between them, a name with a comma in double quotes, such as "
                f'county,"Region, state", got {text!r}.'
            )
        names += values
    return names


def parse_name(text: str | None) -> str | None:
    """A single name, which may be in double quotes.

    >>> parse_name('"Person: id"'), parse_name("Person: id"), parse_name('5" pipe')
    ('Person: id', 'Person: id', '5" pipe')
    """
    return _unquoted(text.strip()) if text is not None and re.fullmatch(_QUOTED, text.strip()) else text


def parse_margin(text: str) -> str | list[str]:
    """The axes of a margin: names if any of them is in double quotes, else the text, which may be one name with commas.

    >>> parse_margin("county,sex"), parse_margin('"Region, state",sex')
    ('county,sex', ['Region, state', 'sex'])
    """
    return parse_names([text], "A margin") if '"' in text else text


def parse_focus(texts: Sequence[str]) -> dict[str, Any]:
    """The share, or epsilon, of each of some totals, by their axes as a spec has them.

    >>> parse_focus(["county=2", '"Region, state",sex = 1/3'])
    {'county': '2', '"Region, state",sex': '1/3'}
    """
    focus: dict[str, Any] = {}
    for text in texts:
        axes, end = _values(text, ",", "=")
        weight = text[end:].strip()
        if not end or not weight or ("" in axes and len(axes) > 1):
            raise InputError(f"{arg.focus} must be AXIS=SHARE such as county=2, got {text!r}.")
        key = "" if axes == [""] else listed(axes)
        if key in focus:
            raise InputError(f"{arg.focus} must name different totals, got {key!r} twice.")
        focus[key] = weight
    return focus


def parse_carried(texts: Sequence[str] | None) -> list[str] | dict[str, str]:
    """Columns to carry, each with its axis if one of them has one.

    >>> parse_carried(["fips,iso"]), parse_carried(['"Age: code":Age group'])
    (['fips', 'iso'], {'Age: code': 'Age group'})
    """
    pairs = [part for text in texts or [] for part in _pairs(text, "--carry", "COLUMN:AXIS such as fips:county")]
    if all(len(part) == 1 for part in pairs):
        return [part[0] for part in pairs]
    carried: dict[str, str] = {}
    for part in pairs:
        if len(part) != 2:
            raise InputError(f"{arg.carry} must be COLUMN:AXIS such as fips:county, got {':'.join(part)!r}.")
        carried[part[0]] = part[1]
    return carried


def parse_nesting(texts: Sequence[str] | None) -> dict[str, str]:
    """The parent of each nested axis, from the option --within.

    >>> parse_nesting(["county:state", '"Age: years":Age group'])
    {'county': 'state', 'Age: years': 'Age group'}
    """
    nesting: dict[str, str] = {}
    for text in texts or []:
        names, end = _values(text, ":", "")
        if end < len(text) or len(names) != 2 or not all(names):
            raise InputError(f"{arg.within} must be CHILD:PARENT such as county:state, got {text!r}.")
        child, parent = names
        if nesting.setdefault(child, parent) != parent:
            raise InputError(f"{arg.within} must give {child!r} one parent, got two.")
    return nesting


def _pairs(text: str, option: str, form: str) -> list[list[str]]:
    """Names with commas between them, each of which may be followed by a colon and another."""
    parts: list[list[str]] = [[]]
    position = 0
    value = re.compile(rf"\s*({_QUOTED}|[^,:\"]*?)\s*([,:]|\Z)")
    while match := value.match(text, position):
        parts[-1].append(_unquoted(match[1]))
        position = match.end()
        if not match[2]:
            break
        if match[2] == ",":
            parts.append([])
    if position < len(text) or not all(name for part in parts for name in part):
        raise InputError(f"{arg[option]} must be {form}, got {text!r}.")
    return parts


def _unquoted(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def parse_wide(text: str | None) -> str | dict[str, Any] | None:
    """An axis whose categories are columns, with these if they are named.

    >>> parse_wide("race"), parse_wide("race=white,black")
    ('race', {'race': ['white', 'black']})
    """
    if text is None or re.fullmatch(_QUOTED, text.strip()):
        return parse_name(text)
    return parse_categories([text], {}, "--wide") if "=" in text else text


def parse_flags(texts: Iterable[str]) -> dict[str, str]:
    """The attributes of ``--flag``.

    >>> parse_flags(["OBS_STATUS=A"])
    {'OBS_STATUS': 'A'}
    """
    flags: dict[str, str] = {}
    for text in texts:
        name, equals, value = _quoted_pair(text) or text.partition("=")
        if not name or not equals or flags.setdefault(name, value) != value:
            raise InputError(f"{arg.flag} must give an attribute one value, such as OBS_STATUS=A, got {text!r}.")
    return flags


def parse_bins(texts: Iterable[str]) -> dict[str, list[str]]:
    """The edges of columns, as text; nothing between commas is an open end.

    >>> parse_bins(["age=0,18,65,", "born=,2000-01-01,"])
    {'age': ['0', '18', '65', ''], 'born': ['', '2000-01-01', '']}
    """
    return {column: edges.split(",") for column, edges in _of_columns(texts, "bins", "age=0,18,65,").items()}


def parse_missing(texts: Iterable[str]) -> dict[str, str]:
    """The category of missing values of columns.

    >>> parse_missing(["race=unknown"])
    {'race': 'unknown'}
    """
    return _of_columns(texts, "missing", "race=unknown")


def _of_columns(texts: Iterable[str], option: str, example: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        column, equals, value = _quoted_pair(text) or text.rpartition("=")
        if not (column and equals and value):
            raise InputError(f"{arg[option]} must be such as {example}, got {text!r}.")
        if pairs.setdefault(column, value) != value:
            raise InputError(f"{arg[option]} must be given once for {column!r}, got it twice.")
    return pairs


def _quoted_pair(text: str) -> tuple[str, str, str] | None:
    """A name and a value with an equals sign between them, if one of both is in double quotes."""
    found = re.fullmatch(rf"({_QUOTED}|[^\"=]*)(=)({_QUOTED}|[^\"=]*)", text)
    return (_unquoted(found[1]), found[2], _unquoted(found[3])) if found is not None and '"' in text else None


def parse_mechanism(text: str) -> str:
    """The name of a mechanism."""
    if text not in MECHANISMS:
        raise InputError(f"{arg.mechanism} must be laplace or gaussian, got {text!r}.")
    return text


Typed: TypeAlias = Sequence[str]
Nesting: TypeAlias = Mapping[str, str]
# Headings of the help.
SOURCE, AXES, TOTALS, NOISE = "The table", "Its axes and categories", "Totals that are kept exactly", "The noise"
RECORDS, RELEASE, REPORT = "Records instead of counts", "The release", "The report"
GROUPS = (SOURCE, AXES, TOTALS, NOISE, RECORDS, RELEASE, REPORT)


@dataclass(frozen=True)
class ValueKind:
    """How a value is typed in a shell, and shown as it is typed."""

    # The value of what was typed (one text for each time that the option was given), for a flag that messages name;
    # with the parents of nested axes.
    read: Callable[[Typed, str, Nesting], Any]
    show: Callable[[Any], list[str]]  # the texts that give a value, one for each time that the option must be given
    repeated: bool = False  # whether the option may be given several times
    by_key: bool = False  # whether a value is a mapping of which one over another replaces the keys that it has
    is_path: bool = False  # whether values are files, which a spec has relative to its folder
    in_shell: type = str  # the type for the shell


def _text(typed: Typed, flag: str, within: Nesting) -> str:
    return typed[-1]


def _texts(typed: Typed, flag: str, within: Nesting) -> list[str]:
    return list(typed)


def _whole(typed: Typed, flag: str, within: Nesting) -> Any:
    return int(typed[-1]) if str(typed[-1]).isdecimal() else typed[-1]


def _show_categories(categories: Mapping[str, Any]) -> list[str]:
    return [pair(axis, labels, *path) for axis, of in categories.items() for path, labels in by_parent(of).items()]


def _show_carried(carried: Any) -> list[str]:
    if isinstance(carried, Mapping):
        return [joined(column, axis) for column, axis in carried.items()]
    return [",".join(quoted(name, ',:"') for name in carried)] if carried else []


def _show_wide(wide: Any) -> list[str]:
    return [pair(*one) for one in wide.items()] if isinstance(wide, Mapping) else [quoted(wide, '="')]


def _show_margin(margin: str | list[str]) -> str:
    if isinstance(margin, str):
        return margin
    return listed(margin) if len(margin) > 1 or "," in margin[0] or '"' in margin[0] else margin[0]


def _show_rows(rows: Mapping[str, Any]) -> list[str]:
    return [pair(column, labels if isinstance(labels, list) else [labels]) for column, labels in rows.items()]


def _show_pairs(pairs: Mapping[str, str]) -> list[str]:
    return [f"{_in_quotes(name)}={_in_quotes(value)}" for name, value in pairs.items()]


def _show_focus(focus: Mapping[str, Any]) -> list[str]:
    """Shares by the axes of their totals, where a name with an equals sign in it is in quotes as well."""
    shown = []
    for key, share in focus.items():
        names = parse_names([key], "A focus") if key else [""]
        axes = ",".join(quoted(name, ',="') for name in names)
        shown.append(f"{axes}={share}")
    return shown


def _in_quotes(text: str) -> str:
    """Text in double quotes, if it has one or an equals sign in it."""
    return quoted(text, '"=') if text.strip() == text or any(mark in text for mark in '"=') else text


def by_parent(categories: Any) -> dict[tuple[str, ...], list[Any]]:
    """Categories by the path of their parents, which is empty for an axis that is not nested.

    >>> by_parent([["IL", "Cook"], ["IL", "Lake"]]), by_parent({"IL": ["Cook"]}), by_parent(["f", "m"])
    ({('IL',): ['Cook', 'Lake']}, {('IL',): ['Cook']}, {(): ['f', 'm']})
    """
    grouped: dict[tuple[str, ...], list[Any]] = {}
    if isinstance(categories, Mapping):
        for key, labels in categories.items():
            path = tuple(map(str, key)) if isinstance(key, tuple) else (str(key),)
            grouped.setdefault(path, []).extend(labels)
        return grouped
    for label in categories:
        path = tuple(map(str, label[:-1])) if isinstance(label, (list, tuple)) else ()
        grouped.setdefault(path, []).append(label[-1] if isinstance(label, (list, tuple)) else label)
    return grouped


DATA = ValueKind(_text, lambda value: [value] if isinstance(value, str) else value, is_path=True)
TEXT = ValueKind(_text, lambda value: [str(value)])
TEXTS = ValueKind(_texts, list, repeated=True)
FILE = ValueKind(_text, lambda value: [value], is_path=True)
FILES = ValueKind(_texts, list, repeated=True, is_path=True)
WHOLE = ValueKind(_whole, lambda value: [str(value)], in_shell=int)
SWITCH = ValueKind(lambda typed, flag, within: True, lambda value: [""] if value else [], in_shell=bool)
NAME = ValueKind(lambda typed, flag, within: parse_name(typed[-1]), lambda value: [quoted(value, '"')])
NAMES = ValueKind(
    lambda typed, flag, within: parse_names(typed, f"Option {flag}"),
    lambda value: [listed(value)] if value else [],
    repeated=True,
)
MECHANISM = ValueKind(lambda typed, flag, within: parse_mechanism(typed[-1]), lambda value: [value])
NESTING = ValueKind(
    lambda typed, flag, within: parse_nesting(typed),
    lambda value: [joined(*one) for one in value.items()],
    repeated=True,
    by_key=True,
)
CATEGORIES = ValueKind(
    lambda typed, flag, within: parse_categories(typed, within, flag), _show_categories, repeated=True, by_key=True
)
ROWS = ValueKind(lambda typed, flag, within: parse_categories(typed, {}, flag), _show_rows, repeated=True, by_key=True)
CARRIED = ValueKind(lambda typed, flag, within: parse_carried(typed), _show_carried, repeated=True, by_key=True)
WIDE = ValueKind(lambda typed, flag, within: parse_wide(typed[-1]), _show_wide)
FLAGS = ValueKind(lambda typed, flag, within: parse_flags(typed), _show_pairs, repeated=True, by_key=True)
BINS = ValueKind(
    lambda typed, flag, within: parse_bins(typed),
    lambda value: [f"{column}={','.join(map(str, edges))}" for column, edges in value.items()],
    repeated=True,
    by_key=True,
)
MISSING = ValueKind(lambda typed, flag, within: parse_missing(typed), _show_pairs, repeated=True, by_key=True)
MARGINS = ValueKind(
    lambda typed, flag, within: [parse_margin(text) for text in typed],
    lambda value: [_show_margin(margin) for margin in value],
    repeated=True,
)
FOCUS = ValueKind(lambda typed, flag, within: parse_focus(typed), _show_focus, repeated=True)


@dataclass(frozen=True)
class Option:
    """One option of a release, for every face of it."""

    help: str  # a line for the help of the shell, and for the JSON Schema of a spec
    kind: ValueKind = TEXT  # how it is typed and shown
    metavar: str | None = None  # what stands for its value in the help
    group: str = SOURCE  # the heading that it stands under
    label: str = ""  # what it is called in a sentence on the page
    hint: str = ""  # what stands by its field on the page; empty for what has none
    default: Any = None  # what it is if nothing is said, where that has a name of its own
    # The kind of rows that it is about: of "counts" or of "records"; None for both.
    rows: Literal["counts", "records"] | None = None
    of_file: bool = False  # whether it says how a file is read, and so has nothing to say of a table without one
    # Whether its value is a mapping of columns: a table that is counted by fewer columns has fewer.
    by_column: bool = False
    noise: Literal["gaussian"] | None = None  # the only mechanism that has it; None for all
    not_with: tuple[str, ...] = ()  # the keys that it may not stand with
    # What the shell completes: a "column", "columns" with commas, or a "nesting".
    completes: Literal["column", "columns", "nesting"] | None = None
    # The option of the shell, by default named after the key; None for what a spec alone says.
    flag: str | None = ""
    short: str = ""
    argument: str = ""  # its name in Python, by default that of the key
    key: str = ""  # its key in a spec, such as ``source.count``, which follows from its place there

    @property
    def section(self) -> str:
        """The section of a spec that it is in."""
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        """Its name in that section."""
        return self.key.partition(".")[2]

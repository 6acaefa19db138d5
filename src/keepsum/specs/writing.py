"""A spec as the text of ``keepsum.toml``, as a command, and as lines of Python that do the same."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from keepsum.sources.records.files import is_address, scheme_of, sqlite_path
from keepsum.specs.focus import focus_of
from keepsum.specs.option import BINS, SWITCH, by_parent
from keepsum.specs.options import OPTIONS, PATHS, value_of, with_values
from keepsum.specs.spec import SECTIONS, NoiseSpec, Spec, asks

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
    return with_values(spec, {one.key: _seen_from(value_of(spec, one), file.parent) for one in PATHS})


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


# A spec as the command that does the same in a shell.

FILE = "keepsum.toml"


def command_of(spec: Spec) -> str:
    """The command, in lines that a shell joins; what no option can say needs the spec as a file.

    >>> from keepsum.specs.spec import Keep, NoiseSpec, Output, SourceSpec, Spec
    >>> noise, source = NoiseSpec(epsilon="1"), SourceSpec(data="counts.csv", count="n")
    >>> print(command_of(Spec(source, keep=Keep(["county"]), mechanism=noise, output=Output("released.csv"))))
    keepsum release counts.csv --count n --keep county --epsilon 1 --output released.csv
    """
    in_a_file = [value_of(spec, one) for one in OPTIONS.values() if one.flag is None]
    if any(isinstance(value, list) and value for value in in_a_file):
        return f"keepsum release --spec {FILE}"
    lines = ["keepsum release"]
    for option in arguments_of(spec):
        text = shlex.join(option)
        if len(lines[-1]) + len(text) > WIDTH:
            lines[-1] += " \\"
            lines.append(f"    {text}")
        else:
            lines[-1] += f" {text}"
    return "\n".join(lines)


def arguments_of(spec: Spec) -> Iterator[list[str]]:
    """The arguments of the command, each option with its value."""
    if isinstance(spec.source.data, str):
        data = spec.source.data
        yield [f"./{data}"] if data.startswith("-") and data != "-" else [data]
    for one in OPTIONS.values():
        value = value_of(spec, one)
        if one.flag is None or not asks(value) or value == one.default:
            continue
        for text in one.kind.show(value):
            if one.kind is SWITCH:
                yield [one.flag]
            else:  # in one, if the value could be taken for an option
                yield [f"{one.flag}={text}"] if text.startswith("-") and text != "-" else [one.flag, text]


SUBSET = "[[keep.subset]]"
TOML = "tomllib.loads(Path({!r}).read_text(encoding='utf-8'))"
IMPORTS = {
    "sys.stdin": "import sys",
    "tomllib.": "import tomllib",
    "Path(": "from pathlib import Path",
    "compare(": "from keepsum.releasing.verify import compare",
    "read_keep(": "from keepsum.sources.declarations import read_keep",
    "read_totals(": "from keepsum.sources.declarations import read_totals",
    " subsets(": "from keepsum.sources.declarations import subsets",
    "named_subsets(": "from keepsum.specs.focus import named_subsets",
}
OF_TABLE = ("source", "records", "axes")
OF_RELEASE = ("output.accept_pinned", "output.accept_delta", "ledger.path", "ledger.dataset")
NOT_OF_TABLE = ("source.data", "axes.domain", "axes.categories")  # which are said otherwise
NOT_OF_NOISE = ("mechanism.kind", "mechanism.per_unit", "mechanism.focus", "mechanism.focus_files", "mechanism.subset")


def snippet_of(spec: Spec) -> str:
    """The lines, from reading the data to writing the release."""
    lines = [*_table(spec), *_keep(spec), *_noise(spec.mechanism), *_checked(spec)]
    options = _given(spec, OF_RELEASE)
    lines.append(f"release = {_call('ks.release', ['table', 'keep=keep', 'mechanism=mechanism'], options)}")
    if spec.postprocess.nonnegative:
        norm = {} if spec.postprocess.norm is None else {"norm": repr(spec.postprocess.norm)}
        lines.append(f"release = {_call('ks.postprocess.nonnegative', ['release'], norm)}")
    saved = _call("release.save", [repr(spec.output.path or "released.csv")], _given(spec, ["output.sign"]))
    return "\n".join([*_imports(lines), *lines, saved]) + "\n"


def _imports(lines: Iterable[str]) -> list[str]:
    text = "\n".join(lines)
    needed = [line for use, line in IMPORTS.items() if use in text]
    own = [line for line in needed if " keepsum." in line]
    others = [line for line in needed if line not in own]
    return [*others, *([""] if others else []), "import keepsum as ks", *own, ""]


def _given(spec: Spec, keys: Iterable[str]) -> dict[str, str]:
    said = {OPTIONS[key]: value_of(spec, OPTIONS[key]) for key in keys}
    return {one.argument: _python(one.kind, value) for one, value in said.items() if asks(value)}


def _python(kind: Any, value: Any) -> str:
    if kind is BINS:
        value = {name: [str(edge) for edge in edges] for name, edges in value.items()}
    return repr(value)


def _table(spec: Spec) -> list[str]:
    rows = "records" if spec.records.by else "counts"
    keys = [
        one.key
        for one in OPTIONS.values()
        if one.section in OF_TABLE and one.rows in (None, rows) and one.key not in NOT_OF_TABLE
    ]
    options, data = _given(spec, keys), spec.source.data
    declared = {axis: _categories(labels) for axis, labels in (spec.axes.categories or {}).items()}
    if spec.axes.domain is not None:
        options["domain"] = f"{{**{declared!r}, **domain}}" if declared else "domain"
    elif declared:
        options["domain"] = repr(declared)
    place = "sys.stdin.buffer" if data == "-" else repr(data)
    read = _call("ks.tabulate" if spec.records.by else "ks.read_table", [place], options)
    before = [] if spec.axes.domain is None else [f"domain = {TOML.format(spec.axes.domain)}"]
    return [*before, f"table = {read}"]


def _categories(categories: Any) -> Any:
    """Categories as ``Domain`` takes them: those of a nested axis by the path of their parents."""
    grouped = by_parent(categories)
    if list(grouped) == [()]:
        return grouped[()]
    return {path[0] if len(path) == 1 else path: labels for path, labels in grouped.items()}


def _keep(spec: Spec) -> list[str]:
    keep = spec.keep
    margins = [repr(_margin(margin)) for margin in keep.margins or []]
    lines = [f"keep = {_call('table.keep', margins, {'total': 'True'} if keep.total else {})}"]
    lines += [f"keep = keep + read_keep({file!r}, table)" for file in keep.files or []]
    if keep.subset:
        lines.append(f"keep = keep + {_call('subsets', [repr(_plain(keep.subset)), 'table.domain', repr(SUBSET)], {})}")
    return lines


def _plain(subsets: Iterable[msgspec.Struct]) -> list[dict[str, Any]]:
    """Subsets as a file has them; what is not said is left out."""
    said = [msgspec.structs.asdict(subset) for subset in subsets]
    return [{key: value for key, value in one.items() if value is not None} for one in said]


def _margin(margin: str | list[str]) -> str | list[str]:
    names = [name.strip() for name in margin.split(",")] if isinstance(margin, str) else margin
    return names[0] if len(names) == 1 else names


def _checked(spec: Spec) -> list[str]:
    """The check of kept totals against published figures, before anything is released."""
    if spec.output.totals is None:
        return []
    return [
        f"figures = read_totals({spec.output.totals!r}, keep, table.count)",
        "agree, differences = compare(figures, dict(enumerate(keep.totals(table.counts))), keep)",
        "if not agree:",
        "    raise SystemExit(f'Kept totals differ from the published figures: {differences}.')",
    ]


def _noise(noise: NoiseSpec) -> list[str]:
    kind = "gaussian" if noise.kind == "gaussian" else "laplace"
    keys = [
        one.key
        for one in OPTIONS.values()
        if one.section == "mechanism" and one.noise in (None, kind) and one.key not in NOT_OF_NOISE
    ]
    options = _given(Spec(mechanism=noise), keys)
    if kind == "gaussian":
        options.pop("norm", None)
    if not noise.focus:
        options.pop("cell_share", None)
    lines = []
    if noise.subset or noise.focus_files:
        declared = [repr(noise.focus_files or []), repr(_plain(noise.subset or []))]
        lines.append(f"named = {_call('named_subsets', ['table', *declared], {})}")
    focus = focus_of(noise) or {}
    shares = [
        f"{f'named.get({name!r}, {axes!r})' if lines else repr(axes)}: {share!r}"
        for name, (axes, share) in zip(noise.focus or {}, focus.items(), strict=True)
    ]
    if shares:
        options["focus"] = f"{{{', '.join(shares)}}}"
    name = f"ks.{kind.capitalize()}" + (".per_unit" if noise.per_unit else "")
    return [*lines, f"mechanism = {_call(name, [], options)}"]


def _call(function: str, positional: list[str], options: dict[str, str]) -> str:
    parts = [*positional, *(f"{name}={value}" for name, value in options.items())]
    line = f"{function}({', '.join(parts)})"
    if len(line) <= WIDTH or not parts:
        return line
    return f"{function}(\n" + "".join(f"    {part},\n" for part in parts) + ")"

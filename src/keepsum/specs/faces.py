"""How the shell, a spec and the page say what a message refers to, in words from the table of options.

The words of Python are in ``keepsum._saying``, of which every error is made; what is said here is what differs.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from keepsum._saying import Face, Reference, capital, said
from keepsum.specs.option import Option, listed
from keepsum.specs.options import by_argument, by_flag

# What a call of the library is in the shell and on the page.
CALLS = {
    "plan.explain()": ("keepsum plan", "the step Preview"),
    "plan.pinned": ("keepsum plan", "the step Keep"),
    "plan.certify()": ("keepsum convergence", "keepsum convergence in the shell"),
    "ks.Ledger.create(path, budget=...)": ("keepsum ledger init", "keepsum ledger init in the shell"),
    "ks.Ledger.open(path)": ("--ledger", "the start of the page"),
    "ks.Budget(...)": ("--per-person", "a budget per person, in the shell"),
    "ks.Budget.per_unit(...)": ("--per-unit", "a budget per unit of distance, in the shell"),
    "ledger.check(against=certificates)": (
        "keepsum ledger check --against CERTIFICATE",
        "keepsum ledger check in the shell",
    ),
    "ledger.check()": ("keepsum ledger check", "keepsum ledger check in the shell"),
    "ledger.add_dataset": ("keepsum ledger init", "keepsum ledger init in the shell"),
    "ledger.set_budget": ("keepsum ledger budget", "keepsum ledger budget in the shell"),
    "ledger.set_domain": ("keepsum ledger domain", "keepsum ledger domain in the shell"),
    "ks.tabulate(source, by=[...], table=...)": ("--table NAME --by COLUMNS", "the shell"),
    "ks.tabulate(..., unit=, max_rows_per_unit=)": ("--by, --unit and --max-rows-per-unit", "the step Table"),
    "ks.release": ("keepsum release", "keepsum release in the shell"),
    "ks.plan": ("keepsum plan", "keepsum plan in the shell"),
    "ks.verify": ("keepsum verify", "keepsum verify in the shell"),
}
# What several options of the shell are for one argument.
IN_SHELL = {"domain": "--categories or --domain"}
# What has a flag of another name.
FLAGS = {"of": "--target"}
# Of several keys of a spec for one argument, the one to name.
IN_SPEC = {"domain": "axes.categories"}
# Where on the page something is said, by sections of the spec and by keys.
PLACES = {
    "source": "under Columns",
    "axes": "under Columns",
    "records": "under Columns",
    "keep": "at the step Keep",
    "mechanism": "at the step Privacy",
    "axes.domain": "under Categories",
    "axes.categories": "under Categories",
    "records.bins": "at edges, under Categories",
    "records.missing": "under Categories",
    "mechanism.per_unit": "under Details of the step Privacy",
}
# What the page calls what has no label, or several options by one of their own.
ON_PAGE = {
    "keep": "axes",
    "keep_total": "the grand total",
    "keep_file": "sets of cells",
    "keep_nothing": "that there is none",
    "force": "a replacement, in the shell",
    "patient": "that it may take long",
    "ledger": "the ledger, when the page is started",
    "dataset": "the dataset, when the page is started",
    "port": "another port, when the page is started",
}


def option_of(name: str) -> Option | None:
    """The option that a message refers to by the name of its argument, or of its flag; None if it is no release's."""
    try:
        return by_argument(name)
    except KeyError:
        pass
    try:
        return by_flag(f"--{name.replace('_', '-')}")
    except KeyError:
        return None


def key_of(name: str) -> str:
    """The key in a spec of what a message refers to; its name if there is none."""
    option = option_of(name)
    return name if option is None else option.key


@dataclass(frozen=True)
class Shell:
    """Options as they are typed in a shell, calls as commands."""

    def option(self, part: Reference, begins: bool, several: bool = False) -> str:
        """An option with its value, quoted where the shell needs it.

        >>> Shell().option(Reference("option", "carry", {"fips": "the county"}, use="with"), False)
        "with --carry 'fips:the county'"
        """
        option = option_of(part.name)
        flag = IN_SHELL.get(part.name, flag_of(part.name, option))
        shown = " ".join([flag, *([part.word] if part.word else [])])
        if part.value is not None and not part.word:
            shown = _typed(flag_of(part.name, option), option, part.value)
        if part.use:
            return f"{capital(part.use) if part.capital else part.use} {shown}"
        return f"{'Options' if several else 'Option'} {shown}" if begins and shown.startswith("--") else shown

    def call(self, name: str) -> str:
        """A command, or that it is for Python."""
        return CALLS[name][0] if name in CALLS else _in_python(name)

    def noise(self, mechanism: str) -> str:
        """The options that request the same noise; a mechanism as it is if it is not one after all."""
        return noise_options(mechanism)


@dataclass(frozen=True)
class InSpec(Shell):
    """Options as keys of a spec; everything else as in the shell that reads it."""

    def option(self, part: Reference, begins: bool, several: bool = False) -> str:
        """A key with its value in TOML.

        >>> InSpec().option(Reference("option", "within", {"county": "state"}, use="pass", capital=True), True)
        'Set axes.within = { county = "state" }'
        """
        option = option_of(part.name)
        if option is None:
            return super().option(part, begins, several)
        key = IN_SPEC.get(part.name, option.key)
        shown = key if part.value is None or part.word else f"{key} = {toml(part.value)}"
        use = {"pass": "set"}.get(part.use, part.use)
        return f"{capital(use) if part.capital else use} {shown}".strip()


@dataclass(frozen=True)
class Page:
    """What the page calls its fields, and where they are."""

    def option(self, part: Reference, begins: bool, several: bool = False) -> str:
        """The name of a field, or where it is.

        >>> Page().option(Reference("option", "carry", use="with"), False)
        'under Columns'
        >>> Page().option(Reference("option", "count"), True)
        'The column of counts'
        """
        option = option_of(part.name)
        noun = self._noun(part.name, option)
        place = None if option is None else PLACES.get(option.key, PLACES.get(option.section))
        match part.use:
            case "with" | "by" if place is not None and not noun.endswith(", in the shell"):
                words = place
            case "with" | "by" | "in" if noun == "the button":
                words = "with the button"
            case "with" | "by":
                words = "in the shell" if noun.endswith("in the shell") else f"by {noun}"
            case "in":
                words = f"in {noun}"
            case "pass":
                words = f"choose {noun}" if not noun.startswith("that ") else f"say {noun}"
            case "leave out":
                words = f"leave out {noun}" if not noun.startswith("that ") else f"do not say {noun}"
            case _:
                words = (
                    f"{noun} ({part.value})"
                    if isinstance(part.value, (int, float)) and part.value is not True
                    else noun
                )
        if part.use == "pass" and isinstance(part.value, (str, int, float)) and not isinstance(part.value, bool):
            words = f"{words} {part.value!r}"
        return capital(words) if part.capital or (begins and not part.use) else words

    def call(self, name: str) -> str:
        """A step of the page, or that it is for the shell or for Python."""
        return CALLS[name][1] if name in CALLS else _in_python(name)

    def noise(self, mechanism: str) -> str:
        """Noise by its name."""
        kind = "Gaussian" if "Gaussian" in mechanism else "Laplace"
        return f"{'l2 ' if 'l2' in mechanism and kind == 'Laplace' else ''}{kind} noise"

    def _noun(self, name: str, option: Option | None) -> str:
        label = None if option is None else option.label
        return ON_PAGE.get(name) or label or f"{name.replace('_', ' ')}, in the shell"


SHELL, SPEC, PAGE = Shell(), InSpec(), Page()


def in_shell(message: str) -> str:
    """A message in the words of the shell."""
    return said(message, SHELL)


def in_spec(message: str) -> str:
    """A message in the words of a spec."""
    return said(message, SPEC)


def on_page(message: str) -> str:
    """A message in the words of the page."""
    return said(message, PAGE)


def sections_in(face: Face, sections: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
    """Sections of a plan in the words of a face; labels and names in them stay as they are."""
    return [(title, [said(line, face) for line in lines]) for title, lines in sections]


def flag_of(name: str, option: Option | None) -> str:
    """The flag of an option, also of one that is no release's."""
    if option is not None and option.flag is not None:
        return option.flag
    if option is not None and option.key == "source.data":
        return "TABLE"
    return FLAGS.get(name) or f"--{name.replace('_', '-')}"


def _typed(flag: str, option: Option | None, value: Any) -> str:
    if value is True:
        return flag
    if value is False:
        return f"no {flag}"
    texts = None
    if option is not None:
        try:
            texts = option.kind.show(value)
        except (TypeError, AttributeError, ValueError, KeyError):  # a value in Python's form
            texts = None
    if texts is None:
        texts = [listed(value) if isinstance(value, list) else str(value)]
    return " ".join(f"{flag} {shlex.quote(text)}" if text else flag for text in texts)


def toml(value: Any) -> str:
    """A value as TOML.

    >>> toml({"county": "state", "a b": ["x"]})
    '{ county = "state", "a b" = ["x"] }'
    """
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(str(key))} = {toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _in_python(name: str) -> str:
    """What a call is for whoever has no Python before him.

    >>> _in_python("ks.Table.from_frame(df)"), _in_python("noise.interval")
    ('from_frame in Python', 'interval in Python')
    """
    return f"{name.partition('(')[0].rpartition('.')[2]} in Python"


def noise_options(mechanism: str) -> str:
    """The options that request the same noise as a call.

    >>> noise_options("Laplace('0.5', norm='l2', attributes=['a', 'b c'])")
    "--epsilon 0.5 --norm l2 --attributes 'a,b c'"
    >>> noise_options("Gaussian.per_unit(rho=0.1)")
    '--mechanism gaussian --rho 0.1 --per-unit'
    """
    try:
        call: Any = ast.parse(mechanism, mode="eval").body
        arguments = {"epsilon": call.args[0]} if call.args else {}
        arguments |= {keyword.arg: keyword.value for keyword in call.keywords}
        values = {name: _value(value, mechanism) for name, value in arguments.items()}
    except (SyntaxError, ValueError, AttributeError):
        return "Gaussian noise" if "Gaussian" in mechanism else "Laplace noise"
    options = ["--mechanism gaussian"] if "Gaussian" in mechanism.partition("(")[0] else []
    for name, value in values.items():
        options.append(f"--{name.replace('_', '-')} {shlex.quote(value)}")
    options += ["--per-unit"] if mechanism.partition("(")[0].endswith(".per_unit") else []
    return " ".join(options)


def _value(node: ast.expr, text: str) -> str:
    value = ast.literal_eval(node)
    if isinstance(value, (list, str)):
        return value if isinstance(value, str) else listed(value)
    return ast.get_source_segment(text, node) or str(value)

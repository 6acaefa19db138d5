"""How ``keepsum init`` asks: until an answer can be used, and with what is wrong said before it asks again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import typer

from keepsum._text import are_showable, printable
from keepsum.cli.categories import parse_name, parse_names
from keepsum.cli.screen import note
from keepsum.cli.terms import in_shell_terms
from keepsum.errors import InputError, KeepsumError
from keepsum.specs.quoting import quoted

T = TypeVar("T")
GRAND_TOTAL, NOTHING = "total", "nothing"
LEAVING = "Ctrl-C leaves, and nothing is written."
YES_OR_NO = {"y": True, "yes": True, "n": False, "no": False}


def ask(question: str, default: str | None = None) -> str:
    """Ask for a text; Enter answers by the default, or by nothing."""
    answer: str = typer.prompt(printable(question), default=default or "", show_default=bool(default), err=True)
    return answer.strip()


def ask_until(question: str, default: str | None, read: Callable[[str], T]) -> T:
    """Ask until the answer can be read; what is wrong with it is said before it is asked again.

    Without a default there must be an answer; an empty default means that there need not be one.
    """
    while True:
        answer = ask(question, default)
        if default is None and not answer:
            note(f"An answer is needed. {LEAVING}")
            continue
        try:
            return read(answer)
        except KeepsumError as error:
            problem = str(error)
        note(in_shell_terms(problem))


def confirm(question: str, default: bool | None = False) -> bool:
    """Ask a question that is answered by yes or no; by Enter only if there is a default."""

    def read(answer: str) -> bool:
        if not answer and default is not None:
            return default
        if answer.lower() not in YES_OR_NO:
            raise InputError(f"The answer must be y for yes or n for no. {LEAVING}")
        return YES_OR_NO[answer.lower()]

    choices = {None: "y/n", True: "Y/n", False: "y/N"}[default]
    return ask_until(f"{question} [{choices}]", "", read)


def chosen(what: str, choices: Sequence[str], optional: bool = False) -> Callable[[str], str]:
    """Reads one of the choices, any text if there are none, or nothing if the answer is ``optional``."""

    def read(answer: str) -> str:
        answer = answer if answer in choices else str(parse_name(answer))
        if choices and answer not in choices and not (optional and not answer):
            raise InputError(f"{what} must be {_one_of(choices)}, got {answer!r}.")
        return answer

    return read


def several(what: str, choices: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads some of the choices with commas between them."""

    def read(answer: str) -> list[str]:
        names = [answer] if answer in choices else parse_names([answer], "The answer")
        for name in names:
            chosen(what, choices)(name)
        if len(set(names)) < len(names) or "" in names:
            raise InputError(f"{what} must be given once each, with commas between them, got {answer!r}.")
        return names

    return read


def _one_of(choices: Sequence[str]) -> str:
    """The choices, unless they may be a row of data."""
    return f"one of {shown_list(choices)}" if are_showable(choices) else "one of those in the file"


def margins(answer: str, axes: Sequence[str] = ()) -> list[str]:
    """The totals to keep, as options: ``county sex,age total``."""
    wanted = _groups(answer, ",", axes)
    if wanted == [[NOTHING]] and NOTHING not in axes:
        return ["--keep-nothing"]
    if not wanted:
        raise InputError(
            "Totals to keep must be named. Name an axis, several with commas between them, total, or nothing for none."
        )
    return ["--keep-total" if group == [GRAND_TOTAL] else f"--keep={_margin(group)}" for group in wanted]


def _margin(group: Sequence[str]) -> str:
    return ",".join(quoted(name, ',"') for name in group)


def nestings(answer: str, axes: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Axes with their parents: ``county:state town:county``."""
    pairs = []
    for group in _groups(answer, ":", axes):
        if len(group) != 2:
            raise InputError(f"An axis within another must be given as CHILD:PARENT, got {':'.join(group)!r}.")
        pairs.append((group[0], group[1]))
    return pairs


def _groups(answer: str, mark: str, names: Sequence[str]) -> list[list[str]]:
    """Names that a mark joins, with blanks between groups: a known name is read whole, any name if it is quoted."""
    known = "".join(f"{re.escape(name)}(?=[\\s{mark}]|\\Z)|" for name in sorted(names, key=len, reverse=True) if name)
    name = re.compile(rf'\s*("(?:[^"]|"")*"(?=[\s{mark}]|\Z)|{known}[^\s{mark}"]+)\s*({mark}?)')
    groups: list[list[str]] = []
    position, joins = 0, False
    while match := name.match(answer, position):
        text = str(parse_name(match[1]))
        if joins:
            groups[-1].append(text)
        else:
            groups.append([text])
        position, joins = match.end(), bool(match[2])
    if joins or position < len(answer.rstrip()):
        raise InputError(
            f"The answer must be names, one with a blank or {mark!r} in it in double quotes, got {answer!r}."
        )
    return groups


def shown_name(name: str) -> str:
    """A name as it is typed in an answer, in double quotes where it could be taken for several."""
    return quoted(name, ' ,:"')


def shown_list(names: Iterable[str]) -> str:
    """Names as they are typed in an answer, with commas between them."""
    return ", ".join(map(shown_name, names))

"""How ``keepsum init`` asks: a question is an option, whose record reads the answer as it reads the flag.

What is wrong with an answer is said before it is asked for again, so that nothing typed ends the dialogue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import typer

from keepsum._text import are_showable, printable
from keepsum.cli.screen import note
from keepsum.errors import InputError, KeepsumError
from keepsum.specs.faces import in_shell
from keepsum.specs.option import NAMES, parse_name, parse_names, quoted
from keepsum.specs.options import OPTIONS, with_typed
from keepsum.specs.spec import Spec

T = TypeVar("T")
LEAVING = "Ctrl-C leaves, and nothing is written."
YES_OR_NO = {"y": True, "yes": True, "n": False, "no": False}


def ask_until(question: str, default: str | None, read: Callable[[str], T]) -> T:
    """Ask until the answer can be read.

    Enter answers by the default. Without one there must be an answer; an empty one means that there need not be.
    """
    while True:
        said: str = typer.prompt(printable(question), default=default or "", show_default=bool(default), err=True)
        answer = said.strip() or default
        if answer is None:
            note(f"An answer is needed. {LEAVING}")
            continue
        try:
            return read(answer)
        except KeepsumError as error:
            problem = error.text
        note(in_shell(problem))


def asked(
    spec: Spec, key: str, question: str = "", default: str | None = None, *, choices: Sequence[str] = (),
    nothing: str | None = None, typed: Callable[[str], Sequence[str]] = lambda answer: [answer],
    check: Callable[[Spec], object] = lambda spec: None,
) -> Spec:  # fmt: skip
    """The spec with the answer to a question about one of its options, by default in the words of its hint.

    It is one of the ``choices``, if there are any, or ``nothing``, which leaves the spec as it is. ``typed`` says what
    the flag would be given for it, and ``check`` refuses a spec with a wrong answer.
    """
    option = OPTIONS[key]

    def read(answer: str) -> Spec:
        if answer == nothing:
            return spec
        texts = typed(answer)
        if choices:
            several = option.kind is NAMES
            names = parse_names(texts, "The answer") if several and answer not in choices else texts
            chosen = [one_of(choices, name) for name in names]
            if len(set(chosen)) < len(chosen):
                raise InputError(f"The answer must name each once, got {answer!r}.")
            texts = option.kind.show(chosen if several else chosen[0])
        changed = with_typed(spec, key, texts)
        check(changed)
        return changed

    return ask_until(question or option.hint, default, read)


def confirm(question: str, default: bool | None = False) -> bool:
    """Ask a question that is answered by yes or no; by Enter only if there is a default."""
    answers = YES_OR_NO | ({} if default is None else {"": default})

    def read(answer: str) -> bool:
        if answer.lower() not in answers:
            raise InputError(f"The answer must be y for yes or n for no. {LEAVING}")
        return answers[answer.lower()]

    choices = {None: "y/n", True: "Y/n", False: "y/N"}[default]
    return ask_until(f"{question} [{choices}]", "", read)


def one_of(choices: Sequence[str], answer: str) -> str:
    """One of some names, which are not listed if they may be a row of data."""
    name = answer if answer in choices else str(parse_name(answer))
    if name not in choices:
        which = f"one of {shown_list(choices)}" if are_showable(choices) else "one of those in the file"
        raise InputError(f"The answer must be {which}, got {name!r}.")
    return name


def groups(answer: str, mark: str, names: Sequence[str] = ()) -> list[str]:
    """What stands between blanks, each as a flag is given it: ``county sex,age`` are two margins.

    A mark joins names; a known name is read whole although it has blanks in it, any name if it is in double quotes.
    """
    known = "".join(f"{re.escape(name)}(?=[\\s{mark}]|\\Z)|" for name in sorted(names, key=len, reverse=True) if name)
    name = rf'(?:"(?:[^"]|"")*"(?=[\s{mark}]|\Z)|{known}[^\s{mark}"]+)'
    group = re.compile(rf"\s*({name}(?:\s*{mark}\s*{name})*)")
    found, position = [], 0
    while match := group.match(answer, position):
        found.append(mark.join(quoted(str(parse_name(one)), f'{mark}"') for one in re.findall(name, match[1])))
        position = match.end()
    if position < len(answer.rstrip()):
        raise InputError(
            f"The answer must be names, one with a blank or {mark!r} in it in double quotes, got {answer!r}."
        )
    return found


def shown_name(name: str) -> str:
    """A name as it is typed in an answer, in double quotes where it could be taken for several."""
    return quoted(name, ' ,:"')


def shown_list(names: Iterable[str]) -> str:
    """Names as they are typed in an answer, with commas between them."""
    return ", ".join(map(shown_name, names))

"""What no face says: Python's words in the shell, a spec and on the page, the shell's on the page and in Python."""

from __future__ import annotations

import re
from dataclasses import replace

from keepsum._saying import PYTHON, Face, Reference, Text, _joined, said
from keepsum.errors import KeepsumError
from keepsum.specs.faces import PAGE, SHELL, SPEC
from keepsum.specs.options import OPTIONS

ARGUMENTS = {option.argument for option in OPTIONS.values()} | {"force", "patient", "ledger", "dataset", "mechanism"}
# An argument with its sign, a call, or a name of the package: Python's words.
NAMES = "|".join(sorted(ARGUMENTS))
IN_PYTHON = re.compile(rf"(?<![\w.'\"-])(?:{NAMES})=|\bks\.|\b[a-z_]+\.[a-z_]+\(|\b(?:Laplace|Gaussian)\(")
IN_SHELL = re.compile(r"(?<![\w'\"-])--[a-z]")
MARKS = re.compile("[\ue0f0-\ue0f3]")
# What is repeated from outside, in quotes, is nobody's words.
QUOTED = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""")
NOT_SAID: list[tuple[Face, re.Pattern[str]]] = [
    (SHELL, IN_PYTHON), (SPEC, IN_PYTHON), (PAGE, IN_PYTHON), (PAGE, IN_SHELL), (PYTHON, IN_SHELL),
]  # fmt: skip
_checked: set[str] = set()


def check_wording(error: KeepsumError) -> None:
    """Refuse an error that some face says in the words of another; ``KeepsumError`` itself is what typer says."""
    text = error.text
    if text in _checked or type(error) is KeepsumError:
        return
    for face, wrong in NOT_SAID:
        words = QUOTED.sub("''", said(_without_values(text), face))
        if wrong.search(words) or MARKS.search(words):
            raise AssertionError(f"not in the words of the {type(face).__name__}: {said(text, face)}")
    _checked.add(text)


def _without_values(text: Text) -> Text:
    """The text without the user's own names, which may be like ours, in the values of options."""
    pieces: tuple[str | Reference, ...] = text.__reduce__()[1]
    others = [
        replace(piece, value="x")
        if isinstance(piece, Reference) and not isinstance(piece.value, bool | None)
        else piece
        for piece in pieces
    ]
    return Text(_joined(others))


def check_each_error() -> None:
    """Check every error from now on where it is made, also in processes that are forked."""
    made = KeepsumError.__init__

    def checked(self: KeepsumError, message: str = "") -> None:
        made(self, message)
        check_wording(self)

    KeepsumError.__init__ = checked  # type: ignore[method-assign]

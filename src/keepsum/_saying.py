"""Sentences that every face of Keepsum says in its own words.

A message is one readable line in which an option, a call, a column or a file is an object, not a word::

    f"Axes {arg.within:in} must be axes, got {the.column(name)}. {arg.within:Leave out}."

Put into an f-string, such an object becomes a mark, which :class:`Text` reads. A text is a ``str`` in the words of
Python; :func:`said` says it in those of another face, for which the table of options has the words. Errors and warnings
are made of such texts (``errors.py``), so nothing is ever replaced in a finished sentence.

What a reference is used for stands after its colon, and each face says that in its own way:

>>> f"Leave it out {arg.drop(['note']):with}." == "Leave it out with drop=['note']."
False
>>> Text(f"Leave it out {arg.drop(['note']):with}.")
"Leave it out with drop=['note']."
>>> Text(f"{arg.within} must be a mapping. {arg.within:Leave out}.")
'Argument within= must be a mapping. Leave out within=.'
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from keepsum._text import MAX_QUOTED, has_number, printable, shown_name

# A mark is in characters for private use, and begins with a number that every process draws anew: nothing that comes
# from outside, such as the name of a field in somebody's certificate, is ever one.
BETWEEN, CLOSE = "\ue0f1", "\ue0f2"
OPEN = f"\ue0f0{os.urandom(8).hex()}"
_MARK = re.compile(f"{OPEN}([^\ue0f0{CLOSE}]*){CLOSE}")
_NOTHING = "\ue0f3"

Kind = Literal["option", "call", "noise", "column", "row", "file"]
LONGEST_NAME = 1000  # characters of a name that a message repeats
METHODS = ("per_unit",)  # what is a method in Python, as in Laplace.per_unit
REMEDIES = ("with", "pass", "leave out", "call")  # what a reference is used for, if it says what to do


@dataclass(frozen=True)
class Reference:
    """A reference in a sentence: an option by the name of its argument, a call, a noise, a column, a row or a file.

    ``use`` is what it is used for, in lower case: "with", "in", "by", "pass" or "leave out"; a reference without any is
    a noun. ``value`` is the value of an option, and ``word`` what is shown for it, such as COLUMN; with the use "as" it
    is what every face says for the whole reference.
    """

    kind: Kind
    name: str
    value: Any = None
    word: str = ""
    use: str = ""
    capital: bool = False

    def __call__(self, value: Any) -> Reference:
        """The option with a value."""
        return Reference(self.kind, self.name, value, self.word, self.use)

    def of(self, word: str) -> Reference:
        """The option with a word for its value, such as COLUMN."""
        return Reference(self.kind, self.name, self.value, word, self.use)

    def called(self, words: str) -> Reference:
        """The reference as these words in every face, such as Epsilon for ``arg.epsilon``."""
        return replace(self, word=printable(words), use="as")

    def __format__(self, use: str) -> str:
        use = use or ("as" if self.use == "as" else "")
        value = _NOTHING if self.value is None else json.dumps(self.value, default=str)
        return f"{OPEN}{BETWEEN.join((self.kind, json.dumps(self.name), value, self.word, use))}{CLOSE}"

    def __str__(self) -> str:
        return format(self)

    @property
    def is_remedy(self) -> bool:
        """Whether it says what to do."""
        return self.use in REMEDIES


class _Arguments:
    """Options by the names of their arguments: ``arg.within``."""

    def __getattr__(self, name: str) -> Reference:
        return Reference("option", name)

    def __getitem__(self, name: str) -> Reference:
        return Reference("option", name.lstrip("-").replace("-", "_"))


arg = _Arguments()


class _The:
    """What a message refers to besides options."""

    def call(self, name: str) -> Reference:
        """A call of the library, such as ``plan.explain()``, which is a command in the shell."""
        return Reference("call", name)

    def noise(self, mechanism: object) -> Reference:
        """Noise, as the call that makes it: ``Laplace(epsilon=1)``."""
        return Reference("noise", str(mechanism))

    def column(self, name: object) -> Reference:
        """A column, an axis or a total by its name: the subject of an error, if it stands first."""
        return Reference("column", str(name))

    def name(self, name: object) -> Reference | str:
        """A column or an axis as the user named it; what may be a count, or is none, is described instead.

        >>> Text(f"An axis must be one of these, got {the.name('town')}."), the.name("15")
        ("An axis must be one of these, got 'town'.", 'text with a number in it')
        """
        if not isinstance(name, str) or has_number(name):
            return shown_name(name)
        return self.column(name) if len(name) <= MAX_QUOTED else self.column(name).called(shown_name(name))

    def row(self, place: str) -> Reference:
        """A row by its place, such as ``line 3``."""
        return Reference("row", place)

    def file(self, name: object) -> Reference:
        """A file or a folder by its name."""
        return Reference("file", str(name))


the = _The()


class Face(Protocol):
    """The words of a face for what is not the same in all of them."""

    def option(self, part: Reference, begins: bool, several: bool = False) -> str:
        """An option, which may begin a sentence, also as the first of several."""

    def call(self, name: str) -> str:
        """A call."""

    def noise(self, mechanism: str) -> str:
        """Noise."""


class InPython:
    """The words of Python."""

    def option(self, part: Reference, begins: bool, several: bool = False) -> str:
        """An option as an argument.

        >>> InPython().option(Reference("option", "count", word="COLUMN", use="pass", capital=True), True)
        'Pass count=COLUMN'
        """
        value = part.word if part.word or part.value is None else repr(part.value)
        noun = part.name if part.name in METHODS else f"{part.name}={value}"
        if part.use:
            return f"{capital(part.use) if part.capital else part.use} {noun}"
        return f"{'Arguments' if several else 'Argument'} {noun}" if begins else noun

    def call(self, name: str) -> str:
        """A call as it is."""
        return name

    def noise(self, mechanism: str) -> str:
        """Noise as the call that makes it."""
        return mechanism


PYTHON = InPython()


class Text(str):
    """A sentence in the words of Python, which every other face can say in its own.

    ``marked`` is what it was made from; ``f"{text:marked}"`` puts it into another sentence with its references.
    """

    marked: str

    def __new__(cls, message: str, literally: Callable[[str], str] = str) -> Text:
        """``literally`` is applied to what lies between the references."""
        marked = message.marked if isinstance(message, Text) else str(message)
        marked = _joined(_pieces(marked, literally))
        text = super().__new__(cls, _rendered(marked, PYTHON))
        text.marked = marked
        return text

    def __str__(self) -> str:
        return self  # and so is the text of an error made of it

    def __format__(self, form: str) -> str:
        return self.marked if form == "marked" else super().__format__(form)

    def __reduce__(self) -> tuple[Callable[..., Text], tuple[str | Reference, ...]]:
        return _of_pieces, tuple(_pieces(self.marked))  # marks are those of this process

    @property
    def parts(self) -> tuple[Reference, ...]:
        """Its references, in order."""
        return tuple(piece for piece in _pieces(self.marked) if isinstance(piece, Reference))

    @property
    def sentences(self) -> tuple[Text, ...]:
        """Its sentences. A full stop in the name of a column, or in quotes, ends none."""
        masked = _QUOTED.sub(
            lambda found: "x" * len(found[0]), _MARK.sub(lambda found: "X" * len(found[0]), self.marked)
        )
        ends = [found.end() for found in _END.finditer(masked)]
        pieces = [self.marked[start:end].strip() for start, end in zip([0, *ends], [*ends, None], strict=True)]
        return tuple(Text(piece) for piece in pieces if piece)


def _of_pieces(*pieces: str | Reference) -> Text:
    return Text(_joined(pieces))


def _joined(pieces: Iterable[str | Reference]) -> str:
    """A message with its marks, from its pieces."""
    return "".join(piece if isinstance(piece, str) else format(piece, _use(piece)) for piece in pieces)


_QUOTED = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""")
_END = re.compile(r"[.?] (?=[A-Z(])")


def marked(message: object) -> str:
    """A message with its references, to be put into another one."""
    return message.marked if isinstance(message, Text) else str(message)


def said(message: str, face: Face) -> str:
    """A message in the words of a face; a plain one as it is.

    >>> said("Leave out carry=", PYTHON)  # the name of a column, perhaps
    'Leave out carry='
    """
    return _rendered(message.marked, face) if isinstance(message, Text) else message


def _rendered(marked: str, face: Face) -> str:
    said: list[str] = []
    pieces = list(_pieces(marked))
    for place, piece in enumerate(pieces):
        before = "".join(said)[-2:] if len(said) < 8 else "".join(said[-8:])[-2:]
        begins = not before or before in (". ", "? ", ": ")
        said.append(piece if isinstance(piece, str) else _word(piece, face, begins, _is_first(pieces, place)))
    return "".join(said)


def _is_first(pieces: Sequence[str | Reference], place: int) -> bool:
    """Whether this is the first of several options, as in "Options --unit and --max-rows-per-unit".

    >>> Text(f"{arg.unit} and {arg.max_rows_per_unit} must be given together.")
    'Arguments unit= and max_rows_per_unit= must be given together.'
    """
    both = pieces[place : place + 3]
    options = [isinstance(piece, Reference) and piece.kind == "option" and not piece.use for piece in both]
    return options == [True, False, True] and both[1] == " and "


def _word(part: Reference, face: Face, begins: bool, several: bool) -> str:
    if part.use == "as":
        return part.word
    match part.kind:
        case "option":
            return face.option(part, begins, several)
        case "call":
            return face.call(part.name)
        case "noise":
            return face.noise(part.name)
        case "row":
            return printable(part.name)
    return repr(part.name) if len(part.name) <= LONGEST_NAME else f"{part.name[:LONGEST_NAME]!r}..."


def _pieces(marked: str, literally: Callable[[str], str] = str) -> Iterator[str | Reference]:
    """The text between references, and the references."""
    place = 0
    for found in _MARK.finditer(marked):
        part = _read(found[1].split(BETWEEN))
        if part is None:
            continue
        if found.start() > place:
            yield literally(marked[place : found.start()])
        yield part
        place = found.end()
    if place < len(marked):
        yield literally(marked[place:])


def _read(fields: Sequence[str]) -> Reference | None:
    if len(fields) != 5 or fields[0] not in ("option", "call", "noise", "column", "row", "file"):
        return None
    kind, name, value, word, use = fields
    lower = use[:1].lower() + use[1:]
    read = None if value == _NOTHING else json.loads(value)
    return Reference(kind, json.loads(name), read, word, lower, lower != use)  # type: ignore[arg-type]


def _use(part: Reference) -> str:
    return capital(part.use) if part.capital else part.use


def capital(text: str) -> str:
    """Text that begins a sentence.

    >>> capital("the noise")
    'The noise'
    """
    return text[:1].upper() + text[1:]

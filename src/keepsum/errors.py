"""Every error and warning that Keepsum raises, as one tree.

::

    KeepsumError
    ├── InputError (also a ValueError)    2   an argument is wrong
    │   ├── DomainError                   2   axes, categories, cells
    │   ├── DataError                     2   a row or a count of the data; never shows the count
    │   │   └── UndeclaredError           2   labels that must be declared first (``tables/findings.py``)
    │   ├── LedgerError                   2   the file of a ledger cannot be used
    │   │   └── LedgerUnreachableError    5   it cannot be reached, now (also an UnreachableError)
    │   ├── UnreachableError              5   the source or the disk cannot be read, written or reached, now
    │   ├── OutputExistsError             6   the output is there already
    │   └── FailedCheckError              1   a check failed
    │       └── DeclinedError             1   a question was answered by no
    ├── InstallationError                 2   the package is not installed as it must be
    └── PlanError                         2   the totals and the mechanism do not allow a release
        ├── BudgetError                   4   a release costs more than is left of a budget
        ├── NoSamplerError                7   no sampler covers a block
        └── TooMuchWorkError              7   it takes more work or memory than there is

    KeepsumWarning (also a UserWarning)
    ├── CategoriesFromDataWarning         the list of categories comes from the data and is published
    ├── LedgerWarning                     a release is charged, but something about it is not as it should be
    └── LargeLossWarning                  the per-person privacy loss is so large that it protects little

The number is the exit status of a command that fails so. What ends with 5 may be tried again as it is; what ends with
another number fails again until something is changed.

An error is data: its ``kind``, its ``subject`` (an option, a column, a row or a file), the ``problem`` and the
``remedy`` (an option with a value). All are read from its message, in which options, columns and calls are objects
(``_saying.py``): the shell, a spec and the page say them in their own words.

A message says what is wrong and what to do in one or two sentences, and contains no confidential count. It is one line
without control characters, whatever labels and names it quotes. Errors are raised outside ``except`` blocks
(``tests/test_messages.py`` enforces it), so that no ``__context__`` carries the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from keepsum._saying import Reference, Text
from keepsum._text import printable


class KeepsumError(Exception):
    """The base class of every error that Keepsum raises: ``kind`` names it, ``status`` is that of a command.

    >>> BudgetError.kind, BudgetError.status
    ('budget', 4)
    """

    kind: ClassVar[str] = "bug"
    status: ClassVar[int] = 2

    _source: Text | None = None  # what it said in its own words, if these are others

    def __init__(self, message: str = "") -> None:
        super().__init__(Text(message, printable))

    def __format__(self, form: str) -> str:
        return format(self.text, form)

    @property
    def text(self) -> Text:
        """The message, which every face says in its own words (``keepsum._saying``)."""
        return Text(self.args[0])

    def in_words(self, message: str) -> Self:
        """The same error in other words, as those of a spec; it keeps its subject and its remedy."""
        told = type(self)(message)
        told._source = self._source or self.text
        return told

    @property
    def subject(self) -> Reference | None:
        """What the problem is about, if the message refers to it: an option, a column or a file, or else a row."""
        parts = [part for part in (self._source or self.text).parts if part.kind in ("option", "column", "file")]
        return next((part for part in parts if not part.is_remedy), parts[0] if parts else self.row)

    @property
    def row(self) -> Reference | None:
        """The row that the problem is in, if the message refers to one."""
        return next((part for part in (self._source or self.text).parts if part.kind == "row"), None)

    @property
    def problem(self) -> Text:
        """What is wrong: the message up to what is to be done."""
        return _joined(self.text.sentences[: self._first_remedy])

    @property
    def advice(self) -> Text | None:
        """What to do, if the message says that: its sentences from the first with a remedy on, else after the first."""
        advice = _joined(self.text.sentences[self._first_remedy :])
        return advice or None

    @property
    def remedy(self) -> Reference | None:
        """The option, with its value, that is to be given, changed or left out; or the call to make."""
        sentences = (self._source or self.text).sentences
        parts = [part for sentence in sentences[self._first_remedy :] for part in sentence.parts]
        chosen = [part for part in parts if part.is_remedy or part.kind == "call"]
        return next(iter([*chosen, *(part for part in parts if part.kind == "option")]), None)

    @property
    def _first_remedy(self) -> int:
        """The number of the first sentence that says what to do."""
        for place, sentence in enumerate((self._source or self.text).sentences[1:], 1):
            if any(part.is_remedy for part in sentence.parts):
                return place
        return 1


def _joined(sentences: Sequence[Text]) -> Text:
    return Text(" ".join(sentence.marked for sentence in sentences))


class InputError(KeepsumError, ValueError):
    """An argument is invalid."""

    kind = "input"


class DomainError(InputError):
    """An axis, category or cell does not exist or is declared incorrectly."""

    kind = "domain"


class DataError(InputError):
    """A row or count of the data cannot be used; the message says where it is, never what it is."""

    kind = "data"


class LedgerError(InputError):
    """The file of a ledger cannot be used: it is missing, in use, read-only, foreign or damaged."""

    kind = "ledger"


class UnreachableError(InputError):
    """The source or the disk cannot be read, written or reached now; the same may be tried again."""

    kind = "unreachable"
    status = 5


class LedgerUnreachableError(LedgerError, UnreachableError):
    """The file of a ledger is missing or in use, or its disk cannot be read or written."""

    kind = "ledger unreachable"
    status = 5


class OutputExistsError(InputError):
    """There is something already where a new file or folder is to be written."""

    kind = "output exists"
    status = 6


class FailedCheckError(InputError):
    """A check failed: a release that does not verify, or figures that differ from those published."""

    kind = "check failed"
    status = 1


class DeclinedError(FailedCheckError):
    """A question was answered by no, so that nothing was done."""

    kind = "declined"


class InstallationError(KeepsumError):
    """The compiled part of the package is missing, or does not belong to the rest."""

    kind = "installation"


class PlanError(KeepsumError):
    """The kept totals and the mechanism do not allow a meaningful release."""

    kind = "plan"


class BudgetError(PlanError):
    """A release costs more than is left of the budget of its dataset."""

    kind = "budget"
    status = 4


class NoSamplerError(PlanError):
    """A block of the plan has no sampler."""

    kind = "no sampler"
    status = 7


class TooMuchWorkError(PlanError):
    """Working something out takes more steps, or more memory, than there is."""

    kind = "too much work"
    status = 7


class KeepsumWarning(UserWarning):
    """The base class of every warning that Keepsum issues."""

    def __init__(self, message: str = "") -> None:
        super().__init__(Text(message, printable))


class CategoriesFromDataWarning(KeepsumWarning):
    """Categories were taken from the confidential data, so the list of them is published."""


class LedgerWarning(KeepsumWarning):
    """A release is charged to a ledger, which does not say what became of it, or whose totals disclose cells."""


class LargeLossWarning(KeepsumWarning):
    """The per-person privacy loss is so large that it protects little."""

"""Every error and warning that Keepsum raises, as one tree.

::

    KeepsumError
    ├── InputError (also a ValueError)    an argument is wrong
    │   ├── DomainError                   axes, categories, cells
    │   ├── DataError                     a row or a count of the data; never shows the count
    │   │   └── UndeclaredError           labels that must be declared first (``tables/findings.py``)
    │   └── LedgerError                   the file of a ledger cannot be used
    ├── InstallationError                 the package is not installed as it must be
    └── PlanError                         the totals and the mechanism do not allow a release
        ├── BudgetError                   a release costs more than is left of a budget
        ├── NoSamplerError                no sampler covers a block
        └── TooMuchWorkError              working something out takes more than a check may take

    KeepsumWarning (also a UserWarning)
    ├── CategoriesFromDataWarning         the list of categories comes from the data and is published
    ├── LedgerWarning                     a release is charged, but something about it is not as it should be
    └── LargeLossWarning                  the per-person privacy loss is so large that it protects little

A message says what is wrong and what to do in one or two sentences, and contains no confidential count. It is one line
without control characters, whatever labels and names it quotes. Errors are raised outside ``except`` blocks
(``tests/test_messages.py`` enforces it), so that no ``__context__`` carries the data.
"""

from __future__ import annotations

from keepsum._text import printable


class KeepsumError(Exception):
    """The base class of every error that Keepsum raises."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class InputError(KeepsumError, ValueError):
    """An argument is invalid."""


class DomainError(InputError):
    """An axis, category or cell does not exist or is declared incorrectly."""


class DataError(InputError):
    """A row or count of the data cannot be used; the message says where it is, never what it is."""


class LedgerError(InputError):
    """The file of a ledger cannot be used: it is missing, in use, read-only, foreign or damaged."""


class InstallationError(KeepsumError):
    """The compiled part of the package is missing, or does not belong to the rest."""


class PlanError(KeepsumError):
    """The kept totals and the mechanism do not allow a meaningful release."""


class BudgetError(PlanError):
    """A release costs more than is left of the budget of its dataset."""


class NoSamplerError(PlanError):
    """A block of the plan has no sampler."""


class TooMuchWorkError(PlanError):
    """Working something out takes more than a check may take."""


class KeepsumWarning(UserWarning):
    """The base class of every warning that Keepsum issues."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class CategoriesFromDataWarning(KeepsumWarning):
    """Categories were taken from the confidential data, so the list of them is published."""


class LedgerWarning(KeepsumWarning):
    """A release is charged to a ledger, which does not say what became of it, or whose totals disclose cells."""


class LargeLossWarning(KeepsumWarning):
    """The per-person privacy loss is so large that it protects little."""

"""Every error and warning that Keepsum raises, as one tree.

::

    KeepsumError
    ├── InputError (also a ValueError)    an argument is wrong
    │   ├── DomainError                   axes, categories, cells
    │   └── DataError                     a row or a count of the data; never prints the count
    └── PlanError                         the totals and the mechanism do not make a release
        └── NoSamplerError                a block that no sampler covers

    KeepsumWarning (also a UserWarning)
    ├── CategoriesFromDataWarning         the list of categories is itself published
    └── LargeLossWarning                  the loss of one person is so large that it protects little

A message says what is wrong and what to do, in one sentence or two, and holds no confidential count. It is one line
without control characters, whatever the labels and names in it are. Errors are raised outside of ``except`` blocks
(``tests/test_messages.py`` holds that), so that none carries another with the data in its ``__context__``.
"""

from __future__ import annotations

from keepsum._text import printable


class KeepsumError(Exception):
    """The root of every error raised on purpose."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class InputError(KeepsumError, ValueError):
    """An argument is not what it must be."""


class DomainError(InputError):
    """An axis, a category or a cell does not exist or is declared wrongly."""


class DataError(InputError):
    """A row or a count of the data cannot be used; the message names the place, never the count."""


class PlanError(KeepsumError):
    """The kept totals and the mechanism do not make a meaningful release."""


class NoSamplerError(PlanError):
    """A block of the plan has no sampler."""


class KeepsumWarning(UserWarning):
    """The root of every warning."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class CategoriesFromDataWarning(KeepsumWarning):
    """Categories were taken from the confidential data, so the list itself is published."""


class LargeLossWarning(KeepsumWarning):
    """The privacy loss of one person is so large that it protects little."""

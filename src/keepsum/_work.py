"""A limit on work that somebody else asks for: a certificate of a few lines may declare totals that take hours.

Work is counted in steps of about a microsecond, by what is computed and never by a clock: a release is either checked
on every machine or on none. Without a limit nothing is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from keepsum.errors import TooMuchWorkError

VERIFICATION = 60_000_000  # steps: about a minute


class OutOfStepsError(TooMuchWorkError):
    """The steps of a check are used up: a patient reader may have it made all the same, unlike what memory forbids."""


_LEFT: ContextVar[list[float] | None] = ContextVar("left", default=None)


@contextmanager
def limited(steps: float | None) -> Iterator[None]:
    """Allow this many steps within the block; None for any number.

    >>> with limited(10):
    ...     spend(11)
    Traceback (most recent call last):
    keepsum._work.OutOfStepsError: Working this out must take fewer steps than the limit of this check.
    """
    token = _LEFT.set(None if steps is None else [steps])
    try:
        yield
    finally:
        _LEFT.reset(token)


def is_limited() -> bool:
    """Whether work is counted."""
    return _LEFT.get() is not None


def spend(steps: float) -> None:
    """Count steps that are about to be taken.

    Raises
    ------
    OutOfStepsError
        If they exceed what is left.
    """
    left = _LEFT.get()
    if left is None:
        return
    left[0] -= steps
    if left[0] < 0:
        raise too_much()


def too_much() -> OutOfStepsError:
    """The error for work beyond the limit."""
    return OutOfStepsError("Working this out must take fewer steps than the limit of this check.")

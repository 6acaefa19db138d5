"""Which tables are neighbours for a per-person loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from keepsum._arguments import plain_text
from keepsum.errors import InputError

To: TypeAlias = Literal["any value", "some other value"]
TO: tuple[To, To] = ("any value", "some other value")


@dataclass(frozen=True)
class Neighbours:
    """Tables that differ by a change of one person's attributes, each to any value or to some other value.

    Attributes
    ----------
    attributes
        The attributes whose changes are protected, one at a time; None for all of them.
    to
        ``"any value"``, or ``"some other value"``: one that the categories give, where the kept totals allow that one.

    Examples
    --------
    >>> str(Neighbours(("age", "sex"))), str(Neighbours(None, "some other value"))
    ('age, sex to any value', 'any attribute to some other value')
    >>> Neighbours(("age", "sex")).changes, Neighbours().changes
    ('for a change of age, sex', '')
    """

    attributes: tuple[str, ...] | None = None
    to: To = "any value"

    @classmethod
    def of(cls, attributes: Iterable[str] | None, to: str) -> Neighbours:
        """The neighbours that a user requests."""
        if to not in TO:
            raise InputError(f"Argument to= must be 'any value' or 'some other value', got {_kind(to)}.")
        if attributes is None:
            return cls(None, TO[TO.index(to)])
        named = (attributes,) if isinstance(attributes, str) else attributes
        if not isinstance(named, Iterable):
            raise InputError(f"Attributes must be a list of axes, got {_kind(attributes)}.")
        names = tuple(named)
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise InputError("Attributes must be a list of one or more different axes. Leave it out for all of them.")
        return cls(tuple(map(plain_text, names)), TO[TO.index(to)])

    def __str__(self) -> str:
        return f"{'any attribute' if self.attributes is None else ', '.join(self.attributes)} to {self.to}"

    @property
    def changes(self) -> str:
        """Which changes of a person these are, if not all of any one attribute: ``"for a change of age, sex"``."""
        named = "any attribute" if self.attributes is None else ", ".join(self.attributes)
        if self.to == TO[0]:
            return "" if self.attributes is None else f"for a change of {named}"
        return f"for a change of {named} to {self.to}"

    def arguments(self) -> str:
        """The arguments as in a call, after a comma; defaults are left out."""
        named = "" if self.attributes is None else f", attributes={list(self.attributes)!r}"
        return named + ("" if self.to == TO[0] else f", to={self.to!r}")


def needs_distance(request: object) -> str:
    """Why a per-person loss is not enough where there is no plan."""
    return (
        f"The loss must be per unit of distance where there is no plan, got {request!r}. "
        f"Use ks.{type(request).__name__}.per_unit, or plan.mechanism."
    )


def _kind(value: object) -> str:
    """The argument, unless it may be data."""
    return repr(value) if isinstance(value, str) and len(value) <= 40 else f"a {type(value).__name__}"

"""The distances of a change of one attribute, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from keepsum.privacy.distance import Distance


@dataclass(frozen=True)
class AttributeDistance:
    """The distances of a change of one attribute.

    Attributes
    ----------
    axis
        The attribute.
    any_value
        The distance that covers a change to any other value; None if no change of this attribute is covered.
    other_value
        The distance that covers a change to some other value, where the totals allow that one; None if none is covered.
    fixed_values
        How many of its values no change can reach, because the kept totals fix all their cells.
    unprotected
        How many cells cannot change to every value that is not fixed: for them *any value* does not hold.
    stuck
        How many cells cannot change to any other value at all: for them *some other value* does not hold either.
    unknown
        How many cells have a value at a distance that is not known: no guarantee is stated for those.
    """

    axis: str
    any_value: Distance | None
    other_value: Distance | None
    fixed_values: int = 0
    unprotected: int = 0
    stuck: int = 0
    unknown: int = 0

    def times(self, changes: int) -> AttributeDistance:
        """The same for a person of several records, each of which changes: bounded by the sum of their distances."""
        any_value = None if self.any_value is None else self.any_value.times(changes)
        other_value = None if self.other_value is None else self.other_value.times(changes)
        return replace(self, any_value=any_value, other_value=other_value)

    @property
    def whole(self) -> bool:
        """Whether every cell can change to every value, at a distance that is known."""
        return self.any_value is not None and not (self.fixed_values or self.unprotected or self.unknown)

"""Which kept margins stand in the way of exact l1 Laplace noise, and which sets nearest to them do not.

Margins can be summed out one after the other if and only if they are decomposable. What is left of others, when axes
in a single margin and margins within others are removed in turn (Graham's reduction), is their *core*. A margin of
counties is one of states as well, so that margins are closed under nesting first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

from keepsum.planning.kept_margins import Axes, KeptMargins, is_decomposable
from keepsum.tables.domain import Domain

Margins = frozenset[Axes]

LOOKED_AT = 2_000  # sets of margins that are tried: a fraction of a second
CHANGED = 3  # margins that are left out, shortened or joined at most
NAMED = 2  # sets that are named


@dataclass(frozen=True)
class Obstacle:
    """Kept margins that are not decomposable.

    Attributes
    ----------
    margins
        Those that stand in the way, with the axes that they are named by.
    fewer
        The nearest decomposable sets that keep less, each as large as it can be.
    joined
        The nearest one that joins margins instead, if there is one that leaves any noise.
    """

    margins: tuple[tuple[str, ...], ...]
    fewer: tuple[tuple[tuple[str, ...], ...], ...]
    joined: tuple[tuple[str, ...], ...] | None


def obstacle_of(kept: KeptMargins) -> Obstacle | None:
    """What stands in the way, and what is nearest; None if margins are decomposable.

    >>> from keepsum import Domain, Invariants
    >>> axes = Domain({"county": [1, 2, 3], "sex": ["F", "M"], "age": [1, 2, 3], "year": [1, 2]})
    >>> keep = [["county", "sex"], ["sex", "age"], ["county", "age"], ["year"]]
    >>> found = obstacle_of(KeptMargins.of(Invariants.margins(axes, keep)))
    >>> found.margins
    (('county', 'sex'), ('county', 'age'), ('sex', 'age'))
    >>> found.fewer[0], found.joined
    ((('county', 'age'), ('sex', 'age'), ('year',)), (('county', 'sex', 'age'), ('year',)))
    """
    if is_decomposable(kept.margins):
        return None
    margins, domain = frozenset(kept.margins), kept.domain
    fewer = _nearest(margins, lambda now: _with_less(now, domain), kept.several)
    largest = [one for one in fewer if not any(one != other and _within(one, other) for other in fewer)]
    largest.sort(key=lambda one: (-_totals(one, domain), _named(one, domain)))
    joined = _nearest(margins, _with_joined, kept.several)
    least = min(joined, key=lambda one: (_totals(one, domain), _named(one, domain)), default=None)
    return Obstacle(
        _named(_core(margins), domain),
        tuple(_named(one, domain) for one in largest[:NAMED]),
        None if least is None else _named(least, domain),
    )


def _core(margins: Margins) -> Margins:
    """The margins that are left by Graham's reduction, whole."""
    left = {margin: margin for margin in margins}  # each with what is left of it
    while True:
        before = dict(left)
        for margin, rest in before.items():
            others = frozenset().union(*(other for key, other in left.items() if key != margin))
            shared = rest & others
            if any(shared <= other for key, other in left.items() if key != margin):
                del left[margin]
            else:
                left[margin] = shared
        if left == before:
            return frozenset(left)


def _nearest(
    start: Margins, changes: Callable[[Margins], Iterator[Margins]], several: tuple[str, ...]
) -> list[Margins]:
    """The decomposable sets after the fewest changes; none that keeps every cell."""
    seen, reached = {start}, [start]
    for _ in range(CHANGED):
        reached = [new for now in reached for new in changes(now)]
        reached = [new for new in dict.fromkeys(reached) if new not in seen]
        if len(seen) + len(reached) > LOOKED_AT:
            return []
        seen |= set(reached)
        found = [one for one in reached if is_decomposable(one) and frozenset(several) not in one]
        if found:
            return found
    return []


def _with_less(margins: Margins, domain: Domain) -> Iterator[Margins]:
    """One margin left out, or without one axis and all that is nested in it."""
    for margin in sorted(margins, key=sorted):
        others = margins - {margin}
        if others:
            yield others
        for axis in sorted(margin):
            shorter = frozenset(name for name in margin if axis not in domain.closure([name]))
            if shorter:
                yield _maximal(others | {shorter})


def _with_joined(margins: Margins) -> Iterator[Margins]:
    """Two margins as one."""
    for one, two in combinations(sorted(margins, key=sorted), 2):
        yield _maximal((margins - {one, two}) | {one | two})


def _maximal(margins: Margins) -> Margins:
    return frozenset(margin for margin in margins if not any(margin < other for other in margins))


def _within(one: Margins, other: Margins) -> bool:
    """Whether each margin of one set is one of another or part of it."""
    return all(any(margin <= whole for whole in other) for margin in one)


def _totals(margins: Margins, domain: Domain) -> int:
    """How many totals these margins have."""
    count = 0
    for margin in margins:
        size = 1
        for family in domain.families:
            size *= family.project(margin)[0]
        count += size
    return count


def _named(margins: Margins, domain: Domain) -> tuple[tuple[str, ...], ...]:
    """The margins by the axes that nothing else in them is nested in, in the order of the table."""
    order = list(domain.axes)
    named = [sorted(_innermost(margin, domain), key=order.index) for margin in margins]
    return tuple(sorted((tuple(names) for names in named), key=lambda names: [order.index(name) for name in names]))


def _innermost(margin: Axes, domain: Domain) -> list[str]:
    return [name for name in margin if not any(name in domain.closure([other]) for other in margin - {name})]

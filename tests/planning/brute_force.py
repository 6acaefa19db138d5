"""The definition of docs/one-person.md, word for word, over all real tables of a few people in a few cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

import keepsum as ks
from keepsum.planning.distances import AttributeDistance
from keepsum.privacy.distance import Distance

Cost = Callable[[np.ndarray], np.ndarray]


def l1(changes: np.ndarray) -> np.ndarray:
    return np.abs(changes).sum(axis=-1)


def squared(changes: np.ndarray) -> np.ndarray:
    return (changes**2).sum(axis=-1)


def real_tables(size: int, people: int) -> np.ndarray:
    """All real tables of so many people."""
    return np.array([np.bincount(c, minlength=size) for c in combinations_with_replacement(range(size), people)])


def is_pinned(A: np.ndarray) -> np.ndarray:
    """Which cells the totals and the number of people determine: their unit vectors are combinations of the totals."""
    totals = np.vstack([A, np.ones((1, A.shape[1]))])
    rank = np.linalg.matrix_rank(totals)
    return np.array([np.linalg.matrix_rank(np.vstack([totals, unit])) == rank for unit in np.eye(A.shape[1])])


@dataclass(frozen=True)
class Change:
    """A change of the person in one cell to a value: the attributes that change, and the cells of the new value."""

    cell: int
    value: int
    changed: frozenset[str]
    new: tuple[int, ...]


def changes_of(domain: ks.Domain, axis: str) -> Iterator[Change]:
    """All changes of an attribute. What is nested in the topmost attribute that changes changes with it."""
    codes = {name: domain.codes(name) for name in domain.axes}
    above = [axis]
    while above[-1] in domain.within:
        above.append(domain.within[above[-1]])
    for cell in range(domain.size):
        for value in sorted(set(range(len(domain.axis(axis)))) - {int(codes[axis][cell])}):
            # What the new value is nested in is what it is for any category: also where all its cells are zeros.
            name, code, top = axis, value, axis
            while name in domain.within:
                code, name = int(domain.axis(name).parent_codes[code]), domain.within[name]
                top = name if code != codes[name][cell] else top
            changed = frozenset(name for name in domain.axes if top in domain.closure([name]))
            new = codes[axis] == value
            for name in set(domain.axes) - changed:
                new &= codes[name] == codes[name][cell]
            yield Change(cell, value, changed, tuple(np.flatnonzero(new).tolist()))


def largest(invariants: ks.Invariants, axis: str, people: int, cost: Cost, strong: bool) -> dict[tuple[int, int], int]:
    """For each cell i and value v the most that any table of at most so many people needs, where it has a y at all."""
    domain, found = invariants.domain, {}
    A = invariants.coefficients.toarray()
    changes = list(changes_of(domain, axis))
    for number, changed in ((n, c) for n in range(1, people + 1) for c in {change.changed for change in changes}):
        tables = real_tables(domain.size, number)
        kept = tables @ A.T
        others = [name for name in domain.axes if name not in changed]
        if strong and others:
            margin = domain.marginal_index(others)
            kept = np.hstack([kept, tables @ (margin[:, None] == np.arange(margin.max() + 1))])
        _, fibre = np.unique(kept, axis=0, return_inverse=True) if kept.shape[1] else (None, np.zeros(len(tables), int))
        for which in range(fibre.max() + 1):
            x = tables[fibre.ravel() == which]
            costs = cost(x[None, :, :] - x[:, None, :])  # from the first to the second
            for change in changes:
                has = (x[:, list(change.new)] >= 1).any(axis=1)
                there = x[:, change.cell] >= 1
                if change.changed == changed and has.any() and there.any():
                    key = (change.cell, change.value)
                    found[key] = max(found.get(key, 0), costs[there][:, has].min(axis=1).max())
    return found


def gaps(invariants: ks.Invariants, axis: str) -> tuple[int, int, int]:
    """Values that are fixed, cells that cannot change to every other value, and cells that cannot change at all."""
    codes, pinned = invariants.domain.codes(axis), is_pinned(invariants.coefficients.toarray())
    reached = set(codes[~pinned].tolist())
    possible: dict[int, int] = dict.fromkeys(np.flatnonzero(~pinned).tolist(), 0)
    for change in changes_of(invariants.domain, axis):
        if change.cell in possible and not pinned[list(change.new)].all():
            possible[change.cell] += 1
    unprotected = sum(number < len(reached) - 1 for number in possible.values())
    return (
        len(invariants.domain.axis(axis)) - len(reached),
        unprotected,
        sum(number == 0 for number in possible.values()),
    )


def check(invariants: ks.Invariants, found: AttributeDistance, people: int, cost: Cost, stated: Callable) -> int:
    """What is stated is never below the truth in its reading, and is the truth where it is said to be exact.

    Nothing is claimed for a person in a cell that the totals determine: such cells are named as pinned.
    ``stated`` is the cost of a distance. The answer is how many of the two figures were compared with their own tables:
    those that enough people may need.
    """
    assert (found.fixed_values, found.unprotected, found.stuck) == gaps(invariants, found.axis)
    if found.any_value is None or found.other_value is None:
        return 0
    pinned = is_pinned(invariants.coefficients.toarray())
    compared = 0
    for distance, to_any in ((found.any_value, True), (found.other_value, False)):
        costs = largest(invariants, found.axis, people, cost, distance.reading == "strong")
        by_cell: dict[int, list[int]] = {}
        for change in changes_of(invariants.domain, found.axis):
            if not pinned[change.cell] and not pinned[list(change.new)].all():
                # A change that needs more people than there are here is no change at no cost: it is not known.
                by_cell.setdefault(change.cell, []).append(costs.get((change.cell, change.value), 0))
        true = max((max if to_any else min)(values) for values in by_cell.values())
        assert stated(distance) >= true
        if distance.exact and people > _people(distance):
            assert stated(distance) == true
            compared += 1
    return compared


def _people(distance: Distance) -> int:
    """As many people as may leave in a change of this length, in l2 of this square."""
    return distance.length // 2

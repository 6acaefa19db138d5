"""The nearest tables in which one person has another value, by trying all small tables: docs/one-person.md, strong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

import keepsum as ks

MOST_PEOPLE = 3  # two who exchange, and one more


def dearest_change(plan: ks.Plan, axis: str, loss: Callable[[np.ndarray], Any]) -> Any:
    """The loss of the nearest table, for the list of people, the person and the new value where it is largest.

    Everybody else keeps all attributes but those that change, and every kept total stays the same.
    """
    known: dict[bytes, Any] = {}

    def loss_of(change: np.ndarray) -> Any:
        if change.tobytes() not in known:
            known[change.tobytes()] = loss(change)
        return known[change.tobytes()]

    return max(min(loss_of(change) for change in changes) for changes in _changes(plan, axis))


def _changes(plan: ks.Plan, axis: str) -> Iterator[list[np.ndarray]]:
    """For each list of people, one of them, and a value: all changes to tables where someone like them has it."""
    domain, kept = plan.invariants.domain, plan.invariants.coefficients
    codes = {name: domain.codes(name) for name in domain.axes}
    others = [name for name in domain.axes if name not in domain.closure([axis]) and axis not in domain.closure([name])]
    for people in range(1, MOST_PEOPLE + 1):
        lists = combinations_with_replacement(range(domain.size), people)
        tables = [np.bincount(cells, minlength=domain.size) for cells in lists]
        alike = defaultdict(list)
        for table in tables:
            alike[(kept @ table).tobytes()].append(table)
        for x in tables:
            for i in np.flatnonzero(x).tolist():
                to: dict[int, list[np.ndarray]] = defaultdict(list)
                for j in range(domain.size):
                    if codes[axis][i] == codes[axis][j] or any(codes[name][i] != codes[name][j] for name in others):
                        continue
                    changed = [name for name in domain.closure([axis]) if codes[name][i] != codes[name][j]]
                    top = min(changed, key=lambda name: len(domain.closure([name])))
                    stays = [name for name in domain.axes if top not in domain.closure([name])]
                    index = domain.marginal_index(stays) if stays else np.zeros(domain.size, dtype=int)
                    same = alike[(kept @ x).tobytes()]
                    to[int(codes[axis][j])] += [
                        y - x for y in same if y[j] and not np.bincount(index, weights=y - x).any()
                    ]
                yield from filter(None, to.values())

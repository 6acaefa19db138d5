"""The sampler of nested totals, some of them focused: exact."""

from __future__ import annotations

from keepsum._work import spend
from keepsum.planning.nested import Nested
from keepsum.planning.selection.choice import Choice, Reason
from keepsum.planning.selection.l1 import HIGHEST_EPSILON, LOWEST_EPSILON
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.l1.focus.sampler import NestedFocus
from keepsum.sampling.l1.focus.sizes import entries_of
from keepsum.sampling.l1.focus.tree import Kinds

MOST_ENTRIES = 4_000_000  # of the tables of sums: some 40 seconds, and 130 MB
MICROSECONDS = 10  # to make an entry
CELLS_DRAWN = 2  # proposals per cell, about


def choose_nested(nested: Nested, mechanism: Mechanism) -> Choice:
    """All trees of focused totals."""
    cells, totals = nested.cells, nested.totals(mechanism)
    epsilons = [totals.epsilon, *(weight for weight in totals.weights if weight is not None)]
    if min(epsilons) < LOWEST_EPSILON or max(epsilons) > HIGHEST_EPSILON:
        return Choice.none(
            cells, Reason("epsilon_out_of_range", lowest=str(LOWEST_EPSILON), highest=str(HIGHEST_EPSILON))
        )
    in_groups = nested.structure.weight is not None  # then sums of groups are drawn
    entries = entries_of(Kinds(totals, in_groups))
    if entries > MOST_ENTRIES:
        return Choice.none(cells, Reason("sums_too_wide"))
    spend(MICROSECONDS * entries)
    sampler, count = NestedFocus(totals, as_sums=in_groups), nested.structure.number_of(cells)
    return Choice("nested_totals", sampler, cells, CELLS_DRAWN * count)

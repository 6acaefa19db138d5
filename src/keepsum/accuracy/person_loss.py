"""What one person loses with any shares of a budget: the largest of several sums of shares.

A change of one person changes cells by a length, and the totals of each level by at most that. With some shares it
costs the sum of all these, each times its share, and which change is the dearest may depend on the shares. If one of
them changes every level by the longest length that there is, none costs more. Otherwise those that are the dearest
where one share is far larger than the others show how much a change can do to each level. If for every attribute some
change does all of that at once, those that are known are enough; if not, the dearest is looked for each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy.distance import Distance
from keepsum.privacy.laplace import Laplace

HEAVY = 10**6
Change: TypeAlias = tuple[int, ...]  # the length in cells, and in the totals of each level


class PersonLoss:
    """The loss of one person with shares of cells and of each level, per unit of them.

    Parameters
    ----------
    plan
        A plan for one person with a share for each level.
    """

    def __init__(self, plan: CompiledPlan) -> None:
        self._plan = plan
        self._axes = [level.axes for level in plan.mechanism.focus]
        found, places = [_changes(plan)], range(1 + len(self._axes))
        longest = (_longest(plan),) * len(places)
        self.complete = _covered(longest, found[0])
        if not self.complete:
            found += [_changes(self._planned([HEAVY if k == place else 1 for k in places])) for place in places]
            self.complete = _complete(found)
        self._known = {change for changes in found for change in changes}

    def __call__(self, shares: Sequence[Fraction | int]) -> Fraction:
        """The largest loss; shares of levels may be 0."""
        if self.complete:
            return Fraction(max(sum(n * share for n, share in zip(c, shares, strict=True)) for c in self._known))
        plan = self._planned(shares)
        used = [Fraction(share) for share in shares if share]
        return _asked(plan).weighed(used)

    def _planned(self, shares: Sequence[Fraction | int]) -> CompiledPlan:
        """A plan with these shares, those of 0 left out."""
        cells, *others = shares
        given = {axes: Fraction(share) for axes, share in zip(self._axes, others, strict=True) if share}
        request = Laplace(1, focus=given, cell_share=Fraction(cells)) if given else Laplace(1)
        return compile_plan(self._plan.invariants, request, self._plan.records, [self._plan])


def _changes(plan: CompiledPlan) -> list[Change]:
    """The dearest change of each attribute, and of a count alone, under a plan."""
    attributes = [attribute.any_value for attribute in plan.attributes]
    alone = plan.distances.alone
    return [(0,) * (1 + len(plan.mechanism.focus)) if d is None else _change(d, plan) for d in [*attributes, alone]]


def _asked(plan: CompiledPlan) -> Distance:
    if plan.asked_distance is None:
        raise AssertionError("the plan is for one person")
    return plan.asked_distance


def _change(distance: Distance, plan: CompiledPlan) -> Change:
    return (distance.length, *(distance.focused or (distance.length,) * len(plan.mechanism.focus)))


def _longest(plan: CompiledPlan) -> int:
    """The length of the longest change of one person."""
    return max(attribute.any_value.length for attribute in plan.attributes if attribute.any_value is not None)


def _complete(found: Sequence[Sequence[Change]]) -> bool:
    """Whether the most that changes of each attribute do to each level is done by one change that is known."""
    known = [change for changes in found for change in changes]
    most = (tuple(map(max, zip(*changes, strict=True))) for changes in zip(*found, strict=True))
    return all(_covered(change, known) for change in most)


def _covered(change: Change, known: Sequence[Change]) -> bool:
    """Whether a change does to every level at least what another one does."""
    return any(all(n >= m for n, m in zip(other, change, strict=True)) for other in known)

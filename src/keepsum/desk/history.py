"""The releases that a desk has made, and what those of one file lose together: losses add up, with a ledger or without.

The rule is that of the ledger (``accounting.compose``). It is stated for one person where all of them keep the same
totals of the same table, and else per unit of distance, as kept totals of different tables have to be put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from keepsum.specs.spec import Spec

if TYPE_CHECKING:
    from keepsum.accounting.cost import Cost
    from keepsum.planning.plan import CompiledPlan


@dataclass(frozen=True)
class Made:
    """A release: the file that it was made of, what was said of that and kept, and what it cost."""

    file: bytes
    table: bytes
    cost: Cost
    person: str | None  # the loss of one person, if the release was asked for by that

    @classmethod
    def of(cls, file: bytes, spec: Spec, plan: CompiledPlan) -> Made:
        """A release of a file by this plan."""
        from keepsum.accounting.cost import Cost

        return cls(file, table_key(spec), Cost.of(plan.guarantee), _person(spec, plan))


def _person(spec: Spec, plan: CompiledPlan) -> str | None:
    return None if spec.mechanism.per_unit or plan.person is None else str(plan.stated_loss)


def table_key(spec: Spec) -> bytes:
    """What a table and its kept totals depend on, besides the file."""
    return msgspec.json.encode([spec.source, spec.records, spec.axes, spec.keep])


def words_on(made: Sequence[Made], spec: Spec, plan: CompiledPlan | None) -> str | None:
    """How many releases were made of a file, what they lose together, and with the one that is planned."""
    from keepsum.accounting.composition import compose
    from keepsum.accounting.cost import Cost
    from keepsum.privacy.distance import Distance

    if not made:
        return None
    count = f"{len(made):,} release{'s' * (len(made) != 1)} of this file {'was' if len(made) == 1 else 'were'} made"
    start = f"{count} at this page already. Losses of releases of the same data add up"
    if plan is None:
        return f"{start}."
    same = all(one.table == table_key(spec) for one in made)
    costs = [one.cost for one in made]
    before = compose(costs, same_table=same)
    after = compose([*costs, Cost.of(plan.guarantee)], same_table=same)
    person = plan.person
    if person is None or not same or plan.mechanism.focus or (person.norm == "l2" and after.norm == "l1"):
        first, then = before.at(Distance(before.norm, 1)), after.at(Distance(after.norm, 1))
        stated = [*(one.person for one in made), _person(spec, plan)]
        if all(stated) and not same:
            *earlier, now = stated
            start += (
                f". For one person, {', '.join(map(str, earlier))} so far and {now} by this one; but they keep other "
                f"totals or are of other tables, so one person may lose more than the sum"
            )
        return f"{start}: per unit of distance they are {first} so far, and {then} with this one."
    return f"{start}: one person's are {before.at(person)} so far, and {after.at(person)} with this one."

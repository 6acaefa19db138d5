"""What several releases of one spec cost together, if they are about the same people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keepsum.planning.plan import CompiledPlan
    from keepsum.specs.job import Job

SAME_PEOPLE = "Where the {} tables are about the same people, their losses add up."
NOT_KNOWN = "The sum is not known before the chains that draw some of the noise are measured."
SUMS = "A table that is a sum over another one costs nothing as a [[marginal]] of it, with larger noise."


def together(releases: Sequence[tuple[Job, CompiledPlan]]) -> list[tuple[str, list[str]]]:
    """The section on several releases; none for one release."""
    if len(releases) == 1:
        return []
    return [("Together", [SAME_PEOPLE.format(len(releases)), _total(releases), SUMS])]


def _total(releases: Sequence[tuple[Job, CompiledPlan]]) -> str:
    from keepsum.accounting.composition import compose
    from keepsum.accounting.cost import Cost

    guarantees = [plan.guarantee for _, plan in releases]
    if any(guarantee.error is None and guarantee.sampling not in ("exact", "rounded") for guarantee in guarantees):
        return NOT_KNOWN
    return compose(map(Cost.of, guarantees), same_table=_is_one_table(releases)).words


def _is_one_table(releases: Sequence[tuple[Job, CompiledPlan]]) -> bool:
    """Whether all are of the same cells, counted in the same way from the same source."""
    (job, plan), *others = releases
    return plan.invariants.domain is not None and all(
        other.spec.source == job.spec.source
        and other.spec.records == job.spec.records
        and another.invariants.domain == plan.invariants.domain
        for other, another in others
    )

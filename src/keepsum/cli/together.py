"""What several releases of one spec cost together, if they are about the same people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keepsum.planning.plan import CompiledPlan
    from keepsum.privacy.distance import Distance, Norm
    from keepsum.specs.job import Job

SAME_PEOPLE = "Where the {} tables are about the same people, their losses add up."
NOT_KNOWN = "The sum is not known before the chains that draw some of the noise are measured."
TOGETHER = "{} releases together: at most {} for one {}, with the kept totals of all of them the same."
EACH = "For one {} they are {}, and together may be more than the sum, where kept totals or tables differ."
SUMS = "A table that is a sum over another one costs nothing as a [[marginal]] of it, with larger noise."


def together(releases: Sequence[tuple[Job, CompiledPlan]], details: bool) -> list[tuple[str, list[str]]]:
    """The section on several releases; none for one release."""
    if len(releases) == 1:
        return []
    return [("Together", [SAME_PEOPLE.format(len(releases)), _total(releases, details), SUMS])]


def _total(releases: Sequence[tuple[Job, CompiledPlan]], details: bool) -> str:
    """The loss of one person in all releases, if it is known; else in each, and with details per unit of distance.

    The sum per unit is smaller than one person's loss in a single release may be, so it never stands for that alone.
    """
    from keepsum.accounting.composition import compose
    from keepsum.accounting.cost import Cost
    from keepsum.privacy.guarantee import USUAL_DELTA
    from keepsum.privacy.loss import Loss
    from keepsum.privacy.profile import smallest_epsilon
    from keepsum.tables.records import subject_of

    guarantees = [plan.guarantee for _, plan in releases]
    if any(guarantee.error is None and guarantee.sampling not in ("exact", "rounded") for guarantee in guarantees):
        return NOT_KNOWN
    one_table = _is_one_table(releases)
    total = compose(map(Cost.of, guarantees), same_table=one_table)
    subject = subject_of(releases[0][1].records)
    person = _person(releases, total.norm) if one_table else None
    if person is not None:
        loss = total.at(person)
        at_delta = ""
        if loss.rho is not None and not total.epsilon and not total.error:  # one lattice, fixed before any output
            at_delta = f", so {Loss(smallest_epsilon(loss.rho, USUAL_DELTA), USUAL_DELTA)}"
        return TOGETHER.format(len(releases), f"{loss}{at_delta}", subject)
    if any(guarantee.person is None for guarantee in guarantees):
        return total.words
    each = ", ".join(str(plan.stated_loss) for _, plan in releases)
    return EACH.format(subject, each) + (f" {total.words}" if details else "")


def _person(releases: Sequence[tuple[Job, CompiledPlan]], norm: Norm) -> Distance | None:
    """The distance of one person under the kept totals of all releases of one table; None where it is not known."""
    from keepsum.accounting.joint import joint_distances

    plan = releases[0][1]
    if plan.invariants.domain is None:
        return None
    kept = [other.invariants for _, other in releases]
    return joint_distances(kept, plan.invariants.domain, norm, plan.records).person()


def _is_one_table(releases: Sequence[tuple[Job, CompiledPlan]]) -> bool:
    """Whether all are of the same cells, counted in the same way from the same source."""
    (job, plan), *others = releases
    return plan.invariants.domain is not None and all(
        other.spec.source == job.spec.source
        and other.spec.records == job.spec.records
        and another.invariants.domain == plan.invariants.domain
        for other, another in others
    )

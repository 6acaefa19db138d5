"""``ks.plan`` and ``ks.release``: what most users call."""

from __future__ import annotations

from keepsum.facade.objects import Plan
from keepsum.planning.plan import compile_plan
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.tables.invariants import Invariants


def plan(invariants: Invariants, mechanism: Request | Mechanism) -> Plan:
    """Compile kept totals and a mechanism into a plan.

    Parameters
    ----------
    invariants
        The totals to keep.
    mechanism
        ``Laplace`` or ``Gaussian``; a loss per person is turned into one per unit of distance here.

    Raises
    ------
    PlanError
        If the totals leave no cell any freedom: there is then nothing to protect and no guarantee to state.

    Notes
    -----
    Linear in the cells times the totals that each stands in, plus exact algebra on the blocks whose totals overlap.
    """
    return Plan.of(compile_plan(invariants, mechanism))

"""The other mechanisms beside the one of a plan, at the same guarantee for one person."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from keepsum.choosing import simulate_into
from keepsum.errors import InputError, PlanError
from keepsum.geometry import cell_share
from keepsum.mechanisms import Gaussian, Laplace, Mechanism, shown
from keepsum.sampling.rng import rng

if TYPE_CHECKING:
    from keepsum.planning import Plan

DELTA = Fraction(1, 10**6)  # for Gaussian noise beside a plan that has no delta
# Draws simulated for l1 noise under overlapping totals, the fewest of them, and the cells that more may take.
DRAWS, FEWEST, EFFORT = 400, 4, 4 * 10**6


def compare(plan: Plan) -> str:
    """The standard deviation of a typical cell under l1 Laplace, l2 Laplace and Gaussian noise, and the smallest."""
    from keepsum.planning import plan as make

    epsilon, delta = _person(plan)
    cell = _typical(plan)
    found: dict[str, float] = {}
    try:
        others = _others(plan, epsilon, delta)
    except InputError:  # a guarantee beyond what mechanisms are made for
        return "not known"
    for name, mechanism in others:
        try:
            other = plan if mechanism is None else make(plan.invariants, mechanism)
            deviation = cell_deviation(other, cell)
        except (InputError, PlanError):
            continue
        if deviation is not None:
            found[name] = deviation
    if not found:
        return "not known"
    figures = ", ".join(f"{name} {value:.3g}" for name, value in found.items())
    least = min(found, key=lambda name: found[name])
    spared = f" (Gaussian: with delta {shown(delta)} per unit)" if "Gaussian" in found else ""
    return (
        f"at epsilon {float(epsilon):.4g} for one person{spared} the noise of a cell has standard deviation "
        f"{figures}; {least} has the smallest"
    )


def _person(plan: Plan) -> tuple[Fraction, Fraction]:
    """Epsilon and delta of one person under this plan, to compare with."""
    mechanism, distance = plan.mechanism, Fraction(plan.person_distance)
    if mechanism.epsilon is not None:
        own = mechanism.delta if isinstance(mechanism, Gaussian) else None
        return mechanism.epsilon * distance, own or DELTA
    sigma = float(mechanism.sigma or 1)
    rho = float(distance) ** 2 / (2 * sigma**2)
    return Fraction(rho + 2 * math.sqrt(rho * -math.log(DELTA))), DELTA


def _others(plan: Plan, epsilon: Fraction, delta: Fraction) -> list[tuple[str, Mechanism | None]]:
    """Every mechanism at that guarantee; None for the plan's own."""
    own = plan.mechanism
    gaussian = isinstance(own, Gaussian)
    reach = math.sqrt(plan.person.length) if own.norm == "l2" else None
    listed: list[tuple[str, Mechanism | None]] = []
    for norm in ("l1", "l2"):
        mine = not gaussian and own.norm == norm
        listed.append((f"{norm} Laplace", None if mine else Laplace.per_person(_short(epsilon), norm)))
    if gaussian:
        listed.append(("Gaussian", None))
    else:
        far = reach if reach is not None else _l2_reach(plan)
        listed.append(("Gaussian", Gaussian(_short(epsilon / Fraction(far)), delta)))
    return listed


def _short(number: Fraction) -> Fraction:
    return Fraction(f"{float(number):.9g}")


def _l2_reach(plan: Plan) -> float:
    """The l2 distance of one person: a change of l1 length r by steps of one has l2 length sqrt(r)."""
    from keepsum.planning import plan as make

    return float(make(plan.invariants, Laplace(1, "l2")).person_distance)


def _typical(plan: Plan) -> int:
    """A cell of the largest group."""
    largest = max(range(len(plan.groups)), key=lambda k: plan.groups[k].cells)
    return int(plan.samplers[largest].cells[0])


def cell_deviation(plan: Plan, cell: int) -> float | None:
    """The standard deviation of a cell's noise; that of wide noise for Gaussian and l2 Laplace noise."""
    mechanism = plan.mechanism
    if isinstance(mechanism, Laplace) and mechanism.norm == "l1":
        return _l1_deviation(plan, cell)
    share = cell_share(plan.structure, int(plan.structure.region[cell]))
    if share is None:
        return None
    if isinstance(mechanism, Gaussian):
        return float(mechanism.sigma or 0) * math.sqrt(share)
    # w^2 has mean (m + 1)/eps^2.
    return math.sqrt(share * (plan.geometry.dimension + 1)) / float(mechanism.epsilon)


def _l1_deviation(plan: Plan, cell: int) -> float | None:
    if any(choice.sampler is None for choice in plan.samplers):
        return None
    try:
        return math.sqrt(plan.noise.variance(cell))
    except InputError:  # totals overlap: simulated
        pass
    for choice in plan.samplers:
        place = np.flatnonzero(choice.cells == cell)
        if len(place) and choice.sampler is not None:
            if choice.chain is not None and choice.chain.mean_square is not None:
                return math.sqrt(choice.chain.mean_square)
            draws = max(FEWEST, min(DRAWS, EFFORT // max(1, choice.simulation_cost)))
            noise = np.empty((draws, choice.sampler.width), dtype=np.int64)
            simulate_into(choice.sampler, noise, rng(seed="keepsum comparison"))
            return float(noise[:, choice.first : choice.first + len(choice.cells)].std())
    return None

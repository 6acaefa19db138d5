"""The other mechanisms beside the one of a plan, at the same guarantee for one person."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum.errors import InputError, PlanError
from keepsum.planning.distances import one_person
from keepsum.planning.geometry import cell_share
from keepsum.planning.plan import Plan
from keepsum.planning.plan import plan as make
from keepsum.planning.selection.choice import simulate_into
from keepsum.privacy.mechanisms import Distance, Gaussian, Laplace, Mechanism, Promise, large_loss, shown
from keepsum.sampling.core.rng import rng

DELTA = Fraction(1, 10**6)  # for Gaussian noise beside a plan that has no delta
# Draws simulated for l1 noise under overlapping totals, the fewest of them, and the cells that more may take.
DRAWS, FEWEST, EFFORT = 400, 4, 4 * 10**6


@dataclass(frozen=True)
class Alternative:
    """A mechanism at the same guarantee for one person, and the standard deviation of a typical cell under it."""

    name: str
    plan: Plan
    deviation: float

    @property
    def exact(self) -> bool:
        """Whether its noise is drawn exactly."""
        return self.plan.guarantee.sampling == "exact"


def compare(plan: Plan) -> list[str]:
    """The standard deviation of a typical cell under every mechanism, the smallest, and what is exact instead."""
    epsilon, delta = _person(plan)
    found = alternatives(plan)
    if not found:
        return ["not known"]
    figures = ", ".join(f"{other.name} {other.deviation:.3g}" for other in found)
    least = min(found, key=lambda other: other.deviation).name
    spared = f" (Gaussian: with delta {_short_text(delta)})" if any(o.name == "Gaussian" for o in found) else ""
    lines = [
        f"at epsilon {float(epsilon):.4g} for one person{spared} the noise of a cell has standard deviation "
        f"{figures}; {least} has the smallest"
    ]
    return lines + exact_instead(plan, found)


def exact_instead(plan: Plan, found: Sequence[Alternative] | None = None) -> list[str]:
    """For a plan whose noise is rounded or estimated: which noise would be exact, at the same loss for one person."""
    if plan.guarantee.sampling == "exact" or large_loss(plan.mechanism, _asked_distance(plan)) is not None:
        return []  # nothing is recommended at a loss that protects little
    listed = alternatives(plan) if found is None else found
    exact = [f"{_call(plan, o)} (standard deviation {o.deviation:.3g})" for o in listed if o.exact]
    own = next((f", against {o.deviation:.3g} now" for o in listed if o.plan is plan), "")
    if not exact:
        return ["No other noise is drawn exactly under these totals."]
    return [f"Drawn exactly at the same loss for one person: {'; '.join(exact)}{own}."]


def _call(plan: Plan, other: Alternative) -> str:
    """A mechanism and how to ask for it in the shell."""
    epsilon, delta = _person(plan)
    promise = plan.promise or Promise()
    words = ["--per-person", f"--epsilon {float(epsilon):.4g}"]
    if other.name == "Gaussian":
        words = ["--mechanism gaussian", *words, f"--delta {_short_text(delta)}"]
    else:
        words = [f"--norm {other.plan.mechanism.norm}", *words]
    if promise.attributes is not None:
        words.append(f"--attributes {','.join(promise.attributes)}")
    if promise.to != "any value":
        words.append(f"--to '{promise.to}'")
    return f"{other.name}, {' '.join(words)}"


def alternatives(plan: Plan) -> list[Alternative]:
    """Every mechanism at the guarantee that one person has under this plan, as far as it can be worked out."""
    epsilon, delta = _person(plan)
    cell = _typical(plan)
    found: list[Alternative] = []
    for name, ask in _others(plan, epsilon, delta):
        try:
            other = plan if ask is None else make(plan.invariants, ask())
            deviation = cell_deviation(other, cell)
        except (InputError, PlanError):  # a guarantee beyond what mechanisms are made for
            continue
        if deviation is not None:
            found.append(Alternative(name, other, deviation))
    return found


def _person(plan: Plan) -> tuple[Fraction, Fraction]:
    """Epsilon and delta of one person under this plan, to compare with."""
    person = _asked_distance(plan)
    mechanism, distance = plan.mechanism, Fraction(person.value)
    if mechanism.epsilon is not None:
        delta = mechanism.delta if isinstance(mechanism, Gaussian) else None
        growth = 1.0
        if delta is not None:
            loss = min(700.0, float(mechanism.epsilon) * float(distance))
            growth = math.expm1(loss) / math.expm1(min(700.0, float(mechanism.epsilon)))
        return mechanism.epsilon * distance, min(Fraction(1, 2), (delta or DELTA) * Fraction(growth))
    rho = float(mechanism.unit_rho * person.length)
    return Fraction(rho + 2 * math.sqrt(rho * -math.log(DELTA))), DELTA


def _asked_distance(plan: Plan) -> Distance:
    """The distance of the change that a loss was asked for, by default of any one person."""
    return plan.person if plan.promise is None else one_person(plan.attributes, plan.cheapest, plan.promise)


def _others(plan: Plan, epsilon: Fraction, delta: Fraction) -> list[tuple[str, Callable[[], Mechanism] | None]]:
    """Every mechanism at that guarantee; None for the plan's own."""
    own, promise = plan.mechanism, plan.promise or Promise()
    asked: dict[str, Callable[[], Mechanism]] = {
        "l1 Laplace": lambda: Laplace.per_person(_short(epsilon), "l1", attributes=promise.attributes, to=promise.to),
        "l2 Laplace": lambda: Laplace.per_person(_short(epsilon), "l2", attributes=promise.attributes, to=promise.to),
        "Gaussian": lambda: Gaussian.per_person(
            _short(epsilon), _short(delta), attributes=promise.attributes, to=promise.to
        ),
    }
    mine = "Gaussian" if isinstance(own, Gaussian) else f"{own.norm} Laplace"
    return [(name, None if name == mine else ask) for name, ask in asked.items()]


def _short(number: Fraction) -> Fraction:
    return Fraction(f"{float(number):.9g}")


def _short_text(number: Fraction) -> str:
    return shown(Fraction(f"{float(number):.2g}"))


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

"""The slow steps, each a function of plain parameters, so that its result can be cached. No figures, no verdicts.

Seconds are CPU time on one core, so that other processes matter little.

Systems of totals are named by text: "circles", "children", or "sum 102" for one total over 102 cells.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

import keepsum as ks

CHILDREN = np.array([[15, 1, 3, 1], [20, 10, 10, 15], [3, 10, 10, 2], [12, 14, 7, 2]])
COUNTIES = ("Alpha", "Beta", "Gamma", "Delta")
EDUCATION = ("Low", "Medium", "High", "Very High")
REGIONS = ("A", "B", "C", "AB", "AC", "BC", "ABC")


def invariants(system: str) -> ks.Invariants:
    """The totals of a named system."""
    if system == "circles":
        # The paper gives its 3 x 14 matrix only as a drawing, which is lost; here each of seven regions has two.
        members = [[2 * r + i for r, name in enumerate(REGIONS) if c in name for i in (0, 1)] for c in "ABC"]
        return ks.Invariants.subsets(14, members)
    if system == "children":
        domain = ks.Domain({"county": COUNTIES, "education": EDUCATION})
        return ks.Invariants.margins(domain, [["county"], ["education"]])
    cells = int(system.removeprefix("sum "))
    return ks.Invariants.subsets(cells, [range(cells)])


def lattice(system: str) -> ks.Lattice:
    """The lattice of a named system."""
    return ks.Lattice(invariants(system).coefficients)


def mechanism(kind: str, epsilon: str, delta: str = "1e-6") -> Any:
    """A mechanism by name: l1, l2, gaussian (ours) or gaussian paper."""
    if kind in ("l1", "l2"):
        return ks.Laplace.per_unit(epsilon=epsilon, norm=kind)
    calibration = "paper" if kind == "gaussian paper" else "zcdp"
    return ks.Gaussian.per_unit(epsilon=epsilon, delta=delta, calibration=calibration)


def person_mechanism(system: str, kind: str, epsilon: str, delta: str) -> Any:
    """A mechanism by name with this epsilon (and delta) for the smallest change of one person, whatever its distance.

    That is a move to another cell in the same totals, or among children an exchange of two. A Gaussian of epsilon and
    delta per unit has epsilon r and delta (e^(eps r) - 1)/(e^eps - 1) at distance r.
    """
    norm = "l1" if kind == "l1" else "l2"
    smallest = ks.plan(keep=invariants(system), mechanism=ks.Laplace.per_unit(1, norm=norm)).smallest_change
    unit = ks.Laplace(epsilon, norm=norm).resolve(smallest).epsilon
    if kind in ("l1", "l2"):
        return ks.Laplace.per_unit(unit, norm=norm)
    share = math.expm1(float(unit)) / math.expm1(float(Fraction(epsilon)))
    calibration = "paper" if kind == "gaussian paper" else "zcdp"
    return ks.Gaussian.per_unit(epsilon=unit, delta=f"{0.9999 * float(delta) * share:.3e}", calibration=calibration)


def sizes(system: str, kind: str, epsilon: str, delta: str, draws: int, seed: str) -> dict[str, Any]:
    """The mean absolute noise of a cell at a per-person epsilon, and that epsilon per unit of distance."""
    plan = ks.plan(keep=invariants(system), mechanism=person_mechanism(system, kind, epsilon, delta))
    noise = plan.sample(draws, rng=ks.rng(seed=seed))
    return {
        "size": np.abs(noise).mean(),
        "unit": float(plan.mechanism.epsilon),
        "distance": plan.smallest_change.value,
    }


def meetings(
    system: str, norm: str, epsilon: str, log_a: float, lag: int, pairs: int, max_steps: int, seed: str
) -> dict[str, Any]:
    """Meeting times of coupled pairs of the paper's chain (Algorithms 2 and 3)."""
    meeting = ks.mcmc.meeting_times(
        lattice(system),
        mechanism(norm, epsilon),
        math.exp(log_a),
        lag=lag,
        pairs=pairs,
        max_steps=max_steps,
        rng=ks.rng(seed=seed),
    )
    return {"times": meeting.times, "censored": meeting.censored, "lag": lag}


def chain(
    system: str, norm: str, epsilon: str, log_a: float, draws: int, thin: int, burn_in: int, seed: str
) -> dict[str, Any]:
    """Thinned draws of the paper's chain (Algorithm 1)."""
    target_lattice, target, a = lattice(system), mechanism(norm, epsilon), math.exp(log_a)
    runs = ks.mcmc.metropolis(
        target_lattice, target, draws * thin, a, burn_in=burn_in, thin=thin, rng=ks.rng(seed=seed), threads=1
    )
    return {"draws": runs.draws[0], "acceptance": runs.info.acceptance_rate[0]}


def exact(system: str, kind: str, epsilon: str, draws: int, seed: str) -> dict[str, Any]:
    """Draws of the sampler of the plan, and the exactness of the plan."""
    plan = ks.plan(keep=invariants(system), mechanism=mechanism(kind, epsilon))
    drawn = plan.sample(draws, rng=ks.rng(seed=seed))
    return {"draws": drawn, "level": plan.guarantee.sampling, "sigma": float(plan.sigma or 0)}


def projected(system: str, epsilon: str, draws: int, seed: str) -> dict[str, Any]:
    """Draws of the projected discrete Laplace mechanism."""
    return {"draws": ks.baselines.projected_laplace(invariants(system), epsilon, draws, rng=ks.rng(seed=seed))}


def over_dispersed(
    cells: int, epsilon: str, wide: str, log_a: float, steps: int, draws: int, thin: int, seed: str
) -> dict[str, Any]:
    """The paper's third experiment for one state: four chains from a wider target, R-hat, then thinned draws."""
    target_lattice, a = lattice(f"sum {cells}"), math.exp(log_a)
    over_dispersed_start = ks.mcmc.metropolis(
        target_lattice,
        ks.Laplace.per_unit(epsilon=wide),
        steps,
        a,
        thin=steps,
        chains=4,
        rng=ks.rng(seed=f"{seed} wide"),
    )
    thinning = max(1, steps // 5_000)
    runs = ks.mcmc.metropolis(
        target_lattice,
        ks.Laplace.per_unit(epsilon=epsilon),
        steps,
        a,
        start=over_dispersed_start.state,
        thin=thinning,
        chains=4,
        rng=ks.rng(seed=f"{seed} burn in"),
    )
    more = ks.mcmc.metropolis(
        target_lattice,
        ks.Laplace.per_unit(epsilon=epsilon),
        draws * thin,
        a,
        start=runs.state[0],
        thin=thin,
        rng=ks.rng(seed=f"{seed} draws"),
        threads=1,
    )
    return {
        "r_hat": ks.mcmc.r_hat(runs, "plain"),
        "r_hat_rank": ks.mcmc.r_hat(runs, "rank"),
        "effective": ks.mcmc.effective_sample_size(runs),
        "draws": more.draws[0],
    }

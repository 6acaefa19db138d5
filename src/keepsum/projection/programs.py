"""Overlapping totals of any form: the sums of regions by linear programs, with branch and bound where these need it.

The cells of a region with sum s are at least ``sum of max(-y, 0) + |s - p|`` away from their counts y, where p is the
sum of max(y, 0), and ``nearest.fill`` attains that (``nearest.py``). So the sums are those nearest to the p in l1.

Several tables may be nearest, and which of them a solver finds depends on its version. Their distance does not, so that
is what can be worked out again. It is proved in whole numbers where the linear program has the same optimum: by weak
duality, any multipliers of the totals give a bound that no table is nearer than. Elsewhere the solver's own bound is
relied upon.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arrays import Floats, IntArray
from keepsum._signals import interruptible
from keepsum._work import is_limited, too_much
from keepsum.errors import PlanError
from keepsum.lattice.structure import System

REGIONS = 20_000  # of a block that a program is solved for
NODES, SECONDS = 100_000, 600.0  # of branch and bound
# Of a check that is limited: nodes of branch and bound, and entries of the program times iterations of a linear one.
# The seconds are for what a solver does at one node; where they run out, that is said like any other limit.
CHECK_NODES, CHECK_ENTRIES, CHECK_SECONDS = 1000, 3 * 10**9, 60.0
DENOMINATORS = (1, 2, 6, 60, 840, 720_720)  # of the multipliers that a bound is tried with
EXACT = 2**53  # whole numbers up to here are floats
OPTIMAL, INFEASIBLE = 0, 2  # the solver's status


def check_size(system: System) -> None:
    """Refuse a block that no program is solved for."""
    if system.width > REGIONS:
        raise PlanError(
            f"Overlapping totals must have at most {REGIONS:,} regions to find the nearest table without negative "
            f"counts, got {system.width:,}. Publish the table as it is."
        )


def nearest_sums(system: System, sums: IntArray, positive: IntArray) -> IntArray:
    """Sums of regions that are not negative, keep the totals of ``sums`` and are nearest to ``positive`` in l1.

    Raises
    ------
    PlanError
        If there are none, or the solver does not find them within its limits.
    """
    check_size(system)
    totals = exact_product(system, sums)
    if max(map(abs, [*totals, *positive.tolist()])) >= EXACT:
        raise PlanError("Counts under overlapping totals must be below 2^53 to find the nearest ones.")
    relaxed = _linear(system, totals, positive)
    rounded = _whole(relaxed.x, positive)
    bound = _proved(system, totals, positive, relaxed.eqlin.marginals)
    if _keeps(system, rounded, totals) and distance(rounded, positive) == bound:
        return rounded
    nearest = _whole(_integral(system, totals, positive), positive)
    if not _keeps(system, nearest, totals):
        raise PlanError("The solver's table does not keep every total, so it is not used. Publish the table as it is.")
    return nearest


def distance(sums: IntArray, positive: IntArray) -> int:
    """The l1 distance."""
    return int(np.abs(sums - positive).sum())


def exact_product(system: System, sums: IntArray) -> list[int]:
    """The totals of sums of regions, as whole numbers of any size."""
    matrix = system.matrix
    values, entries, columns = sums.tolist(), matrix.data.tolist(), matrix.indices.tolist()
    bounds = matrix.indptr.tolist()
    return [sum(entries[k] * values[columns[k]] for k in range(first, last)) for first, last in pairwise(bounds)]


def _program(system: System, totals: list[int], positive: IntArray) -> dict[str, Any]:
    """Sums are ``positive`` plus what is added less what is taken; each unit of either costs 1."""
    from scipy import sparse

    width = system.width
    matrix = system.matrix.astype(np.float64)
    rest = [total - kept for total, kept in zip(totals, exact_product(system, positive), strict=True)]
    return {
        "c": np.ones(2 * width),
        "A": sparse.hstack([matrix, -matrix], format="csr"),
        "b": np.array(rest, dtype=np.float64),
        "upper": np.concatenate([np.full(width, np.inf), positive.astype(np.float64)]),
    }


def _linear(system: System, totals: list[int], positive: IntArray) -> Any:
    from scipy.optimize import linprog

    program = _program(system, totals, positive)
    bounds = np.column_stack([np.zeros(2 * system.width), program["upper"]])
    options: dict[str, float] = {}
    if is_limited():
        options = {"maxiter": 1 + CHECK_ENTRIES // (program["A"].nnz + 1), "time_limit": CHECK_SECONDS}
    answer = interruptible(
        lambda: linprog(
            program["c"], A_eq=program["A"], b_eq=program["b"], bounds=bounds, method="highs-ds", options=options
        )
    )
    _check(answer)
    return answer


def _integral(system: System, totals: list[int], positive: IntArray) -> npt.NDArray[np.float64]:
    from scipy.optimize import Bounds, LinearConstraint, milp

    program = _program(system, totals, positive)
    nodes, seconds = (CHECK_NODES, CHECK_SECONDS) if is_limited() else (NODES, SECONDS)
    answer = interruptible(
        lambda: milp(
            program["c"],
            constraints=LinearConstraint(program["A"], program["b"], program["b"]),
            bounds=Bounds(np.zeros(2 * system.width), program["upper"]),
            integrality=np.ones(2 * system.width),
            options={"mip_rel_gap": 0.0, "node_limit": nodes, "time_limit": seconds},
        )
    )
    _check(answer)
    return np.asarray(answer.x)


def _check(answer: Any) -> None:
    if answer.status == INFEASIBLE:
        raise PlanError("No table without negative counts has the kept totals, so there is no nearest one.")
    if answer.status != OPTIMAL and is_limited():
        raise too_much()
    if answer.status != OPTIMAL:
        raise PlanError("The solver did not find the nearest table within its limits. Publish the table as it is.")


def _whole(solution: Floats, positive: IntArray) -> IntArray:
    """A solution in whole numbers: what is added less what is taken."""
    change = np.rint(solution).astype(np.int64)
    return positive + change[: len(positive)] - change[len(positive) :]


def _keeps(system: System, sums: IntArray, totals: list[int]) -> bool:
    return bool((sums >= 0).all()) and exact_product(system, sums) == totals


def _proved(system: System, totals: list[int], positive: IntArray, multipliers: Floats) -> int | None:
    """The largest distance that is proved to be necessary, by multipliers near those of the program.

    For a multiplier of each total, w of a region is the sum over its totals. Then ``|s - p| - w s`` is at least
    ``-w p`` if -1 <= w <= 1, and at least p if w < -1; for w > 1 it has no bound.
    """
    best = None
    values = positive.tolist()
    columns = system.matrix.tocsc()
    for denominator in DENOMINATORS:
        scaled = [round(float(multiplier) * denominator) for multiplier in multipliers]
        weights = [
            sum(int(columns.data[k]) * scaled[columns.indices[k]] for k in range(first, last))
            for first, last in pairwise(columns.indptr.tolist())
        ]
        if max(weights) > denominator:
            continue
        bound = sum(multiplier * total for multiplier, total in zip(scaled, totals, strict=True))
        bound += sum(
            -weight * value if weight >= -denominator else denominator * value
            for weight, value in zip(weights, values, strict=True)
        )
        proved = math.ceil(Fraction(bound, denominator))
        best = proved if best is None else max(best, proved)
    return best

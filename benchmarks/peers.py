"""What ours is measured against: NumPy, OpenDP, sympy, Algorithm 1, projection by HiGHS, and a loop in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import keepsum as ks
from benchmarks.measuring import Work
from benchmarks.systems import margins
from keepsum._arrays import IntArray
from keepsum.convergence.bounds import first_step_below

EPSILON = "0.25"
TOTAL_VARIATION = 0.01  # that Algorithm 1 is run to; exact samplers have 0, which it never reaches
LOOP_STEPS = 6_000_000  # about one CPU second of a Neoverse-N1 under Python 3.11
# For each side of a square table: the lag, the pairs and the steps after which pairs of Algorithm 1 are given up.
PAIRS = {4: (5_000, 400, 10**6), 5: (500_000, 32, 4 * 10**6), 6: (1, 2, 2 * 10**6), 8: (1, 2, 10**6), 16: (1, 2, 10**5)}


def loop(steps: int = LOOP_STEPS) -> int:
    """The calibration loop: a linear congruential generator in plain Python."""
    state = 1
    for _ in range(steps):
        state = (state * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return state


CALIBRATION = Work(loop)


def numpy_noise(cells: int) -> Work:
    """NumPy's difference of geometric numbers, the same distribution without totals, by an insecure generator."""
    numbers, p = np.random.default_rng(1), -math.expm1(-float(EPSILON))
    return Work(lambda: numbers.geometric(p, cells) - numbers.geometric(p, cells), cells)


def opendp_laplace(cells: int) -> Work:
    """OpenDP's exact discrete Laplace noise of a vector, without totals."""
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    laplace = dp.m.make_laplace(*space, scale=1 / float(EPSILON))
    return Work(lambda: laplace([0] * cells), cells)


def opendp_gaussian(cells: int, sigma: int) -> Work:
    """OpenDP's exact discrete Gaussian noise of a vector, without totals."""
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=float(sigma))
    return Work(lambda: gaussian([0] * cells), cells)


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def projection(side: int) -> Work:
    """Noise in every cell, moved to the nearest whole numbers with both margins kept, by HiGHS; one draw."""
    keep, rng = margins(side, side), ks.rng(seed=1)
    return Work(lambda: ks.baselines.projected_laplace(keep, EPSILON, 1, rng=rng))


def nearest_by_highs(keep: ks.Invariants, counts: IntArray) -> Work:
    """The nearest whole numbers in l1 that are not negative, with every total kept, as one program of HiGHS."""
    from scipy import sparse
    from scipy.optimize import LinearConstraint, milp

    matrix, size = keep.coefficients.astype(float), keep.size
    same, none = sparse.identity(size), sparse.csr_array((keep.height, 2 * size))
    rows = sparse.vstack([sparse.hstack([matrix, none]), sparse.hstack([same, -same, same])], format="csr")
    wanted = np.concatenate([matrix @ counts, counts])
    costs = np.concatenate([np.zeros(size), np.ones(2 * size)])
    totals = LinearConstraint(rows, wanted, wanted)
    return Work(lambda: milp(costs, constraints=totals, integrality=np.ones(3 * size)))


def sympy_smith(side: int) -> Work:
    """Smith form with transforms of the margins of a square table."""
    from sympy import ZZ
    from sympy.polys.matrices import DomainMatrix
    from sympy.polys.matrices.normalforms import smith_normal_decomp

    matrix = margins(side, side).coefficients.toarray()
    dense = DomainMatrix([[ZZ(int(entry)) for entry in row] for row in matrix], matrix.shape, ZZ)
    return Work(lambda: smith_normal_decomp(dense))


@lru_cache(maxsize=8)
def algorithm_1_steps(side: int) -> tuple[int, bool]:
    """The steps that bring Algorithm 1 to that total variation by coupled pairs; False if it takes at least so many.

    Where pairs had not met, the step at which they were given up counts, which is in favour of Algorithm 1.
    """
    lag, pairs, most = PAIRS[side]
    times = ks.mcmc.meeting_times(*_target(side), lag=lag, pairs=pairs, max_steps=most, rng=ks.rng(seed=1), threads=2)
    steps = first_step_below(times, TOTAL_VARIATION)
    return (most - lag, False) if steps is None else (steps, True)


def algorithm_1(side: int) -> Work:
    """Algorithm 1 in the margins of a square table; the unit is one draw, of which a part is run."""
    steps, _ = algorithm_1_steps(side)
    few = min(steps, 200_000)
    return Work(_chain(side, few), few / steps)


def _chain(side: int, steps: int) -> Callable[[], object]:
    lattice, laplace, a = _target(side)
    return lambda: ks.mcmc.metropolis(lattice, laplace, steps, a, thin=steps, rng=ks.rng(seed=2), threads=1)


@lru_cache(maxsize=8)
def _target(side: int) -> tuple[ks.Lattice, ks.Laplace, float]:
    """The lattice, the noise, and the scale of proposals: the best of eight for small tables, else few coordinates."""
    dimension = (side - 1) ** 2
    scale = math.exp(-0.5) if dimension <= 25 else 4 / dimension
    return ks.Lattice(margins(side, side).coefficients), ks.Laplace.per_unit(epsilon=EPSILON), scale

"""Algorithms 1 and 2 line by line in plain NumPy: slow, to read, and to check the compiled loops by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.lattice import Lattice
from keepsum.privacy import Laplace
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.research.mcmc.coupling import Draws
from keepsum.research.mcmc.metropolis import pose

LogDensity: TypeAlias = Callable[[IntArray], float]  # of a vector of the lattice, up to a constant


class LatticeState(NamedTuple):
    """Where a chain is: coordinates v in the basis, and cells z = C v."""

    v: IntArray
    z: IntArray


class StepInfo(NamedTuple):
    """What a step did."""

    accepted: bool


class LatticeMetropolis:
    """The paper's chain as a kernel for :func:`meeting_times_of`, one step at a time, also for a target of your own.

    Parameters
    ----------
    lattice, a, basis
        As in :func:`metropolis`, which is the same chain a hundred times faster.
    mechanism
        The target: a mechanism as in :func:`metropolis`, or any function that gives the logarithm of its density at a
        vector of the lattice, up to a constant; minus infinity where it is 0.

    Guarantee
    ---------
    The laws of :func:`metropolis` and :func:`meeting_times`; float64. ``tests/research/mcmc/test_coupling.py``. That a
    function is the density that it is meant to be, and the same whenever it is asked, is the caller's word.

    Examples
    --------
    >>> import keepsum as ks
    >>> kernel = ks.mcmc.LatticeMetropolis(ks.Lattice([[1, 1, 1]]), ks.Laplace.per_unit(epsilon=1), 0.4)
    >>> rng = ks.mcmc.Draws(ks.rng(seed=1).stream())
    >>> state, info = kernel.step(rng, kernel.start(rng))
    >>> int(state.z.sum()), type(info.accepted)
    (0, <class 'bool'>)

    A target of one's own, and how long its chains take to meet:

    >>> def cauchy(z):
    ...     return -float(np.log1p(z.astype(float) ** 2).sum())
    >>> own = ks.mcmc.LatticeMetropolis(ks.Lattice([[1, 1, 1]]), cauchy, 0.4)
    >>> ks.mcmc.meeting_times_of(own, lag=50, pairs=20, rng=ks.rng(seed=1)).censored.sum()
    np.int64(0)
    """

    def __init__(
        self,
        lattice: Lattice,
        mechanism: Request | Mechanism | LogDensity,
        a: float | Sequence[float],
        basis: Any = None,
    ) -> None:
        if callable(mechanism):
            problem, self._log_density = pose(lattice, Laplace.per_unit(1), a, basis), _checked(mechanism)
        else:
            problem = pose(lattice, mechanism, a, basis)
            self._log_density = problem.log_density
        self._problem = problem
        starts, cells, entries = problem.columns
        shape = (problem.width, problem.dimension)
        self._basis = sparse.csc_array((entries, cells, starts), shape=shape)

    def start(self, rng: Draws) -> LatticeState:
        """V ~ g_A: every coordinate double geometric."""
        return self._state(np.array([self._pre_jump(rng, j) for j in range(self._problem.dimension)]))

    def step(self, rng: Draws, state: LatticeState) -> tuple[LatticeState, StepInfo]:
        """Algorithm 1, lines 4 to 10."""
        jump = np.array([self._pre_jump(rng, j) for j in range(self._problem.dimension)])
        proposal = self._state(state.v + jump)
        accepted = rng.random() <= self._ratio(proposal, state)
        return (proposal if accepted else state), StepInfo(accepted)

    def coupled_step(
        self, rng: Draws, pair: tuple[LatticeState, LatticeState]
    ) -> tuple[tuple[LatticeState, LatticeState], tuple[StepInfo, StepInfo]]:
        """Algorithm 2: proposals coupled coordinate by coordinate, one uniform number for both acceptances."""
        first, second = pair
        coordinates = [
            self.coupled_coordinate(rng, j, int(v), int(w))
            for j, (v, w) in enumerate(zip(first.v, second.v, strict=True))
        ]
        v, w = np.array(coordinates).T
        common = rng.random()
        states, infos = [], []
        for old, proposal in ((first, self._state(v)), (second, self._state(w))):
            accepted = common <= self._ratio(proposal, old)
            states.append(proposal if accepted else old)
            infos.append(StepInfo(accepted))
        return (states[0], states[1]), (infos[0], infos[1])

    def coupled_coordinate(self, rng: Draws, j: int, v: int, w: int) -> tuple[int, int]:
        """v* and w*, double geometric around v and w, and equal as often as two such numbers can be."""
        log_a = math.log(self._problem.a[j])
        proposed = v + self._pre_jump(rng, j)
        if rng.random() <= math.exp(log_a * (abs(proposed - w) - abs(proposed - v))):
            return proposed, proposed
        while True:
            other = w + self._pre_jump(rng, j)
            if rng.random() > math.exp(log_a * (abs(other - v) - abs(other - w))):
                return proposed, other

    def _pre_jump(self, rng: Draws, j: int) -> int:
        """The difference of two geometric numbers is double geometric."""
        log_a = math.log(self._problem.a[j])
        return math.floor(math.log(rng.random()) / log_a) - math.floor(math.log(rng.random()) / log_a)

    def _state(self, v: IntArray) -> LatticeState:
        return LatticeState(v, self._basis @ v)

    def _ratio(self, proposal: LatticeState, old: LatticeState) -> float:
        new, current = self._log_density(proposal.z), self._log_density(old.z)
        if current == -math.inf:  # a start where the density is 0: any way out is taken
            return 1.0
        return math.exp(min(0.0, new - current))


def _checked(log_density: LogDensity) -> LogDensity:
    """A density of the user's, whose logarithms must be numbers."""

    def checked(z: IntArray) -> float:
        value = log_density(z.copy())
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise InputError(f"A log-density must give a number, got {type_of(value)}.")
        if math.isnan(value) or value == math.inf:
            raise InputError(f"A log-density must give a number or minus infinity, got {float(value)}.")
        return float(value)

    return checked

"""The probability of a vector of noise, and the likelihood of released counts under a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from keepsum._arrays import Floats, IntArray
from keepsum._saying import the
from keepsum._text import type_of
from keepsum.accuracy.block_laws import FocusedNoise, free_cell
from keepsum.accuracy.cell_noise import CellLaw, turn_of
from keepsum.errors import InputError
from keepsum.lattice.matrix import as_integers
from keepsum.lattice.structure import FORCED, FREE
from keepsum.planning.samplers import BlockSamplers
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.l1.focus.laws import log_mass
from keepsum.tables.invariants import Invariants

# The probability of a whole vector of noise, for analyses by likelihood.


def log_weights(noise: npt.ArrayLike, blocks: BlockSamplers, invariants: Invariants) -> Floats:
    """Ln of the weight of each row of noise, that of no noise being 0; -infinity where a total is not kept."""
    rows = noise_rows(noise, blocks.size)
    scale = float(blocks.mechanism.scale)
    values = rows.astype(np.float64)
    totals = [
        (float(level.weight), margin.coefficients() @ values.T)
        for level, margin in zip(blocks.mechanism.focus, blocks.margins, strict=True)
    ]
    if blocks.mechanism.kind == "laplace-l1":
        logs = -np.abs(values).sum(axis=1) / scale
        for weight, sums in totals:
            logs -= weight * np.abs(sums).sum(axis=0)
    elif blocks.mechanism.kind == "gaussian":
        logs = -(values**2).sum(axis=1) / (2 * scale**2)
        for weight, sums in totals:
            logs -= weight * (sums**2).sum(axis=0)
    else:
        logs = -np.sqrt((values**2).sum(axis=1)) / scale
    kept = invariants.coefficients @ rows.T
    logs[np.asarray((kept != 0).any(axis=0)).ravel()] = -np.inf
    return np.asarray(logs)


def log_constant(blocks: BlockSamplers) -> float | None:
    """Ln of the sum of all weights, where it is known: outside of blocks, in l1 Laplace and Gaussian noise.

    The weights of n cells that add up to 0 have the sum of those of n free cells, times the probability that these do.
    Trees of focused totals add their own.
    """
    cell, structure = free_cell(blocks.mechanism), blocks.noise_structure
    if cell is None or structure.blocks or blocks.focused is not None:
        return None
    total = 0.0
    if blocks.nested is not None:
        focused = FocusedNoise.of(blocks)
        if focused is None:
            return None
        total = log_mass(focused.sampler.kinds, focused.sampler.laws)
    each = -math.log(_probability_of_no_noise(cell))
    total += each * int(structure.sizes[structure.part == FREE].sum())
    sizes, times = np.unique(structure.sizes[structure.part == FORCED], return_counts=True)
    for size, number in zip(sizes.tolist(), times.tolist(), strict=True):
        if size > 1:
            angles, points = turn_of(cell, size, size)
            total += number * (size * each + math.log(float(np.exp(-size * cell.fall(angles)).sum()) / points))
    return total


def _probability_of_no_noise(cell: CellLaw) -> float:
    return float(cell.transform_within(np.zeros(1), 0)[0])


def noise_rows(noise: Any, size: int) -> IntArray:
    """One vector of noise, or several as rows, as whole numbers."""
    rows = as_integers(noise, "Noise")
    if rows.ndim not in (1, 2) or rows.shape[-1] != size:
        raise InputError(f"Noise must have a whole number for each of the {size:,} cells.")
    return np.atleast_2d(rows)


# The likelihood of released counts under a model of the confidential ones, where totals do not overlap.
#
# Counts y are independent under the model, cell i with probability p_i. The weight of l1 Laplace or Gaussian noise z
# is a product w(z_1) w(z_2) ..., and the noise of a region adds up to 0. So its released counts r have, up to the sum
# of all weights, the probability
#
#     S = the sum over all z with sum 0 of  prod_i p_i(r_i - z_i) w(z_i).
#
# A cell under no total has the same sum without the condition, and a region of one cell has p(r).
#
# **The window.** The sum is over noise up to R of either sign. Let M_i be the sum over that window of p_i w for cell
# i alone, and t = w(R + 1), 0 if no count lies beyond the window. As p_i adds up to at most 1, what is beyond adds at
# most t to M_i, so what is left out of S is at most
#
#     sum_i t prod_{j != i} (M_j + t).
#
# R grows until that is at most ``TRUNCATION`` times S as computed, which is never too large. Counts of a region are
# at most its total, so a window that holds all of them leaves nothing out.
#
# **The coefficient.** S is a coefficient of a product of one polynomial per cell. Weights e^(theta z) change nothing
# where z adds up to 0; theta is chosen so that the sum Z of all z has a mean near 0, so that its probability q of
# being 0 is not tiny. With the terms of each cell divided by their sum, q is a mean over N angles of the product of
# their Fourier transforms, up to the probability that |Z| >= N. Chernoff's bound for it, E[e^(hZ)] e^(-hN), gives an
# N that is enough.


LogPmf: TypeAlias = Callable[[IntArray], npt.ArrayLike]

TRUNCATION = 1e-12  # the relative error that windows, and sums that wrap around, may leave
FIRST_FALL = 44.0  # of the logarithm of the weight within the first window
SMALLEST_SHARE = 1e-9  # of a region's tilted sums that must be 0: below, rounding would decide
MOST_NUMBERS = 2**26  # terms of all cells together: some seconds, and gigabytes
NEWTON_STEPS, ALL_STEPS = 50, 200  # towards theta: first Newton's, then halves
TINY = -600.0  # a logarithm beyond which a term relative to the largest is nothing
TILTS = 6  # values of h for Chernoff's bound


def log_likelihood(released: npt.ArrayLike, log_pmf: LogPmf, blocks: BlockSamplers) -> float:
    """Ln of the probability of released counts; see ``Noise.log_likelihood``."""
    constant = log_constant(blocks)
    if constant is None or blocks.nested is not None:
        raise InputError(
            "The likelihood of released counts is a sum that can be computed only where totals do not overlap, in l1 "
            f"Laplace and Gaussian noise without a focus. Use {the.call('noise.log_pmf')} with a method that samples "
            "the counts."
        )
    if not callable(log_pmf) or isinstance(log_pmf, type):
        raise InputError(f"The model must be a function of an array of counts, got {type_of(log_pmf)}.")
    counts = as_integers(released, "Released counts")
    if counts.shape != (blocks.size,):
        raise InputError(f"Released counts must be one whole number for each of the {blocks.size:,} cells.")
    return _Problem.of(counts, log_pmf, blocks).log_sum() - constant


@dataclass(frozen=True, eq=False)
class _Problem:
    """Released counts and a model; the cells of regions one region after the other, cells under no total, and others.

    ``most`` is what a count can be at most: the total of its region, where it is kept.
    """

    released: IntArray
    log_pmf: LogPmf
    mechanism: Mechanism
    inside: IntArray
    starts: IntArray
    free: IntArray
    pinned: IntArray
    most: Floats

    @classmethod
    def of(cls, released: IntArray, log_pmf: LogPmf, blocks: BlockSamplers) -> _Problem:
        structure = blocks.noise_structure
        part, sizes = structure.part[structure.region], structure.sizes[structure.region]
        order, _ = structure.cells_by_region
        inside = order[((part == FORCED) & (sizes > 1))[order]]
        starts = np.flatnonzero(np.diff(structure.region[inside], prepend=-1))
        most = np.full(len(released), np.inf)
        if len(inside):
            lengths = np.diff(np.append(starts, len(inside)))
            most[inside] = np.repeat(np.add.reduceat(released[inside], starts), lengths)
        free, pinned = np.flatnonzero(part == FREE), np.flatnonzero((part == FORCED) & (sizes == 1))
        return cls(released, log_pmf, blocks.mechanism, inside, starts, free, pinned, most)

    def log_sum(self) -> float:
        """Ln of the sum over all noise, from a window that leaves next to nothing out."""
        if (self.most < 0).any() or (self.released[self.pinned] < 0).any():
            return -math.inf  # no counts have such totals
        reach = self._reach(FIRST_FALL, max(0, -int(self.released.min(initial=0))))
        while True:
            reach = int(min(reach, self._farthest))
            found, log_error = self._within(reach)
            if log_error <= math.log(TRUNCATION):
                return found
            further = self._reach(min(log_error - math.log(TRUNCATION), 1e15), reach)
            reach = 2 * reach + 1 if found == -math.inf else further

    def _reach(self, fall: float, beyond: int) -> int:
        """How far the noise goes until the logarithm of its weight has fallen by so much, from some noise on."""
        scale = float(self.mechanism.scale)
        if self.mechanism.kind == "laplace-l1":
            return beyond + math.ceil(fall * scale)
        return math.ceil(math.hypot(beyond + 1, scale * math.sqrt(2 * fall)))

    @property
    def _farthest(self) -> float:
        """The noise beyond which there is none."""
        away = np.maximum(self.released, self.most - self.released)
        return float(np.delete(away, self.pinned).max(initial=0))

    def _log_weights(self, noise: Floats) -> Floats:
        scale = float(self.mechanism.scale)
        if self.mechanism.kind == "laplace-l1":
            return -np.abs(noise) / scale
        return -(noise**2) / (2 * scale**2)

    def _within(self, reach: int) -> tuple[float, float]:
        """Ln of the sum over noise up to a reach, and of a bound on what that leaves out, relative to it."""
        if (2 * reach + 1) * len(self.released) > MOST_NUMBERS:
            raise InputError(
                "The model must not be so far from the released counts, or their noise so wide, that their likelihood "
                f"is a sum of more than {MOST_NUMBERS:,} terms. Check the model, or take fewer cells."
            )
        noise = np.arange(-reach, reach + 1)
        logs = self._terms(noise)
        alone, _ = _normalised(logs)
        found = float(logs[self.pinned, reach].sum() + alone[self.free].sum())
        whole = (self.released - reach <= 0) & (self.released + reach >= self.most)
        beyond = np.where(whole, -np.inf, float(self._log_weights(np.array([reach + 1.0]))[0]))
        with np.errstate(invalid="ignore"):
            errors = [beyond[self.free] - alone[self.free]]
        if len(self.inside):
            sums = self._regions(logs[self.inside], noise, alone[self.inside])
            found += float(sums.sum())
            above = np.logaddexp(alone[self.inside], beyond[self.inside])
            with np.errstate(invalid="ignore"):
                shares = np.exp(np.where(beyond[self.inside] == -np.inf, -np.inf, beyond[self.inside] - above))
                products = np.add.reduceat(above, self.starts)
                left_out = products + _log(np.add.reduceat(shares, self.starts)) - sums
            errors.append(np.where(np.bitwise_and.reduceat(whole[self.inside], self.starts), -np.inf, left_out))
        every = np.concatenate(errors)
        if found == -np.inf:  # for certain, if no counts lie beyond the window
            return found, -math.inf if (whole | np.isin(np.arange(len(whole)), self.pinned)).all() else math.inf
        return found, float(np.logaddexp.reduce(every, initial=-np.inf))

    def _terms(self, noise: IntArray) -> Floats:
        """Ln of p w of each cell for each noise; -infinity for counts that cannot be."""
        counts = self.released[:, None] - noise
        possible = (counts >= 0) & (counts <= self.most[:, None])
        logs = _as_floats(self.log_pmf(np.maximum(counts, 0)))
        if logs is None or logs.shape != counts.shape:
            raise InputError(f"The model must give a logarithm for each of the counts of shape {counts.shape}.")
        if not (logs[possible] <= 1e-9).all():  # also where there are some that are no numbers
            raise InputError("The model must give logarithms of probabilities, at most 0, got others.")
        return np.where(possible, logs + self._log_weights(noise.astype(np.float64)), -np.inf)

    def _regions(self, logs: Floats, noise: IntArray, alone: Floats) -> Floats:
        """Ln of the sum of each region over noise in the window that adds up to 0."""
        possible = np.isfinite(logs)
        lowest = np.where(possible, noise, noise[-1]).min(axis=1)
        highest = np.where(possible, noise, noise[0]).max(axis=1)
        none = (np.add.reduceat(lowest, self.starts) > 0) | (np.add.reduceat(highest, self.starts) < 0)
        none |= np.bitwise_or.reduceat(alone == -np.inf, self.starts)
        lengths = np.diff(np.append(self.starts, len(logs)))
        logs = np.where(np.repeat(none, lengths)[:, None], np.where(noise == 0, 0.0, -np.inf), logs)
        each, probabilities = self._centred(logs, noise, lengths)
        shares = self._shares_of_zero(probabilities, noise, lengths)
        if (shares < SMALLEST_SHARE).any():
            raise InputError(
                "The likelihood would be decided by rounding: under the model hardly any counts have these totals. "
                "Check the model."
            )
        return np.where(none, -np.inf, np.add.reduceat(each, self.starts) + np.log(shares))

    def _centred(self, logs: Floats, noise: IntArray, lengths: IntArray) -> tuple[Floats, Floats]:
        """The terms with weights e^(theta z) for which the mean of a region's sum is within a standard deviation of 0.

        As ln of the sum of each cell's, and divided by it.
        """
        theta, powers = np.zeros(len(self.starts)), np.stack([noise, noise**2], axis=1).astype(np.float64)
        low, high = np.full(len(theta), -np.inf), np.full(len(theta), np.inf)
        for step in range(ALL_STEPS):
            each, probabilities = _normalised(logs if not step else logs + np.repeat(theta, lengths)[:, None] * noise)
            means, squares = np.einsum("iz,zk->ki", probabilities, powers)  # not by threads: matrices are small
            variance = np.add.reduceat(np.maximum(squares - means**2, 0), self.starts)
            mean = np.add.reduceat(means, self.starts)
            done = mean**2 <= variance
            if done.all():
                break
            low, high = np.where(mean < 0, theta, low), np.where(mean > 0, theta, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = theta - mean / variance
                middle = np.where(np.isinf(high - low), theta - np.sign(mean) * (1 + np.abs(theta)), (low + high) / 2)
                usable = (low < newton) & (newton < high) & (step < NEWTON_STEPS)
            theta = np.where(done, theta, np.where(usable, newton, middle))
        return each, probabilities

    def _shares_of_zero(self, probabilities: Floats, noise: IntArray, lengths: IntArray) -> Floats:
        """The probability that the noise of each region adds up to 0, from that of each cell alone."""
        from scipy import fft  # slow to import

        reach = len(noise) // 2
        fall = -math.log(TRUNCATION * SMALLEST_SHARE / 2)
        tilts = np.geomspace(fall / max(1, int(lengths.max()) * reach), fall / max(1, reach), TILTS)
        both = np.append(tilts, -tilts)
        moments = np.add.reduceat(
            np.log(np.einsum("iz,zh->ih", probabilities, np.exp(np.outer(noise, both)))), self.starts
        )
        enough = ((moments + fall) / np.abs(both)).reshape(-1, 2, TILTS).min(axis=2).max(axis=1)
        farthest = int(np.minimum(np.ceil(enough), lengths * reach + 1).max())
        points = fft.next_fast_len(max(farthest, len(noise)), real=True)
        placed = np.zeros((len(probabilities), points))
        placed[:, noise] = probabilities  # negative noise comes last
        return np.asarray(fft.irfft(np.multiply.reduceat(fft.rfft(placed), self.starts), points)[:, 0])


def _as_floats(values: npt.ArrayLike) -> Floats | None:
    with suppress(TypeError, ValueError):
        return np.asarray(values, dtype=np.float64)
    return None


def _normalised(logs: Floats) -> tuple[Floats, Floats]:
    """Ln of the sum of exponentials of each row, and these divided by it, with those that are tiny left out."""
    top = logs.max(axis=1, initial=-np.inf)
    finite = np.where(np.isfinite(top), top, 0.0)
    away = logs - finite[:, None]
    masses = np.exp(np.where(away < TINY, -np.inf, away))  # numbers near the smallest float are slow
    sums = masses.sum(axis=1)
    return _log(sums) + finite, masses / np.where(sums > 0, sums, 1)[:, None]


def _log(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))

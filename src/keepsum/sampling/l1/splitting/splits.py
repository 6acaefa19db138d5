"""How the sum below a node splits between its children: chances, peaks, and the numbers t.

Given y, the sum u below the left child has chance W_L(u) W_R(y - u) / F(y). Let phi be the characteristic function of
this law, and give each row an exponent p such that the 1/p of all rows add up to 1. Then t(y) is at least

    ((1/G) sum over k of |phi(2 pi k/G)|^p)^(1/p),

so that the chance B of a sum 0 over all rows is at most the product of their t: B is at most the chance of a sum that
is 0 modulo G, which is the mean of the product of all phi over the G frequencies, and Hölder's inequality bounds it by
the product of norms. This holds for every G. The t are floats, rounded up, which define the proposal exactly. With
blocks of frequencies there is one number for each, and B is at most the sum of their products.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.l1.splitting.transforms import Branch, Frequencies, full_measure, log_growth, transforms
from keepsum.sampling.l1.splitting.weights import ULP, beyond_tables

CHUNK = 2**21  # entries of a table that are worked on at a time
PEAK_ROOM = 1.001  # peaks are this much higher than they need be; their errors are at most half of that
FFT_ERROR = 1e-11  # thousands of times what a transform of a law loses
ABOVE = 1 + 1e-12  # for the rounding of powers, roots and exponentials in upper bounds
SMALLEST = 1e-250  # of F: below, and where a row has no cell, parts are left to the referee
POWERLESS = 1e-30  # what frequencies where every |phi|^p is below this come to at most, all together


@dataclass(frozen=True, eq=False)
class Split:
    """How a sum y = 0, 1, ... splits; the arrays are those of ``LawTables``, one place for each y."""

    slack: Floats
    inverse: Floats
    peak: Floats
    peak_chance: Floats
    numbers: Floats
    transform: Floats
    transform_imaginary: Floats
    transform_error: Floats
    log_dropped: Floats
    log_largest: Floats
    log_growth: Floats

    @property
    def reach(self) -> int:
        """The last y."""
        return len(self.slack) - 1


def split_of(branch: Branch, reach: int, kept: Frequencies | None, share: float = 0.0) -> Split:
    """The tables for y = 0 to ``reach``, or as far as errors are small; without frequencies, t is 1 in one block."""
    values, errors = branch.whole.values[: reach + 1], branch.whole.errors[: reach + 1]
    reach = max(0, int(np.cumprod((values > SMALLEST) & (errors < values / 1e3)).sum()) - 1)
    parts = [_part(branch, first, last, kept, share) for first, last in chunks(branch, reach)]
    whole = Split(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Split)))
    good = np.cumprod(2e3 * whole.slack <= whole.peak_chance).astype(bool)  # as PEAK_ROOM says
    return Split(*(getattr(whole, field.name)[good] for field in fields(Split)))


def chunks(branch: Branch, reach: int) -> Iterator[tuple[int, int]]:
    """Ranges of y whose joint tables are not too large."""
    step = max(1, CHUNK // (2 * branch.reach + 1))
    return ((first, min(first + step, reach + 1)) for first in range(0, reach + 1, step))


def _part(branch: Branch, first: int, last: int, kept: Frequencies | None, share: float) -> Split:
    whole, scale = branch.whole, branch.scale
    table = branch.joint(first, last)
    inverse = scale / whole.values[first:last]
    peak = PEAK_ROOM * table.max(axis=1)
    laws = table * inverse[:, None]
    # The errors of all chances of a law together: those of the weights below, and of F, and what is not followed.
    missing = beyond_tables(branch.left, branch.right, np.arange(first, last), left_reach=branch.reach) * inverse
    error = 2 * whole.errors[first:last] / whole.values[first:last] + missing
    slack = error + (laws.shape[1] + 8) * ULP + 4e-19
    if kept is None:
        nothing = np.zeros(last - first)
        empty = np.zeros((last - first, 0))
        return Split(slack, inverse, peak, peak * inverse, np.ones((last - first, 1)), empty, empty, *[nothing] * 4)
    y = np.arange(first, last)
    real, imaginary = _kept_transforms(laws, branch.reach, y, kept)
    numbers, log_dropped, log_largest = _norms(laws, error, share, kept)
    return Split(
        slack,
        inverse,
        peak,
        peak * inverse,
        numbers,
        real,
        imaginary,
        error + (laws.shape[1] + 40) * ULP,
        log_dropped,
        log_largest,
        log_growth(branch, y, branch.raised().laws(first, last), kept.growth, kept.centre),
    )


def _kept_transforms(laws: Floats, reach: int, y: IntArray, kept: Frequencies) -> tuple[Floats, Floats]:
    """The characteristic functions of u - y/2, by matrix products: the error of a sum is its length times 2^-53."""
    g, k = kept.points, np.arange(len(kept.measure))
    angles = 2 * np.pi / g * (np.arange(-reach, reach + 1)[:, None] * k % g)
    halves = np.pi / g * (y[:, None] * k % (2 * g))
    cosines, sines = laws @ np.cos(angles), laws @ np.sin(angles)
    return cosines * np.cos(halves) + sines * np.sin(halves), sines * np.cos(halves) - cosines * np.sin(halves)


def _norms(laws: Floats, error: Floats, share: float, kept: Frequencies) -> tuple[Floats, Floats, Floats]:
    """t_m(y) for each block, and logarithms for the frequencies beyond: of the norm for those that B is not a sum over.

    And of the largest |phi| at those that are not kept at all, which serves any part of the rows.
    """
    if share == 0.0:
        beyond = 0.0 if len(kept.measure) < len(full_measure(kept.points)) else np.log(SMALLEST)
        return np.ones((len(laws), kept.blocks)), np.zeros(len(laws)), np.full(len(laws), beyond)
    magnitudes = np.minimum(np.abs(transforms(laws, kept.points)) + (error + FFT_ERROR)[:, None], 1.0)
    measure, count = full_measure(kept.points), kept.few
    largest = magnitudes[:, len(kept.measure) :].max(axis=1, initial=SMALLEST)
    large = magnitudes.max(axis=0) > POWERLESS**share
    large[:count] = True
    powers = magnitudes[:, large] ** (1 / share) * measure[large]
    block = kept.block[large]
    dropped = powers[:, count:].sum(axis=1) + POWERLESS
    sums = np.stack([powers[:, block == m].sum(axis=1) for m in range(kept.blocks)], axis=1) + POWERLESS
    return np.minimum(sums**share * ABOVE, 1.0), np.log(dropped * ABOVE) * share, np.log(largest) + 1e-12

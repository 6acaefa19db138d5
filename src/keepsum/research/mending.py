"""What baselines share: double geometric noise, and the nearest whole numbers with a given sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import check_whole
from keepsum._arrays import IntArray
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.facade.functions import plan
from keepsum.lattice.structure import FORCED, Structure, decompose
from keepsum.privacy import Laplace
from keepsum.privacy.numbers import Number
from keepsum.sampling.core.rng import Rng, Stream
from keepsum.tables.invariants import Invariants


def structure_of(invariants: Any) -> Structure:
    """The regions and blocks of kept totals."""
    if not isinstance(invariants, Invariants):
        raise InputError(f"Totals to keep must be Invariants, got {type_of(invariants)}. See table.keep.")
    return decompose(invariants.coefficients)


def draws_of(size: Any) -> int:
    """How many draws."""
    return 1 if size is None else check_whole(size, "The number of draws", 0)


def double_geometric(width: int, epsilon: Number, size: int, rng: Rng) -> IntArray:
    """Noise on cells under no total, by the plan's own exact sampler."""
    noise = Laplace.per_unit(epsilon=epsilon)
    return plan(keep=Invariants.subsets(width, []), mechanism=noise).sample(size, rng=rng)


def forced_regions(structure: Structure) -> list[IntArray]:
    """The cells of each region whose noise must sum to 0."""
    order, starts = structure.cells_by_region
    return [order[starts[r] : starts[r + 1]] for r in np.flatnonzero(structure.part == FORCED)]


def sum_zero(noise: IntArray, stream: Stream) -> IntArray:
    """The nearest whole numbers to noise - mean with sum 0.

    With a sum of q n + r take q off all cells, and 1 more off r of them. Nearest in l1 and in l2: fractional parts are
    all alike, so any r cells will do, and r must.
    """
    share, rest = np.divmod(noise.sum(axis=1), noise.shape[1])
    lowered: IntArray = noise - share[:, None] - some_of(np.ones(noise.shape, dtype=bool), rest, stream)
    return lowered


def non_negative(noisy: IntArray, total: int | IntArray, stream: Stream) -> IntArray:
    """The nearest non-negative whole numbers with that total, or that of each row: max(0, y - theta) of least squares.

    Rounded, evenly at random where it matters.
    The k largest stay positive, k the last with k y_(k) > y_(1) + ... + y_(k) - total; theta is (their sum - total)/k.
    """
    falling = -np.sort(-noisy, axis=1)
    ranks = np.arange(1, noisy.shape[1] + 1)
    excess = np.cumsum(falling, axis=1) - np.asarray(total).reshape(-1, 1)
    active = (ranks * falling > excess).sum(axis=1)
    rows = np.flatnonzero(active)  # none is positive only where the total is 0
    out = np.zeros_like(noisy)
    share, rest = np.divmod(excess[rows, active[rows] - 1], active[rows])
    positive = active[rows, None] * noisy[rows] > excess[rows, active[rows] - 1][:, None]
    lowered = noisy[rows] - share[:, None] - some_of(positive, rest, stream)
    out[rows] = np.where(positive, lowered, 0)
    return out


def some_of(among: npt.NDArray[np.bool_], count: IntArray, stream: Stream) -> IntArray:
    """In each row 1 at so many of the cells, chosen evenly by random words, else 0."""
    words = stream.take(among.size).reshape(among.shape) >> np.uint64(1)
    words[~among] = np.uint64(2**64 - 1)
    places = np.argsort(np.argsort(words, axis=1), axis=1)
    return np.asarray(places < count[:, None], dtype=np.int64)

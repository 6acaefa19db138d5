"""What others do instead: noise first, totals mended afterwards. For comparison; a release never uses it.

Both mechanisms here add double geometric noise, which is differentially private in the usual sense, and then move the
noisy counts to where the kept totals hold. Their law has no closed form, and the second one depends on the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import as_array, check_whole
from keepsum._arrays import Floats, IntArray
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.facade.functions import plan
from keepsum.lattice import Lattice
from keepsum.lattice.structure import FORCED, Structure, decompose
from keepsum.privacy import Laplace
from keepsum.privacy.numbers import Number
from keepsum.sampling.core.rng import Rng, Stream, checked_rng
from keepsum.tables.invariants import Invariants

__all__ = ["projected_laplace", "topdown_like"]


def projected_laplace(
    invariants: Invariants, epsilon: Number, size: int | None = None, *, rng: Rng | None = None
) -> IntArray:
    """Double geometric noise, projected in l2 onto the kept totals, then moved to the nearest whole numbers in l1.

    The comparison of the paper's appendix ("projected discrete Laplace mechanism"), without non-negativity.

    Parameters
    ----------
    invariants
        The totals to keep.
    epsilon
        Of the double geometric noise, P(z) proportional to exp(-epsilon |z|) in each cell.
    size
        How many draws; without it one, as a flat vector.
    rng
        The source of randomness; ``ks.rng(seed=...)`` repeats.

    Returns
    -------
    numpy.ndarray
        int64 noise, one row a draw, one column a cell; every total of it is 0.

    Guarantee
    ---------
    The double geometric noise is drawn exactly; what projection and rounding make of it has no closed form. The mean is
    0: ties are broken evenly. ``tests/research/test_baselines.py``.

    Notes
    -----
    After the projection onto one sum all cells have the *same* fractional part, so the nearest whole numbers are never
    unique: which cells are rounded down is a tie between all of them. A solver breaks it by position, which shifts the
    first cells; here it is broken at random. Linear for hierarchies of totals; where totals overlap an integer program
    is solved for each draw (some milliseconds for a dozen cells).

    Examples
    --------
    >>> import keepsum as ks
    >>> keep = ks.Invariants.subsets(5, [range(5)])
    >>> noise = ks.baselines.projected_laplace(keep, 0.25, 1000, rng=ks.rng(seed=1))
    >>> noise.shape, bool((noise.sum(axis=1) == 0).all())
    ((1000, 5), True)
    """
    source = checked_rng(rng)
    structure = _structure(invariants)
    noise = _double_geometric(invariants.size, epsilon, _draws(size), source)
    stream = source.stream()
    if structure.blocks:
        noise = _nearest_on_lattice(invariants, noise, stream)
    else:
        for cells in _forced(structure):
            noise[:, cells] = _sum_zero(noise[:, cells], stream)
    return noise[0] if size is None else noise


def topdown_like(
    counts: npt.ArrayLike,
    invariants: Invariants,
    epsilon: Number,
    size: int | None = None,
    *,
    rng: Rng | None = None,
) -> IntArray:
    """Noisy counts, then the nearest non-negative ones with the kept totals, rounded: what non-negativity does.

    **Ours, and much simplified**, after the estimation phase of the Census Bureau's TopDown algorithm: one level, one
    query, double geometric noise, least squares subject to the totals and to non-negativity, controlled rounding. It
    is no model of any published product; it has what biases them, as Zhu, Van Hentenryck and Fioretto (2021) show.

    Parameters
    ----------
    counts
        The confidential counts, one a cell. The law of the errors depends on them.
    invariants
        Totals to keep that form a hierarchy (disjoint or nested).
    epsilon, size, rng
        As in :func:`projected_laplace`.

    Returns
    -------
    numpy.ndarray
        int64 *counts*, not noise: non-negative, every kept total as it was.

    Guarantee
    ---------
    None of ours: the errors are biased, upwards in small cells and downwards in large ones.
    ``tests/research/test_baselines.py``.

    Examples
    --------
    >>> import keepsum as ks
    >>> keep = ks.Invariants.subsets(4, [range(4)])
    >>> out = ks.baselines.topdown_like([0, 0, 1, 99], keep, 0.5, 2000, rng=ks.rng(seed=1))
    >>> bool((out >= 0).all()), set(out.sum(axis=1).tolist())
    (True, {100})
    >>> bool(out[:, 0].mean() > 0.5), bool(out[:, 3].mean() < 98.5)
    (True, True)
    """
    source = checked_rng(rng)
    structure = _structure(invariants)
    if structure.blocks:
        raise InputError("Totals of this baseline must form a hierarchy (disjoint or nested), got overlapping ones.")
    x = _as_counts(counts, invariants.size)
    noisy = x + _double_geometric(invariants.size, epsilon, _draws(size), source)
    stream = source.stream()
    out = np.maximum(noisy, 0)
    for cells in _forced(structure):
        out[:, cells] = _non_negative(noisy[:, cells], int(x[cells].sum()), stream)
    released: IntArray = out[0] if size is None else out
    return released


def _structure(invariants: Any) -> Structure:
    if not isinstance(invariants, Invariants):
        raise InputError(f"Totals to keep must be Invariants, got {type_of(invariants)}. See table.keep.")
    return decompose(invariants.coefficients)


def _draws(size: Any) -> int:
    return 1 if size is None else check_whole(size, "The number of draws", 0)


def _as_counts(counts: Any, size: int) -> IntArray:
    found = as_array(counts)
    if found is None:
        raise InputError(f"Counts must be {size} whole numbers from 0, got rows of several lengths.")
    if found.shape != (size,) or found.dtype.kind not in "iu" or (found < 0).any():
        raise InputError(f"Counts must be {size} whole numbers from 0, got {found.dtype} of shape {found.shape}.")
    return found.astype(np.int64)


def _double_geometric(width: int, epsilon: Number, size: int, rng: Rng) -> IntArray:
    """Noise on cells under no total, by the plan's own exact sampler."""
    return plan(Invariants.subsets(width, []), Laplace(epsilon=epsilon)).sample(size, rng=rng)


def _forced(structure: Structure) -> list[IntArray]:
    """The cells of each region whose noise must sum to 0."""
    order, starts = structure.cells_by_region
    return [order[starts[r] : starts[r + 1]] for r in np.flatnonzero(structure.part == FORCED)]


def _sum_zero(noise: IntArray, stream: Stream) -> IntArray:
    """The nearest whole numbers to noise - mean with sum 0.

    With a sum of q n + r take q off all cells, and 1 more off r of them. Nearest in l1 and in l2: fractional parts are
    all alike, so any r cells will do, and r must.
    """
    share, rest = np.divmod(noise.sum(axis=1), noise.shape[1])
    lowered: IntArray = noise - share[:, None] - _some(np.ones(noise.shape, dtype=bool), rest, stream)
    return lowered


def _non_negative(noisy: IntArray, total: int, stream: Stream) -> IntArray:
    """The nearest non-negative whole numbers with that total: max(0, y - theta) of least squares, rounded.

    The k largest stay positive, k the last with k y_(k) > y_(1) + ... + y_(k) - total; theta is (their sum - total)/k.
    """
    falling = -np.sort(-noisy, axis=1)
    ranks = np.arange(1, noisy.shape[1] + 1)
    excess = np.cumsum(falling, axis=1) - total
    active = (ranks * falling > excess).sum(axis=1)
    rows = np.flatnonzero(active)  # none is positive only where the total is 0
    out = np.zeros_like(noisy)
    share, rest = np.divmod(excess[rows, active[rows] - 1], active[rows])
    positive = active[rows, None] * noisy[rows] > excess[rows, active[rows] - 1][:, None]
    lowered = noisy[rows] - share[:, None] - _some(positive, rest, stream)
    out[rows] = np.where(positive, lowered, 0)
    return out


def _some(among: npt.NDArray[np.bool_], count: IntArray, stream: Stream) -> IntArray:
    """In each row 1 at so many of the cells, chosen evenly by random words, else 0."""
    words = stream.take(among.size).reshape(among.shape) >> np.uint64(1)
    words[~among] = np.uint64(2**64 - 1)
    places = np.argsort(np.argsort(words, axis=1), axis=1)
    return np.asarray(places < count[:, None], dtype=np.int64)


def _nearest_on_lattice(invariants: Invariants, noise: IntArray, stream: Stream) -> IntArray:
    """Project in l2, then the nearest vector of the lattice in l1, draw by draw.

    The columns of the basis are put in a random order and all signs flipped at random, so that the solver's ties have
    no side.
    """
    basis = np.asarray(Lattice(invariants.coefficients).basis, dtype=np.float64)
    inverse: Floats = np.asarray(np.linalg.pinv(basis), dtype=np.float64)
    out = np.empty_like(noise)
    for i, coordinates in enumerate(noise @ inverse.T):  # B times its pseudo-inverse is the projection
        order = np.argsort(stream.take(basis.shape[1]))
        sign = 1 if stream.bits(1) else -1
        found = _nearest_coordinates(basis[:, order], inverse[order], sign * coordinates[order])
        out[i] = sign * np.rint(basis[:, order] @ found).astype(np.int64)
    return out


def _nearest_coordinates(basis: Floats, inverse: Floats, centre: Floats) -> Floats:
    """Whole c with the least |B (c - centre)|_1, by an integer program.

    Rounding the centre gives a vector at some distance; the nearest one is no farther, which bounds every coordinate.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    cells, width = basis.shape
    point, eye = basis @ centre, np.eye(cells)
    farthest = np.abs(basis @ np.rint(centre) - point).sum()
    reach = np.abs(inverse).max(axis=1) * farthest + 1
    found = milp(
        np.repeat([0.0, 1.0], [width, cells]),
        constraints=LinearConstraint(np.block([[basis, eye], [-basis, eye]]), np.concatenate([point, -point]), np.inf),
        integrality=np.repeat([1, 0], [width, cells]),
        bounds=Bounds(
            np.concatenate([np.floor(centre - reach), np.zeros(cells)]),
            np.concatenate([np.ceil(centre + reach), np.full(cells, np.inf)]),
        ),
    )
    if found.x is None:
        raise InputError(f"The solver found no nearest whole numbers: {found.message}")
    return np.asarray(np.rint(found.x[:width]))

"""What others do instead: noise first, totals adjusted afterwards. For comparison; a release never uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import as_array, check_whole
from keepsum._arrays import Floats, IntArray, grouped
from keepsum._saying import the
from keepsum._text import type_of
from keepsum.errors import InputError, PlanError
from keepsum.facade.functions import plan
from keepsum.lattice import Lattice
from keepsum.lattice.structure import FORCED, Structure, decompose
from keepsum.planning.focus import FocusTrees
from keepsum.planning.plan import compile_plan
from keepsum.privacy import Laplace
from keepsum.privacy.focus import Focus, Level
from keepsum.privacy.numbers import Number
from keepsum.sampling.core.rng import Rng, Stream, checked_rng
from keepsum.sampling.l1.focus.tree import ABSENT
from keepsum.tables.invariants import Invariants

# What baselines share: double geometric noise, and the nearest whole numbers with a given sum.


def structure_of(invariants: Any) -> Structure:
    """The regions and blocks of kept totals."""
    if not isinstance(invariants, Invariants):
        raise InputError(f"Totals to keep must be Invariants, got {type_of(invariants)}. See {the.call('table.keep')}.")
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


# Noisy counts level by level, made non-negative from the top down: what others do. For comparison only.


NO_ONE = np.empty(0, dtype=np.int64)


def topdown_like(
    counts: npt.ArrayLike,
    invariants: Invariants,
    epsilon: Number,
    size: int | None = None,
    *,
    focus: Focus | None = None,
    rng: Rng | None = None,
) -> IntArray:
    """Noisy counts, then the nearest non-negative ones with the kept totals, rounded: what non-negativity does.

    **Ours, and much simplified**, after the estimation phase of the Census Bureau's TopDown algorithm: one query per
    level, double geometric noise, least squares subject to the totals and to non-negativity, controlled rounding. It
    is no model of any published product; it has what biases them, as Zhu, Van Hentenryck and Fioretto (2021) show.

    With a ``focus`` the totals of each level are measured too, with an epsilon of their own, and mended from the top
    down: totals that are not in any other at 0 or more, then the parts of each so that they add up to it.

    Parameters
    ----------
    counts
        The confidential counts, one a cell. The law of the errors depends on them.
    invariants
        Totals to keep that form a hierarchy (disjoint or nested).
    epsilon, size, rng
        As in :func:`projected_laplace`.
    focus
        The epsilon of further totals, as in ``ks.Laplace.per_unit``; all epsilons together are the budget per unit of
        distance. Focused and kept totals must be nested.

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
    structure = structure_of(invariants)
    if structure.blocks:
        raise InputError("Totals of this baseline must form a hierarchy (disjoint or nested), got overlapping ones.")
    x = _as_counts(counts, invariants.size)
    nested, request = None, Laplace.per_unit(epsilon, focus=focus)
    if request.focus:
        nested = compile_plan(invariants, request).blocks.nested
        if nested is None or nested.tables:
            raise PlanError("A focus of this baseline must be on totals that are nested, got some that cross.")
    number = draws_of(size)
    noisy = x + double_geometric(invariants.size, epsilon, number, source)
    above = None if nested is None else _noisy_totals(nested, request.focus, x, number, source)
    stream = source.stream()
    out = np.maximum(noisy, 0)
    for cells in forced_regions(structure if nested is None else nested.structure):
        out[:, cells] = non_negative(noisy[:, cells], int(x[cells].sum()), stream)
    if nested is not None and above is not None:
        _fill_down(out, nested, noisy, above, stream)
    released: IntArray = out[0] if size is None else out
    return released


def _noisy_totals(nested: FocusTrees, focus: tuple[Level, ...], counts: IntArray, draws: int, rng: Rng) -> IntArray:
    """Every total with the noise of its level, one row per draw; kept ones as they are."""
    sums = np.bincount(nested.home[nested.cells], weights=counts[nested.cells], minlength=len(nested.parents))
    for node, parent in reversed(list(enumerate(nested.parents.tolist()))):  # parents come before their children
        if parent != ABSENT:
            sums[parent] += sums[node]
    noisy = np.tile(sums.astype(np.int64), (draws, 1))
    for number, level in enumerate(focus):
        nodes = np.flatnonzero(nested.levels == number)
        noisy[:, nodes] += double_geometric(len(nodes), level.weight, draws, rng)
    return noisy


def _fill_down(out: IntArray, nested: FocusTrees, noisy: IntArray, above: IntArray, stream: Stream) -> None:
    """Totals from the roots down, and then their cells."""
    totals = np.maximum(above, 0)  # which stands for roots; others are replaced before their turn
    inner, cells = ({int(of[places[0]]): places for places in grouped(of)} for of in (nested.parents, nested.home))
    for node in range(len(nested.parents)):
        parts, own = inner.get(node, NO_ONE), cells.get(node, NO_ONE)
        mended = non_negative(np.hstack([above[:, parts], noisy[:, own]]), totals[:, node], stream)
        totals[:, parts], out[:, own] = mended[:, : len(parts)], mended[:, len(parts) :]


def _as_counts(counts: Any, size: int) -> IntArray:
    found = as_array(counts)
    if found is None:
        raise InputError(f"Counts must be {size} whole numbers from 0, got rows of several lengths.")
    if found.shape != (size,) or found.dtype.kind not in "iu" or (found < 0).any():
        raise InputError(f"Counts must be {size} whole numbers from 0, got {found.dtype} of shape {found.shape}.")
    return found.astype(np.int64)


# What others do instead: noise first, totals mended afterwards. For comparison; a release never uses it.
#
# Both mechanisms here add double geometric noise, which is differentially private in the usual sense, and then move
# the noisy counts to where the kept totals hold. Their law has no closed form, and the second one depends on the
# data.


__all__ = ["projected_laplace", "topdown_like"]


def __dir__() -> list[str]:
    return __all__


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
    structure = structure_of(invariants)
    noise = double_geometric(invariants.size, epsilon, draws_of(size), source)
    stream = source.stream()
    if structure.blocks:
        noise = _nearest_on_lattice(invariants, noise, stream)
    else:
        for cells in forced_regions(structure):
            noise[:, cells] = sum_zero(noise[:, cells], stream)
    return noise[0] if size is None else noise


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

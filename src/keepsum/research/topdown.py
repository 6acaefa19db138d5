"""Noisy counts level by level, made non-negative from the top down: what others do. For comparison only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import as_array
from keepsum._arrays import IntArray
from keepsum.errors import InputError, PlanError
from keepsum.planning.nested import Nested
from keepsum.planning.plan import compile_plan
from keepsum.privacy import Laplace
from keepsum.privacy.focus import Focus, Level
from keepsum.privacy.numbers import Number
from keepsum.research.mending import double_geometric, draws_of, forced_regions, non_negative, structure_of
from keepsum.sampling.core.rng import Rng, Stream, checked_rng
from keepsum.sampling.l1.focus.tree import ABSENT
from keepsum.tables.invariants import Invariants

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


def _noisy_totals(nested: Nested, focus: tuple[Level, ...], counts: IntArray, draws: int, rng: Rng) -> IntArray:
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


def _fill_down(out: IntArray, nested: Nested, noisy: IntArray, above: IntArray, stream: Stream) -> None:
    """Totals from the roots down, and then their cells."""
    totals = np.maximum(above, 0)  # which stands for roots; others are replaced before their turn
    inner, cells = _grouped(nested.parents), _grouped(nested.home)
    for node in range(len(nested.parents)):
        parts, own = inner.get(node, NO_ONE), cells.get(node, NO_ONE)
        mended = non_negative(np.hstack([above[:, parts], noisy[:, own]]), totals[:, node], stream)
        totals[:, parts], out[:, own] = mended[:, : len(parts)], mended[:, len(parts) :]


def _grouped(labels: IntArray) -> dict[int, IntArray]:
    """The places of each label, but for negative ones."""
    order = np.argsort(labels, kind="stable")[int((labels < 0).sum()) :]
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(order) else []
    return {int(labels[group[0]]): group for group in groups}


def _as_counts(counts: Any, size: int) -> IntArray:
    found = as_array(counts)
    if found is None:
        raise InputError(f"Counts must be {size} whole numbers from 0, got rows of several lengths.")
    if found.shape != (size,) or found.dtype.kind not in "iu" or (found < 0).any():
        raise InputError(f"Counts must be {size} whole numbers from 0, got {found.dtype} of shape {found.shape}.")
    return found.astype(np.int64)

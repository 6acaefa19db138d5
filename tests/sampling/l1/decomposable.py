"""Small tables whose totals collapse family by family, some of them in two steps and more."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy import sparse

from keepsum.lattice.families import collapses_of
from keepsum.sampling.l1.splitting.bundles import ELSEWHERE, NOTHING, SplitTable
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import Splitting


def totals_of(shape, margins, zeros=()):
    """The totals of a table, one row for each combination of categories of each margin; a letter for each axis.

    ``zeros`` are cells that are left out.
    """
    places = np.indices(shape).reshape(len(shape), -1)
    kept = np.setdiff1d(np.arange(places.shape[1]), zeros)
    rows = []
    for margin in margins:
        keys = np.stack([places["ABCDE".index(axis)] for axis in margin], axis=1)[kept]
        rows += [(keys == key).all(axis=1) for key in np.unique(keys, axis=0)]
    return np.array(rows, dtype=np.int64)


def table_of(shape, margins, zeros=(), sizes=None):
    """The table of these totals, with entries of one cell or of ``sizes``."""
    matrix = totals_of(shape, margins, zeros)
    collapses = collapses_of(sparse.csr_array(matrix))
    loads = np.ones(matrix.shape[1], dtype=np.int64) if sizes is None else np.asarray(sizes, dtype=np.int64)
    return SplitTable(loads[:, None], collapses)


def splitting(epsilon, shape, margins, zeros=(), sizes=None, labelling=None, **options):
    """The sampler of such a table."""
    table = table_of(shape, margins, zeros, sizes)
    return Splitting(Fraction(epsilon), table, labelling=labelling or Labelling(), **options)


def sums_of(sampler, cells):
    """All sums of a table that was drawn, where the kernel has them; parts come after what they are parts of."""
    bundles, ends = sampler._bundles, np.cumsum(sampler._sizes)
    upto = np.concatenate([[0], np.cumsum(cells)])
    sums = np.zeros(bundles.places, dtype=np.int64)
    sums[bundles.entry_at] = upto[ends] - upto[ends - sampler._sizes]
    for first, last in reversed(list(pairwise(bundles.start.tolist()))):
        at, left, right = (places[first:last] for places in (bundles.at, bundles.left, bundles.right))
        sums[ELSEWHERE] = 0
        whole = sums[left] + sums[right]
        assert not whole[at == NOTHING].any()
        sums[at] = whole
    return sums

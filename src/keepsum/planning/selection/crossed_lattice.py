"""Two-way tables with focused margins as a longer lattice, for the general samplers.

The lattice has an entry for each focused total, beside the entries of the table. Entries that the kept totals
determine have sums of 0: they are no part of the problem, and their cells are drawn beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, IntArray
from keepsum.lattice.structure import System, decompose
from keepsum.planning.selection.choice import Sampler, simulate_into
from keepsum.planning.selection.general import Arranged, Problem
from keepsum.sampling.core.rng import Rng
from keepsum.sampling.l1.forced_sums import ForcedSums


def arranged_tables(
    matrix: sparse.csr_array, sizes: IntArray, epsilon: Fraction, weights: Sequence[Fraction], cells: IntArray
) -> Arranged:
    """Tables of one form as the general samplers draw them.

    Parameters
    ----------
    matrix
        The totals over the entries of a table and then focused totals, see ``longer_matrix``.
    sizes
        The number of cells of each entry.
    epsilon, weights
        The epsilon of cells, and that of each focused total.
    cells
        The cells of all tables, one after the other, each entry by entry.
    """
    structure = decompose(matrix)
    moving = (structure.part >= 0)[structure.region]
    rest = sparse.csr_array(matrix[:, np.flatnonzero(moving)])
    rest = sparse.csr_array(rest[np.flatnonzero(np.diff(rest.indptr))])
    system = System.recognised(rest, sum(block.system.rank for block in structure.blocks))
    with_totals = np.concatenate([sizes, np.zeros(len(weights), dtype=np.int64)])[moving]
    epsilons = np.array([epsilon] * len(sizes) + list(weights), dtype=object)[moving]
    count, of_entries = len(cells) // int(sizes.sum()), moving[: len(sizes)]
    problem = Problem(system, with_totals, count, epsilon, tuple(epsilons))
    if of_entries.all():
        return Arranged(problem, cells, lambda sampler: sampler)
    fixed = ForcedSums(epsilon, np.tile(sizes[~of_entries], count))
    inside = np.tile(np.repeat(of_entries, sizes), count)
    return Arranged(problem, cells, lambda sampler: Beside(sampler, fixed, inside))


class Beside:
    """Cells of a sampler, and beside them cells of entries whose sums are 0.

    ``inside`` says of each cell whether it is of the sampler.
    """

    def __init__(self, sampler: Sampler, fixed: ForcedSums, inside: BoolArray) -> None:
        self._sampler, self._fixed, self._inside = sampler, fixed, inside
        self.width = len(inside)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw."""
        drawn = np.empty((len(out), self._sampler.width), dtype=np.int64)
        self._sampler.draw_into(drawn, rng, threads)
        self._put(drawn, out, rng, threads)

    def simulate_into(self, out: IntArray, rng: Rng) -> None:
        """Fill ``out`` with rows for estimates, where the sampler is a chain."""
        drawn = np.empty((len(out), self._sampler.width), dtype=np.int64)
        simulate_into(self._sampler, drawn, rng)
        self._put(drawn, out, rng, threads=1)

    def _put(self, drawn: IntArray, out: IntArray, rng: Rng, threads: int) -> None:
        fixed = np.empty((len(out), self._fixed.width), dtype=np.int64)
        self._fixed.draw_into(fixed, rng, threads)
        out[:, self._inside], out[:, ~self._inside] = drawn, fixed

"""Margins with weights of their own, as one more row and column of a table with kept margins.

Let a table have row sums R_i, column sums C_j and the sum G, and noise with probability proportional to
exp(-eps |z|_1 - sum of a_i |R_i| - sum of b_j |C_j| - g |G|), over the tables where those that are kept are 0. Add a
column with the entries -R_i, a row with the entries -C_j, and G where they meet: all row and column sums are 0. So it
is a table with kept margins whose added entries have the weights exp(-a_i |R_i|), exp(-b_j |C_j|) and exp(-g |G|).
Where a sum is kept, the entry is a structural zero.

If G is neither kept nor focused, its entry has weight 1 whatever it is: no law by itself. But the other entries of its
row have one: with the added column taken off first, -G is drawn as the sum of the other entries of the added row, by
the law of that sum, and nothing else is asked of G. (If all row sums are 0 there is no
added column, and G is 0.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.families import Collapse
from keepsum.sampling.l1.splitting.bundles import Table

KEPT = None  # in place of the weight of a total
NOTHING = Fraction(0)  # the weight of a grand total that is neither kept nor focused


@dataclass(frozen=True)
class Margins:
    """The weights of the totals of a table; ``KEPT`` for one that is 0.

    Attributes
    ----------
    rows, columns
        Those of the rows and the columns.
    whole
        That of the grand total, which matters if rows and columns are focused; ``NOTHING`` if it is free.
    """

    rows: tuple[Fraction | None, ...]
    columns: tuple[Fraction | None, ...]
    whole: Fraction | None = NOTHING

    @property
    def transposed(self) -> Margins:
        """The same with the roles of rows and columns exchanged."""
        return Margins(self.columns, self.rows, self.whole)

    @property
    def shape(self) -> tuple[int, int]:
        """The lengths of the sides with what is added."""
        return len(self.rows) + _focused(self.columns), len(self.columns) + _focused(self.rows)


def _focused(weights: Sequence[Fraction | None]) -> bool:
    return any(weight is not KEPT for weight in weights)


def two_way(sizes: IntArray, margins: Margins | None = None) -> Table:
    """A table under both margins, with what focused ones add: entries row by row, those without a cell left out.

    Its columns are summed out.

    >>> table = two_way(np.array([[1, 2], [3, 4]]), Margins((Fraction(1), None), (Fraction(2), Fraction(2))))
    >>> [str(weight) for weight in table.further]
    ['1', '2', '0']
    >>> table.loads.T.tolist()
    [[1, 2, 0, 3, 4, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0, 1]]
    """
    rows, columns = sizes.shape
    shape = sizes.shape if margins is None else margins.shape
    present = {} if margins is None else _weights(sizes, margins)
    further = tuple(sorted(set(present.values()), key=lambda weight: (weight == NOTHING, weight)))
    loads = np.zeros((*shape, 1 + len(further)), dtype=np.int64)
    loads[:rows, :columns, 0] = sizes
    for place, weight in present.items():
        loads[(*place, 1 + further.index(weight))] = 1
    row, column = np.nonzero(loads.any(axis=2))
    collapse = Collapse(row, column, np.zeros(shape[0], dtype=np.int64))
    return Table(loads[row, column], (collapse,), further)


def _weights(sizes: IntArray, margins: Margins) -> dict[tuple[int, int], Fraction]:
    """Where entries are added, and the weights that they have."""
    (rows, columns), shape = sizes.shape, margins.shape
    weights: dict[tuple[int, int], Fraction | None] = {}
    if shape[1] > columns:
        weights |= {(i, columns): weight for i, weight in enumerate(margins.rows)}
    if shape[0] > rows:
        weights |= {(rows, j): weight for j, weight in enumerate(margins.columns)}
    if shape == (rows + 1, columns + 1):
        weights[rows, columns] = margins.whole
    return {place: weight for place, weight in weights.items() if weight is not KEPT}

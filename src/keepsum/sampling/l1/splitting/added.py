"""Margins with weights of their own, as one more row and column of a table with kept margins.

Let a table have row sums R_i, column sums C_j and the sum G, and noise with probability proportional to
exp(-eps |z|_1 - sum of a_i |R_i| - sum of b_j |C_j| - g |G|), over the tables where those that are kept are 0. Add a
column with the entries -R_i, a row with the entries -C_j, and G where they meet: all row and column sums are 0. So it
is a table with kept margins whose added entries have the weights exp(-a_i |R_i|), exp(-b_j |C_j|) and exp(-g |G|).
Where a sum is kept, the entry is a structural zero.

If G is neither kept nor focused, its entry has weight 1 whatever it is: no law by itself. But the other entries of its
row have one: with the added column alone on one side of the root of the tree, -G is drawn as the sum of the other
entries of the added row, by the law of that sum, and nothing else is asked of G. (If all row sums are 0 there is no
added column, and G is 0.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray

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


def _codes() -> IntArray:
    return np.zeros((0, 0), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Extended:
    """A table with its added entries.

    Attributes
    ----------
    sizes
        The number of cells of each entry; 0 for a structural zero, and for an added entry.
    codes
        For each entry 0, or which of the further weights it has, counted from 1.
    further
        The further weights; ``NOTHING`` comes last.
    apart
        Whether the last column is an added one.
    """

    sizes: IntArray
    codes: IntArray = field(default_factory=_codes)
    further: tuple[Fraction, ...] = ()
    apart: bool = False

    def __post_init__(self) -> None:
        if not self.codes.size:
            object.__setattr__(self, "codes", np.zeros_like(self.sizes))


def extended(sizes: IntArray, margins: Margins | None) -> Extended:
    """The table with what focused margins add.

    >>> table = extended(np.array([[1, 2], [3, 4]]), Margins((Fraction(1), None), (Fraction(2), Fraction(2))))
    >>> table.sizes.tolist(), table.codes.tolist(), [str(weight) for weight in table.further]
    ([[1, 2, 0], [3, 4, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 0], [2, 2, 3]], ['1', '2', '0'])
    """
    if margins is None:
        return Extended(sizes)
    rows, columns = sizes.shape
    shape = margins.shape
    weights: dict[tuple[int, int], Fraction | None] = {}
    if shape[1] > columns:
        weights |= {(i, columns): weight for i, weight in enumerate(margins.rows)}
    if shape[0] > rows:
        weights |= {(rows, j): weight for j, weight in enumerate(margins.columns)}
    if shape == (rows + 1, columns + 1):
        weights[rows, columns] = margins.whole
    present = {place: weight for place, weight in weights.items() if weight is not KEPT}
    further = tuple(sorted(set(present.values()), key=lambda weight: (weight == NOTHING, weight)))
    whole, codes = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    whole[:rows, :columns] = sizes
    for place, weight in present.items():
        codes[place] = 1 + further.index(weight)
    return Extended(whole, codes, further, shape[1] > columns)

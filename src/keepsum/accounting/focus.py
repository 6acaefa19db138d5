"""What a release with more accuracy in some totals costs per unit of l1 distance.

Focused noise has probability proportional to exp(-N(z)) with N(z) = sum of epsilon_i |z_i| over cells, plus epsilon_g
|sum of z over g| for each focused total g. As |sum of z over g| is at most the sum of |z_i| over its cells, N(z) is at
most |z|_1 times the largest, over cells, of epsilon_i and the epsilons of the totals that contain it. A change of that
one cell attains it, if nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from keepsum.errors import InputError


def focused_epsilon(cells: Sequence[Fraction], totals: Iterable[tuple[Iterable[int], Fraction]]) -> Fraction:
    """Epsilon per unit of l1 distance of noise that is focused on some totals.

    Parameters
    ----------
    cells
        The epsilon of each cell.
    totals
        Each focused total: its cells, and its epsilon.

    Examples
    --------
    >>> focused_epsilon([Fraction(1, 4)] * 3, [([0, 1], Fraction(1)), ([1, 2], Fraction(1, 2))])
    Fraction(7, 4)
    """
    losses = list(cells)
    if not losses or any(not isinstance(loss, Fraction) or loss < 0 for loss in losses):
        raise InputError("Epsilons of cells must be fractions of 0 or more, at least one.")
    for members, epsilon in totals:
        if not isinstance(epsilon, Fraction) or epsilon <= 0:
            raise InputError("Epsilons of focused totals must be positive fractions.")
        for cell in set(members):
            if not 0 <= cell < len(losses):
                raise InputError(f"Cells of a focused total must be whole numbers from 0 to {len(losses) - 1}.")
            losses[cell] += epsilon
    return max(losses)

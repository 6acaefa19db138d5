"""Within one block: the shortest vectors that take from a cell and give to a cell of some class.

Cells of one region are in the same totals, so a vector can take from one and give to another at no further cost. To
change a region of one cell, a vector must change other regions too, and how many depends on the totals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keepsum._arrays import BoolArray, IntArray
from keepsum.lattice.cycles import opposite_in_table
from keepsum.lattice.grids import Grid
from keepsum.lattice.measure import NONE, UNKNOWN, Measure
from keepsum.lattice.shortest import ShortVectors
from keepsum.lattice.structure import System

MAX_PAIRS = 5 * 10**7  # pairs of a region and a class that are computed one by one


@dataclass(frozen=True)
class Opposite:
    """Shortest lengths between regions of a block and classes of their cells, as keys of a ``Measure``.

    Attributes
    ----------
    through
        For each region the shortest vector that changes one of its cells.
    towards
        (regions, classes): the shortest vector that takes from a cell of the region and gives to a cell of the class,
        where the first cell is not of the class; a single column if it is the same for all classes.
    """

    through: IntArray
    towards: IntArray


def opposite(
    system: System, sizes: IntArray, held: IntArray, count: int, measure: Measure, short: Callable[[], ShortVectors]
) -> tuple[Opposite, Opposite]:
    """Upper and lower bounds for a block; one object twice where they agree.

    Parameters
    ----------
    system, sizes
        The block, and the number of cells of each region.
    held
        The labels that the cells of each region have: ``region * count + label``, in order.
    count
        The number of labels.
    measure
        How lengths are measured.
    short
        The short vectors of the block, created only if they are needed.
    """
    move = measure.key(2, 2)
    large = sizes > 1
    if large.all() and count == 1:
        both = Opposite(np.full(system.width, move), np.full((system.width, 1), move))
        return both, both
    if system.grid is not None and (large.all() or not large.any()):
        box = _box(system.grid, measure)
        if len(held) == system.width and _along_one_way(system, held % count):
            through = np.full(system.width, move if large.all() else box)
            both = Opposite(through, np.full((system.width, 1), min(box, 2 * move) if large.all() else box))
            return both, both
    if system.width * count > MAX_PAIRS:
        unknown = Opposite(np.where(large, move, UNKNOWN), np.full((system.width, 1), UNKNOWN))
        return unknown, Opposite(np.where(large, move, measure.key(1, 1)), np.full((system.width, 1), move))
    classes = np.zeros((system.width, count), dtype=bool)
    classes[held // count, held % count] = True
    return _general(system, large, classes, measure, short)


def _along_one_way(system: System, labels: IntArray) -> bool:
    """Whether the label of a cell of the table depends on one of its coordinates only."""
    if system.grid is None:
        return False
    on_grid = labels[system.grid.column]
    for way in range(on_grid.ndim):
        line = on_grid[tuple(slice(None) if a == way else slice(0, 1) for a in range(on_grid.ndim))]
        if (on_grid == line).all():
            return True
    return False


def _general(
    system: System, large: BoolArray, classes: BoolArray, measure: Measure, short: Callable[[], ShortVectors]
) -> tuple[Opposite, Opposite]:
    move = measure.key(2, 2)
    through, low_through = _through(system, np.flatnonzero(~large).tolist(), measure, short)
    moves, low_moves = (np.where(large, move, keys) for keys in (through, low_through))
    two, low_two = _by_two_vectors(system, classes, large, (through, low_through), measure, short)
    upper, lower = _by_one_vector(system, classes, np.where(classes, move, two), measure, short)
    high = Opposite(moves, np.where(classes, move, np.minimum(upper, two)))
    low_costs = Opposite(low_moves, np.where(classes, move, np.minimum(lower, low_two)))
    same = (high.through == low_costs.through).all() and (high.towards == low_costs.towards).all()
    return high, high if same else low_costs


def _through(
    system: System, single: list[int], measure: Measure, short: Callable[[], ShortVectors]
) -> tuple[IntArray, IntArray]:
    """Upper and lower bounds on the shortest vector that changes each region of a single cell."""
    if system.two_way is not None:
        keys = np.array([measure.key(length, length) for length in system.two_way.cycles.tolist()])
    elif system.grid is not None:
        keys = np.full(system.width, _box(system.grid, measure))
    elif single:
        return short().through(measure, single)
    else:
        keys = np.full(system.width, NONE)
    return keys, keys


def _by_one_vector(
    system: System, classes: BoolArray, ceiling: IntArray, measure: Measure, short: Callable[[], ShortVectors]
) -> tuple[IntArray, IntArray]:
    """Upper and lower bounds on the shortest vector that changes the sum of a region and one in the class."""
    wanted = ~classes
    if system.two_way is not None:
        upper, lower = opposite_in_table(system.two_way, measure, classes, wanted, ceiling)
        missing = wanted & (upper == UNKNOWN) & (measure.entries(ceiling) > measure.entries(lower))
    elif system.grid is not None:
        reached, box = _on_a_line(system, classes), _box(system.grid, measure)
        upper, lower = np.where(reached, box, NONE), np.full(classes.shape, box)
        missing = wanted & ~reached & (ceiling > box)
    else:
        return short().opposite(measure, classes, wanted, ceiling)
    if missing.any():
        at_most, at_least = short().opposite(measure, classes, missing, ceiling)
        upper = np.where(missing, at_most, upper)
        lower = np.where(missing, np.maximum(at_least, lower), lower)
    return upper, lower


def _box(grid: Grid, measure: Measure) -> int:
    """The shortest vectors of a full table have 2^p entries, through any cell and along any line."""
    return measure.key(2 ** len(grid.shape), 2 ** len(grid.shape))


def _on_a_line(system: System, classes: BoolArray) -> BoolArray:
    """The classes on the lines through each cell of the table: a box of 2^p cells connects the cell with them."""
    column = system.grid.column if system.grid is not None else np.empty(0, dtype=np.int64)
    on_grid = classes[column]
    on_lines = np.zeros_like(on_grid)
    for way in range(column.ndim):
        on_lines |= on_grid.any(axis=way, keepdims=True)
    reached = np.empty_like(classes)
    reached[column.ravel()] = on_lines.reshape(-1, classes.shape[1])
    return reached


def _by_two_vectors(
    system: System,
    classes: BoolArray,
    large: BoolArray,
    through: tuple[IntArray, IntArray],
    measure: Measure,
    short: Callable[[], ShortVectors],
) -> tuple[IntArray, IntArray]:
    """Upper and lower bounds by a move within one region of several cells plus a vector that changes the other region.

    The two interact where the vector has an entry m in the region of the move. In the l2 norm that entry may become
    m + 1, or, if it was spread over several cells, may all go to one cell; the upper bound allows for both.
    """
    move = measure.key(2, 2)
    within = np.asarray((classes & large[:, None]).any(axis=0))
    bounds = []
    for changing, at_most in zip(through, (True, False), strict=True):
        with_move = changing + move
        if measure.norm == "l2" and (~large).any() and large.any():
            at_least = with_move if measure.fewest_first else changing
            with_move = _with_move(system, changing, measure, short) if at_most else at_least
        to_single = np.where(classes & ~large[:, None], with_move[:, None], NONE).min(axis=0)
        from_large = np.where(within, 2 * move, to_single)
        from_single = np.where(within[None, :], with_move[:, None], NONE)
        bounds.append(np.minimum(np.where(large[:, None], from_large[None, :], from_single), NONE))
    return bounds[0], bounds[1]


def _with_move(system: System, through: IntArray, measure: Measure, short: Callable[[], ShortVectors]) -> IntArray:
    """An upper bound on vectors that change each column, with a move added to one of their entries."""
    if system.two_way is not None:  # the entries of a cycle are 1
        return np.where(through >= UNKNOWN, UNKNOWN, through + measure.key(2, 2) + measure.key(0, 2))
    most = measure.entries(through)  # a bound on every entry
    if measure.fewest_first:
        most = most // 2  # as much is given as taken
        return np.where(through >= UNKNOWN, UNKNOWN, through + measure.key(2, 2) - 2 * most)
    worst = np.full(len(through), UNKNOWN)
    for vector in short().vectors:
        largest = max(map(abs, vector.values()))
        squares = sum(entry * entry for entry in vector.values()) + 2 * largest + 2
        places = list(vector)
        worst[places] = np.minimum(worst[places], measure.key(1, squares))
    return worst

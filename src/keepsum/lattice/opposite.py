"""Within one block: how short a vector can be that takes from a cell and gives to a cell of some class.

Cells of one region are alike to the totals, so a vector can always take from one of them and give to another. A region
of one cell must draw others along, and how many depends on the totals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keepsum.lattice.matrix import BoolArray, IntArray
from keepsum.lattice.measure import NONE, UNKNOWN, Measure
from keepsum.lattice.shortest import ShortVectors
from keepsum.lattice.structure import System

LARGEST = 5 * 10**7  # pairs of a region and a class that are worked out one by one


@dataclass(frozen=True)
class Opposite:
    """For the regions of a block and the classes of their cells, lengths as numbers of a ``Measure``.

    Attributes
    ----------
    through
        For each region the shortest vector through one of its cells.
    towards
        (regions, classes): the shortest vector that takes from a cell of the region and gives to a cell of the class,
        the cell itself not being of the class; one column for all classes where they are all alike.
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
        Which labels the cells of each region have: ``region * count + label``, in order.
    count
        How many labels there are.
    measure
        How lengths are counted.
    short
        The short vectors of the block, made only if they are needed.
    """
    move = measure.key(2, 2)
    large = sizes > 1
    if large.all() and count == 1:
        both = Opposite(np.full(system.width, move), np.full((system.width, 1), move))
        return both, both
    if system.grid is not None and (large.all() or not large.any()):
        box = measure.key(2 ** len(system.grid.shape), 2 ** len(system.grid.shape))
        if len(held) == system.width and _along_one_way(system, held % count):
            through = np.full(system.width, move if large.all() else box)
            both = Opposite(through, np.full((system.width, 1), min(box, 2 * move) if large.all() else box))
            return both, both
    if system.width * count > LARGEST:
        unknown = Opposite(np.where(large, move, UNKNOWN), np.full((system.width, 1), UNKNOWN))
        return unknown, Opposite(np.where(large, move, measure.key(1, 1)), np.full((system.width, 1), move))
    classes = np.zeros((system.width, count), dtype=bool)
    classes[held // count, held % count] = True
    return _general(system, large, classes, measure, short)


def _along_one_way(system: System, labels: IntArray) -> bool:
    """Whether the label of a place of a table depends on one of its coordinates alone."""
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
    alone = np.flatnonzero(~large).tolist()
    grid_box = None
    if system.grid is not None:
        ways = len(system.grid.shape)
        grid_box = measure.key(2**ways, 2**ways)
    if grid_box is not None:
        through = low_through = np.full(system.width, grid_box)
    elif alone:
        through, low_through = short().through(measure, alone)
    else:
        through = low_through = np.full(system.width, NONE)
    moves, low_moves = (np.where(large, move, keys) for keys in (through, low_through))
    wanted = ~classes
    two, low_two = _by_two_vectors(classes, large, (through, low_through), measure, short)
    ceiling = np.where(classes, move, two)
    if grid_box is not None:
        reached = _on_a_line(system, classes)
        upper = lower = np.where(reached, grid_box, NONE)
        if (wanted & ~reached & (ceiling > grid_box)).any():
            found, low = short().opposite(measure, classes, wanted & ~reached, ceiling)
            upper, lower = np.where(reached, grid_box, found), np.where(reached, grid_box, np.maximum(low, grid_box))
    else:
        upper, lower = short().opposite(measure, classes, wanted, ceiling)
    high = Opposite(moves, np.where(classes, move, np.minimum(upper, two)))
    low_costs = Opposite(low_moves, np.where(classes, move, np.minimum(lower, low_two)))
    same = (high.through == low_costs.through).all() and (high.towards == low_costs.towards).all()
    return high, high if same else low_costs


def _on_a_line(system: System, classes: BoolArray) -> BoolArray:
    """The classes that a place of a table finds on one of the lines through it: a box of 2^p places joins them."""
    column = system.grid.column if system.grid is not None else np.empty(0, dtype=np.int64)
    on_grid = classes[column]
    found = np.zeros_like(on_grid)
    for way in range(column.ndim):
        found |= on_grid.any(axis=way, keepdims=True)
    reached = np.empty_like(classes)
    reached[column.ravel()] = found.reshape(-1, classes.shape[1])
    return reached


def _by_two_vectors(
    classes: BoolArray,
    large: BoolArray,
    through: tuple[IntArray, IntArray],
    measure: Measure,
    short: Callable[[], ShortVectors],
) -> tuple[IntArray, IntArray]:
    """A move within one region and a vector through the other, where one of them has several cells: at most, at least.

    The two meet where the vector has an entry m in the region of the move. In the l2 norm that entry may then be m + 1
    instead of m, or where it was spread over several cells all of it, which is all that is known at most.
    """
    move = measure.key(2, 2)
    within = np.asarray((classes & large[:, None]).any(axis=0))
    found = []
    for passing, at_most in zip(through, (True, False), strict=True):
        upon = passing + move
        if measure.norm == "l2" and (~large).any() and large.any():
            plain = upon if measure.fewest_first else passing
            upon = _stacked(passing, measure, short()) if at_most else plain
        there = np.where(classes & ~large[:, None], upon[:, None], NONE).min(axis=0)
        from_large = np.where(within, 2 * move, there)
        from_alone = np.where(within[None, :], upon[:, None], NONE)
        found.append(np.minimum(np.where(large[:, None], from_large[None, :], from_alone), NONE))
    return found[0], found[1]


def _stacked(through: IntArray, measure: Measure, short: ShortVectors) -> IntArray:
    """The longest that a vector through each column can be with a move upon one of its entries."""
    most = measure.entries(through)  # of any entry, at most
    if measure.fewest_first:
        most = most // 2  # as much is given as taken
        return np.where(through >= UNKNOWN, UNKNOWN, through + measure.key(2, 2) - 2 * most)
    worst = np.full(len(through), UNKNOWN)
    for vector in short.vectors:
        largest = max(map(abs, vector.values()))
        squares = sum(entry * entry for entry in vector.values()) + 2 * largest + 2
        places = list(vector)
        worst[places] = np.minimum(worst[places], measure.key(1, squares))
    return worst

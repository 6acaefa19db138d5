"""Disclosure by the kept totals: the range that they leave a cell, given that counts are not negative.

Kept totals are published, so anybody can compute these bounds; nothing else of the table enters them. A region with a
forced sum S has [0, S]; a cell of a two-way table under both margins lies between max(0, row + column - all) and
min(row, column) (Fréchet), and so, by induction, one of margins that can be summed out (Dobra and Fienberg 2000);
elsewhere linear programs give the bounds, for blocks up to a size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum.lattice.families import Collapse
from keepsum.lattice.structure import FORCED, Block, Structure, System

PROGRAM_LIMIT = 2000  # regions of a block that a linear program is solved for
UNBOUNDED = 3  # the solver's status
BOUND_SLACK = 1e-6  # added to the bounds of a linear program, outwards, before rounding

Range = tuple[IntArray, IntArray]


@dataclass(frozen=True, eq=False)
class Bounds:
    """The cells whose range is smaller than their margin of error.

    Attributes
    ----------
    cells, low, high
        The cells, and the smallest and largest count that the kept totals allow.
    not_checked
        The number of cells in blocks that are too large to check.
    """

    cells: IntArray
    low: IntArray
    high: IntArray
    not_checked: int


def blocks_by_programs(structure: Structure) -> tuple[int, list[tuple[int, int]]]:
    """How many cells are in blocks too large to check; and of blocks that linear programs check, regions and cells."""
    others = [block for block in structure.blocks if not _in_closed_form(block.system)]
    sizes = [(len(block.regions), int(structure.sizes[block.regions].sum())) for block in others]
    too_large = sum(cells for regions, cells in sizes if regions > PROGRAM_LIMIT)
    return too_large, [(regions, cells) for regions, cells in sizes if regions <= PROGRAM_LIMIT]


def bounded_cells(
    structure: Structure, counts: IntArray, margins: IntArray, program_limit: int | None = None
) -> Bounds:
    """The cells that the kept totals bound more tightly than their margin of error, pinned cells excluded.

    Parameters
    ----------
    structure
        The kept totals of a plan, decomposed.
    counts
        The confidential counts, or any others with the same kept totals: only those totals matter.
    margins
        The margin of error of each cell.
    program_limit
        Blocks of more regions are not checked, if that takes linear programs; by default ``PROGRAM_LIMIT``.

    Examples
    --------
    >>> import numpy as np, keepsum as ks
    >>> plan = ks.plan(keep=ks.Invariants.subsets(4, [[0, 1], [2, 3]]), mechanism=ks.Laplace.per_unit(epsilon=0.25))
    >>> bounds = bounded_cells(plan.structure, np.array([2, 1, 500, 300]), plan.accuracy().margins)
    >>> bounds.cells.tolist(), bounds.low.tolist(), bounds.high.tolist()
    ([0, 1], [0, 0], [3, 3])
    """
    sums = np.zeros(len(structure.sizes), dtype=np.int64)
    np.add.at(sums, structure.region, counts)
    low, high = np.zeros(len(sums), dtype=np.int64), np.full(len(sums), np.iinfo(np.int64).max)
    forced = structure.part == FORCED
    high[forced] = sums[forced]
    narrow = _narrowest(structure, margins)
    not_checked = 0
    for block in structure.blocks:
        each = sums[block.regions], narrow[block.regions], structure.sizes[block.regions]
        bounds = _block_range(block, *each, PROGRAM_LIMIT if program_limit is None else program_limit)
        if bounds is None:
            not_checked += int(structure.sizes[block.regions].sum())
        else:
            low[block.regions], high[block.regions] = bounds
    low[structure.sizes > 1] = 0
    tight = (high - low)[structure.region] < margins
    tight[structure.pinned] = False
    cells = np.flatnonzero(tight)
    region = structure.region[cells]
    return Bounds(cells, low[region], high[region], not_checked)


def _narrowest(structure: Structure, margins: IntArray) -> IntArray:
    """The margin of error of the cells of each region: wider ranges need not be computed."""
    narrow = np.zeros(len(structure.sizes), dtype=np.int64)
    np.maximum.at(narrow, structure.region, margins)
    return narrow


def _in_closed_form(system: System) -> bool:
    """Whether a block is made of two-way tables without zeros, whose ranges are known."""
    return system.collapses is not None and all(collapse.full for collapse in system.collapses)


def _block_range(block: Block, sums: IntArray, narrow: IntArray, sizes: IntArray, program_limit: int) -> Range | None:
    """The range of the sum of each region of a block."""
    if _in_closed_form(block.system):
        return _frechet(block.system.collapses or (), sums)
    if len(sums) > program_limit:
        return None
    try:
        return _by_program(block.system, sums, narrow, sizes)
    except ArithmeticError:  # the solver gave up
        return None


def _frechet(collapses: Sequence[Collapse], sums: IntArray) -> Range:
    """Fréchet's bounds, which are attained, for row sums that have ranges themselves.

    Any row sums with the kept totals are those of a table, as each component is full. An entry of row sum m and column
    sum c, in a component of sum t, lies between max(0, m + c - t) and min(m, c), and both are attained; they do not
    fall with m, whose ends are attained, too.
    """
    tables = [sums]
    for collapse in collapses:
        live = collapse.live
        after = np.zeros(len(collapse.component), dtype=np.int64)
        np.add.at(after, collapse.row[live], tables[-1][live])
        tables.append(after)
    low = high = tables[-1]  # all are determined
    for collapse, table, after in zip(reversed(collapses), tables[-2::-1], tables[::-1], strict=False):
        live = collapse.live
        row, column = collapse.row[live], collapse.column[live]
        whole = np.zeros(int(collapse.component.max()) + 1, dtype=np.int64)
        np.add.at(whole, collapse.component, after)
        columns = np.zeros(int(column.max()) + 1, dtype=np.int64)
        np.add.at(columns, column, table[live])
        lowest, highest = table.copy(), table.copy()  # structural zeros are determined
        lowest[live] = np.maximum(0, low[row] + columns[column] - whole[collapse.component[row]])
        highest[live] = np.minimum(high[row], columns[column])
        low, high = lowest, highest
    return low, high


def _by_program(system: System, sums: IntArray, narrow: IntArray, sizes: IntArray) -> Range:
    """Bounds by linear programs; a region is skipped once solutions for others have shown that its range is wide."""
    seen_low = np.full(len(sums), math.inf)
    seen_high = np.full(len(sums), -math.inf)
    low, high = np.zeros(len(sums), dtype=np.int64), np.full(len(sums), np.iinfo(np.int64).max)
    targets = np.asarray(system.matrix @ sums)
    for j in range(len(sums)):
        floor = min(0.0, seen_low[j]) if sizes[j] > 1 else seen_low[j]
        if not narrow[j] or seen_high[j] - floor >= narrow[j]:  # no range is narrower than nothing
            continue
        for sign in (-1, 1):
            solution = _solve(system, targets, j, sign)
            if solution is None:  # no largest value
                break
            np.minimum(seen_low, solution, out=seen_low)
            np.maximum(seen_high, solution, out=seen_high)
            slack = BOUND_SLACK * (1 + abs(float(solution[j])))
            if sign < 0:
                high[j] = math.floor(float(solution[j]) + slack)
            else:
                low[j] = max(0, math.ceil(float(solution[j]) - slack))
    return low, high


def _solve(system: System, targets: npt.NDArray[np.int64], region: int, sign: int) -> npt.NDArray[np.float64] | None:
    """A solution with the largest (sign -1) or smallest (sign 1) value of a region, or None if there is none."""
    from scipy.optimize import linprog

    aim = np.zeros(system.width)
    aim[region] = sign
    answer = linprog(aim, A_eq=system.matrix, b_eq=targets.astype(np.float64), method="highs")
    if answer.status not in (0, UNBOUNDED):
        raise ArithmeticError(answer.message)
    return np.asarray(answer.x) if answer.status == 0 else None


def listed(bounds: Bounds, most: int) -> Iterator[tuple[int, int, int]]:
    """The first cells with their bounds."""
    columns = (bounds.cells[:most].tolist(), bounds.low[:most].tolist(), bounds.high[:most].tolist())
    yield from zip(*columns, strict=True)

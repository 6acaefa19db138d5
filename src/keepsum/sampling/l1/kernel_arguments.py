"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import NamedTuple

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel_arguments import GeometricTable, PackedTables, SumLaw


class Region(NamedTuple):
    """A region to be drawn: the law of the total of its negative parts, the sum it must have, how these are drawn."""

    law: SumLaw
    goal: int
    method: int


class RegionTables(NamedTuple):
    """Regions with their sums given, ``width`` cells in all; ``starts`` are their first cells.

    ``plus`` and ``minus`` are the laws of positive and negative parts, ``rate`` is that of the latter. ``totals`` has
    the laws of totals that are drawn by a table; that of a region starts at ``table_starts`` and ``guide_starts``.
    """

    plus: GeometricTable
    minus: GeometricTable
    rate: float
    totals: PackedTables
    sizes: IntArray
    goals: IntArray
    modes: IntArray
    methods: IntArray
    table_starts: IntArray
    guide_starts: IntArray
    starts: IntArray
    width: int


class SolvedTables(NamedTuple):
    """A block of regions, ``width`` cells in all, some ``free`` and some ``solved`` for.

    The sums of the latter are -``numerators`` times those of the former, over ``denominator``. The first ``singles`` of
    the free regions have one cell each.
    """

    geometric: GeometricTable
    rate: float
    sizes: IntArray
    starts: IntArray
    modes: IntArray
    methods: IntArray
    free: IntArray
    singles: int
    solved: IntArray
    numerators: IntArray
    denominator: int
    width: int


class SolvedRoom(NamedTuple):
    """What a block of regions writes on its way."""

    scratch: IntArray
    single_sums: IntArray
    free_sums: IntArray
    solved_sums: IntArray


class TwoRowsTables(NamedTuple):
    """Tables of ``rows`` x ``columns`` with zero margins.

    A row has the total of its positive parts from ``totals`` if ``by_table``, else its parts from ``geometric``;
    ``law`` is that of a sum of geometrics over a row. 1 / W(0) lies between ``scale_low`` and ``scale_high``, the two
    tails of a column weigh at most ``tails``, and ``powers`` are a^0, a^1, ...
    """

    geometric: GeometricTable
    law: SumLaw
    totals: PackedTables
    by_table: bool
    epsilon: float
    scale_low: float
    scale_high: float
    tails: float
    powers: Floats
    rows: int
    columns: int


class TwoRowsRoom(NamedTuple):
    """What a table writes on its way: a row's parts, column sums, weights of the columns behind, convolutions."""

    scratch: IntArray
    sums: IntArray
    suffix: Floats
    work: Floats


class Entry(NamedTuple):
    """An entry s of a row given its sum ``goal``, of weight a^(|s| + |s + need|) times that of the columns behind.

    All s within ``reach`` weigh ``total``, and any sum of weights is right to ``error``.
    """

    need: int
    goal: int
    reach: int
    total: float
    error: float

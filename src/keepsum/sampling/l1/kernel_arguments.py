"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import NamedTuple

from keepsum._arrays import IntArray
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

"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel_arguments import IntMatrix, OutInts, Task, Words

FEW_COLUMNS, MANY_COLUMNS = 8, 12  # bits of a column of the first table
LOW_DIGITS = 24  # of a draw by the second table, besides those of its column
PAIR_BITS = 31  # two draws as one number: the first is shifted by so many bits
OR_MORE = 2**18  # what an outcome that means "or more" stands for; all others lie between -2047 and 2046


class NoiseTable(NamedTuple):
    """What the kernels need of a double geometric law. ``low_bits`` is j; without it the second table is empty.

    Outcomes of the first table stand for h, or -1 - h with the sign. Comparisons see the ``usable`` bits of a word.
    """

    high: Words
    low: Words
    column_bits: int  # of the first table
    low_bits: int
    usable: np.uint64


class SumTables(NamedTuple):
    """How likely sums of noise are, against the sum 0, for several numbers of cells (``sum_laws``).

    Law i has ``values`` from ``starts[i]`` on, for the sums 0, q, 2 q, ..., with q = 2^``stride_bits[i]`` and
    ``scales[i]`` = 1 / q; between them it is linear, up to ``errors[i]``.
    """

    values: Floats
    starts: IntArray
    stride_bits: IntArray
    scales: Floats
    errors: Floats
    shift: int  # of the words that accept by them


class RegionTables(NamedTuple):
    """Regions with their sums given, ``width`` cells in all; ``starts`` are their first cells.

    Law i of ``sums`` is that of 2^i cells.
    """

    noise: NoiseTable
    sums: SumTables
    sizes: IntArray
    goals: IntArray
    starts: IntArray
    width: int


DRAW_FREE, ACCEPT_SINGLES, ACCEPT_WIDE, FILL_SOLVED = 0, 1, 2, 3  # the phases of a block of regions


class SolvedTables(NamedTuple):
    """A block of regions, ``width`` cells in all, some ``free`` and some ``solved`` for.

    The sums of the latter are -``numerators`` times those of the former, over ``denominator``. The first ``singles`` of
    the free regions have one cell each. Of ``sums``, law i is that of 2^i cells up to the size of the largest region;
    solved region i has law ``laws[i]``.
    """

    noise: NoiseTable
    sums: SumTables
    sizes: IntArray
    starts: IntArray
    free: IntArray
    singles: int
    solved: IntArray
    laws: IntArray
    numerators: IntMatrix
    denominator: int
    width: int


class SolvedRoom(NamedTuple):
    """What a block of regions writes on its way."""

    single_sums: OutInts
    free_sums: OutInts
    solved_sums: OutInts


SolvedTask: TypeAlias = Annotated[Task, SolvedRoom]

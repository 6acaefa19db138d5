"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import NamedTuple

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel_arguments import PackedTables


class GaussianTables(NamedTuple):
    """The tables of centred discrete Gaussians of growing width, one behind the other.

    ``square`` is the square of the width, ``largest`` that of the widest law that the table is used for.
    """

    square: Floats
    largest: Floats
    packed: PackedTables
    table_start: IntArray
    guide_start: IntArray


class FreeTables(NamedTuple):
    """Independent cells; each row of ``width`` cells has a variance of its own."""

    gaussian: GaussianTables
    variances: Floats
    width: int


class SumsTables(NamedTuple):
    """Regions with sums ``goals``, each row of ``width`` cells; ``starts`` are the first cells of the regions in a row.

    Blocks are accepted if ``deciding``, else all of them stand, and their weights are written down.
    """

    gaussian: GaussianTables
    variances: Floats
    deciding: bool
    sizes: IntArray
    goals: IntArray
    starts: IntArray
    width: int


class FullTables(NamedTuple):
    """Full tables under all margins of one way less, ``per_row`` of them for each variance.

    ``level_start`` is where the sums along each axis start in the room.
    """

    gaussian: GaussianTables
    variances: Floats
    deciding: bool
    shape: IntArray
    level_start: IntArray
    per_row: int


class FullRoom(NamedTuple):
    """What a full table writes on its way: the sums of finished slabs, their innovations, the indices of a row."""

    log_weights: Floats
    sums: IntArray
    innovation: IntArray
    indices: IntArray


class FactorTables(NamedTuple):
    """The triangular factor of a block and the basis of its lattice.

    Attributes
    ----------
    shares
        The variance of each coordinate given those behind it, as a share of sigma^2.
    pointers, rows, factors
        The strictly lower part of the triangular factor, by columns.
    basis_pointers, basis_rows, basis_values
        The basis: for each region its entries.
    """

    shares: Floats
    pointers: IntArray
    rows: IntArray
    factors: Floats
    basis_pointers: IntArray
    basis_rows: IntArray
    basis_values: IntArray


class BlockTables(NamedTuple):
    """Blocks of regions, each of ``width`` cells, ``per_row`` of them for each variance.

    ``form`` is the weight of the square of each sum: those of the regions come first, then others.
    """

    gaussian: GaussianTables
    variances: Floats
    deciding: bool
    factor: FactorTables
    form: Floats
    sizes: IntArray
    starts: IntArray
    width: int
    per_row: int


class BlockRoom(NamedTuple):
    """What a block writes on its way."""

    log_weights: Floats
    coordinates: IntArray
    centres: Floats
    sums: IntArray


class Acceptance(NamedTuple):
    """How a block of so many ``steps`` is accepted: by its factors, times exp(-``mismatch``), right to ``error``."""

    shift: int
    deciding: bool
    steps: int
    mismatch: float
    error: float

"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel_arguments import ACCEPT_BITS, OutFloats, OutInts, PackedTables, Task

PROPOSE, ADD_LOW, ACCEPT = 0, 1, 2  # the steps of a one-dimensional draw
SAMPLE, FILL, DECIDE = 0, 1, 2  # the phases of a block

WIDE_VARIANCE = 2.89  # s^2 from which on factors are 1 but for 4 exp(-2 pi^2 s^2) < 10^-24
WIDE_LOSS = 1e-24
THETA_ERROR = 1e-13  # of one logarithm of a factor, far more than its floats err
TOP = 48.0**2  # s^2 above this gets uniform bits
SCALE = 2.0**ACCEPT_BITS
FARTHEST_CENTRE = 0.75  # no centre lies this far from the whole number that floats call nearest
# Each term of an acceptance's exponent errs by a few units in its last place, s^2 and the centre included.
ERROR = 2.0**-46


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

    log_weights: OutFloats
    sums: OutInts
    innovation: OutInts
    indices: OutInts


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

    log_weights: OutFloats
    coordinates: OutInts
    centres: OutFloats
    sums: OutInts


WeightsTask: TypeAlias = Annotated[Task, OutFloats]  # log weights of blocks
FullTask: TypeAlias = Annotated[Task, FullRoom]
BlockTask: TypeAlias = Annotated[Task, BlockRoom]

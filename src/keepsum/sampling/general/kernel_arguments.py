"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel import MATRIX, OUT_CUBE
from keepsum.sampling.core.kernel_arguments import (
    OutFloatMatrix,
    OutFloats,
    OutIntMatrix,
    OutInts,
    RowsTask,
    Task,
    state_type,
)

Int32Matrix: TypeAlias = Annotated[npt.NDArray[np.int32], MATRIX]
OutFloatCube: TypeAlias = Annotated[npt.NDArray[np.float64], OUT_CUBE]

FLOOR = 0.02  # a smaller variance is drawn with like this one: a step by 1 has chance e^-25
GUIDE = 4096  # cells of a guide
LEAST_SQUARE = 1e-300  # what the square of a diagonal entry of a factor is taken to be where rounding makes it less
FAINT = -42.0  # moves less likely than e^-42 of the likeliest are left out
MOST_SHIFT = 1024  # k on either side of the likeliest; laws so wide that they reach further are not drawn this way

# Jobs and tries that are done, steps of the chain at hand, and whether something exceeded what was proved or foreseen.
CHAIN_STATE = state_type("job", "tries", "step", "exceeded")


class ScaleTables(NamedTuple):
    """Laws of the root of a variance, each in pieces between edges on which the log density is a straight line.

    Piece b of a law has density exp(height + slope (y - edge)) from its edge on; ``unheight`` is exp(-height),
    ``passed`` the mass before it and ``guide`` the piece from which to look. The target's log density is
    ``power`` ln y - ``half`` y^2. ``ratios`` of a region with several cells are ln(law of the sum / law of the mixture)
    for sums 0, 1, ...
    """

    start: IntArray
    edge: Floats
    height: Floats
    unheight: Floats
    slope: Floats
    passed: Floats
    guide: Int32Matrix
    power: Floats
    half: Floats
    ratio_start: IntArray
    ratios: Floats


class SlabTables(NamedTuple):
    """Regions as slabs with one lattice, all slabs adding up to 0; or one slab that is the whole lattice.

    ``pointers``, ``rows`` and ``values`` are the basis of a slab by regions, ``profile[i]`` the first column of row i
    of its form, ``simple`` whether the slab is a row with its sum kept, in the basis e_i - e_last.
    """

    law: IntArray
    slabs: int
    simple: bool
    pointers: IntArray
    rows: IntArray
    values: Floats
    profile: IntArray


class MixtureRoom(NamedTuple):
    """What a proposal writes on its way."""

    squares: OutFloats
    variances: OutFloats
    precisions: OutFloatCube
    form: OutFloatMatrix
    inverse: OutFloatMatrix
    sums: OutFloatMatrix
    roots: OutFloats
    centres: OutFloats
    coordinates: OutFloats
    passed: OutFloats


class MixtureTables(NamedTuple):
    """Proposals of the scale mixture; the last of its words accepts a proposal."""

    scales: ScaleTables
    slabs: SlabTables
    words_per_proposal: int


class ChainRoom(NamedTuple):
    """What those write on their way that do something with proposals."""

    mixture: MixtureRoom
    log_weights: OutFloats
    candidate: OutInts


class RejectionTables(NamedTuple):
    """Proposals, and ln of the bound of their weights."""

    mixture: MixtureTables
    log_bound: float


class ChainTables(NamedTuple):
    """Proposals thinned by a cap, and chains of so many ``steps``: ``fresh``, or each from the end of the last."""

    mixture: MixtureTables
    log_cap: float
    steps: int
    fresh: bool


class PairTables(NamedTuple):
    """Proposals thinned by a cap, and pairs of chains, one ``lag`` steps ahead, given up at step ``last``."""

    mixture: MixtureTables
    log_cap: float
    lag: int
    last: int


class BathTables(NamedTuple):
    """Heat-bath moves: move b adds ``values`` to ``regions`` from ``pointers[b]`` to before ``pointers[b + 1]``.

    Region r has the log law ``logs`` from ``starts[law[r]]`` on.
    """

    law: IntArray
    starts: IntArray
    logs: Floats
    pointers: IntArray
    regions: IntArray
    values: IntArray


class SweepTables(NamedTuple):
    """Heat-bath moves, and chains of so many sweeps: ``fresh``, or each from the end of the last."""

    bath: BathTables
    steps: int
    fresh: bool


class SweepPairTables(NamedTuple):
    """Heat-bath moves, and pairs of chains, one ``lag`` sweeps ahead, given up at sweep ``last``."""

    bath: BathTables
    lag: int
    last: int


class SweepPairRoom(NamedTuple):
    """The two chains of a pair, and the weights of a move."""

    pair: OutIntMatrix
    weights: OutFloats


MixtureTask: TypeAlias = Annotated[RowsTask, ChainRoom]  # rows of proposals
TimesTask: TypeAlias = Annotated[Task, ChainRoom]  # of pairs, whose meeting times are written
SweepTask: TypeAlias = Annotated[RowsTask, OutFloats]
SweepPairTask: TypeAlias = Annotated[Task, SweepPairRoom]

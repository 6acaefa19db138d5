"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel import MATRIX
from keepsum.sampling.core.kernel_arguments import OutIntMatrix, OutInts, state_type

Int16Matrix: TypeAlias = Annotated[npt.NDArray[np.int16], MATRIX]

L1, L2, GAUSSIAN = 0, 1, 2  # kinds of targets
GUIDE_BITS = 11  # of a uniform number, looked up; with the sign a coordinate takes 12 bits, and a word has five
CHUNK_BITS = GUIDE_BITS + 1
CHUNKS = 64 // CHUNK_BITS
OPEN = -(2**15)  # what stands in a table where the first bits do not decide

WALK_STATE = state_type(
    "step",
    "accepted",
    "updates",
    "norm",  # |z| in l1, or its square in l2
    "second_norm",  # that of the second chain of a pair
    "second_accepted",
    "coordinate",
    "residual",  # whether the second chain draws a proposal of its own
    "met",
)


class Columns(NamedTuple):
    """A basis in compressed columns: column j has ``entries[p]`` in ``cells[p]``, starts[j] <= p < starts[j + 1]."""

    starts: IntArray
    cells: IntArray
    entries: IntArray


class PreJumps(NamedTuple):
    """The double geometric laws of the coordinates.

    ``quick[law[j], g]`` is the value of coordinate j that a sign bit and the first bits of a uniform number decide, or
    OPEN where they do not; then ``log_a`` and ``half`` = (1 + a) / 2 invert the law.
    """

    law: IntArray
    quick: Int16Matrix
    log_a: Floats
    half: Floats


class Target(NamedTuple):
    """The law of the noise: its kind (L1, L2, GAUSSIAN) and epsilon, or 1 / 2 sigma^2.

    ``chances[k]`` is exp(-rate k): what a step that lengthens the norm (or its square) by a small k is accepted with.
    """

    kind: int
    rate: float
    chances: Floats


class ProblemTables(NamedTuple):
    """All that a chain is about."""

    columns: Columns
    jumps: PreJumps
    target: Target


class Start(NamedTuple):
    """A chain that starts: its cells, and its coordinates in the basis."""

    z: OutInts
    coordinates: OutInts


class Walk(NamedTuple):
    """A chain that walks to step ``last``: every ``thin``-th state after the burn-in becomes a row of ``out``.

    ``moved``, ``moves`` and ``before`` are for a step's proposal, its coordinates that are not 0, and for the cells
    before it. ``coordinates`` follow the chain in the basis, or are none. ``whole``: a proposal touches most of the
    cells, see ``walk``.
    """

    z: OutInts
    out: OutIntMatrix
    burn_in: int
    thin: int
    last: int
    coordinates: OutInts
    moved: OutInts
    moves: OutInts
    before: OutInts
    whole: bool


class Pair(NamedTuple):
    """A pair of chains that is coupled to step ``last``: cells, the second's coordinates less the first's, moves."""

    x: OutInts
    y: OutInts
    gaps: OutInts
    x_moves: OutInts
    y_moves: OutInts
    last: int

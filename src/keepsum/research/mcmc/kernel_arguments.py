"""What the kernels read: arrays under names. numba knows these classes by name, so they belong to the kernels' text."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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
    quick: npt.NDArray[np.int16]
    log_a: Floats
    half: Floats


class Target(NamedTuple):
    """The law of the noise: its kind (L1, L2, GAUSSIAN) and epsilon, or 1 / 2 sigma^2.

    ``chances[k]`` is exp(-rate k): what a step that lengthens the norm (or its square) by a small k is accepted with.
    """

    kind: int
    rate: float
    chances: Floats


class Scratch(NamedTuple):
    """Where a step of Algorithm 1 works: its proposal's nonzero coordinates, and the state before it.

    ``coordinates`` follow the chain in the basis, or are none. ``whole``: a proposal touches most of the cells, see
    ``walk``.
    """

    coordinates: IntArray
    moved: IntArray
    moves: IntArray
    before: IntArray
    whole: bool

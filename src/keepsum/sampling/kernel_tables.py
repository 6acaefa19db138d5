"""What the kernels read: arrays under names. numba knows these classes by name, so they belong to the kernels' text."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Guide = npt.NDArray[np.uint16]


class Table(NamedTuple):
    """What the kernels need of a geometric law. ``low_bits`` is j; without it the low arrays are empty."""

    high: Words
    high_guide: Guide
    low: Words
    low_guide: Guide
    low_bits: int
    shift: int  # a word's upper 64 - shift bits are used
    guide_shift: int


class PackedTables(NamedTuple):
    """The tables of several laws, one behind the other, as the kernels read them."""

    table: Words
    guide: Guide
    shift: int
    guide_shift: int


class GaussianTables(NamedTuple):
    """The tables of centred discrete Gaussians of growing width, one behind the other.

    ``square`` is the square of the width, ``largest`` that of the widest law that the table is used for.
    """

    square: npt.NDArray[np.float64]
    largest: npt.NDArray[np.float64]
    table: Words
    table_start: npt.NDArray[np.int64]
    guide: Guide
    guide_start: npt.NDArray[np.int64]
    shift: int
    guide_shift: int

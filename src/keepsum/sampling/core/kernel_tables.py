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


class ScaleTables(NamedTuple):
    """Laws of the root of a variance, each in pieces between edges on which the log density is a straight line.

    Piece b of a law has density exp(height + slope (y - edge)) from its edge on; ``unheight`` is exp(-height),
    ``passed`` the mass before it and ``guide`` the piece from which to look. ``power`` and ``half`` make the wanted log
    density power ln y - half y^2.
    ``ratios`` of a region with several cells are ln(law of the sum / law of the mixture) for sums 0, 1, ...
    """

    start: npt.NDArray[np.int64]
    edge: npt.NDArray[np.float64]
    height: npt.NDArray[np.float64]
    unheight: npt.NDArray[np.float64]
    slope: npt.NDArray[np.float64]
    passed: npt.NDArray[np.float64]
    guide: npt.NDArray[np.int32]
    power: npt.NDArray[np.float64]
    half: float
    ratio_start: npt.NDArray[np.int64]
    ratios: npt.NDArray[np.float64]


class SlabTables(NamedTuple):
    """Regions as slabs with one lattice, all slabs adding up to 0; or one slab that is the whole lattice.

    ``pointers``, ``rows`` and ``values`` are the basis of a slab by regions, ``profile[i]`` the first column of row i
    of its form, ``simple`` whether the slab is a row with its sum kept, in the basis e_i - e_last.
    """

    law: npt.NDArray[np.int64]
    slabs: int
    simple: bool
    pointers: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    profile: npt.NDArray[np.int64]


class MixtureRoom(NamedTuple):
    """What a proposal writes on its way."""

    squares: npt.NDArray[np.float64]
    variances: npt.NDArray[np.float64]
    precisions: npt.NDArray[np.float64]
    form: npt.NDArray[np.float64]
    inverse: npt.NDArray[np.float64]
    sums: npt.NDArray[np.float64]
    roots: npt.NDArray[np.float64]
    centres: npt.NDArray[np.float64]
    coordinates: npt.NDArray[np.float64]
    passed: npt.NDArray[np.float64]

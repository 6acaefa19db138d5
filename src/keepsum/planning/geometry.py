"""The lattice of a plan in numbers: dimension, volume, shortest vectors, and the variance of single cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from keepsum._arrays import Floats
from keepsum.lattice.structure import FORCED, FREE, Structure, System

if TYPE_CHECKING:
    from keepsum.sampling.gaussian.factors import Factor

_FACTORS: WeakKeyDictionary[System, dict[bytes, Factor | None]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Geometry:
    """What calibration and tail bounds need to know of a lattice.

    Attributes
    ----------
    dimension
        Its dimension m.
    log_volume
        ln sqrt(det) of its Gram matrix, or None where a block is too large to compute it.
    gram_schmidt
        The sum of the squared Gram-Schmidt lengths of a basis; half its square root bounds the covering radius.
    shortest
        The squared length of its shortest vectors, or a lower bound.
    """

    dimension: int
    log_volume: float | None
    gram_schmidt: float | None
    shortest: int


def geometry(structure: Structure) -> Geometry:
    """Closed forms for free cells, sums and tables; a triangular factor for other blocks."""
    free = int(structure.sizes[structure.part == FREE].sum())
    sums = structure.sizes[(structure.part == FORCED) & (structure.sizes > 1)].astype(np.float64)
    dimension = free + int((sums - 1).sum())
    volume: float | None = float(np.log(sums).sum()) / 2
    lengths: float | None = free + float((sums - 1 + harmonic(sums - 1)).sum())
    shortest = [1] * bool(free) + [2] * bool(len(sums))
    for block in structure.blocks:
        sizes = structure.sizes[block.regions]
        dimension += int(sizes.sum()) - block.system.rank
        shortest.append(_shortest(block.system, int(sizes.max())))
        of_block = block_volume(block.system, sizes)
        volume = None if of_block is None or volume is None else volume + of_block[0]
        lengths = None if of_block is None or lengths is None else lengths + of_block[1]
    return Geometry(dimension, volume, lengths, min(shortest))


def _shortest(system: System, largest: int) -> int:
    """No vector of a block has a single entry, and in a region of two cells there is one of squared length 2."""
    if largest > 1 or system.grid is None:
        return 2
    return int(2 ** len(system.grid.shape))


def harmonic(n: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """1 + 1/2 + ... + 1/n."""
    few = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, 33))])
    large = np.maximum(n, 32)  # where the rest of the series is below 1e-14
    series = np.log(large) + np.euler_gamma + 1 / (2 * large) - 1 / (12 * large**2) + 1 / (120 * large**4)
    return np.where(n < 32, few[np.minimum(n, 32).astype(np.int64)], series - 1 / (252 * large**6))


def block_volume(system: System, sizes: npt.NDArray[np.int64]) -> tuple[float, float] | None:
    """Ln sqrt(det) of a block and the sum of its squared Gram-Schmidt lengths."""
    if system.grid is not None and sizes.max() == 1:
        return _grid_volume(system.grid.shape)
    factor = block_factor(system, sizes.tobytes())
    if factor is None:
        return None
    inside = sizes[sizes > 1].astype(np.float64)
    # Cells of a region with its sum: n for the differences, 1/n each in the form of the sums, so the two cancel.
    volume = -float(np.log(factor.shares).sum()) / 2 + float(np.log(inside).sum()) / 2
    lengths = float((1 / factor.shares).sum()) + float((inside - 1 + harmonic(inside - 1)).sum())
    return volume, lengths


def _grid_volume(shape: tuple[int, ...]) -> tuple[float, float]:
    """A tensor product: determinants to the power of the other dimensions, lengths multiplied."""
    dimension = math.prod(n - 1 for n in shape)
    volume = sum(math.log(n) * dimension / (n - 1) for n in shape) / 2
    lengths = math.prod(n - 1 + float(harmonic(np.array([n - 1.0]))[0]) for n in shape)
    return volume, lengths


def block_factor(system: System, sizes: bytes) -> Factor | None:
    """The triangular factor of a block, computed once for each form."""
    from keepsum.sampling.gaussian.factors import make_factor

    known = _FACTORS.setdefault(system, {})
    if sizes not in known:
        known[sizes] = make_factor(system.basis, np.frombuffer(sizes, dtype=np.int64))
    return known[sizes]


def cell_share(structure: Structure, region: int) -> float | None:
    """The variance of a cell's Gaussian noise as a fraction of sigma^2, for wide noise."""
    size = int(structure.sizes[region])
    part = int(structure.part[region])
    if part == FREE:
        return 1.0
    if part == FORCED:
        return 1 - 1 / size
    block = structure.blocks[part]
    sizes = structure.sizes[block.regions]
    if block.system.grid is not None and sizes.max() == 1:
        return math.prod(1 - 1 / n for n in block.system.grid.shape)
    place = int(np.flatnonzero(block.regions == region)[0])
    shares = summed_out_shares(block.system) if (sizes == size).all() else None
    if shares is not None:
        return 1 - 1 / size + float(shares[place]) / size
    factor = block_factor(block.system, sizes.tobytes())
    if factor is None:
        return None
    return 1 - 1 / size + factor.variance(place) / size**2


def summed_out_shares(system: System) -> Floats | None:
    """The variance of each region of one cell as a fraction of sigma^2, where every component of a collapse is full.

    The diagonal of the projection to the lattice. A vector z with row sums m is a table under both margins in each
    component, and what is left has the entry m / C in all C places of a row: it has the same row sums and column sums,
    and is orthogonal to such tables. It projects to the lattice of m, in the units of 1 / C.
    """
    if system.collapses is None or not all(collapse.full for collapse in system.collapses):
        return None
    shares = np.zeros(len(system.collapses[-1].component))
    for collapse in reversed(system.collapses):
        live = collapse.live
        row = collapse.row[live]
        part = collapse.component[row]
        _, rows, columns = collapse.sizes
        both = (1 - 1 / rows) * (1 - 1 / columns)
        before = np.zeros(len(collapse.row))
        before[live] = both[part] + shares[row] / columns[part]
        shares = before
    return shares

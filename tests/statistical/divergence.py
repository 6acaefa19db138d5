"""The exact divergence between Gaussian noise on a small lattice and the same noise shifted, by enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

import keepsum as ks

LATTICES = {
    "A1": [[1, 1]],
    "A2": [[1, 1, 1]],
    "A3": [[1, 1, 1, 1]],
    "2 x 2": [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]],
    "3 x 3": [[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1],
              [1, 0, 0, 1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0, 0, 1, 0]],
}  # fmt: skip


def used(name: str, sigma: float, epsilon: float, delta: float) -> float:
    """The largest share of the allowed delta that any shift of the lattice uses up.

    For a shift D at distance r the smallest delta that makes the guarantee true is the sum of
    max(0, P(z) - e^(eps r) P(z - D)), and (e^(eps r) - 1)/(e^eps - 1) delta is allowed, until that is 1.
    """
    farthest = math.log1p(math.expm1(epsilon) / delta) / epsilon

    def share(distance: float, needed: Callable[[float], float]) -> float:
        loss = epsilon * distance
        return needed(loss) / (math.expm1(loss) / math.expm1(epsilon) * delta)

    return max(share(math.sqrt(square), needed) for square, needed in shifts(name, sigma, farthest))


def largest_delta(name: str, sigma: float, epsilon: float, square: int) -> float:
    """The largest delta at this epsilon of any shift of at most this squared length."""
    return max(needed(epsilon) for _, needed in shifts(name, sigma, math.sqrt(square) + 1e-9))


def shifts(name: str, sigma: float, farthest: float) -> Iterator[tuple[int, Callable[[float], float]]]:
    """The shifts D of the lattice, one of each pair D and -D: the squared length, and delta for an epsilon."""
    basis = np.asarray(ks.Lattice(LATTICES[name]).basis)
    gram = basis.T @ basis
    # Coordinates whose vectors weigh something: |v_j| <= |z| times the length of the dual vector.
    dual = np.sqrt(np.diag(np.linalg.inv(gram)))
    box = np.ceil(dual * 7.5 * sigma).astype(int) + 1
    axes = [np.arange(-b, b + 1) for b in box]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    law = np.exp(-np.einsum("...i,ij,...j->...", grid, gram, grid) / (2 * sigma**2))
    law /= law.sum()
    reach = np.minimum(np.ceil(dual * farthest).astype(int), 2 * box)
    for shift in product(*(range(-r, r + 1) for r in reach)):
        v = np.array(shift)
        square = int(v @ gram @ v)
        if not 0 < math.sqrt(square) <= farthest or next(x for x in shift if x) < 0:
            continue
        yield square, partial(_needed, law, shift)


def _needed(law: npt.NDArray[np.float64], shift: tuple[int, ...], epsilon: float) -> float:
    """The sum of max(0, P(z) - e^eps P(z - D)), with all that the box has no other side of."""
    here = tuple(slice(max(0, s), n + min(0, s)) for s, n in zip(shift, law.shape, strict=True))
    there = tuple(slice(max(0, -s), n + min(0, -s)) for s, n in zip(shift, law.shape, strict=True))
    if any(part.start >= part.stop for part in here):
        return 1.0
    return float(np.maximum(0.0, law[here] - math.exp(epsilon) * law[there]).sum() + 1.0 - law[here].sum())

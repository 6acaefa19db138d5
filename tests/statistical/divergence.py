"""The exact divergence between Gaussian noise on a small lattice and the same noise shifted, by enumeration."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

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
    basis = np.asarray(ks.Lattice(LATTICES[name]).basis)
    gram = basis.T @ basis
    # Coordinates whose vectors weigh something: |v_j| <= |z| times the length of the dual vector.
    dual = np.sqrt(np.diag(np.linalg.inv(gram)))
    box = np.ceil(dual * 7.5 * sigma).astype(int) + 1
    axes = [np.arange(-b, b + 1) for b in box]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    law = np.exp(-np.einsum("...i,ij,...j->...", grid, gram, grid) / (2 * sigma**2))
    law /= law.sum()
    farthest = math.log1p(math.expm1(epsilon) / delta) / epsilon
    reach = np.minimum(np.ceil(dual * farthest).astype(int), 2 * box)
    worst = 0.0
    for shift in product(*(range(-r, r + 1) for r in reach)):
        v = np.array(shift)
        distance = math.sqrt(v @ gram @ v)
        if not 0 < distance <= farthest or next(x for x in shift if x) < 0:  # D and -D are alike
            continue
        here = tuple(slice(max(0, s), n + min(0, s)) for s, n in zip(shift, law.shape, strict=True))
        there = tuple(slice(max(0, -s), n + min(0, -s)) for s, n in zip(shift, law.shape, strict=True))
        if any(part.start >= part.stop for part in here):
            needed = 1.0
        else:
            kept = np.maximum(0.0, law[here] - math.exp(epsilon * distance) * law[there]).sum()
            needed = kept + 1.0 - law[here].sum()
        worst = max(worst, needed / (math.expm1(epsilon * distance) / math.expm1(epsilon) * delta))
    return worst

"""A sampler of your own for l1 Laplace noise: independent cells, drawn again until every kept total is unchanged.

The target is Keepsum's, so its loss is proved; that this function draws from it is your claim, which the certificate
states as such. Replace ``draw`` by yours: it is given the lattice, the mechanism and a source of randomness, but no
count.
"""

from __future__ import annotations

import numpy as np

import keepsum as ks


def laplace_cell(epsilon, rng: ks.Rng) -> int:
    """A whole number z with probability proportional to exp(-epsilon |z|), exactly."""
    while True:
        size = 0
        while rng.bernoulli_exp(epsilon):
            size += 1
        negative = rng.below(2)
        if size or not negative:  # 0 has one sign
            return -size if negative else size


def draw(lattice, mechanism, draws: int, rng: ks.Rng) -> np.ndarray:
    """Noise in proportion to exp(-epsilon |z|): slow where many cells are in a total, and exact."""
    rows = np.empty((draws, lattice.width), dtype=np.int64)
    for row in rows:
        while True:
            row[:] = [laplace_cell(mechanism.epsilon, rng) for _ in range(lattice.width)]
            if not (lattice.matrix @ row).any():
                break
    return rows


def main(rng: ks.Rng | None = None) -> ks.Release:
    """A release with this sampler."""
    axes = {"county": ["Alpha", "Beta"], "sex": ["f", "m"]}
    table = ks.Table.from_array([[15, 1], [20, 10]], axes=axes)
    noise = ks.OwnNoise(ks.Laplace(epsilon=2), draw, name="rejection of independent cells", version="1")
    return ks.release(table, keep=[[]], mechanism=noise, rng=rng)


if __name__ == "__main__":
    print("\n".join(main().certificate.warnings))

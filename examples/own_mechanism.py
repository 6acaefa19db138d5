"""A mechanism of your own: noise with heavy tails, and a loss that you claim for it.

Each cell z has weight 1 / (1 + z^2)^2, and all cells are drawn again until every kept total is unchanged. One step of a
cell changes a weight by a factor of at most (5/2)^2, from 1 to 2, and the sum of all weights is the same for all tables
with the same kept totals. So the loss is at most 2 ln(5/2) < 11/6 per unit of l1 distance, which is what
``ks.Laplace.per_unit(epsilon="11/6")`` has. Keepsum does not check that argument, and the certificate says so.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import keepsum as ks

LOSS = Fraction(11, 6)  # at least 2 ln(5/2), per unit of l1 distance


def heavy_cell(rng: ks.Rng) -> int:
    """A whole number z with probability proportional to 1 / (1 + z^2)^2, exactly, by rejection.

    Proposals are 0 with probability 4/7, and otherwise n > 0 with probability 4 / (n (n + 1) (n + 2)): n is more than k
    with probability k / (k + 2) where it is at least k. The ratio of the weights is largest, 3/8, at n = 1.
    """
    while True:
        if rng.below(7) < 4:
            return 0
        n = 1
        while rng.bernoulli(Fraction(n, n + 2)):
            n += 1
        if rng.bernoulli(Fraction(2 * n * (n + 1) * (n + 2), 3 * (1 + n * n) ** 2)):
            return n if rng.below(2) else -n


def draw(lattice, mechanism, draws: int, rng: ks.Rng) -> np.ndarray:
    """Noise of all cells; it must have at most the loss of ``mechanism``, which is what the release states."""
    if mechanism.norm != "l1" or mechanism.epsilon < LOSS:
        raise ks.InputError(f"This noise loses {LOSS} per unit of l1 distance. Claim that much, or more.")
    rows = np.empty((draws, lattice.width), dtype=np.int64)
    for row in rows:
        while True:
            row[:] = [heavy_cell(rng) for _ in range(lattice.width)]
            if not (lattice.matrix @ row).any():
                break
    return rows


def noise() -> ks.OwnNoise:
    """The mechanism, for ``ks.plan`` and ``ks.release``."""
    law = "1 / (1 + z^2)^2 for each cell, over all z that keep every total"
    claimed = ks.Laplace.per_unit(epsilon=LOSS)
    return ks.OwnNoise(claimed, draw, name="heavy tails", version="1", law=law, parameters={"power": 2})


def main(rng: ks.Rng | None = None) -> ks.Release:
    """A release with this mechanism."""
    axes = {"county": ["Alpha", "Beta"], "sex": ["f", "m"]}
    table = ks.Table.from_array([[15, 1], [20, 10]], axes=axes)
    return ks.release(table, keep=[[]], mechanism=noise(), rng=rng)


if __name__ == "__main__":
    print("\n".join(main().certificate.warnings))

"""A target of your own for the chains of ``ks.mcmc``: noise with heavy tails that keeps a total.

Nothing here is differentially private by itself: a chain needs a proof of its target, and a bound of how near it comes.
"""

from __future__ import annotations

import numpy as np

import keepsum as ks


def log_density(z: np.ndarray) -> float:
    """The logarithm of q(z), up to a constant: independent discrete Cauchy numbers, conditioned to sum to 0."""
    return -float(np.log1p(z.astype(float) ** 2).sum())


def main(seed: int = 1, steps: int = 200) -> tuple[np.ndarray, float]:
    """A draw of a chain, and an estimate of how far its law may be from the target (total variation)."""
    lattice = ks.Lattice([[1, 1, 1, 1]])
    kernel = ks.mcmc.LatticeMetropolis(lattice, log_density, 0.4)
    rng = ks.mcmc.Draws(ks.rng(seed=seed).stream())
    state = kernel.start(rng)
    for _ in range(steps):
        state, _ = kernel.step(rng, state)
    times = ks.mcmc.meeting_times_of(kernel, lag=steps, pairs=40, rng=ks.rng(seed=seed))
    return state.z, ks.mcmc.tv_upper_bound(times, t=steps).estimate


if __name__ == "__main__":
    draw, distance = main()
    print(f"noise {draw.tolist()}, total variation about {distance:.3g}")

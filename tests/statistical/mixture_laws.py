"""The general sampler's parts as its tests make them, and small lattices to draw."""

from fractions import Fraction
from functools import cache

import numpy as np
from laws import solved_law, table_law

import keepsum as ks
from keepsum.lattice.structure import decompose
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.chains import HeatBathChain, MixtureChain, MixtureRejection
from keepsum.sampling.general.heat_bath import HeatBath, laplace_logs, short_moves, table_moves
from keepsum.sampling.general.mixture import Mixture
from keepsum.sampling.general.scales import lattice_slab, table_slabs
from keepsum.sampling.general.weights import Renewal, thinned
from support import margins

# 14 records in the 7 regions of three circles, two each; sums that overlap; a lattice of large determinant.
CIRCLES = ks.Invariants.subsets(14, [[c for c in range(14) if (c // 2 + 1) >> k & 1] for k in range(3)])
OVERLAP = ks.Invariants.subsets(5, [[0, 1, 2], [2, 3, 4]])
STEEP = ks.Invariants.matrix([[2, 3, 5]])


def block_of(keep):
    structure = decompose(keep.coefficients)
    (block,) = structure.blocks
    order = np.concatenate([structure.cells(r) for r in block.regions.tolist()])
    return block.system, structure.sizes[block.regions], order


def mixture_of(keep, epsilon, tau):
    system, sizes, _ = block_of(keep)
    slabs = table_slabs(system.grid.column) if system.grid is not None else lattice_slab(system.basis, system.width)
    return Mixture.of(float(epsilon), slabs, system.matrix, sizes, tau)


def drawn(sampler, keep, count, seed=1):
    """Draws in the order of the user's cells."""
    _, _, order = block_of(keep)
    own = np.empty((count, sampler.width), dtype=np.int64)
    sampler.draw_into(own, rng(seed=seed))
    out = np.empty_like(own)
    out[:, order] = own
    assert not np.asarray(keep.coefficients @ out.T).any()
    return out


def rejection(keep, epsilon, tau):
    _, sizes, _ = block_of(keep)
    return MixtureRejection(Fraction(epsilon), mixture_of(keep, Fraction(epsilon), tau), sizes)


def chain(keep, epsilon, tau, steps, near=1.0):
    """Without a cap, or with one that brings the first candidate near the law."""
    _, sizes, _ = block_of(keep)
    mixture = mixture_of(keep, Fraction(epsilon), tau)
    _, log_weights = mixture.propose(2_000, rng(seed=2).stream())
    renewal = thinned(log_weights, near) if near < 1 else Renewal.of(log_weights)
    caps = {"log_cap": renewal.log_cap, "tries": renewal.tries}
    return MixtureChain(Fraction(epsilon), mixture, sizes, 1, steps, **caps)


def bath(keep, epsilon, steps, moves=None):
    system, sizes, _ = block_of(keep)
    distinct, law = np.unique(sizes, return_inverse=True)
    logs = tuple(laplace_logs(float(Fraction(epsilon)), n) for n in distinct.tolist())
    own = moves or (table_moves(system.grid) if system.grid is not None else short_moves(system.basis))
    return HeatBathChain(Fraction(epsilon), HeatBath(logs, law, own), sizes, 1, steps)


LAWS = {
    ("3 x 3", "0.5"): (margins(3, 3), cache(lambda: table_law(3, 3, 0.5, reach=2))),
    ("3 x 3", "1"): (margins(3, 3), cache(lambda: table_law(3, 3, 1.0, reach=3))),
    ("steep", "0.25"): (STEEP, cache(lambda: solved_law([[2, 3, 5]], [0, 1], 0.25, reach=30, box=150))),
    ("steep", "1"): (STEEP, cache(lambda: solved_law([[2, 3, 5]], [0, 1], 1.0, reach=20, box=60))),
    ("overlap", "0.5"): (
        OVERLAP,
        cache(lambda: solved_law(OVERLAP.coefficients.toarray(), [0, 2, 3], 0.5, reach=10, box=44)),
    ),
    ("overlap", "1"): (
        OVERLAP,
        cache(lambda: solved_law(OVERLAP.coefficients.toarray(), [0, 2, 3], 1.0, reach=8, box=24)),
    ),
}

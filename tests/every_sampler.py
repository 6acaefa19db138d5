"""Draw from every sampler, which calls every kernel: once each, with small cases.

``test_native.py`` does so with libraries that check themselves. A new kernel gets a draw here.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import keepsum as ks
from keepsum.lattice.structure import decompose
from keepsum.projection.nearest import nearest
from keepsum.sampling.gaussian.factors import make_factor
from keepsum.sampling.gaussian.sums import table_steps
from keepsum.sampling.general.chains import HeatBathChain, MixtureChain, MixtureRejection
from keepsum.sampling.general.heat_bath import HeatBath, laplace_logs, table_moves
from keepsum.sampling.general.mixture import Mixture, OneWidth
from keepsum.sampling.general.scales import accumulate, table_slabs
from keepsum.sampling.l1.focus.sampler import NestedFocus
from keepsum.sampling.l1.focus.tree import NestedTotals
from keepsum.sampling.l1.forced_sums import ForcedSums
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from support import margins

TOTALS = {
    "a sum and free cells": ks.Invariants.subsets(6, [[0, 1, 2]]),
    "a table": margins(3, 4),
    "overlapping sums": ks.Invariants.subsets(5, [[0, 1, 2], [2, 3, 4]]),
}
MECHANISMS = (ks.Laplace.per_unit(epsilon=1), ks.Laplace.per_unit(epsilon=1, norm="l2"), ks.Gaussian(sigma=2))


def draw_all() -> None:
    """Everything."""
    for keep in TOTALS.values():
        for mechanism in MECHANISMS:
            ks.plan(keep=keep, mechanism=mechanism).sample(2)
    ColumnSplitting(Fraction(1), [[1, 2, 1], [1, 1, 1], [1, 1, 1]]).draw_into(
        np.empty((2, 10), dtype=np.int64), ks.rng()
    )
    NestedFocus(NestedTotals([-1], [2], [Fraction(1)], Fraction(1))).draw_into(
        np.empty((2, 2), dtype=np.int64), ks.rng()
    )
    general()
    once_in_a_while()
    structure = decompose(margins(2, 2).coefficients)
    for norm in ("l1", "l2"):
        nearest(structure, np.array([-1, 3, 3, 0]), norm)
    lattice = ks.Lattice(margins(3, 3).coefficients)
    for mechanism in MECHANISMS:
        ks.mcmc.metropolis(lattice, mechanism, 10, 0.4)
        ks.mcmc.meeting_times(lattice, mechanism, 0.4, lag=5, pairs=2)


def once_in_a_while() -> None:
    """What large regions, ties and bounds need."""
    ForcedSums(Fraction(1, 4), [2**19 + 1000]).draw_into(np.empty((1, 2**19 + 1000), dtype=np.int64), ks.rng())
    list(table_steps(np.zeros(9, dtype=np.int64), np.array([3, 3])))
    factor = make_factor([{0: 1, 1: -1}, {1: 1, 2: -1}], np.array([1, 1, 2]))
    factor.centres(np.array([2, -1]))
    accumulate(1e-16, np.full(9, 0.5), 1e-16)


def general() -> None:
    """The general samplers, and pairs of their chains."""
    structure = decompose(margins(3, 3).coefficients)
    (block,) = structure.blocks
    sizes, half = structure.sizes[block.regions], Fraction(1, 2)
    slabs = table_slabs(block.system.grid.column)
    mixture = Mixture.of(0.5, slabs, block.system.matrix, sizes, 0.5)
    bath = HeatBath((laplace_logs(0.5, 1),), np.zeros(9, dtype=np.int64), table_moves(block.system.grid))
    noise = np.empty((2, 9), dtype=np.int64)
    mixture.propose(2, ks.rng().stream())
    MixtureRejection(half, mixture, sizes).draw_into(noise, ks.rng())
    for chain in (
        MixtureChain(half, mixture, sizes, 1, 5),
        MixtureChain(None, OneWidth(slabs, 1.0), sizes, 1, 5),
        HeatBathChain(half, bath, sizes, 1, 5),
    ):
        chain.draw_into(noise, ks.rng())
        chain.meeting_times(2, 4, 1_000, ks.rng())


if __name__ == "__main__":
    draw_all()

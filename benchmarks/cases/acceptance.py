"""Rejection from the scale mixture: how many proposals are accepted, and how many are proved to be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import keepsum as ks
from benchmarks.peers import EPSILON
from benchmarks.registry import Bench, case
from benchmarks.systems import margins, random_system
from keepsum.lattice.structure import decompose
from keepsum.planning.selection.general import BlockProblem, settle
from keepsum.sampling.general.mixture import Mixture

SYSTEMS = {"4x4": margins(4, 4), "6x6": margins(6, 6), "8x8": margins(8, 8), "random": random_system()}
PROPOSALS, FEW_PROPOSALS = 200_000, 2_000


@case("acceptance of rejection", quick=False)
def acceptance(bench: Bench) -> None:
    """Two-way tables too, though plans draw them in another way."""
    for name, keep in SYSTEMS.items():
        mixture = rejection(keep)
        _, log_weights = mixture.propose(bench.pick(PROPOSALS, FEW_PROPOSALS), ks.rng(seed=1).stream())
        rate = float(np.exp(log_weights - mixture.log_bound).mean())
        record = f"rejection/{name}/{EPSILON}"
        bench.figure(f"{name}: proposals accepted, of a hundred", 100 * rate, "")
        bench.record(f"{record}/accepted", rate, "share")
        bench.record(f"{record}/proved", mixture.bounds.acceptance, "share")


def rejection(keep: ks.Invariants) -> Mixture:
    """Proposals with the threshold that a plan would choose."""
    structure = decompose(keep.coefficients)
    (block,) = structure.blocks
    problem = BlockProblem(block.system, structure.sizes[block.regions], 1, Fraction(EPSILON))
    outcome = settle(problem, ())
    assert outcome.method == "mixture_rejection", outcome
    return problem.mixture.at(outcome.tau)

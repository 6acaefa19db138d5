"""The systems that the general sampler is measured on, and a chain for each, whichever sampler a plan would choose."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import keepsum as ks
from keepsum.lattice.structure import decompose
from keepsum.planning.selection.general import CANDIDATE_TV, Problem, mixture_chain, slabs_of
from keepsum.sampling.general.chains import MixtureChain
from keepsum.sampling.general.mixture import Mixture, Tuned


def margins(*shape: int) -> ks.Invariants:
    """A table under all margins of one way less."""
    axes = [f"x{k}" for k in range(len(shape))]
    domain = ks.Domain({axis: list(range(n)) for axis, n in zip(axes, shape, strict=True)})
    return ks.Invariants.margins(domain, [[other for other in axes if other != axis] for axis in axes])


def circles() -> ks.Invariants:
    """14 records as the 7 regions of three circles, two records each."""
    return ks.Invariants.subsets(14, [[c for c in range(14) if (c // 2 + 1) >> k & 1] for k in range(3)])


def random_system() -> ks.Invariants:
    """Five totals of 40 cells with weights 0 to 3."""
    return ks.Invariants.matrix(np.random.default_rng(5).integers(0, 4, size=(5, 40)))


SYSTEMS = {
    "4 × 4": margins(4, 4),
    "10 × 10": margins(10, 10),
    "20 × 20": margins(20, 20),
    "102 × 5": margins(102, 5),
    "4 × 4 × 4": margins(4, 4, 4),
    "circles": circles(),
    "random 5 × 40": random_system(),
}


def general_chain(keep: ks.Invariants, epsilon: str, candidate_tv: float = CANDIDATE_TV) -> tuple[MixtureChain, Tuned]:
    """The chain of mixture proposals of the one block of these totals, with that TV of the first candidates."""
    structure = decompose(keep.coefficients)
    (block,) = structure.blocks
    sizes = structure.sizes[block.regions]
    mixture = Mixture.of(float(Fraction(epsilon)), slabs_of(block.system), block.system.matrix, sizes, tau=0.1)
    return mixture_chain(Problem(block.system, sizes, 1, Fraction(epsilon)), mixture, candidate_tv)

"""The kept totals that are measured, and chains of the general sampler, even where a plan would sample exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import keepsum as ks
from keepsum.lattice.structure import decompose
from keepsum.planning.selection.general import CANDIDATE_TV, BlockProblem, mixture_chain, slabs_of
from keepsum.sampling.general.chains import MixtureChain
from keepsum.sampling.general.mixture import Mixture, Tuned


def margins(*shape: int) -> ks.Invariants:
    """A table under all margins of one way less."""
    axes = [f"x{k}" for k in range(len(shape))]
    domain = ks.Domain({axis: list(range(n)) for axis, n in zip(axes, shape, strict=True)})
    return ks.Invariants.margins(domain, [[other for other in axes if other != axis] for axis in axes])


def groups(cells: int, count: int) -> ks.Invariants:
    """That many groups of cells of one size, at least so many cells in all, each group with its total kept."""
    domain = ks.Domain({"group": range(count), "cell": range(-(-cells // count))})
    return ks.Invariants.margins(domain, [["group"]])


def county_hierarchy(cells: int) -> ks.Invariants:
    """The totals of 51 states, of the 3,143 counties within them and of all, over at least so many cells."""
    states = [f"state {s}" for s in range(51)]
    counties = [(states[c % 51], f"county {c}") for c in range(3143)]
    kinds = [f"kind {k}" for k in range(-(-cells // 3143))]
    domain = ks.Domain({"state": states, "county": counties, "kind": kinds}, within={"county": "state"})
    return ks.Invariants.margins(domain, [["county"], ["state"], []])


def cycle(length: int) -> ks.Invariants:
    """A four-way table under the two-way margins of neighbours in the cycle a, b, c, d."""
    domain = ks.Domain({axis: list(range(length)) for axis in "abcd"})
    return ks.Invariants.margins(domain, [["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]])


def cube_with_zeros(length: int) -> ks.Invariants:
    """A cube under all two-way margins with structural zeros on its diagonal."""
    domain = ks.Domain({axis: list(range(length)) for axis in "abc"})
    domain = domain.without(*(dict.fromkeys("abc", k) for k in range(length)))
    return ks.Invariants.margins(domain, [["a", "b"], ["a", "c"], ["b", "c"]])


def square_with_diagonals(length: int) -> ks.Invariants:
    """The rows, columns and diagonals of a square, which go round."""
    cell = np.arange(length**2).reshape(length, length)
    diagonals = [cell[np.arange(length), (np.arange(length) + k) % length] for k in range(length)]
    return ks.Invariants.subsets(length**2, [line.tolist() for line in (*cell, *cell.T, *diagonals)])


def circles() -> ks.Invariants:
    """14 records as the 7 regions of three circles, two records each."""
    return ks.Invariants.subsets(14, [[c for c in range(14) if (c // 2 + 1) >> k & 1] for k in range(3)])


def random_system() -> ks.Invariants:
    """Five totals of 40 cells with weights 0 to 3."""
    return ks.Invariants.matrix(np.random.default_rng(5).integers(0, 4, size=(5, 40)))


SYSTEMS = {
    "3 × 3 × 3 × 3, cycle": cycle(3),
    "4 × 4 × 4 × 4, cycle": cycle(4),
    "4 × 4 × 4, zeros": cube_with_zeros(4),
    "5 × 5 × 5, zeros": cube_with_zeros(5),
    "10 × 10, diagonals": square_with_diagonals(10),
    "circles": circles(),
    "random 5 × 40": random_system(),
}


def general_chain(keep: ks.Invariants, epsilon: str, candidate_tv: float = CANDIDATE_TV) -> tuple[MixtureChain, Tuned]:
    """The chain of mixture proposals of the one block of these totals, with that TV of the first candidates."""
    structure = decompose(keep.coefficients)
    (block,) = structure.blocks
    sizes = structure.sizes[block.regions]
    mixture = Mixture.of(float(Fraction(epsilon)), slabs_of(block.system), block.system.matrix, sizes, tau=0.1)
    return mixture_chain(BlockProblem(block.system, sizes, 1, Fraction(epsilon)), mixture, candidate_tv)

"""What plans know of totals that can be summed out, in closed form, against searches, factors and linear programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from keepsum.accuracy import disclosure
from keepsum.lattice.structure import System, decompose
from keepsum.planning import groups
from keepsum.planning.geometry import block_factor, summed_out_shares
from lattice.summed_out import DECOMPOSABLE, apart


def systems(name):
    return [block.system for block in decompose(sparse.csr_array(apart(DECOMPOSABLE[name]))).blocks]


@pytest.mark.parametrize("name", DECOMPOSABLE)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_smallest_change_is_that_of_a_search(name, norm, monkeypatch):
    for system in systems(name):
        if system.two_way is not None:
            continue
        for sizes in (np.ones(system.width, dtype=np.int64), np.arange(system.width) % 3 + 1):
            quick = groups._overlap_distance(system, sizes, norm)
            with monkeypatch.context() as patch:
                patch.setattr(groups, "on_squares", lambda matrix: np.zeros(matrix.shape[1], dtype=bool))
                searched = groups._overlap_distance(system, sizes, norm)
            assert quick == searched


def without_closed_forms(system):
    """The same totals as a block that nothing is recognised of."""
    plain = System(system.matrix, system.rank, None)
    vars(plain)["collapses"] = None
    vars(plain)["two_way"] = None
    return plain


@pytest.mark.parametrize("name", DECOMPOSABLE)
def test_variances_are_those_of_the_triangular_factor(name):
    known = 0
    for system in systems(name):
        shares = summed_out_shares(system)
        if shares is None:
            assert "zero" in name or "one sex" in name or "few" in name or "left out" in name
            continue
        known += 1
        factor = block_factor(without_closed_forms(system), np.ones(system.width, dtype=np.int64).tobytes())
        assert shares == pytest.approx([factor.variance(j) for j in range(system.width)], abs=1e-5)
        assert shares.sum() == pytest.approx(system.width - system.rank)


@pytest.mark.parametrize("name", DECOMPOSABLE)
def test_ranges_are_those_of_linear_programs(name):
    rng = np.random.default_rng(5)
    structure = decompose(sparse.csr_array(apart(DECOMPOSABLE[name])))
    width = len(structure.sizes)
    wide = np.full(width, 10**6)
    plain = replace(
        structure, blocks=tuple(replace(b, system=without_closed_forms(b.system)) for b in structure.blocks)
    )
    if not any(disclosure._in_closed_form(block.system) for block in structure.blocks):
        assert "zero" in name or "one sex" in name or "few" in name
        return
    for largest in (1, 4):
        counts = rng.integers(0, largest + 1, size=width)
        ours, programs = (disclosure.bounded_cells(parts, counts, wide) for parts in (structure, plain))
        assert ours.not_checked == programs.not_checked == 0
        assert ours.cells.tolist() == programs.cells.tolist()
        assert ours.low.tolist() == programs.low.tolist()
        assert ours.high.tolist() == programs.high.tolist()

"""What no general sampler can draw is told before any pilot is run: from dimensions, and from covariances."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from keepsum.planning.selection import general
from keepsum.planning.selection.choice import BUDGET, block_cells
from keepsum.planning.selection.general import BlockProblem


def problem(shape: tuple[int, ...], margins: list[str], epsilon: str) -> BlockProblem:
    """The only block of a table whose axes are letters."""
    domain = ks.Domain({axis: range(n) for axis, n in zip("ABCDE", shape, strict=False)})
    plan = ks.plan(domain, keep=[list(margin) for margin in margins], mechanism=ks.Laplace.per_unit(epsilon=epsilon))
    blocks = plan.structure.blocks
    cells, sizes = block_cells(plan.structure, blocks)
    return BlockProblem(blocks[0].system, sizes, len(cells), Fraction(epsilon))


def two_way(shape: tuple[int, ...]) -> list[str]:
    """All margins of two axes."""
    return ["".join(pair) for pair in itertools.combinations("ABCDE"[: len(shape)], 2)]


@pytest.mark.parametrize("epsilon", ["1/4", "1"])
@pytest.mark.parametrize(
    ("shape", "margins"),
    [
        ((5, 4), ["A", "B"]),
        ((10, 10), ["A", "B"]),
        ((3, 3, 3, 3), ["A", "B", "C", "D"]),
        ((4, 3, 3), ["AB", "BC", "CA"]),
    ],
)
def test_the_rate_of_gaussian_sums_is_that_of_solving(shape, margins, epsilon):
    """Beside what proposals of the mixture say: to the factor that is allowed for, or it is left open."""
    block = problem(shape, margins, epsilon)
    if np.isfinite(block.log_wide_rate):
        assert abs(block.log_wide_rate - block.log_solving_rate) < general.ROUGHLY
    else:
        assert epsilon == "1"


def test_solving_is_left_open_where_sums_are_narrow():
    assert problem((5, 4), ["A", "B"], "3").log_wide_rate == np.inf
    assert not problem((5, 4), ["A", "B"], "1").solving_is_out_of_reach(BUDGET)


@pytest.mark.parametrize("shape", [(10, 10, 10), (51, 20, 5), (10, 6, 5, 4, 2)])
def test_a_large_table_is_refused_without_proposals(shape, monkeypatch):
    """No mixture is made, nothing is solved: what is refused follows from the totals."""

    def proposed(*_: object) -> None:
        raise AssertionError("a mixture was made")

    monkeypatch.setattr(BlockProblem, "mixture", property(proposed))
    monkeypatch.setattr("keepsum.planning.selection.l1.SolvedRegions", proposed)
    domain = ks.Domain({axis: range(n) for axis, n in zip("ABCDE", shape, strict=False)})
    plan = ks.plan(
        domain, keep=[list(margin) for margin in two_way(shape)], mechanism=ks.Laplace.per_unit(epsilon="1/4")
    )
    (choice,) = [choice for choice in plan.samplers if choice.sampler is None]
    assert choice.reasons
    text = str(plan.explain())
    assert "stand in the way of exact l1 Laplace noise" in text
    assert "instead" in text


def test_what_a_chain_can_draw_is_not_refused():
    """Regions of many cells are nearly Gaussian: a thousand dimensions of them are no more than a hundred of cells."""
    assert problem((10, 10, 10), two_way((10, 10, 10)), "1/4").chain_is_out_of_reach
    assert not problem((8, 8, 8), two_way((8, 8, 8)), "1/4").chain_is_out_of_reach
    cells = problem((11, 11, 11), two_way((11, 11, 11)), "1/4")
    assert not BlockProblem(cells.system, 10 * cells.sizes, 1, cells.epsilon).chain_is_out_of_reach

"""Margins of cells that permutations of categories take to one another: against the exact law of a cell, and apart."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import keepsum as ks
from keepsum.accuracy.block_laws import class_law, classes_of
from keepsum.accuracy.simulation import standard_error
from keepsum.lattice.families import collapses_of
from keepsum.lattice.symmetry import all_alike
from keepsum.planning import plan as plans

SHAPE, EPSILON = (8, 3, 2), 1  # per unit of distance
POINTS = 32  # of each angle: totals are 0 modulo it, and others than 0 then weigh less than 1e-6


def one_way(shape: tuple[int, ...], epsilon: int | str | Fraction = EPSILON) -> plans.CompiledPlan:
    domain = ks.Domain({name: range(size) for name, size in zip("abcd", shape, strict=False)})
    return plans.compile_plan(
        ks.Invariants.margins(domain, [[name] for name in domain.axes]), ks.Laplace.per_unit(epsilon)
    )


def beyond_in_the_fourier_sum(most: int) -> np.ndarray:
    """The probability of more than 0, 1, ... in size in the first cell: a mean over the dual group, rows first."""
    rows, columns, _ = SHAPE
    q = np.exp(-EPSILON)
    angle = 2 * np.pi * np.arange(POINTS) / POINTS
    transform = (1 - q * q) / (1 - 2 * q * np.cos(angle) + q * q)
    grid = np.indices((POINTS,) * (columns + 1))  # a column each, and the second layer; that of the first layer is 0
    places = [grid[b] + c for b in range(columns) for c in (np.zeros_like(grid[0]), grid[columns])]
    row, first = np.zeros(grid[0].shape), np.zeros((most + 1, *grid[0].shape))
    for own in range(POINTS):
        others = np.ones(grid[0].shape)
        for place in places[1:]:
            others *= transform[(own + place) % POINTS]
        phase = angle[(own + places[0]) % POINTS]
        row += others * transform[(own + places[0]) % POINTS]
        for k in range(most + 1):
            first[k] += others * np.cos(k * phase) * q**k
    weights = np.array([(row ** (rows - 1) * first[k]).sum() for k in range(most + 1)])
    weights /= (row**rows).sum()
    return 1 - (np.cumsum(weights) * 2 - weights[0])


def free_beyond(most: int) -> np.ndarray:
    """The same of a cell under no total: a wrong law."""
    q = np.exp(-EPSILON)
    return 2 * q ** (np.arange(most + 1) + 1) / (1 + q)


def test_margins_agree_with_the_exact_law_of_a_cell():
    plan, most = one_way(SHAPE), 6
    (cells,) = classes_of(plan.blocks)
    assert (len(cells.columns), cells.choice.method) == (plan.size, "axis_elimination")
    law = class_law(plan.blocks, cells)
    exact, wrong = beyond_in_the_fourier_sum(most), free_beyond(most)
    shares = [law.beyond(k) for k in range(most + 1)]
    means, errors = np.array([(share.mean(), standard_error(share, False)) for share in shares]).T
    assert (np.abs(means - exact) < 5 * errors).all()  # 7 standard normal numbers: not so with probability 4e-6
    assert (np.abs(means - wrong) > 8 * errors).any()
    margin, error = law.estimated(0.95)
    assert exact[margin] <= 0.05 < exact[margin - 1] + (3 + 5) * error  # three are allowed for


def test_cells_apart_show_the_same_with_larger_errors():
    plan = one_way((5, 4, 2), "0.3")
    together, apart = list(classes_of(plan.blocks)), list(classes_of(plan.blocks, by_region=True))
    assert (len(together), len(apart)) == (1, plan.size)
    margin, error = class_law(plan.blocks, together[0]).estimated(0.95)
    found = [class_law(plan.blocks, cells).estimated(0.95) for cells in apart]
    assert all(own >= margin and own_error > 2 * error for own, own_error in found)


def families(*keys: tuple[np.ndarray, ...]) -> sparse.csr_array:
    rows = []
    for key in keys:
        _, label = np.unique(np.stack(key), axis=1, return_inverse=True)
        rows += [label.ravel() == n for n in range(int(label.max()) + 1)]
    return sparse.csr_array(np.array(rows, dtype=np.int64))


def moves(matrix: sparse.csr_array) -> bool:
    """Whether the entries look alike by how many other entries share each number of totals with them."""
    shared = (matrix.T @ matrix).toarray()
    return len({tuple(sorted(row)) for row in shared.tolist()}) == 1


A, B, C, D = np.indices((3, 3, 2, 2)).reshape(4, 36)
SYSTEMS = {
    "one-way": ((A,), (B,), (C,), (D,)),
    "chain": ((A, B), (B, C), (C, D)),
    "star": ((A, B), (A, C), (A, D)),
    "nested": ((A,), (A, B), (C,), (D,)),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_full_tables_are_alike_and_others_are_not(name):
    matrix = families(*SYSTEMS[name])
    collapses = collapses_of(matrix)
    assert moves(matrix)
    assert collapses is not None
    assert all_alike(collapses)
    missing = families(*[tuple(axis[1:] for axis in key) for key in SYSTEMS[name]])
    collapses = collapses_of(missing)
    assert not moves(missing)
    assert collapses is None or not all_alike(collapses)


def test_a_target_takes_few_plans(monkeypatch):
    """And the answer is the smallest epsilon of three digits with that margin, by the plans of it and of one before."""
    made = []
    compile_one = plans.compile_plan

    def counted(*arguments, **options):
        made.append(arguments[1])
        return compile_one(*arguments, **options)

    monkeypatch.setattr("keepsum.accuracy.choose.compile_plan", counted)
    domain = ks.Domain({"county": range(20), "age": range(8), "sex": range(2)})
    keep = [["county"], ["age"], ["sex"]]
    found = ks.mechanism_for(domain, keep=keep, mechanism=ks.Laplace(epsilon=1), margin=10)
    assert len(made) <= 8
    assert ks.plan(domain, keep=keep, mechanism=found).accuracy().typical <= 10
    before = ks.Laplace(found.epsilon - Fraction(1, 100 if found.epsilon > 1 else 1000))
    assert ks.plan(domain, keep=keep, mechanism=before).accuracy().typical > 10

"""l1 Laplace noise with a focus on totals that cross in any way, against its law from its definition.

The error rate of each test is that of ``laws.py``, 1e-6. Laws of cells under three crossing totals are convolutions on
a grid: each cell adds to the sums of the whole table and of the first categories, from which all totals follow.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from laws import as_tuples, assert_drawn_from, assert_not_drawn_from, boxed
from scipy import fft

import keepsum as ks
from keepsum.planning.selection.choice import block_cells
from keepsum.planning.selection.general import BlockProblem, Outcome, chain_of
from keepsum.sampling.core.rng import rng
from support import mostly_audit

COUNT, GRID = 30_000, 32
CUBE = ks.Domain({"county": ["a", "b"], "sex": ["f", "m"], "age": ["0", "18"]})
PAIRS = ks.Domain({"county": ["a", "b"], "sex": ["f", "m"], "age": ["0", "18"], "work": ["no", "yes"]})
EPSILON = Fraction(3, 2)
THREE = {"county": Fraction(1, 2), "sex": Fraction(1), "age": Fraction(1, 3)}
# What is kept, the focus, the epsilon of cells, and how far the vectors of a basis are added up.
KEPT = {
    "kept margins that overlap": (
        [["county", "sex"], ["sex", "age"]],
        {("county", "age"): Fraction(1, 8)},
        Fraction(1, 4),
        20,
    ),
    "kept counties": ([["county"]], {"sex": Fraction(1), "age": Fraction(1, 2)}, EPSILON, 5),
    "kept counties and ages": (
        [["county"], ["age"]],
        {("county", "sex"): Fraction(1, 2), "sex": Fraction(1)},
        EPSILON / 2,
        8,
    ),
}


def plan_of(domain, keep, focus, epsilon=EPSILON):
    return ks.plan(domain, keep=keep, mechanism=ks.Laplace.per_unit(epsilon, focus=focus))


def changed(focus, factor):
    """The focus with its last weight forgotten, or applied several times."""
    last = list(focus)[-1]
    return {key: weight * (factor if key == last else 1) for key, weight in focus.items() if key != last or factor}


# -- three crossing totals, nothing kept ---------------------------------------------------------------


def seen(domain, noise):
    """The first cell, the sum of the first age group, and the grand total."""
    return np.stack([noise[:, 0], noise[:, domain.codes("age") == 0].sum(axis=1), noise.sum(axis=1)], axis=1)


def three_way_law(domain, focus, reach=8):
    """The law of what is seen."""
    axes = list(focus)
    adds = [(1, *(int(domain.codes(axis)[cell] == 0) for axis in axes)) for cell in range(domain.size)]
    values = np.arange(-GRID // 2 + 1, GRID // 2)
    product = 1.0
    for step in adds[1:]:
        law = np.zeros((GRID,) * len(step))
        np.add.at(law, tuple(values * at % GRID for at in step), np.exp(-float(EPSILON) * np.abs(values)))
        product = product * fft.rfftn(law)
    others = fft.irfftn(product, (GRID,) * len(adds[0]))
    whole, *firsts = np.meshgrid(*[fft.fftfreq(GRID, 1 / GRID)] * len(adds[0]), indexing="ij", sparse=True)
    for axis, first in zip(axes, firsts, strict=True):
        others_of_axis = (whole - first + GRID // 2) % GRID - GRID // 2
        weight = np.exp(-float(focus[axis]) * (np.abs(first) + np.abs(others_of_axis)))
        firsts[axes.index(axis)] = weight
    weight = np.prod(np.broadcast_arrays(*firsts), axis=0)
    age = 1 + axes.index("age")
    summed = tuple(place for place in range(1, len(adds[0])) if place != age)
    chances = {}
    for cell in range(-9, 10):
        table = np.roll(others, [cell * at for at in adds[0]], range(len(adds[0]))) * weight
        table = table.sum(axis=summed) * np.exp(-float(EPSILON) * abs(cell))
        for total in range(-12, 13):
            for ages in range(-12, 13):
                chances[cell, ages, total] = float(table[total % GRID, ages % GRID])
    norm = sum(chances.values())
    near = {point: chance / norm for point, chance in chances.items() if max(map(abs, point)) <= reach}
    return list(near), np.array(list(near.values()))


def test_three_crossing_totals_have_their_law():
    law = three_way_law(CUBE, THREE)
    plan = plan_of(CUBE, [], THREE)
    assert plan.guarantee.sampling == "exact"
    assert_drawn_from(seen(CUBE, plan.sample(COUNT, ks.rng(seed=20))), law)
    for factor in (0, 2):  # a weight forgotten, and applied twice
        wrong = plan_of(CUBE, [], changed(THREE, factor))
        assert_not_drawn_from(seen(CUBE, wrong.sample(COUNT, ks.rng(seed=20))), law)


@mostly_audit(
    ("domain", "method", "steps"),
    [(CUBE, "mixture_chain", 60), (CUBE, "heat_bath_chain", 40), (PAIRS, "heat_bath_chain", 40)],
    ids=["mixture", "heat bath", "heat bath on regions of two cells"],
)
def test_chains_of_three_crossing_totals_have_their_law(domain, method, steps):
    law, plan = three_way_law(domain, THREE), plan_of(domain, [], THREE)
    outcome = Outcome(method, tau=0.14, log_cap=-1e5, steps=steps)
    problem, cells = problem_of(plan)
    assert_drawn_from(seen(domain, drawn(chain_of(problem, outcome), cells)), law)
    as_cells, cells = problem_of(plan, weights=lambda weight: EPSILON)  # totals weigh what cells do
    assert_not_drawn_from(seen(domain, drawn(chain_of(as_cells, outcome), cells)), law)


def problem_of(plan, weights=lambda weight: weight):
    """The block of a plan as the general samplers see it."""
    focused, (group,) = plan._record.blocks.focused, plan._record.groups
    (block,) = group.members
    levels = focused.level_of_columns(block).tolist()
    epsilons = [EPSILON if level < 0 else weights(plan.mechanism.focus[level].weight) for level in levels]
    sizes = focused.structure.sizes[block.regions]
    cells, _ = block_cells(focused.structure, [block])
    return BlockProblem(block.system, sizes, 1, EPSILON, tuple(epsilons)), cells[0]


def drawn(sampler, cells, count=10_000):
    out = np.empty((count, len(cells)), dtype=np.int64)
    sampler.draw_into(out, rng(seed=21))
    noise = np.empty_like(out)
    noise[:, cells] = out
    return noise


# -- under kept totals ------------------------------------------------------------------------------------


def kept_law(keep, focus, epsilon, box):
    """The law of all cells, over the vectors of a basis of the lattice within a box."""
    from keepsum.lattice.elimination import kernel
    from keepsum.lattice.matrix import matrix_rows

    matrix = ks.Invariants.margins(CUBE, keep).coefficients
    basis = np.array(
        [[vector.get(cell, 0) for cell in range(CUBE.size)] for vector in kernel(matrix_rows(matrix), CUBE.size)]
    )
    points = boxed(box, len(basis)) @ basis
    logs = -float(epsilon) * np.abs(points).sum(axis=1)
    for axes, weight in focus.items():
        rows = ks.Invariants.margins(CUBE, [(axes,) if isinstance(axes, str) else axes]).coefficients.toarray()
        logs -= float(weight) * np.abs(points @ rows.T).sum(axis=1)
    chances = np.exp(logs)
    near = np.argsort(-chances)[:3000]
    return as_tuples(points[near]), chances[near] / chances.sum()


@pytest.mark.parametrize("name", KEPT)
def test_totals_that_cross_kept_ones_have_their_law(name):
    keep, focus, epsilon, box = KEPT[name]
    law = kept_law(keep, focus, epsilon, box)
    plan = plan_of(CUBE, keep, focus, epsilon)
    assert [group.form.kind for group in plan._record.groups] == ["focused"]
    assert_drawn_from(plan.sample(COUNT, ks.rng(seed=22)), law)
    for factor in (0, 2):
        wrong = changed(focus, factor)
        assert_not_drawn_from(plan_of(CUBE, keep, wrong or None, epsilon).sample(COUNT, ks.rng(seed=22)), law)

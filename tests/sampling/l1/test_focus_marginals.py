"""Laws and variances of totals and cells, against plain sums and against the prototype's figures."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.focus.marginals import FocusLaws
from keepsum.sampling.l1.focus.sampler import NestedFocus
from keepsum.sampling.l1.focus.tree import NestedTotals

HALF = Fraction(1, 2)
MIXED = NestedTotals([-1, 0, 1, 1, 0, 4], [1, 0, 2, 1, 1, 3], [HALF, Fraction(1), HALF, HALF, Fraction(2), None], HALF)
KEPT = NestedTotals([-1, 0, 0, 0], [1, 2, 3, 1], [None, Fraction(1), Fraction(1, 4), Fraction(0)], Fraction(1))


def variance_of(law):
    """The variance of noise whose sums 0, 1, 2, ... have these probabilities."""
    return 2 * float(law @ np.arange(len(law), dtype=np.float64) ** 2)


def enumerated(totals, box):
    """The chances of all vectors in a box that keep what is kept, one dimension per cell: small trees only."""
    homes = np.repeat(np.arange(len(totals.cells)), totals.cells)
    points = np.indices((2 * box + 1,) * len(homes), dtype=np.int8).reshape(len(homes), -1) - box
    sums = np.zeros((len(totals.parents), points.shape[1]), dtype=np.int16)
    for cell, home in enumerate(homes):
        sums[home] += points[cell]
    for node in reversed(range(1, len(totals.parents))):
        if totals.parents[node] >= 0:
            sums[totals.parents[node]] += sums[node]
    logs = -float(totals.epsilon) * np.abs(points).sum(axis=0)
    for node, weight in enumerate(totals.weights):
        logs = np.where(sums[node] == 0, logs, -np.inf) if weight is None else logs - float(weight) * np.abs(sums[node])
    weights = np.exp(logs)
    return points, sums, weights / weights.sum()


@pytest.mark.parametrize(
    "tree",
    [
        NestedTotals([-1], [3], [None], Fraction(2)),
        NestedTotals([-1], [2], [Fraction(1)], Fraction(1)),
        NestedTotals([-1, 0, 0], [1, 2, 1], [Fraction(1), Fraction(2), Fraction(1)], Fraction(2)),
        NestedTotals([-1, 0, 0], [1, 2, 1], [None, Fraction(2), Fraction(1)], Fraction(2)),
        NestedTotals([-1, 0, 1], [1, 1, 2], [Fraction(1), None, Fraction(1)], Fraction(2)),
        NestedTotals([-1, 0], [0, 2], [Fraction(1), Fraction(1)], Fraction(1)),
        NestedTotals([-1, 0, 1], [0, 0, 2], [None, Fraction(1), Fraction(1)], Fraction(1)),
        NestedTotals([-1, -1], [2, 2], [Fraction(0), None], Fraction(2)),
    ],
    ids=[
        "kept",
        "focused",
        "free root",
        "kept root",
        "kept in the middle",
        "one child",
        "kept, one child",
        "two trees",
    ],
)
def test_laws_by_enumeration(tree):
    box = 11
    points, sums, chances = enumerated(tree, box)
    laws, starts = FocusLaws(tree), np.cumsum(tree.cells) - tree.cells
    for node, cells in enumerate(tree.cells):
        exact = [chances[sums[node] == s].sum() for s in range(6)]
        law = laws.law_of_total(node)
        assert np.pad(law, (0, 6))[:6] == pytest.approx(exact, abs=1e-5)
        assert 2 * law.sum() - law[0] == pytest.approx(1, rel=1e-12)
        if cells:
            for cell in (starts[node], starts[node] + cells - 1):
                exact = [chances[points[cell] == s].sum() for s in range(6)]
                assert np.pad(laws.law_of_cell(node), (0, 6))[:6] == pytest.approx(exact, abs=1e-5)


FIGURES = [
    (("0", "0", "1/2"), (98.6, 12.5, 2.8)),
    (("1/10", "1/10", "3/10"), (13.6, 10.0, 4.5)),
    (("1/6", "1/6", "1/6"), (8.3, 7.8, 8.0)),
    (("0", "1/4", "1/4"), (41.8, 5.3, 5.3)),
    (("1/20", "3/20", "3/10"), (23.4, 7.7, 4.5)),
]


@pytest.mark.parametrize(("epsilons", "deviations"), FIGURES)
def test_a_state_of_62_counties_of_20_cells(epsilons, deviations):
    """Standard deviations of the state, a county and a cell: the prototype drew them, and gave one decimal."""
    state, county, cell = map(Fraction, epsilons)
    laws = FocusLaws(NestedTotals([-1] + [0] * 62, [0] + [20] * 62, [state] + [county] * 62, cell))
    variances = variance_of(laws.law_of_total(0)), variance_of(laws.law_of_total(1)), variance_of(laws.law_of_cell(62))
    assert np.sqrt(variances) == pytest.approx(deviations, abs=0.06)


def test_no_focus_has_the_variance_of_free_noise():
    laws = FocusLaws(NestedTotals([-1] + [0] * 62, [0] + [20] * 62, [Fraction(0)] * 63, HALF))
    one = 0.5 / np.sinh(0.25) ** 2
    for variance, cells in ((variance_of(laws.law_of_total(0)), 1240), (variance_of(laws.law_of_total(3)), 20)):
        assert variance == pytest.approx(cells * one, rel=1e-9)
    assert variance_of(laws.law_of_cell(3)) == pytest.approx(one, rel=1e-9)


def test_narrow_sums_among_wide_ones():
    """A cell of 300 beside a total of 10 with a heavy weight, all kept: against a direct convolution."""
    epsilon, weight = 0.05, 4.0
    tree = NestedTotals([-1, 0], [300, 10], [None, Fraction(4)], Fraction(1, 20))
    laws = FocusLaws(tree)
    reach = 2_000
    place = np.abs(np.arange(-reach, reach + 1))
    cell = np.exp(-epsilon * place) * np.tanh(epsilon / 2)

    def many(count):
        law = (place == 0).astype(float)
        for _ in range(count):
            law = np.convolve(law, cell, mode="same")
        return law

    focused = many(10) * np.exp(-weight * place)
    one = cell * np.convolve(many(30), focused, mode="same")
    few = FocusLaws(NestedTotals([-1, 0], [31, 10], [None, Fraction(4)], Fraction(1, 20)))
    assert variance_of(few.law_of_cell(0)) == pytest.approx(one @ place**2 / one.sum(), rel=1e-9)
    total = focused * many(31)
    assert variance_of(few.law_of_total(1)) == pytest.approx(total @ place**2 / total.sum(), rel=1e-9)
    # With so many more cells beside it, a total of 10 is hardly bound by what is kept.
    assert variance_of(laws.law_of_total(1)) == pytest.approx(focused @ place**2 / focused.sum(), rel=1e-3)


@pytest.mark.parametrize("tree", [MIXED, KEPT], ids=["mixed", "kept"])
def test_drawn_noise_has_these_variances(tree):
    """Those of all totals and cells at once: within 6 standard errors."""
    sampler = NestedFocus(tree)
    laws = FocusLaws(tree, sampler.kinds, sampler.laws)
    noise = np.empty((200_000, sampler.width), dtype=np.int64)
    sampler.draw_into(noise, rng(seed=5))
    starts = np.cumsum(tree.cells) - tree.cells
    sums = np.stack([noise[:, s : s + n].sum(axis=1) for s, n in zip(starts, tree.cells, strict=True)], axis=1)
    for node in reversed(range(1, len(tree.parents))):
        sums[:, tree.parents[node]] += sums[:, node]
    for node, cells in enumerate(tree.cells):
        pairs = [(sums[:, node], variance_of(laws.law_of_total(node)))]
        if cells:
            pairs.append((noise[:, starts[node]], variance_of(laws.law_of_cell(node))))
        for values, variance in pairs:
            squares = values.astype(float) ** 2
            assert abs(squares.mean() - variance) <= 6 * squares.std() / np.sqrt(len(squares))


def test_a_total_without_cells_of_its_own_has_no_law_of_a_cell():
    with pytest.raises(AssertionError):
        FocusLaws(MIXED).law_of_cell(1)

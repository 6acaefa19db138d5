"""The exact probabilities that decomposable margins are tested with, checked by enumeration and by older samplers."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from decomposable_laws import Law, assert_no_total, enumerated, least_p, p_value, sums_of_entries
from decomposable_systems import ABCD, SYSTEMS, System, at, zeros
from laws import ALPHA
from scipy import sparse
from splitting_laws import drawn, entries_law

from keepsum.sampling.l1.rejection import SolvedRegions
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from support import mostly_audit

# What is enumerated, and how far free cells go.
TINY = {
    "one-way 3 x 2": (at("one-way 3 x 2", "2"), 8),
    "2 x 2 x 2": (at("one-way 2 x 2 x 2", "3"), 5),
    "a regions": (System({"A": 2, "B": 2}, "A B", "2", sizes=[1, 3, 2, 1]), 6),
    "chain": (System({"A": 2, "B": 2, "C": 2}, "AB BC", "1"), 20),
    "chain of 3": (at("chain with zeros", "3"), 3),
    "star": (replace(at("star of 3", "3"), sizes=zeros(ABCD, "1001", "1010", "1100", "1111")), 4),
    "nested": (replace(at("county, state x sex", "2"), lengths={"C": 4, "X": 2}), 8),
    "zeros": (at("one-way, a zero", "3"), 4),
    "pinned": (at("zeros and a pinned entry", "2"), 9),
    "rescaled": (System({"A": 2, "B": 2, "C": 2}, "A B C", "3", rewritten=lambda totals: -3 * totals), 5),
}
COUNT = 40_000


def joint_by_points(points, weights, forms, reach):
    """The weights of the values of some sums, each up to the reach, in the order of ``Law.joint``."""
    values = points @ np.array(forms).T
    inside = (np.abs(values) <= reach).all(axis=1)
    table = np.zeros((2 * reach + 1,) * len(forms))
    np.add.at(table, tuple((values[inside] + reach).T), weights[inside])
    return table.reshape(-1)


@pytest.mark.parametrize("name", TINY)
def test_sums_over_angles_are_sums_over_points(name):
    """Up to what either leaves out, which is bounded."""
    system, box = TINY[name]
    law = system.law
    points, weights, missing = enumerated(law, box)
    assert missing < 2e-3
    assert law.whole * (1 - missing) <= weights.sum() <= law.whole * (1 + 1e-12)
    for forms in system.statistics:
        cells = np.repeat(np.array(forms), system.cells, axis=1)
        values = joint_by_points(points, weights, cells, 2) / law.whole
        error = missing + law.alias(*forms, reach=2)
        assert np.abs(values - law.joint(*forms, reach=2)[1]).max() <= error


@pytest.mark.parametrize("name", ["2 x 2 x 2", "a regions", "chain"])
def test_lengths(name):
    system, box = TINY[name]
    law, modulus = system.law, 40
    points, weights, missing = enumerated(law, box)
    values = np.bincount(np.abs(points).sum(axis=1) % modulus, weights, modulus) / law.whole
    error = missing + law.tail_of_lengths(modulus) + sum(law.tail(row, law.points) for row in law.rows)
    assert np.abs(values - law.lengths(modulus)[1]).max() <= error < 1e-2


def test_the_lattice_of_any_totals():
    """Not only zeros and ones: 2 x + 3 y + 5 z = 0."""
    law = Law(((2, 3, 5),), (1, 1, 1), Fraction(1))
    points, weights, missing = enumerated(law, 25)
    assert missing < 1e-6
    values = joint_by_points(points, weights, [[1, 0, 0], [0, 0, 1]], 4) / law.whole
    form, other = (1, 0, 0), (0, 0, 1)
    assert np.abs(values - law.joint(form, other, reach=4)[1]).max() <= missing + law.alias(form, other, reach=4) < 1e-4


def test_a_bound_that_too_few_angles_break():
    """With a third of the angles sums over angles are off by more than 1e-6: the bound says so."""

    class Coarse(Law):
        points = 8

    system = TINY["chain"][0]
    fine, coarse = system.law, Coarse(system.law.totals, system.law.sizes, system.law.epsilon)
    error = (coarse.whole - fine.whole) / coarse.whole
    assert 1e-6 < error <= sum(coarse.tail(row, coarse.points) for row in coarse.rows)


def test_two_way_tables_have_their_older_probabilities():
    sizes = [[1, 2, 0], [3, 1, 1], [1, 1, 2]]
    system = System({"A": 3, "B": 3}, "A B", "1", sizes=np.ravel(sizes).tolist())
    points, chances = entries_law(sizes, 1.0, 12)
    forms = system.statistics[0]
    values = joint_by_points(np.array(points), chances, forms, 3)
    assert np.abs(values - system.law.joint(*forms, reach=3)[1]).max() < 1e-4


@pytest.mark.audit
@pytest.mark.parametrize("name", SYSTEMS)
def test_what_angles_miss_is_too_little_to_be_seen(name):
    """In all, in the largest test; what is pooled is right with the rest."""
    system = SYSTEMS[name]
    assert max(system.law.alias(*forms) for forms in system.statistics) < 3e-5


def solved(system):
    """A sampler that draws most entries and solves for the others."""
    kept = system.cells > 0
    totals = sparse.csr_array(np.array(system.law.rows)[:, kept])
    return SolvedRegions(Fraction(system.epsilon), totals, system.cells[kept])


EASY = [
    "one-way 3 x 2",
    "one-way 2 x 2 x 2",
    "one-way 3 x 2 x 2",
    "one-way, regions",
    "county, state x sex, age",
    "zeros and a pinned entry",
    "star with zeros",
]


@mostly_audit("name", EASY)
def test_an_older_sampler_has_these_probabilities(name):
    system = SYSTEMS[name]
    count = 20_000
    entries = sums_of_entries(drawn(solved(system), count), system.cells)
    assert_no_total(entries, system.totals)
    for forms in system.statistics:
        assert p_value(entries @ np.array(forms).T, system.law.joint(*forms)) > least_p(2 * len(EASY))


@pytest.mark.parametrize("epsilon", ["3/10", "1"])
def test_splitting_columns_has_these_probabilities(epsilon):
    system = System({"A": 4, "B": 3}, "A B", epsilon, sizes=[1, 2, 1, 1, 0, 3, 1, 1, 1, 2, 1, 1])
    noise = drawn(ColumnSplitting(Fraction(epsilon), system.cells.reshape(4, 3)), COUNT)
    entries = sums_of_entries(noise, system.cells)
    for forms in system.statistics:
        assert p_value(entries @ np.array(forms).T, system.law.joint(*forms)) > least_p(4)


def test_noise_of_another_epsilon_fails():
    entries = sums_of_entries(drawn(solved(at("one-way 3 x 2 x 2", "11/10")), COUNT), [1] * 12)
    system = SYSTEMS["one-way 3 x 2 x 2"]
    assert min(p_value(entries @ np.array(f).T, system.law.joint(*f)) for f in system.statistics) < ALPHA

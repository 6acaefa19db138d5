"""Tables whose columns are summed out in runs against their exact probabilities, and a root that is not tested."""

from fractions import Fraction

import numpy as np
import pytest
from decomposable_laws import assert_no_total, least_p, p_value
from decomposable_systems import System
from laws import ALPHA, power
from test_decomposable import drawn, made, regions
from test_elimination_wrong import SHARP

from keepsum.lattice.families import collapses_of
from keepsum.sampling.l1.splitting import bundles
from keepsum.sampling.l1.splitting.bundles import NONE, SplitTable
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import Splitting

COUNT = 60_000
SYSTEMS = {
    "two-way": System({"A": 4, "B": 4}, "A B", "2"),
    "two-way, wide noise": System({"A": 4, "B": 4}, "A B", "1/2"),
    "one-way": System({"A": 4, "B": 4, "C": 2}, "A B C", "3/2"),
    "regions": System({"A": 4, "B": 4}, "A B", "1", sizes=[1, 2, 1, 1] * 4),
}


def in_runs(patch, system, **options):
    """The sampler of a system whose four columns are two runs of two."""
    patch.setattr(bundles, "FEWEST", 4)
    _, sizes, totals = regions(system)
    table = bundles.in_runs(SplitTable(sizes[:, None], collapses_of(totals)))
    assert len(table.collapses) > len(collapses_of(totals))
    return Splitting(Fraction(system.epsilon), table, **options)


def without_tests_of_roots(sampler):
    """The sums at the roots of trees that are grafted are always accepted."""
    grafted = [form.is_grafted for form in sampler._bundles.forms]
    starts = np.where(grafted, NONE, sampler._tables.group_start)
    sampler._tables = sampler._tables._replace(group_start=starts)
    return sampler


def drawn_sums(system, sampler, seed=1):
    """The sums of some entries, and their exact probabilities."""
    entries = drawn(system, sampler, COUNT, seed)
    assert_no_total(entries, system.totals)
    forms = [system.sum_of(A=a, B=b) for a, b in ((0, 0), (1, 1), (0, 1))]
    return entries @ np.array(forms).T, system.law.joint(*forms, reach=3)


@pytest.mark.parametrize("options", [{}, {"labelling": Labelling(4, 2, 3)}], ids=str)
@pytest.mark.parametrize("name", SYSTEMS)
def test_runs(monkeypatch, name, options):
    system = SYSTEMS[name]
    assert p_value(*drawn_sums(system, in_runs(monkeypatch, system, **options))) > least_p(4 * len(SYSTEMS))


def test_stages_whose_roots_are_not_tested_fail():
    values, law = drawn_sums(SHARP.system, without_tests_of_roots(made(SHARP.system)), seed=7)
    assert p_value(values, law) < ALPHA
    assert power(values, law, COUNT) > 1 - 1e-6

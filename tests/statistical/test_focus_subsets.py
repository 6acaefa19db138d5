"""A focus on named subsets of cells: the law by enumeration, for Laplace and Gaussian noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from laws import as_tuples, assert_drawn_from, assert_not_drawn_from, boxed

import keepsum as ks
from support import mostly_audit

COUNT = 100_000
PAIRS = ks.Domain({"county": ["a", "b"], "sex": ["f", "m"]})
PLACES = ks.Domain({"county": ["a", "b", "c"]})
# The domain, what is kept, and the subsets of each key with their weight.
CASES = {
    "one subset": (PLACES, [], [([[0, 1]], "1/2")]),
    "under the kept total": (PLACES, [[]], [([[0, 1]], "1/2")]),
    "a subset of a subset": (PAIRS, [], [([[0, 1, 2]], "1/3"), ([[1, 2]], "1/2")]),
    "two subsets": (PAIRS, [[]], [([[0], [1, 2]], "1/2")]),
}
CROSSING = {
    "subsets that cross": (PAIRS, [], [([[0, 1]], "1/3"), ([[1, 2]], "1/2")]),
    "a subset across kept totals": (PAIRS, [["county"]], [([[0, 2]], "1/2")]),
}
KINDS = {
    "laplace": lambda focus: ks.Laplace.per_unit("3/4", focus=focus),
    "gaussian": lambda focus: ks.Gaussian.per_unit(rho="1/3", focus=focus),
}
DRAWN = [(kind, name) for kind in KINDS for name in CASES] + [("gaussian", name) for name in CROSSING]


def focus_of(domain, keys, factor=1):
    named = ((ks.Invariants.subsets(domain.size, cells, names=[f"{c}" for c in cells]), w) for cells, w in keys)
    return {key: Fraction(weight) * factor for key, weight in named} if factor else None


def law_of(kind, domain, keep, keys, box=12, reach=3):
    def weights(points):
        kept = np.ones(len(points), dtype=bool)
        for axes in keep:
            kept &= (ks.Invariants.margins(domain, [axes]).coefficients @ points.T == 0).all(axis=0)
        power, rate = (1, 0.75) if kind == "laplace" else (2, 1 / 3)
        logs = -rate * (np.abs(points) ** power).sum(axis=1)
        for cells, weight in keys:
            for subset in cells:
                logs = logs - float(Fraction(weight)) * np.abs(points[:, subset].sum(axis=1)) ** power
        return np.exp(logs) * kept

    points = boxed(reach, domain.size)
    near = weights(points)
    return as_tuples(points[near > 0]), near[near > 0] / weights(boxed(box, domain.size)).sum()


def drawn(kind, domain, keep, keys, factor=1):
    plan = ks.plan(domain, keep=keep, mechanism=KINDS[kind](focus_of(domain, keys, factor)))
    assert plan.guarantee.sampling == "exact"
    return plan.sample(COUNT, ks.rng(seed=4))


@mostly_audit(("kind", "name"), DRAWN)
def test_subsets_are_drawn_from_their_law(kind, name):
    case = (CASES | CROSSING)[name]
    law = law_of(kind, *case)
    assert_drawn_from(drawn(kind, *case), law)
    assert_not_drawn_from(drawn(kind, *case, factor=2), law)  # a weight applied twice
    assert_not_drawn_from(drawn(kind, *case, factor=0), law)  # and one forgotten

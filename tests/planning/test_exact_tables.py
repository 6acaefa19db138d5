"""Which tables docs/guarantees.md says are exact: plans of them, over the whole range of epsilon."""

import pytest

import keepsum as ks
from support import margins

CLAIMS = {
    (20, 20): ("0.01", "0.02", "0.1", "1", "2", "3", "4", "5"),
    (1000, 4): ("0.01", "0.25", "1", "2", "3", "4", "5"),
    (3143, 8): ("0.01", "0.02", "0.25", "1", "2", "3", "4", "5"),
    (64, 64): ("0.05", "0.25", "1", "2", "3", "4", "5"),
    (128, 128): ("0.1", "0.25", "1", "2", "3"),
    (5, 4, 3): ("0.25", "1", "3"),
    (100, 3, 3): ("0.25", "1", "3"),
    (4, 4, 4): ("1",),
    (20, 4, 4): ("1",),
}
ONE_WAY = [(20, 8, 2), (51, 20, 2), (10, 10, 10), (20, 20, 20), (6, 6, 6, 6), (51, 20, 2, 5), (3143, 8, 2)]


@pytest.mark.audit
@pytest.mark.parametrize(
    ("shape", "epsilon"), [(shape, epsilon) for shape, epsilons in CLAIMS.items() for epsilon in epsilons]
)
def test_tables_of_the_page_are_exact(shape, epsilon):
    assert ks.plan(keep=margins(*shape), mechanism=ks.Laplace.per_unit(epsilon=epsilon)).guarantee.sampling == "exact"


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["0.05", "1", "4", "5"])
@pytest.mark.parametrize("shape", ONE_WAY)
def test_one_way_margins_of_the_page_are_exact(shape, epsilon):
    """At the ends of the range, and where plans take labels and tags."""
    domain = ks.Domain({f"x{k}": range(length) for k, length in enumerate(shape)})
    keep = ks.Invariants.margins(domain, [[axis] for axis in domain.axes])
    assert ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=epsilon)).guarantee.sampling == "exact"


@pytest.mark.audit
@pytest.mark.parametrize(("axes", "epsilon"), [(9, "0.05"), (11, "0.25"), (12, "0.25"), (12, "1"), (12, "4")])
def test_many_axes_of_two_categories_are_exact(axes, epsilon):
    """Weights go the farther the more axes there are; with 52 bits throughout, errors were as large as the laws."""
    domain = ks.Domain({f"x{k}": range(2) for k in range(axes)})
    keep = ks.Invariants.margins(domain, [[axis] for axis in domain.axes])
    assert ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=epsilon)).guarantee.sampling == "exact"

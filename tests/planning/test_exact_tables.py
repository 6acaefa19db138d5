"""Which tables docs/guarantees.md says are exact: plans of them, over the whole range of epsilon."""

import pytest

import keepsum as ks
from support import margins

CLAIMS = {
    (20, 20): ("0.02", "0.1", "1", "2", "3", "4", "5"),
    (1000, 4): ("0.01", "0.25", "1", "2", "3", "4", "5"),
    (3143, 8): ("0.02", "0.25", "1", "2", "3", "4", "5"),
    (64, 64): ("0.05", "0.25", "1", "2", "3", "4", "5"),
    (128, 128): ("0.1", "0.25", "1", "2", "3"),
    (5, 4, 3): ("0.25", "1", "3"),
    (100, 3, 3): ("0.25", "1", "3"),
    (4, 4, 4): ("1",),
    (20, 4, 4): ("1",),
}


@pytest.mark.audit
@pytest.mark.parametrize(
    ("shape", "epsilon"), [(shape, epsilon) for shape, epsilons in CLAIMS.items() for epsilon in epsilons]
)
def test_tables_of_the_page_are_exact(shape, epsilon):
    assert ks.plan(keep=margins(*shape), mechanism=ks.Laplace.per_unit(epsilon=epsilon)).guarantee.sampling == "exact"

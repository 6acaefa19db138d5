"""Where a law's cumulative chances are searched from."""

import numpy as np

from keepsum.sampling.l1.splitting.kernel_arguments import GUIDE
from keepsum.sampling.l1.splitting.packing import _guide


def found(cumulative, guide, chance):
    """The place of a chance as a kernel finds it: upwards from where the guide says."""
    place = int(guide[int(chance * GUIDE)])
    while place < len(cumulative) and cumulative[place] <= chance:
        place += 1
    return place


def test_a_guide_never_begins_behind_a_chance():
    """Also in a law with more places than two bytes count."""
    random = np.random.default_rng(1)
    for length in (1, 2, 50, 70_000):
        cumulative = np.cumsum(random.dirichlet(np.full(length, 0.5)))
        guide = _guide(cumulative)
        assert (guide.dtype, len(guide)) == (np.uint16, GUIDE)
        for chance in (0.0, 1 / GUIDE, 0.5, *random.random(20), 1 - 1e-9):
            assert found(cumulative, guide, chance) == np.searchsorted(cumulative, chance, side="right")


def test_a_guide_that_begins_behind_would_be_seen():
    cumulative = np.linspace(0, 1, 70_001)[1:]
    exact = np.searchsorted(cumulative, np.arange(GUIDE) / GUIDE)
    assert _guide(cumulative)[-1] == 2**16 - 1 < exact[-1]
    assert found(cumulative, exact, 0.5) == np.searchsorted(cumulative, 0.5, side="right")
    assert found(cumulative, exact + 2, 0.5) != np.searchsorted(cumulative, 0.5, side="right")

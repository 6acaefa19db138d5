import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy.margins import simulated_margin


def sums(size, epsilon):
    return ks.plan(ks.Invariants.subsets(size, [range(size)]), ks.Laplace(epsilon=epsilon))


def test_computed_margins_are_those_of_the_noise_law():
    plan = ks.plan(ks.Invariants.subsets(9, [[0, 1, 2], [3]]), ks.Laplace(epsilon=0.25))
    found = plan.accuracy(0.9)
    assert found.margins.tolist() == [0 if cell == 3 else plan.noise.interval(cell, 0.9)[1] for cell in range(9)]
    assert found.draws == 0
    assert not found.margins.flags.writeable


@pytest.mark.parametrize("size", [2, 5, 40])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_simulated_margins_agree_with_computed_ones(size, level):
    """Never smaller (three standard errors), and larger by little."""
    plan = sums(size, 0.25)
    exact = plan.noise.interval(0, level)[1]
    simulated = simulated_margin(np.abs(plan.sample(4000, rng=ks.rng(seed=8))), level)
    assert exact <= simulated <= exact + 2


def test_a_margin_from_too_few_draws_would_be_seen():
    """The same check finds a margin that leaves no room for error: the plain quantile of few draws."""
    plan = sums(5, 0.25)
    exact = plan.noise.interval(0, 0.95)[1]
    noise = np.abs(plan.sample(40 * 200, rng=ks.rng(seed=9)).reshape(200, 40, 5))
    plain = [int(np.quantile(draws[:, 0], 0.95)) for draws in noise]
    ours = [simulated_margin(draws, 0.95) for draws in noise]
    assert sum(margin < exact for margin in plain) > 50
    assert sum(margin < exact for margin in ours) <= 2


def test_overlapping_tables_hold_their_level(children):
    plan = ks.plan(children.keep("county", "education"), ks.Laplace(epsilon=0.25))
    found = plan.accuracy()
    assert found.draws == 4000
    assert len(set(found.margins.tolist())) == 1  # all cells of a table are alike
    noise = np.abs(plan.sample(20_000, rng=ks.rng(seed=10)))
    assert (noise <= found.margins).mean(axis=0).min() >= 0.95
    assert (noise <= found.margins - 2).mean(axis=0).max() < 0.95


def test_regions_of_a_general_block_differ(circles):
    found = ks.plan(circles, ks.Laplace(epsilon=0.25)).accuracy()
    noise = np.abs(ks.plan(circles, ks.Laplace(epsilon=0.25)).sample(20_000, rng=ks.rng(seed=11)))
    assert (noise <= found.margins).mean(axis=0).min() >= 0.95
    assert "simulated draws" in str(found)
    assert "simulated draws" in found._repr_html_()


@pytest.mark.parametrize("level", [0, 1, -1, "95%", True, float("nan")])
def test_bad_levels(level):
    with pytest.raises(ks.InputError, match="Level must lie between 0 and 1"):
        sums(3, 1).accuracy(level)

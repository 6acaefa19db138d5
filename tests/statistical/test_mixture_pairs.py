"""Pairs of chains, heat-bath moves and narrow Gaussian noise against their laws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from laws import ALPHA, assert_drawn_from, assert_not_drawn_from, lattice_law, table_law
from mixture_laws import LAWS, bath, block_of, chain, drawn
from scipy import stats

from keepsum.convergence.bounds import clopper_pearson
from keepsum.convergence.observe import TARGET_TV
from keepsum.planning.selection.general import BlockProblem, mixture_chain
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.chains import HeatBathChain, MixtureChain
from keepsum.sampling.general.heat_bath import HeatBath, gaussian_logs, table_moves
from keepsum.sampling.general.mixture import OneWidth
from keepsum.sampling.general.scales import table_slabs
from keepsum.sampling.general.weights import GeometricTail, Renewal
from sampling.proposals import propose, unit
from support import margins


@pytest.mark.parametrize("near", [1.0, 0.2])
def test_pairs_meet_when_two_chains_that_are_followed_do(near):
    """The loop only follows weights; here the states themselves, (v, z), from the same words, weights as ratios."""
    keep = margins(4, 4)
    sampler, lag = chain(keep, "1", 0.2, steps=1, near=near), 5
    pairs = 200
    found = sampler.meeting_times(pairs, lag, 500, rng(seed=11))
    per, room = sampler.proposals.words_per_proposal, sampler.proposals.room()
    out = np.empty(16, dtype=np.int64)
    source = rng(seed=11)
    per_task = pairs // 64
    for first in range(0, pairs, per_task):
        stream = source.stream()
        for pair in range(first, min(first + per_task, pairs)):
            ahead, behind, step = None, None, -1
            while behind is None or ahead != behind:
                words = stream.take(per)
                log_weight = propose(words, sampler.proposals.tables, room, out)
                passing, uniform = min(1.0, math.exp(log_weight - sampler.log_cap)), unit(words[-1])
                if uniform >= passing:
                    continue
                step += 1
                state = (math.exp(log_weight) / passing, tuple(out.tolist()), tuple(room.squares.tolist()))
                again = uniform / passing
                ahead = state if ahead is None or again < state[0] / ahead[0] else ahead
                if step == lag or (step > lag and again < state[0] / behind[0]):
                    behind = state
            assert found[pair] == step


def expected_survival(log_weights, steps, log_cap=-math.inf):
    renewal = Renewal.of(log_weights, log_cap)
    return np.array([renewal.distance(t) for t in steps])


def meeting_chi_square(excess, survival):
    """Chi-square of meeting times against their law: P(T > t) for t = 0, 1, ..."""
    chances = -np.diff(survival, prepend=1.0)
    counts = np.array([(excess == t).sum() for t in range(len(survival))])
    expected = len(excess) * chances
    use = expected >= 100
    observed = np.append(counts[use], len(excess) - counts[use].sum())
    wanted = np.append(expected[use], len(excess) - expected[use].sum())
    return ((observed - wanted) ** 2 / wanted).sum(), stats.chi2.isf(ALPHA, use.sum())


@pytest.mark.audit
@pytest.mark.parametrize("near", [1.0, 0.1])
def test_meeting_times_have_the_law_that_the_weights_give(near):
    """With many more weights than pairs, so that their own error does not count; wrong targets are rejected."""
    keep, lag = margins(4, 4), 40
    sampler = chain(keep, "0.25", 0.14, steps=1, near=near)
    _, log_weights = sampler.proposals.propose(400_000, rng(seed=12).stream())
    excess = sampler.meeting_times(20_000, lag, 2_000, rng(seed=13)) - lag
    statistic, limit = meeting_chi_square(excess, expected_survival(log_weights, range(30), sampler.log_cap))
    assert statistic < limit
    # Pairs that accept with the root of the weights, or each with the other's, have another target.
    statistic, limit = meeting_chi_square(excess, expected_survival(log_weights / 2, range(30), sampler.log_cap / 2))
    assert statistic > limit


@pytest.mark.audit
def test_the_tail_is_geometric_with_a_threshold_and_not_without():
    """4 x 4, epsilon 1. Beyond any point a geometric law has the same mean excess; a heavy tail's grows with it.

    Without a threshold one pair in two hundred needs more than 100 steps, though half of them need one or two.
    """
    keep, lag, pairs = margins(4, 4), 20, 30_000

    def excess(tau):
        return chain(keep, "1", tau, steps=1).meeting_times(pairs, lag, 50_000, rng(seed=14)) - lag

    def growth(times):
        far, farther = np.quantile(times, [0.99, 0.999])
        return (times[times > farther] - farther).mean() / (times[times > far] - far).mean()

    with_threshold, without = excess(0.4), excess(1e-12)
    assert min(with_threshold.min(), without.min()) >= 0  # all have met
    assert growth(with_threshold) < 2 < growth(without)
    assert clopper_pearson(int((with_threshold > 100).sum()), pairs, 1e-6) < 1e-3
    assert 1 - clopper_pearson(pairs - int((without > 100).sum()), pairs, 1e-6) > 1e-3
    # What one half of the pairs extrapolates to holds for the other; without a threshold it is wrong by orders.
    for times, far, least, most in ((with_threshold, 20, 0, 3), (without, 1000, 1000, math.inf)):
        foretold = GeometricTail.of(times[: pairs // 2]).distance(far, 10**6)
        beyond = int((times[pairs // 2 :] > far).sum())
        assert 1 - clopper_pearson(pairs // 2 - beyond, pairs // 2, 1e-6) <= most * foretold
        assert clopper_pearson(beyond, pairs // 2, 1e-6) >= least * foretold


@pytest.mark.audit
@pytest.mark.parametrize(
    ("keep", "epsilon", "many"),
    [(margins(4, 4), "1/4", 400_000), (margins(5, 5, 5), "1/4", 150_000), (margins(6, 6, 6), "1/4", 100_000)],
    ids=["4 x 4", "5 x 5 x 5", "6 x 6 x 6"],
)
def test_what_a_pilot_extrapolates_to_holds_for_many_more_weights(keep, epsilon, many):
    """Also with the tail that many more weights have; a thousand, with no tail, would not do."""
    system, sizes, _ = block_of(keep)
    problem = BlockProblem(system, sizes, 1, Fraction(epsilon))
    found, tuned = mixture_chain(problem, problem.mixture)
    assert len(tuned.log_weights) <= 50_000
    _, log_weights = found.proposals.propose(many, rng(seed=15).stream())
    renewal = Renewal.with_tail(log_weights, found.log_cap)
    bare = Renewal.of(tuned.log_weights[:1000], found.log_cap).steps_for(TARGET_TV)
    assert renewal.distance(found.steps) < 30 * TARGET_TV
    assert renewal.distance(bare) > 3 * TARGET_TV
    assert Renewal.of(log_weights, found.log_cap).distance(found.steps) < TARGET_TV


@pytest.mark.parametrize("epsilon", ["1", "2"])
@pytest.mark.audit
def test_heat_bath_laws(epsilon):
    keep = margins(3, 3)
    law = table_law(3, 3, float(epsilon), reach=3)
    assert_drawn_from(drawn(bath(keep, epsilon, steps=20), keep, 40_000), law)
    assert_not_drawn_from(drawn(bath(keep, epsilon, steps=1), keep, 40_000), law)
    system, _, _ = block_of(keep)
    some = table_moves(system.grid)[:1]  # does not generate the lattice
    assert_not_drawn_from(drawn(bath(keep, epsilon, steps=4, moves=some), keep, 40_000), law)


def test_heat_bath_on_regions():
    keep, law = LAWS["overlap", "1"]
    assert_drawn_from(drawn(bath(keep, "1", steps=20), keep, 40_000), law())


def gaussian_law(keep, sigma):
    return lattice_law(keep.coefficients.toarray(), lambda s: np.exp(-s / (2 * sigma**2)), box=8, reach=40)


@pytest.mark.audit
@pytest.mark.parametrize("sigma", [pytest.param(0.5, marks=pytest.mark.audit), 0.6, 1.0])
def test_narrow_gaussian_laws(sigma):
    """At 0.5 nearly all noise is 0, and its share is all that is tested, as it would be with 200,000 draws.

    The power against a variance 5% too large is above 0.98, against proposals that are never refused 1 to six digits.
    """
    keep = margins(3, 3)
    system, sizes, _ = block_of(keep)
    law = gaussian_law(keep, sigma)
    moves = table_moves(system.grid)
    own = HeatBath((gaussian_logs(sigma**2),), np.zeros(9, dtype=np.int64), moves)
    count = 60_000 if sigma == 0.5 else 40_000
    assert_drawn_from(drawn(HeatBathChain(None, own, sizes, 1, 20), keep, count), law)
    proposals = OneWidth(table_slabs(system.grid.column), sigma**2)
    assert_drawn_from(drawn(MixtureChain(None, proposals, sizes, 1, 30), keep, count), law)
    if sigma < 1:  # wider noise is accepted always
        assert_not_drawn_from(drawn(MixtureChain(None, proposals, sizes, 1, 0), keep, count), law)

"""The likelihood of released counts under a model: against enumeration, and windows that are too small."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from flint import arb, ctx
from scipy import special, stats

import keepsum as ks
from keepsum.accuracy import likelihood

DOMAIN = ks.Domain(
    {"state": ["a", "b", "c"], "county": {"a": ["x", "y", "z"], "b": ["x", "y"], "c": ["x", "y"]}},
    within={"county": "state"},
)
RATES = [[1, 2, 3, 1, 1, 0.5, 2], [4, 0.1, 2, 3, 0.7, 0.1, 0.1], [40, 11, 2, 0.03, 7, 3, 1]]
MECHANISMS = [ks.Laplace.per_unit(epsilon=1), ks.Gaussian(sigma="1.5")]


def poisson(rates):
    return lambda counts: stats.poisson.logpmf(counts, np.asarray(rates, dtype=float)[:, None])


def tables(total: int, cells: int) -> list[tuple[int, ...]]:
    """All counts with a total."""
    return [y for y in itertools.product(range(total + 1), repeat=cells) if sum(y) == total]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("rates", RATES)
def test_it_is_the_sum_over_all_tables(mechanism, rates):
    """With negative released counts, and a state whose total is 0; also with the cells in another order."""
    released = np.array([4, -1, 2, 3, 0, -2, 2])
    every = np.array([[*a, *b, *c] for a in tables(5, 3) for b in tables(3, 2) for c in tables(0, 2)])
    noise = ks.plan(DOMAIN, keep=[["state"]], mechanism=mechanism).noise
    expected = special.logsumexp(noise.log_pmf(released - every) + stats.poisson.logpmf(every, rates).sum(axis=1))
    assert noise.log_likelihood(released, poisson(rates)) == pytest.approx(expected, abs=1e-10)
    shuffled = np.random.default_rng(1).permutation(7)
    groups = [np.flatnonzero(DOMAIN.codes("state")[shuffled] == state).tolist() for state in range(3)]
    other = ks.plan(keep=ks.Invariants.subsets(7, groups), mechanism=mechanism).noise
    found = other.log_likelihood(released[shuffled], poisson(np.array(rates)[shuffled]))
    assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_cells_under_no_total_and_pinned_ones(mechanism):
    """A free cell is a sum of its own; a cell that the totals determine has the model's probability."""
    noise = ks.plan(keep=ks.Invariants.subsets(4, [[0, 1], [3]]), mechanism=mechanism).noise
    released, rates = np.array([6, -3, -4, 5]), [2.0, 1.5, 3.0, 4.0]
    every = np.array([[a, 3 - a, b, 5] for a in range(4) for b in range(80)])
    expected = special.logsumexp(noise.log_pmf(released - every) + stats.poisson.logpmf(every, rates).sum(axis=1))
    assert noise.log_likelihood(released, poisson(rates)) == pytest.approx(expected, abs=1e-10)
    assert noise.log_likelihood([6, -3, 0, -1], poisson(rates)) == -math.inf  # no count is -1
    assert noise.log_likelihood([6, -7, 0, 1], poisson(rates)) == -math.inf  # nor is a total


def test_all_probabilities_add_up_to_one():
    """It is a probability of released counts, not a weight: over all of them the sum is that of the kept total."""
    noise = ks.plan(keep=ks.Invariants.subsets(2, [[0, 1]]), mechanism=ks.Laplace.per_unit(epsilon=1)).noise
    model = poisson([2.0, 3.0])
    total = sum(math.exp(noise.log_likelihood([first, 4 - first], model)) for first in range(-30, 35))
    assert total == pytest.approx(stats.poisson.pmf(4, 5), abs=1e-10)


def by_a_window(released, rates, epsilon, reach):
    """Ln of the sum over noise up to a fixed reach, up to a constant: two cells with their total kept."""
    noise = np.arange(-reach, reach + 1)
    counts = np.column_stack([released[0] - noise, released[1] + noise])
    return special.logsumexp(stats.poisson.logpmf(counts, rates).sum(axis=1) - 2 * epsilon * abs(noise))


def in_balls(released, rates, epsilon):
    """Ln of the sum over all counts, in ball arithmetic of 200 bits."""
    before, ctx.prec = ctx.prec, 200
    try:
        total, rest = arb(0), sum(released)
        for first in range(rest + 1):
            weight = (-arb(2) * arb(str(epsilon)) * abs(released[0] - first)).exp()
            for count, rate in ((first, rates[0]), (rest - first, rates[1])):
                weight *= (-arb(str(rate))).exp() * arb(str(rate)) ** count / arb(count + 1).gamma()
            total += weight
        return float(total.log())
    finally:
        ctx.prec = before


@pytest.mark.parametrize(
    ("released", "rates", "fixed_is_wrong"),
    [((500, 20), (500.0, 20.0), False), ((20, 500), (500.0, 20.0), True), ((1000, -200), (1.0, 900.0), True)],
)
def test_a_fixed_window_is_wrong_where_the_counts_differ_by_more(released, rates, fixed_is_wrong):
    """The page had a window of 120 at epsilon 0.25: with a model that far from the release it missed the sum."""
    epsilon = 0.25
    noise = ks.plan(keep=ks.Invariants.subsets(2, [[0, 1]]), mechanism=ks.Laplace.per_unit(epsilon="0.25")).noise
    constant = -math.log(math.tanh(epsilon))  # of noise (z, -z)
    expected = in_balls(released, rates, epsilon) - constant
    assert noise.log_likelihood(released, poisson(rates)) == pytest.approx(expected, abs=1e-9)
    window = by_a_window(released, rates, epsilon, 120) - constant
    assert (abs(window - expected) > 1) == fixed_is_wrong


@pytest.mark.parametrize("fall", [3.0, 20.0, 44.0])
def test_the_first_window_does_not_matter(fall, monkeypatch):
    monkeypatch.setattr(likelihood, "FIRST_FALL", fall)
    noise = ks.plan(keep=ks.Invariants.subsets(4, [[0, 1, 2]]), mechanism=ks.Laplace.per_unit(epsilon="0.5")).noise
    released, rates = np.array([30, -20, 4, 60]), [3.0, 9.0, 1.0, 2.0]
    every = np.array([[*y, last] for y in tables(14, 3) for last in range(200)])
    expected = special.logsumexp(noise.log_pmf(released - every) + stats.poisson.logpmf(every, rates).sum(axis=1))
    assert noise.log_likelihood(released, poisson(rates)) == pytest.approx(expected, abs=1e-9)


def test_a_window_that_is_too_small_is_seen():
    """What a window is said to leave out is at least what it does leave out; none that is too small is taken."""
    blocks = ks.plan(
        keep=ks.Invariants.subsets(3, [[0, 1]]), mechanism=ks.Laplace.per_unit(epsilon="0.5")
    )._record.blocks
    released, model = np.array([40, -20, 60]), poisson([3.0, 9.0, 2.0])
    problem = likelihood._Problem.of(released, model, blocks)
    whole = problem.log_sum()
    seen = 0
    for reach in (5, 10, 20, 30, 40, 50, 60, 80):
        found, log_error = problem._within(reach)
        assert found <= whole + 1e-12
        left_out = 1.0 if found == -math.inf else -math.expm1(found - whole)
        assert log_error >= math.log(max(left_out, 1e-300)) - 1e-6 or left_out < 1e-10
        if left_out > 1e-6:
            seen += 1
            assert log_error > math.log(likelihood.TRUNCATION)
    assert seen >= 4


def test_many_counties_in_one_state():
    """Against a product of polynomials by plain convolution: angles must be enough for the sum of all noise."""
    size, reach = 200, 60
    plan = ks.plan(keep=ks.Invariants.subsets(size, [range(size)]), mechanism=ks.Laplace.per_unit(epsilon=1))
    random = np.random.default_rng(3)
    rates = random.uniform(50, 90, size)
    released = random.poisson(rates) + plan.sample(rng=ks.rng(seed=4))
    values = np.arange(-reach, reach + 1)
    logs = stats.poisson.logpmf(released[:, None] - values, rates[:, None]) - abs(values)
    product, log_sum = np.ones(1), 0.0
    for row in logs:
        product = np.convolve(product, np.exp(row - row.max()))
        log_sum += row.max() + np.log(product.sum())
        product /= product.sum()
    expected = np.log(product[len(product) // 2]) + log_sum
    found = plan.noise.log_likelihood(released, poisson(rates)) - plan.noise.log_pmf(np.zeros(size, dtype=int))
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("factor", [0.2, 3.0])
def test_a_model_whose_totals_are_far_from_the_kept_ones(factor):
    """Given their total Poisson counts are multinomial: a common factor of all rates tells of the total alone."""
    noise = ks.plan(keep=ks.Invariants.subsets(30, [range(30)]), mechanism=ks.Laplace.per_unit(epsilon="0.5")).noise
    rates = np.random.default_rng(6).uniform(20, 60, 30)
    released = np.rint(rates).astype(int) + np.tile([3, -3], 15)
    near, far = (noise.log_likelihood(released, poisson(rates * times)) for times in (1, factor))
    assert far - near == pytest.approx(released.sum() * math.log(factor) - (factor - 1) * rates.sum(), abs=1e-8)


def test_models_need_not_be_poisson():
    """Binomial counts, which have a largest one, and a model that allows no counts with the total."""
    noise = ks.plan(keep=ks.Invariants.subsets(2, [[0, 1]]), mechanism=ks.Gaussian(sigma=2)).noise
    every = np.array([[a, 9 - a] for a in range(10)])

    def model(counts):
        return stats.binom.logpmf(counts, [[4], [6]], [[0.5], [0.1]])

    with np.errstate(divide="ignore"):
        logs = stats.binom.logpmf(every, [4, 6], [0.5, 0.1]).sum(axis=1)
    expected = special.logsumexp(noise.log_pmf(np.array([11, -2]) - every) + logs)
    assert noise.log_likelihood([11, -2], model) == pytest.approx(expected, abs=1e-10)
    assert noise.log_likelihood([11, 0], model) == -math.inf


ONE, FREE = ks.Invariants.subsets(2, [[0, 1]]), ks.Invariants.subsets(2, [])
CROSSED = ks.Invariants.margins(ks.Domain({"a": range(2), "b": range(2)}), [["a"], ["b"]])
LINE = ks.Invariants.margins(ks.Domain({"a": range(2)}), [])


@pytest.mark.parametrize(
    ("totals", "options", "released", "model", "words"),
    [
        (ONE, {"norm": "l2"}, [1, 2], abs, "do not overlap"),
        (CROSSED, {}, [1, 2, 3, 4], abs, "do not overlap"),
        (LINE, {"focus": {(): 1}}, [1, 2], abs, "without a focus"),
        (FREE, {}, [1, 2, 3], abs, "for each of the 2 cells"),
        (FREE, {}, [[1, 2]], abs, "for each of the 2 cells"),
        (FREE, {}, [1, 2], 3, "must be a function of an array"),
        (FREE, {}, [1, 2], np.sum, "for each of the counts of shape"),
        (FREE, {}, [1, 2], lambda _: "none", "for each of the counts of shape"),
        (FREE, {}, [1, 2], dict, "must be a function of an array"),
        (FREE, {}, [1, 2], abs, "at most 0, got others"),
        (FREE, {}, [1, 2], lambda y: y * np.nan, "at most 0, got others"),
        (FREE, {}, [1, 2], lambda y: np.where(y == 10**9, 0.0, -np.inf), "so far from the released counts"),
        (ONE, {}, [8, 9], lambda y: np.where(y % 2 == 0, -0.1 * y - 3, -np.inf), "decided by rounding"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_a_sentence(totals, options, released, model, words):
    plan = ks.plan(keep=totals, mechanism=ks.Laplace.per_unit(epsilon=1, **options))
    with pytest.raises(ks.InputError, match=words):
        plan.noise.log_likelihood(released, model)

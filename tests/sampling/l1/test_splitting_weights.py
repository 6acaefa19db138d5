"""The weights of column splitting, their errors and their bounds, against integers of many digits."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import fmpq

from keepsum.sampling.core.balls import precision
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from keepsum.sampling.l1.splitting.weights import beyond_tables, leaf
from sampling.l1.exact_weights import ExactWeights, real

audit = pytest.mark.audit
SAMPLERS = [
    ((3, 4), "1"),
    ((3, 4), "50"),
    ((5, 5), "2"),
    ([[1, 2, 3], [4, 5, 6], [0, 1, 12]], "2"),
    ([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]], "1"),
    pytest.param(((3, 4), "1/8"), marks=audit),
    pytest.param(((300, 8), "1"), marks=audit),
    pytest.param(([[1, 2, 3], [4, 5, 6], [0, 1, 60]], "1/2"), marks=audit),
]


@pytest.fixture(scope="module", params=SAMPLERS, ids=str)
def pair(request):
    """A sampler with its weights in integers."""
    sizes, epsilon = request.param
    sampler = ColumnSplitting(Fraction(epsilon), np.ones(sizes, int) if isinstance(sizes, tuple) else sizes)
    return sampler, ExactWeights(sampler)


def test_errors_are_bounds(pair):
    sampler, exact = pair
    for k, law in enumerate(sampler._laws.laws):
        weights, true = law.weights, exact.weights(k)
        for value, error, integer in zip(weights.values.tolist(), weights.errors.tolist(), true, strict=False):
            assert abs(Fraction(value) - real(integer)) <= Fraction(error) + Fraction(1, 10**110)


def test_errors_are_small_where_sums_are_drawn(pair):
    """Relative errors of F: they may not grow to where the referee settles everything."""
    sampler, _ = pair
    for law in sampler._laws.laws:
        if law.split is not None:
            assert law.split.reach >= 0
            assert law.split.slack.max() < 1e-3
            assert law.split.slack[0] < 1e-10


def test_a_smaller_error_is_no_bound():
    """The comparison is sharp: a thousandth of the errors of single cells is exceeded."""
    sampler = ColumnSplitting(Fraction(1, 3), np.ones((3, 3), int))
    weights, true = sampler._laws.laws[0].weights, ExactWeights(sampler).weights(0)
    gaps = [abs(Fraction(value) - real(integer)) for value, integer in zip(weights.values.tolist(), true, strict=False)]
    assert any(gap > Fraction(error) / 1000 for gap, error in zip(gaps, weights.errors.tolist(), strict=True))


def test_nothing_is_larger_than_the_top_or_the_bound_beyond(pair):
    sampler, exact = pair
    for k, law in enumerate(sampler._laws.laws):
        true = exact.weights(k)
        assert real(max(true)) <= Fraction(law.weights.top)
        assert real(max(true[law.weights.reach + 1 :])) <= Fraction(law.weights.beyond)


def test_moments_are_bounds(pair):
    sampler, exact = pair
    for k, law in enumerate(sampler._laws.laws):
        true = [float(real(value)) for value in exact.weights(k)]
        for rate, bound in zip(law.weights.rates.tolist(), law.weights.log_moments.tolist(), strict=True):
            moment = true[0] + sum(w * (math.exp(rate * y) + math.exp(-rate * y)) for y, w in enumerate(true) if y)
            assert math.log(moment) <= bound + math.log(1.001)


@pytest.mark.parametrize("growth", [0.0, 0.5, 1.25])
def test_what_lies_beyond_tables_is_bounded(pair, growth):
    """The sum of W_L(u) W_R(y - u) e^(s|u|) over the u that a table does not have."""
    sampler, exact = pair
    s = growth * float(sampler._epsilon)
    for k, law in enumerate(sampler._laws.laws):
        if law.branch is None:
            continue
        left, right = law.branch.left, law.branch.right
        bounds = beyond_tables(left, right, min(left.reach, 30), s)
        for y in (0, 1, len(bounds) // 2, len(bounds) - 1):
            outside = sum(
                float(real(weight)) * math.exp(s * abs(u))
                for u, weight in exact.joint(k, y).items()
                if abs(u) > left.reach or abs(y - u) > right.reach
            )
            assert outside <= bounds[y]


def test_the_referee_has_the_same_weights(pair):
    sampler, exact = pair
    with precision(160):
        for k, law in enumerate(sampler._laws.laws):
            reach = min(law.weights.reach, 40)
            for ball, integer in zip(sampler._referee.weights(k, reach), exact.weights(k)[: reach + 1], strict=False):
                value = real(integer)
                assert abs(ball - fmpq(value.numerator, value.denominator)) < 1e-40


def test_no_part_weighs_more_than_the_peak(pair):
    sampler, exact = pair
    for k, law in enumerate(sampler._laws.laws):
        if law.split is not None:
            for y in {0, 1, law.split.reach // 2, law.split.reach}:
                if y <= law.split.reach:
                    assert real(max(exact.joint(k, y).values())) <= Fraction(sampler._referee._peak(law, y))
            y = law.split.reach + 1  # beyond the tables the product of both tops
            assert real(max(exact.joint(k, y).values())) <= Fraction(sampler._referee._peak(law, y))


@pytest.mark.parametrize("cells", [1, 2, 3, 4])
@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_leaves_against_enumeration(cells, epsilon):
    """Sums over all fillings of up to four cells in a box."""
    box = 10 if cells == 4 else 24
    rate = float(Fraction(epsilon))
    weights = leaf(Fraction(epsilon), cells, 30)
    sums = np.zeros(31)
    for filling in product(range(-box, box + 1), repeat=cells - 1):
        for y in range(31):
            sums[y] += math.exp(-rate * (sum(map(abs, filling)) + abs(y - sum(filling)))) if y < 4 else 0.0
    scaled = weights.values * 2.0**weights.exponent
    assert scaled[:4] == pytest.approx(sums[:4], rel=1e-4 if box == 10 and rate == 1 else 1e-9)


def test_leaves_of_many_cells_against_the_negative_binomial():
    """A sum of n double geometric cells is the difference of two negative binomial numbers."""
    from scipy import stats

    for epsilon, cells in (("1/4", 40), ("1", 7), ("2", 300)):
        values = leaf(Fraction(epsilon), cells, 600).values
        chance = -math.expm1(-float(Fraction(epsilon)))
        counts = np.arange(4000)
        law = stats.nbinom.pmf(counts, cells, chance)
        expected = np.array([(law[: len(law) - y] * law[y:]).sum() for y in range(61)])
        assert values[:61] / values[0] == pytest.approx(expected / expected[0], rel=1e-9)

"""The weights of column splitting, their errors and their bounds, against integers of many digits."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import fmpq
from mpmath import mp

from keepsum.sampling.core.balls import precision
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.splitting.added import KEPT, Margins
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from keepsum.sampling.l1.splitting.weights import beyond_tables, leaf
from sampling.l1.exact_weights import DIGITS, ExactWeights, real

audit = pytest.mark.audit
PLAIN, SOME = Labelling(), Labelling(3, 2)
FOCUSED = Margins((Fraction(1),) * 3, (Fraction(2, 3),) * 3, Fraction(1, 2))
ROWS_KEPT = Margins((KEPT,) * 3, (Fraction(1),) * 3)
SAMPLERS = [
    ((3, 4), "1", PLAIN),
    ((3, 4), "1", SOME),
    ((3, 4), "50", PLAIN),
    ((5, 5), "2", Labelling(2, 3)),
    ([[1, 2, 3], [4, 5, 6], [0, 1, 12]], "2", PLAIN),
    ([[1, 2, 3, 1], [0, 1, 2, 3], [1, 1, 1, 1]], "2", SOME),
    ([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]], "1", PLAIN),
    ((3, 3), "2", PLAIN, FOCUSED),
    ((3, 3), "2", SOME, ROWS_KEPT),
    pytest.param(((3, 4), "1/8", PLAIN), marks=audit),
    pytest.param(((3, 8), "1/2", SOME), marks=audit),
    pytest.param(((300, 8), "1", PLAIN), marks=audit),
    pytest.param(([[1, 2, 3], [4, 5, 6], [0, 1, 60]], "1/2", PLAIN), marks=audit),
]


@pytest.fixture(scope="module", params=SAMPLERS, ids=str)
def pair(request):
    """A sampler with its weights in integers."""
    sizes, epsilon, labelling, *margins = request.param
    sizes = np.ones(sizes, int) if isinstance(sizes, tuple) else sizes
    sampler = ColumnSplitting(Fraction(epsilon), sizes, labelling=labelling, margins=margins[0] if margins else None)
    return sampler, ExactWeights(sampler)


def weights_of(sampler, name):
    c, group, law = name
    return sampler._laws.nodes[c].groups[group][law]


def split_of(sampler, name):
    c, base, law = name
    return sampler._laws.nodes[c].bases[base].branches[law], sampler._laws.nodes[c].bases[base].splits[law]


def assert_right(weights, true):
    for value, error, integer in zip(weights.values.tolist(), weights.errors.tolist(), true, strict=False):
        assert abs(Fraction(value) - real(integer)) <= Fraction(error) + Fraction(1, 10**110)


@pytest.mark.thinned
def test_errors_are_bounds(pair):
    """Of the weights of leaves and groups, and of the convolutions F."""
    sampler, exact = pair
    for name in exact.names():
        assert_right(weights_of(sampler, name), exact.weights(name))
    for name in exact.splits():
        whole = split_of(sampler, name)[0].whole
        assert_right(whole, exact.whole(name, whole.exponent))


def test_errors_are_small_where_sums_are_drawn(pair):
    """Relative errors of F: they may not grow to where the referee settles everything."""
    sampler, exact = pair
    for name in exact.splits():
        split = split_of(sampler, name)[1]
        assert split.reach >= 0
        assert split.slack.max() < 1e-3
        assert split.slack[0] < 1e-10


def test_a_smaller_error_is_no_bound():
    """The comparison is sharp: a thousandth of the errors of single cells is exceeded."""
    sampler = ColumnSplitting(Fraction(1, 3), np.ones((3, 3), int))
    weights, true = weights_of(sampler, (0, 0, 0)), ExactWeights(sampler).weights((0, 0, 0))
    gaps = [abs(Fraction(value) - real(integer)) for value, integer in zip(weights.values.tolist(), true, strict=False)]
    assert any(gap > Fraction(error) / 1000 for gap, error in zip(gaps, weights.errors.tolist(), strict=True))


@pytest.mark.thinned
def test_the_weights_of_a_group_are_at_least_those_of_its_labels(pair):
    """W is at least the norm of F t over all labels, whose exponents are the inverse shares."""
    sampler, exact = pair
    for c, group, law in exact.names():
        node, weights = sampler._laws.nodes[c], weights_of(sampler, (c, group, law))
        if not node.bases:
            continue
        share = mp.mpf(float(node.frequencies.raised_shares[law]))
        wholes = [exact.whole((c, label.base, law), weights.exponent) for label in node.labels[group]]
        for y in {0, 1, 2, weights.reach // 2, weights.reach}:
            logs = []
            for whole, label in zip(wholes, node.labels[group], strict=True):
                numbers = node.bases[label.base].splits[law].numbers
                value = (
                    mp.mpf(int(whole[y])) / mp.mpf(2) ** DIGITS * (numbers[y, label.block] if y < len(numbers) else 1)
                )
                logs.append(mp.log(value) if value else -mp.inf)
            highest = max(logs)
            norm = mp.exp(highest) if highest > -mp.inf else mp.mpf(0)
            if share and norm:
                norm *= sum(mp.exp((log - highest) / share) for log in logs) ** share
            assert norm <= mp.mpf(float(weights.values[y]))


def test_each_pair_of_groups_has_its_labels(pair):
    """Every base and block is one label, and one more if the two children may change places."""
    sampler, _ = pair
    for c, node in enumerate(sampler._laws.nodes):
        if not node.labels:
            continue
        children = sampler._tree.classes[c].children
        left, right = (len(sampler._laws.nodes[child].groups) for child in children)
        labels = [
            (base.right, base.left, label.block) if label.swapped else (base.left, base.right, label.block)
            for group in node.labels
            for label in group
            for base in [node.bases[label.base]]
        ]
        blocks = range(node.frequencies.blocks)
        assert sorted(labels) == sorted(product(range(left), range(right), blocks))


def test_nothing_is_larger_than_the_top_or_the_bound_beyond(pair):
    sampler, exact = pair
    for name in exact.names():
        weights, true = weights_of(sampler, name), exact.weights(name)
        assert real(max(true)) <= Fraction(weights.top)
        assert real(max(true[weights.reach + 1 :])) <= Fraction(weights.beyond)


def test_moments_are_bounds(pair):
    sampler, exact = pair
    for name in exact.names():
        weights, true = weights_of(sampler, name), [float(real(value)) for value in exact.weights(name)]
        for rate, bound in zip(weights.rates.tolist(), weights.log_moments.tolist(), strict=True):
            moment = true[0] + sum(w * (math.exp(rate * y) + math.exp(-rate * y)) for y, w in enumerate(true) if y)
            assert math.log(moment) <= bound + math.log(1.001)


@pytest.mark.parametrize("growth", [0.0, 0.5, 1.25])
def test_what_lies_beyond_tables_is_bounded(pair, growth):
    """The sum of W_L(u) W_R(y - u) e^(s|u|) over the u that a table does not have."""
    sampler, exact = pair
    s = growth * float(min((sampler._epsilon, *sampler._tree.further)))
    for name in exact.splits():
        branch, _ = split_of(sampler, name)
        left, right = branch.left, branch.right
        bounds = beyond_tables(left, right, min(left.reach, 30), s)
        for y in (0, 1, len(bounds) // 2, len(bounds) - 1):
            outside = sum(
                float(real(weight)) * math.exp(s * abs(u))
                for u, weight in exact.joint(name, y).items()
                if abs(u) > left.reach or abs(y - u) > right.reach
            )
            assert outside <= bounds[y]


def test_the_referee_has_the_same_weights(pair):
    """Within the tables and beyond them."""
    sampler, exact = pair
    with precision(160):
        for name in exact.names():
            reach = weights_of(sampler, name).reach
            balls, integers = sampler._referee.weights(name, reach + 5), exact.weights(name)
            for y in {*range(min(reach, 40)), reach, reach + 1, reach + 5}:
                value = real(integers[y])
                assert abs(balls[y] - fmpq(value.numerator, value.denominator)) < 1e-40


def test_no_part_weighs_more_than_the_peak(pair):
    sampler, exact = pair
    for name in exact.splits():
        reach = split_of(sampler, name)[1].reach
        for y in {0, min(1, reach), reach // 2, reach, reach + 1}:  # beyond the tables the product of both tops
            assert real(max(exact.joint(name, y).values())) <= Fraction(sampler._referee._peak(name, y))


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


@pytest.mark.audit
@pytest.mark.parametrize(
    "entries", [pytest.param([[116] * 3] * 2 + [[5089] * 3], marks=pytest.mark.audit), [[30] * 3] * 3 + [[3225] * 3]]
)
def test_rows_of_very_different_sizes(entries):
    """Far sums of small rows have weights that are no floats any more."""
    sampler = ColumnSplitting(Fraction(1, 4), entries)
    assert sampler.usable
    assert sampler.pilot(rng(seed=1), 10**5, 20)[0] == 20


def test_no_weight_is_called_0():
    """F is positive for all sums; the weights of a group are at least as large, and so are those of its table."""
    sampler = ColumnSplitting(Fraction(1), [[1] * 4] * 3 + [[3000] * 4] * 2)
    for node in sampler._laws.nodes:
        for group in node.groups if node.bases else ():
            assert all((weights.values > 1e-300).all() for weights in group)


@pytest.mark.parametrize(("sizes", "epsilon"), [(np.ones((20, 20)), "3"), ([[1] * 4] * 2 + [[300, 300, 1, 1]], "1/4")])
def test_the_moments_of_the_referee_are_bounds(sizes, epsilon):
    """Of the weights of the tables, which are larger than F t near their ends."""
    sampler = ColumnSplitting(Fraction(epsilon), sizes)
    tilt = Fraction(4, 5) * Fraction(epsilon)
    q = float(tilt)
    for c, node in enumerate(sampler._laws.nodes):
        for g, group in enumerate(node.groups if node.bases else ()):
            for law, weights in enumerate(group):
                y = np.arange(1, weights.reach + 1)
                logs = np.logaddexp.reduce(np.log(weights.values[1:]) + q * y) + weights.exponent * math.log(2)
                with precision(128):
                    assert logs <= float(sampler._referee._moment((c, g, law), tilt).log().mid()) + 1e-9


@pytest.mark.audit
@pytest.mark.parametrize("weight", ["1", "1/2"])
def test_an_entry_without_a_weight(weight):
    """The grand total, free: at the root F is the sum of the other weights of the added row, and its error small."""
    weights = (Fraction(weight),) * 3
    sampler = ColumnSplitting(Fraction(1), np.ones((3, 3), int), margins=Margins(weights, weights))
    exact, root = ExactWeights(sampler), sampler._tree.root_class
    flat = 0
    for law, base_branch in enumerate(sampler._laws.nodes[root].bases[0].branches):
        whole, name = base_branch.whole, (root, 0, law)
        assert_right(whole, exact.whole(name, whole.exponent)[:1])
        assert whole.errors[0] < 1e-9 * whole.values[0]
        assert base_branch.right.reach >= base_branch.left.reach or not base_branch.right.is_flat
        flat += base_branch.right.is_flat
        with precision(128):
            chances = sampler._referee.parts(name, 0)
            assert float(chances.rest.abs_upper()) < 1e-30
            unit = Fraction(2) ** whole.exponent
            assert float(chances.whole.mid()) == pytest.approx(float(Fraction(whole.values[0]) * unit), rel=1e-9)
    assert flat == 1

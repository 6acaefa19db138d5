"""The weights of column splitting, their errors and their bounds, against integers of many digits."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, fmpq
from mpmath import mp

from keepsum.sampling.core.balls import precision
from keepsum.sampling.core.rng import rng
from keepsum.sampling.l1.splitting.bundles import NONE
from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting
from keepsum.sampling.l1.splitting.slices import KEPT, MarginWeights
from keepsum.sampling.l1.splitting.weights import beyond_tables, leaf
from sampling.l1.decomposable import splitting
from sampling.l1.exact_weights import DIGITS, ExactWeights, real, split_of, weights_of
from support import mostly_audit

audit = pytest.mark.audit
PLAIN, SOME = Labelling(), Labelling(3, 2)
FOCUSED = MarginWeights((Fraction(1),) * 3, (Fraction(2, 3),) * 3, Fraction(1, 2))
ROWS_KEPT = MarginWeights((KEPT,) * 3, (Fraction(1),) * 3)
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
    (("A", "B", "C"), (4, 3, 2), "1", PLAIN),
    (("A", "B", "C"), (4, 3, 2), "3", SOME),
    (("A", "B", "C"), (4, 3, 2), "2", Labelling(3, 2, 3)),
    (("AB", "BC", "CD"), (3, 3, 3, 2), "1/2", SOME),
    (("AB", "B", "C"), (2, 3, 2), "50", PLAIN),
    pytest.param((("A", "B", "C"), (3, 3, 3), "2", Labelling(4, 4)), marks=audit),
    pytest.param((("AB", "BC", "CD"), (2, 3, 3, 2), "1", SOME), marks=audit),
    pytest.param(((3, 4), "1/8", PLAIN), marks=audit),
    pytest.param(((3, 8), "1/2", SOME), marks=audit),
    pytest.param(((300, 8), "1", PLAIN), marks=audit),
    pytest.param(([[1, 2, 3], [4, 5, 6], [0, 1, 60]], "1/2", PLAIN), marks=audit),
]


@pytest.fixture(scope="module", params=SAMPLERS, ids=str)
def pair(request):
    """A sampler with its weights in integers."""
    sampler = sampler_of(*request.param)
    return sampler, ExactWeights(sampler)


def sampler_of(first, second, *rest):
    """A two-way table: sizes, epsilon, labelling, margins; or any: margins, shape, epsilon, labelling."""
    if isinstance(first, tuple) and isinstance(first[0], str):
        epsilon, labelling = rest
        return splitting(epsilon, second, first, labelling=labelling)
    sizes = np.ones(first, int) if isinstance(first, tuple) else first
    labelling, *margins = rest
    return ColumnSplitting(Fraction(second), sizes, labelling=labelling, margins=margins[0] if margins else None)


def groups_of(sampler):
    """The weights that are not those of entries: their names, and the labels and the place of each in its form."""
    for form, own in zip(sampler._bundles.forms, sampler._laws.forms, strict=True):
        for group, labels in enumerate(own.labels):
            for k in range(len(form.parts)):
                yield (form.first + k, group), own, labels, k


def assert_right(weights, true):
    for value, error, integer in zip(weights.values.tolist(), weights.errors.tolist(), true, strict=False):
        assert abs(Fraction(value) - real(integer)) <= Fraction(error) + Fraction(1, 10**110)


@mostly_audit("pair", SAMPLERS, indirect=True, ids=str)
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
    one = sampler._bundles.entry_laws.index((1,)), 0
    weights, true = weights_of(sampler, one), ExactWeights(sampler).weights(one)
    gaps = [abs(Fraction(value) - real(integer)) for value, integer in zip(weights.values.tolist(), true, strict=False)]
    assert any(gap > Fraction(error) / 1000 for gap, error in zip(gaps, weights.errors.tolist(), strict=True))


@mostly_audit("pair", SAMPLERS, indirect=True, ids=str)
def test_the_weights_of_a_group_are_at_least_those_of_its_labels(pair):
    """W is at least the norm of F t over all labels, whose exponents are the inverse shares; also beyond the tables."""
    sampler, exact = pair
    for name, own, labels, k in groups_of(sampler):
        weights, true = weights_of(sampler, name), exact.weights(name)
        share = mp.mpf(float(own.frequencies.raised_shares[k]))
        wholes = [exact.whole((name[0], label.base), weights.exponent) for label in labels]
        for y in {0, 1, 2, weights.reach // 2, *(weights.reach + n for n in (-1, 0, 1, 2, 5, 20))}:
            if y < 0 or all(int(whole[y]) < 1 << DIGITS // 2 for whole in wholes):
                continue  # too few digits are left
            numbers = [own.bases[label.base].splits[k].numbers for label in labels]
            logs = [
                mp.log(mp.mpf(int(whole[y])) / mp.mpf(2) ** DIGITS * (t[y, label.block] if y < len(t) else 1))
                for whole, label, t in zip(wholes, labels, numbers, strict=True)
            ]
            norm = mp.exp(max(logs))
            if share:
                norm *= sum(mp.exp((log - max(logs)) / share) for log in logs) ** share
            assert norm <= mp.mpf(int(true[y])) / mp.mpf(2) ** DIGITS


@mostly_audit("pair", SAMPLERS, indirect=True, ids=str)
def test_the_same_in_balls(pair):
    """As the referee has W and F: with relative errors, so that epsilon may be as large as it likes."""
    sampler, referee = pair[0], pair[0]._referee
    for name, own, labels, k in groups_of(sampler):
        reach = weights_of(sampler, name).reach
        share = Fraction(float(own.frequencies.raised_shares[k]))
        for y in (0, 1, reach // 3, reach, reach + 1, reach + 2, reach + 7):
            with precision(200):
                terms = []
                for label in labels:
                    term = referee.whole((name[0], label.base), y)
                    terms.append(term * referee._number((name[0], label.base), y, label.block))
                unit = arb(2) ** referee._exponent(name)
                shares = [term / (referee.weights(name, y)[y] * unit) for term in terms]
                assert all(one.rad() < 1e-20 for one in shares)
                if share:
                    assert sum(one ** arb(fmpq(share.denominator, share.numerator)) for one in shares) <= 1
                else:
                    assert max(one.upper() for one in shares) <= 1


@mostly_audit("pair", SAMPLERS, indirect=True, ids=str)
def test_weights_are_at_most_c_times_those_of_all_cells(pair):
    """Within the table, where c is computed, and beyond it, where c is what weights are."""
    sampler, exact = pair
    for name in exact.names():
        weights, true = weights_of(sampler, name), exact.weights(name)
        scale = Fraction(weights.ratio) / Fraction(2) ** weights.exponent
        cells = exact.cells(exact.load_of(name[0]))
        for y in range(weights.reach + 20):
            assert real(true[y]) <= scale * real(cells[y]) + Fraction(1, 10**110)
        assert weights.ratio >= 1 if sampler._bundles.form_of_law[name[0]] < 0 else weights.ratio > 0


def test_each_group_of_the_right_children_has_its_labels(pair):
    """Every base and block is one label; left children have a group for each tag, an entry of a further table a tag."""
    sampler, _ = pair
    bundles, laws = sampler._bundles, sampler._laws
    for form, own in zip(bundles.forms, laws.forms, strict=True):
        groups = {len(laws.weights[right]) for _, right in form.parts if bundles.form_of_law[right] >= 0}
        assert len(own.bases) == max(groups, default=1)
        tags = 1 if form.entries == NONE else len(laws.forms[form.entries].labels)
        assert {len(laws.weights[left]) for left, _ in form.parts} <= {1, tags}
        assert {base.tag for base in own.bases} == set(range(tags))
        if not form.is_grafted:
            assert all(len({own.bases[label.base].tag for label in labels}) == 1 for labels in own.labels)
        assert all(len(laws.weights[form.first + k]) == len(own.labels) for k in range(len(form.parts)))
        assert bool(own.labels) != form.is_root
        if form.is_root:
            continue
        assert len(own.labels) == 1 or not form.is_grafted or form.has_tags
        labels = [(label.base, label.block) for group in own.labels for label in group]
        assert sorted(labels) == sorted(product(range(len(own.bases)), range(own.frequencies.blocks)))


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
            moment = true[0] + sum(
                w * (math.exp(rate * y) + math.exp(-rate * y)) for y, w in enumerate(true) if y and w
            )
            assert math.log(moment) <= bound + math.log(1.001)


@pytest.mark.parametrize("growth", [0.0, 0.5, 1.25])
def test_what_lies_beyond_tables_is_bounded(pair, growth):
    """The sum of W_L(u) W_R(y - u) e^(s|u|) over the u that a table does not have, or that are not followed."""
    sampler, exact = pair
    s = growth * float(min(rate for rate in (sampler._epsilon, *sampler._bundles.further) if rate))
    for name in exact.splits():
        branch, _ = split_of(sampler, name)
        left, right = branch.left, branch.right
        sums = np.unique([0, 1, 15, 30, min(branch.whole.reach, 30)])
        for ends in (None, branch.reach, branch.reach // 2):
            bounds = beyond_tables(left, right, sums, s, ends)
            for y, bound in zip(sums.tolist(), bounds, strict=True):
                outside = sum(
                    float(real(weight)) * math.exp(s * abs(u))
                    for u, weight in exact.joint(name, y).items()
                    if (abs(u) > (left.reach if ends is None else ends) or abs(y - u) > right.reach)
                    and float(real(weight))
                )  # weights that floats cannot hold are far below the others
                assert outside <= bound


@mostly_audit("pair", SAMPLERS, indirect=True, ids=str)
def test_tails_of_parts_are_bounded(pair):
    """The moments of e^(s(u - centre y)) and of e^(-s(u - centre y)), for all sums that tables draw."""
    sampler, exact = pair
    for name in exact.splits():
        kept, split = sampler._laws.forms[sampler._bundles.form_of_law[name[0]]].frequencies, split_of(sampler, name)[1]
        if kept is None:
            continue
        for y in {0, 1, split.reach // 2, split.reach} & set(range(split.reach + 1)):
            lowest, chances = exact.chances(name, y)
            far = kept.growth * (np.arange(lowest, lowest + len(chances)) - kept.centre * y)
            logs = np.array([math.log(p) if p > Fraction(1, 10**250) else -math.inf for p in chances])
            for sign in (1, -1):
                assert np.logaddexp.reduce(logs + sign * far) <= split.log_growth[y] + 1e-9


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
    checked = 0
    for name, *_ in groups_of(sampler):
        assert (weights_of(sampler, name).values > 1e-300).all()
        checked += 1
    assert checked


@pytest.mark.parametrize(("sizes", "epsilon"), [(np.ones((20, 20)), "3"), ([[1] * 4] * 2 + [[300, 300, 1, 1]], "1/4")])
def test_the_moments_of_the_referee_are_bounds(sizes, epsilon):
    """Of the weights of the tables, which are larger than F t near their ends."""
    sampler = ColumnSplitting(Fraction(epsilon), sizes)
    tilt = Fraction(4, 5) * Fraction(epsilon)
    q = float(tilt)
    for name, *_ in groups_of(sampler):
        weights = weights_of(sampler, name)
        y = np.arange(1, weights.reach + 1)
        logs = np.logaddexp.reduce(np.log(weights.values[1:]) + q * y) + weights.exponent * math.log(2)
        with precision(128):
            assert logs <= float(sampler._referee._moment(name, tilt).log().mid()) + 1e-9


@pytest.mark.audit
@pytest.mark.parametrize("weight", ["1", "1/2"])
def test_an_entry_without_a_weight(weight):
    """The grand total, free: at the root F is the sum of the other weights of the added row, and its error small."""
    weights = (Fraction(weight),) * 3
    sampler = ColumnSplitting(Fraction(1), np.ones((3, 3), int), margins=MarginWeights(weights, weights))
    exact = ExactWeights(sampler)
    (root,) = [k for k, form in enumerate(sampler._bundles.forms) if form.is_root]
    flat = 0
    for law, base_branch in enumerate(sampler._laws.forms[root].bases[0].branches, sampler._bundles.forms[root].first):
        whole, name = base_branch.whole, (law, 0)
        assert_right(whole, exact.whole(name, whole.exponent)[:1])
        assert whole.errors[0] < 1e-9 * whole.values[0]
        assert base_branch.left.reach >= base_branch.right.reach or not base_branch.left.is_flat
        flat += base_branch.left.is_flat
        with precision(128):
            chances = sampler._referee.parts(name, 0)
            assert float(chances.rest.abs_upper()) < 1e-30
            unit = Fraction(2) ** whole.exponent
            assert float(chances.whole.mid()) == pytest.approx(float(Fraction(whole.values[0]) * unit), rel=1e-9)
    assert flat == 1

"""Releases of the same people: composed losses against enumerated divergences, and wrong rules that these reject."""

import math
from fractions import Fraction

import numpy as np
import pytest

from accounting.divergences import (
    COLUMNS_KEPT,
    ROWS_KEPT,
    ROWS_OF_THREE_KEPT,
    SWAP,
    SWAP_OF_THREE,
    THREE_COLUMNS_KEPT,
    gaussian,
    grouped,
    hockey_stick,
    l1_laplace,
    l2_laplace,
    largest_log_ratio,
    outputs,
    renyi,
    together,
    worst,
)
from keepsum.accounting.composition import compose
from keepsum.accounting.total import Cost
from keepsum.privacy.calibration import zcdp
from keepsum.privacy.distance import Distance, delta_at
from support import mostly_audit

ONE, MOST, HALF = Fraction(1), Fraction(3, 4), Fraction(1, 2)
LATTICES = {"same": (ROWS_KEPT, ROWS_KEPT), "different": (ROWS_KEPT, COLUMNS_KEPT)}


def l1(z) -> Distance:
    return Distance("l1", int(np.abs(z).sum()))


def l2(z) -> Distance:
    return Distance("l2", int((np.asarray(z) ** 2).sum()))


@mostly_audit("totals", LATTICES)
@pytest.mark.parametrize("times", [1, 2])
def test_pure_losses_add_up(totals, times):
    """Both bounds are attained: the output that equals one of the tables tells them apart best."""
    first, second = LATTICES[totals]
    z = times * SWAP
    pair = together(outputs(first, l1_laplace(1), z, 24), outputs(second, l1_laplace(0.75), z, 28))
    loss = compose([Cost("l1", ONE), Cost("l1", MOST)]).at(l1(z))
    assert largest_log_ratio(pair) == pytest.approx(float(loss.epsilon), abs=1e-9)
    assert loss.delta is None
    assert hockey_stick(pair, float(loss.epsilon)) < 1e-14


def test_pure_losses_of_a_larger_table_add_up():
    first = grouped(outputs(ROWS_OF_THREE_KEPT, l1_laplace(2), SWAP_OF_THREE, 12))
    second = grouped(outputs(THREE_COLUMNS_KEPT, l1_laplace(1.5), SWAP_OF_THREE, 15))
    loss = compose([Cost("l1", Fraction(2)), Cost("l1", Fraction(3, 2))]).at(l1(SWAP_OF_THREE))
    assert largest_log_ratio(together(first, second)) == pytest.approx(float(loss.epsilon), abs=1e-8)


def test_l2_losses_of_one_table_add_up_per_unit_of_l2():
    pair = together(outputs(ROWS_KEPT, l2_laplace(1.5), SWAP, 28), outputs(COLUMNS_KEPT, l2_laplace(1.5), SWAP, 28))
    total = compose([Cost("l2", Fraction(3, 2))] * 2)
    assert (total.norm, total.mixed) == ("l2", False)
    assert largest_log_ratio(pair) == pytest.approx(float(total.at(l2(SWAP)).epsilon), abs=1e-9)


def test_mixed_norms_add_up_per_unit_of_l1_only():
    pair = together(outputs(ROWS_KEPT, l1_laplace(1), SWAP, 24), outputs(COLUMNS_KEPT, l2_laplace(1.5), SWAP, 28))
    total = compose([Cost("l1", ONE), Cost("l2", Fraction(3, 2))])
    assert (total.norm, total.mixed) == ("l1", True)
    assert "in l1" in total.words
    ratio = largest_log_ratio(pair)
    assert ratio < float(total.at(l1(SWAP)).epsilon)
    assert ratio > float(total.epsilon) * math.sqrt(l2(SWAP).length) + 0.1  # per unit of l2 would be wrong


def test_different_tables_add_up_per_unit_of_l1_only():
    """Cells 0 1 2 3 with 0 + 2 and 1 + 3 kept; then merged as 0 + 1 and 2 + 3 with their sum kept."""
    z, merged = np.array([1, 1, -1, -1]), np.array([2, -2])
    assert (l2(z).value, l2(merged).value) == (2, math.sqrt(8))
    costs = [Cost("l2", Fraction(3, 2)), Cost("l2", Fraction(2))]
    pair = together(outputs(COLUMNS_KEPT, l2_laplace(1.5), z, 28), outputs([[1, -1]], l2_laplace(2), merged, 20))
    total = compose(costs, same_table=False)
    assert total.norm == "l1"
    ratio = largest_log_ratio(pair)
    assert ratio <= float(total.at(l1(z)).epsilon)
    assert ratio > float(compose(costs).at(l2(z)).epsilon) + 0.1  # as if they were one table: wrong


def test_different_tables_add_up_per_squared_l1_only():
    z, merged = np.array([1, 1, -1, -1]), np.array([2, -2])
    costs = [Cost("l2", rho=Fraction(1, 8)), Cost("l2", rho=Fraction(1, 8))]
    pair = together(outputs(COLUMNS_KEPT, gaussian(2), z, 20), outputs([[1, -1]], gaussian(2), merged, 24))
    divergence = renyi(pair, 2) / 2
    assert divergence <= compose(costs, same_table=False).at(l1(z)).rho
    assert divergence > compose(costs).at(l2(z)).rho + Fraction(1, 10)


@pytest.mark.parametrize("totals", LATTICES)
@pytest.mark.parametrize("alpha", [1.5, 2, 5])
def test_rhos_add_up(totals, alpha):
    """And are attained: Renyi divergences of Gaussian noise come within 1e-6 of the bound."""
    first, second = LATTICES[totals]
    pair = together(outputs(first, gaussian(2), SWAP, 20), outputs(second, gaussian(1.5), SWAP, 18))
    total = compose([Cost("l2", rho=Fraction(1, 8)), Cost("l2", rho=Fraction(2, 9))])
    bound = alpha * float(total.at(l2(SWAP)).rho)
    assert bound * (1 - 1e-6) <= renyi(pair, alpha) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [1.05, 1.5, 2, 5, 20])
def test_pure_losses_count_as_half_their_square(alpha):
    """The worst pair for a pure loss, with Gaussian noise; nearly attained for orders near 1."""
    pure = worst(0.5, 0)
    pair = together((pure[0][1:3], pure[1][1:3]), outputs([[1]], gaussian(4), [1], 60))
    bound = alpha * float(compose([Cost("l2", HALF), Cost("l2", rho=Fraction(1, 32))]).at(Distance("l2", 1)).rho)
    assert renyi(pair, alpha) <= bound
    assert alpha > 1.1 or renyi(pair, alpha) > 0.97 * bound


@pytest.mark.parametrize("delta", ["1e-9", "1e-6", "1e-3", "0.1"])
@pytest.mark.parametrize("totals", LATTICES)
def test_pure_and_gaussian_at_a_delta(totals, delta):
    first, second = LATTICES[totals]
    pair = together(outputs(first, l1_laplace(1), SWAP, 24), outputs(second, gaussian(3), SWAP, 26))
    target = Fraction(delta)
    loss = compose([Cost("l1", ONE), Cost("l2", rho=Fraction(1, 18))]).at(l1(SWAP), target)
    assert loss.delta == target
    assert hockey_stick(pair, float(loss.epsilon)) <= float(target)


def test_an_adaptive_release_costs_no_more():
    """The second release depends on the first: Laplace noise where its output was positive, else Gaussian noise.

    The third has whatever noise the second had not, so that in all there is one of each.
    """
    a, b = outputs([[1, -1]], l1_laplace(1), [1, -1], 22), outputs([[1, -1]], gaussian(2), [1, -1], 24)
    first = outputs([[1, -1]], l1_laplace(1), [1, -1], 22)
    positive = np.arange(len(first[0])) > 22
    branches = [
        together((first[0][chosen], first[1][chosen]), together(*order))
        for chosen, order in ((positive, (a, b)), (~positive, (b, a)))
    ]
    pair = tuple(np.concatenate([branch[side] for branch in branches]) for side in (0, 1))
    total = compose([Cost("l1", ONE), Cost("l1", ONE), Cost("l2", rho=Fraction(1, 8))])
    for delta in (Fraction(1, 10**6), Fraction(1, 100)):
        assert hockey_stick(pair, float(total.at(Distance("l1", 2), delta).epsilon)) <= float(delta)


def test_many_small_losses_add_up_to_less_at_a_delta():
    """200 times the worst pair for epsilon 0.05, whose number of right guesses is binomial."""
    times, delta = 200, Fraction(1, 10**6)
    total = compose([Cost("l1", Fraction(1, 20))] * times)
    assert total.at(Distance("l1", 1)).epsilon == 10
    loss = total.at(Distance("l1", 1), delta)
    assert loss.epsilon < 5
    right = math.exp(0.05) / (1 + math.exp(0.05))
    p = np.array([math.comb(times, k) * right**k * (1 - right) ** (times - k) for k in range(times + 1)])
    assert hockey_stick((p, p[::-1]), float(loss.epsilon)) <= float(delta)
    assert hockey_stick((p, p[::-1]), float(loss.epsilon) * 0.9) > float(delta)  # nearly attained


def stated(epsilon: str, delta: str) -> Cost:
    guarantee = (Fraction(epsilon), Fraction(delta))
    return Cost("l2", rho=1 / (2 * zcdp(*guarantee) ** 2), stated=guarantee)


@pytest.mark.parametrize("distance", [Distance("l2", 1), Distance("l2", 2), Distance("l2", 9)])
def test_stated_epsilons_and_deltas_add_up(distance):
    """At the worst pair for each: the sum of deltas is attained up to their product, the larger one is not enough."""
    costs = [stated("0.5", "1e-4"), stated("0.25", "2e-4")]
    pairs = [worst(float(c.stated[0]) * distance.value, float(delta_at(*c.stated, distance))) for c in costs]
    total = compose(costs)
    approximate = total.approximate
    epsilon, delta = float(approximate.epsilon) * distance.value, float(approximate.delta_at(distance))
    attained = hockey_stick(together(*pairs), epsilon)
    assert delta * 0.999 < attained <= delta
    assert attained > max(float(delta_at(*c.stated, distance)) for c in costs) * 1.1
    # Only where the deltas together are allowed.
    summed = approximate.delta_at(distance)
    candidates = total._candidates(distance, distance.length, summed)
    assert candidates[2] == (pytest.approx(Fraction(epsilon)), summed)
    assert len(total._candidates(distance, distance.length, summed * Fraction(99, 100))) == 2


def test_each_rule_is_the_best_somewhere():
    unit = Distance("l1", 1)
    pure_first = compose([Cost("l1", Fraction(2)), Cost("l2", rho=Fraction(1, 10**4))])
    assert pure_first.at(unit, Fraction(1, 10**6)).epsilon < 3 < _rule(pure_first, 1)
    zcdp_first = compose([Cost("l1", Fraction(1, 20))] * 200 + [Cost("l2", rho=Fraction(1, 10))])
    assert zcdp_first.at(unit, Fraction(1, 10**6)).epsilon == _rule(zcdp_first, 1) < _rule(zcdp_first, 0)
    # A stated guarantee that is better than what follows from rho: possible, as its proof is another one.
    stated_first = compose([Cost("l1", ONE), Cost("l2", rho=ONE, stated=(HALF, Fraction(1, 10**7)))])
    loss = stated_first.at(unit, Fraction(1, 10**6))
    assert (loss.epsilon, loss.delta) == (Fraction(3, 2), Fraction(1, 10**7))
    rest = compose([stated_first, Cost("l2", rho=Fraction(1, 10**6))]).at(unit, Fraction(1, 10**6))
    assert Fraction(3, 2) < rest.epsilon < Fraction(8, 5)
    assert rest.delta == Fraction(1, 10**6)
    # Nothing is left for the conversion of the rest: that rule is out.
    nothing_left = compose([stated_first, Cost("l2", rho=Fraction(1, 10**6))])
    assert len(nothing_left._candidates(unit, 1, Fraction(1, 10**7))) == 2


def _rule(total, index: int) -> Fraction:
    return total._candidates(Distance("l1", 1), 1, Fraction(1, 10**6))[index][0]


def test_sampling_errors_add_up_under_the_factor():
    """Each law is moved by its error towards the output that tells most: (1 + e^epsilon) times the sum is attained."""
    errors = [Fraction(1, 1000), Fraction(2, 1000)]
    costs = [Cost("l1", HALF, error=error, sampling="rounded") for error in errors]
    moved = []
    for error in errors:
        p, q = (side[1:3] for side in worst(0.5, 0))
        d = float(error)
        moved.append((p + np.array([d, -d]), q + np.array([-d, d])))
    total = compose(costs)
    assert (total.error, total.sampling) == (Fraction(3, 1000), "rounded")
    loss = total.at(Distance("l1", 1))
    assert loss.epsilon == 1
    needed = hockey_stick(together(*moved), 1.0)
    assert needed <= float(loss.delta) == pytest.approx(0.003 * (1 + math.e), rel=1e-9)
    assert needed > 0.003  # the total variation alone is not enough
    one = compose(costs[:1]).at(Distance("l1", 1))
    assert hockey_stick(moved[0], 0.5) == pytest.approx(float(one.delta), rel=1e-9)


def test_the_weakest_sampling_counts():
    exact, chain = Cost("l1", ONE), Cost("l1", ONE, error=Fraction(1, 100), sampling="estimated")
    total = compose([exact, chain, Cost("l1", ONE, error=Fraction(1, 10**9), sampling="rounded")])
    assert total.sampling == "estimated"
    assert "Sampling is estimated" in total.words
    assert "confidence limit" in total.words
    assert compose([chain] * 200).error == 1
    assert compose([chain] * 200).at(Distance("l1", 1)).delta == 1
    assert "Sampling" not in compose([exact, exact]).words


def test_totals_compose_as_their_releases_do():
    costs = [Cost("l2", HALF), stated("0.5", "1e-4"), Cost("l2", rho=Fraction(1, 7)), stated("0.5", "1e-5")]
    whole = compose(costs)
    assert compose([compose(costs[:2]), compose(costs[2:])]) == whole
    assert whole.releases == 4
    assert len(whole.approximate.deltas) == 1  # two that grow alike


def test_words_say_per_which_unit_and_between_which_datasets():
    words = compose([Cost("l1", ONE), Cost("l1", HALF)]).words
    assert words == (
        "2 releases together: epsilon 1.5 per unit of l1 distance. This holds between datasets that agree on the kept "
        "totals of all of these releases; what follows from those totals is not protected."
    )
    one = compose([Cost("l2", rho=Fraction(1, 4))]).words
    assert one.startswith("One release: rho 0.25 (zCDP) at l2 distance 1, growing with the square of the l2 distance.")
    assert "the kept totals of this release;" in one

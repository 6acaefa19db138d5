"""Releases of disjoint parts: composed losses against enumerated divergences, and wrong rules that these reject."""

import math
from fractions import Fraction

import numpy as np
import pytest

from accounting.divergences import (
    gaussian,
    hockey_stick,
    l1_laplace,
    l2_laplace,
    largest_log_ratio,
    outputs,
    renyi,
    together,
    worst,
)
from keepsum.accounting.composition import compose, compose_parallel
from keepsum.accounting.total import Cost
from keepsum.errors import InputError
from keepsum.privacy.calibration import epsilon_of
from keepsum.privacy.distance import Distance, delta_at, epsilon_at

PAIR = [[1, -1]]  # two cells with a kept sum: the lattice of each part


def release(weight, moved: int, reach: int = 40):
    """The release of a part where so many people moved."""
    return outputs(PAIR, weight, [moved, -moved], reach)


def distance(norm: str, *moved: int) -> Distance:
    return Distance(norm, 2 * sum(abs(m) if norm == "l1" else m * m for m in moved))


MOVES = [(1, 0), (0, 1), (1, 1), (2, -1), (1, 3)]


@pytest.mark.parametrize("moved", MOVES)
def test_the_largest_epsilon_per_unit_of_l1(moved):
    pair = together(release(l1_laplace(1), moved[0]), release(l1_laplace(0.75), moved[1]))
    total = compose_parallel([Cost("l1", Fraction(1)), Cost("l1", Fraction(3, 4))])
    bound = float(total.at(distance("l1", *moved)).epsilon)
    assert largest_log_ratio(pair) <= bound + 1e-9
    assert moved[1] or largest_log_ratio(pair) == pytest.approx(bound)
    assert hockey_stick(pair, bound) < 1e-14


@pytest.mark.parametrize("moved", MOVES)
def test_the_root_of_squares_for_l2_laplace(moved):
    """Attained where parts move in proportion to their epsilons; the maximum per unit of l2 is wrong there."""
    pair = together(release(l2_laplace(1), moved[0]), release(l2_laplace(1), moved[1]))
    costs = [Cost("l2", Fraction(1))] * 2
    ratio = largest_log_ratio(pair)
    total, by_l1 = compose_parallel(costs), compose_parallel(costs, norm="l1")
    assert (total.norm, by_l1.norm, by_l1.epsilon) == ("l2", "l1", 1)
    assert total.epsilon == Fraction("1.41421356238")  # rounded up
    assert total.epsilon**2 >= 2
    assert ratio <= float(total.at(distance("l2", *moved)).epsilon) + 1e-9
    assert ratio <= float(by_l1.at(distance("l1", *moved)).epsilon) + 1e-9
    if moved == (1, 1):
        assert ratio == pytest.approx(float(total.at(distance("l2", 1, 1)).epsilon))
        assert ratio > math.sqrt(distance("l2", 1, 1).length) * 1 + 0.5  # the largest epsilon per unit of l2


@pytest.mark.parametrize("moved", MOVES)
@pytest.mark.parametrize("alpha", [1.5, 2, 4])
def test_the_largest_rho(moved, alpha):
    pair = together(release(gaussian(2), moved[0]), release(gaussian(3), moved[1]))
    total = compose_parallel([Cost("l2", rho=Fraction(1, 8)), Cost("l2", rho=Fraction(1, 18))])
    assert total.rho == total.zcdp == Fraction(1, 8)
    bound = alpha * float(total.at(distance("l2", *moved)).rho)
    assert renyi(pair, alpha) <= bound * (1 + 1e-9)
    assert moved[1] or renyi(pair, alpha) == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("moved", MOVES)
def test_pure_and_gaussian_parts_at_a_delta(moved):
    pair = together(release(l1_laplace(0.75), moved[0]), release(gaussian(2), moved[1]))
    total = compose_parallel([Cost("l1", Fraction(3, 4)), Cost("l2", rho=Fraction(1, 8))])
    assert total.zcdp == Fraction(9, 32)  # the larger of rho and epsilon^2 / 2
    for delta in (Fraction(1, 10**6), Fraction(1, 100)):
        assert hockey_stick(pair, float(total.at(distance("l1", *moved), delta).epsilon)) <= float(delta)


GROWTHS = [(Fraction(1, 2), Fraction(1, 1000)), (Fraction(1, 4), Fraction(2, 1000))]


def told(stated, length: Distance):
    """The worst pair for a stated guarantee at a distance; nothing is lost at 0."""
    if length.length == 0:
        return np.array([1.0]), np.array([1.0])
    return worst(float(stated[0]) * float(length.value), float(delta_at(*stated, length)))


@pytest.mark.parametrize("moved", [(1, 0), (0, 1), (1, 1), (2, 1), (3, 3)])
def test_deltas_by_l1_are_the_largest_and_by_l2_the_sum(moved):
    """One cell in each part, at the worst pairs for the stated guarantees."""
    pair = together(*(told(stated, Distance("l1", m)) for stated, m in zip(GROWTHS, moved, strict=True)))
    costs = [Cost("l2", rho=Fraction(1), stated=stated) for stated in GROWTHS]
    by_l1, by_l2 = compose_parallel(costs, norm="l1").approximate, compose_parallel(costs).approximate
    assert (by_l1.epsilon, by_l1.deltas) == (Fraction(1, 2), ((Fraction(1, 2), Fraction(2, 1000)),))
    assert by_l2.epsilon**2 >= Fraction(5, 16) > (by_l2.epsilon - Fraction(1, 10**11)) ** 2
    for approximate, length in (
        (by_l1, Distance("l1", sum(moved))),
        (by_l2, Distance("l2", sum(m * m for m in moved))),
    ):
        epsilon, delta = float(approximate.epsilon) * float(length.value), float(approximate.delta_at(length))
        assert hockey_stick(pair, epsilon) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("moved", [(1, 0), (0, 1), (1, 1), (0, 2)])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_stated_part_beside_one_that_states_rho(moved, norm):
    """The part without an epsilon is converted at what the other leaves of delta."""
    stated, sigma, length = GROWTHS[0], 4, Distance(norm, sum(m if norm == "l1" else m * m for m in moved))
    pair = together(told(stated, Distance("l1", moved[0])), outputs([[1]], gaussian(sigma), [moved[1]], 60))
    rho = Fraction(1, 2 * sigma**2)
    total = compose_parallel([Cost("l2", rho=Fraction(1), stated=stated), Cost("l2", rho=rho)], norm=norm)
    assert total.approximate.rho == rho
    loss = total.at(length, Fraction(1, 100))
    assert hockey_stick(pair, float(loss.epsilon)) <= 0.01
    square = length.length if norm == "l2" else length.length**2
    left = Fraction(1, 100) - delta_at(*stated, length)
    assert loss.epsilon == epsilon_at(stated[0], length) + epsilon_of(rho * square, left)


def test_the_largest_delta_by_l2_would_be_wrong():
    stated = (Fraction(1, 1000), Fraction(1, 1000))
    pair = together(told(stated, Distance("l2", 1)), told(stated, Distance("l2", 1)))
    total = compose_parallel([Cost("l2", rho=Fraction(1), stated=stated)] * 2).approximate
    apart = Distance("l2", 2)
    needed = hockey_stick(pair, float(total.epsilon) * float(apart.value))
    assert needed > 1.3 * float(delta_at(total.epsilon, stated[1], apart))
    assert needed <= float(total.delta_at(apart))


def test_sampling_errors_add_up():
    """Every part is sampled, also one where nobody moved, whose draws may tell the dataset by their error alone."""
    cost = Cost("l1", Fraction(1, 2), error=Fraction(1, 1000), sampling="rounded")
    p, q = (side[1:3] for side in worst(0.5, 0))
    step = np.array([0.001, -0.001])
    idle = np.array([0.999, 0.001, 0.0]), np.array([0.999, 0.0, 0.001])
    total = compose_parallel([cost, cost])
    assert total.error == Fraction(1, 500)
    loss = total.at(Distance("l1", 1))
    needed = hockey_stick(together((p + step, q - step), idle), float(loss.epsilon))
    largest = compose_parallel([cost]).at(Distance("l1", 1))
    assert largest.epsilon == loss.epsilon
    assert 1.3 * float(largest.delta) < needed <= float(loss.delta)


def test_parts_with_several_releases():
    """In each part losses add up first, and then the part that costs most counts."""
    half, one = Cost("l1", Fraction(1, 2)), Cost("l1", Fraction(1))
    total = compose_parallel([compose([half, half, half]), one])
    assert (total.epsilon, total.releases) == (Fraction(3, 2), 4)
    whole = compose([total, half])
    assert (whole.epsilon, whole.releases) == (2, 5)


def test_l1_parts_have_no_total_per_unit_of_l2():
    with pytest.raises(InputError, match=r"Norm must be 'l1' where a release has noise in the l1 norm, got 'l2'\."):
        compose_parallel([Cost("l1", Fraction(1)), Cost("l2", Fraction(1))], norm="l2")
    assert compose_parallel([Cost("l1", Fraction(1)), Cost("l2", Fraction(1))]).mixed

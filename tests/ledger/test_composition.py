"""What a ledger says was spent, against the joint law of all outputs, enumerated on small lattices."""

import math
from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from accounting.divergences import (
    COLUMNS_KEPT,
    ROWS_KEPT,
    SWAP,
    gaussian,
    grouped,
    hockey_stick,
    l1_laplace,
    l2_laplace,
    largest_log_ratio,
    outputs,
    renyi,
    together,
)
from ledger.making import COLUMNS, DOMAIN, ROWS, charge, laplace

MOST = Fraction(3, 4)
KEPT = {"rows": (ROWS, ROWS_KEPT), "columns": (COLUMNS, COLUMNS_KEPT)}
MOVE = np.array([1, -1, 0, 0])  # one person changes sex, which keeps the rows
COUNTY = ks.Domain({"county": ["Alpha", "Beta"]})


def opened(tmp_path, budget: ks.Budget, domain: ks.Domain | None = None) -> ks.Ledger:
    return ks.Ledger.create(tmp_path / f"{len(list(tmp_path.iterdir()))}.db", budget=budget, domain=domain)


def charged(tmp_path, *plans: ks.Plan, domain: ks.Domain | None = None, **budget) -> ks.Ledger:
    """The same releases charged to a budget per unit, and to one per person."""
    options = budget or {"epsilon": 100}
    ledgers = [opened(tmp_path, kind(**options), domain) for kind in (ks.Budget.per_unit, ks.Budget)]
    for ledger in ledgers:
        for plan in plans:
            charge(ledger, plan)
    return [ledger.standing() for ledger in ledgers]


@pytest.mark.parametrize("second", KEPT)
@pytest.mark.parametrize("first", KEPT)
def test_two_releases_with_the_same_and_with_different_totals(tmp_path, first, second):
    """The loss per unit is attained, and so is that of a person: no smaller number would be true."""
    unit, person = charged(tmp_path, laplace(1, KEPT[first][0]), laplace(MOST, KEPT[second][0]))
    pair = together(
        grouped(outputs(KEPT[first][1], l1_laplace(1), SWAP, 24)),
        grouped(outputs(KEPT[second][1], l1_laplace(0.75), SWAP, 28)),
    )
    assert unit.spent.epsilon == 1 + MOST
    assert person.distance.length == 4
    assert person.spent.epsilon == 4 * (1 + MOST)
    assert largest_log_ratio(pair) == pytest.approx(float(unit.spent.epsilon) * np.abs(SWAP).sum())
    assert largest_log_ratio(pair) == pytest.approx(float(person.spent.epsilon))
    if first != second:  # each alone has a change at distance 2, and the sum of those would be too little
        alone = [charged(tmp_path, laplace(1, KEPT[each][0]))[1].distance.length for each in KEPT]
        assert alone == [4, 4]
        assert largest_log_ratio(pair) > 2 * 1 + 2 * float(MOST) + 1


def test_totals_kept_later_count_for_what_was_released_before(tmp_path):
    """First nothing but the grand total is kept: one person is at 2. Then rows are: a change of county takes two."""
    total = ks.Invariants.margins(DOMAIN, [[]])
    (_, before), (_, after) = charged(tmp_path, laplace(1, total)), charged(tmp_path, laplace(1, total), laplace(MOST))
    assert (before.spent.epsilon, after.spent.epsilon) == (2, 4 * (1 + MOST))
    free = [[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]]
    first, second = outputs(free, l1_laplace(2), SWAP, 20), outputs(ROWS_KEPT, l1_laplace(1.5), SWAP, 20)
    pair = together(grouped(first), grouped(second))
    assert largest_log_ratio(pair) == pytest.approx(2 * float(after.spent.epsilon))  # at twice the epsilons


def test_a_third_release_of_either(tmp_path):
    unit, person = charged(tmp_path, laplace(1), laplace(MOST, COLUMNS), laplace(1))
    assert (unit.spent.epsilon, person.spent.epsilon) == (2 + MOST, 4 * (2 + MOST))


@pytest.mark.parametrize("delta", ["1e-3", "1e-6"])
def test_laplace_and_gaussian_noise_at_a_delta(tmp_path, delta):
    """The hockey-stick divergence at the epsilon that the ledger states is at most its delta."""
    plans = (
        ks.plan(keep=COLUMNS, mechanism=ks.Gaussian(sigma=2)),
        laplace(1),
    )  # the first decides that all is counted as zCDP
    unit, person = charged(tmp_path, *plans, epsilon=100, delta=delta)
    first, second = outputs(ROWS_KEPT, l1_laplace(1), SWAP, 24), outputs(COLUMNS_KEPT, gaussian(2), SWAP, 26)
    pair = together(grouped(first), grouped(second))
    assert hockey_stick(pair, float(person.spent.epsilon)) <= float(Fraction(delta))
    assert hockey_stick(pair, float(unit.spent.epsilon)) > float(Fraction(delta))  # that of distance 1 is too little


def test_laplace_and_gaussian_noise_in_rho(tmp_path):
    unit, person = charged(tmp_path, laplace(1), ks.plan(keep=COLUMNS, mechanism=ks.Gaussian(sigma=2)), rho=100)
    first, second = outputs(ROWS_KEPT, l1_laplace(1), SWAP, 24), outputs(COLUMNS_KEPT, gaussian(2), SWAP, 26)
    pair = together(grouped(first), grouped(second))
    assert unit.spent.rho == Fraction(1, 2) + Fraction(1, 8)
    assert person.spent.rho == 16 * unit.spent.rho  # in l1, as the noise of both norms is among them
    for alpha in (1.5, 2, 4):
        assert renyi(pair, alpha) <= alpha * float(person.spent.rho)


def test_gaussian_noise_alone_is_per_unit_of_l2(tmp_path):
    plans = [ks.plan(keep=kept, mechanism=ks.Gaussian(sigma=2)) for kept in (ROWS, COLUMNS)]
    _, person = charged(tmp_path, *plans, rho=100)
    assert (person.distance.norm, person.distance.length) == ("l2", 4)
    assert person.spent.rho == 4 * 2 * Fraction(1, 8)
    pair = together(*(grouped(outputs(basis, gaussian(2), SWAP, 22)) for basis in (ROWS_KEPT, COLUMNS_KEPT)))
    for alpha in (1.5, 2, 4):
        assert renyi(pair, alpha) == pytest.approx(alpha * float(person.spent.rho), rel=0.02)


def test_l2_noise_of_one_table_is_per_unit_of_l2(tmp_path):
    plans = [laplace(1, kept, norm="l2") for kept in (ROWS, COLUMNS)]
    unit, person = charged(tmp_path, *plans)
    pair = together(*(grouped(outputs(basis, l2_laplace(1.5), SWAP, 28)) for basis in (ROWS_KEPT, COLUMNS_KEPT)))
    assert person.distance.length == 4  # squared
    assert float(person.spent.epsilon) == pytest.approx(2 * 2)
    assert largest_log_ratio(pair) == pytest.approx(1.5 * float(person.spent.epsilon))
    assert unit.spent.epsilon == 2


# -- different tables ------------------------------------------------------------------------------------------------


def merged(z: np.ndarray) -> np.ndarray:
    """The table by county."""
    return np.array([z[0] + z[1], z[2] + z[3]])


def test_a_merged_table_is_charged_per_unit_of_l1(tmp_path):
    """The difference (1, 1, -1, -1) has l2 length 2, merged 2.83: a loss per unit of l2 would be wrong."""
    total, by_county = ks.Invariants.margins(DOMAIN, [[]]), ks.Invariants.margins(COUNTY, [[]])
    plans = [laplace(1, kept, norm="l2") for kept in (total, by_county)]
    unit, person = charged(tmp_path, *plans, domain=DOMAIN)
    assert (unit.spent.epsilon, unit.distance.norm, person.distance.norm) == (2, "l1", "l1")
    assert person.spent.epsilon == 2 * 2
    z = np.array([1, 1, -1, -1])
    free = [[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]]
    pair = together(
        grouped(outputs(free, l2_laplace(3), z, 16)), grouped(outputs([[1, -1]], l2_laplace(3), merged(z), 20))
    )
    ratio = largest_log_ratio(pair) / 3
    assert ratio <= float(unit.spent.epsilon) * np.abs(z).sum()
    assert ratio > 2 * math.sqrt(4) + 0.5


def test_merged_tables_of_l1_noise(tmp_path):
    total, by_county = ks.Invariants.margins(DOMAIN, [[]]), ks.Invariants.margins(COUNTY, [[]])
    unit, person = charged(tmp_path, laplace(2, total), laplace(MOST, by_county), domain=DOMAIN)
    assert (unit.spent.epsilon, person.spent.epsilon) == (2 + MOST, 2 * (2 + MOST))
    free = [[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]]
    worst = 0.0
    for z in ([1, -1, 0, 0], [1, 0, -1, 0], [1, 0, 0, -1]):  # every change of one person
        first = grouped(outputs(free, l1_laplace(2), z, 20))
        second = outputs([[1, -1]], l1_laplace(0.75), merged(np.array(z)), 45)
        worst = max(worst, largest_log_ratio(together(first, second)))
    assert worst == pytest.approx(float(person.spent.epsilon))


def test_one_merged_table_of_l2_noise(tmp_path):
    """A person's distance is between datasets: four people at different places are at l2 distance 2.

    With the number of people kept, two leave the second county, for the first and the third. In the table released they
    are at (1, -2, 1), squared 6. A loss of 2 epsilon would be too little.
    """
    counties, sexes = ["Alpha", "Beta", "Gamma"], ["f", "m"]
    kept = ks.Invariants.matrix([[1, 2, 3]]).over(ks.Domain({"county": counties}))
    weighted = laplace(1, kept, norm="l2")
    _, apart = charged(tmp_path, weighted)
    _, lifted = charged(tmp_path, weighted, domain=ks.Domain({"county": counties, "sex": sexes}))
    assert (apart.distance.norm, apart.distance.length) == ("l2", 6)
    assert (lifted.distance.norm, lifted.distance.length) == ("l1", 4)
    real = largest_log_ratio(outputs([[1, -2, 1]], l2_laplace(1), [1, -2, 1], 40))
    assert real == pytest.approx(math.sqrt(6))
    assert real <= float(apart.spent.epsilon) <= float(lifted.spent.epsilon)


def test_the_move_that_rows_allow(tmp_path):
    """With rows kept alone a change of sex is at 2 and one of county at 4: the larger counts."""
    (_, person) = charged(tmp_path, laplace(1))
    real = [largest_log_ratio(outputs(ROWS_KEPT, l1_laplace(1), z, 24)) for z in (MOVE, SWAP)]
    assert real == pytest.approx([2, 4])
    assert person.spent.epsilon == 4

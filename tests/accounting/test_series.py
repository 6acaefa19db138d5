"""Series of Gaussian releases whose losses were fixed in advance: against enumeration, other code, and wrong rules."""

import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
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
    outputs,
    together,
)
from keepsum.accounting import series
from keepsum.accounting.series import dominating_losses, series_epsilon
from keepsum.errors import InputError
from keepsum.privacy.calibration import epsilon_of
from keepsum.privacy.profile import bounded, log_supremum
from support import mostly_audit

pytest.importorskip("dp_accounting")
from dp_accounting.pld import privacy_loss_distribution

MILLIONTH = Fraction(1, 10**6)
RHO = Fraction("0.0279")


REACH = 16


def adaptive(sigma, first, choices):
    """Two releases with one difference; a cell of the first decides which totals the second keeps."""
    basis, difference = first
    points = outputs(basis, gaussian(sigma), difference, REACH)
    coordinates = np.indices((2 * REACH + 1,) * len(basis)).reshape(len(basis), -1) - REACH
    positive = (coordinates.T @ np.asarray(basis))[:, 0] > 0
    parts = []
    for chosen, others in zip((positive, ~positive), choices, strict=True):
        one = grouped(tuple(law[chosen] for law in points))
        other = grouped(outputs(others, gaussian(sigma), difference, REACH))
        parts.append(together(one, other))
    return tuple(np.concatenate(laws) for laws in zip(*parts, strict=True))


# -- against enumeration ----------------------------------------------------------------------------


@pytest.mark.audit
def test_tables_that_are_chosen_by_outputs_lose_no_more():
    """Rows are kept, then rows or columns or both, as the first output says: one difference keeps them all."""
    sigma = 1.8
    rho = Fraction(4) / (2 * Fraction(sigma) ** 2)
    epsilons = {delta: float(series_epsilon([rho] * 2, delta)) for delta in (Fraction(1, 1000), Fraction(1, 10**5))}
    for choices in ([ROWS_KEPT, COLUMNS_KEPT], [[list(SWAP)], ROWS_KEPT], [COLUMNS_KEPT, [list(SWAP)]]):
        pair = adaptive(sigma, (ROWS_KEPT, SWAP), choices)
        for delta, epsilon in epsilons.items():
            assert hockey_stick(pair, epsilon) <= delta
            assert hockey_stick(pair, 0.9 * epsilon) > delta  # and hardly less would do


@mostly_audit("releases", [1, 3])
def test_equal_releases_lose_no_more(releases):
    """The difference of two cells, sigma 1.5: lines of one class."""
    rho, one = Fraction(2) / (2 * Fraction(3, 2) ** 2), outputs([[1, -1]], gaussian(1.5), [1, -1], 14)
    pair = one
    for _ in range(releases - 1):
        pair = grouped(together(pair, one))
    for delta in (Fraction(1, 100), Fraction(1, 10**4), Fraction(1, 10**8)):
        epsilon = float(series_epsilon([rho] * releases, delta))
        assert hockey_stick(pair, epsilon) <= delta * (1 + 1e-9)
        assert hockey_stick(pair, 0.93 * epsilon) > delta  # noise of one step: lines that it has not count as well


@pytest.mark.audit
def test_different_losses():
    laws = [outputs([[1, -1]], gaussian(sigma), [1, -1], 34) for sigma in (1.5, 3.0)]
    rhos = [Fraction(2) / (2 * Fraction(sigma) ** 2) for sigma in (1.5, 3.0)]
    epsilon = float(series_epsilon(rhos, "1e-5"))
    assert epsilon == float(series_epsilon(reversed(rhos), "1e-5"))
    assert hockey_stick(grouped(together(*laws)), epsilon) <= 1e-5 < hockey_stick(together(*laws), 0.94 * epsilon)


# -- against other code -----------------------------------------------------------------------------


def by_direct_sums(rho, releases, delta, steps=60):
    """The same by other means: a fine grid of S in floating-point numbers, and sums of products instead of an FFT."""
    step, width = math.sqrt(2 * rho) / steps, math.sqrt(0.5 / rho)
    reach = math.ceil((rho + 9 * math.sqrt(2 * rho)) / step)
    above = np.exp([log_supremum(j * step, width) for j in range(reach + 1)])
    losses = np.arange(-reach, reach + 1) * step
    values = np.concatenate([(1 - np.exp(losses[:reach]) * (1 - above[:0:-1])), above])
    # Between two nodes the profile is a line in x = e^epsilon: the mass at a node is its change of slope, times x.
    x = np.concatenate([[0.0], np.exp(losses)])
    slopes = np.append(np.diff(np.append(1.0, values)) / np.diff(x), 0.0)
    one = np.maximum(np.diff(slopes) * x[1:], 0.0)
    law = one
    for _ in range(releases - 1):
        law = np.convolve(law, one)
    where = (np.arange(len(law)) - reach * releases) * step

    def excess(epsilon):
        above = where > epsilon
        return float((law[above] * -np.expm1(epsilon - where[above])).sum()) - delta

    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


@pytest.mark.audit
@pytest.mark.parametrize(("rho", "releases"), [("0.0279", 2), ("0.0279", 12), ("0.5", 3)])
def test_an_independent_computation_agrees(rho, releases):
    found = float(series_epsilon([rho] * releases, MILLIONTH))
    expected = by_direct_sums(float(Fraction(rho)), releases, 1e-6)
    assert expected * (1 - 1e-4) < found < expected * 1.004


def test_the_example_of_the_design():
    """Twelve releases of (1, 1e-6): 3.91, where a ledger has 4.17."""
    assert round(float(series_epsilon([RHO] * 12, MILLIONTH)), 2) == 3.91
    assert round(float(epsilon_of(12 * RHO, MILLIONTH)), 2) == 4.17


@pytest.mark.audit
def test_discrete_gaussian_noise_of_dp_accounting_loses_no_more():
    """On the integers: its own composition of the one line that there is."""
    plain = privacy_loss_distribution.from_discrete_gaussian_mechanism(3.0, value_discretization_interval=1e-3)
    for releases in (1, 4, 10):
        ours = float(series_epsilon([Fraction(1, 18)] * releases, MILLIONTH))
        theirs = plain.self_compose(releases).get_epsilon_for_delta(1e-6)
        assert theirs * 0.999 < ours < theirs * 1.03


@pytest.mark.audit
@pytest.mark.parametrize("rho", ["0.0279", "0.5", "2"])
def test_the_grid_is_never_below_the_bound(rho):
    """At its nodes, between them, and for both signs: the pair dominates, and is a pair of distributions."""
    r, step = Fraction(rho), math.sqrt(2 * float(Fraction(rho))) / series.STEPS
    losses = dominating_losses(r, step, 1e-12)
    width = math.sqrt(0.5 / float(r))
    for epsilon in np.linspace(0, 5 * float(r) + 3, 60):
        bound = math.exp(log_supremum(float(epsilon), width))
        assert losses.get_delta_for_epsilon(float(epsilon)) >= bound * (1 - 1e-6) - 1e-15
        opposite = -math.expm1(-epsilon) + math.exp(-epsilon) * bound
        assert losses.get_delta_for_epsilon(-float(epsilon)) >= opposite - 1e-9
    masses = np.array(list(losses._pmf_remove.to_dense_pmf()._probs))
    assert masses.min() >= 0
    assert math.isclose(masses.sum() + losses._pmf_remove._infinity_mass, 1, abs_tol=1e-9)


def test_what_is_bounded_is_never_below():
    for rho, epsilon in [("1e-9", "1e-5"), ("0.001", "0.2"), ("0.5", "3"), ("4", "1"), ("20", "40")]:
        r, e = Fraction(rho), Fraction(epsilon)
        least = math.exp(log_supremum(float(e), math.sqrt(0.5 / float(r)))) if r > Fraction(1, 10**6) else 0.0
        assert least <= bounded(e, r) <= 1
        assert bounded(e, r) <= least * 1.0101 or r < Fraction(1, 10**6)


# -- wrong rules ------------------------------------------------------------------------------------


@pytest.mark.audit
def test_continuous_noise_composed_is_too_small():
    """The accountant's own Gaussian mechanism, which is not valid on a lattice: two releases of two cells."""
    sigma = 1.2
    plain = privacy_loss_distribution.from_gaussian_mechanism(sigma / math.sqrt(2), value_discretization_interval=1e-3)
    one = outputs([[1, -1]], gaussian(sigma), [1, -1], 14)
    rho = Fraction(1) / Fraction(sigma) ** 2
    pairs, failing = {1: one, 2: grouped(together(one, one))}, []
    for releases, delta in itertools.product(pairs, (0.1, 0.03, 0.01, 0.003)):
        composed = plain.self_compose(releases) if releases > 1 else plain
        if hockey_stick(pairs[releases], composed.get_epsilon_for_delta(delta)) > delta * 1.001:
            failing.append((releases, delta))
    assert {releases for releases, _ in failing} == {1, 2}
    releases, delta = failing[-1]
    assert hockey_stick(pairs[releases], float(series_epsilon([rho] * releases, str(delta)))) <= delta


@pytest.mark.audit
def test_one_sign_of_epsilon_composed_is_too_small():
    """Losses below 0 left out, with what is left as one distribution: as if they took nothing of the probability."""
    one = outputs([[1, -1]], gaussian(1.5), [1, -1], 14)
    rho, step = Fraction(2) / (2 * Fraction(3, 2) ** 2), 0.01
    law = dominating_losses(rho, step, 1e-12)._pmf_remove.to_dense_pmf()
    losses = (np.arange(law.size) + law._lower_loss) * law._discretization
    masses = np.array(law._probs) * (losses >= 0)
    where = np.add.outer(losses, losses).ravel()
    products = np.multiply.outer(masses, masses).ravel()
    pair = grouped(together(one, one))
    wrong = {e: float((products[where > e] * -np.expm1(e - where[where > e])).sum()) for e in (0.5, 1.0, 1.5)}
    assert any(hockey_stick(pair, epsilon) > delta for epsilon, delta in wrong.items())


def test_a_change_that_does_not_keep_every_total_is_too_short():
    """Columns may be kept next: a change within a column is not protected then, and a swap is farther."""
    sigma = 1.6
    short = Fraction(2) / (2 * Fraction(sigma) ** 2)
    wrong = float(series_epsilon([short] * 2, "1e-3"))
    pair = adaptive(sigma, (ROWS_KEPT, SWAP), [ROWS_KEPT, COLUMNS_KEPT])
    assert hockey_stick(pair, wrong) > 10 * 1e-3


def test_losses_that_outputs_choose_are_no_series():
    """A second release where the first says little: a series of one exceeds its delta, so the number must be fixed."""
    sigma = 1.5
    one = grouped(outputs([[1, -1]], gaussian(sigma), [1, -1], 14))
    rho = Fraction(2) / (2 * Fraction(sigma) ** 2)
    epsilon = float(series_epsilon([rho], "1e-3"))
    ratio = np.log(one[0]) - np.log(one[1])
    stopped = ratio > epsilon
    parts = [tuple(law[stopped] for law in one), together(tuple(law[~stopped] for law in one), one)]
    pair = tuple(np.concatenate(laws) for laws in zip(*parts, strict=True))
    assert hockey_stick(one, epsilon) <= 1e-3
    assert hockey_stick(pair, epsilon) > 2 * 1e-3


# -- what is asked for ------------------------------------------------------------------------------


@pytest.mark.audit
def test_it_grows_with_every_release_and_falls_with_delta():
    by_number = [series_epsilon([RHO] * k, MILLIONTH) for k in (1, 2)]
    assert all(a < b for a, b in itertools.pairwise(by_number))
    by_delta = [series_epsilon([RHO] * 3, delta) for delta in ("1e-9", "1e-3")]
    assert all(a > b for a, b in itertools.pairwise(by_delta))


@mostly_audit(("rho", "releases"), [("1", 4), ("2", 2), ("1", 12), ("0.5", 52)])
def test_where_the_sum_of_rho_gives_less(rho, releases):
    """As docs/accounting.md says, and half as much in each does not."""
    for loss, less in ((Fraction(rho), True), (Fraction(rho) / 2, False)):
        assert (epsilon_of(releases * loss, MILLIONTH) < series_epsilon([loss] * releases, MILLIONTH)) == less


def test_tiny_losses_take_little_memory():
    """Noise of 70,000 steps of the change and more: by the closed form, not by sums over its lines."""
    tracemalloc.start()
    try:
        assert 0 < series_epsilon(["1e-10"], "1e-6") < Fraction("1.6e-5")
        assert series_epsilon(["1e-12"] * 2, "1e-6") == 0  # nearer than that in total variation
        assert tracemalloc.get_traced_memory()[1] < 10**8
    finally:
        tracemalloc.stop()


def test_one_release_is_nearly_what_it_states_by_itself():
    plan = ks.plan(ks.Domain({"a": ["x", "y"], "b": range(3)}), keep=["a"], mechanism=ks.Gaussian(1, "1e-6"))
    person = plan.guarantee.person
    assert plan.mechanism.loss(person).epsilon == 1
    rho = plan.guarantee.unit_rho * person.length
    assert 1 <= series_epsilon([rho], "1e-6") < Fraction("1.002")


@pytest.mark.parametrize(
    ("rhos", "delta", "said"),
    [
        ([], "1e-6", "one or more"),
        ("0.1", "1e-6", "a list of numbers"),
        (0.1, "1e-6", "a list of numbers"),
        (["0"], "1e-6", "Each rho of a series"),
        (["21"], "1e-6", "at most 20"),
        (["0.1"] * 20, "1e-9", "at least 2e-9"),
        (["0.1"], "1", "below 1"),
    ],
)
def test_what_is_out_of_range_is_refused(rhos, delta, said):
    with pytest.raises(InputError, match=said):
        series_epsilon(rhos, delta)


@pytest.mark.audit
def test_three_columns_that_may_be_kept():
    """A larger table, with tables chosen among three sets of totals."""
    sigma = 1.1
    rho = Fraction(4) / (2 * Fraction(sigma) ** 2)
    one = grouped(outputs(THREE_COLUMNS_KEPT, gaussian(sigma), SWAP_OF_THREE, 8))
    other = grouped(outputs([list(SWAP_OF_THREE)], gaussian(sigma), SWAP_OF_THREE, 8))
    epsilon = float(series_epsilon([rho] * 2, "1e-3"))
    assert hockey_stick(together(one, other), epsilon) <= 1e-3
    assert len(ROWS_OF_THREE_KEPT) == 4

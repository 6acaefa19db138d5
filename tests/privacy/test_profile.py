"""The (epsilon, delta) of Gaussian noise by lines: against enumeration, wrong rules, and ``dp_accounting``."""

import itertools
import math
import os
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from divergence import LATTICES, largest_delta, shifts, used
from scipy.stats import norm

import keepsum as ks
from accounting.divergences import COLUMNS_KEPT, ROWS_KEPT, SWAP, hockey_stick, outputs
from keepsum.privacy.calibration import delta_of, epsilon_of, rho_of
from keepsum.privacy.distance import Distance
from keepsum.privacy.profile import (
    WIDEST,
    closed_form,
    holds,
    holds_per_unit,
    is_smallest,
    is_smallest_per_unit,
    largest_rho,
    log_supremum,
    per_unit_sigma,
    smallest_epsilon,
    smallest_sigma,
)
from keepsum.sampling.core.balls import ball, precision
from support import mostly_audit

DOCUMENT = Path(__file__).parents[2] / "docs" / "gaussian.md"
MILLIONTH = Fraction(1, 10**6)
SHORTEST = {"A1": 2, "A2": 2, "A3": 2, "2 x 2": 4, "3 x 3": 4}
CASES = [(1, Fraction(1, 1000)), (2, Fraction(1, 1000)), (3, Fraction(1, 10**4))]


def cases():
    return [(name, *case) for name in LATTICES for case in CASES if name != "3 x 3" or case[0] > 1]


def shown_cases():
    """Those of the document, with wider noise as well, where lines differ little."""
    for name, group in itertools.groupby(cases(), lambda case: case[0]):
        wide = [] if name == "3 x 3" else [(name, Fraction(1, 2), Fraction(1, 1000))]
        yield from (*wide, *group)


def delta_of_line(epsilon, s, u):
    """By definition: the divergence of the discrete Gaussian on Z + u from itself shifted by 1."""
    reach = math.ceil(40 * s) + 3
    y = np.arange(-reach, reach + 1) + u
    law, moved = np.exp(-(y**2) / (2 * s * s)), np.exp(-((y - 1) ** 2) / (2 * s * s))
    return float(np.maximum(0, law - math.exp(epsilon) * moved).sum() / law.sum())


def continuous(epsilon, s):
    """Balle and Wang 2018, Theorem 8: exact for the continuous Gaussian."""
    return float(norm.cdf(0.5 / s - epsilon * s) - math.exp(epsilon) * norm.cdf(-0.5 / s - epsilon * s))


def sigma_by(rule, epsilon, delta, square):
    """The smallest sigma by any rule for delta at an epsilon and a width."""
    low, high = 0.2, 100.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if rule(epsilon, middle / math.sqrt(square)) <= delta else (middle, high)
    return high


# -- against enumeration ----------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("name", LATTICES)
def test_no_shift_of_any_lattice_needs_more(name, sigma):
    """S is at least every enumerated delta, and no smaller delta passes."""
    checked = 0
    for square, needed in shifts(name, sigma, 3.2):
        for epsilon in (0.1, 1.0, 3.0):
            delta = needed(epsilon)
            if delta < 1e-9:
                continue
            s = sigma / math.sqrt(square)
            assert math.exp(log_supremum(epsilon, s)) >= delta * (1 - 1e-4)  # on a grid of u
            checked += 1
            if checked % 50 == 1:
                rho = Fraction(square) / (2 * Fraction(sigma) ** 2)
                assert not holds(Fraction(epsilon), Fraction(delta) * Fraction(999, 1000), rho)
    assert checked


def test_one_line_attains_it():
    """All lines of the difference of two cells have u = 0, which is the worst u at some epsilon."""
    ratios = []
    for epsilon in np.linspace(0.45, 0.85, 60):
        ((_, needed),) = shifts("A1", 2.0, 1.5)
        ratios.append(math.exp(log_supremum(float(epsilon), 2 / math.sqrt(2))) / needed(float(epsilon)))
    assert 1 - 1e-4 < min(ratios) < 1 + 1e-3
    assert max(ratios) > 1.01  # and at others it is not


def test_delta_is_the_mean_over_the_lines():
    """Two classes of lines of A2 along (1, -1, 0): y is a whole number or half of one."""
    sigma, epsilon = 1.3, 1.0
    other = math.sqrt(1.5)  # across the lines, which are that far apart
    weights = dict.fromkeys((0.0, 0.5), 0.0)
    for k in range(-40, 41):
        u = 0.0 if k % 2 == 0 else 0.5
        y = np.arange(-60, 61) + u
        weights[u] += float(np.exp(-((k * other) ** 2 + 2 * y**2) / (2 * sigma**2)).sum())
    s = sigma / math.sqrt(2)
    mean = sum(w * delta_of_line(epsilon, s, u) for u, w in weights.items()) / sum(weights.values())
    needed = next(needed for square, needed in shifts("A2", sigma, 1.5) if square == 2)
    assert math.isclose(needed(epsilon), mean, rel_tol=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 8.0])
def test_it_falls_as_the_noise_grows(epsilon):
    widths = np.geomspace(0.08, 60, 60)
    values = [log_supremum(epsilon, float(s)) for s in widths]
    assert all(b <= a + 1e-4 for a, b in itertools.pairwise(values))


def test_a_fixed_line_does_not():
    """Why the supremum: on one line more noise may need a larger delta."""
    values = [delta_of_line(2.0, s, 0.0) for s in np.linspace(0.3, 1.5, 200)]
    assert any(b > a for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("basis", [ROWS_KEPT, COLUMNS_KEPT, [list(SWAP)]], ids=["rows", "columns", "both"])
def test_it_covers_a_focus(basis, epsilon):
    """Any quadratic form: rho of a change is that of cells and of focused totals."""
    rho, focused = 0.2, 0.3

    def weight(z):
        return np.exp(-rho * (z * z).sum(axis=-1) - focused * (z[..., 0] + z[..., 1]) ** 2)

    for difference in (np.array(basis[0]), np.sum(basis, axis=0)):
        loss = rho * (difference @ difference) + focused * (difference[0] + difference[1]) ** 2
        delta = hockey_stick(outputs(basis, weight, difference, 12), epsilon)
        assert delta <= math.exp(log_supremum(epsilon, math.sqrt(1 / (2 * loss)))) * (1 + 1e-4)
        if delta > 1e-6:
            assert not holds(Fraction(epsilon), Fraction(delta) * Fraction(999, 1000), Fraction(loss))


@mostly_audit(("name", "epsilon", "delta"), cases())
def test_per_person_and_per_unit_noise_holds_and_little_less_does_not(name, epsilon, delta):
    square = SHORTEST[name]
    sigma = float(smallest_sigma(Fraction(epsilon), delta, square))
    share = largest_delta(name, sigma, epsilon, square) / float(delta)
    assert (0.92 if epsilon == 1 else 0.45) < share <= 1
    assert largest_delta(name, 0.97 * sigma, epsilon, square) > delta
    unit = float(per_unit_sigma(Fraction(epsilon), delta))
    assert used(name, unit, float(epsilon), float(delta)) <= 1
    assert any(used(name, f * unit, float(epsilon), float(delta)) > 1 for f in (0.98, 0.95, 0.9, 0.8, 0.7))


@pytest.mark.parametrize("name", [name for name in LATTICES if name != "3 x 3"])
def test_wide_noise_uses_nearly_all_of_delta(name):
    square, delta = SHORTEST[name], Fraction(1, 1000)
    sigma = float(smallest_sigma(Fraction(1, 2), delta, square))
    assert 0.97 < largest_delta(name, sigma, 0.5, square) / float(delta) <= 1
    assert largest_delta(name, 0.99 * sigma, 0.5, square) > delta


# -- wrong rules ------------------------------------------------------------------------------------


def test_the_continuous_formula_is_too_small():
    """The difference of two cells at (2, 1e-3): it says 2.05, and 2.071 is needed."""
    wrong, right = sigma_by(continuous, 2, 1e-3, 2), float(smallest_sigma(Fraction(2), Fraction(1, 1000), 2))
    assert round(wrong, 2) == 2.04
    assert round(right, 2) == 2.08
    assert largest_delta("A1", wrong, 2, 2) > 1e-3 * 1.01
    assert largest_delta("A1", right, 2, 2) <= 1e-3
    assert not holds(Fraction(2), Fraction(1, 1000), 1 / Fraction(wrong) ** 2)


def test_one_line_alone_is_too_small_where_there_are_others():
    """U = 0 is all there is on the difference of two cells, and not enough under a sum of three."""

    def only_zero(epsilon, s):
        return delta_of_line(epsilon, s, 0.0)

    failed = 0
    for epsilon in (1.0, 1.5, 2.0, 2.5, 3.0):
        wrong = sigma_by(only_zero, epsilon, 1e-2, 2)
        assert largest_delta("A1", wrong, epsilon, 2) <= 1e-2 * (1 + 1e-9)
        failed += largest_delta("A2", wrong, epsilon, 2) > 1e-2 * 1.001
    assert failed


def test_the_mean_over_lines_is_too_small():
    """No maximum over u: as if every line were as likely."""

    def mean(epsilon, s):
        return float(np.mean([delta_of_line(epsilon, s, u) for u in np.arange(16) / 16]))

    assert largest_delta("A1", sigma_by(mean, 2, 1e-3, 2), 2, 2) > 1e-3 * 1.01


def test_a_shorter_change_than_the_true_one_is_too_small():
    wrong = smallest_sigma(Fraction(1), Fraction(1, 1000), 2)
    assert largest_delta("2 x 2", float(wrong), 1, 4) > 10 * 1e-3
    assert not holds(Fraction(1), Fraction(1, 1000), 4 / (2 * wrong**2))


# -- outside oracles, and rounding ------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1, 2, 4.2])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_against_the_discrete_gaussian_of_dp_accounting(epsilon, sigma):
    """On the integers all lines have u = 0."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    loss = pld.DiscreteGaussianPrivacyLoss(sigma, sensitivity=1, truncation_bound=math.ceil(12 * sigma))
    delta = loss.get_delta_for_epsilon(epsilon)
    assert math.isclose(delta, delta_of_line(epsilon, sigma, 0.0), rel_tol=1e-6)
    assert delta <= math.exp(log_supremum(epsilon, sigma)) * (1 + 1e-6)
    if delta > 1e-12:
        assert not holds(Fraction(epsilon), Fraction(delta) * Fraction(999, 1000), 1 / (2 * Fraction(sigma) ** 2))


@mostly_audit("epsilon", ["1", "1e-6", "0.01", "0.5", "4", "40", "600"])
@pytest.mark.parametrize("delta", ["1e-300", "1e-9", "0.3"])
def test_what_is_found_holds_and_little_less_does_not(epsilon, delta):
    e, d = Fraction(epsilon), Fraction(delta)
    rho = largest_rho(e, d)
    assert holds(e, d, rho)
    assert rho >= rho_of(e, d)
    assert not holds(e, d, rho * Fraction(101, 100)) or e < Fraction(1, 10**5)
    for length in (1, 2, 6):
        sigma = smallest_sigma(e, d, length)
        assert holds(e, d, length / (2 * sigma**2))


@pytest.mark.parametrize("epsilon", ["1e-10", "1e-3", "0.3", "1", "4.89", "15.2", "26.9", "600"])
@pytest.mark.parametrize("delta", ["1e-60", "1e-6", "1e-4", "0.3"])
def test_what_is_found_passes_as_stated_and_a_wider_one_does_not(epsilon, delta):
    """Narrow noise, where floating-point numbers mislead by more than a first margin, and ranges beyond any use."""
    e, d = Fraction(epsilon), Fraction(delta)
    for length in (2, 7):
        sigma = smallest_sigma(e, d, length)
        assert is_smallest(e, d, length / (2 * sigma**2))
        for factor in ("0.9998", "1.0003", "1.01", "2"):
            assert not is_smallest(e, d, length / (2 * (sigma * Fraction(factor)) ** 2)), factor


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.0799", "1.48e-5"), ("1/2", "1e-6"), ("1", "1e-3"), ("5", "0.01"), ("700", "1e-6")]
)
def test_per_unit_what_is_found_passes_and_a_wider_one_does_not(epsilon, delta):
    e, d = Fraction(epsilon), Fraction(delta)
    sigma = per_unit_sigma(e, d)
    assert is_smallest_per_unit(e, d, sigma)
    for factor in ("0.97", "1.0025", "1.02", "2"):
        assert not is_smallest_per_unit(e, d, sigma * Fraction(factor)), factor


@pytest.mark.parametrize("rho", ["1e-9", "0.001", "0.0279", "0.5", "3", "20"])
@pytest.mark.parametrize("delta", ["1e-9", "1e-6", "0.01"])
def test_epsilon_at_a_delta(rho, delta):
    r, d = Fraction(rho), Fraction(delta)
    epsilon = smallest_epsilon(r, d)
    assert holds(epsilon, d, r)
    assert epsilon == 0 or not holds(epsilon * Fraction(99, 100), d, r)
    assert delta_of(r, epsilon) >= d * Fraction(999, 1000) or not epsilon


@pytest.mark.parametrize("rho", ["1249", "1251", "5000", "500000"])
@pytest.mark.parametrize("delta", ["1e-300", "1e-6", "0.9"])
def test_noise_of_almost_nothing_is_converted_without_a_warning(rho, delta):
    """Where weights of lines are too small for floating-point numbers, the conversion of zCDP is smaller."""
    r, d = Fraction(rho), Fraction(delta)
    assert smallest_epsilon(r, d) == epsilon_of(r, d)


@pytest.mark.audit
def test_noise_of_almost_nothing_is_found():
    """At the end of the range: S of so narrow noise takes a minute to bound."""
    assert largest_rho(Fraction(600), Fraction("0.9999999999999999999")) > 600


@pytest.mark.parametrize(("s", "epsilon"), [(2.0, 1.0), (8.0, 0.5), (40.0, 0.1), (400.0, 0.01)])
def test_the_closed_form_is_above_and_near(s, epsilon):
    with precision(192):
        closed = float(closed_form(ball(Fraction(epsilon)), ball(Fraction(s) ** 2)))
    lines = max(delta_of_line(epsilon, s, k / 16) for k in range(16))
    assert s <= WIDEST
    assert lines <= closed
    assert closed <= lines * 2


@pytest.mark.parametrize(("epsilon", "delta"), [("0.02", "1e-6"), ("1/3", "1e-9"), ("1", "1e-6"), ("5", "0.01")])
def test_per_unit_of_distance(epsilon, delta):
    e, d = Fraction(epsilon), Fraction(delta)
    sigma = per_unit_sigma(e, d)
    assert holds_per_unit(e, d, sigma)
    assert not holds_per_unit(e, d, sigma * Fraction(97, 100))
    assert sigma >= smallest_sigma(e, d, 1)


def test_the_two_figures_of_one_person():
    """One margin kept, and both: (1, 1e-6)."""
    domain = ks.Domain({"a": range(3), "b": range(2)})
    found = {
        keep: ks.plan(domain, keep=list(keep), mechanism=ks.Gaussian(1, MILLIONTH, attributes=["b"]))
        for keep in (("a",), ("a", "b"))
    }
    sigmas = [float(plan.mechanism.sigma) for plan in found.values()]
    assert [round(sigma, 2) for sigma in sigmas] == [5.99, 8.47]
    for plan, length in zip(found.values(), (2, 4), strict=True):
        loss = plan.mechanism.loss(Distance("l2", length))
        assert (loss.epsilon, loss.delta) == (1, MILLIONTH)
        assert plan.guarantee.unit_epsilon is None
        assert plan.guarantee.unit_rho == 1 / (2 * plan.mechanism.sigma**2)


# -- the tables of the document ---------------------------------------------------------------------


def lines_table():
    rows = ["| lattice | r² | ε | δ | σ | used | σ, continuous | used |", "|---|---|---|---|---|---|---|---|"]
    for name, epsilon, delta in shown_cases():
        square, d = SHORTEST[name], float(delta)
        sigma, wrong = (
            float(smallest_sigma(Fraction(epsilon), delta, square)),
            sigma_by(continuous, float(epsilon), d, square),
        )
        shares = [100 * largest_delta(name, each, float(epsilon), square) / d for each in (sigma, wrong)]
        figures = f"{sigma:.4g} | {shares[0]:.1f}% | {wrong:.4g} | {shares[1]:.1f}%"
        rows.append(f"| {name} | {square} | {float(epsilon):g} | {d:g} | {figures} |")
    return "\n".join(rows)


def person_table():
    rows = ["| ε, δ | r² | σ of the tail bound | σ of the lines | less by |", "|---|---|---|---|---|"]
    for epsilon, delta in (("0.5", "1e-6"), ("1", "1e-6"), ("2", "1e-9"), ("4", "1e-6")):
        for square in (2, 4):
            before = ks.Gaussian(epsilon, delta, calibration="zcdp").resolve(Distance("l2", square)).sigma
            now = ks.Gaussian(epsilon, delta).resolve(Distance("l2", square)).sigma
            less = 100 * (1 - float(now / before))
            rows.append(f"| {epsilon}, {delta} | {square} | {float(before):.4g} | {float(now):.4g} | {less:.0f}% |")
    return "\n".join(rows)


def spread_table():
    """How much of S single lines use, at the widths of the table of lattices."""
    rows = ["| ε, δ | σ/r | δ_u, as a fraction of S | its mean over u | u = 0 | u = 1/2 |", "|---|---|---|---|---|---|"]
    for epsilon, delta in (("0.5", "1e-3"), ("1", "1e-3"), ("2", "1e-3"), ("3", "1e-4")):
        s = float(smallest_sigma(Fraction(epsilon), Fraction(delta), 2)) / math.sqrt(2)
        u = [100 * delta_of_line(float(epsilon), s, k / 200) / float(delta) for k in range(200)]
        figures = f"{min(u):.1f}% to {max(u):.1f}% | {np.mean(u):.1f}% | {u[0]:.1f}% | {u[100]:.1f}%"
        rows.append(f"| {epsilon}, {delta} | {s:.2f} | {figures} |")
    return "\n".join(rows)


def test_why_less_of_delta_is_used_as_noise_gets_narrow():
    assert spread_table() in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.audit
@pytest.mark.parametrize(("mark", "table"), [("lines", lines_table), ("person", person_table)])
def test_the_tables_of_the_document_are_what_the_code_says(mark, table):
    text, found = DOCUMENT.read_text(encoding="utf-8"), table()
    if os.environ.get("KEEPSUM_GOLDEN") == "write":
        block = f"<!-- {mark} -->\n{found}\n<!-- /{mark} -->"
        text = re.sub(rf"<!-- {mark} -->.*<!-- /{mark} -->", lambda _: block, text, flags=re.DOTALL)
        DOCUMENT.write_text(text, encoding="utf-8")
    assert f"<!-- {mark} -->\n{found}\n<!-- /{mark} -->" in text

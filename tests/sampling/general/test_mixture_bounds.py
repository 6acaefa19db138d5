"""What is proved of the mixture: each bound against numbers that are worked out in another way."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpq_mat

import keepsum as ks
from keepsum.convergence.bounds import clopper_pearson
from keepsum.lattice.structure import decompose
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.chains import MixtureRejection
from keepsum.sampling.general.heat_bath import HeatBath, laplace_logs, table_moves
from keepsum.sampling.general.kernel_arguments import FLOOR
from keepsum.sampling.general.mixture import Mixture, OneWidth
from keepsum.sampling.general.mixture_bounds import Rounding, _below_law, log_excess, mass_defect, mean_square
from keepsum.sampling.general.scales import (
    lattice_slab,
    log_mixture,
    log_ratio_error,
    log_ratios,
    log_sum_law,
    log_tail,
    scale_law,
    shape_for,
    table_slabs,
    verified_form,
)
from sampling.proposals import draw_integer, log_theta
from support import margins, mostly_audit

mpmath = pytest.importorskip("mpmath")

CIRCLES = ks.Invariants.subsets(14, [[c for c in range(14) if (c // 2 + 1) >> k & 1] for k in range(3)])
STEEP = ks.Invariants.matrix([[2, 3, 5]])
WEIGHTED = ks.Invariants.matrix(np.random.default_rng(5).integers(0, 4, size=(3, 9)))
SYSTEMS = {"4 x 4": margins(4, 4), "cube": margins(3, 3, 3), "circles": CIRCLES, "steep": STEEP, "weighted": WEIGHTED}
UNIT = 2.0**-53


def mixture_of(keep, epsilon, tau):
    structure = decompose(keep.coefficients)
    (block,) = structure.blocks
    system, sizes = block.system, structure.sizes[block.regions]
    slabs = table_slabs(system.grid.column) if system.grid is not None else lattice_slab(system.basis, system.width)
    return Mixture.of(float(epsilon), slabs, system.matrix, sizes, tau)


# -- how far the wanted density lies above the lines ---------------------------------------------------


def highest(law, exponent):
    """The largest gap with 200 bits: at the zeros of the derivative of every piece, and at a grid beside them."""
    before, ctx.prec = ctx.prec, 200
    try:
        half, power, exponent, tau = (arb(float(x)) for x in (law.half, law.power, exponent, law.tau))
        root, gaps = tau.sqrt(), []
        far = float(law.edge[-1]) * 4 + 4
        for edge, following, height, slope in zip(law.edge, [*law.edge[1:], far], law.height, law.slope, strict=True):
            low, high, height, slope = (arb(float(x)) for x in (edge, following, height, slope))
            places = [((slope * slope + 8 * half * a).sqrt() - slope) / (4 * half) for a in (power, power + exponent)]
            places += [low, high, root, *((low + high * k) / (k + 1) for k in (1, 3, 40))]
            for y in places:
                if low <= y <= high and y > 0:
                    level = y.log() if y > root else root.log()
                    gaps.append(-half * y * y + power * y.log() + exponent * level - height - slope * (y - low))
        best = max(gaps, key=lambda gap: float(gap.mid()))
        assert best.rad() < 1e-40
        return best.mid()
    finally:
        ctx.prec = before


@mostly_audit("epsilon", [0.25, 3.0, 13.0, 0.01, 1.0, 6.9, 7.5, 9.0, 20.0, 50.0])
@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_no_density_rises_above_its_bound(epsilon, size):
    """Beyond the last edge too, and not by a digit; the bound is not above it by more than digits either."""
    for exponent, tau in ((0.9, 2.0), (0.5, 0.1), (0.0, 0.3), (1.3, FLOOR)):
        law = scale_law(epsilon, size, exponent, tau)
        wanted = highest(law, exponent)
        found = log_excess(law)
        assert wanted <= arb(found)
        assert found <= float(wanted) + 1e-9


def test_a_bound_of_many_regions_is_one():
    """A search that misses by 4e-9 a region is wrong for six hundred of them."""
    law = scale_law(0.25, 1, 0.9, 0.3)
    assert highest(law, 0.9) <= arb(log_excess(law))
    assert 600 * (log_excess(law) - float(highest(law, 0.9))) < 1e-9


def test_a_bound_holds_for_all_exponents_within_its_doubt():
    for epsilon, size in ((0.5, 1), (8.0, 1), (1.0, 40)):
        law = scale_law(epsilon, size, 0.7, 0.8)
        for exponent in (0.69, 0.7, 0.71):
            assert highest(law, exponent) <= arb(log_excess(law, 0.01))
        assert highest(law, 0.75) > arb(log_excess(law, 0.01))


def test_masses_and_squares_of_scales():
    for epsilon, size in ((0.25, 1), (1.0, 30), (12.0, 2)):
        law = scale_law(epsilon, size, 0.9, 0.3)
        assert 0 < mass_defect(law) < 1e-13
        moved = law.passed.copy()
        moved[5] += 1e-9
        assert mass_defect(type(law)(**(vars(law) | {"passed": moved}))) > 1e-9
        y = np.interp((np.arange(10**6) + 0.5) / 10**6, law.passed, law.edge)
        assert 1 < mean_square(law) / (y**2).mean() < 1.2


# -- forms, leverages and widths ------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_form_is_enclosed(name):
    """Determinant, leverages and widths of the form with variances that are no round numbers, in rationals."""
    mixture = mixture_of(SYSTEMS[name], 0.3, 0.5)
    basis = mixture.slabs.full_basis()
    variances = np.random.default_rng(3).uniform(0.01, 50, len(basis))
    found = verified_form(basis, variances)
    assert found.doubt < 1e-11
    exact = fmpq_mat(basis.shape[0], basis.shape[1], [int(b) for b in basis.reshape(-1)])
    weights = [fmpq(1) / fmpq(*float(v).as_integer_ratio()) for v in variances]
    weighed = fmpq_mat(*basis.shape, [exact[r, j] * weights[r] for r in range(len(basis)) for j in range(len(basis.T))])
    form = exact.transpose() * weighed
    inverse = form.inv()
    before, ctx.prec = ctx.prec, 200
    try:
        low, high = found.log_volume
        assert low <= float(-arb(form.det()).log() / 2) <= high < low + 1e-9
        for r, (least, most) in enumerate(zip(*found.quadratic(basis), strict=True)):
            row = fmpq_mat(1, basis.shape[1], [int(b) for b in basis[r]])
            value = arb((row * inverse * row.transpose())[0, 0])
            assert arb(float(least)) < value < arb(float(most))
        for j, (least, most) in enumerate(zip(*found.widths, strict=True)):
            size = j + 1
            block = fmpq_mat(size, size, [form[a, b] for a in range(size) for b in range(size)])
            assert arb(float(least)) ** 2 < arb(block.inv()[j, j]) < arb(float(most)) ** 2
    finally:
        ctx.prec = before


@pytest.mark.parametrize("name", SYSTEMS)
def test_widths_of_slabs_are_products(name):
    slabs = mixture_of(SYSTEMS[name], 0.3, 0.5).slabs
    low, high = slabs.width_bounds
    assert (low <= slabs.widths() * (1 + 1e-12)).all()
    assert (slabs.widths() <= high * (1 + 1e-12)).all()
    assert (high - low).max() < 1e-11


def test_what_floats_do_not_prove_has_no_bound():
    """A basis so skew that its form is singular in floats: nothing is accepted by rejection then."""
    skew = np.array([[1.0, 2.0**27], [0.0, 1.0]])
    assert verified_form(skew, np.ones(2)) is None
    assert verified_form(np.array([[1.0, 1.0], [1.0, 1.0]]), np.ones(2)) is None
    mixture = mixture_of(STEEP, 1.0, 0.5)
    mixture.bounds.__dict__["_form"] = None
    assert mixture.bounds.log_bound == math.inf
    assert mixture.bounds.acceptance == 0
    assert mixture.rounding.by_rejection(0.0) == 1


# -- M, and the share that is accepted --------------------------------------------------------------------


@mostly_audit("name", SYSTEMS)
@pytest.mark.parametrize("epsilon", [0.05, 0.25, 1.0, 4.0, 10.0, 30.0])
def test_no_weight_exceeds_the_bound_and_no_acceptance_is_below_its_own(name, epsilon):
    for tau in (0.1, 0.8, 2.0):
        mixture = mixture_of(SYSTEMS[name], epsilon, tau)
        _, log_weights = mixture.propose(4_000, rng(seed=5).stream())
        assert log_weights.max() <= mixture.bounds.log_bound
        # Weights over their bound are numbers from 0 to 1, whose mean is limited as a share of as many draws would be.
        hits = math.ceil(4_000 * float(np.exp(log_weights - mixture.log_bound).mean()))
        assert mixture.bounds.acceptance <= clopper_pearson(hits, 4_000, 1e-6)


def test_the_acceptance_of_one_sum_is_worked_out_and_bounded():
    """On one line of whole numbers the sum over the lattice is known."""
    for epsilon in (0.05, 0.25, 1.0, 4.0):
        mixture = mixture_of(ks.Invariants.matrix([[1, 2, 4]]), epsilon, 0.5)
        reach = np.arange(-int(60 / epsilon), int(60 / epsilon) + 1)
        one, two = np.meshgrid(reach, reach, sparse=True)
        inside = (one + 2 * two) % 4 == 0
        weights = np.exp(-epsilon * (np.abs(one) + np.abs(two) + np.abs(one + 2 * two) / 4)) * inside
        whole = weights.sum() * (math.sqrt(math.pi / 2) / epsilon) ** 3
        exact = whole * math.exp(-mixture.bounds.log_bound)
        assert exact / 1.4 < mixture.bounds.acceptance <= exact


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 2, 1), (40, 7, 2)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_both_ways_to_bound_the_sum_over_a_lattice(sizes, epsilon):
    """Regions of several cells under one weighted total: the sum over all of its lattice, by the laws of the sums."""
    weights = np.repeat([1, 2, 4], sizes)
    mixture = mixture_of(ks.Invariants.matrix(weights[None, :]), epsilon, 0.5)
    reach = 400 if epsilon < 1 else 150
    laws = []
    for n in sizes:
        law = log_sum_law(epsilon, n) if n > 1 else -epsilon * np.arange(4 * reach)
        laws.append(np.exp(np.pad(law[: 4 * reach], (0, max(0, 4 * reach - len(law))), constant_values=-np.inf)))
    two, four = (np.arange(-reach, reach + 1)[shape] for shape in ((slice(None), None), (None, slice(None))))
    one = np.minimum(np.abs(2 * two + 4 * four), 4 * reach - 1)
    whole = math.log((laws[0][one] * laws[1][np.abs(two)] * laws[2][np.abs(four)]).sum())
    offsets = np.array([_below_law(epsilon, n)[0] for n in mixture.sizes.tolist()])
    assert (offsets > 0).sum() == sum(n > 1 for n in sizes)
    for found in (mixture.bounds._by_variances(offsets), mixture.bounds._by_sums(offsets)):
        assert found <= whole
    assert mixture.bounds._log_sum() > whole - 1.5 or epsilon > 2


def test_rounding_owes_nothing_to_a_pilot():
    """It is the same whatever share a pilot saw, and covers what a proposal that is missed costs."""
    mixture, quarter = mixture_of(margins(4, 4), 0.25, 0.8), Fraction(1, 4)
    found = {MixtureRejection(quarter, mixture, mixture.sizes, 1, share).rounding for share in (1, 1e-6)}
    assert len(found) == 1
    (stated,) = found
    proved = mixture.rounding.by_rejection(mixture.bounds.acceptance)
    assert proved <= stated < 1.2 * proved
    assert stated > mixture.rounding.misses / 0.137  # the share that is in fact accepted
    more = MixtureRejection(quarter, mixture, mixture.sizes, 3).rounding
    assert more == pytest.approx(3 * proved, rel=0.1)


def test_what_rounding_adds_up_to():
    own = Rounding(relative=1e-9, lost=1e-12, misses=1e-13)
    assert own.by_rejection(0.01) == pytest.approx(1e-9 + 1e-12 + 1e-11)
    assert own.by_chain(500) == pytest.approx(1e-9 + 1e-12 + 5e-11)
    assert Rounding(1.0, 0.0, 0.0).by_chain(1) == 1


# -- coordinates, and the laws of sums ---------------------------------------------------------------------


@pytest.mark.parametrize("square", [0.005, 0.02, 0.3, 0.6, 1.9, 2.1, 30.0, 900.0])
@pytest.mark.parametrize("phi", [-0.5, -0.31, 0.0, 0.125, 0.5])
def test_a_coordinate_is_drawn_as_exactly_as_the_rounding_bound_says(square, phi):
    """Where the numbers that give k end, by bisection, against the cumulated law with 60 digits."""
    log_sum = log_theta(phi, square)
    order = [0, *(k * sign for k in range(1, int(10 * math.sqrt(square)) + 9) for sign in (1, -1))]
    place = {k: n for n, k in enumerate(order)}
    with mpmath.workdps(60):
        s, p = mpmath.mpf(square), mpmath.mpf(phi)
        weights = [mpmath.exp(-((k - p) ** 2) / (2 * s)) for k in order]
        whole = mpmath.fsum(weights)
    shares = np.array([float(w / whole) for w in weights])
    relative, absolute = (1400 + 48 / square) * UNIT, 2 * UNIT
    passed = np.cumsum(shares)
    for n in np.unique(np.geomspace(1, max(2, 6 * math.sqrt(square)), 12).astype(int)).tolist():
        low, high = 0.0, 1.0
        while high - low > UNIT / 4:
            middle = (low + high) / 2
            if middle in (low, high):
                break
            inside = place[draw_integer(middle, phi, square, log_sum)] <= n and middle < 1
            low, high = (middle, high) if inside else (low, middle)
        assert abs(low - min(1.0, passed[n])) <= relative + (n + 2) * absolute


@mostly_audit(("epsilon", "size"), [(1.0, 100_000), (5.0, 100_000), (0.25, 300), (1.0, 2), (0.05, 7)])
def test_the_law_of_a_sum_is_right_to_its_error_as_far_as_it_goes(epsilon, size):
    """By the Fourier integral of n double geometrics with 60 digits, out to where it is e^-40 of the largest."""
    law = log_sum_law(epsilon, size)
    points = 1 << (4 * len(law) + 200).bit_length()
    with mpmath.workdps(60):
        a = mpmath.exp(-mpmath.mpf(epsilon))
        turn = 2 * mpmath.pi / points
        values = [((1 - a) ** 2 / (1 + a * a - 2 * a * mpmath.cos(turn * j))) ** size for j in range(points // 2 + 1)]

        def chance(s):
            inner = mpmath.fsum(values[j] * mpmath.cos(turn * j * s) for j in range(1, points // 2))
            return (values[0] + 2 * inner + values[-1] * (-1) ** s) / points

        zero = chance(0)
        for s in (1, len(law) // 2, len(law) - 1):
            assert abs(float(mpmath.log(chance(s) / zero)) - law[s]) <= log_ratio_error(epsilon, size)
    assert log_tail(epsilon, size) < -30


@pytest.mark.parametrize(("epsilon", "size"), [(0.25, 2), (1.0, 40), (0.05, 7)])
def test_ratios_are_right_to_their_error(epsilon, size):
    """The mixture by a Bessel function with 50 digits."""
    law, ratios = log_sum_law(epsilon, size), log_ratios(epsilon, size)
    sums = np.array([1.0, 5.0, len(law) - 1.0])
    shape = shape_for(epsilon, size)
    found = log_mixture(epsilon, shape, sums)
    with mpmath.workdps(50):
        nu, rate = mpmath.mpf(shape) - 0.5, mpmath.mpf(epsilon)
        logs = [mpmath.log(mpmath.besselk(nu, rate * s) * mpmath.mpf(s) ** nu) for s in sums]
    wanted = [float(value - logs[0]) for value in logs]
    assert np.abs(found - found[0] - wanted).max() <= log_ratio_error(epsilon, size)
    assert len(ratios) == len(law)


# -- chains ------------------------------------------------------------------------------------------------


def test_rounding_of_the_other_chains():
    """One width, and heat-bath moves: more with more cells, more steps, and tables that are less right."""
    slabs = [table_slabs(np.arange(n * n).reshape(n, n)) for n in (3, 6)]
    small, large = (OneWidth(own, 0.5).rounding.by_chain(100) for own in slabs)
    assert 0 < small < large < 1e-8
    (block,) = decompose(margins(3, 3).coefficients).blocks
    moves, law = table_moves(block.system.grid), np.zeros(9, dtype=np.int64)
    bath = HeatBath((laplace_logs(2.0, 1),), law, moves)
    assert 0 < bath.rounding(10) < bath.rounding(100) < 1e-9
    assert HeatBath((laplace_logs(2.0, 1),), law, moves, slips=1e-7).rounding(10) > 9e-7

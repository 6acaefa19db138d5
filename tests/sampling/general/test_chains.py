"""The parts of the general samplers: layouts of lattices, laws of scales, what weights tell, moves."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse, special

import keepsum as ks
from keepsum.lattice.structure import decompose
from keepsum.planning.selection.gaussian import cell_moves
from keepsum.sampling.core.rng import Rng, rng
from keepsum.sampling.general.chains import HeatBathChain, MixtureChain, MixtureRejection
from keepsum.sampling.general.heat_bath import HeatBath, laplace_logs, short_moves, table_moves
from keepsum.sampling.general.mixture import Mixture, tune
from keepsum.sampling.general.mixture_bounds import log_excess
from keepsum.sampling.general.scales import (
    Slabs,
    lattice_slab,
    leverages,
    log_mixture,
    log_ratios,
    log_sum_law,
    scale_law,
    shape_for,
    table_slabs,
    verified_form,
)
from keepsum.sampling.general.weights import GeometricTail, Renewal, thinned
from sampling.proposals import log_theta, propose, unit
from support import margins, mostly_audit


def system_of(keep):
    structure = decompose(keep.coefficients)
    (block,) = structure.blocks
    return block.system, structure.sizes[block.regions]


SYSTEMS = {
    "4 x 3": margins(4, 3),
    "3 x 4 x 3": margins(3, 4, 3),
    "circles": ks.Invariants.subsets(7, [[0, 3, 4, 6], [1, 3, 5, 6], [2, 4, 5, 6]]),
    "random": ks.Invariants.matrix(np.random.default_rng(5).integers(0, 4, size=(3, 9))),
    "chain of sums": ks.Invariants.subsets(61, [list(range(2 * k, 2 * k + 3)) for k in range(30)]),
}


def slabs_of(system):
    return table_slabs(system.grid.column) if system.grid is not None else lattice_slab(system.basis, system.width)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_layout_has_a_basis_of_the_lattice(name):
    system, _ = system_of(SYSTEMS[name])
    slabs = slabs_of(system)
    basis = slabs.full_basis()
    in_place = np.zeros_like(basis)
    in_place[slabs.order] = basis
    assert not (system.matrix @ in_place).any()
    assert slabs.dimension == basis.shape[1] == system.width - system.rank
    # The volume of the lattice says that nothing is left out.
    wanted = ks.Lattice(system.matrix).basis.astype(float)
    assert np.linalg.slogdet(basis.T @ basis)[1] == pytest.approx(np.linalg.slogdet(wanted.T @ wanted)[1])
    low, high = verified_form(basis, np.ones(system.width)).log_volume
    assert low <= -np.linalg.slogdet(basis.T @ basis)[1] / 2 <= high < low + 1e-9


def test_a_banded_lattice_keeps_its_factor_near_the_diagonal():
    """Sums that overlap in a chain, in any order of cells: the factor has a few entries a row, not all."""
    places = np.random.default_rng(1).permutation(401).tolist()
    keep = ks.Invariants.subsets(401, [[places[2 * k + j] for j in range(3)] for k in range(200)])
    system, _ = system_of(keep)
    slabs = lattice_slab(system.basis, system.width)
    size = slabs.size
    assert slabs.multiplications < size**3 / 100
    basis = slabs.basis.toarray()
    factor = np.linalg.cholesky((basis.T @ basis).astype(float))
    rows, columns = np.nonzero(np.abs(factor) > 1e-12)
    assert (columns >= slabs.profile[rows]).all()


@pytest.mark.parametrize("name", SYSTEMS)
def test_leverages_add_up_to_the_rank(name):
    system, _ = system_of(SYSTEMS[name])
    variances = np.random.default_rng(2).uniform(0.5, 3, system.width)
    found = leverages(system.matrix, variances)
    assert found.sum() == pytest.approx(system.rank)
    assert found.min() > -1e-12
    assert found.max() < 1 + 1e-12


@pytest.mark.parametrize("epsilon", [0.01, 0.25, 1.0, 5.0])
@pytest.mark.parametrize("size", [1, 2, 7, 300])
def test_laws_of_scales_are_laws(epsilon, size):
    """Masses add up to 1, lines meet, and nothing wanted lies above them by more than the bound."""
    for exponent, tau in ((0.5, 0.1), (0.97, 1.0)):
        law = scale_law(epsilon, size, exponent, tau)
        rise = law.slope[:-1] * np.diff(law.edge)
        masses = np.exp(law.height[:-1]) * np.expm1(rise) / law.slope[:-1]
        assert np.append(law.passed[1:], 1 - np.exp(law.height[-1]) / -law.slope[-1]) == pytest.approx(
            law.passed + np.append(masses, 0), abs=1e-9
        )
        assert law.height[1:-1] + law.slope[1:-1] * np.diff(law.edge)[1:] == pytest.approx(law.height[2:], abs=1e-6)
        y = np.concatenate([np.linspace(0, law.edge[-1] * 1.5, 20_001)[1:], law.edge[1:] * 0.999])
        piece = np.searchsorted(law.edge, y, side="right") - 1
        line = law.height[piece] + law.slope[piece] * (y - law.edge[piece])
        wanted = law.power * np.log(y) - (epsilon * y) ** 2 / 2 + exponent * np.log(np.maximum(y, math.sqrt(tau)))
        assert (wanted - line).max() <= log_excess(law) + 1e-9
        assert law.power == 2 * (shape_for(epsilon, size) - 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("size", [2, 5])
def test_the_law_of_a_sum_is_a_convolution(epsilon, size):
    one = np.exp(-epsilon * np.abs(np.arange(-700, 701)))
    whole = one
    for _ in range(size - 1):
        whole = np.convolve(whole, one)
    middle = len(whole) // 2
    law = log_sum_law(epsilon, size)
    shown = min(len(law), 100)
    wanted = np.log(whole[middle : middle + shown])
    assert law[:shown] - law[0] == pytest.approx(wanted - wanted[0], abs=1e-9)


@pytest.mark.parametrize("shape", [1.0, 2.0, 7.3, 40.0])
def test_the_mixture_is_a_bessel_function(shape):
    sums = np.array([1.0, 2, 5, 30])
    bessel = np.log(special.kve(shape - 0.5, 0.5 * sums)) - 0.5 * sums + (shape - 0.5) * np.log(sums)
    found = log_mixture(0.5, shape, sums)
    assert found - found[0] == pytest.approx(bessel - bessel[0], abs=1e-11)
    assert not len(log_ratios(0.5, 1))


@pytest.mark.parametrize(("epsilon", "size"), [(0.1, 30_000), (0.25, 100_000), (3.0, 100_000), (0.001, 2), (0.05, 400)])
def test_laws_of_large_regions_have_their_variance(epsilon, size):
    """n double geometrics have variance 2 n a/(1 - a)^2, however far out the law is made of."""
    law = np.exp(log_sum_law(epsilon, size))
    sums = np.arange(len(law), dtype=np.float64)
    variance = 2 * (law * sums**2).sum() / (2 * law.sum() - law[0])
    rate = math.exp(-epsilon)
    assert variance == pytest.approx(2 * size * rate / (1 - rate) ** 2, rel=1e-9)


@pytest.mark.parametrize("shape", [1000.0, 5000.25])
def test_the_mixture_of_large_regions_is_a_bessel_function_too(shape):
    mpmath = pytest.importorskip("mpmath")
    sums = np.array([1.0, 100, 300, 700])
    with mpmath.workdps(40):
        wanted = [mpmath.log(mpmath.besselk(shape - 0.5, 0.25 * s) * mpmath.mpf(s) ** (shape - 0.5)) for s in sums]
        differences = [float(value - wanted[0]) for value in wanted]
    found = log_mixture(0.25, shape, sums)
    assert found - found[0] == pytest.approx(differences, abs=1e-9)


def test_every_order_has_few_pieces():
    """Orders just above 1 would rise from 0 over hundreds of orders of magnitude."""
    for size in (2, 3, 5, 1000):
        for epsilon in np.linspace(0.5, 30, 119):
            assert len(scale_law(float(epsilon), size, 0.5, 0.1).edge) < 8_000


def test_wide_laws_are_not_for_the_heat_bath():
    moves = ({0: 1, 1: -1, 2: -1, 3: 1},)
    for size, fits in ((1, True), (40, True), (100_000, False)):
        assert HeatBath((laplace_logs(3.0, size),), np.zeros(4, dtype=np.int64), moves).has_room == fits
    wide = HeatBath((laplace_logs(3.0, 10**6),), np.zeros(4, dtype=np.int64), moves)
    chain = HeatBathChain(Fraction(3), wide, np.ones(4, dtype=np.int64), 1, 40)
    with pytest.raises(AssertionError, match="no room"):
        chain.draw_into(np.empty((200, 4), dtype=np.int64), rng(seed=1))


def test_theta_by_either_sum():
    for square in (0.03, 0.3, 0.5624, 0.5626, 1.0, 50.0):
        for phi in (-0.5, -0.2, 0.0, 0.37, 0.5):
            direct = math.log(sum(math.exp(-((k - phi) ** 2) / (2 * square)) for k in range(-200, 201)))
            assert log_theta(phi, square) == pytest.approx(direct, abs=1e-13)


def test_renewal_against_a_chain_of_two_weights():
    """Proposals of weight 1 and 3, each half of the time: everything by hand, without a cap and with one of 2."""
    renewal = Renewal.of(np.log(np.repeat([1.0, 3.0], 5_000)))
    # Weight 3 is left with chance (1 + 1/3)/2; under the target it has mass 3/4.
    assert renewal.acceptance == pytest.approx(0.25 * 1 + 0.75 * 2 / 3, abs=1e-3)
    assert renewal.distance(3) == pytest.approx(3 / 4 * (1 / 3) ** 4, abs=1e-3)
    assert renewal.tries == 1
    # Half of the small weights pass, so that a candidate is one with chance 1/3, of weight 2, and else of weight 3.
    capped = Renewal.of(np.log(np.repeat([1.0, 3.0], 5_000)), math.log(2))
    assert capped.tries == pytest.approx(4 / 3)
    assert capped.distance(0) == pytest.approx(3 / 4 * 1 / 3 * 1 / 3)
    assert capped.distance(3) == pytest.approx(3 / 4 * (1 / 9) ** 4)
    # Its candidates have chances 1/3 and 2/3 in the place of 1/4 and 3/4: the distance is 1/12.
    assert thinned(np.log(np.repeat([1.0, 2.0, 3.0], [5_000, 1, 4_999])), 0.084).log_cap == math.log(2)
    assert thinned(np.log(np.repeat([1.0, 3.0], 5_000)), 0.26).log_cap == 0
    assert renewal.distance(renewal.steps_for(1e-6)) <= 1e-6 < renewal.distance(renewal.steps_for(1e-6) - 1)


def test_renewal_of_weights_of_nothing():
    """A weight of 0 is left at once; weights that are no numbers are not taken for any."""
    log_weights = np.log(np.repeat([1.0, 3.0], 50))
    log_weights[0] = -math.inf
    for cap in (-math.inf, 0.5):
        assert 0 < Renewal.of(log_weights, cap).distance(0) < 1
    for wrong in (np.full(5, -math.inf), np.array([0.0, math.nan])):
        with pytest.raises(AssertionError, match="must be numbers"):
            Renewal.of(wrong)


@pytest.mark.parametrize("spread", [0.8, 1.5])
def test_a_pilot_tells_the_tail_of_weights_that_it_has_not_seen(spread):
    """Log weights of known normal distribution, its quantiles in the place of draws: what 2,000 foretell, 40 times.

    The true distance after the steps asked for is at most thirty times the one aimed at: of 400 other pilots none was
    beyond, so that an honest one fails here with a chance below 0.3 for all 40 (95% confidence). Without a tail all are
    beyond but 10 of 400 at 0.8 and none at 1.5.
    """
    scores = np.linspace(-9, spread + 9, 4_001)
    masses = np.exp(-(scores**2) / 2)
    cap = 2 * spread
    truth = Renewal.of(spread * scores, cap, masses / masses.sum())
    source = np.random.default_rng(5)
    good = bare = 0
    for _ in range(40):
        seen = spread * source.normal(size=2_000)
        good += truth.distance(Renewal.with_tail(seen, cap).steps_for(1e-9)) <= 3e-8
        bare += truth.distance(Renewal.of(seen, cap).steps_for(1e-9)) <= 3e-8
    assert good == 40
    assert bare <= 2


def test_a_tail_of_equal_weights_and_of_weights_of_nothing():
    assert Renewal.with_tail(np.zeros(100)).distance(0) < 0.01
    few = np.full(200, -math.inf)
    few[0] = 0.0
    assert Renewal.with_tail(few).distance(10**6) > 0.5  # nothing is known of a tail
    few[:10] = np.log(np.arange(1.0, 11.0))
    assert 0 < Renewal.with_tail(few).distance(0) < 1


def test_unit_numbers_lie_inside():
    for word in (0, 2**11 - 1, 2**64 - 1):
        assert 0 < unit(np.uint64(word)) < 1


def test_geometric_tails_are_found_again():
    """Extrapolated from 4,000 geometric times, to the cautious side and within a factor; the error rate is e^-15."""
    uniform = np.array([rng(seed=k).below(2**53) / 2**53 for k in range(4_000)])
    times = np.floor(np.log(1 - uniform) / math.log(0.7)).astype(np.int64) + 1
    tail = GeometricTail.of(times)
    steps = tail.steps_for(1e-9, lag=50)
    assert 0.95 * math.log(1e-9) / math.log(0.7) < steps < 1.4 * math.log(1e-9) / math.log(0.7)
    assert tail.distance(steps, 50) <= 1e-9 < tail.distance(steps - 1, 50)
    assert GeometricTail.of(np.ones(300, dtype=np.int64)).steps_for(1e-9, 4) < 40


def test_moves_generate_the_lattice():
    for name, keep in SYSTEMS.items():
        system, _ = system_of(keep)
        moves = table_moves(system.grid) if system.grid is not None else short_moves(system.basis)
        matrix = np.zeros((system.width, len(moves)), dtype=np.int64)
        for j, move in enumerate(moves):
            for region, value in move.items():
                matrix[region, j] = value
        assert not (system.matrix @ matrix).any(), name
        assert len({frozenset(move.items()) for move in moves}) == len(moves)
        from flint import fmpz_mat

        # All of it: the invariant factors of the moves in terms of the basis are 1.
        basis = ks.Lattice(system.matrix).basis
        coordinates = np.rint(np.linalg.lstsq(basis.astype(float), matrix.astype(float), rcond=None)[0]).astype(int)
        assert (basis @ coordinates == matrix).all()
        form = fmpz_mat(coordinates.tolist()).snf()
        assert all(abs(int(form[k, k])) == 1 for k in range(basis.shape[1])), name


def test_moves_of_cells_keep_the_totals():
    keep = ks.Invariants.subsets(9, [[0, 1, 2, 3], [2, 3, 4, 5], [0, 1, 4, 5, 6, 7, 8]])
    structure = decompose(keep.coefficients)
    (block,) = structure.blocks
    sizes = structure.sizes[block.regions]
    order = np.concatenate([structure.cells(r) for r in block.regions.tolist()])
    for move in cell_moves(short_moves(block.system.basis), sizes):
        noise = np.zeros(9, dtype=np.int64)
        for cell, value in move.items():
            noise[order[cell]] = value
        assert not np.asarray(keep.coefficients @ noise).any()


def made(kind):
    keep = margins(4, 4)
    system, sizes = system_of(keep)
    mixture = Mixture.of(0.5, table_slabs(system.grid.column), system.matrix, sizes, 0.5)
    if kind == "rejection":
        return MixtureRejection(Fraction(1, 2), mixture, sizes, 2)
    if kind == "chain":
        return MixtureChain(Fraction(1, 2), mixture, sizes, 2, 5)
    if kind == "thinned":
        return MixtureChain(Fraction(1, 2), mixture, sizes, 2, 5, log_cap=-8.0, tries=2.0)
    logs = (laplace_logs(0.5, 1),)
    return HeatBathChain(
        Fraction(1, 2), HeatBath(logs, np.zeros(16, dtype=np.int64), table_moves(system.grid)), sizes, 2, 5
    )


@mostly_audit("kind", ["rejection", "chain", "thinned", "bath"])
def test_threads_and_buffers_change_nothing(kind, monkeypatch):
    sampler = made(kind)
    found = []
    plain = Rng.stream
    for threads, words in ((1, 2**16), (2, 2**16), (2, 60), (1, 7)):
        monkeypatch.setattr(Rng, "stream", lambda self, _=0, words=words: plain(self, words))
        out = np.empty((150, sampler.width), dtype=np.int64)
        sampler.draw_into(out, rng(seed=3), threads)
        times = sampler.meeting_times(150, 4, 5_000, rng(seed=4), threads) if kind != "rejection" else 0
        found.append((out, times))
    for out, times in found[1:]:
        assert (out == found[0][0]).all()
        assert np.all(times == found[0][1])


def test_pairs_that_are_given_up_are_told():
    assert (made("chain").meeting_times(100, 4, 6, rng(seed=4)) == -1).any()
    assert (made("bath").meeting_times(100, 1, 2, rng(seed=4)) == -1).any()


def test_simulated_rows_have_the_law_of_draws():
    """For estimates only: rows of one chain, every few steps, against fresh chains; five standard errors of a mean."""
    sampler = made("chain")
    drawn, simulated = (np.empty((4_000, sampler.width), dtype=np.int64) for _ in range(2))
    sampler.steps = 40
    sampler.draw_into(drawn, rng(seed=5))
    sampler.simulate_into(simulated, rng(seed=6))
    lengths = [np.abs(noise).sum(axis=1) for noise in (drawn, simulated)]
    assert abs(lengths[0].mean() - lengths[1].mean()) < 5 * np.hypot(*(own.std() / math.sqrt(4_000) for own in lengths))


def test_tuning_finds_a_threshold_that_needs_few_steps():
    system, sizes = system_of(margins(6, 6))
    mixture = Mixture.of(0.25, table_slabs(system.grid.column), system.matrix, sizes, 0.1)
    tuned = tune(mixture, rng(seed=1), 10**6)
    assert tuned.acceptance > 0.6
    far = Renewal.of(mixture.at(1.2).propose(4_000, rng(seed=2).stream())[1])
    assert Renewal.of(tuned.log_weights).steps_for(1e-3) < far.steps_for(1e-3)


@pytest.mark.audit
def test_slabs_agree_with_a_dense_factor():
    """The same lattice as one slab and as many: the same widths, and the same law of weights."""
    system, sizes = system_of(margins(4, 3))
    stacked = table_slabs(system.grid.column)
    one = Slabs(stacked.order, 1, sparse.csr_array(stacked.full_basis().astype(np.int64)))
    assert one.widths() == pytest.approx(stacked.widths())
    words = rng(seed=7).stream().take(10_000)
    results = []
    for slabs in (stacked, one):
        mixture = Mixture.of(0.5, slabs, system.matrix, sizes, 0.3)
        room, out = mixture.room(), np.empty(12, dtype=np.int64)
        found = []
        for n in range(100):
            weight = propose(words[n * mixture.words_per_proposal :], mixture.tables, room, out)
            found.append((weight, *out.tolist()))
        results.append(np.array(found))
    assert results[0] == pytest.approx(results[1], rel=1e-9)

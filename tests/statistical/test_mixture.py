"""The general samplers against enumerated laws and exact samplers, and wrong ones that the same tests reject."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from laws import ALPHA, assert_drawn_from, assert_not_drawn_from, lattice_law, solved_law, table_law
from scipy import stats

import keepsum as ks
from keepsum.convergence.bounds import clopper_pearson
from keepsum.convergence.observe import TARGET_TV
from keepsum.lattice.structure import decompose
from keepsum.planning.selection.general import Problem, mixture_chain
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.chains import HeatBathChain, MixtureChain, MixtureRejection
from keepsum.sampling.general.heat_bath import HeatBath, gaussian_logs, laplace_logs, short_moves, table_moves
from keepsum.sampling.general.mixture import Mixture, OneWidth
from keepsum.sampling.general.mixture_kernels import FLOOR, propose, unit
from keepsum.sampling.general.slabs import lattice_slab, table_slabs
from keepsum.sampling.general.weights import GeometricTail, Renewal, thinned
from support import margins

# 14 records in the 7 regions of three circles, two each; sums that overlap; a lattice of large determinant.
CIRCLES = ks.Invariants.subsets(14, [[c for c in range(14) if (c // 2 + 1) >> k & 1] for k in range(3)])
OVERLAP = ks.Invariants.subsets(5, [[0, 1, 2], [2, 3, 4]])
STEEP = ks.Invariants.matrix([[2, 3, 5]])


def block_of(keep):
    structure = decompose(keep.coefficients)
    (block,) = structure.blocks
    order = np.concatenate([structure.cells(r) for r in block.regions.tolist()])
    return block.system, structure.sizes[block.regions], order


def mixture_of(keep, epsilon, tau):
    system, sizes, _ = block_of(keep)
    slabs = table_slabs(system.grid.column) if system.grid is not None else lattice_slab(system.basis, system.width)
    return Mixture.of(float(epsilon), slabs, system.matrix, sizes, tau)


def drawn(sampler, keep, count, seed=1):
    """Draws in the order of the user's cells."""
    _, _, order = block_of(keep)
    own = np.empty((count, sampler.width), dtype=np.int64)
    sampler.draw_into(own, rng(seed=seed))
    out = np.empty_like(own)
    out[:, order] = own
    assert not np.asarray(keep.coefficients @ out.T).any()
    return out


def rejection(keep, epsilon, tau):
    _, sizes, _ = block_of(keep)
    return MixtureRejection(Fraction(epsilon), mixture_of(keep, Fraction(epsilon), tau), sizes)


def chain(keep, epsilon, tau, steps, near=1.0):
    """Without a cap, or with one that brings the first candidate near the law."""
    _, sizes, _ = block_of(keep)
    mixture = mixture_of(keep, Fraction(epsilon), tau)
    _, log_weights = mixture.propose(2_000, rng(seed=2).stream())
    renewal = thinned(log_weights, near) if near < 1 else Renewal.of(log_weights)
    caps = {"log_cap": renewal.log_cap, "tries": renewal.tries}
    return MixtureChain(Fraction(epsilon), mixture, sizes, 1, steps, **caps)


def bath(keep, epsilon, steps, moves=None):
    system, sizes, _ = block_of(keep)
    distinct, law = np.unique(sizes, return_inverse=True)
    logs = tuple(laplace_logs(float(Fraction(epsilon)), n) for n in distinct.tolist())
    own = moves or (table_moves(system.grid) if system.grid is not None else short_moves(system.basis))
    return HeatBathChain(Fraction(epsilon), HeatBath(logs, law, own), sizes, 1, steps)


LAWS = {
    ("3 x 3", "0.5"): (margins(3, 3), cache(lambda: table_law(3, 3, 0.5, reach=2))),
    ("3 x 3", "1"): (margins(3, 3), cache(lambda: table_law(3, 3, 1.0, reach=3))),
    ("steep", "0.25"): (STEEP, cache(lambda: solved_law([[2, 3, 5]], [0, 1], 0.25, reach=30, box=150))),
    ("steep", "1"): (STEEP, cache(lambda: solved_law([[2, 3, 5]], [0, 1], 1.0, reach=20, box=60))),
    ("overlap", "0.5"): (
        OVERLAP,
        cache(lambda: solved_law(OVERLAP.coefficients.toarray(), [0, 2, 3], 0.5, reach=10, box=44)),
    ),
    ("overlap", "1"): (
        OVERLAP,
        cache(lambda: solved_law(OVERLAP.coefficients.toarray(), [0, 2, 3], 1.0, reach=8, box=24)),
    ),
}


SHORT = {("chain", name, "1") for name, _ in LAWS} | {("thinned", name, "1") for name in ("steep", "overlap")}


@pytest.mark.parametrize(
    ("way", "name", "epsilon"),
    [
        pytest.param(way, *case, marks=[pytest.mark.audit] if (way, *case) not in SHORT and way != "rejection" else [])
        for way in ("rejection", "chain", "thinned")
        for case in LAWS
    ],
)
def test_laws(way, name, epsilon):
    """Chains at every epsilon in `make audit`, at 1 here, thinned ones on two lattices."""
    keep, law = LAWS[name, epsilon]
    if way == "rejection":
        sampler = rejection(keep, epsilon, 0.5)
    else:
        sampler = chain(keep, epsilon, 0.2, steps=30, near=1.0 if way == "chain" else 0.15)
    assert_drawn_from(drawn(sampler, keep, 50_000), law())


@pytest.mark.parametrize(("name", "epsilon"), LAWS)
def test_bare_proposals_are_told_apart(name, epsilon):
    """A kernel that stays put never leaves its first proposal, which has not the law wanted."""
    keep, law = LAWS[name, epsilon]
    assert_not_drawn_from(drawn(chain(keep, epsilon, 0.2, steps=0), keep, 200_000), law())


@pytest.mark.parametrize(("name", "epsilon"), [("3 x 3", "0.5"), ("steep", "1"), ("overlap", "1")])
def test_thinned_proposals_are_near_the_law_and_not_at_it(name, epsilon):
    """Draws that pass the cap and take no step: told apart where the cap is low; within 0.005, not by fewer draws."""
    keep, law = LAWS[name, epsilon]
    assert_not_drawn_from(drawn(chain(keep, epsilon, 0.2, steps=0, near=0.15), keep, 200_000), law())
    assert_drawn_from(drawn(chain(keep, epsilon, 0.2, steps=0, near=1e-4), keep, 50_000), law())


def by_hand(keep, epsilon, tau, count):
    """Proposals one at a time: sums in the user's order, log weights, and the variances that they were drawn with."""
    mixture = mixture_of(keep, epsilon, tau)
    _, _, order = block_of(keep)
    room = mixture.room()
    stream = rng(seed=3).stream()
    sums = np.empty((count, len(mixture.sizes)), dtype=np.int64)
    log_weights, variances, uniforms = np.empty(count), np.empty(sums.shape), np.empty(count)
    for n in range(count):
        words = stream.take(mixture.words_per_proposal)
        log_weights[n] = propose(words, 0, mixture.tables, room, sums[n])
        variances[n] = room.squares
        uniforms[n] = unit(words[-1])
    cells = np.empty_like(sums)
    cells[:, order[mixture.slabs.order]] = sums
    return mixture, cells, log_weights, variances, uniforms


def followed(log_weights, uniforms):
    """The numbers of the proposals that a Metropolis chain stands at, every tenth step."""
    state, path = 0, []
    for n in range(1, len(log_weights)):
        if math.log(uniforms[n]) < log_weights[n] - log_weights[state]:
            state = n
        path.append(state)
    return path[20::10]


@pytest.mark.audit
def test_a_weight_without_its_determinant_is_rejected():
    keep, law = LAWS["3 x 3", "0.5"]
    mixture, cells, log_weights, variances, uniforms = by_hand(keep, 0.5, 0.2, 400_000)
    assert_drawn_from(cells[followed(log_weights, uniforms)], law())
    basis = mixture.slabs.full_basis()
    forms = np.einsum("ri,nr,rj->nij", basis, 1 / np.maximum(variances, FLOOR), basis)
    without = log_weights + np.linalg.slogdet(forms)[1] / 2
    assert_not_drawn_from(cells[followed(without, uniforms)], law())


@pytest.mark.parametrize("keep", [margins(4, 4), STEEP, margins(3, 3, 3)], ids=["4 x 4", "steep", "cube"])
@pytest.mark.parametrize("epsilon", [0.25, 1.0])
def test_weights_are_right_to_the_digits_that_the_rounding_bound_allows(keep, epsilon):
    """Against the whole formula in ball arithmetic, factor and all."""
    mixture = mixture_of(keep, epsilon, 0.3)
    room, stream = mixture.room(), rng(seed=4).stream()
    out = np.empty(len(mixture.sizes), dtype=np.int64)
    for _ in range(60):
        words = stream.take(mixture.words_per_proposal)
        found = propose(words, 0, mixture.tables, room, out)
        if found < -700:
            continue  # accepted by nobody
        wanted = sum(densities(mixture, room.squares)) + float(log_klein(mixture, room.squares, out))
        assert abs(found - wanted) < mixture.rounding.relative


def densities(mixture, squares):
    """Ln of the wanted density of each variance over the one drawn from."""
    scales, slabs = mixture.tables.scales, mixture.tables.slabs
    for law, square in zip(slabs.law.tolist(), squares.tolist(), strict=True):
        y = math.sqrt(square)
        own = slice(scales.start[law], scales.start[law + 1])
        piece = int(np.searchsorted(scales.edge[own], y, side="right")) - 1
        x = y - scales.edge[own][piece]
        yield -scales.half * y * y - scales.height[own][piece] - scales.slope[own][piece] * x


def log_klein(mixture, squares, sums):
    """ln of e^(-S^2/2v) over the chance of S under Klein's sampler with variances max(v, FLOOR), with 200 bits."""
    before, ctx.prec = ctx.prec, 200
    try:
        basis = mixture.slabs.full_basis().astype(int)
        width, size = basis.shape
        columns = [arb_mat(width, 1, [int(basis[r, j]) for r in range(width)]) for j in range(size)]
        inverse = [1 / arb(max(float(v), FLOOR)) for v in squares]
        form = arb_mat(size, size, [arb(0)] * size**2)
        for i in range(size):
            for j in range(size):
                form[i, j] = sum((columns[i][r, 0] * columns[j][r, 0] * inverse[r] for r in range(width)), arb(0))
        factor = cholesky(form, size)
        solved, *_ = np.linalg.lstsq(basis.astype(float), sums.astype(float), rcond=None)
        place = np.rint(solved).astype(int)
        assert (basis @ place == sums).all()
        total = -sum((arb(int(s) ** 2) / (2 * arb(float(v))) for s, v in zip(sums, squares, strict=True)), arb(0))
        for i in range(size):
            centre = -sum((factor[k, i] * int(place[k]) for k in range(i + 1, size)), arb(0)) / factor[i, i]
            nearest = round(float(centre))
            reach = range(nearest - 60 - int(20 / float(factor[i, i])), nearest + 61 + int(20 / float(factor[i, i])))
            whole = sum((square((k - centre) * factor[i, i]) / -2).exp() for k in reach)
            total += square((int(place[i]) - centre) * factor[i, i]) / 2 + whole.log()
        return total
    finally:
        ctx.prec = before


def square(ball):
    """Not by ``**``, which is not a number where a ball holds 0."""
    return ball * ball


def cholesky(form, size):
    """The lower factor in ball arithmetic."""
    factor = arb_mat(size, size, [arb(0)] * size**2)
    for j in range(size):
        for i in range(j, size):
            rest = form[i, j] - sum((factor[i, k] * factor[j, k] for k in range(j)), arb(0))
            factor[i, j] = rest.sqrt() if i == j else rest / factor[j, j]
    return factor


def contingency(one, two, bins):
    """Whether two samples of a whole number have one law: chi-square of a table of bins of at least 100 in all."""
    both = np.concatenate([one, two])
    edges = np.unique(np.quantile(both, np.linspace(0, 1, bins + 1)[1:-1]))
    table = np.array([np.bincount(np.searchsorted(edges, s), minlength=len(edges) + 1) for s in (one, two)])
    table = table[:, table.sum(axis=0) >= 100]
    return stats.chi2_contingency(table, correction=False).pvalue


def statistics(noise):
    """Marginals, sums of pairs of cells, and lengths."""
    yield noise[:, 0]
    yield noise[:, -1]
    yield noise[:, 0] + noise[:, 1]
    yield noise[:, 0] - noise[:, -2]
    yield np.abs(noise).sum(axis=1)
    yield np.abs(noise).max(axis=1)
    yield (noise != 0).sum(axis=1)


EXACT = {"4 x 4": margins(4, 4), "6 x 6": margins(6, 6), "circles": CIRCLES}


SLOW = {("1", "4 x 4"), ("0.25", "6 x 6"), ("1", "6 x 6")}  # few proposals are accepted by the bound, or many cells


@pytest.mark.audit
@pytest.mark.parametrize(
    ("epsilon", "name"),
    [
        pytest.param(epsilon, name, marks=[pytest.mark.audit] if (epsilon, name) in SLOW else [])
        for epsilon in ("0.25", "1")
        for name in EXACT
    ],
)
def test_agreement_with_the_exact_samplers(name, epsilon):
    """Every statistic at 1e-6 divided by their number."""
    keep = EXACT[name]
    count = 6_000
    exact = ks.plan(keep, ks.Laplace(epsilon=epsilon))
    assert exact.guarantee.sampling == "exact"
    truth = exact.sample(count, rng=ks.rng(seed=7))
    others = [chain(keep, epsilon, 0.14, steps=40), chain(keep, epsilon, 0.14, steps=20, near=0.05)]
    if name != "6 x 6":
        others.append(rejection(keep, epsilon, 0.8 if epsilon == "0.25" else 0.5))
    if epsilon == "1" and name != "6 x 6":
        others.append(bath(keep, epsilon, steps=60))
    for sampler in others:
        found = drawn(sampler, keep, count, seed=8)
        values = [contingency(a, b, 40) for a, b in zip(statistics(truth), statistics(found), strict=True)]
        assert min(values) > ALPHA / len(values), (type(sampler).__name__, values)
    bare = drawn(chain(keep, epsilon, 100.0, steps=0), keep, count, seed=9)
    assert min(contingency(a, b, 40) for a, b in zip(statistics(truth), statistics(bare), strict=True)) < ALPHA / 7


@pytest.mark.parametrize("keep", [margins(5, 5), margins(3, 3, 3), CIRCLES, STEEP, OVERLAP], ids=str)
@pytest.mark.parametrize("epsilon", [0.05, 0.25, 1.0, 4.0])
def test_no_weight_exceeds_the_proved_bound(keep, epsilon):
    for tau in (FLOOR, 0.1, 0.5, 2.0):
        mixture = mixture_of(keep, epsilon, tau)
        for own in (mixture, mixture.at(tau, stretch=1.3)):
            _, log_weights = own.propose(2_000, rng(seed=5).stream())
            assert log_weights.max() <= own.log_bound


def test_the_bound_is_not_far_off():
    """At the acceptance measured for 3 x 3, 4 x 4 and 6 x 6: a bound that always holds may be of no use."""
    for shape, least in (((3, 3), 0.27), ((4, 4), 0.12), ((6, 6), 0.02)):
        mixture = mixture_of(margins(*shape), 0.25, 0.8)
        _, log_weights = mixture.propose(20_000, rng(seed=6).stream())
        assert np.exp(log_weights - mixture.log_bound).mean() > least


# -- pairs of chains --------------------------------------------------------------------------------


@pytest.mark.parametrize("near", [1.0, 0.2])
def test_pairs_meet_when_two_chains_that_are_followed_do(near):
    """The loop only follows weights; here the states themselves, (v, z), from the same words, weights as ratios."""
    keep = margins(4, 4)
    sampler, lag = chain(keep, "1", 0.2, steps=1, near=near), 5
    pairs = 200
    found = sampler.meeting_times(pairs, lag, 500, rng(seed=11))
    per, room = sampler.proposals.words_per_proposal, sampler.proposals.room()
    out = np.empty(16, dtype=np.int64)
    source = rng(seed=11)
    per_task = pairs // 64
    for first in range(0, pairs, per_task):
        stream = source.stream()
        for pair in range(first, min(first + per_task, pairs)):
            ahead, behind, step = None, None, -1
            while behind is None or ahead != behind:
                words = stream.take(per)
                log_weight = propose(words, 0, sampler.proposals.tables, room, out)
                passing, uniform = min(1.0, math.exp(log_weight - sampler.log_cap)), unit(words[-1])
                if uniform >= passing:
                    continue
                step += 1
                state = (math.exp(log_weight) / passing, tuple(out.tolist()), tuple(room.squares.tolist()))
                again = uniform / passing
                ahead = state if ahead is None or again < state[0] / ahead[0] else ahead
                if step == lag or (step > lag and again < state[0] / behind[0]):
                    behind = state
            assert found[pair] == step


def expected_survival(log_weights, steps, log_cap=-math.inf):
    renewal = Renewal.of(log_weights, log_cap)
    return np.array([renewal.distance(t) for t in steps])


def meeting_chi_square(excess, survival):
    """Chi-square of meeting times against their law: P(T > t) for t = 0, 1, ..."""
    chances = -np.diff(survival, prepend=1.0)
    counts = np.array([(excess == t).sum() for t in range(len(survival))])
    expected = len(excess) * chances
    use = expected >= 100
    observed = np.append(counts[use], len(excess) - counts[use].sum())
    wanted = np.append(expected[use], len(excess) - expected[use].sum())
    return ((observed - wanted) ** 2 / wanted).sum(), stats.chi2.isf(ALPHA, use.sum())


@pytest.mark.audit
@pytest.mark.parametrize("near", [1.0, 0.1])
def test_meeting_times_have_the_law_that_the_weights_give(near):
    """With many more weights than pairs, so that their own error does not count; wrong targets are rejected."""
    keep, lag = margins(4, 4), 40
    sampler = chain(keep, "0.25", 0.14, steps=1, near=near)
    _, log_weights = sampler.proposals.propose(400_000, rng(seed=12).stream())
    excess = sampler.meeting_times(20_000, lag, 2_000, rng(seed=13)) - lag
    statistic, limit = meeting_chi_square(excess, expected_survival(log_weights, range(30), sampler.log_cap))
    assert statistic < limit
    # Pairs that accept with the root of the weights, or each with the other's, have another target.
    statistic, limit = meeting_chi_square(excess, expected_survival(log_weights / 2, range(30), sampler.log_cap / 2))
    assert statistic > limit


@pytest.mark.audit
def test_the_tail_is_geometric_with_a_threshold_and_not_without():
    """4 x 4, epsilon 1. Beyond any point a geometric law has the same mean excess; a heavy tail's grows with it.

    Without a threshold one pair in two hundred needs more than 100 steps, though half of them need one or two.
    """
    keep, lag, pairs = margins(4, 4), 20, 30_000

    def excess(tau):
        return chain(keep, "1", tau, steps=1).meeting_times(pairs, lag, 50_000, rng(seed=14)) - lag

    def growth(times):
        far, farther = np.quantile(times, [0.99, 0.999])
        return (times[times > farther] - farther).mean() / (times[times > far] - far).mean()

    with_threshold, without = excess(0.4), excess(1e-12)
    assert min(with_threshold.min(), without.min()) >= 0  # all have met
    assert growth(with_threshold) < 2 < growth(without)
    assert clopper_pearson(int((with_threshold > 100).sum()), pairs, 1e-6) < 1e-3
    assert 1 - clopper_pearson(pairs - int((without > 100).sum()), pairs, 1e-6) > 1e-3
    # What one half of the pairs extrapolates to holds for the other; without a threshold it is wrong by orders.
    for times, far, least, most in ((with_threshold, 20, 0, 3), (without, 1000, 1000, math.inf)):
        foretold = GeometricTail.of(times[: pairs // 2]).distance(far, 10**6)
        beyond = int((times[pairs // 2 :] > far).sum())
        assert 1 - clopper_pearson(pairs // 2 - beyond, pairs // 2, 1e-6) <= most * foretold
        assert clopper_pearson(beyond, pairs // 2, 1e-6) >= least * foretold


@pytest.mark.audit
@pytest.mark.parametrize(
    ("keep", "epsilon", "many"),
    [(margins(4, 4), "1/4", 1_000_000), (margins(5, 5, 5), "1/4", 300_000), (margins(6, 6, 6), "1/4", 200_000)],
    ids=["4 x 4", "5 x 5 x 5", "6 x 6 x 6"],
)
def test_what_a_pilot_extrapolates_to_holds_for_many_more_weights(keep, epsilon, many):
    """Also with the tail that many more weights have; a thousand, with no tail, would not do."""
    system, sizes, _ = block_of(keep)
    problem = Problem(system, sizes, 1, Fraction(epsilon))
    found, tuned = mixture_chain(problem, problem.mixture)
    assert len(tuned.log_weights) <= 50_000
    _, log_weights = found.proposals.propose(many, rng(seed=15).stream())
    renewal = Renewal.with_tail(log_weights, found.log_cap)
    bare = Renewal.of(tuned.log_weights[:1000], found.log_cap).steps_for(TARGET_TV)
    assert renewal.distance(found.steps) < 30 * TARGET_TV
    assert renewal.distance(bare) > 3 * TARGET_TV
    assert Renewal.of(log_weights, found.log_cap).distance(found.steps) < TARGET_TV


# -- heat-bath moves and narrow Gaussian noise -------------------------------------------------------


@pytest.mark.parametrize("epsilon", [pytest.param("1", marks=pytest.mark.audit), "2"])
def test_heat_bath_laws(epsilon):
    keep = margins(3, 3)
    law = table_law(3, 3, float(epsilon), reach=3)
    assert_drawn_from(drawn(bath(keep, epsilon, steps=20), keep, 40_000), law)
    assert_not_drawn_from(drawn(bath(keep, epsilon, steps=1), keep, 40_000), law)
    system, _, _ = block_of(keep)
    some = table_moves(system.grid)[:1]  # does not generate the lattice
    assert_not_drawn_from(drawn(bath(keep, epsilon, steps=4, moves=some), keep, 40_000), law)


def test_heat_bath_on_regions():
    keep, law = LAWS["overlap", "1"]
    assert_drawn_from(drawn(bath(keep, "1", steps=20), keep, 40_000), law())


def gaussian_law(keep, sigma):
    return lattice_law(keep.coefficients.toarray(), lambda s: np.exp(-s / (2 * sigma**2)), box=8, reach=40)


@pytest.mark.audit
@pytest.mark.parametrize("sigma", [pytest.param(0.5, marks=pytest.mark.audit), 0.6, 1.0])
def test_narrow_gaussian_laws(sigma):
    """At 0.5 nearly all noise is 0, and its share is all that is tested, as it would be with 200,000 draws.

    The power against a variance 5% too large is above 0.98, against proposals that are never refused 1 to six digits.
    """
    keep = margins(3, 3)
    system, sizes, _ = block_of(keep)
    law = gaussian_law(keep, sigma)
    moves = table_moves(system.grid)
    own = HeatBath((gaussian_logs(sigma**2),), np.zeros(9, dtype=np.int64), moves)
    count = 60_000 if sigma == 0.5 else 40_000
    assert_drawn_from(drawn(HeatBathChain(None, own, sizes, 1, 20), keep, count), law)
    proposals = OneWidth(table_slabs(system.grid.column), sigma**2)
    assert_drawn_from(drawn(MixtureChain(None, proposals, sizes, 1, 30), keep, count), law)
    if sigma < 1:  # wider noise is accepted always
        assert_not_drawn_from(drawn(MixtureChain(None, proposals, sizes, 1, 0), keep, count), law)

"""The general samplers against enumerated laws and exact samplers, and wrong ones that the same tests reject."""

import math

import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from laws import ALPHA, assert_drawn_from, assert_not_drawn_from
from mixture_laws import CIRCLES, LAWS, OVERLAP, STEEP, bath, block_of, chain, drawn, mixture_of, rejection
from scipy import stats

import keepsum as ks
from keepsum.sampling.core.rng import rng
from keepsum.sampling.general.kernel_arguments import FLOOR
from sampling.proposals import propose, unit
from support import margins, mostly_audit

SHORT = {("chain", name, "1") for name, _ in LAWS if name != "3 x 3"} | {
    ("thinned", name, "1") for name in ("overlap",)
}


@mostly_audit(
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


@mostly_audit(("name", "epsilon"), LAWS)
def test_bare_proposals_are_told_apart(name, epsilon):
    """A kernel that stays put never leaves its first proposal, which has not the law wanted."""
    keep, law = LAWS[name, epsilon]
    assert_not_drawn_from(drawn(chain(keep, epsilon, 0.2, steps=0), keep, 200_000), law())


@mostly_audit(("name", "epsilon"), [("3 x 3", "0.5"), ("steep", "1"), ("overlap", "1")])
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
        log_weights[n] = propose(words, mixture.tables, room, sums[n])
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
    mixture, cells, log_weights, variances, uniforms = by_hand(keep, 0.5, 0.2, 150_000)
    assert_drawn_from(cells[followed(log_weights, uniforms)], law())
    basis = mixture.slabs.full_basis()
    forms = np.einsum("ri,nr,rj->nij", basis, 1 / np.maximum(variances, FLOOR), basis)
    without = log_weights + np.linalg.slogdet(forms)[1] / 2
    assert_not_drawn_from(cells[followed(without, uniforms)], law())


@pytest.mark.parametrize(
    "keep",
    [pytest.param(margins(4, 4), marks=pytest.mark.audit), STEEP, margins(3, 3, 3)],
    ids=["4 x 4", "steep", "cube"],
)
@pytest.mark.parametrize("epsilon", [pytest.param(0.25, marks=pytest.mark.audit), 1.0])
def test_weights_are_right_to_the_digits_that_the_rounding_bound_allows(keep, epsilon):
    """Against the whole formula in ball arithmetic, factor and all."""
    mixture = mixture_of(keep, epsilon, 0.3)
    room, stream = mixture.room(), rng(seed=4).stream()
    out = np.empty(len(mixture.sizes), dtype=np.int64)
    for _ in range(60):
        words = stream.take(mixture.words_per_proposal)
        found = propose(words, mixture.tables, room, out)
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
        yield -scales.half[law] * y * y - scales.height[own][piece] - scales.slope[own][piece] * x


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
    count = 4_000
    exact = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=epsilon))
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


@mostly_audit("keep", [margins(5, 5), margins(3, 3, 3), CIRCLES, STEEP, OVERLAP], ids=str)
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

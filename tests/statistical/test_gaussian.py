"""Gaussian and l2 Laplace noise against enumerated laws, narrow to wide, and wrong samplers that must be rejected."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from laws import assert_drawn_from, assert_not_drawn_from, lattice_law
from scipy import sparse, stats

import keepsum as ks
from keepsum.lattice.structure import FORCED, FREE, decompose
from keepsum.sampling.core.rng import Rng, rng
from keepsum.sampling.gaussian.blocks import BlockGaussian
from keepsum.sampling.gaussian.common_scale import CommonScale
from keepsum.sampling.gaussian.factors import dominated, make_factor
from keepsum.sampling.gaussian.parts import WIDTHS, Variances
from keepsum.sampling.gaussian.sums import FreeGaussian, LatticeGaussian, SumsGaussian, TableGaussian, table_steps
from support import mostly_audit

TWO_BY_TWO = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]]
THREE_BY_THREE = [[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1],
                  [1, 0, 0, 1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0, 0, 1, 0]]  # fmt: skip
CUBE = np.vstack([m.reshape(-1, 12) for m in (
    np.eye(4).repeat(3, axis=1), np.kron(np.eye(2), np.kron([1, 1], np.eye(3))).reshape(6, 12),
    np.kron([1, 1], np.eye(6)),
)]).astype(int)  # fmt: skip
LATTICES = {
    "one cell": [[0]],
    "A1": [[1, 1]],
    "A2": [[1, 1, 1]],
    "2 x 2": TWO_BY_TWO,
    "3 x 3": THREE_BY_THREE,
    "2 x 2 x 3": CUBE,
    "2, 3, 5": [[2, 3, 5]],
    "overlap": [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]],
    "two parts": [[1, 1, 0, 0], [0, 0, 0, 0]],
}


def part_of(A, word_bits=64):
    """The samplers of a lattice's blocks, and the cells that they draw."""
    structure = decompose(sparse.csr_array(np.asarray(A)))
    parts, cells = [], []
    free = np.flatnonzero((structure.part == FREE)[structure.region])
    if len(free):
        parts.append(FreeGaussian(len(free), word_bits))
        cells.append(free)
    sums = np.flatnonzero((structure.part == FORCED) & (structure.sizes > 1))
    if len(sums):
        parts.append(SumsGaussian(structure.sizes[sums], word_bits))
        cells += [structure.cells(region) for region in sums.tolist()]
    for block in structure.blocks:
        sizes = structure.sizes[block.regions]
        own = np.concatenate([structure.cells(region) for region in block.regions.tolist()])
        if block.system.grid is not None and sizes.max() == 1:
            parts.append(TableGaussian(block.system.grid.shape, word_bits=word_bits))
            own = own[block.system.grid.column.reshape(-1)]
        else:
            parts.append(BlockGaussian(make_factor(block.system.basis, sizes), sizes, word_bits=word_bits))
        cells.append(own)
    return parts, np.concatenate(cells)


def gaussian(A, sigma, count, seed=1, word_bits=64):
    parts, cells = part_of(A, word_bits)
    noise = np.zeros((count, np.asarray(A).shape[1]), dtype=np.int64)
    source, first = rng(seed=seed), 0
    for part in parts:
        own = np.empty((count, part.width), dtype=np.int64)
        LatticeGaussian(part, Fraction(sigma) ** 2).draw_into(own, source)
        noise[:, cells[first : first + part.width]] = own
        first += part.width
    return noise


def laplace(A, epsilon, count, seed=1, word_bits=64):
    parts, cells = part_of(A, word_bits)
    own = np.empty((count, len(cells)), dtype=np.int64)
    CommonScale(Fraction(epsilon), parts).draw_into(own, rng(seed=seed))
    noise = np.zeros((count, np.asarray(A).shape[1]), dtype=np.int64)
    noise[:, cells] = own
    return noise


def gaussian_law(A, sigma, box, reach):
    return lattice_law(A, lambda squares: np.exp(-squares / (2 * float(Fraction(sigma)) ** 2)), box, reach)


def laplace_law(A, epsilon, box, reach):
    return lattice_law(A, lambda squares: np.exp(-float(Fraction(epsilon)) * np.sqrt(squares)), box, reach)


GAUSSIAN = [
    ("one cell", "0.5", 8, 9), ("one cell", "7/3", 30, 80), ("A1", "0.6", 8, 10), ("A1", "10", 120, 900),
    ("A2", "0.4", 5, 2), ("A2", "0.5", 6, 8), ("A2", "1", 9, 14), ("A2", "5/2", 24, 40), ("2 x 2", "0.7", 6, 16),
    ("2 x 2", "3", 20, 100), ("3 x 3", "0.5", 3, 8), ("3 x 3", "1", 5, 8), ("2 x 2 x 3", "0.8", 5, 24),
    ("2 x 2 x 3", "2", 10, 32), ("2, 3, 5", "0.8", 6, 12), ("2, 3, 5", "3", 20, 40), ("overlap", "0.5", 4, 4),
    ("overlap", "0.9", 6, 8), ("two parts", "0.6", 5, 5), ("two parts", "2", 18, 12),
]  # fmt: skip
LAPLACE = [
    ("one cell", "1/4", 140, 400), ("one cell", "3", 12, 9), ("A1", "1", 24, 50), ("A2", "1/2", 60, 26),
    ("A2", "2", 16, 14), ("A2", "6", 6, 2), ("2 x 2", "1/2", 40, 100), ("3 x 3", "4", 7, 8), ("2 x 2 x 3", "1", 20, 32),
    ("2, 3, 5", "1", 26, 30), ("overlap", "3", 8, 8), ("two parts", "1", 24, 9), ("two parts", "4", 8, 5),
]  # fmt: skip


@mostly_audit(("name", "sigma", "box", "reach"), GAUSSIAN)
def test_gaussian_noise_has_its_law(name, sigma, box, reach):
    draws = gaussian(LATTICES[name], sigma, 100_000)
    assert not (draws @ np.asarray(LATTICES[name]).T).any()
    assert_drawn_from(draws, gaussian_law(LATTICES[name], sigma, box, reach))


@mostly_audit(("name", "epsilon", "box", "reach"), LAPLACE)
def test_l2_laplace_noise_has_its_law(name, epsilon, box, reach):
    draws = laplace(LATTICES[name], epsilon, 100_000)
    assert not (draws @ np.asarray(LATTICES[name]).T).any()
    assert_drawn_from(draws, laplace_law(LATTICES[name], epsilon, box, reach))


@pytest.mark.parametrize("name", ["one cell", "A2", "3 x 3", "2, 3, 5"])
def test_a_width_that_is_off_is_rejected(name):
    """Five parts in a hundred too wide."""
    case = next(case for case in GAUSSIAN if case[0] == name and float(Fraction(case[1])) >= 0.8)
    law = gaussian_law(LATTICES[name], *case[1:])
    assert_not_drawn_from(gaussian(LATTICES[name], Fraction(case[1]) * Fraction(21, 20), 100_000), law)


@pytest.mark.parametrize("name", ["A2", "3 x 3", "overlap"])
def test_noise_that_is_never_refused_is_rejected(name):
    """Klein's sampler without the acceptance step, where noise is narrow."""
    (part,), cells = part_of(LATTICES[name])
    own = np.empty((200_000, part.width), dtype=np.int64)
    part.fill(own, Variances.constant(Fraction(1, 4), len(own)), False, rng(seed=1), 1)
    draws = np.empty_like(own)
    draws[:, cells] = own
    assert_not_drawn_from(draws, gaussian_law(LATTICES[name], "0.5", 5 if name != "overlap" else 4, 8))


def test_a_width_accepted_without_the_lattice_is_rejected(monkeypatch):
    """l2 Laplace noise whose acceptance forgets the factors of the lattice, where noise is narrow."""
    law = laplace_law(LATTICES["A2"], "6", 6, 2)
    plain = SumsGaussian.fill
    monkeypatch.setattr(SumsGaussian, "fill", lambda *arguments: 0 * plain(*arguments))
    assert_not_drawn_from(laplace(LATTICES["A2"], "6", 100_000), law)


@pytest.mark.parametrize(("name", "sigma"), [("one cell", "7/3"), ("A2", "0.5"), ("3 x 3", "1"), ("overlap", "0.9")])
def test_ties_are_settled_rightly(name, sigma):
    """Words of 8 bits leave most decisions to ball arithmetic."""
    case = next(case for case in GAUSSIAN if case[:2] == (name, sigma))
    assert_drawn_from(gaussian(LATTICES[name], sigma, 1500, word_bits=8), gaussian_law(LATTICES[name], *case[1:]))


def test_ties_of_l2_laplace_noise(monkeypatch):
    """The same, with the acceptance of widths left open by an error bound that is far too large."""
    monkeypatch.setattr("keepsum.sampling.gaussian.common_scale.EXTRA_ERROR", 0.2)
    for name, epsilon, box, reach in [("A2", "2", 16, 14), ("two parts", "1", 24, 9), ("overlap", "3", 8, 8)]:
        draws = laplace(LATTICES[name], epsilon, 1500, word_bits=12)
        assert_drawn_from(draws, laplace_law(LATTICES[name], epsilon, box, reach))


def test_widths_near_0_get_more_digits(monkeypatch):
    """With a limit that most widths of the first step miss: their digits go on, and the law is the same."""
    monkeypatch.setattr("keepsum.sampling.gaussian.common_scale.LEADING", 2**100)
    draws = laplace(LATTICES["A2"], "6", 100_000)
    assert_drawn_from(draws, laplace_law(LATTICES["A2"], "6", 6, 2))


def test_wide_noise_by_uniform_bits():
    """Above 48 a proposal has uniform bits of its own: pooled into 40 bins."""
    for sigma in (48, 49, 97, 1000):
        draws = gaussian([[0]], sigma, 100_000)[:, 0]
        xs = np.arange(-9 * sigma, 9 * sigma + 1)
        law = np.exp(-(xs**2) / (2 * sigma**2))
        edges = np.searchsorted(np.cumsum(law / law.sum()), np.arange(1, 40) / 40)
        wanted = np.add.reduceat(law / law.sum(), [0, *edges]) * len(draws)
        found = np.bincount(np.searchsorted(xs[edges], draws, side="right"), minlength=40)
        assert ((found - wanted) ** 2 / wanted).sum() < stats.chi2.isf(1e-6, 39)


@pytest.mark.audit
def test_lengths_of_l2_laplace_noise_on_4_by_4_tables():
    """Independent of any sampler: the number of tables of each squared length up to 12, counted one by one."""
    blocks = np.indices((5,) * 9).reshape(9, -1).T - 2
    full = np.zeros((len(blocks), 4, 4), dtype=np.int64)
    full[:, :3, :3] = blocks.reshape(-1, 3, 3)
    full[:, :3, 3] = -full[:, :3, :3].sum(axis=2)
    full[:, 3] = -full[:, :3].sum(axis=1)
    # A table with an entry of 3 has a row and a column that add 3 each: at least 15.
    squares = (full.reshape(-1, 16) ** 2).sum(axis=1)[(np.abs(full) <= 2).all(axis=(1, 2))]
    shells = np.bincount(squares[squares <= 12], minlength=13)
    own = np.empty((300_000, 16), dtype=np.int64)
    CommonScale(Fraction(3), [TableGaussian((4, 4))]).draw_into(own, rng(seed=5))
    lengths = (own**2).sum(axis=1)
    found = np.bincount(lengths[lengths <= 12], minlength=13)
    law = shells * np.exp(-3 * np.sqrt(np.arange(13)))
    some = law > 0
    wanted = law[some] / law.sum() * found.sum()
    assert wanted.min() > 100
    assert ((found[some] - wanted) ** 2 / wanted).sum() < stats.chi2.isf(1e-6, some.sum() - 1)
    assert found[~some].sum() == 0


def test_wide_l2_laplace_noise_has_the_length_of_the_continuous_law():
    """Dimension 9 at epsilon 1/4: the mean of |z|^2 is m (m + 1)/eps^2, within five standard errors."""
    own = np.empty((50_000, 16), dtype=np.int64)
    CommonScale(Fraction(1, 4), [TableGaussian((4, 4))]).draw_into(own, rng(seed=6))
    lengths = (own.astype(np.float64) ** 2).sum(axis=1)
    assert abs(lengths.mean() - 9 * 10 * 16) < 5 * lengths.std() / np.sqrt(len(lengths))


def test_agrees_with_opendp():
    """No invariants: the discrete Gaussian of OpenDP, by a contingency table."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    peer = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), scale=2.5)
    theirs = np.array(peer([0] * 20_000))
    plan = ks.plan(keep=ks.Invariants.matrix(np.zeros((1, 4), dtype=int)), mechanism=ks.Gaussian(sigma="2.5"))
    ours = plan.sample(5000, rng=ks.rng(seed=2)).reshape(-1)
    bins = [np.bincount(np.clip(draws, -6, 6) + 6, minlength=13) for draws in (theirs, ours)]
    assert stats.chi2_contingency(bins).pvalue > 1e-6
    wider = (
        ks.plan(keep=plan.invariants, mechanism=ks.Gaussian(sigma="2.8")).sample(5000, rng=ks.rng(seed=2)).reshape(-1)
    )
    assert stats.chi2_contingency([bins[0], np.bincount(np.clip(wider, -6, 6) + 6, minlength=13)]).pvalue < 1e-6


@pytest.mark.parametrize("name", ["one cell", "A2", "3 x 3", "2 x 2 x 3", "overlap"])
@pytest.mark.parametrize("sigma", ["0.5", "3", "2000"])
def test_the_end_of_a_buffer_changes_nothing(monkeypatch, name, sigma):
    long = gaussian(LATTICES[name], sigma, 50)
    plain = Rng.stream
    for words in (1, 2, 7):
        monkeypatch.setattr(Rng, "stream", lambda self, _=0, words=words: plain(self, words))
        assert np.array_equal(gaussian(LATTICES[name], sigma, 50), long)


def test_threads_change_nothing():
    plan = ks.plan(keep=ks.Invariants.subsets(200_000, [range(100_000)]), mechanism=ks.Gaussian(sigma=10))
    for mechanism in (plan, ks.plan(keep=plan.invariants, mechanism=ks.Laplace.per_unit(epsilon=1, norm="l2"))):
        one, two = (mechanism.sample(rng=ks.rng(seed=3), threads=n) for n in (1, 3))
        assert np.array_equal(one, two)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (2, 2, 2, 3)])
def test_centres_of_tables_are_conditional_means(shape):
    """Against the means of the continuous Gaussian given the cells before, worked out by least squares."""
    part = TableGaussian(shape)
    cells = np.empty((1, part.width), dtype=np.int64)
    LatticeGaussian(part, Fraction(50)).draw_into(cells, rng(seed=8))
    projection = np.eye(1)
    for n in shape:
        projection = np.kron(projection, np.eye(n) - 1 / n)
    index = np.indices(shape).reshape(len(shape), -1)
    drawn = np.flatnonzero((np.array(shape) - 1 > index.T).all(axis=1)).tolist()
    for (centre, share), k in zip(table_steps(cells[0], np.array(shape)), drawn, strict=True):
        before = np.arange(k)
        gain = projection[k, before] @ np.linalg.pinv(projection[np.ix_(before, before)])
        assert abs(float(centre) - gain @ cells[0, before]) < 1e-9
        assert abs(float(share) - (projection[k, k] - gain @ projection[before, k])) < 1e-9


def test_factors_are_on_the_safe_side():
    """The form of the draws is nowhere above that of the lattice, and one that is a little above is found out."""
    generator = np.random.default_rng(2)
    for _ in range(20):
        A = generator.integers(0, 4, (3, 9))
        block = decompose(sparse.csr_array(A)).blocks[0]
        sizes = generator.integers(1, 5, len(block.regions))
        factor = make_factor(block.system.basis, sizes)
        for _ in range(50):
            v = generator.integers(-1000, 1000, len(factor.shares))
            centres = factor.centres(v)
            matrix = factor._basis
            sums = matrix @ v
            assert np.array_equal(factor.coordinates(sums), v)
            wanted = sum(Fraction(int(s) ** 2, int(n)) for s, n in zip(sums, sizes, strict=True))
            steps = zip(v.tolist(), centres.tolist(), factor.shares.tolist(), strict=True)
            assert sum((x - Fraction(c)) ** 2 / Fraction(share) for x, c, share in steps) <= wanted
    gram = np.array([[2.0, 1.0], [1.0, 2.0]])
    upper = np.array([[1.0, 0.5], [0.0, 1.0]])
    assert dominated(gram, upper, np.array([1 / 2, 1 / 1.5]) * (1 + 1e-6))
    assert not dominated(gram, upper, np.array([1 / 2, 1 / 1.5]))
    assert not dominated(gram, upper, np.array([1 / 2, 1 / 1.5]) * (1 - 1e-6))


def test_the_family_of_widths_reaches_far_enough():
    assert WIDTHS[0] == Fraction(1, 2)
    assert WIDTHS[-1] >= 48 + Fraction(3, 10)
    assert all(a < b < a * Fraction(111, 100) for a, b in pairwise(WIDTHS))

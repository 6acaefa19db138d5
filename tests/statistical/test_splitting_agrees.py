"""Tables too large to enumerate: column splitting against a second sampler that has another proof."""

from fractions import Fraction

import numpy as np
import pytest
from double_geometric_splitting import DoubleGeometricSplitting
from laws import ALPHA, assert_drawn_from
from scipy import stats
from splitting_laws import drawn, entries_law, entry_sums

from keepsum.sampling.l1.splitting.laws import Labelling
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting

pytestmark = pytest.mark.audit  # test_splitting.py has a case of each kind in every run

audit = pytest.mark.audit
TABLES = {
    "6 x 4": (np.ones((6, 4), dtype=int), "1/2", 30_000),
    "8 x 5": (np.ones((8, 5), dtype=int), "1/2", 20_000),
    "8 x 5, narrow": (np.ones((8, 5), dtype=int), "2", 20_000),
    "6 x 4 by row": (np.repeat([[1], [2], [1], [3], [1], [2]], 4, axis=1), "1/2", 20_000),
    "6 x 4, all kinds": (1 + np.arange(24).reshape(6, 4) * 7 % 4, "1/2", 20_000),
    "12 x 12": (np.ones((12, 12), dtype=int), "1", 1_500),
}
STATISTICS = {
    "length": lambda z: np.abs(z).sum(axis=(1, 2)),
    "squared length": lambda z: (z**2).sum(axis=(1, 2)),
    "first entry": lambda z: z[:, 0, 0],
    "last entry": lambda z: z[:, -1, -1],
    "largest entry": lambda z: np.abs(z).max(axis=(1, 2)),
    "first row": lambda z: np.abs(z[:, 0]).sum(axis=1),
    "last column": lambda z: np.abs(z[:, :, -1]).sum(axis=1),
    "corner": lambda z: z[:, 0, 0] * z[:, 1, 1] - z[:, 0, 1] * z[:, 1, 0],
    "left half": lambda z: np.abs(z[:, :, : z.shape[2] // 2].sum(axis=2)).sum(axis=1),
    "zeros": lambda z: (z == 0).sum(axis=(1, 2)),
}


def p_value(one, two):
    """Two samples of a number, in bins of about equal size."""
    both = np.concatenate([one, two])
    edges = np.unique(np.quantile(both, np.linspace(0, 1, 31)[1:-1]))
    counts = np.array([np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1) for sample in (one, two)])
    counts = counts[:, counts.sum(axis=0) > 0]
    return stats.chi2_contingency(counts).pvalue


LABELLED = {
    "4 x 8": (np.ones((4, 8), dtype=int), "1", 10_000),
    "5 x 6, narrow": (np.ones((5, 6), dtype=int), "2", 30_000),
    "6 x 4, all kinds": TABLES["6 x 4, all kinds"],
}


@pytest.mark.parametrize("name", LABELLED)
def test_two_samplers_agree_with_labels(name):
    sizes, epsilon, count = LABELLED[name]
    sampler = ColumnSplitting(Fraction(epsilon), sizes, labelling=Labelling(5, 4))
    noise = entry_sums(drawn(sampler, count), sizes).reshape(-1, *sizes.shape)
    other = DoubleGeometricSplitting(float(Fraction(epsilon)), sizes, reach=int(50 / Fraction(epsilon))).draw(count)
    values = {statistic: p_value(take(noise), take(other)) for statistic, take in STATISTICS.items()}
    assert min(values.values()) > ALPHA / len(values), values


@pytest.mark.parametrize(
    ("side", "epsilon", "count"), [(16, "2", 3_000), *(pytest.param(20, e, 4_000, marks=audit) for e in ("1/4", "1"))]
)
def test_labels_change_nothing_in_wide_tables(side, epsilon, count):
    """Few labels against many, where no second sampler draws."""
    sizes = np.ones((side, side), dtype=int)
    labellings = Labelling(4, 4), Labelling(12, 16)
    some, many = (
        drawn(ColumnSplitting(Fraction(epsilon), sizes, labelling=labelling), count, seed).reshape(-1, side, side)
        for seed, labelling in enumerate(labellings)
    )
    values = {statistic: p_value(take(some), take(many)) for statistic, take in STATISTICS.items()}
    assert min(values.values()) > ALPHA / len(values), values


@pytest.mark.parametrize("name", [pytest.param(name, marks=audit) if name == "12 x 12" else name for name in TABLES])
def test_two_samplers_agree(name):
    sizes, epsilon, count = TABLES[name]
    noise = entry_sums(drawn(ColumnSplitting(Fraction(epsilon), sizes), count), sizes).reshape(-1, *sizes.shape)
    other = DoubleGeometricSplitting(float(Fraction(epsilon)), sizes, reach=int(50 / Fraction(epsilon))).draw(count)
    values = {statistic: p_value(take(noise), take(other)) for statistic, take in STATISTICS.items()}
    assert min(values.values()) > ALPHA / len(values), values


@pytest.mark.parametrize(("side", "count"), [(7, 4_000), pytest.param(12, 1_000, marks=audit)])
def test_second_moments_agree(side, count):
    """Mean squares of entries and of sums over half a row, to within what chance allows at 1e-6."""
    sizes = np.ones((side, side), dtype=int)
    noise = drawn(ColumnSplitting(Fraction(1), sizes), 20_000).reshape(-1, side, side)
    other = DoubleGeometricSplitting(1.0, sizes, reach=50).draw(count)
    for take in (lambda z: (z**2).mean(axis=(1, 2)), lambda z: (z[:, :, : side // 2].sum(axis=2) ** 2).mean(axis=1)):
        one, two = take(noise), take(other)
        error = np.sqrt(one.var() / len(one) + two.var() / len(two))
        assert abs(one.mean() - two.mean()) < stats.norm.isf(ALPHA / 2) * error


def test_a_wrong_epsilon_is_told_apart():
    """The comparison has power: 3% more noise is seen."""
    sizes, epsilon, count = TABLES["6 x 4"]
    noise = drawn(ColumnSplitting(Fraction(epsilon) * Fraction(97, 100), sizes), count).reshape(-1, *sizes.shape)
    other = DoubleGeometricSplitting(float(Fraction(epsilon)), sizes, reach=100).draw(count)
    assert p_value(STATISTICS["length"](noise), STATISTICS["length"](other)) < ALPHA / len(STATISTICS)


@pytest.mark.parametrize("sizes", [np.ones((3, 4), dtype=int), np.array([[1, 2, 1], [3, 1, 1], [1, 1, 2]])])
def test_the_second_sampler_against_enumeration(sizes):
    noise = DoubleGeometricSplitting(1.0, sizes, reach=50).draw(60_000)
    assert not noise.sum(axis=1).any()
    assert not noise.sum(axis=2).any()
    assert_drawn_from(noise.reshape(len(noise), -1), entries_law(sizes, 1.0, 1 if sizes.shape[1] == 4 else 2))

"""The noise of releases through a cluster, against the enumerated law; error rate 1e-6 (``tests/statistical/laws``).

A release of thousands of small groups is as many draws. Counts are 0, so that what is released is the noise.
"""

from __future__ import annotations

import numpy as np
import pytest
from focus_laws import KEPT, enumerated, totals
from laws import assert_drawn_from, assert_not_drawn_from, lattice_law, power, solved_law, sum_law

import keepsum as ks
from keepsum import spark as kss

GROUPS = 6_000


def draws(frame, tmp_path, inner, keep, mechanism, seed=1, groups=GROUPS):
    """The noise of each group, in label order, as one row."""
    domain = {"g": list(range(groups))} | inner
    schema = ", ".join([*(f"{axis} int" for axis in domain), "n long"])
    released = kss.release(
        frame([], schema),
        axes=list(domain),
        count="n",
        keep=keep,
        mechanism=mechanism,
        domain=domain,
        rng=ks.rng(seed=seed),
        staging=tmp_path / "s",
    )
    table = released.table.toArrow().sort_by([(axis, "ascending") for axis in domain])
    return table.column("n").to_numpy().reshape(groups, -1)


def test_groups_with_their_sum_kept(frame, tmp_path):
    noise = draws(frame, tmp_path, {"x": [0, 1, 2]}, [["g"]], ks.Laplace.per_unit(epsilon=0.5))
    assert_drawn_from(noise, sum_law(3, 0.5))


@pytest.mark.parametrize(("keep", "epsilon"), [([["g"]], 0.7), ([], 0.5)], ids=["another epsilon", "nothing kept"])
def test_a_wrong_sampler_is_rejected(frame, tmp_path, keep, epsilon):
    noise = draws(frame, tmp_path, {"x": [0, 1, 2]}, keep, ks.Laplace.per_unit(epsilon=epsilon))
    assert_not_drawn_from(noise, sum_law(3, 0.5))
    assert power(noise, sum_law(3, 0.5), GROUPS) > 1 - 1e-6


def test_cells_under_no_total(frame, tmp_path):
    noise = draws(frame, tmp_path, {"x": [0]}, [], ks.Laplace.per_unit(epsilon=0.5))
    values = np.arange(-60, 61)
    weights = np.exp(-0.5 * np.abs(values))
    assert_drawn_from(noise, ([(int(value),) for value in values], weights / weights.sum()))


def test_overlapping_totals(frame, tmp_path):
    """In each group a table of two by two with both margins kept, two cells in its first row, one in others."""
    inner = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    noise = draws(frame, tmp_path, inner, [["g", "a"], ["g", "b"]], ks.Laplace.per_unit(epsilon=1), groups=3_000)
    A = [[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 0, 0, 1, 1, 0, 0]]
    law = solved_law(A, [0, 2, 3, 5, 7], 1.0, 8, 8)
    assert_drawn_from(noise, law)
    two = draws(frame, tmp_path, inner, [["g", "a"]], ks.Laplace.per_unit(epsilon=1), groups=3_000)
    assert_not_drawn_from(two, law)


def test_nested_focus(frame, tmp_path):
    inner = {"a": [0, 1], "x": [0, 1]}
    mechanism = ks.Laplace.per_unit(epsilon="1/2", focus={("g", "a"): "1/2"})
    noise = draws(frame, tmp_path, inner, [["g"]], mechanism)
    law = enumerated(totals("1/2", (-1, 0, KEPT), (0, 2, "1/2"), (0, 2, "1/2")), 5)
    assert_drawn_from(noise, law)
    assert_not_drawn_from(draws(frame, tmp_path, inner, [["g"]], ks.Laplace.per_unit(epsilon="1/2")), law)


def test_gaussian(frame, tmp_path):
    noise = draws(frame, tmp_path, {"x": [0, 1, 2]}, [["g"]], ks.Gaussian(sigma=2))
    assert_drawn_from(noise, lattice_law([[1, 1, 1]], lambda squares: np.exp(-squares / 8), 30, 120))


def test_a_group_larger_than_a_task(frame, tmp_path, monkeypatch):
    """One region of all cells, in tasks of at most 5,000: sums are split, and together they are 0."""
    from keepsum.spark.layout import Layout

    made = Layout.of.__func__
    monkeypatch.setattr(Layout, "of", classmethod(lambda cls, quotient: made(cls, quotient, 5_000)))
    inner, cells = {"x": [0, 1, 2]}, 3 * GROUPS
    noise = draws(frame, tmp_path, inner, [[]], ks.Laplace.per_unit(epsilon=0.5))
    assert noise.sum() == 0
    parts = noise.reshape(-1)[:16_000].reshape(4, -1).sum(axis=1)
    assert np.count_nonzero(parts) >= 3  # which they would not be with the sum 0 in each part
    free = np.arange(-60, 61)
    weights = np.exp(-0.5 * np.abs(free))  # of a cell: as under no total, but for one in 18,000
    assert_drawn_from(noise.reshape(-1, 1), ([(int(value),) for value in free], weights / weights.sum()))
    assert cells == noise.size


@pytest.mark.parametrize("mechanism", [ks.Laplace.per_unit(epsilon=0.1), ks.Gaussian(sigma=9)])
def test_noise_does_not_depend_on_partitions(spark, frame, tmp_path, mechanism):
    """The same secret, the same counts in other partitions: the same release."""
    domain = {"g": list(range(40)), "h": list(range(7)), "x": list(range(3))}
    rows = [(g, h, x, g + h) for g in range(40) for h in range(0, 7, 2) for x in range(2)]
    found = []
    for partitions in (1, 5):
        released = kss.release(
            frame(rows, "g int, h int, x int, n long", partitions),
            axes=["g", "h", "x"],
            count="n",
            keep=[["g"], ["h"]],
            mechanism=mechanism,
            domain=domain,
            rng=ks.rng(seed=4),
            staging=tmp_path / "s",
        )
        found.append(sorted(map(tuple, released.table.collect())))
        assert released.certificate.randomness == "seed"
    assert found[0] == found[1]
    other = kss.release(
        frame(rows, "g int, h int, x int, n long"),
        axes=["g", "h", "x"],
        count="n",
        keep=[["g"], ["h"]],
        mechanism=mechanism,
        domain=domain,
        rng=ks.rng(seed=5),
        staging=tmp_path / "s",
    )
    assert sorted(map(tuple, other.table.collect())) != found[0]

"""Characteristic functions of split laws, of tables that reach beyond G and of those that do not."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from flint import acb, arb

from keepsum.sampling.core.balls import precision
from keepsum.sampling.l1.splitting import splits
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting

REACHES = [(1, 8), (3, 8), (4, 8), (5, 8), (6, 9), (8, 9), (25, 8), (25, 9), (100, 27)]


def frequencies(points: int) -> SimpleNamespace:
    return SimpleNamespace(points=points, measure=np.ones(points // 2 + 1))


def laws_to(reach: int) -> np.ndarray:
    laws = np.random.default_rng(reach).random((3, 2 * reach + 1))
    return laws / laws.sum(axis=1, keepdims=True)


def largest_error(laws: np.ndarray, reach: int, points: int, sums: np.ndarray) -> float:
    """The largest error of the transforms of u - y/2, in units of 2^-53."""
    kept = frequencies(points)
    real, imaginary = splits._kept_transforms(laws, reach, sums, kept, splits._waves(reach, kept))
    errors = []
    with precision(200):
        for law, y, values in zip(laws, sums.tolist(), real + 1j * imaginary, strict=True):
            for k, value in enumerate(values.tolist()):
                places = [arb(2 * u - y) * k / points for u in range(-reach, reach + 1)]
                true = sum(
                    (arb(float(p)) * acb(at).exp_pi_i() for p, at in zip(law, places, strict=True)), start=acb(0)
                )
                errors.append(float(abs(acb(value) - true).upper()) * 2**53)
    return max(errors)


@pytest.mark.parametrize(("reach", "points"), REACHES)
def test_transforms_are_as_near_as_is_stated(reach, points):
    sums = np.array([0, 1, 2 * reach])
    assert largest_error(laws_to(reach), reach, points, sums) <= 2 * reach + 1 + 40


def test_an_entry_that_counts_twice_is_found_out(monkeypatch):
    """At G/2 an entry is its own mirror image."""
    right = splits._folded

    def twice(laws, reach, points):
        together, difference = right(laws, reach, points)
        together[:, -1] *= 2
        return together, difference

    monkeypatch.setattr(splits, "_folded", twice)
    assert largest_error(laws_to(5), 5, 8, np.array([0, 1, 2])) > 1e10


def test_cosines_are_computed_once_for_all_sums_of_a_row(monkeypatch):
    """They took minutes at an epsilon of 1/400, when each range of sums had its own."""
    calls = {"_waves": 0, "_kept_transforms": 0}

    def counted(name):
        run = getattr(splits, name)

        def count(*arguments):
            calls[name] += 1
            return run(*arguments)

        monkeypatch.setattr(splits, name, count)

    monkeypatch.setattr(splits, "CHUNK", 2**10)
    for name in calls:
        counted(name)
    ColumnSplitting(Fraction(1, 4), np.ones((3, 3), dtype=np.int64))
    assert calls["_kept_transforms"] > 5 * calls["_waves"] > 0

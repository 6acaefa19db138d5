"""Which totals are summed out family by family, and what draws the noise where that does not fit."""

from __future__ import annotations

import keepsum as ks


def test_totals_whose_laws_are_too_wide_to_sum_out_are_solved():
    """Tables of laws grow as epsilon falls; to solve for a few regions stays exact."""
    keep = ks.Invariants.margins(ks.Domain({axis: [0, 1] for axis in "abc"}), [["a"], ["b"], ["c"]])
    (wide,) = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit("0.001")).samplers
    assert (wide.method, wide.exactness) == ("solved_regions", "exact")
    (narrow,) = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit("0.5")).samplers
    assert narrow.method == "axis_elimination"

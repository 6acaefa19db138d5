"""Bounds under overlapping totals: moments against enumerated ones, and margins against enumerated tails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import keepsum as ks
from keepsum.accuracy.block_laws import class_bound, classes_of, free_cell
from keepsum.accuracy.cell_noise import GaussianCells, LaplaceCells
from keepsum.accuracy.queries import as_weights
from keepsum.accuracy.query_laws import DominatedPiece, dominated_piece

TWO_WAY = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]]
CHAINED = [[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1]]
WEIGHTED = [[1, 2, 1, 0, 0, 0], [0, 1, 0, 1, 3, 1]]
SYSTEMS = {"two-way": TWO_WAY, "chained": CHAINED, "weighted": WEIGHTED}
QUERIES = [[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 0, -1, 0, 2, 0], [0, 1, 2, 3, 4, 5]]
REACH = 5


def lattice(matrix: list[list[int]]) -> np.ndarray:
    grid = np.array(list(itertools.product(range(-REACH, REACH + 1), repeat=6)), dtype=np.int8)
    return grid[~(grid.astype(int) @ np.array(matrix).T).any(axis=1)].astype(float)


POINTS = {name: lattice(matrix) for name, matrix in SYSTEMS.items()}


def chances(name: str, mechanism: ks.Laplace | ks.Gaussian) -> np.ndarray:
    points = POINTS[name]
    logs = -np.abs(points).sum(axis=1) if isinstance(mechanism, ks.Laplace) else -(points**2).sum(axis=1) / 2
    weights = np.exp(logs)
    return weights / weights.sum()


MECHANISMS = [ks.Laplace.per_unit(epsilon=1), ks.Gaussian(sigma=1)]


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_moments_are_at_most_those_of_free_cells(name, mechanism, query):
    plan = ks.plan(keep=np.array(SYSTEMS[name]), mechanism=mechanism)
    assert plan.structure.blocks
    found, values = chances(name, mechanism), POINTS[name] @ np.array(query)
    piece = dominated_piece(as_weights(query, plan.invariants), plan.structure, free_cell(plan.mechanism))
    tilts = np.array([0.05, 0.2, 0.5, 0.8]) * min(1.0, piece.largest_tilt / 1.2)
    true = np.array([np.log(found @ np.cosh(tilt * values)) for tilt in tilts])
    assert (true <= piece.log_moments(tilts) + 1e-12).all()
    variance = float(found @ values**2)
    assert variance <= piece.variance * (1 + 1e-12)
    if variance:  # too small a bound would be seen
        small = DominatedPiece(piece.cell, piece.weights / 4, piece.counts)
        assert not (true <= small.log_moments(tilts)).all()


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_margins_by_bounds_hold(name, mechanism, level):
    plan = ks.plan(keep=np.array(SYSTEMS[name]), mechanism=mechanism)
    found, points = chances(name, mechanism), np.abs(POINTS[name])
    for cells in classes_of(plan._record.blocks):
        bound = class_bound(plan._record.blocks, cells)
        assert bound.basis == "conservative"
        for cell in cells.cells.tolist():
            assert found[points[:, cell] <= bound.reach(level)].sum() >= level


def test_free_cells_have_their_own_moments():
    values = np.arange(-60, 61)
    for cell, logs in ((LaplaceCells(2.0), -2 * np.abs(values)), (GaussianCells(1.0), -(values**2) / 2)):
        weights = np.exp(logs) / np.exp(logs).sum()
        for h in (0.3, 1.0):
            assert np.log(weights @ np.exp(h * values)) <= cell.log_moment(np.array([h]))[0] + 1e-12
        for reach in (0, 1, 4):
            inside = np.abs(values) <= reach
            for angle in (0.0, 0.4, 2.0):
                wanted = (weights * np.cos(angle * values))[inside].sum()
                assert cell.transform_within(np.array([angle]), reach)[0] == pytest.approx(wanted, abs=1e-12)

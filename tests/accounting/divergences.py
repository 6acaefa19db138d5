"""Divergences between the outputs of releases for two datasets, by enumeration.

A pair (p, q) holds the probabilities of every output under one dataset and under the other. Noise is enumerated in a
box whose rim has a mass below 1e-15; every law here falls at least by half per step there, so that what is outside has
no more. Hockey-stick divergences are those of the box, too small by at most 1e-14.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Pair = tuple[Array, Array]
Weight = Callable[[Array], Array]
RIM = 1e-15

# Bases of lattices over the cells of a table of 2 x 2: 0 1 / 2 3.
ROWS_KEPT = [[1, -1, 0, 0], [0, 0, 1, -1]]
COLUMNS_KEPT = [[1, 0, -1, 0], [0, 1, 0, -1]]
SWAP = np.array([1, -1, -1, 1])  # keeps both
# The same for 2 x 3: 0 1 2 / 3 4 5.
ROWS_OF_THREE_KEPT = [[1, -1, 0, 0, 0, 0], [0, 1, -1, 0, 0, 0], [0, 0, 0, 1, -1, 0], [0, 0, 0, 0, 1, -1]]
THREE_COLUMNS_KEPT = [[1, 0, 0, -1, 0, 0], [0, 1, 0, 0, -1, 0], [0, 0, 1, 0, 0, -1]]
SWAP_OF_THREE = np.array([1, -1, 0, -1, 1, 0])


def l1_laplace(epsilon: float) -> Weight:
    return lambda z: np.exp(-epsilon * np.abs(z).sum(axis=-1))


def l2_laplace(epsilon: float) -> Weight:
    return lambda z: np.exp(-epsilon * np.sqrt((z * z).sum(axis=-1)))


def gaussian(sigma: float) -> Weight:
    return lambda z: np.exp(-(z * z).sum(axis=-1) / (2 * sigma**2))


def outputs(basis: Sequence[Sequence[int]], weight: Weight, difference: npt.ArrayLike, reach: int) -> Pair:
    """The release of two tables with this difference, a vector of the lattice, for every output in a box."""
    coordinates = np.array(list(product(range(-reach, reach + 1), repeat=len(basis))))
    points = (coordinates @ np.asarray(basis)).astype(np.float64)
    weights = weight(points)
    p, q = weights / weights.sum(), weight(points - np.asarray(difference)) / weights.sum()
    rim = np.abs(coordinates).max(axis=1) == reach
    assert max(p[rim].sum(), q[rim].sum()) < RIM, "the box is too small"
    assert math.isclose(q.sum(), 1, abs_tol=1e-13), "the difference is not in the lattice"
    return p, q


def grouped(pair: Pair) -> Pair:
    """Outputs of the same likelihood ratio as one, to nine digits: no divergence grows, and none shrinks by 1e-8."""
    p, q = pair
    _, group = np.unique(np.round(np.log(p) - np.log(q), 9), return_inverse=True)
    return np.bincount(group, weights=p), np.bincount(group, weights=q)


def together(first: Pair, second: Pair) -> Pair:
    """The outputs of two independent releases."""
    p, q = (np.multiply.outer(a, b).ravel() for a, b in zip(first, second, strict=True))
    return p, q


def largest_log_ratio(pair: Pair) -> float:
    p, q = pair
    return float(np.abs(np.log(p) - np.log(q)).max())


def hockey_stick(pair: Pair, epsilon: float) -> float:
    """The smallest delta for which the pair is (epsilon, delta)-indistinguishable."""
    p, q = pair
    factor = math.exp(epsilon)
    return float(max(np.maximum(0, p - factor * q).sum(), np.maximum(0, q - factor * p).sum()))


def renyi(pair: Pair, alpha: float) -> float:
    p, q = pair
    log_p, log_q = np.log(p), np.log(q)
    sums = [np.exp(alpha * a + (1 - alpha) * b).sum() for a, b in ((log_p, log_q), (log_q, log_p))]
    return float(math.log(max(sums)) / (alpha - 1))


def worst(epsilon: float, delta: float) -> Pair:
    """Two laws that are (epsilon, delta)-indistinguishable and no better: all such pairs follow from this one.

    With probability delta the dataset is told, otherwise it is guessed with odds e^epsilon (Kairouz, Oh and Viswanath
    2015).
    """
    right, wrong = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    return np.array([delta, right, wrong, 0.0]), np.array([0.0, wrong, right, delta])

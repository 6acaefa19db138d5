"""Which labels of a form go together: guesses that change how often proposals are accepted, never the law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.l1.splitting.weights import Weights

ROUNDS = 30  # of moving the centres of groups


def grouped(labels: Sequence[list[Floats]], counts: Sequence[int], rests: Sequence[Weights], most: int) -> list[int]:
    """The group of each label, at most so many groups, narrow weights first.

    Parameters
    ----------
    labels
        For each label the logarithms of its weights, for each law.
    counts, rests
        For each law how many places have it, and the weights of the rest of such a row.
    most
        How many groups there are at most.
    """
    if len(labels) <= most:
        return list(range(len(labels)))
    shape, log_mass = np.zeros(len(labels)), np.zeros(len(labels))
    for k, (count, rest) in enumerate(zip(counts, rests, strict=True)):
        logs = np.array([label_logs[k] for label_logs in labels])
        other = np.where(np.arange(logs.shape[1]) == 0, 1.0, 2.0) * _cut(rest.values, logs.shape[1])
        highest = logs.max()
        masses = np.exp(logs - highest) @ other
        log_mass += count * np.log(masses)
        typical = np.exp(logs.mean(axis=0) - logs.mean(axis=0).max()) * other
        good = typical > 1e-12 * typical.max()
        shape += count * ((logs - logs[:, :1])[:, good] @ (typical[good] / typical[good].sum()))
    mass = np.exp(log_mass - log_mass.max())
    return _clustered(shape, mass / mass.sum(), most)


def _cut(values: Floats, count: int) -> Floats:
    return np.concatenate([values[:count], np.zeros(max(0, count - len(values)))])


def _clustered(shape: Floats, mass: Floats, most: int) -> list[int]:
    """Clusters on a line: those that matter lie close, so that few groups serve them well."""
    order = np.argsort(shape, kind="stable")
    places, masses = shape[order], mass[order]
    mean = (places * masses).sum()
    deviation = np.sqrt((masses * (places - mean) ** 2).sum()) + 1e-12
    roots, bell = np.sqrt(masses), np.exp(-0.5 * ((places - mean) / (2 * deviation)) ** 2)
    density = np.cumsum(roots / roots.sum() + bell / bell.sum())
    first = np.searchsorted(density, (np.arange(most) + 0.5) / most * density[-1]).clip(0, len(places) - 1)
    centres = np.unique(places[first])
    weights = masses + 1e-7
    for _ in range(ROUNDS):
        nearest = _nearest(places, centres)
        total = np.bincount(nearest, weights, minlength=len(centres))
        sums = np.bincount(nearest, weights * places, minlength=len(centres))
        centres = np.where(total > 0, sums / np.where(total > 0, total, 1.0), centres)
    numbers = np.empty(len(shape), dtype=np.int64)
    numbers[order] = np.unique(_nearest(places, centres), return_inverse=True)[1]
    return numbers.tolist()


def _nearest(places: Floats, centres: Floats) -> IntArray:
    nearest: IntArray = np.abs(places[:, None] - centres).argmin(axis=1)
    return nearest

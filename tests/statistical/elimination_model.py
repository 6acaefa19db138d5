"""Axis elimination in a page of NumPy: floats and cut tables, many proposals at once, and ways to do it wrong.

A kept margin is a family: the number of each entry's total. To eliminate a family let a row be what all other families
cannot tell apart, and m the sums of rows. Rows that are linked by totals of the family are a bundle; the totals of a
bundle are 0 if and only if those of m are 0 over the bundle and, going down a tree over the totals, the parts of its
rows add up to 0 at every node. Trees take off one total at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FLAWS = {
    "root": "the sums at the root of a stage are not tested",
    "exponent": "numbers t are for the rows of another bundle",
    "order": "half of the rows are split before the sums above them are known, with those of another proposal",
    "mixed": "all bundles of a stage are tested as one, whatever their separator",
    "kept": "after a rejection a stage is drawn again with the sums above it kept",
}


class Node:
    """Row by row how a sum y splits, tables indexed by y + reach and u + reach."""

    def __init__(self, left, right, exponent, top):
        points, width = left.shape[1] // 2, left.shape[1]
        y, u = np.arange(width)[:, None] - points, np.arange(width)[None, :] - points
        rest = y - u + points
        inside = (rest >= 0) & (rest < width)
        joint = left[:, None, :] * np.where(inside, right[:, rest.clip(0, width - 1)], 0.0)
        whole = joint.sum(axis=2)
        self.split = joint / np.maximum(whole, 1e-300)[:, :, None]
        self.upto = self.split.cumsum(axis=2)
        self.upto[:, :, -1] = 2.0  # no uniform number is beyond it
        angles = 2 * np.pi * np.arange(2 * width + 1) / (4 * width)  # to pi; the others are conjugate
        self.measure = np.full(len(angles), 2.0) / (4 * width)
        self.measure[[0, -1]] /= 2
        self.phi = self.split @ np.exp(1j * u.ravel()[:, None] * angles)
        self.log_t = np.zeros_like(whole)
        if not top:
            self.log_t = np.log(np.maximum(np.abs(self.phi) ** exponent @ self.measure, 1e-300)) / exponent
        weights = whole * np.exp(self.log_t)
        self.weights = weights / weights.max(axis=1, keepdims=True)

    def bridge(self, y, rng):
        """Parts of the rows of each proposal, given that they add up to 0; y is proposals x rows."""
        out, reach = np.empty_like(y), self.split.shape[1] // 2
        law = self.split[0][y[:, 0] + reach]
        peak, waiting = law.max(axis=1), np.arange(len(y))
        while len(waiting):
            for k in range(1, y.shape[1]):
                chances = self.upto[k][y[waiting, k] + reach]
                out[waiting, k] = (chances < rng.random((len(waiting), 1))).sum(axis=1) - reach
            needed = -out[waiting, 1:].sum(axis=1)
            out[waiting, 0] = needed
            chances = law[waiting, (needed + reach).clip(0, 2 * reach)] * (np.abs(needed) <= reach)
            waiting = waiting[rng.random(len(waiting)) * peak[waiting] >= chances]
        return out

    def terms(self, y):
        """The product of the characteristic functions of the rows, and of their numbers t."""
        reach, rows = self.split.shape[1] // 2, range(y.shape[1])
        product = np.ones((len(y), len(self.measure)), dtype=complex)
        for k in rows:
            product *= self.phi[k][y[:, k] + reach]
        return product, sum(self.log_t[k][y[:, k] + reach] for k in rows)


@dataclass
class Bundle:
    """Rows of a stage, the entry of each row and total (-1 for none), and the nodes, smallest first."""

    rows: np.ndarray
    entries: np.ndarray
    nodes: list[Node]


class Stage:
    """One family: from the sums of rows to entries."""

    def __init__(self, families, weights, at, top, exponent):
        self.rows, self.row_of, links = _rows(families, at)
        self.width, self.top = weights.shape[0], top
        reach = weights.shape[1] // 2
        self.weights = np.empty((self.rows, weights.shape[1]))
        self.bundles = []
        for label in np.unique(links):
            rows = np.flatnonzero(links == label)
            inside = np.isin(self.row_of, rows)
            totals = np.unique(families[at][inside])
            entries = np.full((len(rows), len(totals)), -1)
            own = np.flatnonzero(inside)
            entries[np.searchsorted(rows, self.row_of[own]), np.searchsorted(totals, families[at][own])] = own
            nothing = (np.arange(2 * reach + 1) == reach).astype(float)
            leaves = np.where(entries[:, :, None] >= 0, weights[entries], nothing)
            nodes, below = [], leaves[:, 0]
            for k in range(1, len(totals)):
                nodes.append(Node(below, leaves[:, k], exponent or len(rows), top and k == len(totals) - 1))
                below = nodes[-1].weights
            self.weights[rows] = below
            self.bundles.append(Bundle(rows, entries, nodes))
        self.links = links

    def expand(self, m, rng, flaw=None):
        """The entries below the sums of rows, and the logarithm of the acceptance rate."""
        out, log = np.zeros((len(m), self.width), dtype=np.int64), np.zeros(len(m))
        shared = {}
        for bundle in self.bundles:
            y = m[:, bundle.rows]
            for k, node in reversed([*enumerate(bundle.nodes)]):
                seen = y
                if flaw == "order" and not self.top and k == len(bundle.nodes) - 1:
                    seen = np.hstack([y[:, ::2], y[:, 1::2]])  # a copy
                    seen[:, ::2], seen[:, 1::2] = y[:, ::2], np.roll(y[:, 1::2], 1, axis=0)
                at_root = k == len(bundle.nodes) - 1
                if not (at_root and (self.top or flaw == "root")):
                    self._test(node, k, seen, log, shared if flaw == "mixed" else None)
                u = node.bridge(seen, rng)
                _put(out, bundle.entries[:, k + 1], y - u)
                y = u
                log[np.abs(out).max(axis=1) > node.split.shape[1] // 2] = -np.inf
            _put(out, bundle.entries[:, 0], y)
        for product, log_t, measure in shared.values():
            log += _log_chance(product, measure) - log_t
        return out, log

    def _test(self, node, k, y, log, shared):
        product, log_t = node.terms(y)
        if shared is None:
            log += _log_chance(product, node.measure) - log_t
        else:
            before = shared.get(k, (1.0, 0.0, None))
            shared[k] = before[0] * product, before[1] + log_t, node.measure


def _log_chance(product, measure):
    return np.log(np.maximum((product @ measure).real, 1e-300))


def _put(out, entries, values):
    """Values of rows at the entries that there are."""
    out[:, entries[entries >= 0]] = values[:, entries >= 0]


def _rows(families, at):
    """The number of rows, the row of each entry, and the bundle of each row."""
    others = [family for k, family in enumerate(families) if k != at]
    labels = np.stack(others) if others else np.zeros((1, len(families[at])), dtype=int)
    row_of = np.unique(labels, axis=1, return_inverse=True)[1].reshape(-1)
    links, own = np.arange(row_of.max() + 1), families[at]
    while True:
        least = np.full(own.max() + 1, len(links))
        np.minimum.at(least, own, links[row_of])
        smaller = links.copy()
        np.minimum.at(smaller, row_of, least[own])
        if np.array_equal(smaller, links):
            return len(links), row_of, links
        links = smaller


def _finest(families):
    """Those families that no other one implies."""
    kept = []
    for family in sorted(families, key=lambda family: -len(np.unique(family))):
        if not any(len(np.unique(np.stack([other, family]), axis=1).T) == len(np.unique(other)) for other in kept):
            kept.append(np.unique(family, return_inverse=True)[1].reshape(-1))
    return kept


class Model:
    """Draws of the entries of a system, right or with one of the flaws."""

    def __init__(self, system, flaw=None, reach=None):
        if has_twins(system):
            raise ValueError("two entries are in the same totals: make them one")
        epsilon, cells = float(system.law.epsilon), system.cells
        reach = reach or int(24 / epsilon)
        self.present, self.entries, self.flaw = np.flatnonzero(cells), len(cells), flaw
        one = np.exp(-epsilon * np.abs(np.arange(-reach, reach + 1)))
        weights = np.array([_power(one, cells[j]) for j in self.present])
        plan, self.stages = _plan(_finest([family[self.present] for family in system.families])), []
        for k, (families, at) in enumerate(plan):
            top = k == len(plan) - 1
            exponent = int(np.bincount(_rows(*plan[k + 1])[2]).max()) if flaw == "exponent" and not top else None
            self.stages.append(Stage(families, weights, at, top, exponent))
            weights = self.stages[-1].weights

    def propose(self, count, rng):
        """Entries and the logarithm of the acceptance rate."""
        m, log = np.zeros((count, self.stages[-1].rows), dtype=np.int64), np.zeros(count)
        for stage in reversed(self.stages):
            below, factor = stage.expand(m, rng, self.flaw)
            waiting = np.flatnonzero(rng.random(count) >= np.exp(factor)) if self.flaw == "kept" else ()
            while len(waiting):
                below[waiting], again = stage.expand(m[waiting], rng)
                waiting = waiting[rng.random(len(waiting)) >= np.exp(again)]
            m, log = below, log + (0.0 if self.flaw == "kept" else factor)
        out = np.zeros((count, self.entries), dtype=np.int64)
        out[:, self.present] = m
        return out, log

    def draw(self, count, seed=1):
        """Accepted proposals; factors above 1 are taken for 1."""
        rng = np.random.default_rng(seed)
        found = []
        while sum(map(len, found)) < count:
            proposed, log = self.propose(5_000, rng)
            found.append(proposed[rng.random(len(log)) < np.exp(log)])
        return np.concatenate(found)[:count]


def has_twins(system):
    """Whether two entries are in the same totals, which the model has no stage for."""
    present = np.stack(system.families)[:, system.cells > 0]
    return np.unique(present, axis=1).shape[1] < present.shape[1]


def _power(one, cells):
    """The weights of the sum of so many cells, relative to the largest."""
    weights = one
    for _ in range(cells - 1):
        weights = np.convolve(weights, one, mode="same")
    return weights / weights.max()


def _plan(families):
    """The families before each stage, and the place of the one that goes."""
    plan = []
    while not any(len(np.unique(family)) == len(family) for family in families):
        at, following = _next(families)
        plan.append((families, at))
        families = following
    return plan


def _next(families):
    """The family with the smallest trees that leaves fewer entries, and the families that are left."""
    ways = []
    for at in range(len(families)):
        rows, row_of, links = _rows(families, at)
        first = np.unique(row_of, return_index=True)[1]
        if rows < len(row_of):
            others = [family[first] for k, family in enumerate(families) if k != at]
            ways.append((len(np.unique(families[at])), at, _finest([*others, links])))
    if not ways:
        raise ValueError("the margins are not decomposable")
    _, at, following = min(ways, key=lambda way: way[:2])
    return at, following

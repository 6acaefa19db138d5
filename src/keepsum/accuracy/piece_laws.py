"""The law of the noise of one piece of a query: its variance, its transform, and a bound on its moments.

Let phi be the characteristic function of the noise of a free cell, and M(h) = E[exp(h z)] its moments. Cells under no
total are independent. The cells of a region are so given that their noise adds up to 0: with a weight w for each of its
n cells (0 for most) and X the weighted sum,

    E[cos(t X)] = mean over u of  prod of phi(w t + u)  /  mean over u of  phi(u)^n,

where u runs over a turn. Means over L equally spaced u add what folds over, the chance of sums that are multiples of L,
which is negligible. Few u matter, as phi(u)^m falls off fast for the m cells of weight 0, and few t: with
s = sin(x/2)^2,

    l1 Laplace  -ln phi(x) = ln(1 + c s),  c = 4 a/(1 - a)^2,
    Gaussian    -ln phi(x) >= k s,  k = 2 variance  (Jacobi's product: each factor of phi is 1 - 4 r s/(1 + r)^2),

and sin(x/2)^2 + sin(y/2)^2 >= 1 - |cos((x - y)/2)|. So m cells of one weight and m of another that differs by d have
together at most exp(-m f(1 - |cos(d t/2)|)), f(s) = ln(1 + c s) or k s, whatever u is; the mean over u of what is left
of the cells of weight 0 is at most that of phi(u)^(n/2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.free_cells import NEGLIGIBLE, FreeCell, turn_of
from keepsum.accuracy.queries import Piece

FEW_BOUNDS = 4  # weights from which a bound on a transform is taken
LARGEST_TABLE = 2**24  # numbers that are looked up


class PieceLaw(Protocol):
    """The law of a piece, which is symmetric around 0."""

    @property
    def variance(self) -> float:
        """Its variance, or an upper bound."""

    @property
    def largest_tilt(self) -> float:
        """E[exp(h X)] is finite below this."""

    def log_moments(self, tilts: Floats) -> Floats:
        """Upper bounds on ln E[exp(h X)], infinite where there is none."""

    def least_fall(self, angles: Floats) -> Floats | None:
        """A lower bound on -ln |E[cos(t X)]|; None where only moments are known."""

    def work(self, angles: int) -> float:
        """How many numbers the transform at so many angles takes."""

    def transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """E[cos(t X)] at t = 2 pi k / (points unit) for these k; every value of X is a multiple of the unit."""


def turns(where: IntArray, points: int, unit: int) -> Floats:
    """The angles of a transform."""
    return np.asarray(where * (2 * math.pi / points / unit), dtype=np.float64)


def squares(piece: Piece) -> float:
    """The squared length of a piece, less that of its mean over the region, which has no noise."""
    total = sum(n * w * w for w, n in piece.classes)
    mean = sum(n * w for w, n in piece.classes)
    return float(total) if piece.size == 0 else float(total * piece.size - mean * mean) / piece.size


@dataclass(frozen=True)
class FreePiece:
    """A cell under no total, with a weight."""

    piece: Piece
    cell: FreeCell

    @property
    def _weight(self) -> int:
        return self.piece.classes[0][0]

    @property
    def variance(self) -> float:
        """Its variance."""
        return self._weight**2 * self.cell.variance

    @property
    def largest_tilt(self) -> float:
        """E[exp(h X)] is finite below this."""
        return self.cell.largest_tilt / abs(self._weight)

    def log_moments(self, tilts: Floats) -> Floats:
        """Upper bounds on ln E[exp(h X)]."""
        return self.cell.log_moment(self._weight * tilts)

    def least_fall(self, angles: Floats) -> Floats | None:
        """-ln |E[cos(t X)]|, at least."""
        return self.cell.least_fall(np.sin(self._weight * angles / 2) ** 2)

    def work(self, angles: int) -> int:
        """How many numbers the transform takes."""
        return angles

    def transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """E[cos(t X)]."""
        return np.asarray(np.exp(-self.cell.fall(self._weight * turns(where, points, unit))))


@dataclass(frozen=True)
class RegionPiece:
    """Cells of a region whose noise adds up to 0, with weights."""

    piece: Piece
    cell: FreeCell

    @cached_property
    def _weights(self) -> Floats:
        """The weights of all cells, that of most cells, 0, first."""
        return np.array([0, *(w for w, _ in self.piece.classes)], dtype=np.float64)

    @cached_property
    def _counts(self) -> Floats:
        counts = [n for _, n in self.piece.classes]
        return np.array([self.piece.size - sum(counts), *counts], dtype=np.float64)

    @cached_property
    def variance(self) -> float:
        """Exchangeable cells whose sum is 0 have covariance -v/(n - 1)."""
        n = self.piece.size
        return self.cell.in_region(n) * squares(self.piece) * n / (n - 1)

    @property
    def largest_tilt(self) -> float:
        """All weights may be shifted alike: what counts is half their range."""
        return 2 * self.cell.largest_tilt / float(self._weights.max() - self._weights.min())

    def log_moments(self, tilts: Floats) -> Floats:
        """Upper bounds on ln E[exp(h X)]: the mean over u of the product of M(w h + k + i u), at a good shift k.

        A shift is lost in a sum that is 0. For real h what folds over is positive, so that means bound from above.
        """
        limit = self.cell.largest_tilt
        if math.isinf(limit):
            return self.cell.log_moment(tilts) * squares(self.piece)
        at = self._weights[:, None, None] * tilts[:, None]  # by weight, tilt, and shift or angle
        low, high = -limit - at.min(axis=0), limit - at.max(axis=0)
        shifts = low + (high - low) * np.arange(1, 32) / 32
        with np.errstate(invalid="ignore"):
            real = (self._counts[:, None, None] * self.cell.log_moment(at + shifts)).sum(axis=0)
        best = np.argmin(real, axis=1)
        rows = np.arange(len(tilts))
        turned = self.cell.turned_moment(at + shifts[rows, best][:, None], self._turn[0])
        means = np.exp((self._counts[:, None, None] * turned).sum(axis=0)).real.sum(axis=1) / self._turn[1]
        return np.asarray(real[rows, best] + np.log(np.maximum(means, 0) + math.exp(-NEGLIGIBLE)) - self._log_zero)

    @cached_property
    def _turn(self) -> tuple[Floats, float]:
        return turn_of(self.cell, self.piece.size, int(self._counts[0]))

    @cached_property
    def _log_zero(self) -> float:
        """The logarithm of the chance that the noise of all cells adds up to 0."""
        angles, points = self._turn
        return math.log(float(np.exp(-self.piece.size * self.cell.fall(angles)).sum()) / points)

    def least_fall(self, angles: Floats) -> Floats | None:
        """-ln |E[cos(t X)]|, at least: half of the cells of weight 0 are paired, the others bound the mean over u."""
        half = int(self._counts[0]) // 2
        bounds = [
            min(m, half) * self.cell.least_fall(1 - np.abs(np.cos(w * angles / 2)))
            for w, m in sorted(self.piece.classes, key=lambda item: -item[1])[:FEW_BOUNDS]
        ]
        left = int(self._counts[0]) - half
        turn, whole = turn_of(self.cell, left, left)
        others = math.log(float(np.exp(-left * self.cell.fall(turn)).sum()) / whole + math.exp(-NEGLIGIBLE))
        return np.asarray(np.max(bounds, axis=0) + self._log_zero - others)

    def work(self, angles: int) -> float:
        """How many numbers the transform takes, by whichever way is shorter."""
        return min(self._listed, angles * len(self._turn[0]) * len(self.piece.classes))

    def transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """E[cos(t X)]."""
        if self._listed <= len(where) * len(self._turn[0]) * len(self.piece.classes):
            return self._listed_transform(points, unit)[where]
        return self._turned_transform(where, points, unit)

    @cached_property
    def _listed(self) -> float:
        """How many values the sums over cells of one weight have together, if there are one or two weights."""
        if len(self.piece.classes) > 2:
            return math.inf
        return math.prod(2 * math.ceil(self.cell.span(n)) + 1 for _, n in self.piece.classes)

    def _listed_transform(self, points: int, unit: int) -> Floats:
        """From the chances of all sums over the cells of each weight, and of minus their sum over those of weight 0."""
        sums = [np.arange(-s, s + 1) for s in (math.ceil(self.cell.span(n)) for _, n in self.piece.classes)]
        grids = np.meshgrid(*sums, indexing="ij")
        chances = self._sum_chances(int(self._counts[0]), np.abs(np.sum(grids, axis=0)))
        values = np.zeros(chances.shape, dtype=np.int64)
        for grid, (weight, n) in zip(grids, self.piece.classes, strict=True):
            chances = chances * self._sum_chances(n, np.abs(grid))
            values += weight * grid
        folded = np.bincount((values // unit % points).ravel(), weights=chances.ravel(), minlength=points)
        return np.asarray(np.fft.rfft(folded / folded.sum()).real)

    def _sum_chances(self, cells: int, sizes: IntArray) -> Floats:
        """The chances that the noise of so many free cells adds up to these numbers of 0 or more."""
        turn, whole = turn_of(self.cell, cells, cells)
        points, longest = int(whole), int(sizes.max())
        if longest * len(turn) < points:  # many cells, of whose sum only the middle is asked for
            law = _cosine_sums(np.exp(-cells * self.cell.fall(turn)) / whole, turn, longest)
        else:
            angles = np.arange(points // 2 + 1, dtype=np.float64) * (2 * math.pi / points)
            law = np.fft.irfft(np.exp(-cells * self.cell.fall(angles)), points)[: points // 2]
        return np.where(sizes < len(law), np.maximum(law, 0.0)[np.minimum(sizes, len(law) - 1)], 0.0)

    def _turned_transform(self, where: IntArray, points: int, unit: int) -> Floats:
        """From the u that matter; -ln phi is looked up, as all angles are multiples of the smallest."""
        turn, whole = self._turn
        size = points * unit
        if size % int(whole) or size > min(LARGEST_TABLE, len(where) * len(turn)):
            return self._turned_at(turns(where, points, unit))
        falls = self.cell.fall(turns(np.arange(size), size, 1))
        steps = np.rint(turn * (size / (2 * math.pi))).astype(np.int64)
        at_zero = self._counts[0] * self.cell.fall(turn)
        result = np.empty(len(where))
        batch = max(1, 2**18 // len(turn))
        for start in range(0, len(where), batch):
            some = where[start : start + batch, None]
            total = at_zero + sum(n * falls[(w * some + steps) % size] for w, n in self.piece.classes)
            result[start : start + batch] = np.exp(-total).sum(axis=1)
        return np.asarray(result / whole * math.exp(-self._log_zero))

    def _turned_at(self, angles: Floats) -> Floats:
        turn, whole = self._turn
        result = np.empty(len(angles))
        at_zero = self._counts[0] * self.cell.fall(turn)
        batch = max(1, 2**18 // len(turn))
        for start in range(0, len(angles), batch):
            some = angles[start : start + batch, None]
            falls = sum(n * self.cell.fall(w * some + turn) for w, n in self.piece.classes)
            result[start : start + batch] = np.exp(-(at_zero + falls)).sum(axis=1)
        return np.asarray(result / whole * math.exp(-self._log_zero))


def _cosine_sums(heights: Floats, angles: Floats, longest: int) -> Floats:
    """The sums of heights times cos(k angle), for k up to ``longest``, a few k at a time."""
    batches = np.array_split(np.arange(longest + 1), 1 + longest * len(angles) // 2**18)
    return np.concatenate([np.cos(np.outer(batch, angles)) @ heights for batch in batches])


def piece_law(piece: Piece, cell: FreeCell) -> PieceLaw:
    """The law of a piece."""
    return FreePiece(piece, cell) if piece.size == 0 else RegionPiece(piece, cell)


def relevant(pieces: list[tuple[PieceLaw, int]], points: int, unit: int) -> IntArray | None:
    """The k for which E[cos(2 pi k X / (points unit))] is not negligible; None where only moments are known."""
    angles: Floats = np.arange(points // 2 + 1, dtype=np.float64) * (2 * math.pi / points / unit)
    fall = np.zeros(len(angles))
    for piece, times in pieces:
        least = piece.least_fall(angles)
        if least is None:
            return None
        fall += times * np.maximum(least, 0.0)
    return np.flatnonzero(fall <= NEGLIGIBLE + math.log(points))

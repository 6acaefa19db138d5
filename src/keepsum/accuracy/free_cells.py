"""The noise of a cell under no total, from which the laws of all queries are made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from keepsum._arrays import Floats
from keepsum.accuracy.law import GaussianCells, LaplaceCells, gaussian_characteristic

NEGLIGIBLE = 36.0  # what has probability below e^-36 is left out of a law


class FreeCell(Protocol):
    """The noise of a cell under no total."""

    @property
    def variance(self) -> float:
        """Its variance."""

    def in_region(self, size: int) -> float:
        """The variance of a cell of a region of this size, whose noise adds up to 0."""

    def fall(self, angles: Floats) -> Floats:
        """-ln phi."""

    def least_fall(self, sines: Floats) -> Floats:
        """The f of ``piece_laws.py``, at values of s."""

    def farthest(self, fall: float) -> float:
        """An s beyond which -ln phi is larger than this; at most 1."""

    def span(self, cells: int) -> float:
        """How far a sum of so many cells reaches, up to a negligible chance."""

    def log_moment(self, h: Floats) -> Floats:
        """Ln M(h), infinite where there is none, or an upper bound."""

    def turned_moment(self, at: Floats, angles: Floats) -> npt.NDArray[np.complex128]:
        """Ln M(x + i u)/M(x), which in size falls off with u at least as fast as phi."""

    def transform_within(self, angles: Floats, reach: int) -> Floats:
        """E[cos(u z)] over the noise z that is at most so large, of either sign."""

    @property
    def largest_tilt(self) -> float:
        """M is finite below this."""


@dataclass(frozen=True)
class FreeLaplace:
    """l1 Laplace noise of a free cell."""

    epsilon: float

    @property
    def _c(self) -> float:
        return 4 * math.exp(-self.epsilon) / math.expm1(-self.epsilon) ** 2

    @cached_property
    def variance(self) -> float:
        """Its variance."""
        return LaplaceCells(self.epsilon).variance(0)

    def in_region(self, size: int) -> float:
        """The variance of a cell of a region."""
        return LaplaceCells(self.epsilon).variance(size)

    def fall(self, angles: Floats) -> Floats:
        """-ln phi."""
        return np.asarray(np.log1p(self._c * np.sin(angles / 2) ** 2))

    def least_fall(self, sines: Floats) -> Floats:
        """ln(1 + c s)."""
        return np.asarray(np.log1p(self._c * sines))

    def farthest(self, fall: float) -> float:
        """Where ln(1 + c s) is as large as this."""
        return min(1.0, math.expm1(min(fall, 700.0)) / self._c)

    def span(self, cells: int) -> float:
        """How far a sum reaches: P(S >= x) <= M(h)^n exp(-h x)."""
        h = np.geomspace(1e-4, 0.95, 40) * self.epsilon
        return float(((cells * self.log_moment(h) + NEGLIGIBLE) / h).min())

    def log_moment(self, h: Floats) -> Floats:
        """-ln(1 - c sinh(h/2)^2)."""
        inside = 1 - self._c * np.sinh(np.clip(h, -self.epsilon, self.epsilon) / 2) ** 2
        finite = (np.abs(h) < self.epsilon) & (inside > 0)
        return np.asarray(np.where(finite, -np.log(np.where(finite, inside, 1.0)), np.inf))

    def turned_moment(self, at: Floats, angles: Floats) -> npt.NDArray[np.complex128]:
        """With D(x) = 1 - c sinh(x/2)^2 and M = 1/D: |D(x + i u)| >= D(x) + c cosh(x) sin(u/2)^2."""
        flat = 1 - self._c * np.sinh(at / 2) ** 2
        return np.asarray(np.log(flat) - np.log(1 - self._c * np.sinh((at + 1j * angles) / 2) ** 2))

    def transform_within(self, angles: Floats, reach: int) -> Floats:
        """Phi less what lies beyond: (1 - a)/(1 + a) times 2 Re w^(reach + 1)/(1 - w), w = a e^(iu)."""
        a = math.exp(-self.epsilon)
        beyond = 2 * (np.exp((reach + 1) * (-self.epsilon + 1j * angles)) / (1 - a * np.exp(1j * angles))).real
        return np.asarray(np.exp(-self.fall(angles)) + math.expm1(-self.epsilon) / (1 + a) * beyond)

    @property
    def largest_tilt(self) -> float:
        """M is finite below this."""
        return self.epsilon


@dataclass(frozen=True)
class FreeGaussian:
    """Gaussian noise of a free cell; M(h) is at most that of the continuous one (Micciancio and Peikert 2012)."""

    sigma: float

    @cached_property
    def variance(self) -> float:
        """Its variance."""
        return GaussianCells(self.sigma).variance(0)

    def in_region(self, size: int) -> float:
        """The variance of a cell of a region."""
        return GaussianCells(self.sigma).variance(size)

    def fall(self, angles: Floats) -> Floats:
        """-ln phi."""
        turned = np.abs((angles + math.pi) % (2 * math.pi) - math.pi)
        if self.sigma > 6:  # other turns add less than e^-170
            return np.asarray(self.sigma**2 * turned**2 / 2)
        values = gaussian_characteristic(turned.ravel(), self.sigma).reshape(turned.shape)
        return np.asarray(-np.log(np.maximum(values, 1e-300)))

    def least_fall(self, sines: Floats) -> Floats:
        """K s."""
        return np.asarray(2 * self.variance * sines)

    def farthest(self, fall: float) -> float:
        """Where k s is as large as this."""
        return 1.0 if fall >= 2 * self.variance else fall / (2 * self.variance)

    def span(self, cells: int) -> float:
        """How far a sum reaches."""
        return math.sqrt(2 * NEGLIGIBLE * cells) * self.sigma + 1

    def log_moment(self, h: Floats) -> Floats:
        """An upper bound on ln M(h)."""
        return np.asarray((h * self.sigma) ** 2 / 2)

    def turned_moment(self, at: Floats, angles: Floats) -> npt.NDArray[np.complex128]:
        """Not needed: the bound of a Gaussian holds for regions too."""
        raise AssertionError("moments of regions follow from their squares")

    def transform_within(self, angles: Floats, reach: int) -> Floats:
        """The sum over the noise itself."""
        ks = np.arange(1, min(reach, math.ceil(9 * self.sigma) + 3) + 1)
        everything = np.arange(1, math.ceil(9 * self.sigma) + 4)
        whole = 1 + 2 * float(np.exp(-(everything**2) / (2 * self.sigma**2)).sum())
        inside = np.exp(-(ks**2) / (2 * self.sigma**2))
        cosines = np.concatenate([np.cos(part[:, None] * ks) @ inside for part in np.array_split(angles, 64)])
        return np.asarray((1 + 2 * cosines) / whole)

    @property
    def largest_tilt(self) -> float:
        """M is finite everywhere."""
        return math.inf


def turn_of(cell: FreeCell, cells: int, idle: int) -> tuple[Floats, float]:
    """The u that matter for a region of so many cells, ``idle`` of them of weight 0, and how many a whole turn has."""
    points = 2 ** math.ceil(math.log2(2 * cell.span(cells) + 8))
    end = 2 * math.asin(math.sqrt(cell.farthest((NEGLIGIBLE + math.log(points)) / idle)))
    most = min(points // 2, math.ceil(end * points / (2 * math.pi)) + 1)
    steps = np.arange(-most, most + (0 if 2 * most == points else 1))
    return steps * (2 * math.pi / points), float(points)

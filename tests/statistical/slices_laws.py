"""The law of entries whose focused totals have weights, from its definition: Fourier sums over a grid of totals.

Totals that determine all others are the axes of a grid, on which the law without a focus is a convolution over entries.
It is multiplied by the weights of all focused totals, and by 0 where a kept one is not 0. So nothing here knows of
slices or corners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from laws import boxed
from scipy import fft

from keepsum.sampling.l1.splitting.slices import FocusedFamily

LawOfSums: TypeAlias = tuple[list[tuple[int, ...]], np.ndarray]


def axes_of(*lengths: int) -> list[np.ndarray]:
    """The category of each cell on each axis."""
    return list(np.indices(lengths).reshape(len(lengths), -1))


@dataclass(frozen=True, eq=False)
class Focused:
    """Entries in families of totals, kept or focused.

    Attributes
    ----------
    families
        By name: the class of each entry, and the weight of a total of that family, None for a kept one.
    epsilon
        That of cells.
    sizes
        The number of cells of each entry.
    points
        The length of the grid, the same in each direction.
    """

    families: Mapping[str, tuple[np.ndarray, str | None]]
    epsilon: str
    sizes: np.ndarray
    points: int = 16

    @classmethod
    def of(cls, families: Mapping[str, tuple[np.ndarray, str | None]], epsilon: str, points: int = 16) -> Focused:
        """Entries of one cell each."""
        width = len(next(iter(families.values()))[0])
        return cls(families, epsilon, np.ones(width, dtype=np.int64), points)

    @property
    def kept(self) -> list[np.ndarray]:
        """The classes of kept families."""
        return [classes for classes, weight in self.families.values() if weight is None]

    @property
    def focused(self) -> list[FocusedFamily]:
        """The focused families."""
        return [
            FocusedFamily(classes, (Fraction(weight),) * (int(classes.max()) + 1))
            for classes, weight in self.families.values()
            if weight is not None
        ]

    @property
    def totals(self) -> tuple[np.ndarray, list[Fraction | None]]:
        """All totals over the entries, and their weights."""
        rows, weights = [], []
        for classes, weight in self.families.values():
            for k in range(int(classes.max()) + 1):
                rows.append(classes == k)
                weights.append(None if weight is None else Fraction(weight))
        return np.array(rows).astype(np.int64), weights

    @cached_property
    def basis(self) -> tuple[np.ndarray, np.ndarray]:
        """Totals that determine all others, and how: whole numbers, as families nest or share only their sum."""
        rows, _ = self.totals
        chosen: list[np.ndarray] = []
        for row in rows:
            if np.linalg.matrix_rank(np.array([*chosen, row])) > len(chosen):
                chosen.append(row)
        basis = np.array(chosen)
        others = np.rint(np.linalg.lstsq(basis.T.astype(float), rows.T.astype(float), rcond=None)[0]).astype(np.int64)
        assert (basis.T @ others == rows.T).all(), "a total is not a whole combination of those before it"
        return basis, others

    def _cells(self, count: int, angle: np.ndarray) -> np.ndarray:
        """The transform of the law of a sum of so many cells."""
        a = np.exp(-float(Fraction(self.epsilon)))
        return (np.sinh(-np.log(a)) / (np.cosh(np.log(a)) - np.cos(angle))) ** count

    def chances(
        self, entry: int, forms: Sequence[np.ndarray], reach: int = 3
    ) -> tuple[list[tuple[int, ...]], np.ndarray]:
        """The joint law of an entry and of sums that the totals determine, as far as the reach."""
        basis, others = self.basis
        angles = 2 * np.pi / self.points * np.arange(self.points)
        grid = np.meshgrid(*[angles] * len(basis), indexing="ij", sparse=True)
        product = np.ones((self.points,) * len(basis))
        for j, size in enumerate(self.sizes.tolist()):
            if j != entry:
                product = product * self._cells(size, sum((grid[k] for k in np.flatnonzero(basis[:, j])), np.zeros(1)))
        rest = fft.fftn(product).real / self.points ** len(basis)
        place = fft.fftfreq(self.points, 1 / self.points).astype(np.int64)
        values = np.meshgrid(*[place] * len(basis), indexing="ij", sparse=True)
        weight = np.zeros((self.points,) * len(basis))
        for total, own in zip(others.T, self.totals[1], strict=True):
            here = sum((int(n) * values[k] for k, n in enumerate(total) if n), np.zeros(1, dtype=np.int64))
            weight = weight + (np.where(here == 0, 0.0, -np.inf) if own is None else -float(own) * np.abs(here))
        weight = np.exp(weight)
        of_forms = np.linalg.lstsq(basis.T.astype(float), np.array(forms).T.astype(float), rcond=None)[0]
        of_forms = np.rint(of_forms).astype(np.int64).T
        assert (of_forms @ basis == np.array(forms)).all(), "a sum is not one of the totals"
        seen = [sum((int(n) * values[k] for k, n in enumerate(form) if n), np.zeros(1)) for form in of_forms]
        seen = [np.broadcast_to(each, weight.shape) for each in seen]
        own = self._own(int(self.sizes[entry]))
        law: dict[tuple[int, ...], float] = {}
        whole, far = 0.0, self.points // 2 - 1
        for value in range(-far, far + 1):
            shifted = np.roll(rest, basis[:, entry] * value, range(len(basis))) * weight * own[abs(value)]
            whole += float(shifted.sum())
            if abs(value) <= reach:
                near = shifted > 1e-14
                key = np.stack([each[near] for each in seen], axis=1).astype(np.int64)
                inside = (np.abs(key) <= reach).all(axis=1)
                for point, chance in zip(map(tuple, key[inside].tolist()), shifted[near][inside].tolist(), strict=True):
                    law[(value, *point)] = law.get((value, *point), 0.0) + chance
        return list(law), np.array(list(law.values())) / whole

    def _own(self, size: int) -> np.ndarray:
        """The law of a sum of so many cells, for sums 0, 1, ..."""
        angles = 2 * np.pi / 512 * np.arange(512)
        return fft.fft(self._cells(size, angles)).real / 512

    def enumerated(self, reach: int) -> tuple[np.ndarray, np.ndarray]:
        """All points in a box and their weights, for entries of one cell."""
        points = boxed(reach, len(self.sizes))
        rows, weights = self.totals
        logs = -float(Fraction(self.epsilon)) * np.abs(points).sum(axis=1)
        for row, weight in zip(rows, weights, strict=True):
            sums = points @ row
            logs = logs + (np.where(sums == 0, 0.0, -np.inf) if weight is None else -float(weight) * np.abs(sums))
        return points, np.exp(logs)


A222, A322, A332, A2222 = axes_of(2, 2, 2), axes_of(3, 2, 2), axes_of(3, 3, 2), axes_of(2, 2, 2, 2)
COUNTY, *REST = axes_of(4, 2, 2)  # four counties in two states
WHOLE, PRESENT = np.zeros(8, dtype=np.int64), np.array([0, 1, 2, 4, 5, 6, 7])


def crossed(axes: Sequence[np.ndarray], weights: Sequence[str | None], **more: tuple[np.ndarray, str | None]):
    """Families of axes that are named by letters, and more."""
    return dict(zip("abcd", zip(axes, weights, strict=True), strict=False)) | more


def pairs(axes: Sequence[np.ndarray], *names: str) -> dict[str, np.ndarray]:
    """Margins of two axes of two categories."""
    return {name: 2 * axes["abcd".index(name[0])] + axes["abcd".index(name[1])] for name in names}


def states(weight: str | None, county: str) -> dict[str, tuple[np.ndarray, str | None]]:
    """Totals of states and counties, and of two axes that cross them."""
    return {"state": (COUNTY // 2, weight), "county": (COUNTY, county), "b": (REST[0], "1/2"), "c": (REST[1], "1")}


SYSTEMS = {
    "2 x 2 x 2": Focused.of(crossed(A222, ["1/2", "1/3", "1"]), "1", 20),
    "2 x 2 x 2 and their sum": Focused.of(crossed(A222, ["1/2", "2/3", "1/2"], whole=(WHOLE, "1/2")), "1", 20),
    "2 x 2 x 2, sum kept": Focused.of(crossed(A222, ["1/2", "1/3", "1"], whole=(WHOLE, None)), "1", 20),
    "3 x 2 x 2": Focused.of(crossed(A322, ["1/2", "1/3", "1"]), "2", 12),
    "3 x 2 x 2, one kept": Focused.of(crossed(A322, ["1/2", None, "1"]), "3/2"),
    "3 x 2 x 2, two kept": Focused.of(crossed(A322, ["1/3", None, None]), "1", 20),
    "3 x 3 x 2": Focused.of(crossed(A332, ["1", "1/2", "1"]), "3", 8),
    "four axes": Focused.of(crossed(A2222, ["1", "1/2", "2", "1"]), "3/2", 14),
    "four axes, two kept": Focused.of(crossed(A2222, ["1", None, "1/2", None]), "3/2"),
    "regions": Focused(crossed(A222, ["1/2", "1", "1/2"]), "3/2", np.array([1, 2, 1, 1, 3, 1, 1, 2]), 20),
    "structural zeros": Focused.of(crossed([axis[PRESENT] for axis in A222], ["1/2", "1", "1/2"]), "1", 20),
    "states and counties": Focused.of(states("1/2", "1"), "2", 10),
    "kept states, counties": Focused.of(states(None, "1/2"), "3/2", 12),
    "AB, BC and CD": Focused.of({name: (axes, "1") for name, axes in pairs(A2222, "ab", "bc", "cd").items()}, "3", 6),
    "BC focused, AB and CD kept": Focused.of(
        {name: (axes, "1" if name == "bc" else None) for name, axes in pairs(A2222, "ab", "bc", "cd").items()}, "2", 6
    ),
    "AB, BC and CA": Focused.of({name: (axes, "1") for name, axes in pairs(A222, "ab", "bc", "ca").items()}, "3", 6),
}

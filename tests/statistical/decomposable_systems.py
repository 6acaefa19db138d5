"""Small tables under decomposable sets of kept margins, one for each way in which they differ.

Axes are letters with a length, a margin the letters of its axes. An axis may be coarser than another, as a state is
than its counties: its categories are then given for those of the finer one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from decomposable_laws import Law, unit


@dataclass(frozen=True)
class System:
    """A table of entries with its kept margins.

    Attributes
    ----------
    lengths
        The length of each axis.
    margins
        Those that are kept, as letters.
    coarser
        For a letter that is no axis of its own the finer axis and the category for each of its categories.
    sizes
        The number of cells of each entry; 1 unless given, 0 for a structural zero.
    rewritten
        The totals in other words, a function of their matrix.
    shuffled
        Whether cells come in another order.
    """

    lengths: Mapping[str, int]
    margins: str
    epsilon: str
    sizes: Sequence[int] | None = None
    coarser: Mapping[str, tuple[str, Sequence[int]]] = field(default_factory=dict)
    rewritten: Callable[[np.ndarray], np.ndarray] = lambda totals: totals
    shuffled: bool = False

    @property
    def entries(self) -> int:
        """How many there are, structural zeros included."""
        return int(np.prod([*self.lengths.values()]))

    @property
    def cells(self) -> np.ndarray:
        """The number of cells of each entry."""
        return np.ones(self.entries, dtype=int) if self.sizes is None else np.asarray(self.sizes)

    @property
    def categories(self) -> dict[str, np.ndarray]:
        """The category of each entry on each axis."""
        places = np.unravel_index(np.arange(self.entries), [*self.lengths.values()])
        fine = dict(zip(self.lengths, places, strict=True))
        return fine | {letter: np.asarray(map_)[fine[axis]] for letter, (axis, map_) in self.coarser.items()}

    @property
    def families(self) -> list[np.ndarray]:
        """For each margin the number of each entry's total."""
        made = []
        for margin in self.margins.split():
            labels = np.stack([self.categories[letter] for letter in margin])
            made.append(np.unique(labels, axis=1, return_inverse=True)[1].reshape(-1))
        return made

    @property
    def totals(self) -> np.ndarray:
        """The kept totals over the entries."""
        kept = [(family == k).astype(int) for family in self.families for k in range(family.max() + 1)]
        return self.rewritten(np.array(kept))

    @property
    def cell_order(self) -> np.ndarray:
        """Place k of a row of cells has cell ``cell_order[k]`` of those in the order of the entries."""
        cells = np.arange(self.cells.sum())
        return np.random.default_rng(1).permutation(cells) if self.shuffled else cells

    @property
    def matrix(self) -> np.ndarray:
        """The totals over the cells, structural zeros left out."""
        matrix = np.repeat(self.totals, self.cells, axis=1)[:, self.cell_order]
        return matrix[matrix.any(axis=1)]

    def in_order(self, noise: np.ndarray) -> np.ndarray:
        """Noise for the cells of ``matrix`` in the order of the entries."""
        ordered = np.empty_like(noise)
        ordered[:, self.cell_order] = noise
        return ordered

    @property
    def law(self) -> Law:
        """The noise distribution."""
        totals = tuple(tuple(row) for row in self.totals.tolist())
        return Law(totals, tuple(self.cells.tolist()), Fraction(self.epsilon))

    def sum_of(self, **categories: int) -> tuple[int, ...]:
        """The sum of all entries with these categories."""
        inside = np.logical_and.reduce([self.categories[letter] == k for letter, k in categories.items()])
        return tuple((inside & (self.cells > 0)).astype(int).tolist())

    @property
    def statistics(self) -> list[list[tuple[int, ...]]]:
        """Sums of entries whose joint probabilities are compared: entries that differ on every axis, and sums."""
        present = np.flatnonzero(self.cells)
        places = np.stack([self.categories[letter] for letter in self.lengths])
        differing = (places[:, present] != places[:, present[:1]]).sum(axis=0)
        first, other = int(present[0]), int(present[np.argmax(differing)])
        letters = [*self.lengths]
        half = self.categories[letters[-1]] == self.categories[letters[-1]][first]
        part = half & (self.categories[letters[0]] < max(1, self.lengths[letters[0]] // 2))
        sums = tuple((part & (self.cells > 0)).astype(int).tolist())
        alone = unit(first, self.entries)
        return [[alone, unit(other, self.entries)], [unit(other, self.entries), sums]]


def zeros(lengths: Mapping[str, int], *missing: str) -> list[int]:
    """Single cells but for structural zeros, each written as its categories."""
    sizes = np.ones([*lengths.values()], dtype=int)
    for place in missing:
        sizes[tuple(map(int, place))] = 0
    return sizes.reshape(-1).tolist()


def counted(lengths: Mapping[str, int], most: int) -> list[int]:
    """Sizes 1, 2, ..., most, 1, 2, ... in a pattern that no axis shares."""
    return (1 + np.arange(int(np.prod([*lengths.values()]))) * 5 % 7 % most).tolist()


def scaled(totals: np.ndarray) -> np.ndarray:
    """Each total times a number of its own, some negative."""
    return totals * np.array([1, 2, -1, 3, -4])[np.arange(len(totals)) % 5, None]


def mixed(totals: np.ndarray) -> np.ndarray:
    """In another order, some twice, and with the grand total."""
    order = np.random.default_rng(2).permutation(len(totals))
    return np.vstack([totals[order], totals[:2], totals.any(axis=0).astype(int)[None, :]])


def without_last(totals: np.ndarray) -> np.ndarray:
    """Without the last total of the last margin, which the others imply."""
    return totals[:-1]


ABC, ABCD = {"A": 3, "B": 2, "C": 2}, {"A": 2, "B": 2, "C": 2, "D": 2}
CUBE = {"A": 3, "B": 3, "C": 3}
ABCDE = ABCD | {"E": 2}
STATES = {"C": 4, "X": 2, "A": 2}  # counties, sex, age
IN_STATE = {"S": ("C", [0, 0, 1, 1])}

SYSTEMS = {
    # One-way margins.
    "one-way 3 x 2": System({"A": 3, "B": 2}, "A B", "3/10"),
    "one-way 2 x 2 x 2": System({"A": 2, "B": 2, "C": 2}, "A B C", "1/2"),
    "one-way 3 x 2 x 2": System(ABC, "A B C", "1"),
    "one-way 4 x 3 x 2": System({"A": 4, "B": 3, "C": 2}, "A B C", "3/2"),
    "one-way 2 x 2 x 2 x 2": System(ABCD, "A B C D", "1"),
    "one-way 3 x 2 x 2 x 2": System({"A": 3} | dict.fromkeys("BCD", 2), "A B C D", "3/2"),
    "one-way 2 x 2 x 2 x 2 x 2": System(ABCDE, "A B C D E", "5/2"),
    "one-way, regions": System(ABC, "A B C", "1", sizes=counted(ABC, 3)),
    "one-way, two of three axes": System({"A": 3, "B": 3, "C": 2}, "A B", "1/2"),
    # Chains.
    "chain of 2": System({"A": 3, "B": 2, "C": 3}, "AB BC", "1/2"),
    "chain of 3": System(ABCD, "AB BC CD", "1"),
    "chain of 3, unequal": System(ABC | {"D": 2}, "AB BC CD", "3/2"),
    "chain of 4": System(ABCDE, "AB BC CD DE", "3", sizes=[3] * 32),
    "chain, large epsilon": System(ABC, "AB BC", "3", sizes=[9] * 12),
    "chain of 3, regions": System(ABCD, "AB BC CD", "1", sizes=counted(ABCD, 3)),
    "chain and an axis alone": System(ABCD, "AB BC D", "1"),
    "chain of wide margins": System(ABCDE, "ABC BCD DE", "3/2"),
    # Stars.
    "star of 3": System(ABCD, "AB AC AD", "1"),
    "star of 2 and an axis alone": System(ABCD, "AB AC D", "1"),
    "star, unequal": System({"A": 2, "B": 3, "C": 2, "D": 2}, "AB AC AD", "1/2"),
    "star of 3 and an axis alone": System(ABCDE, "AB AC AD E", "1"),
    "star, regions": System(ABCD, "AB AC D", "1", sizes=counted(ABCD, 4)),
    "star of wide margins": System(ABCDE, "ABC ABD AE", "3/4"),
    # Nested axes, crossed with others.
    "county, state x sex": System(STATES, "C SX", "1", coarser=IN_STATE),
    "county x sex, state x age": System(STATES, "CX SA", "1/2", coarser=IN_STATE),
    "county, state x sex, age": System(STATES, "C SX A", "1", coarser=IN_STATE),
    "county, state x sex, state x age": System(STATES, "C SX SA", "1/2", coarser=IN_STATE),
    "county, uneven states, sex": System({"C": 5, "X": 2}, "C SX", "1/2", coarser={"S": ("C", [0, 0, 1, 1, 1])}),
    "county, state x sex, division x age": System(
        {"C": 6, "X": 2, "A": 2},
        "C SX RA",
        "1",
        coarser={"S": ("C", [0, 0, 1, 1, 2, 2]), "R": ("C", [0, 0, 0, 0, 1, 1])},
    ),
    "county x sex, state x sex x age": System(STATES, "CX SXA", "1/3", coarser=IN_STATE),
    "nested, regions": System(STATES, "C SX A", "1", coarser=IN_STATE, sizes=counted(STATES, 3)),
    # Structural zeros.
    "one-way, a zero": System(ABC, "A B C", "1", sizes=zeros(ABC, "000")),
    "one-way, a diagonal of zeros": System(CUBE, "A B C", "2", sizes=zeros(CUBE, "000", "111", "222")),
    "one-way, half of a slice": System(ABC, "A B C", "1/2", sizes=zeros(ABC, "000", "001")),
    "chain with zeros": System(ABCD, "AB BC CD", "1", sizes=zeros(ABCD, "0000", "1011")),
    "star with zeros": System(ABCD, "AB AC D", "1", sizes=zeros(ABCD, "0110", "1000")),
    "nested with zeros": System(STATES, "C SX A", "1", coarser=IN_STATE, sizes=zeros(STATES, "000", "311")),
    "zeros and a pinned entry": System(ABC, "A B C", "1", sizes=zeros(ABC, "000", "001", "010")),
    # The same totals in other words.
    "redundant": System(ABC, "A B C AA", "1", rewritten=mixed),
    "rescaled": System(ABCD, "AB BC CD", "1", rewritten=scaled),
    "shuffled": System(ABC, "A B C", "1", rewritten=mixed, shuffled=True),
    "rescaled and shuffled, regions": System(
        ABC | {"D": 2}, "AB C", "1", rewritten=lambda t: mixed(scaled(t)), shuffled=True
    ),
    "a margin of margins": System(ABCD, "AB AC D A B", "1"),
    "a total left out": System(ABCD, "AB AC D", "1", rewritten=without_last),
}


def at(name: str, epsilon: str) -> System:
    """The system at another epsilon."""
    return replace(SYSTEMS[name], epsilon=epsilon)

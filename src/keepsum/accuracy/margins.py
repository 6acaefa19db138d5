"""Margins of error of the cells of a plan, before any budget is spent: of each cell, or of all of them at once."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum._progress import doing
from keepsum._text import percent
from keepsum.accuracy.block_laws import NO_SAMPLER, CellClass, class_bound, class_law, classes_of, free_cell
from keepsum.accuracy.cell_noise import CellLaw, cell_law, check_range, margin, turn_of
from keepsum.accuracy.queries import Piece
from keepsum.accuracy.query_laws import LEVEL_TOO_HIGH, SPARE, BoundLaw, EstimatedLaw, check_level, piece_law
from keepsum.accuracy.simulation import (
    STANDARD_ERRORS,
    Basis,
    needed_draws,
    simulated,
    smallest_margin,
    standard_error,
    words_of_basis,
)
from keepsum.errors import InputError, NoSamplerError
from keepsum.lattice.structure import FORCED, Structure
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice
from keepsum.sampling.core.rng import rng
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Origin
from keepsum.tables.released import frame_with

# Margins of error of noise of a user's own: from draws of their sampler, and from nothing else that is known of it.
#
# Each cell, or sum of cells, has its own draws: nothing says that two of them have the same law. How many draws there
# are follows from the level and the size of the table, and what they are uncertain by follows from these.


MOST_DRAWS, ENOUGH_NUMBERS = 1000, 2**22  # of simulated noise, if no more are needed: how fast it is drawn is not known
ROUNDING = 0.01  # relative: an error is stated with three digits

_drawn: WeakKeyDictionary[BlockSamplers, IntArray] = WeakKeyDictionary()


def own_margins(
    blocks: BlockSamplers, sums: IntArray, count: int, level: float, simultaneous: bool, what: str
) -> Accuracy:
    """The margin of each of ``count`` sums, ``sums`` saying in which each cell is."""
    noise = _simulated(blocks, max(needed_draws(level), min(MOST_DRAWS, ENOUGH_NUMBERS // blocks.size)))
    beyond, error = allowed_beyond(level, len(noise))
    inside = np.flatnonzero(sums >= 0)
    sizes = np.zeros((len(noise), count), dtype=np.int64)
    np.add.at(sizes.T, sums[inside], noise.T[inside])
    np.abs(sizes, out=sizes)
    if simultaneous:
        sizes = np.where(sizes.any(axis=0), sizes.max(axis=1)[:, None], 0)
    margins: IntArray = np.partition(sizes, len(sizes) - 1 - beyond, axis=0)[len(sizes) - 1 - beyond]
    margins.setflags(write=False)
    return Accuracy(level, margins, "estimated", len(noise), error, simultaneous, what=what)


def allowed_beyond(level: float, draws: int) -> tuple[int, float]:
    """How many draws may be beyond a margin, and the standard error of their share, three of which are allowed for.

    >>> beyond, error = allowed_beyond(0.95, 4000)
    >>> beyond, round(error, 5)
    (158, 0.00345)
    """
    allowed = 1 - level
    least = math.sqrt(allowed * level / draws)

    def error(beyond: int) -> float:
        return max(least, math.sqrt(beyond * (draws - beyond) / (draws - 1)) / draws)

    most = next(
        (k for k in range(int(allowed * draws), -1, -1) if k / draws + STANDARD_ERRORS * error(k) <= allowed), 0
    )
    return most, error(most)


def follows_draws(level: float, draws: int, error: float) -> bool:
    """Whether so many draws have that error, and are enough."""
    if draws < needed_draws(level):
        return False
    return abs(error - allowed_beyond(level, draws)[1]) <= ROUNDING * error


def _simulated(blocks: BlockSamplers, draws: int) -> IntArray:
    """Draws from a seed of their own, made once."""
    blocks.check()
    noise = _drawn.get(blocks)
    if noise is None or len(noise) != draws:
        doing("simulating noise for margins of error")
        noise = blocks.sample(draws, rng(seed="keepsum accuracy"))
        if not noise.any():
            raise InputError(f"The sampler must draw noise, and {draws:,} draws of it had none.")
        _drawn[blocks] = noise
    return noise


# Margins that hold for all cells at once.
#
# Where sums are forced they are computed. Write T(u) = E[cos(u z)] over the noise of a free cell that is at most r in
# size. Given that the noise of n cells adds up to 0, the probability that all of them are within r is the mean over u
# of T(u)^n over that of phi(u)^n (``query_laws.py``); regions are independent. In blocks the largest noise of each
# simulated draw is taken. Where neither is possible each cell gets its share of what may go wrong (Bonferroni).


@dataclass(frozen=True, eq=False)
class Computed:
    """Cells whose joint law is known: how many are free, and how many regions there are of each size."""

    cell: CellLaw
    free: int
    regions: dict[int, int]

    def within(self, reach: int) -> float:
        """The probability that the noise of all of them is at most so large."""
        log = self.free * math.log(float(self.cell.transform_within(np.zeros(1), reach)[0])) if self.free else 0.0
        for size, times in self.regions.items():
            angles, _, zero = self._turns[size]
            inside = float((self.cell.transform_within(angles, reach) ** size).sum()) / zero
            if inside <= 0:
                return 0.0
            log += times * math.log(inside)
        return math.exp(min(0.0, log))

    @cached_property
    def _turns(self) -> dict[int, tuple[Floats, float, float]]:
        turns = {}
        for size in self.regions:
            angles, points = turn_of(self.cell, size, size)
            turns[size] = angles, points, float(np.exp(-size * self.cell.fall(angles)).sum())
        return turns


@dataclass(frozen=True, eq=False)
class Simulated:
    """The largest noise of all cells of a sampler, in each draw."""

    largest: IntArray
    chain: bool

    def beyond(self, reach: int) -> tuple[float, float]:
        """The share of draws beyond, and its standard error."""
        over = (self.largest > reach).astype(np.float64)
        return float(over.mean()), standard_error(over, self.chain)


def _simultaneous(blocks: BlockSamplers, level: float, patient: bool) -> Accuracy:
    """The margins of all cells at once."""
    computed, cells = _computed(blocks)
    drawn = _blocks(blocks, level, patient)
    margins = np.zeros(blocks.size, dtype=np.int64)
    if (computed is None and len(cells)) or drawn is None:
        _divide(blocks, level, cells, margins)
        found = Accuracy(level, margins, "conservative", simultaneous=True)
    elif computed is None and not drawn:  # nothing has noise
        found = Accuracy(level, margins, simultaneous=True)
    else:
        reach, error = _smallest(computed, list(drawn.values()), 1 - level)
        margins[cells] = reach
        for choice in blocks.choices:
            if id(choice.sampler) in drawn:
                margins[choice.cells] = reach
        draws = min((len(part.largest) for part in drawn.values()), default=0)
        found = Accuracy(level, margins, "estimated" if drawn else "exact", draws, error, simultaneous=True)
    margins.setflags(write=False)
    return found


def _divide(blocks: BlockSamplers, level: float, cells: IntArray, margins: IntArray) -> None:
    """Margins by Bonferroni: of ``cells``, whose laws are known, and of those in blocks, by their bounds."""
    classes, structure = list(classes_of(blocks)), blocks.noise_structure
    each = (1 - level) / (len(cells) + sum(len(part.cells) for part in classes))
    for part in classes:
        computed = part.law if each > 4 * SPARE else None  # a bound where a computed law is not precise enough
        margins[part.cells] = (
            class_bound(blocks, part).reach_but_for(each) if computed is None else computed.reach(1 - each)
        )
    for size, alike in _by_size(structure, cells):
        margins[alike] = _each_margin(blocks, size, each)


def _by_size(structure: Structure, cells: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Cells under no total, as of size 0, and those of regions with forced sums: of each size of the region."""
    region = structure.region[cells]
    size = np.where(structure.part[region] == FORCED, structure.sizes[region], 0)
    for value in np.unique(size).tolist():
        yield value, cells[size == value]


def _each_margin(blocks: BlockSamplers, size: int, allowed: float) -> int:
    """The margin of a cell of a region; by a bound where a computed law is not precise enough."""
    law = free_cell(blocks.mechanism)
    if law is None or size == 1:
        return 0
    wide = law.wide_sd(size)
    if wide is not None:
        return math.ceil(-wide * NormalDist().inv_cdf(allowed / 2)) + 1
    if allowed > 4 * SPARE:
        return margin(law, size, 1 - allowed)
    return BoundLaw(1, [(piece_law(Piece(size, ((1, 1),)), law), 1)], law.variance_in(size)).reach_but_for(allowed)


def _computed(blocks: BlockSamplers) -> tuple[Computed | None, IntArray]:
    """The cells under no total or in regions with forced sums; None for their law if it is too wide or shared."""
    law = free_cell(blocks.mechanism)
    groups = zip(blocks.groups, blocks.choices, strict=True)
    parts = [choice.cells for group, choice in groups if group.in_closed_form]
    if law is None or not parts:
        return None, np.zeros(0, dtype=np.int64)
    cells = np.concatenate(parts)
    if law.wide_sd(0) is not None:
        return None, cells
    structure = blocks.noise_structure
    region = np.unique(structure.region[cells])
    forced = structure.part[region] == FORCED
    sizes, times = np.unique(structure.sizes[region[forced]], return_counts=True)
    regions = {n: k for n, k in zip(sizes.tolist(), times.tolist(), strict=True) if n > 1}
    free = int(structure.sizes[region[~forced]].sum())
    return Computed(law, free, regions), cells


def _blocks(blocks: BlockSamplers, level: float, patient: bool) -> dict[int, Simulated] | None:
    """The largest noise of each sampler of blocks; None if one of them would take long."""
    drawn: dict[int, Simulated] = {}
    for part in classes_of(blocks):
        key = id(part.choice.sampler)
        if key in drawn:
            continue
        largest = _largest(blocks, part.choice, level, patient)
        if largest is None:
            return None
        drawn[key] = Simulated(largest, part.choice.chain is not None)
    return drawn


def _largest(blocks: BlockSamplers, choice: Choice, level: float, patient: bool) -> IntArray | None:
    if choice.sampler is None:
        raise NoSamplerError(NO_SAMPLER)
    # A few more than are needed leave room for the probability that is computed.
    needed = math.ceil(1.02 * needed_draws(level))
    noise = simulated(blocks, choice, needed, patient or free_cell(blocks.mechanism) is None)
    return None if noise is None else np.asarray(np.abs(noise).max(axis=1))


def _smallest(computed: Computed | None, drawn: list[Simulated], allowed: float) -> tuple[int, float]:
    """The smallest margin that all cells stay within, but for what is allowed, and the error of that probability."""
    if allowed <= 2 * SPARE:
        raise InputError(LEVEL_TOO_HIGH)
    draws = min((len(part.largest) for part in drawn), default=0)
    least = math.sqrt(allowed * (1 - allowed) / draws) if draws else 0.0

    def probability_beyond(reach: int) -> tuple[float, float]:
        inside = 1.0 if computed is None else computed.within(reach)
        errors = [least**2]
        for part in drawn:
            share, error = part.beyond(reach)
            inside *= 1 - share
            errors.append(error**2)
        return 1 - inside, math.sqrt(max(errors[0], sum(errors[1:])))

    def holds(reach: int) -> bool:
        probability, error = probability_beyond(reach)
        return probability + STANDARD_ERRORS * error <= allowed - (0 if drawn else SPARE)

    smallest = smallest_margin(holds)
    return smallest, probability_beyond(smallest)[1] if drawn else 0.0


WEAKEST: tuple[Basis, ...] = ("exact", "conservative", "estimated")


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy:
    """The margins of error of released counts, or of sums of them.

    Attributes
    ----------
    level
        The probability that the noise stays within the margin, at least: for each count, or for all at once if
        ``simultaneous``.
    margins
        The margin of error of each count; 0 for a pinned cell.
    basis
        How the margins are known: ``"exact"`` if all were computed; ``"conservative"`` if some are proved bounds, too
        long rather than too short; ``"estimated"`` if some come from simulated draws.
    draws
        The number of simulated draws behind the margins, the smallest for any count; 0 if none.
    error
        The standard error of the probability to be beyond a margin, where it was simulated, the largest for any count.
        Margins allow for three of them.
    simultaneous
        Whether all counts are within their margins at once, with this probability.
    levels
        Under a focus, the margins of error of the totals of each.

    Examples
    --------
    >>> import keepsum as ks
    >>> plan = ks.plan(keep=ks.Invariants.subsets(5, [[0, 1, 2]]), mechanism=ks.Laplace.per_unit(epsilon=0.25))
    >>> plan.accuracy()
    Accuracy(typical 95% margin of error ±8 per cell (±8 to ±12))
    >>> plan.accuracy(level=0.5).margins.tolist()
    [2, 2, 2, 3, 3]
    >>> plan.accuracy(simultaneous=True)
    Accuracy(95% margin of error ±15 for all 5 cells at once)
    """

    level: float
    margins: IntArray
    basis: Basis = "exact"
    draws: int = 0
    error: float = 0.0
    simultaneous: bool = False
    levels: tuple[LevelMargins, ...] = ()
    what: str = field(default="cell", repr=False)
    domain: Domain | None = field(default=None, repr=False)
    origin: Origin | None = field(default=None, repr=False)
    weight: IntArray | None = field(default=None, repr=False)  # how many cells each margin is of, if not one

    @property
    def typical(self) -> int:
        """The median margin."""
        if self.weight is None:
            return int(np.sort(self.margins)[len(self.margins) // 2])
        order = np.argsort(self.margins, kind="stable")
        before = np.cumsum(self.weight[order])
        return int(self.margins[order[np.searchsorted(before, before[-1] // 2, side="right")]])

    @property
    def source(self) -> str:
        """How the margins are known, in words; empty if they were computed."""
        return words_of_basis(self.basis, self.draws, self.error)

    def to_frame(self, backend: str | None = None) -> Any:
        """The margin of every count as a data frame: its labels, and ``margin``; without names, ``cell``.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; needed if the table did not come from a frame.
        """
        domain = Domain({"cell": range(len(self.margins))}) if self.domain is None else self.domain
        return frame_with(domain, {"margin": self.margins}, self.origin, backend)

    def __str__(self) -> str:
        low, high = int(self.margins.min()), int(self.margins.max())
        source = f", {self.source}" if self.source else ""
        rows = "".join(f"; {row}" for row in self.levels)
        if self.simultaneous:
            count = f"all {len(self.margins):,} {self.what}s" if len(self.margins) > 1 else f"the {self.what}"
            return f"{percent(self.level)} margin of error ±{high:,} for {count} at once{source}{rows}"
        spread = "" if low == high else f" (±{low:,} to ±{high:,})"
        typical = f"typical {percent(self.level)} margin of error ±{self.typical:,}"
        return f"{typical} per {self.what}{spread}{source}{rows}"

    def __repr__(self) -> str:
        return f"Accuracy({self})"

    def _repr_html_(self) -> str:
        return f"<p><b>Accuracy</b> {html.escape(str(self))}</p>"


@dataclass(frozen=True, eq=False)
class LevelMargins:
    """The margins of error of the totals of one focus."""

    axes: tuple[str, ...]
    accuracy: Accuracy
    what: str  # one of the totals, in words

    def __str__(self) -> str:
        margins, source = self.accuracy.margins, self.accuracy.source
        low, high = int(margins.min()), int(margins.max())
        spread = "" if low == high else f" (±{low:,} to ±{high:,})"
        size = high if self.accuracy.simultaneous else self.accuracy.typical
        words = f", {source}" if source else ""
        return f"±{size:,} per {self.what}{'' if self.accuracy.simultaneous else spread}{words}"


_found: WeakKeyDictionary[BlockSamplers, dict[tuple[float, bool, bool], Accuracy]] = WeakKeyDictionary()


def accuracy(blocks: BlockSamplers, level: float = 0.95, simultaneous: bool = False, patient: bool = False) -> Accuracy:
    """The margin of error of every cell at a level, worked out once for a plan.

    Where totals overlap it is simulated if that takes little time, or if ``patient``; otherwise it is a proved bound.
    """
    level = check_level(level)
    if blocks.mechanism.kind == "own":
        return own_margins(blocks, np.arange(blocks.size), blocks.size, level, simultaneous, "cell")
    check_range(blocks.mechanism)
    found = _found.setdefault(blocks, {})
    key = (level, simultaneous, patient)
    if key not in found:
        found[key] = _simultaneous(blocks, level, patient) if simultaneous else _each(blocks, level, patient)
    return found[key]


def _each(blocks: BlockSamplers, level: float, patient: bool) -> Accuracy:
    margins = np.zeros(blocks.size, dtype=np.int64)
    law = cell_law(blocks.mechanism)
    if law is not None:
        for group, choice in zip(blocks.groups, blocks.choices, strict=True):
            if group.in_closed_form:
                for size, alike in _by_size(blocks.noise_structure, choice.cells):
                    margins[alike] = margin(law, size, level)
    result = Accuracy(level, margins, weight=blocks.noise_structure.weight)
    for cells in classes_of(blocks):
        result = _with_class(result, blocks, cells, patient)
    margins.setflags(write=False)
    return result


def _with_class(result: Accuracy, blocks: BlockSamplers, cells: CellClass, patient: bool) -> Accuracy:
    """The margins with those of a class of cells in blocks."""
    law = class_law(blocks, cells, result.level, patient)
    if not isinstance(law, EstimatedLaw):
        result.margins[cells.cells] = law.reach(result.level)
        return replace(result, basis=max(result.basis, law.basis, key=WEAKEST.index))
    result.margins[cells.cells], error = law.estimated(result.level)
    if not error:  # of the bound: these draws are too few
        return replace(result, basis=max(result.basis, "conservative", key=WEAKEST.index))
    draws = min(result.draws or law.draws, law.draws)
    return replace(result, basis="estimated", draws=draws, error=max(result.error, error))


def before_rounding(blocks: BlockSamplers, found: Accuracy) -> Accuracy | None:
    """Margins as if noise were not whole numbers, to be scaled to other losses; None where they are not simulated.

    They are numbers of the same kind, in thousandths.
    """
    if found.basis != "estimated" or found.simultaneous:
        return None
    margins = 1000 * found.margins
    for cells in classes_of(blocks):
        law = class_law(blocks, cells, found.level)
        width = law.before_rounding(found.level) if isinstance(law, EstimatedLaw) else None
        if width is not None:
            margins[cells.cells] = round(1000 * width)
    return replace(found, margins=margins)

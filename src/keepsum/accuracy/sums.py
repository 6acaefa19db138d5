"""The noise of many sums of cells at once, such as all totals of a margin: each law is found once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from typing import TypeAlias

import numpy as np
from scipy import sparse

from keepsum._arrays import BoolArray, Floats, IntArray, tallied
from keepsum.accuracy.block_laws import NO_SAMPLER, AnyPiece, FocusedNoise, FocusedPiece, free_cell, law_of_piece
from keepsum.accuracy.cell_noise import CellLaw
from keepsum.accuracy.margins import WEAKEST, Accuracy, own_margins
from keepsum.accuracy.queries import Piece, canonical_piece
from keepsum.accuracy.query_laws import (
    SPARE,
    BoundLaw,
    DominatedPiece,
    EstimatedLaw,
    ExactLaw,
    PieceLaw,
    check_level,
    sum_law,
)
from keepsum.accuracy.simulation import FEWEST_DRAWS, Basis, needed_draws, simulated
from keepsum.errors import NoSamplerError
from keepsum.lattice.determined import determined
from keepsum.lattice.structure import FOCUSED, FORCED, FREE, Structure
from keepsum.planning.groups import BlockGroup
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice, simulation_nanoseconds

# The pieces of many sums of cells at once, outside of blocks: sums that are made of the same pieces are one kind.


Kind: TypeAlias = frozenset[tuple[AnyPiece, int]]  # pieces, and how many there are of each


@dataclass(frozen=True, eq=False)
class SumPieces:
    """What each of many sums is made of.

    Attributes
    ----------
    kinds
        The kinds of sums.
    of_sum
        The number of each sum's kind.
    focus_known
        Whether the pieces of cells under a focus are among them: none are if the law of one of them is not known.
    """

    kinds: list[Kind]
    of_sum: IntArray
    focus_known: bool = True

    def of(self, number: int) -> Kind:
        """The pieces of a sum."""
        return self.kinds[int(self.of_sum[number])]

    @classmethod
    def none(cls, count: int) -> SumPieces:
        """Sums without any piece."""
        return cls([frozenset()], np.zeros(count, dtype=np.int64))

    @classmethod
    def of_plan(cls, blocks: BlockSamplers, sums: IntArray, count: int) -> SumPieces:
        """The pieces of ``count`` sums of a plan; none in l2 Laplace noise, all of which is simulated."""
        if free_cell(blocks.mechanism) is None:
            return cls.none(count)
        pieces = cls.find(blocks.noise_structure, sums, count)
        if blocks.nested is None:
            return pieces
        if any(choice.sampler is None for choice in blocks.choices):
            raise NoSamplerError(NO_SAMPLER)
        focused = FocusedNoise.of(blocks)
        if focused is None or blocks.nested.tables:
            return replace(pieces, focus_known=False)
        return pieces.with_focused(focused.pieces_of_sums(sums, count))

    @classmethod
    def find(cls, structure: Structure, sums: IntArray, count: int) -> SumPieces:
        """The pieces of ``count`` sums; ``sums`` says in which of them each cell is.

        They are k of the n cells of a region with a forced sum, and cells under no total.
        """
        total, shape, pieces = _shapes(structure, sums)
        # How many pieces of each shape a sum has, sum by sum.
        keys, times = np.unique(total * max(1, len(pieces)) + shape, return_counts=True)
        total, shape = np.divmod(keys, max(1, len(pieces)))
        ends = np.searchsorted(total, np.arange(count + 1))
        entries = np.stack([shape, times], axis=1)
        numbers: dict[bytes, int] = {}
        kinds: list[Kind] = []
        of_sum = np.empty(count, dtype=np.int64)
        for k, (start, end) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
            key = entries[start:end].tobytes()
            if key not in numbers:
                numbers[key] = len(kinds)
                kinds.append(frozenset((pieces[place], n) for place, n in entries[start:end].tolist()))
            of_sum[k] = numbers[key]
        return cls(kinds, of_sum)

    def with_focused(self, focused: Sequence[dict[FocusedPiece, int] | None]) -> SumPieces:
        """With the pieces of each sum among cells under a focus; None where the law of one is not known."""
        numbers: dict[tuple[int, Kind], int] = {}
        kinds: list[Kind] = []
        of_sum = np.empty_like(self.of_sum)
        for k, (number, pieces) in enumerate(zip(self.of_sum.tolist(), focused, strict=True)):
            if pieces is None:
                return replace(self, focus_known=False)
            key = number, frozenset(pieces.items())
            if key not in numbers:
                numbers[key] = len(kinds)
                kinds.append(self.kinds[number] | key[1])
            of_sum[k] = numbers[key]
        return SumPieces(kinds, of_sum)

    def drawn(self, blocks: BlockSamplers) -> list[list[tuple[BlockGroup, Choice]]]:
        """What of the sums is in no piece: the groups of cells that each sampler must draw."""
        computed = free_cell(blocks.mechanism) is not None
        samplers: dict[int, list[tuple[BlockGroup, Choice]]] = {}
        for group, choice in zip(blocks.groups, blocks.choices, strict=True):
            known = group.in_closed_form or (group.form.kind == "nested" and self.focus_known)
            if not computed or not known:
                samplers.setdefault(id(choice.sampler), []).append((group, choice))
        return list(samplers.values())


def _shapes(structure: Structure, sums: IntArray) -> tuple[IntArray, IntArray, list[Piece]]:
    """Every piece of every sum: the sum, and which of the different pieces it is."""
    region = structure.region
    part = structure.part[region]
    free = np.flatnonzero(part == FREE)
    forced = np.flatnonzero((part == FORCED) & (structure.sizes[region] > 1))
    weight = None if structure.weight is None else structure.weight[forced]
    keys, taken = tallied(sums[forced] * len(structure.sizes) + region[forced], weight)
    total, number = np.divmod(keys, len(structure.sizes))
    size = structure.sizes[number]
    some = taken < size
    # k cells have the law of the n - k others, whose sum is the opposite.
    base = int(structure.sizes.max()) + 1
    pairs = size[some] * base + np.minimum(taken, size - taken)[some]
    different, which = np.unique(pairs, return_inverse=True)
    shapes = [divmod(pair, base) for pair in different.tolist()]
    pieces = [canonical_piece(n, [(1, k), (0, n - k)]) for n, k in shapes]
    free = structure.repeated(free)
    alone = np.full(len(free), len(pieces), dtype=np.int64)
    return (
        np.concatenate([total[some], sums[free]]),
        np.concatenate([which, alone]),
        [*pieces, Piece(0, ((1, 1),))],
    )


# Margins of error of many sums of cells at once, such as all totals of a margin: each law is worked out once.


NUMBERS_AT_ONCE = 2**22
Estimate: TypeAlias = Callable[[EstimatedLaw, float], tuple[int, float]]  # a margin at a level, and its standard error
NOTHING = ExactLaw(1, np.ones(1), 0.0)


def sum_accuracy(
    blocks: BlockSamplers,
    sums: IntArray,
    count: int,
    level: float,
    simultaneous: bool,
    estimate: Estimate = EstimatedLaw.estimated,
) -> Accuracy:
    """The margin of error of each of ``count`` sums; ``sums`` says in which of them each cell is.

    Simultaneous margins are all longer by one factor if they are simulated. If not, they divide what may go wrong among
    the sums (Bonferroni), and so are conservative.
    """
    level = check_level(level)
    if blocks.mechanism.kind == "own":
        return own_margins(blocks, sums, count, level, simultaneous, "total")
    each = _Margins(blocks, sums, count, level, estimate=estimate)
    found = each.found()
    if simultaneous and found.basis == "estimated":
        found = each.joint(found)
    elif simultaneous and count > 1:
        found = each.divided()
    found.margins.setflags(write=False)
    return replace(found, simultaneous=simultaneous)


class _Margins:
    """The margins of some sums at a level; ``divided_by`` so many, if each is to get a part of what may go wrong."""

    def __init__(
        self,
        blocks: BlockSamplers,
        sums: IntArray,
        count: int,
        level: float,
        pieces: SumPieces | None = None,
        divided_by: int = 1,
        estimate: Estimate = EstimatedLaw.estimated,
    ) -> None:
        self.blocks, self.sums, self.count, self.level = blocks, sums, count, level
        self.cell = free_cell(blocks.mechanism)
        self._estimate_of = estimate
        self._allowed = (1 - level) / divided_by
        # Where a computed law is not precise enough for a part of what may go wrong, a bound is.
        self._computes = divided_by == 1 or self._allowed > 4 * SPARE
        self._pieces = SumPieces.of_plan(blocks, sums, count) if pieces is None else pieces
        self._computed: dict[Kind, ExactLaw | BoundLaw] = {}
        self._reached: dict[Kind, int] = {}
        self._bounds: dict[tuple[int, int], int] = {}

    def found(self, may_simulate: bool = True) -> Accuracy:
        """The margins, and how they are known."""
        margins = np.zeros(self.count, dtype=np.int64)
        bases: set[Basis] = {"exact"}
        inside, kinds = self._inside > 0, self._pieces.of_sum
        reaches = np.zeros(len(self._pieces.kinds), dtype=np.int64)
        for number in np.unique(kinds[~inside]).tolist():
            reaches[number], basis = self._reach(self._pieces.kinds[number])
            bases.add(basis)
        margins[~inside] = reaches[kinds[~inside]]
        draws, error = 0, 0.0
        chosen = np.flatnonzero(inside)
        if len(chosen):
            drawn = self._drawn() if may_simulate else None
            if drawn is None:
                margins[chosen] = [self._bounded(k) for k in chosen.tolist()]
                bases.add("conservative")
            else:
                draws = min(len(noise) for _, noise in drawn)
                bases.add("estimated")
                error = self._estimate(drawn, chosen, draws, margins)
        return Accuracy(self.level, margins, max(bases, key=WEAKEST.index), draws, error, what="total")

    def joint(self, each: Accuracy) -> Accuracy:
        """The margins, all longer by the factor that the worst of them needs in enough draws; or by bounds."""
        drawn = None if any(self._pieces.kinds) else self._drawn()
        if drawn is None:
            return self.divided()
        worst, least = np.zeros(each.draws), each.margins.copy()
        for some, values in self._values(drawn, np.flatnonzero(self._inside), each.draws):
            # What hardly ever has noise has a margin of 0, but all such sums together often have some.
            least[some] = np.maximum(each.margins[some], values.any(axis=0))
            np.maximum(worst, (np.abs(values) / np.maximum(least[some], 1)).max(axis=1), out=worst)
        chain = any(choice.chain is not None for choices, _ in drawn for choice in choices)
        # As whole numbers of thousandths, rounded up.
        factor, error = EstimatedLaw(np.ceil(worst * 1000).astype(np.int64)[:, None], chain=chain).estimated(self.level)
        return replace(each, margins=least * factor // 1000, basis="estimated", error=error)

    def divided(self) -> Accuracy:
        """The margins at the level that divides what may go wrong among the sums, none of them simulated."""
        others = _Margins(self.blocks, self.sums, self.count, self.level, self._pieces, self.count)
        found = others.found(may_simulate=False)
        return replace(found, basis="conservative") if found.margins.any() else found

    @cached_property
    def _drawn_cells(self) -> BoolArray:
        """Which cells are in blocks, or under a focus whose sums are simulated."""
        structure = self.blocks.noise_structure
        part = structure.part[structure.region]
        return np.asarray((part >= 0) | ((part == FOCUSED) & (not self._pieces.focus_known)))

    @cached_property
    def _inside(self) -> IntArray:
        """How many cells of each sum are in blocks; in l2 Laplace noise, how many have noise."""
        noisy = self._drawn_cells
        if self.cell is None:
            noisy = np.ones(len(self.sums), dtype=bool)
            noisy[self.blocks.pinned] = False
        return np.bincount(self.sums[noisy], minlength=self.count)

    @cached_property
    def _determined(self) -> BoolArray:
        """Of which sums the kept totals, and no focus, determine what lies in blocks."""
        cells = np.flatnonzero(self._drawn_cells)
        ones = np.ones(len(cells), dtype=np.int64)
        sums = sparse.csr_array((ones, (self.sums[cells], cells)), shape=(self.count, len(self.sums)))
        return np.asarray(determined(self.blocks.structure, sums))

    def _law(self, key: Kind) -> ExactLaw | BoundLaw:
        if key not in self._computed:
            self._computed[key] = NOTHING if not key else sum_law(self._known(key), 1)
        return self._computed[key]

    def _known(self, key: Kind) -> list[tuple[PieceLaw, int]]:
        if self.cell is None:
            raise AssertionError("all of l2 Laplace noise is simulated")
        ordered = sorted(key, key=lambda item: (isinstance(item[0], FocusedPiece), repr(item)))
        return [(law_of_piece(piece, self.cell), times) for piece, times in ordered]

    def _reach(self, key: Kind) -> tuple[int, Basis]:
        law = self._law(key)
        if key not in self._reached:
            self._reached[key] = self._reach_of(law, key) if key else 0
        return self._reached[key], law.basis

    def _reach_of(self, law: ExactLaw | BoundLaw, key: Kind) -> int:
        if isinstance(law, ExactLaw) and self._computes:
            return law.reach(1 - self._allowed)
        bound = BoundLaw(1, self._known(key), law.variance) if isinstance(law, ExactLaw) else law
        return bound.reach_but_for(self._allowed)

    def _drawn(self) -> list[tuple[list[Choice], IntArray]] | None:
        """The simulated noise of each sampler of blocks; None if it would take long."""
        drawn = []
        for groups in self._pieces.drawn(self.blocks):
            choices = [choice for _, choice in groups]
            if choices[0].sampler is None:
                raise NoSamplerError(NO_SAMPLER)
            noise = simulated(self.blocks, choices[0], needed_draws(self.level), patient=self.cell is None)
            if noise is None:
                return None
            drawn.append((choices, noise))
        return drawn

    def _estimate(
        self, drawn: list[tuple[list[Choice], IntArray]], chosen: IntArray, draws: int, margins: IntArray
    ) -> float:
        """Fill in the margins of sums with cells in blocks; returns the largest standard error."""
        chain = any(choice.chain is not None for choices, _ in drawn for choice in choices)
        worst = 0.0
        for some, values in self._values(drawn, chosen, draws):
            for column, k in enumerate(some.tolist()):
                worst = max(worst, self._estimated(k, values[:, column : column + 1], chain, margins))
        return worst

    def _values(
        self, drawn: list[tuple[list[Choice], IntArray]], chosen: IntArray, draws: int
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Some of the chosen sums at a time, and their noise in the blocks, one row per draw."""
        width = max(1, NUMBERS_AT_ONCE // draws)
        for start in range(0, len(chosen), width):
            some = chosen[start : start + width]
            yield some, np.asarray(sum(self._summed(choices, noise[:draws], some) for choices, noise in drawn))

    def _estimated(self, k: int, drawn: IntArray, chain: bool, margins: IntArray) -> float:
        kind = self._pieces.of(k)
        if not drawn.any() and self._determined[k]:
            margins[k], _ = self._reach(kind)
            return 0.0
        rest = self._law(kind)
        if not isinstance(rest, ExactLaw):
            margins[k] = self._bounded(k)
            return 0.0
        law = EstimatedLaw(drawn, rest if kind else None, None, chain)
        margins[k], error = self._estimate_of(law, self.level)
        return error

    def _summed(self, choices: list[Choice], noise: IntArray, some: IntArray) -> IntArray:
        """The noise that a sampler adds to each of some sums, one row per draw."""
        place = np.full(self.count, -1, dtype=np.int64)
        place[some] = np.arange(len(some))
        columns = np.concatenate([choice.first + np.arange(len(choice.cells)) for choice in choices])
        target = place[np.concatenate([self.sums[choice.cells] for choice in choices])]
        used = target >= 0
        shape = (noise.shape[1], len(some))
        indicator = sparse.csr_array((np.ones(int(used.sum()), dtype=np.int64), (columns[used], target[used])), shape)
        return np.asarray((indicator.T @ noise.T).T)

    def _bounded(self, k: int) -> int:
        """The margin of a bound: cells in blocks count as if they were free."""
        if self._determined[k]:
            return self._reach(self._pieces.of(k))[0]
        key = int(self._inside[k]), int(self._pieces.of_sum[k])
        if key not in self._bounds:
            if self.cell is None:
                raise AssertionError("all of l2 Laplace noise is simulated")
            cells = DominatedPiece.of_free_cells(self.cell, key[0])
            more: list[tuple[PieceLaw, int]] = [(cells, 1), *self._known(self._pieces.of(k))]
            bound = BoundLaw(1, more, sum(times * piece.variance for piece, times in more))
            self._bounds[key] = bound.reach_but_for(self._allowed)
        return self._bounds[key]


# The variance of sums of cells of a full table with all its margins kept, from two numbers.
#
# The noise has the same law after any permutation of the rows, of the columns, and of the cells of one region. Let y
# be the sums over regions and e what each cell differs from its share of y. The covariance of y commutes with these
# permutations and vanishes on the margins, so it is v times the tensor product of the projections P_n = I - J/n along
# the axes. Cells of a region sum up to y, and are exchangeable: e is uncorrelated with y and between regions, and has
# covariance w P_s in a region of s cells. Noise in two blocks is uncorrelated, because its law stays the same if one
# changes its sign.
#
# So every simulated cell counts for v and w, and a few draws of a large table are enough for all its sums.


def is_table(structure: Structure, group: BlockGroup) -> bool:
    """Whether the blocks are full tables with all their margins kept, and regions of one size."""
    if not group.members or group.members[0].system.grid is None:
        return False
    sizes = structure.sizes[group.members[0].regions]
    return bool((sizes == sizes[0]).all())


def table_variances(
    structure: Structure, group: BlockGroup, cells: IntArray, noise: IntArray, sums: IntArray, count: int
) -> Floats:
    """The variance that the cells of these tables add to each sum.

    Parameters
    ----------
    structure, group
        The blocks, for which :func:`is_table` holds.
    cells, noise
        Their cells, and simulated noise, one row per draw.
    sums, count
        In which of how many sums each cell of the whole table is.
    """
    grid = group.members[0].system.grid
    if grid is None:
        raise AssertionError("checked by the caller")
    shape = grid.shape
    entries = math.prod(shape)
    place = np.full(len(structure.sizes), -1, dtype=np.int64)  # the entry of each region, blocks one after the other
    for number, block in enumerate(group.members):
        place[block.regions[grid.column.ravel()]] = number * entries + np.arange(entries)
    entry = place[structure.region[cells]]
    size = int(structure.sizes[group.members[0].regions[0]])
    of_regions, within = _scales(noise, entry, entries * len(group.members), size, shape)
    keys, k = np.unique(sums[cells] * (entries * len(group.members)) + entry, return_counts=True)
    total, entry = np.divmod(keys, entries * len(group.members))
    squares = _projected(total, entry // entries, entry % entries, k, shape, count)
    inside = np.bincount(total, weights=k * (1 - k / size), minlength=count)
    return np.asarray(of_regions / size**2 * np.maximum(squares, 0) + within * inside)


def _scales(noise: IntArray, entry: IntArray, entries: int, size: int, shape: tuple[int, ...]) -> tuple[float, float]:
    """The numbers v and w, from the mean squares of y and e."""
    y_squares = e_squares = 0.0
    for row in noise:
        y = np.bincount(entry, weights=row, minlength=entries)
        y_squares += float(y @ y)
        e = row - y[entry] / size
        e_squares += float(e @ e)
    draws = len(noise)
    v = y_squares / (draws * entries * math.prod(1 - 1 / n for n in shape))
    return v, e_squares / (draws * len(entry) * (1 - 1 / size)) if size > 1 else 0.0


def _projected(
    total: IntArray, block: IntArray, entry: IntArray, k: IntArray, shape: tuple[int, ...], count: int
) -> Floats:
    """|P K|^2 for each sum, where K has its number of cells in each entry: by inclusion and exclusion over the axes."""
    places = np.unravel_index(entry, shape)
    axes = range(len(shape))
    squares = np.zeros(count)
    for summed in chain.from_iterable(combinations(axes, number) for number in range(len(shape) + 1)):
        key = total * (int(block.max(initial=0)) + 1) + block
        for axis in axes:
            if axis not in summed:
                key = key * shape[axis] + places[axis]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        added = np.bincount(inverse, weights=k)
        sign = (-1) ** len(summed) / math.prod(shape[axis] for axis in summed)
        squares += sign * np.bincount(total[first], weights=added**2, minlength=count)
    return squares


# The standard deviation of the noise in sums of released counts: in closed form, or simulated.


HARDEST_EFFORT = 10**10  # nanoseconds for the fewest draws; beyond this nothing is simulated


def sum_deviations(blocks: BlockSamplers, sums: IntArray, count: int) -> Floats | None:
    """The standard deviation of each of ``count`` sums; ``sums`` says in which of them each cell is.

    None where it is not known: a block has no sampler, or takes too long to simulate.
    """
    if any(choice.sampler is None for choice in blocks.choices):
        return None
    pieces = SumPieces.of_plan(blocks, sums, count)
    drawn = pieces.drawn(blocks)
    if any(FEWEST_DRAWS * simulation_nanoseconds(groups[0][1]) > HARDEST_EFFORT for groups in drawn):
        return None
    variances = _known_variances(pieces, free_cell(blocks.mechanism))
    for groups in drawn:
        noise = simulated(blocks, groups[0][1], patient=True)
        if noise is None:
            raise AssertionError("it is patient")
        if all(is_table(blocks.noise_structure, group) for group, _ in groups):
            for group, part in groups:
                columns = noise[:, part.first : part.first + len(part.cells)]
                variances += table_variances(blocks.noise_structure, group, part.cells, columns, sums, count)
        else:
            # Groups that one sampler draws together are not independent: cells are summed before they are squared.
            variances += _mean_squares(noise, [part for _, part in groups], sums, count)
    return np.sqrt(variances)


def _known_variances(pieces: SumPieces, cell: CellLaw | None) -> Floats:
    """What pieces with a known law add to each sum."""
    if cell is None:
        return np.zeros(len(pieces.of_sum))
    kinds = [sum(times * law_of_piece(piece, cell).variance for piece, times in kind) for kind in pieces.kinds]
    return np.asarray(np.array(kinds, dtype=np.float64)[pieces.of_sum])


def _mean_squares(noise: IntArray, together: list[Choice], sums: IntArray, count: int) -> Floats:
    """The mean square of each sum over simulated draws; the mean is 0 by symmetry."""
    place = np.zeros(noise.shape[1], dtype=np.int64)
    for group in together:
        place[group.first : group.first + len(group.cells)] = sums[group.cells]
    squares = np.zeros(count)
    for row in noise:
        squares += np.bincount(place, weights=row, minlength=count) ** 2
    return squares / len(noise)

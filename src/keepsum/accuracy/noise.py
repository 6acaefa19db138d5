"""``plan.noise``: the law of the noise of any linear query over the cells, before and after a release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum._arguments import LARGEST_INTEGER, check_flag, check_whole
from keepsum._arrays import Floats, IntArray
from keepsum._copying import WithoutCaches
from keepsum._saying import arg, the
from keepsum.accuracy.block_laws import (
    USUAL_LEVEL,
    AnyPiece,
    CellClass,
    FocusedNoise,
    FocusedPiece,
    class_law,
    classes_of,
    free_cell,
    law_of_piece,
    query_law,
)
from keepsum.accuracy.cell_noise import CellLaw, cell_law, check_known
from keepsum.accuracy.likelihood import LogPmf, log_constant, log_likelihood, log_weights
from keepsum.accuracy.queries import Query, QueryWeights, as_weights, pieces_of, undetermined
from keepsum.accuracy.query_laws import BoundLaw, EstimatedLaw, ExactLaw, check_level, sum_law
from keepsum.errors import InputError
from keepsum.lattice.structure import FORCED, Structure
from keepsum.planning.samplers import BlockSamplers
from keepsum.tables.invariants import Invariants

# Intervals for ratios of two queries, from the laws of linear queries (Fieller's method).
#
# Let N and D be the confidential values, N + n and D + d the released ones, and t = N/D. As n - t d is the noise of a
# linear query, |(N + n) - t (D + d)| = |n - t d| is within a margin r(t) with at least the probability wanted. So the
# t that are not within theirs can be excluded, for any r that does not depend on the counts. Here r(t) is the
# smallest of
#
# - a + |t| b, where n is within a and d within b, each with half of what may go wrong: outside of the ratios of what
#   is within a of N + n to what is within b of D + d, all t are excluded by it;
# - r(p/q) + |t - p/q| s for all fractions p/q: the margin of q n - p d over q, with room for a step, d being within s
#   but for a small part of what may go wrong, which is set aside. From an excluded t a step inwards is excluded too;
#   steps are taken until they no longer matter.
#
# Where N and D are counts, t is not negative, and t (D + d + b) < N + n - a excludes t although D may be
# 0, as N + n - t (D + d) > a + t b then: what a denominator near 0 leaves open is how large the ratio is.


SET_ASIDE = 0.02  # of what may go wrong, for steps between fractions
FINE = Fraction(1, 100)  # a step shorter than this part of the interval ends the search
ROUGH = Fraction(1, 20)  # of the interval: how far from an excluded end a fraction of few digits is looked for
MOST_STEPS = 40

MOST_QUERIES = 200  # whose covariances are found pair by pair
MOST_COMPARED = 120  # sums of which each is compared with each

LARGEST_FACTOR = 2**30  # so that weights of up to 2^32 times p or q fit 64 bits

Reach = Callable[[int, int, float], int]  # the margin of q n - p d at a level


@dataclass(frozen=True)
class Ratio:
    """A released ratio, and the margins that its interval follows from.

    Attributes
    ----------
    numerator, denominator
        The released values.
    reach
        ``reach(q, p, level)`` is the margin of q times the numerator's noise less p times the denominator's.
    level
        The probability.
    certain
        Whether one of both has no noise at all, so that what may go wrong need not be divided between them.
    positive
        Whether neither of both can be negative, being sums of counts.
    """

    numerator: int
    denominator: int
    reach: Reach
    level: float
    certain: bool = False
    positive: bool = False

    def interval(self) -> tuple[float, float]:
        """An interval that holds the confidential ratio with at least this probability; without end if D may be 0."""
        top, bottom = self._reaches()
        if abs(self.denominator) <= bottom:
            return self._least(top, bottom), math.inf
        start, end = self._box(top, bottom)
        middle = Fraction(self.numerator, self.denominator)
        low, high = self._closer(start, middle, end - start), self._closer(end, middle, end - start)
        return (max(0.0, _down(low)), max(0.0, _up(high))) if self.positive else (_down(low), _up(high))

    def _reaches(self) -> tuple[int, int]:
        """Both margins, each at half of what may go wrong."""
        each = self.level if self.certain else 1 - (1 - self.level) / 2
        return self.reach(1, 0, each), self.reach(0, -1, each)

    def _box(self, top: int, bottom: int) -> tuple[Fraction, Fraction]:
        """From both margins, where they leave the sign of the denominator no doubt."""
        ends = [Fraction(self.numerator + a * top, self.denominator + b * bottom) for a in (-1, 1) for b in (-1, 1)]
        return min(ends), max(ends)

    def _least(self, top: int, bottom: int) -> float:
        """The smallest ratio, where the denominator may be 0."""
        if not self.positive:
            return -math.inf
        if self.numerator <= top or self.denominator + bottom <= 0:
            return 0.0
        start = Fraction(self.numerator - top, self.denominator + bottom)
        if self.denominator <= 0:
            return _down(start)
        middle = Fraction(self.numerator, self.denominator)
        return _down(self._closer(start, middle, middle - start))

    def _closer(self, start: Fraction, middle: Fraction, width: Fraction) -> Fraction:
        """From an excluded end towards the released ratio, as far as it can be proved."""
        allowed = 1 - self.level
        spread = self.reach(0, -1, 1 - SET_ASIDE * allowed)
        if not spread or not width:
            return start
        slope = abs(self.denominator) + spread  # how fast |N - t D| - r(t) can fall
        sign = 1 if middle > start else -1
        at = start
        for _ in range(MOST_STEPS):
            # A fraction of few digits between the excluded end and a little further out.
            tried = _simple(at - sign * width * ROUGH, at)
            q, p = tried.denominator, tried.numerator
            if max(q, abs(p)) > LARGEST_FACTOR:
                return at
            margin = self.reach(q, p, 1 - (1 - SET_ASIDE) * allowed)
            beyond = abs(q * self.numerator - p * self.denominator) - margin
            step = tried + sign * Fraction(beyond, q * slope)
            if beyond <= 0 or sign * (step - at) <= width * FINE:
                return at
            at = min(step, middle) if sign > 0 else max(step, middle)
        return at


def _simple(one: Fraction, other: Fraction) -> Fraction:
    """The fraction with the smallest denominator between two numbers."""
    low, high = min(one, other), max(one, other)
    if low <= 0 <= high:
        return Fraction(0)
    if high < 0:
        return -_simple(-low, -high)
    whole = math.ceil(low)
    if whole <= high:
        return Fraction(whole)
    floor = math.floor(low)
    return floor + 1 / _simple(1 / (high - floor), 1 / (low - floor))


def _down(value: Fraction) -> float:
    found = float(value)
    return found if Fraction(found) <= value else math.nextafter(found, -math.inf)


def _up(value: Fraction) -> float:
    return -_down(-value)


class Noise(WithoutCaches):
    """The law of the noise of a plan: of cells, sums, differences and weighted sums of cells.

    Made by ``plan.noise``. A query is the number of a cell, labels (``{"county": "Cook"}`` is the sum of all cells with
    this label; a list of labels is allowed), or a vector of whole numbers, one for each cell.

    The law is *exact*, computed in floating point, where sums of regions are forced, as in every hierarchy of totals,
    under l1 Laplace and Gaussian noise, and for cells and totals under a focus; *conservative*, by Chernoff's bound,
    where it is too wide for that; *estimated* from simulated draws where totals overlap, or a sum has parts of several
    focused totals, if these take little time, and otherwise conservative.
    ``law(query)`` says which, and from how many draws.

    Examples
    --------
    >>> import keepsum as ks
    >>> plan = ks.plan(keep=ks.Invariants.subsets(102, [range(102)]), mechanism=ks.Laplace.per_unit(epsilon=0.25))
    >>> plan.noise
    Noise(102 cells, Laplace.per_unit(epsilon=0.25, norm='l1'))
    >>> round(plan.noise.variance(0), 3), plan.noise.interval(0, level=0.95)
    (31.058, (-12, 12))

    Two cells whose total is kept move against each other, and the kept total itself has no noise:

    >>> round(plan.noise.covariance(0, 1), 4), plan.noise.interval([1] * 102)
    (-0.3075, (0, 0))
    >>> plan.noise.interval([1] * 51 + [0] * 51), plan.noise.law([1] * 51 + [0] * 51).basis
    ((-55, 55), 'exact')
    """

    def __init__(self, blocks: BlockSamplers, invariants: Invariants) -> None:
        check_known(blocks.mechanism)
        self._blocks, self._invariants = blocks, invariants

    def __repr__(self) -> str:
        return f"Noise({self._blocks.size:,} cells, {self._blocks.mechanism!r})"

    def variance(self, query: Query) -> float:
        """The variance of a query's noise, whose mean is 0; an upper bound where its law is conservative."""
        return self.law(query).variance

    def covariance(self, first: Query, second: Query) -> float:
        """The covariance of the noise of two queries, where more than bounds on their variances is known."""
        one, other = self._weights(first), self._weights(second)
        if self.keeps(one) or self.keeps(other):
            return 0.0
        plus, minus = self._law(one + other), self._law(one - other)
        if any(isinstance(law, BoundLaw) and not law.variance_known for law in (plus, minus)):
            raise InputError(
                "Covariances must be those of laws that are exact or estimated, and this one is conservative, because "
                f"simulating it would take long. Use {the.call('noise.interval')} for a sum or a difference."
            )
        return (plus.variance - minus.variance) / 4

    def covariances(self, queries: Sequence[Query]) -> Floats:
        """The covariance matrix of the noise of several queries; see ``release.covariance``."""
        weights = [self._weights(query) for query in queries]
        if self._cell is not None and self._blocks.nested is None and self._blocks.focused is None:
            structure = self._blocks.noise_structure
            if not structure.blocks:
                return _covariances_in_regions(weights, structure, self._cell)
        if len(weights) > MOST_QUERIES:
            raise InputError(
                f"Covariances must be those of at most {MOST_QUERIES:,} queries where totals overlap or have a focus, "
                f"and in l2 Laplace noise: they are found pair by pair, and these are {len(weights):,}."
            )
        found = np.zeros((len(weights), len(weights)))
        for one, other in combinations_with_replacement(range(len(weights)), 2):
            found[one, other] = found[other, one] = self.covariance(weights[one], weights[other])
        return found

    def reaches_of_differences(self, sums: IntArray, count: int, level: float) -> IntArray | None:
        """How far the noises of two sums of cells can be apart, for all pairs at once; None where that takes long.

        Each pair may fail with its part of what may go wrong, so that together they hold with at least this
        probability. Sums with few pairs are compared so whose laws are made of pieces; nothing here is a count.
        """
        if self._cell is None or not 1 < count <= MOST_COMPARED:
            return None
        each = 1 - (1 - level) / math.comb(count, 2)
        order = np.argsort(sums, kind="stable")
        members = np.split(order, np.searchsorted(sums[order], np.arange(1, count)))
        known: dict[frozenset[tuple[AnyPiece, int]], int] = {}
        reaches = np.zeros((count, count), dtype=np.int64)
        for one, other in combinations(range(count), 2):
            cells = np.concatenate([members[one], members[other]])
            signs = np.repeat(np.array([1, -1]), [len(members[one]), len(members[other])])
            place = np.argsort(cells)
            weights = QueryWeights(len(sums), cells[place], signs[place])
            pieces, rest = self._pieces(weights)
            if len(rest.cells):
                return None
            key = frozenset(pieces.items())
            if key not in known:
                known[key] = self._law(weights, each).reach(each) if pieces else 0
            reaches[one, other] = reaches[other, one] = known[key]
        return reaches

    def interval(self, query: Query, level: float = 0.95) -> tuple[int, int]:
        """An interval around 0 that holds a query's noise with at least this probability; the shortest if exact."""
        level = check_level(level)
        reach = self._law(self._weights(query), level).reach(level)
        return -reach, reach

    def quantile(self, query: Query, p: float) -> int:
        """The smallest value that a query's noise does not exceed with at least this probability; see ``law``."""
        p = check_level(p)
        return self._law(self._weights(query), max(p, 1 - p)).quantile(p)

    def pmf(self, query: Query, value: int) -> float:
        """The probability that a query's noise has this value, where its law is exact."""
        return self._exact(query).pmf(_whole(value))

    def cdf(self, query: Query, value: int) -> float:
        """The probability that a query's noise is at most this value, where its law is exact."""
        return self._exact(query).cdf(_whole(value))

    def log_pmf(self, noise: npt.ArrayLike, *, constant: bool = True) -> Any:
        """The logarithm of the probability of a vector of noise, one number for each cell; -inf off the kept totals.

        For analyses by likelihood: of counts y given released counts r it is that of r - y.

        Parameters
        ----------
        noise
            A vector, or several as the rows of a matrix.
        constant
            Whether the logarithm of the sum of all weights is taken off, which is known where totals do not overlap, in
            l1 Laplace and Gaussian noise. Without it, no noise at all has the value 0.

        Returns
        -------
        float or numpy.ndarray
            For a vector a number; for rows, one number for each.

        Examples
        --------
        >>> import keepsum as ks
        >>> plan = ks.plan(keep=ks.Invariants.subsets(3, [range(3)]), mechanism=ks.Laplace.per_unit(epsilon=1))
        >>> plan.noise.log_pmf([2, -1, -1], constant=False), plan.noise.log_pmf([2, -1, 0], constant=False)
        (-4.0, -inf)
        >>> round(plan.noise.log_pmf([0, 0, 0]), 4)
        -0.7353
        """
        logs = log_weights(noise, self._blocks, self._invariants)
        if check_flag(constant, f"{arg.constant}"):
            known = log_constant(self._blocks)
            if known is None:
                raise InputError(
                    "The constant is known only where totals do not overlap, in l1 Laplace noise and in Gaussian "
                    f"noise without a focus. {arg.constant(False):Pass} for logarithms up to a constant."
                )
            logs = logs - known
        return logs if np.ndim(noise) == 2 else float(logs[0])

    def log_likelihood(self, released: npt.ArrayLike, log_pmf: LogPmf) -> float:
        """The logarithm of the probability of released counts, under a model of the confidential ones.

        It is the sum over all confidential counts that the released ones may come from, computed where totals do not
        overlap (nothing kept, or any hierarchy), in l1 Laplace and Gaussian noise without a focus.

        Parameters
        ----------
        released
            The counts as they were drawn, one for each cell: ``release.unbiased.counts``.
        log_pmf
            The model, under which confidential counts are independent: given a matrix of whole numbers from 0 on with
            a row for each cell, it returns the logarithms of their probabilities, each in the law of its row's cell.

        Returns
        -------
        float
            -inf if the model allows no counts with these totals. The noise that is summed over is chosen so that what
            is left out is proved to change the probability by less than a part in 10^12; rounding in floating point
            comes on top.

        Examples
        --------
        >>> import keepsum as ks
        >>> from scipy import stats
        >>> plan = ks.plan(keep=ks.Invariants.subsets(2, [range(2)]), mechanism=ks.Laplace.per_unit(epsilon=1))
        >>> rates = [[3.0], [5.0]]
        >>> round(plan.noise.log_likelihood([9, -1], lambda counts: stats.poisson.logpmf(counts, rates)), 6)
        -10.460871
        """
        return log_likelihood(released, log_pmf, self._blocks)

    def combined_reach(self, first: Query, second: Query) -> Reach:
        """The margin of q times one query's noise less p times another's, by (q, p, level)."""
        one, other = self._weights(first), self._weights(second)
        return lambda q, p, level: self._law(one.times(q) - other.times(p), level).reach(level)

    def keeps(self, query: Query) -> bool:
        """Whether the kept totals determine a query, so that it has no noise at all."""
        pieces, rest = pieces_of(self._weights(query), self._blocks.structure)
        return not pieces and not len(rest.cells)

    def law(self, query: Query) -> ExactLaw | BoundLaw | EstimatedLaw:
        """The law of a query's noise, with its ``basis``: exact, conservative, or estimated."""
        return self._law(self._weights(query))

    def _weights(self, query: Query) -> QueryWeights:
        return as_weights(query, self._invariants)

    def _exact(self, query: Query) -> ExactLaw:
        law = self.law(query)
        if not isinstance(law, ExactLaw):
            raise InputError(
                f"Probabilities must be those of a law that is exact, and this one is {law.basis}. Use "
                f"{the.call('noise.interval')}."
            )
        return law

    @cached_property
    def _cell(self) -> CellLaw | None:
        return free_cell(self._blocks.mechanism)

    @cached_property
    def _classes(self) -> list[CellClass]:
        return list(classes_of(self._blocks))

    def _law(self, weights: QueryWeights, level: float = USUAL_LEVEL) -> ExactLaw | BoundLaw | EstimatedLaw:
        """The law of a query, which is of use at this level if it can only be simulated."""
        level = USUAL_LEVEL if self._cell is not None else level  # elsewhere there is a bound for high levels
        pieces, rest = self._pieces(weights)
        if not pieces and not len(rest.cells):
            return ExactLaw(1, np.ones(1), 0.0)
        if len(weights.cells) == 1 and abs(int(weights.weights[0])) == 1 and (len(rest.cells) or self._cell is None):
            cell = int(weights.cells[0])
            cells = next(cells for cells in self._classes if (cells.cells == cell).any())
            return class_law(self._blocks, cells, level)
        if self._cell is None:  # l2 Laplace noise: all cells share one scale
            return query_law(self._blocks, weights, [], ExactLaw(1, np.ones(1), 0.0), level)
        single = None if len(rest.cells) else self._single(pieces)
        if single is not None:
            return single
        known = [(law_of_piece(piece, self._cell), times) for piece, times in pieces.items()]
        computed = sum_law(known, _unit(list(pieces)))
        return query_law(self._blocks, rest, known, computed) if len(rest.cells) else computed

    def _pieces(self, weights: QueryWeights) -> tuple[dict[AnyPiece, int], QueryWeights]:
        """The pieces of a query with a known law, each with how many there are; and the rest."""
        nested = self._blocks.nested
        if self._blocks.focused is not None:
            return self._pieces_beside_blocks(weights)
        if nested is None:
            known, rest = pieces_of(weights, self._blocks.noise_structure)
            return dict(known.items()), rest
        focused = FocusedNoise.of(self._blocks)
        inside, crossed = nested.home[weights.cells] >= 0, nested.crossed[weights.cells]
        known, rest = pieces_of(weights.where(~inside & ~crossed), self._blocks.noise_structure)
        if crossed.any():
            rest = rest + undetermined(weights.where(crossed), self._blocks.structure)
        part = weights.where(inside)
        found = None if focused is None else focused.pieces(part)
        if found is None:
            return dict(known.items()), rest + part if inside.any() else rest
        return dict([*known.items(), *found.items()]), rest

    def _pieces_beside_blocks(self, weights: QueryWeights) -> tuple[dict[AnyPiece, int], QueryWeights]:
        """The same where focused totals form blocks: what is in none, and what kept totals do not determine in them."""
        kept, noise = self._blocks.structure, self._blocks.noise_structure
        in_blocks = noise.part[noise.region[weights.cells]] >= 0
        known, _ = pieces_of(weights.where(~in_blocks), noise)
        inside = weights.where(in_blocks)
        overlap = kept.part[kept.region[inside.cells]] >= 0
        _, rest = pieces_of(inside.where(overlap), kept)
        return dict(known.items()), rest + undetermined(inside.where(~overlap), kept)

    def _single(self, pieces: dict[AnyPiece, int]) -> ExactLaw | None:
        """The law of a single cell in closed form, however wide; None for other queries."""
        ((piece, times), *others) = pieces.items()
        if isinstance(piece, FocusedPiece):
            return None if others or times > 1 else piece.law()
        law = cell_law(self._blocks.mechanism)
        if others or times > 1 or piece.classes[1:] or piece.classes[0][1] > 1 or law is None:
            return None
        if law.wide_sd(piece.size) is not None:
            return None
        weight, masses = abs(piece.classes[0][0]), law.weights(piece.size)
        variance = weight * weight * law.variance_in(piece.size)
        return ExactLaw(weight, masses / (2 * masses.sum() - masses[0]), variance)


def _covariances_in_regions(weights: list[QueryWeights], structure: Structure, cell: CellLaw) -> Floats:
    """Covariances where sums are forced or cells are free: cells of a region are exchangeable, and add up to 0.

    Two of its n cells have the covariance -v/(n - 1), v being the variance of one, and different regions none.
    """
    of_size = {0: cell.variance_in(0)}
    sizes = np.where(structure.part == FORCED, structure.sizes, 0)
    for size in np.unique(sizes).tolist():
        of_size[size] = 0.0 if size == 1 else cell.variance_in(size)
    own = np.array([of_size[size] for size in sizes.tolist()])
    shared = np.where(sizes > 1, own / np.maximum(sizes - 1, 1), 0.0)
    indptr = np.concatenate([[0], np.cumsum([len(each.cells) for each in weights])])
    cells = np.concatenate([np.zeros(0, dtype=np.int64), *(each.cells for each in weights)])
    values = np.concatenate([np.zeros(0), *(each.weights.astype(np.float64) for each in weights)])
    size = len(structure.region)
    matrix = sparse.csr_array((values, cells, indptr), shape=(len(weights), size))
    index = np.arange(size)
    sums = matrix @ sparse.csr_array((np.ones(size), (index, structure.region)), shape=(size, len(sizes)))
    alone = matrix.multiply((own + shared)[structure.region]) @ matrix.T
    return np.asarray((alone - sums.multiply(shared) @ sums.T).toarray())


def _whole(value: int) -> int:
    return check_whole(value, "A value", -LARGEST_INTEGER)


def _unit(pieces: list[AnyPiece]) -> int:
    """What every value of the noise is a multiple of."""
    return math.gcd(*(weight for piece in pieces for weight, _ in piece.classes)) or 1

"""``plan.noise``: the law of the noise of any linear query over the cells, before and after a release."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import LARGEST_INTEGER, check_flag, check_whole
from keepsum._copying import WithoutCaches
from keepsum.accuracy.block_laws import USUAL_LEVEL, CellClass, class_law, classes_of, free_cell, query_law
from keepsum.accuracy.focused import AnyPiece, FocusedNoise, FocusedPiece, law_of_piece
from keepsum.accuracy.free_cells import FreeCell
from keepsum.accuracy.law import cell_law
from keepsum.accuracy.likelihood import log_constant, log_weights
from keepsum.accuracy.queries import Query, Weights, as_weights, pieces_of, undetermined
from keepsum.accuracy.query_laws import BoundLaw, EstimatedLaw, ExactLaw, check_level, sum_law
from keepsum.accuracy.ratios import Reach
from keepsum.accuracy.released_likelihood import LogPmf, log_likelihood
from keepsum.errors import InputError
from keepsum.planning.samplers import BlockSamplers
from keepsum.tables.invariants import Invariants


class Noise(WithoutCaches):
    """The law of the noise of a plan: of cells, sums, differences and weighted sums of cells.

    Made by ``plan.noise``. A query is the number of a cell, labels (``{"county": "Cook"}`` is the sum of all cells with
    this label; a list of labels is allowed), or a vector of whole numbers, one for each cell.

    The law is *exact*, computed in floating point, where sums of regions are forced, as in every hierarchy of totals,
    under l1 Laplace and Gaussian noise, and for cells and totals under a focus; *conservative*, by Chernoff's bound,
    where it is too wide for that; *estimated* from simulated draws where totals overlap, or a sum has parts of several
    focused totals, if these take little time, and otherwise conservative.
    ``noise.law(query)`` says which, and from how many draws.

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
        self._blocks, self._invariants = blocks, invariants

    def __repr__(self) -> str:
        return f"Noise({self._blocks.size:,} cells, {self._blocks.mechanism!r})"

    def variance(self, query: Query) -> float:
        """The variance of a query's noise, whose mean is 0; an upper bound where its law is conservative."""
        return self.law(query).variance

    def covariance(self, first: Query, second: Query) -> float:
        """The covariance of the noise of two queries, where more than bounds on their variances is known."""
        one, other = self._weights(first), self._weights(second)
        plus, minus = self._law(one + other), self._law(one - other)
        if any(isinstance(law, BoundLaw) and not law.variance_known for law in (plus, minus)):
            raise InputError(
                "Covariances must be those of laws that are exact or estimated, and this one is conservative, because "
                "simulating it would take long. Use noise.interval for a sum or a difference."
            )
        return (plus.variance - minus.variance) / 4

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
        if check_flag(constant, "constant="):
            known = log_constant(self._blocks)
            if known is None:
                raise InputError(
                    "The constant is known only where totals do not overlap, in l1 Laplace noise and in Gaussian noise "
                    "without a focus. Pass constant=False for logarithms up to a constant."
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

    def _weights(self, query: Query) -> Weights:
        return as_weights(query, self._invariants)

    def _exact(self, query: Query) -> ExactLaw:
        law = self.law(query)
        if not isinstance(law, ExactLaw):
            raise InputError(
                f"Probabilities must be those of a law that is exact, and this one is {law.basis}. Use noise.interval."
            )
        return law

    @cached_property
    def _cell(self) -> FreeCell | None:
        return free_cell(self._blocks.mechanism)

    @cached_property
    def _classes(self) -> list[CellClass]:
        return list(classes_of(self._blocks))

    def _law(self, weights: Weights, level: float = USUAL_LEVEL) -> ExactLaw | BoundLaw | EstimatedLaw:
        """The law of a query, which is of use at this level if it can only be simulated."""
        level = USUAL_LEVEL if self._cell is not None else level  # elsewhere there is a bound for high levels
        pieces, rest = self._pieces(weights)
        if not pieces and not len(rest.cells):
            return ExactLaw(1, np.ones(1), 0.0)
        if len(weights.cells) == 1 and abs(int(weights.weights[0])) == 1 and (len(rest.cells) or self._cell is None):
            return self._cell_law(int(weights.cells[0]), level)
        if self._cell is None:  # l2 Laplace noise: all cells share one scale
            return query_law(self._blocks, weights, [], ExactLaw(1, np.ones(1), 0.0), level)
        single = None if len(rest.cells) else self._single(pieces)
        if single is not None:
            return single
        known = [(law_of_piece(piece, self._cell), times) for piece, times in pieces.items()]
        computed = sum_law(known, _unit(list(pieces)))
        return query_law(self._blocks, rest, known, computed) if len(rest.cells) else computed

    def _pieces(self, weights: Weights) -> tuple[dict[AnyPiece, int], Weights]:
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

    def _pieces_beside_blocks(self, weights: Weights) -> tuple[dict[AnyPiece, int], Weights]:
        """The same where focused totals form blocks: what is in none, and what kept totals do not determine in them."""
        kept, noise = self._blocks.structure, self._blocks.noise_structure
        in_blocks = noise.part[noise.region[weights.cells]] >= 0
        known, _ = pieces_of(weights.where(~in_blocks), noise)
        inside = weights.where(in_blocks)
        overlap = kept.part[kept.region[inside.cells]] >= 0
        _, rest = pieces_of(inside.where(overlap), kept)
        return dict(known.items()), rest + undetermined(inside.where(~overlap), kept)

    def _cell_law(self, cell: int, level: float) -> EstimatedLaw | BoundLaw | ExactLaw:
        """The law of a cell in a block, from all cells that have the same."""
        cells = next(cells for cells in self._classes if (cells.cells == cell).any())
        return class_law(self._blocks, cells, level)

    def _single(self, pieces: dict[AnyPiece, int]) -> ExactLaw | None:
        """The law of a single cell in closed form, however wide; None for other queries."""
        ((piece, times), *others) = pieces.items()
        if isinstance(piece, FocusedPiece):
            return None if others or times > 1 else piece.law()
        law = cell_law(self._blocks.mechanism)
        if others or times > 1 or piece.classes[1:] or piece.classes[0][1] > 1 or law is None:
            return None
        if law.wide_deviation(piece.size) is not None:
            return None
        weight, masses = abs(piece.classes[0][0]), law.weights(piece.size)
        variance = weight * weight * law.variance(piece.size)
        return ExactLaw(weight, masses / (2 * masses.sum() - masses[0]), variance)


def _whole(value: int) -> int:
    return check_whole(value, "A value", -LARGEST_INTEGER)


def _unit(pieces: list[AnyPiece]) -> int:
    """What every value of the noise is a multiple of."""
    return math.gcd(*(weight for piece in pieces for weight, _ in piece.classes)) or 1

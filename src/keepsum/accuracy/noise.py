"""``plan.noise``: the law of the noise of any linear query over the cells, before and after a release."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from keepsum._arrays import IntArray
from keepsum._progress import doing
from keepsum.accuracy.law import cell_law
from keepsum.accuracy.piece_laws import FreeCell, FreeGaussian, FreeLaplace, PieceLaw, piece_law
from keepsum.accuracy.projected import ProjectedPiece, projected_square
from keepsum.accuracy.queries import Piece, Query, Weights, as_weights, pieces_of
from keepsum.accuracy.query_laws import BoundLaw, EstimatedLaw, ExactLaw, check_level, sum_law
from keepsum.errors import InputError
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice, simulate_into
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.core.rng import rng
from keepsum.tables.invariants import Invariants

# Simulated cells for a query, rejected ones included; the most draws, and the fewest, below which there is no answer.
EFFORT, MOST_DRAWS, FEWEST_DRAWS = 4 * 10**7, 10_000, 200
HARDEST_EFFORT = 10**9  # cells, for the fewest draws


class Noise:
    """The law of the noise of a plan: of cells, sums, differences and weighted sums of cells.

    Made by ``plan.noise``. A query is the number of a cell, labels (``{"county": "Cook"}`` is the sum of all cells with
    this label; a list of labels is allowed), or a vector of whole numbers, one for each cell.

    The law is *exact*, computed in floating point, where sums of regions are forced, as in every hierarchy of totals,
    under l1 Laplace and Gaussian noise; *conservative*, by Chernoff's bound, where it is too wide for that, and
    for Gaussian noise where totals overlap; *estimated* from simulated draws elsewhere. ``noise.law(query)`` says
    which, and from how many draws.

    Examples
    --------
    >>> import keepsum as ks
    >>> plan = ks.plan(ks.Invariants.subsets(102, [range(102)]), ks.Laplace(epsilon=0.25))
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

    def variance(self, query: Query) -> float:
        """The variance of a query's noise, whose mean is 0; an upper bound where its law is conservative."""
        return self.law(query).variance

    def covariance(self, first: Query, second: Query) -> float:
        """The covariance of the noise of two queries."""
        one, other = self._weights(first), self._weights(second)
        return (self._law(one + other).variance - self._law(one - other).variance) / 4

    def interval(self, query: Query, level: float = 0.95) -> tuple[int, int]:
        """An interval around 0 that holds a query's noise with at least this probability; the shortest if exact."""
        reach = self.law(query).reach(check_level(level))
        return -reach, reach

    def quantile(self, query: Query, p: float) -> int:
        """The smallest value that a query's noise does not exceed with at least this probability; see ``law``."""
        return self.law(query).quantile(check_level(p))

    def pmf(self, query: Query, value: int) -> float:
        """The probability that a query's noise has this value, where its law is exact."""
        return self._exact(query).pmf(int(value))

    def cdf(self, query: Query, value: int) -> float:
        """The probability that a query's noise is at most this value, where its law is exact."""
        return self._exact(query).cdf(int(value))

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

    @property
    def _mechanism(self) -> Mechanism:
        return self._blocks.mechanism

    @cached_property
    def _cell(self) -> FreeCell | None:
        """The noise of a free cell; None where cells are not independent."""
        cells: dict[str, FreeCell] = {
            "laplace-l1": FreeLaplace(float(1 / self._mechanism.scale)),
            "gaussian": FreeGaussian(float(self._mechanism.scale)),
        }
        return cells.get(self._mechanism.kind)

    def _law(self, weights: Weights) -> ExactLaw | BoundLaw | EstimatedLaw:
        pieces, rest = pieces_of(weights, self._blocks.structure)
        if not pieces and not len(rest.cells):
            return ExactLaw(1, np.ones(1), 0.0)
        if self._cell is None:  # l2 Laplace noise: all cells share one scale
            return EstimatedLaw(self._simulated(weights), None)
        single = None if len(rest.cells) else self._single(pieces)
        if single is not None:
            return single
        known = [(piece_law(piece, self._cell), times) for piece, times in pieces.items()]
        unit = _unit(list(pieces))
        if not len(rest.cells):
            return sum_law(known, unit)
        if isinstance(self._cell, FreeGaussian):
            square = projected_square(rest, self._blocks.structure)
            more: list[tuple[PieceLaw, int]] = [*known, (ProjectedPiece(self._cell.sigma, square), 1)]
            return BoundLaw(1, more, sum(times * piece.variance for piece, times in more))
        computed = sum_law(known, unit)
        if isinstance(computed, ExactLaw):
            return EstimatedLaw(self._simulated(rest), computed if known else None)
        return EstimatedLaw(self._simulated(weights), None)

    def _single(self, pieces: dict[Piece, int]) -> ExactLaw | None:
        """The law of a single cell in closed form, however wide; None for other queries."""
        ((piece, times), *others) = pieces.items()
        law = cell_law(self._mechanism)
        if others or times > 1 or piece.classes[1:] or piece.classes[0][1] > 1 or law is None:
            return None
        if law.wide_deviation(piece.size) is not None:
            return None
        weight, masses = abs(piece.classes[0][0]), law.weights(piece.size)
        variance = weight * weight * law.variance(piece.size)
        return ExactLaw(weight, masses / (2 * masses.sum() - masses[0]), variance)

    def _simulated(self, weights: Weights) -> IntArray:
        """The query's noise in simulated draws, from a seed of their own, so that they are always the same."""
        touched = np.zeros(self._blocks.size, dtype=bool)
        touched[weights.cells] = True
        samplers: dict[int, list[Choice]] = {}
        for choice in self._blocks.choices:
            if touched[choice.cells].any():
                samplers.setdefault(id(choice.sampler), []).append(choice)
        cost = sum(max(1, choices[0].simulation_cost) for choices in samplers.values())
        draws = max(FEWEST_DRAWS, min(MOST_DRAWS, EFFORT // max(1, cost)))
        if any(choice.sampler is None for choices in samplers.values() for choice in choices):
            raise InputError("Noise needs a sampler for every block of the query. plan.explain() shows every block.")
        if draws * cost > HARDEST_EFFORT:
            raise InputError("The noise of this query takes too long to simulate. Use plan.sample() for draws of it.")
        doing("simulating the noise of a query")
        vector = np.zeros(self._blocks.size, dtype=np.int64)
        vector[weights.cells] = weights.weights
        values = np.zeros(draws, dtype=np.int64)
        for choices in samplers.values():
            values += _drawn(choices, vector, draws)
        return values


def _drawn(choices: list[Choice], vector: IntArray, draws: int) -> IntArray:
    """The query's noise in the cells of one sampler, in batches that fit into memory."""
    sampler = choices[0].sampler
    if sampler is None:
        raise AssertionError("checked by the caller")
    weights = np.zeros(sampler.width, dtype=np.int64)
    for choice in choices:
        weights[choice.first : choice.first + len(choice.cells)] = vector[choice.cells]
    values = np.empty(draws, dtype=np.int64)
    source = rng(seed="keepsum queries")
    batch = max(1, min(draws, 2**22 // sampler.width))
    for start in range(0, draws, batch):
        noise = np.empty((min(batch, draws - start), sampler.width), dtype=np.int64)
        simulate_into(sampler, noise, source)
        values[start : start + len(noise)] = noise @ weights
    return values


def _unit(pieces: list[Piece]) -> int:
    """What every value of the noise is a multiple of."""
    return math.gcd(*(weight for piece in pieces for weight, _ in piece.classes)) or 1

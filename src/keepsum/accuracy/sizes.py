"""How large noise is: the standard deviation of one cell, and the paper's bounds on the length of a whole table's."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from keepsum._arguments import check_number
from keepsum._arrays import Floats
from keepsum._saying import the
from keepsum.accuracy.block_laws import FocusedNoise
from keepsum.accuracy.cell_noise import cell_law
from keepsum.accuracy.simulation import STANDARD_ERRORS, simulated, standard_error
from keepsum.errors import InputError
from keepsum.lattice.structure import FORCED, FREE
from keepsum.planning.geometry import Geometry, cell_share
from keepsum.planning.samplers import BlockSamplers
from keepsum.planning.selection.choice import Choice, simulate_into
from keepsum.privacy.calibration import log_constant
from keepsum.privacy.mechanism import Mechanism
from keepsum.sampling.core.rng import rng

# The standard deviation of one cell's noise: in closed form, that of wide noise, or simulated.
#
# A simulated one is shown with no more digits than its draws support: the others would differ between processors,
# whose floating-point functions differ in the last digit and so lead to other draws of chains.


FEWEST_DRAWS = 4  # of l1 noise under overlapping totals, where more would take long
DIGITS = 3  # that are shown of a standard deviation, at most
# The proposals of a chain say as much as its draws and take less: half a second of them, and enough for 100 to pass.
PROPOSING, PASSING, MOST_PROPOSALS = 10**7, 100, 50_000


@dataclass(frozen=True)
class Deviation:
    """A standard deviation, and its standard error if it is simulated; computed ones have none.

    Examples
    --------
    >>> print(Deviation(4.3155), Deviation(4.3155, 0.003), Deviation(4.3155, 0.03), Deviation(4.3155, 0.3))
    4.32 about 4.32 about 4.3 about 4
    >>> print(Deviation(0.0123, 0.3), Deviation(2.97, 0.02), Deviation(1234.0), Deviation(1234.0, 8.0))
    about 0.01 about 3.0 1.23e+03 about 1200
    """

    value: float
    error: float = 0.0

    def __str__(self) -> str:
        """Three digits; of a simulated one, those that three standard errors do not change by more than one."""
        if not self.error:
            return f"{self.value:.{DIGITS}g}"
        first = math.floor(math.log10(self.value))
        last = max(first - DIGITS + 1, min(first, math.ceil(math.log10(STANDARD_ERRORS * self.error))))
        return f"about {round(self.value, -last):.{max(0, -last)}f}"

    @property
    def shown(self) -> float:
        """The value with the digits that are shown of it, which do not differ between processors.

        >>> Deviation(4.3155, 0.03).shown
        4.3
        """
        return float(str(self).removeprefix("about "))

    @classmethod
    def of_squares(cls, squares: Floats, chain: bool) -> Deviation:
        """From the mean square of each draw."""
        value = math.sqrt(squares.mean())
        return cls(value, standard_error(squares, chain) / (2 * value) if value else 0.0)

    @classmethod
    def of_weighted(cls, squares: Floats, log_weights: Floats) -> Deviation:
        """From the mean square of each proposal, and the logarithm of its weight in the noise."""
        weights: Floats = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        mean = float(weights @ squares)
        value = math.sqrt(mean)
        return cls(value, math.sqrt(float(weights**2 @ (squares - mean) ** 2)) / (2 * value) if value else 0.0)


def cell_deviation(blocks: BlockSamplers, cell: int) -> Deviation | None:
    """The standard deviation of a cell's noise; in the l2 norm, that of wide noise. None where it is not known."""
    if blocks.mechanism.kind not in ("laplace-l2", "gaussian") or blocks.margins:
        return _known_or_simulated(blocks, cell)
    share = cell_share(blocks.structure, int(blocks.structure.region[cell]))
    if share is None:
        return None
    scale = float(blocks.mechanism.scale)
    if blocks.mechanism.kind == "gaussian":
        return Deviation(scale * math.sqrt(share))
    # l2 Laplace noise is Gaussian of a random width w, and w^2 has mean (m + 1)/eps^2.
    return Deviation(math.sqrt(share * (blocks.structure.dimension + 1)) * scale)


def _known_or_simulated(blocks: BlockSamplers, cell: int) -> Deviation | None:
    if any(choice.sampler is None for choice in blocks.choices):
        return None
    focused = FocusedNoise.of(blocks)
    if focused is not None and focused.focused[cell]:
        return Deviation(math.sqrt(focused.cell_variance(cell)))
    structure, law = blocks.noise_structure, cell_law(blocks.mechanism)
    region = structure.region[cell]
    if law is not None and structure.part[region] in (FREE, FORCED):
        size = 0 if structure.part[region] == FREE else int(structure.sizes[region])
        return Deviation(0.0 if size == 1 else math.sqrt(law.variance_in(size)))
    choice = next((choice for choice in blocks.choices if (choice.cells == cell).any()), None)
    return None if choice is None else _simulated_deviation(blocks, choice)


def _simulated_deviation(blocks: BlockSamplers, choice: Choice) -> Deviation | None:
    """The standard deviation over all cells of a group, from the draws of the margins of error if there are any."""
    if choice.sampler is None:
        return None
    if blocks.mechanism.kind == "laplace-l1":
        proposed = _proposed_deviation(choice)
        if proposed is not None:
            return proposed
    noise = simulated(blocks, choice)
    if noise is None:
        noise = np.empty((FEWEST_DRAWS, choice.sampler.width), dtype=np.int64)
        simulate_into(choice.sampler, noise, rng(seed="keepsum comparison"))
    part = noise[:, choice.first : choice.first + len(choice.cells)].astype(np.float64)
    return Deviation.of_squares((part**2).mean(axis=1), choice.chain is not None)


def _proposed_deviation(choice: Choice) -> Deviation | None:
    """The same from the proposals of a chain, weighted, where every region is one cell; else None."""
    from keepsum.sampling.general.chains import MixtureChain

    chain = choice.chain
    if not isinstance(chain, MixtureChain) or not chain.cell_by_cell:
        return None
    number = min(MOST_PROPOSALS, max(PROPOSING // chain.proposals.cost, math.ceil(PASSING * chain.tries)))
    sums, log_weights = chain.proposals.propose(number, rng(seed="keepsum comparison").stream())
    return Deviation.of_weighted((sums.astype(np.float64) ** 2).mean(axis=1), log_weights)


# The paper's tail bounds on the length of the noise, with its constant K, for the lengths where they are proved.
#
# Pr[|z| >= t] <= K t^m exp(-eps t) for l2 Laplace noise (``thm:lap_acc``) and K t^m exp(-t^2 / 2 sigma^2) for
# Gaussian noise (``prop:gaussian``), K = 4 * 2^m V_m / sqrt(det) the larger of the paper's two constants. The paper
# says "for t large enough"; enough is t >= mu / (2^(1/m) - 1), mu the covering radius, together with eps t >= (m + 1)
# ln 2 or t^2 >= 2 sigma^2 (m + 1) ln 2 / 3. Half the square root of the sum of squared Gram-Schmidt lengths is used
# for mu; it is an upper bound.


def valid_from(mechanism: Mechanism, shape: Geometry) -> float:
    """The smallest length at which the bound is proved."""
    if mechanism.kind not in ("laplace-l2", "gaussian"):
        raise InputError(f"Tail bounds need l2 Laplace or Gaussian noise, got {the.noise(repr(mechanism))}.")
    if mechanism.focus:
        raise InputError(f"Tail bounds need noise without a focus, got {the.noise(repr(mechanism))}.")
    if shape.gram_schmidt is None or shape.log_volume is None:
        raise InputError("The tail bound needs the lattice's volume, and a block is too large to compute it.")
    m, scale = shape.dimension, float(mechanism.scale)
    covering = math.sqrt(shape.gram_schmidt) / 2 / math.expm1(math.log(2) / m)
    if mechanism.kind == "gaussian":
        return max(covering, scale * math.sqrt(2 * (m + 1) * math.log(2) / 3))
    return max(covering, (m + 1) * math.log(2) * scale)


def tail_bound(mechanism: Mechanism, shape: Geometry, length: float) -> float:
    """An upper bound on the probability that the noise is at least this long.

    Examples
    --------
    >>> import keepsum as ks
    >>> plan = ks.plan(keep=ks.Invariants.subsets(4, [range(4)]), mechanism=ks.Laplace.per_unit(epsilon=1, norm="l2"))
    >>> round(valid_from(plan.mechanism, plan.geometry), 2), round(plan.tail_bound(20.0), 6)
    (4.23, 0.001105)
    """
    least = valid_from(mechanism, shape)
    length = check_number(length, "The length", 0, math.inf)
    if not length >= least:
        raise InputError(f"The length must be at least {least:.6g}, where the bound is proved, got {length:.6g}.")
    scale = float(mechanism.scale)
    exponent = length**2 / (2 * scale**2) if mechanism.kind == "gaussian" else length / scale
    constant = log_constant(shape.dimension, shape.log_volume or 0.0)
    return math.exp(min(0.0, constant + shape.dimension * math.log(length) - exponent))

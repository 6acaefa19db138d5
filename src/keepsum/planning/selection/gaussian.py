"""Samplers for Gaussian and l2 Laplace noise, which are lattice Gaussians on every block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from keepsum.lattice.structure import System
from keepsum.planning.geometry import block_factor
from keepsum.planning.selection.l1 import BUDGET, Choice
from keepsum.privacy.mechanisms import Laplace, Mechanism
from keepsum.sampling.core.rng import Rng, rng
from keepsum.sampling.gaussian.blocks import BlockGaussian
from keepsum.sampling.gaussian.common_scale import CommonScale
from keepsum.sampling.gaussian.parts import Part, Variances
from keepsum.sampling.gaussian.sums import LatticeGaussian, SumsGaussian, sum_acceptance
from keepsum.sampling.gaussian.tables import TableGaussian
from keepsum.tables.axes import IntArray

# Cells that may be drawn for one accepted draw of a region with its sum kept, which is quick: some seconds.
SLOWEST = 2 * 10**8
ROOM = 2.0**55  # width times cells: the numerators of centres stay a hundred times below 2^63
NARROWEST, WIDEST = Fraction(1, 50), Fraction(10**8)
NARROW = 2  # up to this sigma heat-bath moves are tried where the exact sampler accepts too seldom


def choose_overlap_gaussian(system: System, sizes: IntArray, cells: list[IntArray], mechanism: Mechanism) -> Choice:
    """Blocks of one form: a table in closed form, others by their triangular factor."""
    if system.grid is not None and sizes.max() == 1:
        shape, order = system.grid.shape, system.grid.column.reshape(-1)
        own = np.concatenate([block[order] for block in cells])
        exact = choose_gaussian(mechanism, TableGaussian(shape, len(cells)), own, TableGaussian(shape))
        return _or_narrow(exact, system, sizes, cells, mechanism)
    factor = block_factor(system, sizes.tobytes())
    if factor is None:
        exact = Choice("no sampler: too many totals overlap", None, np.concatenate(cells))
    else:
        part = BlockGaussian(factor, sizes, len(cells))
        exact = choose_gaussian(mechanism, part, np.concatenate(cells), BlockGaussian(factor, sizes))
    return _or_narrow(exact, system, sizes, cells, mechanism)


def _or_narrow(exact: Choice, system: System, sizes: IntArray, cells: list[IntArray], mechanism: Mechanism) -> Choice:
    """Where Gaussian noise is too narrow for the exact sampler, heat-bath moves if they are quick."""
    if exact.sampler is not None or isinstance(mechanism, Laplace) or mechanism.sigma is None:
        return exact
    if not NARROWEST <= mechanism.sigma <= NARROW:
        return exact
    from keepsum.planning.selection.general import choose_narrow

    return choose_narrow(system, sizes, cells, float(mechanism.sigma) ** 2) or exact


def choose_gaussian(mechanism: Mechanism, part: Part, cells: IntArray, one: Part | None = None) -> Choice:
    """Blocks under Gaussian noise; under l2 Laplace noise a part of one sampler for all groups.

    Narrow noise is accepted seldom where many totals overlap. How seldom is estimated before anything is drawn, from
    some draws of one block (``one``; cells under no total are always accepted).
    """
    if isinstance(mechanism, Laplace):
        return Choice("drawn exactly, each cell given those before, at a width common to all", Apart(part), cells)
    if mechanism.sigma is None:
        raise AssertionError("the plan works out sigma")
    if not NARROWEST <= mechanism.sigma <= WIDEST or float(mechanism.sigma) * part.width > ROOM:
        return Choice(f"no sampler: Gaussian noise is drawn for sigma from {NARROWEST} to {WIDEST}", None, cells)
    rate = 1.0 if one is None else acceptance(one, mechanism.sigma**2)
    cost = math.ceil(len(cells) / max(rate, 1e-15))
    if one is not None and one.width / max(rate, 1e-15) > (SLOWEST if isinstance(part, SumsGaussian) else BUDGET):
        why = f"noise as narrow as this would be accepted once in {1 / max(rate, 1e-15):.1g} tries"
        return Choice(f"no sampler: {why}; wider noise, or fewer totals, would do", None, cells)
    words = "drawn exactly, cell by cell" if one is None else "drawn exactly, each cell given those before"
    share = "" if rate > 0.995 else f"; about {100 * rate:.2g}% of tries accepted"
    return Choice(words + share, LatticeGaussian(part, mechanism.sigma**2), cells, cost)


def acceptance(part: Part, variance: Fraction) -> float:
    """The share of tries of a block that are accepted: known for sums, else from some tries with their own seed."""
    if isinstance(part, SumsGaussian):
        return sum_acceptance(part.width, float(variance))
    if part.log_theta_bound(float(variance)) < 1e-9:
        return 1.0
    centred = part.log_theta_centred(float(variance))
    tries = max(4, min(400, 2 * 10**6 // part.width))
    out = np.empty((tries, part.width), dtype=np.int64)
    weights = part.fill(out, Variances.constant(variance, tries), False, rng(seed="keepsum pilot"), 1)
    return float(np.exp(weights - centred).mean())


class Apart:
    """A part of a sampler that draws several groups together; on its own it draws nothing."""

    def __init__(self, part: Part) -> None:
        self.part, self.width = part, part.width

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Never called: ``together`` replaces it."""
        raise AssertionError("drawn together with the other groups")


def together(choices: Sequence[Choice], mechanism: Mechanism) -> tuple[Choice, ...]:
    """l2 Laplace noise has one random width for all groups, so one sampler draws them all."""
    parts = [choice.sampler.part for choice in choices if isinstance(choice.sampler, Apart)]
    if mechanism.epsilon is None or len(parts) < len(choices):
        # A group without a sampler leaves none for the others.
        return tuple(
            replace(choice, sampler=None, words="no sampler: another block has none") if choice.sampler else choice
            for choice in choices
        )
    sampler = CommonScale(mechanism.epsilon, parts)
    if float(sampler.staircase.edges[-1]) * sampler.width > ROOM:
        words = "no sampler: noise as wide as this has no room in 64 bits"
        return tuple(replace(choice, words=words, sampler=None) for choice in choices)
    accepted, tries = sampler.pilot(rng(seed="keepsum pilot"), 400)
    cost = sampler.width * tries // max(1, accepted)
    if not accepted or (cost > BUDGET and accepted < tries / 10):
        why = f"noise as narrow as this would be accepted less than once in {tries} tries"
        return tuple(replace(choice, words=f"no sampler: {why}", sampler=None) for choice in choices)
    firsts = np.cumsum([0, *(part.width for part in parts)]).tolist()
    share = "" if accepted > 0.9 * tries else f"; about {100 * accepted / tries:.2g}% of tries accepted"
    return tuple(
        replace(choice, sampler=sampler, words=choice.words + share, cost=cost, first=first)
        for choice, first in zip(choices, firsts, strict=False)
    )

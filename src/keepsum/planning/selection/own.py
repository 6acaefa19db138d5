"""The sampler of noise of a user's own: their function, tried before it is used, and every draw of it checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum._progress import doing
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.lattice.lattice import Lattice
from keepsum.lattice.structure import Structure
from keepsum.planning.groups import BlockGroup
from keepsum.planning.selection.choice import Choice, Reason, block_cells, free_cells, sums_cells
from keepsum.privacy.own import ClaimedMechanism, Draw
from keepsum.sampling.core.rng import Rng, rng

TRIALS = 16  # draws of a trial
LARGEST_NOISE = 2**62  # of one cell, so that it can be added to any count


class OwnSampler:
    """A function of the user's, for all cells that get noise; it is given what is public alone."""

    def __init__(self, lattice: Lattice, mechanism: ClaimedMechanism, draw: Draw, cells: IntArray) -> None:
        self.lattice, self.mechanism, self.draw = lattice, mechanism, draw
        self.cells, self.width = cells, len(cells)

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw, in one thread."""
        out[:] = self.drawn(len(out), rng)[:, self.cells]

    def drawn(self, draws: int, source: Rng) -> IntArray:
        """Noise of all cells, which must be int64 and keep every total exactly."""
        name, shape = self.mechanism.claim.title, (draws, self.lattice.width)
        rows = self.draw(self.lattice, self.mechanism.stated, draws, source)
        if not isinstance(rows, np.ndarray) or rows.dtype != np.int64:
            kind = f"of {rows.dtype}" if isinstance(rows, np.ndarray) else type_of(rows)
            raise InputError(f"The sampler {name!r} must return an array of int64, got {kind}.")
        if rows.shape != shape:
            raise InputError(f"The sampler {name!r} must return noise of shape {shape}, got {rows.shape}.")
        if rows.size and (rows.min() < -LARGEST_NOISE or rows.max() > LARGEST_NOISE):
            raise InputError(f"The sampler {name!r} must return noise from -2^62 to 2^62, got more.")
        if not np.all(self.lattice.contains(rows)):
            raise InputError(f"The sampler {name!r} must keep every total exactly, and a draw of it does not.")
        return rows

    def try_out(self) -> None:
        """Some draws from seeds, which must depend on these alone: no other randomness, and no fixed numbers."""
        doing("trying the sampler")
        first, again, other = (self.drawn(TRIALS, rng(seed=f"keepsum trial {seed}")) for seed in (1, 1, 2))
        name = self.mechanism.claim.title
        if not np.array_equal(first, again):
            raise InputError(
                f"The sampler {name!r} must take its randomness from the source that it is given alone, and equal "
                "sources gave other noise."
            )
        if first.any() and np.array_equal(first, other):
            raise InputError(
                f"The sampler {name!r} must draw from the source that it is given, and gave the same noise."
            )


def choose_own(
    totals: sparse.csr_array, structure: Structure, groups: Sequence[BlockGroup], mechanism: ClaimedMechanism
) -> tuple[Choice, ...]:
    """One sampler for all groups, after a trial; none where the user's function is not there."""
    choices, first = [], 0
    for group in groups:
        cells = _cells(structure, group)
        choices.append(Choice("own_sampler", None, cells, first=first, exactness="claimed"))
        first += len(cells)
    if mechanism.draw is None:
        return tuple(Choice.none(choice.cells, Reason("sampler_not_given")) for choice in choices)
    together = np.concatenate([choice.cells for choice in choices])
    sampler = OwnSampler(Lattice(totals), mechanism, mechanism.draw, together)
    sampler.try_out()
    return tuple(replace(choice, sampler=sampler, cost=len(together)) for choice in choices)


def _cells(structure: Structure, group: BlockGroup) -> IntArray:
    if group.form.kind == "free":
        return free_cells(structure)
    if group.form.kind == "sums":
        return sums_cells(structure)[0]
    return np.concatenate(block_cells(structure, group.members)[0])

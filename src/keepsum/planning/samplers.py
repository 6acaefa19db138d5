"""The blocks of a plan with their samplers, and how they draw together; cells have no names here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum._copying import WithoutCaches
from keepsum._memory import check_room
from keepsum._progress import doing, portion
from keepsum._saying import the
from keepsum.errors import NoSamplerError
from keepsum.lattice.structure import Structure
from keepsum.planning.describe import describe_alternatives, describe_form, describe_range, describe_refusal
from keepsum.planning.focus import FocusedBlocks, FocusTotals, FocusTrees
from keepsum.planning.geometry import Geometry, geometry
from keepsum.planning.groups import BlockGroup
from keepsum.planning.selection.choice import Choice, Sampler
from keepsum.privacy.distance import Distance, farthest
from keepsum.privacy.guarantee import Exactness
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.own import ClaimedMechanism
from keepsum.sampling.core.rng import Rng


@dataclass(frozen=True, eq=False)
class BlockSamplers(WithoutCaches):
    """Kept totals as blocks, and a mechanism: what is needed to draw noise.

    Attributes
    ----------
    structure
        Regions, forced sums and blocks.
    groups
        The blocks, grouped by form.
    mechanism
        The noise, with every parameter known.
    nested
        The trees of focused totals, if l1 Laplace noise has a focus.
    focused
        The blocks of focused totals of Gaussian noise, and of those of l1 Laplace noise that are in no tree or table.
    totals
        The kept totals themselves, where the noise is of a user's own; other samplers need only their structure.
    """

    structure: Structure
    groups: tuple[BlockGroup, ...]
    mechanism: Mechanism
    nested: FocusTrees | None = None
    focused: FocusedBlocks | None = None
    totals: sparse.csr_array | None = None

    @property
    def _with_focus(self) -> FocusTrees | FocusedBlocks | None:
        return self.nested if self.focused is None else self.focused

    @property
    def noise_structure(self) -> Structure:
        """The structure with cells that a focus concerns in regions of their own: the noise of others is as without."""
        return self.structure if self._with_focus is None else self._with_focus.structure

    @property
    def margins(self) -> tuple[FocusTotals, ...]:
        """The totals of each focus."""
        return () if self._with_focus is None else self._with_focus.margins

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.structure.region)

    @cached_property
    def pinned(self) -> IntArray:
        """The cells that the kept totals determine, so that they get no noise."""
        pinned = self.structure.pinned
        pinned.setflags(write=False)
        return pinned

    @cached_property
    def smallest_change(self) -> Distance:
        """The smallest change through a cell that keeps every total, for the unpinned cell where it is largest."""
        return smallest_change(self.groups, self.weights)

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """Under a focus, the epsilons, or rhos, of cells and of the totals of each level; otherwise nothing."""
        return self.mechanism.request().weights

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """How each group of blocks is sampled; rejection samplers run a pilot here, without any data."""
        from keepsum.planning.selection.select import select  # brings the general samplers

        if isinstance(self.mechanism, ClaimedMechanism) and self.totals is not None:
            from keepsum.planning.selection.own import choose_own

            return choose_own(self.totals, self.structure, self.groups, self.mechanism)
        doing("choosing samplers")
        return select(self.noise_structure, self.groups, self.mechanism, self.nested, self.focused)

    @cached_property
    def fits_exactly(self) -> bool:
        """Whether an exact sampler of every block would fit into memory, known without any; False if that is open."""
        from keepsum.planning.selection.select import fits_exactly

        return fits_exactly(self.noise_structure, self.groups, self.mechanism)

    @cached_property
    def geometry(self) -> Geometry:
        """Dimension, volume and shortest vectors of the lattice."""
        return geometry(self.structure)

    @property
    def exactness(self) -> Exactness:
        """The exactness of the least exact group."""
        return weakest(self.choices)

    def check(self, instead: str = "") -> None:
        """Every block must have a sampler; ``instead`` is a sentence on what does, where that is known.

        Raises
        ------
        NoSamplerError
            If one has none.
        """
        for group, choice in zip(self.groups, self.choices, strict=True):
            if choice.sampler is None:
                if choice.reasons and choice.reasons[0].kind == "sampler_not_given":
                    raise NoSamplerError(
                        "The noise is its publisher's own, and its sampler is not in the certificate. Margins of "
                        "error, and a page, are made where it was released."
                    )
                out_of_range = describe_range(choice.reasons, self.mechanism)
                if out_of_range is not None:
                    raise NoSamplerError(out_of_range)
                what = f"{describe_form(group.form)} under {the.noise(repr(self.mechanism))}"
                alternatives = "" if self.mechanism.focus else describe_alternatives(self.mechanism.kind)
                others = f" {instead or alternatives}".rstrip()
                why = f"{describe_refusal(choice.reasons)}.{others}"
                raise NoSamplerError(f"No sampler for {what}: {why} {the.call('plan.explain()')} shows every block.")

    def sample(self, draws: int, rng: Rng, threads: int = 1) -> IntArray:
        """Draw noise, one row per draw, one column per cell."""
        if draws > 1:
            check_room(draws * self.size, f"{draws:,} draws of {self.size:,} cells", 8)
        self.check()
        in_place = any(cells is None for _, cells, _ in self._drawn_together)
        noise = (np.empty if in_place else np.zeros)((draws, self.size), dtype=np.int64)
        doing("drawing the noise")
        start, whole = 0.0, sum(cost for *_, cost in self._drawn_together)
        for sampler, cells, cost in self._drawn_together if draws else ():
            with portion(start, start + cost / whole):
                _draw_into(noise, sampler, cells, rng, threads)
            start += cost / whole
        return noise

    @cached_property
    def _drawn_together(self) -> list[tuple[Sampler, IntArray | None, int]]:
        """Each sampler with the cells that it draws, of one or several groups, None for all in order; and its cost."""
        cells: dict[int, list[IntArray]] = {}
        samplers: dict[int, Sampler] = {}
        costs: dict[int, int] = {}
        for choice in self.choices:
            if choice.sampler is not None:
                samplers[id(choice.sampler)] = choice.sampler
                costs[id(choice.sampler)] = max(1, choice.cost)
                cells.setdefault(id(choice.sampler), []).append(choice.cells)
        return [(sampler, self._places(cells[key]), costs[key]) for key, sampler in samplers.items()]

    def _places(self, parts: list[IntArray]) -> IntArray | None:
        cells = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return None if len(cells) == self.size and cells[0] == 0 and (np.diff(cells) == 1).all() else cells


def smallest_change(groups: Sequence[BlockGroup], weights: Sequence[Fraction] = ()) -> Distance:
    """The smallest change through a cell that keeps every total, for the unpinned cell where it is largest."""
    return farthest([group.distance for group in groups], weights)


def weakest(choices: Sequence[Choice]) -> Exactness:
    """The exactness of the least exact of these."""
    if any(choice.sampler is None for choice in choices):
        return "no sampler"
    order: tuple[Exactness, ...] = ("exact", "rounded", "estimated", "claimed")
    return max((choice.exactness for choice in choices), key=order.index)


def _draw_into(noise: IntArray, sampler: Sampler, cells: IntArray | None, rng: Rng, threads: int) -> None:
    """Draw into the cells that a sampler covers; in place where these are all cells in order."""
    if cells is None:
        sampler.draw_into(noise, rng, threads)
        return
    part = np.empty((len(noise), len(cells)), dtype=np.int64)
    sampler.draw_into(part, rng, threads)
    noise[:, cells] = part

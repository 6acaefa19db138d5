"""From kept totals and a mechanism to a plan: regions, then blocks, then a sampler for each.

The plan sees no counts. It can be made, read and shown to anybody before a budget is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from keepsum._arguments import check_whole
from keepsum._memory import check_room
from keepsum._text import type_of
from keepsum.errors import InputError, NoSamplerError, PlanError
from keepsum.lattice.structure import Structure, decompose
from keepsum.planning.describe import describe_form, describe_refusal
from keepsum.planning.distances import AttributeDistance, attribute_distances, farthest, one_person
from keepsum.planning.geometry import Geometry, geometry
from keepsum.planning.groups import BlockGroup, groups_of
from keepsum.planning.selection.choice import Choice, Sampler
from keepsum.privacy.guarantee import Guarantee, Level, SamplingError
from keepsum.privacy.mechanisms import Distance, Gaussian, Laplace, Mechanism, Number, Promise
from keepsum.sampling.core.rng import Rng, checked_rng
from keepsum.tables.axes import IntArray
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants

if TYPE_CHECKING:
    from keepsum.accuracy.law import Noise
    from keepsum.accuracy.margins import Accuracy
    from keepsum.convergence.observe import Convergence
    from keepsum.releasing.release import Release
    from keepsum.tables.table import Table


# What a plan works out once, whatever its cells are called.
_SHARED = ("samplers", "geometry", "_certification")


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A compiled release: immutable, free of data, safe to share between threads.

    Made by :func:`plan`.

    Examples
    --------
    >>> import keepsum as ks
    >>> domain = ks.Domain({"county": ["Alpha", "Beta", "Gamma"], "education": ["low", "high"]})
    >>> plan = ks.plan(ks.Invariants.margins(domain, [["county"], ["education"]]), ks.Laplace(epsilon=0.25))
    >>> plan
    Plan(6 cells, 4 independent totals kept, Laplace(epsilon=0.25, norm='l1'))
    >>> plan.person_distance, plan.pinned.tolist()
    (4, [])
    >>> [(attribute.axis, str(attribute.any_value)) for attribute in plan.attributes]
    [('county', '4'), ('education', '4')]
    """

    invariants: Invariants
    mechanism: Mechanism
    structure: Structure
    groups: tuple[BlockGroup, ...]
    promise: Promise | None = None  # what was asked for one person, if a loss per person was

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.invariants.size

    @cached_property
    def pinned(self) -> IntArray:
        """The cells that no noise can reach: the kept totals give them away."""
        pinned = self.structure.pinned
        pinned.setflags(write=False)
        return pinned

    @cached_property
    def attributes(self) -> tuple[AttributeDistance, ...]:
        """What a change of each attribute costs, to any value and to some other value; none for cells without names."""
        return attribute_distances(self.invariants, self.structure, self.mechanism.norm)

    @cached_property
    def cheapest(self) -> Distance:
        """The largest, over unpinned cells, of the smallest change through the cell that keeps every total."""
        return farthest([group.distance for group in self.groups])

    @cached_property
    def person(self) -> Distance:
        """The distance of one person: a change of any attribute to any value. Without names, the cheapest change."""
        return one_person(self.attributes, self.cheapest)

    @property
    def person_distance(self) -> int | float:
        """The distance of one person, as a number."""
        return self.person.value

    @property
    def guarantee(self) -> Guarantee:
        """What a release promises; never more than its weakest block."""
        level = weakest(self.samplers)
        error: SamplingError | None
        if level == "rounded":
            error = SamplingError(sum(choice.rounding for choice in self.samplers))
        else:
            error = self.certification.error if level == "estimated" and self.certification else None
        return Guarantee(self.mechanism, self.person, level, error)

    @property
    def certification(self) -> Convergence | None:
        """What ``certify`` found; None before, or if it is not needed."""
        return self.__dict__.get("_certification")

    def certify(
        self,
        pairs: int | None = None,
        confidence: float = 0.95,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Convergence:
        """Show how near the chains of this plan come to their law, and remember it.

        Pairs of chains, one some steps ahead of the other, see the same proposals until they meet; when they meet tells
        how far a chain is from its law (Biswas, Jacob and Vanetti 2019). It needs no data and spends no budget. What
        was found is kept in the user's cache folder, so that a run that was stopped goes on.

        Parameters
        ----------
        pairs
            How many pairs for each form of blocks; by default 4,000, fewer where they would take long.
        confidence
            The level of the limit.
        threads
            How many threads to use, by default all.
        progress
            Called with the pairs done and those wanted.

        Returns
        -------
        Convergence
            For each form of blocks the limit observed and its extrapolation. Where nothing is drawn by chains there is
            nothing to show, and nothing is run.
        """
        from keepsum.convergence.observe import observe_all

        chains = [(choice.chain, group.blocks) for group, choice in zip(self.groups, self.samplers, strict=True)]
        rounding = sum(choice.rounding for choice in self.samplers)
        convergence = observe_all(chains, rounding, pairs, confidence, threads, progress)
        self.recall(convergence)
        return convergence

    def recall(self, found: Convergence | None) -> None:
        """Remember what was certified of this plan, now or by somebody else: all its chains, and nothing else."""
        if found is not None and not hasattr(found, "groups"):
            raise InputError(f"What was observed must be a Convergence, got {type_of(found)}. See plan.certify.")
        if found is not None and [group is not None for group in found.groups] != [
            choice.chain is not None for choice in self.samplers
        ]:
            raise InputError("What was observed must be of this plan's chains, it is of others.")
        self.__dict__["_certification"] = found

    @cached_property
    def samplers(self) -> tuple[Choice, ...]:
        """How each group of blocks is sampled; rejection samplers are tried out here, without any data."""
        from keepsum.planning.selection.select import select

        return select(self.structure, self.groups, self.mechanism)

    @property
    def sigma(self) -> Fraction | None:
        """The width of Gaussian noise, exactly as it is drawn; None for Laplace noise."""
        return self.mechanism.sigma if isinstance(self.mechanism, Gaussian) else None

    @cached_property
    def geometry(self) -> Geometry:
        """Dimension, volume and shortest vectors of the lattice."""
        return geometry(self.structure)

    @cached_property
    def noise(self) -> Noise:
        """The law of the noise: variances and intervals of single cells."""
        from keepsum.accuracy.law import Noise

        return Noise(self)

    def accuracy(self, level: float = 0.95) -> Accuracy:
        """The margin of error of every cell: what a release will be like, without spending any budget."""
        from keepsum.accuracy.margins import accuracy

        return accuracy(self, level)

    def tail_bound(self, length: float) -> float:
        """The paper's bound of the chance that the noise is at least that long, in the l2 norm."""
        from keepsum.accuracy.tails import tail_bound

        return tail_bound(self, length)

    def explain(self) -> str:
        """What is kept, the blocks, the guarantee, the pinned cells and what one person costs, for a person."""
        from keepsum.releasing.explain import explain

        return explain(self)

    def sample(self, size: int | None = None, rng: Rng | None = None, threads: int = 1) -> IntArray:
        """Draw noise that keeps every total.

        Parameters
        ----------
        size
            How many draws; without it one, as a flat vector.
        rng
            The source of randomness; by default the operating system's. The same seed gives the same noise for any
            number of threads.
        threads
            How many threads to use.

        Returns
        -------
        numpy.ndarray
            int64, one row a draw, one column a cell.
        """
        draws = 1 if size is None else check_whole(size, "The number of draws", 0)
        threads = check_whole(threads, "The number of threads", 1)
        source = checked_rng(rng)
        if draws > 1:
            check_room(draws * self.size, f"{draws:,} draws of {self.size:,} cells", 8)
        self.check_samplers()
        noise = np.zeros((draws, self.size), dtype=np.int64)
        for sampler, cells in self._drawn_together:
            if len(noise):
                _draw_into(noise, sampler, cells, source, threads)
        return noise[0] if size is None else noise

    @cached_property
    def _drawn_together(self) -> list[tuple[Sampler, IntArray | None]]:
        """The samplers, each with the cells that it draws, of one group or of several; None for all cells in order."""
        cells: dict[int, list[IntArray]] = {}
        samplers: dict[int, Sampler] = {}
        for choice in self.samplers:
            if choice.sampler is not None:
                samplers[id(choice.sampler)] = choice.sampler
                cells.setdefault(id(choice.sampler), []).append(choice.cells)
        return [(sampler, self._places(cells[key])) for key, sampler in samplers.items()]

    def _places(self, parts: list[IntArray]) -> IntArray | None:
        cells = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return None if len(cells) == self.size and cells[0] == 0 and (np.diff(cells) == 1).all() else cells

    def check_samplers(self) -> None:
        """Every block must have a sampler.

        Raises
        ------
        NoSamplerError
            If one has none.
        """
        for group, choice in zip(self.groups, self.samplers, strict=True):
            if choice.sampler is None:
                blocks = f"{describe_form(group.form)} under {self.mechanism!r}"
                why = describe_refusal(choice.reasons)
                raise NoSamplerError(f"No sampler for {blocks}: {why}. plan.explain() shows every block.")

    def release(
        self,
        table: Table,
        *,
        accept_pinned: str | Iterable[Any] = (),
        accept_delta: Number | None = None,
        rng: Rng | None = None,
        threads: int = 1,
    ) -> Release:
        """Release a table by this plan; see :func:`keepsum.release`."""
        from keepsum.releasing.release import prepare

        threads = check_whole(threads, "The number of threads", 1)
        if rng is not None:
            checked_rng(rng)
        seeded = rng is not None and rng.seeded
        return prepare(self, table, accept_pinned, seeded, accept_delta=accept_delta).draw(rng, threads)

    def over(self, domain: Domain) -> Plan:
        """The same plan with its cells named by a domain.

        Raises
        ------
        PlanError
            If a loss was asked for one person: what one person is depends on the names.
        """
        if self.promise is not None:
            raise PlanError(
                "A loss per person must be planned over the table's own domain, this plan has no names of cells. "
                "Make the totals with invariants.over(table.domain)."
            )
        named = replace(self, invariants=self.invariants.over(domain))
        named.__dict__.update({name: self.__dict__[name] for name in _SHARED if name in self.__dict__})
        return named

    def __repr__(self) -> str:
        rank = self.structure.rank
        return f"Plan({self.size:,} cells, {rank:,} independent total{'s' * (rank != 1)} kept, {self.mechanism!r})"

    def _repr_html_(self) -> str:
        from keepsum.releasing.explain import explain_html

        return explain_html(self)


def plan(invariants: Invariants, mechanism: Mechanism) -> Plan:
    """Compile kept totals and a mechanism into a plan.

    Parameters
    ----------
    invariants
        The totals to keep.
    mechanism
        ``Laplace`` or ``Gaussian``; a loss per person is turned into one per unit of distance here.

    Raises
    ------
    PlanError
        If the totals leave no cell any freedom: there is then nothing to protect and no guarantee to state.

    Notes
    -----
    Linear in the cells times the totals that each stands in, plus exact algebra on the blocks whose totals overlap.
    """
    if not isinstance(invariants, Invariants):
        raise InputError(f"Totals to keep must be Invariants, got {type_of(invariants)}. See table.keep.")
    if not isinstance(mechanism, (Laplace, Gaussian)):
        raise InputError(f"Mechanism must be Laplace or Gaussian, got {type_of(mechanism)}.")
    structure = decompose(invariants.coefficients)
    if len(structure.pinned) == invariants.size:
        raise PlanError(
            "The kept totals fix every cell, so a release would publish the table as it is and protect nothing. "
            "Keep fewer totals."
        )
    made = Plan(invariants, mechanism, structure, tuple(groups_of(structure, mechanism.norm)), mechanism.asked)
    if mechanism.asked is None:
        resolved = mechanism.resolve(Distance(mechanism.norm, 1), lambda: geometry(structure))
    else:
        promised = one_person(made.attributes, made.cheapest, mechanism.asked)
        resolved = mechanism.resolve(promised, lambda: geometry(structure))
    return replace(made, mechanism=resolved)


def weakest(choices: Sequence[Choice]) -> Level:
    """How exactly the least exact of these is drawn."""
    if any(choice.sampler is None for choice in choices):
        return "no sampler"
    order: tuple[Level, ...] = ("exact", "rounded", "estimated")
    return max((choice.exactness for choice in choices), key=order.index)


def _draw_into(noise: IntArray, sampler: Sampler, cells: IntArray | None, rng: Rng, threads: int) -> None:
    """Draw into the cells that a sampler covers; straight into place where these are all cells in order."""
    if cells is None:
        sampler.draw_into(noise, rng, threads)
        return
    own = np.empty((len(noise), len(cells)), dtype=np.int64)
    sampler.draw_into(own, rng, threads)
    noise[:, cells] = own

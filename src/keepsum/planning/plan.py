"""Kept totals and a mechanism, compiled: regions, blocks, a sampler for each, and the guarantee.

Every decision about a release is made here, without any data. **Start here** to see the whole idea: ``compile_plan``
decomposes the totals (``lattice/structure.py``), groups blocks of one form (``groups.py``), computes the distances
between tables that differ by one person (``distances.py``), fixes the parameters of the noise (``privacy``), and
chooses samplers (``selection``). Users hold it in the ``Plan`` of ``facade/objects.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray
from keepsum._copying import WithoutCaches
from keepsum._holding import Holding
from keepsum._saying import arg, the
from keepsum._text import type_of
from keepsum.convergence.observe import Convergence, observe_all, smallest_error
from keepsum.errors import InputError, PlanError
from keepsum.lattice.determined import determined
from keepsum.lattice.structure import Structure, decompose
from keepsum.planning.crossing import CrossingTotalsError
from keepsum.planning.describe import Obstacle, obstacle_of
from keepsum.planning.distances import AnyChanges, AttributeDistance, Distances, KeptMargins
from keepsum.planning.focus import FocusedBlocks, FocusTrees, focused_blocks, nested_totals
from keepsum.planning.focus_changes import CrossingChanges, FocusedChanges
from keepsum.planning.geometry import Geometry, geometry
from keepsum.planning.groups import BlockGroup, groups_of
from keepsum.planning.lattice_distances import LatticeDistances
from keepsum.planning.quotient import Quotient
from keepsum.planning.samplers import BlockSamplers, smallest_change
from keepsum.planning.selection.choice import Choice
from keepsum.privacy import as_request
from keepsum.privacy.distance import Distance, Neighbours, Norm
from keepsum.privacy.focus import Level, focus_by_key
from keepsum.privacy.gaussian import Gaussian
from keepsum.privacy.guarantee import Guarantee, SamplingError
from keepsum.privacy.laplace import Laplace
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import Loss
from keepsum.privacy.own import OwnNoise
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.origins import Records, changes_of, subject_of

if TYPE_CHECKING:
    from keepsum.sampling.general.chains import Chain

P = TypeVar("P", bound="CompiledPlan")


@dataclass(frozen=True, eq=False, repr=False)
class CompiledPlan(WithoutCaches):
    """A compiled release as data: immutable, free of counts, safe to share between threads.

    Attributes
    ----------
    invariants
        The kept totals, with the names of cells and totals.
    blocks
        The blocks and their samplers.
    distances
        The distances between tables that differ by one person.
    neighbours
        Which changes of one person the requested loss covers; None for a loss per unit of distance.
    convergence
        What coupled chains showed; None where no block is drawn by chains, or it has not been measured yet.
    records
        How many records one person has at most, and whose they are; None for a table of counts.
    quotient
        The groups that cells are taken together in, if they are: ``structure`` and the samplers are then of groups.
    """

    invariants: Invariants
    blocks: BlockSamplers
    distances: Distances
    neighbours: Neighbours | None = None
    convergence: Convergence | None = None
    records: Records | None = None
    quotient: Quotient | None = None

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.invariants.size

    @property
    def mechanism(self) -> Mechanism:
        """The noise, with every parameter known."""
        return self.blocks.mechanism

    @property
    def structure(self) -> Structure:
        """Regions, forced sums and blocks."""
        return self.blocks.structure

    @property
    def groups(self) -> tuple[BlockGroup, ...]:
        """The blocks, grouped by form."""
        return self.blocks.groups

    @property
    def samplers(self) -> tuple[Choice, ...]:
        """How each group of blocks is sampled."""
        return self.blocks.choices

    @property
    def geometry(self) -> Geometry:
        """Dimension, volume and shortest vectors of the lattice."""
        return self.blocks.geometry

    @property
    def pinned(self) -> IntArray:
        """The cells that the kept totals determine, so that they get no noise."""
        if self.quotient is None:
            return self.blocks.pinned
        return np.array([self.quotient.only_cell(group) for group in self.blocks.pinned.tolist()], dtype=np.int64)

    @property
    def attributes(self) -> tuple[AttributeDistance, ...]:
        """The distances of each attribute, to any value and to some other value; none for cells without names."""
        return self.distances.by_attribute

    @cached_property
    def obstacle(self) -> Obstacle | None:
        """The kept margins that stand in the way of exact l1 Laplace noise, where it is not drawn exactly."""
        overlapping = [block.system for block in self.structure.blocks]
        if self.mechanism.kind != "laplace-l1" or all(system.collapses is not None for system in overlapping):
            return None
        kept = KeptMargins.of(self.invariants) if self.guarantee.sampling != "exact" else None
        return None if kept is None else obstacle_of(kept)

    @property
    def smallest_change(self) -> Distance:
        """The smallest change through a cell that keeps every total, for the unpinned cell where it is largest.

        For a person of several records it is that many times as long.
        """
        return self.blocks.smallest_change.times(changes_of(self.records))

    @cached_property
    def person(self) -> Distance | None:
        """The distance of one person: any attribute changed to any value; None where it cannot be stated."""
        return self.distances.person

    @property
    def person_distance(self) -> int | float | None:
        """The distance of one person, as a number."""
        return None if self.person is None else self.person.value

    @cached_property
    def asked_distance(self) -> Distance | None:
        """The distance of the neighbours that the requested loss covers, by default of any one person."""
        return self.person if self.neighbours is None else self.distances.of_neighbours(self.neighbours)

    @property
    def stated_loss(self) -> Loss:
        """The loss of the mechanism for one person, or at distance 1 where none is stated for a person."""
        return Guarantee(self.mechanism, self.person, "exact").stated_loss  # chooses no sampler

    @property
    def guarantee(self) -> Guarantee:
        """What a release guarantees; never more than its weakest block."""
        exactness = self.blocks.exactness
        error: SamplingError | None = None
        if exactness == "rounded":
            error = SamplingError(sum(choice.rounding for choice in self.samplers))
        elif exactness == "estimated" and self.convergence is not None:
            error = self.convergence.error
        return Guarantee(self.mechanism, self.person, exactness, error, subject_of(self.records))

    @property
    def smallest_error(self) -> SamplingError:
        """What coupled chains can show at best: known before ``certify`` measures anything."""
        return smallest_error(self._chains)

    @property
    def _chains(self) -> list[tuple[Chain | None, int]]:
        """The chain of each group, if it has one, and how many blocks it has."""
        return [(choice.chain, group.blocks) for group, choice in zip(self.groups, self.samplers, strict=True)]

    def check_samplers(self) -> None:
        """Every block must have a sampler; ``NoSamplerError`` if one has none."""
        self.blocks.check()

    def certify(
        self: P,
        pairs: int | None = None,
        confidence: float = 0.95,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> P:
        """The plan with how close its chains come to their target; see ``ks.Plan.certify``."""
        rounding = sum(choice.rounding for choice in self.samplers)
        return self.with_convergence(observe_all(self._chains, rounding, pairs, confidence, threads, progress))

    def with_convergence(self: P, shown: Convergence | None) -> P:
        """The same plan with what its coupled chains showed: one result for each of its chains."""
        if shown is not None and not isinstance(shown, Convergence):
            raise InputError(
                f"Convergence must be a Convergence, got {type_of(shown)}. Use {the.call('plan.certify()')}."
            )
        if shown is not None and [group is not None for group in shown.groups] != [
            choice.chain is not None for choice in self.samplers
        ]:
            raise InputError(
                f"Convergence must be that of this plan's chains, got that of others. Use {the.call('plan.certify()')}."
            )
        return replace(self, convergence=shown)

    def over(self: P, domain: Domain) -> P:
        """The same plan with its cells named by a domain.

        Raises
        ------
        PlanError
            If a per-person loss was requested: it depends on the names.
        """
        if self.neighbours is not None:
            raise PlanError(
                f"A per-{subject_of(self.records)} loss needs named cells, and this plan has none. Declare the totals "
                f"with {the.call('invariants.over(table.domain)')}."
            )
        named = self.invariants.over(domain)
        return replace(self, invariants=named, distances=replace(self.distances, invariants=named))

    def __repr__(self) -> str:
        rank = self.structure.rank
        asked = None if self.neighbours is None else self.asked_distance
        losses = [] if asked is None or self.person is None else [self.guarantee.person_words]
        if asked is not None and self.neighbours is not None and self.neighbours.changes:
            losses.append(f"{self.guarantee.at(asked)} {self.neighbours.changes}")
        person = "".join(f"{loss}, " for loss in losses)
        kept = f"{rank:,} independent total{'s' * (rank != 1)} kept"
        return f"Plan({self.size:,} cells, {kept}, {person}{self.mechanism!r})"


AnyPlan: TypeAlias = CompiledPlan | Holding[CompiledPlan]  # as the layers hold it, or as users do


def structure_of(invariants: Invariants, quotient: Quotient | None = None) -> Structure:
    """The regions and blocks of kept totals, which must leave a cell to add noise to."""
    structure = decompose(invariants.coefficients, None if quotient is None else quotient.sizes)
    if len(structure.pinned) == invariants.size:
        raise PlanError(
            f"{arg.keep.called('The kept totals')} determine every cell: a release would publish the table without "
            f"noise. {arg.keep.called('Keep fewer totals')}."
        )
    return structure


def compile_plan(
    invariants: Invariants,
    request: Request | Mechanism,
    records: Records | None = None,
    others: Sequence[CompiledPlan] = (),
    in_groups: bool = False,
    by_lattice: bool = False,
) -> CompiledPlan:
    """Kept totals and a requested mechanism to a plan; see ``ks.plan``.

    ``records`` are those behind the table; ``others`` are plans of the same totals and records with other noise, whose
    structure and distances are used again. ``in_groups`` takes cells together that no total tells apart. ``by_lattice``
    states the distances of one person as ``keepsum.certificate/2`` does.
    """
    if not isinstance(invariants, Invariants):
        raise InputError(f"Totals to keep must be Invariants, got {type_of(invariants)}. See {the.call('table.keep')}.")
    request = as_request(request)
    if in_groups and isinstance(request, OwnNoise):
        raise PlanError("Noise of your own is drawn cell by cell, on one machine: a table in groups has none.")
    quotient = Quotient.of(invariants, request.focus) if in_groups else None
    totals = invariants if quotient is None else quotient.totals
    structure = others[0].structure if others else structure_of(totals, quotient)
    nested, blocks, focused = _focused(request, totals, structure, others)
    if quotient is not None and request.focus and (nested is None or nested.tables or structure.blocks):
        raise PlanError(
            "Focused totals of a table in groups must be nested with the kept ones, which must not overlap, under l1 "
            "Laplace noise. Plan it cell by cell, on one machine."
        )
    groups = tuple(_groups(structure, request, nested, blocks, focused))
    changes = changes_of(records)
    known = (other.distances for other in others if other.distances.norm == request.norm)
    known = (distances for distances in known if distances.focused is focused)
    kind = LatticeDistances if by_lattice else Distances
    distances = next(known, None) or kind(
        invariants, structure, request.norm, changes, focused, quotient, tuple(request.focus), tuple(request.weights)
    )
    if request.neighbours is None:
        mechanism = request.resolve(None, lambda: geometry(structure))
    else:
        mechanism = request.resolve(distances.of_neighbours(request.neighbours), lambda: geometry(structure))
    given = invariants.coefficients if isinstance(request, OwnNoise) else None
    samplers = BlockSamplers(structure, groups, mechanism, nested, blocks, given)
    return CompiledPlan(invariants, samplers, distances, request.neighbours, records=records, quotient=quotient)


def focused_distances(
    invariants: Invariants,
    structure: Structure,
    norm: Norm,
    changes: int,
    levels: Sequence[Level],
    weights: Sequence[Fraction],
) -> Distances:
    """The distances of one person under a focus, as a plan has them: of weights for cells and for each level."""
    cells, *others = weights
    keys = focus_by_key([replace(level, weight=weight) for level, weight in zip(levels, others, strict=True)])
    request = Laplace.per_unit(cells, focus=keys) if norm == "l1" else Gaussian.per_unit(rho=cells, focus=keys)
    _, _, focused = _focused(request, invariants, structure, ())
    return Distances(invariants, structure, norm, changes, focused, None, tuple(request.focus), tuple(request.weights))


def _focused(
    request: Request, invariants: Invariants, structure: Structure, others: Sequence[CompiledPlan]
) -> tuple[FocusTrees | None, FocusedBlocks | None, AnyChanges | None]:
    """Trees or blocks of focused totals, and what changes cost: those of another plan if they are the same."""
    if not request.focus:
        return None, None, None
    keys = [level.key for level in request.focus]
    for other in others:
        changes, known = other.distances.focused, [level.key for level in other.mechanism.focus]
        if changes is not None and known == keys and other.mechanism.norm == request.norm:
            if not changes.proportional_to(request.weights):
                changes = _changes(request, invariants, structure, other.blocks.nested, other.blocks.focused)
            return other.blocks.nested, other.blocks.focused, changes
    nested = None
    if request.norm == "l1":
        with suppress(CrossingTotalsError):
            nested = nested_totals(request.focus, invariants, structure)
    blocks = focused_blocks(request.focus, invariants) if nested is None else None
    return nested, blocks, _changes(request, invariants, structure, nested, blocks)


def _changes(
    request: Request,
    invariants: Invariants,
    structure: Structure,
    nested: FocusTrees | None,
    blocks: FocusedBlocks | None,
) -> AnyChanges:
    """What changes cost under a focus: exactly where totals are nested, otherwise at most."""
    if request.norm == "l2":
        with suppress(CrossingTotalsError):
            found = nested_totals(request.focus, invariants, structure)
            nested = None if found.spanning else found  # squares of what two vectors do to one total do not add up
    if nested is not None or blocks is None:
        if nested is None:
            raise AssertionError("there is a focus")
        return FocusedChanges(nested, request.weights, request.norm)
    ones = sparse.csr_array(np.ones((1, invariants.size), dtype=np.int64))
    balanced = bool(determined(structure, ones).all())
    one_sided = not balanced and bool((invariants.coefficients.data < 0).any())
    return CrossingChanges(blocks.margins, structure, balanced, one_sided, request.weights, request.norm)


def _groups(
    structure: Structure,
    request: Request,
    nested: FocusTrees | None,
    blocks: FocusedBlocks | None,
    focused: AnyChanges | None,
) -> Iterator[BlockGroup]:
    """The blocks by form; in l1 Laplace noise with trees of focused totals as one, and tables of those that cross."""
    if nested is not None and isinstance(focused, FocusedChanges):
        yield from (group.without_focus(focused.levels) for group in groups_of(nested.structure, request.norm))
        yield from focused.groups()
    elif blocks is not None and focused is not None:
        all_cover = all(margin.covers for margin in blocks.margins)
        through = smallest_change(list(groups_of(structure, request.norm)))
        bounds = focused.most_through(through.length)
        yield from blocks.groups(replace(through, exact=through.length == 1 and all_cover, focused=bounds))
    else:
        yield from groups_of(structure, request.norm)

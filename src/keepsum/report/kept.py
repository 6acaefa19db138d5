"""What a release keeps exactly, for its report: the totals, the cells that follow from them, what they disclose."""

from __future__ import annotations

from dataclasses import dataclass

from keepsum.accuracy.disclosure import Bounds, listed
from keepsum.planning.plan import CompiledPlan
from keepsum.releasing.facts import MarginRecord, PartRecord, ReleaseFacts
from keepsum.releasing.statements import part_words

LISTED = 12  # totals of a part, or pinned or bounded cells, that are listed


@dataclass(frozen=True)
class KeptPart:
    """Totals that are kept together, in words; with their labels and values where they are few."""

    words: str
    totals: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Kept:
    """What is exact: totals, and the cells that follow from them; and what they disclose."""

    parts: tuple[KeptPart, ...]
    totals: int
    independent: int
    pinned: int
    pinned_cells: tuple[str, ...]
    bounded: int
    bounded_cells: tuple[tuple[str, int, int], ...]
    not_checked: int


def kept_of(facts: ReleaseFacts, plan: CompiledPlan, bounds: Bounds) -> Kept:
    """What a release keeps; the values of totals are those of its certificate, which its table has too."""
    name = plan.invariants.cell_name
    words = part_words(facts.kept, facts.domain)
    return Kept(
        parts=tuple(KeptPart(text, _totals(part)) for text, part in zip(words, facts.kept.parts, strict=True)),
        totals=sum(len(part.totals) for part in facts.kept.parts),
        independent=plan.structure.rank,
        pinned=len(facts.exposure.pinned),
        pinned_cells=tuple(name(int(cell)) for cell in plan.pinned[:LISTED]),
        bounded=facts.exposure.bounded,
        bounded_cells=tuple((name(cell), low, high) for cell, low, high in listed(bounds, LISTED)),
        not_checked=facts.exposure.not_checked,
    )


def _totals(part: PartRecord) -> tuple[tuple[str, int], ...]:
    """The totals of a part by name; none if they are many, which only their number decides."""
    if len(part.totals) > LISTED:
        return ()
    if isinstance(part, MarginRecord):
        return tuple((", ".join(map(str, total.labels)), int(total.value)) for total in part.totals)
    return tuple((total.name, int(total.value)) for total in part.totals)

"""From the kind of a mechanism to the samplers of its groups of blocks.

A new mechanism names its kind; its samplers are one file beside this one and one case here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keepsum.lattice.structure import Block, Structure
from keepsum.planning.focus import FocusedBlocks, FocusTrees
from keepsum.planning.groups import BlockGroup
from keepsum.planning.selection.choice import Choice
from keepsum.privacy.mechanism import Kind, Mechanism


@dataclass(frozen=True)
class Selection:
    """The samplers of one kind of mechanism.

    Attributes
    ----------
    free, sums, overlap
        The samplers of cells under no total, of regions with their sum kept, and of blocks whose totals overlap.
    together
        Combines the samplers of all groups into one, where their noise is not independent.
    """

    free: Callable[[Structure, Mechanism], Choice]
    sums: Callable[[Structure, Mechanism], Choice]
    overlap: Callable[[Structure, Sequence[Block], Mechanism], Choice]
    together: Callable[[Sequence[Choice], Mechanism], tuple[Choice, ...]] | None = None


def selection_of(kind: Kind) -> Selection:
    """The samplers of a kind of mechanism; only these are loaded."""
    match kind:
        case "laplace-l1":
            from keepsum.planning.selection import l1

            return Selection(l1.choose_free, l1.choose_sums, l1.choose_overlap)
        case "laplace-l2":
            from keepsum.planning.selection import common_scale as scale

            return Selection(scale.choose_free, scale.choose_sums, scale.choose_overlap, scale.together)
        case "gaussian":
            from keepsum.planning.selection import gaussian

            return Selection(gaussian.choose_free, gaussian.choose_sums, gaussian.choose_overlap)
        case "own":
            raise AssertionError("noise of a user's own has no samplers of ours")


def select(
    structure: Structure,
    groups: Sequence[BlockGroup],
    mechanism: Mechanism,
    nested: FocusTrees | None = None,
    focused: FocusedBlocks | None = None,
) -> tuple[Choice, ...]:
    """How each group of blocks is sampled; rejection samplers run a pilot here, without any data."""
    selection = selection_of(mechanism.kind)
    choices = tuple(_choose(selection, structure, group, mechanism, nested, focused) for group in groups)
    return choices if selection.together is None else selection.together(choices, mechanism)


def fits_exactly(structure: Structure, groups: Sequence[BlockGroup], mechanism: Mechanism) -> bool:
    """Whether all blocks have an exact sampler whose tables are small enough, as far as that is known without them."""
    if mechanism.kind != "laplace-l1" or mechanism.focus:
        return False
    from keepsum.planning.selection.l1 import fits

    return all(not group.members or fits(structure, group.members, mechanism) for group in groups)


def _choose(
    selection: Selection,
    structure: Structure,
    group: BlockGroup,
    mechanism: Mechanism,
    nested: FocusTrees | None,
    focused: FocusedBlocks | None,
) -> Choice:
    if group.form.kind == "nested" and nested is not None:
        from keepsum.planning.selection.l1_focus import choose_nested  # of l1 Laplace noise

        return choose_nested(nested, mechanism)
    if group.form.kind == "focused" and focused is not None:
        if mechanism.kind == "gaussian":
            from keepsum.planning.selection.gaussian import choose_focused
        else:
            from keepsum.planning.selection.l1_focus import choose_focused

        return choose_focused(focused, group.members, mechanism)
    if group.form.kind == "crossed":
        from keepsum.planning.selection.l1_focus import choose_crossed

        return choose_crossed(group.tables, mechanism)
    if group.form.kind == "free":
        return selection.free(structure, mechanism)
    if group.form.kind == "sums":
        return selection.sums(structure, mechanism)
    return selection.overlap(structure, group.members, mechanism)

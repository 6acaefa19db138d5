"""The plan in words: plain text for a terminal, HTML for a notebook."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from keepsum._text import printable
from keepsum.lattice.structure import FREE
from keepsum.planning.describe import describe_choice, describe_form
from keepsum.planning.distances import AttributeDistance, one_person
from keepsum.privacy.mechanisms import Distance, Promise
from keepsum.releasing.compare import compare

if TYPE_CHECKING:
    from keepsum.planning.groups import BlockGroup
    from keepsum.planning.plan import Plan

SHOWN_CELLS = 8
SHOWN_ROWS = 20
SHOWN_BLOCKS = 10
WIDTH = 96


def explain(plan: Plan) -> str:
    """The plan as text, one heading a topic."""
    return as_text(topics(plan))


def as_text(sections: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Titles and lines in two columns."""
    return "\n".join(_section(printable(title), [printable(line) for line in lines]) for title, lines in sections)


def explain_html(plan: Plan) -> str:
    """The plan as a table, one row a topic."""
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{html.escape(title)}</th>'
        f'<td style="text-align:left">{"<br>".join(html.escape(line) for line in lines)}</td></tr>'
        for title, lines in topics(plan)
    )
    return f"<table>{rows}</table>"


def topics(plan: Plan) -> list[tuple[str, list[str]]]:
    """What there is to say of a plan: titles, and the lines below each."""
    return [
        ("Table", [_table(plan)]),
        ("Kept exactly", _kept(plan)),
        ("Noise", _noise(plan)),
        ("Blocks", _blocks(plan)),
        ("Guarantee", _guarantee(plan)),
        ("One person", _person(plan)),
        ("Pinned cells", _pinned(plan)),
        ("Other noise", compare(plan)),
    ]


def _section(title: str, lines: Sequence[str]) -> str:
    wrapped = [
        part
        for line in lines
        for part in textwrap.wrap(
            line, WIDTH - 16, subsequent_indent=" " * _indent(line), break_long_words=False, break_on_hyphens=False
        )
    ]
    first, *rest = wrapped
    return "\n".join([f"{title:<14}  {first}", *(f"{'':<16}{line}" for line in rest)])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _table(plan: Plan) -> str:
    domain = plan.invariants.domain
    return f"{plan.size:,} cell{'s' * (plan.size != 1)}" if domain is None else repr(domain)[len("Domain(") : -1]


def _kept(plan: Plan) -> list[str]:
    height, rank = plan.invariants.height, plan.structure.rank
    if not height:
        return ["nothing: every count gets noise of its own"]
    count = f"{height:,} total{'s' * (height != 1)}"
    independent = "" if rank == height else f", {rank:,} of them independent"
    return [
        plan.invariants.describe(),
        f"{count}{independent}; published without noise, so nothing that they tell is protected",
    ]


def _noise(plan: Plan) -> list[str]:
    dimension = plan.size - plan.structure.rank
    own = repr(plan.mechanism)
    return [
        own if plan.sigma is None or "sigma=" in own else f"{own}, sigma {float(plan.sigma):.6g}",
        f"whole numbers z with probability proportional to {plan.mechanism.law()}, "
        f"over all z that change no kept total ({dimension:,} dimension{'s' * (dimension != 1)})",
    ]


def _blocks(plan: Plan) -> list[str]:
    """The forms of blocks, those with most cells first."""
    groups = sorted(zip(plan.groups, plan.samplers, strict=True), key=lambda pair: -pair[0].cells)
    lines = [line for group, choice in groups[:SHOWN_BLOCKS] for line in _block(group, describe_choice(choice))]
    rest = groups[SHOWN_BLOCKS:]
    if rest:
        cells = sum(group.cells for group, _ in rest)
        lines.append(f"and {len(rest):,} more forms of blocks, {cells:,} cells in all")
    return lines


def _block(group: BlockGroup, sampling: str) -> list[str]:
    many = group.blocks > 1 and group.codimension > 0
    form = describe_form(group.form)
    numbers = [
        f"{group.cells:,} cell{'s' * (group.cells != 1)}",
        f"dimension {group.dimension:,}, codimension {group.codimension:,}",
        f"cheapest change {group.distance}",
    ]
    return [
        f"{group.blocks:,} blocks, each: {form}" if many else form,
        f"  {'together ' if many else ''}{', '.join(numbers)}",
        f"  {sampling}",
    ]


def _guarantee(plan: Plan) -> list[str]:
    guarantee = plan.guarantee
    return [f"{guarantee.words}, between any two tables with the same kept totals", guarantee.sampling_words]


def _person(plan: Plan) -> list[str]:
    lines = [person_reading(plan), *(f"  {attribute_reading(plan, attribute)}" for attribute in plan.attributes)]
    if plan.promise not in (None, Promise()):
        lines.append(promise_reading(plan))
    if (plan.structure.part == FREE).any():
        one = plan.guarantee.at(Distance(plan.mechanism.norm, 1))
        lines.append(f"A person more or less in a cell under no total: distance 1, {one}")
    distances = [d for attribute in plan.attributes for d in (attribute.any_value, attribute.other_value)]
    if not all(distance is None or distance.exact for distance in (plan.person, *distances)):
        lines.append("A distance that is called 'at most' is an upper bound: the true loss is this or smaller.")
    return lines


def person_reading(plan: Plan) -> str:
    """The loss of one person, in one sentence."""
    loss = f"{plan.guarantee.person_words} at distance {plan.person}"
    through = f"{loss}, for the cheapest change through a cell"
    if plan.invariants.domain is None:
        return f"{through}; cells have no names, so this is no one person's change"
    if not plan.attributes:
        return f"{through}; no attribute has several categories, so this is no one person's change"
    if all(attribute.any_value is None for attribute in plan.attributes):
        return f"{through}; no change of one person's value is known to keep the totals"
    words = f"{loss}, for a change of any one attribute to any value"
    apart = [attribute.axis for attribute in plan.attributes if not attribute.whole]
    return words if not apart else f"{words}, but for what is not protected of {', '.join(apart)}"


def attribute_reading(plan: Plan, attribute: AttributeDistance) -> str:
    """What a change of one attribute costs."""
    anywhere, nearest = attribute.any_value, attribute.other_value
    words: list[str] = []
    if anywhere is not None and nearest is not None:
        words.append(f"to any value distance {anywhere}, {plan.guarantee.at(anywhere)}{_moves(anywhere)}")
        if nearest.length < anywhere.length:
            words.append(f"to some other value distance {nearest}, {plan.guarantee.at(nearest)}{_moves(nearest)}")
    elif not attribute.unknown:
        return f"{attribute.axis}: not protected; no change of it keeps the totals"
    if attribute.fixed_values:
        count = attribute.fixed_values
        words.append(f"not protected for {count:,} value{'s' * (count != 1)} with all cells pinned")
    if attribute.unprotected:
        none = f", {attribute.stuck:,} of them to none" if attribute.stuck else ""
        words.append(f"not protected at {attribute.unprotected:,} cells that cannot change to every value{none}")
    if attribute.unknown:
        words.append(f"not known to be protected at {attribute.unknown:,} cells, for some values")
    return f"{attribute.axis}: {'; '.join(words)}"


def _moves(distance: Distance) -> str:
    """A length of 2 takes from one cell and gives to another; anything longer is no single person's move."""
    return " (one person moves)" if distance.length == 2 else " (no single person's move: joint changes only)"


def promise_reading(plan: Plan) -> str:
    """What was asked for one person, and what it is."""
    promise = plan.promise or Promise()
    distance = one_person(plan.attributes, plan.cheapest, promise)
    apart = [a.axis for a in plan.attributes if not a.whole and a.axis in (promise.attributes or (a.axis,))]
    but = f", but for what is not protected of {', '.join(apart)}" if apart else ""
    return f"Asked for a change of {promise}: distance {distance}, {plan.guarantee.at(distance)}{but}"


def _pinned(plan: Plan) -> list[str]:
    pinned = plan.pinned.tolist()
    if not pinned:
        return ["none"]
    named = [plan.invariants.cell_name(cell) for cell in pinned[:SHOWN_CELLS]]
    more = [f"and {len(pinned) - SHOWN_CELLS:,} more"] if len(pinned) > SHOWN_CELLS else []
    verb = "cell is" if len(pinned) == 1 else "cells are"
    return [
        f"{len(pinned):,} {verb} fixed by the kept totals and would be published as it is:",
        *named,
        *more,
    ]


def released_html(columns: Mapping[str, Sequence[object]]) -> str:
    """The first rows of a released table, for a notebook."""
    height = len(next(iter(columns.values())))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row) + "</tr>"
        for row in islice(zip(*columns.values(), strict=True), SHOWN_ROWS)
    )
    more = f"<p>and {height - SHOWN_ROWS:,} more rows</p>" if height > SHOWN_ROWS else ""
    return f"<table><tr>{head}</tr>{rows}</table>{more}"

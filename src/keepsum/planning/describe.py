"""Forms of blocks, choices of samplers, and margins that stand in the way of exact noise, as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from keepsum._saying import arg
from keepsum.planning.distances import Axes, KeptMargins, is_decomposable
from keepsum.planning.groups import BlockForm
from keepsum.planning.selection.choice import Choice, Method, Reason
from keepsum.privacy.mechanism import Kind, Mechanism
from keepsum.privacy.numbers import shown, shown_briefly
from keepsum.tables.domain import Domain

# Which kept margins stand in the way of exact l1 Laplace noise, and which sets nearest to them do not.
#
# Margins can be summed out one after the other if and only if they are decomposable. What is left of others, when
# axes in a single margin and margins within others are removed in turn (Graham's reduction), is their *core*. A
# margin of counties is one of states as well, so that margins are closed under nesting first.


Margins = frozenset[Axes]

LOOKED_AT = 2_000  # sets of margins that are tried: a fraction of a second
CHANGED = 3  # margins that are left out, shortened or joined at most
NAMED = 2  # sets that are named


@dataclass(frozen=True)
class Obstacle:
    """Kept margins that are not decomposable.

    Attributes
    ----------
    margins
        Those that stand in the way, with the axes that they are named by.
    fewer
        The nearest decomposable sets that keep less, each as large as it can be. Where these are many changes away, one
        to which none of the margins can be added.
    joined
        The nearest one that joins margins instead, if there is one that leaves any noise.
    """

    margins: tuple[tuple[str, ...], ...]
    fewer: tuple[tuple[tuple[str, ...], ...], ...]
    joined: tuple[tuple[str, ...], ...] | None


def obstacle_of(kept: KeptMargins) -> Obstacle | None:
    """What stands in the way, and what is nearest; None if margins are decomposable.

    >>> from keepsum import Domain, Invariants
    >>> axes = Domain({"county": [1, 2, 3], "sex": ["F", "M"], "age": [1, 2, 3], "year": [1, 2]})
    >>> keep = [["county", "sex"], ["sex", "age"], ["county", "age"], ["year"]]
    >>> found = obstacle_of(KeptMargins.of(Invariants.margins(axes, keep)))
    >>> found.margins
    (('county', 'sex'), ('county', 'age'), ('sex', 'age'))
    >>> found.fewer[0], found.joined
    ((('county', 'age'), ('sex', 'age'), ('year',)), (('county', 'sex', 'age'), ('year',)))
    """
    if is_decomposable(kept.margins):
        return None
    margins, domain = frozenset(kept.margins), kept.domain
    fewer = _nearest(margins, lambda now: _with_less(now, domain), kept.several) or [_added_up(margins, domain)]
    largest = [one for one in fewer if not any(one != other and _within(one, other) for other in fewer)]
    largest.sort(key=lambda one: (-_totals(one, domain), _named(one, domain)))
    joined = _nearest(margins, _with_joined, kept.several)
    least = min(joined, key=lambda one: (_totals(one, domain), _named(one, domain)), default=None)
    return Obstacle(
        _named(_core(margins), domain),
        tuple(_named(one, domain) for one in largest[:NAMED]),
        None if least is None else _named(least, domain),
    )


def _core(margins: Margins) -> Margins:
    """The margins that are left by Graham's reduction, whole."""
    left = {margin: margin for margin in margins}  # each with what is left of it
    while True:
        before = dict(left)
        for margin, rest in before.items():
            others = frozenset().union(*(other for key, other in left.items() if key != margin))
            shared = rest & others
            if any(shared <= other for key, other in left.items() if key != margin):
                del left[margin]
            else:
                left[margin] = shared
        if left == before:
            return frozenset(left)


def _nearest(
    start: Margins, changes: Callable[[Margins], Iterator[Margins]], several: tuple[str, ...]
) -> list[Margins]:
    """The decomposable sets after the fewest changes; none that keeps every cell."""
    seen, reached = {start}, [start]
    for _ in range(CHANGED):
        reached = [new for now in reached for new in changes(now)]
        reached = [new for new in dict.fromkeys(reached) if new not in seen]
        if len(seen) + len(reached) > LOOKED_AT:
            return []
        seen |= set(reached)
        found = [one for one in reached if is_decomposable(one) and frozenset(several) not in one]
        if found:
            return found
    return []


def _added_up(margins: Margins, domain: Domain) -> Margins:
    """Margins that are decomposable together, added one by one, those with most totals first, as long as that is so."""
    order = sorted(margins, key=lambda margin: (-_totals(frozenset([margin]), domain), sorted(margin)))
    found: Margins = frozenset()
    while True:
        before = found
        for margin in order:
            if is_decomposable(found | {margin}):
                found |= {margin}
        if found == before:
            return found


def _with_less(margins: Margins, domain: Domain) -> Iterator[Margins]:
    """One margin left out, or without one axis and all that is nested in it."""
    for margin in sorted(margins, key=sorted):
        others = margins - {margin}
        if others:
            yield others
        for axis in sorted(margin):
            shorter = frozenset(name for name in margin if axis not in domain.closure([name]))
            if shorter:
                yield _maximal(others | {shorter})


def _with_joined(margins: Margins) -> Iterator[Margins]:
    """Two margins as one."""
    for one, two in combinations(sorted(margins, key=sorted), 2):
        yield _maximal((margins - {one, two}) | {one | two})


def _maximal(margins: Margins) -> Margins:
    return frozenset(margin for margin in margins if not any(margin < other for other in margins))


def _within(one: Margins, other: Margins) -> bool:
    """Whether each margin of one set is one of another or part of it."""
    return all(any(margin <= whole for whole in other) for margin in one)


def _totals(margins: Margins, domain: Domain) -> int:
    """How many totals these margins have."""
    count = 0
    for margin in margins:
        size = 1
        for family in domain.families:
            size *= family.project(margin)[0]
        count += size
    return count


def _named(margins: Margins, domain: Domain) -> tuple[tuple[str, ...], ...]:
    """The margins by the axes that nothing else in them is nested in, in the order of the table."""
    order = list(domain.axes)
    named = [sorted(_innermost(margin, domain), key=order.index) for margin in margins]
    return tuple(sorted((tuple(names) for names in named), key=lambda names: [order.index(name) for name in names]))


def _innermost(margin: Axes, domain: Domain) -> list[str]:
    return [name for name in margin if not any(name in domain.closure([other]) for other in margin - {name})]


# Forms of blocks and choices of samplers as sentences, all of them written here.


MENTIONED = 0.9  # acceptance rates below this are mentioned
METHODS: dict[Method, str] = {
    "independent_cells": "exact, cell by cell",
    "part_by_part": "exact, part by part given the sum",
    "nested_totals": "exact, each total given the one around it",
    "column_splitting": "exact, by splitting the columns",
    "axis_elimination": "exact, by eliminating one axis after another",
    "layer_splitting": "exact, by splitting the layers",
    "solved_regions": "exact rejection; the widest regions solved for",
    "conditional_cells": "exact; each cell drawn given the ones before",
    "mixture_rejection": "rounded: rejection from a mixture of Gaussians",
    "mixture_chain": "estimated: {steps:,} steps of a chain of mixture proposals",
    "heat_bath_chain": "estimated: {steps:,} sweeps of heat-bath moves",
    "gaussian_chain": "estimated: {steps:,} steps of a chain of lattice Gaussians",
    "own_sampler": "claimed: by a sampler that is not Keepsum's",
}


def describe_form(form: BlockForm) -> str:
    """The form of a block.

    >>> describe_form(BlockForm("table", regions=16, totals=8, shape=(4, 4)))
    '4 × 4 table with both margins kept'
    >>> describe_form(BlockForm("table", regions=13, totals=8, smallest=2, largest=2, shape=(4, 4)))
    '4 × 4 table with both margins kept, each entry the sum of 2 cells, 3 structural zeros'
    >>> describe_form(BlockForm("regions", regions=7, totals=3, smallest=2, largest=5))
    '7 regions under 3 overlapping totals, each of 2 to 5 cells'
    >>> describe_form(BlockForm("sums", totals=1, smallest=3, largest=3))
    '3 cells with their sum kept'
    >>> describe_form(BlockForm("nested", regions=62, totals=63, smallest=20, largest=20))
    '62 regions in 63 nested totals, focused or kept, each of 20 cells'
    >>> describe_form(BlockForm("focused", regions=1, totals=1, smallest=2, largest=2))
    '1 region in 1 total, focused or kept, each of 2 cells'
    >>> describe_form(BlockForm("crossed", regions=400, totals=40, shape=(20, 20)))
    '20 × 20 table with both margins focused or kept'
    """
    if form.kind == "free":
        return "cells under no total"
    if form.kind == "sums":
        return f"{_cells(form)} with their sum kept"
    if form.kind == "nested":
        regions = f"{form.regions:,} region{'s' * (form.regions != 1)}"
        return f"{regions} in {form.totals:,} nested totals, focused or kept, each of {_cells(form)}"
    if form.kind == "focused":
        regions = f"{form.regions:,} region{'s' * (form.regions != 1)}"
        totals = f"{form.totals:,} total{'s' * (form.totals != 1)}"
        return f"{regions} in {totals}, focused or kept, each of {_cells(form)}"
    if form.kind in ("table", "crossed"):
        return _describe_table(form)
    name = f"{form.regions:,} regions under {form.totals:,} overlapping total{'s' * (form.totals != 1)}"
    return name if form.largest == 1 else f"{name}, each of {_cells(form)}"


def _describe_table(form: BlockForm) -> str:
    ways = len(form.shape) - 1
    margins = "both margins" if ways == 1 else f"all {ways}-way margins"
    kept = "focused or kept" if form.kind == "crossed" else "kept"
    name = f"{' × '.join(str(n) for n in form.shape)} table with {margins} {kept}"
    if form.largest > 1:
        name += f", each entry the sum of {_cells(form)}"
    return name if not form.zeros else f"{name}, {form.zeros:,} structural zero{'s' * (form.zeros != 1)}"


def _cells(form: BlockForm) -> str:
    low, high = form.smallest, form.largest
    return f"{low:,} cell{'s' * (low != 1)}" if low == high else f"{low:,} to {high:,} cells"


def describe_choice(choice: Choice) -> str:
    """How a group of blocks is sampled, and why not exactly if it is not."""
    return describe_sampler(
        choice.method,
        acceptance=choice.acceptance,
        steps=choice.steps,
        proposals_per_step=choice.proposals_per_step,
        moves=choice.moves,
        reasons=choice.reasons,
    )


def describe_sampler(
    method: Method | None,
    *,
    acceptance: float | None = None,
    steps: int | None = None,
    proposals_per_step: float | None = None,
    moves: int | None = None,
    reasons: Sequence[Reason] = (),
) -> str:
    """The facts of a choice, as a plan has them or as a certificate records them; see ``Choice``.

    >>> describe_sampler("column_splitting", acceptance=0.34)
    'exact, by splitting the columns; 34% of proposals accepted'
    >>> describe_sampler("mixture_chain", steps=120, proposals_per_step=3, reasons=[Reason("table_too_large")])
    'estimated: 120 steps of a chain of mixture proposals, about 3 proposals per step (an exact sampler
    would need too much time or memory at this epsilon)'
    """
    if method is None:
        return f"no sampler: {describe_refusal(reasons)}"
    text = METHODS[method].format(steps=steps or 0)
    if moves is not None:
        text += f" along {moves:,} short vectors"
    if proposals_per_step is not None:
        text += f", about {_about(proposals_per_step)} per step"
    if acceptance is not None and acceptance < MENTIONED:
        text += f"; {100 * acceptance:.2g}% of proposals accepted"
    return f"{text} ({describe_reasons(reasons)})" if reasons else text


def _about(proposals: float) -> str:
    count = f"{proposals:,.0f}" if proposals > 10 else f"{proposals:.2g}"
    return f"{count} proposal{'s' * (count != '1')}"


def describe_refusal(reasons: Sequence[Reason]) -> str:
    """Why there is no sampler at all, and a remedy where the noise is too narrow for the exact one.

    >>> describe_refusal([Reason("rarely_accepted", acceptance=1e-9)])
    'exact rejection would accept at most about one in 1e+09 proposals; use wider noise or keep fewer totals'
    """
    narrow = any(reason.kind == "rarely_accepted" and reason.acceptance is not None for reason in reasons)
    return describe_reasons(reasons) + ("; use wider noise or keep fewer totals" if narrow else "")


def describe_range(reasons: Sequence[Reason], mechanism: Mechanism) -> str | None:
    """The parameter of a mechanism that no sampler supports, as a sentence; None if that is not the reason."""
    for reason in reasons:
        lowest, highest = _limit(reason.lowest), _limit(reason.highest)
        if reason.kind == "epsilon_out_of_range":
            epsilon = shown_briefly(1 / mechanism.scale)
            if mechanism.focus:
                focus = ", ".join(shown_briefly(level.weight) for level in mechanism.focus)
                return (
                    f"{arg.focus.called('Epsilons of cells and of a focus')} must be from {lowest} to {highest} per "
                    f"unit of distance, got {epsilon} and {focus}. Choose others."
                )
            return (
                f"{arg.epsilon.called('Epsilon per unit of distance')} must be from {lowest} to {highest} for l1 "
                f"Laplace noise, got {epsilon}. Choose another, or l2 Laplace or Gaussian noise."
            )
        if reason.kind == "sigma_out_of_range":
            sigma = shown_briefly(mechanism.scale)
            return (
                f"{arg.sigma.called('Sigma')} must be from {lowest} to {highest} for Gaussian noise, got {sigma}. "
                "Choose another."
            )
    return None


def _limit(end: str | None) -> str:
    """The end of a range of parameters.

    >>> _limit("1/10000"), _limit("100000000")
    ('0.0001', '100,000,000')
    """
    number = Fraction(end or 0)
    return f"{number.numerator:,}" if number.denominator == 1 else shown(number)


def describe_obstacle(obstacle: Obstacle) -> str:
    """Which kept margins stand in the way of exact noise, and what to keep instead.

    >>> three = (("county", "sex"), ("county", "age"), ("sex", "age"))
    >>> print(describe_obstacle(Obstacle(three, (three[:2],), None)))
    county × sex, county × age and sex × age together stand in the way of exact l1 Laplace noise. Keep county × sex and
    county × age instead.
    """
    sets = [_margins(kept) for kept in obstacle.fewer]
    if obstacle.joined is not None:
        sets.append(f"{_margins(obstacle.joined)} (which keeps more)")
    text = f"{_margins(obstacle.margins)} together stand in the way of exact l1 Laplace noise."
    return f"{text} Keep {', or '.join(sets)} instead." if sets else text


def _margins(margins: Sequence[Sequence[str]]) -> str:
    *most, last = (" × ".join(names) for names in margins)
    return f"{', '.join(most)} and {last}" if most else last


def describe_alternatives(kind: Kind) -> str:
    """Which noise is exact where l1 Laplace noise is not; nothing for other noise.

    >>> describe_alternatives("laplace-l1")
    'l2 Laplace and Gaussian noise are exact under nearly all totals.'
    """
    return "l2 Laplace and Gaussian noise are exact under nearly all totals." if kind == "laplace-l1" else ""


def describe_reasons(reasons: Sequence[Reason]) -> str:
    """Why no exact sampler applies, and why no other one does.

    >>> describe_reasons([Reason("table_too_large"), Reason("block_too_large")])
    'an exact sampler would need too much time or memory at this epsilon, and the block is too large for a chain'
    """
    return ", and ".join(describe_reason(reason) for reason in reasons)


def describe_reason(reason: Reason) -> str:
    """Why one sampler does not apply.

    >>> describe_reason(Reason("epsilon_out_of_range", lowest="1/10000", highest="50"))
    'l1 Laplace noise needs an epsilon from 0.0001 to 50'
    """
    limit = "" if reason.limit is None else f"{reason.limit:,}"
    if reason.kind == "rarely_accepted":
        return _rarely_accepted(reason)
    if reason.kind == "too_many_totals":
        return f"more than {limit} totals overlap" if limit else "too many totals overlap for an exact sampler"
    lowest, highest = _limit(reason.lowest), _limit(reason.highest)
    return {
        "epsilon_out_of_range": f"l1 Laplace noise needs an epsilon from {lowest} to {highest}",
        "sigma_out_of_range": f"Gaussian noise needs a sigma from {lowest} to {highest}",
        "too_many_equations": f"an exact sampler would solve equations with more than {limit} coefficients",
        "too_many_dimensions": f"totals tie regions of more than {limit} dimensions together; leave out totals that "
        "contain many others, or merge regions",
        "table_too_large": "an exact sampler would need too much time or memory at this epsilon",
        "totals_cross": "focused totals cross others, but not as the rows and columns of two-way tables",
        "sums_too_wide": "the focused totals are too wide for an exact sampler; larger epsilons make them narrower",
        "large_coefficients": "its equations have coefficients too large for an exact sampler",
        "block_too_large": "the block is too large for a chain",
        "regions_too_large": "its regions are too large for a chain at this epsilon",
        "chain_too_slow": "a chain would take too long to come near its target",
        "no_room": "noise this wide does not fit in 64 bits",
        "another_block": "another block has no sampler, and all share one",
        "sampler_not_given": "the noise is the publisher's own, and its sampler is not in the certificate",
    }[reason.kind]


def _rarely_accepted(reason: Reason) -> str:
    if reason.acceptance is None:
        return f"exact rejection would draw more than {reason.limit or 0:,} cells per accepted draw"
    proposals = 1 / reason.acceptance
    count = f"{proposals:,.0f}" if proposals < 1e6 else f"{proposals:.0e}"
    return f"exact rejection would accept at most about one in {count} proposals"

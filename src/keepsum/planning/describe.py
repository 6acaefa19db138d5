"""Forms of blocks and choices of samplers as sentences, all of them written here."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from keepsum.planning.groups import Form
from keepsum.planning.obstacles import Obstacle
from keepsum.planning.selection.choice import Choice, Method, Reason
from keepsum.privacy.mechanism import Kind, Mechanism
from keepsum.privacy.numbers import shown, shown_briefly

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
}


def describe_form(form: Form) -> str:
    """The form of a block.

    >>> describe_form(Form("table", regions=16, totals=8, shape=(4, 4)))
    '4 × 4 table with both margins kept'
    >>> describe_form(Form("table", regions=13, totals=8, smallest=2, largest=2, shape=(4, 4)))
    '4 × 4 table with both margins kept, each entry the sum of 2 cells, 3 structural zeros'
    >>> describe_form(Form("regions", regions=7, totals=3, smallest=2, largest=5))
    '7 regions under 3 overlapping totals, each of 2 to 5 cells'
    >>> describe_form(Form("sums", totals=1, smallest=3, largest=3))
    '3 cells with their sum kept'
    >>> describe_form(Form("nested", regions=62, totals=63, smallest=20, largest=20))
    '62 regions in 63 nested totals, focused or kept, each of 20 cells'
    >>> describe_form(Form("focused", regions=1, totals=1, smallest=2, largest=2))
    '1 region in 1 total, focused or kept, each of 2 cells'
    >>> describe_form(Form("crossed", regions=400, totals=40, shape=(20, 20)))
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


def _describe_table(form: Form) -> str:
    ways = len(form.shape) - 1
    margins = "both margins" if ways == 1 else f"all {ways}-way margins"
    kept = "focused or kept" if form.kind == "crossed" else "kept"
    name = f"{' × '.join(str(n) for n in form.shape)} table with {margins} {kept}"
    if form.largest > 1:
        name += f", each entry the sum of {_cells(form)}"
    return name if not form.zeros else f"{name}, {form.zeros:,} structural zero{'s' * (form.zeros != 1)}"


def _cells(form: Form) -> str:
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
                    f"Epsilons of cells and of a focus must be from {lowest} to {highest} per unit of distance, got "
                    f"{epsilon} and {focus}. Choose others."
                )
            return (
                f"Epsilon per unit of distance must be from {lowest} to {highest} for l1 Laplace noise, got {epsilon}. "
                f"Choose another, or l2 Laplace or Gaussian noise."
            )
        if reason.kind == "sigma_out_of_range":
            sigma = shown_briefly(mechanism.scale)
            return f"Sigma must be from {lowest} to {highest} for Gaussian noise, got {sigma}. Choose another."
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
    }[reason.kind]


def _rarely_accepted(reason: Reason) -> str:
    if reason.acceptance is None:
        return f"exact rejection would draw more than {reason.limit or 0:,} cells per accepted draw"
    proposals = 1 / reason.acceptance
    count = f"{proposals:,.0f}" if proposals < 1e6 else f"{proposals:.0e}"
    return f"exact rejection would accept at most about one in {count} proposals"

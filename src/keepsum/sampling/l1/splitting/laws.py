"""The laws of all bundles: weights, how sums split, and the labels that bundles carry.

Every sum has one or several *groups* of weights W_g; an entry, or a sum that is an entry of a further table, has one. A
group of the right child is a *base* b: F = W_L * W_R,b, with split laws, characteristic functions and numbers t_m(y),
one for each block of frequencies,

    B(y) <= sum over m of the product of t_m(y_i) over all places of the bundle,

by Hölder's inequality within each block. A *label* is a base and a block; its weights are F t_m. The labels of a form
are sorted into its groups, and the weights of a group are at least the norm (sum over its labels of (F t_m)^p)^(1/p),
rounded up to floats, which define the proposal: by Hölder's inequality once more, the weights of all its labels
together are at most those of the group. With one block and one group this is W = F t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum._arrays import Floats
from keepsum.sampling.l1.splitting.bundles import NONE, Bundles, Form
from keepsum.sampling.l1.splitting.grouping import grouped
from keepsum.sampling.l1.splitting.reaches import Reaches, farthest, reaches_of
from keepsum.sampling.l1.splitting.splits import Split, split_of
from keepsum.sampling.l1.splitting.transforms import Branch, Frequencies, frequencies_of
from keepsum.sampling.l1.splitting.weights import Weights, convolve, lowest_of, sum_of, table_moments

TAIL_BITS = 52  # sums beyond the tables have a chance of about 2^-52 each, and are left to the referee
SMALL = 10**5  # what small tables cost, in entries
SMALLEST = 1e-280  # no weight is taken to be smaller than this
ABOVE = 1 + 1e-11  # for the rounding of powers and roots


@dataclass(frozen=True, eq=False)
class Base:
    """For each law of a form its weights and how sums split, with one group of the right children."""

    branches: tuple[Branch, ...]
    splits: tuple[Split, ...]


@dataclass(frozen=True)
class Label:
    """A base and a block of frequencies."""

    base: int
    block: int


@dataclass(frozen=True, eq=False)
class FormLaws:
    """The laws of a form.

    Attributes
    ----------
    bases
        The bases, one for each group of the right children.
    labels
        The labels of each group; none where all sums are 0.
    frequencies
        The frequencies; None where they are not needed.
    drawn
        For each law, how far sums go that are to be drawn by tables.
    """

    bases: tuple[Base, ...]
    labels: tuple[tuple[Label, ...], ...]
    frequencies: Frequencies | None
    drawn: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of all bundles.

    Attributes
    ----------
    weights
        For each law the weights of each of its groups; none where all sums are 0.
    forms
        What there is besides, for each form.
    """

    weights: tuple[tuple[Weights, ...], ...]
    forms: tuple[FormLaws, ...]

    @property
    def usable(self) -> bool:
        """Whether errors are so small that tables draw sums nearly as far as they go."""
        return all(
            branch.whole.ends or 2 * split.reach >= drawn
            for form in self.forms
            for base in form.bases
            for branch, split, drawn in zip(base.branches, base.splits, form.drawn, strict=True)
        )


@dataclass(frozen=True)
class Labelling:
    """How many blocks of frequencies a form has, and how many groups at most."""

    blocks: int = 1
    groups: int = 1


@dataclass(frozen=True)
class Solving:
    """Which rows of a bundle are solved for together: every so-manieth, a power of two, if there are so many rows.

    Of fewer rows one is solved for.
    """

    rows: int = 64
    every: int = 8


def laws_of(
    epsilon: Fraction,
    bundles: Bundles,
    labelling: Labelling,
    tail_bits: int = TAIL_BITS,
    solving: Solving = Solving(),  # noqa: B008
) -> Laws:
    """All laws of a table."""
    rates = (epsilon, *bundles.further)
    reaches = reaches_of(rates, bundles, tail_bits)
    weights: list[tuple[Weights, ...]] = [
        (sum_of(rates, load, reaches.needed[k]),) for k, load in enumerate(bundles.entry_laws)
    ]
    forms: list[FormLaws] = []
    for form in bundles.forms:
        laws, groups = _form_laws(rates, form, weights, forms, reaches, labelling, tail_bits, solving)
        forms.append(laws)
        weights += [tuple(group[k] for group in groups) for k in range(len(form.parts))]
    return Laws(tuple(weights), tuple(forms))


def _form_laws(
    rates: tuple[Fraction, ...],
    form: Form,
    weights: Sequence[tuple[Weights, ...]],
    forms: Sequence[FormLaws],
    reaches: Reaches,
    labelling: Labelling,
    tail_bits: int,
    solving: Solving,
) -> tuple[FormLaws, tuple[tuple[Weights, ...], ...]]:
    """The laws of a form, and the weights of each of its groups, law by law."""
    here = slice(form.first, form.first + len(form.parts))
    drawn, needed = tuple(reaches.drawn[here].tolist()), reaches.needed[here].tolist()
    # What is not followed is bounded by moments of all cells below.
    followed = farthest(rates, form.loads, tail_bits) + int(reaches.drawn.max()) // 2
    branches = [
        tuple(
            _branch(weights[left][0], group_of(weights[right], base), reach, followed)
            for (left, right), reach in zip(form.parts, needed, strict=True)
        )
        for base in range(base_count(form, forms))
    ]
    rests = [sum_of(rates, rest, reach) for rest, reach in zip(form.rests, needed, strict=True)]
    kept = None
    in_parts = sum(form.counts) >= solving.rows
    if not form.is_root or len(branches) > 1 or in_parts:
        blocks, parts = 1 if form.is_root else labelling.blocks, solving.every if in_parts else 1
        kept = frequencies_of([branches[0], branches[-1]], form.counts, rests, float(lowest_of(rates)), blocks, parts)
    bases = tuple(Base(base, _splits(base, drawn, kept)) for base in branches)
    if kept is None or form.is_root:
        return FormLaws(bases, (), kept, drawn), ()
    # Twice as far as they are needed they are right where they are.
    cells = [sum_of(rates, load, 2 * reach) for load, reach in zip(form.loads, needed, strict=True)]
    labels, groups = _grouped(bases, form.counts, rests, cells, kept, 1 if form.is_grafted else labelling.groups)
    return FormLaws(bases, labels, kept, drawn), groups


def base_count(form: Form, forms: Sequence[FormLaws]) -> int:
    """How many bases a form has: as many as its right children have groups."""
    return 1 if form.below == NONE else len(forms[form.below].labels)


def group_of(groups: tuple[Weights, ...], number: int) -> Weights:
    """The weights of a group; a sum of no entry has one, whatever the group of the others."""
    return groups[number] if len(groups) > 1 else groups[0]


def _splits(branches: tuple[Branch, ...], reaches: Sequence[int], kept: Frequencies | None) -> tuple[Split, ...]:
    shares = [0.0] * len(branches) if kept is None else kept.shares.tolist()
    return tuple(
        split_of(branch, reach, kept, share) for branch, reach, share in zip(branches, reaches, shares, strict=True)
    )


def _grouped(
    bases: tuple[Base, ...],
    counts: Sequence[int],
    rests: list[Weights],
    cells: list[Weights],
    kept: Frequencies,
    most: int,
) -> tuple[tuple[tuple[Label, ...], ...], tuple[tuple[Weights, ...], ...]]:
    """The labels of a form in groups, and the weights of the groups."""
    labels = [Label(k, m) for k in range(len(bases)) for m in range(kept.blocks)]
    logs = [
        [
            _log_weights(branch, split, label.block)
            for branch, split in zip(bases[label.base].branches, bases[label.base].splits, strict=True)
        ]
        for label in labels
    ]
    numbers = grouped(logs, counts, rests, most)
    members = [[k for k, number in enumerate(numbers) if number == group] for group in range(max(numbers) + 1)]
    weights = tuple(
        tuple(
            _together([(bases[labels[k].base].branches[law], logs[k][law]) for k in group], share, cells[law])
            for law, share in enumerate(kept.raised_shares.tolist())
        )
        for group in members
    )
    return tuple(tuple(labels[k] for k in group) for group in members), weights


def _log_weights(branch: Branch, split: Split, block: int) -> Floats:
    """An upper bound on log(F t_m), in true units, for all y of the table; beyond the split tables t is 1.

    It is finite, unless F ends: floats may call a weight 0 that is none.
    """
    upper = branch.whole.values + branch.whole.errors + (0.0 if branch.whole.ends else SMALLEST)
    with np.errstate(divide="ignore"):
        logs = np.log(upper) + branch.whole.exponent * math.log(2)
    logs[: split.reach + 1] += np.log(split.numbers[:, block])
    return logs


def _together(members: list[tuple[Branch, Floats]], share: float, cells: Weights) -> Weights:
    """The weights of a group: the norm of its labels' weights, rounded up, and no more than c times those of all cells.

    ``cells`` is the law of the sum of all cells below, p. Every F is at most the product of its children's ratios times
    p, and every t at most 1, so the norm of n labels is at most n^(1/p) times the largest such product.
    """
    logs = np.array([member_logs for _, member_logs in members])
    highest = np.maximum(logs.max(axis=0), -1e300)  # all are -inf where only 0 has weight
    norm = highest
    if share > 0:
        norm = highest + np.log(np.exp((logs - highest) / share).sum(axis=0)) * share
    ratio = max(branch.left.ratio * branch.right.ratio for branch, _ in members) * len(members) ** share * ABOVE
    exponent = math.ceil(norm[0] / math.log(2))
    unit = 2.0 ** (cells.exponent - exponent)
    sure = (cells.values > SMALLEST) & (cells.errors <= 1e-6 * cells.values)
    count = int(np.cumprod(sure[: len(norm)]).sum())
    upper, lower = (bound[:count] * unit for bound in (cells.values + cells.errors, cells.values - cells.errors))
    values = np.minimum(np.exp(norm[:count] - exponent * math.log(2)), upper * ratio) * ABOVE
    ratio = float((values / lower).max(initial=ratio)) * ABOVE
    log_moments = cells.log_moments + (math.log(ratio) + math.log(unit) + 1e-9)
    ends = cells.ends
    log_moments = table_moments(values, cells.rates, log_moments, ends)
    return Weights(values, np.zeros(count), cells.rates, log_moments, exponent, ends, ratio)


def entries_of(epsilon: Fraction, bundles: Bundles, labelling: Labelling) -> int:
    """About how many entries of tables ``laws_of`` computes: the time and the memory that it takes."""
    rates, total = (epsilon, *bundles.further), 0.0
    variances = [2 * math.exp(-rate) / math.expm1(-rate) ** 2 if rate else 0.0 for rate in map(float, rates)]
    reaches = reaches_of(rates, bundles, TAIL_BITS)
    groups: list[int] = []
    for form in bundles.forms:
        bases = 1 if form.below == NONE else groups[form.below]
        groups.append(1 if form.is_grafted else min(labelling.groups, bases * labelling.blocks))
        widest = max(sum(n * each for n, each in zip(load, variances, strict=True)) for load in form.loads)
        spread = math.sqrt(sum(form.counts) * widest / 4)
        for law, (left, right) in enumerate(form.parts, form.first):
            near, far = float(reaches.drawn[law]), float(reaches.needed[law])
            narrow = float(min(reaches.needed[left], reaches.needed[right]))
            total += bases * ((near + 1) * (4 * narrow + 7 * spread) + 2 * far * narrow + SMALL)
    return int(total)


def _branch(left: Weights, right: Weights, reach: int, followed: int) -> Branch:
    ends = left.reach if left.is_flat or right.is_flat else min(followed, left.reach)
    return Branch(left, right, convolve(left, right, reach), ends)

"""The laws of all bundles: weights, how far their tables go, how sums split, and the labels that bundles carry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.l1.splitting.bundles import NONE, BundleForm, Bundles, Load
from keepsum.sampling.l1.splitting.splits import Branch, Frequencies, NodeSplit, frequencies_of, split_of
from keepsum.sampling.l1.splitting.weights import (
    RowWeights,
    cancelling_reach,
    convolve,
    drawn_reach,
    lowest_of,
    sum_of,
    table_moments,
)

# Which labels of a form go together: guesses that change how often proposals are accepted, never the law.


ROUNDS = 30  # of moving the centres of groups


def grouped(labels: Sequence[list[Floats]], counts: Sequence[int], rests: Sequence[RowWeights], most: int) -> list[int]:
    """The group of each label, at most so many groups, narrow weights first.

    Parameters
    ----------
    labels
        For each label the logarithms of its weights, for each law.
    counts, rests
        For each law how many places have it, and the weights of the rest of such a row.
    most
        How many groups there are at most.
    """
    if len(labels) <= most:
        return list(range(len(labels)))
    shape, log_mass = np.zeros(len(labels)), np.zeros(len(labels))
    for k, (count, rest) in enumerate(zip(counts, rests, strict=True)):
        logs = np.array([label_logs[k] for label_logs in labels])
        other = np.where(np.arange(logs.shape[1]) == 0, 1.0, 2.0) * _cut(rest.values, logs.shape[1])
        highest = logs.max()
        masses = np.exp(logs - highest) @ other
        log_mass += count * np.log(masses)
        typical = np.exp(logs.mean(axis=0) - logs.mean(axis=0).max()) * other
        good = typical > 1e-12 * typical.max()
        shape += count * ((logs - logs[:, :1])[:, good] @ (typical[good] / typical[good].sum()))
    mass = np.exp(log_mass - log_mass.max())
    return _clustered(shape, mass / mass.sum(), most)


def _cut(values: Floats, count: int) -> Floats:
    return np.concatenate([values[:count], np.zeros(max(0, count - len(values)))])


def _clustered(shape: Floats, mass: Floats, most: int) -> list[int]:
    """Clusters on a line: those that matter lie close, so that few groups serve them well."""
    order = np.argsort(shape, kind="stable")
    places, masses = shape[order], mass[order]
    mean = (places * masses).sum()
    deviation = np.sqrt((masses * (places - mean) ** 2).sum()) + 1e-12
    roots, bell = np.sqrt(masses), np.exp(-0.5 * ((places - mean) / (2 * deviation)) ** 2)
    density = np.cumsum(roots / roots.sum() + bell / bell.sum())
    first = np.searchsorted(density, (np.arange(most) + 0.5) / most * density[-1]).clip(0, len(places) - 1)
    centres = np.unique(places[first])
    weights = masses + 1e-7
    for _ in range(ROUNDS):
        nearest = _nearest(places, centres)
        total = np.bincount(nearest, weights, minlength=len(centres))
        sums = np.bincount(nearest, weights * places, minlength=len(centres))
        centres = np.where(total > 0, sums / np.where(total > 0, total, 1.0), centres)
    numbers = np.empty(len(shape), dtype=np.int64)
    numbers[order] = np.unique(_nearest(places, centres), return_inverse=True)[1]
    return numbers.tolist()


def _nearest(places: Floats, centres: Floats) -> IntArray:
    nearest: IntArray = np.abs(places[:, None] - centres).argmin(axis=1)
    return nearest


# How far the tables of laws go: guesses that decide when the referee is asked, never the law.


SPARED_BITS = 35  # a draw has a sum beyond the tables with a chance of about 2^(35 - tail bits), which takes seconds


@dataclass(frozen=True, eq=False)
class Reaches:
    """For each law how far sums are drawn by tables, and how far weights are needed."""

    drawn: IntArray
    needed: IntArray


def reaches_of(rates: tuple[Fraction, ...], bundles: Bundles, tail_bits: int) -> Reaches:
    """How far the tables of all laws go.

    Sums below a place go no farther than those over the rest of the row; in large tables of several axes, where that is
    far wider, they go as far as they do by themselves. Weights go farther: near its end a convolution
    misses what lies beyond, which is bounded by moments of all cells below the parent, about twice as many, and a part
    goes as far as the sum that it is of and some more. Where a row may be anything but for one entry, so may all sums.
    Beyond its table a t is 1, and near 0 about the probability that a sum is 0: those bounds pay for it once for each
    table that is grafted, and of many weights go farther.
    """
    paid = sum(_bits_of_zero(rates, max(form.loads)) for form in bundles.forms if form.is_grafted)
    far_bits = tail_bits + max(0, paid - PAID_BITS)
    entries = len(bundles.entry_laws)
    count = entries + sum(len(form.parts) for form in bundles.forms)
    drawn, needed = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    flat = np.zeros(count, dtype=bool)
    log_chance = (SPARED_BITS - tail_bits) * math.log(2) - math.log(max(1, len(bundles.at)))
    for law, load in enumerate(bundles.entry_laws):
        needed[law] = _far(rates, load, far_bits)
        flat[law] = _is_flat(rates, load)
    for form in bundles.forms:
        for law, (load, rest) in enumerate(zip(form.loads, form.rests, strict=True), form.first):
            drawn[law] = 0 if form.is_root else drawn_reach(rates, _narrower(rates, load, rest), tail_bits)
            needed[law] = 0 if form.is_root else _far(rates, load, far_bits)
            flat[law] = _is_flat(rates, load)
            if not (form.is_root or flat[law] or _is_flat(rates, rest)):
                drawn[law] = max(drawn[law], cancelling_reach(rates, load, rest, log_chance))
                needed[law] = max(drawn[law], needed[law])
            if not form.is_root and _is_flat(rates, rest):
                drawn[law], needed[law] = 2 * drawn[law], 2 * needed[law] + 2 * drawn[law]
    loads = [*bundles.entry_laws, *(load for form in bundles.forms for load in form.loads)]
    for form in bundles.forms:
        for law, (left, right) in enumerate(form.parts, form.first):
            more = drawn[law] + _far(rates, loads[left], far_bits)  # what is narrow may be all of a sum
            needed[left], needed[right] = max(needed[left], more), max(needed[right], more)
    return Reaches(drawn, np.where(flat & (needed > 0), needed.max(), needed))


def farthest(rates: tuple[Fraction, ...], loads: Sequence[Load], tail_bits: int) -> int:
    """How far the widest of some sums goes."""
    different = {max(loads)} if len(rates) == 1 else set(loads)
    return max(drawn_reach(rates, load, tail_bits) for load in different)


def _far(rates: tuple[Fraction, ...], load: Load, tail_bits: int) -> int:
    return drawn_reach(rates, tuple(2 * n for n in load), tail_bits + 8)


def _bits_of_zero(rates: tuple[Fraction, ...], load: Load) -> int:
    """About the probability that such a sum is 0, as a power of 1/2; in integers, so that it is the same everywhere."""
    variance = sum((2 * n / rate**2 for n, rate in zip(load, rates, strict=True) if rate), Fraction(0))
    return int(44 * variance / 7).bit_length() // 2  # 2 pi times the variance


def _narrower(rates: tuple[Fraction, ...], one: Load, other: Load) -> Load:
    """The sum with the smaller variance, about; one that is flat has none."""
    if len(rates) == 1:
        return min(one, other)
    if _is_flat(rates, one) or _is_flat(rates, other):
        return other if _is_flat(rates, one) else one
    return min(one, other, key=lambda load: sum(n / rate**2 for n, rate in zip(load, rates, strict=True) if rate))


def _is_flat(rates: tuple[Fraction, ...], load: Load) -> bool:
    return any(n and not rate for n, rate in zip(load, rates, strict=True))


# The laws of all bundles: weights, how sums split, and the labels that bundles carry.
#
# Every sum has one or several *groups* of weights W_g; an entry has one. A group of the right child is a *base* b: F
# = W_L * W_R,b, with split laws, characteristic functions and numbers t_m(y), one for each block of frequencies,
#
#     B(y) <= sum over m of the product of t_m(y_i) over all places of the bundle,
#
# by Hölder's inequality within each block. A *label* is a base and a block; its weights are F t_m. The labels of a
# form are sorted into its groups, and the weights of a group are at least the norm (sum over its labels of (F
# t_m)^p)^(1/p), rounded up to floats, which define the proposal: by Hölder's inequality once more, the weights of all
# its labels together are at most those of the group. With one block and one group this is W = F t.
#
# Where a table is grafted onto another, the groups of its roots are *tags*: the entries of the other table have one
# weight for each, and all of them have the same one. So everything in the other table is there once for each tag:
# bases join groups of one tag, and labels are sorted into groups of their own tag. Where a tag cannot be handed to
# all entries alike (``bundles``), there is one group.


PAID_BITS = 32  # what the bounds on weights can pay for grafted tables before weights go farther
TAIL_BITS = 52  # sums beyond the tables are left to the referee: about one in 2^17 draws has any (``reaches``)
SMALL = 10**5  # what small tables cost, in entries
SMALLEST = 1e-280  # no weight is taken to be smaller than this
ABOVE = 1 + 1e-11  # for the rounding of powers and roots


@dataclass(frozen=True, eq=False)
class Base:
    """For each law of a form its weights and how sums split, with one group of the right children.

    ``tag`` is that of the entries below.
    """

    branches: tuple[Branch, ...]
    splits: tuple[NodeSplit, ...]
    tag: int = 0


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

    weights: tuple[tuple[RowWeights, ...], ...]
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
    """How many blocks of frequencies a form has, and how many groups of one tag and how many tags at most."""

    blocks: int = 1
    groups: int = 1
    tags: int = 1


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
    weights: list[tuple[RowWeights, ...]] = [
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
    form: BundleForm,
    weights: Sequence[tuple[RowWeights, ...]],
    forms: Sequence[FormLaws],
    reaches: Reaches,
    labelling: Labelling,
    tail_bits: int,
    solving: Solving,
) -> tuple[FormLaws, tuple[tuple[RowWeights, ...], ...]]:
    """The laws of a form, and the weights of each of its groups, law by law."""
    here = slice(form.first, form.first + len(form.parts))
    drawn, needed = tuple(reaches.drawn[here].tolist()), reaches.needed[here].tolist()
    # What is not followed is bounded by moments of all cells below.
    followed = farthest(rates, form.loads, tail_bits) + int(reaches.drawn.max()) // 2
    tags = tags_of(form, forms)
    branches = [
        tuple(
            _branch(group_of(weights[left], tag), group_of(weights[right], base), reach, followed)
            for (left, right), reach in zip(form.parts, needed, strict=True)
        )
        for base, tag in enumerate(tags)
    ]
    rests = [sum_of(rates, rest, reach) for rest, reach in zip(form.rests, needed, strict=True)]
    kept = None
    in_parts = sum(form.counts) >= solving.rows
    if not form.is_root or len(branches) > 1 or in_parts:
        blocks, parts = 1 if form.is_root else labelling.blocks, solving.every if in_parts else 1
        kept = frequencies_of([branches[0], branches[-1]], form.counts, rests, float(lowest_of(rates)), blocks, parts)
    bases = tuple(Base(base, _splits(base, drawn, kept), tag) for base, tag in zip(branches, tags, strict=True))
    if kept is None or form.is_root:
        return FormLaws(bases, (), kept, drawn), ()
    # Twice as far as they are needed they are right where they are.
    cells = [sum_of(rates, load, 2 * reach) for load, reach in zip(form.loads, needed, strict=True)]
    sorted_by_tag = () if form.is_grafted else tags
    labels, groups = _grouped(bases, form.counts, rests, cells, kept, _most_groups(form, labelling), sorted_by_tag)
    return FormLaws(bases, labels, kept, drawn), groups


def tags_of(form: BundleForm, forms: Sequence[FormLaws]) -> list[int]:
    """The tag of each base: there are as many bases as the right children have groups.

    Right children that are entries have one group for each tag.
    """
    if form.below != NONE:
        below = forms[form.below]
        return [below.bases[labels[0].base].tag for labels in below.labels]
    return list(range(1 if form.entries == NONE else len(forms[form.entries].labels)))


def _most_groups(form: BundleForm, labelling: Labelling) -> int:
    """How many groups of one tag there are at most; of roots that are grafted, how many tags there are."""
    if form.is_grafted:
        return labelling.tags if form.has_tags else 1
    return labelling.groups


def group_of(groups: tuple[RowWeights, ...], number: int) -> RowWeights:
    """The weights of a group; a sum of no entry has one, whatever the group of the others."""
    return groups[number] if len(groups) > 1 else groups[0]


def _splits(branches: tuple[Branch, ...], reaches: Sequence[int], kept: Frequencies | None) -> tuple[NodeSplit, ...]:
    shares = [0.0] * len(branches) if kept is None else kept.shares.tolist()
    return tuple(
        split_of(branch, reach, kept, share) for branch, reach, share in zip(branches, reaches, shares, strict=True)
    )


def _grouped(
    bases: tuple[Base, ...],
    counts: Sequence[int],
    rests: list[RowWeights],
    cells: list[RowWeights],
    kept: Frequencies,
    most: int,
    tags: Sequence[int],
) -> tuple[tuple[tuple[Label, ...], ...], tuple[tuple[RowWeights, ...], ...]]:
    """The labels of a form in groups, those of each tag by themselves, and the weights of the groups."""
    labels = [Label(k, m) for k in range(len(bases)) for m in range(kept.blocks)]
    logs = [
        [
            _log_weights(branch, split, label.block)
            for branch, split in zip(bases[label.base].branches, bases[label.base].splits, strict=True)
        ]
        for label in labels
    ]
    members: list[list[int]] = []
    for tag in sorted(set(tags)) or [NONE]:
        own = [k for k, label in enumerate(labels) if tag in (NONE, bases[label.base].tag)]
        numbers = grouped([logs[k] for k in own], counts, rests, most)
        members += [[k for k, n in zip(own, numbers, strict=True) if n == group] for group in range(max(numbers) + 1)]
    weights = tuple(
        tuple(
            _together([(bases[labels[k].base].branches[law], logs[k][law]) for k in group], share, cells[law])
            for law, share in enumerate(kept.raised_shares.tolist())
        )
        for group in members
    )
    return tuple(tuple(labels[k] for k in group) for group in members), weights


def _log_weights(branch: Branch, split: NodeSplit, block: int) -> Floats:
    """An upper bound on log(F t_m), in true units, for all y of the table; beyond the split tables t is 1.

    It is finite, unless F ends: floats may call a weight 0 that is none.
    """
    upper = branch.whole.values + branch.whole.errors + (0.0 if branch.whole.ends else SMALLEST)
    with np.errstate(divide="ignore"):
        logs = np.log(upper) + branch.whole.exponent * math.log(2)
    logs[: split.reach + 1] += np.log(split.numbers[:, block])
    return logs


def _together(members: list[tuple[Branch, Floats]], share: float, cells: RowWeights) -> RowWeights:
    """The weights of a group: the norm of its labels' weights, rounded up, and no more than c times those of all cells.

    ``cells`` is the law of the sum of all cells below, p. Every F is at most the product of its children's ratios times
    p, and every t at most 1, so the norm of n labels is at most n^(1/p) times the largest such product. Where a corner
    of weight 1 is below there is no p to measure by: the sum is 0 in every proposal, and its weight is the norm.
    """
    logs = np.array([member_logs for _, member_logs in members])
    highest = np.maximum(logs.max(axis=0), -1e300)  # all are -inf where only 0 has weight
    norm = highest
    if share > 0:
        norm = highest + np.log(np.exp((logs - highest) / share).sum(axis=0)) * share
    exponent = math.ceil(norm[0] / math.log(2))
    if cells.is_flat:
        only = np.exp(norm[:1] - exponent * math.log(2)) * ABOVE
        return RowWeights(only, np.zeros(1), cells.rates, np.log(2 * only) + 0 * cells.rates, exponent, ends=True)
    ratio = max(branch.left.ratio * branch.right.ratio for branch, _ in members) * len(members) ** share * ABOVE
    unit = 2.0 ** (cells.exponent - exponent)
    sure = (cells.values > SMALLEST) & (cells.errors <= 1e-6 * cells.values)
    count = int(np.cumprod(sure[: len(norm)]).sum())
    upper, lower = (bound[:count] * unit for bound in (cells.values + cells.errors, cells.values - cells.errors))
    values = np.minimum(np.exp(norm[:count] - exponent * math.log(2)), upper * ratio) * ABOVE
    ratio = float((values / lower).max(initial=ratio)) * ABOVE
    log_moments = cells.log_moments + (math.log(ratio) + math.log(unit) + 1e-9)
    ends = cells.ends
    log_moments = table_moments(values, cells.rates, log_moments, ends)
    return RowWeights(values, np.zeros(count), cells.rates, log_moments, exponent, ends, ratio)


def entries_of(epsilon: Fraction, bundles: Bundles, labelling: Labelling) -> int:
    """About how many entries of tables ``laws_of`` computes: the time and the memory that it takes."""
    rates, total = (epsilon, *bundles.further), 0.0
    variances = [2 * math.exp(-rate) / math.expm1(-rate) ** 2 if rate else 0.0 for rate in map(float, rates)]
    reaches = reaches_of(rates, bundles, TAIL_BITS)
    groups: list[int] = []
    for form in bundles.forms:
        tags = 1 if form.entries == NONE else groups[form.entries]
        bases = tags if form.below == NONE else groups[form.below]
        most = _most_groups(form, labelling) * (1 if form.is_grafted else tags)
        groups.append(min(most, bases * labelling.blocks))
        widest = max(sum(n * each for n, each in zip(load, variances, strict=True)) for load in form.loads)
        spread = math.sqrt(sum(form.counts) * widest / 4)
        for law, (left, right) in enumerate(form.parts, form.first):
            near, far = float(reaches.drawn[law]), float(reaches.needed[law])
            narrow = float(min(reaches.needed[left], reaches.needed[right]))
            total += bases * ((near + 1) * (4 * narrow + 7 * spread) + 2 * far * narrow + SMALL)
    return int(total)


def _branch(left: RowWeights, right: RowWeights, reach: int, followed: int) -> Branch:
    ends = left.reach if left.is_flat or right.is_flat else min(followed, left.reach)
    return Branch(left, right, convolve(left, right, reach), ends)

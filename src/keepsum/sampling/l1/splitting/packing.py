"""The laws of all bundles as the kernels read them: all tables of one kind in one array."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel_arguments import Guide
from keepsum.sampling.l1.splitting.bundles import BundleForm, Bundles
from keepsum.sampling.l1.splitting.kernel_arguments import GUIDE, GroupTables, SplitTables
from keepsum.sampling.l1.splitting.laws import Base, FormLaws, Label, Laws
from keepsum.sampling.l1.splitting.splits import Branch, Frequencies, NodeSplit, chunks
from keepsum.sampling.l1.splitting.weights import ULP, RowWeights

STORED = 2**23  # cumulative chances that are kept
CUT = 1e-19  # chances at the lower end of a law that are left out


def split_tables(bundles: Bundles, laws: Laws) -> SplitTables:
    """All weights and all splits, one behind the other."""
    weights = [weights for groups in laws.weights for weights in groups]
    first = starts([len(groups) for groups in laws.weights]).tolist()
    left, right = [], []
    for form, own in zip(bundles.forms, laws.forms, strict=True):
        for base, tag in enumerate(base.tag for base in own.bases):
            left += [first[i] + (tag if len(laws.weights[i]) > 1 else 0) for i, _ in form.parts]
            right += [first[j] + (base if len(laws.weights[j]) > 1 else 0) for _, j in form.parts]
    pairs = [
        pair for form in laws.forms for base in form.bases for pair in zip(base.branches, base.splits, strict=True)
    ]
    splits = [split for _, split in pairs]
    stride = _stride(pairs)
    runs = [run for branch, split in pairs for run in _cumulative(branch, split, stride)]
    places = [len(split.slack) for split in splits]

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(split, name).reshape(-1) for split in splits])

    return SplitTables(
        weight_start=starts([w.reach + 1 for w in weights]),
        weight_reach=integers([w.reach for w in weights]),
        weight_top=np.array([w.top for w in weights]),
        weight_beyond=np.array([w.beyond for w in weights]),
        weights=np.concatenate([w.values for w in weights]),
        weight_error=np.concatenate([w.errors for w in weights]),
        left=integers(left),
        right=integers(right),
        reach=integers([count - 1 for count in places]),
        place_start=starts(places),
        cumulative_start=starts([len(values) for values, _ in runs]),
        counts=integers([len(values) for values, _ in runs]),
        lowest=integers([lowest for _, lowest in runs]),
        slack=joined("slack"),
        inverse=joined("inverse"),
        peak=joined("peak"),
        peak_chance=first_digits(joined("peak_chance")),
        number_start=_row_starts([split.numbers for split in splits]),
        transform_start=_row_starts([split.transform for split in splits]),
        transform_error=joined("transform_error"),
        log_dropped=joined("log_dropped"),
        log_largest=joined("log_largest"),
        log_growth=joined("log_growth"),
        cumulative=np.concatenate([np.empty(0), *(values for values, _ in runs)]),
        guide=np.concatenate([np.empty(0, dtype=np.uint16), *(_guide(values) for values, _ in runs)]),
        log_numbers=np.log(joined("numbers")),
        transform=joined("transform"),
        transform_imaginary=joined("transform_imaginary"),
        stride=stride,
    )


def _guide(cumulative: Floats) -> Guide:
    """Where to start looking for a chance k/GUIDE, or before that: two bytes each, so that caches hold them."""
    found = np.searchsorted(cumulative, np.arange(GUIDE) / GUIDE)
    return np.minimum(found, np.iinfo(np.uint16).max).astype(np.uint16)


def first_digits(values: Floats) -> Floats:
    """The first twelve binary digits: enough to compare by, and the same whatever a processor makes of the last ones.

    Rows whose laws are mirror images of each other have the same chances but for those.

    >>> first_digits(np.array([1 / 3, 1 / 3 * (1 + 2.0**-50)])).tolist()
    [0.3333740234375, 0.3333740234375]
    """
    fractions, exponents = np.frexp(values)
    digits: Floats = np.ldexp(np.rint(fractions * 2.0**12), exponents - 12)
    return digits


def group_tables(bundles: Bundles, laws: Laws) -> GroupTables:
    """The labels of all groups, and the logarithms of their weights relative to those of their group."""
    bases, reaches, law_counts, tables = [], [], [], []
    for form, own in zip(bundles.forms, laws.forms, strict=True):
        for group, labels in enumerate(own.labels):
            bases.append([label.base for label in labels])
            law_counts.append(len(form.parts))
            for law in range(len(form.parts)):
                weights = laws.weights[form.first + law][group]
                reaches.append(min(weights.reach, *(own.bases[label.base].splits[law].reach for label in labels)))
                tables.append(_ratios(own, weights, law, labels, reaches[-1]))
    return GroupTables(
        start=np.append(starts([len(labels) for labels in bases]), sum(map(len, bases))),
        base=integers([base for labels in bases for base in labels]),
        reach=integers(reaches),
        law_start=starts(law_counts),
        ratio_start=starts([table.size for table in tables]),
        ratios=np.concatenate([np.empty(0), *(table.reshape(-1) for table in tables)]),
    )


def root_bases(form: BundleForm, own: FormLaws) -> tuple[Floats, float]:
    """The cumulative chances of the bases of a form whose sums are all 0, and a bound on their errors."""
    if not form.is_root or len(own.bases) == 1 or own.frequencies is None:
        return np.ones(1), 0.0
    if any(split.reach < 0 for base in own.bases for split in base.splits):
        return np.linspace(0.0, 1.0, len(own.bases) + 1)[1:], 1.0  # nothing is known
    logs, errors = [], []
    for base in own.bases:
        log_whole = sum(
            count * (math.log(branch.whole.values[0]) + branch.whole.exponent * math.log(2))
            for branch, count in zip(base.branches, form.counts, strict=True)
        )
        relative = sum(
            count * branch.whole.errors[0] / branch.whole.values[0]
            for branch, count in zip(base.branches, form.counts, strict=True)
        )
        chance, error = _bridge_chance(base, form.counts, own.frequencies)
        logs.append(log_whole + math.log(chance))
        errors.append(relative + error / chance + 8 * ULP * (abs(log_whole) + 100))
    chances = np.exp(np.array(logs) - max(logs))
    return np.cumsum(chances) / chances.sum(), 2.1 * max(errors)


def _bridge_chance(base: Base, counts: Sequence[int], frequencies: Frequencies) -> tuple[float, float]:
    """B for sums that are all 0, and a bound on its error."""
    product = np.ones(frequencies.few, dtype=np.complex128)
    error, log_dropped, log_tails = 0.0, 0.0, math.log(2) - frequencies.growth * frequencies.points
    for split, count in zip(base.splits, counts, strict=True):
        product *= (split.transform[0] + 1j * split.transform_imaginary[0])[: frequencies.few] ** count
        error += count * (split.transform_error[0] + 8 * ULP)
        log_dropped += count * split.log_dropped[0]
        log_tails += count * split.log_growth[0]
    chance = float(frequencies.measure[: frequencies.few] @ product.real)
    return chance, 1.01 * (error + math.exp(log_dropped) + math.exp(log_tails)) + len(product) * ULP


def _ratios(own: FormLaws, weights: RowWeights, law: int, labels: Sequence[Label], reach: int) -> Floats:
    """log(F t_m / W_g) for y = 0 to ``reach``, a column for each label, and a last one with the largest error."""
    table = np.empty((reach + 1, len(labels) + 1))
    errors = np.zeros(reach + 1)
    below = np.log(weights.values[: reach + 1])
    for k, label in enumerate(labels):
        base = own.bases[label.base]
        whole = base.branches[law].whole
        values = np.log(whole.values[: reach + 1])
        shift = (whole.exponent - weights.exponent) * math.log(2)
        table[:, k] = values + np.log(base.splits[law].numbers[: reach + 1, label.block]) - below + shift
        relative = whole.errors[: reach + 1] / whole.values[: reach + 1]
        sizes = np.abs(values) + np.abs(below) + abs(shift) + np.abs(table[:, k]) + 1
        errors = np.maximum(errors, 1.01 * relative + 16 * ULP * sizes)
    table[:, -1] = errors
    return table


def _stride(pairs: Sequence[tuple[Branch, NodeSplit]]) -> int:
    """How many cumulative chances there are for each one that is kept."""
    entries = sum((split.reach + 1) * (2 * branch.reach + 1) for branch, split in pairs)
    if entries > STORED:
        entries = sum(stop - start for branch, split in pairs for _, start, stop in _laws(branch, split))
    return max(1, -(-entries // STORED))


def _laws(branch: Branch, split: NodeSplit) -> Iterator[tuple[Floats, int, int]]:
    """For each y the cumulative chances, where they begin to matter, and where rounding swallows what is added."""
    for first, last in chunks(branch, split.reach):
        for upto in np.cumsum(branch.laws(first, last), axis=1):
            yield upto, int(np.searchsorted(upto, CUT)), int(np.searchsorted(upto, upto[-1]))


def _cumulative(branch: Branch, split: NodeSplit, stride: int) -> Iterator[tuple[Floats, int]]:
    """For each y the cumulative chances at every ``stride``-th u, and the lowest u."""
    for upto, start, stop in _laws(branch, split):
        ends = np.minimum(np.arange(start + stride - 1, stop + stride, stride), len(upto) - 1)
        yield upto[ends], start - branch.reach


def _row_starts(tables: Sequence[Floats]) -> IntArray:
    """Where each row of these tables starts when they are joined."""
    first = starts([table.size for table in tables])
    return np.concatenate(
        [start + table.shape[1] * np.arange(len(table)) for start, table in zip(first, tables, strict=True)]
    ).astype(np.int64)


def integers(values: Sequence[int]) -> IntArray:
    """Whole numbers as an array."""
    return np.array(values, dtype=np.int64)


def starts(lengths: Sequence[int]) -> IntArray:
    """Where each of some runs starts when they are joined."""
    return np.cumsum(lengths, dtype=np.int64) - integers(lengths)

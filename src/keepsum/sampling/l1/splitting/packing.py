"""The laws of a tree as the kernels read them: all tables of one kind in one array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.l1.splitting.kernel_arguments import GUIDE, LawTables
from keepsum.sampling.l1.splitting.laws import Law, Laws
from keepsum.sampling.l1.splitting.splits import chunks

STORED = 2**22  # cumulative chances that are kept
CUT = 1e-19  # chances at the lower end of a law that are left out


def law_tables(laws: Laws) -> LawTables:
    """All laws, one behind the other."""
    every = laws.laws
    splits = [law.split for law in every]
    entries = sum((law.split.reach + 1) * (2 * law.branch.reach + 1) for law in every if law.split and law.branch)
    stride = max(1, -(-entries // STORED))
    runs = [run for law in every for run in _cumulative(law, stride)]
    places = [0 if split is None else len(split.slack) for split in splits]
    kept = [0 if split is None else split.transform.size for split in splits]
    width = np.repeat([0 if split is None else split.transform.shape[1] for split in splits], places)
    inside = np.concatenate([np.arange(count) for count in places])

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(split, name).reshape(-1) for split in splits if split is not None])

    return LawTables(
        weight_start=_starts([law.weights.reach + 1 for law in every]),
        weight_reach=_integers([law.weights.reach for law in every]),
        weight_top=np.array([law.weights.top for law in every]),
        weight_beyond=np.array([law.weights.beyond for law in every]),
        weights=np.concatenate([law.weights.values for law in every]),
        weight_error=np.concatenate([law.weights.errors for law in every]),
        left=_integers([law.parts[0] for law in every]),
        right=_integers([law.parts[1] for law in every]),
        split_reach=_integers([count - 1 for count in places]),
        place_start=_starts(places),
        cumulative_start=_starts([len(values) for values, _ in runs]),
        counts=_integers([len(values) for values, _ in runs]),
        lowest=_integers([lowest for _, lowest in runs]),
        slack=joined("slack"),
        inverse=joined("inverse"),
        peak=joined("peak"),
        peak_chance=joined("peak_chance"),
        numbers=joined("numbers"),
        transform_start=np.repeat(_starts(kept), places) + inside * width,
        transform_error=joined("transform_error"),
        log_dropped=joined("log_dropped"),
        log_growth=joined("log_growth"),
        cumulative=np.concatenate([np.empty(0), *(values for values, _ in runs)]),
        guide=_integers([m for values, _ in runs for m in np.searchsorted(values, np.arange(GUIDE) / GUIDE).tolist()]),
        transform=joined("transform"),
        transform_imaginary=joined("transform_imaginary"),
        stride=stride,
    )


def _cumulative(law: Law, stride: int) -> Iterator[tuple[Floats, int]]:
    """For each y the cumulative chances at every ``stride``-th u, and the lowest u."""
    if law.split is None or law.branch is None:
        return
    for first, last in chunks(law.branch, law.split.reach):
        for upto in np.cumsum(law.branch.laws(first, last), axis=1):
            start = int(np.searchsorted(upto, CUT))
            stop = int(np.searchsorted(upto, upto[-1]))  # from here on rounding swallows what is added
            ends = np.minimum(np.arange(start + stride - 1, stop + stride, stride), len(upto) - 1)
            yield upto[ends], start - law.branch.reach


def _integers(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _starts(lengths: list[int]) -> IntArray:
    return np.cumsum(lengths, dtype=np.int64) - _integers(lengths)

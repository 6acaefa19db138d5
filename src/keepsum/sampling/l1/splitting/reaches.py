"""How far the tables of laws go: guesses that decide when the referee is asked, never the law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from keepsum._arrays import IntArray
from keepsum.sampling.l1.splitting.bundles import Bundles, Load
from keepsum.sampling.l1.splitting.weights import drawn_reach


@dataclass(frozen=True, eq=False)
class Reaches:
    """For each law how far sums are drawn by tables, and how far weights are needed."""

    drawn: IntArray
    needed: IntArray


def reaches_of(rates: tuple[Fraction, ...], bundles: Bundles, tail_bits: int) -> Reaches:
    """How far the tables of all laws go.

    Sums below a place go no farther than those over the rest of the row. Weights go farther: near its end a convolution
    misses what lies beyond, which is bounded by moments of all cells below the parent, about twice as many, and a part
    goes as far as the sum that it is of and some more. Where a row may be anything but for one entry, so may all sums.
    """
    entries = len(bundles.entry_laws)
    count = entries + sum(len(form.parts) for form in bundles.forms)
    drawn, needed = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    flat = np.zeros(count, dtype=bool)
    for law, load in enumerate(bundles.entry_laws):
        needed[law] = _far(rates, load, tail_bits)
        flat[law] = _is_flat(rates, load)
    for form in bundles.forms:
        for law, (load, rest) in enumerate(zip(form.loads, form.rests, strict=True), form.first):
            drawn[law] = 0 if form.is_root else drawn_reach(rates, _narrower(rates, load, rest), tail_bits)
            needed[law] = 0 if form.is_root else _far(rates, load, tail_bits)
            flat[law] = _is_flat(rates, load)
            if not form.is_root and _is_flat(rates, rest):
                drawn[law], needed[law] = 2 * drawn[law], 2 * needed[law] + 2 * drawn[law]
    loads = [*bundles.entry_laws, *(load for form in bundles.forms for load in form.loads)]
    for form in bundles.forms:
        for law, (left, right) in enumerate(form.parts, form.first):
            more = drawn[law] + _far(rates, loads[left], tail_bits)  # what is narrow may be all of a sum
            needed[left], needed[right] = max(needed[left], more), max(needed[right], more)
    return Reaches(drawn, np.where(flat & (needed > 0), needed.max(), needed))


def farthest(rates: tuple[Fraction, ...], loads: Sequence[Load], tail_bits: int) -> int:
    """How far the widest of some sums goes."""
    different = {max(loads)} if len(rates) == 1 else set(loads)
    return max(drawn_reach(rates, load, tail_bits) for load in different)


def _far(rates: tuple[Fraction, ...], load: Load, tail_bits: int) -> int:
    return drawn_reach(rates, tuple(2 * n for n in load), tail_bits + 8)


def _narrower(rates: tuple[Fraction, ...], one: Load, other: Load) -> Load:
    """The sum with the smaller variance, about; one that is flat has none."""
    if len(rates) == 1:
        return min(one, other)
    if _is_flat(rates, one) or _is_flat(rates, other):
        return other if _is_flat(rates, one) else one
    return min(one, other, key=lambda load: sum(n / rate**2 for n, rate in zip(load, rates, strict=True) if rate))


def _is_flat(rates: tuple[Fraction, ...], load: Load) -> bool:
    return any(n and not rate for n, rate in zip(load, rates, strict=True))

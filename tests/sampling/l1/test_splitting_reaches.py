"""How far the tables of sums go: so far that the referee, which takes seconds in large tables, is hardly asked."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from keepsum.lattice.families import summed_out
from keepsum.sampling.l1.splitting import laws
from keepsum.sampling.l1.splitting.bundles import SplitTable, bundled
from keepsum.sampling.l1.splitting.laws import TAIL_BITS

SHAPES = {"20x20x20": (20, 20, 20), "51x20x2x5": (51, 20, 2, 5), "50x20x10x5x2": (50, 20, 10, 5, 2)}


def one_way(shape):
    """A table with a total kept for each category of each axis."""
    cells = int(np.prod(shape))
    families = list(np.indices(shape).reshape(len(shape), cells))
    return SplitTable(np.ones((cells, 1), dtype=np.int64), summed_out(families, cells))


def law_of(cells, points=2**13):
    """The law of the sum of so many cells at epsilon 1, for y = 0, 1, ..."""
    a = np.exp(-1.0)
    angles = 2 * np.pi * np.arange(points) / points
    transform = ((1 - a) ** 2 / (1 - 2 * a * np.cos(angles) + a * a)) ** cells
    return np.fft.ifft(transform).real[: points // 4]


def beyond(table):
    """How many sums of a draw lie beyond the tables on average, each given that its row adds up to 0."""
    bundles = bundled(table)
    drawn = laws.reaches_of((Fraction(1),), bundles, TAIL_BITS).drawn
    total = 0.0
    for number, times in Counter(bundles.form.tolist()).items():
        form = bundles.forms[number]
        if form.is_root:
            continue
        for law, (count, (load,), (rest,)) in enumerate(zip(form.counts, form.loads, form.rests, strict=True)):
            chances = np.abs(law_of(load) * law_of(rest))
            far = chances[drawn[form.first + law] + 1 :].sum()
            total += times * count * far / (chances.sum() - chances[0] / 2)
    return total


@pytest.mark.parametrize("shape", SHAPES)
def test_hardly_any_draw_has_a_sum_beyond_the_tables(shape):
    assert beyond(one_way(SHAPES[shape])) < 2.0**-17


def test_sums_that_count_on_the_rest_go_too_far(monkeypatch):
    """As if the rest of a row were no wider than the sum: one draw in a hundred asked the referee, for 12 seconds."""
    monkeypatch.setattr(laws, "cancelling_reach", lambda *_: 0)
    assert beyond(one_way(SHAPES["50x20x10x5x2"])) > 2.0**-8

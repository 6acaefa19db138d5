"""Focused noise per unit of l1 distance, against every change of a small table."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest

import keepsum as ks
from keepsum.accounting.focus import focused_epsilon

CELLS = 4
CHANGES = [change for change in itertools.product(range(-2, 3), repeat=CELLS) if any(change)]


def loss(change: tuple[int, ...], cells: list[Fraction], totals: list[tuple[list[int], Fraction]]) -> Fraction:
    """The log ratio of exp(-N) between tables that differ by a change, at most: N of the change itself."""
    inside = sum((epsilon * abs(z) for epsilon, z in zip(cells, change, strict=True)), Fraction(0))
    return inside + sum(
        (epsilon * abs(sum(change[cell] for cell in members)) for members, epsilon in totals), Fraction(0)
    )


@pytest.mark.thinned
@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_largest_loss_per_unit_and_is_attained(seed):
    choice = random.Random(seed)
    for _ in range(10):
        cells = [Fraction(choice.randint(0, 8), 8) for _ in range(CELLS)]
        totals = [
            (choice.sample(range(CELLS), choice.randint(1, CELLS)), Fraction(choice.randint(1, 9), 4))
            for _ in range(choice.randint(0, 3))
        ]
        stated = focused_epsilon(cells, totals)
        worst = max(loss(change, cells, totals) / sum(map(abs, change)) for change in CHANGES)
        assert worst == stated
        largest = max([*cells, *(epsilon for _, epsilon in totals)])
        assert stated >= largest  # the largest parameter alone would be too little wherever a cell is in a total


@pytest.mark.parametrize(
    ("cells", "totals"),
    [
        ([], []),
        ([0.5], []),
        ([Fraction(-1)], []),
        ([Fraction(1)], [([0], Fraction(0))]),
        ([Fraction(1)], [([1], Fraction(1))]),
    ],
)
def test_what_makes_no_sense_is_refused(cells, totals):
    with pytest.raises(ks.InputError):
        focused_epsilon(cells, totals)

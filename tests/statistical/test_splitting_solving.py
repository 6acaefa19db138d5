"""Bridges of many rows: a part of them is solved for together, by a Fourier sum of its own."""

from fractions import Fraction

import numpy as np
import pytest
from laws import assert_drawn_from, assert_not_drawn_from, power
from splitting_laws import drawn, entries_law, entry_sums, row_sums, rows_law

from keepsum.sampling.core.rng import Rng
from keepsum.sampling.l1.splitting.kernel_arguments import ACCEPT_SUM
from keepsum.sampling.l1.splitting.laws import Labelling, Solving
from keepsum.sampling.l1.splitting.sampler import Splitting
from keepsum.sampling.l1.splitting.slices import two_way

COUNT = 40_000
CASES = {  # sizes, epsilon, and how far entries are enumerated
    "4 x 4": (np.ones((4, 4), dtype=int), "1", 1),
    "5 x 3": (np.ones((5, 3), dtype=int), "1/2", 1),
    "regions": (np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), "1/2", 3),
    "zeros": (np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 1]]), "1/2", 2),
}
SOLVING = [Solving(rows=2, every=2), Solving(rows=3, every=4)]


class Counting(Splitting):
    """The sampler, and how often its referee was asked for the sum of a part."""

    asked = 0

    def _answer(self, state, room, uniform):
        self.asked += int(state.phase) == ACCEPT_SUM
        return super()._answer(state, room, uniform)


def made(case, solving, **options):
    sizes, epsilon, _ = CASES[case]
    return Counting(Fraction(epsilon), two_way(sizes), solving=solving, **options)


def law_of(case):
    sizes, epsilon, reach = CASES[case]
    return entries_law(sizes, float(Fraction(epsilon)), reach)


@pytest.mark.parametrize("solving", SOLVING, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_a_part_of_the_rows(case, solving):
    sampler = made(case, solving)
    assert_drawn_from(entry_sums(drawn(sampler, COUNT), CASES[case][0]), law_of(case))
    assert sampler.asked == 0


@pytest.mark.parametrize("labelling", [Labelling(4, 2)], ids=str)
def test_with_labels(labelling):
    noise = drawn(made("4 x 4", SOLVING[0], labelling=labelling), COUNT)
    assert_drawn_from(entry_sums(noise, CASES["4 x 4"][0]), law_of("4 x 4"))


@pytest.mark.parametrize("case", ["4 x 4", pytest.param("zeros", marks=pytest.mark.audit)])
@pytest.mark.parametrize("options", [{"word_bits": 8}, {"word_bits": 6}], ids=str)
def test_the_referee_settles_sums_of_a_part(case, options):
    sampler = made(case, SOLVING[0], **options)
    assert_drawn_from(entry_sums(drawn(sampler, 3_000), CASES[case][0]), law_of(case))
    assert sampler.asked > 30


@pytest.mark.parametrize("case", ["4 x 4", "zeros"])
def test_the_end_of_a_buffer_changes_nothing(monkeypatch, case):
    sampler = made(case, SOLVING[0], word_bits=10)
    expected = drawn(sampler, 60)
    plain = Rng.stream
    for length in (1, 2, 7, 64):
        monkeypatch.setattr(Rng, "stream", lambda self, _=0, length=length: plain(self, length))
        assert np.array_equal(drawn(sampler, 60), expected)


def changed(sampler, **changes):
    tables = {name: change(getattr(sampler._tables, name)) for name, change in changes.items()}
    sampler._tables = sampler._tables._replace(**tables)
    return sampler


def doubled(sampler):
    """The angles of another sum: twice what is needed."""
    cosines, sines = sampler._tables.cosines, sampler._tables.sines
    sampler._tables = sampler._tables._replace(cosines=2 * cosines**2 - 1, sines=2 * cosines * sines)
    return sampler


WRONG = {
    "the chance is that of another sum": doubled,
    "the chance of the sum is that of 0": lambda s: changed(s, cosines=np.ones_like, sines=np.zeros_like),
}


@pytest.mark.parametrize("way", WRONG)
def test_a_wrong_part_is_rejected(way):
    noise = entry_sums(drawn(WRONG[way](made("5 x 3", SOLVING[0])), COUNT), CASES["5 x 3"][0])
    assert_not_drawn_from(noise, law_of("5 x 3"))
    assert power(noise, law_of("5 x 3"), COUNT) > 1 - 1e-6


MANY = np.ones((400, 2), dtype=int)
FOUR = Solving(rows=2, every=100)  # four rows of these are solved for, which add up to a narrower sum than all do


def drawn_four(count):
    """Draws of the sum of the four rows; and its law."""
    rows = range(0, len(MANY), FOUR.every)
    sampler = Counting(Fraction(1), two_way(MANY), solving=FOUR)
    return row_sums(drawn(sampler, count), MANY, rows), rows_law(MANY, 1.0, rows, 6)


def drawn_with(frequencies, count):
    """Such draws as if so many of the sampler's frequencies were all: ``accept_others`` in NumPy.

    With a part of them the kernel would not end: it accepts sums that four rows hardly ever have.
    """
    tables = Counting(Fraction(1), two_way(MANY), solving=FOUR)._tables
    angles = 2 * np.pi / tables.points[0] * np.arange(frequencies)
    transform = tables.splits.transform[:frequencies]  # both entries of each row add up to 0
    n = np.arange(-40, 41)
    chances = np.cos(angles * n[:, None]) @ (tables.measure[:frequencies] * transform**4)
    angles = 2 * np.pi * np.arange(4096) / 4096
    other = (1 - np.exp(-2)) ** 2 / (1 - 2 * np.exp(-2) * np.cos(angles) + np.exp(-4))  # the transform of another row
    others = np.fft.ifft(other ** (len(MANY) - 4)).real[n]
    law = np.maximum(chances, 0) * np.maximum(others, 0)
    return np.random.default_rng(1).choice(n, count, p=law / law.sum())[:, None]


def test_a_small_part_of_many_rows():
    values, law = drawn_four(20_000)
    assert_drawn_from(values, law)
    assert_drawn_from(drawn_with(55, 20_000), law)


def test_the_frequencies_of_all_rows_are_too_few_for_a_part():
    """They are as many as the sum over all rows needs: so did a prototype of this bridge."""
    tables = Counting(Fraction(1), two_way(MANY), solving=FOUR)._tables
    assert (tables.few.tolist(), tables.frequencies.tolist()) == ([10], [55])
    values = drawn_with(10, 20_000)
    assert_not_drawn_from(values, rows_law(MANY, 1.0, range(0, len(MANY), FOUR.every), 6))
    assert power(values, rows_law(MANY, 1.0, range(0, len(MANY), FOUR.every), 6), len(values)) > 1 - 1e-6

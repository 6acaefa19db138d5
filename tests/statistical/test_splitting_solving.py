"""Bridges of many rows: a part of them is solved for together, by a Fourier sum of its own."""

from fractions import Fraction

import numpy as np
import pytest
from laws import assert_drawn_from, assert_not_drawn_from, power
from splitting_laws import drawn, entries_law, entry_sums

from keepsum.sampling.core.rng import Rng
from keepsum.sampling.l1.splitting.added import two_way
from keepsum.sampling.l1.splitting.kernel_arguments import ACCEPT_SUM
from keepsum.sampling.l1.splitting.laws import Labelling, Solving
from keepsum.sampling.l1.splitting.sampler import Splitting

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

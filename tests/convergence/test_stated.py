"""What is stated of chains, from given meeting times: figures, what they add to delta, words and pictures."""

import math
from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from keepsum.convergence.observe import BlockConvergence, Convergence
from keepsum.privacy.distance import Distance
from keepsum.privacy.guarantee import Guarantee, SamplingError, added_delta
from keepsum.privacy.numbers import three_digits_up
from support import titles_inside


def convergence(meetings, unmet=0, steps=50, blocks=1, confidence=0.95):
    return BlockConvergence(blocks, steps, 10, 1_000, meetings, unmet, confidence)


def test_pairs_that_have_not_met_show_nothing():
    found = Convergence((convergence(((1, 500),), unmet=1),), 0.0, 0.95)
    assert found.error.distance == 1
    assert found.error.extrapolated == 1
    assert "NOT MET" in repr(found)


def test_an_extrapolation_is_never_below_what_was_seen():
    group = convergence(((1, 900), (80, 100)), steps=50)
    assert group.bound.estimate > 0.1
    assert group.extrapolated >= group.bound.estimate


def test_blocks_add_up():
    one, many = convergence(((1, 1_000),)), convergence(((1, 1_000),), blocks=7)
    assert Convergence((many, None), 0.001, 0.95).error.distance == pytest.approx(7 * one.upper + 0.001)


def test_what_sampling_adds_to_delta():
    """(1 + e^(eps r)) times the distance, rounded up; checked against the definition by brute force."""
    laplace = ks.Laplace.per_unit(epsilon=0.25).resolve()
    assert added_delta(1e-3, laplace.unit_loss) == Fraction("0.00229")
    assert added_delta(1e-3, laplace.loss(Distance("l1", 4))) == Fraction("0.00372")
    assert added_delta(0.3, ks.Laplace.per_unit(epsilon=3).resolve().loss(Distance("l1", 4))) == 1
    assert added_delta(1e-3, ks.Gaussian(sigma=2).resolve().loss(Distance("l2", 4))) == Fraction("0.001")
    for distance in (1, 2, 5, 30):
        per_unit = float(added_delta(1e-3, laplace.unit_loss))
        growth = math.expm1(0.25 * distance) / math.expm1(0.25)
        assert per_unit * growth >= 1e-3 * (1 + math.exp(0.25 * distance))


def test_the_folded_delta_holds_for_a_sampler_that_is_off():
    """Two laws on a line, each off by d in the worst way: the stated delta covers the worst set of outcomes."""
    epsilon, d, shift = 0.5, 0.01, 3
    points = np.arange(-80, 81)
    law = np.exp(-epsilon * np.abs(points)) / np.exp(-epsilon * np.abs(points)).sum()
    moved = np.roll(law, shift)
    worst = law - math.exp(epsilon * shift) * moved > -1e-15
    bad, other = law.copy(), moved.copy()
    bad[np.argmax(worst)] += d  # mass moved into the worst set, and out of it on the other side
    bad[np.argmax(law * ~worst)] -= d
    place = np.argmax(np.where(worst, other, 0))
    other[place] -= d
    loss = float((bad - math.exp(epsilon * shift) * other)[worst].sum())
    stated = float(added_delta(d, ks.Laplace.per_unit(epsilon=epsilon).resolve().loss(Distance("l1", shift))))
    assert d < loss <= stated


def test_words_say_what_was_observed_and_what_was_not():
    person = Distance("l1", 4)
    error = SamplingError(0.0009, 2e-9, 0.95, 4_000)
    words = str(Guarantee(ks.Laplace.per_unit(epsilon=1).resolve(), person, "estimated", error))
    assert words == (
        "per-person epsilon 4, plus delta 0.0501 from sampling (95% confidence limit; 1.12e-7 extrapolated); "
        "epsilon 1 per unit of l1 distance, plus delta 0.00335 from sampling (95% confidence limit; 7.44e-9 "
        "extrapolated); estimated"
    )
    large = Guarantee(ks.Laplace.per_unit(epsilon=3).resolve(), person, "estimated", error)
    assert "delta 1 (no guarantee) from sampling" in large.person_words
    bare = Guarantee(ks.Gaussian(sigma="0.4").resolve(), Distance("l2", 4), "estimated", error)
    assert "up to total variation 0.0009 from sampling" in bare.words
    rounded = Guarantee(ks.Laplace.per_unit(epsilon=1).resolve(), person, "rounded", SamplingError(1e-10))
    assert "delta 3.72e-10 from sampling" in rounded.words
    assert three_digits_up(1.5) == "1"


def test_what_weights_predict_counts():
    """Rare states that hold a chain for long are seen in weights before they are seen in pairs."""
    quiet, warned = (BlockConvergence(1, 50, 10, 1_000, ((1, 4_000),), 0, 0.95, f) for f in (0.0, 0.02))
    assert quiet.upper < 0.002
    assert warned.upper == warned.extrapolated == 0.02


def test_pairs_that_all_meet_at_once():
    """They show as much as pairs that meet a step later, and there is a picture.

    One pair that did not shows less: how slow such pairs are cannot be told from it.
    """
    at_once, later = (BlockConvergence(1, 50, 10, 1_000, ((k, 4_000),), 0, 0.95) for k in (0, 1))
    assert 1 / 4_000 < at_once.upper == later.upper < 1.1e-3
    few = BlockConvergence(1, 45, 8, 1_000, ((0, 99), (1, 1)), 0, 0.95)
    assert few.upper > 0.9
    slow = BlockConvergence(1, 45, 8, 1_000, ((0, 3_000), (1, 500), (10, 500)), 0, 0.95)
    assert slow.upper > 1.8 * at_once.upper  # half of those that do not meet at once take longer than a lag
    for found in (at_once, few):
        assert Convergence((found,), 0.0, 0.95).plot().axes


@pytest.mark.audit
@pytest.mark.parametrize("unmet", [0, 31])
def test_no_title_of_a_curve_is_cut(unmet):
    """Two panels, one with a form in many words: the whole finding lies inside the figure."""
    forms = "5 × 5 table with both margins kept", "3 overlapping totals of 40 cells, 5 in each of 12 regions, 51 times"
    meetings = (1, 3_900), (3, 100)
    group = BlockConvergence(1, 50, 10, 4_000, meetings, unmet, 0.95)
    figure = Convergence((group, None, group), 0.0, 0.95).plot(forms)
    assert titles_inside(figure)
    said = " ".join(figure.axes[1].get_title(loc="left").split())
    assert said.startswith(forms[1])
    assert ("no bound, 31 of 4,031 pairs had not met" if unmet else "total variation at most") in said

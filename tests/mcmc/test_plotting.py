"""What the plot says, and what it says when it cannot be drawn."""

import sys

import numpy as np
import pytest

import keepsum as ks


def meeting(lag, last=None):
    excess = np.random.default_rng(lag).geometric(0.001, 200)
    if last is None:
        return ks.mcmc.MeetingTimes(lag + excess, lag)
    return ks.mcmc.MeetingTimes(lag + np.minimum(excess, last), lag, excess > last, lag + last)


def words(axes):
    return [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel(), *(text.get_text() for text in axes.texts)]


def test_the_title_says_the_finding(tmp_path):
    figure = ks.mcmc.plot_bound([meeting(1000), meeting(20_000)])
    (axes,) = figure.axes
    said = words(axes)
    assert said[0].startswith("The bound falls to 0.1 after about 2,")
    assert "lag 1,000" in said
    assert "lag 20,000" in said
    assert "steps of the chain (log scale)" in said
    assert axes.get_xscale() == "log"
    assert len({line.get_color() for line in axes.lines}) >= 3
    figure.savefig(tmp_path / "bound.png")
    assert (tmp_path / "bound.png").stat().st_size > 10_000


def test_with_pairs_that_have_not_met_it_says_so():
    said = words(ks.mcmc.plot_bound(meeting(1000, last=1500)).axes[0])
    assert said[0].startswith("Not known to converge: ")
    assert "lag 1,000\nat least this" in said
    assert not any("shaded" in text for text in said)


def test_without_matplotlib_one_sentence_helps(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ks.InputError, match=r"pip install 'keepsum\[report\]'"):
        ks.mcmc.plot_bound(meeting(1000))


def test_other_things_than_times_get_a_sentence():
    for wrong in ([], [1, 2, 3]):
        with pytest.raises(ks.InputError, match="must be MeetingTimes"):
            ks.mcmc.plot_bound(wrong)

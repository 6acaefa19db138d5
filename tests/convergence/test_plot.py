"""What the plot says, and what it says when it cannot be drawn."""

import sys

import numpy as np
import pytest

import keepsum as ks
from support import mostly_audit, titles_inside


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
    with pytest.raises(ks.InputError, match=r"pip install '\.\[report\]'"):
        ks.mcmc.plot_bound(meeting(1000))


def test_other_things_than_times_get_a_sentence():
    for wrong in ([], [1, 2, 3]):
        with pytest.raises(ks.InputError, match="must be MeetingTimes"):
            ks.mcmc.plot_bound(wrong)


@mostly_audit(
    "title",
    [
        None,
        "Children, l1 target: the bound crosses 0.1 after 1,234 steps, by 200 pairs at each of three lags",
        "a " * 200,
        "W" * 200,
        "W" * 150 + " and " + "W" * 100,
    ],
)
def test_no_title_is_cut(title, tmp_path):
    figure = ks.mcmc.plot_bound([meeting(1000, last=1500)], title=title)
    assert titles_inside(figure)
    said = figure.axes[0].get_title(loc="left")
    assert said.split() == (title or said).split()
    figure.savefig(tmp_path / "bound.svg")
    assert titles_inside(figure)


def test_lines_of_a_title_stay_apart():
    for title in ("One line,\nand another", " "):
        assert ks.mcmc.plot_bound(meeting(1000), title=title).axes[0].get_title(loc="left") == title.strip(" ")


def test_a_short_title_stays_on_one_line():
    title = ks.mcmc.plot_bound(meeting(1000)).axes[0]._left_title
    assert "\n" not in title.get_text()
    assert title.get_fontsize() == 12


def test_the_rule_about_titles_can_fail():
    figure = ks.mcmc.plot_bound(meeting(1000))
    figure.axes[0].set_title("a title that is a little longer than the figure is wide", loc="left", fontsize=20)
    assert not titles_inside(figure)

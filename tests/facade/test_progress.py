"""Progress of draws: on a terminal only, when they take long, with rich only, and without changing the noise."""

import builtins
import contextlib
import io
import subprocess
import sys

import numpy as np
import pytest

import keepsum as ks
from keepsum._progress import doing, is_watched, portion, reporter, watched_by
from keepsum.facade import objects
from keepsum.facade.objects import Bar, drawing_shown
from support import mostly_audit

KEEP = ks.Invariants.subsets(40, [range(20), range(15, 30)])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Watched:
    def __init__(self) -> None:
        self.stages: list[str] = []
        self.fractions: list[float] = []

    def doing(self, stage: str) -> None:
        self.stages.append(stage)

    def done(self, fraction: float) -> None:
        self.fractions.append(fraction)


class Now:
    """A timer that goes off at once."""

    def __init__(self, _: float, action) -> None:
        self.action = action

    def start(self) -> None:
        self.action()

    def cancel(self) -> None:
        pass


@pytest.fixture
def impatient(monkeypatch):
    """Everything is shown at once."""
    monkeypatch.setattr(objects, "WORTH_WATCHING", 0.0)
    monkeypatch.setattr(objects, "Timer", Now)
    monkeypatch.setenv("TERM", "xterm")


@mostly_audit("threads", [1, 3])
@pytest.mark.parametrize(
    "mechanism", [ks.Laplace.per_unit(epsilon=1), ks.Gaussian(sigma=3), ks.Laplace.per_unit(epsilon=1, norm="l2")]
)
def test_all_draws_are_reported_and_the_noise_is_the_same(mechanism, threads):
    plan, watched = ks.plan(keep=KEEP, mechanism=mechanism), Watched()
    with watched_by(watched):
        noise = plan.sample(20_000, rng=ks.rng(seed=1), threads=threads)
    assert np.array_equal(noise, plan.sample(20_000, rng=ks.rng(seed=1)))
    assert len(watched.fractions) > 1
    assert max(watched.fractions) == pytest.approx(1)
    assert all(0 <= fraction < 1 + 1e-9 for fraction in watched.fractions)
    if threads == 1:
        assert watched.fractions == sorted(watched.fractions)
    assert not is_watched()


def test_a_long_draw_is_shown_on_a_terminal(impatient):
    screen = Terminal()
    with contextlib.redirect_stderr(screen):
        ks.plan(keep=KEEP, mechanism=ks.Laplace.per_unit(epsilon=1)).sample(20_000)
    assert "keepsum: drawing the noise" in screen.getvalue()


def test_nothing_is_shown_in_a_pipe(impatient):
    pipe = io.StringIO()
    with contextlib.redirect_stderr(pipe):
        ks.plan(keep=KEEP, mechanism=ks.Laplace.per_unit(epsilon=1)).sample(20_000)
    assert pipe.getvalue() == ""


def test_nothing_is_shown_without_rich(impatient, monkeypatch):
    imported = builtins.__import__

    def without_rich(name, *rest):
        if name.startswith("rich"):
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    screen = Terminal()
    with contextlib.redirect_stderr(screen):
        ks.plan(keep=KEEP, mechanism=ks.Laplace.per_unit(epsilon=1)).sample(20_000)
    assert screen.getvalue() == ""


def test_a_short_draw_starts_no_timer(monkeypatch):
    monkeypatch.setattr(objects, "Timer", lambda *_: pytest.fail("a timer"))
    with contextlib.redirect_stderr(Terminal()):
        ks.plan(keep=KEEP, mechanism=ks.Laplace.per_unit(epsilon=1)).sample(10)


def test_whoever_watches_already_is_not_disturbed(impatient):
    screen, watched = Terminal(), Watched()
    with contextlib.redirect_stderr(screen), watched_by(watched):
        ks.plan(keep=KEEP, mechanism=ks.Laplace.per_unit(epsilon=1)).sample(20_000)
    assert screen.getvalue() == ""
    assert watched.fractions


def test_a_bar_that_is_closed_stays_away(monkeypatch):
    """The timer may go off just when the last draw is done."""
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    bar = Bar(screen)
    bar.close()
    bar.show()
    assert screen.getvalue() == ""


def test_the_bar_goes_when_a_draw_fails(impatient):
    with contextlib.redirect_stderr(Terminal()), pytest.raises(KeyboardInterrupt), drawing_shown(10.0):
        raise KeyboardInterrupt
    assert not is_watched()


def test_portions_add_up_and_end():
    watched = Watched()
    with watched_by(watched):
        doing("drawing")
        assert reporter() is None
        with portion(0.5, 1.0):
            reporter()(0.5)
        assert reporter() is None
    doing("nobody is told")
    assert (watched.stages, watched.fractions) == (["drawing"], [0.75, 1.0])


def test_a_portion_of_a_portion():
    watched = Watched()
    with watched_by(watched), portion(0.0, 0.5), portion(0.5, 0.75):
        reporter()(0.5)
    assert watched.fractions == [0.3125, 0.375, 0.5]


def test_sampling_brings_no_rich():
    code = (
        "import sys, keepsum as ks\n"
        "ks.plan(keep=[[1, 1, 1]], mechanism=ks.Laplace.per_unit(epsilon=1)).sample(1000)\n"
        "print('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"

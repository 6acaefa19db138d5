import os
import signal
import threading

import pytest

from keepsum import _signals
from keepsum._signals import held_back, interruptible, let_through


def send_and(done, step):
    signal.raise_signal(signal.SIGINT)
    done.append(step)


def test_a_signal_waits_for_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), held_back():
        send_and(done, "all of it")
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_blocks_inside_blocks():
    done = []

    def work():
        with held_back():
            send_and(done, "inside")
        done.append("after the inner one")

    with pytest.raises(KeyboardInterrupt), held_back():
        work()
    assert done == ["inside", "after the inner one"]


def stopped_then(done):
    with pytest.raises(KeyboardInterrupt), let_through():
        send_and(done, "never")
    send_and(done, "held again")


def test_signals_are_let_through_and_held_again():
    done = []

    def work():
        send_and(done, "held")
        with let_through():
            done.append("never")

    with held_back(), pytest.raises(KeyboardInterrupt), let_through():
        send_and(done, "never")
    with pytest.raises(KeyboardInterrupt), held_back():
        work()
    with pytest.raises(KeyboardInterrupt), held_back():
        stopped_then(done)
    assert done == ["held", "held again"]


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with held_back():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_has_nothing_to_hold_back():
    handlers = []

    def work():
        with held_back(), let_through():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


def test_foreign_code_is_not_waited_for_after_a_signal():
    """The step never ends by itself."""
    ended = threading.Event()

    def step():
        os.kill(os.getpid(), signal.SIGINT)
        ended.wait()

    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(step)
    finally:
        ended.set()


def test_foreign_code_that_can_be_cancelled_has_ended_after_a_signal():
    """Python 3.11 takes a thread for ended if a signal comes while it is joined."""
    cancelled, steps = threading.Event(), []

    def step():
        os.kill(os.getpid(), signal.SIGINT)
        cancelled.wait()
        steps.append("ended")

    with pytest.raises(KeyboardInterrupt):
        interruptible(step, cancel=cancelled.set)
    assert steps == ["ended"]


def test_foreign_code_is_cancelled_until_it_listens():
    """The first time may come before it has begun; being cancelled may itself fail."""
    cancelled, attempts = threading.Event(), []

    def cancel():
        attempts.append(None)
        if len(attempts) == 1:
            raise OSError
        if len(attempts) == 3:
            cancelled.set()

    def look():
        raise LookupError

    with pytest.raises(LookupError):
        interruptible(cancelled.wait, look, cancel)
    assert len(attempts) == 3


def test_foreign_code_that_cannot_be_cancelled_is_left_alone(monkeypatch):
    monkeypatch.setattr(_signals, "CHANCES", 2)
    ended = threading.Event()

    def look():
        raise LookupError

    try:
        with pytest.raises(LookupError):
            interruptible(ended.wait, look, lambda: None)
    finally:
        ended.set()


def test_what_foreign_code_returns_or_raises():
    assert interruptible(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)

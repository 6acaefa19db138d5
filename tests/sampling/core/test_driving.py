"""Sharing work between threads: the same draws for any number of them, and nothing goes on behind an error."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import keepsum as ks
from keepsum.sampling.core.driving import equal_ranges, in_parallel
from keepsum.sampling.core.rng import Key, Stream


def taken(stream, count):
    return tuple(stream.take(count).tolist())


@pytest.mark.parametrize("used", [0, 1, 100, 5000, 100_000])
def test_a_stream_that_follows_another_reads_its_own_words(used):
    key = Key(bytes(32))
    done, after = Stream(key, 1), Stream(key, 2)
    before = taken(done, used)
    after.follow(done)
    words = taken(after, 70_000)
    assert words == taken(Stream(key, 2), 70_000)
    rest = taken(done, 1000)  # nobody should, but then it goes on with words of its own
    assert len({*before, *words, *rest}) == used + 71_000


def test_a_stream_makes_about_what_the_one_before_it_used():
    key = Key(bytes(32))
    done, after = Stream(key, 1), Stream(key, 2)
    taken(done, 20_000)
    after.follow(done)
    taken(after, 1)
    assert len(after.words) == 20_000
    taken(after, 20_000)
    assert len(after.words) < 3000


def test_threads_change_nothing():
    def work(first, last, stream):
        return [taken(stream, 100 * k) for k in range(first, last)]

    ranges = equal_ranges(40, 3)
    alone = in_parallel(work, ranges, ks.rng(seed=1), 1)
    assert [in_parallel(work, ranges, ks.rng(seed=1), threads) for threads in (2, 3, 50)] == [alone] * 3
    words = [word for part in alone for draw in part for word in draw]
    assert len(set(words)) == len(words) == sum(100 * k for k in range(40))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("error", [ValueError, IndexError, KeyboardInterrupt])
def test_an_error_arrives_and_no_further_work_begins(threads, error):
    begun, failed = [], threading.Event()

    def work(first, last, stream):
        begun.append(first)
        if first == 1:
            failed.set()
            raise error("in the second")
        if first:
            failed.wait()

    with pytest.raises(error, match="in the second"):
        in_parallel(work, equal_ranges(1000, 1), ks.rng(seed=1), threads)
    assert len(begun) < 100


@pytest.mark.audit
def test_nothing_goes_on_where_a_thread_cannot_be_started(monkeypatch):
    """The first helper has been started, and would do all the work before the error is told."""
    begun, submitted, failed = [], [], threading.Event()
    honest = ThreadPoolExecutor.submit

    def submit(self, work):
        submitted.append(work)
        if len(submitted) == 2:
            failed.set()
            raise RuntimeError("can't start new thread")
        return honest(self, work)

    def work(first, last, stream):
        begun.append(first)
        failed.wait()

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)
    with pytest.raises(RuntimeError, match="can't start"):
        in_parallel(work, equal_ranges(100_000, 1), ks.rng(seed=1), 3)
    assert len(begun) < 100_000


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_ranges_are_even(count):
    ranges = equal_ranges(count, 8)
    assert [job for first, last in ranges for job in range(first, last)] == list(range(count))
    sizes = [last - first for first, last in ranges]
    assert max(sizes, default=0) <= 8
    assert len(sizes) == -(-count // 8)

"""What a forked child does not share with its parent: words, and locks that nobody would free."""

import ctypes
import os
import platform
import select
import signal
import threading
from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from keepsum.sampling.core import balls, forking
from keepsum.sampling.core.forking import ProcessLock
from keepsum.sampling.core.rng import Key, Stream

HANG = 120  # seconds after which a child that does not answer is taken to hang; nothing else depends on it


def past_the_hooks():
    """As a library in C forks: Python is not told."""
    return ctypes.PyDLL(None).fork()


CLONE = {"x86_64": 56, "aarch64": 220}  # the number of the system call
NEW_USERS, NEW_IDS = 0x10000000, 0x20000000  # namespaces of users and of process ids


def cloned(flags=0):
    """A fork that not even the C library is told of."""
    number = CLONE.get(platform.machine())
    if number is None or platform.system() != "Linux":
        pytest.skip("the number of Linux's clone is not known for this machine")
    return ctypes.PyDLL(None, use_errno=True).syscall(number, flags | signal.SIGCHLD, 0, 0, 0, 0)


def cloned_in_namespace():
    """A child that is process 1 of a namespace of its own, as in a container."""
    child = cloned(NEW_IDS)
    if child < 0:
        child = cloned(NEW_USERS | NEW_IDS)  # in which everyone is an administrator
    if child < 0:
        pytest.skip(f"the kernel refuses a namespace of process ids: {os.strerror(ctypes.get_errno())}")
    return child


FORKS = pytest.mark.parametrize("fork", [os.fork, past_the_hooks, cloned], ids=["os.fork", "fork in C", "clone"])


def in_child(work, fork=os.fork):
    """The whole numbers that ``work`` returns in a forked child; a failure if it never comes to an end."""
    inward, outward = os.pipe()
    child = fork()
    if child == 0:
        status = 1
        try:
            os.write(outward, np.array(work(), dtype=np.uint64).tobytes())
            status = 0
        finally:
            os._exit(status)
    os.close(outward)
    try:
        answered, _, _ = select.select([inward], [], [], HANG)
        if not answered:
            os.kill(child, signal.SIGKILL)
        found = os.read(inward, 2**16) if answered else b""
    finally:
        os.close(inward)
        _, status = os.waitpid(child, 0)
    assert answered, "the child hangs"
    assert status == 0, "the child failed"
    return np.frombuffer(found, dtype=np.uint64).tolist()


def words(stream, count=8):
    return [stream.word() for _ in range(count)]


@FORKS
@pytest.mark.parametrize("seed", [None, 5])
def test_a_stream_that_outlives_its_source_does_not_repeat(fork, seed):
    source = ks.rng(seed=seed)
    held = source.stream()
    held.word()
    held.extra.word()
    del source
    child = in_child(lambda: [*words(held), *words(held.extra)], fork)
    own = [*words(held), *words(held.extra)]
    assert len({*own, *child}) == len(own) + len(child) == 32


@FORKS
@pytest.mark.parametrize("seed", [None, 5])
def test_no_way_of_taking_words_hands_out_what_was_at_hand_before_the_fork(fork, seed):
    """A buffer that is half used is the parent's."""
    source = ks.rng(seed=seed)
    plan = ks.plan(keep=ks.Invariants.subsets(40, [list(range(40))]), mechanism=ks.Laplace.per_unit(epsilon=1))
    streams = [source.stream() for _ in range(3)]
    for stream in streams:
        stream.word()

    def drawn():
        streams[2].more()
        noise = plan.sample(3, rng=source).reshape(-1).astype(np.uint64)
        return [*streams[0].take(8), streams[1].bits(64), streams[2].word(), source.below(2**64), *noise.tolist()]

    found = [*(in_child(drawn, fork) for _ in range(2)), drawn()]
    numbers = [number for own in found for number in own[:11]]
    assert len(set(numbers)) == len(numbers) == 33
    assert len({tuple(own[11:]) for own in found}) == 3


def test_a_kernel_is_not_fed_with_words_of_the_parent():
    """The words of a stream that a kernel reads by itself, without asking for any."""
    from keepsum.sampling.core import driving

    stream = ks.rng(seed=1).stream()
    stream.word()

    def kernel(given, states, tables, task):
        if len(given) <= states[0].position:
            return driving.MORE
        seen.append(int(given[states[0].position]))
        states["position"] += 1
        return driving.DONE

    seen: list[int] = []

    def read():
        driving.run(kernel, stream, None, None)
        return [seen.pop()]

    for fork in (os.fork, past_the_hooks):
        child = in_child(read, fork)
        assert child != read()


def test_a_seed_gives_the_same_in_each_numbered_child():
    """Of two sources with one seed the first children agree, and the second ones, and these are not the same."""

    def children():
        source = ks.rng(seed=3)
        return [in_child(lambda: [source.below(2**64), *words(source.stream())]) for _ in range(2)]

    first, second = children()
    assert [first, second] == children()
    assert first != second


def test_a_child_of_a_child_has_words_of_its_own():
    source = ks.rng(seed=3)

    def grandchild():
        return in_child(lambda: words(source.stream()))

    seen = [*in_child(grandchild), *in_child(lambda: words(source.stream())), *words(source.stream())]
    assert len(set(seen)) == len(seen) == 24


def test_threads_that_find_out_about_a_fork_at_once_agree():
    def work():
        key, barrier, found = Key(bytes(32)), threading.Barrier(8), []

        def look():
            barrier.wait()
            found.append((forking.generation(), *words(Stream(key, 1), 2)))

        threads = [threading.Thread(target=look) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [len(set(found)), found[0][0] - before]

    before = forking.generation()
    assert in_child(work, past_the_hooks) == [1, 1]


@pytest.mark.skipif(platform.system() != "Linux", reason="elsewhere a process is told apart by its id alone")
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("fork", [past_the_hooks, cloned], ids=["fork in C", "clone"])
def test_a_child_with_the_process_id_of_its_parent_has_words_of_its_own(fork, seed, monkeypatch):
    """An id is only a number: that of a parent that has ended is given away again."""
    monkeypatch.setattr(os, "getpid", lambda: 4711)
    source = ks.rng(seed=seed)
    held = source.stream()
    held.word()
    child = in_child(lambda: [*words(held), *words(source.stream())], fork)
    own = [*words(held), *words(source.stream())]
    assert len({*own, *child}) == len(own) + len(child) == 32


@pytest.mark.parametrize("sign", [None, forking.SystemRecord()], ids=["wiped memory", "what the system records"])
@pytest.mark.parametrize("seed", [None, 5])
def test_a_child_in_a_namespace_has_words_of_its_own(seed, sign, monkeypatch):
    """Two containers, one inside the other, in each of which the process is number 1."""
    if sign is not None:
        monkeypatch.setattr(forking._LINEAGE, "sign", sign)
        monkeypatch.setattr(forking._LINEAGE, "state", (sign.read(), forking._LINEAGE.state[1]))

    def outer():
        source = ks.rng(seed=seed)
        held = source.stream()
        held.word()
        inner = in_child(lambda: [os.getpid(), *words(held), *words(source.stream())], cloned_in_namespace)
        return [os.getpid(), *inner, *words(held), *words(source.stream())]

    own_id, inner_id, *numbers = in_child(outer, cloned_in_namespace)
    assert own_id == inner_id == 1
    assert len(set(numbers)) == len(numbers) == 32


def test_a_system_without_wiped_memory_records_processes(monkeypatch):
    def refused(self):
        raise OSError

    monkeypatch.setattr(forking.WipedMemory, "__init__", refused)
    assert isinstance(forking.best_sign(), forking.SystemRecord)


def test_without_wiped_memory_a_fork_is_noticed_too(monkeypatch):
    sign = forking.SystemRecord()
    monkeypatch.setattr(forking._LINEAGE, "sign", sign)
    monkeypatch.setattr(forking._LINEAGE, "state", (sign.read(), forking._LINEAGE.state[1]))
    before = forking.generation()
    assert in_child(lambda: [forking.generation() - before], past_the_hooks) == [1]
    assert in_child(lambda: [forking.generation() - before]) == [1]
    assert forking.generation() == before


class Held:
    """A thread that holds something while the process forks."""

    def __init__(self, enter):
        self._enter, self._inside, self._go = enter, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self):
        with self._enter():
            self._inside.set()
            self._go.wait()

    def __enter__(self):
        self._thread.start()
        self._inside.wait()

    def __exit__(self, *_):
        self._go.set()
        self._thread.join()


@FORKS
def test_a_child_does_not_wait_for_a_precision_that_a_thread_had_set(fork):
    from flint import ctx

    usual = ctx.prec
    with Held(lambda: balls.precision(777)):
        third = in_child(lambda: balls.enclosure(lambda: balls.ball(Fraction(1, 3)), 8), fork)
        if fork is os.fork:
            assert in_child(lambda: [ctx.prec]) == [usual]
    assert third == [85, 86]
    assert ctx.prec == usual


def test_a_fork_inside_of_a_precision_keeps_it():
    from flint import ctx

    with balls.precision(99):
        assert in_child(lambda: [ctx.prec]) == [99]


@FORKS
def test_a_child_does_not_wait_for_a_source_that_a_thread_was_drawing_from(fork):
    source = ks.rng()
    with Held(lambda: source._lock.here()):
        assert len(in_child(lambda: words(source.stream(4)), fork)) == 8
        assert in_child(lambda: [source.below(1)], fork) == [0]


def test_a_child_of_a_child_past_the_hooks_can_fork():
    """Where another thread of the parent was about to fork too."""
    lineage = forking._LINEAGE
    with Held(lambda: lineage.one_at_a_time.here()):
        assert in_child(lambda: in_child(lambda: [7]), past_the_hooks) == [7]


def test_a_child_does_not_wait_for_a_property_that_a_thread_was_working_out():
    """Python 3.11 has one lock for a cached property of all objects."""
    from keepsum.sampling.gaussian.factors import Factor
    from keepsum.sampling.gaussian.kernel_arguments import FactorTables

    lock = getattr(vars(Factor)["_inverse"], "lock", None)
    factor = Factor(FactorTables(*(np.ones(1),) * 4, np.array([0, 1]), np.array([0]), np.array([2])))
    if lock is None:
        pytest.skip("cached properties have no lock from Python 3.12 on")
    with Held(lambda: lock):
        assert in_child(lambda: factor.coordinates(np.array([6]))) == [3]


def test_a_lock_is_one_for_all_threads_of_a_process():
    lock = ProcessLock()
    assert lock.here() is lock.here()

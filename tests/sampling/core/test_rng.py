"""The one door to randomness: exact primitives, separate streams, and nothing shared by accident."""

from __future__ import annotations

import copy
import hashlib
import math
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import keepsum as ks
from keepsum.sampling.core.rng import Key, LazyUniform, Rng, Stream, keyed_rng, rng
from support import HANG, mostly_audit

ALPHA = 1e-6


def binomial_ok(hits, count, p):
    return stats.binomtest(hits, count, p).pvalue > ALPHA


def test_bounded_integers_are_uniform():
    source = ks.rng(seed=1)
    for n in (1, 2, 3, 7, 100, 2**64 + 1):
        found = [source.below(n) for _ in range(3_000)]
        assert all(0 <= value < n for value in found)
        if n == 1:
            continue
        bins = np.bincount([value * min(n, 10) // n for value in found], minlength=min(n, 10))
        shares = (
            [len([0 for v in range(n) if v * min(n, 10) // n == k]) / n for k in range(min(n, 10))]
            if n < 200
            else [0.1] * 10
        )
        assert stats.chisquare(bins, 3_000 * np.array(shares)).pvalue > ALPHA


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1), Fraction(1, 3), Fraction(999, 1000)])
def test_bernoulli(p):
    source = ks.rng(seed=2)
    hits = sum(source.bernoulli(p) for _ in range(20_000))
    assert binomial_ok(hits, 20_000, float(p)) if 0 < p < 1 else hits == 20_000 * p


@mostly_audit("x", [Fraction(0), Fraction(1, 10), Fraction(1), Fraction(5, 2)])
def test_bernoulli_exp(x):
    source = ks.rng(seed=3)
    hits = sum(source.bernoulli_exp(x) for _ in range(20_000))
    assert binomial_ok(hits, 20_000, math.exp(-x)) if x else hits == 20_000


def test_a_biased_coin_is_seen():
    source = ks.rng(seed=3)
    hits = sum(source.bernoulli_exp(Fraction(1)) for _ in range(20_000))
    assert not binomial_ok(hits, 20_000, math.exp(-1) * 1.06)


def test_lazy_uniform_compares_exactly():
    """Against 1/3, whose digits never end: the first known digits are those of 1/3 for a long way."""
    third = lambda bits: (2**bits // 3, 2**bits // 3 + 1)  # noqa: E731
    stream = Stream(Key(bytes(32)), 0)
    known = LazyUniform(stream, 2**200 // 3, 200)
    assert known.below(third) in (True, False)
    assert known._count > 200  # more digits were needed
    assert LazyUniform(stream, 2**200 // 3 - 1, 200).below(third)
    assert not LazyUniform(stream, 2**200 // 3 + 1, 200).below(third)
    source = ks.rng(seed=4)
    hits = sum(source.uniform().below(third) for _ in range(5_000))
    assert binomial_ok(hits, 5_000, 1 / 3)


@pytest.mark.parametrize("call", [lambda r: r.below(0), lambda r: r.bernoulli(2), lambda r: r.bernoulli_exp(-1)])
def test_bad_questions(call):
    with pytest.raises(ks.InputError):
        call(ks.rng(seed=1))


@pytest.mark.parametrize("seed", [1.5, True, b"x", [1]])
def test_bad_seeds(seed):
    with pytest.raises(ks.InputError, match="A seed must be"):
        ks.rng(seed=seed)


def words(stream, count=64):
    return tuple(stream.word() for _ in range(count))


def test_seeds_repeat_and_the_operating_system_does_not():
    assert words(ks.rng(seed=7).stream()) == words(ks.rng(seed=7).stream())
    assert words(ks.rng(seed=7).stream()) != words(ks.rng(seed="7").stream())
    assert words(ks.rng().stream()) != words(ks.rng().stream())
    assert ks.rng(seed=1).seeded
    assert not ks.rng().seeded
    assert "not for publication" in repr(ks.rng(seed=1))


def test_streams_share_no_word():
    source = ks.rng(seed=8)
    streams = [source.stream() for _ in range(50)]
    seen = [word for stream in streams for word in (*words(stream), *words(stream.extra))]
    assert len(set(seen)) == len(seen)


def test_threads_get_streams_of_their_own():
    source = ks.rng(seed=9)
    with ThreadPoolExecutor(8) as pool:
        seen = [word for found in pool.map(lambda _: words(source.stream()), range(200)) for word in found]
    assert len(set(seen)) == len(seen)


def test_keystream_is_aes_in_counter_mode():
    """NIST SP 800-38A, F.5.5: the key stream is the cipher of the counter; checked through another mode."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = bytes(range(32))
    blocks = b"".join((5 << 64 | counter).to_bytes(16, "big") for counter in range(4))
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
    expected = np.frombuffer(encryptor.update(blocks), dtype=np.uint64)
    assert words(Stream(Key(key), 5), 8) == tuple(expected.tolist())


@pytest.mark.parametrize("buffer_words", [1, 2, 3, 1000])
def test_where_a_buffer_ends_does_not_matter(buffer_words):
    key = Key(bytes(32))
    assert words(Stream(key, 1, buffer_words), 3000) == words(Stream(key, 1), 3000)


@pytest.mark.parametrize("seed", [None, 11])
def test_a_forked_child_reads_other_streams(seed):
    source = ks.rng(seed=seed)
    held = source.stream()
    held.word()
    children = []
    for _ in range(2):
        inward, outward = os.pipe()
        child = os.fork()
        if child == 0:
            found = [*words(held, 8), *words(source.stream(), 8), source.below(2**64)]
            os.write(outward, np.array(found, dtype=np.uint64).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        children.append(np.frombuffer(os.read(inward, 1000), dtype=np.uint64).tolist())
        os.close(inward)
        os.close(outward)
    own = [*words(held, 8), *words(source.stream(), 8), source.below(2**64)]
    everything = [*own, *children[0], *children[1]]
    assert len(set(everything)) == len(everything)


@pytest.mark.audit
def test_forks_and_threads_do_not_lock_each_other_out():
    """Threads that make sources and draw from them while the process forks: nobody is left waiting."""
    import threading

    shared, stop = ks.rng(), threading.Event()

    def work():
        while not stop.is_set():
            ks.rng().below(10)
            shared.below(10)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(40):
            child = os.fork()
            if child == 0:
                shared.below(10)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
    for thread in threads:
        thread.join(timeout=HANG)
        assert not thread.is_alive()
    assert shared.below(10) < 10


def test_an_rng_cannot_be_copied():
    for copier in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="draw the same numbers"):
            copier(ks.rng(seed=1))


def test_randomness_comes_through_one_door():
    """No other module asks numpy, the standard library or the system for random numbers to draw noise with."""
    root = Path(ks.__file__).parent
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name == "rng.py":
            continue
        assert "secrets" not in text or path.parts[-2:] == ("desk", "tokens.py"), path  # for links and sessions
        assert "urandom" not in text or path.name == "_saying.py", path  # for marks in messages
        assert "import random" not in text, path
        # The lattice uses numpy's for weights that only speed up a search whose answers are then checked.
        assert "np.random" not in text or path.name == "shortest.py", path


def test_keyed_sources_repeat_by_number_and_share_nothing():
    """Of one secret and of two; words of the source that made the secret are not theirs."""
    secret, other = rng().secret(), rng().secret()
    assert len(secret) == 32
    words = [keyed_rng(key, number).stream().take(4).tolist() for key in (secret, other) for number in range(50)]
    assert len({word for four in words for word in four}) == 400
    assert keyed_rng(secret, 7).stream().take(4).tolist() == words[7]
    made = rng(seed=1)
    assert made.secret() != made.secret()
    assert rng(seed=1).secret() == rng(seed=1).secret()


def test_keys_are_blake2b_of_the_secret():
    """Against the standard library's own call, so that no release can be drawn twice by a change of the derivation."""
    secret = bytes(range(32))
    key = hashlib.blake2b((5).to_bytes(8, "big"), key=secret, digest_size=32, person=b"keepsum release ").digest()
    expected = Rng(Key(key, seeded=True)).stream().take(3).tolist()
    assert keyed_rng(secret, 5).stream().take(3).tolist() == expected

"""The one door to randomness.

All of it is the keystream of AES-256 in counter mode. An ``Rng`` has a key; each worker reads a ``Stream`` of its own,
told apart by the upper half of the counter, so that no two ever share a word. A stream is a fixed infinite sequence:
where its buffer ends says nothing about the draws made from it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import weakref
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from keepsum.errors import InputError
from keepsum.showing import given, type_of

Words = npt.NDArray[np.uint64]

FIRST_WORDS, BUFFER_WORDS = 512, 65536  # a stream's buffers grow from the one to the other
LONGEST_SEED = 10_000  # bits of a seed that is a number
_EXTRA = 2**63  # the stream that settles the ties of stream i is stream i + 2^63


class _Door:
    """What all sources share: a lock, held across a fork so that no source is caught in the middle of a draw."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.live: weakref.WeakSet[Rng] = weakref.WeakSet()

    def before_fork(self) -> None:
        self.lock.acquire()
        for source in list(self.live):
            source._forks += 1

    def after_in_parent(self) -> None:
        self.lock.release()

    def after_in_child(self) -> None:
        self.lock = threading.RLock()
        for source in list(self.live):
            source._after_fork_in_child()


_DOOR = _Door()

os.register_at_fork(
    before=_DOOR.before_fork, after_in_parent=_DOOR.after_in_parent, after_in_child=_DOOR.after_in_child
)


class Stream:
    """A sequence of 64-bit words for one worker.

    ``words[position:]`` are the words at hand that have not been used. ``more()`` moves them to the front and
    fills up the rest from the keystream; a draw that ran out of words goes on, it never starts over.
    """

    def __init__(self, key: bytes, number: int, buffer_words: int = BUFFER_WORDS) -> None:
        self._number = number
        self._largest = buffer_words
        self._extra: Stream | None = None
        self.restart(key)

    def restart(self, key: bytes) -> None:
        """Forget every word at hand and read from the start of this stream under another key."""
        self._key = key
        nonce = self._number.to_bytes(8, "big") + bytes(8)
        self._keystream = Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor()
        self._next_words = min(FIRST_WORDS, self._largest)
        self.words: Words = np.empty(0, dtype=np.uint64)
        self.position = 0
        if self._extra is not None:
            self._extra.restart(key)

    def more(self) -> None:
        """Get a buffer of further words, behind those not used yet."""
        left = self.words[self.position :]
        words = np.empty(len(left) + self._next_words, dtype=np.uint64)
        words[: len(left)] = left
        self._keystream.update_into(_zeros(8 * self._next_words), words[len(left) :].view(np.uint8).data)
        self.words, self.position = words, 0
        self._next_words = min(4 * self._next_words, self._largest)

    def word(self) -> int:
        """The next word, as a Python integer."""
        if self.position == len(self.words):
            self.more()
        value = int(self.words[self.position])
        self.position += 1
        return value

    def take(self, count: int) -> Words:
        """The next words, as an array."""
        taken = np.empty(count, dtype=np.uint64)
        done = 0
        while done < count:
            if self.position == len(self.words):
                self.more()
            step = min(count - done, len(self.words) - self.position)
            taken[done : done + step] = self.words[self.position : self.position + step]
            self.position += step
            done += step
        return taken

    def bits(self, count: int) -> int:
        """A uniform integer of that many bits."""
        value = 0
        for _ in range(-(-count // 64)):
            value = value << 64 | self.word()
        return value >> (-count % 64)

    @property
    def extra(self) -> Stream:
        """A second stream, read only to settle ties, so that a tie does not move the words behind it."""
        if self._extra is None:
            self._extra = Stream(self._key, self._number + _EXTRA, 8)
        return self._extra


@lru_cache(maxsize=8)
def _zeros(count: int) -> bytes:
    """What is encrypted to read the keystream itself."""
    return bytes(count)


class LazyUniform:
    """A uniform real number in [0, 1) of which only the bits that matter are ever drawn.

    Known are its first ``count`` bits, ``bits``; comparisons draw more from the stream until they are decided.
    """

    def __init__(self, stream: Stream, bits: int = 0, count: int = 0) -> None:
        self._stream, self._bits, self._count = stream, bits, count

    @property
    def known(self) -> float:
        """The number as far as its digits are known; a guess for where to look, not to decide anything."""
        return float(Fraction(2 * self._bits + 1, 2 ** (self._count + 1)))

    def below(self, bounds: Callable[[int], tuple[int, int]]) -> bool:
        """Whether the number lies below a real x in [0, 1], given by its binary digits.

        ``bounds(k)`` is a pair of integers that enclose x * 2^k, of width 1 or so.
        """
        while True:
            low, high = bounds(self._count)
            if self._bits + 1 <= low:
                return True
            if self._bits >= high:
                return False
            self._bits = self._bits << 64 | self._stream.word()
            self._count += 64


class Rng:
    """A source of exact random draws; make one with :func:`rng`.

    ``Rng`` is safe to share between threads, and a child made by ``fork`` reads other streams than its parent. It
    cannot be pickled: a copy would draw the same numbers.
    """

    def __init__(self, key: bytes, seeded: bool) -> None:
        self._key = key
        self.seeded = seeded
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._next = 0
        self._forks = 0
        self._own = self.stream()
        with _DOOR.lock:
            _DOOR.live.add(self)

    def stream(self, buffer_words: int = BUFFER_WORDS) -> Stream:
        """A stream that nothing else reads."""
        with _DOOR.lock:
            stream = Stream(self._key, self._next, buffer_words)
            self._next += 1
            self._streams.add(stream)
        return stream

    def below(self, n: int) -> int:
        """A uniform integer from 0 to n - 1."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise InputError(f"The bound must be a whole number from 1, got {given(n)}.")
        with _DOOR.lock:
            return _below(self._own, int(n))

    def bernoulli(self, p: Fraction | int) -> bool:
        """True with probability p exactly, p rational."""
        if not isinstance(p, (int, Fraction)) or not 0 <= p <= 1:
            raise InputError(f"A probability must be a Fraction from 0 to 1, got {given(p)}.")
        p = Fraction(p)
        return self.below(p.denominator) < p.numerator

    def bernoulli_exp(self, x: Fraction | int) -> bool:
        """True with probability exp(-x) exactly, x >= 0 rational (Canonne, Kamath and Steinke 2020, algorithm 1)."""
        if not isinstance(x, (int, Fraction)) or x < 0:
            raise InputError(f"The exponent must be a Fraction from 0, got {given(x)}.")
        x = Fraction(x)
        while x > 1:
            if not self._bernoulli_exp_small(Fraction(1)):
                return False
            x -= 1
        return self._bernoulli_exp_small(x)

    def _bernoulli_exp_small(self, x: Fraction) -> bool:
        k = 1
        while self.bernoulli(x / k):
            k += 1
        return k % 2 == 1

    def uniform(self) -> LazyUniform:
        """A uniform real number whose bits are drawn as they are needed."""
        return LazyUniform(self.stream(8))

    def __reduce__(self) -> Any:
        raise TypeError("An Rng cannot be copied or pickled: both copies would draw the same numbers.")

    def _after_fork_in_child(self) -> None:
        """Read other streams than the parent: under a fresh key, or one that the seed and the fork's number give."""
        mark = self._forks.to_bytes(8, "big") if self.seeded else secrets.token_bytes(32)
        self._key = hashlib.sha256(b"keepsum fork" + self._key + mark).digest()
        for stream in list(self._streams):
            stream.restart(self._key)

    def __repr__(self) -> str:
        return "Rng(seeded, not for publication)" if self.seeded else "Rng(keyed by the operating system)"


def _below(stream: Stream, n: int) -> int:
    """Uniform below n: as many bits as n - 1 has, drawn again where they are n or more."""
    width = (n - 1).bit_length()
    while True:
        value = stream.bits(width) if width else 0
        if value < n:
            return value


def rng(seed: int | str | None = None) -> Rng:
    """A source of randomness: from the operating system, or repeatable from a seed.

    Parameters
    ----------
    seed
        For tests and examples only. Whoever knows the seed can take the noise off again, so a release that is made
        with one is marked "seeded, not for publication".

    Examples
    --------
    >>> import keepsum as ks
    >>> ks.rng(seed=1).below(100) == ks.rng(seed=1).below(100)
    True
    >>> ks.rng()
    Rng(keyed by the operating system)
    """
    if seed is None:
        return Rng(secrets.token_bytes(32), seeded=False)
    if isinstance(seed, bool) or not isinstance(seed, (int, str)):
        raise InputError(f"A seed must be a whole number or text, got {type_of(seed)}.")
    if isinstance(seed, int) and seed.bit_length() > LONGEST_SEED:
        raise InputError(f"A seed must have at most {LONGEST_SEED:,} bits, got more.")
    return Rng(
        hashlib.sha256(f"keepsum seed {type(seed).__name__} {seed}".encode(errors="surrogatepass")).digest(),
        seeded=True,
    )


def checked_rng(rng: Rng | None) -> Rng:
    """The source of randomness that was given, or the operating system's."""
    if rng is not None and not isinstance(rng, Rng):
        raise InputError(f"The source of randomness must come from ks.rng(), got {type_of(rng)}.")
    return rng if rng is not None else Rng(secrets.token_bytes(32), seeded=False)

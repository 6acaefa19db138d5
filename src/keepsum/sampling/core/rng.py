"""The one door to randomness.

All of it is the keystream of AES-256 in counter mode. An ``Rng`` has a key; each worker reads a ``Stream`` of its own,
told apart by the upper half of the counter, so that no two ever share a word. A stream is a fixed infinite sequence:
where its buffer ends says nothing about the draws made from it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from keepsum._saying import the
from keepsum._text import given, type_of
from keepsum.errors import InputError
from keepsum.sampling.core.forking import ProcessLock, forks_so_far, generation, marks_since

Words = npt.NDArray[np.uint64]

FIRST_WORDS, BUFFER_WORDS = 1024, 65536  # what a stream makes at a time grows from the one to the other
LONGEST_SEED = 10_000  # bits of a seed that is a number
_NO_WORDS: Words = np.empty(0, dtype=np.uint64)
_EXTRA = 2**63  # the stream that settles the ties of stream i is stream i + 2^63


class Key:
    """The key of a source and of all its streams; a forked child has another.

    It is worked out where somebody asks: streams that outlive their source are told as well.
    """

    def __init__(self, secret: bytes, seeded: bool = False) -> None:
        self.seeded = seeded
        self._secret = secret
        self._generation, self._forks = generation(), forks_so_far()
        self._lock = ProcessLock()

    def now(self) -> tuple[int, bytes]:
        """The generation of this process, and its key: fresh, or what the seed and the numbers of the forks give.

        A fork past Python's hooks has no number, so that a seed repeats nothing behind it.
        """
        with self._lock.here():
            for mark in marks_since(self._generation):
                if mark is None or not self.seeded:
                    tail = secrets.token_bytes(32)
                else:
                    tail = (mark - self._forks).to_bytes(8, "big")
                self._secret = hashlib.sha256(b"keepsum fork" + self._secret + tail).digest()
                self._generation += 1
            return self._generation, self._secret


class Stream:
    """A sequence of 64-bit words for one worker.

    ``words[position:]`` are the words at hand that have not been used. ``more()`` moves them to the front and
    fills up the rest from the keystream; a draw that ran out of words goes on, it never starts over. Whoever reads
    ``words`` calls ``renew()`` before.

    The memory is used again, and a stream can take over that of one that is done (``follow``), for fresh memory takes
    longer to get than the words in it to make. It then expects to be read as far as that one was.
    """

    def __init__(self, key: Key, number: int, buffer_words: int = BUFFER_WORDS) -> None:
        self._key = key
        self._number = number
        self._largest = buffer_words
        self._extra: Stream | None = None
        self._memory, self._expected = _NO_WORDS, 0
        self._start()

    def _start(self) -> None:
        """Read from the start of this stream, under the key of this process."""
        self._generation, secret = self._key.now()
        nonce = self._number.to_bytes(8, "big") + bytes(8)
        self._keystream = Cipher(algorithms.AES(secret), modes.CTR(nonce)).encryptor()
        self._made = 0
        self.words, self.position = _NO_WORDS, 0

    def follow(self, done: Stream) -> None:
        """Take over the memory of a stream that is done, before the first word is read."""
        self._expected = done._made - len(done.words) + done.position
        self._memory, done._memory = done._memory, _NO_WORDS
        done.words, done.position = _NO_WORDS, 0

    def expect(self, count: int) -> None:
        """Say how far this stream will be read, roughly, where nothing is known of one before it."""
        self._expected = self._expected or max(FIRST_WORDS, count)

    def renew(self) -> None:
        """Forget the words at hand if the process has been forked since they were made: the parent reads them too."""
        if self._generation != generation():
            self._start()

    def more(self) -> None:
        """Get further words, behind those not used yet: as many as are expected, then more and more."""
        self.renew()
        unused = self.words[self.position :]
        beyond = self._made - self._expected
        count = min(-beyond if beyond < 0 else max(FIRST_WORDS, 3 * beyond, self._expected // 16), self._largest)
        if len(unused) + count > len(self._memory):
            self._memory = np.empty(len(unused) + count, dtype=np.uint64)
        words = self._memory[: len(unused) + count]
        words[: len(unused)] = unused
        fresh = words[len(unused) :].view(np.uint8).data
        self._keystream.update_into(_zeros(len(fresh).bit_length())[: len(fresh)], fresh)
        self._made += count
        self.words, self.position = words, 0

    def word(self) -> int:
        """The next word, as a Python integer."""
        self.renew()
        if self.position == len(self.words):
            self.more()
        value = int(self.words[self.position])
        self.position += 1
        return value

    def take(self, count: int) -> Words:
        """The next words, as an array."""
        self.renew()
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

    def below(self, n: int) -> int:
        """A uniform integer below n: as many bits as n - 1 has, drawn again where they are n or more."""
        width = (n - 1).bit_length()
        while True:
            value = self.bits(width) if width else 0
            if value < n:
                return value

    @property
    def extra(self) -> Stream:
        """A second stream, read only to settle ties, so that a tie does not move the words behind it."""
        if self._extra is None:
            self._extra = Stream(self._key, self._number + _EXTRA, 8)
        return self._extra


@lru_cache(maxsize=8)
def _zeros(bits: int) -> memoryview:
    """2^bits zeros: what is encrypted to read the keystream itself."""
    return memoryview(bytes(2**bits))


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

    ``Rng`` is safe to share between threads, and a child made by ``fork`` reads other streams than its parent: under a
    fresh key, or, with a seed, under one that the seed and the number of the fork give (a fresh one if the fork went
    past Python's hooks). It cannot be pickled: a copy would draw the same numbers.
    """

    def __init__(self, key: Key) -> None:
        self._key = key
        self._lock = ProcessLock()
        self._next = 0
        self._stream = self.stream()

    @property
    def seeded(self) -> bool:
        """Whether it is repeatable, and so not for publication."""
        return self._key.seeded

    def stream(self, buffer_words: int = BUFFER_WORDS) -> Stream:
        """A stream that nothing else reads."""
        with self._lock.here():
            stream = Stream(self._key, self._next, buffer_words)
            self._next += 1
        return stream

    def below(self, n: int) -> int:
        """A uniform integer from 0 to n - 1."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise InputError(f"The bound must be a whole number from 1, got {given(n)}.")
        with self._lock.here():
            return self._stream.below(int(n))

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

    def secret(self) -> bytes:
        """32 bytes of a stream of their own, as a key that other sources are derived from (``keyed_rng``)."""
        return self.stream(8).take(4).tobytes()

    def __reduce__(self) -> Any:
        raise TypeError("An Rng cannot be copied or pickled: both copies would draw the same numbers.")

    def __repr__(self) -> str:
        return "Rng(seeded, not for publication)" if self.seeded else "Rng(keyed by the operating system)"


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
        return Rng(Key(secrets.token_bytes(32)))
    if isinstance(seed, bool) or not isinstance(seed, (int, str)):
        raise InputError(f"A seed must be a whole number or text, got {type_of(seed)}.")
    if isinstance(seed, int) and seed.bit_length() > LONGEST_SEED:
        raise InputError(f"A seed must have at most {LONGEST_SEED:,} bits, got more.")
    text = f"keepsum seed {type(seed).__name__} {seed}"
    return Rng(Key(hashlib.sha256(text.encode(errors="surrogatepass")).digest(), seeded=True))


def keyed_rng(secret: bytes, number: int) -> Rng:
    """The source of one piece of work of a release whose pieces are drawn by different processes.

    The same secret and number give the same source, so that work that is done again draws the same noise. The keys of
    different numbers are independent to whoever does not know the secret (BLAKE2b, keyed). It is for the one release
    that the secret was made for.
    """
    derived = hashlib.blake2b(number.to_bytes(8, "big"), key=secret, digest_size=32, person=b"keepsum release ")
    return Rng(Key(derived.digest(), seeded=True))


def checked_rng(rng: Rng | None) -> Rng:
    """The source of randomness that was given, or the operating system's."""
    if rng is not None and not isinstance(rng, Rng):
        raise InputError(f"The source of randomness must come from {the.call('ks.rng()')}, got {type_of(rng)}.")
    return rng if rng is not None else Rng(Key(secrets.token_bytes(32)))

"""Where the nanoseconds of a cell go, for the exact l1 sampler: keystream, memory, look-ups and arithmetic.

The whole is measured as users draw. Then parts are taken away one by one: memory that is fresh from the system, by
drawing into an array that is in use; the keystream, by handing out the same random words again and again. What remains
is look-ups and arithmetic. The parts are also measured alone.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import keepsum as ks
from benchmarks.measuring import Spread, Timing, Work, by_turns
from benchmarks.peers import EPSILON, numpy_noise
from benchmarks.registry import Bench, case
from benchmarks.systems import groups
from keepsum._arrays import IntArray
from keepsum.sampling.core.kernel_arguments import Words
from keepsum.sampling.core.rng import BUFFER_WORDS, Key, Rng, Stream
from keepsum.sampling.native import build

CELLS = 10**6
KEYSTREAM, MEMORY, REST = "keystream", "fresh memory", "look-ups and arithmetic"
WORD, FRESH, LOOK_UP = "keystream, a word of 64 bits", "fresh memory, 8 bytes", "table look-up, half a word"
NAME = "where the nanoseconds go"


class UsedStream(Stream):
    """A stream that hands out the same random words again and again; for timing only.

    It begins elsewhere among them each time: a part that is rejected must not be drawn again as it was.
    """

    used = np.random.default_rng(1).integers(0, 2**64, 2 * BUFFER_WORDS, dtype=np.uint64)
    turns = itertools.count(1)

    def more(self) -> None:
        """Some of the same words, behind those that have not been used."""
        start = next(self.turns) * 7919 % BUFFER_WORDS
        words = self.used[start : start + BUFFER_WORDS]
        unused = self.words[self.position :]
        self.words = np.concatenate([unused, words]) if len(unused) else words
        self.position = 0


class UsedRng(Rng):
    """A source of such streams."""

    def stream(self, buffer_words: int = BUFFER_WORDS) -> Stream:
        """One of them, with words at hand."""
        return UsedStream(Key(bytes(32), seeded=True), 0, buffer_words)


@lru_cache(maxsize=1)
def compiled() -> Any:
    """``look_up.c``, compiled as the kernels are for any processor."""
    source = Path(__file__).parents[1] / "look_up.c"
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "look_up.so")
        command = [
            *(build.compiler() or build.zig()),
            *build.FLAGS,
            "-fvisibility=default",
            str(source),
            "-o",
            str(library),
        ]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(library)).looked_up


def looked_up(words: Words, table: IntArray, out: IntArray) -> None:
    """Two look-ups per word and nothing else."""
    places = [ctypes.c_void_p(array.ctypes.data) for array in (words, table, out)]
    compiled()(places[0], ctypes.c_int64(len(words)), *places[1:])


@case(NAME)
def nanoseconds(bench: Bench) -> None:
    for name, keep in (("51 totals", groups(CELLS, 51)), ("no total", ks.Invariants.subsets(CELLS, []))):
        plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=EPSILON))
        (choice,) = plan.samplers
        out, rng, used = np.empty((1, plan.size), dtype=np.int64), ks.rng(), UsedRng(Key(bytes(32), seeded=True))
        works = {
            "whole": Work(plan.sample, plan.size),
            "memory in use": Work(lambda s=choice.sampler, o=out, r=rng: s.draw_into(o, r), plan.size),
            "words in use": Work(lambda s=choice.sampler, o=out, r=used: s.draw_into(o, r), plan.size),
        }
        times = by_turns({**works, **alone()}, bench.pick(11, 5))
        parts = {
            MEMORY: difference(times["whole"], times["memory in use"]),
            KEYSTREAM: difference(times["memory in use"], times["words in use"]),
            REST: nano(times["words in use"]),
        }
        bench.figure(f"{name}, 10^6 cells: in all", nano(times["whole"]), "ns/cell")
        for part, value in parts.items():
            bench.figure(f"{name}, 10^6 cells: {part}", value, "ns/cell")
        floor = times[WORD].cpu / 2 + times[LOOK_UP].cpu + times[FRESH].cpu
        bench.figure(f"{name}, 10^6 cells: in all / floor", Spread.of(times["whole"].cpu / floor), "×")
    for name in alone():
        bench.figure(f"alone: {name}", nano(times[name]), "ns")
    bench.figure("floor: keystream and look-up of half a word, fresh memory", Spread.of(1e9 * floor), "ns/cell")
    entropy = math.log2(2 * math.e / float(EPSILON))
    bench.figure("entropy of a cell's noise under no total", entropy, "bits")


def alone() -> dict[str, Work]:
    """The parts by themselves, each with memory that is in use, and NumPy's noise."""
    stream, out = ks.rng().stream(), np.empty(CELLS, dtype=np.int64)
    stream.take(4 * BUFFER_WORDS)  # from here on it makes that many at a time
    table, words = np.arange(256, dtype=np.int64), np.random.default_rng(1).integers(0, 2**64, CELLS // 2, np.uint64)

    def keystream() -> None:
        for _ in range(CELLS // BUFFER_WORDS):
            stream.position = len(stream.words)
            stream.more()

    return {
        WORD: Work(keystream, CELLS // BUFFER_WORDS * BUFFER_WORDS),
        FRESH: Work(lambda: np.zeros(CELLS, dtype=np.int64).fill(1), CELLS),
        "memory in use, 8 bytes": Work(lambda: out.fill(1), CELLS),
        LOOK_UP: Work(lambda: looked_up(words, table, out), CELLS),
        "NumPy's noise, a cell": numpy_noise(CELLS),
    }


def nano(timing: Timing) -> Spread:
    """Nanoseconds of CPU time."""
    return Spread.of(1e9 * timing.cpu)


def difference(whole: Timing, part: Timing) -> Spread:
    """Nanoseconds of what the one does more than the other."""
    return Spread.of(1e9 * (whole.cpu - part.cpu))

"""What kernels are called with: as it was declared, or not at all."""

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from keepsum.sampling.core.kernel import Kernel, layout_of, pack
from keepsum.sampling.core.kernel_arguments import EXACT_STATE, Cells, RowsTask, Task, Words, new_state
from keepsum.sampling.general.kernel_arguments import CHAIN_STATE
from keepsum.sampling.l1.double_geometric import double_geometric
from keepsum.sampling.l1.forced_sums import accept_part, fill_cells
from keepsum.sampling.l1.kernel_arguments import NoiseTable
from keepsum.sampling.l1.splitting.kernel_arguments import SplittingTables
from keepsum.sampling.l1.splitting.sampler import ColumnSplitting, fill_split_tables

NOISE = double_geometric(1, 64).table
WORDS = np.random.default_rng(1).integers(0, 2**64, 100, np.uint64)


def fresh():
    """The kernel, as if it had not been called."""
    return Kernel(fill_cells.__name__, *fill_cells.arguments)


def arguments(**changes):
    """Good arguments, some of them changed."""
    cells = Cells(np.zeros(8, dtype=np.int64), 0, 8)
    good = {"words": WORDS, "states": new_state(), "noise": NOISE, "cells": cells}
    return tuple((good | changes).values())


def test_good_arguments_are_taken_and_arrays_changed_in_place():
    given = arguments()
    assert fresh()(*given) == 0
    assert given[1]["total"][0] == given[3].out.sum()
    assert given[1]["position"][0] == 4


def unaligned():
    """An array whose numbers begin at odd addresses."""
    return np.zeros(65, dtype=np.uint8)[1:].view(np.int64)


def fixed(array):
    array.setflags(write=False)
    return array


def cells(out, start=0, size=8):
    return Cells(out, start, size)


WRONG = {
    "words of another type": ({"words": WORDS.view(np.int64)}, "argument 1 must be a contiguous array of uint64"),
    "words with gaps": ({"words": WORDS[::2]}, "argument 1 must be a contiguous array"),
    "words in two dimensions": ({"words": WORDS.reshape(10, 10)}, "argument 1 must be .* with 1 dimension"),
    "another state": ({"states": new_state(CHAIN_STATE)}, "argument 2 must be a contiguous array of records"),
    "a state that must not change": ({"states": fixed(new_state())}, "argument 2 must be .* can be written to"),
    "another named tuple": ({"noise": cells(np.zeros(8, dtype=np.int64))}, "argument 3 must be a NoiseTable"),
    "a plain tuple": ({"noise": tuple(NOISE)}, "argument 3 must be a NoiseTable"),
    "a field of another type": (
        {"noise": NOISE._replace(column_bits=8.0)},
        r"NoiseTable.column_bits must be .*\(int\)",
    ),
    "a field that is no word": ({"noise": NOISE._replace(usable=1)}, "NoiseTable.usable must be a 64-bit word"),
    "an array of another type": ({"cells": cells(np.zeros(8, dtype=np.int32))}, "Cells.out must be .* of int64"),
    "an array with gaps": ({"cells": cells(np.zeros(16, dtype=np.int64)[::2])}, "Cells.out must be a contiguous"),
    "a column": ({"cells": cells(np.zeros((8, 2), dtype=np.int64)[:, 0])}, "Cells.out must be a contiguous"),
    "an array to be written to that must not be": ({"cells": cells(fixed(np.zeros(8, dtype=np.int64)))}, "written to"),
    "an array that is not aligned": ({"cells": cells(unaligned())}, "aligned"),
    "another byte order": ({"words": WORDS.astype(">u8")}, "byte order"),
    "text": ({"cells": cells("text")}, "arrays, numbers and tuples"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_as_declared_is_refused_by_name(name):
    changes, message = WRONG[name]
    kernel = fresh()
    with pytest.raises(TypeError, match=message):
        kernel(*arguments(**changes))
    assert kernel(*arguments()) == 0  # and still takes what is right
    with pytest.raises(TypeError, match=message):
        kernel(*arguments(**changes))


def test_integers_of_more_than_64_bits_are_refused():
    for wrong in (2**63, -(2**63) - 1, (1, 2**64)):
        with pytest.raises(OverflowError, match="64 bits"):
            pack(wrong)
    assert [pack(value).slots[-1] for value in (2**63 - 1, -(2**63))] == [0x7F, 0x80]


def test_too_few_arguments_are_refused():
    with pytest.raises(TypeError, match="takes 4 arguments, got 3"):
        fresh()(*arguments()[:3])


def test_arrays_that_are_only_read_may_be_fixed():
    assert fresh()(*arguments(words=fixed(WORDS.copy()))) == 0


def test_numbers_are_not_taken_for_one_another():
    kernel = Kernel(accept_part.__name__, *accept_part.arguments)
    for wrong in (1.0, True, np.uint64(1)):
        with pytest.raises(TypeError, match="argument 4 must be"):
            kernel(*arguments()[:2], ColumnSplitting(1, [[1, 1], [1, 1]])._tables.sums, wrong)


def test_every_array_of_split_columns_is_contiguous():
    """Places of entries are picked from those of all."""
    tables = ColumnSplitting(1, [[1, 2, 1], [1, 1, 0], [3, 1, 1]])._tables
    assert isinstance(tables, SplittingTables)
    assert all(value.flags.c_contiguous for value in tables if isinstance(value, np.ndarray))
    gaps = np.repeat(tables.entry_at, 2)[::2]
    task = Task(0, 1, np.zeros(9, dtype=np.int64))
    kernel = Kernel(fill_split_tables.__name__, *fill_split_tables.arguments)
    with pytest.raises(TypeError, match=r"SplittingTables\.entry_at must be a contiguous"):
        kernel(WORDS, new_state(), tables._replace(entry_at=gaps), task)


def test_what_no_kernel_takes_cannot_be_declared():
    for annotation in (str, dict, list[int]):
        with pytest.raises(TypeError, match="no kernel takes"):
            layout_of(annotation)


def test_a_kernel_that_is_not_in_the_library_is_an_error():
    with pytest.raises(AttributeError, match="no_such_kernel"):
        Kernel("no_such_kernel", Words, EXACT_STATE, NoiseTable, Cells)(*arguments())


def test_what_is_laid_out_differently_has_another_kind():
    grid, flat = np.zeros((3, 4)), np.zeros(2, dtype=np.int64)
    records = [np.zeros(1, dtype=np.dtype([(a, np.int64), (b, np.float64)])) for a, b in ("xy", "yx")]
    long, short = (np.zeros(1, dtype=np.dtype({"names": ["x"], "formats": ["i8"], "itemsize": n})) for n in (16, 8))
    values = (1, 1.0, True, np.uint64(1), (), (1,), (1, 1), (1, 1.0), grid, grid.T, grid[0], fixed(np.zeros((3, 4))))
    tuples = (Cells(flat, 0, 1), tuple(Cells(flat, 0, 1)), Task(0, 1, flat), RowsTask(0, 1, flat))
    kinds = [pack(value).kind for value in (*values, *records, long, short, *tuples)]
    assert len(set(kinds)) == len(kinds)


def test_packed_arguments_are_packed_again_where_they_are_copied():
    """The slots of a copy must not point to what was copied."""
    packed = pack((np.arange(3), 1))
    for copied in (pickle.loads(pickle.dumps(packed)), copy.deepcopy(packed)):  # noqa: S301
        assert copied.kind == packed.kind
        assert copied.slots != packed.slots
        assert copied.slots == pack(copied.value).slots


def test_threads_may_call_a_kernel_at_the_same_time():
    kernel = fresh()

    def draw(_):
        given = arguments()
        for _ in range(50):
            assert kernel(*given[:1], new_state(), *given[2:]) == 0
        return given[3].out.tolist()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(tuple, pool.map(draw, range(32))))) == 1


SAMPLE = """
import keepsum as ks, sys
plan = ks.plan(keep=ks.Invariants.subsets(6, [[0, 1, 2]]), mechanism=ks.Laplace.per_unit(epsilon=1))
plan.sample(2)
print([m for m in ("numba", "llvmlite", "scipy.special", "scipy.linalg", "scipy.fft") if m in sys.modules])
"""


def test_a_release_imports_no_compiler():
    done = subprocess.run(
        [sys.executable, "-c", SAMPLE], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"

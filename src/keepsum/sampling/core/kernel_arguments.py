"""What kernels are called with, under names: the state that they keep, the tables that they read, the task they do.

numba knows these classes by name alone, so the files that they stand in count as text of the kernels: a kernel names
the class of each argument, and so imports it (``compiling.kernel_sources``).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray

Words: TypeAlias = npt.NDArray[np.uint64]
Guide: TypeAlias = npt.NDArray[np.uint16]
State: TypeAlias = Any  # a record, whose fields no type checker knows
States: TypeAlias = npt.NDArray[np.void]  # an array of one state, which numba takes in quicker than the record itself

WORD_BITS = 64
HALF_BITS = 32  # of half a word
OUTCOME_BITS = 20  # of an outcome in a table of aliases, which leaves 24 to what a column keeps
UNLIMITED = 2**62


def state_type(*integers: str, reals: tuple[str, ...] = ()) -> np.dtype[np.void]:
    """The type of a state: a record of 64-bit integers and floats that kernels change in place.

    Every state has the ``position`` of the next word, and ``answer``: what a comparison that was left open has been
    settled to, -1 if there is none.
    """
    names = ("position", "answer", *integers)
    fields = [*((name, np.int64) for name in names), *((name, np.float64) for name in reals)]
    return np.dtype((np.record, np.dtype(fields, align=True)))


# One type for all exact samplers: numba tells records in compiled code apart by a number that differs between runs.
EXACT_STATE = state_type(
    "job",  # jobs that are done
    "tries",  # proposals that are made
    # Inside a region:
    "stage",
    "filled",  # cells that are done
    "rest",  # the sum that the others must have
    "cell",  # of the part that is being drawn
    "total",  # of its cells so far
    # Inside a block of regions:
    "phase",
    "region",
    # Inside a table whose columns are split:
    "row_sum",  # of the rows before
    "node",
    "row",
    "solved",  # the row whose part is solved for
    "rows_drawn",  # parts of rows, those of rejected proposals included
    # Inside a one-dimensional Gaussian draw:
    "step",
    "high",
    "low",
    "table",  # the place of its table
    "low_bits",
    "value",
    # Its centre and its share of the variance, where it ties:
    "centre_numerator",
    "centre_denominator",
    "share_numerator",
    "share_denominator",
    # Sums over the coordinates of a block: logarithms of their factors, at their centres and at 0.
    reals=("log_theta", "log_theta_centred"),
)


def new_state(kind: np.dtype[np.void] = EXACT_STATE, **fields: int) -> States:
    """The state of a kernel that has done nothing, but for some fields: an array of one record."""
    states = np.zeros(1, dtype=kind)
    for name, value in {"answer": -1, **fields}.items():
        states[name] = value
    return states


class Task(NamedTuple):
    """Jobs ``first`` to ``last``, in at most ``most`` tries: their cells go to ``out``, all else into ``room``."""

    first: int
    last: int
    out: IntArray
    room: Any = ()
    most: int = UNLIMITED


class Cells(NamedTuple):
    """A run of cells: ``size`` of them from ``start`` on."""

    out: IntArray
    start: int
    size: int


class PackedTables(NamedTuple):
    """The tables of several laws, one behind the other, as the kernels read them."""

    table: Words
    guide: Guide
    shift: int
    guide_shift: int

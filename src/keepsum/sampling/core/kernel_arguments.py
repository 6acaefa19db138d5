"""What kernels are called with, under names: the state that they keep, the tables that they read, the task they do.

Whatever Python runs has one signature, ``kernel(words, states, tables, task)``, and is run by ``driving.run``:

- ``words`` are random words at hand, to be read from ``state.position`` on;
- ``states`` is an array of one record, ``state``: everything that the kernel has done, changed in place;
- ``tables`` is what it reads: a named tuple of arrays and numbers that nobody changes, so that threads share it;
- ``task`` says what to do and has the arrays to write to: mostly a ``Task``, jobs and room for them.

It returns a code:

- ``DONE``;
- ``MORE``: the words are used up; call again with more words behind those not used, and it goes on where it was;
- ``TIE_DRAW``, ``TIE_ACCEPT``: a comparison that its words do not decide; settle it exactly, leave the answer in
  ``state.answer``, and call again.

So a draw is never started over, and no float and no rounded threshold decides anything on its own. What a kernel does
depends on the words alone, never on where a buffer ends.

The kernels are C (``sampling/native``). Their structs and constants are written from this module and those of the same
name in other folders (``scripts/write_structs.py``).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from keepsum.sampling.core.kernel import MATRIX, OUT, OUT_MATRIX

Words: TypeAlias = npt.NDArray[np.uint64]
Guide: TypeAlias = npt.NDArray[np.uint16]
# Arrays that kernels write to, and those of two dimensions; all others are read, and have one.
OutInts: TypeAlias = Annotated[npt.NDArray[np.int64], OUT]
OutFloats: TypeAlias = Annotated[npt.NDArray[np.float64], OUT]
IntMatrix: TypeAlias = Annotated[npt.NDArray[np.int64], MATRIX]
FloatMatrix: TypeAlias = Annotated[npt.NDArray[np.float64], MATRIX]
OutIntMatrix: TypeAlias = Annotated[npt.NDArray[np.int64], OUT_MATRIX]
OutFloatMatrix: TypeAlias = Annotated[npt.NDArray[np.float64], OUT_MATRIX]
State: TypeAlias = Any  # a record, whose fields no type checker knows
States: TypeAlias = npt.NDArray[np.void]  # an array of one state

DONE, MORE, TIE_DRAW, TIE_ACCEPT = 0, -1, -2, -3

WORD_BITS = 64
HALF_BITS = 32  # of half a word
OUTCOME_BITS = 20  # of an outcome in a table of aliases, which leaves 24 to what a column keeps
ACCEPT_BITS = 52  # of an acceptance word; exact in a float
TINY = 1e-290  # no chance is taken to be smaller than this without the referee: floats may call it 0
UNLIMITED = 2**62


def state_type(*integers: str, reals: tuple[str, ...] = ()) -> np.dtype[np.void]:
    """The type of a state: a record of 64-bit integers and floats that kernels change in place.

    Every state has the ``position`` of the next word, and ``answer``: what a comparison that was left open has been
    settled to, -1 if there is none.
    """
    names = ("position", "answer", *integers)
    fields = [*((name, np.int64) for name in names), *((name, np.float64) for name in reals)]
    return np.dtype((np.record, np.dtype(fields, align=True)))


# One type for all exact samplers.
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
    # Inside a table that is split, bundle by bundle:
    "row_sum",  # of the parts of the rows before
    "others_sum",  # of those that are not in the part that is solved for
    "part_total",  # the sums of that part
    "every",  # which rows that are: every so-manieth
    "bundle",
    "row",
    "solved",  # the row whose part is solved for
    "rows_drawn",  # parts of rows, those of rejected bundles included
    # Inside nested totals:
    "node",  # sums that are waiting to be split
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
    """Jobs ``first`` to ``last``, in at most ``most`` tries: their cells go to ``out``, all else into ``room``.

    ``Annotated[Task, Room]`` is a task with a room of that kind.
    """

    first: int
    last: int
    out: OutInts
    room: Any = ()
    most: int = UNLIMITED


class RowsTask(NamedTuple):
    """A task whose draws are the rows of ``out``."""

    first: int
    last: int
    out: OutIntMatrix
    room: Any = ()
    most: int = UNLIMITED


class Cells(NamedTuple):
    """A run of cells: ``size`` of them from ``start`` on."""

    out: OutInts
    start: int
    size: int


class PackedTables(NamedTuple):
    """The tables of several laws, one behind the other, as the kernels read them."""

    table: Words
    guide: Guide
    shift: int
    guide_shift: int

"""What the kernels of this folder read and write, by name."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

from keepsum._arrays import Floats, IntArray
from keepsum.sampling.core.kernel_arguments import OutInts, Task

PROPOSE_PART, ACCEPT_PART = 0, 1  # the stages of a part
OFFSET = 1 << 40  # answers must not be negative, sums may be
PLACE_BITS = 32  # of a proposal's word, for the place in a block
MANY = 60  # halvings, from which on floats are not asked
ROUNDING = 2.0**-50  # more than the share that a float of a table, or a product of some, is off by


class FocusTables(NamedTuple):
    """The kinds of sums, and the roots.

    Kind k consists of ``left[k]`` and ``right[k]``; -1 for none. Its weights relative to that of 0 are ``values`` from
    ``value_start[k]`` on, for sums up to ``reach[k]``, right to a share of ROUNDING and up to ``error[k]``; those
    beyond are at most ``beyond[k]``. How a sum y up to ``split_reach[k]`` splits stands at ``split_start[k] + y``: the
    ``middle``, the length of a ``block``, and the ``peak`` (``envelopes``).

    Root r has the kind ``root_kind[r]``, and its cells go to the places ``order[root_start[r] : root_start[r + 1]]``.
    """

    left: IntArray
    right: IntArray
    value_start: IntArray
    reach: IntArray
    error: Floats
    beyond: Floats
    values: Floats
    split_start: IntArray
    split_reach: IntArray
    middle: IntArray
    block: IntArray
    peak: Floats
    root_kind: IntArray
    root_start: IntArray
    order: IntArray
    halving_bits: int  # of a proposal's word: fewer than 31 only to test that more are taken where they are used up
    shift: int  # of the words that accept


class FocusRoom(NamedTuple):
    """The sums that are still to be split, the next one last."""

    kinds: OutInts
    sums: OutInts


FocusTask: TypeAlias = Annotated[Task, FocusRoom]

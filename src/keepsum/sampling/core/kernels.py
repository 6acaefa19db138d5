"""Draws inside loops: what every sampling kernel is built on.

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

The functions that kernels are made of take ``words`` and ``state`` first, and then what they need. Arguments are
annotated with their classes, which brings these into the key of compiled code (``compiling.kernel_sources``).
"""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import inner_kernel, kernel
from keepsum.sampling.core.kernel_arguments import OUTCOME_BITS, PackedTables, State

DONE, MORE, TIE_DRAW, TIE_ACCEPT = 0, -1, -2, -3

ACCEPT_BITS = 52  # of an acceptance word; exact in a float
TINY = 1e-290  # no chance is taken to be smaller than this without the referee: floats may call it 0


@kernel
def settled(state: State):
    """What a comparison that was left open has been settled to, which is then used up; -1 if there is none."""
    value = state.answer
    state.answer = -1
    return value


@kernel
def copy(source, target):
    """Write one vector over another of the same length."""
    for i in range(len(source)):
        target[i] = source[i]


@inner_kernel
def look_up(number, columns, width):
    """What a number stands for, its last ``width`` bits below its column, and whether it is a tie (``alias``)."""
    digits = number & ((np.uint64(1) << np.uint64(width)) - np.uint64(1))
    entry = columns[number >> np.uint64(width)]
    threshold = entry >> np.uint64(2 * OUTCOME_BITS)
    # The first outcome comes to the top, or the second; there its sign is that of a word.
    outcome = entry << np.uint64(64 - 2 * OUTCOME_BITS) if digits < threshold else entry << np.uint64(64 - OUTCOME_BITS)
    return np.int64(outcome) >> np.int64(64 - OUTCOME_BITS), digits == threshold


@kernel
def look_up_packed(word, tables: PackedTables, table_start, guide_start):
    """The smallest k whose threshold exceeds the word, or TIE_DRAW, in one of several tables, which starts there."""
    bits = word >> np.uint64(tables.shift)
    k = np.int64(tables.guide[guide_start + np.int64(bits >> np.uint64(tables.guide_shift))])
    while tables.table[table_start + k] < bits:
        k += 1
    if tables.table[table_start + k] == bits:
        return np.int64(TIE_DRAW)
    return k


@inner_kernel
def compare(word, shift, low, high):
    """1 or 0 for a word, with a probability between ``low`` and ``high``, or TIE_ACCEPT."""
    count = min(ACCEPT_BITS, 64 - shift)
    bits = np.float64(word >> np.uint64(64 - count))
    scale = np.float64(np.int64(1) << count)
    # Of the products only the rounding is in doubt: scale is a power of two, so there is none.
    if bits + 1.0 <= low * scale:
        return np.int64(1)
    if bits >= high * scale:
        return np.int64(0)
    return np.int64(TIE_ACCEPT)


@kernel
def accept(words, state: State, shift, low, high):
    """1 or 0 with a probability between ``low`` and ``high``, or MORE, or TIE_ACCEPT."""
    code = settled(state)
    if code >= 0:
        return code
    if state.position >= len(words):
        return np.int64(MORE)
    code = compare(words[state.position], shift, low, high)
    if code >= 0:
        state.position += 1
    return code


@kernel
def bit_length(value):
    """The number of binary digits."""
    length = 0
    while value > 0:
        value >>= 1
        length += 1
    return length

"""The loops of Algorithms 1 and 2, called and run as all kernels are (``sampling/core/kernels.py``)."""

from __future__ import annotations

import math

import numpy as np

from keepsum.research.mcmc.kernel_arguments import Columns, Pair, ProblemTables, Start, Walk
from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import States
from keepsum.sampling.core.kernels import DONE, MORE, copy

L1, L2, GAUSSIAN = 0, 1, 2

GUIDE_BITS = 11  # of a uniform number, looked up; with the sign a coordinate takes 12 bits, and a word has five
CHUNK_BITS = GUIDE_BITS + 1
CHUNKS = 64 // CHUNK_BITS
OPEN = -(2**15)  # what stands in a table where the first bits do not decide


@kernel
def uniform(word):
    """A float in [0, 1) from the upper 53 bits of a word."""
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@kernel
def magnitude(tail, log_a, half):
    """|v| of a double geometric v by inversion: the largest k with ``tail`` < P(|v| >= k) = a^k / half."""
    return np.int64(math.log(tail * half) / log_a)


@kernel
def tail_of(word):
    """A uniform number strictly between 0 and 1 from all but the lowest bit of a word."""
    guide = (word >> np.uint64(1)) & np.uint64(2**GUIDE_BITS - 1)
    rest = (np.float64(word >> np.uint64(CHUNK_BITS)) + 0.5) * 2.0 ** (CHUNK_BITS - 64)
    return (np.float64(guide) + rest) * 2.0**-GUIDE_BITS


@kernel
def move(z, columns: Columns, j, by, kind):
    """Add a multiple of column j to z; the change of |z| in l1, or of its square."""
    change = np.int64(0)
    for p in range(np.uint64(columns.starts[j]), np.uint64(columns.starts[j + 1])):
        cell = np.uint64(columns.cells[p])
        old = z[cell]
        new = old + by * columns.entries[p]
        z[cell] = new
        change += abs(new) - abs(old) if kind == L1 else new * new - old * old
    return change


@kernel
def add(z, columns: Columns, j, by):
    """Add a multiple of column j to z."""
    for p in range(np.uint64(columns.starts[j]), np.uint64(columns.starts[j + 1])):
        z[np.uint64(columns.cells[p])] += by * columns.entries[p]


@kernel
def l1_norm(z):
    """|z| in l1."""
    norm = np.int64(0)
    for i in range(len(z)):
        norm += abs(z[i])
    return norm


@kernel
def square_norm(z):
    """The square of |z| in l2; one function for both norms would make the loop of l1 slower by a tenth."""
    norm = np.int64(0)
    for i in range(len(z)):
        norm += z[i] * z[i]
    return norm


@kernel
def ratio(kind, rate, norm, change):
    """q(z*) / q(z) where the norm (or its square) changes by ``change``; anything from 1 on means yes."""
    if change <= 0:
        return 1.0
    if kind == L2:
        return math.exp(-rate * (math.sqrt(np.float64(norm + change)) - math.sqrt(np.float64(norm))))
    return math.exp(-rate * np.float64(change))


@kernel
def start_from_g(words, states: States, tables: ProblemTables, start: Start):
    """Z ~ g: one pre-jump away from z. ``coordinates`` gains the pre-jump."""
    state = states[0]
    jumps, coordinates = tables.jumps, start.coordinates
    while state.coordinate < len(coordinates):
        if state.position >= len(words):
            return MORE
        j = state.coordinate
        word, law = words[state.position], jumps.law[j]
        by = magnitude(tail_of(word), jumps.log_a[law], jumps.half[law])
        if word & np.uint64(1):
            by = -by
        state.position += 1
        coordinates[j] += by
        state.norm += move(start.z, tables.columns, j, by, tables.target.kind)
        state.coordinate += 1
    state.coordinate = 0
    return DONE


@kernel
def walk(words, states: States, tables: ProblemTables, task: Walk):
    """Algorithm 1 up to step ``last``; every ``thin``-th state after the burn-in becomes a row of ``out``.

    A step begins only when the words at hand would do for the longest step: one word for five coordinates, one for
    each of these whose first bits leave it open, one for the acceptance. Words left over begin the next buffer.
    Where a proposal touches most cells anyway (``task.whole``), the norm is summed up anew and a refused proposal
    is written over; else the change of the norm is summed over the touched cells, and the refused proposal taken off.

    The draws stand in the loop itself: a call with that many arrays would cost more than the draws do.
    """
    state = states[0]
    columns, jumps, target = tables.columns, tables.jumps, tables.target
    laws, quick, log_a, half = jumps.law, jumps.quick, jumps.log_a, jumps.half
    starts, cells, entries = columns.starts, columns.cells, columns.entries
    z, moved, moves, before, coordinates = task.z, task.moved, task.moves, task.before, task.coordinates
    kind, rate, chances = target.kind, target.rate, target.chances
    out, burn_in, thin = task.out, task.burn_in, task.thin
    whole, follow, m = task.whole, len(task.coordinates) > 0, len(laws)
    longest = -(-m // CHUNKS) + m + 1
    tabled = 0 if kind == L2 else len(chances)
    copy(z, before)
    position, step, norm = np.uint64(state.position), state.step, state.norm
    accepted, updates = state.accepted, state.updates
    kept = (step - burn_in) // thin if step > burn_in else 0
    next_kept = burn_in + (kept + 1) * thin
    code = DONE
    while step < task.last:
        if len(words) - np.int64(position) < longest:
            code = MORE
            break
        # Which coordinates are 0 cannot be foreseen: each is written down, and the count tells whether it stays.
        count, word, chunks = np.uint64(0), np.uint64(0), 0
        for j in range(m):
            if chunks == 0:
                word, chunks = words[position], CHUNKS
                position += np.uint64(1)
            chunk, law = word & np.uint64(2**CHUNK_BITS - 1), np.uint64(laws[j])
            by = np.int64(quick[law, chunk])
            if by == OPEN:
                rest = (np.float64(words[position] >> np.uint64(11)) + 0.5) * 2.0**-53
                position += np.uint64(1)
                tail = (np.float64(chunk >> np.uint64(1)) + rest) * 2.0**-GUIDE_BITS
                by = magnitude(tail, log_a[law], half[law]) * (1 - 2 * np.int64(chunk & np.uint64(1)))
            moved[count], moves[count] = j, by
            count += np.uint64(by != 0)
            word >>= np.uint64(CHUNK_BITS)
            chunks -= 1
        change = np.int64(0)
        if whole:
            for i in range(count):
                j, by = np.uint64(moved[i]), moves[i]
                first, end = np.uint64(starts[j]), np.uint64(starts[j + np.uint64(1)])
                updates += np.int64(end - first)
                for p in range(first, end):
                    z[np.uint64(cells[p])] += by * entries[p]
            change = (l1_norm(z) if kind == L1 else square_norm(z)) - norm
        else:
            for i in range(count):
                j = moved[i]
                updates += starts[j + 1] - starts[j]
                change += move(z, columns, j, moves[i], kind)
        yes = change <= 0
        if not yes:
            chance = chances[np.uint64(change)] if change < tabled else ratio(kind, rate, norm, change)
            yes = uniform(words[position]) < chance
            position += np.uint64(1)
        if yes:
            norm += change
            accepted += step >= burn_in
            if follow:
                for i in range(count):
                    coordinates[np.uint64(moved[i])] += moves[i]
            if whole:
                copy(z, before)
        elif whole:
            copy(before, z)
        else:
            for i in range(count):
                add(z, columns, moved[i], -moves[i])
        step += 1
        if step == next_kept:
            if kept < len(out):
                copy(z, out[kept])
            kept += 1
            next_kept += thin
    state.position, state.step, state.norm = position, step, norm
    state.accepted, state.updates = accepted, updates
    return code


@kernel
def move_all(z, columns: Columns, moves, kind):
    """Add every column by its multiple; the change of the norm."""
    change = np.int64(0)
    for j in range(len(moves)):
        if moves[j] != 0:
            change += move(z, columns, j, moves[j], kind)
    return change


@kernel
def undo_all(z, columns: Columns, moves):
    """Take every multiple away again."""
    for j in range(len(moves)):
        if moves[j] != 0:
            add(z, columns, j, -moves[j])


@kernel
def couple(words, states: States, tables: ProblemTables, pair: Pair):
    """Algorithm 2 until the chains meet or step ``last``: the proposals are set once, one uniform accepts for both.

    ``gaps`` are the coordinates of y less those of x, w_j - v_j: the chains have met when all are 0, for the columns
    are a basis. Coordinate by coordinate the second chain takes the first one's proposal v* with chance
    min(1, eta(v* - w) / eta(v* - v)); otherwise (``state.residual``) it draws proposals w* of its own until the first
    chain fails to take one with chance min(1, eta(w* - v) / eta(w* - w)).
    """
    state = states[0]
    columns, jumps, kind, rate = tables.columns, tables.jumps, tables.target.kind, tables.target.rate
    laws, quick, log_a, half = jumps.law, jumps.quick, jumps.log_a, jumps.half
    x, y, gaps, x_moves, y_moves, m = pair.x, pair.y, pair.gaps, pair.x_moves, pair.y_moves, len(pair.gaps)
    residual = state.residual
    position, j = state.position, state.coordinate
    code = DONE
    while state.step < pair.last and code == DONE:
        while j < m:
            if len(words) - position < 2:
                code = MORE
                break
            gap, word, law = gaps[j], words[position], laws[j]
            by = np.int64(quick[law, word & np.uint64(2**CHUNK_BITS - 1)])
            if by == OPEN:
                by = magnitude(tail_of(word), log_a[law], half[law]) * (1 - 2 * np.int64(word & np.uint64(1)))
            position += 1
            if residual == 0:
                x_moves[j], y_moves[j] = by, by - gap
                excess = abs(by - gap) - abs(by)
            else:
                y_moves[j] = by
                excess = abs(by + gap) - abs(by)
            if excess > 0:
                shared = uniform(words[position]) < math.exp(log_a[law] * np.float64(excess))
                residual = np.int64(shared == (residual == 1))
                position += 1
            j += 1 - residual
        if code == MORE or position >= len(words):
            code = MORE
            break
        common = uniform(words[position])
        position += 1
        change = move_all(x, columns, x_moves, kind)
        x_yes = common < ratio(kind, rate, state.norm, change)
        if x_yes:
            state.norm += change
            state.accepted += 1
        else:
            undo_all(x, columns, x_moves)
        change = move_all(y, columns, y_moves, kind)
        y_yes = common < ratio(kind, rate, state.second_norm, change)
        if y_yes:
            state.second_norm += change
            state.second_accepted += 1
        else:
            undo_all(y, columns, y_moves)
        apart = 0
        for i in range(m):
            gaps[i] += (y_moves[i] if y_yes else 0) - (x_moves[i] if x_yes else 0)
            apart += gaps[i] != 0
        state.step += 1
        j = 0
        if apart == 0:
            state.met = 1
            break
    state.position, state.coordinate, state.residual = position, j, residual
    return code

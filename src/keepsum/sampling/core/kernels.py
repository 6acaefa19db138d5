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

from keepsum.sampling.core.compiling import kernel
from keepsum.sampling.core.kernel_arguments import Cells, GeometricTable, PackedTables, State, States, SumLaw
from keepsum.sampling.core.kernel_functions import borrowed, give_back

DONE, MORE, TIE_DRAW, TIE_ACCEPT = 0, -1, -2, -3

ACCEPT_BITS = 52  # of an acceptance word; exact in a float
SHORT = 24  # values that are sorted by insertion
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


@kernel
def look_up(word, table, guide, shift, guide_shift):
    """The smallest k whose threshold exceeds the word, or TIE_DRAW."""
    bits = word >> np.uint64(shift)
    k = guide[bits >> np.uint64(guide_shift)]
    while table[k] < bits:
        k += np.uint64(1)
    if table[k] == bits:
        return np.int64(TIE_DRAW)
    return np.int64(k)


@kernel
def look_up_packed(word, tables: PackedTables, table_start, guide_start):
    """The same in one of several tables, which starts there."""
    bits = word >> np.uint64(tables.shift)
    k = np.int64(tables.guide[guide_start + np.int64(bits >> np.uint64(tables.guide_shift))])
    while tables.table[table_start + k] < bits:
        k += 1
    if tables.table[table_start + k] == bits:
        return np.int64(TIE_DRAW)
    return k


@kernel
def draw(words, state: State, table: GeometricTable):
    """A geometric draw, or MORE, or TIE_DRAW (the words of the draw then still stand at the position)."""
    value = settled(state)
    if value >= 0:
        return value
    position = state.position
    if table.low_bits == 0:
        if position >= len(words):
            return np.int64(MORE)
        value = look_up(words[position], table.high, table.high_guide, table.shift, table.guide_shift)
        if value >= 0:
            state.position = position + 1
        return value
    if position + 2 > len(words):
        return np.int64(MORE)
    high = look_up(words[position], table.high, table.high_guide, table.shift, table.guide_shift)
    low = look_up(words[position + 1], table.low, table.low_guide, table.shift, table.guide_shift)
    if high < 0 or low < 0:
        return np.int64(TIE_DRAW)
    state.position = position + 2
    return (high << table.low_bits) + low


@kernel
def mass_ratio(law: SumLaw, total):
    """How likely a sum of geometrics is to be ``total``, against its mode; and the number of factors.

    Each factor carries a relative error below 4 * 2^-53: a itself, a product, a quotient and the running product.
    """
    n, a = law.size, law.rate
    ratio = 1.0
    steps = 0
    if total > law.mode:
        for i in range(law.mode, total):
            ratio *= a * (i + n) / (i + 1.0)
            steps += 1
            if ratio < 1e-30:
                break
    else:
        for i in range(law.mode - 1, total - 1, -1):
            ratio *= (i + 1.0) / (a * (i + n))
            steps += 1
            if ratio < 1e-30:
                break
    return ratio, steps


@kernel
def accept(words, state: State, shift, low, high):
    """1 or 0 with a probability between ``low`` and ``high``, or MORE, or TIE_ACCEPT."""
    value = settled(state)
    if value >= 0:
        return value
    position = state.position
    if position >= len(words):
        return np.int64(MORE)
    count = min(ACCEPT_BITS, 64 - shift)
    bits = np.float64(words[position] >> np.uint64(64 - count))
    scale = 2.0**count
    # Of the products only the rounding is in doubt: scale is a power of two, so there is none.
    if bits + 1.0 <= low * scale:
        state.position = position + 1
        return np.int64(1)
    if bits >= high * scale:
        state.position = position + 1
        return np.int64(0)
    return np.int64(TIE_ACCEPT)


@kernel
def accept_mass(words, state: State, law: SumLaw, total):
    """Accept with the chance of a sum of geometrics being ``total`` relative to its mode."""
    if total < 0:
        return np.int64(0)
    ratio, steps = mass_ratio(law, total)
    if ratio < 1e-30:
        return accept(words, state, law.shift, 0.0, 1e-29)
    error = (4.001 * steps + 8.0) * 2.0**-53  # the thousandth is for products of errors
    return accept(words, state, law.shift, ratio * (1.0 - error), ratio * (1.0 + error))


@kernel
def bit_length(value):
    """The number of binary digits."""
    length = 0
    while value > 0:
        value >>= 1
        length += 1
    return length


@kernel
def repair(words, state: State, target, cells: Cells):
    """Turn a uniform composition of ``state.current_total`` into one of ``target``, ball by ball, in place.

    A ball is added to part i with weight parts[i] + 1 (a Polya urn), or a ball is taken away at random; both keep
    compositions uniform. A word proposes a part and accepts it: a part with weight w passes with chance
    w / 2^width. ``state.largest`` bounds the parts.
    """
    parts, start, size = cells.out, cells.start, cells.size
    index_shift = np.uint64(64 - bit_length(size - 1))
    position, total, largest = state.position, state.current_total, state.largest
    width = bit_length(largest)  # weights up to largest + 1 fit into 2^width
    mask = np.uint64((1 << width) - 1)
    while total != target and position < len(words):
        word = words[position]
        position += 1
        i = np.int64(word >> index_shift) if size > 1 else np.int64(0)
        if i >= size:
            continue
        coin = np.int64(word & mask)
        i += start
        if total < target:
            if coin <= parts[i]:
                parts[i] += 1
                total += 1
                if parts[i] > largest:
                    largest = parts[i]
                    mask = np.uint64((1 << bit_length(largest)) - 1)
        elif coin < parts[i]:
            parts[i] -= 1
            total -= 1
    state.position, state.current_total, state.largest = position, total, largest
    return np.int64(DONE) if total == target else np.int64(MORE)


@kernel
def fill(words, state: State, table: GeometricTable, cells: Cells):
    """Fill a run of cells with geometric draws; ``state`` has their total, the largest, and the cell it is at."""
    out, start, size = cells.out, cells.start, cells.size
    while state.cell < size:
        if state.answer < 0:
            if table.low_bits == 0:
                fill_run(words, state, table, cells)
            else:
                fill_run_in_two(words, state, table, cells)
            if state.cell == size:
                break
        value = draw(words, state, table)
        if value < 0:
            return value
        out[start + state.cell] = value
        state.total += value
        state.largest = max(state.largest, value)
        state.cell += 1
    state.cell = 0
    return np.int64(DONE)


@kernel
def fill_run(words, state: State, law: GeometricTable, cells: Cells):
    """As many cells as the words at hand and the absence of ties allow: the loop where the time goes."""
    table, guide, out = law.high, law.high_guide, cells.out
    shift, guide_shift = np.uint64(law.shift), np.uint64(law.guide_shift)
    position, cell = state.position, state.cell
    total, largest = state.total, state.largest
    place = cells.start + cell
    count = min(len(words) - position, cells.size - cell)
    for i in range(count):
        bits = words[position + i] >> shift
        k = guide[bits >> guide_shift]
        while table[k] < bits:
            k += np.uint64(1)
        if table[k] == bits:
            count = i
            break
        value = np.int64(k)
        out[place + i] = value
        total += value
        largest = max(largest, value)
    state.position, state.cell = position + count, cell + count
    state.total, state.largest = total, largest


@kernel
def fill_run_in_two(words, state: State, law: GeometricTable, cells: Cells):
    """The same for a law of two tables."""
    high, high_guide, low, low_guide, out = law.high, law.high_guide, law.low, law.low_guide, cells.out
    shift, guide_shift = np.uint64(law.shift), np.uint64(law.guide_shift)
    position, cell = state.position, state.cell
    total, largest = state.total, state.largest
    place = cells.start + cell
    count = min((len(words) - position) // 2, cells.size - cell)
    for i in range(count):
        bits = words[position + 2 * i] >> shift
        k = high_guide[bits >> guide_shift]
        while high[k] < bits:
            k += np.uint64(1)
        low_word = words[position + 2 * i + 1] >> shift
        j = low_guide[low_word >> guide_shift]
        while low[j] < low_word:
            j += np.uint64(1)
        if high[k] == bits or low[j] == low_word:
            count = i
            break
        value = (np.int64(k) << law.low_bits) + np.int64(j)
        out[place + i] = value
        total += value
        largest = max(largest, value)
    state.position, state.cell = position + 2 * count, cell + count
    state.total, state.largest = total, largest


@kernel
def draw_bars(words, state: State, total, cells: Cells):
    """A uniform composition of ``total`` into the cells, as bars between stars.

    Among ``total + size - 1`` places either the bars or the stars are placed, whichever are fewer. Places are drawn
    until enough different ones are there, which makes every set of them equally likely. ``state.places`` counts those
    that are drawn, ``state.cell`` those of them that are different and in order.
    """
    parts, start, size = cells.out, cells.start, cells.size
    bars = size - 1
    count = min(bars, total)
    places = bars + total
    place_shift = np.uint64(64 - bit_length(places - 1)) if places > 1 else np.uint64(63)
    while state.cell < count:
        have, position = state.places, state.position
        while have < count and position < len(words):
            place = np.int64(words[position] >> place_shift) if places > 1 else np.int64(0)
            position += 1
            if place < places:
                parts[start + have] = place
                have += 1
        state.position, state.places = position, have
        if have < count:
            return np.int64(MORE)
        sort_behind(parts, start, state.cell, count)
        state.cell = state.places = different(parts, start, count)
    if count == bars:
        bars_to_parts(parts, start, bars, places)
    else:
        stars_to_parts(parts, start, size, total)
    state.places = state.cell = 0
    return np.int64(DONE)


@kernel
def bars_to_parts(parts, start, bars, places):
    """The lengths between bars at increasing places."""
    last = np.int64(-1)
    for i in range(start, start + bars):
        place = parts[i]
        parts[i] = place - last - 1
        last = place
    parts[start + bars] = places - last - 1


@kernel
def stars_to_parts(parts, start, size, total):
    """The parts that stars at increasing places fall into: before the j-th star at place p stand p - j bars."""
    stars = borrowed(total)
    copy(parts[start : start + total], stars)
    for i in range(start, start + size):
        parts[i] = 0
    for j in range(total):
        parts[start + stars[j] - j] += 1
    give_back(stars)


@kernel
def sort_behind(values, start, ordered, count):
    """Sort a run of values of which the first ``ordered`` are in order: sort the others, then merge from the back."""
    sort_run(values, start + ordered, count - ordered)
    if ordered == 0:
        return
    new = borrowed(count - ordered)
    copy(values[start + ordered : start + count], new)
    i, j = start + ordered - 1, len(new) - 1
    for k in range(start + count - 1, start - 1, -1):
        if j < 0:
            break
        if i >= start and values[i] > new[j]:
            values[k] = values[i]
            i -= 1
        else:
            values[k] = new[j]
            j -= 1
    give_back(new)


@kernel
def sort_run(values, start, count):
    """Sort a run of values in place: quicksort, the longer side put off, and short runs by insertion.

    Values are places at random, so that a median of three splits them evenly. Numpy's own sort would take longer to
    compile than all of this file.
    """
    if count <= SHORT:
        insert_in_order(values, start, start + count - 1)
        return
    waiting = borrowed(128)  # two numbers for each side put off; each is at least twice the next, so 64 are enough
    waits = 0
    first, last = start, start + count - 1
    while True:
        while last - first >= SHORT:
            middle = (first + last) // 2
            low, high = min(values[first], values[last]), max(values[first], values[last])
            pivot = max(low, min(high, values[middle]))
            i, j = first, last
            while i <= j:
                while values[i] < pivot:
                    i += 1
                while values[j] > pivot:
                    j -= 1
                if i <= j:
                    values[i], values[j] = values[j], values[i]
                    i += 1
                    j -= 1
            if j - first < last - i:
                waiting[waits], waiting[waits + 1] = i, last
                last = j
            else:
                waiting[waits], waiting[waits + 1] = first, j
                first = i
            waits += 2
        insert_in_order(values, first, last)
        if waits == 0:
            break
        waits -= 2
        first, last = waiting[waits], waiting[waits + 1]
    give_back(waiting)


@kernel
def insert_in_order(values, first, last):
    """Sort a short run of values, by insertion."""
    for i in range(first + 1, last + 1):
        value = values[i]
        j = i
        while j > first and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@kernel
def different(values, start, count):
    """Bring the different ones of sorted values to the front; how many there are."""
    kept = 1
    for i in range(start + 1, start + count):
        if values[i] != values[i - 1]:
            values[start + kept] = values[i]
            kept += 1
    return kept


@kernel
def fill_cells(words, states: States, table: GeometricTable, cells: Cells):
    """``fill`` as Python runs it."""
    return fill(words, states[0], table, cells)


@kernel
def repair_cells(words, states: States, target, cells: Cells):
    """``repair`` as Python runs it."""
    return repair(words, states[0], target, cells)


@kernel
def place_bars(words, states: States, total, cells: Cells):
    """``draw_bars`` as Python runs it."""
    return draw_bars(words, states[0], total, cells)

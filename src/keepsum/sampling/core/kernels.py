"""Draws inside loops: what every sampling kernel is built on.

A kernel reads words from a buffer and keeps everything it has done in an array ``state``. It returns a code:

- ``DONE``;
- ``MORE``: the buffer is empty; call again with more words behind those not used, and it goes on where it was;
- ``TIE_DRAW``, ``TIE_ACCEPT``: a comparison that its words do not decide; settle it exactly, leave the answer in
  ``state[ANSWER]``, and call again.

So a draw is never started over, and no float and no rounded threshold decides anything on its own.
"""

from __future__ import annotations

import numpy as np

from keepsum.sampling.core.compiling import kernel

DONE, MORE, TIE_DRAW, TIE_ACCEPT = 0, -1, -2, -3

# The state of a kernel: where it is, and what it carries from one call to the next.
POSITION, ANSWER, JOB, TRIES = 0, 1, 2, 3
STAGE, CELL, TOTAL, OTHER, LARGEST, RATIO_AT = 4, 5, 6, 7, 8, 9  # inside a region
PHASE, REGION, COLUMN, BEFORE = 10, 11, 12, 13  # inside a block of regions
NEAR, HIGH, LOW, WHICH, VALUE = 14, 15, 16, 17, 18  # inside a one-dimensional Gaussian draw
CENTRE_TOP, CENTRE_BOTTOM, SHARE_TOP, SHARE_BOTTOM = 19, 20, 21, 22  # its centre and variance, when it ties
STATE_SIZE = 24

ACCEPT_BITS = 52  # of an acceptance word; exact in a float


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
def draw(words, state, table):
    """A geometric draw, or MORE, or TIE_DRAW (the words of the draw then still stand at the position)."""
    if state[ANSWER] >= 0:
        value = state[ANSWER]
        state[ANSWER] = -1
        return value
    position = state[POSITION]
    if table.low_bits == 0:
        if position >= len(words):
            return np.int64(MORE)
        value = look_up(words[position], table.high, table.high_guide, table.shift, table.guide_shift)
        if value >= 0:
            state[POSITION] = position + 1
        return value
    if position + 2 > len(words):
        return np.int64(MORE)
    high = look_up(words[position], table.high, table.high_guide, table.shift, table.guide_shift)
    low = look_up(words[position + 1], table.low, table.low_guide, table.shift, table.guide_shift)
    if high < 0 or low < 0:
        return np.int64(TIE_DRAW)
    state[POSITION] = position + 2
    return (high << table.low_bits) + low


@kernel
def mass_ratio(n, a, mode, total):
    """How likely a sum of n geometrics is to be ``total``, against its mode; and the number of factors.

    Each factor carries a relative error below 4 * 2^-53: a itself, a product, a quotient and the running product.
    """
    ratio = 1.0
    steps = 0
    if total > mode:
        for i in range(mode, total):
            ratio *= a * (i + n) / (i + 1.0)
            steps += 1
            if ratio < 1e-30:
                break
    else:
        for i in range(mode - 1, total - 1, -1):
            ratio *= (i + 1.0) / (a * (i + n))
            steps += 1
            if ratio < 1e-30:
                break
    return ratio, steps


@kernel
def accept(words, state, shift, low, high):
    """1 or 0 with a probability between ``low`` and ``high``, or MORE, or TIE_ACCEPT."""
    if state[ANSWER] >= 0:
        value = state[ANSWER]
        state[ANSWER] = -1
        return value
    position = state[POSITION]
    if position >= len(words):
        return np.int64(MORE)
    count = min(ACCEPT_BITS, 64 - shift)
    bits = np.float64(words[position] >> np.uint64(64 - count))
    scale = 2.0**count
    # Of the products only the rounding is in doubt: scale is a power of two, so there is none.
    if bits + 1.0 <= low * scale:
        state[POSITION] = position + 1
        return np.int64(1)
    if bits >= high * scale:
        state[POSITION] = position + 1
        return np.int64(0)
    return np.int64(TIE_ACCEPT)


@kernel
def accept_mass(words, state, shift, n, a, mode, total):
    """Accept with the chance of a sum of n geometrics being ``total`` relative to its mode."""
    if total < 0:
        return np.int64(0)
    ratio, steps = mass_ratio(n, a, mode, total)
    if ratio < 1e-30:
        return accept(words, state, shift, 0.0, 1e-29)
    error = (4.001 * steps + 8.0) * 2.0**-53  # the thousandth is for products of errors
    return accept(words, state, shift, ratio * (1.0 - error), ratio * (1.0 + error))


@kernel
def bit_length(value):
    """The number of binary digits."""
    length = 0
    while value > 0:
        value >>= 1
        length += 1
    return length


@kernel
def repair(words, state, parts, size, target):
    """Turn a uniform composition of ``state[OTHER]`` into one of ``target``, ball by ball, in place.

    A ball is added to part i with weight parts[i] + 1 (a Polya urn), or a ball is taken away at random; both keep
    compositions uniform. A word proposes a part and accepts it: a part with weight w passes with chance
    w / 2^width. ``state[LARGEST]`` bounds the parts.
    """
    index_shift = np.uint64(64 - bit_length(size - 1))
    position, total, largest = state[POSITION], state[OTHER], state[LARGEST]
    width = bit_length(largest)  # weights up to largest + 1 fit into 2^width
    mask = np.uint64((1 << width) - 1)
    while total != target and position < len(words):
        word = words[position]
        position += 1
        i = np.int64(word >> index_shift) if size > 1 else np.int64(0)
        if i >= size:
            continue
        coin = np.int64(word & mask)
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
    state[POSITION], state[OTHER], state[LARGEST] = position, total, largest
    return np.int64(DONE) if total == target else np.int64(MORE)


@kernel
def fill(words, state, table, out, start, size):
    """Fill a run of cells with geometric draws; their sum in TOTAL, their largest in LARGEST, progress in CELL."""
    while state[CELL] < size:
        if state[ANSWER] < 0:
            if table.low_bits == 0:
                fill_run(words, state, table.high, table.high_guide, table.shift, table.guide_shift, out, start, size)
            else:
                fill_run_in_two(words, state, table, out, start, size)
            if state[CELL] == size:
                break
        value = draw(words, state, table)
        if value < 0:
            return value
        out[start + state[CELL]] = value
        state[TOTAL] += value
        state[LARGEST] = max(state[LARGEST], value)
        state[CELL] += 1
    state[CELL] = 0
    return np.int64(DONE)


@kernel
def fill_run(words, state, table, guide, shift, guide_shift, out, start, size):
    """As many cells as the words at hand and the absence of ties allow: the loop where the time goes."""
    position, cell = state[POSITION], state[CELL]
    total, largest = state[TOTAL], state[LARGEST]
    count = min(len(words) - position, size - cell)
    for i in range(count):
        bits = words[position + i] >> np.uint64(shift)
        k = guide[bits >> np.uint64(guide_shift)]
        while table[k] < bits:
            k += np.uint64(1)
        if table[k] == bits:
            count = i
            break
        value = np.int64(k)
        out[start + cell + i] = value
        total += value
        largest = max(largest, value)
    state[POSITION], state[CELL] = position + count, cell + count
    state[TOTAL], state[LARGEST] = total, largest


@kernel
def fill_run_in_two(words, state, table, out, start, size):
    """The same for a law of two tables."""
    high, high_guide, low, low_guide = table.high, table.high_guide, table.low, table.low_guide
    shift, guide_shift = np.uint64(table.shift), np.uint64(table.guide_shift)
    position, cell = state[POSITION], state[CELL]
    total, largest = state[TOTAL], state[LARGEST]
    count = min((len(words) - position) // 2, size - cell)
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
        value = (np.int64(k) << table.low_bits) + np.int64(j)
        out[start + cell + i] = value
        total += value
        largest = max(largest, value)
    state[POSITION], state[CELL] = position + 2 * count, cell + count
    state[TOTAL], state[LARGEST] = total, largest


@kernel
def draw_bars(words, state, parts, start, size, total):
    """A uniform composition of ``total`` into ``size`` parts, as bars between stars.

    Among ``total + size - 1`` places either the bars or the stars are placed, whichever are fewer. Places are drawn
    until enough different ones are there, which makes every set of them equally likely. OTHER counts the places that
    are drawn, CELL those of them that are different and in order.
    """
    bars = size - 1
    count = min(bars, total)
    places = bars + total
    place_shift = np.uint64(64 - bit_length(places - 1)) if places > 1 else np.uint64(63)
    while state[CELL] < count:
        have, position = state[OTHER], state[POSITION]
        while have < count and position < len(words):
            place = np.int64(words[position] >> place_shift) if places > 1 else np.int64(0)
            position += 1
            if place < places:
                parts[start + have] = place
                have += 1
        state[POSITION], state[OTHER] = position, have
        if have < count:
            return np.int64(MORE)
        sort_behind(parts, start, state[CELL], count)
        state[CELL] = state[OTHER] = different(parts, start, count)
    if count == bars:
        bars_to_parts(parts, start, bars, places)
    else:
        stars_to_parts(parts, start, size, total)
    state[OTHER] = state[CELL] = 0
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
    stars = parts[start : start + total].copy()
    for i in range(start, start + size):
        parts[i] = 0
    for j in range(total):
        parts[start + stars[j] - j] += 1


@kernel
def sort_behind(values, start, ordered, count):
    """Sort a run of values of which the first ``ordered`` are in order: sort the others, then merge from the back."""
    sort_run(values, start + ordered, count - ordered)
    if ordered == 0:
        return
    new = values[start + ordered : start + count].copy()
    i, j = start + ordered - 1, len(new) - 1
    for k in range(start + count - 1, start - 1, -1):
        if j < 0:
            return
        if i >= start and values[i] > new[j]:
            values[k] = values[i]
            i -= 1
        else:
            values[k] = new[j]
            j -= 1


@kernel
def sort_run(values, start, count):
    """Sort a run of values in place; short runs by insertion."""
    if count > 24:
        values[start : start + count].sort()
        return
    for i in range(start + 1, start + count):
        value = values[i]
        j = i
        while j > start and values[j - 1] > value:
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

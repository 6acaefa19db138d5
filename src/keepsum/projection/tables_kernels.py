"""Two-way tables: excess is moved along cheapest paths of rows, columns and entries (``tables.py``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keepsum._arrays import IntArray
from keepsum.sampling.core.compiling import kernel

FAR = 2**62  # a distance that no node has


class Entries(NamedTuple):
    """A two-way table: nodes are rows, then columns.

    ``row`` and ``column`` are the nodes of each entry, ``start`` where its cells begin, ``counts`` the counts of these,
    the largest first, ``upto`` the sum of this count and the larger ones; ``pointers`` and ``at`` are the entries of
    each node. ``step`` is what a unit costs more above the positive counts than below them (0 for l2).
    """

    row: IntArray
    column: IntArray
    start: IntArray
    counts: IntArray
    upto: IntArray
    pointers: IntArray
    at: IntArray
    step: int
    rows: int


class Flow(NamedTuple):
    """The sum of each entry, and of each node its price and its excess; what a search writes on its way."""

    sums: IntArray
    price: IntArray
    excess: IntArray
    distance: IntArray
    seen: npt.NDArray[np.int8]
    next_arc: IntArray
    path: IntArray
    entry: IntArray
    heap_distance: IntArray
    heap_node: IntArray


# -- what a unit costs ------------------------------------------------------------------------------


@kernel
def sum_at(table: Entries, e, level):
    """What the cells of an entry add up to at a level."""
    low, high = table.start[e], table.start[e + 1]
    while low < high:
        middle = (low + high) // 2
        if table.counts[middle] > level:
            low = middle + 1
        else:
            high = middle
    above = low - table.start[e]
    return table.upto[low - 1] - above * level if above else np.int64(0)


@kernel
def level_at(table: Entries, e, total):
    """The smallest level at which the cells of an entry add up to at most a total (``sums.py``)."""
    first = table.start[e]
    low, high = np.int64(1), table.start[e + 1] - first
    while low < high:
        middle = (low + high + 1) // 2
        place = first + middle - 1
        if table.upto[place] - middle * table.counts[place] <= total:
            low = middle
        else:
            high = middle - 1
    return -((total - table.upto[first + low - 1]) // low)


@kernel
def cost(table: Entries, e, total):
    """What the next unit of an entry costs: it grows with the total."""
    level = level_at(table, e, total)
    return -level + (table.step if level <= 0 else 0)


@kernel
def reduced(table: Entries, flow: Flow, e, lowers, amount):
    """What it costs, beyond the prices, to lower or raise an entry; FAR if it cannot be lowered by this amount."""
    price = flow.price[table.row[e]] + flow.price[table.column[e]]
    if not lowers:
        return cost(table, e, flow.sums[e]) - price
    if flow.sums[e] < amount:
        return np.int64(FAR)
    return price - cost(table, e, flow.sums[e] - amount)


# -- cheapest paths ---------------------------------------------------------------------------------


@kernel
def push(flow: Flow, size, distance, node):
    """Put a node on the heap."""
    k = size
    while k > 0 and flow.heap_distance[(k - 1) // 2] > distance:
        flow.heap_distance[k] = flow.heap_distance[(k - 1) // 2]
        flow.heap_node[k] = flow.heap_node[(k - 1) // 2]
        k = (k - 1) // 2
    flow.heap_distance[k] = distance
    flow.heap_node[k] = node


@kernel
def pop(flow: Flow, size):
    """Take the first node off the heap of this size: the last one replaces it and moves down."""
    distance, node = flow.heap_distance[size - 1], flow.heap_node[size - 1]
    k = np.int64(0)
    while 2 * k + 1 < size - 1:
        child = 2 * k + 1
        if child + 1 < size - 1 and flow.heap_distance[child + 1] < flow.heap_distance[child]:
            child += 1
        if flow.heap_distance[child] >= distance:
            break
        flow.heap_distance[k] = flow.heap_distance[child]
        flow.heap_node[k] = flow.heap_node[child]
        k = child
    flow.heap_distance[k] = distance
    flow.heap_node[k] = node


@kernel
def reprice(table: Entries, flow: Flow, amount):
    """Dijkstra from all nodes with excess to the nearest with a deficit; False if none can be reached.

    Prices are then such that nothing costs less than 0 and cheapest paths cost 0.
    """
    nodes, rows = len(flow.price), table.rows
    size = np.int64(0)
    for node in range(nodes):
        flow.distance[node] = 0 if flow.excess[node] >= amount else FAR
        if flow.excess[node] >= amount:
            push(flow, size, 0, node)
            size += 1
    nearest = np.int64(FAR)
    while size and nearest == FAR:
        distance, node = flow.heap_distance[0], flow.heap_node[0]
        pop(flow, size)
        size -= 1
        if distance > flow.distance[node]:
            continue
        if flow.excess[node] <= -amount:
            nearest = distance
        for k in range(table.pointers[node], table.pointers[node + 1]):
            e = table.at[k]
            arc = reduced(table, flow, e, node < rows, amount)
            other = table.column[e] if node < rows else table.row[e]
            if arc < FAR and distance + arc < flow.distance[other]:
                flow.distance[other] = distance + arc
                push(flow, size, distance + arc, other)
                size += 1
    if nearest == FAR:
        return False
    for node in range(nodes):
        moved = min(flow.distance[node], nearest)
        flow.price[node] += moved if node < rows else -moved
    return True


@kernel
def move(table: Entries, flow: Flow, depth, amount):
    """Move an amount along the path: entries on steps from a row are lowered, the others raised."""
    for k in range(depth):
        e = flow.entry[k]
        flow.sums[e] += -amount if flow.path[k] == table.row[e] else amount
        flow.seen[flow.path[k]] = 0
    flow.seen[flow.path[depth]] = 0
    flow.excess[flow.path[0]] -= amount
    flow.excess[flow.path[depth]] += amount


@kernel
def free_step(table: Entries, flow: Flow, node, amount):
    """The next node to which a step costs nothing, by ``next_arc``, or -1."""
    while flow.next_arc[node] < table.pointers[node + 1]:
        e = table.at[flow.next_arc[node]]
        lowers = node == table.row[e]
        other = table.column[e] if lowers else table.row[e]
        if flow.seen[other] == 0 and reduced(table, flow, e, lowers, amount) == 0:
            return other
        flow.next_arc[node] += 1
    return np.int64(-1)


@kernel
def move_along_free_paths(table: Entries, flow: Flow, amount):
    """From each node with excess, depth first along steps that cost nothing, to nodes with a deficit."""
    for node in range(len(flow.price)):
        flow.seen[node] = 0
        flow.next_arc[node] = table.pointers[node]
    for source in range(len(flow.price)):
        depth = np.int64(-1)
        if flow.excess[source] >= amount and flow.seen[source] == 0:
            depth = np.int64(0)
            flow.path[0] = source
            flow.seen[source] = 1
        while depth >= 0:
            node = flow.path[depth]
            if flow.excess[node] <= -amount:
                move(table, flow, depth, amount)
                depth = np.int64(-1)
                if flow.excess[source] >= amount:
                    depth = np.int64(0)
                    flow.seen[source] = 1
                continue
            other = free_step(table, flow, node, amount)
            if other >= 0:
                flow.entry[depth] = table.at[flow.next_arc[node]]
                depth += 1
                flow.path[depth] = other
                flow.seen[other] = 1
            else:  # nothing leads on from here, until prices change
                depth -= 1


@kernel
def settle(table: Entries, flow: Flow, amount, rounds):
    """Move excess along cheapest paths; False if none can be moved any more."""
    for _ in range(rounds):
        if not reprice(table, flow, amount):
            return False
        move_along_free_paths(table, flow, amount)
    return True


@kernel
def lower_where_it_pays(table: Entries, flow: Flow, amount):
    """Lower entries by half of the amount before, where that costs less than the prices."""
    for e in range(len(flow.sums)):
        if reduced(table, flow, e, True, amount) < 0:
            flow.sums[e] -= amount
            flow.excess[table.row[e]] -= amount
            flow.excess[table.column[e]] += amount


# -- the first of all nearest tables ----------------------------------------------------------------


@kernel
def units(table: Entries, flow: Flow, e, lowers):
    """By how many units an entry can be lowered or raised at the price of the first."""
    if lowers:
        return flow.sums[e] - sum_at(table, e, level_at(table, e, flow.sums[e] - 1))
    return sum_at(table, e, level_at(table, e, flow.sums[e]) - 1) - flow.sums[e]


@kernel
def find_way(table: Entries, flow: Flow, first):
    """Breadth first from the row of an entry to its column, by later entries and steps that cost nothing.

    ``entry`` is then the entry by which each node was reached, and ``path`` the nodes in that order.
    """
    for node in range(len(flow.price)):
        flow.seen[node] = 0
    head, tail = np.int64(0), np.int64(1)
    flow.path[0] = table.row[first]
    flow.seen[table.row[first]] = 1
    while head < tail:
        node = flow.path[head]
        head += 1
        for k in range(table.pointers[node], table.pointers[node + 1]):
            e = table.at[k]
            lowers = node == table.row[e]
            other = table.column[e] if lowers else table.row[e]
            if e > first and flow.seen[other] == 0 and reduced(table, flow, e, lowers, 1) == 0:
                flow.seen[other] = 1
                flow.entry[other] = e
                flow.path[tail] = other
                tail += 1
                if other == table.column[first]:
                    return True
    return False


@kernel
def shift(table: Entries, flow: Flow, first):
    """Raise an entry by what the way that was found carries at no cost."""
    amount, origin = units(table, flow, first, False), table.row[first]
    node = table.column[first]
    while node != origin:
        e = flow.entry[node]
        amount = min(amount, units(table, flow, e, node == table.column[e]))
        node = table.row[e] if node == table.column[e] else table.column[e]
    node = table.column[first]
    while node != origin:
        e = flow.entry[node]
        flow.sums[e] += -amount if node == table.column[e] else amount
        node = table.row[e] if node == table.column[e] else table.column[e]
    flow.sums[first] += amount


@kernel
def prefer_first(table: Entries, flow: Flow, begin, end):
    """Raise each entry in turn as far as later entries can make up for it at no cost.

    While nothing is shifted, fewer and fewer entries are later ones: what could not be reached from a row stays so.
    """
    searched = np.int64(-1)  # the row from which a search has ended in vain, since something was shifted
    for e in range(begin, end):
        while reduced(table, flow, e, False, 1) == 0:
            if searched == table.row[e] and flow.seen[table.column[e]] == 0:
                break
            if not find_way(table, flow, e):
                searched = table.row[e]
                break
            shift(table, flow, e)
            searched = np.int64(-1)

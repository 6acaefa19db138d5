"""Graphs without loops and parallel edges: spanning forests, biconnected components, fundamental and shortest cycles.

An edge k joins the vertices ``tail[k]`` and ``head[k]``. Nothing here is recursive: graphs may be long paths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from keepsum._arrays import IntArray, grouped
from keepsum.lattice.matrix import Row

FEW_EDGES = 10**4  # up to here components are found here: importing scipy.sparse.csgraph takes longer


@dataclass(frozen=True, eq=False)
class Forest:
    """A spanning forest, breadth first.

    Attributes
    ----------
    order
        The vertices, each after its parent.
    parent, edge
        For each vertex its parent and the edge to it, or -1 at a root.
    """

    order: list[int]
    parent: list[int]
    edge: list[int]


def connected_components(tail: IntArray, head: IntArray, vertices: int) -> tuple[int, IntArray]:
    """How many connected components a graph has, and that of each vertex, numbered by their first vertices.

    >>> connected_components(np.array([0, 4]), np.array([2, 3]), 5)
    (3, array([0, 1, 0, 2, 2]))
    """
    if len(tail) > FEW_EDGES:
        from scipy.sparse import csgraph

        graph = sparse.coo_array((np.ones(len(tail), dtype=np.int8), (tail, head)), shape=(vertices, vertices))
        count, label = csgraph.connected_components(graph, directed=False)
        return int(count), label.astype(np.int64)
    root = list(range(vertices))  # each vertex points to an earlier one of its component, or to itself
    for edge in zip(tail.tolist(), head.tolist(), strict=True):
        low, high = sorted(_root(root, vertex) for vertex in edge)
        root[high] = low
    firsts, label = np.unique([_root(root, vertex) for vertex in range(vertices)], return_inverse=True)
    return len(firsts), label.astype(np.int64)


def _root(root: list[int], vertex: int) -> int:
    while root[vertex] != vertex:
        root[vertex] = root[root[vertex]]  # so that paths stay short
        vertex = root[vertex]
    return vertex


def spanning_forest(tail: IntArray, head: IntArray, vertices: int) -> Forest:
    """A breadth-first spanning forest: each tree has the shortest paths to its root.

    >>> spanning_forest(np.array([0, 1, 2, 4]), np.array([1, 2, 0, 3]), 5)
    Forest(order=[0, 3, 1, 2, 4], parent=[-1, 0, 0, -1, 3], edge=[-1, 0, 2, -1, 3])
    """
    from scipy.sparse.csgraph import breadth_first_order

    both = np.concatenate([tail, head]), np.concatenate([head, tail])
    roots = np.unique(connected_components(tail, head, vertices)[1], return_index=True)[1]
    # One more vertex, joined to all roots, so that one search reaches every tree.
    ends = np.concatenate([both[0], np.full(len(roots), vertices)]), np.concatenate([both[1], roots])
    rooted = sparse.csr_array((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(vertices + 1, vertices + 1))
    order, parent = breadth_first_order(rooted, vertices)
    parent = np.where(parent[:vertices] == vertices, -1, parent[:vertices]).astype(np.int64)
    keys = np.minimum(tail, head) * vertices + np.maximum(tail, head)
    by_key = np.argsort(keys, kind="stable")
    vertex = np.arange(vertices)
    wanted = np.minimum(parent, vertex) * vertices + np.maximum(parent, vertex)
    edge = np.full(vertices, -1, dtype=np.int64)
    inner = parent >= 0
    edge[inner] = by_key[np.searchsorted(keys[by_key], wanted[inner])]
    return Forest(order[1:].tolist(), parent.tolist(), edge.tolist())


def biconnected_components(tail: IntArray, head: IntArray, vertices: int) -> list[IntArray]:
    """The edges of each biconnected component, in order; a bridge is a component of one edge.

    Two edges are in one component if and only if a cycle goes through both (Hopcroft and Tarjan, 1973).

    >>> two_triangles = np.array([0, 1, 2, 2, 3, 4, 4]), np.array([1, 2, 0, 3, 4, 2, 5])
    >>> [edges.tolist() for edges in biconnected_components(*two_triangles, 6)]
    [[0, 1, 2], [3, 4, 5], [6]]
    """
    starts, neighbour, edge_of = _incidence(tail, head, vertices)
    place = starts[:-1]  # where the edges of a vertex that were not followed yet begin
    found = [0] * vertices  # the time at which a vertex is reached, from 1
    low = [0] * vertices  # the earliest vertex that a vertex and what is below it are joined to
    time = 0
    components: list[list[int]] = []
    for root in range(vertices):
        if found[root]:
            continue
        time += 1
        found[root] = low[root] = time
        path: list[tuple[int, int, int]] = [(root, -1, 0)]  # a vertex, the edge to it, and where its edges are stacked
        stack: list[int] = []
        while path:
            vertex, arrived, below = path[-1]
            if place[vertex] < starts[vertex + 1]:
                other, edge = neighbour[place[vertex]], edge_of[place[vertex]]
                place[vertex] += 1
                if not found[other]:
                    time += 1
                    found[other] = low[other] = time
                    path.append((other, edge, len(stack)))
                    stack.append(edge)
                elif edge != arrived and found[other] < found[vertex]:
                    stack.append(edge)
                    low[vertex] = min(low[vertex], found[other])
                continue
            path.pop()
            if path:
                above = path[-1][0]
                low[above] = min(low[above], low[vertex])
                if low[vertex] >= found[above]:
                    components.append(stack[below:])
                    del stack[below:]
    return sorted((np.array(sorted(edges), dtype=np.int64) for edges in components), key=lambda edges: int(edges[0]))


def _incidence(tail: IntArray, head: IntArray, vertices: int) -> tuple[list[int], list[int], list[int]]:
    """For the edges at each vertex: where they start, the other end of each, and its number."""
    at = np.concatenate([tail, head])
    order = np.argsort(at, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=vertices))])
    edge = np.tile(np.arange(len(tail)), 2)[order]
    return starts.tolist(), np.concatenate([head, tail])[order].tolist(), edge.tolist()


def alternating_cycles(tail: IntArray, head: IntArray, vertices: int) -> list[Row]:
    """The fundamental cycles of a bipartite graph, with entries +1 and -1 in turn: sum 0 at every vertex.

    They are a basis of all integer vectors with sum 0 at every vertex: each has the entry 1 at an edge of its own,
    which is in no other, and a vector that is 0 at all these edges is one on a forest, hence 0.

    >>> alternating_cycles(np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3]), 4)
    [{3: 1, 2: -1, 0: 1, 1: -1}]
    """
    forest = spanning_forest(tail, head, vertices)
    depth = [0] * vertices
    for vertex in forest.order:
        if forest.parent[vertex] >= 0:
            depth[vertex] = depth[forest.parent[vertex]] + 1
    inside = set(forest.edge)
    cycles = []
    for edge, (one, two) in enumerate(zip(tail.tolist(), head.tolist(), strict=True)):
        if edge in inside:
            continue
        cycle = {edge: 1}
        signs = {one: -1, two: -1}
        while one != two:
            if depth[one] < depth[two]:
                one, two = two, one
            sign = signs[one]
            cycle[forest.edge[one]] = sign
            one = forest.parent[one]
            signs[one] = -sign
        cycles.append(cycle)
    return cycles


def shortest_cycles(tail: IntArray, head: IntArray, vertices: int, edges: IntArray) -> IntArray:
    """The length of the shortest cycle through each of these edges; 0 for a bridge.

    Search breadth first from a vertex u, and call the part of the tree below each of its neighbours a *branch*. A
    cycle through the edge to a neighbour v leaves the branch of v by an edge between two branches. If their depths
    there are a and b, the cycle has at least a + b + 1 edges, and the paths in the tree make one that has so many.

    >>> tail, head = np.array([0, 1, 2, 2, 3, 4, 5, 5]), np.array([1, 2, 0, 3, 4, 5, 2, 6])
    >>> shortest_cycles(tail, head, 7, np.arange(8)).tolist()
    [3, 3, 3, 4, 4, 4, 4, 0]
    """
    unreached = np.iinfo(np.int64).max
    lengths = np.empty(len(edges), dtype=np.int64)
    if len(np.unique(head[edges])) < len(np.unique(tail[edges])):
        tail, head = head, tail
    both = np.concatenate([tail, head]), np.concatenate([head, tail])
    graph = sparse.csr_array((np.ones(2 * len(tail), dtype=np.int8), both), shape=(vertices, vertices))
    for places in grouped(tail[edges]):
        root = int(tail[edges[places[0]]])
        depth, branch = _branches(graph, root)
        between = (branch[tail] != branch[head]) & (tail != root) & (head != root)
        size = depth[tail[between]] + depth[head[between]] + 1
        shortest = np.full(vertices, unreached)
        np.minimum.at(shortest, branch[tail[between]], size)
        np.minimum.at(shortest, branch[head[between]], size)
        lengths[places] = shortest[head[edges[places]]]
    return np.where(lengths < unreached, lengths, 0)


def _branches(graph: sparse.csr_array, root: int) -> tuple[IntArray, IntArray]:
    """For each vertex its depth below a root, and the neighbour of the root above it; -1 if it is not reached."""
    from scipy.sparse.csgraph import breadth_first_order

    order, parent = breadth_first_order(graph, root)
    depth, branch = np.full((2, graph.shape[0]), -1, dtype=np.int64)
    depth[root] = 0
    place = np.empty(graph.shape[0], dtype=np.int64)
    place[order] = np.arange(len(order))
    above = place[parent[order[1:]]]  # never falls, so that levels follow one another
    start, end = 0, 1
    while end < len(order):
        level = order[end : 1 + int(np.searchsorted(above, end))]
        depth[level] = depth[order[start]] + 1
        branch[level] = level if start == 0 else branch[parent[level]]
        start, end = end, end + len(level)
    return depth, branch

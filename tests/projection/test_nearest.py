"""The nearest table without negative counts, against all tables with the same totals."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepsum as ks
from keepsum.errors import PlanError
from keepsum.lattice.structure import FREE, decompose
from keepsum.projection import programs
from keepsum.projection.nearest import check_possible, fill, is_nearest, is_unique, nearest
from support import margins, mostly_audit


def holes() -> ks.Invariants:
    domain = ks.Domain({"a": ["0", "1", "2"], "b": ["0", "1", "2"]}).without({"a": "0", "b": "0"})
    return ks.Invariants.margins(domain, [["a"], ["b"]])


def wide_entries() -> ks.Invariants:
    """A two-way table whose entries are two cells each."""
    domain = ks.Domain({"a": ["0", "1"], "b": ["0", "1"], "c": ["0", "1"]})
    return ks.Invariants.margins(domain, [["a"], ["b"]])


SUBSETS = ks.Invariants.subsets
KEPT = {
    "nothing": SUBSETS(3, []),
    "a sum": SUBSETS(5, [range(5)]),
    "a sum and free cells": SUBSETS(5, [[0, 1, 3]]),
    "a hierarchy": SUBSETS(6, [range(6), [0, 1, 2], [3, 4]]),
    "a pinned cell": SUBSETS(4, [[0], range(4)]),
    "a two-way table": margins(2, 3),
    "a two-way table with a structural zero": holes(),
    "a two-way table of several cells an entry": wide_entries(),
    "overlapping subsets": SUBSETS(6, [[0, 1, 2, 3], [2, 3, 4, 5], [0, 2, 4]]),
    "weights": ks.Invariants.matrix([[2, 3, 5, 1], [1, 1, 0, 2]]),
    "negative weights": ks.Invariants.matrix([[1, 1, -1, 0], [0, 1, 1, 1]]),
}
UNIQUE = [name for name in KEPT if name not in ("overlapping subsets", "weights", "negative weights")]


def noisy(keep: ks.Invariants, seed: int) -> np.ndarray:
    """A small table plus some vectors of the lattice, with a negative count."""
    random = np.random.default_rng(seed)
    steps = np.array(ks.Lattice(keep.coefficients).basis, dtype=np.int64).T
    while True:
        counts = random.integers(0, 3, keep.size) + random.integers(-1, 2, len(steps)) @ steps
        if counts.min() < 0 and counts.max() <= 5:
            return counts


@cache
def every_table(size: int, most: int) -> np.ndarray:
    return np.indices([most + 1] * size, dtype=np.int64).reshape(size, -1).T


def all_tables(keep: ks.Invariants, counts: np.ndarray, most: int) -> np.ndarray:
    """Every table without negative counts, none above a bound, with the same totals."""
    tables = every_table(keep.size, most)
    dense = keep.coefficients.toarray()
    return tables[(tables @ dense.T == dense @ counts).all(axis=1)]


def brute(keep: ks.Invariants, counts: np.ndarray, norm: str) -> tuple[np.ndarray, int]:
    """The table that the module's docstring describes, and its distance, by comparing all of them."""
    structure = decompose(keep.coefficients)
    tables = all_tables(keep, counts, 6 if keep.size <= 6 else 4)
    change = np.abs(tables - counts)
    l1, l2 = change.sum(axis=1), (change**2).sum(axis=1)
    first, second = (l1, l2) if norm == "l1" else (l2, l1 * 0)
    sums = [tables[:, structure.region == region].sum(axis=1) for region in range(len(structure.sizes))]
    best = np.lexsort((*(-tables[:, ::-1].T), *(-np.array(sums[::-1])), second, first))[0]
    return tables[best], int(first[best])


@mostly_audit("norm", ["l1", "l2"])
@pytest.mark.parametrize("name", UNIQUE)
def test_of_all_tables_it_is_the_one_described(name, norm):
    keep = KEPT[name]
    structure = decompose(keep.coefficients)
    assert is_unique(structure)
    for seed in range(12):
        counts = noisy(keep, seed)
        expected, _ = brute(keep, counts, norm)
        assert nearest(structure, counts, norm).tolist() == expected.tolist()
        assert is_nearest(structure, counts, expected, norm)


@mostly_audit("name", KEPT)
def test_no_table_is_nearer(name):
    keep = KEPT[name]
    structure = decompose(keep.coefficients)
    for seed in range(12):
        counts = noisy(keep, seed)
        result = nearest(structure, counts)
        assert result.min() >= 0
        assert keep.holds(counts, result)
        assert int(np.abs(result - counts).sum()) == brute(keep, counts, "l1")[1]


@pytest.mark.parametrize(
    ("name", "norm"),
    [(name, norm) for name in ("a two-way table", "a hierarchy", "nothing") for norm in ("l1", "l2")]
    + [("overlapping subsets", "l1")],
)
def test_a_table_that_is_no_nearest_one_is_found(name, norm):
    """Every other table with the totals is refused, if it is farther away or determined."""
    keep = KEPT[name]
    structure = decompose(keep.coefficients)
    counts = noisy(keep, 3)
    result, smallest = brute(keep, counts, norm)
    power = 1 if norm == "l1" else 2
    accepted = 0
    for table in all_tables(keep, counts, 4)[:500]:
        accepts = is_nearest(structure, counts, table, norm)
        as_near = int((np.abs(table - counts) ** power).sum()) == smallest
        assert accepts <= as_near
        if is_unique(structure):
            assert accepts == (table.tolist() == result.tolist())
        accepted += accepts
    assert accepted >= 1
    assert not is_nearest(structure, counts, counts, norm)


def truncated(structure, counts):
    """A wrong projection: negative counts become 0, and the last cell pays for it."""
    result = np.maximum(counts, 0)
    result[-1] += counts.sum() - result.sum()
    return result


def from_the_largest(structure, counts):
    """Another: what is missing is taken from the largest cell of each region, which keeps the sums."""
    result = np.maximum(counts, 0)
    for region in range(len(structure.sizes)):
        cells = np.flatnonzero(structure.region == region)
        if structure.part[region] != FREE:
            result[cells[np.argmax(counts[cells])]] += counts[cells].sum() - result[cells].sum()
    return result


@pytest.mark.parametrize("wrong", [truncated, from_the_largest])
def test_wrong_projections_are_rejected(wrong):
    structure = decompose(KEPT["a hierarchy"].coefficients)
    found = []
    for seed in range(12):
        counts = noisy(KEPT["a hierarchy"], seed)
        found.append(is_nearest(structure, counts, wrong(structure, counts), "l1"))
    assert not all(found)
    counts = np.array([9, 8, -4, 3, 3, -1])
    assert not is_nearest(structure, counts, wrong(structure, counts), "l1")


def test_what_is_lost_is_shared_equally():
    """The change of one cell does not depend on where it stands, but for a unit."""
    counts = np.array([50] * 40 + [-3] * 40)
    taken = counts - nearest(decompose(SUBSETS(80, [range(80)]).coefficients), counts)
    assert taken[:40].tolist() == [3] * 40
    counts[0], counts[41] = 49, -2
    assert (counts - nearest(decompose(SUBSETS(80, [range(80)]).coefficients), counts))[:40].tolist() == [2] + [3] * 39


@given(st.lists(st.lists(st.integers(-30, 30), min_size=1, max_size=6), min_size=1, max_size=5), st.data())
def test_sums_are_filled_by_a_greedy_algorithm(regions, data):
    """Unit by unit, each where it costs least, the first cell of several."""
    sums = [data.draw(st.integers(0, 60)) for _ in regions]
    expected = []
    for counts, total in zip(regions, sums, strict=True):
        cells = [0] * len(counts)
        for _ in range(total):
            best = max(range(len(cells)), key=lambda k: (counts[k] - cells[k], -k))
            cells[best] += 1
        expected += cells
    region = np.repeat(np.arange(len(regions)), [len(counts) for counts in regions])
    assert fill(region, np.concatenate(regions), np.array(sums)).tolist() == expected


@given(st.integers(2, 7), st.integers(2, 7), st.integers(0, 2**32), st.sampled_from(["l1", "l2"]), st.integers(0, 40))
def test_two_way_tables_of_any_size_are_nearest(rows, columns, seed, norm, bits):
    """No cycle of two rows and two columns makes the table nearer, or as near and earlier in the order."""
    random = np.random.default_rng(seed)
    keep = margins(rows, columns)
    counts = random.integers(0, 4, (rows, columns)) << bits
    for _ in range(rows * columns):
        i, k = random.choice(rows, 2, replace=False)
        j, m = random.choice(columns, 2, replace=False)
        amount = int(random.integers(0, 2 << bits))
        counts[i, j] += amount
        counts[k, m] += amount
        counts[i, m] -= amount
        counts[k, j] -= amount
    result = nearest(decompose(keep.coefficients), counts.ravel(), norm).reshape(rows, columns)
    assert result.min() >= 0
    assert keep.holds(counts.ravel(), result.ravel())
    for i, k in product(range(rows), repeat=2):  # the shortest cycles: two rows, two columns
        for j, m in product(range(columns), repeat=2):
            if i == k or j == m or min(result[i, m], result[k, j]) < 1:
                continue
            cells = ((i, j), (k, m), (i, m), (k, j))
            before = [int(result[cell] - counts[cell]) for cell in cells]
            after = [difference + sign for difference, sign in zip(before, (1, 1, -1, -1), strict=True)]
            costs = [(sum(map(abs, x)), sum(d * d for d in x)) for x in (before, after)]
            if norm == "l2":
                costs = [cost[1:] for cost in costs]
            assert costs[1] >= costs[0]
            if costs[1] == costs[0] and min(cells) in cells[:2]:
                raise AssertionError("a table as near has a larger first entry")


def test_a_table_without_negative_counts_stays():
    for keep in KEPT.values():
        counts = np.arange(keep.size)
        structure = decompose(keep.coefficients)
        assert nearest(structure, counts).tolist() == counts.tolist()
        assert is_nearest(structure, counts, counts, "l1")


def test_l2_is_refused_where_it_cannot_be():
    structure = decompose(KEPT["overlapping subsets"].coefficients)
    with pytest.raises(PlanError, match="Use l1"):
        check_possible(structure, "l2")
    with pytest.raises(PlanError, match="Use l1"):
        nearest(structure, noisy(KEPT["overlapping subsets"], 1), "l2")
    check_possible(structure, "l1")


def test_too_many_regions_are_refused_before_anything_is_drawn(monkeypatch):
    monkeypatch.setattr(programs, "REGIONS", 3)
    with pytest.raises(PlanError, match="at most 3 regions"):
        check_possible(decompose(KEPT["overlapping subsets"].coefficients), "l1")


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("a sum", [-1, 0, 0, 0, 0]),
        ("a pinned cell", [-1, 3, 0, 0]),
        ("a two-way table", [0, 0, -1, 0, 0, 3]),
        ("a two-way table with a structural zero", [0, 0, 9, 0, -5, 0, -4, 0]),
        ("overlapping subsets", [-3, 0, 0, 0, 0, 0]),
        ("a sum", [2**62, -(2**62), 0, 0, 0]),
        ("a two-way table", [2**58, -(2**58), 0, -(2**58), 2**58, 0]),
        ("overlapping subsets", [2**58, 0, -(2**58), 0, 2**58, 0]),
    ],
)
def test_forged_tables_have_no_nearest_one_and_end(name, counts):
    """A table of a forged certificate may have totals that no table without negative counts has, or huge counts."""
    structure = decompose(KEPT[name].coefficients)
    with pytest.raises(PlanError, match=r"No table without negative counts|must be smaller|must be below"):
        nearest(structure, np.array(counts))


def test_huge_counts_take_few_steps():
    """Amounts are halved: the steps grow with the logarithm of the counts."""
    counts = np.array([2**40, -(2**40), 0, -(2**40), 2**40, 0])
    assert nearest(decompose(margins(2, 3).coefficients), counts).tolist() == [0] * 6


def test_the_solver_does_not_decide_what_is_determined(monkeypatch):
    """Sums, hierarchies and two-way tables never ask it."""
    monkeypatch.setattr(programs, "nearest_sums", None)
    for name in UNIQUE:
        nearest(decompose(KEPT[name].coefficients), noisy(KEPT[name], 1))


@pytest.mark.parametrize("permuted", [False, True])
def test_another_answer_of_the_solver_is_as_near(monkeypatch, permuted):
    """Another version of a solver may find another table; the distance is the same, and both verify."""
    import scipy.optimize

    original = scipy.optimize.linprog

    def other_method(*arguments, **options):
        return original(*arguments, **{**options, "method": "highs-ipm" if permuted else "highs"})

    keep = KEPT["overlapping subsets"]
    structure = decompose(keep.coefficients)
    for seed in range(12):
        counts = noisy(keep, seed)
        with monkeypatch.context() as patch:
            patch.setattr(scipy.optimize, "linprog", other_method)
            other = nearest(structure, counts)
        assert is_nearest(structure, counts, other, "l1")


def test_where_the_linear_program_is_not_whole_branch_and_bound_is(monkeypatch):
    """Under weights its vertices have fractions, and the nearest whole numbers are farther away."""
    fractional = []
    original = programs._linear

    def noted(*arguments):
        answer = original(*arguments)
        fractional.append(bool((np.abs(answer.x - np.rint(answer.x)) > 0.01).any()))
        return answer

    monkeypatch.setattr(programs, "_linear", noted)
    keep = KEPT["weights"]
    for seed in range(12):
        counts = noisy(keep, seed)
        result = nearest(decompose(keep.coefficients), counts)
        assert int(np.abs(result - counts).sum()) == brute(keep, counts, "l1")[1]
    assert any(fractional)


@mostly_audit("name", ["overlapping subsets", "weights", "negative weights"])
def test_a_bound_is_never_above_what_is_attained(name):
    """Weak duality, whatever multipliers a solver returns."""
    keep = KEPT[name]
    structure = decompose(keep.coefficients)
    (block,) = structure.blocks
    random = np.random.default_rng(1)
    for seed in range(30):
        counts = noisy(keep, seed)
        sums, positive = (
            np.bincount(structure.region, numbers).astype(np.int64)[block.regions]
            for numbers in (counts, np.maximum(counts, 0))
        )
        totals = programs.exact_product(block.system, sums)
        attained = programs.distance(programs.nearest_sums(block.system, sums, positive), positive)
        bound = programs._proved(block.system, totals, positive, random.normal(size=len(totals)))
        assert bound is None or bound <= attained

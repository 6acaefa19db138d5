"""What kept totals of several releases determine together, against ranks of stacked matrices."""

import random
from itertools import product

import msgspec
import numpy as np
import pytest
import sympy
from scipy import sparse

import keepsum as ks
from keepsum.lattice.determined import can_change, determined
from keepsum.lattice.structure import decompose
from keepsum.ledger.person import KeptTable, check_joint, table_entry
from keepsum.ledger.state import _cells_of, cells_key
from keepsum.releasing.codec import cells_record
from support import mostly_audit


def kernel(rows: np.ndarray) -> np.ndarray:
    """A basis of what keeps these totals, by sympy: one row per vector."""
    if not len(rows):
        return np.eye(rows.shape[1], dtype=int)
    vectors = sympy.Matrix(rows.tolist()).nullspace()
    scaled = [vector * sympy.ilcm(1, *(entry.q for entry in vector)) for vector in vectors]
    return np.array([[int(entry) for entry in vector] for vector in scaled], dtype=object).reshape(-1, rows.shape[1])


def may_change(basis: np.ndarray, values: np.ndarray) -> bool:
    """Whether a vector has opposite signs at two cells of different values: by the span of each pair of entries."""
    for i, j in product(range(basis.shape[1]), repeat=2):
        if values[i] != values[j] and len(basis):
            pair = sympy.Matrix(basis[:, [i, j]].tolist())
            if pair.rank() == 2 or any(a * b < 0 for a, b in basis[:, [i, j]]):
                return True
    return False


def random_rows(choice: random.Random, width: int, weights: list[int]) -> np.ndarray:
    rows = [[choice.choice(weights) for _ in range(width)] for _ in range(choice.randrange(1, 5))]
    return np.array([row for row in rows if any(row)] or [[1] * width])


@mostly_audit("weights", [[0, 1], [0, 0, 1], [0, 0, 0, 1, 2], [-2, -1, 0, 0, 1, 3]], ids=str)
def test_determined_sums_are_those_in_the_span(weights):
    choice, found, changes = random.Random(str(weights)), 0, 0
    for _ in range(60):
        width = choice.randrange(2, 8)
        rows = random_rows(choice, width, weights)
        structure = decompose(sparse.csr_array(rows))
        basis = kernel(rows)
        sums = np.vstack([np.eye(width, dtype=int), random_rows(choice, width, weights), rows, rows.sum(0)[None]])
        expected = [not (basis @ row).any() for row in sums]
        assert determined(structure, sparse.csr_array(sums)).tolist() == expected
        found += sum(expected) - len(rows) - 1
        values = np.array([choice.randrange(3) for _ in range(width)])
        assert can_change(structure, values) == may_change(basis, values), (rows, values)
        changes += can_change(structure, values)
    assert found > 20
    assert 0 < changes < 60


def test_determined_sums_of_two_way_and_larger_tables():
    """Of tables that are recognised, whose bases are in closed form."""
    choice = random.Random(5)
    for shape, kept in (((3, 4), [["a"], ["b"]]), ((2, 3, 2), [["a", "b"], ["b", "c"], ["a", "c"]])):
        domain = ks.Domain({axis: list(range(n)) for axis, n in zip("abc", shape, strict=False)})
        rows = ks.Invariants.margins(domain, kept).coefficients
        basis = kernel(rows.toarray())
        sums = np.array([[choice.choice([0, 1]) for _ in range(domain.size)] for _ in range(30)])
        sums = np.vstack([sums, rows.toarray(), rows.toarray()[:2] + rows.toarray()[2:4]])
        expected = [not (basis @ row).any() for row in sums]
        assert determined(decompose(rows), sparse.csr_array(sums)).tolist() == expected
        assert sum(expected) > 5


# -- tables of a dataset ---------------------------------------------------------------------------------------------


def dataset_domain(choice: random.Random) -> ks.Domain:
    if choice.random() < 0.5:
        domain = ks.Domain({"a": ["a1", "a2"], "b": ["b1", "b2"], "c": ["c1", "c2"]})
    else:
        pairs = {"s1": ["x", "y"], "s2": ["x", "z"][: choice.randrange(1, 3)]}
        domain = ks.Domain({"state": ["s1", "s2"], "county": pairs, "b": ["b1", "b2"]}, {"county": "state"})
    if choice.random() < 0.4:
        domain = domain.without(domain.cell(choice.randrange(domain.size)))
    return domain


def random_table(choice: random.Random, dataset: ks.Domain) -> ks.Domain:
    """Some of the axes, some of their categories, and perhaps a structural zero of its own."""
    axes = dataset.closure([axis for axis in dataset.axes if choice.random() < 0.7] or dataset.axes[-1:])
    categories: dict = {}
    for axis in axes:
        every = dataset.categories(axis)
        parent = dataset.within.get(axis)
        if parent is not None:
            every = [path for path in every if path[0] in categories[parent]]
        left = [each for each in every if choice.random() < 0.85]
        categories[axis] = left or list(every)
        if parent is not None and {path[0] for path in categories[axis]} != set(categories[parent]):
            categories[axis] = list(every)
    table = ks.Domain(categories, {axis: parent for axis, parent in dataset.within.items() if axis in axes})
    if table.size > 2 and choice.random() < 0.2:
        table = table.without(table.cell(choice.randrange(table.size)))
    return table


def random_totals(choice: random.Random, table: ks.Domain) -> ks.Invariants:
    axes = list(table.axes)
    if choice.random() < 0.6:
        margins = [choice.sample(axes, choice.randrange(len(axes))) for _ in range(choice.randrange(1, 3))]
        return ks.Invariants.margins(table, margins)
    cells = [choice.sample(range(table.size), choice.randrange(1, table.size + 1)) for _ in range(2)]
    return ks.Invariants.subsets(table.size, [sorted(each) for each in cells]).over(table)


def sums_of(table: ks.Domain, dataset: ks.Domain) -> np.ndarray:
    """The table's cells as sums of cells of the dataset, cell by cell and by name."""
    rows = np.zeros((table.size, dataset.size), dtype=int)
    names = {tuple(table.cell(k).items()): k for k in range(table.size)}
    for cell in range(dataset.size):
        key = tuple((axis, dataset.cell(cell)[axis]) for axis in table.axes)
        if key in names:
            rows[names[key], cell] = 1
    return rows


def stops(earlier: list[ks.Invariants], new: ks.Invariants, dataset: ks.Domain) -> str | None:
    """Whether a release should be stopped, by ranks: what becomes determined, or what nothing protects any more."""
    sums = [sums_of(kept.domain, dataset) for kept in (*earlier, new)]
    lifted = [kept.coefficients.toarray() @ s for kept, s in zip((*earlier, new), sums, strict=True)]
    before, alone, after = (kernel(np.vstack(rows)) for rows in (lifted[:-1], lifted[-1:], lifted))

    def fixed(basis: np.ndarray, row: np.ndarray) -> bool:
        return not (basis @ row).any()

    for place, cells in enumerate(sums):
        is_new = place == len(earlier)
        known = [alone if is_new else before]
        same = [kept.domain == new.domain for kept in earlier]
        if any(same) if is_new else same[place]:  # pinned cells of the same table are accepted
            known.append(before if is_new else alone)
        if any(fixed(after, row) and not any(fixed(basis, row) for basis in known) for row in cells):
            return "determine"
    for row in np.eye(dataset.size, dtype=int):
        if fixed(after, row) and not fixed(before, row) and not fixed(alone, row):
            return "determine"
    for axis in dataset.axes:
        values = dataset.codes(axis)
        protected = may_change(before, values) or may_change(alone, values)
        if protected and not may_change(after, values):
            return f"allow no change of '{axis}'"
    return None


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.audit) for seed in range(3, 15))])
def test_a_release_is_stopped_exactly_if_it_fixes_more(seed):
    choice = random.Random(seed)
    seen: dict[str | None, int] = {}
    for _ in range(30):
        dataset = dataset_domain(choice)
        totals = []
        for _ in range(choice.choice([2, 2, 3])):
            table = random_table(choice, dataset)
            totals.append(random_totals(choice, table))
        *earlier, new = totals
        kept = [KeptTable.of(table_entry("data", each, None), k + 3, dataset) for k, each in enumerate(earlier)]
        expected = stops(earlier, new, dataset)
        try:
            check_joint(kept, KeptTable.of(table_entry("data", new, None), None, dataset))
            found = None
        except ks.PlanError as error:
            found = str(error)
            assert "Keep fewer totals." in found
        assert (found is None) == (expected is None), (found, expected)
        assert expected is None or expected in found or "determine every cell" in found
        seen[expected] = seen.get(expected, 0) + 1
    assert seen[None] > 3
    assert seen["determine"] > 3


def test_margins_of_a_dataset_are_put_together_as_its_own():
    """Whichever axes the tables have, in whatever order: all combinations of the axes that any of them has."""
    choice = random.Random(7)
    for _ in range(60):
        dataset = dataset_domain(choice)
        if dataset.structural_zeros:
            continue
        tables = [dataset.project(dataset.closure(choice.sample(dataset.axes, choice.randrange(1, 3)))) for _ in "123"]
        found = _cells_of(tuple(msgspec.json.encode(cells_record(table)) for table in tables))
        together = dataset.project({axis for table in tables for axis in table.axes})
        assert found.key == cells_key(cells_record(together))
        assert cells_key(cells_record(found.domain)) == found.key


def test_tables_are_lifted_by_name():
    choice = random.Random(3)
    for _ in range(60):
        dataset = dataset_domain(choice)
        table = random_table(choice, dataset)
        kept = random_totals(choice, table)
        lifted = KeptTable.of(table_entry("data", kept, None), None, dataset)
        assert lifted.sums.toarray().tolist() == sums_of(table, dataset).tolist()
        expected = kept.coefficients.toarray() @ sums_of(table, dataset)
        rows = {tuple(row) for row in lifted.invariants.coefficients.toarray().tolist() if any(row)}
        assert rows == {tuple(row) for row in expected.tolist() if any(row)}

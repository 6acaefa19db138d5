"""Distances as keepsum.certificate/2 defines them: by brute force, closed forms, and parts put together."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from flint import fmpz_mat

import keepsum as ks
from keepsum.lattice import opposite
from keepsum.lattice.shortest import ShortVectors
from keepsum.lattice.structure import decompose
from keepsum.planning.distances import AttributeDistance
from keepsum.planning.lattice_distances import LatticeParts, _distance, _from_margins
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy.distance import Distance
from support import mostly_audit

L1, L2 = ks.Laplace.per_unit(epsilon=1), ks.Laplace.per_unit(epsilon=1, norm="l2")
FAR = 10**9


def planned(keep: ks.Invariants, mechanism: ks.Laplace | ks.Gaussian) -> CompiledPlan:
    return compile_plan(keep, mechanism, by_lattice=True)


def product_domain(**sizes: int) -> ks.Domain:
    return ks.Domain({axis: list(range(n)) for axis, n in sizes.items()})


def lattice_vectors(A: np.ndarray, reach: int) -> np.ndarray:
    """All vectors of the lattice with entries up to a size: every choice of some, where integers solve for the rest."""
    reduced, denominator, rank = fmpz_mat(A.tolist()).rref()
    R = np.array(reduced.tolist(), dtype=np.int64)[:rank]
    solved = (R != 0).argmax(axis=1)
    chosen = np.setdiff1d(np.arange(A.shape[1]), solved)
    z = np.zeros(((2 * reach + 1) ** len(chosen), A.shape[1]), dtype=np.int64)
    z[:, chosen] = list(product(range(-reach, reach + 1), repeat=len(chosen)))
    z[:, solved] = -(z[:, chosen] @ R[:, chosen].T) // int(denominator)
    return z[~(z @ A.T).any(axis=1) & z.any(axis=1) & (np.abs(z) <= reach).all(axis=1)]


def by_definition(A: np.ndarray, codes: np.ndarray, norm: str, reach: int) -> tuple[int, int, int, int, int]:
    """Any value, some other value, and what is not protected, word for word from DESIGN.md section 1."""
    vectors = lattice_vectors(A, reach)
    free = vectors.any(axis=0)
    l1, l2 = np.abs(vectors).sum(axis=1), (vectors**2).sum(axis=1)
    counts_people = set(np.unique(A)) <= {0, 1}
    values = np.unique(codes)
    open_values = [v for v in values if free[codes == v].any()]
    any_value = other_value = unprotected = stuck = 0
    for i in np.flatnonzero(free):
        costs = []
        for v in open_values:
            if v == codes[i]:
                continue
            takes = (vectors[:, i] < 0) & (vectors[:, codes == v] > 0).any(axis=1)
            if not takes.any():
                costs.append(FAR)
            elif norm == "l1":
                costs.append(int(l1[takes].min()))
            elif counts_people:
                costs.append(int(l2[takes & (l1 == l1[takes].min())].max()))
            else:
                costs.append(int(l2[takes].min()))
        finite = [c for c in costs if c < FAR]
        any_value = max(any_value, *finite, 0)
        if finite:
            other_value = max(other_value, min(finite))
        unprotected += FAR in costs
        stuck += not finite
    return any_value, other_value, len(values) - len(open_values), unprotected, stuck


def as_found(found: AttributeDistance) -> tuple[int, int, int, int, int]:
    lengths = [0 if d is None else d.length for d in (found.any_value, found.other_value)]
    return (*lengths, found.fixed_values, found.unprotected, found.stuck)


@mostly_audit("norm", ["l1", "l2"])
@pytest.mark.parametrize("seed", range(40))
def test_the_definition_on_small_random_systems(seed, norm):
    """Random totals of 0 and 1 (and some of weights) over cells with random names."""
    rng = np.random.default_rng(seed)
    shape = [(2, 3), (6, 1), (2, 2), (3, 2)][seed % 4]
    size = math.prod(shape)
    A = rng.integers(-1 if seed % 5 == 4 else 0, 3 if seed % 5 == 4 else 2, size=(rng.integers(1, 4), size))
    if seed % 3 == 0:  # cells under no total, and pinned ones
        A[:, rng.integers(size)] = 0
        A = np.vstack([A, np.eye(size, dtype=int)[rng.integers(size)]])
    domain = product_domain(a=shape[0], b=shape[1])
    if len(decompose(ks.Invariants.matrix(A).coefficients).pinned) == size:
        return
    plan = planned(ks.Invariants.matrix(A).over(domain), ks.Laplace.per_unit(epsilon=1, norm=norm))
    reached = lattice_vectors(A, 2).any(axis=0)
    for found in plan.attributes:
        true = by_definition(A, domain.codes(found.axis), norm, 2)
        # Longer vectors may need entries that the brute force does not have.
        if max(true[:2]) > 5 or reached.sum() + len(plan.pinned) < size:
            continue
        assert as_found(found)[2:] == true[2:]
        for distance, length in zip((found.any_value, found.other_value), true[:2], strict=True):
            assert (0 if distance is None else distance.length) >= length
            if distance is not None and (distance.exact or norm == "l1"):
                assert (distance.exact, distance.length) == (True, length)


@mostly_audit("norm", ["l1", "l2"])
@pytest.mark.parametrize("seed", range(40))
def test_the_definition_on_two_way_tables_with_zeros(seed, norm):
    """Entries of one or two cells: vectors through one cell, from a cell to a value, and moves within an entry."""
    rng = np.random.default_rng(seed)
    domain = product_domain(a=4, b=4 - seed % 2, c=1 + seed % 3 // 2)
    zeros = [zero for zero in product(*map(range, domain.shape)) if rng.random() < 0.35 + 0.2 * (seed % 3 == 2)]
    domain = domain.without(*(dict(zip("abc", zero, strict=True)) for zero in zeros))
    keep = ks.Invariants.margins(domain, [["a"], ["b"]])
    A = keep.coefficients.toarray()
    structure = decompose(keep.coefficients)
    if not structure.blocks or domain.size - structure.rank > 6:
        return
    vectors = lattice_vectors(A, 2)
    plan = planned(keep, ks.Laplace.per_unit(epsilon=1, norm=norm))
    lengths = np.abs(vectors).sum(axis=1) if norm == "l1" else (vectors**2).sum(axis=1)
    through = [lengths[vectors[:, cell] != 0].min() for cell in np.flatnonzero(vectors.any(axis=0))]
    assert plan.smallest_change == Distance(norm, max(through))
    for found in plan.attributes:
        true = by_definition(A, domain.codes(found.axis), norm, 2)
        assert as_found(found)[2:] == true[2:]
        for distance, length in zip((found.any_value, found.other_value), true[:2], strict=True):
            if distance is not None and (distance.exact or norm == "l1"):
                assert (distance.exact, distance.length) == (True, length)
            else:
                assert (0 if distance is None else distance.length) >= length


@pytest.mark.parametrize(
    ("keep", "distances"),
    [
        ([["a"], ["b"]], {"a": (4, 4), "b": (4, 4), "c": (2, 2)}),
        ([["a", "b"], ["c"]], {"a": (4, 4), "b": (4, 4), "c": (4, 4)}),
        ([["a", "b"], ["b", "c"]], {"a": (4, 4), "b": (8, 8), "c": (4, 4)}),
        ([["a", "b"], ["b", "c"], ["a", "c"]], {"a": (8, 8), "b": (8, 8), "c": (8, 8)}),
        ([["a"]], {"a": (4, 4), "b": (2, 2), "c": (2, 2)}),
        ([[]], {"a": (2, 2), "b": (2, 2), "c": (2, 2)}),
        ([], {"a": (2, 2), "b": (2, 2), "c": (2, 2)}),
    ],
)
@pytest.mark.parametrize("mechanism", [L1, L2])
def test_margins_of_a_product(keep, distances, mechanism):
    """DESIGN.md section 1, read off the margins and put together from parts alike."""
    domain = product_domain(a=3, b=2, c=3)
    invariants = ks.Invariants.margins(domain, keep)
    plan = planned(invariants, mechanism)
    assert {a.axis: (a.any_value.length, a.other_value.length) for a in plan.attributes} == distances
    assert all(a.any_value.exact and a.other_value.exact for a in plan.attributes)
    parts = LatticeParts.of(plan.structure, mechanism.norm, zero_one=True)
    for attribute in plan.attributes:
        assert _distance(parts, attribute.axis, domain.codes(attribute.axis)) == attribute
    assert plan.person.length == max(a for a, _ in distances.values())


def test_all_two_way_margins_of_four_ways():
    """The closed form is exact where no search could be."""
    domain = product_domain(a=4, b=3, c=3, d=3)
    names = "abcd"
    pairs = [[x, y] for x in names for y in names if x < y]
    plan = planned(ks.Invariants.margins(domain, pairs), ks.Gaussian.per_unit(rho=1))
    assert [(a.any_value.length, a.any_value.exact) for a in plan.attributes] == [(8, True)] * 4


def test_counties_within_states():
    """Within a state a county changes by a move; to another state by two, and a state that is one county not at all."""
    counties = {"A": ["x", "y", "z"], "B": ["x", "y"], "C": ["only"]}
    domain = ks.Domain({"state": ["A", "B", "C"], "county": counties}, within={"county": "state"})
    plan = planned(ks.Invariants.margins(domain, [["state"]]), L1)
    state, county = plan.attributes
    assert as_found(state) == (4, 4, 1, 0, 0)
    assert as_found(county) == (4, 2, 1, 0, 0)
    assert plan.person_distance == 4
    kept = ks.Invariants.margins(domain, [["county"]])
    with pytest.raises(ks.PlanError, match="determine every cell"):
        planned(kept, L1)


def test_blocks_of_a_nested_table():
    """County by education with both margins, state by state: another state takes a swap in each."""
    domain = ks.Domain(
        {"state": ["A", "B"], "county": {"A": ["x", "y", "z"], "B": ["x", "y"]}, "edu": ["low", "mid", "high"]},
        within={"county": "state"},
    )
    plan = planned(ks.Invariants.margins(domain, [["county"], ["state", "edu"]]), L1)
    assert {a.axis: as_found(a)[:2] for a in plan.attributes} == {"state": (8, 8), "county": (8, 4), "edu": (4, 4)}
    assert all(a.any_value.exact for a in plan.attributes)


def test_from_a_free_cell_into_a_kept_group():
    """1 to leave a cell under no total, 2 to arrive in a group whose sum is kept."""
    domain = product_domain(a=5)
    plan = planned(ks.Invariants.subsets(5, [[0, 1, 2]]).over(domain), L1)
    assert as_found(plan.attributes[0]) == (3, 2, 0, 0, 0)


def test_a_distance_of_two_that_is_no_move():
    """Two counts that are kept equal rise and fall together: nobody can change from the one to the other."""
    plan = planned(ks.Invariants.matrix([[1, -1]]).over(product_domain(a=2)), L1)
    assert as_found(plan.attributes[0]) == (0, 0, 0, 2, 2)
    assert plan.person is None
    assert plan.smallest_change == Distance("l1", 2)


def test_axes_across_a_table():
    """An axis that runs along the diagonal of a table: no swap reaches its next value, six counts do."""
    domain = product_domain(n=9)
    rows = [[3 * r + c for c in range(3)] for r in range(3)]
    columns = [[3 * r + c for r in range(3)] for c in range(3)]
    names = ks.Domain({"diagonal": [0, 1, 2], "place": [0, 1, 2]})
    keep = ks.Invariants.subsets(9, rows + columns)
    order = [3 * ((d + p) % 3) + p for d in range(3) for p in range(3)]  # cell (d, p) is at (row d + p, column p)
    shuffled = ks.Invariants.matrix(keep.coefficients.toarray()[:, order]).over(names)
    for norm in ("l1", "l2"):
        plan = planned(shuffled, ks.Laplace.per_unit(epsilon=1, norm=norm))
        for found in plan.attributes:
            true = by_definition(shuffled.coefficients.toarray(), names.codes(found.axis), norm, 1)
            assert as_found(found) == true
            assert found.any_value.exact
    assert domain.size == 9


@pytest.mark.audit
def test_every_search_is_bounded():
    """The audit's matrix: a column of 1,000,000 needs a vector of that length, and no list gets there."""
    keep = ks.Invariants.matrix([[1, 1, 0, 1_000_000, 0], [0, 1, 1, 0, 1]])
    plan = planned(keep, L1)
    assert not plan.smallest_change.exact
    assert plan.smallest_change.length >= 1_000_001
    named = planned(keep.over(product_domain(a=5)), L1)
    assert not named.attributes[0].any_value.exact


@pytest.fixture
def without_searches(monkeypatch):
    """Two-way tables are not searched, so that bounds come from known vectors, as they do for other totals."""
    monkeypatch.setattr(opposite, "SEARCHES", 0)
    monkeypatch.setattr(opposite, "COMPARED", 0)


def test_upper_bounds_are_vectors(request):
    """Where the search is cut off the bound is the length of a true vector, never below the distance."""
    domain = product_domain(a=6, b=6)
    holes = domain.without({"a": 0, "b": 0}, {"a": 1, "b": 1}, {"a": 2, "b": [2, 3]})
    keep = ks.Invariants.margins(holes, [["a"], ["b"]])
    exact = planned(keep, L1).attributes
    request.getfixturevalue("without_searches")
    structure = decompose(keep.coefficients)
    system = structure.blocks[0].system
    cut = ShortVectors(system.matrix, system.basis, structure.sizes[structure.blocks[0].regions], limit=0)
    parts = LatticeParts.of(structure, "l1", zero_one=True)
    parts.short[(id(system), structure.sizes[structure.blocks[0].regions].tobytes())] = cut
    for attribute in exact:
        bound = _distance(parts, attribute.axis, holes.codes(attribute.axis))
        assert attribute.any_value.exact
        assert bound.any_value.length >= attribute.any_value.length


@mostly_audit("mechanism", [L1, L2])
@pytest.mark.parametrize("shape", [(700, 3), (60, 50)])
def test_a_large_table_with_a_hole(shape, mechanism):
    """From the line of the hole to the other line of it, six counts change."""
    domain = product_domain(c=shape[0], e=shape[1]).without({"c": 1, "e": 0})
    plan = planned(ks.Invariants.margins(domain, [["c"], ["e"]]), mechanism)
    assert [a.any_value for a in plan.attributes] == [Distance(mechanism.norm, 6)] * 2
    assert [a.other_value for a in plan.attributes] == [Distance(mechanism.norm, 4)] * 2
    assert plan.smallest_change == Distance(mechanism.norm, 4)


@pytest.mark.audit
@pytest.mark.usefixtures("without_searches")
@pytest.mark.parametrize("shape", [(700, 3), (60, 50)])
def test_a_large_table_with_a_hole_is_protected_everywhere(shape):
    """What is not found is not what does not exist: a bound is put together of two vectors, and called one."""
    domain = product_domain(c=shape[0], e=shape[1]).without({"c": 1, "e": 0})
    for found in planned(ks.Invariants.margins(domain, [["c"], ["e"]]), L1).attributes:
        assert as_found(found)[2:] == (0, 0, 0)
        assert (found.unknown, found.other_value) == (0, Distance("l1", 4))
        assert 6 <= found.any_value.length <= 8
        assert not found.any_value.exact


def test_closed_form_declines_what_it_does_not_cover():
    domain = product_domain(a=3, b=3)
    holed = domain.without({"a": 0, "b": 0})
    assert _from_margins(ks.Invariants.margins(holed, [["a"]]), holed) is None
    assert _from_margins(ks.Invariants.subsets(9, [[0, 1]]).over(domain), domain) is None
    nested = ks.Domain({"s": ["A", "B"], "c": {"A": [1, 2], "B": [3, 4]}}, within={"c": "s"})
    assert _from_margins(ks.Invariants.margins(nested, [["s"]]), nested) is None
    assert _from_margins(ks.Invariants.margins(nested, [[]]), nested) == {"s": 2, "c": 2}

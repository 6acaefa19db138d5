"""The distance of one person: closed forms, the definition by brute force in real tables, and requests."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import keepsum as ks
from keepsum.planning.distances import AttributeDistance, KeptMargins
from keepsum.planning.plan import compile_plan
from keepsum.privacy.distance import Distance
from keepsum.releasing.explain import person_statements
from planning import brute_force
from support import mostly_audit

L1, L2 = ks.Laplace.per_unit(epsilon=1), ks.Laplace.per_unit(epsilon=1, norm="l2")
STATES = {"state": ["A", "B"], "county": {"A": ["x", "y", "z"], "B": ["x", "y"]}}
NESTED = {"county": "state"}


def product_domain(**sizes: int) -> ks.Domain:
    return ks.Domain({axis: list(range(n)) for axis, n in sizes.items()})


def figure(distance: Distance | None) -> tuple | None:
    """As the page's table has it: the figure, how it is read, and why it holds."""
    return None if distance is None else (str(distance), distance.reading, distance.rule)


def gaps(found: AttributeDistance) -> tuple[int, int, int]:
    return found.fixed_values, found.unprotected, found.stuck


def figures(plan: ks.Plan) -> dict[str, tuple]:
    """What is stated of a change to any value, where a change to some other costs the same."""
    for found in plan.attributes:
        assert figure(found.any_value) == figure(found.other_value)
    return {found.axis: figure(found.any_value) for found in plan.attributes}


MOVE, EXCHANGE, TWO = ("2", "strong", "move"), ("4", "strong", "exchange"), ("6", "weak", "junction tree")
MARGINS = [
    ("abc", [], {"a": MOVE, "b": MOVE, "c": MOVE}),
    ("abc", [""], {"a": MOVE, "b": MOVE, "c": MOVE}),
    ("abc", ["a"], {"a": EXCHANGE, "b": MOVE, "c": MOVE}),
    ("abc", ["a", "b"], {"a": EXCHANGE, "b": EXCHANGE, "c": MOVE}),
    ("abc", ["a", "b", "c"], {"a": EXCHANGE, "b": EXCHANGE, "c": EXCHANGE}),
    ("abc", ["ab", "c"], {"a": EXCHANGE, "b": EXCHANGE, "c": EXCHANGE}),
    ("abc", ["ab", "b", "c", ""], {"a": EXCHANGE, "b": EXCHANGE, "c": EXCHANGE}),
    ("abcd", ["ab", "bc", "cd"], {"a": EXCHANGE, "b": TWO, "c": TWO, "d": EXCHANGE}),
    (
        "abcde",
        ["ab", "bc", "bd", "e"],
        {"a": EXCHANGE, "b": ("8", "weak", "junction tree"), "c": EXCHANGE, "d": EXCHANGE, "e": EXCHANGE},
    ),
    # Every margin meets the change: somebody else may take this person's place, and one person fewer changes.
    ("abc", ["ab", "bc"], {"a": EXCHANGE, "b": ("at most 6", "weak", "junction tree"), "c": EXCHANGE}),
    (
        "abcd",
        ["ab", "bc", "bd"],
        {"a": EXCHANGE, "b": ("at most 8", "weak", "junction tree"), "c": EXCHANGE, "d": EXCHANGE},
    ),
    ("a", [""], {"a": MOVE}),
    # A cycle of four margins has no junction tree, and nothing is stated. One that they are not connected with has.
    ("abcde", ["ab", "bc", "cd", "ad", "e"], {"a": None, "b": None, "c": None, "d": None, "e": EXCHANGE}),
]


@pytest.mark.parametrize(("axes", "keep", "expected"), MARGINS)
def test_margins_of_a_product(axes, keep, expected):
    domain = product_domain(**{axis: 3 - n % 2 for n, axis in enumerate(axes)})
    plan = ks.plan(domain, keep=[list(margin) for margin in keep], mechanism=L1)
    assert figures(plan) == expected
    known = None not in expected.values()
    assert plan.person_distance == (max(a.any_value.length for a in plan.attributes) if known else None)


def test_squares_of_lengths_are_those_of_people_who_may_arrive_together():
    """(k - 1)^2 + k + 3: k + 1 leave different cells, k - 1 may arrive in one."""
    chain = ks.Invariants.margins(product_domain(a=2, b=2, c=2, d=2), [["a", "b"], ["b", "c"], ["c", "d"]])
    assert [a.any_value.length for a in ks.plan(keep=chain, mechanism=L2).attributes] == [4, 6, 6, 4]
    star = [["a", "b"], ["b", "c"], ["b", "d"], ["e"]]
    plan = ks.plan(product_domain(a=2, b=2, c=2, d=2, e=2), keep=star, mechanism=ks.Gaussian.per_unit(rho=1))
    assert [a.any_value.length for a in plan.attributes] == [4, 10, 4, 4, 4]
    assert plan.person.length == 10


def nearest(keep: ks.Invariants, people: list[int], j: int, squared: bool = False) -> int:
    """The distance d(x, j) of the definition, of the table x of people in these cells."""
    A = np.vstack([keep.coefficients.toarray(), np.ones((1, keep.size), dtype=np.int64)])
    x = np.bincount(people, minlength=keep.size)
    # Tables of the first cells, and what is left of the totals for the others.
    tables = [(np.zeros(0, dtype=np.int64), A @ x)]
    for cell in range(keep.size):
        tables = [
            (np.append(y, n), left - n * A[:, cell])
            for y, left in tables
            for n in range(len(people) + 1)
            if (left >= n * A[:, cell]).all()
        ]
    changes = [y - x for y, left in tables if not left.any() and y[j] >= 1]
    return min(int((z**2 if squared else np.abs(z)).sum()) for z in changes)


def cell(domain: ks.Domain, *codes: int) -> int:
    return int(np.ravel_multi_index(codes, domain.shape))


def test_what_is_exact_is_needed_by_some_table():
    """The example of docs/one-person.md, and one with a person for each of three margins."""
    domain = product_domain(a=2, b=2, c=2, d=2)
    chain = ks.Invariants.margins(domain, [["a", "b"], ["b", "c"], ["c", "d"]])
    people = [cell(domain, *map(int, person)) for person in ("0000", "0110", "1101")]
    assert nearest(chain, people, cell(domain, 0, 1, 0, 0)) == 6
    domain = product_domain(a=2, b=2, c=2, d=2, e=2)
    star = ks.Invariants.margins(domain, [["a", "b"], ["b", "c"], ["b", "d"], ["e"]])
    people = [cell(domain, *map(int, person)) for person in ("00000", "01111", "11011", "11101")]
    new = cell(domain, 0, 1, 0, 0, 0)
    assert (nearest(star, people, new), nearest(star, people, new, squared=True)) == (8, 10)


TABLES = [
    ((2, 2, 2), "8", "√8"),
    ((3, 4, 2), "12", "√12"),
    ((3, 3, 3), "18", "√20"),
    ((3, 3, 4), "20", "√22"),
    ((3, 5, 3), "at most 48", "at most √96"),
    ((2, 2, 3, 2), "16", "4"),
]


@pytest.mark.parametrize(("shape", "l1", "l2"), TABLES)
def test_all_margins_but_the_last_of_a_table(shape, l1, l2):
    domain = product_domain(**{f"axis {n}": length for n, length in enumerate(shape)})
    margins = [[axis for axis in domain.axes if axis != left_out] for left_out in domain.axes]
    keep = ks.Invariants.margins(domain, margins)
    assert set(figures(ks.plan(keep=keep, mechanism=L1)).values()) == {(l1, "weak", "table")}
    assert set(figures(ks.plan(keep=keep, mechanism=L2)).values()) == {(l2, "weak", "table")}


def test_a_table_of_two_layers_needs_all_its_cells():
    """One person in each (a, a, 0) and (a, a + 1, 1): only the table with the layers exchanged has the same totals."""
    domain = product_domain(a=3, b=3, c=2)
    keep = ks.Invariants.margins(domain, [["a", "b"], ["b", "c"], ["a", "c"]])
    people = [cell(domain, a, (a + layer) % 3, layer) for a in range(3) for layer in range(2)]
    assert nearest(keep, people, cell(domain, 0, 0, 1)) == ks.plan(keep=keep, mechanism=L1).person_distance == 12


def test_nothing_is_stated_where_nothing_is_known():
    """All two-way margins of 4 x 4 x 4; the loss per unit of distance is stated all the same."""
    domain = product_domain(a=4, b=4, c=4)
    keep = ks.Invariants.margins(domain, [["a", "b"], ["b", "c"], ["a", "c"]])
    plan = ks.plan(keep=keep, mechanism=L1)
    assert [(found.any_value, found.other_value, found.unknown) for found in plan.attributes] == [(None, None, 64)] * 3
    assert (plan.person, plan.person_distance, plan.guarantee.person_epsilon) == (None, None, None)
    assert plan.guarantee.unit_epsilon == plan._record.stated_loss.epsilon == 1
    assert "no per-person loss is stated" in " ".join(plan.explain(details=True).split())
    with pytest.raises(ks.PlanError, match="The loss for a change of a is not known for these totals"):
        ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1))


# -- nested attributes -------------------------------------------------------------------------------


def test_a_county_in_another_state_brings_its_state():
    """{county, state x sex, age}: within its state a county is in one kept margin, with its state in two."""
    domain = ks.Domain(STATES | {"sex": ["f", "m"], "age": [0, 1, 2]}, within=NESTED)
    plan = ks.plan(domain, keep=[["county"], ["state", "sex"], ["age"]], mechanism=L1)
    state, county, sex, age = plan.attributes
    assert (figure(county.any_value), figure(county.other_value)) == (TWO, EXCHANGE)
    # Of the counties of another state the nearest counts.
    assert figure(state.any_value) == figure(state.other_value) == ("at most 6", "weak", "junction tree")
    assert figure(sex.any_value) == figure(age.any_value) == EXCHANGE
    assert {gaps(found) for found in plan.attributes} == {(0, 0, 0)}


def test_hierarchies_are_one_margin():
    """State and county kept: one maximal margin. Education, in none, moves."""
    domain = ks.Domain(STATES | {"education": ["low", "high"]}, within=NESTED)
    plan = ks.plan(domain, keep=[["state"], ["county"]], mechanism=L1)
    assert figures(plan) == {"state": EXCHANGE, "county": EXCHANGE, "education": MOVE}


def test_a_pinned_county_is_a_fixed_value():
    """A state of one county is determined by its total; in others a county is reached by a move, or by an exchange."""
    counties = {"A": ["x", "y", "z"], "B": ["x", "y"], "C": ["only"]}
    domain = ks.Domain({"state": ["A", "B", "C"], "county": counties}, within=NESTED)
    plan = ks.plan(domain, keep=[["state"]], mechanism=L1)
    state, county = plan.attributes
    # People differ in nothing else: whoever is in the other state moves to the county themselves.
    bound = ("at most 4", "strong", "exchange")
    assert (figure(state.any_value), figure(state.other_value), gaps(state)) == (bound, bound, (1, 0, 0))
    assert (figure(county.any_value), figure(county.other_value), gaps(county)) == (bound, MOVE, (1, 0, 0))
    with pytest.raises(ks.PlanError, match="determine every cell"):
        ks.plan(domain, keep=[["county"]], mechanism=L1)


def test_where_one_state_is_left_nobody_can_change_state():
    domain = ks.Domain(
        {"state": ["A", "B"], "county": {"A": ["x", "y"], "B": ["only"]}, "sex": ["f", "m"]}, within=NESTED
    )
    keep = ks.Invariants.margins(domain, [["county"], ["state", "sex"]])
    state, county, sex = ks.plan(keep=keep, mechanism=L1).attributes
    assert (state.any_value, state.other_value, gaps(state)) == (None, None, (1, 0, 4))
    assert (county.any_value.length, gaps(county)) == (6, (1, 0, 0))
    assert (figure(sex.any_value), gaps(sex)) == (EXCHANGE, (0, 0, 0))
    with pytest.raises(ks.PlanError, match="No change of state keeps every total"):
        ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1, attributes=["state"]))


# -- structural zeros --------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [L1, L2])
def test_a_change_to_a_structural_zero_is_not_protected(mechanism):
    """In the column of the hole two cells have one value fewer to change to, and so have those of its row."""
    domain = product_domain(a=3, b=3).without({"a": 0, "b": 0})
    plan = ks.plan(domain, keep=[["a"], ["b"]], mechanism=mechanism)
    for found in plan.attributes:
        assert (found.any_value, found.any_value.rule) == (Distance(mechanism.norm, 6, exact=False), "cycles")
        assert gaps(found) == (0, 2, 0)
        assert "not protected" in person_statements(plan._record).headline()
    keep = ks.Invariants.margins(domain, [["a"]])
    a, b = ks.plan(keep=keep, mechanism=mechanism).attributes
    assert (a.any_value.length, gaps(a), gaps(b)) == (4, (0, 2, 0), (0, 2, 0))


def test_a_table_that_is_one_cycle_changes_as_a_whole():
    domain = product_domain(a=4, b=4)
    domain = domain.without(*({"a": a, "b": b} for a, b in product(range(4), repeat=2) if (b - a) % 4 > 1))
    keep = ks.Invariants.margins(domain, [["a"], ["b"]])
    plan = ks.plan(keep=keep, mechanism=L1)
    assert set(figures(plan).values()) == {("at most 8", "weak", "cycles")}
    assert [gaps(found) for found in plan.attributes] == [(0, 8, 0)] * 2
    same = [n for n in range(8) if domain.codes("a")[n] == domain.codes("b")[n]]
    assert nearest(keep, same, next(n for n in range(8) if n not in same)) == 8


# -- other totals ------------------------------------------------------------------------------------


def test_weighted_totals_of_a_fixed_number_of_people():
    """(2, -1, 0) keeps the total, with a person more; (1, -2, 1) keeps both."""
    keep = ks.Invariants.matrix([[1, 2, 3]]).over(product_domain(a=3))
    plan = ks.plan(keep=keep, mechanism=L1)
    assert plan.smallest_change == Distance("l1", 3)
    (found,) = plan.attributes
    assert figure(found.any_value) == figure(found.other_value) == ("at most 4", "weak", "graver")
    assert ks.plan(keep=keep, mechanism=L2).person.length == 6
    assert nearest(keep, [0, 2], 1) == 4


def test_subsets_of_named_cells():
    """Three of five cells kept as a sum. So are the others, as the number of people is fixed: 2 to leave, 2 to come."""
    keep = ks.Invariants.subsets(5, [[0, 1, 2]]).over(product_domain(a=5))
    plan = ks.plan(keep=keep, mechanism=L1)
    (found,) = plan.attributes
    assert (figure(found.any_value), figure(found.other_value)) == (("at most 4", "weak", "sums"), MOVE)
    assert gaps(found) == (0, 0, 0)
    assert plan.smallest_change == Distance("l1", 2)


SIBLINGS = ks.Domain(
    {"state": ["A"], "county": {"A": ["a", "b"]}, "district": {"A": ["1", "2"]}},
    within={"county": "state", "district": "state"},
)


def test_a_change_of_one_of_two_axes_in_a_third_leaves_the_other_as_it_is():
    # From a1 to b1 the subsets change, whatever is in b2. Of people in a1 and a2 who keep their districts the one goes
    # to b1 and the other to b2.
    keep = ks.Invariants.subsets(4, [[0, 3], [1, 2]]).over(SIBLINGS)
    for mechanism in (ks.Laplace.per_unit(epsilon=1), ks.Gaussian.per_unit(rho=1)):
        for found in ks.plan(keep=keep, mechanism=mechanism).attributes:
            distance = found.other_value
            assert (distance.length, distance.exact, distance.reading) == (4, False, "weak")
            assert (found.unprotected, found.stuck) == (0, 0)


def test_a_change_that_needs_another_axis_of_a_third_is_not_protected():
    zeros = SIBLINGS.without({"county": "a", "district": "2"}, {"county": "b", "district": "1"})
    plan = ks.plan(zeros, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1))
    assert [(found.any_value, found.unprotected, found.stuck) for found in plan.attributes] == [(None, 2, 2)] * 2


def test_a_subset_of_one_cell_is_fixed():
    keep = ks.Invariants.subsets(5, [[0], [1, 2]]).over(product_domain(a=5))
    (found,) = ks.plan(keep=keep, mechanism=L1).attributes
    assert (figure(found.any_value), gaps(found)) == (("at most 4", "weak", "sums"), (1, 0, 0))


def test_counts_that_are_kept_equal_are_fixed_with_the_number_of_people():
    plan = ks.plan(keep=ks.Invariants.matrix([[1, -1]]).over(product_domain(a=2)), mechanism=L1)
    (found,) = plan.attributes
    assert (found.any_value, found.other_value, gaps(found)) == (None, None, (2, 0, 0))
    assert (plan.person, plan.smallest_change) == (None, Distance("l1", 2))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_groups_have_the_distances_of_their_cells(norm):
    domain = ks.Domain(STATES | {"sex": ["f", "m"], "age": [0, 1, 2]}, within=NESTED)
    noise = ks.Laplace.per_unit(epsilon=1, norm=norm)
    kept: list[list[list[str]]] = [
        [],
        [["state"]],
        [["county"], ["state", "sex"]],
        [["county"], ["sex"]],
        [["state", "sex"], ["sex", "age"], ["state", "age"]],
        [["county", "sex"], ["sex", "age"], ["county", "age"]],
    ]
    for keep in kept:
        margins = ks.Invariants.margins(domain, keep)
        grouped = compile_plan(margins, noise, in_groups=True).attributes
        plain = compile_plan(margins, noise).attributes
        assert grouped == plain
        assert [figure(a.any_value) for a in grouped] == [figure(a.any_value) for a in plain]


def test_margins_are_seen_where_only_margins_are_kept():
    domain = product_domain(a=3, b=3, one=1)
    both = ks.Invariants.margins(domain, [["a"], ["a", "one"], ["one"], []])
    assert KeptMargins.of(both).margins == (frozenset("a"),)
    assert KeptMargins.of(both + ks.Invariants.subsets(9, [[0, 1]])) is None
    assert KeptMargins.of(ks.Invariants.subsets(9, [[0, 1]])) is None


# -- the definition ----------------------------------------------------------------------------------

PLACES = ks.Domain({"state": ["A", "B"], "county": {"A": ["x", "y"], "B": ["x", "y"]}, "sex": ["f", "m"]}, NESTED)
BESIDE = ks.Domain(
    {"state": ["A", "B"], "county": {"A": ["x", "y"], "B": ["x", "y"]}, "district": {"A": [1, 2], "B": [3]}},
    within={"county": "state", "district": "state"},
)
COST = {"l1": brute_force.l1, "l2": brute_force.squared}


def against_the_definition(keep: ks.Invariants, norm: str, people: int) -> tuple[int, int]:
    """How many figures are exact, and how many of them were found to be: the others are at least the truth."""
    plan = ks.plan(keep=keep, mechanism=ks.Laplace.per_unit(epsilon=1, norm=norm))
    exact = compared = 0
    for found in plan.attributes:
        exact += sum(d is not None and d.exact for d in (found.any_value, found.other_value))
        compared += brute_force.check(keep, found, people, COST[norm], lambda distance: distance.length)
    return exact, compared


CLOSED = [
    (product_domain(a=2, b=2, c=2), [], 2),
    (product_domain(a=2, b=2, c=2), [["a"]], 3),
    (product_domain(a=2, b=3), [["a"], ["b"]], 3),
    (product_domain(a=2, b=2, c=2), [["a"], ["b"], ["c"]], 3),
    (product_domain(a=2, b=2, c=2), [["a", "b"], ["c"]], 3),
    (product_domain(a=2, b=2, c=2), [["a", "b"], ["b", "c"]], 4),
    (product_domain(a=2, b=2, c=2), [["a", "b"], ["b", "c"], ["a", "c"]], 5),
    (product_domain(a=2, b=2, c=2, d=2), [["a", "b"], ["b", "c"], ["c", "d"]], 4),
    (PLACES, [["county"], ["state", "sex"]], 4),
    (PLACES, [["state"]], 3),
    (PLACES, [["state"], ["sex"]], 3),
    (BESIDE, [["county"], ["district"]], 4),
    (BESIDE, [["county"]], 3),
    (BESIDE, [["state"]], 3),
]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(("domain", "keep", "people"), CLOSED)
def test_closed_forms_are_those_of_the_definition(domain, keep, people, norm):
    exact, compared = against_the_definition(ks.Invariants.margins(domain, keep), norm, people)
    assert compared == exact


@mostly_audit("seed", range(40))
def test_the_definition_on_margins_with_structural_zeros(seed):
    rng = np.random.default_rng(seed)
    domain = [product_domain(a=2, b=2, c=2), product_domain(a=3, b=3), PLACES, BESIDE][seed % 4]
    labels = {axis: [domain.axis(axis).labels[code] for code in domain.codes(axis)] for axis in domain.axes}
    cells = [{axis: labels[axis][n] for axis in domain.axes} for n in range(domain.size)]
    domain = domain.without(*(named for named in cells if rng.random() < 0.2))
    margins = [["a"], ["b"], ["c"], ["a", "b"], ["b", "c"], ["county"], ["sex"], ["state"], ["state", "sex"]]
    margins = [margin for margin in [*margins, ["district"], ["a", "c"]] if set(margin) <= set(domain.axes)]
    chosen = rng.choice(len(margins), size=rng.integers(1, 4), replace=False)
    keep = ks.Invariants.margins(domain, [margins[n] for n in chosen])
    if not brute_force.is_pinned(keep.coefficients.toarray()).all():
        against_the_definition(keep, ("l1", "l2")[seed // 4 % 2], 4)


@mostly_audit("seed", range(40))
def test_the_definition_on_small_random_systems(seed):
    """Random totals of cells, and of weights, over cells with random names; some cells in no total."""
    rng = np.random.default_rng(seed)
    domain = [product_domain(a=2, b=3), product_domain(a=6), product_domain(a=2, b=2), PLACES][seed % 4]
    A = rng.integers(0, 3 if seed % 5 == 4 else 2, size=(rng.integers(1, 4), domain.size))
    if seed % 3 == 0:
        A[:, rng.integers(domain.size)] = 0
    keep = ks.Invariants.matrix(A).over(domain)
    if not brute_force.is_pinned(A).all():
        against_the_definition(keep, ("l1", "l2")[seed // 4 % 2], 4)


@pytest.mark.parametrize(("wrong", "people"), [(3, 2), (5, 3)])
def test_the_comparison_can_fail(wrong, people):
    """A figure that is too small, or that is said to be exact and is too large."""
    keep = ks.Invariants.margins(product_domain(a=2, b=2), [["a"], ["b"]])
    (found, _) = ks.plan(keep=keep, mechanism=L1).attributes
    with pytest.raises(AssertionError):
        brute_force.check(keep, found, 3, brute_force.l1, lambda _: wrong)
    assert brute_force.check(keep, found, people, brute_force.l1, lambda distance: distance.length) == 2 * (people > 2)


# -- requests ----------------------------------------------------------------------------------------


def test_the_headline_names_what_is_not_protected():
    keep = ks.Invariants.subsets(6, [[3], [4], [5], [0, 1, 2]]).over(product_domain(a=2, b=3))
    plan = ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1))
    assert "except where a is not protected" in person_statements(plan._record).headline()
    with pytest.raises(ks.PlanError, match="No change of a keeps every total"):
        ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1, attributes=["a", "b"]))


def test_per_person_divides_by_the_largest_distance():
    """Margins a and b of a 2 x 2 x 2 table kept, c free: whoever changes a or b needs distance 4, not 2."""
    keep = ks.Invariants.margins(product_domain(a=2, b=2, c=2), [["a"], ["b"]])
    assert ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1)).mechanism == ks.Laplace.per_unit(epsilon="1/4").resolve()
    only_c = ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1, attributes=["c"]))
    assert only_c.mechanism == ks.Laplace.per_unit(epsilon="1/2").resolve()
    text = " ".join(only_c.explain(details=True).split())
    assert "For the requested neighbours, a change of c to any value" in text
    assert "epsilon 1 (l1 distance 2: one person changes cells)" in text
    assert "per-person epsilon 2 (l1 distance 4: two people exchange values)" in text
    gaussian = ks.plan(keep=keep, mechanism=ks.Gaussian(rho=1))
    assert gaussian.mechanism == ks.Gaussian.per_unit(rho="1/4").resolve()


def test_to_some_other_value_promises_less():
    keep = ks.Invariants.margins(ks.Domain(STATES, within=NESTED), [["state"]])
    near = ks.Laplace(epsilon=1, attributes=["county"], to="some other value")
    assert ks.plan(keep=keep, mechanism=near).mechanism == ks.Laplace.per_unit(epsilon="1/2").resolve()
    assert ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1)).mechanism == ks.Laplace.per_unit(epsilon="1/4").resolve()


def test_promises_that_cannot_be_made():
    keep = ks.Invariants.margins(product_domain(a=2, b=2), [["a"]])
    with pytest.raises(ks.InputError, match="got 'colour'"):
        ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1, attributes=["colour"]))
    equal = ks.Invariants.matrix([[1, -1]]).over(product_domain(a=2))
    with pytest.raises(ks.PlanError, match="No change of a keeps every total"):
        ks.plan(keep=equal, mechanism=ks.Laplace(epsilon=1, attributes=["a"]))
    for nobody in (equal, ks.Invariants.subsets(4, [[0, 1]]), ks.Invariants.matrix([[1, 2, 3]])):
        with pytest.raises(ks.PlanError, match=r"^A loss for one person needs named attributes [^.]*\. \w+ "):
            ks.plan(keep=nobody, mechanism=ks.Laplace(epsilon=1))
    table = ks.Table.from_array([1, 2, 3, 4], axes={"a": list("wxyz")})
    named = ks.release(table, keep=ks.Invariants.subsets(4, [[0, 1]]), mechanism=ks.Laplace(epsilon=1))
    assert named.plan.mechanism == ks.Laplace.per_unit(epsilon="1/4").resolve()


def test_a_certificate_states_every_attribute_and_the_promise(children, tmp_path):
    mechanism = ks.Laplace(epsilon=1, attributes=["education"])
    out = ks.release(children, keep=["county"], mechanism=mechanism)
    person = out.certificate.guarantee.person
    assert [(a.axis, a.any_value.length, a.other_value.length) for a in person.attributes] == [
        ("county", 4, 4),
        ("education", 2, 2),
    ]
    assert (person.distance.length, person.epsilon) == (4, "2")
    assert (person.asked.attributes, person.asked.to) == (["education"], "any value")
    view = out.certificate._repr_html_()
    assert "per-person epsilon 2 (l1 distance 4: two people exchange values), for a change of any one attribute" in view
    assert "For the requested neighbours, a change of education to any value: epsilon 1 (" in view
    out.save(tmp_path / "out.csv")
    assert ks.verify(tmp_path / "out.csv")
    assert out.certificate.plan()._record.neighbours == out.plan._record.neighbours


def test_some_other_value_is_one_that_the_totals_may_rule_out():
    """For one of three people the only other county that the totals allow is at 6, some other value at 4."""
    domain = ks.Domain(
        {
            "state": ["A", "B"], "county": {"A": ["x", "y"], "B": ["z", "w"]},
            "sex": ["f", "m"], "age": ["o", "y"], "born": ["e0", "e1"],
        },
        within={"county": "state"},
    )  # fmt: skip
    keep = ks.Invariants.margins(domain, [["county", "age"], ["state", "sex"], ["born"]])

    def at(*labels: str) -> int:
        return domain.index(dict(zip(domain.axes, labels, strict=True)))

    first = "f", "o", "e0"
    people = [at("A", "x", *first), at("B", "z", "m", "o", "e1"), at("B", "w", "f", "y", "e1")]
    assert nearest(keep, people, at("B", "z", *first)) == 6
    for other in (("A", "y"), ("B", "w")):
        with pytest.raises(ValueError, match="empty"):  # no real table
            nearest(keep, people, at(*other, *first))
    plan = ks.plan(keep=keep, mechanism=ks.Laplace(epsilon=1, attributes=["county"], to="some other value"))
    (county,) = [attribute for attribute in plan.attributes if attribute.axis == "county"]
    assert (county.any_value.length, county.other_value.length) == (6, 4)
    said = " ".join(plan.explain().split())
    assert "county: to any value epsilon 1.5" in said
    assert "; to some other value, where the kept totals allow that one, epsilon 1 (l1 distance 4" in said
    assert "a change of county to some other value, where the kept totals allow that one: epsilon 1" in said

"""Bundles: which sums split into which, in which order, and what a rejected one begins again from; by brute force."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from keepsum.lattice.families import collapses_of
from keepsum.lattice.lattice import Lattice
from keepsum.sampling.l1.splitting.bundles import ELSEWHERE, NONE, NOTHING, SplitTable, bundled, in_runs
from keepsum.sampling.l1.splitting.slices import MarginWeights, two_way
from sampling.l1.decomposable import table_of, totals_of

ONE_WAY, CHAIN = ("A", "B", "C"), ("AB", "BC", "CD")
HOLES = tuple(range(0, 36, 5))
TABLES = {
    "2 x 2": ((2, 2), ("A", "B")),
    "5 x 4": ((5, 4), ("A", "B")),
    "one-way": ((4, 3, 2), ONE_WAY),
    "one-way, wide": ((5, 4, 3), ONE_WAY),
    "four axes": ((3, 3, 2, 2), ("A", "B", "C", "D")),
    "a pair and an axis": ((3, 3, 4), ("AB", "C")),
    "a common axis": ((3, 4, 3), ("AB", "BC")),
    "chain": ((3, 3, 3, 3), CHAIN),
    "short chain": ((3, 3, 2, 2), CHAIN),
    "star": ((2, 3, 2, 3), ("AB", "AC", "AD")),
    "apart": ((3, 3, 2, 2), ("AB", "AC", "D")),
    "chain with zeros": ((3, 3, 3, 2), CHAIN, (0, 4, 12, 30)),
    "one-way with zeros": ((4, 3, 3), ONE_WAY, HOLES),
    "common axis with a forced cell": ((2, 2, 3), ("AB", "BC"), (0, 3, 6, 10)),
    "in runs": ((9, 8), ("A", "B")),
    "uneven, in runs": ((7, 7), ("A", "B")),
    "one-way, in runs": ((7, 6, 2), ONE_WAY),
}


def table_named(name):
    """The table, its columns in runs if its name says so."""
    table = table_of(*TABLES[name])
    return in_runs(table) if "in runs" in name else table


@pytest.fixture(params=TABLES)
def made(request):
    """The totals, the table and its bundles."""
    matrix, table = totals_of(*TABLES[request.param]), table_named(request.param)
    return matrix, table, bundled(table)


def places_of(bundles, number):
    return slice(*bundles.start[number : number + 2].tolist())


def expansion(bundles):
    """For each place the entries that its sum is the sum of, as the multiset of them; by going down."""
    entries = [Counter() for _ in range(bundles.places)]
    for entry, place in enumerate(bundles.entry_at.tolist()):
        if place != NOTHING:
            entries[place][entry] += 1
    for number in reversed(range(bundles.count)):
        here = places_of(bundles, number)
        for at, left, right in zip(bundles.at[here], bundles.left[here], bundles.right[here], strict=True):
            whole = (entries[left] if left != ELSEWHERE else Counter()) + (
                entries[right] if right != ELSEWHERE else Counter()
            )
            if at != NOTHING:
                entries[at] = whole
    return entries


def test_every_sum_is_written_once_before_it_is_read(made):
    """And every entry has its sum at the end; where there is none, its place is read by nobody."""
    _, table, bundles = made
    written = {NOTHING}
    for number in range(bundles.count):
        here = places_of(bundles, number)
        assert set(bundles.at[here].tolist()) <= written
        new = [k for k in (*bundles.left[here].tolist(), *bundles.right[here].tolist()) if k != ELSEWHERE]
        assert len(set(new)) == len(new)
        assert not set(new) & written
        written |= set(new)
        assert bundles.start[number] < bundles.start[number + 1]
    assert set(bundles.entry_at.tolist()) <= written
    assert written == set(range(bundles.places)) - {ELSEWHERE}
    read = Counter(bundles.at.tolist()) + Counter(bundles.entry_at.tolist())
    assert all(times == 1 for place, times in read.items() if place != NOTHING)
    assert ELSEWHERE not in read
    assert len(table.loads) == len(bundles.entry_at)


def test_places_are_0_where_the_totals_force_them(made):
    """An entry is at the place of nothing if and only if it is 0 in every table."""
    matrix, _, bundles = made
    basis = Lattice(sparse.csr_array(matrix)).basis
    assert ((bundles.entry_at == NOTHING) == ~np.asarray(basis).any(axis=1)).all()


def test_all_constraints_are_those_of_the_totals(made):
    """The parts of each bundle that add up to 0, and its sums where they are 0, span the totals and nothing else.

    So tables that are drawn are those whose totals are 0: same rank alone, and together.
    """
    matrix, _, bundles = made
    entries, width = expansion(bundles), matrix.shape[1]
    rows = [np.eye(width, dtype=np.int64)[entry] for entry in np.flatnonzero(bundles.entry_at == NOTHING)]

    def indicator(counters):
        row = np.zeros(width, dtype=np.int64)
        for counter in counters:
            for entry, times in counter.items():
                row[entry] += times
        return row

    for number in range(bundles.count):
        here = places_of(bundles, number)
        sides = [[entries[k] for k in side[here].tolist() if k != ELSEWHERE] for side in (bundles.left, bundles.right)]
        rows.append(indicator(sides[0]))
        for at, left, right in zip(bundles.at[here], bundles.left[here], bundles.right[here], strict=True):
            if at == NOTHING:
                rows.append(indicator([entries[k] for k in (left, right) if k != ELSEWHERE]))
    constraints = np.array(rows)
    assert set(np.unique(constraints)) <= {0, 1}
    rank = np.linalg.matrix_rank
    assert rank(constraints) == rank(matrix) == rank(np.concatenate([constraints, matrix]))


def test_a_bundle_begins_again_with_all_that_it_is_connected_to(made):
    """The bundles up to it that it is connected to, by places they split or make, are those from ``restart`` on."""
    _, _, bundles = made
    touched = []
    for number in range(bundles.count):
        here = places_of(bundles, number)
        touched.append({*bundles.at[here], *bundles.left[here], *bundles.right[here]} - {NOTHING, ELSEWHERE})
    for number in range(bundles.count):
        connected, places = {number}, set(touched[number])
        grew = True
        while grew:
            more = {k for k in range(number) if k not in connected and touched[k] & places}
            grew, connected = bool(more), connected | more
            places |= set().union(*(touched[k] for k in more))
        assert connected == set(range(bundles.restart[number], number + 1))


def test_right_children_are_split_by_the_bundle_below(made):
    """All of them and nothing else, so that its base may say in which group they are."""
    _, _, bundles = made
    ends = set(bundles.entry_at.tolist())
    makers = Counter()
    for number, below in enumerate(bundles.below.tolist()):
        right = {k for k in bundles.right[places_of(bundles, number)].tolist() if k != ELSEWHERE}
        left = {k for k in bundles.left[places_of(bundles, number)].tolist() if k != ELSEWHERE}
        form = bundles.forms[bundles.form[number]]
        if below == NONE:
            assert form.below == NONE
            continue
        assert below > number
        assert set(bundles.at[places_of(bundles, below)].tolist()) == right
        assert form.below == bundles.form[below]
        assert not bundles.forms[form.below].is_grafted
        assert not left & right
        makers[below] += 1
    assert all(times == 1 for times in makers.values())
    for number, k in enumerate(bundles.form.tolist()):
        form, at = bundles.forms[k], set(bundles.at[places_of(bundles, number)].tolist())
        assert form.is_root == (at == {NOTHING})
        assert form.is_grafted == (not form.is_root and number not in makers)
        assert not at & ends - {NOTHING}


def test_tags_are_handed_to_all_entries_of_a_tree(made):
    """A bundle that is handed a tag has as its places all left children of one tree, and the last right ones: no other.

    All of that tree's forms name it, so that all of its bases join weights of one tag.
    """
    _, _, bundles = made
    tagged = [(number, k) for number, k in enumerate(bundles.tagged.tolist()) if k != NONE]
    assert sorted(k for _, k in tagged) == [k for k in range(bundles.count) if bundles.forms[bundles.form[k]].has_tags]
    for number, entries in tagged:
        found = set()
        while number != NONE:
            here = places_of(bundles, number)
            assert entries > number
            assert bundles.forms[bundles.form[number]].entries == bundles.form[entries]
            found |= set(bundles.left[here].tolist())
            last, number = set(bundles.right[here].tolist()), int(bundles.below[number])
        assert found | last == set(bundles.at[places_of(bundles, entries)].tolist()) | ({ELSEWHERE} & (found | last))
        assert NOTHING not in bundles.at[places_of(bundles, entries)]
    names = {form.entries for form in bundles.forms} - {NONE}
    assert names == {bundles.form[entries] for _, entries in tagged}


@pytest.mark.parametrize("name", TABLES)
def test_where_tags_may_be(name):
    """Where each family but the last is summed out over all rows at once; elsewhere one tag would meet others."""
    forms = bundled(table_named(name)).forms
    expected = {"one-way": 1, "one-way, wide": 1, "four axes": 2, "one-way with zeros": 1}
    assert sum(form.has_tags for form in forms) == expected.get(name, 0)
    assert all(form.is_grafted for form in forms if form.has_tags)


@pytest.mark.parametrize("name", [name for name in TABLES if "in runs" in name])
def test_runs_have_fewer_forms(name):
    plain, table = table_of(*TABLES[name]), table_named(name)
    assert len(table.collapses) == len(plain.collapses) + 1
    assert len(bundled(table).forms) < len(bundled(plain).forms)
    assert np.array_equal(table.loads, plain.loads)


@pytest.mark.parametrize("name", [name for name in TABLES if "in runs" not in name])
def test_tables_of_few_columns_and_of_structural_zeros_have_no_runs(name):
    table = table_of(*TABLES[name])
    assert in_runs(table) is table


def test_tables_with_added_entries_have_no_runs():
    table = two_way(np.ones((8, 8), dtype=np.int64), MarginWeights((Fraction(1),) * 8, (Fraction(1),) * 8))
    assert in_runs(table) is table


def test_forms_say_what_is_below(made):
    """The load of each law is that of the entries below, its children's laws have theirs, and counts count places."""
    _, table, bundles = made
    entries = expansion(bundles)
    loads = [*bundles.entry_laws, *(load for form in bundles.forms for load in form.loads)]
    law_at = {}
    for entry, place in enumerate(bundles.entry_at.tolist()):
        if place != NOTHING:
            law_at[place] = bundles.entry_laws.index(tuple(table.loads[entry].tolist()))
    for number in reversed(range(bundles.count)):
        here, form = places_of(bundles, number), bundles.forms[bundles.form[number]]
        assert np.bincount(bundles.law[here], minlength=len(form.parts)).tolist() == list(form.counts)
        nothing = bundles.entry_laws.index((0,) * table.loads.shape[1])
        places = zip(bundles.at[here], bundles.left[here], bundles.right[here], bundles.law[here], strict=True)
        for at, left, right, law in places:
            parts = tuple(nothing if k == ELSEWHERE else law_at[k] for k in (left, right))
            assert form.parts[law] == parts == bundles.children(form.first + law)
            below = sum((entries[k] for k in (left, right) if k != ELSEWHERE), Counter())
            assert set(below.values()) == {1}
            assert form.loads[law] == tuple(table.loads[list(below)].sum(axis=0).tolist())
            assert tuple(np.add(loads[parts[0]], loads[parts[1]]).tolist()) == form.loads[law]
            if at != NOTHING:
                law_at[at] = form.first + law


def test_rests_are_what_else_is_drawn_from_the_same_forced_row(made):
    """A place is below one row whose sum is 0; the rest is all else below it, of one place of each law."""
    _, table, bundles = made
    entries, top, rests = expansion(bundles), {}, {}
    for number in range(bundles.count):
        here, form = places_of(bundles, number), bundles.forms[bundles.form[number]]
        places = zip(bundles.at[here], bundles.left[here], bundles.right[here], bundles.law[here], strict=True)
        for at, left, right, law in places:
            own = sum((entries[k] for k in (left, right) if k != ELSEWHERE), Counter())
            whole = own if at == NOTHING else top[at]
            top |= {k: whole for k in (left, right) if k != ELSEWHERE}
            rest = tuple(table.loads[sorted(whole - own)].sum(axis=0).tolist())
            rests.setdefault(form.first + law, set()).add(rest)
    for form in bundles.forms:
        assert all(rest in rests[law] for law, rest in enumerate(form.rests, form.first))
    if ELSEWHERE not in {*bundles.left.tolist(), *bundles.right.tolist()}:  # without structural zeros all are alike
        assert all(len(several) == 1 for several in rests.values())


def test_components_share_nothing():
    """A common axis leaves one table for each of its categories: as many runs, all alike."""
    bundles = bundled(table_of((3, 4, 3), ("AB", "BC")))
    runs = sorted(set(bundles.restart.tolist()))
    assert len(runs) == 4
    assert np.diff([*runs, bundles.count]).tolist() == [2] * 4
    assert len(bundles.forms) == 2


def test_an_entry_without_a_weight_is_taken_off_first():
    """In the added row of a table whose grand total is free."""
    weights = (Fraction(1),) * 3
    bundles = bundled(two_way(np.ones((3, 3), dtype=np.int64), MarginWeights(weights, weights)))
    (root,) = (form for form in bundles.forms if form.is_root)
    free = bundles.further.index(0) + 1
    loads = [bundles.entry_laws[left] for left, _ in root.parts]
    assert sum(load[free] for load in loads) == 1
    assert all(load[free] == 0 for form in bundles.forms if not form.is_root for load in form.loads)


def test_entries_of_different_sizes_have_different_laws():
    matrix = totals_of((3, 2, 2), ONE_WAY)
    sizes = np.arange(12) % 3 + 1
    bundles = bundled(SplitTable(sizes[:, None], collapses_of(sparse.csr_array(matrix))))
    assert bundles.entry_laws == ((0,), (1,), (2,), (3,))

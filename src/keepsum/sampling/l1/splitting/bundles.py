"""Which sums are drawn together: the trees of all collapses, grafted onto each other, and their runs of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from keepsum._arrays import IntArray
from keepsum.lattice.families import Collapse

# Which sums are drawn together: the trees of all collapses, grafted onto each other, and their bundles.
#
# A table whose totals collapse family by family (``lattice/families.py``) is drawn backwards. Take one collapse: the
# rows x of a component and its columns p, classes of the family that was summed out. A tree takes off one column at a
# time: its node k stands for the columns from the k-th on, its left child is the k-th column alone and its right
# child is node k + 1. Given the sums y of the rows at a node, the sums u of the left children add up to 0 over all
# rows: these (node, row) places share one *bridge*, and are a *bundle*. The leaves of a row are entries of the table
# before, where they are the roots of rows in turn.
#
# Bundles that share no sum above them are independent of each other. A bundle that is rejected is drawn again
# together with all that is connected to it so far, and nothing else: ``restart`` says from where on. Bundles are in
# an order in which these form a run that ends with the rejected one, and every sum comes after the one that it is a
# part of.
#
# Bundles whose places split alike have one *form*, and share all tables. A form names the *laws* of its places, by
# those of both children; laws are numbered through, first those of entries, then form by form, children before
# parents.


Load: TypeAlias = tuple[int, ...]  # the number of cells, and that of added entries of each further weight
NOTHING, ELSEWHERE = 0, 1  # the place of sums that are 0, and one that is written to where a row has no entry
NONE = -1


@dataclass(frozen=True, eq=False)
class SplitTable:
    """What is drawn: entries, and how their totals collapse.

    Attributes
    ----------
    loads
        Entries x weights: how many cells each entry has, and how many added entries of each further weight.
    collapses
        The families, the one that is summed out first coming first; then all entries are 0.
    further
        The weights of added entries, beside that of cells.
    """

    loads: IntArray
    collapses: tuple[Collapse, ...]
    further: tuple[Fraction, ...] = ()


@dataclass(frozen=True)
class BundleForm:
    """What bundles have in common.

    Attributes
    ----------
    parts
        For each law of the form the laws of its left and right children.
    counts
        How many places have each law.
    loads, rests
        What is below a place of each law, and in the rest of its row.
    first
        The number of the first law; the others follow.
    below
        The form of the bundle of all right children; ``NONE`` where these are entries.
    entries
        The form of the bundle of all entries, if its groups are *tags*; else ``NONE``.
    is_root
        Whether all sums are 0, so that there is nothing to accept.
    is_grafted
        Whether the places are entries of a further table.
    has_tags
        Whether its groups are tags: the places are all entries of a further table, in one bundle, so that a group can
        be handed on to all of them. Where they are grafted without tags there is one group.
    """

    parts: tuple[tuple[int, int], ...]
    counts: tuple[int, ...]
    loads: tuple[Load, ...]
    rests: tuple[Load, ...]
    first: int
    below: int
    entries: int
    is_root: bool
    is_grafted: bool
    has_tags: bool


@dataclass(frozen=True, eq=False)
class Bundles:
    """All bundles of a table, in the order in which they are drawn.

    Attributes
    ----------
    forms
        The forms, children before parents.
    entry_laws
        The loads that entries have: their laws.
    form
        The form of each bundle.
    start
        Where the places of each bundle start, with the end of the last one.
    at, left, right, law
        For each place of each bundle: where its sum is, where those of its children go, and its law, counted from the
        first one of the form.
    below
        The bundle of all right children, ``NONE`` where these are entries.
    tagged
        The bundle of all entries, where this one is the first that splits their sums and hands a tag on; else ``NONE``.
    restart
        The bundle to begin again from, if one is rejected.
    entry_at
        Where the sum of each entry is.
    places
        How many sums there are.
    further
        The weights of added entries, beside that of cells.
    """

    forms: tuple[BundleForm, ...]
    entry_laws: tuple[Load, ...]
    form: IntArray
    start: IntArray
    at: IntArray
    left: IntArray
    right: IntArray
    law: IntArray
    below: IntArray
    tagged: IntArray
    restart: IntArray
    entry_at: IntArray
    places: int
    further: tuple[Fraction, ...]

    @property
    def count(self) -> int:
        """The number of bundles."""
        return len(self.form)

    @cached_property
    def form_of_law(self) -> list[int]:
        """The form of each law; ``NONE`` for those of entries."""
        return [NONE] * len(self.entry_laws) + [k for k, form in enumerate(self.forms) for _ in form.parts]

    def children(self, law: int) -> tuple[int, int]:
        """The laws of both children of a place."""
        form = self.forms[self.form_of_law[law]]
        return form.parts[law - form.first]


@dataclass(frozen=True, eq=False)
class _Part:
    """A component of a collapse: its rows, its entries (rows x columns, ``NONE`` where there is none), its forms."""

    rows: IntArray
    entries: IntArray
    laws: list[IntArray]
    forms: list[int]


@dataclass(frozen=True, eq=False)
class _Draft:
    """A bundle before it has a number in the final order."""

    form: int
    at: IntArray
    left: IntArray
    right: IntArray
    law: IntArray
    below: int
    tagged: int


@dataclass(frozen=True)
class _Kind:
    """What a form is, apart from its laws: see there."""

    below: int
    entries: int
    is_root: bool
    is_grafted: bool
    has_tags: bool


class _Forms:
    """Laws and forms as they are found."""

    def __init__(self, table: SplitTable) -> None:
        loads = np.concatenate([np.zeros((1, table.loads.shape[1]), dtype=np.int64), table.loads])
        distinct, numbers = np.unique(loads, axis=0, return_inverse=True)
        self.loads = distinct  # of all laws
        self.nothing, self.of_entry = int(numbers.reshape(-1)[0]), numbers.reshape(-1)[1:]
        self.entry_laws = tuple(map(tuple, distinct.tolist()))
        self.forms: list[BundleForm] = []
        self._known: dict[tuple[object, ...], int] = {}

    def find(self, left: IntArray, right: IntArray, wholes: IntArray, kind: _Kind) -> tuple[int, IntArray]:
        """The form of a bundle, and the law of each of its places; ``wholes`` has the loads of their rows."""
        _, first, inverse, counts = np.unique(
            left * len(self.loads) + right, return_index=True, return_inverse=True, return_counts=True
        )
        parts = np.stack([left[first], right[first]], axis=1)
        key = (parts.tobytes(), counts.tobytes(), kind)
        if key not in self._known:
            loads = self.loads[parts[:, 0]] + self.loads[parts[:, 1]]
            form = BundleForm(
                tuple(map(tuple, parts.tolist())),
                tuple(counts.tolist()),
                tuple(map(tuple, loads.tolist())),
                tuple(map(tuple, (wholes[first] - loads).tolist())),
                len(self.loads),
                **vars(kind),
            )
            self._known[key] = len(self.forms)
            self.forms.append(form)
            self.loads = np.concatenate([self.loads, loads])
        number = self._known[key]
        return number, self.forms[number].first + inverse.reshape(-1)


def bundled(table: SplitTable) -> Bundles:
    """The bundles of a table.

    >>> one = Collapse(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 0]))
    >>> bundles = bundled(SplitTable(np.ones((4, 1), dtype=np.int64), (one,)))
    >>> bundles.count, bundles.at.tolist(), bundles.left.tolist(), bundles.right.tolist(), bundles.entry_at.tolist()
    (1, [0, 0], [2, 3], [4, 5], [2, 4, 3, 5])
    """
    forms = _Forms(table)
    wholes = _row_loads(table)
    stages: list[list[_Part]] = []
    laws, entries_form = forms.of_entry, NONE
    for k, collapse in enumerate(table.collapses):
        last = k + 1 == len(table.collapses)
        forced = np.full(len(collapse.component), True) if last else table.collapses[k + 1].row < 0
        tagging = _may_have_tags(table.collapses[k:])
        stages.append([])
        above = np.full(len(collapse.component), forms.nothing)
        for rows, entries in _parts(collapse, laws, table.further, forms.loads):
            is_root = bool(forced[rows].all())
            part = _grown(forms, rows, entries, laws, wholes[k + 1][rows], is_root, tagging, entries_form)
            above[rows] = part.laws[0]
            stages[-1].append(part)
        laws, entries_form = above, stages[-1][0].forms[0] if tagging else NONE
    return _placed(table, stages, forms)


def _may_have_tags(collapses: Sequence[Collapse]) -> bool:
    """Whether the groups of the first collapse's roots may be tags.

    There and above everything is one bundle, so that one tag is handed to all entries, and no entry is forced to be 0:
    its weight would depend on the tag.
    """
    others = collapses[1:]
    is_one_bundle = not any(collapse.component.any() for collapse in collapses)
    return bool(others) and is_one_bundle and all((collapse.row >= 0).all() for collapse in others)


def _row_loads(table: SplitTable) -> list[IntArray]:
    """For each table on the way, and each of its entries, the load of all that is drawn from one row with it."""
    loads = [table.loads]
    for collapse in table.collapses:
        more = np.zeros((len(collapse.component), table.loads.shape[1]), dtype=np.int64)
        inside = collapse.row >= 0
        np.add.at(more, collapse.row[inside], loads[-1][inside])
        loads.append(more)
    tops = [loads[-1]]
    for collapse, own in zip(reversed(table.collapses), reversed(loads[:-1]), strict=True):
        tops.append(np.where(collapse.row[:, None] >= 0, tops[-1][collapse.row], own))
    return tops[::-1]


def _parts(
    collapse: Collapse, laws: IntArray, further: tuple[Fraction, ...], loads: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """The components of a collapse: rows, and entries in a matrix whose columns have an order of their own."""
    inside = np.flatnonzero(collapse.row >= 0)
    row, column = collapse.row[inside], collapse.column[inside]
    order = np.argsort(collapse.component[row], kind="stable")
    inside, row, column = inside[order], row[order], column[order]
    cuts = np.flatnonzero(np.diff(collapse.component[row])) + 1
    for first, last in pairwise([0, *cuts.tolist(), len(inside)]):
        rows, i = np.unique(row[first:last], return_inverse=True)
        columns, j = np.unique(column[first:last], return_inverse=True)
        entries = np.full((len(rows), len(columns)), NONE)
        entries[i, j] = inside[first:last]
        yield rows, entries[:, _order(entries, laws, further, loads)]


def _order(entries: IntArray, laws: IntArray, further: tuple[Fraction, ...], loads: IntArray) -> IntArray:
    """The order in which columns are taken off: one without a weight first, then those with fewer cells.

    Then the same columns have the same order in every component.
    """
    own = np.where(entries >= 0, laws[entries], 0)
    inside = (entries >= 0)[:, :, None] * loads[own]
    weightless = [k for k, rate in enumerate(further, 1) if not rate]
    return np.lexsort((own.sum(axis=0), inside.sum(axis=(0, 2)), -inside[:, :, weightless].sum(axis=(0, 2))))


def _grown(
    forms: _Forms,
    rows: IntArray,
    entries: IntArray,
    laws: IntArray,
    wholes: IntArray,
    is_root: bool,
    has_tags: bool,
    of_entries: int,
) -> _Part:
    """The tree of a component: for each node the laws of all rows and the form of its bundle."""
    own = np.where(entries >= 0, laws[entries], forms.nothing)
    columns = entries.shape[1]
    below, node_laws, numbers = own[:, -1], [own[:, -1]], [NONE]
    for k in reversed(range(columns - 1)):
        here = (entries[:, k:] >= 0).any(axis=1)
        law = np.full(len(rows), forms.nothing)
        top = k == 0
        kind = _Kind(numbers[0], of_entries, top and is_root, top and not is_root, top and has_tags)
        number, law[here] = forms.find(own[here, k], below[here], wholes[here], kind)
        below = law
        node_laws.insert(0, law)
        numbers.insert(0, number)
    return _Part(rows, entries, node_laws, numbers[:-1])


def _placed(table: SplitTable, stages: list[list[_Part]], forms: _Forms) -> Bundles:
    """Places for all sums, from the last collapse back to the first, and the bundles in order."""
    drafts: list[_Draft] = []
    following, tagging = ELSEWHERE + 1, NONE
    own = np.full(len(table.collapses[-1].component), NOTHING)
    for k in reversed(range(len(stages))):
        entry_at = np.full(len(table.collapses[k].row), NOTHING)
        first = len(drafts)
        for part in stages[k]:
            following = _place(part, own[part.rows], entry_at, following, forms, drafts)
        if tagging != NONE and forms.forms[drafts[first].form].has_tags:
            drafts[tagging] = replace(drafts[tagging], tagged=first)
        own, tagging = entry_at, first
    order, restart = _ordered(drafts, following)
    number = np.empty(len(drafts), dtype=np.int64)
    number[order] = np.arange(len(drafts))
    final = [drafts[k] for k in order.tolist()]

    def renumbered(drafted: list[int]) -> IntArray:
        return np.array([NONE if k == NONE else number[k] for k in drafted], dtype=np.int64)

    def joined(arrays: list[IntArray]) -> IntArray:
        return np.concatenate([np.empty(0, dtype=np.int64), *arrays])

    return Bundles(
        forms=tuple(forms.forms),
        entry_laws=forms.entry_laws,
        form=np.array([draft.form for draft in final], dtype=np.int64),
        start=np.concatenate([[0], np.cumsum([len(draft.at) for draft in final])]).astype(np.int64),
        at=joined([draft.at for draft in final]),
        left=joined([draft.left for draft in final]),
        right=joined([draft.right for draft in final]),
        law=joined([draft.law for draft in final]),
        below=renumbered([draft.below for draft in final]),
        tagged=renumbered([draft.tagged for draft in final]),
        restart=restart,
        entry_at=own,
        places=following,
        further=table.further,
    )


def _place(part: _Part, at: IntArray, entry_at: IntArray, following: int, forms: _Forms, drafts: list[_Draft]) -> int:
    """Add the bundles of a component, and set where the sums of its entries are."""
    columns = part.entries.shape[1]
    for k in range(columns):
        present = part.entries[:, k] >= 0
        if k == columns - 1:
            entry_at[part.entries[present, k]] = at[present]
            break
        here = (part.entries[:, k:] >= 0).any(axis=1)
        later = (part.entries[:, k + 1 :] >= 0).any(axis=1)
        left, right = np.full(len(at), ELSEWHERE), np.full(len(at), ELSEWHERE)
        left[present] = following + np.arange(present.sum())
        following += int(present.sum())
        right[later] = following + np.arange(later.sum())
        following += int(later.sum())
        entry_at[part.entries[present, k]] = left[present]
        form, last = part.forms[k], k == columns - 2
        law = part.laws[k][here] - forms.forms[form].first
        drafts.append(_Draft(form, at[here], left[here], right[here], law, NONE if last else len(drafts) + 1, NONE))
        at = right
    return following


def _ordered(drafts: list[_Draft], places: int) -> tuple[IntArray, IntArray]:
    """An order in which all that is connected to a bundle so far is a run that ends with it, and where that starts.

    Bundles are connected by the sums that they split and those that they make. A bundle joins those that made its sums;
    each of these joined others before: a forest, in which it comes after all that is below it.
    """
    maker = np.full(places, NONE)
    top = np.arange(len(drafts))  # towards the bundle that joined it last
    below: list[list[int]] = []
    for number, draft in enumerate(drafts):
        joined: dict[int, None] = {}
        for made in np.unique(maker[draft.at]).tolist():
            if made != NONE:
                joined.setdefault(_top(top, made))
        for other in joined:
            top[other] = number
        below.append(list(joined))
        maker[draft.left] = maker[draft.right] = number
        maker[ELSEWHERE] = NONE
    order: list[int] = []
    restart = np.empty(len(drafts), dtype=np.int64)
    for root in range(len(drafts)):
        if top[root] == root:
            _append(root, below, order, restart)
    return np.array(order, dtype=np.int64), restart


def _top(top: IntArray, number: int) -> int:
    while top[number] != number:
        top[number] = top[top[number]]
        number = int(top[number])
    return number


def _append(root: int, below: list[list[int]], order: list[int], restart: IntArray) -> None:
    """Append a tree of bundles, what is below each before it."""
    waiting = [(root, False)]
    starts: list[int] = []
    while waiting:
        number, is_done = waiting.pop()
        if is_done:
            restart[len(order)] = starts.pop()
            order.append(number)
            continue
        starts.append(len(order))
        waiting.append((number, True))
        waiting += [(other, False) for other in reversed(below[number])]


# Trees with fewer forms: the columns of a collapse in runs, so that tables for small epsilon are fewer and still fit.
#
# A tree that takes off one column after another has a form for each. Let the columns be in runs, and keep the total
# of each run: it follows from those of its columns. Then the columns can be summed out in two steps, first within
# each run, which leaves a table of rows and runs, and then the runs. The runs share all forms, so that 20 columns
# need 7 instead of 19, and 64 need 14 instead of 63. Fewer proposals are accepted, because there are more sums of few
# columns (``docs/exact-tables.md``).


FEWEST = 6  # columns that are put in runs


def in_runs(table: SplitTable) -> SplitTable:
    """The same table, each collapse of many columns in two steps; the same object if there is none.

    A collapse with structural zeros stays as it is: within a run, its rows might fall apart. So does a table with added
    entries, one of which may have no weight and must be taken off by itself.

    >>> collapse = Collapse(*np.indices((2, 6)).reshape(2, 12), np.zeros(2, dtype=np.int64))
    >>> first, then = in_runs(SplitTable(np.ones((12, 1), dtype=np.int64), (collapse,))).collapses
    >>> first.row.tolist(), first.component.tolist(), then.row.tolist(), then.column.tolist()
    ([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1])
    """
    if table.further:
        return table
    steps = [step for collapse in table.collapses for step in _steps(collapse)]
    return table if len(steps) == len(table.collapses) else replace(table, collapses=tuple(steps))


def _steps(collapse: Collapse) -> list[Collapse]:
    """A collapse in one step or two, if all rows have an entry in each column and each column belongs to all rows."""
    columns = int(collapse.column.max()) + 1
    rows = len(collapse.component)
    if columns < FEWEST or collapse.component.any() or len(collapse.row) != rows * columns or (collapse.row < 0).any():
        return [collapse]
    length = _length(columns)
    run = collapse.column // length
    runs = int(run.max()) + 1
    row, of_row = np.divmod(np.arange(rows * runs), runs)
    within = Collapse(collapse.row * runs + run, collapse.column, of_row)
    return [within, Collapse(row, of_row, collapse.component)]


def _length(columns: int) -> int:
    """The length of runs with which there are the fewest forms; of several, the longest.

    >>> [_length(columns) for columns in (6, 8, 20, 64)]
    [3, 4, 5, 8]
    """

    def forms(length: int) -> int:
        runs, rest = divmod(columns, length)
        return length + runs + (rest and rest - 1) + bool(rest)

    return min(range(2, columns), key=lambda length: (forms(length), -length))

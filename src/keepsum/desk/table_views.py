"""What the pages of the steps Table and Keep show: columns and categories, totals, and what these disclose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keepsum.desk.deriving import TABLE, DraftState, Problem
from keepsum.desk.desk import Scene
from keepsum.desk.examples import EXAMPLES
from keepsum.desk.forms import AXIS, COUNTS, NESTED, OUT, RECORDS, ROWS, UNIT, WITH, WITHIN
from keepsum.specs.building import margin_of
from keepsum.specs.option import by_parent
from keepsum.specs.spec import Spec
from keepsum.tables.counts import are_whole
from keepsum.tables.domain import Domain
from keepsum.tables.findings import BlankTotals, Following, NestedAxes, Numbers, Same, Sparse, TotalLabels
from keepsum.tables.source import with_parents

MOST_COLUMNS = 60  # that the page lists
MOST_LABELS = 2000  # of an axis, that a list shows
MOST_MARGINS = 40
SHOWN_LABELS = 8


# -- the table --------------------------------------------------------------------------------------


def table_view(scene: Scene) -> dict[str, Any]:
    """The file, what its columns are, and the categories of its axes."""
    draft, look = scene.draft, scene.look
    if draft is None or look.header is None:
        return {
            "examples": list(EXAMPLES.values()), "columns": [], "axes": [], "names": [], "rows_are": COUNTS,
            "asks_count": False, "undone": [] if draft is None else _undone(draft.spec),
        }  # fmt: skip
    spec, names = draft.spec, look.header.names
    rows_are = RECORDS if spec.records.by or _looks_like_records(spec) else COUNTS
    marked = _marked(look.problem, names)
    columns = [name for name in names[:MOST_COLUMNS] if _is_axis(spec, name)]
    axes = _axes(spec, look, marked, columns)
    briefs = {axis["name"]: axis["brief"] for axis in axes}
    asks_count = rows_are == COUNTS and spec.source.count is None and look.problem_at(TABLE) is not None
    return {
        "examples": list(EXAMPLES.values()),
        "names": names[:MOST_COLUMNS],
        "more_columns": max(0, len(names) - MOST_COLUMNS),
        "rows_are": rows_are,
        "columns": [
            {
                "name": name,
                "place": k,
                "role": _role(spec, name),
                "is_count": name == spec.source.count,
                "is_marked": name in marked,
                "brief": briefs.get(name, ""),
            }
            for k, name in enumerate(names[:MOST_COLUMNS])
        ],
        "axes": [] if asks_count else axes,
        "asks_count": asks_count,
        "has_numbers": asks_count and bool(look.header.columns_where(are_whole)),
        "is_sparse": bool(spec.axes.dense) or (look.problem is not None and isinstance(look.problem.finding, Sparse)),
        "wants_most": spec.records.max_rows_per_unit is None
        and look.problem is not None
        and look.problem.refers_to("max_rows_per_unit"),
        "undone": _undone(spec),
        "roles": {"axis": AXIS, "out": OUT, "unit": UNIT, "within": WITHIN, "with": WITH},
        "undeclared": [] if look.table is None else list(look.table.undeclared),
        "size": None if look.table is None else look.table.domain.size,
    }


def _marked(problem: Problem | None, names: Sequence[str]) -> set[str]:
    if problem is None or problem.stage != TABLE:
        return set()
    match problem.finding:
        case Numbers():
            return set(problem.finding.columns)
        case NestedAxes():
            return {child for child, _ in problem.finding.parents}
        case Same() | Following():
            return {problem.finding.code}
        case TotalLabels() | BlankTotals():
            return {problem.finding.axis}
    return {name for name in names if repr(name) in problem.message}


def _undone(spec: Spec) -> list[tuple[str, str, str]]:
    """What was said of how the file is read, and can be taken back: its key, what it is, and what the button says."""
    source, found = spec.source, []
    if source.sheet is not None:
        found.append(("sheet", f"Sheet {source.sheet}", "choose another sheet"))
    if source.encoding is not None:
        found.append(("encoding", f"Encoding {source.encoding}", "read it as UTF-8"))
    for column, labels in (source.drop_rows or {}).items():
        which = ", ".join(map(str, labels)) if isinstance(labels, list) else str(labels)
        found.append((f"{ROWS}{column}", f"Without the rows of {column}: {which}", "bring them back"))
    return found


def counted_by(spec: Spec, look: DraftState) -> list[str]:
    """The columns that the table is counted by, as far as they are known."""
    return list(look.table.domain.axes) if look.table is not None else list(spec.records.by or spec.axes.names or [])


def _looks_like_records(spec: Spec) -> bool:
    return bool(spec.records.unit or spec.records.bins or spec.records.max_rows_per_unit)


def _role(spec: Spec, name: str) -> str:
    """What a column is, as far as it is said; a column of which nothing is said is an axis."""
    within, carry = spec.axes.within or {}, spec.source.carry or {}
    if name in within:
        return f"{WITHIN}{within[name]}"
    if isinstance(carry, Mapping) and name in carry:
        return f"{WITH}{carry[name]}"
    if name == spec.records.unit:
        return UNIT
    parents = set(within.values())
    if spec.records.by is not None or _looks_like_records(spec):
        return AXIS if name in (spec.records.by or []) or name in parents else OUT
    if name in (spec.source.drop or []) or (isinstance(carry, list) and name in carry):
        return OUT
    return AXIS if spec.axes.names is None or name in spec.axes.names or name in parents else OUT


def _is_axis(spec: Spec, name: str) -> bool:
    role = _role(spec, name)
    return name != spec.source.count and (role == AXIS or role.startswith(WITHIN))


def _axes(spec: Spec, look: DraftState, marked: set[str], columns: Sequence[str]) -> list[dict[str, Any]]:
    declared, bins = spec.axes.categories or {}, spec.records.bins or {}
    domain = None if look.table is None else look.table.domain
    names = list(domain.axes) if domain is not None else with_parents(columns, spec.axes.within or {})
    is_records = spec.records.by is not None
    to_mark = marked if look.problem is not None and look.problem.finding is None else set()
    axes = []
    for name in names:
        labels = _lines(domain, name) if domain is not None else _declared_lines(declared.get(name, []))
        is_declared = name in declared or name in bins
        origin = "declared" if is_declared else "to be declared" if is_records else "from the data"
        axes.append(
            {
                "name": name,
                "tag": origin if not labels else f"{len(labels):,} {origin}",
                "rows": min(10, max(4, len(labels))),
                "is_marked": name in to_mark,
                "is_open": (not is_declared and is_records) or name in to_mark,
                "brief": ", ".join(labels[:SHOWN_LABELS]) + (" …" if len(labels) > SHOWN_LABELS else ""),
                "lines": "\n".join(labels) if len(labels) <= MOST_LABELS else "",
                "is_declared": is_declared,
                "parent": (spec.axes.within or {}).get(name),
                "bins": ",".join(map(str, bins.get(name, []))),
                "missing": (spec.records.missing or {}).get(name, ""),
                "is_long": len(labels) > MOST_LABELS,
            }
        )
    return axes


def _lines(domain: Domain, name: str) -> list[str]:
    if name not in domain.within:
        return [str(label) for label in domain.categories(name)]
    return [NESTED.join(map(str, path)) for path in domain.categories(name)]


def _declared_lines(labels: Any) -> list[str]:
    return [NESTED.join([*path, str(label)]) for path, under in by_parent(labels).items() for label in under]


# -- the kept totals --------------------------------------------------------------------------------


def keep_view(scene: Scene) -> dict[str, Any]:
    """The totals that may be kept, which of them are, and what they disclose."""
    draft, look = scene.draft, scene.look
    table = look.table
    if draft is None or table is None:
        return {"margins": [], "pinned": 0, "more_margins": False, "bounded": False, "sets": []}
    domain, keep = table.domain, draft.spec.keep
    ticked = {domain.closure(_known(domain, margin)) for margin in keep.margins or []}
    pinned: Any = [] if look.plan is None else look.plan.pinned
    bounds = None if look.measured is None else look.measured.bounds
    offered = margins_of(domain)
    return {
        "more_margins": len(offered) == MOST_MARGINS,
        "margins": [
            {
                "value": ",".join(str(domain.axes.index(axis)) for axis in axes),
                "title": " × ".join(axes),
                "height": domain.project(axes).size,
                "is_kept": domain.closure(axes) in ticked,
                "ways": len(axes),
            }
            for axes in offered
        ],
        "sets": [{"name": subset.name, "cells": len(subset.cells)} for subset in keep.subset or []],
        "pinned": len(pinned),
        "pinned_cells": [domain.name(int(cell)) for cell in pinned[:SHOWN_LABELS]],
        "accepted": bool(draft.spec.output.accept_pinned),
        "bounded": bounds is not None and len(bounds.cells) > 0,  # of which the page says no more
        "not_checked": 0 if bounds is None else bounds.not_checked,
        "described": None if look.kept is None else look.kept.describe(),
    }


def _known(domain: Domain, margin: str | list[str]) -> list[str]:
    return [axis for axis in margin_of(margin, domain.axes) if axis in domain.axes]


def margins_of(domain: Domain) -> list[tuple[str, ...]]:
    """The margins that a page offers: of one axis, of two, up to all but one; a parent goes with its child.

    No axis is in one together with an axis that it is nested in, so each has other totals than those before it; and
    each is another one with one more axis, so that no others need to be tried.
    """
    axes = domain.axes
    above = {axis: frozenset(domain.closure([axis])) for axis in axes}
    found: list[tuple[str, ...]] = []
    longer: list[tuple[str, ...]] = [()]
    while longer:
        shorter, longer = longer, []
        for some in shorter:
            for axis in axes[axes.index(some[-1]) + 1 if some else 0 :]:
                if any(axis in above[other] or other in above[axis] for other in some):
                    continue
                if len(domain.closure([*some, axis])) == len(axes):
                    continue
                longer.append((*some, axis))
                if len(found) + len(longer) == MOST_MARGINS:
                    return found + longer
        found += longer
    return found

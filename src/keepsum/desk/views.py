"""What each page shows, as data for its template: nothing is decided there, and no confidential count is in it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from keepsum.desk.deriving import COLUMNS, KEPT, PLAN, TABLE, Look
from keepsum.desk.desk import Desk
from keepsum.desk.examples import EXAMPLES
from keepsum.desk.fixes import fixes_for
from keepsum.desk.forms import AXIS, COUNTS, NESTED, OUT, RECORDS, UNIT, WITH, WITHIN
from keepsum.desk.steps import SECTIONS, TITLES, is_asked, step_of_problem, steps_of
from keepsum.specs.places import keys_about
from keepsum.specs.spec import Spec

if TYPE_CHECKING:
    from keepsum.tables.domain import Domain

MOST_COLUMNS = 60  # that the page lists
MOST_LABELS = 2000  # of an axis, that a list shows
MOST_MARGINS = 40
SHOWN_LABELS = 8


def common(desk: Desk, step: str, look: Look, message: str | None = None) -> dict[str, Any]:
    """What every page shows: the steps, what is wrong, and the ways out."""
    draft, known = desk.draft, desk.peek()
    whole = known if known.problem is not None or len(known.made) > len(look.made) else look
    problem = _problem(desk, step, whole)
    return {
        "step": step,
        "title": TITLES[step],
        "steps": steps_of(desk, whole),
        "version": desk.version,
        "draft": draft,
        "spec": None if draft is None else draft.spec,
        "look": look,
        "job": desk.progress,
        "given_up": desk.is_given_up,
        "problem": problem,
        "fixes": [] if draft is None else [fix.label for fix in fixes_for(whole, draft.spec)],
        "loss": _loss(whole),
        "message": message,
        "next": _next(step),
        "before": _before(step),
        "finished": desk.finished,
    }


def _next(step: str) -> tuple[str, str] | None:
    names = list(TITLES)
    place = names.index(step) + 1
    return (names[place], TITLES[names[place]]) if place < len(names) else None


def _before(step: str) -> tuple[str, str] | None:
    names = list(TITLES)
    place = names.index(step) - 1
    return (names[place], TITLES[names[place]]) if place >= 0 else None


def _problem(desk: Desk, step: str, look: Look) -> dict[str, Any] | None:
    """The sentence that the shell would say, with the step and the field that it is about."""
    if look.problem is None or desk.draft is None:
        return None
    where = step_of_problem(look)
    sections = SECTIONS[where]
    about = keys_about(look.problem.message, desk.draft.spec, sections)
    if "column of counts must be named" in look.problem.message:  # of which nothing is said yet
        about = [("source", "count")]
    return {
        "message": desk.say(look.problem.message),
        "step": where,
        "title": TITLES[where],
        "here": where == step,
        "is_asked": is_asked(desk, look),
        "field": about[0][1] if about and look.problem.stage in (COLUMNS, TABLE, KEPT, PLAN) else "",
    }


def _loss(look: Look) -> str | None:
    """That the loss is large, if it is."""
    from keepsum.releasing.statements import loss_concern

    sentences = [] if look.plan is None else loss_concern(look.plan.guarantee, look.plan.records)
    return sentences[0] if sentences else None


# -- the table --------------------------------------------------------------------------------------


def table_view(desk: Desk, look: Look) -> dict[str, Any]:
    """The file, what its columns are, and the categories of its axes."""
    draft = desk.draft
    if draft is None or look.header is None:
        return {"examples": list(EXAMPLES.values()), "columns": [], "axes": [], "names": [], "rows_are": COUNTS}
    spec, names = draft.spec, look.header.names
    rows_are = RECORDS if spec.records.by or _looks_like_records(spec) else COUNTS
    return {
        "examples": list(EXAMPLES.values()),
        "names": names[:MOST_COLUMNS],
        "more_columns": max(0, len(names) - MOST_COLUMNS),
        "rows_are": rows_are,
        "columns": [
            {"name": name, "place": k, "role": _role(spec, name), "is_count": name == spec.source.count}
            for k, name in enumerate(names[:MOST_COLUMNS])
        ],
        "axes": _axes(spec, look),
        "roles": {"axis": AXIS, "out": OUT, "unit": UNIT, "within": WITHIN, "with": WITH},
        "bytes": _readable(len(draft.upload.data)),
        "undeclared": [] if look.table is None else list(look.table.undeclared),
        "size": None if look.table is None else look.table.domain.size,
    }


def _readable(size: int) -> str:
    """A number of bytes, briefly.

    >>> _readable(255), _readable(12_300), _readable(4_500_000)
    ('255 bytes', '12 kB', '4.5 MB')
    """
    if size < 10**4:
        return f"{size:,} bytes"
    return f"{size / 1e3:,.0f} kB" if size < 10**6 else f"{size / 1e6:,.1f} MB"


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


def _axes(spec: Spec, look: Look) -> list[dict[str, Any]]:
    """The axes with their categories: of the table if there is one, and else as far as they are declared."""
    declared, bins = spec.axes.categories or {}, spec.records.bins or {}
    domain = None if look.table is None else look.table.domain
    names = list(domain.axes) if domain is not None else list(spec.records.by or [])
    axes = []
    for name in names:
        labels = _lines(domain, name) if domain is not None else _declared_lines(declared.get(name, []))
        axes.append(
            {
                "name": name,
                "count": len(labels),
                "brief": ", ".join(labels[:SHOWN_LABELS]) + (" …" if len(labels) > SHOWN_LABELS else ""),
                "lines": "\n".join(labels) if len(labels) <= MOST_LABELS else "",
                "is_declared": name in declared or name in bins,
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
    from keepsum.specs.commands import by_parent

    return [NESTED.join([*path, str(label)]) for path, under in by_parent(labels).items() for label in under]


# -- the kept totals --------------------------------------------------------------------------------


def keep_view(desk: Desk, look: Look) -> dict[str, Any]:
    """The totals that may be kept, which of them are, and what they disclose."""
    draft, table = desk.draft, look.table
    if draft is None or table is None:
        return {"margins": [], "pinned": 0, "bounded": [], "sets": []}
    domain, keep = table.domain, draft.spec.keep
    ticked = {domain.closure(_known(domain, margin)) for margin in keep.margins or []}
    pinned: Any = [] if look.plan is None else look.plan.pinned
    bounds = None if look.measured is None else look.measured.bounds
    return {
        "margins": [
            {
                "value": ",".join(str(domain.axes.index(axis)) for axis in axes),
                "title": " × ".join(axes),
                "height": domain.project(axes).size,
                "is_kept": domain.closure(axes) in ticked,
                "ways": len(axes),
            }
            for axes in margins_of(domain)
        ],
        "sets": [{"name": subset.name, "cells": len(subset.cells)} for subset in keep.subset or []],
        "pinned": len(pinned),
        "pinned_cells": [domain.name(int(cell)) for cell in pinned[:SHOWN_LABELS]],
        "accepted": bool(draft.spec.output.accept_pinned),
        "bounded": 0 if bounds is None else len(bounds.cells),
        "not_checked": 0 if bounds is None else bounds.not_checked,
        "described": None if look.kept is None else look.kept.describe(),
    }


def _known(domain: Domain, margin: str | list[str]) -> list[str]:
    from keepsum.specs.building import margin_of

    return [axis for axis in margin_of(margin, domain.axes) if axis in domain.axes]


def margins_of(domain: Domain) -> list[tuple[str, ...]]:
    """The margins that a page offers: of one axis, of two, up to all but one; a parent goes with its child."""
    axes, found, seen = domain.axes, [], set()
    for ways in range(1, len(axes) + 1):
        for some in combinations(axes, ways):
            closed = domain.closure(some)
            if closed in seen or len(closed) == len(axes) or any(domain.within.get(a) in some for a in some):
                continue
            seen.add(closed)
            found.append(some)
            if len(found) == MOST_MARGINS:
                return found
    return found


# -- the noise --------------------------------------------------------------------------------------


def levels_of(domain: Domain) -> list[tuple[str, ...]]:
    """The totals that a focus may be on: the grand total, and those of each axis that another is nested in, or is."""
    nested = [name for name in domain.axes if name in domain.within or name in domain.within.values()]
    return [()] + [(name,) for name in nested] if nested else []


def privacy_view(desk: Desk, look: Look) -> dict[str, Any]:
    """The mechanism, its margins of error, and what is left of the budget."""
    draft = desk.draft
    if draft is None:
        return {"levels": [], "kind": "laplace", "standing": None}
    noise = draft.spec.mechanism
    kind = "gaussian" if noise.kind == "gaussian" else "laplace-l2" if noise.norm == "l2" else "laplace"
    from keepsum.specs.building import focus_of

    focus = focus_of(noise) or {}
    levels = [] if look.table is None else levels_of(look.table.domain)
    return {
        "kind": kind,
        "noise": noise,
        "levels": [
            {"place": k, "title": " × ".join(axes) or "the grand total", "weight": focus.get(axes or ("",), "")}
            for k, axes in enumerate(levels)
        ],
        "person": None if look.plan is None else _person(look),
        "accuracy": None if look.measured is None else desk.say(str(look.measured.accuracy)),
        "typical": None if look.measured is None else look.measured.accuracy.typical,
        "standing": None if desk.ledger is None else str(desk.ledger.standing(draft.spec.ledger.dataset)),
        "cost": [] if look.ready is None or look.ready.assessment is None else look.ready.assessment.lines,
        "is_records": bool(draft.spec.records.by),
    }


def _person(look: Look) -> str:
    from keepsum.releasing.explain import person_statements

    return "" if look.plan is None else person_statements(look.plan).headline()


# -- preview and release ----------------------------------------------------------------------------


def preview_view(desk: Desk, look: Look) -> dict[str, Any]:
    """The plan in words, and the law of the noise."""
    from markupsafe import Markup

    from keepsum.releasing.explain import topics
    from keepsum.report.figures import noise_figure
    from keepsum.report.laws import noise_curves

    if look.plan is None or look.measured is None:
        return {"topics": [], "law": None}
    curves = noise_curves(look.plan, look.measured.accuracy)
    law = None
    if curves:
        drawn = noise_figure(curves, look.measured.accuracy.level)
        law = {"wide": Markup(drawn.wide), "narrow": Markup(drawn.narrow), "caption": drawn.caption}  # noqa: S704 (by svg.py)
    return {"topics": [(title, [desk.say(line) for line in lines]) for title, lines in topics(look.plan)], "law": law}


def release_view(desk: Desk, look: Look) -> dict[str, Any]:
    """What a curator must know before the release, and the release once there is one."""
    from keepsum.releasing.explain import person_statements
    from keepsum.releasing.plain_words import plain_words
    from keepsum.specs.commands import command_of
    from keepsum.specs.snippets import snippet_of
    from keepsum.specs.writing import toml_of

    draft, ready = desk.draft, look.ready
    view: dict[str, Any] = {
        "ready": ready,
        "known": [],
        "warnings": [],
        "copies": [],
        "result": None,
        "problem_of_it": None,
    }
    if draft is not None:
        copies = [
            ("Shell", command_of(draft.spec)),
            ("Python", snippet_of(draft.spec)),
            ("keepsum.toml", toml_of(draft.spec)),
        ]
        view["copies"] = copies
    if ready is not None:
        prepared = ready.prepared
        plan = prepared.plan
        view["known"] = [
            ("Published exactly", [plan.invariants.describe()]),
            ("In plain words", plain_words(person_statements(plan), plan.invariants.height, len(plan.pinned))),
            ("Accuracy", [str(prepared.accuracy)]),
            ("Ledger", _ledger(ready.assessment)),
        ]
        view["warnings"] = [desk.say(sentence) for sentence in prepared.warnings]
    job = desk.releasing
    if job is not None and job.is_done and job.problem is not None:
        view["problem_of_it"] = " ".join(filter(None, [desk.say(job.problem), job.note]))
    if desk.finished is not None:
        view["result"] = _result(desk)
    return view


def _ledger(assessment: Any) -> list[str]:
    from keepsum.releasing.statements import ledger_words

    return [ledger_words(None)] if assessment is None else assessment.lines


def _result(desk: Desk) -> dict[str, Any]:
    from keepsum.releasing.showing import certificate_topics

    done = desk.finished
    if done is None:
        return {}
    checks = () if done.verification is None else done.verification.checks
    return {
        "is_of_draft": done.version == desk.version,
        "topics": certificate_topics(done.drawn.certificate),
        "checks": checks,
        "passed": done.verification is not None and done.verification.passed,
        "files": [(name, f"{len(data):,} bytes") for name, data in done.files.items()],
        "has_report": done.report is not None,
        "is_taken": done.is_taken,
        "note": done.note,
        "released": done.drawn.certificate.released,
    }

"""What each page shows, as data for its template: nothing is decided there, and no confidential count is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from keepsum._arrays import IntArray
from keepsum._saying import Text
from keepsum._text import how_many
from keepsum.accuracy.margins import Accuracy
from keepsum.desk.deriving import COLUMNS, KEPT, MARGINS, PLAN, READY, TABLE, DraftState
from keepsum.desk.desk import LOSS, Scene, as_on_page, to_know, words_on
from keepsum.desk.grids import edge_axes, kept_axes
from keepsum.desk.jobs import BackgroundJob
from keepsum.desk.table_views import margins_of
from keepsum.planning.plan import CompiledPlan
from keepsum.releasing.certificate import certificate_topics
from keepsum.releasing.explain import person_statements, topics
from keepsum.releasing.verify import Check
from keepsum.releasing.wording import ledger_words, loss_concern, plain_words, unit_topic
from keepsum.report.facts import noise_curves
from keepsum.report.figures import noise_figure
from keepsum.report.page import number
from keepsum.specs.focus import focus_of
from keepsum.specs.job import keys_about
from keepsum.specs.options import with_values
from keepsum.specs.proposals import Proposal, accepted, proposals_for
from keepsum.specs.spec import Spec
from keepsum.specs.writing import command_of, snippet_of, toml_of
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants, Margin
from keepsum.tables.origins import subject_of

# What stands in the way of a release, each with ways out of it as buttons.

replace = msgspec.structs.replace


@dataclass(frozen=True)
class Fix:
    """A button, and what it changes."""

    label: str
    change: Callable[[Spec], Spec]


def fixes_for(look: DraftState, spec: Spec) -> list[Fix]:
    """The ways out of what stops the draft, or of what is unwise about it."""
    problem = look.problem
    if problem is not None and problem.finding is not None:
        return [_of(proposal) for proposal in proposals_for(problem.finding, spec)]
    if problem is not None and problem.stage == PLAN and _refers_to(problem.message, "per_unit"):
        unit = replace(spec.mechanism, per_unit=True, focus=None, cell_share=None)
        return [Fix("Make epsilon the loss per unit of distance", lambda spec: replace(spec, mechanism=unit))]
    if problem is not None and problem.stage == READY:
        return [*_about_pinned(look, spec), *_about_delta(problem.message, spec)]
    # A loss so large that it protects little: make epsilon 1 the loss of one person, or record, if that is stated
    if look.plan is None or not loss_concern(look.plan.guarantee, look.plan.records):
        return []

    is_stated = look.plan.person is not None
    epsilon = "1" if is_stated else "0.1"

    def smaller(spec: Spec) -> Spec:
        return replace(spec, mechanism=replace(spec.mechanism, epsilon=epsilon, per_unit=not is_stated or None))

    whose = f"of one {subject_of(look.plan.records)}" if is_stated else "per unit of distance"
    return [Fix(f"Make epsilon {epsilon} the loss {whose}", smaller)]


def _refers_to(message: str, name: str) -> bool:
    return any(part.name == name for part in Text(message).parts)


def _of(proposal: Proposal) -> Fix:
    return Fix(proposal.action, lambda spec: accepted(spec, proposal))


def _about_pinned(look: DraftState, spec: Spec) -> list[Fix]:
    """Pinned cells: accept them, or keep fewer totals, of which the last margin is the first to go."""
    if look.plan is None or not len(look.plan.pinned) or spec.output.accept_pinned:
        return []
    count = len(look.plan.pinned)
    cells = "this cell" if count == 1 else f"these {count:,} cells"
    fixes = [Fix(f"Publish {cells} without noise", lambda spec: with_values(spec, {"output.accept_pinned": ["all"]}))]
    for margin in spec.keep.margins or []:
        axes = margin if isinstance(margin, str) else " × ".join(margin)
        fixes.append(Fix(f"Do not keep {axes}", lambda spec, margin=margin: _without(spec, margin)))  # type: ignore[misc]
    return fixes if len(fixes) > 2 or spec.keep.total or spec.keep.subset else fixes[:1]


def _without(spec: Spec, margin: str | list[str]) -> Spec:
    left = [one for one in spec.keep.margins or [] if one != margin]
    return with_values(spec, {"keep.margins": left or None})


def _about_delta(message: str, spec: Spec) -> list[Fix]:
    """A delta from sampling: accept it, or choose noise that is exact under nearly all totals."""
    amount = next((part.value for part in Text(message).parts if part.name == "accept_delta"), None)
    if amount is None:
        return []
    accept = Fix(f"Accept delta {amount}", lambda spec: with_values(spec, {"output.accept_delta": amount}))
    gaussian = replace(spec.mechanism, kind="gaussian", delta="1e-6", norm=None, focus=None, cell_share=None)
    exact = Fix("Use Gaussian noise, exact under nearly all totals", lambda spec: replace(spec, mechanism=gaussian))
    return [exact, accept] if spec.mechanism.kind != "gaussian" else [accept]


# The privacy loss of a plan as the page states it: plainly, in numbers, and with the margins of each focus.

NAMES = {"laplace-l1": "Laplace noise", "laplace-l2": "l2 Laplace noise", "gaussian": "Gaussian noise"}


def brief_loss(plan: CompiledPlan) -> str | None:
    """Whose loss it is, and how much; None where none is stated for one person."""
    return None if plan.person is None else f"for one {subject_of(plan.records)}: {plan.stated_loss}"


def limit_of(plan: CompiledPlan) -> str:
    """How much one conclusion can depend on one person, in a plain sentence."""
    sentences = plain_words(person_statements(plan), plan.invariants.height, len(plan.pinned))
    return sentences[min(1, len(sentences) - 1)]


def loss_in_full(plan: CompiledPlan) -> str:
    """The loss of one person and of which changes, as a sentence that follows the plain one."""
    stated = person_statements(plan).headline()
    return as_sentence(stated) if plan.person is None else f"That is {stated}."


def loss_lines(plan: CompiledPlan, spec: Spec) -> list[str]:
    """The loss in numbers, the noise, and the focus."""
    noise = NAMES[plan.mechanism.kind]
    stated = noise if plan.person is not None else f"{noise}, {plan.guarantee.words}"
    lines = [person_statements(plan).headline(), stated]
    focus = spec.mechanism.focus or {}
    if focus:
        weights = [f"totals of {key or 'the whole table'} {weight}" for key, weight in focus.items()]
        is_shared = not spec.mechanism.per_unit
        cells = [f"cells {spec.mechanism.cell_share or 1}"] if is_shared else []
        lines.append(f"Focus, in {'shares of the loss' if is_shared else 'epsilon'}: {', '.join([*weights, *cells])}")
    return [as_sentence(line) for line in lines]


def as_sentence(text: str) -> str:
    """A phrase with a capital and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def level_margins(look: DraftState) -> list[dict[str, Any]]:
    """The typical margin of error of the totals of each focus."""
    if look.measured is None:
        return []
    return [
        {"title": " × ".join(level.axes) or "the whole table", "typical": level.accuracy.typical}
        for level in look.measured.accuracy.levels
    ]


# The totals of a released table: kept ones, which are exact, those of a focus, and those at the edges of a picture.

SHOWN = 50  # of each margin


@dataclass(frozen=True)
class ListedTotals:
    """Totals as the page lists them: each with its name, its number, and its margin of error or that it is exact."""

    title: str
    words: str
    rows: list[tuple[str, str, str]]
    more: int
    is_exact: bool


def kept_totals(counts: IntArray, domain: Domain, kept: Invariants) -> list[ListedTotals]:
    """Every kept total that is not at an edge of the picture, with its released value, which is the true one."""
    values, place, found = kept.totals(counts), 0, []
    at_edges = [(), *(domain.closure(axes) for axes in edge_axes(domain))]
    for part in kept.parts:
        if isinstance(part, Margin) and domain.closure(part.axes) in at_edges:
            place += part.height
            continue
        if isinstance(part, Margin):
            names = [", ".join(map(str, labels)) or "total" for labels in part.all_labels()[:SHOWN]]
            title = f"Totals of {' × '.join(part.axes)}" if part.axes else "The whole table"
        else:
            names, title = list(part.all_names()[:SHOWN]), "Totals of sets of cells"
        rows = [(name, number(int(values[place + k])), "exact") for k, name in enumerate(names)]
        found.append(ListedTotals(title, "kept exactly", rows, part.height - len(rows), is_exact=True))
        place += part.height
    return found


def focused_totals(counts: IntArray, domain: Domain, accuracy: Accuracy) -> list[ListedTotals]:
    """The totals of each focus that is on a margin, with their margins of error."""
    found = []
    for level in accuracy.levels:
        values, margins = sums_of(counts, domain, level.axes), level.accuracy.margins
        if len(margins) != len(values):  # of sets of cells, which have no margin to name them by
            continue
        names = _names(domain, level.axes)
        rows = [(name, number(int(values[k])), f"±{int(margins[k]):,}") for k, name in enumerate(names)]
        title = f"Totals of {' × '.join(level.axes)}" if level.axes else "The whole table"
        found.append(ListedTotals(title, "in the focus, with noise", rows, len(values) - len(rows), is_exact=False))
    return found


def sums_of(counts: IntArray, domain: Domain, axes: Sequence[str]) -> IntArray:
    """The totals of a margin."""
    if not axes:
        return np.array([counts.sum()])
    sums = np.zeros(domain.project(axes).size, dtype=np.int64)
    np.add.at(sums, domain.marginal_index(axes), counts)
    return sums


def _names(domain: Domain, axes: Sequence[str]) -> list[str]:
    if not axes:
        return ["total"]
    projected = domain.project(axes)
    return [", ".join(str(label) for label in projected.cell(k).values()) for k in range(min(SHOWN, projected.size))]


# The five steps, and what is missing in each.

TITLES = {"table": "Table", "keep": "Keep", "privacy": "Privacy", "preview": "Preview", "release": "Release"}
# The step at which the problem of a stage is shown.
STEP_OF = {COLUMNS: "table", TABLE: "table", KEPT: "keep", PLAN: "privacy", MARGINS: "privacy", READY: "privacy"}
SECTIONS = {
    "table": ("source", "axes", "records"),
    "keep": ("keep",),
    "privacy": ("mechanism", "output", "postprocess", "ledger"),
}


MOST_NAMES = 6


@dataclass(frozen=True)
class Step:
    """A step: ``state`` is done, open, warned, stuck or waiting; ``words`` say what is there or missing."""

    name: str
    number: int
    title: str
    state: str
    words: str


def steps_of(scene: Scene, look: DraftState) -> list[Step]:
    """The steps with what is missing in each."""
    draft, found = scene.draft, _states(scene, look)
    problem = None if look.problem is None else step_of_problem(look)
    steps = []
    for place, (name, title) in enumerate(TITLES.items(), 1):
        state, words = found[name]
        if name == problem and draft is not None and asked(scene, look) is None:
            state, words = "stuck", "something to settle"
        steps.append(Step(name, place, title, state, words))
    return steps


def asked(scene: Scene, look: DraftState) -> str | None:
    """What a step asks for, if nothing else is missing: so nothing is wrong yet."""
    if scene.draft is None:
        return None
    spec = scene.draft.spec
    if look.problem_at(KEPT) is not None and not ticked(spec):
        return "No total is ticked yet."
    if look.problem_at(TABLE) is not None and spec.source.count is None and spec.records.by is None:
        return "It is not said yet which column has the counts."
    # The columns to count records by whose categories are not declared
    known = {*(spec.axes.categories or {}), *(spec.records.bins or {})}
    undeclared = [name for name in spec.records.by or [] if name not in known]
    if look.problem_at(TABLE) is not None and undeclared:
        names = ", ".join(undeclared[:MOST_NAMES]) + (" …" if len(undeclared) > MOST_NAMES else "")
        return f"Declare the categories of {names} below. Leave out what the table is not counted by."
    return None


def ticked(spec: Spec) -> int:
    """How many totals, or sets of them, are to be kept; that none is counts as one."""
    return len(spec.keep.margins or []) + len(spec.keep.subset or []) + bool(spec.keep.total) + bool(spec.keep.nothing)


def step_of_problem(look: DraftState) -> str:
    """The step that a problem is shown at: pinned cells are a matter of the kept totals."""
    if look.problem is None:
        return ""
    if look.problem.stage == READY and look.plan is not None and look.problem.refers_to("accept_pinned"):
        return "keep"
    if look.problem.stage == PLAN and look.problem.refers_to("keep"):
        return "keep"
    return STEP_OF[look.problem.stage]


def _states(scene: Scene, look: DraftState) -> dict[str, tuple[str, str]]:
    if scene.draft is None:
        return {name: ("open", "choose one") if name == "table" else ("waiting", "") for name in TITLES}
    finished = scene.finished is not None and scene.finished.version == scene.version
    table = look.table
    steps = {
        "table": ("done", _cells(table.domain.size)) if table is not None else ("open", "say what it is"),
        "keep": _kept_words(scene.draft.spec, look),
        "privacy": _privacy_words(scene.draft.spec, look),
        "preview": ("done", "as planned") if look.ready is not None else ("waiting", ""),
        "release": ("open", "releasing")
        if scene.progress is not None and not scene.progress.stoppable
        else ("done", "released")
        if finished
        else ("open", "ready")
        if look.ready is not None
        else ("waiting", ""),
    }
    for name in ("keep", "privacy", "preview"):  # what nobody has looked at is not done
        state, words = steps[name]
        if state == "done" and name not in scene.opened:
            steps[name] = "open", f"{words}: check"
    return steps


def _cells(size: int) -> str:
    return how_many(size, "cell")


def _kept_words(spec: Spec, look: DraftState) -> tuple[str, str]:
    if look.kept is not None:
        height = look.kept.height
        return "done", how_many(height, "total") if height else "no total"
    if look.table is None:
        return "waiting", ""
    return "open", f"{ticked(spec)} kept: check" if ticked(spec) else "tick totals"


def _privacy_words(spec: Spec, look: DraftState) -> tuple[str, str]:
    if look.plan is None:
        return ("open", "choose noise") if look.kept is not None else ("waiting", "")
    if to_know(look.plan, spec):
        return "warned", "little protection" if to_know(look.plan, spec)[0].key == LOSS else "a delta accepted"
    if look.measured is None:
        return "open", "working"
    return "done", f"±{look.measured.accuracy.typical:,} per cell"


@dataclass(frozen=True)
class Working:
    """Work that went on when a page was made: the page shows it, and asks again, also if it has ended meanwhile."""

    stage: str
    fraction: float
    stoppable: bool

    @classmethod
    def of(cls, job: BackgroundJob) -> Working:
        """A job as it is now."""
        return cls(job.stage, job.fraction, job.stoppable)


def common(scene: Scene, step: str, message: object = None) -> dict[str, Any]:
    """What every page shows: the steps, what is wrong, and the ways out."""
    draft, look, known = scene.draft, scene.look, scene.whole
    whole = known if known.problem is not None or len(known.made) > len(look.made) else look
    problem = _problem(scene, step, whole)
    return {
        "step": step,
        "title": TITLES[step],
        "steps": steps_of(scene, whole),
        "version": scene.version,
        "draft": draft,
        "spec": None if draft is None else draft.spec,
        "look": look,
        "job": None if scene.progress is None else Working.of(scene.progress),
        "given_up": scene.is_given_up,
        "problem": problem,
        "fixes": [] if draft is None else [fix.label for fix in fixes_for(whole, draft.spec)],
        "loss": _loss(whole),
        "message": message,
        "blocked": _blocked(scene, step, problem),
        "next": _next(step),
        "before": _before(step),
        "finished": scene.finished,
    }


def _next(step: str) -> tuple[str, str] | None:
    names = list(TITLES)
    place = names.index(step) + 1
    return (names[place], TITLES[names[place]]) if place < len(names) else None


def _before(step: str) -> tuple[str, str] | None:
    names = list(TITLES)
    place = names.index(step) - 1
    return (names[place], TITLES[names[place]]) if place >= 0 else None


def _problem(scene: Scene, step: str, look: DraftState) -> dict[str, Any] | None:
    """The sentence that the shell would say, with the step and the field that it is about."""
    if look.problem is None or scene.draft is None:
        return None
    where = step_of_problem(look)
    sections = SECTIONS[where]
    about = keys_about(look.problem.message, scene.draft.spec, sections)
    return {
        "message": as_on_page(look.problem.message, look.problem.finding),
        "step": where,
        "title": TITLES[where],
        "here": where == step,
        "is_asked": asked(scene, look) is not None,
        "asked": asked(scene, look),
        "field": about[0][1] if about and look.problem.stage in (COLUMNS, TABLE, KEPT, PLAN) else "",
    }


def _blocked(scene: Scene, step: str, problem: dict[str, Any] | None) -> str | None:
    if scene.draft is None:
        return "Choose a table first." if step == "table" else None
    if problem is None or not problem["here"]:
        return None
    if problem["is_asked"]:
        return "Tick a total first." if step == "keep" else "Say what the table is first."
    return "Settle what is marked first."


def _loss(look: DraftState) -> str | None:
    sentences = [] if look.plan is None else loss_concern(look.plan.guarantee, look.plan.records)
    return sentences[0] if sentences else None


# -- the noise --------------------------------------------------------------------------------------


def levels_of(domain: Domain) -> list[tuple[str, ...]]:
    """The totals that a focus may be on: the grand total, and those of any margin that the step Keep offers."""
    return [(), *margins_of(domain)]


def _subject(spec: Spec) -> str:
    """Whose loss epsilon is: a record's where a person may have any number of them."""
    return "record" if spec.records.by and spec.records.max_rows_per_unit is None else "person"


def _levels(look: DraftState, focus: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """What the page offers of them: what is not kept anyway; and what is, if it has a weight that is to go."""
    if look.table is None:
        return []
    domain, margins = look.table.domain, kept_axes(look.kept)
    levels = []
    for k, axes in enumerate(levels_of(domain)):
        is_kept = any(frozenset(domain.closure(axes)) <= margin for margin in margins)
        if not is_kept or axes in focus:
            title = " × ".join(axes) or "the whole table"
            marked = is_kept or (axes in focus and look.problem_at(PLAN) is not None)
            weight = focus.get(axes, "")
            levels.append({"place": k, "title": title, "weight": weight, "ways": len(axes), "is_marked": marked})
    return levels


def privacy_view(scene: Scene) -> dict[str, Any]:
    """The mechanism, its margins of error, and what is left of the budget."""
    draft, look = scene.draft, scene.look
    if draft is None:
        return {"levels": [], "more_levels": [], "is_shared": True, "kind": "laplace", "standing": None, "made": None}
    noise = draft.spec.mechanism
    kind = "gaussian" if noise.kind == "gaussian" else "laplace-l2" if noise.norm == "l2" else "laplace"
    focus = focus_of(noise) or {}
    levels = _levels(look, focus)
    return {
        "kind": kind,
        "noise": noise,
        "levels": [level for level in levels if level["ways"] < 2 or level["weight"]],
        "more_levels": [level for level in levels if level["ways"] > 1 and not level["weight"]],
        "is_shared": not noise.per_unit,
        "has_focus": kind == "laplace" or (kind == "gaussian" and not noise.per_unit),
        "subject": _subject(draft.spec),
        "whose": "per unit of distance" if noise.per_unit else f"of one {_subject(draft.spec)}",
        "in_full": None if look.plan is None else loss_in_full(look.plan),
        "plain": None if look.plan is None else limit_of(look.plan),
        "brief": None if look.plan is None else brief_loss(look.plan),
        "level_margins": level_margins(look),
        "made": words_on(scene.made, draft.spec, look.plan),
        "accuracy": None if look.measured is None else as_sentence(scene.say(str(look.measured.accuracy))),
        "typical": None if look.measured is None else look.measured.accuracy.typical,
        "standing": None if scene.ledger is None else str(scene.ledger.standing(draft.spec.ledger.dataset)),
        "cost": [] if look.ready is None or look.ready.assessment is None else look.ready.assessment.lines,
        "is_records": bool(draft.spec.records.by),
    }


# -- preview and release ----------------------------------------------------------------------------


def preview_view(scene: Scene) -> dict[str, Any]:
    """The plan in words, and the distribution of the noise."""
    from markupsafe import Markup

    look = scene.look
    if look.plan is None or look.measured is None:
        return {"topics": [], "details": [], "law": None}
    curves = noise_curves(look.plan, look.measured.accuracy)
    law = None
    if curves:
        drawn = noise_figure(curves, look.measured.accuracy.level)
        law = {"wide": Markup(drawn.wide), "narrow": Markup(drawn.narrow), "caption": drawn.caption}  # noqa: S704 (by svg.py)
    said = [(title, [scene.say(line) for line in lines]) for title, lines in topics(look.plan, details=True)]
    first = {title for title, _ in topics(look.plan)}
    return {
        "topics": [topic for topic in said if topic[0] in first],
        "details": [topic for topic in said if topic[0] not in first],
        "law": law,
    }


def release_view(scene: Scene) -> dict[str, Any]:
    """What a curator must know before the release, and the release once there is one."""
    draft, ready = scene.draft, scene.look.ready
    view: dict[str, Any] = {
        "ready": ready,
        "known": [],
        "warnings": [],
        "to_know": [],
        "made": None,
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
        view["made"] = words_on(scene.made, draft.spec, scene.look.plan)
    if ready is not None:
        prepared = ready.prepared
        plan = prepared.plan
        view["known"] = [
            *unit_topic(plan.records),
            ("Published exactly", [plan.invariants.describe()]),
            ("In plain words", plain_words(person_statements(plan), plan.invariants.height, len(plan.pinned))),
            ("In numbers", [] if draft is None else loss_lines(plan, draft.spec)),
            ("Accuracy", [as_sentence(str(prepared.accuracy))]),
            ("Ledger", ([ledger_words(None)] if ready.assessment is None else ready.assessment.lines)),
        ]
        view["to_know"] = [] if draft is None else to_know(plan, draft.spec)
        said = {one.sentence for one in view["to_know"]}
        view["warnings"] = [scene.say(sentence) for sentence in prepared.warnings if sentence not in said]
    job = scene.releasing
    if job is not None and job.is_done and job.problem is not None:
        view["problem_of_it"] = " ".join(filter(None, [job.failed, scene.say(job.problem), job.note]))
    if scene.finished is not None:
        view["result"] = _result(scene)
    return view


def _sign(check: Check, is_signed: bool) -> str:
    """How a check is marked: a signature that is not there is neither right nor wrong."""
    if check.name == "signature" and not is_signed:
        return "neutral"
    return "ok" if check.passed else "failed"


def _result(scene: Scene) -> dict[str, Any]:
    done = scene.finished
    if done is None:
        return {}
    checks = () if done.verification is None else done.verification.checks
    counts, domain = done.drawn.table.counts, done.drawn.table.domain
    certificate = done.drawn.certificate
    return {
        "is_of_draft": done.version == scene.version,
        "is_changed": scene.draft is None or done.spec != scene.draft.spec or done.digest != scene.draft.digest,
        "totals": [*kept_totals(counts, domain, done.plan.invariants), *focused_totals(counts, domain, done.accuracy)],
        "topics": certificate_topics(certificate, details=True),
        "checks": [
            {"name": check.name, "words": check.words, "sign": _sign(check, certificate.signature is not None)}
            for check in checks
        ],
        "passed": done.verification is not None and done.verification.passed,
        "files": [(name, f"{len(data):,} bytes") for name, data in done.files.items()],
        "has_report": done.report is not None,
        "is_taken": done.is_taken,
        "is_whole": done.is_whole,
        "version": done.version,
        "note": done.note,
        "negative": int((counts < 0).sum()),
        "is_mended": done.drawn.unbiased is not None,
        "released": done.drawn.certificate.released,
    }

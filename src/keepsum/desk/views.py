"""What each page shows, as data for its template: nothing is decided there, and no confidential count is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepsum.desk.deriving import COLUMNS, KEPT, PLAN, TABLE, Look
from keepsum.desk.fixes import fixes_for
from keepsum.desk.grids import kept_axes
from keepsum.desk.history import words_on
from keepsum.desk.knowing import to_know
from keepsum.desk.losses import as_sentence, brief_loss, level_margins, limit_of, loss_in_full, loss_lines
from keepsum.desk.scenes import Scene
from keepsum.desk.steps import SECTIONS, TITLES, asked, step_of_problem, steps_of
from keepsum.desk.table_views import margins_of
from keepsum.desk.terms import in_page_terms
from keepsum.desk.totals import focused_totals, kept_totals
from keepsum.specs.places import keys_about

if TYPE_CHECKING:
    from keepsum.desk.jobs import Job
    from keepsum.releasing.verify import Check
    from keepsum.specs.spec import Spec
    from keepsum.tables.domain import Domain


@dataclass(frozen=True)
class Working:
    """Work that went on when a page was made: the page shows it, and asks again, also if it has ended meanwhile."""

    stage: str
    fraction: float
    stoppable: bool

    @classmethod
    def of(cls, job: Job) -> Working:
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


def _problem(scene: Scene, step: str, look: Look) -> dict[str, Any] | None:
    """The sentence that the shell would say, with the step and the field that it is about."""
    if look.problem is None or scene.draft is None:
        return None
    where = step_of_problem(look)
    sections = SECTIONS[where]
    about = keys_about(look.problem.message, scene.draft.spec, sections)
    return {
        "message": in_page_terms(look.problem.message, look.problem.finding),
        "step": where,
        "title": TITLES[where],
        "here": where == step,
        "is_asked": asked(scene, look) is not None,
        "asked": asked(scene, look),
        "field": about[0][1] if about and look.problem.stage in (COLUMNS, TABLE, KEPT, PLAN) else "",
    }


def _blocked(scene: Scene, step: str, problem: dict[str, Any] | None) -> str | None:
    """Why the next step cannot be taken yet."""
    if scene.draft is None:
        return "Choose a table first." if step == "table" else None
    if problem is None or not problem["here"]:
        return None
    if problem["is_asked"]:
        return "Tick a total first." if step == "keep" else "Say what the table is first."
    return "Settle what is marked first."


def _loss(look: Look) -> str | None:
    """That the loss is large, if it is."""
    from keepsum.releasing.statements import loss_concern

    sentences = [] if look.plan is None else loss_concern(look.plan.guarantee, look.plan.records)
    return sentences[0] if sentences else None


# -- the noise --------------------------------------------------------------------------------------


def levels_of(domain: Domain) -> list[tuple[str, ...]]:
    """The totals that a focus may be on: the grand total, and those of any margin that the step Keep offers."""
    return [(), *margins_of(domain)]


def _subject(spec: Spec) -> str:
    """Whose loss epsilon is: a record's where a person may have any number of them."""
    return "record" if spec.records.by and spec.records.max_rows_per_unit is None else "person"


def _levels(look: Look, focus: Mapping[Any, Any]) -> list[dict[str, Any]]:
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
    from keepsum.specs.focus import focus_of

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

    from keepsum.releasing.explain import topics
    from keepsum.report.figures import noise_figure
    from keepsum.report.laws import noise_curves

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
    from keepsum.releasing.counted import unit_topic
    from keepsum.releasing.explain import person_statements
    from keepsum.releasing.plain_words import plain_words
    from keepsum.specs.commands import command_of
    from keepsum.specs.snippets import snippet_of
    from keepsum.specs.writing import toml_of

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
            ("Ledger", _ledger(ready.assessment)),
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


def _ledger(assessment: Any) -> list[str]:
    from keepsum.releasing.statements import ledger_words

    return [ledger_words(None)] if assessment is None else assessment.lines


def _sign(check: Check, is_signed: bool) -> str:
    """How a check is marked: a signature that is not there is neither right nor wrong."""
    if check.name == "signature" and not is_signed:
        return "neutral"
    return "ok" if check.passed else "failed"


def _result(scene: Scene) -> dict[str, Any]:
    from keepsum.releasing.showing import certificate_topics

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
        "released": done.drawn.certificate.released,
    }

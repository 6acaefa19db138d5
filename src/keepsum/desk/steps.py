"""The five steps, and what is missing in each."""

from __future__ import annotations

from dataclasses import dataclass

from keepsum.desk.deriving import COLUMNS, KEPT, MARGINS, PLAN, READY, TABLE, Look
from keepsum.desk.knowing import LOSS, to_know
from keepsum.desk.scenes import Scene
from keepsum.specs.spec import Spec

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


def steps_of(scene: Scene, look: Look) -> list[Step]:
    """The steps with what is missing in each."""
    draft, found = scene.draft, _states(scene, look)
    problem = None if look.problem is None else step_of_problem(look)
    steps = []
    for number, (name, title) in enumerate(TITLES.items(), 1):
        state, words = found[name]
        if name == problem and draft is not None and asked(scene, look) is None:
            state, words = "stuck", "something to settle"
        steps.append(Step(name, number, title, state, words))
    return steps


def asked(scene: Scene, look: Look) -> str | None:
    """What a step asks for, if nothing else is missing: so nothing is wrong yet."""
    if scene.draft is None:
        return None
    spec = scene.draft.spec
    if look.problem_at(KEPT) is not None and not ticked(spec):
        return "No total is ticked yet."
    if look.problem_at(TABLE) is not None and spec.source.count is None and spec.records.by is None:
        return "It is not said yet which column has the counts."
    undeclared = undeclared_columns(spec)
    if look.problem_at(TABLE) is not None and undeclared:
        names = ", ".join(undeclared[:MOST_NAMES]) + (" …" if len(undeclared) > MOST_NAMES else "")
        return f"Declare the categories of {names} below. Leave out what the table is not counted by."
    return None


def undeclared_columns(spec: Spec) -> list[str]:
    """The columns to count records by whose categories are not declared."""
    known = {*(spec.axes.categories or {}), *(spec.records.bins or {})}
    return [name for name in spec.records.by or [] if name not in known]


def ticked(spec: Spec) -> int:
    """How many totals, or sets of them, are to be kept; that none is counts as one."""
    return len(spec.keep.margins or []) + len(spec.keep.subset or []) + bool(spec.keep.total) + bool(spec.keep.nothing)


def step_of_problem(look: Look) -> str:
    """The step that a problem is shown at: pinned cells are a matter of the kept totals."""
    if look.problem is None:
        return ""
    if look.problem.stage == READY and look.plan is not None and "pin " in look.problem.message:
        return "keep"
    if look.problem.stage == PLAN and "determine every cell" in look.problem.message:
        return "keep"
    return STEP_OF[look.problem.stage]


def _states(scene: Scene, look: Look) -> dict[str, tuple[str, str]]:
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
    return f"{size:,} cell{'s' * (size != 1)}"


def _kept_words(spec: Spec, look: Look) -> tuple[str, str]:
    if look.kept is not None:
        height = look.kept.height
        return "done", f"{height:,} total{'s' * (height != 1)}" if height else "no total"
    if look.table is None:
        return "waiting", ""
    return "open", f"{ticked(spec)} kept: check" if ticked(spec) else "tick totals"


def _privacy_words(spec: Spec, look: Look) -> tuple[str, str]:
    if look.plan is None:
        return ("open", "choose noise") if look.kept is not None else ("waiting", "")
    if to_know(look.plan, spec):
        return "warned", "little protection" if to_know(look.plan, spec)[0].key == LOSS else "a delta accepted"
    if look.measured is None:
        return "open", "working"
    return "done", f"±{look.measured.accuracy.typical:,} per cell"

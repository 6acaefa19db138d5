"""The five steps, and what is missing in each."""

from __future__ import annotations

from dataclasses import dataclass

from keepsum.desk.deriving import COLUMNS, KEPT, MARGINS, PLAN, READY, TABLE, Look
from keepsum.desk.scenes import Scene

TITLES = {"table": "Table", "keep": "Keep", "privacy": "Privacy", "preview": "Preview", "release": "Release"}
# The step at which the problem of a stage is shown.
STEP_OF = {COLUMNS: "table", TABLE: "table", KEPT: "keep", PLAN: "privacy", MARGINS: "privacy", READY: "privacy"}
SECTIONS = {
    "table": ("source", "axes", "records"),
    "keep": ("keep",),
    "privacy": ("mechanism", "output", "postprocess", "ledger"),
}


@dataclass(frozen=True)
class Step:
    """A step of the journey: ``state`` is done, open, stuck or waiting; ``words`` say what is there or missing."""

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
        if name == problem and draft is not None and not is_asked(scene, look):
            state, words = "stuck", "something to settle"
        steps.append(Step(name, number, title, state, words))
    return steps


def is_asked(scene: Scene, look: Look) -> bool:
    """Whether what is missing is what its step asks for, so that nothing is wrong yet: no total is ticked."""
    keep = None if scene.draft is None else scene.draft.spec.keep
    return look.problem_at(KEPT) is not None and keep is not None and not (keep.margins or keep.total or keep.subset)


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
    table, kept = look.table, look.kept
    return {
        "table": ("done", _cells(table.domain.size)) if table is not None else ("open", "say what it is"),
        "keep": _kept_words(table is not None, kept),
        "privacy": _privacy_words(look),
        "preview": ("done", "as planned") if look.ready is not None else ("waiting", ""),
        "release": ("done", "released")
        if finished
        else ("open", "ready")
        if look.ready is not None
        else ("waiting", ""),
    }


def _cells(size: int) -> str:
    return f"{size:,} cell{'s' * (size != 1)}"


def _kept_words(has_table: bool, kept: object) -> tuple[str, str]:
    if kept is None:
        return ("open", "tick totals") if has_table else ("waiting", "")
    height = getattr(kept, "height", 0)
    return "done", f"{height:,} total{'s' * (height != 1)}"


def _privacy_words(look: Look) -> tuple[str, str]:
    if look.plan is None:
        return ("open", "choose noise") if look.kept is not None else ("waiting", "")
    if look.measured is None:
        return "open", "working"
    return "done", f"±{look.measured.accuracy.typical:,} per cell"

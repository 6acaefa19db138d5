"""What follows from a draft, in stages, each made by the code that the shell uses and kept until its cause changes.

columns → table → kept totals → plan → margins of error and bounds → what a curator must know before the release
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from keepsum._progress import doing
from keepsum._saying import Text
from keepsum.accuracy.disclosure import Bounds, bounded_cells
from keepsum.accuracy.levels import accuracy_by_level
from keepsum.accuracy.margins import Accuracy
from keepsum.desk.jobs import BackgroundJob
from keepsum.errors import KeepsumError
from keepsum.ledger.assessment import Assessment
from keepsum.ledger.ledger import Ledger
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.releasing.codec import LEVEL
from keepsum.releasing.postprocess import check_nonnegative, checked_norm
from keepsum.releasing.release import Prepared, prepare
from keepsum.sources.headers import Header
from keepsum.sources.reading import FileForm, open_columns
from keepsum.sources.uploads import Upload
from keepsum.specs.building import kept_of, noise_of, table_of
from keepsum.specs.spec import Spec
from keepsum.tables.findings import Finding
from keepsum.tables.invariants import Invariants
from keepsum.tables.table import Table

COLUMNS, TABLE, KEPT, PLAN, MARGINS, READY = STAGES = ("columns", "table", "kept", "plan", "margins", "ready")
DOING = {
    COLUMNS: "reading the columns",
    TABLE: "reading the table",
    KEPT: "declaring the kept totals",
    PLAN: "compiling the plan",
    MARGINS: "working out margins of error and bounds",
    READY: "working out what to know before the release",
}


@dataclass(frozen=True, eq=False)
class Draft:
    """What is to be released: a file in memory, and what was said about it."""

    upload: Upload
    spec: Spec
    number: int = 0  # of the file: two files are different, whatever is in them
    digest: bytes = b""  # of what is in it: releases of the same data add up

    def keys(self) -> dict[str, bytes]:
        """What each stage depends on."""
        spec, encode = self.spec, msgspec.json.encode
        focus = list(spec.mechanism.focus or {})
        parts: dict[str, Any] = {
            COLUMNS: [self.number, spec.source.sheet, spec.source.encoding],
            TABLE: [spec.source, spec.records, spec.axes, spec.keep.margins, focus],
            KEPT: [spec.keep],
            PLAN: [spec.mechanism],
            MARGINS: [],
            READY: [spec.output.accept_pinned, spec.output.accept_delta, spec.postprocess, spec.ledger],
        }
        keys, so_far = {}, b""
        for stage in STAGES:
            so_far += encode(parts[stage])
            keys[stage] = so_far
        return keys


@dataclass(frozen=True, eq=False)
class Problem:
    """Why a stage could not be made: a sentence, and what was noticed, if that is the reason."""

    stage: str
    message: str
    finding: Finding | None = None

    def refers_to(self, option: str) -> bool:
        """Whether the sentence refers to an option, by the name of its argument."""
        return any(part.kind == "option" and part.name == option for part in Text(self.message).parts)


@dataclass(frozen=True, eq=False)
class Measured:
    """Margins of error, and the cells that the kept totals bound more tightly."""

    accuracy: Accuracy
    bounds: Bounds


@dataclass(frozen=True, eq=False)
class Ready:
    """A release that can be drawn, and what it costs in its ledger."""

    prepared: Prepared
    assessment: Assessment | None = None


@dataclass(frozen=True, eq=False)
class DraftState:
    """What is known of a draft at this moment; ``job`` is at work on what is missing, if something is."""

    made: dict[str, Any] = field(default_factory=dict)
    problem: Problem | None = None
    job: BackgroundJob | None = None

    @property
    def header(self) -> Header | None:
        """The columns of the file."""
        return self.made.get(COLUMNS)

    @property
    def table(self) -> Table | None:
        """The table."""
        return self.made.get(TABLE)

    @property
    def kept(self) -> Invariants | None:
        """The kept totals."""
        return self.made.get(KEPT)

    @property
    def plan(self) -> CompiledPlan | None:
        """The plan."""
        return self.made.get(PLAN)

    @property
    def measured(self) -> Measured | None:
        """The margins of error and bounds."""
        return self.made.get(MARGINS)

    @property
    def ready(self) -> Ready | None:
        """What can be drawn."""
        return self.made.get(READY)

    def problem_at(self, *stages: str) -> Problem | None:
        """The problem, if it is one of these stages."""
        return self.problem if self.problem is not None and self.problem.stage in stages else None


class Stages:
    """What was made last of each stage; safe to use from several threads."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, tuple[bytes, Any]] = {}
        self.ledger = ledger

    def look(self, draft: Draft, upto: str) -> tuple[DraftState, bool]:
        """What is known up to a stage, and whether that is all that can be."""
        keys = draft.keys()
        made: dict[str, Any] = {}
        with self._lock:
            for stage in STAGES[: STAGES.index(upto) + 1]:
                key, value = self._last.get(stage, (b"", None))
                if key != keys[stage]:
                    return DraftState(made), False
                if isinstance(value, Problem):
                    return DraftState(made, value), True
                made[stage] = value
        return DraftState(made), True

    def make(self, draft: Draft, upto: str, job: BackgroundJob) -> None:
        """Make what is missing, up to a stage."""
        keys = draft.keys()
        for stage in STAGES[: STAGES.index(upto) + 1]:
            look, complete = self.look(draft, stage)
            if look.problem is not None:
                return
            if complete:
                continue
            doing(DOING[stage])
            value = self._made(stage, draft, look.made, job)
            job.check()  # what was stopped must not take the place of what was made meanwhile
            with self._lock:
                self._last[stage] = keys[stage], value

    def forget(self, stage: str) -> None:
        """Make a stage again when it is asked for: something outside of the draft has changed."""
        with self._lock:
            self._last.pop(stage, None)

    def _made(self, stage: str, draft: Draft, made: dict[str, Any], job: BackgroundJob) -> Any:
        try:
            return MAKERS[stage](draft, made, job, self.ledger)
        except KeepsumError as error:
            return Problem(stage, str(error), getattr(error, "finding", None))


def _columns(draft: Draft, made: dict[str, Any], job: BackgroundJob, ledger: Ledger | None) -> Header:
    form = FileForm.checked(draft.spec.source.sheet, draft.spec.source.encoding, None, None)
    source = open_columns(draft.upload, form=form).source
    return Header(list(source.names), source)


def _measured(draft: Draft, made: dict[str, Any], job: BackgroundJob, ledger: Ledger | None) -> Measured:
    plan, table = made[PLAN], made[TABLE]
    plan.check_samplers()
    found = accuracy_by_level(plan.blocks, LEVEL)
    return Measured(found, bounded_cells(plan.structure, table.counts, found.margins))


def _ready(draft: Draft, made: dict[str, Any], job: BackgroundJob, ledger: Ledger | None) -> Ready:
    spec, plan = draft.spec, made[PLAN]
    if spec.postprocess.nonnegative:
        check_nonnegative(plan.structure, checked_norm(spec.postprocess.norm or "l1"))
    output = spec.output
    prepared = prepare(
        plan, made[TABLE], output.accept_pinned or (), progress=job.pairs, accept_delta=output.accept_delta
    )
    if ledger is None:
        return Ready(prepared)
    doing("comparing with the releases of the ledger")
    return Ready(prepared, ledger.assess([prepared.plan], spec.ledger.dataset)[-1])


MAKERS: dict[str, Callable[[Draft, dict[str, Any], BackgroundJob, Any], Any]] = {
    COLUMNS: _columns,
    TABLE: lambda draft, made, job, ledger: table_of(draft.spec, upload=draft.upload),
    KEPT: lambda draft, made, job, ledger: kept_of(draft.spec, made[TABLE]),
    PLAN: lambda draft, made, job, ledger: compile_plan(
        made[KEPT], noise_of(draft.spec.mechanism), records=made[TABLE].records
    ),
    MARGINS: _measured,
    READY: _ready,
}

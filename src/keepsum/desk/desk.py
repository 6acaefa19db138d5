"""The desk: one draft, what follows from it, the work in progress and the releases that came of it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from keepsum._text import given, how_many, shown_name
from keepsum.accounting.composition import compose
from keepsum.accounting.total import Cost
from keepsum.desk.deriving import COLUMNS, READY, Draft, DraftState, Problem, Stages
from keepsum.desk.finished import Drawing, Finished
from keepsum.desk.jobs import BackgroundJob, Worker
from keepsum.errors import InputError
from keepsum.facade.objects import ledger_of
from keepsum.ledger.ledger import Ledger
from keepsum.planning.plan import CompiledPlan
from keepsum.privacy.distance import Distance
from keepsum.releasing.wording import loss_concern
from keepsum.sources.headers import Header
from keepsum.sources.uploads import Upload
from keepsum.specs.faces import on_page
from keepsum.specs.options import with_values
from keepsum.specs.proposals import likely_columns
from keepsum.specs.spec import Charged, NoiseSpec, Output, SourceSpec, Spec
from keepsum.tables.findings import (
    BlankTotals,
    Finding,
    Following,
    NestedAxes,
    Numbers,
    Same,
    Sheets,
    Sparse,
    TotalLabels,
)

# What a curator must say to know before a release is made: that it protects little, or that it has a large delta.

LOSS, DELTA = "loss", "delta"


@dataclass(frozen=True)
class Acknowledgement:
    """A sentence about a release, and the words beside the tick that says that one knows it."""

    key: str
    sentence: str
    words: str


def to_know(plan: CompiledPlan, spec: Spec) -> list[Acknowledgement]:
    """What must be ticked before a release by this plan."""
    found = [
        Acknowledgement(LOSS, sentence, "I know that this gives little protection.")
        for sentence in loss_concern(plan.guarantee, plan.records)
    ]
    if spec.output.accept_delta is not None:
        sentence = f"What sampling adds to delta was accepted: up to {spec.output.accept_delta} for one person."
        found.append(Acknowledgement(DELTA, sentence, "I know that the limit may not hold, with this probability."))
    return found


# What is noticed in a table, in sentences of the page, which has a button for each way out.


def as_on_page(message: str, finding: Finding | None = None) -> str:
    """A message in the words of the page, or what was noticed if that is what it is about."""
    return on_page(message) if finding is None else noticed(finding)


def noticed(finding: Finding) -> str:
    """What was noticed, for a page that has a button for each way out."""
    match finding:
        case TotalLabels() | BlankTotals():
            return _totals(finding)
        case NestedAxes():
            child, parent = finding.parents[0]
            each = f"Most labels of {child!r} have" if finding.nearly else f"Each {child!r} has"
            return (
                f"{each} one {parent!r} in the data, as if nested in it. Nest it, and each {child!r} has cells in its "
                f"own {parent!r} alone."
            )
        case Same():
            first, second = finding.columns
            return f"Columns {first!r} and {second!r} determine each other, so one of them says nothing new."
        case Following():
            return f"Each {finding.axis!r} has one {finding.code!r} in the data, so {finding.code!r} says nothing new."
        case Sparse():
            return (
                f"Most of the {finding.cells:,} combinations of categories have no row, and each would become a cell. "
                f"Say under Columns which column is within which, or declare the categories."
            )
        case Numbers():
            wide = " Tables with the counts in several columns are for the shell." if finding.may_be_wide else ""
            return (
                f"Column {finding.columns[0]!r} contains numbers: it may be another measure, and whatever a table is "
                f"counted by is published as it is. What is it?{wide}"
            )
    if isinstance(finding, Sheets):
        return f"{finding.file!r} has several sheets. Which one is the table?"
    return (
        f"{finding.file!r} is text in another encoding than UTF-8. It may be {given(finding.likely)}; if not, save it "
        f"as UTF-8 and choose it again."
    )


def _totals(finding: TotalLabels | BlankTotals) -> str:
    if isinstance(finding, BlankTotals):
        return (
            f"Column {finding.column!r} is empty in {finding.row}, and the label {shown_name(finding.label)} in column "
            f"{finding.axis!r} says that this is a row of totals, which would be counted twice."
        )
    if finding.are_columns:
        return "Some columns may be totals of the others, which would be counted twice. Leave them out?"
    return (
        f"Rows with the label {shown_name(finding.labels[0])} in column {finding.axis!r} look like totals, which would "
        f"be counted twice. Leave them out, or declare the categories of {finding.axis!r} if it is one of them."
    )


# The releases that a desk has made, and what those of one file lose together: losses add up, with a ledger or
# without.
#
# The rule is that of the ledger (``accounting.compose``). It is stated for one person where all of them keep the same
# totals of the same table, and else per unit of distance, as kept totals of different tables have to be put together.


@dataclass(frozen=True)
class MadeRelease:
    """A release: the file that it was made of, what was said of that and kept, and what it cost."""

    file: bytes
    table: bytes
    cost: Cost
    person: str | None  # the loss of one person, if the release was asked for by that

    @classmethod
    def of(cls, file: bytes, spec: Spec, plan: CompiledPlan) -> MadeRelease:
        """A release of a file by this plan."""
        return cls(file, table_key(spec), Cost.of(plan.guarantee), _person(spec, plan))


def _person(spec: Spec, plan: CompiledPlan) -> str | None:
    return None if spec.mechanism.per_unit or plan.person is None else str(plan.stated_loss)


def table_key(spec: Spec) -> bytes:
    """What a table and its kept totals depend on, besides the file."""
    return msgspec.json.encode([spec.source, spec.records, spec.axes, spec.keep])


def words_on(made: Sequence[MadeRelease], spec: Spec, plan: CompiledPlan | None) -> str | None:
    """How many releases were made of a file, what they lose together, and with the one that is planned."""
    if not made:
        return None
    count = f"{how_many(len(made), 'release')} of this file {'was' if len(made) == 1 else 'were'} made"
    start = f"{count} at this page already. Losses of releases of the same data add up"
    if plan is None:
        return f"{start}."
    same = all(one.table == table_key(spec) for one in made)
    costs = [one.cost for one in made]
    before = compose(costs, same_table=same)
    after = compose([*costs, Cost.of(plan.guarantee)], same_table=same)
    person = plan.person
    if person is None or not same or plan.mechanism.focus or (person.norm == "l2" and after.norm == "l1"):
        first, then = before.at(Distance(before.norm, 1)), after.at(Distance(after.norm, 1))
        stated = [*(one.person for one in made), _person(spec, plan)]
        if all(stated) and not same:
            *earlier, now = stated
            start += (
                f". For one person, {', '.join(map(str, earlier))} so far and {now} by this one; but they keep other "
                f"totals or are of other tables, so one person may lose more than the sum"
            )
        return f"{start}: per unit of distance they are {first} so far, and {then} with this one."
    return f"{start}: one person's are {before.at(person)} so far, and {after.at(person)} with this one."


# All that a page is made of, taken together at one moment: so no page shows one draft with the number of another.


@dataclass(frozen=True, eq=False)
class Scene:
    """A draft, its version, what was asked for of it, and what else the desk has."""

    draft: Draft | None
    version: int
    # What is known of the draft: up to the stage that was asked for, and of all stages.
    look: DraftState
    whole: DraftState
    finished: Finished | None
    releasing: BackgroundJob | None
    progress: BackgroundJob | None  # the work that goes on
    is_given_up: bool
    ledger: Ledger | None
    say: Callable[[str], str]
    # The steps whose pages were opened with this file, and the releases that were made of it.
    opened: frozenset[str] = frozenset()
    made: tuple[MadeRelease, ...] = ()


# Every change is made from a version of the draft: one that was made from an earlier version, in another tab, is
# refused. A version is released once, however often the button is pressed.

PATIENCE = 1.5  # seconds that a page waits for what it shows, before it shows progress instead
LONGEST = 60  # seconds that an upload waits for the columns of its file
STALE = (
    "This page was out of date, because the draft was changed elsewhere, so nothing was changed now. This is the draft "
    "as it is: please try again."
)


class StaleError(InputError):
    """A change was made from an earlier version of the draft."""


@dataclass
class DeskState:
    """What may be changed, and only under the desk's lock."""

    draft: Draft | None = None
    version: int = 0
    deriving: dict[tuple[int, str], BackgroundJob] = field(
        default_factory=dict
    )  # by version and stage, what is at work
    releasing: BackgroundJob | None = None
    finished: Finished | None = None
    given_up: set[int] = field(default_factory=set)  # versions whose work was stopped
    opened: set[str] = field(default_factory=set)  # the steps whose pages were opened with this file
    made: list[MadeRelease] = field(default_factory=list)  # all releases


class Desk:
    """The one draft of a running page.

    Parameters
    ----------
    ledger, dataset
        As in ``keepsum release``.
    """

    def __init__(self, ledger: str | None = None, dataset: str | None = None) -> None:
        self.say = as_on_page
        self.ledger = ledger_of(ledger, dataset)
        path = None if self.ledger is None else str(self.ledger.path)
        self._charged = Charged(path=path, dataset=dataset)
        self._stages = Stages(self.ledger)
        self._worker = Worker()
        self._lock = threading.RLock()
        self._state = DeskState()

    # -- the draft ----------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The number of the draft."""
        return self._state.version

    @property
    def draft(self) -> Draft | None:
        """The draft, once there is a file."""
        return self._state.draft

    @property
    def finished(self) -> Finished | None:
        """The last release."""
        return self._state.finished

    @property
    def releasing(self) -> BackgroundJob | None:
        """The release that is being made, or the last one that was."""
        return self._state.releasing

    def put(self, upload: Upload, spec: Spec | None = None) -> None:
        """Begin a draft with a file; without a spec, the column of counts is guessed from its name."""
        own = spec or Spec(source=SourceSpec(data=upload.name), mechanism=NoiseSpec(kind="laplace", epsilon="1"))
        digest = hashlib.sha256(upload.data).digest()
        with self._lock:
            self._state.opened = set()
            self._replace(Draft(upload, _complete(own, self._charged), self._state.version + 1, digest))
        if spec is None:
            self.guess()

    def guess(self) -> None:
        """Propose the column of counts, where a name or a single column of whole numbers says which it is."""
        look = self.look(COLUMNS, LONGEST)
        with self._lock:
            draft = self._state.draft
            if look.header is None or draft is None or draft.spec.source.count or draft.spec.records.by:
                return
            likely = likely_columns(look.header)
            count = likely.count
            if count is None and not likely.wide:  # by its name alone, so that a wrong count in it is what is refused
                count = likely_columns(Header(look.header.names)).count
            if count is not None:
                self._replace(replace(draft, spec=with_values(draft.spec, {"source.count": count})))

    def change(self, version: int, change: Callable[[Spec], Spec]) -> None:
        """Change what is said in the draft.

        Raises
        ------
        StaleError
            If the draft is another one by now.
        """
        with self._lock:
            draft = self._current(version)
            spec = change(draft.spec)
            if spec != draft.spec:
                self._replace(replace(draft, spec=spec))

    def start_over(self, version: int, sure: bool) -> None:
        """Put the file and what was made of it away; a release that nobody has taken only if one is sure."""
        with self._lock:
            self._current(version)
            done = self._state.finished
            if self.is_releasing:
                raise InputError("A release is being made. Wait until it is there.")
            if done is not None and not done.is_taken and not sure:
                raise InputError("The release was not downloaded or saved, and would be lost. Start over all the same?")
            self._replace(None)
            self._state.finished, self._state.releasing, self._state.opened = None, None, set()

    def open(self, step: str) -> None:
        """Note that the page of a step was opened."""
        with self._lock:
            self._state.opened.add(step)

    def again(self, version: int) -> None:
        """Make another release of the same draft possible: a version of its own."""
        with self._lock:
            self._replace(self._current(version))

    def _current(self, version: int) -> Draft:
        if version != self._state.version:
            raise StaleError(STALE)
        if self._state.draft is None:
            raise InputError("A table must be chosen first. Go to the step Table.")
        return self._state.draft

    def _replace(self, draft: Draft | None) -> None:
        state = self._state
        state.draft, state.version = draft, state.version + 1
        for job in state.deriving.values():
            self._worker.stop(job)

    # -- what follows from it -----------------------------------------------------------------------

    def scene(self, upto: str, patience: float | None = None) -> Scene:
        """The draft and what is known of it up to a stage, after a short wait; the rest is made in the background."""
        while True:
            with self._lock:
                draft, version = self._state.draft, self._state.version
                job = None if draft is None else self._wanted(draft, version, upto)
            ended = job is None or job.wait(PATIENCE if patience is None else patience)
            with self._lock:
                state = self._state
                if version != state.version:  # another tab has changed the draft meanwhile
                    continue
                look, whole = DraftState(), DraftState()
                if draft is not None:
                    look, whole = self._stages.look(draft, upto)[0], self._stages.look(draft, READY)[0]
                if job is not None and not ended:
                    look = DraftState(look.made, look.problem, job)
                elif job is not None and job.problem is not None:
                    look = DraftState(look.made, Problem(upto, job.problem))
                made = () if draft is None else tuple(one for one in state.made if one.file == draft.digest)
                return Scene(
                    draft, version, look, whole, state.finished, state.releasing, self.progress, self.is_given_up,
                    self.ledger, self.say, frozenset(state.opened), made,
                )  # fmt: skip

    def look(self, upto: str, patience: float | None = None) -> DraftState:
        """What is known of the draft up to a stage."""
        return self.scene(upto, patience).look

    def _wanted(self, draft: Draft, version: int, upto: str) -> BackgroundJob | None:
        """The work on what is missing of a draft; None if nothing is, or if it was stopped."""
        complete = self._stages.look(draft, upto)[1]
        return None if complete or version in self._state.given_up else self._job(draft, version, upto)

    def _job(self, draft: Draft, version: int, upto: str) -> BackgroundJob:
        """The work on a draft up to a stage: several who ask for the same share it."""
        deriving = self._state.deriving
        for key in [key for key, job in deriving.items() if job.is_done]:
            del deriving[key]
        if (version, upto) not in deriving:
            deriving[version, upto] = self._worker.start(BackgroundJob(lambda job: self._stages.make(draft, upto, job)))
        return deriving[version, upto]

    def peek(self) -> DraftState:
        """What is known of the draft without any work."""
        draft = self._state.draft
        return DraftState() if draft is None else self._stages.look(draft, READY)[0]

    def stop(self) -> None:
        """Stop the work in the background; the draft stays as it is, and is not worked on until it changes."""
        with self._lock:
            running = [job for job in self._state.deriving.values() if not job.is_done]
            for job in running:
                self._worker.stop(job)
            if running:
                self._state.given_up.add(self._state.version)

    def resume(self) -> None:
        """Work on the draft again."""
        with self._lock:
            self._state.given_up.discard(self._state.version)

    @property
    def is_given_up(self) -> bool:
        """Whether the work on this draft was stopped."""
        return self._state.version in self._state.given_up

    @property
    def progress(self) -> BackgroundJob | None:
        """The work in progress."""
        with self._lock:
            jobs = [self._state.releasing, *self._state.deriving.values()]
        return next((job for job in jobs if job is not None and not job.is_done), None)

    # -- the release --------------------------------------------------------------------------------

    def release(self, version: int, known: Collection[str] = ()) -> None:
        """Release a version of the draft, once: whoever asks again gets the same release.

        ``known`` are the keys of what the curator says to know (``to_know``).
        """
        with self._lock:
            state = self._state
            if state.releasing is not None and not state.releasing.is_done:
                return
            done = state.finished
            if done is not None and done.version == version:
                if not done.is_whole:  # it is drawn, but something is still to be made of it
                    state.releasing = self._worker.start(BackgroundJob(done.complete, stoppable=False))
                return
            draft = self._current(version)
            ready = self._stages.look(draft, READY)[0].ready
            if ready is None:
                raise InputError("The draft must be complete before it is released. Go to the step that has a mark.")
            missing = [one for one in to_know(ready.prepared.plan, draft.spec) if one.key not in known]
            if missing:
                raise InputError(f"{missing[0].sentence} Tick that you know it to release the table all the same.")

            def keep(done: Finished) -> None:
                with self._lock:
                    done.digest = draft.digest
                    self._state.finished = done
                    self._state.made.append(MadeRelease.of(draft.digest, draft.spec, done.plan))

            forget = partial(self._stages.forget, READY)  # what is left of the budget has changed
            drawing = Drawing(ready.prepared, draft.spec, version, self.ledger, keep, forget)
            state.releasing = self._worker.start(BackgroundJob(drawing.run, stoppable=False))

    def remove_negative(self, version: int) -> None:
        """Make the nearest table without negative counts of the release of a version; nothing is drawn or charged."""
        with self._lock:
            done = self._state.finished
            if self.is_releasing or done is None or not done.is_whole or done.drawn.unbiased is not None:
                return
            if done.version != version:
                raise StaleError(STALE)

            def work(job: BackgroundJob) -> None:
                mended = done.without_negative(job)
                with self._lock:
                    if self._state.finished is done:
                        self._state.finished = mended

            self._state.releasing = self._worker.start(BackgroundJob(work, stoppable=False))

    @property
    def is_releasing(self) -> bool:
        """Whether a release is being made at this moment."""
        return self._state.releasing is not None and not self._state.releasing.is_done

    def close(self) -> None:
        """Stop the work in the background, but wait for a release that is being made."""
        self._worker.finish()


def _complete(spec: Spec, charged: Charged) -> Spec:
    output = spec.output if spec.output.path is not None else Output(path="released.csv")
    return msgspec.structs.replace(spec, ledger=charged, output=output)

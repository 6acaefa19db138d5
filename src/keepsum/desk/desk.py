"""The desk: one draft, what follows from it, the work in progress and the release that came of it.

Every change is made from a version of the draft: one that was made from an earlier version, in another tab, is refused.
A version is released once, however often the button is pressed.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from keepsum.desk.deriving import COLUMNS, READY, Draft, Look, Problem, Stages
from keepsum.desk.finished import Drawing, Finished
from keepsum.desk.history import Made
from keepsum.desk.jobs import Job, Worker
from keepsum.desk.knowing import to_know
from keepsum.desk.scenes import Scene
from keepsum.desk.terms import in_page_terms
from keepsum.errors import InputError
from keepsum.facade.charging import ledger_of
from keepsum.sources.uploads import Upload
from keepsum.specs.spec import Charged, Noise, Output, Source, Spec

PATIENCE = 1.5  # seconds that a page waits for what it shows, before it shows progress instead
LONGEST = 60  # seconds that an upload waits for the columns of its file
STALE = (
    "This page was out of date, because the draft was changed elsewhere, so nothing was changed now. This is the draft "
    "as it is: please try again."
)


class StaleError(InputError):
    """A change was made from an earlier version of the draft."""


@dataclass
class State:
    """What may be changed, and only under the desk's lock."""

    draft: Draft | None = None
    version: int = 0
    deriving: dict[tuple[int, str], Job] = field(default_factory=dict)  # by version and stage, what is at work
    releasing: Job | None = None
    finished: Finished | None = None
    given_up: set[int] = field(default_factory=set)  # versions whose work was stopped
    opened: set[str] = field(default_factory=set)  # the steps whose pages were opened with this file
    made: list[Made] = field(default_factory=list)  # all releases


class Desk:
    """The one draft of a running page.

    Parameters
    ----------
    ledger, dataset
        As in ``keepsum release``.
    """

    def __init__(self, ledger: str | None = None, dataset: str | None = None) -> None:
        self.say = in_page_terms
        self.ledger = ledger_of(ledger, dataset)
        path = None if self.ledger is None else str(self.ledger.path)
        self._charged = Charged(path=path, dataset=dataset)
        self._stages = Stages(self.ledger)
        self._worker = Worker()
        self._lock = threading.RLock()
        self._state = State()

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
    def releasing(self) -> Job | None:
        """The release that is being made, or the last one that was."""
        return self._state.releasing

    def put(self, upload: Upload, spec: Spec | None = None) -> None:
        """Begin a draft with a file; without a spec, the column of counts is guessed from its name."""
        own = spec or Spec(source=Source(data=upload.name), mechanism=Noise(kind="laplace", epsilon="1"))
        digest = hashlib.sha256(upload.data).digest()
        with self._lock:
            self._state.opened = set()
            self._replace(Draft(upload, _complete(own, self._charged), self._state.version + 1, digest))
        if spec is None:
            self.guess()

    def guess(self) -> None:
        """Propose the column of counts, where a name or a single column of whole numbers says which it is."""
        from keepsum.sources.headers import Header
        from keepsum.specs.count_columns import likely_columns

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
                source = msgspec.structs.replace(draft.spec.source, count=count)
                self._replace(replace(draft, spec=msgspec.structs.replace(draft.spec, source=source)))

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
                look, whole = Look(), Look()
                if draft is not None:
                    look, whole = self._stages.look(draft, upto)[0], self._stages.look(draft, READY)[0]
                if job is not None and not ended:
                    look = Look(look.made, look.problem, job)
                elif job is not None and job.problem is not None:
                    look = Look(look.made, Problem(upto, job.problem))
                made = () if draft is None else tuple(one for one in state.made if one.file == draft.digest)
                return Scene(
                    draft, version, look, whole, state.finished, state.releasing, self.progress, self.is_given_up,
                    self.ledger, self.say, frozenset(state.opened), made,
                )  # fmt: skip

    def look(self, upto: str, patience: float | None = None) -> Look:
        """What is known of the draft up to a stage."""
        return self.scene(upto, patience).look

    def _wanted(self, draft: Draft, version: int, upto: str) -> Job | None:
        """The work on what is missing of a draft; None if nothing is, or if it was stopped."""
        complete = self._stages.look(draft, upto)[1]
        return None if complete or version in self._state.given_up else self._job(draft, version, upto)

    def _job(self, draft: Draft, version: int, upto: str) -> Job:
        """The work on a draft up to a stage: several who ask for the same share it."""
        deriving = self._state.deriving
        for key in [key for key, job in deriving.items() if job.is_done]:
            del deriving[key]
        if (version, upto) not in deriving:
            deriving[version, upto] = self._worker.start(Job(lambda job: self._stages.make(draft, upto, job)))
        return deriving[version, upto]

    def peek(self) -> Look:
        """What is known of the draft without any work."""
        draft = self._state.draft
        return Look() if draft is None else self._stages.look(draft, READY)[0]

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
    def progress(self) -> Job | None:
        """The work in progress."""
        with self._lock:
            jobs = [self._state.releasing, *self._state.deriving.values()]
        return next((job for job in jobs if job is not None and not job.is_done), None)

    # -- the release --------------------------------------------------------------------------------

    def release(self, version: int, known: Collection[str] = ()) -> None:
        """Release a version of the draft, once: whoever asks again gets the same release.

        ``known`` are the keys of what the curator says to know (``knowing.to_know``).
        """
        with self._lock:
            state = self._state
            if state.releasing is not None and not state.releasing.is_done:
                return
            done = state.finished
            if done is not None and done.version == version:
                if not done.is_whole:  # it is drawn, but something is still to be made of it
                    state.releasing = self._worker.start(Job(done.complete, stoppable=False))
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
                    self._state.made.append(Made.of(draft.digest, draft.spec, done.plan))

            forget = partial(self._stages.forget, READY)  # what is left of the budget has changed
            drawing = Drawing(ready.prepared, draft.spec, version, self.ledger, keep, forget)
            state.releasing = self._worker.start(Job(drawing.run, stoppable=False))

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

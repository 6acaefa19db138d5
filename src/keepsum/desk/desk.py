"""The desk: one draft, what follows from it, the work in progress and the release that came of it.

Every change is made from a version of the draft: one that was made from an earlier version, in another tab, is refused.
A version is released once, however often the button is pressed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from keepsum.desk.deriving import COLUMNS, READY, Draft, Look, Problem, Stages
from keepsum.desk.finished import Drawing, Finished
from keepsum.desk.jobs import Job, Worker
from keepsum.desk.scenes import Scene
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


class Desk:
    """The one draft of a running page.

    Parameters
    ----------
    ledger, dataset
        As in ``keepsum release``.
    say
        How a message of the library is put: the shell passes what it does with messages itself.
    """

    def __init__(
        self, ledger: str | None = None, dataset: str | None = None, say: Callable[[str], str] = lambda message: message
    ) -> None:
        self.say = say
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
        own = spec or Spec(
            source=Source(data=upload.name), mechanism=Noise(kind="laplace", epsilon="1", per_person=True)
        )
        with self._lock:
            self._replace(Draft(upload, _complete(own, self._charged), self._state.version + 1))
        if spec is None:
            self.guess()

    def guess(self) -> None:
        """Propose the column of counts, where a name or a single column of whole numbers says which it is."""
        from keepsum.specs.count_columns import likely_columns

        look = self.look(COLUMNS, LONGEST)
        with self._lock:
            draft = self._state.draft
            if look.header is None or draft is None or draft.spec.source.count or draft.spec.records.by:
                return
            count = likely_columns(look.header).count
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

    def _replace(self, draft: Draft) -> None:
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
                return Scene(
                    draft, version, look, whole, state.finished, state.releasing, self.progress, self.is_given_up,
                    self.ledger, self.say,
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

    def release(self, version: int) -> None:
        """Release a version of the draft, once: whoever asks again gets the same release."""
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
            forget = partial(self._stages.forget, READY)  # what is left of the budget has changed
            drawing = Drawing(ready.prepared, draft.spec, version, self.ledger, self._keep, forget)
            state.releasing = self._worker.start(Job(drawing.run, stoppable=False))

    def _keep(self, finished: Finished) -> None:
        with self._lock:
            self._state.finished = finished

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

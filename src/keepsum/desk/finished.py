"""A release that was made: its files in memory, as one zip, and in a folder if the user asks for that."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from keepsum._progress import doing, failed
from keepsum._saying import Text, marked
from keepsum._threads import cores
from keepsum.accuracy.margins import Accuracy
from keepsum.desk.grids import Edges, edges_of
from keepsum.desk.jobs import BackgroundJob
from keepsum.errors import KeepsumError
from keepsum.facade.objects import draw_charged
from keepsum.ledger.ledger import Ledger
from keepsum.planning.plan import CompiledPlan
from keepsum.releasing.destination import Destination, put
from keepsum.releasing.postprocess import checked_norm, without_negative
from keepsum.releasing.release import Drawn, Prepared
from keepsum.releasing.verify import Verification, verify_files
from keepsum.report.facts import facts_of
from keepsum.report.page import Names
from keepsum.report.writing import ReportFiles, written
from keepsum.sources.atomic import write_file
from keepsum.sources.writing import own_kind, table_bytes
from keepsum.specs.spec import Spec

FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # of all files in a zip: when they were made is in the certificate


STAYS_CHARGED = "It was charged to the ledger before that, and stays charged."
UNEXPECTED = "Something failed that should not have. Please report this as a bug."


@dataclass(frozen=True, eq=False)
class Drawing:
    """A release that is charged and drawn; what was drawn is kept before anything is made of it."""

    prepared: Prepared
    spec: Spec
    version: int
    ledger: Ledger | None
    keep: Callable[[Finished], None]
    forget: Callable[[], None]  # is called once the ledger has changed

    def run(self, job: BackgroundJob) -> None:
        """Charge it, draw it, keep it, and make its files."""
        job.failed = "The release failed:"
        job.doing("drawing the noise")
        kept: list[Finished] = []
        problem = None
        try:
            self._draw(job, kept)
        except Exception as error:
            if not kept:
                raise
            why = marked(_reason(error))
            problem = Text(f"The release is charged, but the ledger could not note that it was made: {why}")
        finally:
            if self.ledger is not None:
                self.forget()
        (done,) = kept
        done.note = problem
        done.complete(job)

    def _draw(self, job: BackgroundJob, kept: list[Finished]) -> None:
        def charged() -> None:
            job.note = STAYS_CHARGED

        def keep(drawn: Drawn) -> None:
            kept.append(Finished(drawn, self.prepared.plan, self.prepared.accuracy, self.spec, self.version))
            self.keep(kept[0])

        draw_charged(self.prepared, self.ledger, self.spec.ledger.dataset, None, cores(), charged, keep)


def _reason(error: Exception) -> str:
    if isinstance(error, KeepsumError):
        return str(error)
    failed(error)
    return UNEXPECTED


@dataclass(eq=False)
class Finished:
    """A release, by which draft it was made, and what was made of it.

    ``files``, ``verification`` and ``report`` are missing until they are made, and if that fails; ``is_taken`` is
    whether somebody downloaded or saved it.
    """

    drawn: Drawn
    plan: CompiledPlan
    accuracy: Accuracy
    spec: Spec
    version: int
    files: dict[str, bytes] = field(default_factory=dict)
    verification: Verification | None = None
    report: str | None = None
    note: str | None = None
    is_taken: bool = False
    digest: bytes = b""  # of the file that it was made of
    edges: Edges | None = None  # margins of error of the totals that the page shows

    @property
    def is_whole(self) -> bool:
        """Whether all was made of it that there is to make."""
        return self.verification is not None and self.report is not None

    def complete(self, job: BackgroundJob) -> None:
        """Make of a draw what is published, as far as it is not made yet."""
        job.failed, job.unknown = "The noise is drawn and kept, but its files could not be made:", UNEXPECTED
        job.note = None
        if not self.files:
            drawn, note = self._published(job)
            files = files_of(drawn)
            self.note = " ".join(filter(None, [self.note, note])) or None
            self.drawn, self.files = drawn, files
        job.failed = "The release is made, but not all that goes with it:"
        if self.verification is None:
            doing("verifying the release")
            self.verification = verify_files(self.files)
        if self.report is None:
            doing("making the report")
            made = about(self.drawn, self.plan, self.accuracy)
            self.files = self.files | made
            self.report = made["report.html"].decode()
        if self.edges is None:
            doing("working out margins of error of totals")
            self.edges = edges_of(self.drawn.table.domain, self.plan, self.accuracy.level)

    def _published(self, job: BackgroundJob) -> tuple[Drawn, str | None]:
        """The nearest table without negative counts, if it is wanted; if it is not found, the table as it was drawn."""
        if not self.spec.postprocess.nonnegative:
            return self.drawn, None
        doing("looking for the nearest table without negative counts")
        try:
            norm = checked_norm(self.spec.postprocess.norm or "l1")
            return without_negative(self.drawn, self.plan.structure, self.plan.invariants, norm), None
        except Exception as error:
            return self.drawn, Text(f"The release is as it was drawn, with negative counts: {marked(_reason(error))}")

    def without_negative(self, job: BackgroundJob) -> Finished:
        """The same release with the nearest table without negative counts, and the one that was drawn beside it."""
        job.failed = "The release stays as it was drawn, with negative counts:"
        doing("looking for the nearest table without negative counts")
        norm = checked_norm(self.spec.postprocess.norm or "l1")
        drawn = without_negative(self.drawn, self.plan.structure, self.plan.invariants, norm)
        found = Finished(drawn, self.plan, self.accuracy, self.spec, self.version)
        found.digest, found.edges, found.files = self.digest, self.edges, files_of(drawn)
        found.complete(job)
        return found

    def zipped(self) -> bytes:
        """All files in one; what is confidential is not among them."""
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.files.items():
                archive.writestr(zipfile.ZipInfo(f"release/{name}", FIRST_DATE), data, zipfile.ZIP_DEFLATED)
        return sink.getvalue()

    def save(self, folder: str) -> str:
        """Write the release to a folder on this machine, completely or not at all; the report follows it."""
        from pathlib import Path

        place = Destination.at(folder if folder.endswith("/") else f"{folder}/", own_kind(self.drawn.table))
        with place.claimed(force=False) as orphan:
            put(self.drawn, place, None, force=False, orphan=orphan)
        self.is_taken = True
        for name, data in self.files.items():
            path = Path(folder) / name
            if not path.exists():
                write_file(path, data, force=False)
        return str(place.folder)


def files_of(drawn: Drawn) -> dict[str, bytes]:
    """The files of a release, by their names in a folder."""
    kind = own_kind(drawn.table)
    table = drawn.csv if kind == "csv" and drawn.csv else table_bytes(drawn.table, kind)
    files = {f"table.{kind}": table, "certificate.json": drawn.certificate.to_json()}
    if drawn.unbiased is not None:
        files[f"table.unbiased.{kind}"] = table_bytes(drawn.unbiased, kind)
    if drawn.invariants is not None:
        files["invariants.json"] = drawn.invariants
    return files


def about(drawn: Drawn, plan: CompiledPlan, accuracy: Accuracy) -> dict[str, bytes]:
    """What is made of a release for its readers: the report, margins of error, and the forms for registries."""
    from pathlib import Path

    names = Names("release/", "margins.csv")
    files = ReportFiles(Path("report.html"), Path("margins.csv"), names)
    facts = facts_of(replace(drawn), plan, accuracy.level, accuracy)
    return {path.name: data for path, data in written(facts, drawn.certificate, files).items()}

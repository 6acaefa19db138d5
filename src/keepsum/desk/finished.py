"""A release that was made: its files in memory, as one zip, and in a folder if the user asks for that."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keepsum.desk.jobs import Job
from keepsum.errors import PlanError
from keepsum.specs.spec import Spec

if TYPE_CHECKING:
    from keepsum.accuracy.margins import Accuracy
    from keepsum.planning.plan import CompiledPlan
    from keepsum.releasing.release import Drawn, Prepared
    from keepsum.releasing.verify import Verification

FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # of all files in a zip: when they were made is in the certificate


@dataclass(eq=False)
class Finished:
    """A release, by which draft it was made, and what was made of it.

    ``report`` is missing until it is made, and if that fails; ``is_taken`` is whether somebody downloaded or saved it.
    """

    drawn: Drawn
    plan: CompiledPlan
    accuracy: Accuracy
    spec: Spec
    version: int
    files: dict[str, bytes]
    verification: Verification | None = None
    report: str | None = None
    note: str | None = None
    is_taken: bool = field(default=False)

    def zipped(self) -> bytes:
        """All files in one; what is confidential is not among them."""
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.files.items():
                archive.writestr(zipfile.ZipInfo(f"release/{name}", FIRST_DATE), data, zipfile.ZIP_DEFLATED)
        self.is_taken = True
        return sink.getvalue()

    def save(self, folder: str) -> str:
        """Write the release to a folder on this machine, completely or not at all; the report follows it."""
        from pathlib import Path

        from keepsum.releasing.destination import Destination, put
        from keepsum.sources.atomic import write_file
        from keepsum.sources.writing import own_kind

        place = Destination.at(folder if folder.endswith("/") else f"{folder}/", own_kind(self.drawn.table))
        with place.claimed(force=False) as orphan:
            put(self.drawn, place, None, force=False, orphan=orphan)
        self.is_taken = True
        for name, data in self.files.items():
            path = Path(folder) / name
            if not path.exists():
                write_file(path, data, force=False)
        return str(place.folder)


def finish(
    drawn: Drawn, prepared: Prepared, spec: Spec, version: int, job: Job, keep: Callable[[Finished], None]
) -> None:
    """Make of a draw what is published; whatever fails after the draw, what was drawn is kept."""
    from keepsum.releasing.verify import verify_files

    drawn, note = _published(drawn, prepared, spec, job)
    done = Finished(drawn, prepared.plan, prepared.accuracy, spec, version, files_of(drawn), note=note)
    keep(done)
    job.doing("verifying the release")
    done.verification = verify_files(done.files)
    job.doing("making the report")
    done.files |= about(drawn, prepared.plan, prepared.accuracy)
    done.report = done.files["report.html"].decode()


def _published(drawn: Drawn, prepared: Prepared, spec: Spec, job: Job) -> tuple[Drawn, str | None]:
    """The nearest table without negative counts, if it is wanted; if it is not found, the table as it was drawn."""
    from keepsum.releasing.postprocess import checked_norm, without_negative

    if not spec.postprocess.nonnegative:
        return drawn, None
    job.doing("looking for the nearest table without negative counts")
    plan = prepared.plan
    try:
        norm = checked_norm(spec.postprocess.norm or "l1")
        return without_negative(drawn, plan.structure, plan.invariants, norm), None
    except PlanError as error:
        return drawn, f"The release is as it was drawn, with negative counts: {error}"


def files_of(drawn: Drawn) -> dict[str, bytes]:
    """The files of a release, by their names in a folder."""
    from keepsum.sources.writing import own_kind, table_bytes

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

    from keepsum.report.facts import facts_of
    from keepsum.report.page import Names
    from keepsum.report.writing import ReportFiles, written

    names = Names("release/", "margins.csv")
    files = ReportFiles(Path("report.html"), Path("margins.csv"), names)
    facts = facts_of(replace(drawn), plan, accuracy.level, accuracy)
    return {path.name: data for path, data in written(facts, drawn.certificate, files).items()}

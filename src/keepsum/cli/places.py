"""Where the releases of a call are written, and what they must not overwrite: one another, or what they come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keepsum.cli.screen import shown
from keepsum.cli.standard_output import destination
from keepsum.errors import InputError

if TYPE_CHECKING:
    from keepsum.releasing.destination import Destination
    from keepsum.specs.job import Job
    from keepsum.specs.spec import Marginal


def place_of(job: Job, kind: str = "csv") -> Destination:
    """Where a release is written, with a table of this kind if it is a folder."""
    output = job.spec.output
    return destination(str(output.path), None if output.certificate is None else Path(output.certificate), kind)


def check_places(jobs: Sequence[Job], marginals: Sequence[Marginal], force: bool) -> None:
    """Refuse outputs that would overwrite one another, and sums with no place or over what a release is made from."""
    from keepsum.releasing.destination import check_sums

    places = [place_of(job) for job in jobs]
    outputs = [list(place.files) if place.folder is None else [place.folder] for place in places]
    for k, file in enumerate(Path(marginal.output) for marginal in marginals):
        with jobs[0].located_at(("marginal", k, "output")):
            check_sums(file, force)
            check_not_source([file], jobs)
        outputs.append([file])
    for k, files in enumerate(outputs):
        earlier = [file.resolve() for others in outputs[:k] for file in others]
        for file in (file.resolve() for file in files):
            if any(file == other or other in file.parents or file in other.parents for other in earlier):
                raise InputError(
                    f"Outputs must be different places, none within another, got {shown(files[0])!r} after another. "
                    f"Choose another name."
                )


def check_not_source(files: Iterable[Path], jobs: Sequence[Job]) -> None:
    """No output may be, or be in the folder of, what a release is made from: not even with --force."""
    inputs = {path.resolve() for job in jobs for path in job.inputs()}
    for file in (file.resolve() for file in files):
        if file in inputs or any(parent in inputs for parent in file.parents):
            raise InputError(
                "Output must not be the confidential table itself, another input, or in a folder of records. Choose "
                "another name."
            )


def files_of(place: Destination) -> Sequence[Path]:
    """The files that a release may be written to; in a folder, its format is known only once the table is read."""
    from keepsum.sources.writing import KINDS

    if place.folder is None:
        return place.files
    tables = [place.folder / f"{name}{ending}" for name in ("table", "table.unbiased") for ending in KINDS]
    return [*tables, place.certificate, place.invariants, *place.about]

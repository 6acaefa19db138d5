"""A report as files: what they are called, what they must not replace, and how they are written.

``written`` is the list of all files that are made of a release for its readers; another kind of file is added there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keepsum._extras import check_installed
from keepsum.accuracy.margins import Accuracy
from keepsum.errors import InputError
from keepsum.planning.plan import CompiledPlan
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import LEVEL
from keepsum.releasing.destination import MARGINS, REGISTRY, REPORT, REVIEW, certificates_around, claimed_for
from keepsum.releasing.release import Drawn
from keepsum.report import registry, review
from keepsum.report.facts import ReportFacts, facts_of
from keepsum.report.page import MOST_CELLS, Names, page
from keepsum.sources.atomic import check_new, write_file

ENDINGS = (".html", ".htm")
OF_A_RELEASE = "Output {!r} must not replace a file of a release. Choose another name."


@dataclass(frozen=True)
class ReportFiles:
    """Where the files of a report go."""

    report: Path  # the page. An entry for the public registry of deployments and answers for reviewers go beside it
    # The table with margins of error; None: only if the page has no room for all cells, and then beside the page.
    margins: Path | None
    names: Names  # what the files are called in the page
    # The certificate of the release, if it is saved: if another one is there in the end, nothing is left behind.
    certificate: Path | None = None

    @classmethod
    def of(
        cls, release: Path, report: Path | None = None, margins: Path | None = None, certificate: Path | None = None
    ) -> ReportFiles:
        """For the table or the folder of a release; by default they are in the folder, or beside the table."""
        is_folder = release.is_dir()
        page_file = report or (release / REPORT if is_folder else release.with_suffix(f".{REPORT}"))
        name = f"{release.resolve().name}/" if is_folder else release.name
        beside = MARGINS if is_folder else f"{release.stem}.{MARGINS}"
        return cls(page_file, margins, Names(name, margins.name if margins is not None else beside), certificate)

    @property
    def registry(self) -> Path:
        """The entry for the registry."""
        return self._beside(REGISTRY)

    @property
    def review(self) -> Path:
        """The answers to questions that reviewers ask."""
        return self._beside(REVIEW)

    def _beside(self, name: str) -> Path:
        """``registry.json`` beside ``report.html``, and ``released.registry.json`` beside ``released.report.html``."""
        stem = f".{self.report.stem}".removesuffix(".report").removeprefix(".")
        return self.report.with_name(f"{stem}.{name}" if stem else name)

    def margins_of(self, cells: int) -> Path | None:
        """Where the table with margins goes, if it is written for so many cells."""
        if self.margins is None and cells > MOST_CELLS:
            return self.report.with_name(self.names.margins)
        return self.margins

    def check(self, released: Iterable[Path], force: bool, cells: int = 0) -> None:
        """Refuse what must not be written: ``released`` are the files of the release."""
        if self.report.suffix.lower() not in ENDINGS:
            raise InputError(f"The report must be a file such as 'report.html', got {str(self.report)!r}.")
        margins = self.margins_of(cells)
        if margins is not None and margins.suffix.lower() != ".csv":
            raise InputError(f"The file of margins must be a file such as 'margins.csv', got {str(margins)!r}.")
        taken = {path.resolve() for path in released}
        for path in (self.report, margins, self.registry, self.review):
            if path is None:
                continue
            check_new(path, force)
            if path.resolve() in taken:
                raise InputError(OF_A_RELEASE.format(str(path)))
            self.check_not_of_another(path)

    def check_not_of_another(self, path: Path) -> None:
        """Refuse a file that is, or would be taken for, a part of another release."""
        if any(certificate.exists() for certificate in self.others(path)):
            raise InputError(OF_A_RELEASE.format(str(path)))

    def others(self, path: Path) -> list[Path]:
        """The certificates that another release has if a file is taken for a part of it, whether or not they exist."""
        own = self.certificate  # without one it may be any of those that are there
        around = [] if own is None else [file for file in certificates_around(path) if file.resolve() != own.resolve()]
        return [path.with_suffix(".certificate.json"), *around]


def report_html(release: Drawn, plan: CompiledPlan, level: float = LEVEL, names: Names | None = None) -> str:
    """The report of a release as one HTML file."""
    check_installed("A report", "report")
    return page(facts_of(release, plan, level), names or Names(), _version())


def write_report(
    release: Drawn,
    plan: CompiledPlan,
    files: ReportFiles,
    level: float = LEVEL,
    force: bool = False,
    known: Accuracy | None = None,
) -> list[Path]:
    """Write the files of a report, each completely or not at all, the page last; returns them, the page first.

    ``known`` are the margins of error, if they have been worked out.
    """
    check_installed("A report", "report")
    filled_in = _filled_in(files.registry)
    contents = written(facts_of(release, plan, level, known), release.certificate, files, filled_in)
    for path in contents:
        check_new(path, force)
    for path, data in reversed(list(contents.items())):
        with claimed_for(files.others(path), path):
            files.check_not_of_another(path)  # again: a release may have come there since
            write_file(path, data, force)
    if files.certificate is not None and not _is_of(files.certificate, release):
        for path in contents:
            path.unlink(missing_ok=True)
        raise InputError("The release was replaced by another while its report was made. Make the report again.")
    return list(contents)


def written(
    facts: ReportFacts, certificate: CertificateRecord, files: ReportFiles, filled_in: Mapping[str, Any] | None = None
) -> Mapping[Path, bytes]:
    """The files of a report and their contents, the page first; ``filled_in`` is what a publisher has entered."""
    margins = files.margins_of(facts.published.cells)
    return {
        files.report: page(facts, files.names, _version()).encode(),
        **({} if margins is None else {margins: facts.cells.to_csv()}),
        files.registry: registry.as_json(registry.registry_entry(certificate, filled_in)),
        files.review: review.as_markdown(certificate).encode(),
    }


def _filled_in(file: Path) -> Mapping[str, Any] | None:
    """What the publisher has filled in, if there is an entry already: it stays when the report is made again."""
    try:
        return registry.filled_in(file.read_bytes())
    except (OSError, InputError):
        return None


def _is_of(file: Path, release: Drawn) -> bool:
    """Whether a certificate is still that of a release; whoever replaces it later removes the report."""
    try:
        return CertificateRecord.from_json(file.read_bytes()).table.sha256 == release.certificate.table.sha256
    except (OSError, InputError):
        return False


def _version() -> str:
    from importlib.metadata import version  # slow to import, and nothing else here needs it

    return version("keepsum")

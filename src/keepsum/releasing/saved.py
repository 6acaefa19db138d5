"""What a saved release states: its certificate, wherever it is, and its file of invariants."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from keepsum._arguments import check_path
from keepsum.errors import InputError
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.destination import belongs_to, beside_certificate, is_in_folder
from keepsum.releasing.files import read_together, steady
from keepsum.sources.uploads import Upload


def read_certificate(path: str | PathLike[str]) -> CertificateRecord:
    """The certificate in a file, in the folder of a release, or beside a released table."""
    return read_statement(path)[0]


def read_statement(path: str | PathLike[str]) -> tuple[CertificateRecord, bytes | None]:
    """That certificate, and the file of invariants of the same release, if there is one."""
    given = check_path(path, "The certificate")
    certificate, invariants = steady([given], lambda: _read(given))
    return CertificateRecord.from_json(certificate.data), None if invariants is None else invariants.data


def _read(given: Path) -> tuple[Upload, Upload | None] | None:
    file = _certificate_file(given)
    found = read_together([given], [file, beside_certificate(file)[0]])
    return None if found is None or found[0] is None else (found[0], found[1])


def _certificate_file(path: Path) -> Path:
    file = path
    if path.is_dir():
        file = path / "certificate.json"
    elif is_in_folder(path):
        file = path.with_name("certificate.json")
    elif path.suffix.lower() != ".json":
        file = path.with_suffix(".certificate.json") if path.name else path
    if not file.is_file():
        what = "but it is a folder" if file.is_dir() else "and there is none"
        advice = belongs_to(path) or " Check the name."
        if not (path.suffix or path.exists()):  # meant as a folder
            raise InputError(f"The release {str(path)!r} must be a file or the folder of a release, {what}.{advice}")
        raise InputError(f"The certificate {str(file)!r} must be a file, {what}.{advice}")
    return file

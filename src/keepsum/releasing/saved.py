"""The certificate of a saved release, wherever it is."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from keepsum._arguments import check_path
from keepsum.errors import InputError
from keepsum.releasing.certificate import Certificate
from keepsum.releasing.destination import belongs_to, beside_certificate, is_in_folder
from keepsum.releasing.files import read_bytes


def read_certificate(path: str | PathLike[str]) -> Certificate:
    """The certificate in a file, in the folder of a release, or beside a released table."""
    given = check_path(path, "The certificate")
    return Certificate.from_json(read_bytes(_certificate_file(given)))


def read_invariants(path: str | PathLike[str]) -> bytes | None:
    """The file of invariants beside that certificate, if there is one."""
    invariants, _ = beside_certificate(_certificate_file(check_path(path, "The certificate")))
    return read_bytes(invariants) if invariants.is_file() else None


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

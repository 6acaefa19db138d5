"""A saved release, read back from its files; and its certificate alone."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from keepsum._arguments import check_path
from keepsum.errors import InputError
from keepsum.releasing.certificate import Certificate
from keepsum.releasing.codec import kept_invariants, kept_values
from keepsum.releasing.verify import Files, read_bytes
from keepsum.sources.declarations import read_released
from keepsum.sources.writing import table_hash
from keepsum.tables.released import ReleasedTable


@dataclass(frozen=True, eq=False)
class Saved:
    """The files of a release, and in which ways the table is not that of the certificate."""

    table: ReleasedTable
    certificate: Certificate
    invariants: bytes | None
    problems: tuple[str, ...]


def read_saved(path: str | PathLike[str], certificate: str | PathLike[str] | None = None) -> Saved:
    """Read a release: the table over the domain of the certificate, its hash and its totals compared."""
    files = Files.of(path, certificate)
    record = Certificate.from_json(read_bytes(files.certificate))
    sidecar = files.sidecar()
    kept = kept_invariants(record, sidecar)
    if kept.domain is None:
        raise AssertionError("the totals of a certificate have its domain")
    table = read_released(files.table, kept.domain, record.table.count)
    problems = []
    if table_hash(table) != record.table.sha256:
        problems.append("its hash is another")
    if [int(total) for total in kept.totals(table)] != list(kept_values(record.kept)):
        problems.append("kept totals differ")
    return Saved(table, record, sidecar, tuple(problems))


def read_certificate(path: str | PathLike[str]) -> Certificate:
    """The certificate in a file, in the folder of a release, or beside a released table."""
    given = check_path(path, "The certificate")
    return Certificate.from_json(read_bytes(_certificate_file(given)))


def _certificate_file(path: Path) -> Path:
    file = path
    if path.is_dir():
        file = path / "certificate.json"
    elif path.suffix.lower() != ".json":
        file = path.with_suffix(".certificate.json") if path.name else path
    if not file.is_file():
        what = "but it is a folder" if file.is_dir() else "and there is none"
        raise InputError(f"The certificate {str(file)!r} must be a file, {what}. Check the name.")
    return file

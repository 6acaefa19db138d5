"""The files of a release, on disk or in memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from keepsum._arguments import check_path
from keepsum._memory import BYTES_A_BYTE, check_room
from keepsum.errors import InputError
from keepsum.releasing.destination import belongs_to, beside_certificate, release_of
from keepsum.sources.atomic import put_back
from keepsum.sources.parquet_folders import is_parquet_folder
from keepsum.sources.special_files import kind_of
from keepsum.sources.uploads import Upload

Pathlike = str | PathLike[str]
File: TypeAlias = Path | Upload


@dataclass(frozen=True)
class Files:
    """The files of a release, on disk or in memory; in memory, those that it has not are None."""

    table: File
    certificate: File
    invariants: File | None
    unbiased: File | None

    @classmethod
    def of(cls, table: Pathlike, certificate: Pathlike | None) -> Files:
        """The files beside a table or in a folder, all of which must exist."""
        path = check_path(table, "The released table")
        if certificate is None:
            path = release_of(path)
        if os.fspath(table).endswith(("/", os.sep)) and not path.is_dir():
            raise InputError(f"The release {os.fspath(table)!r} must be a folder, {_instead(path)}. Check the name.")
        try:
            return cls._beside(path, certificate)
        except OSError as error:  # a name that is too long, a folder that cannot be read
            raise InputError(f"The released table must be readable, but: {error.strerror or error}.") from None

    @classmethod
    def _beside(cls, path: Path, certificate: Pathlike | None) -> Files:
        for destination in (path, path.with_suffix(".certificate.json")) if path.name else ():
            put_back(destination)  # a release that a killed process was replacing
        tables = sorted(file for file in path.iterdir() if file.stem == "table") if path.is_dir() else []
        if path.is_dir() and (tables or not is_parquet_folder(path)):
            if len(tables) != 1:
                raise InputError(f"Folder {str(path)!r} must contain one table, got {len(tables)}.")
            beside, path = path / "certificate.json", tables[0]
        else:
            beside = path.with_suffix(".certificate.json")
        document = beside if certificate is None else check_path(certificate, "The certificate")
        for file, what in ((path, "table"), (document, "certificate")):
            if not (file.is_file() or (what == "table" and is_parquet_folder(file))):
                form = "a file" if file.suffix else "a file or the folder of a release"
                advice = belongs_to(path) or " Check the name."
                raise InputError(f"The {what} {str(file)!r} must be {form}, {_instead(file)}.{advice}")
        invariants, beside_document = beside_certificate(document)
        unbiased = path.with_suffix(f".unbiased{path.suffix}")
        if not unbiased.is_file() and beside_document.is_file():  # the table was written to standard output
            unbiased = beside_document
        return cls(path, document, invariants, unbiased)

    def sidecar(self) -> bytes | None:
        """The file of invariants, if there is one."""
        found = self.invariants is not None and is_there(self.invariants)
        return read_bytes(self.invariants) if found and self.invariants is not None else None


def is_there(file: File) -> bool:
    """Whether a release has this file."""
    return isinstance(file, Upload) or file.is_file()


def _instead(path: Path) -> str:
    """What is at a path where something else should be."""
    if not path.exists():
        return "and there is none"
    return f"but it is {kind_of(path)}"


def read_bytes(path: File) -> bytes:
    """The contents of a file."""
    if isinstance(path, Upload):
        return path.data
    try:
        check_room(path.stat().st_size, f"File {path.name!r}", BYTES_A_BYTE)
        return path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"File {str(path)!r} must be readable, but: {error.strerror or error}.") from None


class UnreadableError(InputError):
    """A file that cannot be read is not a failed check: nothing is known about it."""

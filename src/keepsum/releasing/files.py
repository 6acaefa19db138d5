"""The files of a release, on disk or in memory, and how they are read while another process may replace them.

A release is replaced by renames alone: a file is never changed once it has its name. From before the first rename until
after the last there is a backup beside it (``sources/replacing.py``), unless its folder is exchanged in one step. So
the files are opened, the table first; they are one release if there is no backup then, and every name still stands for
the file that was opened, the table's last. An open file keeps its number, so that no new file can be taken for it. No
lock is needed, so that nobody has to wait for a reader, who may be somebody who cannot write there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias, TypeVar

from keepsum._arguments import check_path
from keepsum._memory import BYTES_A_BYTE, check_room
from keepsum.errors import InputError
from keepsum.releasing.destination import belongs_to, beside_certificate, is_table_of_folder, release_of
from keepsum.sources.atomic import put_back
from keepsum.sources.parquet_folders import is_parquet_folder
from keepsum.sources.replacing import backup_path
from keepsum.sources.special_files import kind_of
from keepsum.sources.uploads import Upload

Pathlike = str | PathLike[str]
File: TypeAlias = Path | Upload
T = TypeVar("T")

# Seconds before each look at a release that is being replaced, which takes a moment unless its process was stopped.
PAUSES = (0.0, 0.0, 0.0, 0.001, 0.01, *[0.05] * 200)
REPLACED = "The release {!r} must stay as it is while it is read, but it is replaced again and again. Try again."


class Paths(NamedTuple):
    """Where the files of a release are; the last two need not exist."""

    table: Path
    certificate: Path
    invariants: Path
    unbiased: Path

    @classmethod
    def of(cls, table: Pathlike, certificate: Pathlike | None) -> Paths:
        """The files beside a table or in a folder, whose table and certificate must exist."""
        path, document = _checked(table, certificate)
        return steady([path, document], lambda: _found(table, path, document))


@dataclass(frozen=True)
class Files:
    """The files of a release in memory, those that it has not are None; a table may be a folder of Spark's."""

    table: File
    certificate: Upload
    invariants: Upload | None
    unbiased: Upload | None

    @classmethod
    def read(cls, table: Pathlike, certificate: Pathlike | None) -> Files:
        """The files beside a table or in a folder, as they were together at one moment."""
        path, document = _checked(table, certificate)
        return steady([path, document], lambda: cls._read([path, document], _found(table, path, document)))

    @classmethod
    def _read(cls, given: Sequence[Path | None], paths: Paths) -> Files | None:
        is_folder = paths.table.is_dir()  # which nobody replaces
        contents = read_together(given, paths[1:] if is_folder else paths)
        if contents is None:
            return None
        table = paths.table if is_folder else contents[0]
        certificate, invariants, unbiased = contents[-3:]
        if table is None or certificate is None:
            return None
        return cls(table, certificate, invariants, unbiased)


def steady(given: Sequence[Path | None], look: Callable[[], T | None]) -> T:
    """What a look at a release finds: again, if it finds None or a problem because the release is being replaced.

    ``given`` are the paths that it was named by.
    """
    problem: InputError | None = None
    for pause in PAUSES:
        time.sleep(pause)
        before, problem = _state(given), None
        try:
            found = look()
            if found is not None:
                return found
        except InputError as error:
            problem = error
        if problem is not None and before is not None and before == _state(given):
            break
    raise problem or InputError(REPLACED.format(str(given[0])))


def _state(given: Sequence[Path | None]) -> list[tuple[int, int] | None] | None:
    """What these paths stand for; None while a release there is being replaced."""
    return None if _is_being_replaced(given) else [_number(path) for path in given if path is not None]


def read_together(given: Sequence[Path | None], paths: Sequence[Path]) -> list[Upload | None] | None:
    """The contents of files of one release, the table first, None for those that it has not.

    Nothing, if they may be of two releases; ``given`` are the paths that the release was named by.
    """
    with ExitStack() as stack:
        opened = [_opened(path, stack) for path in paths]
        pairs = list(zip(paths, opened, strict=True))
        if _is_being_replaced(given) or not all(_is_still(*pair) for pair in reversed(pairs)):
            return None
        return [None if file is None else Upload(path.name, _all(path, file)) for path, file in pairs]


def _checked(table: Pathlike, certificate: Pathlike | None) -> tuple[Path, Path | None]:
    document = None if certificate is None else check_path(certificate, "The certificate")
    return check_path(table, "The released table"), document


def _found(table: Pathlike, path: Path, certificate: Path | None) -> Paths:
    """The files of a release; one that a killed process was replacing is restored first."""
    for place in _places([path, certificate]):
        put_back(place)
    if certificate is None:
        path = release_of(path)
    if os.fspath(table).endswith(("/", os.sep)) and not path.is_dir():
        raise InputError(f"The release {os.fspath(table)!r} must be a folder, {_instead(path)}. Check the name.")
    try:
        return _beside(path, certificate)
    except OSError as error:  # a name that is too long, a folder that cannot be read
        raise InputError(f"The released table must be readable, but: {error.strerror or error}.") from None


def _beside(path: Path, certificate: Path | None) -> Paths:
    tables = sorted(filter(is_table_of_folder, path.iterdir())) if path.is_dir() else []
    if path.is_dir() and (tables or not is_parquet_folder(path)):
        if len(tables) != 1:
            raise InputError(f"Folder {str(path)!r} must contain one table, got {len(tables)}.")
        beside, path = path / "certificate.json", tables[0]
    else:
        beside = path.with_suffix(".certificate.json")
    document = beside if certificate is None else certificate
    for file, what in ((path, "table"), (document, "certificate")):
        if not (file.is_file() or (what == "table" and is_parquet_folder(file))):
            form = "a file" if file.suffix else "a file or the folder of a release"
            advice = belongs_to(path) or " Check the name."
            raise InputError(f"The {what} {str(file)!r} must be {form}, {_instead(file)}.{advice}")
    invariants, beside_document = beside_certificate(document)
    unbiased = path.with_suffix(f".unbiased{path.suffix}")
    if not unbiased.is_file() and beside_document.is_file():  # the table was written to standard output
        unbiased = beside_document
    return Paths(path, document, invariants, unbiased)


def _places(given: Sequence[Path | None]) -> Iterator[Path]:
    """What the backups are named after of releases that these paths may be of: folders, and certificates."""
    for path in given:
        if path is None:
            continue
        place = Path(os.path.realpath(path))
        yield from (folder for folder in (place, place.parent) if folder.name)
        for file in {path, place}:  # one by its own name, and what a link leads to
            if file.name:
                yield file if file.name.endswith(".certificate.json") else file.with_suffix(".certificate.json")


def _is_being_replaced(given: Sequence[Path | None]) -> bool:
    return any(backup_path(place).is_dir() for place in _places(given))


def _opened(path: Path, stack: ExitStack) -> BinaryIO | None:
    try:
        return stack.enter_context(path.open("rb")) if path.is_file() else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from None


def read_bytes(path: Path) -> bytes:
    """The contents of a file."""
    try:
        with path.open("rb") as file:
            return _all(path, file)
    except OSError as error:
        raise _unreadable(path, error) from None


def _all(path: Path, file: BinaryIO) -> bytes:
    try:
        check_room(os.fstat(file.fileno()).st_size, f"File {path.name!r}", BYTES_A_BYTE)
        return file.read()
    except OSError as error:
        raise _unreadable(path, error) from None


def _number(path: Path) -> tuple[int, int] | None:
    """What tells a file or folder from all others that exist; None if it does not."""
    with suppress(OSError):
        return _inode(path.stat())
    return None


def _is_still(path: Path, file: BinaryIO | None) -> bool:
    """Whether a name stands for the file that was opened, or for none if none was."""
    now = _number(path) if path.is_file() else None
    return now == (None if file is None else _inode(os.fstat(file.fileno())))


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _instead(path: Path) -> str:
    """What is at a path where something else should be."""
    if not path.exists():
        return "and there is none"
    return f"but it is {kind_of(path)}"


def _unreadable(path: Path, error: OSError) -> UnreadableError:
    return UnreadableError(f"File {str(path)!r} must be readable, but: {error.strerror or error}.")


class UnreadableError(InputError):
    """A file that cannot be read is not a failed check: nothing is known about it."""

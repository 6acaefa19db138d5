"""Where a release is written, completely or not at all, and how its files are read while another process writes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from keepsum._arguments import check_path
from keepsum._memory import BYTES_A_BYTE, check_room
from keepsum._saying import the
from keepsum.errors import InputError, UnreachableError
from keepsum.releasing.canonical import sign
from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.codec import json_file
from keepsum.releasing.release import Drawn
from keepsum.sources.atomic import (
    BUSY,
    backup_path,
    check_new,
    check_new_folder,
    claimed,
    put_back,
    write_file,
    write_folder,
    write_release,
)
from keepsum.sources.reading import is_parquet_folder
from keepsum.sources.uploads import Upload, kind_of_path
from keepsum.sources.writing import KINDS, kind_of, table_bytes

# What is made of a release for its readers, in its folder; beside a single table, after its name and a dot. A new
# release leaves none of it behind, because it would be that of another table.
REPORT, MARGINS, REGISTRY, REVIEW = "report.html", "margins.csv", "registry.json", "reviewer-questions.md"
ABOUT = (REPORT, MARGINS, REGISTRY, REVIEW)
TABLES = ("table", "table.unbiased")  # the tables in the folder of a release, without the ending of their format


def belongs_to(path: Path) -> str:
    """A sentence, if a file is the unbiased table of a release, on what to name instead; else nothing."""
    name = Path(path.stem)
    if name.suffix != ".unbiased":
        return ""
    in_folder = name.stem == "table" and path.with_name("certificate.json").is_file()
    what, place = ("folder", path.parent) if in_folder else ("table", path.with_name(f"{name.stem}{path.suffix}"))
    return f" This is the unbiased table of a release: name its {what}, {str(place)!r}."


def is_table_of_folder(path: Path) -> bool:
    """Whether a file is the table of a release, by its name, if it is in the folder of one.

    >>> [is_table_of_folder(Path("out") / name) for name in ("table.csv", "table.html", "table.unbiased.csv")]
    [True, False, False]
    """
    return path.stem == "table" and path.suffix.lower() in KINDS


def is_in_folder(path: Path) -> bool:
    """Whether a file is the table in the folder of a release, which has no certificate of its own name."""
    beside, own = path.with_name("certificate.json"), path.with_suffix(".certificate.json")
    return is_table_of_folder(path) and beside.is_file() and not own.exists()


def release_of(path: Path) -> Path:
    """The table or folder of the release that a certificate is of, by its name; any other path as it is.

    The table in the folder of a release, which ``Release.save`` returns, stands for the folder.

    >>> [str(release_of(Path(name))) for name in ("out/certificate.json", "r.certificate.json", "r.csv")]
    ['out', 'r.csv', 'r.csv']
    """
    if path.name == "certificate.json" or is_in_folder(path):
        return path.parent
    tables = tables_of(path)
    return next((table for table in tables if table.is_file()), tables[0] if tables else path)


def tables_of(certificate: Path) -> list[Path]:
    """The names that the table of a certificate may have beside it, by the name of that; none if it has another name.

    >>> [table.name for table in tables_of(Path("r.certificate.json"))][:2], tables_of(Path("r.json"))
    (['r.csv', 'r.tsv'], [])
    """
    if certificate.name != "certificate.json" and not certificate.name.endswith(".certificate.json"):
        return []
    stem = _stem(certificate).removesuffix(".") or "table"
    return [certificate.with_name(f"{stem}{ending}") for ending in KINDS]


@dataclass(frozen=True, eq=False)
class Destination:
    """Where a release is written: a folder, a table with its certificate beside it, or standard output.

    The caller writes a table to standard output; only the files that belong to it are written here.
    """

    folder: Path | None
    table: Path
    certificate: Path
    invariants: Path
    unbiased: Path
    is_stream: bool = False

    @classmethod
    def at(cls, output: str | PathLike[str], kind: str = "csv") -> Destination:
        """A folder if the name ends in a slash or is one, else the file of the table."""
        path = check_path(output, "Output")
        if not os.fspath(output):
            raise InputError("Output must be the name of a file or a folder, got an empty name.")
        if _is_loop(path):
            raise UnreachableError(
                f"Output must be in an existing folder, but {str(path)!r} is a link that leads to itself."
            )
        if os.fspath(output).endswith(("/", os.sep)) or path.is_dir():
            return cls(
                path,
                path / f"table.{kind}",
                path / "certificate.json",
                path / "invariants.json",
                path / f"table.unbiased.{kind}",
            )
        if path.suffix == "":
            raise InputError(
                f"Output must be a file such as 'released.csv' or a folder such as 'out/', got {str(path)!r}."
            )
        return cls(
            None,
            path,
            path.with_suffix(".certificate.json"),
            path.with_suffix(".invariants.json"),
            path.with_suffix(f".unbiased{path.suffix}"),
        )

    @classmethod
    def standard_output(cls, certificate: str | PathLike[str]) -> Destination:
        """Standard output, and a certificate in a file; whatever else there is has a name like the certificate's."""
        path = check_path(certificate, "The certificate")
        if path.suffix != ".json":
            raise InputError(
                f"The certificate must be a file such as 'released.certificate.json', got {os.fspath(certificate)!r}."
            )
        return cls(None, Path("-"), path, *beside_certificate(path), is_stream=True)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that a release may consist of, and those that may have been made of it."""
        table = () if self.is_stream else (self.table,)
        return (*table, self.certificate, self.invariants, self.unbiased, *self.about)

    @property
    def about(self) -> tuple[Path, ...]:
        """What may have been made of a release there, such as a report."""
        stem = _stem(self.certificate)
        return tuple(self.certificate.with_name(f"{stem}{name}") for name in ABOUT)

    @property
    def key(self) -> Path:
        """What its lock is named after; tables in other formats share the certificate, and so the lock."""
        return self.certificate if self.folder is None else self.folder.resolve()

    def put_back(self) -> bool:
        """Put back a release that a killed process was replacing; True if there was one."""
        return bool(self.key.name) and put_back(self.key)

    @contextmanager
    def claimed(self, force: bool, busy: str = BUSY) -> Iterator[bool]:
        """Hold the lock, so that nobody else writes there; yields whether an orphan certificate will be replaced."""
        self.check(force)
        place = self.certificate if self.is_stream else self.table
        with claimed(self.key, busy, place if self.folder is None else self.folder):
            put_back(self.key, held=True)
            yield self.check(force)

    def check(self, force: bool) -> bool:
        """Refuse what cannot or must not be written; True if an orphan certificate will be replaced."""
        try:
            return self._check(force)
        except OSError as error:
            raise UnreachableError(
                f"Output {the.file(self.key)} must be readable, but: {error.strerror or error}."
            ) from None

    def _check(self, force: bool) -> bool:
        for path in self.files if self.folder is None else [self.folder]:
            for other in certificates_around(path):
                if other != self.certificate and other.exists():
                    raise InputError(
                        f"Output {the.file(path)} must not be among the files of another release, that of "
                        f"{str(other)!r}. Choose another name."
                    )
        if self.folder is not None:
            check_new_folder(self.folder, force)
            return False
        if self.is_stream:
            self._check_no_table()
            self._check_others(force)
            for path in self.files:
                check_new(path, force)
            return False
        kind_of(self.table)
        belongs = [self.table.with_suffix(ending) for ending in KINDS if ending != self.table.suffix]
        others = [path for path in belongs if os.path.lexists(path)]
        has_certificate = self.certificate.exists() or self.invariants.exists()
        orphan = has_certificate and not others and not os.path.lexists(self.table)
        if force and has_certificate and others:  # which would get the certificate of another table
            raise InputError(
                f"Output {the.file(self.table)} must not replace the certificate of {others[0].name!r} beside it. "
                "Choose another name, or remove that file."
            )
        check_new(self.table, force)
        for path in (self.certificate, self.invariants):
            check_new(path, force or orphan)
        self._check_others(force)
        # It is written after the certificate: without one, it is not of an interrupted release.
        check_new(self.unbiased, force or (orphan and self.certificate.exists()))
        for path in self.about:
            check_new(path, force)
        return orphan

    def _check_no_table(self) -> None:
        """Refuse a certificate that is, by its name, that of a table that is there.

        An empty file is none: the shell makes it for the table that is to come, as ``> r.csv`` or ``| tee r.csv`` do.
        """
        for table in tables_of(self.certificate):
            if table.is_dir() or (table.is_file() and table.stat().st_size):
                raise InputError(
                    f"The certificate {str(self.certificate)!r} must not be that of {table.name!r} beside it, which is "
                    f"another table. Choose another name, or remove that file."
                )

    def _check_others(self, force: bool) -> None:
        """Refuse to replace a table beside this one that is a release by its own name."""
        for path in (self.unbiased, *self.about):
            if force and path.with_suffix(".certificate.json").exists():
                place = self.certificate if self.is_stream else self.table
                raise InputError(
                    f"Output {the.file(place)} must not replace {path.name!r}, which has a certificate of its own. "
                    "Choose another name."
                )


def check_sums(file: Path, force: bool, release: Sequence[Path] = ()) -> None:
    """Refuse a file for sums over a release that exists, or is or would be taken for a part of a release.

    ``release`` are files of one, whatever their names are.
    """
    kind_of(file)
    check_new(file, force)
    is_part = any(certificate.exists() for certificate in certificates_around(file))
    if is_part or file.resolve() in [path.resolve() for path in release]:
        raise InputError(f"Output {the.file(file)} must not replace a file of a release. Choose another name.")
    if file.with_suffix(".certificate.json").exists():
        raise InputError(
            f"Output {the.file(file)} must not be beside a certificate of that name, which is of another table. Choose "
            "another name."
        )


def write_sums(file: Path, data: bytes, force: bool, release: Sequence[Path] = ()) -> None:
    """Write sums over a release, after another check: a release may have come there since the first one."""
    with claimed_for([file.with_suffix(".certificate.json"), *certificates_around(file)], file):
        check_sums(file, force, release)
        write_file(file, data, force)


@contextmanager
def claimed_for(certificates: Sequence[Path], file: Path) -> Iterator[None]:
    """Hold the locks of the releases with these certificates, which a file would be taken for a part of."""
    folders = {path.parent.resolve() for path in certificates if path.name == "certificate.json"}
    # Where no lock can be made, no release can be made either.
    keys = [*certificates, *(folder for folder in folders if folder.name and os.access(folder.parent, os.W_OK))]
    with ExitStack() as stack:
        for key in keys:
            stack.enter_context(claimed(key, shown=file))
            put_back(key, held=True)
        yield


def _is_loop(path: Path) -> bool:
    try:
        path.resolve()
    except (OSError, RuntimeError):
        return True
    return False


def certificates_around(path: Path) -> list[Path]:
    """The certificates of releases that a file or folder of this name would be a part of, whether or not they exist.

    >>> [str(file) for file in certificates_around(Path("out/table.parquet"))]
    ['out/certificate.json']
    >>> [str(file) for file in certificates_around(Path("out/r.unbiased.csv"))]
    ['out/r.certificate.json']
    >>> certificates_around(Path("out/r.csv"))
    []
    """
    found = []
    if path.stem in TABLES or path.name in ("invariants.json", *ABOUT):
        found.append(path.with_name("certificate.json"))
    elif path.stem.endswith(".unbiased"):
        found.append(path.with_name(f"{path.stem.removesuffix('.unbiased')}.certificate.json"))
    endings = (ending for ending in (".invariants.json", *(f".{name}" for name in ABOUT)) if path.name.endswith(ending))
    return found + [path.with_name(f"{path.name.removesuffix(ending)}.certificate.json") for ending in endings]


def beside_certificate(certificate: Path) -> tuple[Path, Path]:
    """Where the invariants and the unbiased table of a release are whose certificate has this name.

    >>> [path.name for path in beside_certificate(Path("r.certificate.json"))]
    ['r.invariants.json', 'r.unbiased.csv']
    """
    stem = _stem(certificate)
    return certificate.with_name(f"{stem}invariants.json"), certificate.with_name(f"{stem or 'table.'}unbiased.csv")


def _stem(certificate: Path) -> str:
    """What the names of all files of a release begin with: 'r.' for 'r.certificate.json', nothing in a folder."""
    ending, name = "certificate.json", certificate.name
    return name.removesuffix(ending) if name.endswith(ending) else f"{name.removesuffix('.json')}."


def put(
    release: Drawn, place: Destination, key: Ed25519PrivateKey | None = None, force: bool = False, orphan: bool = False
) -> bytes:
    """Write a release where the caller holds the lock: completely, or not at all and with an error.

    Returns the file of the table, which the caller must write if the place is standard output.
    """
    signed = release.certificate if key is None else sign(release.certificate, key)
    kind = "csv" if place.is_stream else kind_of(place.table)
    table = release.csv if kind == "csv" and release.csv else table_bytes(release.table, kind)
    invariants = {place.invariants: release.invariants} if release.invariants is not None else {}
    certificate = {place.certificate: json_file(signed)}
    unbiased = {place.unbiased: table_bytes(release.unbiased, kind)} if release.unbiased is not None else {}
    stale = [place.invariants, place.unbiased] if force or orphan else []
    stale += place.about if force else ()
    if place.is_stream:  # the release exists once its certificate does
        write_release(place.key, invariants | unbiased | certificate, force, stale)
        return table
    files = invariants | certificate | unbiased | {place.table: table}
    if place.folder is not None:
        write_folder(place.folder, {file.name: data for file, data in files.items()}, force)
        return table
    stale += [place.certificate] if orphan else []
    write_release(place.key, files, force, stale)
    return table


# The files of a release, on disk or in memory, and how they are read while another process may replace them.
#
# A release is replaced by renames alone: a file is never changed once it has its name. From before the first rename
# until after the last there is a backup beside it (``sources/atomic.py``), unless its folder is exchanged in one
# step. So the files are opened, the table first; they are one release if there is no backup then, and every name
# still stands for the file that was opened, the table's last. An open file keeps its number, so that no new file can
# be taken for it. No lock is needed, so that nobody has to wait for a reader, who may be somebody who cannot write
# there.

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
    for place in _places([path, certificate]):
        put_back(place)
    if certificate is None:
        path = release_of(path)
    if os.fspath(table).endswith(("/", os.sep)) and not path.is_dir():
        wrong = InputError if path.exists() else UnreachableError
        raise wrong(f"The release {the.file(os.fspath(table))} must be a folder, {_instead(path)}. Check the name.")
    try:
        return _beside(path, certificate)
    except OSError as error:  # a name that is too long, a folder that cannot be read
        raise UnreachableError(f"The released table must be readable, but: {error.strerror or error}.") from None


def _beside(path: Path, certificate: Path | None) -> Paths:
    tables = sorted(filter(is_table_of_folder, path.iterdir())) if path.is_dir() else []
    if path.is_dir() and (tables or not is_parquet_folder(path)):
        if len(tables) != 1:
            raise InputError(f"Folder {the.file(path)} must contain one table, got {len(tables)}.")
        beside, path = path / "certificate.json", tables[0]
    else:
        beside = path.with_suffix(".certificate.json")
    document = beside if certificate is None else certificate
    for file, what in ((path, "table"), (document, "certificate")):
        if not (file.is_file() or (what == "table" and is_parquet_folder(file))):
            form = "a file" if file.suffix else "a file or the folder of a release"
            advice = belongs_to(path) or " Check the name."
            wrong = InputError if file.exists() else UnreachableError
            raise wrong(f"The {what} {the.file(file)} must be {form}, {_instead(file)}.{advice}")
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
    return f"but it is {kind_of_path(path)}"


def _unreadable(path: Path, error: OSError) -> UnreadableError:
    return UnreadableError(f"File {the.file(path)} must be readable, but: {error.strerror or error}.")


class UnreadableError(UnreachableError):
    """A file that cannot be read is not a failed check: nothing is known about it."""


# What a saved release states: its certificate, wherever it is, and its file of invariants.


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
        wrong = InputError if file.exists() else UnreachableError
        if not (path.suffix or path.exists()):  # meant as a folder
            raise wrong(f"The release {the.file(path)} must be a file or the folder of a release, {what}.{advice}")
        raise wrong(f"The certificate {the.file(file)} must be a file, {what}.{advice}")
    return file

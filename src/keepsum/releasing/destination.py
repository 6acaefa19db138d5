"""Where a release is written, completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from keepsum._arguments import check_path
from keepsum.errors import InputError
from keepsum.releasing.release import Drawn
from keepsum.releasing.signing import sign
from keepsum.sources.atomic import check_new, check_new_folder, put_back, write_file, write_folder, write_release
from keepsum.sources.locking import BUSY, claimed
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
            raise InputError(f"Output must be in an existing folder, but {str(path)!r} is a link that leads to itself.")
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
            raise InputError(f"Output {str(self.key)!r} must be readable, but: {error.strerror or error}.") from None

    def _check(self, force: bool) -> bool:
        for path in self.files if self.folder is None else [self.folder]:
            for other in certificates_around(path):
                if other != self.certificate and other.exists():
                    raise InputError(
                        f"Output {str(path)!r} must not be among the files of another release, that of {str(other)!r}. "
                        f"Choose another name."
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
                f"Output {str(self.table)!r} must not replace the certificate of {others[0].name!r} beside it. "
                f"Choose another name, or remove that file."
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
                    f"Output {str(place)!r} must not replace {path.name!r}, which has a certificate of its own. Choose "
                    f"another name."
                )


def check_sums(file: Path, force: bool, release: Sequence[Path] = ()) -> None:
    """Refuse a file for sums over a release that exists, or is or would be taken for a part of a release.

    ``release`` are files of one, whatever their names are.
    """
    kind_of(file)
    check_new(file, force)
    is_part = any(certificate.exists() for certificate in certificates_around(file))
    if is_part or file.resolve() in [path.resolve() for path in release]:
        raise InputError(f"Output {str(file)!r} must not replace a file of a release. Choose another name.")
    if file.with_suffix(".certificate.json").exists():
        raise InputError(
            f"Output {str(file)!r} must not be beside a certificate of that name, which is of another table. Choose "
            f"another name."
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
    release: Drawn,
    place: Destination,
    key: Ed25519PrivateKey | None = None,
    force: bool = False,
    orphan: bool = False,
) -> bytes:
    """Write a release where the caller holds the lock: completely, or not at all and with an error.

    Returns the file of the table, which the caller must write if the place is standard output.
    """
    signed = release.certificate if key is None else sign(release.certificate, key)
    kind = "csv" if place.is_stream else kind_of(place.table)
    table = release.csv if kind == "csv" and release.csv else table_bytes(release.table, kind)
    invariants = {place.invariants: release.invariants} if release.invariants is not None else {}
    certificate = {place.certificate: signed.to_json()}
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

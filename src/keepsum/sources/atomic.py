"""Files that are there in whole or not at all.

Everything is written under another name first, forced to disk, and renamed, with the lock of its destination held
(``locking.py``). A folder appears by one rename. Of a table and its certificate the certificate is renamed first and
the table last, so that a table never stands without it. Where a release is replaced the old one is set aside until the
new one stands, and comes back if it does not (``replacing.py``): there is the old release or the new one, never a table
with the certificate of another, and never neither.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from keepsum.errors import InputError
from keepsum.sources.locking import claimed
from keepsum.sources.replacing import (
    BESIDE,
    aside_of,
    clear_parts,
    part_of,
    remove,
    replace_folder,
    restore,
    restore_folder,
    set_aside,
    settle,
)

# What a folder of a release may hold; another file in it means that it is something else.
RELEASE_FILES = re.compile(r"table\.(csv|parquet|arrow)|certificate\.json|invariants\.json|report\.html")

PRIVATE = 0o600  # open to the owner alone


def check_new(path: Path, force: bool = False) -> None:
    """A file may be written there: its folder exists, and it does not unless it may be replaced."""
    if not path.name or "\0" in path.name:
        raise InputError(f"Output {str(path)!r} must be the name of a file.")
    if not path.parent.is_dir():
        raise InputError(f"Folder {str(path.parent)!r} must exist, it does not. Make it first.")
    if path.is_dir():
        raise InputError(f"Output {str(path)!r} must be a file, it is a folder.")
    if os.path.lexists(path) and not force:
        raise InputError(f"Output {str(path)!r} must not exist yet. Name another, or replace it with force.")
    if not os.access(path.parent, os.W_OK | os.R_OK | os.X_OK):
        raise InputError(f"Folder {str(path.parent)!r} must be writable, it is not.")


def check_new_folder(path: Path, force: bool = False) -> None:
    """A folder of a release may be made there: nothing is lost by it."""
    parent = path.resolve().parent
    if not parent.is_dir():
        raise InputError(f"Folder {str(parent)!r} must exist, it does not. Make it first.")
    if not os.access(parent, os.W_OK | os.R_OK | os.X_OK):
        raise InputError(f"Folder {str(parent)!r} must be writable, it is not.")
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"Output {str(path)!r} must be a folder, it is a file.")
    _check_release_folder(path, path)
    if any(path.iterdir()) and not force:
        raise InputError(f"Output {str(path)!r} must not exist yet. Name another, or replace it with force.")


def _check_release_folder(folder: Path, shown: Path) -> None:
    strange = sorted(entry.name for entry in folder.iterdir() if not RELEASE_FILES.fullmatch(entry.name))
    if strange:
        raise InputError(f"Folder {str(shown)!r} must hold nothing but a release, it holds {strange[0]!r}.")


def write_file(path: Path, data: bytes, force: bool = False) -> None:
    """Write one file, in whole or not at all."""
    with claimed(path), _cleared(path) as part:
        _write(part, data)
        _appear(part, path, force)
        _settle_at_last(path.parent)


def write_keys(private: Path, secret: bytes, public: Path, shown: bytes, force: bool = False) -> None:
    """Write a private key and its public key; where both are replaced, never one of them beside the other's.

    The private key is there throughout, the old one or the new one; the public key, which follows from it, goes before
    and comes after.
    """
    with claimed(private), claimed(public), _cleared(private) as part, _cleared(public) as shown_part:
        _write(part, secret, PRIVATE)
        _write(shown_part, shown)
        for path in (private, public):
            check_new(path, force)
        if force:
            public.unlink(missing_ok=True)
            settle(public.parent)
        _appear(part, private, force)
        try:
            settle(private.parent)
            _appear(shown_part, public, force)
        except BaseException:
            if not force:
                private.unlink()
            raise
        _settle_at_last(public.parent)


def write_release(
    destination: Path, files: Mapping[Path, bytes], force: bool = False, stale: Iterable[Path] = ()
) -> None:
    """Write a table and what belongs to it; ``files`` are in the order in which they appear, the table last.

    The caller holds the lock of the destination. Without ``force`` nothing that stands there is replaced, whoever put
    it there in the meantime. What belonged to another release and has no successor is ``stale``.
    """
    *beside, table = files
    with contextlib.ExitStack() as stack:
        parts = {path: stack.enter_context(_cleared(path)) for path in files}
        for path, part in parts.items():
            _write(part, files[path])
        if force and os.path.lexists(table):
            stack.enter_context(set_aside(destination, table, {*beside, *stale}))
        else:
            for path in {*stale, *(beside if force else [])}:
                path.unlink(missing_ok=True)
        with _all_or_none() as made:
            for path, part in parts.items():
                _appear(part, path, force=False)
                made.append(path)
                if path != table:
                    settle(path.parent)
        _settle_at_last(table.parent)


@contextlib.contextmanager
def _all_or_none() -> Iterator[list[Path]]:
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def write_folder(folder: Path, files: Mapping[str, bytes], force: bool = False) -> None:
    """Write a folder of files by one rename; with ``force`` the release that stands there changes places with it.

    The caller holds the lock.
    """
    place = folder.resolve()
    with _cleared(place) as part:
        part.mkdir()
        for name, data in files.items():
            _write(part / name, data)
        settle(part)
        if force and place.exists() and any(place.iterdir()):
            # What was put into it in the meantime would go with it.
            replace_folder(part, place, lambda old: _check_release_folder(old, folder))
        else:
            try:
                part.rename(place)
            except OSError:
                if not os.path.lexists(place):
                    raise
                raise InputError(
                    f"Output {str(folder)!r} must not exist yet, but it does by now. Name another."
                ) from None
        _settle_at_last(place.parent)


def put_back(path: Path, held: bool = False) -> bool:
    """Put back the release that a killed process was replacing; True if there was one.

    ``path`` is the folder of a release, or the certificate of one; ``held`` says that the caller has its lock.
    """
    if "\0" in str(path):  # no name of anything
        return False
    aside = aside_of(path)
    if not aside.is_dir():
        return False
    with contextlib.nullcontext() if held else claimed(path, "Try again when that is done."):
        try:
            return restore(path) if (aside / BESIDE).is_dir() else restore_folder(path)
        except OSError as error:
            raise InputError(
                f"The release at {str(path)!r} must be put back from {str(aside)!r}, because the process that was "
                f"replacing it was killed, but: {error.strerror or error}."
            ) from None


def _appear(part: Path, path: Path, force: bool) -> None:
    """Give a finished file its name; without ``force`` only if nothing has it."""
    if not force:
        try:
            path.hardlink_to(part)
        except OSError:  # it exists, or this is a file system without hard links
            if os.path.lexists(path):
                words = f"Output {str(path)!r} must not exist yet, but it does by now. Name another."
                raise InputError(words) from None
        else:
            return
    part.replace(path)


@contextlib.contextmanager
def _cleared(path: Path) -> Iterator[Path]:
    """A name to write under; whatever is left of it goes, and so do the leavings of processes that were killed."""
    part = part_of(path)
    try:
        clear_parts(path)
        yield part
    except OSError as error:
        raise InputError(f"Output {str(path)!r} must be writable, but: {error.strerror or error}.") from None
    finally:
        remove(part)


def _write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """A new file, on disk before this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        if mode == PRIVATE:  # whatever the umask takes off
            os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _settle_at_last(folder: Path) -> None:
    """The same when all is in its place: whatever the disk says now, that is true."""
    with contextlib.suppress(OSError):
        settle(folder)

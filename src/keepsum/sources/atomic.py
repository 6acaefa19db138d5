"""Atomic writes: a file is complete, or it is not there.

Everything is written under a temporary name first, forced to disk, and renamed while the lock of its destination is
held (``locking.py``). A folder appears by one rename. Of a table and its certificate, the certificate is renamed first
and the table last, so that there is never a table without it. When a release is replaced, the old one is kept as a
backup until the new one is in place, and is restored otherwise (``replacing.py``): at any time there is the old release
or the new one, never a table with the certificate of another, and never neither.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from keepsum.errors import InputError
from keepsum.sources.locking import claimed
from keepsum.sources.replacing import (
    BESIDE,
    backup_path,
    remove,
    remove_leftovers,
    replace_folder,
    restore,
    restore_folder,
    set_aside,
    sync_folder,
    temporary_path,
)

# The files of a release; a folder with any other file is something else.
RELEASE_FILES = re.compile(
    r"table(\.unbiased)?\.(csv|parquet|arrow)|certificate\.json|invariants\.json|"
    r"report\.html|margins\.csv|registry\.json|reviewer-questions\.md"
)

PRIVATE, PUBLIC = 0o600, 0o644  # readable by the owner only, by everybody
ANYONE_WRITES = 0o222


def check_new(path: Path, force: bool = False) -> None:
    """Check that a file can be written: its folder exists, and the file does not, unless it may be replaced."""
    if not path.name or "\0" in path.name:
        raise InputError(f"Output {str(path)!r} must be the name of a file.")
    _check_exists(path.parent)
    if path.is_dir():
        raise InputError(f"Output {str(path)!r} must be a file, but it is a folder.")
    if os.path.lexists(path) and not force:
        raise InputError(_exists(path))
    _check_writable(path.parent)


def check_new_folder(path: Path, force: bool = False) -> None:
    """Check that the folder of a release can be written without losing anything."""
    parent = path.resolve().parent
    _check_exists(parent)
    _check_writable(parent)
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"Output {str(path)!r} must be a folder, but it is a file.")
    if not path.stat().st_mode & ANYONE_WRITES:  # although its owner, or root, could replace it
        raise InputError(f"Folder {str(path)!r} must be writable, but it is read-only. Choose another name.")
    _check_release_folder(path, path)
    if any(path.iterdir()) and not force:
        raise InputError(_exists(path))


def _check_exists(folder: Path) -> None:
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist. Create it first"
        raise InputError(f"Output must be in an existing folder, but {str(folder)!r} {problem}.")


def _check_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.R_OK | os.X_OK):
        raise InputError(f"Folder {str(folder)!r} must be writable, but it is not. Choose another folder.")


def _exists(path: Path) -> str:
    return f"Output {str(path)!r} already exists. Choose another name, or replace it with force=True."


def _exists_by_now(path: Path) -> str:
    return f"Output {str(path)!r} already exists: another process has created it. Choose another name."


def _check_release_folder(folder: Path, named: Path) -> None:
    foreign = sorted(entry.name for entry in folder.iterdir() if not RELEASE_FILES.fullmatch(entry.name))
    if foreign:
        raise InputError(f"Folder {str(named)!r} must contain nothing but a release, but contains {foreign[0]!r}.")


def write_file(path: Path, data: bytes, force: bool = False, mode: int = PUBLIC, patience: float = 0) -> None:
    """Write one file, completely or not at all, after waiting so many seconds for another process that writes it."""
    with claimed(path, patience=patience), _temporary(path) as temporary:
        _write(temporary, data, mode)
        _move_into_place(temporary, path, force)
        _try_to_sync(path.parent)


def write_keys(private: Path, private_key: bytes, public: Path, public_key: bytes, force: bool = False) -> None:
    """Write a private key and its public key; when both are replaced, never leave an old one beside a new one.

    The private key is always there, the old one or the new one; the public key, which follows from it, is removed
    before and written after.
    """
    with claimed(private), claimed(public), _temporary(private) as new_private, _temporary(public) as new_public:
        _write(new_private, private_key, PRIVATE)
        _write(new_public, public_key)
        for path in (private, public):
            check_new(path, force)
        if force:
            public.unlink(missing_ok=True)
            sync_folder(public.parent)
        _move_into_place(new_private, private, force)
        try:
            sync_folder(private.parent)
            _move_into_place(new_public, public, force)
        except BaseException:
            if not force:
                private.unlink()
            raise
        _try_to_sync(public.parent)


def write_release(
    destination: Path, files: Mapping[Path, bytes], force: bool = False, stale: Iterable[Path] = ()
) -> None:
    """Write a table and the files that belong to it; ``files`` are in the order of writing, the table last.

    The caller holds the lock of the destination. Without ``force`` nothing is replaced, even if another process created
    it in the meantime. ``stale`` are files of a previous release that have no replacement.
    """
    *beside, table = files
    with contextlib.ExitStack() as stack:
        temporaries = {path: stack.enter_context(_temporary(path)) for path in files}
        for path, temporary in temporaries.items():
            _write(temporary, files[path])
        if force and os.path.lexists(table):
            stack.enter_context(set_aside(destination, table, {*beside, *stale}))
        else:
            for path in {*stale, *(beside if force else [])}:
                path.unlink(missing_ok=True)
        with _all_or_none() as written:
            for path, temporary in temporaries.items():
                _move_into_place(temporary, path, force=False)
                written.append(path)
                if path != table:
                    sync_folder(path.parent)
        _try_to_sync(table.parent)


@contextlib.contextmanager
def _all_or_none() -> Iterator[list[Path]]:
    written: list[Path] = []
    try:
        yield written
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def write_folder(folder: Path, files: Mapping[str, bytes], force: bool = False) -> None:
    """Write a folder of files by one rename; with ``force`` it is exchanged with the release that is there.

    The caller holds the lock.
    """
    place = folder.resolve()
    with _temporary(place) as temporary:
        temporary.mkdir()
        if place.is_dir():  # a folder that is replaced keeps its mode
            temporary.chmod(stat.S_IMODE(place.stat().st_mode))
        for name, data in files.items():
            _write(temporary / name, data)
        sync_folder(temporary)
        if force and place.exists() and any(place.iterdir()):
            # Checked again, because a file added in the meantime would be lost.
            replace_folder(temporary, place, lambda old: _check_release_folder(old, folder))
        else:
            try:
                temporary.rename(place)
            except OSError:
                if not os.path.lexists(place):
                    raise
                raise InputError(_exists_by_now(folder)) from None
        _try_to_sync(place.parent)


def put_back(path: Path, held: bool = False) -> bool:
    """Restore the release that a killed process was replacing; True if there was one.

    ``path`` is the folder or the certificate of a release; ``held`` says that the caller holds its lock.
    """
    if "\0" in str(path):  # not a valid path
        return False
    backup = backup_path(path)
    if not backup.is_dir():
        return False
    with contextlib.nullcontext() if held else claimed(path, "Try again when that is done."):
        try:
            return restore(path) if (backup / BESIDE).is_dir() else restore_folder(path)
        except OSError as error:
            raise InputError(
                f"The release at {str(path)!r} must be restored from {str(backup)!r}, because the process that was "
                f"replacing it was killed, but: {error.strerror or error}."
            ) from None


def _move_into_place(temporary: Path, path: Path, force: bool) -> None:
    """Give a finished file its name; without ``force`` only if the name is free."""
    if not force:
        try:
            path.hardlink_to(temporary)
        except OSError:  # the name is taken, or the file system has no hard links
            if os.path.lexists(path):
                raise InputError(_exists_by_now(path)) from None
        else:
            return
    temporary.replace(path)


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A temporary name to write under, removed at the end; files left behind by killed processes are removed first."""
    temporary = temporary_path(path)
    try:
        remove_leftovers(path)
        yield temporary
    except OSError as error:
        raise InputError(f"Output {str(path)!r} must be writable, but: {error.strerror or error}.") from None
    finally:
        remove(temporary)


def _write(path: Path, data: bytes, mode: int = PUBLIC) -> None:
    """Write a new file and force it to disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        if mode == PRIVATE:  # whatever the umask removes
            os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _try_to_sync(folder: Path) -> None:
    """Sync a folder once everything is in place; an error no longer matters."""
    with contextlib.suppress(OSError):
        sync_folder(folder)

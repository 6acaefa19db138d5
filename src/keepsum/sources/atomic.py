"""Atomic writes: a file is complete, or it is not there; one process at a time replaces it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import itertools
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from keepsum._saying import arg, the
from keepsum._signals import held_back
from keepsum.errors import InputError, OutputExistsError, UnreachableError

# One lock per destination: if two processes want to write there, one does and the other gets an error.
#
# The lock is a file beside the destination, because everyone who can write there sees it: another user, another
# machine on a network file system, another container. The system releases the lock when its process ends, however
# that happens. Its file is then removed; a file left behind by a killed process is empty, blocks nobody, and is
# removed with the next lock.

BUSY = "Nothing was written. Wait until it finishes, or choose another output."


def canonical_path(path: Path) -> Path:
    """A path whose folder is resolved (links and dots), with the last name as given."""
    return path.parent.resolve() / path.name


def name_digest(path: Path) -> str:
    """A short digest of a file name, equal for names that a file system may treat as one (case, accents)."""
    name = unicodedata.normalize("NFC", path.name).casefold()
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@contextlib.contextmanager
def claimed(path: Path, busy: str = BUSY, shown: Path | None = None, patience: float = 0) -> Iterator[None]:
    """Hold the lock of a destination, with signals deferred (``_signals.let_through``) so that it is released.

    ``shown`` is the name of the destination in messages, if the lock is named after another of its files.

    Raises
    ------
    InputError
        If another process holds the lock, immediately or after so many seconds; ``busy`` says what to do.
    """
    place = canonical_path(path)
    file = place.with_name(f".keepsum-{name_digest(place)}.lock")
    with held_back():
        lock = _lock(file, path if shown is None else shown, busy, patience)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # the work is done, and the system releases the lock in any case
                if not isinstance(lock, SoftFileLock):  # a SoftFileLock removes its file itself
                    file.unlink(missing_ok=True)  # while held, so that another process notices that the file is gone
                lock.release()


def _lock(file: Path, path: Path, busy: str, patience: float) -> BaseFileLock:
    try:
        # Everyone who can write to the folder may take a lock left behind by another user's killed process.
        mode = stat.S_IMODE(file.parent.stat().st_mode) & 0o666 | 0o600
        lock = FileLock(file, mode=mode, timeout=patience)
        if _acquired(lock):
            return lock
        if not file.exists():
            # There is no lock, so nobody holds it; ``OSError`` if none can be made, as in a folder of the system's
            probe = file.with_name(f"{file.name}-{os.getpid()}")
            os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            probe.unlink()
    except OSError as error:
        raise UnreachableError(f"Output {the.file(path)} must be writable, but: {error.strerror or error}.") from None
    raise UnreachableError(f"Output {the.file(path)} must be free, but another process is writing it. {busy}")


def _acquired(lock: BaseFileLock) -> bool:
    try:
        lock.acquire()
    except Timeout:
        return False
    return True


# Replace files and folders on disk so that the old or the new one is there whenever the process ends.
#
# The old one is moved to a hidden backup folder beside it, is restored if anything goes wrong, and is deleted at the
# end. A process killed in between leaves the backup behind, and ``restore`` puts the old one back. The caller holds
# the lock of the destination (``atomic.py``).

TEMPORARY_NAME = re.compile(r"\.keepsum-(?P<digest>[0-9a-f]{16})-\d+-\d+\.part")
# In the backup folder: the other files of the release, and the names of files that did not exist.
BESIDE, ABSENT = "beside", "absent"

_TEMPORARY_NUMBERS = itertools.count()
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)  # a file system that cannot sync a folder
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # from linux/fcntl.h and linux/fs.h


def temporary_path(path: Path) -> Path:
    """A temporary name in the same folder."""
    return path.with_name(f".keepsum-{name_digest(path)}-{os.getpid()}-{next(_TEMPORARY_NUMBERS)}.part")


def remove(path: Path) -> None:
    """Remove a file or a folder as far as possible; a later call removes the rest."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def backup_path(path: Path) -> Path:
    """The backup of a destination while it is being replaced."""
    place = canonical_path(path)
    return place.with_name(f".keepsum-{name_digest(place)}.old")


@contextlib.contextmanager
def set_aside(destination: Path, table: Path, beside: Iterable[Path]) -> Iterator[None]:
    """Move the files of a release to the backup while new ones are written; if that fails, restore them.

    ``table`` is moved first and restored last: whether it exists tells whether there is anything to restore. The other
    files are in the same folder; those that do not exist now will not exist after a restore.
    """
    beside = list(beside)
    temporary, backup = temporary_path(table), backup_path(destination)
    try:
        for name in ("", BESIDE, ABSENT):
            (temporary / name).mkdir()
        for path in beside:
            if not os.path.lexists(path):
                (temporary / ABSENT / path.name).touch(exist_ok=False)
        for folder in (temporary / ABSENT, temporary):
            sync_folder(folder)
        temporary.replace(backup)
        sync_folder(table.parent)
        table.replace(backup / table.name)
        sync_folder(table.parent)
        for path in beside:
            if os.path.lexists(path):
                path.replace(backup / BESIDE / path.name)
        yield
    except BaseException:
        remove(temporary)
        restore(destination)
        raise
    _discard(destination)


def restore(destination: Path) -> bool:
    """Restore a backup that was not replaced; True if there was one. May be interrupted and repeated."""
    backup = backup_path(destination)
    if not backup.is_dir():
        return False
    table = next((entry for entry in backup.iterdir() if entry.name not in (BESIDE, ABSENT)), None)
    if table is None or os.path.lexists(backup.with_name(table.name)):
        _discard(destination)  # nothing had been moved yet, or the replacement was complete
        return False
    for entry in (backup / ABSENT).iterdir():
        backup.with_name(entry.name).unlink(missing_ok=True)
    for entry in (backup / BESIDE).iterdir():
        entry.replace(backup.with_name(entry.name))
    sync_folder(backup.parent)
    table.replace(backup.with_name(table.name))
    sync_folder(backup.parent)
    _discard(destination)
    return True


def _discard(destination: Path) -> None:
    """Delete the backup; it is renamed first, so that no one takes a half-deleted backup for one to restore."""
    temporary = temporary_path(canonical_path(destination))
    with contextlib.suppress(OSError):
        backup_path(destination).replace(temporary)
        remove(temporary)


def replace_folder(new: Path, folder: Path, check: Callable[[Path], None]) -> None:
    """Replace a folder by ``new``, where the old one is afterwards: in one step where the system can, as on Linux.

    ``check`` inspects the old folder once nobody can add to it any more; if it raises, nothing has changed.
    """
    if _exchanged(new, folder):
        try:
            check(new)
        except BaseException:
            _exchanged(new, folder)
            raise
        return
    backup = backup_path(folder)
    folder.replace(backup)
    try:
        check(backup)
        new.replace(folder)
    except BaseException:
        restore_folder(folder)
        raise
    with contextlib.suppress(OSError):  # the new folder is in place
        backup.replace(new)


def _exchanged(a: Path, b: Path) -> bool:
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE) == 0


def restore_folder(folder: Path) -> bool:
    """Restore the backup of a folder that was not replaced; True if there was one."""
    backup = backup_path(folder)
    if not backup.is_dir():
        return False
    if folder.exists():
        _discard(folder)
        return False
    backup.replace(canonical_path(folder))
    sync_folder(backup.parent)
    return True


# Everything is written under a temporary name first, forced to disk, and renamed while the lock of its destination is
# held (``atomic.py``). A folder appears by one rename. Of a table and its certificate, the certificate is renamed
# first and the table last, so that there is never a table without it. When a release is replaced, the old one is kept
# as a backup until the new one is in place, and is restored otherwise (``atomic.py``): at any time there is the
# old release or the new one, never a table with the certificate of another, and never neither.

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
        raise InputError(f"Output {the.file(path)} must be the name of a file.")
    _check_exists(path.parent)
    if path.is_dir():
        raise InputError(f"Output {the.file(path)} must be a file, but it is a folder.")
    if os.path.lexists(path) and not force:
        raise OutputExistsError(_exists(path))
    _check_writable(path.parent)


def check_new_folder(path: Path, force: bool = False) -> None:
    """Check that the folder of a release can be written without losing anything."""
    parent = path.resolve().parent
    _check_exists(parent)
    _check_writable(parent)
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"Output {the.file(path)} must be a folder, but it is a file.")
    if not path.stat().st_mode & ANYONE_WRITES:  # although its owner, or root, could replace it
        raise UnreachableError(f"Folder {the.file(path)} must be writable, but it is read-only. Choose another name.")
    _check_release_folder(path, path)
    if any(path.iterdir()) and not force:
        raise OutputExistsError(_exists(path))


def _check_exists(folder: Path) -> None:
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist. Create it first"
        raise UnreachableError(
            f"{arg.output.called('Output')} must be in an existing folder, but {the.file(folder)} {problem}."
        )


def _check_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.R_OK | os.X_OK):
        raise UnreachableError(f"Folder {the.file(folder)} must be writable, but it is not. Choose another folder.")


def _exists(path: Path) -> str:
    return f"Output {the.file(path)} already exists. Choose another name, or replace it {arg.force(True):with}."


def _exists_by_now(path: Path) -> str:
    return f"Output {str(path)!r} already exists: another process has created it. Choose another name."


def _check_release_folder(folder: Path, named: Path) -> None:
    foreign = sorted(entry.name for entry in folder.iterdir() if not RELEASE_FILES.fullmatch(entry.name))
    if foreign:
        raise InputError(f"Folder {the.file(named)} must contain nothing but a release, but contains {foreign[0]!r}.")


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
                raise OutputExistsError(_exists_by_now(folder)) from None
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
            raise UnreachableError(
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
                raise OutputExistsError(_exists_by_now(path)) from None
        else:
            return
    temporary.replace(path)


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A temporary name to write under, removed at the end; files left behind by killed processes are removed first."""
    temporary = temporary_path(path)
    try:
        # Remove temporary files of this name left behind by killed processes; the caller holds its lock
        for entry in path.absolute().parent.iterdir():
            match = TEMPORARY_NAME.fullmatch(entry.name)
            if match and match["digest"] == name_digest(path):
                remove(entry)
        yield temporary
    except OSError as error:
        raise UnreachableError(f"Output {the.file(path)} must be writable, but: {error.strerror or error}.") from None
    finally:
        remove(temporary)


def _write(path: Path, data: bytes, mode: int = PUBLIC) -> None:
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

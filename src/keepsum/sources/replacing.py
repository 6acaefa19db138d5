"""Replace files and folders on disk so that the old or the new one is there whenever the process ends.

The old one is moved to a hidden backup folder beside it, is restored if anything goes wrong, and is deleted at the end.
A process killed in between leaves the backup behind, and ``restore`` puts the old one back. The caller holds the lock
of the destination (``locking.py``).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from keepsum.sources.locking import canonical_path, name_digest

TEMPORARY_NAME = re.compile(r"\.keepsum-(?P<digest>[0-9a-f]{16})-\d+-\d+\.part")
# In the backup folder: the other files of the release, and the names of files that did not exist.
BESIDE, ABSENT = "beside", "absent"

_TEMPORARY_NUMBERS = itertools.count()
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)  # a file system that cannot sync a folder
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # from linux/fcntl.h and linux/fs.h


def temporary_path(path: Path) -> Path:
    """A temporary name in the same folder."""
    return path.with_name(f".keepsum-{name_digest(path)}-{os.getpid()}-{next(_TEMPORARY_NUMBERS)}.part")


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of this name left behind by killed processes; the caller holds its lock."""
    for entry in path.absolute().parent.iterdir():
        match = TEMPORARY_NAME.fullmatch(entry.name)
        if match and match["digest"] == name_digest(path):
            remove(entry)


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

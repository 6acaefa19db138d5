"""Files that are there in whole or not at all.

Everything is written under another name first, forced to disk, and renamed. A folder appears by one rename. Of a table
and its certificate the certificate is renamed first and the table last, so that a table never stands without it; where
both are replaced the old table goes first of all.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from keepsum.errors import InputError

PART = re.compile(r"\.keepsum-(?P<name>[0-9a-f]{8})-(?P<pid>\d+)-\d+\.part")
# What a folder of a release may hold; another file in it means that it is something else.
RELEASE_FILES = re.compile(r"table\.(csv|parquet|arrow)|certificate\.json|invariants\.json|report\.html")

PRIVATE = 0o600  # open to the owner alone
_NUMBER = itertools.count()
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # from linux/fcntl.h and linux/fs.h


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
    held = [entry.name for entry in path.iterdir()]
    strange = sorted(name for name in held if not RELEASE_FILES.fullmatch(name))
    if strange:
        raise InputError(f"Folder {str(path)!r} must hold nothing but a release, it holds {strange[0]!r}.")
    if held and not force:
        raise InputError(f"Output {str(path)!r} must not exist yet. Name another, or replace it with force.")


def write_new(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write one file, in whole or not at all."""
    with _cleared(path) as part:
        _write(part, data, mode)
        part.replace(path)
        _settle(path.parent)


def write_file(path: Path, data: bytes, force: bool = False) -> None:
    """Write a file, in whole or not at all."""
    with _cleared(path) as part:
        _write(part, data)
        _appear(part, path, force)
        _settle(path.absolute().parent)


def write_release(table: Path, files: Mapping[Path, bytes], force: bool = False, obsolete: Path | None = None) -> None:
    """Write a table and what belongs to it; ``files`` are in the order in which they appear, the table last.

    Without ``force`` nothing that stands there is replaced, whoever put it there in the meantime. A file of a release
    that is replaced and that the new one does not have is ``obsolete``.
    """
    with contextlib.ExitStack() as stack:
        parts = {path: stack.enter_context(_cleared(path)) for path in files}
        for path, part in parts.items():
            _write(part, files[path])
        if force and table.exists():  # it may be replaced, but must not stand beside the certificate of another
            table.unlink()
            _settle(table.parent)
        if obsolete is not None:
            obsolete.unlink(missing_ok=True)
        for path, part in parts.items():
            _appear(part, path, force)
            _settle(path.parent)


def _appear(part: Path, path: Path, force: bool) -> None:
    """Give a finished file its name; without ``force`` only if nothing has it."""
    if not force:
        try:
            path.hardlink_to(part)
        except FileExistsError:
            raise InputError(f"Output {str(path)!r} must not exist yet, but it does by now. Name another.") from None
        except OSError:  # a file system without hard links
            pass
        else:
            return
    part.replace(path)


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files by one rename; one that stands there changes places with it and is then removed."""
    folder = folder.resolve()
    with _cleared(folder) as part:
        part.mkdir()
        for name, data in files.items():
            _write(part / name, data)
        _settle(part)
        if folder.exists() and any(folder.iterdir()):
            _exchange(part, folder)
        else:
            part.replace(folder)
        _settle(folder.parent)


def _exchange(a: Path, b: Path) -> None:
    """Let two folders change places, at once where the system can (Linux), else by three renames."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is not None and rename(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE) == 0:
        return
    aside = _part_of(b)
    b.replace(aside)
    a.replace(b)
    aside.replace(a)


def _part_of(path: Path) -> Path:
    return path.with_name(f".keepsum-{_mark(path)}-{os.getpid()}-{next(_NUMBER)}.part")


def _mark(path: Path) -> str:
    """A short name for a name, which may be as long as names can be."""
    return f"{zlib.crc32(os.fsencode(path.name)):08x}"


@contextlib.contextmanager
def _cleared(path: Path) -> Iterator[Path]:
    """A name to write under; whatever is left of it goes, and so do the leavings of processes that were killed."""
    for entry in path.absolute().parent.iterdir():
        match = PART.fullmatch(entry.name)
        if match and match["name"] == _mark(path) and not _runs(int(match["pid"])):
            _remove(entry)
    part = _part_of(path)
    try:
        yield part
    except OSError as error:
        raise InputError(f"Output {str(path)!r} must be writable, but: {error.strerror or error}.") from None
    finally:
        _remove(part)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """A new file, on disk before this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        if mode == PRIVATE:  # whatever the umask takes off
            os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _settle(folder: Path) -> None:
    """Force the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

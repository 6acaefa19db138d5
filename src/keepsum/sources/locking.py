"""One lock per destination: if two processes want to write there, one does and the other gets an error.

The lock is a file beside the destination, because everyone who can write there sees it: another user, another machine
on a network file system, another container. The system releases the lock when its process ends, however that happens.
Its file is then removed; a file left behind by a killed process is empty, blocks nobody, and is removed with the next
lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from keepsum._signals import held_back
from keepsum.errors import InputError

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
            _check_creatable(file)
    except OSError as error:
        raise InputError(f"Output {str(path)!r} must be writable, but: {error.strerror or error}.") from None
    raise InputError(f"Output {str(path)!r} must be free, but another process is writing it. {busy}")


def _check_creatable(file: Path) -> None:
    """There is no lock, so nobody holds it; ``OSError`` if none can be made, as in a folder of the system's."""
    probe = file.with_name(f"{file.name}-{os.getpid()}")
    os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    probe.unlink()


def _acquired(lock: BaseFileLock) -> bool:
    try:
        lock.acquire()
    except Timeout:
        return False
    return True

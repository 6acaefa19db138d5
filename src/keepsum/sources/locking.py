"""One lock for each destination: of two that would write it one does, and the other is told.

The lock is a file beside the destination, because nothing else is seen by everybody who can write there: another user,
another machine on a network file system, another container. The system drops it when its process ends, however it ends.
Its file is removed at the end; one that a killed process left is empty, holds nobody up, and goes with the next lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from keepsum._signals import held_back
from keepsum.errors import InputError

BUSY = "Nothing was written. Wait until it is done, or name another."


def settled(path: Path) -> Path:
    """The one spelling of a name in a folder: links to folders and dots are followed, the last name is as given."""
    return path.parent.resolve() / path.name


def mark(path: Path) -> str:
    """A short name for a name, the same where a file system may take two names for one (case, accents)."""
    name = unicodedata.normalize("NFC", path.name).casefold()
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@contextlib.contextmanager
def claimed(path: Path, busy: str = BUSY, shown: Path | None = None) -> Iterator[None]:
    """Hold the lock of a destination; signals wait (``holding.let_through``), so that it is given back.

    ``shown`` is what people call the destination, if the lock is called after another file of it.

    Raises
    ------
    InputError
        At once, if another holds it; ``busy`` says what that means.
    """
    place = settled(path)
    file = place.with_name(f".keepsum-{mark(place)}.lock")
    with held_back():
        lock = _lock(file, path if shown is None else shown, busy)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # what was done is done; the system drops the lock in any case
                if not isinstance(lock, SoftFileLock):  # which removes its file itself
                    file.unlink(missing_ok=True)  # still held: whoever waits at this file sees that it is gone
                lock.release()


def _lock(file: Path, path: Path, busy: str) -> BaseFileLock:
    try:
        # Whoever may write in the folder may take a lock that another user's killed process left.
        allowed = stat.S_IMODE(file.parent.stat().st_mode) & 0o666 | 0o600
        lock = FileLock(file, mode=allowed, blocking=False)
        if _acquired(lock):
            return lock
    except OSError as error:
        raise InputError(f"Output {str(path)!r} must be writable, but: {error.strerror or error}.") from None
    raise InputError(f"Output {str(path)!r} must be free, but another process is writing it. {busy}")


def _acquired(lock: BaseFileLock) -> bool:
    try:
        lock.acquire()
    except Timeout:
        return False
    return True

"""Putting one thing in the place of another on disk so that one of the two is there, whenever the process ends.

The old one is set aside in a hidden folder beside it, comes back if anything goes wrong, and goes at the end. A process
that is killed in between leaves that folder, and ``restore`` puts the old one back. The lock of the destination is held
by whoever calls any of this (``locking.py``).
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

from keepsum.sources.locking import mark, settled

PART = re.compile(r"\.keepsum-(?P<mark>[0-9a-f]{16})-\d+-\d+\.part")
# In the folder of what was set aside: files that stood beside the first one, and the names of files that did not.
BESIDE, ABSENT = "beside", "absent"

_NUMBER = itertools.count()
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)  # a file system that keeps the names of a folder in its own way
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # from linux/fcntl.h and linux/fs.h


def part_of(path: Path) -> Path:
    """A name to write under, in the same folder."""
    return path.with_name(f".keepsum-{mark(path)}-{os.getpid()}-{next(_NUMBER)}.part")


def clear_parts(path: Path) -> None:
    """Remove what killed processes left of this name; with its lock held nobody else is writing."""
    for entry in path.absolute().parent.iterdir():
        match = PART.fullmatch(entry.name)
        if match and match["mark"] == mark(path):
            remove(entry)


def remove(path: Path) -> None:
    """Remove a file or a folder as far as that is possible; what is left goes another time."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def settle(folder: Path) -> None:
    """Force the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def aside_of(path: Path) -> Path:
    """Where what stands at a destination is set aside."""
    place = settled(path)
    return place.with_name(f".keepsum-{mark(place)}.old")


@contextlib.contextmanager
def set_aside(destination: Path, first: Path, beside: Iterable[Path]) -> Iterator[None]:
    """Take files away while others take their places; if that fails they come back.

    ``first`` goes first and comes last: whether it stands tells whether there is anything to put back. The others are
    in the same folder, and those that are not there will not be there again.
    """
    beside = list(beside)
    part, aside = part_of(first), aside_of(destination)
    try:
        for name in ("", BESIDE, ABSENT):
            (part / name).mkdir()
        for path in beside:
            if not os.path.lexists(path):
                (part / ABSENT / path.name).touch(exist_ok=False)
        for folder in (part / ABSENT, part):
            settle(folder)
        part.replace(aside)
        settle(first.parent)
        first.replace(aside / first.name)
        settle(first.parent)
        for path in beside:
            if os.path.lexists(path):
                path.replace(aside / BESIDE / path.name)
        yield
    except BaseException:
        remove(part)
        restore(destination)
        raise
    _discard(destination)


def restore(destination: Path) -> bool:
    """Put back what was set aside and has no successor; True if there was such a thing. May be cut off and repeated."""
    aside = aside_of(destination)
    if not aside.is_dir():
        return False
    first = next((entry for entry in aside.iterdir() if entry.name not in (BESIDE, ABSENT)), None)
    if first is None or os.path.lexists(aside.with_name(first.name)):
        _discard(destination)  # nothing was taken away yet, or all is done
        return False
    for entry in (aside / ABSENT).iterdir():
        aside.with_name(entry.name).unlink(missing_ok=True)
    for entry in (aside / BESIDE).iterdir():
        entry.replace(aside.with_name(entry.name))
    settle(aside.parent)
    first.replace(aside.with_name(first.name))
    settle(aside.parent)
    _discard(destination)
    return True


def _discard(destination: Path) -> None:
    """Remove what was set aside, by a name first under which nobody takes it for something to put back."""
    part = part_of(settled(destination))
    with contextlib.suppress(OSError):
        aside_of(destination).replace(part)
        remove(part)


def replace_folder(part: Path, folder: Path, check: Callable[[Path], None]) -> None:
    """Let a folder take the place of another, which is then at ``part``: at once where the system can, as Linux.

    ``check`` looks at the other one when nobody can put anything into it any more; if it raises, nothing has changed.
    """
    if _exchanged(part, folder):
        try:
            check(part)
        except BaseException:
            _exchanged(part, folder)
            raise
        return
    aside = aside_of(folder)
    folder.replace(aside)
    try:
        check(aside)
        part.replace(folder)
    except BaseException:
        restore_folder(folder)
        raise
    with contextlib.suppress(OSError):  # the new one stands
        aside.replace(part)


def _exchanged(a: Path, b: Path) -> bool:
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE) == 0


def restore_folder(folder: Path) -> bool:
    """Put back a folder that was set aside and has no successor; True if there was one."""
    aside = aside_of(folder)
    if not aside.is_dir():
        return False
    if folder.exists():
        _discard(folder)
        return False
    aside.replace(settled(folder))
    settle(aside.parent)
    return True

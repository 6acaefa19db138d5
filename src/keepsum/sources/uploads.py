"""Files that are not on disk, and files on disk that must not be read, such as pipes and devices."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

from keepsum.errors import InputError

# A file in memory: it has a name for messages and its contents, and no place on disk.


@dataclass(frozen=True, eq=False)
class Upload:
    """A file that was handed over as bytes; wherever a table or records are read, it stands for a path."""

    name: str
    data: bytes = field(repr=False)


# Pipes, devices and the like: what small files of declarations and keys must not be, because reading may never end.

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def kind_of_path(path: Path) -> str:
    """What is at a path: 'a file', 'a folder', 'a pipe' ..."""
    return KINDS.get(stat.S_IFMT(path.stat().st_mode), "a file")


def refuse_special(path: Path, what: str) -> None:
    """Refuse a pipe or a device before it is opened; opening tells of folders, and of what does not exist."""
    try:
        kind = kind_of_path(path)
    except (OSError, ValueError):
        return
    if kind not in ("a file", "a folder"):
        raise InputError(f"{what} {str(path)!r} must be a regular file, but it is {kind}. Save it as a file first.")

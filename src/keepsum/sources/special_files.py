"""Pipes, devices and the like: what small files of declarations and keys must not be, because reading may never end."""

from __future__ import annotations

import stat
from pathlib import Path

from keepsum.errors import InputError

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def kind_of(path: Path) -> str:
    """What is at a path: 'a file', 'a folder', 'a pipe' ..."""
    return KINDS.get(stat.S_IFMT(path.stat().st_mode), "a file")


def refuse_special(path: Path, what: str) -> None:
    """Refuse a pipe or a device before it is opened; opening tells of folders, and of what does not exist."""
    try:
        kind = kind_of(path)
    except (OSError, ValueError):
        return
    if kind not in ("a file", "a folder"):
        raise InputError(f"{what} {str(path)!r} must be a regular file, but it is {kind}. Save it as a file first.")

"""Where things are kept that can be worked out again: compiled kernels, and what pairs of chains showed.

A cache is a convenience. Without a home, without a folder that can be written to, or with a full disk everything works
as well, only slower.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from platformdirs import user_cache_path


def user_cache() -> Path | None:
    """The user's cache folder of Keepsum, None for a user who has no home; it need not exist, nor be writable."""
    try:
        folder = user_cache_path("keepsum", appauthor=False)
    except RuntimeError:  # neither HOME nor an entry in the list of users
        return None
    return folder if folder.is_absolute() else None  # older versions leave "~" as it is


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return os.access(folder, os.R_OK | os.X_OK)
    except OSError:
        return False
